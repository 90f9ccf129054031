//! Our references: what Airtel calls `transaction.id`.

/// A reference begins with this: it is told from those of other systems that pay from the account.
const OURS: &str = "RH";
/// What the instant of an attempt stays below for as long as anybody lives.
const INSTANT_END: u64 = 1 << 48;
/// What the host keeps its serials below.
const SERIAL_END: u64 = 1 << 40;

/// The reference of an attempt, of letters and digits. The serial is unique here; the instant keeps
/// it apart from those of another database. Nothing where they do not fit into it.
#[must_use]
pub fn of(serial: u64, begun_at_ms: u64) -> Option<String> {
    let fits = serial < SERIAL_END && begun_at_ms < INSTANT_END;
    fits.then(|| format!("{OURS}{begun_at_ms:012X}{serial:010X}"))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use std::collections::BTreeSet;

    use super::of;

    #[test]
    fn every_attempt_has_one_of_its_own() {
        let mut known = BTreeSet::new();
        for serial in [0, 1, 16, 999_999_999_999] {
            for begun_at_ms in [0, 1, 1_795_251_600_000, (1 << 48) - 1] {
                let reference = of(serial, begun_at_ms).expect("it fits");
                assert_eq!(reference.len(), 24);
                assert!(reference.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                assert!(known.insert(reference));
            }
        }
        assert_eq!(of(2, 1_795_251_600_000).as_deref(), Some("RH01A1FD557A800000000002"));
        assert_eq!((of(1 << 40, 0), of(0, 1 << 48), of(u64::MAX, u64::MAX)), (None, None, None));
    }
}
