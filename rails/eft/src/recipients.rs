//! Canonical form of a recipient.

use railhead_rail::fields::{find, set, value};
use railhead_rail::host;
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{country, missing, violation};

use crate::charset;

/// The table of institutions: the rail's own, or what the operator puts in its place.
pub const INSTITUTIONS: &str = "institutions";

/// The operator's table of branches: the Financial Institutions File of Payments Canada.
pub const BRANCHES: &str = "branches";

/// The only method that recipients of this rail name.
const METHOD: &str = "eft";

/// What the table of institutions says of one that has become a part of another one.
const RETIRED: &str = "retired";

/// The recipient with every field trimmed, the name in the file's characters, and the bank's name
/// from a directory where it was left out. Zeros in front of an account number count.
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
        ("institution_number", number(&fields, &INSTITUTION)),
        ("transit_number", number(&fields, &TRANSIT)),
        ("account_number", number(&fields, &ACCOUNT)),
        ("name", name(value(&fields, "name"))),
        ("method", method(find(&fields, "method"))),
        ("country", country(value(&fields, "country"), "CA").map(Option::unwrap_or_default)),
    ] {
        match checked {
            Ok(canonical) if canonical.is_empty() => {}
            Ok(canonical) => set(&mut fields, name, canonical),
            Err(violation) => violations.push(violation),
        }
    }
    let is_of_branch =
        |found: &Violation| ["institution_number", "transit_number"].contains(&&*found.field);
    if !violations.iter().any(is_of_branch) {
        look_up(&mut fields, &mut violations);
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

/// Institution and transit in the form that files have, `0YYYXXXXX`, if these are two.
#[must_use]
pub fn routing(institution: &str, transit: &str) -> Option<String> {
    let is_one = INSTITUTION.is_shaped(institution)
        && TRANSIT.is_shaped(transit)
        && !is_zero(institution)
        && !is_zero(transit);
    is_one.then(|| ["0", institution, transit].concat())
}

/// Whether a file can carry an account number: up to twelve digits, not all of them zeros.
#[must_use]
pub fn is_account(text: &str) -> bool {
    ACCOUNT.is_shaped(text) && !is_zero(text)
}

/// A number that a recipient has.
struct Number {
    field: &'static str,
    what: &'static str,
    least: usize,
    most: usize,
    hint: &'static str,
}

const INSTITUTION: Number = Number {
    field: "institution_number",
    what: "the bank's institution number",
    least: 3,
    most: 3,
    hint: "must be exactly 3 digits, such as 003",
};

const TRANSIT: Number = Number {
    field: "transit_number",
    what: "the branch's transit number",
    least: 5,
    most: 5,
    hint: "must be exactly 5 digits, such as 00320",
};

const ACCOUNT: Number = Number {
    field: "account_number",
    what: "the number of the account",
    least: 1,
    most: 12,
    hint: "must be 1 to 12 digits, without dashes or spaces",
};

impl Number {
    fn is_shaped(&self, text: &str) -> bool {
        (self.least..=self.most).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// A number of the right shape, and one that can be.
fn number(fields: &[Field], wanted: &Number) -> Result<String, Violation> {
    let name = wanted.field;
    let Some(text) = find(fields, name) else { return Err(missing(name, wanted.what)) };
    if !wanted.is_shaped(text) {
        return Err(violation(name, "invalid_field", format!("{name} {}.", wanted.hint)));
    }
    if is_zero(text) {
        let message = format!("{name} cannot be {text}.");
        return Err(violation(name, "invalid_recipient", message));
    }
    Ok(text.to_owned())
}

fn is_zero(digits: &str) -> bool {
    digits.bytes().all(|byte| byte == b'0')
}

/// The name in the file's characters. Without one it is only the account that is spoken of.
fn name(text: &str) -> Result<String, Violation> {
    let name = charset::tidy(text);
    if text.is_empty() || charset::says_something(&name) {
        return Ok(name);
    }
    let message = "name must hold a letter or a digit that EFT carries: A to Z, or 0 to 9.";
    Err(violation("name", "invalid_field", message))
}

fn method(given: Option<&str>) -> Result<String, Violation> {
    match given {
        None => Ok(METHOD.to_owned()),
        Some(given) if given.eq_ignore_ascii_case(METHOD) => Ok(METHOD.to_owned()),
        Some(_) => Err(violation("method", "invalid_field", "method must be eft.")),
    }
}

/// What the tables say about the bank and its branch.
fn look_up(fields: &mut Vec<Field>, violations: &mut Vec<Violation>) {
    let (institution, transit) =
        (value(fields, "institution_number"), value(fields, "transit_number"));
    let mut bank_name = String::new();
    if host::has_table(INSTITUTIONS) {
        let rows = host::rows(INSTITUTIONS, "institution_number", institution);
        let Some(bank) = rows.first() else {
            let message = "institution_number is not one that a Canadian institution is known by.";
            violations.push(violation("institution_number", "invalid_recipient", message));
            return;
        };
        if bank.get("status").trim() == RETIRED {
            let name = bank.get("name");
            host::warn(&format!("institution {institution}, {name}, is retired: it may come back"));
        }
        bank_name = bank.get("name").trim().to_owned();
    }
    if host::has_table(BRANCHES) {
        let routing = ["0", institution, transit].concat();
        let rows = host::rows(BRANCHES, "routing_number", &routing);
        let Some(branch) = rows.first() else {
            let message = "transit_number is not one of this institution's branches.";
            violations.push(violation("transit_number", "invalid_recipient", message));
            return;
        };
        if !branch.get("name").trim().is_empty() {
            bank_name = branch.get("name").trim().to_owned();
        }
    }
    if find(fields, "bank_name").is_none() && !bank_name.is_empty() {
        set(fields, "bank_name", bank_name);
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, set, value};
    use railhead_rail::host::double;

    use super::{BRANCHES, check, is_account, routing};
    use crate::fixtures;

    type Told = Result<(), Vec<(String, String)>>;

    fn checked(changes: &[(&str, &str)]) -> Told {
        let mut recipient = fixtures::recipient();
        for (name, value) in changes {
            set(&mut recipient, name, *value);
        }
        let found = check(recipient).map(|_| ());
        found.map_err(|found| found.into_iter().map(|one| (one.field, one.code)).collect())
    }

    fn one(field: &str, code: &str) -> Told {
        Err(vec![(field.into(), code.into())])
    }

    #[test]
    fn canonical_form() {
        fixtures::install();
        let given = [
            field("institution_number", " 003 "),
            field("transit_number", "00320"),
            field("account_number", " 0001234567"),
            field("name", " José  Tremblay-Côté "),
            field("country", "ca"),
            field("bank_name", "RBC"),
            field("state", " "),
            field("note", "kept"),
        ];
        let canonical = check(given.to_vec()).expect("a recipient");
        for (name, expected) in [
            ("institution_number", "003"),
            ("transit_number", "00320"),
            ("account_number", "0001234567"),
            ("name", "Jose Tremblay-Cote"),
            ("method", "eft"),
            ("country", "CA"),
            ("bank_name", "RBC"),
            ("state", ""),
            ("note", "kept"),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(check(canonical.clone()), Ok(canonical));
    }

    /// What public examples of institutions, transits and accounts come to.
    #[test]
    fn accounts() {
        fixtures::install();
        for (institution, transit, account, expected) in [
            ("003", "00320", "1234567", Ok(())),
            ("001", "25039", "000012345", Ok(())),
            ("016", "10002", "123456", Ok(())),
            ("815", "00001", "123456789012", Ok(())),
            ("16", "12345", "1234567", one("institution_number", "invalid_field")),
            ("0016", "12345", "1234567", one("institution_number", "invalid_field")),
            ("OO3", "12345", "1234567", one("institution_number", "invalid_field")),
            ("003", "0320", "1234567", one("transit_number", "invalid_field")),
            ("003", "00320-003", "1234567", one("transit_number", "invalid_field")),
            ("003", "０0320", "1234567", one("transit_number", "invalid_field")),
            ("003", "00320", "1234567890123", one("account_number", "invalid_field")),
            ("003", "00320", "12-34567", one("account_number", "invalid_field")),
            ("003", "00320", "12 34567", one("account_number", "invalid_field")),
            ("003", "00320", "12345A7", one("account_number", "invalid_field")),
            ("999", "00320", "1234567", one("institution_number", "invalid_recipient")),
            ("000", "00320", "1234567", one("institution_number", "invalid_recipient")),
            ("003", "00000", "1234567", one("transit_number", "invalid_recipient")),
            ("003", "00320", "0000000", one("account_number", "invalid_recipient")),
            ("", "00320", "1234567", one("institution_number", "missing_field")),
            ("003", "", "1234567", one("transit_number", "missing_field")),
            ("003", "00320", "", one("account_number", "missing_field")),
        ] {
            let changes = [
                ("institution_number", institution),
                ("transit_number", transit),
                ("account_number", account),
            ];
            assert_eq!(checked(&changes), expected, "{changes:?}");
        }
    }

    #[test]
    fn zeros_in_front_of_an_account_make_it_another_one() {
        fixtures::install();
        let of = |account: &str| {
            let mut recipient = fixtures::recipient();
            set(&mut recipient, "account_number", account);
            check(recipient).expect("a recipient")
        };
        assert_ne!(of("1234567"), of("01234567"));
        assert_eq!(of("1234567"), of(" 1234567 "));
    }

    #[test]
    fn words_and_names() {
        fixtures::install();
        for (name, text) in [
            ("name", "…"),
            ("name", "ᐃᓄᒃ"),
            ("name", "- ' -"),
            ("method", "interac"),
            ("country", "CAN"),
            ("country", "C1"),
        ] {
            assert_eq!(checked(&[(name, text)]), one(name, "invalid_field"), "{name} {text}");
        }
        for (name, text) in [("name", "É"), ("name", ""), ("method", "EFT"), ("country", "")] {
            assert_eq!(checked(&[(name, text)]), Ok(()), "{name} {text}");
        }
    }

    #[test]
    fn every_violation_is_told() {
        fixtures::install();
        let found = checked(&[
            ("institution_number", "3"),
            ("account_number", "x"),
            ("name", "…"),
            ("method", "wire"),
        ]);
        let fields: Vec<String> = found.expect_err("four").into_iter().map(|one| one.0).collect();
        assert_eq!(fields, ["institution_number", "account_number", "name", "method"]);
        let both = checked(&[("institution_number", "999"), ("account_number", "x")]);
        let fields: Vec<String> = both.expect_err("two").into_iter().map(|one| one.0).collect();
        assert_eq!(fields, ["account_number", "institution_number"]);
    }

    #[test]
    fn the_table_names_the_bank_and_takes_one_that_is_retired() {
        fixtures::install();
        let named = |institution: &str, bank: &str| {
            let mut recipient = fixtures::recipient();
            set(&mut recipient, "institution_number", institution);
            set(&mut recipient, "bank_name", bank);
            value(&check(recipient).expect("a recipient"), "bank_name").to_owned()
        };
        assert_eq!(named("004", ""), "The Toronto-Dominion Bank");
        assert_eq!(named("004", "TD"), "TD");
        assert_eq!(named("016", ""), "HSBC Bank Canada");
        // Without any table whatever has the right shape passes.
        double::install(double::Host::default());
        assert_eq!(checked(&[("institution_number", "999")]), Ok(()));
    }

    #[test]
    fn an_operators_table_of_branches_decides_about_transits() {
        let mut host = fixtures::host();
        let csv = "routing_number,name\n000300320,RBC Main Branch\n000125039,\n";
        host.tables.insert(BRANCHES.into(), double::table(csv));
        double::install(host);
        let bank = [("bank_name", "")];
        assert_eq!(checked(&bank), Ok(()));
        assert_eq!(checked(&[("institution_number", "001"), ("transit_number", "25039")]), Ok(()));
        let unknown = checked(&[("transit_number", "00321")]);
        assert_eq!(unknown, one("transit_number", "invalid_recipient"));
        let unknown = checked(&[("institution_number", "001")]);
        assert_eq!(unknown, one("transit_number", "invalid_recipient"));
        let mut recipient = fixtures::recipient();
        set(&mut recipient, "bank_name", "");
        let found = check(recipient).expect("a recipient");
        assert_eq!(value(&found, "bank_name"), "RBC Main Branch");
    }

    #[test]
    fn the_form_in_files() {
        for (institution, transit, expected) in [
            ("003", "01372", Some("000301372")),
            ("001", "25039", Some("000125039")),
            ("016", "10002", Some("001610002")),
            ("000", "25039", None),
            ("003", "00000", None),
            ("3", "01372", None),
            ("003", "1372", None),
            ("00é", "01372", None),
        ] {
            assert_eq!(routing(institution, transit).as_deref(), expected, "{institution}");
        }
        assert!(is_account("1") && is_account("000012345") && is_account("123456789012"));
        assert!(!is_account("") && !is_account("000") && !is_account("1234567890123"));
    }

    /// What the declaration says of a field.
    fn declared(name: &str) -> &'static str {
        let declaration = include_str!("../rail.toml");
        let mut fields = declaration.split("[[recipient.fields]]\n").skip(1);
        let found = fields.find(|field| field.starts_with(&format!("name = \"{name}\"\n")));
        found.and_then(|field| field.split("\n\n").next()).expect(name)
    }

    #[test]
    fn the_example_lives_in_canada_and_who_it_is_is_masked() {
        fixtures::install();
        let mut recipient = fixtures::recipient();
        for field in &mut recipient {
            let (_, example) = declared(&field.name).rsplit_once("example = \"").expect("one");
            field.value = example.trim_end().trim_end_matches('"').to_owned();
        }
        assert_eq!((value(&recipient, "city"), value(&recipient, "country")), ("Toronto", "CA"));
        assert!(check(recipient).is_ok());
        for name in ["name", "account_number", "email", "street", "zip_code"] {
            assert!(declared(name).contains("\nsensitive = true\n"), "{name}");
        }
    }

    #[test]
    fn the_table_that_is_packed_can_be_read() {
        let table = double::table(include_str!("../institutions.csv"));
        assert!(table.len() > 100);
        for row in &table {
            assert!(routing(row.get("institution_number"), "00001").is_some(), "{row:?}");
            assert!(!row.get("name").is_empty(), "{row:?}");
            assert!(["", "retired"].contains(&row.get("status")), "{row:?}");
        }
        let mut numbers: Vec<_> = table.iter().map(|row| row.get("institution_number")).collect();
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
        numbers.sort_unstable();
        assert_eq!(numbers.first(), Some(&"001"));
    }
}
