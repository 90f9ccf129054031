//! A simulated aggregator of mobile money: payouts to wallets of Telecel Cash and AT Money in
//! Ghana, and of T-Kash in Kenya.
//!
//! It follows the protocol that the rail's README documents: it takes a payout on once under its
//! reference, says how it stands when it is asked, and tells that by itself at the address that it
//! was given.
//!
//! | module | holds |
//! |---|---|
//! | [`requests`] | payouts as they are sent, and the first thing that is wrong with one |
//! | [`payouts`] | what becomes of a payout |
//! | [`standing`] | how it stands, as the protocol writes it |
//! | [`names`] | in whose name a wallet is |
//! | [`wallets`] | which wallets there are |

#[cfg(target_family = "wasm")]
mod guest;
pub mod names;
pub mod payouts;
pub mod requests;
pub mod standing;
#[cfg(test)]
mod tests;
pub mod wallets;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::types::{Answer, Request};
use serde_json::{Value, json};

pub use payouts::tell;

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    let key = request.header("idempotency-key");
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return problem(401, "UNAUTHENTICATED", ("reference", key));
    }
    let reference = request.path.strip_prefix("/v1/payouts/").unwrap_or_default();
    match request.what() {
        ("POST", "/v1/payouts") => payouts::take(request),
        ("POST", "/v1/accounts/lookup") => names::of(request),
        ("GET", _) if !reference.is_empty() && !reference.contains('/') => {
            if !request.body.is_empty() {
                malformed("question", "a body");
                return problem(400, "INVALID_REQUEST", ("reference", reference));
            }
            payouts::status(reference)
        }
        _ => as_json(404, &json!({ "message": "no such path" })),
    }
}

fn as_json(status: u16, body: &Value) -> Answer {
    answer(status, "application/json", &body.to_string())
}

/// What is wrong, and with which payout or wallet.
fn problem(status: u16, code: &str, (name, about): (&str, &str)) -> Answer {
    as_json(status, &json!({ name: about, "code": code, "message": "as the code says" }))
}
