//! Amounts as they are sent: dollars, as a JSON number. They are read and written as they stand in
//! the text; no floating number is involved.

use serde_json::value::RawValue;

/// Cents as dollars with two decimals, such as `1250.50`. `None` where there is nothing to pay.
#[must_use]
pub fn dollars(amount_minor: i64) -> Option<String> {
    (amount_minor > 0).then(|| format!("{}.{:02}", amount_minor / 100, amount_minor % 100))
}

/// Cents of an amount. One decimal or none are read as well, as are zeros behind the second; a
/// fraction of a cent, a sign, an exponent or a text is not.
#[must_use]
pub fn cents(raw: &RawValue) -> Option<i64> {
    let text = raw.get();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let decimals = format!("{:0<2}", fraction.trim_end_matches('0'));
    if !is_number(whole) || !is_number(fraction) || decimals.len() > 2 {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(decimals.parse().ok()?)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use serde_json::value::RawValue;

    use super::{cents, dollars};

    fn read(text: &str) -> Option<i64> {
        cents(&RawValue::from_string(text.to_owned()).expect("JSON"))
    }

    #[test]
    fn written_and_read() {
        for (amount_minor, text) in [
            (1, "0.01"),
            (10, "0.10"),
            (100, "1.00"),
            (125_050, "1250.50"),
            (2_500_000, "25000.00"),
        ] {
            assert_eq!(dollars(amount_minor).as_deref(), Some(text));
            assert_eq!(read(text), Some(amount_minor));
        }
        assert_eq!((dollars(0), dollars(-1)), (None, None));
        assert_eq!(dollars(i64::MAX).as_deref(), Some("92233720368547758.07"));
    }

    #[test]
    fn what_is_no_amount() {
        for text in ["1250.5", "1250.50", "1250.5000"] {
            assert_eq!(read(text), Some(125_050), "{text}");
        }
        assert_eq!(read("1250"), Some(125_000));
        for text in [
            "1.005",
            "-1",
            "1e3",
            "1.5E2",
            "\"1250.50\"",
            "null",
            "true",
            "[]",
            "92233720368547758.08",
            "99999999999999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
