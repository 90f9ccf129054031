//! A rail's keys: signing what leaves, checking who speaks, and encrypting secrets for the network
//! alone. Components never see them.

use std::sync::Arc;

use serde::Deserialize;

mod reading;
mod sealing;
mod signing;
mod simulated;

pub use sealing::SealingKey;
pub use signing::{SigningKey, VerifyingKey};
pub use simulated::{SandboxKeys, SimulatedKey};

/// How a key signs or encrypts. RSA is RFC 8017, with 2048 bits at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Algorithm {
    /// Signing: HMAC with SHA-256 (RFC 2104), of a secret that both sides have.
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
    /// Signing: HMAC with SHA-512.
    #[serde(rename = "hmac-sha512")]
    HmacSha512,
    /// Signing: RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "rsa-pkcs1-sha256")]
    RsaPkcs1Sha256,
    /// Signing: RSASSA-PSS with SHA-256, also for its mask, and a salt as long.
    #[serde(rename = "rsa-pss-sha256")]
    RsaPssSha256,
    /// Signing: ECDSA on P-256 with SHA-256 (FIPS 186), as DER.
    #[serde(rename = "ecdsa-p256-sha256")]
    EcdsaP256Sha256,
    /// Signing: Ed25519 (RFC 8032).
    #[serde(rename = "ed25519")]
    Ed25519,
    /// Encrypting: RSAES-PKCS1-v1_5.
    #[serde(rename = "rsa-pkcs1")]
    RsaPkcs1,
    /// Encrypting: RSAES-OAEP with SHA-256, also for its mask.
    #[serde(rename = "rsa-oaep-sha256")]
    RsaOaepSha256,
}

impl Algorithm {
    /// Those that sign.
    pub const SIGNING: [Self; 6] = [
        Self::HmacSha256,
        Self::HmacSha512,
        Self::RsaPkcs1Sha256,
        Self::RsaPssSha256,
        Self::EcdsaP256Sha256,
        Self::Ed25519,
    ];

    /// Whether a key of this algorithm can be used so.
    #[must_use]
    pub fn is_for(self, half: Use) -> bool {
        Self::SIGNING.contains(&self) == (half != Use::Seal)
    }
}

/// Which half of a key pair a rail is configured with. A secret that both sides have is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// The private one: the host signs what the rail sends.
    Sign,
    /// The public one: the host checks what the network sends.
    Verify,
    /// The public one: the host encrypts what only the network may read.
    Seal,
}

/// How long an RSA key has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Bits {
    /// Long enough for anything.
    #[default]
    #[serde(rename = "2048")]
    Long,
    /// What some networks still have for what is encrypted for them, inside TLS.
    #[serde(rename = "1024")]
    Short,
}

impl Bits {
    const fn modulus_bytes_min(self) -> usize {
        match self {
            Self::Long => 256,
            Self::Short => 128,
        }
    }

    /// What such a key takes at least, as PKCS#1 in DER.
    const fn bytes_min(self) -> usize {
        match self {
            Self::Long => 266,
            Self::Short => 138,
        }
    }
}

/// A rail's key, by its use.
pub enum Key {
    /// See [`Use::Sign`].
    Sign(Arc<SigningKey>),
    /// See [`Use::Verify`].
    Verify(VerifyingKey),
    /// See [`Use::Seal`].
    Seal(SealingKey),
}

impl Key {
    /// Reads a key. In PEM: PKCS#8 for a private one, SubjectPublicKeyInfo for a public one, and for
    /// one to encrypt under a certificate does as well. The secret of an HMAC is a text.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, kind: Use, text: &str) -> Result<Self, String> {
        Self::read_of((algorithm, kind, Bits::Long), text)
    }

    /// The same, of a key to encrypt under that may be shorter.
    ///
    /// # Errors
    /// As of [`Key::read`].
    pub fn read_of(
        (algorithm, kind, bits): (Algorithm, Use, Bits),
        text: &str,
    ) -> Result<Self, String> {
        match kind {
            _ if !algorithm.is_for(kind) => Err("its algorithm is for another use".to_owned()),
            Use::Sign => Ok(Self::Sign(Arc::new(SigningKey::read(algorithm, text)?))),
            Use::Verify => VerifyingKey::read(algorithm, text).map(Self::Verify),
            Use::Seal => SealingKey::read(algorithm, bits, text).map(Self::Seal),
        }
    }

    /// Whether it is either half of this pair.
    #[must_use]
    pub fn is_half_of(&self, pair: &SandboxKeys) -> bool {
        match self {
            Self::Sign(key) => pair.has(key.identity()),
            Self::Verify(key) => pair.has(key.identity()),
            Self::Seal(key) => pair.has(key.identity()),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
