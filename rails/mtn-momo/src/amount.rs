//! Amounts as MTN writes them: major units as a text, with the currency's decimals.

/// An amount in major units, such as `1250.50`; nothing where there is nothing to pay.
#[must_use]
pub fn written(amount_minor: i64, exponent: u8) -> Option<String> {
    let unit = 10_i64.checked_pow(u32::from(exponent))?;
    let (whole, fraction) = (amount_minor / unit, amount_minor % unit);
    match exponent {
        _ if amount_minor <= 0 => None,
        0 => Some(whole.to_string()),
        _ => Some(format!("{whole}.{fraction:0width$}", width = usize::from(exponent))),
    }
}

/// Minor units of an amount in major units. Fewer decimals are read as well, as are zeros behind
/// the last; a smaller fraction, a sign, an exponent or a space is not.
#[must_use]
pub fn read(text: &str, exponent: u8) -> Option<i64> {
    let unit = 10_i64.checked_pow(u32::from(exponent))?;
    let width = usize::from(exponent);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let decimals = format!("{:0<width$}", fraction.trim_end_matches('0'));
    if !is_number(whole) || !is_number(fraction) || decimals.len() > width {
        return None;
    }
    let fraction = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
    whole.parse::<i64>().ok()?.checked_mul(unit)?.checked_add(fraction)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{read, written};

    #[test]
    fn written_and_read() {
        for (amount_minor, exponent, text) in [
            (1, 2, "0.01"),
            (10, 2, "0.10"),
            (125_050, 2, "1250.50"),
            (i64::MAX, 2, "92233720368547758.07"),
            (1_250, 0, "1250"),
            (1_250, 3, "1.250"),
        ] {
            assert_eq!(written(amount_minor, exponent).as_deref(), Some(text));
            assert_eq!(read(text, exponent), Some(amount_minor), "{text}");
        }
        for amount_minor in [0, -1, i64::MIN] {
            assert_eq!(written(amount_minor, 2), None);
        }
        assert_eq!((written(1, 19), read("1", 19)), (None, None));
    }

    #[test]
    fn other_ways_of_writing_it() {
        for (text, exponent, amount_minor) in [
            ("1250", 2, 125_000),
            ("1250.5", 2, 125_050),
            ("1250.5000", 2, 125_050),
            ("0001250.50", 2, 125_050),
            ("1250.00", 0, 1_250),
        ] {
            assert_eq!(read(text, exponent), Some(amount_minor), "{text}");
        }
        for text in
            ["", ".", "1250.", ".5", "1250.505", "-1", "+1", "1e3", "1,250", " 1", "1 ", "0x1", "९"]
        {
            assert_eq!(read(text, 2), None, "{text:?}");
        }
        assert_eq!(read("1.5", 0), None);
        assert_eq!(read("92233720368547758.08", 2), None);
    }
}
