//! Canonical form of a recipient, and whether sort code and account can belong together.

use railhead_rail::fields::{set, value};
use railhead_rail::host;
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{country, missing, violation};

use crate::charset;
use crate::modulus::{self, WEIGHTS};

/// The recipient with every field trimmed, the sort code in six digits and the country in
/// capitals.
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
    let sort_code = note(sort_code(value(&fields, "sort_code")), &mut violations);
    let account = note(account(value(&fields, "account_number")), &mut violations);
    let name = note(name(value(&fields, "name")), &mut violations).flatten();
    let country = note(country(value(&fields, "country"), "GB"), &mut violations).flatten();
    let pair = sort_code.as_deref().zip(account.as_deref());
    if let Some((sort_code, account)) = pair {
        note(together(sort_code, account), &mut violations);
    }
    let canonical = [
        ("sort_code", sort_code),
        ("account_number", account),
        ("name", name),
        ("country", country),
    ];
    for (field, value) in canonical {
        if let Some(value) = value {
            set(&mut fields, field, value);
        }
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

fn note<T>(result: Result<T, Violation>, violations: &mut Vec<Violation>) -> Option<T> {
    result.map_err(|violation| violations.push(violation)).ok()
}

/// Six digits, as they are or in pairs between dashes or spaces.
fn sort_code(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("sort_code", "the sort code of the account"));
    }
    let separators = text.chars().filter(|c| matches!(c, '-' | ' ')).count();
    let pairs: Vec<&str> = text.split(['-', ' ']).collect();
    let is_paired = separators == 0 || pairs.iter().all(|pair| pair.len() == 2);
    let digits = pairs.concat();
    if is_paired && is_digits(&digits, 6) {
        return Ok(digits);
    }
    let message = "sort_code must be 6 digits, such as 089999 or 08-99-99.";
    Err(violation("sort_code", "invalid_field", message.to_owned()))
}

fn account(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("account_number", "the number of the account"));
    }
    if is_digits(text, 8) {
        return Ok(text.to_owned());
    }
    let how = match text.len() {
        6 | 7 if is_digits(text, text.len()) => {
            ": write one of 6 or 7 digits with zeros in front, as its bank does"
        }
        9 | 10 if is_digits(text, text.len()) => {
            ": a bank that has 9 or 10 says which 8 of them payments use"
        }
        _ => "",
    };
    let message = format!("account_number must be exactly 8 digits{how}.");
    Err(violation("account_number", "invalid_field", message))
}

/// The name in the scheme's characters. Without one it is only the account that is spoken of.
fn name(text: &str) -> Result<Option<String>, Violation> {
    let name = charset::tidy(text);
    if !name.is_empty() && !name.contains(|c: char| c.is_ascii_alphanumeric()) {
        let message = "name must hold a letter or a digit.".to_owned();
        return Err(violation("name", "invalid_field", message));
    }
    match charset::foreign(&name) {
        None => Ok(Some(name).filter(|name| !name.is_empty())),
        Some(c) => {
            let message = format!("name holds {c:?}, which Faster Payments does not carry.");
            Err(violation("name", "invalid_field", message))
        }
    }
}

/// The modulus check, where the operator has supplied its table.
fn together(sort_code: &str, account: &str) -> Result<(), Violation> {
    if !host::has_table(WEIGHTS) {
        host::warn("there is no table weights: sort codes and accounts pass unchecked");
        return Ok(());
    }
    if modulus::is_possible(sort_code, account) {
        return Ok(());
    }
    let message = "no account at this sort code has this number: one of them is mistyped.";
    Err(violation("account_number", "invalid_recipient", message.to_owned()))
}

fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::{field, set, value};
    use railhead_rail::host::double::{self, Host};

    use super::check;
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

    #[test]
    fn canonical_form() {
        fixtures::install();
        let given = [
            field("sort_code", " 08-99-99 "),
            field("account_number", " 66374958"),
            field("name", " Siobhan  O\u{2019}Brien "),
            field("country", "gb"),
            field("bank_name", "A Bank"),
            field("email", "s@example.com"),
            field("street", "1 High Street"),
            field("city", "Leeds"),
            field("state", " "),
            field("zip_code", "LS1 4AP"),
            field("note", "kept"),
        ];
        let canonical = check(given.to_vec()).expect("a recipient");
        for (name, expected) in [
            ("sort_code", "089999"),
            ("account_number", "66374958"),
            ("name", "Siobhan O'Brien"),
            ("country", "GB"),
            ("state", ""),
            ("note", "kept"),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(check(canonical.clone()), Ok(canonical));
    }

    #[test]
    fn sort_codes() {
        fixtures::install();
        for text in ["089999", "08-99-99", "08 99 99", "08-99 99"] {
            assert_eq!(checked(&[("sort_code", text)]), Ok(()), "{text}");
        }
        for text in ["08999", "0899999", "08--9999", "0-89-999", "089-999", "08_99_99", "0８9999"]
        {
            let expected = one("sort_code", "invalid_field");
            assert_eq!(checked(&[("sort_code", text)]), expected, "{text}");
        }
    }

    #[test]
    fn sort_code_and_account_must_fit_each_other() {
        fixtures::install();
        for sort_code in ["990149", "99-01-49", " 99 01 49 "] {
            let good = [("sort_code", sort_code), ("account_number", "66066424")];
            assert_eq!(checked(&good), Ok(()), "{sort_code}");
            let bad = [("sort_code", sort_code), ("account_number", "54186352")];
            let expected = one("account_number", "invalid_recipient");
            assert_eq!(checked(&bad), expected, "{sort_code}");
        }
        assert_eq!(checked(&[("sort_code", "000000"), ("account_number", "12345678")]), Ok(()));
    }

    #[test]
    fn accounts() {
        fixtures::install();
        for text in ["663749", "6374958", "663749580", "6637495800", "6637495O", "66 374958"] {
            let expected = one("account_number", "invalid_field");
            assert_eq!(checked(&[("account_number", text)]), expected, "{text}");
        }
    }

    #[test]
    fn without_a_table_everything_of_the_right_shape_passes() {
        double::install(Host::default());
        let pair = [("sort_code", "990149"), ("account_number", "54186352")];
        assert_eq!(checked(&pair), Ok(()));
        assert_eq!(checked(&[("account_number", "x")]), one("account_number", "invalid_field"));
    }

    #[test]
    fn sort_code_and_account_are_enough_to_speak_of_one() {
        fixtures::install();
        let identity = [field("sort_code", "08-99-99"), field("account_number", "66374958")];
        let canonical = [field("sort_code", "089999"), field("account_number", "66374958")];
        assert_eq!(check(identity.to_vec()), Ok(canonical.to_vec()));
        let missing = check(Vec::new()).expect_err("nothing");
        let missing: Vec<_> = missing.iter().map(|it| (&*it.field, &*it.code)).collect();
        let expected = [("sort_code", "missing_field"), ("account_number", "missing_field")];
        assert_eq!(missing, expected);
        assert_eq!(checked(&[("country", "GBR")]), one("country", "invalid_field"));
        assert_eq!(checked(&[("name", "José")]), one("name", "invalid_field"));
    }

    #[test]
    fn the_numbers_that_choose_a_scenario_pass() {
        double::install(Host::default());
        let declaration = include_str!("../rail.toml");
        let numbers: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert_eq!(numbers.len(), 17);
        for number in numbers {
            assert_eq!(checked(&[("account_number", number)]), Ok(()), "{number}");
        }
    }
}
