//! A rail's keys: signing what leaves, and checking who speaks. Components never see them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{self, KeyPair as _, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use spki::SubjectPublicKeyInfoRef;

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017), of 2048 bits at least.
    #[serde(rename = "rsa-pkcs1-sha256")]
    RsaPkcs1Sha256,
}

/// Which half of a key pair a rail is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// The private one: the host signs what the rail sends.
    Sign,
    /// The public one: the host checks what the network sends.
    Verify,
}

/// What an RSA key of 2048 bits takes at least, as PKCS#1 in DER.
const RSA_2048_BYTES: usize = 266;

/// A private key.
pub struct SigningKey {
    pair: RsaKeyPair,
    digest: String,
}

/// A public key.
pub struct VerifyingKey {
    /// PKCS#1, as DER.
    key: Vec<u8>,
    digest: String,
}

/// A rail's key, by its use.
pub enum Key {
    /// See [`Use::Sign`].
    Sign(Arc<SigningKey>),
    /// See [`Use::Verify`].
    Verify(VerifyingKey),
}

impl Key {
    /// Reads a key in PEM: PKCS#8 for a private one, SubjectPublicKeyInfo for a public one.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, kind: Use, pem: &str) -> Result<Self, String> {
        match kind {
            Use::Sign => Ok(Self::Sign(Arc::new(SigningKey::read(algorithm, pem)?))),
            Use::Verify => VerifyingKey::read(algorithm, pem).map(Self::Verify),
        }
    }

    /// Whether it is either half of this pair.
    #[must_use]
    pub fn is_half_of(&self, pair: &SigningKey) -> bool {
        let other = pair.pair.public_key().as_ref();
        match self {
            Self::Sign(key) => key.pair.public_key().as_ref() == other,
            Self::Verify(key) => key.key == other,
        }
    }

    /// Which key it is, as text that gives nothing of it away.
    #[must_use]
    pub fn digest(&self) -> &str {
        match self {
            Self::Sign(key) => &key.digest,
            Self::Verify(key) => &key.digest,
        }
    }
}

impl SigningKey {
    /// Reads a private key: PKCS#8 in PEM.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, pem: &str) -> Result<Self, String> {
        let Algorithm::RsaPkcs1Sha256 = algorithm;
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "it must be PEM that begins with BEGIN PRIVATE KEY (PKCS#8)")?;
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
            .map_err(|cause| format!("it is not an RSA key of 2048 bits at least: {cause}"))?;
        Ok(Self { pair, digest: digest(pem) })
    }

    /// The signature of a message.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut signature = vec![0; self.pair.public().modulus_len()];
        let random = SystemRandom::new();
        self.pair
            .sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature)
            .map_err(|_| "it cannot be signed".to_owned())?;
        Ok(signature)
    }

    /// The same in base64, as headers have it.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn sign_text(&self, message: &[u8]) -> Result<String, String> {
        Ok(BASE64.encode(self.sign(message)?))
    }

    /// The public half.
    #[must_use]
    pub fn verifying(&self) -> VerifyingKey {
        let key = self.pair.public_key().as_ref().to_vec();
        VerifyingKey { key, digest: self.digest.clone() }
    }
}

impl VerifyingKey {
    fn read(algorithm: Algorithm, pem: &str) -> Result<Self, String> {
        let Algorithm::RsaPkcs1Sha256 = algorithm;
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "it must be PEM that begins with BEGIN PUBLIC KEY")?;
        let info = SubjectPublicKeyInfoRef::try_from(der.as_ref())
            .map_err(|cause| format!("it is not a public key: {cause}"))?;
        let rsa = spki::ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
        if info.algorithm.oid != rsa {
            return Err("it is not an RSA key".to_owned());
        }
        let key = info.subject_public_key.as_bytes().ok_or("it is not a public key")?;
        if key.len() < RSA_2048_BYTES {
            return Err("it is not an RSA key of 2048 bits at least".to_owned());
        }
        Ok(Self { key: key.to_vec(), digest: digest(pem) })
    }

    /// Whether a signature of a message was made with the private half.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, &self.key);
        key.verify(message, signature).is_ok()
    }

    /// The same of a signature in base64, as headers have it.
    #[must_use]
    pub fn verify_text(&self, message: &[u8], signature: &str) -> bool {
        BASE64.decode(signature.trim()).is_ok_and(|signature| self.verify(message, &signature))
    }
}

fn digest(pem: &str) -> String {
    hex::encode(Sha256::digest(pem.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = include_str!("../../src/simulator/keys.pem");
    const RSA: Algorithm = Algorithm::RsaPkcs1Sha256;

    #[test]
    fn what_one_half_signs_the_other_half_knows() {
        let key = SigningKey::read(RSA, PRIVATE).expect("a key");
        let signature = key.sign_text(b"message").expect("signed");
        let public = key.verifying();
        assert!(public.verify_text(b"message", &signature));
        assert!(!public.verify_text(b"messagf", &signature));
        assert!(!public.verify_text(b"message", "not base64!"));
        assert!(!public.verify_text(b"message", ""));
    }

    /// Of 1024 bits.
    const SHORT: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/AHACJn2MFqWu+SvBpnF4gn0I\n\
nTOvfB6Qq8/B0CBBbPrOQKmOrabRFqkLfi0YkuBakdccbhw1Ra7dQhRpyzPZKcGF\n\
dbbSa5DaTWQUvY4reS9x9N0F5PgSZ41mb1JbUYLf9mC4ZJ0JfxMFqU6VGFt/R5bE\n\
hzUeIiMhPgnnXNJz2wIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

    #[test]
    fn a_short_key_is_refused() {
        let refused = Key::read(RSA, Use::Verify, SHORT).err().expect("refused");
        assert!(refused.contains("2048 bits"), "{refused}");
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        for (kind, pem) in [
            (Use::Sign, "hunter2"),
            (Use::Verify, PRIVATE),
            (Use::Sign, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            (Use::Verify, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
        ] {
            let refused = Key::read(RSA, kind, pem).err().expect("refused");
            assert!(!refused.contains("hunter2") && !refused.contains("AAAA"), "{refused}");
        }
    }
}
