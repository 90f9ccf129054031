//! Our references: capitals and digits, of one length. The scheme carries 31 characters.

/// What stands in front of a payment's.
const PAYMENT: &str = "RP";
/// What stands in front of a name check's.
const NAME_CHECK: &str = "RN";
/// Hexadecimal digits of the instant, in milliseconds: enough until the year 10889.
const INSTANT_DIGITS: usize = 12;
/// Hexadecimal digits of a number below 10^12.
const SERIAL_DIGITS: usize = 10;

/// The reference of a payment: the `endToEndIdentification`, by which the gateway refuses to pay
/// twice. `None` where its parts are beyond what the host promises.
#[must_use]
pub fn payment(begun_at_ms: u64, serial: u64) -> Option<String> {
    make(PAYMENT, begun_at_ms, serial)
}

/// The reference of a name check.
#[must_use]
pub fn name_check(begun_at_ms: u64, serial: u64) -> Option<String> {
    make(NAME_CHECK, begun_at_ms, serial)
}

/// Whether this may be the reference of one of our payments. Whatever else an account's webhooks
/// speak of has another shape.
#[must_use]
pub fn is_ours(reference: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    reference.strip_prefix(PAYMENT).is_some_and(|digits| {
        digits.len() == INSTANT_DIGITS + SERIAL_DIGITS && digits.bytes().all(is_digit)
    })
}

/// The serial is unique here; the instant keeps it apart from those of another database.
fn make(kind: &str, begun_at_ms: u64, serial: u64) -> Option<String> {
    let instant = format!("{begun_at_ms:0INSTANT_DIGITS$X}");
    let serial = format!("{serial:0SERIAL_DIGITS$X}");
    let fits = instant.len() == INSTANT_DIGITS && serial.len() == SERIAL_DIGITS;
    fits.then(|| format!("{kind}{instant}{serial}"))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{is_ours, name_check, payment};

    #[test]
    fn of_one_shape_and_length() {
        let first = payment(1_795_251_600_000, 2).expect("a reference");
        assert_eq!(first, "RP01A1FD557A800000000002");
        assert!(first.len() <= 31 && is_ours(&first));
        let last = payment(1_795_251_600_000, 999_999_999_999).expect("a reference");
        assert_eq!(last.len(), first.len());
        assert_eq!(name_check(1_795_251_600_000, 2).as_deref(), Some("RN01A1FD557A800000000002"));
        assert_eq!(payment(u64::MAX, 1), None);
        assert_eq!(payment(1, u64::MAX), None);
    }

    #[test]
    fn what_is_not_ours() {
        for other in [
            "",
            "RP",
            "05726acd06dc",
            "RN01A1FD557A800000000002",
            "rp01a1fd557a800000000002",
            "RP01A1FD557A80000000000Z",
            "RP01A1FD557A8000000000020",
            " RP01A1FD557A80000000000",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
