//! HTTPS receivers in this process, good and bad, each on a port of its own.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use railhead::clock::{Clock, Moment};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// How a receiver treats those who come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes what it is given, at once.
    Takes,
    /// It answers 500.
    Fails,
    /// It never answers.
    Hangs,
    /// It answers at once, but a byte at a time and without an end.
    Trickles,
    /// It hangs up before TLS has begun.
    IsDown,
}

/// Receivers, and what they heard.
pub(crate) struct Receivers {
    pub ca_file: PathBuf,
    pub urls: Vec<String>,
    manners: Vec<Arc<Mutex<Manner>>>,
    heard: Heard,
    _folder: tempfile::TempDir,
}

type Heard = Arc<Mutex<Vec<Receipt>>>;

/// An event that a receiver took.
#[derive(Clone, Copy)]
pub(crate) struct Receipt {
    /// Events are told apart by the amount that came in.
    pub number: u64,
    pub created_at: Moment,
    pub at: Moment,
}

impl Receipt {
    fn of(body: &[u8]) -> Option<Self> {
        let at = Clock::System.now();
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        let number = body["data"]["amount_minor"].as_str()?.parse().ok()?;
        let created_at = Moment::parse(body["created_at"].as_str()?)?;
        Some(Self { number, created_at, at })
    }

    /// From the event until the receiver held it. The former is known to a millisecond, and
    /// before its commit: it is never less than what it stands for.
    pub(crate) fn latency(self) -> Duration {
        let micros = self.at.micros() - self.created_at.micros();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }
}

impl Receivers {
    /// So many, all of them good.
    pub(crate) async fn open(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&ca_file, made.cert.pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let heard = Heard::default();
        let (mut urls, mut manners) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("https://{}/hooks", listener.local_addr().unwrap()));
            let manner = Arc::new(Mutex::new(Manner::Takes));
            let one = Receiver { manner: Arc::clone(&manner), heard: Arc::clone(&heard) };
            tokio::spawn(one.serve(listener, acceptor.clone()));
            manners.push(manner);
        }
        Self { ca_file, urls, manners, heard, _folder: folder }
    }

    pub(crate) fn turn(&self, which: usize, manner: Manner) {
        *self.manners[which].lock().unwrap() = manner;
    }

    /// How many events were taken so far, counting one that came twice twice.
    pub(crate) fn count(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// What was taken after the first so many.
    pub(crate) fn heard_after(&self, count: usize) -> Vec<Receipt> {
        self.heard.lock().unwrap()[count..].to_vec()
    }
}

#[derive(Clone)]
struct Receiver {
    manner: Arc<Mutex<Manner>>,
    heard: Heard,
}

impl Receiver {
    async fn serve(self, listener: TcpListener, acceptor: TlsAcceptor) {
        while let Ok((stream, _)) = listener.accept().await {
            if self.manner() != Manner::IsDown {
                tokio::spawn(self.clone().talk(stream, acceptor.clone()));
            }
        }
    }

    async fn talk(self, stream: TcpStream, acceptor: TlsAcceptor) {
        let _ = stream.set_nodelay(true);
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let service = service_fn(|request| self.answer(request));
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Either<Full<Bytes>, Trickle>>, Box<dyn std::error::Error + Send + Sync>>
    {
        let body = request.into_body().collect().await?.to_bytes();
        let mut response = Response::new(Either::Left(Full::default()));
        match self.manner() {
            Manner::Takes => {
                let receipt = Receipt::of(&body).ok_or("an event of somebody else")?;
                self.heard.lock().unwrap().push(receipt);
            }
            Manner::Fails => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
            Manner::Hangs => std::future::pending().await,
            Manner::Trickles => {
                let beat = tokio::time::interval(Duration::from_millis(200));
                *response.body_mut() = Either::Right(Trickle(beat));
            }
            Manner::IsDown => return Err("it is down".into()),
        }
        Ok(response)
    }

    fn manner(&self) -> Manner {
        *self.manner.lock().unwrap()
    }
}

/// A body without an end.
struct Trickle(tokio::time::Interval);

impl Body for Trickle {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        ready!(self.0.poll_tick(context));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }
}
