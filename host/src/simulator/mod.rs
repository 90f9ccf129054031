//! The other side of the rails: simulated networks, for the sandbox and for tests.
//!
//! Each rail brings its own, a component that shares no code with the rail. Here is what they all
//! need: a way in, a book in which they remember, and a way out for what they send by themselves.
//!
//! In a host they are part of the process: the sandbox reaches them without a socket, and they
//! remember in the database. On a port of its own (`railhead simulator`) they serve live routes in
//! tests and benchmarks, each below its rail's name, and keep their memory to themselves.

mod books;
mod control;
mod own;
pub mod scenario;
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{OriginalUri, Path, Request, State as From};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::db::Db;
use crate::wasm::egress::HangUp;
use crate::wasm::keys::{SandboxKeys, SimulatedKey};
use crate::wasm::simulator as wasm;
use crate::wasm::simulator::{Answer, Obstacle, Played, Scene, SimulatorCode};

pub use crate::wasm::simulator::{Event, State, Transfer};
pub use own::{OwnMessage, Underway};
pub use server::serve;

use books::Books;
use own::Outbox;

/// What no rail may be called: its network could not be reached.
pub const RESERVED: &str = "control";

/// How often a call is made again because somebody else changed what it had read.
const TRIES: u32 = 20;
const OVERTAKEN: &str = "its book changes all the time";

/// The other side of one rail's network.
#[derive(Clone)]
pub struct Network {
    /// What it does.
    pub code: Arc<SimulatorCode>,
    /// Recipients that choose a scenario by themselves.
    pub magic: Arc<BTreeMap<String, String>>,
    /// What stands for the rail's keys, by name.
    pub keys: Arc<BTreeMap<String, SimulatedKey>>,
}

/// The key pairs that stand for every key of a rail where its network is simulated. Everybody
/// knows them, and no network in earnest is spoken to with them.
#[must_use]
pub fn sandbox_keys() -> Arc<SandboxKeys> {
    static PAIR: LazyLock<Arc<SandboxKeys>> = LazyLock::new(|| {
        let pair = SandboxKeys::read(include_str!("keys.pem"));
        Arc::new(pair.unwrap_or_else(|why| unreachable!("the sandbox's keys: {why}")))
    });
    Arc::clone(&PAIR)
}

/// A set of simulated networks.
#[derive(Clone)]
pub struct Simulator(Arc<Inner>);

struct Inner {
    networks: BTreeMap<String, Network>,
    books: Books,
    clock: Clock,
    outbox: Outbox,
}

/// Why a transfer cannot be told something.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// There is no such transfer.
    #[error("there is no such transfer")]
    Unknown,
    /// As it stands, or in this network, this does not happen.
    #[error("this does not happen to it")]
    Impossible,
    /// The network is not there, or failed.
    #[error("{0}")]
    Broken(String),
}

impl Simulator {
    /// The networks of these rails. They remember in `db`, or keep it to themselves without one.
    /// What they send by themselves comes out of the receiver.
    #[must_use]
    pub fn new(
        db: Option<Db>,
        clock: Clock,
        networks: BTreeMap<String, Network>,
    ) -> (Self, mpsc::UnboundedReceiver<OwnMessage>) {
        let (outbox, messages) = Outbox::new();
        (Self(Arc::new(Inner { networks, books: Books::new(db), clock, outbox })), messages)
    }

    /// One network, as the rail of this name reaches it, for as long as the simulator is there.
    pub fn network(&self, rail: &str) -> Router {
        // Routes are remembered, and a cache lets go of what it held when it comes to it, or never:
        // the host's database must not stay open with them.
        let (simulator, rail) = (Arc::downgrade(&self.0), rail.to_owned());
        Router::new().fallback(move |request: Request| {
            let (simulator, rail) = (simulator.upgrade().map(Self), rail.clone());
            async move {
                match simulator {
                    Some(simulator) => simulator.answer(&rail, request).await,
                    None => hang_up(HangUp::NotSent),
                }
            }
        })
    }

    /// All networks, each below its rail's name, and controls for tests.
    fn router(&self) -> Router {
        let of_rail = async |From(simulator): From<Self>,
                             Path((rail, _)): Path<(String, String)>,
                             OriginalUri(uri): OriginalUri,
                             mut request: Request| {
            let whole = uri.path_and_query().map_or("", |it| it.as_str());
            let below = whole.strip_prefix(&format!("/{rail}")).unwrap_or(whole);
            *request.uri_mut() = below.parse().unwrap_or_default();
            simulator.answer(&rail, request).await
        };
        let all = Router::new().route("/{rail}/{*path}", any(of_rail)).with_state(self.clone());
        all.merge(control::router(self.clone()))
    }

    /// Everything that the networks were sent, by rail and reference.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn transfers(&self) -> Result<Vec<Transfer>, sqlx::Error> {
        self.0.books.all().await
    }

    /// Messages that are on their way to the host.
    #[must_use]
    pub fn underway(&self) -> Underway {
        self.0.outbox.underway()
    }

    /// Lets something happen to a transfer in a rail's network; answers how it stands then.
    ///
    /// # Errors
    /// See [`TellError`].
    pub async fn tell(
        &self,
        rail: &str,
        (reference, event): (&str, Event),
    ) -> Result<Transfer, TellError> {
        let none = || TellError::Broken(format!("{rail} brings no simulator"));
        let network = self.0.networks.get(rail).ok_or_else(none)?;
        for _ in 0..TRIES {
            let scene = self.scene((rail, network), None);
            let told = network.code.tell(scene, (reference, event)).await;
            let told = told.map_err(TellError::Broken)?;
            let Some(told) = self.made_true(rail, told).await.map_err(TellError::Broken)? else {
                continue;
            };
            return told.map_err(|obstacle| match obstacle {
                Obstacle::Unknown => TellError::Unknown,
                Obstacle::Impossible => TellError::Impossible,
            });
        }
        Err(TellError::Broken(OVERTAKEN.to_owned()))
    }

    async fn answer(&self, rail: &str, request: Request) -> Response {
        let Some(network) = self.0.networks.get(rail) else {
            let why = format!("{rail} brings no simulator");
            return (StatusCode::NOT_FOUND, why).into_response();
        };
        let asked = request.headers().get("x-sandbox-scenario");
        let asked = asked.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request = match read(request, network.code.size().request_bytes_max()).await {
            Ok(request) => request,
            Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
        };
        match self.handle((rail, network), asked, &request).await {
            Ok(Answer::Response(response)) => written(response),
            Ok(Answer::NotReceived) => hang_up(HangUp::NotSent),
            Ok(Answer::Silence) => hang_up(HangUp::Received),
            Err(why) => {
                tracing::error!(simulated = rail, why, "a simulated network failed");
                (StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
            }
        }
    }

    async fn handle(
        &self,
        (rail, network): (&str, &Network),
        asked: Option<String>,
        request: &wasm::Request,
    ) -> Result<Answer, String> {
        for _ in 0..TRIES {
            let scene = self.scene((rail, network), asked.clone());
            let played = network.code.handle(scene, request).await?;
            if let Some(answer) = self.made_true(rail, played).await? {
                return Ok(answer);
            }
        }
        Err(OVERTAKEN.to_owned())
    }

    fn scene(&self, (rail, network): (&str, &Network), asked: Option<String>) -> Scene {
        Scene {
            rail: rail.to_owned(),
            now_ms: self.0.clock.now().millis(),
            book: self.0.books.of(rail),
            asked,
            magic: Arc::clone(&network.magic),
            keys: Arc::clone(&network.keys),
        }
    }

    /// Makes what a call changed and sent true, all of it at once; nothing, where another call
    /// about the same transfers was quicker, and it has to be made again.
    async fn made_true<T>(&self, rail: &str, played: Played<T>) -> Result<Option<T>, String> {
        let Played { answer, read, kept, sent } = played;
        let written = self.0.books.write(rail, (&read, kept)).await;
        if !written.map_err(|cause| cause.to_string())? {
            return Ok(None);
        }
        for message in sent {
            self.0.outbox.send(rail, message);
        }
        Ok(Some(answer))
    }
}

/// A request as a simulated network reads it, with a body of so many bytes at most.
async fn read(request: Request, most: usize) -> Result<wasm::Request, String> {
    let (head, body) = request.into_parts();
    let body = http_body_util::Limited::new(body, most);
    let body = body.collect().await.map_err(|cause| cause.to_string())?.to_bytes();
    let plain =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let query = head.uri.query().unwrap_or_default().split('&').filter(|it| !it.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let headers = head.headers.iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    Ok(wasm::Request {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: query.map(|(name, value)| (plain(name), plain(value))).collect(),
        headers: headers.collect(),
        body: body.to_vec(),
    })
}

fn written(response: wasm::Response) -> Response {
    let mut answer = response.body.into_response();
    *answer.status_mut() = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    answer.headers_mut().remove(http::header::CONTENT_TYPE);
    for (name, value) in response.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

/// A hang-up instead of an answer.
fn hang_up(how: HangUp) -> Response {
    let mut response = StatusCode::BAD_GATEWAY.into_response();
    response.extensions_mut().insert(how);
    response
}
