//! What makes two recipients the same one, in words that name no account.
//!
//! An account number stands where money is paid to it. Everywhere else (counters, facts of
//! decisions, indexes) its keyed hash is enough to know it again, and whoever reads that copies
//! nobody's account. The key belongs to the database, not to a master key: a hash that changed
//! with one would lose every limit and every blocked account.
//!
//! The same account by another network of its currency may be another recipient, who is saved by
//! itself (`shape` in a rail's declaration). It is the same account all the same: blocks, limits and
//! velocities go by that.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;

use crate::keyring::Keyring;

/// How many characters an account has in an identity, from the first.
pub(super) const ACCOUNT_LENGTH: usize = 22;

/// What stands between the account and its shape.
const BETWEEN: char = '/';

/// Hashes identities of recipients.
#[derive(Clone)]
pub struct IdentityKey(Vec<u8>);

impl IdentityKey {
    /// From the secret that the database keeps sealed.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(secret.as_bytes().to_vec())
    }

    /// The first 128 bits of HMAC-SHA256 in base64, the same for the same account; then its shape,
    /// where it has one.
    #[must_use]
    pub fn hide(&self, account: &str, shape: Option<&str>) -> String {
        let hidden = BASE64.encode(&Keyring::sign(&self.0, account.as_bytes())[..16]);
        match shape {
            Some(shape) => format!("{hidden}{BETWEEN}{shape}"),
            None => hidden,
        }
    }
}

/// The account of an identity: the same over whichever network it is paid.
#[must_use]
pub fn account_hash(identity: &str) -> &str {
    identity.split_once(BETWEEN).map_or(identity, |(account, _)| account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_the_same_in_whatever_shape() {
        let key = IdentityKey::new("secret");
        let (plain, wire) =
            (key.hide("021000021:12345", None), key.hide("021000021:12345", Some("wire")));
        assert_ne!(plain, wire);
        assert_eq!((account_hash(&plain), account_hash(&wire)), (plain.as_str(), plain.as_str()));
        assert_eq!(plain.len(), ACCOUNT_LENGTH);
        assert_ne!(account_hash(&key.hide("021000021:12346", None)), account_hash(&plain));
    }
}
