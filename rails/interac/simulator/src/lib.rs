//! A simulated participant of Interac e-Transfer, and the network behind it.
//!
//! It takes transfers on, tells by notice how they go on, and answers questions about them. The
//! shape of its API is described in the rail's README: no participant publishes one. What the
//! network does is what it tells its customers: Autodeposit asks nobody; otherwise the recipient
//! answers a question, for which there are thirty days; until then the sender can cancel; what was
//! deposited never comes back.
//!
//! | module | holds |
//! |---|---|
//! | [`orders`] | transfers as they are ordered, and the first thing that would not be taken |
//! | [`transfers`] | what becomes of a transfer |
//! | [`views`] | a transfer as it is shown, and what is told of it |

#[cfg(target_family = "wasm")]
mod guest;
pub mod orders;
#[cfg(test)]
mod tests;
pub mod transfers;
pub mod views;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request};
use serde::Serialize;
use serde_json::{Value, json};

use orders::Fault;
pub use transfers::tell;

/// What it gives for credentials, for half an hour.
const BEARER: &str = "a-token-of-the-simulated-participant";

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.what() == ("POST", "/v1/oauth/token") {
        return token(request);
    }
    if request.header("authorization") != format!("Bearer {BEARER}") {
        return refused(401, &["UNAUTHORIZED"], None);
    }
    let below = request.path.strip_prefix("/v1/payments").unwrap_or("/");
    let below: Vec<&str> = below.split('/').skip(1).collect();
    let answered = match (request.method.as_str(), below.as_slice()) {
        ("POST", []) if request.path == "/v1/payments" => transfers::take(request),
        ("POST", [reference, "cancel"]) => transfers::cancel(reference, request),
        ("GET", [reference]) if !reference.is_empty() => Ok(transfers::status(reference)),
        _ => return json(404, &json!({ "status": 404, "title": "Not Found" })),
    };
    answered.unwrap_or_else(|fault| {
        malformed("transfer", &fault.why);
        refused(400, &[fault.code], None)
    })
}

/// A token for the client's credentials (RFC 6749, section 4.4).
fn token(request: &Request) -> Answer {
    let basic = format!("Basic {}", BASE64.encode(format!("{CREDENTIAL}:{CREDENTIAL}")));
    let is_form = request.header("content-type") == "application/x-www-form-urlencoded";
    if request.header("authorization") != basic {
        return json(401, &json!({ "error": "invalid_client" }));
    }
    if !is_form || request.body != b"grant_type=client_credentials" {
        return json(400, &json!({ "error": "unsupported_grant_type" }));
    }
    json(200, &json!({ "access_token": BEARER, "token_type": "Bearer", "expires_in": 1800 }))
}

/// Whether a request's body is said to be JSON.
fn is_json(request: &Request) -> Result<(), Fault> {
    let media_type = request.header("content-type").split(';').next().unwrap_or_default();
    match media_type.trim().eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Fault::invalid("the body is not said to be JSON")),
    }
}

/// An answer that refuses something for these reasons, about a transfer where one is named.
fn refused(status: u16, codes: &[&str], about: Option<&str>) -> Answer {
    let said: Vec<Value> = codes
        .iter()
        .map(|code| json!({ "severity": "ERROR", "code": code, "message": code }))
        .collect();
    let mut body = json!({ "notifications": said });
    if let Some(reference) = about {
        body["data"] = json!({ "end_to_end_identification": reference });
    }
    json(status, &body)
}

fn json(status: u16, body: &impl Serialize) -> Answer {
    answer(status, "application/json", &written(body))
}

/// A body; an empty object where it cannot be written, which does not happen.
fn written(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_else(|cause| {
        host::error(&format!("a message could not be written: {cause}"));
        "{}".to_owned()
    })
}
