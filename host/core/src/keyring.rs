//! The host's own keys: one master key, or several while one replaces another.
//!
//! From each master key, HKDF-SHA256 derives a key per purpose: hashing API keys, sealing
//! sensitive values at rest, authenticating compiled code. The first master key writes, all
//! of them read; so a new one is put in front and the old one stays until nothing needs it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use aes_gcm::aead::{Aead, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};

use crate::id::IdGenerator;

/// One master key and what is derived from it.
struct Master {
    name: String,
    api_keys: [u8; 32],
    /// Ready to be used: making it from its key takes as long as sealing a little.
    sealing: Aes256Gcm,
    compiled_code: [u8; 32],
    settings: [u8; 32],
}

/// All master keys, the current one first.
pub struct Keyring(Vec<Master>);

/// Why a keyring cannot be had or a value cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// A configured key is not 64 hexadecimal digits.
    #[error("encryption.keys: each entry must be 64 hexadecimal digits (32 bytes)")]
    Malformed,
    /// The key file cannot be read or written.
    #[error("the key file {path}: {cause}")]
    File {
        /// Where it was looked for.
        path: String,
        /// What went wrong.
        cause: std::io::Error,
    },
    /// Somebody else could read it, or put another key in its place.
    #[error(
        "others than its owner can read or replace the key file {0}: chmod 600 it, and its folder 700"
    )]
    Exposed(String),
    /// A sealed value does not open.
    #[error("a sealed value does not open: another key, or it was moved or altered")]
    Sealed,
}

impl Keyring {
    /// From configured keys, each 64 hexadecimal digits, the current one first.
    ///
    /// # Errors
    /// [`KeyringError::Malformed`].
    pub fn from_hex(keys: &[String]) -> Result<Self, KeyringError> {
        let masters: Option<Vec<Master>> = keys
            .iter()
            .map(|key| {
                let bytes: [u8; 32] = hex::decode(key.trim()).ok()?.try_into().ok()?;
                Some(Master::new(&bytes))
            })
            .collect();
        masters.filter(|list| !list.is_empty()).map(Self).ok_or(KeyringError::Malformed)
    }

    /// From a file beside the data, which is made on first use and readable by its owner only.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds something else.
    pub fn from_file(path: &Path, ids: &IdGenerator) -> Result<Self, KeyringError> {
        let fail = |cause| KeyringError::File { path: path.display().to_string(), cause };
        let is_writable = |path: &Path| is_open_to(path, 0o022);
        let is_exposed = is_writable(path)
            || is_readable_by_others(path)
            || path.parent().is_some_and(is_writable);
        if path.exists() && is_exposed {
            return Err(KeyringError::Exposed(path.display().to_string()));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_hex(&text.lines().map(str::to_owned).collect::<Vec<_>>()),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                let key = hex::encode(ids.bytes::<32>());
                write_private(path, key.as_bytes()).map_err(fail)?;
                Self::from_hex(&[key])
            }
            Err(cause) => Err(fail(cause)),
        }
    }

    /// A name for the current master key that gives nothing away; the database remembers it.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.0[0].name
    }

    /// Whether one of the master keys has this name.
    #[must_use]
    pub fn holds(&self, fingerprint: &str) -> bool {
        self.0.iter().any(|master| master.name == fingerprint)
    }

    /// The keyed hash under which a new API key is stored.
    #[must_use]
    pub fn hash_api_key(&self, secret: &str) -> String {
        hex::encode(hmac(&self.0[0].api_keys, secret.as_bytes()))
    }

    /// The hashes under which this API key may have been stored, current master key first.
    pub fn api_key_hashes(&self, secret: &str) -> impl Iterator<Item = String> {
        self.0.iter().map(move |master| hex::encode(hmac(&master.api_keys, secret.as_bytes())))
    }

    /// Encrypts a value that belongs to `place` (table, column and row): it opens nowhere else.
    ///
    /// # Errors
    /// The cipher refuses, which it does for absurd lengths only.
    pub fn seal(
        &self,
        ids: &IdGenerator,
        place: &str,
        value: &[u8],
    ) -> Result<String, KeyringError> {
        let master = &self.0[0];
        let nonce = ids.bytes::<12>();
        let sealed = master
            .sealing
            .encrypt(&Nonce::from(nonce), Payload { msg: value, aad: place.as_bytes() })
            .map_err(|_| KeyringError::Sealed)?;
        let body = [nonce.as_slice(), &sealed].concat();
        Ok(format!("s1.{}.{}", master.name, BASE64.encode(body)))
    }

    /// Decrypts what [`Keyring::seal`] made for the same place.
    ///
    /// # Errors
    /// [`KeyringError::Sealed`].
    pub fn open(&self, place: &str, sealed: &str) -> Result<Vec<u8>, KeyringError> {
        let mut parts = sealed.splitn(3, '.');
        let (Some("s1"), Some(name), Some(body)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyringError::Sealed);
        };
        let master =
            self.0.iter().find(|master| master.name == name).ok_or(KeyringError::Sealed)?;
        let body = BASE64.decode(body).map_err(|_| KeyringError::Sealed)?;
        let (nonce, cipher) = body.split_first_chunk::<12>().ok_or(KeyringError::Sealed)?;
        master
            .sealing
            .decrypt(&Nonce::from(*nonce), Payload { msg: cipher, aad: place.as_bytes() })
            .map_err(|_| KeyringError::Sealed)
    }

    /// A key for a guest's named secret use: HMAC-SHA256 under that secret.
    #[must_use]
    pub fn sign(secret: &[u8], message: &[u8]) -> [u8; 32] {
        hmac(secret, message)
    }

    /// Tells whether settings that may be secret are what they were, and no more about them: under
    /// every master key, the current one first. There is at least one.
    pub fn settings_tags(&self, settings: &str) -> impl Iterator<Item = String> {
        let tag = |master: &Master| hmac(&master.settings, settings.as_bytes());
        self.0.iter().map(move |master| hex::encode(&tag(master)[..16]))
    }

    /// Whether a sealed value was sealed with the current master key.
    #[must_use]
    pub fn is_current(&self, sealed: &str) -> bool {
        sealed.split('.').nth(1) == Some(self.fingerprint())
    }

    /// Authenticates compiled code and what it was compiled from and for, so that only files this
    /// host wrote are ever loaded, each in its own place. `name` holds no NUL.
    #[must_use]
    pub fn compiled_code_tag(&self, name: &str, code: &[u8]) -> [u8; 32] {
        hmac_of(&self.0[0].compiled_code, &[name.as_bytes(), b"\0", code])
    }
}

impl Master {
    fn new(key: &[u8; 32]) -> Self {
        let derive = |purpose: &[u8]| {
            let mut derived = [0; 32];
            // 32 bytes is far below HKDF's limit of 255 blocks, so this cannot fail.
            let _ = Hkdf::<Sha256>::new(None, key).expand(purpose, &mut derived);
            derived
        };
        let name = hex::encode(&Sha256::digest(derive(b"railhead/name"))[..4]);
        Self {
            name,
            api_keys: derive(b"railhead/api-keys"),
            sealing: Aes256Gcm::new(&derive(b"railhead/sealing").into()),
            compiled_code: derive(b"railhead/compiled-code"),
            settings: derive(b"railhead/settings"),
        }
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    hmac_of(key, &[message])
}

/// Over the parts one after the other.
fn hmac_of(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes a key of any length, so the error case does not exist.
    let Ok(mut mac) = <Hmac<Sha256> as hmac::digest::KeyInit>::new_from_slice(key) else {
        return [0; 32];
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Whether anybody on this machine can read a file.
#[must_use]
pub fn is_readable_by_others(path: &Path) -> bool {
    is_open_to(path, 0o004)
}

/// Whether a file's or a folder's mode has one of these bits. What cannot be looked at has none.
fn is_open_to(path: &Path, bits: u32) -> bool {
    std::fs::metadata(path).is_ok_and(|known| known.permissions().mode() & bits != 0)
}

/// Writes a file that only its owner can read; refuses to replace one.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn keys() -> (String, String, IdGenerator) {
        let ids = IdGenerator::seeded(Clock::System, 1);
        (hex::encode(ids.bytes::<32>()), hex::encode(ids.bytes::<32>()), ids)
    }

    #[test]
    fn a_sealed_value_opens_in_its_place_only() {
        let (old, new, ids) = keys();
        let before = Keyring::from_hex(std::slice::from_ref(&old)).expect("valid");
        let sealed = before.seal(&ids, "beneficiaries/bvn/c1", b"22212345678").expect("sealed");
        assert!(!sealed.contains("22212345678"));

        let rotated = Keyring::from_hex(&[new.clone(), old]).expect("valid");
        assert_eq!(rotated.open("beneficiaries/bvn/c1", &sealed).expect("opens"), b"22212345678");
        assert!(rotated.open("beneficiaries/bvn/c2", &sealed).is_err());

        let stranger = Keyring::from_hex(&[new]).expect("valid");
        assert!(stranger.open("beneficiaries/bvn/c1", &sealed).is_err());
        for garbage in ["", "s1", "s1.x.y", "s2.a.b", &sealed[..sealed.len() - 2]] {
            assert!(rotated.open("beneficiaries/bvn/c1", garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn api_keys_are_found_under_every_master_key() {
        let (old, new, _) = keys();
        let before = Keyring::from_hex(std::slice::from_ref(&old)).expect("valid");
        let stored = before.hash_api_key("sk_test_abc");
        let rotated = Keyring::from_hex(&[new, old]).expect("valid");
        assert!(rotated.api_key_hashes("sk_test_abc").any(|hash| hash == stored));
        assert!(!rotated.api_key_hashes("sk_test_abd").any(|hash| hash == stored));
        assert!(Keyring::from_hex(&[]).is_err() && Keyring::from_hex(&["zz".into()]).is_err());
    }
}
