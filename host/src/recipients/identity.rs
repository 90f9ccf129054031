//! What makes two recipients the same one, in words that name no account.
//!
//! An account number stands where money is paid to it. Everywhere else (counters, facts of
//! decisions, indexes) its keyed hash is enough to know it again, and whoever reads that copies
//! nobody's account. The key belongs to the database, not to a master key: a hash that changed
//! with one would lose every limit and every blocked account.

use crate::keyring::Keyring;

/// Hashes identities of recipients.
#[derive(Clone)]
pub struct IdentityKey(Vec<u8>);

impl IdentityKey {
    /// From the secret that the database keeps sealed.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(secret.as_bytes().to_vec())
    }

    /// The first 128 bits of HMAC-SHA256 in hexadecimal digits: the same for the same identity.
    #[must_use]
    pub fn hide(&self, identity: &str) -> String {
        hex::encode(&Keyring::sign(&self.0, identity.as_bytes())[..16])
    }
}
