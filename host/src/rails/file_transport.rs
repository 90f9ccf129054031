//! Where the files of a route go and where they come from, if the host carries them itself.
//!
//! A rail makes files and reads them. How they travel is the rail's affair too, unless the operator
//! says otherwise: with `files.deliver_to` the host delivers them, and with
//! `files.fetch_from.<feed>` it fetches what lies ready. The scheme of the address decides how.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use russh::keys::ssh_key::Fingerprint;
use russh::keys::{Algorithm, PrivateKey, PublicKey, decode_secret_key};
use rustls::ClientConfig;
use secrecy::SecretString;

use crate::config::Config;
use crate::env::Env;
use crate::wasm::keys::{self, SigningKey};

use super::bucket::{AccessKey, Address, Bucket};
use super::declaration::Declaration;
use super::methods::Via;
use super::registry::Rail;
use super::route::Route;

/// What all of these settings begin with.
pub(super) const PREFIX: &str = "files.";
/// What is configured for a route whose files the host carries itself.
pub(super) const CARRIED: [&str; 5] =
    ["sftp_host_key", "sftp_key", "sftp_password", "s3_access_key", "s3_secret_key"];
const DELIVER_TO: &str = "files.deliver_to";
const FETCH_FROM: &str = "files.fetch_from.";
/// Longest address that is taken.
const ADDRESS_MAX: usize = 1024;
/// Where SSH is spoken.
const SSH_PORT: u16 = 22;

/// What the host carries by itself over a route.
#[derive(Default)]
pub struct FileTransport {
    deliver_to: Option<Place>,
    feeds: BTreeMap<String, Place>,
    /// Feeds that the rail declares.
    declared: usize,
}

/// A folder for files, somewhere.
pub struct Place {
    /// As the operator wrote it.
    pub address: String,
    way: Result<Way, String>,
}

/// How a place is reached.
pub enum Way {
    /// On this machine.
    Folder(Folder),
    /// Over SSH.
    Sftp(Box<Server>),
    /// In an object store.
    Bucket(Box<Bucket>),
}

/// A folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// A folder that the configuration names.
    pub root: PathBuf,
    /// The way from there, name by name.
    pub below: Vec<String>,
}

/// A folder on a server that speaks SFTP.
pub struct Server {
    /// Who logs in.
    pub user: String,
    /// Name or address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Absolute, or below where the server has put the user.
    pub folder: String,
    /// Keys of which the server must have one.
    pub keys: Vec<HostKey>,
    /// With what.
    pub login: Login,
    /// Addresses that are not public and may be reached all the same.
    pub allowed: Vec<IpNet>,
}

/// What shows who logs in: the key first, where there are both.
#[derive(Default)]
pub struct Login {
    /// A private key.
    pub key: Option<LoginKey>,
    /// A password.
    pub password: Option<SecretString>,
}

/// A private key.
pub enum LoginKey {
    /// Ed25519 or ECDSA.
    Plain(Arc<PrivateKey>),
    /// RSA, of which the private half stays with the library that signs for rails, too.
    Rsa(PublicKey, Arc<SigningKey>),
}

/// The key of a server.
#[derive(Clone, Debug)]
pub enum HostKey {
    /// Its SHA-256.
    Fingerprint(Fingerprint),
    /// Itself.
    Key(PublicKey),
}

impl HostKey {
    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, key: &PublicKey) -> bool {
        match self {
            Self::Fingerprint(known) => key.fingerprint(known.algorithm()) == *known,
            Self::Key(known) => known.key_data() == key.key_data(),
        }
    }

    /// Its kind, where that is known.
    #[must_use]
    pub fn algorithm(&self) -> Option<Algorithm> {
        match self {
            Self::Fingerprint(_) => None,
            Self::Key(key) => Some(key.algorithm()),
        }
    }

    fn read(line: &str) -> Result<Self, String> {
        let none = |_| "must be SHA256:… or a public key as OpenSSH writes it".to_owned();
        match line.starts_with("SHA256:") {
            true => line.trim_end_matches('=').parse().map(Self::Fingerprint).map_err(none),
            false => PublicKey::from_openssh(line).map(Self::Key).map_err(none),
        }
    }
}

impl Place {
    /// How it is reached.
    ///
    /// # Errors
    /// It cannot be: what is missing.
    pub fn way(&self) -> Result<&Way, String> {
        self.way.as_ref().map_err(Clone::clone)
    }
}

impl FileTransport {
    /// What the operator has set for a live route that pays by file. A test key cannot reach the
    /// outside.
    pub(super) fn of(
        (route, declaration): (&Route, &Declaration),
        (configured, config): (&BTreeMap<String, String>, &Config),
        tls: &Arc<ClientConfig>,
    ) -> Self {
        let method = declaration.method(route.currency, &route.method);
        let by_file = method.is_some_and(|terms| terms.via == Via::Files);
        let Some(terms) = declaration.files.as_ref().filter(|_| by_file) else {
            return Self::default();
        };
        if route.env == Env::Test {
            return Self::default();
        }
        let place = |setting: &str| {
            let address = route.settings.get(setting)?.clone();
            let way = Way::read(&address, (&route.name, configured), (config, tls));
            let way = way.map_err(|why| format!("{setting}: {why}"));
            Some(Place { address, way })
        };
        let deliver_to = place(DELIVER_TO);
        let mut feeds = BTreeMap::new();
        for feed in &terms.feeds {
            let Some(mut place) = place(&format!("{FETCH_FROM}{feed}")) else { continue };
            if deliver_to.as_ref().is_some_and(|other| is_same(&other.address, &place.address)) {
                place.way = Err(format!("{FETCH_FROM}{feed} is where files are delivered to"));
            }
            feeds.insert(feed.clone(), place);
        }
        Self { deliver_to, feeds, declared: terms.feeds.len() }
    }

    /// Where its files go, if not to the rail.
    #[must_use]
    pub const fn deliver_to(&self) -> Option<&Place> {
        self.deliver_to.as_ref()
    }

    /// Where files of a feed lie, if the rail does not fetch them.
    #[must_use]
    pub fn feed(&self, name: &str) -> Option<&Place> {
        self.feeds.get(name)
    }

    /// Whether the rail makes no request over this route: what its requests need may be missing.
    pub(super) fn leaves_nothing_to(&self, rail: &Rail) -> bool {
        let is_whole = self.deliver_to.is_some() && self.feeds.len() == self.declared;
        is_whole && !rail.code.makes_payouts() && !rail.code.resolves_names()
    }

    /// What is missing before it can be used.
    pub(super) fn missing(&self) -> Option<String> {
        self.places().find_map(|(_, place)| place.way.as_ref().err().cloned())
    }

    /// Where it leads, by setting.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        self.places().map(|(setting, place)| (setting, place.address.clone())).collect()
    }

    fn places(&self) -> impl Iterator<Item = (String, &Place)> {
        let out = self.deliver_to.iter().map(|place| (DELIVER_TO.to_owned(), place));
        out.chain(self.feeds.iter().map(|(feed, place)| (format!("{FETCH_FROM}{feed}"), place)))
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// What is wrong with a setting about files as an operator gives it; nothing where it is of another
/// kind, or right as far as it can be seen from here.
#[must_use]
pub fn objection(declaration: &Declaration, name: &str, value: &str) -> Option<String> {
    let feed = name.strip_prefix(FETCH_FROM);
    if feed.is_none() && name != DELIVER_TO {
        return None;
    }
    let terms = declaration.files.as_ref();
    if terms.is_none_or(|terms| feed.is_some_and(|feed| !terms.feeds.iter().any(|it| it == feed))) {
        return Some("is not declared by the rail".to_owned());
    }
    let read = match value.strip_prefix("file://") {
        Some(path) => below(path).map(drop),
        None => match Address::read(value) {
            Some(bucket) => bucket.map(drop),
            None => remote(value).map(drop),
        },
    };
    read.err()
}

/// Whether a setting is one about files.
#[must_use]
pub fn is_about_files(name: &str) -> bool {
    name == DELIVER_TO || name.starts_with(FETCH_FROM)
}

impl Way {
    fn read(
        address: &str,
        (route, configured): (&str, &BTreeMap<String, String>),
        (config, tls): (&Config, &Arc<ClientConfig>),
    ) -> Result<Self, String> {
        if let Some(path) = address.strip_prefix("file://") {
            return folder(path, &config.files.folders).map(Self::Folder);
        }
        let given = |name: &str| configured.get(name).filter(|value| !value.is_empty());
        let at = |name: &str| format!("routes.{route}.{name}");
        let private = &config.egress.allow_private_networks;
        if let Some(bucket) = Address::read(address) {
            let needed = |name: &str| {
                given(name).cloned().ok_or_else(|| format!("{} is not configured", at(name)))
            };
            let (id, secret) = (needed("s3_access_key")?, needed("s3_secret_key")?.into());
            let bucket = bucket?.open(&AccessKey { id, secret }, (tls, private))?;
            return Ok(Self::Bucket(Box::new(bucket)));
        }
        let (user, host, port, folder) = remote(address)?;
        let lines = given("sftp_host_key").ok_or_else(|| {
            format!("{} is not configured: a server is known by its key", at("sftp_host_key"))
        })?;
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys: Result<Vec<_>, _> = lines.map(HostKey::read).collect();
        let keys = keys.map_err(|why| format!("{} {why}", at("sftp_host_key")))?;
        let key = given("sftp_key").map(|pem| LoginKey::read(pem)).transpose();
        let key = key.map_err(|why| format!("{} {why}", at("sftp_key")))?;
        let password = given("sftp_password").cloned().map(SecretString::from);
        if key.is_none() && password.is_none() {
            let (key, password) = (at("sftp_key"), at("sftp_password"));
            return Err(format!("{key} is not configured, and {password} neither"));
        }
        let (login, allowed) = (Login { key, password }, private.clone());
        Ok(Self::Sftp(Box::new(Server { user, host, port, folder, keys, login, allowed })))
    }
}

impl LoginKey {
    /// Reads a private key, in words that hold nothing of it where it is none.
    fn read(pem: &str) -> Result<Self, String> {
        let key = decode_secret_key(pem, None).map_err(|_| {
            "must be a private key as OpenSSH writes it, without a passphrase".to_owned()
        })?;
        if !key.algorithm().is_rsa() {
            return Ok(Self::Plain(Arc::new(key)));
        }
        let signing = SigningKey::read(keys::Algorithm::RsaPkcs1Sha256, pem)
            .map_err(|why| format!("is an RSA key; {why}; ssh-keygen -p -m PKCS8 converts one"))?;
        Ok(Self::Rsa(key.public_key().clone(), Arc::new(signing)))
    }
}

/// User, host, port and folder of an address of SFTP.
fn remote(address: &str) -> Result<(String, String, u16, String), String> {
    let shape =
        || "must be sftp://user@host/folder, s3://bucket/folder or file:///folder".to_owned();
    if !address.starts_with("sftp://") || address.len() > ADDRESS_MAX {
        return Err(shape());
    }
    let uri: http::Uri = address.parse().map_err(|_| shape())?;
    let authority = uri.authority().ok_or_else(shape)?.as_str();
    let (user, _) = authority.rsplit_once('@').ok_or_else(shape)?;
    if user.contains(':') {
        return Err("must hold no password: that stands in the configuration".to_owned());
    }
    let user = percent_decode_str(user).decode_utf8().map_err(|_| shape())?.into_owned();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    if user.is_empty() || host.is_empty() || uri.query().is_some() {
        return Err(shape());
    }
    let port = uri.port_u16().unwrap_or(SSH_PORT);
    let names = below(uri.path())?;
    let folder = match names.split_first() {
        Some((first, [])) if first == "~" => ".".to_owned(),
        Some((first, rest)) if first == "~" => rest.join("/"),
        _ => format!("/{}", names.join("/")),
    };
    Ok((user, host, port, folder))
}

/// The names of a path from the root.
pub(super) fn below(path: &str) -> Result<Vec<String>, String> {
    let Some(path) = path.strip_prefix('/').filter(|path| path.len() <= ADDRESS_MAX) else {
        return Err("must name a folder from the root on".to_owned());
    };
    let names: Vec<String> =
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let odd = |c: char| c.is_control() || "%?#\\".contains(c);
    match names.iter().any(|name| name == "." || name == ".." || name.contains(odd)) {
        true => Err("must name a folder plainly".to_owned()),
        false => Ok(names),
    }
}

/// A folder that is one of these or below one.
fn folder(path: &str, folders: &[PathBuf]) -> Result<Folder, String> {
    let names = below(path)?;
    let whole: PathBuf = std::iter::once("/").chain(names.iter().map(String::as_str)).collect();
    let root = folders.iter().find(|root| root.is_absolute() && whole.starts_with(root));
    let root = root.ok_or_else(|| format!("{path} is in none of the folders of files.folders"))?;
    let rest = whole.strip_prefix(root).map_err(|_| "is nowhere".to_owned())?;
    let below = rest.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    Ok(Folder { root: root.clone(), below: below.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers_are_read() {
        let of = |address: &str| remote(address);
        let read = |user: &str, host: &str, port, folder: &str| {
            Ok((user.to_owned(), host.to_owned(), port, folder.to_owned()))
        };
        assert_eq!(
            of("sftp://acme@sftp.bank.example/out"),
            read("acme", "sftp.bank.example", 22, "/out")
        );
        assert_eq!(of("sftp://a%40b@[::1]:2222/in/ach/"), read("a@b", "::1", 2222, "/in/ach"));
        assert_eq!(of("sftp://a@bank/~/out"), read("a", "bank", 22, "out"));
        assert_eq!(of("sftp://a@bank/~"), read("a", "bank", 22, "."));
        assert_eq!(of("sftp://a@bank/"), read("a", "bank", 22, "/"));
        for wrong in [
            "sftp://bank/out",
            "sftp://a:secret@bank/out",
            "sftp://@bank/out",
            "sftp://a@bank/../etc",
            "sftp://a@bank/out?x=1",
            "sftp://a@bank/o%2e%2e",
            "https://a@bank/out",
            "ftp://a@bank/out",
            "sftp:a@bank",
            "",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn folders_lie_in_those_that_are_allowed() {
        let allowed = [PathBuf::from("/srv/bank"), PathBuf::from("relative")];
        let below = |names: &[&str]| {
            let below = names.iter().map(|name| (*name).to_owned()).collect();
            Ok(Folder { root: PathBuf::from("/srv/bank"), below })
        };
        assert_eq!(folder("/srv/bank", &allowed), below(&[]));
        assert_eq!(folder("/srv/bank/out/ach/", &allowed), below(&["out", "ach"]));
        for wrong in [
            "/srv",
            "/srv/banks/out",
            "/srv/bank/../other",
            "/srv/bank/./x",
            "relative",
            "/etc",
            "",
        ] {
            assert!(folder(wrong, &allowed).is_err(), "{wrong}");
        }
        assert!(folder("/srv/bank", &[]).is_err());
    }

    #[test]
    fn keys_of_servers_are_compared_whole() {
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIILsWuCEIDIM9P4oF2Wd3S0dMWMeNxmeOnxHQKpPyAAe";
        let key = PublicKey::from_openssh(line).expect("a key");
        let print = key.fingerprint(russh::keys::HashAlg::Sha256).to_string();
        for known in [format!("{line} bank"), print.clone(), format!("{print}=")] {
            assert!(HostKey::read(&known).expect("a key").is(&key), "{known}");
        }
        let mut other = print.clone().into_bytes();
        other[20] = if other[20] == b'a' { b'b' } else { b'a' };
        let other = String::from_utf8(other).expect("text");
        assert!(!HostKey::read(&other).expect("a print").is(&key));
        for wrong in ["", "SHA256:", "MD5:aa", "ssh-ed25519 AAAA", &print[..20]] {
            assert!(HostKey::read(wrong).is_err(), "{wrong}");
        }
    }
}
