//! The other side of the rails: simulated networks, for the sandbox and for tests.
//!
//! It speaks each network's own protocol over HTTP and shares no code with the rails, so a
//! mistake on one side is not cancelled out by the same mistake on the other. Every message is
//! checked; a malformed one is refused and logged as an error. It remembers what it was sent,
//! and plays the sandbox's scenarios.
//!
//! In a host it is part of the process: the sandbox reaches it without a socket, and it keeps
//! its memory in the database. On its own port (`railhead simulator`) it serves live routes in
//! tests and benchmarks and keeps its memory to itself.

mod control;
mod mpesa;
mod nip;
mod own;
pub mod scenario;
mod server;
mod transfers;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::db::Db;
use crate::wasm::egress::HangUp;

pub use own::{OwnMessage, Underway};
pub use server::serve;
pub use transfers::{State, Transfer};

use own::Outbox;
use transfers::Transfers;

/// The token that callers present: there is no money behind it.
pub const TOKEN: &str = "simulator";

/// A set of simulated networks.
#[derive(Clone)]
pub struct Simulator(Arc<Inner>);

struct Inner {
    transfers: Transfers,
    clock: Clock,
    /// Recipients that choose a scenario by themselves.
    magic: BTreeMap<String, String>,
    outbox: Outbox,
}

impl Simulator {
    /// A simulator that keeps its memory in `db`, or to itself without one. What its networks
    /// send by themselves comes out of the receiver.
    #[must_use]
    pub fn new(
        db: Option<Db>,
        clock: Clock,
        magic: BTreeMap<String, String>,
    ) -> (Self, mpsc::UnboundedReceiver<OwnMessage>) {
        let (outbox, messages) = Outbox::new();
        let inner = Inner { transfers: Transfers::new(db), clock, magic, outbox };
        (Self(Arc::new(inner)), messages)
    }

    /// Its networks, and its controls for tests.
    pub fn router(&self) -> Router {
        let networks = nip::router(self.clone()).merge(mpesa::router(self.clone()));
        networks.merge(control::router(self.clone()))
    }

    /// Everything that it was sent, by reference.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn transfers(&self) -> Result<Vec<Transfer>, sqlx::Error> {
        self.0.transfers.all().await
    }

    /// The scenario of a request: its header, or what the recipient stands for.
    fn scenario(&self, request: &http::HeaderMap, recipient: &str) -> String {
        let header = request.get("x-sandbox-scenario").and_then(|value| value.to_str().ok());
        let magic = self.0.magic.get(recipient).map(String::as_str);
        header.or(magic).unwrap_or("paid").to_owned()
    }

    /// Messages that are on their way to the host.
    #[must_use]
    pub fn underway(&self) -> Underway {
        self.0.outbox.underway()
    }

    fn send(&self, reference: &str, message: OwnMessage) {
        self.0.outbox.send(reference, message);
    }
}

/// Refuses requests without the token.
async fn authenticate(request: Request, next: axum::middleware::Next) -> Response {
    let header = request.headers().get(http::header::AUTHORIZATION);
    let token = header.and_then(|value| value.to_str().ok());
    match token.and_then(|value| value.strip_prefix("Bearer ")) == Some(TOKEN) {
        true => next.run(request).await,
        false => (StatusCode::UNAUTHORIZED, "the simulator's token is missing").into_response(),
    }
}

/// A hang-up instead of an answer.
fn hang_up(how: HangUp) -> Response {
    let mut response = StatusCode::BAD_GATEWAY.into_response();
    response.extensions_mut().insert(how);
    response
}
