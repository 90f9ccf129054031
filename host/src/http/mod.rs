//! HTTP as every call needs it: bodies, pages, limits, refusals, and what surrounds a handler.

pub mod body;
pub mod idempotency;
pub mod limiter;
pub mod long_reads;
pub mod metrics;
pub mod page;
pub mod peer;
pub mod places;
pub mod problem;
pub mod request_log;
pub mod server;
pub mod shell;
pub mod texts;
mod unread;

pub use body::Body;
pub use idempotency::IdempotencyKey;
pub use page::{Page, PageQuery, Query, after, filter, instant};

use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

/// An answer to a request with an idempotency key.
#[derive(Clone, Debug)]
pub struct Replied {
    /// Its status.
    pub status: u16,
    /// Its body, to the byte.
    pub body: String,
    /// Whether it had been given before; it says so.
    pub is_replay: bool,
}

/// The answer to a request with an idempotency key.
#[must_use]
pub fn replied(Replied { status, body, is_replay }: Replied) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
    if is_replay {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotent-replayed", replayed);
    }
    response
}
