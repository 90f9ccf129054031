//! Names that the gateway and the scheme give. There is no chance in a simulation: each follows
//! from what it names, and is always the same.

/// The scheme's own name of a payment.
#[must_use]
pub fn fpid(reference: &str) -> String {
    format!("{:016X}{:016X}", hash(&["fpid", reference]), hash(&["fpid again", reference]))
}

/// The gateway's own name of something about a payment, as a GUID.
#[must_use]
pub fn guid(reference: &str, of: &str) -> String {
    let digits = format!("{:016x}{:016x}", hash(&[of, reference]), hash(&[reference, of]));
    let part = |from, to| &digits[from..to];
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// The reference that the returning bank gives to a return.
#[must_use]
pub fn of_returning_bank(reference: &str) -> String {
    format!("RTN{:016X}", hash(&["return", reference]))
}

/// The number that a webhook's reply repeats.
#[must_use]
pub fn nonce(reference: &str, kind: &str, now_ms: u64) -> u32 {
    let hash = hash(&[reference, kind, &now_ms.to_string()]);
    // 31 bits: what fits a signed number, as the documented ones do.
    u32::try_from(hash >> 33).unwrap_or_default()
}

/// FNV-1a over the parts, with something between them, and a stir: like texts end unlike.
fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let stirred = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    stirred ^ (stirred >> 33)
}

#[cfg(test)]
mod tests {
    use super::{fpid, guid, nonce, of_returning_bank};

    #[test]
    fn each_has_its_own_and_keeps_it() {
        assert_eq!(fpid("RP1"), fpid("RP1"));
        assert_ne!(fpid("RP1"), fpid("RP2"));
        assert_ne!(guid("RP1", "transaction"), guid("RP1", "return"));
        assert_ne!(nonce("RP1", "TransactionSettled", 1), nonce("RP1", "TransactionSettled", 2));
        let guid = guid("RP1", "transaction");
        let lengths: Vec<usize> = guid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(of_returning_bank("RP1").len() <= 35);
    }
}
