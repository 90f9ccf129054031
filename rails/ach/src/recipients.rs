//! Canonical form of a recipient.

use railhead_rail::fields::{find, set, value};
use railhead_rail::host;
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{country, missing, violation};

use crate::{aba, charset};

/// The operator's copy of the FedACH participant directory.
pub const FEDACH: &str = "fedach";

/// The only method that recipients of this rail name.
const METHOD: &str = "ach";

/// The account number in a NACHA file.
const ACCOUNT_MAX: usize = 17;

/// The recipient with every field trimmed, the account number in capitals without spaces, the
/// name in the file's characters, and the bank's name from the directory where it was left out.
/// A recipient that does not say what it is, is an individual.
///
/// # Errors
/// Every violation, not only the first.
pub fn check(fields: Vec<Field>) -> Result<Vec<Field>, Vec<Violation>> {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|field| Field { value: field.value.trim().to_owned(), ..field })
        .filter(|field| !field.value.is_empty())
        .collect();
    let mut violations = Vec::new();
    for (name, checked) in [
        ("account_number", account_number(value(&fields, "account_number"))),
        ("routing_number", routing_number(value(&fields, "routing_number"))),
        ("name", name(value(&fields, "name"))),
        ("account_type", word(&fields, "account_type", &["checking", "savings"], "")),
        ("type", word(&fields, "type", &["individual", "business"], "individual")),
        ("method", word(&fields, "method", &[METHOD], METHOD)),
        ("country", letters_of_country(&fields, "country")),
        ("bank_address.country", letters_of_country(&fields, "bank_address.country")),
    ] {
        match checked {
            Ok(canonical) if canonical.is_empty() => {}
            Ok(canonical) => set(&mut fields, name, canonical),
            Err(violation) => violations.push(violation),
        }
    }
    if violations.iter().all(|violation| violation.field != "routing_number") {
        look_up(&mut fields, &mut violations);
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

/// The number in capitals without spaces, if a file can carry it.
#[must_use]
pub fn account(text: &str) -> Option<String> {
    let number: String = text.chars().filter(|c| *c != ' ').collect();
    let is_possible = (1..=ACCOUNT_MAX).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && number.bytes().any(|byte| byte.is_ascii_alphanumeric());
    is_possible.then(|| number.to_ascii_uppercase())
}

fn account_number(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("account_number", "the number of the account"));
    }
    account(text).ok_or_else(|| {
        let message = "account_number must be 1 to 17 letters, digits and dashes.";
        violation("account_number", "invalid_account", message)
    })
}

fn routing_number(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("routing_number", "the bank's ABA routing number"));
    }
    if aba::is_possible(text) {
        return Ok(text.to_owned());
    }
    let message = "routing_number must be the nine digits of an ABA routing number.";
    Err(violation("routing_number", "invalid_account", message))
}

/// The name in the file's characters. Without one it is only the account that is spoken of.
fn name(text: &str) -> Result<String, Violation> {
    let name = charset::tidy(text);
    if text.is_empty() || name.contains(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(name);
    }
    let message = "name must hold a letter or a digit that ACH carries: A to Z, or 0 to 9.";
    Err(violation("name", "invalid_field", message))
}

/// One of a few words, in small letters; another one where it is left out.
fn word(
    fields: &[Field],
    name: &str,
    words: &[&str],
    otherwise: &str,
) -> Result<String, Violation> {
    let Some(given) = find(fields, name) else { return Ok(otherwise.to_owned()) };
    let word = given.to_ascii_lowercase();
    if words.contains(&word.as_str()) {
        return Ok(word);
    }
    let message = format!("{name} must be {}.", words.join(" or "));
    Err(violation(name, "invalid_field", &message))
}

/// A country's two letters in capitals; empty where it is left out.
fn letters_of_country(fields: &[Field], name: &str) -> Result<String, Violation> {
    let letters = country(value(fields, name), "US").map(Option::unwrap_or_default);
    letters.map_err(|found| Violation { field: name.to_owned(), ..found })
}

/// What the directory says about the bank, where the operator has supplied one.
fn look_up(fields: &mut Vec<Field>, violations: &mut Vec<Violation>) {
    if !host::has_table(FEDACH) {
        return;
    }
    let rows = host::rows(FEDACH, "routing_number", value(fields, "routing_number"));
    let Some(bank) = rows.first() else {
        let message = "routing_number is not in the directory of banks that take ACH payments.";
        violations.push(violation("routing_number", "invalid_account", message));
        return;
    };
    if find(fields, "bank_name").is_none() && !bank.get("name").trim().is_empty() {
        set(fields, "bank_name", bank.get("name").trim());
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, set, value};
    use railhead_rail::host::double::{self, Host};

    use super::{FEDACH, check};
    use crate::fixtures;

    fn checked(changes: &[(&str, &str)]) -> Result<(), Vec<(String, String)>> {
        let mut recipient = fixtures::recipient();
        for (name, value) in changes {
            set(&mut recipient, name, *value);
        }
        let found = check(recipient).map(|_| ());
        found.map_err(|found| found.into_iter().map(|one| (one.field, one.code)).collect())
    }

    fn one(field: &str, code: &str) -> Result<(), Vec<(String, String)>> {
        Err(vec![(field.into(), code.into())])
    }

    fn directory() {
        let mut host = Host::default();
        let csv = "routing_number,name\n121042882,WELLS FARGO BANK\n231380104,CITADEL\n";
        host.tables.insert(FEDACH.into(), double::table(csv));
        double::install(host);
    }

    #[test]
    fn canonical_form() {
        fixtures::install();
        let given = [
            field("account_number", " 0012 34-ab "),
            field("routing_number", " 121042882"),
            field("name", " José  Núñez "),
            field("account_type", "Checking"),
            field("country", "us"),
            field("bank_address.country", "ca"),
            field("bank_name", "A Bank"),
            field("state", " "),
            field("note", "kept"),
        ];
        let canonical = check(given.to_vec()).expect("a recipient");
        for (name, expected) in [
            ("account_number", "001234-AB"),
            ("routing_number", "121042882"),
            ("name", "Jose Nunez"),
            ("account_type", "checking"),
            ("type", "individual"),
            ("method", "ach"),
            ("country", "US"),
            ("bank_address.country", "CA"),
            ("bank_name", "A Bank"),
            ("state", ""),
            ("note", "kept"),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(check(canonical.clone()), Ok(canonical));
    }

    #[test]
    fn account_numbers() {
        fixtures::install();
        for text in ["1", "00000000000000001", "A-1", "12345678901234567", "0 0 0"] {
            assert_eq!(checked(&[("account_number", text)]), Ok(()), "{text}");
        }
        for text in ["123456789012345678", "12_34", "12.34", "---", "１２", "12\u{a0}34"] {
            let expected = one("account_number", "invalid_account");
            assert_eq!(checked(&[("account_number", text)]), expected, "{text}");
        }
    }

    #[test]
    fn words_and_names() {
        fixtures::install();
        for (name, text) in [
            ("account_type", "current"),
            ("type", "company"),
            ("method", "wire"),
            ("country", "USA"),
            ("bank_address.country", "USA"),
            ("name", "Иван"),
            ("name", "-"),
        ] {
            assert_eq!(checked(&[(name, text)]), one(name, "invalid_field"), "{name} {text}");
        }
        assert_eq!(checked(&[("type", "business"), ("method", "ACH")]), Ok(()));
    }

    #[test]
    fn a_bank_that_the_directory_does_not_have() {
        directory();
        let mut recipient = fixtures::recipient();
        recipient.retain(|field| field.name != "bank_name");
        let canonical = check(recipient).expect("a recipient");
        assert_eq!(value(&canonical, "bank_name"), "WELLS FARGO BANK");
        let own = check(fixtures::recipient()).expect("a recipient");
        assert_eq!(value(&own, "bank_name"), "A Bank");
        let unknown = checked(&[("routing_number", "021000021")]);
        assert_eq!(unknown, one("routing_number", "invalid_account"));
        let wrong = checked(&[("routing_number", "021000020")]);
        assert_eq!(wrong, one("routing_number", "invalid_account"));
    }

    #[test]
    fn account_and_bank_are_enough_to_speak_of_one() {
        fixtures::install();
        let identity = [field("routing_number", "121042882"), field("account_number", "1")];
        assert!(check(identity.to_vec()).is_ok());
        let missing = check(Vec::new()).expect_err("nothing");
        let missing: Vec<_> = missing.iter().map(|it| (&*it.field, &*it.code)).collect();
        let expected = [("account_number", "missing_field"), ("routing_number", "missing_field")];
        assert_eq!(missing, expected);
    }

    #[test]
    fn the_numbers_that_choose_a_scenario_pass() {
        fixtures::install();
        let declaration = include_str!("../rail.toml");
        let numbers: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert_eq!(numbers.len(), 49);
        for number in numbers {
            assert_eq!(checked(&[("account_number", number)]), Ok(()), "{number}");
        }
    }
}
