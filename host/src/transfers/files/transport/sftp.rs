//! A folder on a server that speaks SFTP, version 3.
//!
//! The server is known by its key, and who logs in by a key or a password. Every call has a
//! connection of its own, to an address that was looked at before.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use russh::client::{self, AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{Disconnect, Preferred, SendError, Signer};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::extensions::FSYNC;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use secrecy::ExposeSecret as _;
use tokio::net::TcpStream;

use crate::address;
use crate::rails::file_transport::{HostKey, LoginKey, Server};
use crate::wasm::keys::SigningKey;

use super::{CALL_MAX, Entry, LISTED_MAX, NAME_MAX};

/// Time for reaching the server and logging in.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// Time for saying goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// What one request carries: every server takes as much.
const CHUNK: usize = 32 * 1024;
/// Requests under way at once.
const AT_ONCE: usize = 16;
/// The bits of a mode that say what something is, and those of a plain file.
const KIND: u32 = 0o170_000;
const PLAIN: u32 = 0o100_000;

/// A connection, logged in.
pub(super) struct Session {
    handle: Handle<Known>,
    sftp: RawSftpSession,
    folder: String,
    has_fsync: bool,
}

/// Lets nobody in but a server whose key is known.
struct Known {
    keys: Vec<HostKey>,
    /// The key that was presented and is not known.
    met: Arc<Mutex<Option<String>>>,
}

impl client::Handler for Known {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        presented: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = presented else { return Ok(false) };
        let is_known = self.keys.iter().any(|known| known.is(key));
        if !is_known {
            let print = key.fingerprint(HashAlg::Sha256).to_string();
            *self.met.lock().unwrap_or_else(PoisonError::into_inner) = Some(print);
        }
        Ok(is_known)
    }
}

/// Signs with a key that the SSH library never sees.
struct Signing(Arc<SigningKey>);

#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error("the connection is gone")]
    Send(#[from] SendError),
    #[error("{0}")]
    Key(String),
}

impl Signer for Signing {
    type Error = SignError;

    /// RFC 8332: the name of the algorithm and the signature, each with its length, and theirs
    /// before them.
    async fn auth_sign(
        &mut self,
        _key: &AgentIdentity,
        _hash: Option<HashAlg>,
        mut message: Vec<u8>,
    ) -> Result<Vec<u8>, Self::Error> {
        let signature = self.0.sign(&message).map_err(SignError::Key)?;
        let mut both = Vec::new();
        for part in [b"rsa-sha2-256".as_slice(), &signature] {
            with_length(&mut both, part);
        }
        with_length(&mut message, &both);
        Ok(message)
    }
}

fn with_length(to: &mut Vec<u8>, part: &[u8]) {
    to.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend_from_slice(part);
}

impl Session {
    pub(super) async fn open(server: &Server) -> Result<Self, String> {
        let opening = tokio::time::timeout(CONNECT_MAX, Self::connect(server)).await;
        opening.unwrap_or_else(|_| Err(format!("connecting took longer than {CONNECT_MAX:?}")))
    }

    async fn connect(server: &Server) -> Result<Self, String> {
        let tcp = TcpStream::connect(resolve(server).await?).await;
        let tcp = tcp.map_err(|cause| format!("connecting: {cause}"))?;
        let _ = tcp.set_nodelay(true);
        let met = Arc::default();
        let known = Known { keys: server.keys.clone(), met: Arc::clone(&met) };
        let connected = client::connect_stream(Arc::new(settings(server)), tcp, known).await;
        let mut handle = connected.map_err(|cause| {
            let met = met.lock().unwrap_or_else(PoisonError::into_inner).take();
            match met {
                Some(print) => format!("the server's key is {print}, which is not the known one"),
                None => format!("SSH: {cause}"),
            }
        })?;
        login(&mut handle, server).await?;
        let channel = handle.channel_open_session().await.map_err(|cause| refused(&cause))?;
        channel.request_subsystem(true, "sftp").await.map_err(|cause| refused(&cause))?;
        let sftp = RawSftpSession::new(channel.into_stream());
        sftp.set_timeout(CALL_MAX.as_secs());
        let version = sftp.init().await.map_err(|cause| failed("SFTP", &cause))?;
        let has_fsync = version.extensions.get(FSYNC).is_some_and(|version| version == "1");
        Ok(Self { handle, sftp, folder: server.folder.clone(), has_fsync })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder.trim_end_matches('/'))
    }

    pub(super) async fn stat(&self, name: &str) -> Result<Option<Entry>, String> {
        match self.sftp.stat(self.path(name)).await {
            Ok(found) if !is_file(&found.attrs) => Err(format!("{name} is no file")),
            Ok(found) => entry(name.to_owned(), &found.attrs).map(Some),
            Err(Error::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
            Err(cause) => Err(failed("looking for a file", &cause)),
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<Entry>, String> {
        let words = |cause: Error| failed("reading the folder", &cause);
        let handle = self.sftp.opendir(self.folder.clone()).await.map_err(words)?.handle;
        let (mut entries, mut listed) = (Vec::new(), 0);
        loop {
            match self.sftp.readdir(handle.as_str()).await {
                Ok(found) => {
                    listed += found.files.len();
                    let files = found.files.into_iter().filter(|file| is_file(&file.attrs));
                    let files = files.filter(|file| file.filename.len() <= NAME_MAX);
                    // What has no size is no file.
                    entries.extend(files.filter_map(|file| entry(file.filename, &file.attrs).ok()));
                }
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(cause) => return Err(words(cause)),
            }
            if listed > LISTED_MAX {
                return Err("reading the folder: it has too many files".to_owned());
            }
        }
        self.sftp.close(handle).await.map_err(words)?;
        Ok(entries)
    }

    pub(super) async fn read(&self, name: &str, bytes: usize) -> Result<Vec<u8>, String> {
        let words = |cause: Error| failed("reading a file", &cause);
        let none = FileAttributes::empty();
        let opened = self.sftp.open(self.path(name), OpenFlags::READ, none).await;
        let handle = opened.map_err(words)?.handle;
        let parts = (0..bytes).step_by(CHUNK).map(|from| (from, CHUNK.min(bytes - from)));
        let parts: Vec<_> = parts.map(|part| self.part(&handle, part).boxed()).collect();
        let content = stream::iter(parts).buffered(AT_ONCE).try_concat().await;
        self.sftp.close(handle).await.map_err(words)?;
        content.map_err(words)
    }

    /// So many bytes from here on, or those that there are.
    async fn part(&self, handle: &str, (from, most): (usize, usize)) -> Result<Vec<u8>, Error> {
        let mut content = Vec::with_capacity(most);
        while content.len() < most {
            let offset = u64::try_from(from + content.len()).unwrap_or(u64::MAX);
            let wanted = u32::try_from(most - content.len()).unwrap_or(u32::MAX);
            match self.sftp.read(handle, offset, wanted).await {
                Ok(read) if read.data.is_empty() || read.data.len() > most - content.len() => {
                    return Err(Error::UnexpectedPacket);
                }
                Ok(read) => content.extend(read.data),
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(cause) => return Err(cause),
            }
        }
        Ok(content)
    }

    pub(super) async fn write(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let words = |cause: Error| failed("writing a file", &cause);
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
        let opened = self.sftp.open(self.path(name), flags, FileAttributes::empty()).await;
        let handle = &opened.map_err(words)?.handle;
        let parts = content.chunks(CHUNK).zip((0_u64..).step_by(CHUNK));
        let parts = parts.map(|(part, offset)| {
            let part = async move { self.sftp.write(handle, offset, part.to_vec()).await };
            part.map_ok(drop).boxed()
        });
        let parts: Vec<_> = parts.collect();
        let written: Result<(), Error> = stream::iter(parts).buffered(AT_ONCE).try_collect().await;
        written.map_err(words)?;
        if self.has_fsync {
            self.sftp.fsync(handle.as_str()).await.map_err(words)?;
        }
        self.sftp.close(handle.as_str()).await.map_err(words)?;
        Ok(())
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), String> {
        let renamed = self.sftp.rename(self.path(from), self.path(to)).await;
        renamed.map(drop).map_err(|cause| failed("renaming a file", &cause))
    }

    pub(super) async fn close(self) {
        let goodbye = self.handle.disconnect(Disconnect::ByApplication, "", "");
        let _ = tokio::time::timeout(GOODBYE_MAX, goodbye).await;
    }
}

/// How the server is spoken to: no SHA-1, and kinds of keys first of which one is known.
fn settings(server: &Server) -> client::Config {
    let known: Vec<Algorithm> = server.keys.iter().filter_map(HostKey::algorithm).collect();
    let is_known = |kind: &Algorithm| match kind {
        Algorithm::Rsa { .. } => known.iter().any(|known| matches!(known, Algorithm::Rsa { .. })),
        kind => known.contains(kind),
    };
    let kinds =
        Preferred::DEFAULT.key.iter().filter(|kind| **kind != Algorithm::Rsa { hash: None });
    let (first, then): (Vec<_>, Vec<_>) = kinds.cloned().partition(is_known);
    let key = first.into_iter().chain(then).collect::<Vec<_>>().into();
    client::Config {
        preferred: Preferred { key, ..Preferred::DEFAULT },
        inactivity_timeout: Some(CALL_MAX),
        nodelay: true,
        ..client::Config::default()
    }
}

/// Resolves the name and answers the very address that is then used.
async fn resolve(server: &Server) -> Result<SocketAddr, String> {
    let Server { host, port, allowed, .. } = server;
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    let mut found = found.map_err(|cause| format!("resolving {host}: {cause}"))?;
    let may_reach =
        |ip: IpAddr| address::is_public(ip) || allowed.iter().any(|network| network.contains(&ip));
    found.find(|address| may_reach(address.ip())).ok_or_else(|| {
        format!(
            "{host} has no public address; egress.allow_private_networks can allow a private one"
        )
    })
}

/// Logs in with the key and, where that is not enough, with the password.
async fn login(handle: &mut Handle<Known>, server: &Server) -> Result<(), String> {
    let user = server.user.clone();
    let by_key = match &server.login.key {
        Some(LoginKey::Plain(key)) => {
            let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
            Some(
                handle
                    .authenticate_publickey(user.clone(), key)
                    .await
                    .map_err(|cause| refused(&cause))?,
            )
        }
        Some(LoginKey::Rsa(public, signing)) => {
            let (public, mut signing): (PublicKey, _) =
                (public.clone(), Signing(Arc::clone(signing)));
            let hash = Some(HashAlg::Sha256);
            let asked =
                handle.authenticate_publickey_with(user.clone(), public, hash, &mut signing);
            Some(asked.await.map_err(|cause| format!("logging in: {cause}"))?)
        }
        None => None,
    };
    if by_key.is_some_and(|result| result.success()) {
        return Ok(());
    }
    let Some(password) = &server.login.password else {
        return Err(format!("the server does not let {user} in with this key"));
    };
    let asked = handle.authenticate_password(user.clone(), password.expose_secret()).await;
    match asked.map_err(|cause| refused(&cause))? {
        AuthResult::Success => Ok(()),
        AuthResult::Failure { .. } => Err(format!("the server does not let {user} in")),
    }
}

fn refused(cause: &russh::Error) -> String {
    format!("SSH: {cause}")
}

fn failed(what: &str, cause: &Error) -> String {
    let mut words = format!("{what}: {cause}");
    // The server's own words are as long as it likes.
    let end = words.char_indices().nth(300).map_or(words.len(), |(at, _)| at);
    words.truncate(end);
    words
}

/// What does not say what it is counts as a file.
fn is_file(attributes: &FileAttributes) -> bool {
    matches!(attributes.permissions.unwrap_or(PLAIN) & KIND, 0 | PLAIN)
}

fn entry(name: String, attributes: &FileAttributes) -> Result<Entry, String> {
    let bytes = attributes.size.ok_or("the server does not say how large files are")?;
    Ok(Entry { name, bytes, changed_s: attributes.mtime.map_or(0, i64::from) })
}
