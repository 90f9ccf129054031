//! References in the shape of a random UUID, for networks that take nothing else.

/// A UUID of version 4 (RFC 9562), as text in small letters, out of the first sixteen bytes of a
/// digest.
#[must_use]
pub fn shaped(digest: &[u8; 32]) -> String {
    let mut uuid = String::with_capacity(36);
    for (at, byte) in digest.iter().take(16).enumerate() {
        let byte = match at {
            // The version, and the variant.
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        if matches!(at, 4 | 6 | 8 | 10) {
            uuid.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            uuid.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    uuid
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::shaped;

    #[test]
    fn version_and_variant_stand_in_their_places() {
        assert_eq!(shaped(&[0; 32]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(shaped(&[0xff; 32]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
