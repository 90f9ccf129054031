//! How a payout stands, as the protocol writes it: as the answer to a question, and by itself.

use railhead_simulator::types::{Message, Place, State, Transfer};
use serde_json::{Value, json};

use crate::wallets;

/// The note of where a payout's outcome is told.
pub(crate) const CALLBACK_URL: &str = "callback_url";
/// The note of whose wallet is paid.
pub(crate) const OPERATOR: &str = "operator";

/// How it stands; nothing where the aggregator does not know the payout.
#[must_use]
pub fn standing(payout: &Transfer) -> Option<Value> {
    let operator = payout.noted(OPERATOR);
    let whole = |status: &str| {
        json!({
            "reference": payout.reference,
            "status": status,
            "amount": wallets::written(payout.amount_minor),
            "currency": wallets::currency(operator),
            "operator": operator,
            "account": payout.account,
        })
    };
    match &payout.state {
        State::Paid | State::Returned => {
            let mut paid = whole("SUCCESS");
            paid["transaction_id"] = json!(transaction(&payout.reference));
            Some(paid)
        }
        State::Refused(code) => {
            let mut failed = whole("FAILED");
            failed["code"] = json!(code);
            Some(failed)
        }
        State::Pending => Some(whole("PENDING")),
        State::Unclear => {
            let mut unknown = whole("UNKNOWN");
            unknown["code"] = json!("OPERATOR_TIMEOUT");
            Some(unknown)
        }
        State::Lost => None,
    }
}

/// What is told about it at the address that it came with; nothing where there is none.
#[must_use]
pub fn told(payout: &Transfer) -> Option<Message> {
    let url = payout.noted(CALLBACK_URL);
    let body = standing(payout).filter(|_| !url.is_empty())?;
    Some(Message::json(&payout.reference, Place::Url(url.to_owned()), &body))
}

/// The aggregator's own name for a payout: always the same.
fn transaction(reference: &str) -> String {
    let sum = reference.bytes().fold(17_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte));
    format!("AG{sum:010}")
}
