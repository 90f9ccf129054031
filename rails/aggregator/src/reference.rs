//! Our references: UUIDs in the shape of version 4, which is random (RFC 9562). Ours follow from
//! the payment: asked for again, they are the same.

use railhead_rail::uuids;
use sha2::{Digest as _, Sha256};

/// What keeps our references apart from everything else that is digested.
const PURPOSE: &[u8] = b"railhead aggregator payout";

/// The reference of an attempt to make a payout. The serial is unique in one database; payout and
/// instant keep it apart from those of another one that pays from the same account.
#[must_use]
pub fn of(payout: &str, serial: u64, begun_at_ms: u64) -> String {
    let digest = Sha256::new()
        .chain_update(PURPOSE)
        .chain_update([0])
        .chain_update(payout)
        .chain_update([0])
        .chain_update(serial.to_be_bytes())
        .chain_update(begun_at_ms.to_be_bytes())
        .finalize();
    uuids::shaped(&digest.into())
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use std::collections::BTreeSet;

    use super::of;

    #[test]
    fn every_payment_has_one_of_its_own() {
        let mut known = BTreeSet::new();
        for payout in ["po_1", "po_2", ""] {
            for serial in [0, 1, 2, 999_999_999_999, u64::MAX] {
                for begun_at_ms in [0, 1_795_251_600_000, u64::MAX] {
                    let uuid = of(payout, serial, begun_at_ms);
                    assert_eq!(uuid, of(payout, serial, begun_at_ms));
                    let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
                    assert_eq!(parts, [8, 4, 4, 4, 12], "{uuid}");
                    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f' | '-');
                    assert!(uuid.chars().all(is_hex), "{uuid}");
                    assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
                    assert!(b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
                    assert!(known.insert(uuid));
                }
            }
        }
    }
}
