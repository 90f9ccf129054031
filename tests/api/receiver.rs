//! A merchant's receiver of webhooks, over real TLS, that behaves as well or as badly as a test
//! wants. It speaks HTTP by hand: much of what it says no library would.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes that comes at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How requests to a path are answered.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    /// With a status, further headers and a body.
    Says(u16, Vec<(&'static str, String)>, String),
    /// Not at all, while the connection stays open.
    Hangs,
    /// With a good head and a body of a byte a second.
    Trickles,
    /// With a good head and a body that never ends.
    NeverEnds,
    /// By cutting the connection.
    Resets,
    /// With something that is not HTTP.
    Babbles,
    /// With 200, after this long.
    Dawdles(Duration),
    /// With a status, once a gate is open.
    Waits(u16, Gate),
    /// With 500 what has this in its body, and with 200 everything else.
    Refuses(&'static str),
}

/// Holds answers back until a test opens it. From then on it is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(CancellationToken);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.cancel();
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub at: Instant,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub bytes: Vec<u8>,
}

/// Listens on loopback. Each path is a receiver of its own.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    got: Mutex<Vec<Got>>,
    manners: Mutex<BTreeMap<String, Manner>>,
    connections: AtomicUsize,
}

impl Manner {
    /// An empty answer with a status.
    pub(crate) fn status(status: u16) -> Self {
        Self::Says(status, Vec::new(), String::new())
    }
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("JSON")
    }

    /// The clock of the host that sent it, in seconds.
    pub(crate) fn sent_at(&self) -> i64 {
        self.header("webhook-timestamp").parse().expect("seconds")
    }
}

impl Receiver {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let receiver = Self { address, shared: Arc::default() };
        tokio::spawn(receiver.clone().serve(listener));
        receiver
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// How a path behaves from now on; 200 is what it does by itself.
    pub(crate) fn behave(&self, path: &str, manner: Manner) {
        self.shared.manners.lock().expect("a lock").insert(path.to_owned(), manner);
    }

    /// What arrived at a path so far.
    pub(crate) fn got(&self, path: &str) -> Vec<Got> {
        let got = self.shared.got.lock().expect("a lock");
        got.iter().filter(|got| got.path == path).cloned().collect()
    }

    /// How often anybody connected.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many requests arrived at a path; more is a fault.
    pub(crate) async fn until(&self, path: &str, count: usize) -> Vec<Got> {
        let waiting = async {
            while self.got(path).len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        let got = self.got(path);
        assert!(in_time && got.len() == count, "{path} got {} of {count}: {got:#?}", got.len());
        got
    }

    async fn serve(self, listener: TcpListener) {
        let acceptor = TlsAcceptor::from(Arc::clone(&authority().server));
        while let Ok((stream, _)) = listener.accept().await {
            self.shared.connections.fetch_add(1, Ordering::SeqCst);
            let (receiver, acceptor) = (self.clone(), acceptor.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut stream = BufReader::new(stream);
                // A sender that goes away ends it.
                while let Some(got) = read(&mut stream).await {
                    if receiver.answer(stream.get_mut(), got).await.is_none() {
                        return;
                    }
                }
            });
        }
    }

    /// Answers; none if the connection is of no use afterwards.
    async fn answer(&self, stream: &mut TlsStream<TcpStream>, got: Got) -> Option<()> {
        let manner = self.shared.manners.lock().expect("a lock").get(&got.path).cloned();
        let text = got.text().to_owned();
        self.shared.got.lock().expect("a lock").push(got);
        let endless = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        match manner.unwrap_or_else(|| Manner::status(200)) {
            Manner::Says(status, headers, body) => say(stream, status, &headers, &body).await,
            Manner::Dawdles(span) => {
                tokio::time::sleep(span).await;
                say(stream, 200, &[], "").await
            }
            Manner::Waits(status, gate) => {
                gate.0.cancelled().await;
                say(stream, status, &[], "").await
            }
            Manner::Refuses(what) => {
                let status = if text.contains(what) { 500 } else { 200 };
                say(stream, status, &[], "").await
            }
            Manner::Hangs => std::future::pending().await,
            Manner::Babbles => {
                write(stream, b"SSH-2.0-OpenSSH_9.6\r\n").await?;
                None
            }
            Manner::Resets => {
                stream.get_ref().0.set_zero_linger().ok()?;
                None
            }
            Manner::Trickles => {
                write(stream, endless.as_bytes()).await?;
                loop {
                    write(stream, b".").await?;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            Manner::NeverEnds => {
                write(stream, endless.as_bytes()).await?;
                loop {
                    write(stream, &[b'.'; 4096]).await?;
                }
            }
        }
    }
}

async fn write(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> Option<()> {
    stream.write_all(bytes).await.ok()?;
    stream.flush().await.ok()
}

async fn say(
    stream: &mut TlsStream<TcpStream>,
    status: u16,
    headers: &[(&'static str, String)],
    body: &str,
) -> Option<()> {
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers = headers.collect::<String>();
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
    write(stream, text.as_bytes()).await
}

/// A whole request, if one comes.
async fn read(stream: &mut BufReader<TlsStream<TcpStream>>) -> Option<Got> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("a head of text");
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |text| text.parse().expect("a length"));
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.ok()?;
    Some(Got { at: Instant::now(), path, headers, bytes })
}

/// An authority that nobody knows, and a certificate of its for loopback.
struct Authority {
    file: PathBuf,
    /// Its certificate for loopback, and the key of that, as files.
    pair: (PathBuf, PathBuf),
    server: Arc<rustls::ServerConfig>,
}

/// The authority's certificate, for `webhooks.extra_ca_file`.
pub(crate) fn authority_file() -> PathBuf {
    authority().file.clone()
}

/// A certificate for loopback, and its key.
pub(crate) fn certificate_files() -> (PathBuf, PathBuf) {
    authority().pair.clone()
}

/// What a server on loopback shows to whoever connects.
pub(crate) fn server_config() -> Arc<rustls::ServerConfig> {
    Arc::clone(&authority().server)
}

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder").keep();
        let written = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("written");
            file
        };
        let file = written("authority.pem", root.pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().expect("a key");
        let names = ["127.0.0.1", "::1", "localhost"].map(str::to_owned);
        let params = CertificateParams::new(names).expect("parameters");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let pair = (
            written("loopback.pem", certificate.pem()),
            written("loopback.key", key.serialize_pem()),
        );
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a server");
        Authority { file, pair, server: Arc::new(server) }
    })
}
