//! A simulated gateway of a sponsor bank, with the Fedwire Funds Service behind it.
//!
//! It follows the usage guidelines of the Fedwire Funds Service Release 2025, and the rules for
//! addresses of November 2026; the requests around the messages are the rail's own.
//!
//! | module | holds |
//! |---|---|
//! | [`shapes`], [`rules`], [`document`] | what messages look like, and the first thing that is wrong |
//! | [`orders`] | the messages that arrive, and what they say |
//! | [`wires`] | what becomes of a wire, of questions about it, and of asking for it back |
//! | [`reports`] | what the gateway answers and tells |
//! | [`newyork`] | days and times in New York |

pub mod document;
#[cfg(target_family = "wasm")]
mod guest;
pub mod newyork;
pub mod orders;
pub mod reports;
pub mod rules;
pub mod shapes;
#[cfg(test)]
mod tests;
pub mod wires;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed, plain};
use railhead_simulator::types::{Answer, Request};

use orders::Fault;
pub use wires::tell;

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return plain(401, "the gateway's key is missing");
    }
    let (what, answered) = match request.what() {
        ("POST", "/wires") => ("wire", wires::take(&request.body)),
        ("POST", "/status-requests") => ("question", wires::stand(&request.body)),
        ("POST", "/return-requests") => ("return request", wires::recall(&request.body)),
        _ => return plain(404, "there is nothing here"),
    };
    let media_type = request.header("content-type").split(';').next().unwrap_or_default();
    if media_type != "application/xml" {
        return plain(415, "the gateway takes application/xml");
    }
    answered.unwrap_or_else(|Fault { about, why }| {
        malformed(what, &why);
        answer(400, "application/xml", &reports::rejection(&about, "E990", &why))
    })
}
