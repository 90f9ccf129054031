//! Amounts as messages write them: euros with two decimals. No floating number is involved.

use crate::xml::{Element, Odd};

/// The most that one SEPA payment carries: 999,999,999.99 euros.
pub const CENTS_MAX: i64 = 99_999_999_999;

/// Cents as euros, such as `1250.50`.
#[must_use]
pub fn euros(cents: i64) -> String {
    let (whole, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
    format!("{whole}.{rest:02}")
}

/// Cents of an amount. Fewer decimals are read as well, and zeros behind the second; a fraction of
/// a cent, a sign or an exponent is not.
#[must_use]
pub fn cents(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let decimals = format!("{:0<2}", fraction.trim_end_matches('0'));
    if !is_number(whole) || !is_number(fraction) || decimals.len() > 2 {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(decimals.parse().ok()?)
}

/// Cents of an element that holds an amount in euros.
///
/// # Errors
/// It holds another currency, or no amount.
pub fn read(element: &Element) -> Result<i64, Odd> {
    match element.attribute("Ccy") {
        Some("EUR") => {}
        _ => return Err(format!("{} is not in euros", element.name())),
    }
    cents(element.own()).ok_or_else(|| format!("{} holds no amount", element.name()))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{CENTS_MAX, cents, euros};

    #[test]
    fn written_and_read() {
        for (amount, text) in [
            (1, "0.01"),
            (10, "0.10"),
            (100, "1.00"),
            (125_050, "1250.50"),
            (CENTS_MAX, "999999999.99"),
        ] {
            assert_eq!(euros(amount), text);
            assert_eq!(cents(text), Some(amount));
        }
        assert_eq!((cents("5"), cents("5.1"), cents("5.10000")), (Some(500), Some(510), Some(510)));
    }

    #[test]
    fn what_is_no_amount() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1.005",
            "-1",
            "+1",
            "1e3",
            " 1",
            "1,50",
            "1.2.3",
            "NaN",
            "१",
            "92233720368547758.08",
            "99999999999999999999",
        ] {
            assert_eq!(cents(text), None, "{text}");
        }
    }
}
