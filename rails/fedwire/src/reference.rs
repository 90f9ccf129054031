//! Our references: UETRs (unique end-to-end transaction references), which every message about a
//! wire repeats. They have the shape of a random UUID (version 4), as ISO 20022 asks for.

use railhead_rail::uuids;
use sha2::{Digest, Sha256};

/// What is hashed first, so that no other use of the same parts makes the same bytes.
const DOMAIN: &[u8] = b"railhead fedwire uetr";

/// The UETR of a payment. It follows from the payout and the number that the host allotted, and
/// from nothing else: made again, it is the same, in whatever database.
#[must_use]
pub fn uetr(payout: &str, serial: u64) -> String {
    let mut hash = Sha256::new();
    for part in [DOMAIN, payout.as_bytes(), serial.to_string().as_bytes()] {
        hash.update(part);
        hash.update([0]);
    }
    let digest = hash.finalize();
    uuids::shaped(&digest.into())
}

/// Whether a text has a UETR's shape.
#[must_use]
pub fn is_uetr(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'4',
            19 => b"89ab".contains(&byte),
            _ => is_digit(byte),
        })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use std::collections::HashSet;

    use super::{is_uetr, uetr};

    /// Computed by another program (Python's `hashlib`).
    #[test]
    fn from_the_payout_and_its_number_alone() {
        assert_eq!(uetr("po_0001", 2), "96136a50-afd9-4639-89ca-25b870dd3859");
        assert_eq!(uetr("po_conformance00000000000000", 5), "c106d31e-886d-46a1-89c0-5e32178e8faa");
        assert_eq!(uetr("", 0), "8fc2820b-b697-4fce-a6b6-09427e8d5632");
    }

    #[test]
    fn of_one_shape_and_never_the_same() {
        let mut seen = HashSet::new();
        for serial in 0..2_000 {
            for payout in ["po_1", "po_11", "1"] {
                let reference = uetr(payout, serial);
                assert!(is_uetr(&reference), "{reference}");
                assert!(seen.insert(reference), "{payout} {serial}");
            }
        }
    }

    #[test]
    fn what_is_none() {
        let known = "8a562c67-ca16-48ba-b074-65581be6f011";
        assert!(is_uetr(known));
        for text in [
            "",
            "8a562c67-ca16-48ba-b074-65581be6f01",
            "8a562c67-ca16-48ba-b074-65581be6f0111",
            "8A562C67-CA16-48BA-B074-65581BE6F011",
            "8a562c67-ca16-18ba-b074-65581be6f011",
            "8a562c67-ca16-48ba-c074-65581be6f011",
            "8a562c67ca16-48ba-b074-65581be6f0110",
            "8a562c67-ca16-48ba-b074-65581be6f0é",
        ] {
            assert!(!is_uetr(text), "{text}");
        }
    }
}
