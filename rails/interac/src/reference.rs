//! Our references: capitals and digits, of one length. ISO 20022's identifications have 35
//! characters.

/// What stands in front of all of them.
const PREFIX: &str = "RI";
/// Hexadecimal digits of the instant, in milliseconds: enough until the year 10889.
const INSTANT_DIGITS: usize = 12;
/// Hexadecimal digits of a number below 10^12.
const SERIAL_DIGITS: usize = 10;

/// The reference of a payment: the `end_to_end_identification`, by which the participant refuses
/// to pay twice. `None` where its parts are beyond what the host promises.
#[must_use]
pub fn payment(begun_at_ms: u64, serial: u64) -> Option<String> {
    // The serial is unique here; the instant keeps it apart from those of another database.
    let instant = format!("{begun_at_ms:0INSTANT_DIGITS$X}");
    let serial = format!("{serial:0SERIAL_DIGITS$X}");
    let fits = instant.len() == INSTANT_DIGITS && serial.len() == SERIAL_DIGITS;
    fits.then(|| format!("{PREFIX}{instant}{serial}"))
}

/// Whether this may be the reference of one of our payments. Whatever else is sent from the same
/// account has another shape.
#[must_use]
pub fn is_ours(reference: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    reference.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == INSTANT_DIGITS + SERIAL_DIGITS && digits.bytes().all(is_digit)
    })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{is_ours, payment};

    #[test]
    fn of_one_shape_and_length() {
        let first = payment(1_795_251_600_000, 2).expect("a reference");
        assert_eq!(first, "RI01A1FD557A800000000002");
        assert!(first.len() <= 35 && is_ours(&first));
        let last = payment(1_795_251_600_000, 999_999_999_999).expect("a reference");
        assert_eq!(last.len(), first.len());
        assert_eq!(payment(u64::MAX, 1), None);
        assert_eq!(payment(1, u64::MAX), None);
    }

    #[test]
    fn what_is_not_ours() {
        for other in [
            "",
            "RI",
            "QA03132368A",
            "RP01A1FD557A800000000002",
            "ri01a1fd557a800000000002",
            "RI01A1FD557A80000000000Z",
            "RI01A1FD557A8000000000020",
            " RI01A1FD557A80000000000",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
