//! One request to the gateway, signed where it has a body.

use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::request::{self, Request, parameter, secret, signature, text};

/// The call that moves money.
pub const PAYMENT: &str = "payment";
/// The call that asks what became of a payment.
pub const STATUS: &str = "status";
/// The call that compares a name with an account's.
pub const NAME_CHECK: &str = "name_check";

/// The key that our bodies are signed with.
pub const SIGNING_KEY: &str = "signing";
/// The header that a body's signature goes in.
pub const SIGNATURE: &str = "DigitalSignature";

/// Sends a body. `reference` is ours, by which the gateway knows a request for a day.
///
/// # Errors
/// A sentence on why there is no answer. The message may have been carried out all the same.
pub fn post(call: &str, reference: &str, body: String) -> Result<Response, String> {
    send(&Request {
        headers: vec![
            authorization(),
            parameter("Content-Type", [text("application/json")]),
            parameter(SIGNATURE, [signature(SIGNING_KEY)]),
            parameter("X-Request-Id", [text(reference)]),
        ],
        body: vec![text(body)],
        ..request::call(call)
    })
}

/// Asks about what the path names.
///
/// # Errors
/// A sentence on why there is no answer.
pub fn get(call: &str, path: &str) -> Result<Response, String> {
    send(&Request { path: path.to_owned(), headers: vec![authorization()], ..request::call(call) })
}

/// An answer of no use, in a sentence for the operator. It holds no text of the answer.
#[must_use]
pub fn useless(response: &Response) -> String {
    format!("the gateway answered HTTP {} and nothing that says more", response.status)
}

fn authorization() -> request::Parameter {
    parameter("Authorization", [text("Bearer "), secret("api_token")])
}

fn send(request: &Request) -> Result<Response, String> {
    host::send(request).map_err(request::why)
}
