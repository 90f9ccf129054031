//! A simulated Daraja: M-Pesa's payments from a business to its customers.
//!
//! It acknowledges what it is sent and tells the outcome at the address that it was given.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | what it is sent, and the first thing that Daraja would not have |
//! | [`payments`] | what becomes of a payment |
//! | [`results`] | what it tells |

#[cfg(target_family = "wasm")]
mod guest;
pub mod payments;
pub mod requests;
pub mod results;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed, plain};
use railhead_simulator::types::{Answer, Request};
use serde_json::{Value, json};

pub use payments::tell;

/// What it gives for credentials, for an hour.
const BEARER: &str = "a-token-of-the-simulated-daraja";

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    let is_known = request.header("authorization") == format!("Bearer {BEARER}");
    let stranger = || error(404, "404.001.03", "Invalid Access Token");
    let (what, answered) = match request.what() {
        ("GET", "/oauth/v1/generate") => return token(request),
        (_, "/mpesa/b2c/v3/paymentrequest" | "/mpesa/transactionstatus/v1/query") if !is_known => {
            return stranger();
        }
        ("POST", "/mpesa/b2c/v3/paymentrequest") => ("payment", payments::take(&request.body)),
        ("POST", "/mpesa/transactionstatus/v1/query") => {
            ("status query", payments::status(&request.body))
        }
        _ => return plain(404, "there is nothing here"),
    };
    answered.unwrap_or_else(|why| {
        malformed(what, &why);
        error(400, "400.002.02", &format!("Bad Request - Invalid {why}"))
    })
}

fn token(request: &Request) -> Answer {
    let basic = format!("Basic {}", BASE64.encode(format!("{CREDENTIAL}:{CREDENTIAL}")));
    match (request.header("authorization") == basic, request.query.as_slice()) {
        (true, [(name, value)]) if name == "grant_type" && value == "client_credentials" => {
            json(200, &json!({ "access_token": BEARER, "expires_in": "3599" }))
        }
        (true, _) => error(400, "400.008.02", "Invalid grant type passed"),
        (false, _) => error(400, "400.008.01", "Invalid Authentication passed"),
    }
}

/// An acknowledgement of something, under this name.
fn acknowledged(reference: &str) -> Answer {
    let body = json!({
        "ConversationID": conversation(reference),
        "OriginatorConversationID": reference,
        "ResponseCode": "0",
        "ResponseDescription": "Accept the service request successfully.",
    });
    json(200, &body)
}

/// Daraja's own name for a conversation.
fn conversation(reference: &str) -> String {
    format!("AG_{reference}")
}

fn json(status: u16, body: &Value) -> Answer {
    answer(status, "application/json", &body.to_string())
}

fn error(status: u16, code: &str, message: &str) -> Answer {
    json(status, &json!({ "requestId": "1", "errorCode": code, "errorMessage": message }))
}
