//! A bank's SFTP server over a folder, which breaks off where a test says.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use russh::keys::{HashAlg, PrivateKey, PublicKey, decode_secret_key};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler as SshHandler, Msg, Session, VerifiedPublicKey,
    run_stream,
};
use russh::{Channel, ChannelId};
use russh_sftp::protocol::{
    Attrs, Data, File, FileAttributes, Handle, Name, OpenFlags, Packet, Status, StatusCode, Version,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Who is let in, and with what.
pub(crate) const USER: &str = "acme";
pub(crate) const PASSWORD: &str = "correct horse";

/// RSA, as PKCS#8: the bank's own key in some tests, and the key that is let in.
pub(crate) const RSA: &str = include_str!("../../host/src/simulator/keys.pem");

/// Where the server breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Nowhere,
    /// While a file is written.
    Writing,
    /// When it is asked to rename a file, which it does not do.
    BeforeRenaming,
    /// When it has renamed a file.
    BeforeAnswering,
    /// A moment after it has said so.
    AfterAnswering,
    /// Nowhere; it says that it cannot rename.
    Refusing,
    /// Nowhere; it keeps what it wrote half.
    Losing,
}

/// What a server was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub connections: u32,
    pub passwords: Vec<String>,
    pub renames: u32,
    pub syncs: u32,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    broken: Mutex<Option<Break>>,
}

/// A server with folders `outgoing` and `incoming`, gone when dropped.
pub(crate) struct Server {
    pub folder: tempfile::TempDir,
    pub port: u16,
    pub key: PublicKey,
    shared: Arc<Shared>,
    stopping: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// An Ed25519 key that follows from a number, as OpenSSH writes it.
pub(crate) fn key(number: u8) -> PrivateKey {
    let pair = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[number; 32]);
    PrivateKey::from(pair)
}

impl Server {
    pub(crate) async fn open() -> Self {
        Self::open_with(key(1)).await
    }

    /// A server with this key.
    pub(crate) async fn open_with(key: PrivateKey) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["outgoing", "incoming"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (shared, stopping) = (Arc::<Shared>::default(), CancellationToken::new());
        let public = key.public_key().clone();
        let config = Arc::new(Config {
            keys: vec![key],
            auth_rejection_time: Duration::ZERO,
            ..Config::default()
        });
        let (root, all) = (folder.path().to_owned(), Arc::clone(&shared));
        let stop = stopping.clone();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stop.cancelled() => return,
                };
                let Ok((tcp, _)) = accepted else { return };
                let cut = stop.child_token();
                all.seen.lock().expect("seen").connections += 1;
                let bank = Bank { root: root.clone(), shared: Arc::clone(&all), cut };
                tokio::spawn(serve(tcp, Arc::clone(&config), bank));
            }
        });
        Self { folder, port, key: public, shared, stopping }
    }

    /// Where it breaks off from now on.
    pub(crate) fn breaks(&self, at: Break) {
        *self.shared.broken.lock().expect("broken") = Some(at);
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.seen.lock().expect("seen").clone()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The SHA-256 of its key.
    pub(crate) fn print(&self) -> String {
        self.key.fingerprint(HashAlg::Sha256).to_string()
    }
}

#[derive(Clone)]
struct Bank {
    root: PathBuf,
    shared: Arc<Shared>,
    /// Ends the connection, wherever it is.
    cut: CancellationToken,
}

/// A connection is cut by giving up what lies between the socket and the server.
async fn serve(mut tcp: TcpStream, config: Arc<Config>, bank: Bank) {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let cut = bank.cut.clone();
    let session = Ssh { bank, channels: HashMap::new() };
    let serving = tokio::spawn(async move {
        if let Ok(running) = run_stream(config, far, session).await {
            let _ = running.await;
        }
    });
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut tcp, &mut near) => {}
        () = cut.cancelled() => {}
    }
    serving.abort();
}

struct Ssh {
    bank: Bank,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl SshHandler for Ssh {
    type Error = russh::Error;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Self::Error> {
        let mut seen = self.bank.shared.seen.lock().expect("seen");
        seen.passwords.push(password.to_owned());
        let is_right = user == USER && password == PASSWORD;
        Ok(if is_right { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        presented: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        let rsa = decode_secret_key(RSA, None).expect("a key");
        let known = [key(2).public_key().clone(), rsa.public_key().clone()];
        let is_known = known.iter().any(|key| key.key_data() == presented.public_key.key_data());
        Ok(if user == USER && is_known { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let channel = self.channels.remove(&id).expect("a channel");
        session.channel_success(id)?;
        let sftp = Sftp { bank: self.bank.clone(), open: BTreeMap::new(), listed: BTreeMap::new() };
        russh_sftp::server::run(channel.into_stream(), sftp).await;
        Ok(())
    }
}

struct Sftp {
    bank: Bank,
    open: BTreeMap<String, std::fs::File>,
    listed: BTreeMap<String, Vec<File>>,
}

fn of(error: &std::io::Error) -> StatusCode {
    match error.kind() {
        std::io::ErrorKind::NotFound => StatusCode::NoSuchFile,
        std::io::ErrorKind::PermissionDenied => StatusCode::PermissionDenied,
        _ => StatusCode::Failure,
    }
}

fn status(id: u32) -> Status {
    let (error_message, language_tag) = ("Ok".to_owned(), "en".to_owned());
    Status { id, status_code: StatusCode::Ok, error_message, language_tag }
}

fn attributes(metadata: &std::fs::Metadata) -> FileAttributes {
    let changed = metadata.modified().expect("a date").duration_since(UNIX_EPOCH);
    let changed_s = changed.expect("after 1970").as_secs();
    FileAttributes {
        size: Some(metadata.len()),
        mtime: Some(u32::try_from(changed_s).expect("before 2106")),
        atime: Some(0),
        permissions: Some(if metadata.is_dir() { 0o040_755 } else { 0o100_640 }),
        ..FileAttributes::empty()
    }
}

impl Sftp {
    fn path(&self, path: &str) -> PathBuf {
        assert!(path.starts_with('/') && !path.contains(".."), "{path}");
        self.bank.root.join(path.trim_start_matches('/'))
    }

    fn is(&self, at: Break) -> bool {
        *self.bank.shared.broken.lock().expect("broken") == Some(at)
    }

    /// Cuts the connection, and never goes on.
    async fn cut<T>(&self) -> T {
        self.bank.cut.cancel();
        std::future::pending().await
    }

    fn seen(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.bank.shared.seen.lock().expect("seen"));
    }

    fn new_handle(&self) -> String {
        format!("h{}", self.open.len() + self.listed.len())
    }
}

fn found(id: u32, path: &Path) -> Result<Attrs, StatusCode> {
    let metadata = std::fs::metadata(path).map_err(|error| of(&error))?;
    Ok(Attrs { id, attrs: attributes(&metadata) })
}

impl russh_sftp::server::Handler for Sftp {
    type Error = StatusCode;

    fn unimplemented(&self) -> Self::Error {
        StatusCode::OpUnsupported
    }

    async fn init(
        &mut self,
        _version: u32,
        _extensions: HashMap<String, String>,
    ) -> Result<Version, Self::Error> {
        let mut version = Version::new();
        version.extensions.insert("fsync@openssh.com".to_owned(), "1".to_owned());
        Ok(version)
    }

    async fn open(
        &mut self,
        id: u32,
        filename: String,
        flags: OpenFlags,
        _attributes: FileAttributes,
    ) -> Result<Handle, Self::Error> {
        let mut options = std::fs::File::options();
        options.read(flags.contains(OpenFlags::READ)).write(flags.contains(OpenFlags::WRITE));
        options.create(flags.contains(OpenFlags::CREATE));
        options.truncate(flags.contains(OpenFlags::TRUNCATE));
        let file = options.open(self.path(&filename)).map_err(|error| of(&error))?;
        let handle = self.new_handle();
        self.open.insert(handle.clone(), file);
        Ok(Handle { id, handle })
    }

    async fn close(&mut self, id: u32, handle: String) -> Result<Status, Self::Error> {
        self.open.remove(&handle);
        self.listed.remove(&handle);
        Ok(status(id))
    }

    async fn read(
        &mut self,
        id: u32,
        handle: String,
        offset: u64,
        len: u32,
    ) -> Result<Data, Self::Error> {
        let file = self.open.get_mut(&handle).ok_or(StatusCode::Failure)?;
        file.seek(SeekFrom::Start(offset)).map_err(|error| of(&error))?;
        // Less than was asked for, as some do.
        let mut data = vec![0; usize::try_from(len.min(1_000)).expect("small")];
        let read = file.read(&mut data).map_err(|error| of(&error))?;
        data.truncate(read);
        if data.is_empty() { Err(StatusCode::Eof) } else { Ok(Data { id, data }) }
    }

    async fn write(
        &mut self,
        id: u32,
        handle: String,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<Status, Self::Error> {
        let half = &data[..data.len() / 2];
        let (breaks, loses) = (self.is(Break::Writing), self.is(Break::Losing));
        let file = self.open.get_mut(&handle).ok_or(StatusCode::Failure)?;
        file.seek(SeekFrom::Start(offset)).map_err(|error| of(&error))?;
        file.write_all(if breaks || loses { half } else { &data }).map_err(|error| of(&error))?;
        if breaks {
            self.cut::<()>().await;
        }
        Ok(status(id))
    }

    async fn stat(&mut self, id: u32, path: String) -> Result<Attrs, Self::Error> {
        found(id, &self.path(&path))
    }

    async fn opendir(&mut self, id: u32, path: String) -> Result<Handle, Self::Error> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.path(&path)).map_err(|error| of(&error))? {
            let entry = entry.map_err(|error| of(&error))?;
            let metadata = entry.metadata().map_err(|error| of(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(File::new(name, attributes(&metadata)));
        }
        let handle = self.new_handle();
        self.listed.insert(handle.clone(), files);
        Ok(Handle { id, handle })
    }

    /// Two at a time.
    async fn readdir(&mut self, id: u32, handle: String) -> Result<Name, Self::Error> {
        let files = self.listed.get_mut(&handle).ok_or(StatusCode::Failure)?;
        let rest = files.len().saturating_sub(2);
        let files = files.split_off(rest);
        if files.is_empty() { Err(StatusCode::Eof) } else { Ok(Name { id, files }) }
    }

    async fn rename(
        &mut self,
        id: u32,
        oldpath: String,
        newpath: String,
    ) -> Result<Status, Self::Error> {
        self.seen(|seen| seen.renames += 1);
        if self.is(Break::BeforeRenaming) {
            self.cut::<()>().await;
        }
        if self.is(Break::Refusing) {
            return Err(StatusCode::PermissionDenied);
        }
        let (from, to) = (self.path(&oldpath), self.path(&newpath));
        if to.exists() {
            return Err(StatusCode::Failure);
        }
        std::fs::rename(from, to).map_err(|error| of(&error))?;
        if self.is(Break::BeforeAnswering) {
            self.cut::<()>().await;
        }
        if self.is(Break::AfterAnswering) {
            let cut = self.bank.cut.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                cut.cancel();
            });
        }
        Ok(status(id))
    }

    async fn extended(
        &mut self,
        id: u32,
        request: String,
        _data: Vec<u8>,
    ) -> Result<Packet, Self::Error> {
        assert_eq!(request, "fsync@openssh.com");
        self.seen(|seen| seen.syncs += 1);
        Ok(status(id).into())
    }
}
