//! Canonical form of a recipient.

use railhead_rail::fields::{set, value};
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{missing, violation};

use crate::{countries, operators, words};

/// The recipient with every field trimmed, the operator by its name of today, and the number in
/// digits with its calling code.
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
    let operator = value(&fields, "mobile_operator").to_owned();
    match operators::find(currency, &operator) {
        Some(found) => set(&mut fields, "mobile_operator", found.slug),
        None => {
            let message = format!("{operator:?} is not an operator that can be paid here.");
            violations.push(violation("mobile_operator", "unknown_operator", message));
        }
    }
    match number(currency, value(&fields, "mobile_number")) {
        Ok(number) => set(&mut fields, "mobile_number", number),
        Err(message) => violations.push(violation("mobile_number", "invalid_field", message)),
    }
    match words::name(value(&fields, "name")) {
        name if name.is_empty() => {
            violations.push(missing("name", "the name under which the wallet is registered"));
        }
        name => set(&mut fields, "name", name),
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}

fn number(currency: &str, written: &str) -> Result<String, String> {
    let country = countries::of_currency(currency)
        .ok_or_else(|| format!("no wallet that is paid here holds {currency}."))?;
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
    use railhead_rail::types::Field;

    use super::check;

    fn named(operator: &str, number: &str) -> Vec<Field> {
        vec![
            field("mobile_operator", operator),
            field("mobile_number", number),
            field("name", "Ama Mensah"),
        ]
    }

    #[test]
    fn a_recipient_belongs_to_its_currency() {
        assert!(check("GHS", named("telecel", "0201234567")).is_ok());
        assert!(check("KES", named("tkash", "0771234567")).is_ok());
        for (currency, operator, number, wrong) in [
            ("KES", "telecel", "0771234567", "mobile_operator"),
            ("GHS", "tkash", "0201234567", "mobile_operator"),
            ("GHS", "telecel", "0771234567", "mobile_number"),
            ("KES", "tkash", "0201234567", "mobile_number"),
            ("NGN", "telecel", "0201234567", "mobile_operator"),
        ] {
            let violations = check(currency, named(operator, number)).expect_err("a mismatch");
            assert_eq!(violations[0].field, wrong, "{currency} {operator} {number}");
        }
    }

    #[test]
    fn the_same_wallet_written_otherwise() {
        let first = check("GHS", named("telecel", "0201234567"));
        for (operator, number) in [
            ("vodafone", "+233 20 123 4567"),
            ("telecel", "233201234567"),
            (" telecel ", "020-1234567"),
        ] {
            assert_eq!(check("GHS", named(operator, number)), first);
        }
        assert_ne!(check("GHS", named("at", "0201234567")), first);
    }

    proptest! {
        #[test]
        fn whatever_is_given(
            currency in "GHS|KES|.{0,4}",
            operator in "telecel|at|tigo|vodafone|tkash|.{0,10}",
            number in "0[0-9]{9}|[+0-9 -]{0,18}|.{0,40}",
        ) {
            let Ok(fields) = check(&currency, named(&operator, &number)) else { return Ok(()) };
            let canonical = value(&fields, "mobile_number").to_owned();
            prop_assert!(canonical.len() == 12, "{canonical}");
            let code = if currency == "GHS" { "233" } else { "254" };
            prop_assert!(canonical.starts_with(code), "{canonical}");
            // What is canonical stays as it is, and so does what it is written as at home.
            prop_assert_eq!(check(&currency, fields.clone()), Ok(fields.clone()));
            let at_home = format!("0{}", &canonical[3..]);
            prop_assert_eq!(check(&currency, named(&operator, &at_home)), Ok(fields));
        }

        #[test]
        fn fields_of_any_kind(given in prop::collection::vec((".{0,20}", ".{0,60}"), 0..6)) {
            let fields = given.iter().map(|(name, value)| field(name, value.as_str())).collect();
            prop_assert!(check("GHS", fields).is_err());
        }
    }
}
