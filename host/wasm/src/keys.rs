//! A rail's keys: signing what leaves, checking who speaks, and encrypting secrets for the network
//! alone. Components never see them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use getrandom::SysRng;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{self, KeyPair as _, UnparsedPublicKey};
use rsa::pkcs1::DecodeRsaPublicKey as _;
use rsa::pkcs8::DecodePrivateKey as _;
use rsa::traits::PaddingScheme as _;
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey, RsaPublicKey};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use spki::SubjectPublicKeyInfoRef;

/// How a key signs or encrypts: RFC 8017, with 2048 bits at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Algorithm {
    /// Signing: RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "rsa-pkcs1-sha256")]
    RsaPkcs1Sha256,
    /// Encrypting: RSAES-PKCS1-v1_5.
    #[serde(rename = "rsa-pkcs1")]
    RsaPkcs1,
    /// Encrypting: RSAES-OAEP with SHA-256, also for its mask.
    #[serde(rename = "rsa-oaep-sha256")]
    RsaOaepSha256,
}

impl Algorithm {
    /// Whether a key of this algorithm can be used so.
    #[must_use]
    pub fn is_for(self, half: Use) -> bool {
        (self == Self::RsaPkcs1Sha256) == (half != Use::Seal)
    }
}

/// Which half of a key pair a rail is configured with.
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
}

/// A public key that secrets are encrypted under.
pub struct SealingKey {
    algorithm: Algorithm,
    key: RsaPublicKey,
    /// PKCS#1, as DER.
    der: Vec<u8>,
}

/// Both halves of a pair, for networks that are simulated.
pub struct KeyPair {
    signing: Arc<SigningKey>,
    opening: RsaPrivateKey,
}

/// The other half of a rail's key, as a simulated network has it.
#[derive(Clone)]
pub struct SimulatedKey {
    /// What the rail declares.
    pub algorithm: Algorithm,
    /// The pair.
    pub pair: Arc<KeyPair>,
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
    /// Reads a key in PEM: PKCS#8 for a private one, SubjectPublicKeyInfo for a public one, and for
    /// one to encrypt under a certificate does as well.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(algorithm: Algorithm, kind: Use, pem: &str) -> Result<Self, String> {
        match kind {
            _ if !algorithm.is_for(kind) => Err("its algorithm is for another use".to_owned()),
            Use::Sign => Ok(Self::Sign(Arc::new(SigningKey::read(pem)?))),
            Use::Verify => VerifyingKey::read(pem).map(Self::Verify),
            Use::Seal => SealingKey::read(algorithm, pem).map(Self::Seal),
        }
    }

    /// Whether it is either half of this pair.
    #[must_use]
    pub fn is_half_of(&self, pair: &SigningKey) -> bool {
        let other = pair.pair.public_key().as_ref();
        match self {
            Self::Sign(key) => key.pair.public_key().as_ref() == other,
            Self::Verify(key) => key.key == other,
            Self::Seal(key) => key.der == other,
        }
    }
}

impl SigningKey {
    /// Reads a private key: PKCS#8 in PEM.
    ///
    /// # Errors
    /// It is none, in words that hold nothing of it.
    pub fn read(pem: &str) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "it must be PEM that begins with BEGIN PRIVATE KEY (PKCS#8)")?;
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der())
            .map_err(|cause| format!("it is not an RSA key of 2048 bits at least: {cause}"))?;
        Ok(Self { pair, digest: hex::encode(Sha256::digest(pem.trim())) })
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
        VerifyingKey { key: self.pair.public_key().as_ref().to_vec() }
    }
}

impl VerifyingKey {
    fn read(pem: &str) -> Result<Self, String> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "it must be PEM that begins with BEGIN PUBLIC KEY")?;
        rsa_key(&der).map(|key| Self { key })
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

impl SealingKey {
    fn read(algorithm: Algorithm, pem: &str) -> Result<Self, String> {
        let public = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes());
        let info = match public {
            Ok(info) => info,
            Err(_) => {
                let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(
                    |_| "it must be PEM that begins with BEGIN PUBLIC KEY or BEGIN CERTIFICATE",
                )?;
                let read = webpki::EndEntityCert::try_from(&certificate);
                let read = read.map_err(|cause| format!("it is not a certificate: {cause}"))?;
                read.subject_public_key_info()
            }
        };
        let der = rsa_key(&info)?;
        let key = RsaPublicKey::from_pkcs1_der(&der);
        let key = key.map_err(|cause| format!("it is not an RSA key: {cause}"))?;
        Ok(Self { algorithm, key, der })
    }

    /// A secret in base64, for the network alone. Never twice the same.
    ///
    /// # Errors
    /// It is too long, or there is no randomness.
    pub fn seal(&self, secret: &[u8]) -> Result<String, String> {
        let sealed = match self.algorithm {
            Algorithm::RsaOaepSha256 => {
                Oaep::<Sha256>::new().encrypt(&mut SysRng, &self.key, secret)
            }
            _ => Pkcs1v15Encrypt.encrypt(&mut SysRng, &self.key, secret),
        };
        sealed
            .map(|sealed| BASE64.encode(sealed))
            .map_err(|cause| format!("it cannot be encrypted: {cause}"))
    }
}

impl KeyPair {
    /// Reads the private half: PKCS#8 in PEM.
    ///
    /// # Errors
    /// It is none.
    pub fn read(pem: &str) -> Result<Self, String> {
        let opening = RsaPrivateKey::from_pkcs8_pem(pem).map_err(|cause| cause.to_string())?;
        Ok(Self { signing: Arc::new(SigningKey::read(pem)?), opening })
    }

    /// The half that signs.
    #[must_use]
    pub fn signing(&self) -> Arc<SigningKey> {
        Arc::clone(&self.signing)
    }

    /// The half that secrets are encrypted under.
    #[must_use]
    pub fn sealing(&self, algorithm: Algorithm) -> SealingKey {
        let der = self.signing.pair.public_key().as_ref().to_vec();
        SealingKey { algorithm, key: self.opening.to_public_key(), der }
    }
}

impl SimulatedKey {
    /// What was encrypted under it, if it was.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let sealed = BASE64.decode(sealed).ok()?;
        let key = &self.pair.opening;
        match self.algorithm {
            Algorithm::RsaOaepSha256 => key.decrypt(Oaep::<Sha256>::new(), &sealed).ok(),
            Algorithm::RsaPkcs1 => key.decrypt(Pkcs1v15Encrypt, &sealed).ok(),
            Algorithm::RsaPkcs1Sha256 => None,
        }
    }
}

/// The RSA key of 2048 bits at least in a public key, as PKCS#1 in DER.
fn rsa_key(der: &[u8]) -> Result<Vec<u8>, String> {
    let info = SubjectPublicKeyInfoRef::try_from(der)
        .map_err(|cause| format!("it is not a public key: {cause}"))?;
    let rsa = spki::ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
    if info.algorithm.oid != rsa {
        return Err("it is not an RSA key".to_owned());
    }
    let key = info.subject_public_key.as_bytes().ok_or("it is not a public key")?;
    if key.len() < RSA_2048_BYTES {
        return Err("it is not an RSA key of 2048 bits at least".to_owned());
    }
    Ok(key.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = include_str!("../../src/simulator/keys.pem");
    const RSA: Algorithm = Algorithm::RsaPkcs1Sha256;

    #[test]
    fn what_one_half_signs_the_other_half_knows() {
        let key = SigningKey::read(PRIVATE).expect("a key");
        let signature = key.sign_text(b"message").expect("signed");
        let public = key.verifying();
        assert!(public.verify_text(b"message", &signature));
        assert!(!public.verify_text(b"messagf", &signature));
        assert!(!public.verify_text(b"message", "not base64!"));
        assert!(!public.verify_text(b"message", ""));
    }

    #[test]
    fn what_is_sealed_is_read_by_the_other_half_alone() {
        let pair = Arc::new(KeyPair::read(PRIVATE).expect("a pair"));
        for algorithm in [Algorithm::RsaPkcs1, Algorithm::RsaOaepSha256] {
            let network = SimulatedKey { algorithm, pair: Arc::clone(&pair) };
            let key = pair.sealing(algorithm);
            let sealed = key.seal(b"hunter2").expect("sealed");
            assert_eq!(network.open(&sealed).as_deref(), Some(b"hunter2".as_slice()));
            assert_ne!(key.seal(b"hunter2").expect("sealed"), sealed, "never twice the same");
            assert_eq!(network.open(&sealed[..sealed.len() - 4]), None);
            assert!(key.seal(&[0; 300]).is_err(), "it has no room for so much");
            let other = SimulatedKey { algorithm: RSA, pair: Arc::clone(&pair) };
            assert_eq!(other.open(&sealed), None);
        }
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
            (Use::Seal, PRIVATE),
            (Use::Seal, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ] {
            let algorithm = if kind == Use::Seal { Algorithm::RsaPkcs1 } else { RSA };
            let refused = Key::read(algorithm, kind, pem).err().expect("refused");
            assert!(!refused.contains("hunter2") && !refused.contains("AAAA"), "{refused}");
        }
    }
}
