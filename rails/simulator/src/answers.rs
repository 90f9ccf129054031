//! The commonest answers.

use crate::host;
use crate::types::{Answer, Response};

/// An answer of this status, content type and body.
#[must_use]
pub fn answer(status: u16, content_type: &str, body: &str) -> Answer {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    Answer::Response(Response { status, headers, body: body.as_bytes().to_vec() })
}

/// An answer of this status with a text for whoever reads it.
#[must_use]
pub fn plain(status: u16, text: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}

/// What a network that is down answers.
#[must_use]
pub fn unavailable() -> Answer {
    plain(503, "the network is down")
}

/// Says in the log that the rail sent what no network would understand; refuse it after that.
pub fn malformed(what: &str, why: &str) {
    host::error(&format!("a simulated network was sent a malformed {what}: {why}"));
}
