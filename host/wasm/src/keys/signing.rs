//! Keys that sign, and those that signatures are checked by.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaEncoding, UnparsedPublicKey,
    VerificationAlgorithm,
};
use ring::{hmac, rand};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};

use super::reading::{self, ED25519, ELLIPTIC};
use super::{Algorithm, Bits};

/// The shortest secret of an HMAC, in bytes.
const SECRET_MIN: usize = 16;

/// A key that signs.
pub struct SigningKey {
    pair: Pair,
    digest: String,
}

enum Pair {
    Secret(Secret),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding, &'static dyn VerificationAlgorithm),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// What both sides of an HMAC have.
#[derive(Clone)]
struct Secret {
    key: hmac::Key,
    text: String,
}

/// A key that signatures are checked by.
pub struct VerifyingKey(By);

enum By {
    Secret(Secret),
    /// RSA as PKCS#1 in DER, a point that is not compressed, or an Ed25519 key.
    Public(&'static dyn VerificationAlgorithm, Vec<u8>),
}

impl Secret {
    fn read(algorithm: Algorithm, text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < SECRET_MIN {
            return Err(format!("it must have {SECRET_MIN} characters at least"));
        }
        let kind = match algorithm {
            Algorithm::HmacSha512 => hmac::HMAC_SHA512,
            _ => hmac::HMAC_SHA256,
        };
        Ok(Self { key: hmac::Key::new(kind, text.as_bytes()), text: text.to_owned() })
    }
}

impl SigningKey {
    /// Reads a private key, PKCS#8 in PEM, or the secret of an HMAC.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, text: &str) -> Result<Self, String> {
        let pkcs8 = || {
            PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
                "it must be PEM that begins with BEGIN PRIVATE KEY (PKCS#8)".to_owned()
            })
        };
        let rsa = |encoding: &'static dyn RsaEncoding,
                   check: &'static dyn VerificationAlgorithm| {
            let pair = RsaKeyPair::from_pkcs8(pkcs8()?.secret_pkcs8_der())
                .map_err(|cause| format!("it is not an RSA key of 2048 bits at least: {cause}"))?;
            Ok::<_, String>(Pair::Rsa(pair, encoding, check))
        };
        let pair = match algorithm {
            Algorithm::HmacSha256 | Algorithm::HmacSha512 => {
                Pair::Secret(Secret::read(algorithm, text)?)
            }
            Algorithm::RsaPkcs1Sha256 => {
                rsa(&signature::RSA_PKCS1_SHA256, &signature::RSA_PKCS1_2048_8192_SHA256)?
            }
            Algorithm::RsaPssSha256 => {
                rsa(&signature::RSA_PSS_SHA256, &signature::RSA_PSS_2048_8192_SHA256)?
            }
            Algorithm::EcdsaP256Sha256 => {
                let random = rand::SystemRandom::new();
                let kind = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
                EcdsaKeyPair::from_pkcs8(kind, pkcs8()?.secret_pkcs8_der(), &random)
                    .map(Pair::Ecdsa)
                    .map_err(|cause| format!("it is not a key of P-256: {cause}"))?
            }
            // The public half, which newer files repeat, may be missing.
            Algorithm::Ed25519 => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8()?.secret_pkcs8_der())
                    .map(Pair::Ed25519)
                    .map_err(|cause| format!("it is not an Ed25519 key: {cause}"))?
            }
            Algorithm::RsaPkcs1 | Algorithm::RsaOaepSha256 => {
                return Err("its algorithm encrypts".to_owned());
            }
        };
        Ok(Self { pair, digest: hex::encode(Sha256::digest(text.trim())) })
    }

    /// Which key it is, as text that gives nothing of it away.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The signature of a message.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        let cannot = |_| "it cannot be signed".to_owned();
        match &self.pair {
            Pair::Secret(secret) => Ok(hmac::sign(&secret.key, message).as_ref().to_vec()),
            Pair::Rsa(pair, encoding, _) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message, &mut signature).map_err(cannot)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).map_err(cannot)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    /// The same in base64, as headers have it.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn sign_text(&self, message: &[u8]) -> Result<String, String> {
        Ok(BASE64.encode(self.sign(message)?))
    }

    /// What its signatures are checked by.
    #[must_use]
    pub fn verifying(&self) -> VerifyingKey {
        VerifyingKey(match &self.pair {
            Pair::Secret(secret) => By::Secret(secret.clone()),
            Pair::Rsa(pair, _, check) => By::Public(*check, pair.public_key().as_ref().to_vec()),
            Pair::Ecdsa(pair) => {
                let check = &signature::ECDSA_P256_SHA256_ASN1;
                By::Public(check, pair.public_key().as_ref().to_vec())
            }
            Pair::Ed25519(pair) => {
                By::Public(&signature::ED25519, pair.public_key().as_ref().to_vec())
            }
        })
    }

    /// What it has in common with its other half, and with no other key.
    pub(super) fn identity(&self) -> &[u8] {
        match &self.pair {
            Pair::Secret(secret) => secret.text.as_bytes(),
            Pair::Rsa(pair, ..) => pair.public_key().as_ref(),
            Pair::Ecdsa(pair) => pair.public_key().as_ref(),
            Pair::Ed25519(pair) => pair.public_key().as_ref(),
        }
    }
}

impl VerifyingKey {
    /// Reads a public key in PEM, or the secret of an HMAC.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, text: &str) -> Result<Self, String> {
        let of = |kind| reading::inner(&reading::public(text)?, kind);
        let rsa = || reading::rsa(&reading::public(text)?, Bits::Long);
        Ok(Self(match algorithm {
            Algorithm::HmacSha256 | Algorithm::HmacSha512 => {
                By::Secret(Secret::read(algorithm, text)?)
            }
            Algorithm::RsaPkcs1Sha256 => By::Public(&signature::RSA_PKCS1_2048_8192_SHA256, rsa()?),
            Algorithm::RsaPssSha256 => By::Public(&signature::RSA_PSS_2048_8192_SHA256, rsa()?),
            Algorithm::EcdsaP256Sha256 => {
                By::Public(&signature::ECDSA_P256_SHA256_ASN1, of(ELLIPTIC)?)
            }
            Algorithm::Ed25519 => By::Public(&signature::ED25519, of(ED25519)?),
            Algorithm::RsaPkcs1 | Algorithm::RsaOaepSha256 => {
                return Err("its algorithm encrypts".to_owned());
            }
        }))
    }

    /// Whether a signature of a message was made with the other half. Compared in constant time
    /// where that matters.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            By::Secret(secret) => hmac::verify(&secret.key, message, signature).is_ok(),
            By::Public(kind, key) => {
                UnparsedPublicKey::new(*kind, key).verify(message, signature).is_ok()
            }
        }
    }

    pub(super) fn identity(&self) -> &[u8] {
        match &self.0 {
            By::Secret(secret) => secret.text.as_bytes(),
            By::Public(_, key) => key,
        }
    }
}
