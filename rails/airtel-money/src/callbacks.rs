//! What Airtel tells by itself, at the address that its portal was given: that something became of
//! a payment. The host takes it for a reason to ask.
//!
//! It may carry a hash of the transaction under a key of the portal. The host does not check
//! signatures inside of a body; so what is told is not believed, whatever it says.

use railhead_rail::document::Document;
use railhead_rail::types::{News, Notice, Reply, Subject};

/// Where it is told.
const CALLBACK: &str = "/callback";
/// Most characters of a reference of ours.
const REFERENCE_CHARS_MAX: usize = 64;

/// Reads a message.
///
/// # Errors
/// A sentence, where it is not one of Airtel's messages about a payment.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    if path != CALLBACK {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let message = Document::read(body)?;
    let reference = message.get("transaction").text("id");
    let is_plain = reference.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if reference.is_empty() || reference.len() > REFERENCE_CHARS_MAX || !is_plain {
        return Err("the message names no payment".to_owned());
    }
    let about = Subject::Reference(reference.to_owned());
    let reply = Reply::ok("application/json", b"{}");
    Ok((reply, vec![Notice { about, news: News::Ask }]))
}
