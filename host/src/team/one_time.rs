//! One-time codes: RFC 6238 as every authenticator knows it (SHA-1, six digits, thirty seconds),
//! and codes for whoever has lost theirs.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use totp_rs::{Builder, Secret, Totp};

use crate::clock::Moment;
use crate::error::Problem;
use crate::id::IdGenerator;

/// Bytes of a secret, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// Codes that are handed out for whoever loses their authenticator.
pub const RECOVERY_CODES: usize = 8;
/// Characters of one: out of 36, more than a hundred bits.
const RECOVERY_LENGTH: usize = 20;

/// The secret that an authenticator and this host share.
pub struct OneTimeCodes(Totp);

impl OneTimeCodes {
    /// A new one, for somebody.
    ///
    /// # Errors
    /// The address cannot be shown in an authenticator.
    pub fn new(ids: &IdGenerator, email: &str) -> Result<Self, Problem> {
        Self::of(&ids.bytes::<SECRET_BYTES>(), email)
    }

    /// The one whose secret this is.
    ///
    /// # Errors
    /// It is too short to be one.
    pub fn of(secret: &[u8], email: &str) -> Result<Self, Problem> {
        let shown = email.replace(':', " ");
        let builder = Builder::new()
            .with_secret(Secret::from(secret.to_vec()))
            .with_account_name(shown)
            .with_issuer(Some("Railhead"));
        builder.build().map(Self).map_err(Problem::internal)
    }

    /// Its secret.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        self.0.secret().as_bytes()
    }

    /// The same in base 32, to be typed.
    #[must_use]
    pub fn written(&self) -> String {
        self.0.secret().to_base32()
    }

    /// The same as authenticators scan it.
    ///
    /// # Errors
    /// The address cannot be shown in an authenticator.
    pub fn uri(&self) -> Result<String, Problem> {
        self.0.to_url().map_err(Problem::internal)
    }

    /// The step that a code belongs to, if it is one of this moment or its neighbours. A step counts
    /// once.
    #[must_use]
    pub fn step(&self, code: &str, now: Moment) -> Option<i64> {
        let seconds = u64::try_from(now.micros() / 1_000_000).ok()?;
        i64::try_from(self.0.check(code, seconds)?).ok()
    }
}

/// Codes to write down, and what is kept of them.
#[must_use]
pub fn recovery_codes(ids: &IdGenerator) -> (Vec<String>, Vec<String>) {
    let code = || ids.secret().to_lowercase()[..RECOVERY_LENGTH].to_owned();
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| code()).collect();
    let kept = codes.iter().map(|code| kept(code)).collect();
    (codes, kept)
}

/// What is left of the kept codes when this one is used; nothing where it is none of them.
#[must_use]
pub fn used(known: &[String], code: &str) -> Option<Vec<String>> {
    let hash = kept(&code.trim().to_lowercase());
    let is = |known: &String| bool::from(known.as_bytes().ct_eq(hash.as_bytes()));
    let left: Vec<String> = known.iter().filter(|known| !is(known)).cloned().collect();
    (left.len() < known.len()).then_some(left)
}

/// Nobody guesses a hundred bits: a plain hash is enough.
fn kept(code: &str) -> String {
    hex::encode(Sha256::digest(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    /// The vectors of RFC 6238, appendix B, cut to six digits.
    #[test]
    fn codes_are_those_of_the_standard() {
        let codes = OneTimeCodes::of(b"12345678901234567890", "ada@example.com").expect("a secret");
        let at = |seconds: i64| Moment::from_micros(seconds * 1_000_000);
        for (seconds, code, step) in [
            (59, "287082", 1),
            (1_111_111_109, "081804", 37_037_036),
            (1_111_111_111, "050471", 37_037_037),
            (1_234_567_890, "005924", 41_152_263),
            (2_000_000_000, "279037", 66_666_666),
            (20_000_000_000, "353130", 666_666_666),
        ] {
            assert_eq!(codes.step(code, at(seconds)), Some(step), "{seconds}");
            // Clocks may be half a minute apart, and no more.
            assert_eq!(codes.step(code, at(seconds + 30)), Some(step), "{seconds}");
            assert_eq!(codes.step(code, at(seconds + 60)), None, "{seconds}");
        }
        for wrong in ["", "287083", "28708", "2870820", "28708a", "\u{662}87082"] {
            assert_eq!(codes.step(wrong, at(59)), None, "{wrong}");
        }
        assert_eq!(codes.written(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = codes.uri().expect("an address");
        assert!(uri.starts_with("otpauth://totp/Railhead:ada%40example.com?secret=GEZD"), "{uri}");
    }

    #[test]
    fn a_recovery_code_counts_once() {
        let ids = IdGenerator::seeded(Clock::System, 1);
        let (codes, kept) = recovery_codes(&ids);
        assert_eq!((codes.len(), kept.len()), (RECOVERY_CODES, RECOVERY_CODES));
        assert!(codes.iter().all(|code| code.len() == RECOVERY_LENGTH && !kept.contains(code)));
        let left = used(&kept, &format!(" {} ", codes[3].to_uppercase())).expect("a code");
        assert_eq!(left.len(), RECOVERY_CODES - 1);
        assert_eq!(used(&left, &codes[3]), None);
        assert_eq!(used(&kept, "guess"), None);
    }
}
