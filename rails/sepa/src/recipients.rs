//! Canonical form of a recipient.

use railhead_rail::fields::{find, set, value};
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{country, missing, violation};

use crate::{bic, charset, iban};

/// The methods that a recipient may name.
const METHODS: [&str; 2] = ["sepa", "sepa-instant"];

/// The recipient with every field trimmed, IBAN and BIC in capitals without spaces, and one space
/// between the words of the name. Letters stay as they were given: a name is compared with the
/// account's, and written in the network's characters only when it leaves.
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
        ("iban", account(value(&fields, "iban"))),
        ("bic_code", bank(find(&fields, "bic_code"))),
        ("name", name(value(&fields, "name"))),
        ("method", method(find(&fields, "method"))),
        ("country", country(value(&fields, "country"), "DE").map(Option::unwrap_or_default)),
    ] {
        match checked {
            Ok(canonical) if canonical.is_empty() => {}
            Ok(canonical) => set(&mut fields, name, canonical),
            Err(violation) => violations.push(violation),
        }
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

fn account(text: &str) -> Result<String, Violation> {
    if text.is_empty() {
        return Err(missing("iban", "the account's IBAN"));
    }
    iban::canonical(text).map_err(|fault| {
        let (code, message) = match fault {
            iban::Fault::Shape => {
                ("invalid_field", "iban must be an IBAN, such as DE89370400440532013000.")
            }
            iban::Fault::Country => {
                ("invalid_recipient", "iban is of a country that SEPA does not reach.")
            }
            iban::Fault::Structure => {
                ("invalid_recipient", "iban is not made as IBANs of its country are.")
            }
            iban::Fault::CheckDigits => {
                ("invalid_recipient", "iban has the check digits of another account.")
            }
        };
        violation("iban", code, message)
    })
}

/// Without one it is only the account that is spoken of.
fn bank(text: Option<&str>) -> Result<String, Violation> {
    let Some(text) = text else { return Ok(String::new()) };
    bic::canonical(text).map_err(|fault| {
        let (code, message) = match fault {
            bic::Fault::Shape => {
                ("invalid_field", "bic_code must be a BIC of 8 or 11 letters and digits.")
            }
            bic::Fault::Country => {
                ("invalid_recipient", "bic_code is of a country that SEPA does not reach.")
            }
        };
        violation("bic_code", code, message)
    })
}

fn name(text: &str) -> Result<String, Violation> {
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_written = || charset::carried(&name).contains(|c: char| c.is_ascii_alphanumeric());
    if name.is_empty() || is_written() {
        return Ok(name);
    }
    let message = "name must hold a Latin, Greek or Cyrillic letter, or a digit.";
    Err(violation("name", "invalid_field", message))
}

fn method(text: Option<&str>) -> Result<String, Violation> {
    let Some(text) = text else { return Ok(String::new()) };
    let word = text.to_ascii_lowercase();
    if METHODS.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(violation("method", "invalid_field", "method must be sepa or sepa-instant."))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;
    use railhead_rail::fields::{field, set, value};

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
        let given = [
            field("iban", " de89 3704 0044 0532 0130 00 "),
            field("bic_code", "deutdeff"),
            field("name", " José \t Núñez "),
            field("method", "SEPA-Instant"),
            field("country", "de"),
            field("state", " "),
            field("note", "kept"),
        ];
        let canonical = check(given.to_vec()).expect("a recipient");
        for (name, expected) in [
            ("iban", "DE89370400440532013000"),
            ("bic_code", "DEUTDEFF"),
            ("name", "José Núñez"),
            ("method", "sepa-instant"),
            ("country", "DE"),
            ("state", ""),
            ("note", "kept"),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(check(canonical.clone()), Ok(canonical));
    }

    #[test]
    fn each_violation_has_its_field_and_code() {
        for (name, text, code) in [
            ("iban", "DE", "invalid_field"),
            ("iban", "GB29NWBK60161331926818", "invalid_recipient"),
            ("iban", "DE893704004405320130", "invalid_recipient"),
            ("iban", "BH67BMAG00001299123456", "invalid_recipient"),
            ("iban", "", "missing_field"),
            ("bic_code", "DEUT", "invalid_field"),
            ("bic_code", "CHASUS33", "invalid_recipient"),
            ("name", "株式会社", "invalid_field"),
            ("method", "wire", "invalid_field"),
            ("country", "DEU", "invalid_field"),
        ] {
            assert_eq!(checked(&[(name, text)]), one(name, code), "{name} {text}");
        }
        let both = checked(&[("iban", "DE"), ("bic_code", "x")]).expect_err("both");
        assert_eq!(both.len(), 2);
    }

    #[test]
    fn the_account_is_enough_to_speak_of_one() {
        assert!(check(vec![field("iban", "DE89370400440532013000")]).is_ok());
        assert_eq!(check(Vec::new()).expect_err("nothing")[0].code, "missing_field");
    }

    #[test]
    fn the_accounts_that_choose_a_scenario_pass() {
        let declaration = include_str!("../rail.toml");
        let accounts: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert!(accounts.len() > 30, "{}", accounts.len());
        for account in accounts {
            assert_eq!(checked(&[("iban", account)]), Ok(()), "{account}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_given_is_judged(
            iban in "\\PC{0,40}|[A-Za-z]{2}[0-9]{2}[A-Za-z0-9 ]{0,40}", bic in "\\PC{0,14}",
            name in "\\PC{0,200}", method in "\\PC{0,20}", country in "\\PC{0,4}",
        ) {
            let fields = [
                ("iban", iban), ("bic_code", bic), ("name", name), ("method", method),
                ("country", country),
            ];
            let fields = fields.map(|(name, value)| field(name, value)).to_vec();
            if let Ok(canonical) = check(fields) {
                prop_assert_eq!(check(canonical.clone()), Ok(canonical));
            }
        }
    }
}
