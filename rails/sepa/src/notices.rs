//! What the bank tells by itself: how an instant payment ended, that one came back, what became of
//! a recall.
//!
//! The host has checked the bank's token. A message that is of no concern here is acknowledged like
//! any other: the bank would repeat it.

use railhead_rail::host;
use railhead_rail::types::{Finding, News, Notice, Reply, Subject};

use crate::{instant, pacs002, pacs004, recalls, reference, xml};

/// Where it speaks.
const PATH: &str = "/sepa/notices";

/// Reads a message.
///
/// # Errors
/// A sentence, where it is not one of the bank's messages.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    if path != PATH {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let message = xml::read(body)?;
    let notices = match message.kind.as_str() {
        pacs002::KIND => vec![status(&message.content)?].into_iter().flatten().collect(),
        pacs004::KIND => pacs004::read(&message.content)?,
        recalls::RESOLUTION => recalls::resolved(&message.content)?.into_iter().collect(),
        _ => return Err("it is no message that the bank sends".to_owned()),
    };
    Ok((Reply::ok("text/plain; charset=utf-8", b""), notices))
}

/// What a status report tells. "Paid" is believed with the amount, which the host compares, and a
/// refusal without one; what is not certain is a reason to ask.
fn status(content: &xml::Element) -> Result<Option<Notice>, String> {
    let named = content.text(&["TxInfAndSts", "OrgnlEndToEndId"])?;
    let Some(named) = named.filter(|named| reference::is_instant(named)) else {
        host::warn("a status report is on a payment that was not made here");
        return Ok(None);
    };
    let about = Subject::Reference(named.to_owned());
    let said = match pacs002::said(content) {
        Ok(said) => said,
        Err(why) => {
            host::warn(&format!("a status report cannot be believed: {why}"));
            return Ok(Some(Notice { about, news: News::Ask }));
        }
    };
    let news = match instant::found(&said) {
        Finding::Paid(receipt) if receipt.amount_minor.is_none() => News::Ask,
        // Nobody compares the amount of a refusal here: the answer to a question is compared.
        Finding::Refused(_) if said.cents.is_some() => News::Ask,
        Finding::Unknown(_) => News::Ask,
        found => News::Found(found),
    };
    Ok(Some(Notice { about, news }))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "notices_tests.rs"]
mod tests;
