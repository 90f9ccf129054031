//! Amounts as messages write them.

use crate::xml::{Fault, Node};

/// The most that one payment may be, in cents: 999,999,999.99 euros.
const MOST: i64 = 99_999_999_999;

/// Cents as euros.
#[must_use]
pub fn written(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Cents of a decimal number.
#[must_use]
pub fn read(text: &str) -> Option<i64> {
    let (euros, cents) = match text.split_once('.') {
        Some((euros, cents)) => (euros, cents),
        None => (text, "00"),
    };
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if euros.is_empty() || !(1..=2).contains(&cents.len()) || !is_number(euros) || !is_number(cents)
    {
        return None;
    }
    let cents = if cents.len() == 1 { format!("{cents}0") } else { cents.to_owned() };
    format!("{euros}{cents}").parse().ok()
}

/// Cents of an amount in euros that a payment may be.
///
/// # Errors
/// It is none.
pub fn of(node: &Node) -> Result<i64, Fault> {
    let cents = read(&node.text).filter(|cents| (1..=MOST).contains(cents));
    match (node.attribute("Ccy"), cents) {
        ("EUR", Some(cents)) => Ok(cents),
        _ => Err(format!("{} must be 0.01 to 999999999.99 euros", node.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::{read, written};

    #[test]
    fn euros() {
        for (cents, text) in [(1, "0.01"), (125_050, "1250.50"), (99_999_999_999, "999999999.99")] {
            assert_eq!((written(cents).as_str(), read(text)), (text, Some(cents)));
        }
        for text in ["", ".", "1.", ".1", "1.234", "-1", "1,5", "1e2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
