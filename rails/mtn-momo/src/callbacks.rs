//! What MTN tells by itself, at the address that the request gave: how a transfer stands, once, by
//! POST or PUT, and without a signature. The host takes it for a reason to ask.

use railhead_rail::document::Document;
use railhead_rail::types::{Finding, News, Notice, Reply, Subject};

use crate::settings::Settings;
use crate::standing::Standing;

/// Where transfers are told about: our reference follows.
pub const TRANSFERS: &str = "/transfers/";

/// Reads a message.
///
/// # Errors
/// A sentence, where it is not one of MTN's messages about a transfer.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    let reference = path.strip_prefix(TRANSFERS).unwrap_or_default();
    if reference.is_empty() || reference.contains('/') {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let Ok(body @ Document::Object(_)) = Document::read(body) else {
        return Err("the message is no JSON object".to_owned());
    };
    let about = Subject::Reference(reference.to_owned());
    let news = told(&Standing(&body), reference).map_or(News::Ask, News::Found);
    let reply = Reply::ok("application/json", b"{}");
    Ok((reply, vec![Notice { about, news }]))
}

/// What is told of the transfer that the address names. Where that proves nothing there is a
/// reason to ask all the same.
fn told(standing: &Standing<'_>, reference: &str) -> Option<Finding> {
    if standing.reference() != reference {
        return None;
    }
    let finding = standing.finding(Settings::read().unclear).ok()?;
    matches!(finding, Finding::Paid(_) | Finding::Refused(_)).then_some(finding)
}
