//! Canonical form of a recipient.

use railhead_rail::fields::{set, value};
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::violation;

use crate::countries;

/// The one operator whose wallets this rail pays.
const OPERATOR: &str = "mtn";

/// The recipient with every field trimmed and the number in digits with its calling code. A wallet
/// may be spoken of without its name, which rail.toml requires of whoever is paid.
///
/// # Errors
/// Every violation, not only the first.
pub fn check(currency: &str, fields: Vec<Field>) -> Result<Vec<Field>, Vec<Violation>> {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|field| Field { value: field.value.trim().to_owned(), ..field })
        .filter(|field| !field.value.is_empty())
        .collect();
    let mut violations = Vec::new();
    let operator = value(&fields, "mobile_operator");
    if operator != OPERATOR {
        let message = format!("{operator:?} is not an operator that can be paid here.");
        violations.push(violation("mobile_operator", "unknown_operator", message));
    }
    match number(currency, value(&fields, "mobile_number")) {
        Ok(number) => set(&mut fields, "mobile_number", number),
        Err(message) => violations.push(violation("mobile_number", "invalid_field", message)),
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

fn number(currency: &str, written: &str) -> Result<String, String> {
    let country = countries::of_currency(currency)
        .ok_or_else(|| format!("no MTN wallet that is paid here holds {currency}."))?;
    country.mobile_number(written).ok_or_else(|| {
        let (adjective, example) = (country.adjective, country.example);
        format!("mobile_number must be a {adjective} mobile number, such as {example}.")
    })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;
    use railhead_rail::fields::{field, value};

    use super::check;

    fn named(number: &str) -> Vec<railhead_rail::types::Field> {
        vec![
            field("mobile_operator", "mtn"),
            field("mobile_number", number),
            field("name", "Ama Mensah"),
        ]
    }

    #[test]
    fn a_currency_that_no_wallet_holds() {
        let violations = check("KES", named("0712345678")).expect_err("no country");
        assert_eq!(violations[0].field, "mobile_number");
    }

    proptest! {
        #[test]
        fn whatever_is_given(currency in "GHS|KES|.{0,4}", number in "[+0-9 -]{0,18}|.{0,40}") {
            let Ok(fields) = check(&currency, named(&number)) else { return Ok(()) };
            let canonical = value(&fields, "mobile_number").to_owned();
            prop_assert!(canonical.len() == 12 && canonical.starts_with("233"), "{canonical}");
            // What is canonical stays as it is, and so does what it is written as at home.
            prop_assert_eq!(check(&currency, fields.clone()), Ok(fields.clone()));
            prop_assert_eq!(check(&currency, named(&format!("0{}", &canonical[3..]))), Ok(fields));
        }

        #[test]
        fn fields_of_any_kind(given in prop::collection::vec((".{0,20}", ".{0,60}"), 0..6)) {
            let fields = given.iter().map(|(name, value)| field(name, value.as_str())).collect();
            prop_assert!(check("GHS", fields).is_err());
        }
    }
}
