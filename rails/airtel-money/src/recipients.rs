//! Canonical form of a recipient.

use railhead_rail::fields::{set, value};
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::violation;

use crate::{msisdn, names};

/// The one operator whose wallets this rail pays.
const OPERATOR: &str = "airtel";

/// The recipient with every field trimmed and the number in twelve digits.
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
    let operator = value(&fields, "mobile_operator");
    if operator != OPERATOR {
        let message = format!("{operator:?} is not an operator that can be paid here.");
        violations.push(violation("mobile_operator", "unknown_operator", message));
    }
    match msisdn::canonical(value(&fields, "mobile_number")) {
        Some(number) => set(&mut fields, "mobile_number", number),
        None => {
            let message = "mobile_number must be a Kenyan mobile number, such as 0733123456.";
            violations.push(violation("mobile_number", "invalid_field", message.to_owned()));
        }
    }
    // A wallet may be spoken of without its name. One that is there has to be a name.
    let name = value(&fields, "name");
    if !name.is_empty() && !names::says_something(&names::plain(name)) {
        violations.push(violation("name", "invalid_field", names::UNREADABLE.to_owned()));
    }
    if violations.is_empty() { Ok(fields) } else { Err(violations) }
}
