//! How a transfer stands, as MTN writes it: as the answer to a question, and by itself.

use railhead_simulator::types::{Message, Place, State, Transfer};
use serde_json::{Value, json};

use crate::CURRENCY;

/// The note of where a transfer's outcome is told.
pub(crate) const CALLBACK_URL: &str = "callback_url";
/// The note of the payer's own name for it.
pub(crate) const EXTERNAL_ID: &str = "external_id";
/// The note of the text for the payer's statement.
pub(crate) const PAYER_MESSAGE: &str = "payer_message";
/// The note of the text for the payee's statement.
pub(crate) const PAYEE_NOTE: &str = "payee_note";

/// How it stands; nothing where MTN does not know the transfer, or what became of it.
#[must_use]
pub fn standing(transfer: &Transfer) -> Option<Value> {
    let whole = |status: &str| {
        let (cedis, pesewas) = (transfer.amount_minor / 100, transfer.amount_minor % 100);
        json!({
            "externalId": transfer.noted(EXTERNAL_ID),
            "amount": format!("{cedis}.{pesewas:02}"),
            "currency": CURRENCY,
            "payee": { "partyIdType": "MSISDN", "partyId": transfer.account },
            "payerMessage": transfer.noted(PAYER_MESSAGE),
            "payeeNote": transfer.noted(PAYEE_NOTE),
            "status": status,
        })
    };
    match &transfer.state {
        State::Paid | State::Returned => {
            let mut paid = whole("SUCCESSFUL");
            paid["financialTransactionId"] = json!(transaction(&transfer.reference));
            Some(paid)
        }
        // MTN documents the reason as a word in one place, and as an object in another.
        State::Refused(reason) => {
            let mut failed = whole("FAILED");
            failed["reason"] = match transfer.scenario.as_str() {
                "wallet_full" => json!({ "code": reason, "message": "as the code says" }),
                _ => json!(reason),
            };
            Some(failed)
        }
        State::Pending => Some(whole("PENDING")),
        State::Lost | State::Unclear => None,
    }
}

/// What is told about it at the address that its request gave, by PUT, as MTN does; nothing where
/// there is none.
#[must_use]
pub fn told(transfer: &Transfer) -> Option<Message> {
    let url = transfer.noted(CALLBACK_URL);
    let body = standing(transfer).filter(|_| !url.is_empty())?;
    let message = Message::json(&transfer.reference, Place::Url(url.to_owned()), &body);
    Some(Message { method: "PUT".to_owned(), ..message })
}

/// MTN's own number for a transfer: always the same.
fn transaction(reference: &str) -> String {
    let sum = reference.bytes().fold(17_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte));
    format!("{sum:010}")
}
