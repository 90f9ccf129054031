//! Connections that count what is written to them, and are kept for the next request.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::address;

use super::{Answer, Call, Failure, Network, Outgoing, Scheme};

/// Peers close idle connections after a while; one that may be closing is not worth the doubt
/// about whether a request arrived.
const IDLE_MAX: Duration = Duration::from_secs(4);
const CONNECT_MAX: Duration = Duration::from_secs(5);
const IDLE_CONNECTIONS_MAX: usize = 256;

/// Idle connections to one server with one set of credentials, the one that was used last at the
/// end.
#[derive(Default)]
pub(super) struct Pool(Mutex<VecDeque<Idle>>);

struct Idle {
    connection: Connection,
    since: Instant,
}

struct Connection {
    sender: SendRequest<Body>,
    written: Arc<Written>,
}

/// How many bytes were written. Once it is sealed no more can be: a request that is given up must
/// not leave after it was said that nothing of it left.
#[derive(Default)]
struct Written(Mutex<Count>);

#[derive(Default)]
struct Count {
    bytes: u64,
    is_sealed: bool,
}

impl Written {
    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Lets nothing more out; how much there was.
    fn seal(&self) -> u64 {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.is_sealed = true;
        count.bytes
    }
}

impl Network {
    /// A server that answers under this address.
    #[must_use]
    pub fn new(
        (scheme, host, port): (Scheme, String, u16),
        base: String,
        tls: Arc<rustls::ClientConfig>,
        allowed: Vec<ipnet::IpNet>,
    ) -> Self {
        Self { scheme, host, port, base, tls, allowed, pool: Pool::default() }
    }

    pub(super) async fn send(&self, call: &Call, outgoing: Outgoing) -> Result<Answer, Failure> {
        let deadline = tokio::time::Instant::now() + call.timeout;
        let host = match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        };
        let connecting = tokio::time::timeout_at(deadline, self.connection()).await;
        let connected = connecting.unwrap_or_else(|_| Err("connecting took too long".to_owned()));
        let mut connection = connected.map_err(Failure::NotSent)?;
        let request = outgoing.request(call, &self.base, &host).map_err(Failure::NotSent)?;
        let before = connection.written.count();
        let answering = async {
            let response = connection.sender.send_request(request).await;
            let response = response.map_err(|cause| Failure::NoAnswer(cause.to_string()))?;
            call.answer(response).await
        };
        let answer = tokio::time::timeout_at(deadline, answering).await;
        match answer.unwrap_or_else(|_| Err(Failure::NoAnswer(call.too_slow()))) {
            Ok(answer) => {
                self.pool.keep(connection);
                Ok(answer)
            }
            Err(Failure::NoAnswer(why)) if connection.written.seal() == before => {
                Err(Failure::NotSent(why))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn connection(&self) -> Result<Connection, String> {
        while let Some(mut connection) = self.pool.take() {
            if connection.sender.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let address = self.resolve().await?;
        let tcp = tokio::time::timeout(CONNECT_MAX, TcpStream::connect(address)).await;
        let tcp = tcp.map_err(|_| "connecting took too long".to_owned())?;
        let tcp = tcp.map_err(|cause| format!("connecting: {cause}"))?;
        let _ = tcp.set_nodelay(true);
        match self.scheme {
            Scheme::Http => handshake(tcp).await,
            Scheme::Https => {
                let name = ServerName::try_from(self.host.clone()).map_err(|e| e.to_string())?;
                let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp);
                let tls = tokio::time::timeout(CONNECT_MAX, tls).await;
                let tls = tls.map_err(|_| "the TLS handshake took too long".to_owned())?;
                handshake(tls.map_err(|cause| format!("TLS: {cause}"))?).await
            }
        }
    }

    /// Resolves the name and connects to that very address: what was checked is what is used.
    async fn resolve(&self) -> Result<SocketAddr, String> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let mut found = found.map_err(|cause| format!("resolving {}: {cause}", self.host))?;
        found.find(|address| self.may_reach(address.ip())).ok_or_else(|| {
            format!(
                "{} has no public address; egress.allow_private_networks can allow a private one",
                self.host
            )
        })
    }

    /// What is not encrypted leaves no network that the operator named.
    fn may_reach(&self, ip: IpAddr) -> bool {
        let is_public = self.scheme == Scheme::Https && address::is_public(ip);
        is_public || self.allowed.iter().any(|network| network.contains(&ip))
    }
}

impl Pool {
    fn take(&self) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while idle.front().is_some_and(|oldest| now - oldest.since >= IDLE_MAX) {
            idle.pop_front();
        }
        loop {
            let Idle { connection, .. } = idle.pop_back()?;
            if !connection.sender.is_closed() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push_back(Idle { connection, since: Instant::now() });
        }
    }
}

async fn handshake<S>(stream: S) -> Result<Connection, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let written = Arc::new(Written::default());
    let counted = Counted { stream, written: Arc::clone(&written) };
    let (sender, connection) =
        http1::handshake(TokioIo::new(counted)).await.map_err(|cause| cause.to_string())?;
    tokio::spawn(async move {
        // Whoever waits on the sender learns of the error; an idle connection just ends.
        let _ = connection.await;
    });
    Ok(Connection { sender, written })
}

/// Counts the bytes that the stream accepts. With TLS it stands above the encryption, so it
/// may count a byte that did not leave, never miss one that did.
struct Counted<S> {
    stream: S,
    written: Arc<Written>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let this = &mut *self;
        let mut count = this.written.0.lock().unwrap_or_else(PoisonError::into_inner);
        if count.is_sealed {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(bytes)) = written {
            count.bytes += bytes as u64;
        }
        written
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
