//! Both halves of keys, for networks that are simulated.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use rsa::pkcs8::DecodePrivateKey as _;
use rsa::{Oaep, Pkcs1v15Encrypt, RsaPrivateKey};
use sha2::Sha256;

use super::{Algorithm, SealingKey, SigningKey};

/// Pairs of every algorithm.
pub struct SandboxKeys {
    signing: BTreeMap<Algorithm, Arc<SigningKey>>,
    opening: RsaPrivateKey,
}

/// The other half of a rail's key, as a simulated network has it.
#[derive(Clone)]
pub struct SimulatedKey {
    /// What the rail declares.
    pub algorithm: Algorithm,
    /// The pair.
    pub pair: Arc<SandboxKeys>,
}

impl SandboxKeys {
    /// Reads private keys, PKCS#8 in PEM, of RSA, P-256 and Ed25519 in this order, and makes a
    /// secret of the last.
    ///
    /// # Errors
    /// They are not those.
    pub fn read(pem: &str) -> Result<Self, String> {
        let begins = pem.match_indices("-----BEGIN").map(|(at, _)| at).collect::<Vec<_>>();
        let &[first, second, third] = &begins[..] else {
            return Err("they are not three".to_owned());
        };
        let (rsa, elliptic, edwards) = (&pem[first..second], &pem[second..third], &pem[third..]);
        let of = |algorithm| {
            let text = match algorithm {
                Algorithm::EcdsaP256Sha256 => elliptic,
                Algorithm::HmacSha256 | Algorithm::HmacSha512 | Algorithm::Ed25519 => edwards,
                _ => rsa,
            };
            Ok::<_, String>((algorithm, Arc::new(SigningKey::read(algorithm, text)?)))
        };
        let signing = Algorithm::SIGNING.into_iter().map(of).collect::<Result<_, _>>()?;
        let opening = RsaPrivateKey::from_pkcs8_pem(rsa).map_err(|cause| cause.to_string())?;
        Ok(Self { signing, opening })
    }

    /// The half that signs.
    ///
    /// # Errors
    /// The algorithm encrypts.
    pub fn signing(&self, algorithm: Algorithm) -> Result<Arc<SigningKey>, String> {
        self.signing.get(&algorithm).map(Arc::clone).ok_or("its algorithm encrypts".to_owned())
    }

    /// The half that secrets are encrypted under.
    #[must_use]
    pub fn sealing(&self, algorithm: Algorithm) -> SealingKey {
        let der = self.signing[&Algorithm::RsaPkcs1Sha256].identity().to_vec();
        SealingKey { algorithm, key: self.opening.to_public_key(), der }
    }

    /// Whether one of the pairs is this.
    pub(super) fn has(&self, identity: &[u8]) -> bool {
        self.signing.values().any(|key| key.identity() == identity)
    }
}

impl SimulatedKey {
    /// The signature of a message.
    ///
    /// # Errors
    /// It is a key that encrypts.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        self.pair.signing(self.algorithm)?.sign(message)
    }

    /// Whether a signature of a message was made with it.
    ///
    /// # Errors
    /// It is a key that encrypts.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<bool, String> {
        Ok(self.pair.signing(self.algorithm)?.verifying().verify(message, signature))
    }

    /// What was encrypted under it, if it was.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let sealed = BASE64.decode(sealed).ok()?;
        let key = &self.pair.opening;
        match self.algorithm {
            Algorithm::RsaOaepSha256 => key.decrypt(Oaep::<Sha256>::new(), &sealed).ok(),
            Algorithm::RsaPkcs1 => key.decrypt(Pkcs1v15Encrypt, &sealed).ok(),
            _ => None,
        }
    }
}
