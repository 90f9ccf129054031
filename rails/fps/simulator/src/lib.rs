//! A simulated ClearBank: pounds over Faster Payments, and Confirmation of Payee.
//!
//! It answers an order with what it thinks of it, and tells by webhook how the payment ended. It
//! follows ClearBank's public documentation of 2026: the documents of its API ("3.0.FPS-payment",
//! "1.0.COP-Outbound"), the pages on getting started and Faster Payments, and those of the
//! webhooks. Only the question about a payment is the rail's own.
//!
//! | module | holds |
//! |---|---|
//! | [`orders`] | payments as they are ordered, and the first thing that ClearBank would not have |
//! | [`payments`] | what becomes of a payment |
//! | [`names`] | whether a name is the one on an account |
//! | [`webhooks`] | what it tells |
//! | [`accounts`], [`amounts`], [`identifiers`], [`time`] | how these are written |

pub mod accounts;
pub mod amounts;
#[cfg(target_family = "wasm")]
mod guest;
pub mod identifiers;
pub mod names;
pub mod orders;
pub mod payments;
#[cfg(test)]
mod tests;
pub mod time;
pub mod webhooks;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request};
use serde::Serialize;
use serde_json::json;

use orders::Fault;
pub use payments::tell;

/// The key that the rail signs what it sends with.
const RAIL_KEY: &str = "signing";
/// Most characters of a request's identifier.
const REQUEST_ID_MAX: usize = 83;

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if let Some(refusal) = stranger(request).or_else(|| unsigned(request)) {
        return refusal;
    }
    match request.what() {
        ("POST", "/v3/payments/fps") => payments::take(request).unwrap_or_else(|fault| {
            malformed("payment", &fault.to_string());
            invalid(&fault)
        }),
        ("POST", "/open-banking/outbound/v1/name-verification") => names::compare(&request.body)
            .unwrap_or_else(|fault| {
                malformed("name check", &fault.to_string());
                names::refused(&fault)
            }),
        ("GET", path) => match path.strip_prefix("/v3/payments/fps/") {
            Some(reference) if !reference.is_empty() && !reference.contains('/') => {
                payments::status(reference)
            }
            _ => problem(404, "Not Found"),
        },
        _ => problem(404, "Not Found"),
    }
}

/// What somebody who is not known is told: 401 without a token, 403 with another one.
fn stranger(request: &Request) -> Option<Answer> {
    match request.header("authorization") {
        "" => Some(problem(401, "Unauthorized")),
        token if token == format!("Bearer {CREDENTIAL}") => None,
        _ => Some(problem(403, "Forbidden")),
    }
}

/// What a body without the headers that it needs is told.
fn unsigned(request: &Request) -> Option<Answer> {
    if request.method != "POST" {
        return None;
    }
    let signature = BASE64.decode(request.header("digitalsignature")).unwrap_or_default();
    let is_signed = host::verify(RAIL_KEY, &request.body, &signature);
    let id = request.header("x-request-id");
    let is_identified =
        id.len() <= REQUEST_ID_MAX && id.bytes().all(|byte| byte.is_ascii_graphic());
    let media_type = request.header("content-type").split(';').next().unwrap_or_default();
    let (status, title) = match () {
        () if !media_type.trim().eq_ignore_ascii_case("application/json") => {
            (415, "Unsupported Media Type")
        }
        () if !is_signed => (400, "Invalid DigitalSignature Header"),
        () if id.is_empty() => (400, "Missing X-Request-Id Header"),
        () if !is_identified => (400, "Invalid X-Request-Id Header"),
        () => return None,
    };
    malformed("request", title);
    Some(problem(status, title))
}

/// A problem of the whole request (RFC 7807).
fn problem(status: u16, title: &str) -> Answer {
    as_json(status, &json!({ "type": "about:blank", "title": title, "status": status }))
}

/// A problem of a member of the body.
fn invalid(fault: &Fault) -> Answer {
    let body = json!({
        "type": "about:blank",
        "title": "One or more validation errors occurred.",
        "status": 400,
        "errors": { &fault.at: [&fault.why] },
    });
    as_json(400, &body)
}

fn as_json(status: u16, body: &impl Serialize) -> Answer {
    match serde_json::to_string(body) {
        Ok(text) => answer(status, "application/json", &text),
        Err(cause) => {
            host::error(&format!("an answer could not be written: {cause}"));
            answer(500, "application/json", "{}")
        }
    }
}
