//! What Daraja tells by itself: results of payments, and answers to questions.

use railhead_simulator::types::{Message, Place, State, Transfer};
use serde_json::{Value, json};

use crate::conversation;
use crate::payments::RESULT_URL;

/// The result of a payment, for the address that its request gave.
#[must_use]
pub fn result(payment: &Transfer, code: &Value) -> Message {
    result_with(payment, code, &parameters(payment))
}

/// The result of a payment that was made, told once more: the payer's name stands twice among the
/// parameters, as it does in Daraja's own example, around those that matter.
#[must_use]
pub fn result_again(payment: &Transfer) -> Message {
    let payer = ("DebitPartyName", json!("600000 - Railhead"));
    let parameters = [vec![payer.clone()], parameters(payment), vec![payer]].concat();
    result_with(payment, &json!(0), &parameters)
}

fn parameters(payment: &Transfer) -> Vec<(&'static str, Value)> {
    vec![
        ("TransactionAmount", json!(payment.amount_minor / 100)),
        ("TransactionReceipt", json!(receipt(payment))),
        ("ReceiverPartyPublicName", json!(format!("{} - Wanjiku Kamau", payment.account))),
    ]
}

fn result_with(payment: &Transfer, code: &Value, parameters: &[(&str, Value)]) -> Message {
    let body = json!({ "Result": {
        "ResultType": 0,
        "ResultCode": code,
        "ResultDesc": "as the code says",
        "OriginatorConversationID": payment.reference,
        "ConversationID": conversation(&payment.reference),
        "TransactionID": receipt(payment),
        "ResultParameters": { "ResultParameter": listed(parameters) },
    } });
    told_at(&payment.reference, payment.noted(RESULT_URL).to_owned(), &body)
}

/// What is told about a payment that was asked about; nothing, where nobody knows.
#[must_use]
pub fn answer_to(found: Option<&Transfer>) -> Option<Value> {
    let not_found =
        |code: Value| json!({ "Result": { "ResultCode": code, "ResultDesc": "not found" } });
    let Some(payment) = found else { return Some(not_found(json!(2))) };
    let status = match &payment.state {
        State::Paid | State::Returned => "Completed",
        // Undocumented, both: nobody may go by them.
        State::Refused(_) => "Failed",
        State::Pending => "Pending",
        State::Unclear => return None,
        State::Lost => return Some(not_found(json!("2"))),
    };
    let parameters = [
        ("DebitPartyName", json!("600000 - Railhead")),
        ("DebitPartyName", json!("600000 - Railhead")),
        ("TransactionStatus", json!(status)),
        ("Amount", json!(payment.amount_minor / 100)),
        ("ReceiptNo", json!(receipt(payment))),
    ];
    Some(json!({ "Result": {
        "ResultType": 0,
        "ResultCode": 0,
        "ResultDesc": "The service request is processed successfully.",
        "OriginatorConversationID": "of the question itself",
        "ConversationID": "AG_of_the_question",
        "TransactionID": "0000000000",
        "ResultParameters": { "ResultParameter": listed(&parameters) },
    } }))
}

/// The result that was held up until the payment was asked about; nothing where there is none
/// that refuses it. No answer to a question says in documented words that a payment was refused.
#[must_use]
pub fn held_up(payment: &Transfer) -> Option<Message> {
    match &payment.state {
        State::Refused(code) => Some(result(payment, &json!(code))),
        _ => None,
    }
}

/// A message about a payment, to an address that was given.
#[must_use]
pub fn told_at(about: &str, url: String, body: &Value) -> Message {
    Message::json(about, Place::Url(url), body)
}

fn listed(parameters: &[(&str, Value)]) -> Vec<Value> {
    parameters.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect()
}

/// A receipt number: always the same for a payment.
fn receipt(payment: &Transfer) -> String {
    let tail: String = payment.reference.chars().rev().take(8).collect();
    format!("RH{}", tail.to_uppercase())
}
