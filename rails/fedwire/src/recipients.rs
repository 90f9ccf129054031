//! Canonical form of a recipient.

use railhead_rail::fields::{find, set, value};
use railhead_rail::host;
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{country, missing, violation};

use crate::{aba, charset};

/// The operator's copy of the directory of banks that take wires.
pub const FEDWIRE: &str = "fedwire";

/// The only method that recipients of this rail name.
const METHOD: &str = "wire";

/// Most characters of an account number in ISO 20022.
const ACCOUNT_MAX: usize = 34;

/// The recipient with every field trimmed, account number and BIC in capitals without spaces, and
/// the bank's name from the directory where it was left out.
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
        ("name", readable(&fields, "name")),
        ("account_type", word(&fields, "account_type", &["checking", "savings"], "")),
        ("type", word(&fields, "type", &["individual", "business"], "")),
        ("method", word(&fields, "method", &[METHOD], METHOD)),
        ("swift_code", swift_code(value(&fields, "swift_code"))),
        ("city", readable(&fields, "city")),
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

fn account_number(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("account_number", "the number of the account"));
    }
    let number: String = text.chars().filter(|c| *c != ' ').collect();
    let is_possible = (1..=ACCOUNT_MAX).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && number.bytes().any(|byte| byte.is_ascii_alphanumeric());
    if is_possible {
        return Ok(number.to_ascii_uppercase());
    }
    let message = "account_number must be 1 to 34 letters, digits and dashes.";
    Err(violation("account_number", "invalid_account", message))
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

/// The shape of a BIC (ISO 9362), in capitals: eight or eleven characters, of which the fifth and
/// sixth are a country's letters.
fn swift_code(text: &str) -> Result<String, Violation> {
    let bic: String = text.chars().filter(|c| *c != ' ').collect::<String>().to_ascii_uppercase();
    let is_its = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let is_bic = matches!(bic.len(), 8 | 11)
        && bic.as_bytes().iter().all(is_its)
        && bic.as_bytes()[4..6].iter().all(u8::is_ascii_uppercase);
    if bic.is_empty() || is_bic {
        return Ok(bic);
    }
    let message = "swift_code must be a BIC: eight or eleven characters, such as WFBIUS6S.";
    Err(violation("swift_code", "invalid_recipient", message))
}

/// A field as it is, of which something is left in the characters that a wire carries.
fn readable(fields: &[Field], name: &str) -> Result<String, Violation> {
    let text = value(fields, name);
    if text.is_empty() || charset::says_something(&charset::tidy(text)) {
        return Ok(text.to_owned());
    }
    let message =
        format!("{name} must hold a letter or a digit that wires carry: A to Z, or 0 to 9.");
    Err(violation(name, "invalid_field", message))
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
    if !host::has_table(FEDWIRE) {
        return;
    }
    let rows = host::rows(FEDWIRE, "routing_number", value(fields, "routing_number"));
    let Some(bank) = rows.first() else {
        let message = "routing_number is not in the directory of banks that take wires.";
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
    use proptest::prelude::*;
    use railhead_rail::fields::{field, set, value};
    use railhead_rail::host::double::{self, Host};

    use super::{FEDWIRE, check};
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
        Err(vec![(field.to_owned(), code.to_owned())])
    }

    #[test]
    fn canonical_form() {
        fixtures::install();
        let mut given = fixtures::recipient();
        set(&mut given, "account_number", " 0001 2345 6789 ");
        set(&mut given, "swift_code", "wfbi us 6s");
        set(&mut given, "method", "WIRE");
        set(&mut given, "country", "us");
        assert_eq!(check(given), Ok(fixtures::recipient()));
        assert_eq!(check(fixtures::recipient()), Ok(fixtures::recipient()));
        let mut silent = fixtures::recipient();
        silent.retain(|field| field.name != "method");
        assert_eq!(value(&check(silent).expect("a recipient"), "method"), "wire");
    }

    #[test]
    fn what_is_wrong() {
        fixtures::install();
        for (name, text, code) in [
            ("account_number", "", "missing_field"),
            ("account_number", "12_3", "invalid_account"),
            ("account_number", "---", "invalid_account"),
            ("account_number", "12345678901234567890123456789012345", "invalid_account"),
            ("account_number", "٣٤٥", "invalid_account"),
            ("routing_number", "", "missing_field"),
            ("routing_number", "121042883", "invalid_account"),
            ("routing_number", "000000000", "invalid_account"),
            ("routing_number", "400000008", "invalid_account"),
            ("routing_number", "12104288", "invalid_account"),
            ("swift_code", "WFBIUS6", "invalid_recipient"),
            ("swift_code", "WFBIU16S", "invalid_recipient"),
            ("swift_code", "WFBIUS6SXX", "invalid_recipient"),
            ("swift_code", "WFBIUS6É", "invalid_recipient"),
            ("account_type", "current", "invalid_field"),
            ("type", "person", "invalid_field"),
            ("method", "ach", "invalid_field"),
            ("name", "Иван", "invalid_field"),
            ("city", "Москва", "invalid_field"),
            ("country", "USA", "invalid_field"),
            ("bank_address.country", "U", "invalid_field"),
        ] {
            assert_eq!(checked(&[(name, text)]), one(name, code), "{name} {text}");
        }
        for (name, text) in [
            ("swift_code", "WFBIUS6SXXX"),
            ("swift_code", "1234US33"),
            ("account_number", "A-1"),
            ("type", "Business"),
            ("name", "Łukasz"),
        ] {
            assert_eq!(checked(&[(name, text)]), Ok(()), "{name} {text}");
        }
    }

    #[test]
    fn a_bank_that_the_directory_does_not_have() {
        let mut host = Host::default();
        let rows = double::table("routing_number,name\n121042882,WELLS FARGO BANK\n");
        host.tables.insert(FEDWIRE.into(), rows);
        double::install(host);
        let mut recipient = fixtures::recipient();
        recipient.retain(|field| field.name != "bank_name");
        let canonical = check(recipient).expect("a recipient");
        assert_eq!(value(&canonical, "bank_name"), "WELLS FARGO BANK");
        let unknown = checked(&[("routing_number", "021000021")]);
        assert_eq!(unknown, one("routing_number", "invalid_account"));
        let wrong = checked(&[("routing_number", "021000020")]);
        assert_eq!(wrong, one("routing_number", "invalid_account"));
    }

    #[test]
    fn the_numbers_that_choose_a_scenario_pass() {
        fixtures::install();
        let declaration = include_str!("../rail.toml");
        let numbers: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert!(numbers.len() >= 18, "{numbers:?}");
        for number in numbers {
            assert_eq!(checked(&[("account_number", number)]), Ok(()), "{number}");
        }
    }

    proptest! {
        /// Whatever is given, it is answered, and what passes once passes again as it is.
        #[test]
        fn whatever_is_given(
            at in 0..16_usize, text in "\\PC{0,40}|[A-Za-z0-9 -]{0,40}", other in any::<String>(),
        ) {
            fixtures::install();
            let mut given = fixtures::recipient();
            given[at].value = text;
            given.push(field(&other, other.clone()));
            if let Ok(canonical) = check(given) {
                prop_assert_eq!(check(canonical.clone()), Ok(canonical));
            }
        }
    }
}
