//! Account numbers that a bank could have given out.

use serde_json::{Value, json};

/// The account of this serial number at Guaranty Trust Bank, with its check digit.
pub(crate) fn account(serial: u32) -> String {
    let digits = format!("058{serial:09}");
    let weights = [3, 7, 3].into_iter().cycle();
    let sum: u32 =
        digits.bytes().zip(weights).map(|(digit, by)| u32::from(digit - b'0') * by).sum();
    format!("{serial:09}{}", (10 - sum % 10) % 10)
}

/// The change of a body that makes it go to that account.
pub(crate) fn to(serial: u32) -> Value {
    json!({ "recipient": { "account_number": account(serial), "bank_code": "058" } })
}
