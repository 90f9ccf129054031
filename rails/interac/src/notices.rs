//! What the participant tells by itself, at least once each: that a transfer stands otherwise.
//!
//! The host has checked the caller's token, and asks about whatever is told: nothing ends a payment
//! on a notice alone.

use railhead_rail::strict::Object;
use railhead_rail::types::{Finding, News, Notice, Reply, Subject};

use crate::messages::{Event, Standing};
use crate::reference;
use crate::standing;

const PAYMENTS: &str = "/payments";

/// Reads a message. One of no concern here is acknowledged like any other.
///
/// # Errors
/// A sentence, where it is not one of the participant's messages.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    if path != PAYMENTS {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let Object(Event { data: Object(standing) }) = serde_json::from_slice(body)
        .map_err(|_| "the message is not a notice of a participant".to_owned())?;
    let reference = standing.end_to_end_identification.clone();
    let notices = match reference::is_ours(&reference) {
        true => vec![Notice { about: Subject::Reference(reference), news: news(&standing) }],
        // Sent from the same account by somebody else.
        false => Vec::new(),
    };
    Ok((heard(), notices))
}

fn news(standing: &Standing) -> News {
    match standing::finding(standing, None) {
        Finding::Unknown(_) => News::Ask,
        found => News::Found(found),
    }
}

fn heard() -> Reply {
    Reply::ok("application/json", b"{\"status\":\"RECEIVED\"}")
}
