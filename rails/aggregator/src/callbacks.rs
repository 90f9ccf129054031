//! What the aggregator tells by itself, at the address that the payout gave: that something became
//! of it. It is not signed: the host takes it for a reason to ask, whatever it says.

use railhead_rail::strict::Object;
use railhead_rail::types::{Finding, News, Notice, Reply, Subject};
use serde::Deserialize;

use crate::standing::{Said, Standing};

/// Where payouts are told about: our reference follows.
pub const PAYOUTS: &str = "/payouts/";

#[derive(Deserialize)]
struct Told {
    reference: String,
}

/// Reads a message.
///
/// # Errors
/// A sentence, where it is no message about the payout that its address names.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    let reference = path.strip_prefix(PAYOUTS).unwrap_or_default();
    if reference.is_empty() || reference.contains('/') {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let Ok(Object(told)) = serde_json::from_slice::<Object<Told>>(body) else {
        return Err("the message is no JSON object with one reference".to_owned());
    };
    if told.reference != reference {
        return Err("the message is about another payout than its address".to_owned());
    }
    let about = Subject::Reference(told.reference);
    let reply = Reply::ok("application/json", b"{}");
    let news = found(body).map_or(News::Ask, News::Found);
    Ok((reply, vec![Notice { about, news }]))
}

/// What is told, where that is an end. Anything else is a reason to ask all the same.
fn found(body: &[u8]) -> Option<Finding> {
    match Standing::read(body).ok()?.said().ok()? {
        Said::Paid(receipt) => Some(Finding::Paid(receipt)),
        Said::Refused(refusal) => Some(Finding::Refused(refusal)),
        Said::TakenOn(_) => None,
    }
}
