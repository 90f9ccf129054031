//! Amounts as NIP writes them: naira with a point and two decimals. Integers throughout.

/// Kobo as naira, such as `1250.50`. `None` where there is nothing to pay.
#[must_use]
pub fn naira(amount_minor: i64) -> Option<String> {
    (amount_minor > 0).then(|| format!("{}.{:02}", amount_minor / 100, amount_minor % 100))
}

/// Kobo of an amount in an answer. Gateways that pass numbers through floating types drop
/// trailing zeros or add some, so `1250.5` and `1250.5000` are read as well; a fraction of a
/// kobo, a sign or a separator is not.
#[must_use]
pub fn kobo(naira: &str) -> Option<i64> {
    let (whole, fraction) = naira.split_once('.').unwrap_or((naira, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let cents = format!("{:0<2}", fraction.trim_end_matches('0'));
    if cents.len() > 2 {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(cents.parse().ok()?)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;

    use super::{kobo, naira};

    #[test]
    fn written() {
        for (amount_minor, text) in [(1, "0.01"), (10, "0.10"), (100, "1.00"), (125_050, "1250.50")]
        {
            assert_eq!(naira(amount_minor).as_deref(), Some(text));
        }
        assert_eq!(naira(0), None);
        assert_eq!(naira(-100), None);
        assert_eq!(naira(i64::MAX).as_deref(), Some("92233720368547758.07"));
    }

    #[test]
    fn read() {
        for text in ["1250.50", "1250.5", "1250.5000", "01250.50"] {
            assert_eq!(kobo(text), Some(125_050), "{text}");
        }
        assert_eq!(kobo("1250"), Some(125_000));
        for text in
            ["", ".", "1250.", ".50", "-1", "+1", "1,250.50", "1e3", "1.005", "NaN", "1 ", "१"]
        {
            assert_eq!(kobo(text), None, "{text:?}");
        }
        assert_eq!(kobo("92233720368547758.08"), None);
    }

    proptest! {
        #[test]
        fn there_and_back(amount_minor in 1_i64..) {
            prop_assert_eq!(naira(amount_minor).and_then(|text| kobo(&text)), Some(amount_minor));
        }
    }
}
