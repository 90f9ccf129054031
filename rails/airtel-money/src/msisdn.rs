//! Kenyan mobile numbers.
//!
//! A prefix says who gave a number out, not who serves it today: numbers are portable. So only the
//! shape is checked, and whether Airtel knows the number is for Airtel to say.

/// Twelve digits with the country code, such as `254733123456`, of a number as people write it;
/// nothing where it is none.
#[must_use]
pub fn canonical(written: &str) -> Option<String> {
    let compact: String = written.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let national = compact
        .strip_prefix("+254")
        .or_else(|| compact.strip_prefix("254"))
        .or_else(|| compact.strip_prefix('0'))?;
    is_mobile(national).then(|| format!("254{national}"))
}

/// The nine digits that Airtel wants, of a number in canonical form: it takes no country code.
#[must_use]
pub fn national(canonical: &str) -> &str {
    canonical.strip_prefix("254").unwrap_or(canonical)
}

/// Whether nine digits are within the ranges of mobile numbers: metadata of Google's libphonenumber
/// as of July 2026.
fn is_mobile(national: &str) -> bool {
    let digits = national.as_bytes();
    if digits.len() != 9 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    match (digits[0], digits[1], digits[2]) {
        (b'7', _, _) | (b'1', b'1' | b'8', _) => true,
        (b'1', b'0', third) => third <= b'8',
        (b'1', b'2', third) => matches!(third, b'0' | b'1' | b'4'),
        (b'1', b'3', third) => third == b'0',
        (b'1', b'4', third) => third <= b'5',
        _ => false,
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{canonical, national};

    #[test]
    fn numbers_as_people_write_them() {
        for (written, wire) in [
            ("0712345678", "254712345678"),
            ("0110123456", "254110123456"),
            ("0100123456", "254100123456"),
            ("0733123456", "254733123456"),
            ("0763123456", "254763123456"),
            ("254712345678", "254712345678"),
            ("+254 712 345-678", "254712345678"),
        ] {
            assert_eq!(canonical(written).as_deref(), Some(wire), "{written}");
            assert_eq!(national(wire), &wire[3..]);
        }
        for written in [
            "",
            "712345678",
            "0202012345",
            "071234567",
            "07123456789",
            "+254 0712 345678",
            "0109123456",
            "0150123456",
            "+255712345678",
            "071234567a",
            "０712345678",
        ] {
            assert_eq!(canonical(written), None, "{written:?}");
        }
    }
}
