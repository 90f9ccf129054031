//! HTTP as every call needs it: bodies, pages, limits, refusals, and what surrounds a handler.

pub mod body;
pub mod idempotency;
pub mod limiter;
pub mod metrics;
pub mod page;
pub mod peer;
pub mod places;
pub mod problem;
pub mod request_log;
pub mod shell;

pub use body::Body;
pub use idempotency::IdempotencyKey;
pub use page::{Page, PageQuery, Query};

use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

/// The answer to a request with an idempotency key, to the byte; one that had been given before
/// says so.
#[must_use]
pub fn replied(status: u16, body: String, is_replay: bool) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
    if is_replay {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotent-replayed", replayed);
    }
    response
}
