//! A simulated Airtel Money: payments from a business to Kenyan wallets (Disbursements, version 2).
//!
//! It answers a payment with what became of it, says it again when it is asked, and tells by itself
//! what was decided later. It follows Airtel's developer portal as it stood in 2026.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | what it is sent, and the first thing that Airtel would not have |
//! | [`payments`] | what becomes of a payment |
//! | [`answers`] | what it answers and tells |

pub mod answers;
#[cfg(target_family = "wasm")]
mod guest;
pub mod payments;
pub mod requests;
#[cfg(test)]
mod tests;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{malformed, plain};
use railhead_simulator::types::{Answer, Request};
use serde_json::{Value, json};

use answers::{as_json, failed};
pub use payments::tell;

/// What it gives for credentials, for three minutes.
const BEARER: &str = "a-token-of-the-simulated-airtel";
/// The one country that it is in, and what its wallets hold.
const COUNTRY: &str = "KE";
/// See [`COUNTRY`].
const CURRENCY: &str = "KES";

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.what() == ("POST", "/auth/oauth2/token") {
        return token(request);
    }
    let Some(id) = request.path.strip_prefix("/standard/v2/disbursements/") else {
        return plain(404, "there is nothing here");
    };
    if request.header("authorization") != format!("Bearer {BEARER}") {
        return as_json(401, &json!({ "error": "invalid_token" }));
    }
    for (header, value, code) in
        [("x-country", COUNTRY, "ROUTER006"), ("x-currency", CURRENCY, "ROUTER112")]
    {
        if request.header(header) != value {
            malformed("request", header);
            return failed(400, code);
        }
    }
    match (request.method.as_str(), id) {
        ("POST", "") => payments::take(request),
        ("GET", id) if !id.is_empty() && !id.contains('/') => payments::status(request, id),
        _ => plain(405, "this is not done here"),
    }
}

fn token(request: &Request) -> Answer {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let wanted = json!({
        "client_id": CREDENTIAL,
        "client_secret": CREDENTIAL,
        "grant_type": "client_credentials",
    });
    if body != wanted || !request.header("content-type").starts_with("application/json") {
        malformed("request for a token", "its body");
        return as_json(401, &json!({ "error": "invalid_client" }));
    }
    let body = json!({ "access_token": BEARER, "expires_in": "180", "token_type": "bearer" });
    as_json(200, &body)
}
