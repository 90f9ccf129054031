//! A simulated MTN: transfers of the MoMo Open API (Disbursements 1.0) to Ghanaian wallets.
//!
//! It takes transfers on with 202 and says how they stand when it is asked, and once by itself at
//! the address that it was given. It follows MTN's public documentation of 2026: the API reference,
//! and the pages on callbacks, common errors and testing.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | transfers as they are sent, and the first thing that MTN would not have |
//! | [`transfers`] | what becomes of a transfer |
//! | [`standing`] | how it stands, as MTN writes it |
//! | [`names`] | in whose name a wallet is |

#[cfg(target_family = "wasm")]
mod guest;
pub mod names;
pub mod requests;
pub mod standing;
#[cfg(test)]
mod tests;
pub mod transfers;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::types::{Answer, Request};
use serde_json::{Value, json};

pub use transfers::tell;

/// What it gives for credentials, for an hour.
const BEARER: &str = "a-token-of-the-simulated-mtn";
/// The one wallet platform that it has.
const ENVIRONMENT: &str = "mtnghana";
/// The currency of its wallets.
const CURRENCY: &str = "GHS";

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.header("ocp-apim-subscription-key") != CREDENTIAL {
        let why = "Access denied due to invalid subscription key. Make sure to provide a valid key \
                   for an active subscription.";
        return as_json(401, &json!({ "statusCode": 401, "message": why }));
    }
    if request.what() == ("POST", "/disbursement/token/") {
        return token(request);
    }
    if request.header("authorization") != format!("Bearer {BEARER}") {
        return as_json(401, &json!({ "message": "Unauthorized", "error": "invalid_token" }));
    }
    if request.header("x-target-environment") != ENVIRONMENT {
        malformed("request", "X-Target-Environment");
        return error(500, "NOT_ALLOWED_TARGET_ENVIRONMENT");
    }
    let below = |start: &str| request.path.strip_prefix(start).unwrap_or_default();
    let reference = below("/disbursement/v1_0/transfer/");
    let holder = below("/disbursement/v1_0/accountholder/msisdn/").strip_suffix("/basicuserinfo");
    match (request.method.as_str(), holder) {
        ("POST", _) if request.path == "/disbursement/v1_0/transfer" => transfers::take(request),
        ("GET", Some(number)) if !number.is_empty() => names::of(number),
        ("GET", None) if !reference.is_empty() && !reference.contains('/') => {
            transfers::status(reference)
        }
        _ => as_json(404, &json!({ "statusCode": 404, "message": "Resource not found" })),
    }
}

fn token(request: &Request) -> Answer {
    let basic = format!("Basic {}", BASE64.encode(format!("{CREDENTIAL}:{CREDENTIAL}")));
    if request.header("authorization") != basic {
        return as_json(401, &json!({ "error": "login_failed" }));
    }
    if !request.body.is_empty() {
        malformed("request for a token", "a body");
        return answer(400, "application/json", "");
    }
    let body = json!({ "access_token": BEARER, "token_type": "access_token", "expires_in": 3600 });
    as_json(200, &body)
}

fn as_json(status: u16, body: &Value) -> Answer {
    answer(status, "application/json", &body.to_string())
}

/// One of MTN's words for what is wrong.
fn error(status: u16, code: &str) -> Answer {
    as_json(status, &json!({ "code": code, "message": "as the code says" }))
}
