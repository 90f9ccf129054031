//! The bank's gateway: its files, and one authorised request.

use railhead_rail::file_gateway::{self, Fault, FileGateway};
use railhead_rail::host;
use railhead_rail::imports::http::{Failure, Response};
use railhead_rail::request::{self, Request, parameter, text};
use railhead_rail::strict::Object;
use railhead_rail::types::File;
use railhead_rail::wording::speaks_of_a_copy;
use serde::Deserialize;

/// Files of the bank's, and ours.
pub const GATEWAY: FileGateway =
    FileGateway { content_type: "application/xml", refuses: FILE_REFUSALS, names };

/// Codes with which the gateway refuses a file: nothing of it is carried out.
const FILE_REFUSALS: &[&str] = &["invalid_message", "invalid_name", "too_large"];

/// What it knows of a file that was delivered.
#[derive(Debug, Deserialize)]
struct Known {
    name: String,
    message_id: String,
}

/// Whether the gateway names this file, and its message.
fn names(file: &File, body: &[u8]) -> bool {
    let known = serde_json::from_slice::<Object<Known>>(body);
    known.is_ok_and(|Object(it)| it.name == file.name && it.message_id == file.identity)
}

/// Sends a body of this type. `reference` is what the request is about, by which a gateway finds it.
///
/// # Errors
/// It was not sent, or not answered.
pub fn post(call: &str, kind: &str, reference: &str, body: Vec<u8>) -> Result<Response, Failure> {
    let mut headers = file_gateway::authorization();
    headers.push(parameter("Content-Type", [text(kind)]));
    headers.push(parameter("X-Request-ID", [text(reference)]));
    host::send(&Request { headers, body: vec![text(body)], ..request::call(call) })
}

/// Whether an error of the gateway's may be about what it has already: that refuses nothing.
#[must_use]
pub fn is_of_a_copy(fault: &Fault) -> bool {
    speaks_of_a_copy(&fault.code) || speaks_of_a_copy(&fault.message)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "gateway_tests.rs"]
mod tests;
