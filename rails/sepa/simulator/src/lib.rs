//! A simulated bank that carries out SEPA credit transfers: from files, and instantly.
//!
//! It reads files (pain.001), payments (pacs.008), questions (pacs.028) and recalls (camt.056)
//! element by element, and refuses what a bank would not have. What it takes in files it reports on
//! (pain.002), and what comes back it books (camt.054): both are laid out to be fetched. Instant
//! payments it answers at once (pacs.002); what it has to say later it sends (pacs.002, pacs.004).
//! All of it happens when a message arrives: nothing here waits for a settlement date.
//!
//! # What it remembers
//!
//! The host's book holds transfers only, and cannot be listed. A payment is one under its
//! `EndToEndId`. What the bank remembers beside them stands in the book too, as transfers of no
//! amount and no account. Their names are in lowercase, as no payment's is:
//!
//! | reference | holds |
//! |---|---|
//! | `file/<name>` | a file that was taken, and how it stands |
//! | `message/<MsgId>` | the name of the file that has it |
//! | `feed`, `feed/<cursor>` | the last cursor, and the name of what lies at one |
//! | `incoming/<name>` | its content |
//!
//! | module | holds |
//! |---|---|
//! | [`xml`], [`accounts`], [`amounts`], [`time`] | how these are read and written |
//! | [`orders`], [`requests`] | files and requests, and the first thing that a bank would not have |
//! | [`scenarios`] | what becomes of files and payments |
//! | [`files`], [`reports`], [`incoming`] | files that are sent, what is said about them, what lies ready |
//! | [`payments`] | instant payments |
//! | [`recalls`], [`names`] | recalls, and Verification of Payee |

pub mod accounts;
pub mod amounts;
pub mod files;
#[cfg(target_family = "wasm")]
mod guest;
pub mod incoming;
pub mod names;
pub mod orders;
pub mod payments;
pub mod recalls;
pub mod reports;
pub mod requests;
pub mod scenarios;
#[cfg(test)]
mod tests;
pub mod time;
pub mod xml;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};
use serde::Serialize;
use serde_json::json;

pub use payments::tell;

/// What messages are sent as.
const XML: &str = "application/xml";

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return error(401, "unauthorized", "The key is missing or is another one.");
    }
    let (method, path) = request.what();
    if method == "GET" && host::scenario("") == scenarios::PROVIDER_DOWN {
        return down();
    }
    if let ("POST", Some(kind)) = (method, kind_of(path)) {
        return posted(request, path, kind);
    }
    let below = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    match (method, below) {
        ("PUT", Some(("outgoing", name))) => files::take(name, request),
        ("GET", Some(("outgoing", name))) => files::status(name),
        ("GET", Some(("incoming", name))) => incoming::fetch(name),
        ("GET", None) if path == "/incoming" => incoming::list(&request.query),
        _ => not_found(),
    }
}

/// What is sent to this path.
fn kind_of(path: &str) -> Option<&'static str> {
    match path {
        "/instant/payments" | "/instant/status-requests" | "/recalls" => Some(XML),
        "/vop/v1/payee-verifications" => Some("application/json"),
        _ => None,
    }
}

fn posted(request: &Request, path: &str, kind: &str) -> Answer {
    if request.header("content-type") != kind {
        malformed("request", "it is of another type");
        return error(415, "unsupported_media_type", &format!("It is not {kind}."));
    }
    if request.header("x-request-id").is_empty() {
        malformed("request", "it has no X-Request-ID");
        return error(400, "missing_request_id", "There is no X-Request-ID.");
    }
    match path {
        "/instant/payments" => payments::take(request),
        "/instant/status-requests" => payments::ask(request),
        "/recalls" => recalls::take(request),
        _ => names::compare(request),
    }
}

fn not_found() -> Answer {
    error(404, "not_found", "There is no such thing.")
}

fn down() -> Answer {
    error(503, "unavailable", "The gateway is down.")
}

fn error(status: u16, code: &str, message: &str) -> Answer {
    as_json(status, &json!({ "code": code, "message": message }))
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

/// Something that the bank remembers which is no payment.
fn page(reference: &str) -> Transfer {
    Transfer {
        reference: reference.to_owned(),
        amount_minor: 0,
        account: String::new(),
        state: State::Unclear,
        received: 0,
        executed: 0,
        scenario: String::new(),
        notes: Vec::new(),
    }
}

/// Whether a file may be called this.
fn is_file_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (1..=80).contains(&name.len()) && name.bytes().all(is_plain)
}
