//! Keys that secrets are encrypted under.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use getrandom::SysRng;
use rsa::pkcs1::DecodeRsaPublicKey as _;
use rsa::traits::{PaddingScheme as _, PublicKeyParts as _};
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPublicKey};
use sha2::Sha256;

use super::reading;
use super::{Algorithm, Bits};

/// A public key that secrets are encrypted under.
pub struct SealingKey {
    pub(super) algorithm: Algorithm,
    pub(super) key: RsaPublicKey,
    /// PKCS#1, as DER.
    pub(super) der: Vec<u8>,
}

impl SealingKey {
    pub(super) fn read(algorithm: Algorithm, bits: Bits, pem: &str) -> Result<Self, String> {
        let der = reading::rsa(&reading::public_or_certified(pem)?, bits)?;
        let key = RsaPublicKey::from_pkcs1_der(&der);
        let key = key.map_err(|cause| format!("it is not an RSA key: {cause}"))?;
        // An exponent may be long, too.
        if key.size() < bits.modulus_bytes_min() {
            return Err("its modulus is too short".to_owned());
        }
        Ok(Self { algorithm, key, der })
    }

    pub(super) fn identity(&self) -> &[u8] {
        &self.der
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
