//! A simulated bank that originates EFT credits: it takes CPA-005 files by `PUT`, and lays out what
//! it has to say about them to be fetched.
//!
//! It reads a file as a bank does before it lets one into the clearing, and refuses it as a whole
//! for the first thing that is wrong. What it takes it reports on; payments that come back come in
//! files of the same standard. All of it happens when the file arrives: nothing here waits for a
//! value date.
//!
//! # What it remembers
//!
//! The host's book holds transfers only, and cannot be listed. A payment is one under its
//! cross-reference number, which is the payment's reference. What the bank remembers beside them
//! stands in the book too, as transfers of no amount that never arrived, were never executed and
//! are unclear. Their names are in lowercase, as no cross-reference number is:
//!
//! | reference | holds |
//! |---|---|
//! | `file/<name>` | a file that was taken: its content, and how it stands |
//! | `file-numbers` | the last ten file creation numbers, which no other file may have |
//! | `feed` | the last cursor, and the last number of an item of the bank's own |
//! | `feed/<cursor>` | the name of what lies there |
//! | `incoming/<name>` | its content |
//!
//! | module | holds |
//! |---|---|
//! | [`fields`], [`files`] | a file as it is read, and the first thing that a bank would not have |
//! | [`days`] | days as six digits |
//! | [`outgoing`] | files that are sent to it |
//! | [`scenarios`] | what becomes of a file and of its payments |
//! | [`incoming`] | what lies ready |
//! | [`reports`], [`returns`] | what is in there |

pub mod days;
pub mod fields;
pub mod files;
#[cfg(target_family = "wasm")]
mod guest;
pub mod incoming;
pub mod outgoing;
pub mod reports;
pub mod returns;
pub mod scenarios;
#[cfg(test)]
mod tests;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::answers::answer;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request, State, Transfer};
use serde::Serialize;
use serde_json::json;

pub use outgoing::tell;

/// Answers a request.
#[must_use]
pub fn handle(request: &Request) -> Answer {
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return error(401, "unauthorized", "The API key is missing or is another one.");
    }
    let (method, path) = request.what();
    if method == "GET" && host::scenario("") == scenarios::PROVIDER_DOWN {
        return down();
    }
    let below = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    match (method, below) {
        ("PUT", Some(("outgoing", name))) => outgoing::take(name, request),
        ("GET", Some(("outgoing", name))) => outgoing::status(name),
        ("GET", Some(("incoming", name))) => incoming::fetch(name),
        ("GET", None) if path == "/incoming" => incoming::list(&request.query),
        _ => not_found(),
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
    answer(status, "application/json", &written(body))
}

fn written(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_else(|cause| {
        host::error(&format!("an answer could not be written: {cause}"));
        "{}".to_owned()
    })
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
