//! Connections: how many there are, how long each may take, and how they end.
//!
//! A caller that is slow holds nothing but its own place: a head has a deadline, so has a body
//! ([`super::body`]), and an answer that nobody reads is given up. When all places are taken, the
//! connection that has been without a request for the longest gives way; when every one has a
//! request at hand, further ones are let in to be told so, and to ask how the host is.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::config::limits;

/// How long a listener rests that cannot accept, for want of file descriptors for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who answers on a listener, and to whom.
#[derive(Clone)]
pub struct Serving {
    /// What answers.
    pub service: Router,
    /// What a connection is encrypted with, if it is.
    pub tls: Option<TlsAcceptor>,
    /// Connections with a place of their own.
    pub connections_max: usize,
    /// How long callers may take.
    pub patience: Patience,
    /// Cancelled when no more requests are to be taken.
    pub stopping: CancellationToken,
}

/// How long callers may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To begin a request and send its head.
    pub head: Duration,
    /// To take a part of an answer.
    pub stalled: Duration,
    /// To take the end of the last answer, once the host stops.
    pub goodbye: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: limits::HEAD_MAX,
            stalled: limits::ANSWER_STALLED_MAX,
            goodbye: limits::GOODBYE,
        }
    }
}

/// Marks a request for which there was no place: it may only ask how the host is.
#[derive(Clone, Copy, Debug)]
pub struct Crowded;

/// The places of one listener.
#[derive(Default)]
struct Places {
    /// Whether they are the ones beyond all places.
    is_crowded: bool,
    taken: Mutex<HashMap<u64, Arc<Place>>>,
    last: AtomicU64,
}

/// One connection.
struct Place {
    /// Whether it has a request at hand, and since when it has been as it is.
    state: watch::Sender<(bool, Instant)>,
    /// Cancelled when it has to give way.
    giving_way: CancellationToken,
    is_crowded: bool,
}

/// A request at hand, until its answer is on its way.
struct AtHand(Arc<Place>);

/// An answer on its way. The request is at hand until the last byte of it is handed over.
struct Answering {
    body: Body,
    _at_hand: AtHand,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        self.0.state.send_replace((false, Instant::now()));
    }
}

impl Place {
    fn new(places: &Places) -> Arc<Self> {
        let state = watch::Sender::new((false, Instant::now()));
        let giving_way = CancellationToken::new();
        Arc::new(Self { state, giving_way, is_crowded: places.is_crowded })
    }

    fn begin(self: &Arc<Self>) -> AtHand {
        self.state.send_replace((true, Instant::now()));
        AtHand(Arc::clone(self))
    }
}

impl Places {
    /// Those beyond all places.
    fn beyond() -> Self {
        Self { is_crowded: true, ..Self::default() }
    }

    /// A place, if fewer than `most` are taken or somebody without a request gives way.
    fn take(&self, most: usize) -> Option<(u64, Arc<Place>)> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= most {
            let resting = taken.iter().filter_map(|(id, place)| {
                let (is_busy, since) = *place.state.borrow();
                (!is_busy).then_some((since, *id))
            });
            let (_, id) = resting.min()?;
            taken.remove(&id)?.giving_way.cancel();
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let place = Place::new(self);
        taken.insert(id, Arc::clone(&place));
        Some((id, place))
    }

    fn leave(&self, id: u64) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// Serves until it is told to stop and every request at hand is answered.
pub async fn serve(listener: TcpListener, serving: Serving) {
    let (seats, standing) = (Arc::new(Places::default()), Arc::new(Places::beyond()));
    let connections = TaskTracker::new();
    // Whoever gives this up gives up every connection.
    let cut_off = CancellationToken::new();
    let _cut_off = cut_off.clone().drop_guard();
    loop {
        let accepted = tokio::select! {
            () = serving.stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(cause) => {
                tracing::warn!(%cause, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (places, (id, place)) = match seats.take(serving.connections_max) {
            Some(taken) => (Arc::clone(&seats), taken),
            None => match standing.take(limits::CONNECTIONS_CROWDED_MAX) {
                Some(taken) => (Arc::clone(&standing), taken),
                None => continue,
            },
        };
        let (serving, cut_off) = (serving.clone(), cut_off.clone());
        connections.spawn(async move {
            let carrying = carry(&serving, (stream, peer), &place);
            let _ = cut_off.run_until_cancelled(carrying).await;
            places.leave(id);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Carries one connection to its end.
async fn carry(serving: &Serving, (stream, peer): (TcpStream, SocketAddr), place: &Arc<Place>) {
    let _ = stream.set_nodelay(true);
    match &serving.tls {
        None => exchange(serving, (stream, peer), place).await,
        Some(tls) => {
            let shaking = tokio::time::timeout(serving.patience.head, tls.accept(stream));
            let shaken = tokio::select! {
                () = place.giving_way.cancelled() => return,
                () = serving.stopping.cancelled() => return,
                shaken = shaking => shaken,
            };
            if let Ok(Ok(stream)) = shaken {
                exchange(serving, (stream, peer), place).await;
            }
        }
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Send + 'static>(
    serving: &Serving,
    (stream, peer): (S, SocketAddr),
    place: &Arc<Place>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(serving.patience.stalled));
    let service = service_fn(|mut request: Request<Incoming>| {
        let at_hand = place.begin();
        request.extensions_mut().insert(ConnectInfo(peer));
        if place.is_crowded {
            request.extensions_mut().insert(Crowded);
        }
        let answering = serving.service.clone().oneshot(request.map(Body::new));
        async move {
            let Ok(answer): Result<Response<Body>, Infallible> = answering.await;
            Ok::<_, Infallible>(answer.map(|body| Answering { body, _at_hand: at_hand }))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(serving.patience.head)
        .keep_alive(!place.is_crowded);
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = std::pin::pin!(connection);
    // A connection that ends badly ends; there is nobody left to tell.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = place.giving_way.cancelled() => return,
        () = serving.stopping.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let mut state = place.state.subscribe();
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = state.wait_for(|(is_busy, _)| !is_busy) => {}
    }
    // No request at hand, at most the end of an answer, or the beginning of a head.
    let _ = tokio::time::timeout(serving.patience.goodbye, connection).await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const QUICK: Duration = Duration::from_millis(20);
    const NEVER: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn who_has_no_request_at_hand_gives_way_the_longest_idle_first() {
        let places = Places::default();
        let (_, first) = places.take(2).expect("a place");
        let (_, second) = places.take(2).expect("a place");
        let busy = first.begin();
        let (_, third) = places.take(2).expect("the second gives way");
        assert!(second.giving_way.is_cancelled() && !first.giving_way.is_cancelled());
        let also = third.begin();
        assert!(places.take(2).is_none(), "nobody gives way who has a request at hand");
        drop(busy);
        assert!(places.take(2).is_some() && first.giving_way.is_cancelled());
        drop(also);
        assert!(!third.giving_way.is_cancelled());
    }

    /// A server on a port of its own, which answers `size` bytes; cancelled, it ends.
    async fn open(patience: Patience, size: usize) -> (SocketAddr, Serving) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let answer = move || async move { "x".repeat(size) };
        let serving = Serving {
            service: Router::new().route("/", get(answer)),
            tls: None,
            connections_max: 4,
            patience,
            stopping: CancellationToken::new(),
        };
        tokio::spawn(serve(listener, serving.clone()));
        (address, serving)
    }

    async fn say(address: SocketAddr, words: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(words).await.expect("sent");
        stream
    }

    #[tokio::test]
    async fn half_a_head_and_a_silent_connection_are_closed() {
        let patience = Patience { head: QUICK, stalled: NEVER, goodbye: NEVER };
        let (address, _) = open(patience, 1).await;
        for words in [&b"GET / HTTP/1.1\r\nhost: a\r\n"[..], b""] {
            let mut heard = Vec::new();
            say(address, words).await.read_to_end(&mut heard).await.expect("closed");
            assert!(heard.is_empty(), "{}", String::from_utf8_lossy(&heard));
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_given_up() {
        let patience = Patience { head: NEVER, stalled: QUICK, goodbye: NEVER };
        let size = 64 * 1024 * 1024;
        let (address, _) = open(patience, size).await;
        let mut unread = say(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        // The system takes what fits into its buffers; then nothing moves for far longer than that.
        tokio::time::sleep(50 * QUICK).await;
        let (mut read, mut some) = (0, vec![0; 1024 * 1024]);
        while let Ok(count @ 1..) = unread.read(&mut some).await {
            read += count;
        }
        assert!(read < size, "{read} of {size} bytes were kept for a caller that does not read");
    }

    #[tokio::test]
    async fn a_server_that_stops_answers_what_is_at_hand_and_waits_for_nobody_else() {
        let patience = Patience { head: NEVER, stalled: NEVER, goodbye: QUICK };
        let (address, serving) = open(patience, 1).await;
        let mut half = say(address, b"GET / HT").await;
        let mut idle = say(address, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut first = [0; 12];
        idle.read_exact(&mut first).await.expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200");
        serving.stopping.cancel();
        let mut heard = Vec::new();
        half.read_to_end(&mut heard).await.expect("closed");
        assert!(heard.is_empty());
        idle.read_to_end(&mut heard).await.expect("closed");
    }
}
