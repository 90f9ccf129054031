//! Canonical form of a recipient.

use railhead_rail::fields::{set, value};
use railhead_rail::types::Field;

/// The number with its country code: the same wallet is the same recipient, however it is dialled.
/// That it has the right form, the declaration has seen to.
pub fn canonical(mut fields: Vec<Field>) -> Vec<Field> {
    let number = value(&fields, "mobile_number");
    if let Some(national) = number.strip_prefix('0') {
        let number = format!("261{national}");
        set(&mut fields, "mobile_number", number);
    }
    fields
}
