//! Amounts as messages write them: dollars with a point. No floating number is involved.

/// The most that a wire carries: a cent less than ten billion dollars.
pub const MINOR_MAX: i64 = 999_999_999_999;

/// Cents as dollars with two decimals, such as `1250.50`; `None` where no wire carries so much.
#[must_use]
pub fn dollars(amount_minor: i64) -> Option<String> {
    let is_carried = (1..=MINOR_MAX).contains(&amount_minor);
    is_carried.then(|| format!("{}.{:02}", amount_minor / 100, amount_minor % 100))
}

/// Cents of an amount in dollars. Fewer decimals are read as well, and zeros behind the second;
/// a fraction of a cent, a sign and an exponent are not.
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

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{MINOR_MAX, cents, dollars};

    #[test]
    fn written_and_read() {
        for (amount_minor, text) in
            [(1, "0.01"), (10, "0.10"), (125_050, "1250.50"), (MINOR_MAX, "9999999999.99")]
        {
            assert_eq!(dollars(amount_minor).as_deref(), Some(text));
            assert_eq!(cents(text), Some(amount_minor));
        }
        for amount_minor in [0, -1, MINOR_MAX + 1, i64::MIN, i64::MAX] {
            assert_eq!(dollars(amount_minor), None);
        }
    }

    #[test]
    fn what_is_no_amount() {
        for text in ["1250.5", "1250.50", "1250.50000", "01250.5"] {
            assert_eq!(cents(text), Some(125_050), "{text}");
        }
        assert_eq!(cents("1250"), Some(125_000));
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1.005",
            "-1",
            "+1",
            "1e3",
            "1,250.50",
            " 1",
            "1 ",
            "0x1",
            "\u{661}",
            "92233720368547758.08",
            "99999999999999999999",
        ] {
            assert_eq!(cents(text), None, "{text:?}");
        }
    }
}
