//! Canonical form and check digit of a recipient.

use railhead_rail::fields;
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::violation;

use crate::directory::{self, Bank, Unlisted};
use crate::nuban;

/// A code from a client is quoted back no longer than this.
const QUOTED_CHARS_MAX: usize = 32;

/// The recipient with the bank's canonical code and name, its NIP code as
/// `institution_code`, and every other field trimmed.
///
/// # Errors
/// Every violation, not only the first.
pub fn check(fields: &[Field]) -> Result<Vec<Field>, Vec<Violation>> {
    let mut fields: Vec<Field> =
        fields.iter().map(|field| fields::field(&field.name, field.value.trim())).collect();
    let bank = bank(fields::value(&fields, "bank_code"));
    let account = account(fields::value(&fields, "account_number"), bank.as_ref().ok());
    let bank = match (account, bank) {
        (Ok(()), Ok(bank)) => bank,
        (account, bank) => return Err(account.err().into_iter().chain(bank.err()).collect()),
    };
    fields::set(&mut fields, "bank_code", bank.code);
    fields::set(&mut fields, "bank_name", bank.name);
    fields::set(&mut fields, "institution_code", bank.institution);
    Ok(fields)
}

fn bank(code: &str) -> Result<Bank, Violation> {
    if code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(violation(
            "bank_code",
            "invalid_field",
            format!("{} is not a bank's code in digits", quoted(code)),
        ));
    }
    directory::find(code).map_err(|unlisted| {
        let code = quoted(code);
        let message = match unlisted {
            Unlisted::Unknown => format!("no bank has the code {code}"),
            Unlisted::Ambiguous => format!("more than one bank has the code {code}"),
            Unlisted::Revoked(name) => {
                format!("{code} is {name}, whose licence was revoked; it cannot be paid")
            }
        };
        violation("bank_code", "unknown_bank_code", message)
    })
}

/// The account alone, and with its bank where that is known.
fn account(number: &str, bank: Option<&Bank>) -> Result<(), Violation> {
    if !nuban::is_account(number) {
        return Err(violation("account_number", "invalid_field", "must be exactly 10 digits"));
    }
    let Some(bank) = bank else {
        return Ok(());
    };
    let codes = &bank.check_codes;
    if codes.is_empty() || codes.iter().any(|code| nuban::is_valid(code, number)) {
        return Ok(());
    }
    Err(violation(
        "account_number",
        "recipient_unresolvable",
        format!("the account number's check digit does not fit {}", bank.name),
    ))
}

fn quoted(code: &str) -> String {
    let start: String = code.chars().take(QUOTED_CHARS_MAX).collect();
    format!("{start:?}")
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;
    use railhead_rail::fields::{field, value};
    use railhead_rail::types::{Field, Violation};

    use super::check;
    use crate::fixtures;

    fn checked(bank: &str, account: &str) -> Result<Vec<Field>, Vec<Violation>> {
        check(&[field("bank_code", bank), field("account_number", account)])
    }

    fn codes(bank: &str, account: &str) -> Vec<(String, String)> {
        let violations = checked(bank, account).expect_err("violations");
        violations.into_iter().map(|found| (found.field, found.code)).collect()
    }

    fn one(field: &str, code: &str) -> Vec<(String, String)> {
        vec![(field.into(), code.into())]
    }

    #[test]
    fn canonical_form() {
        fixtures::install();
        let given = [
            field("name", "  Ada Obi "),
            field("account_number", " 0123456785 "),
            field("bank_code", "000013"),
            field("bank_name", "GTB"),
            field("note", "kept"),
            field("institution_code", "999999"),
        ];
        let canonical = check(&given).expect("a recipient");
        for (name, expected) in [
            ("name", "Ada Obi"),
            ("account_number", "0123456785"),
            ("bank_code", "058"),
            ("bank_name", "Guaranty Trust Bank"),
            ("institution_code", "000013"),
            ("note", "kept"),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(canonical.len(), given.len());
        assert_eq!(check(&canonical), Ok(canonical));
    }

    #[test]
    fn wallets_have_no_check_digit() {
        fixtures::install();
        let canonical = checked("999992", "8031234567").expect("a recipient");
        assert_eq!(value(&canonical, "bank_code"), "100004");
        assert_eq!(value(&canonical, "institution_code"), "100004");
        assert!(checked("120003", "8031234567").is_ok());
        assert!(checked("090551", "8031234567").is_ok());
        assert!(checked("000037", "8031234567").is_ok());
    }

    #[test]
    fn numbers_of_a_merged_bank_keep_fitting() {
        fixtures::install();
        // The first digit fits Diamond Bank only, the second Access Bank only.
        for account in ["0123456783", "0123456784"] {
            let canonical = checked("063", account).expect("a recipient");
            assert_eq!(value(&canonical, "bank_code"), "044");
            assert_eq!(value(&canonical, "institution_code"), "000014");
        }
        let unfit = one("account_number", "recipient_unresolvable");
        assert_eq!(codes("063", "0123456785"), unfit);
        assert_eq!(codes("044", "0123456783"), unfit);
    }

    #[test]
    fn violations() {
        fixtures::install();
        assert_eq!(codes("058", "012345678"), one("account_number", "invalid_field"));
        assert_eq!(codes("058", "O123456785"), one("account_number", "invalid_field"));
        assert_eq!(codes("GTB", "0123456785"), one("bank_code", "invalid_field"));
        assert_eq!(codes("", "0123456785"), one("bank_code", "invalid_field"));
        assert_eq!(codes("77777", "0123456785"), one("bank_code", "unknown_bank_code"));
        assert_eq!(codes("030", "0123456785"), one("bank_code", "unknown_bank_code"));
        let both = [one("account_number", "invalid_field"), one("bank_code", "unknown_bank_code")];
        assert_eq!(codes("77777", ""), both.concat());
    }

    #[test]
    fn the_code_is_echoed() {
        fixtures::install();
        let message = |bank: &str| checked(bank, "0123456785").expect_err("one")[0].message.clone();
        assert_eq!(message("77777"), "no bank has the code \"77777\"");
        assert!(message("030").contains("\"030\" is Heritage Bank"));
        assert!(message(&"x".repeat(1000)).len() < 100);
    }

    #[test]
    fn the_numbers_that_choose_a_scenario_are_valid() {
        fixtures::install();
        let declaration = include_str!("../rail.toml");
        let numbers: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert_eq!(numbers.len(), 12);
        for number in numbers {
            assert!(checked("058", number).is_ok(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn any_fields_are_answered(bank in ".{0,12}", account in ".{0,12}") {
            fixtures::install();
            match checked(&bank, &account) {
                Ok(canonical) => prop_assert_eq!(canonical.len(), 4),
                Err(violations) => prop_assert!(!violations.is_empty()),
            }
        }
    }
}
