//! What Airtel answers, and what it tells by itself.

use railhead_simulator::answers::answer;
use railhead_simulator::types::{Answer, Message, Place, Transfer};
use serde_json::{Value, json};

/// Where it is told that something became of a payment, below the address of the portal.
const CALLBACK: &str = "/callback";

/// An answer with this body.
#[must_use]
pub fn as_json(status: u16, body: &Value) -> Answer {
    answer(status, "application/json", &body.to_string())
}

/// An answer that names no payment: by the product's code, or by one that all products have.
#[must_use]
pub fn failed(status: u16, code: &str) -> Answer {
    let name = if code.starts_with("ESB") { "result_code" } else { "response_code" };
    let mut body = json!({ "status": { "code": status.to_string(), "success": false } });
    body["status"][name] = json!(code);
    body["status"]["message"] = json!("as the code says");
    as_json(status, &body)
}

/// An answer about a payment: the transaction's word, and the code.
#[must_use]
pub fn about(payment: &Transfer, word: &str, code: &str) -> Answer {
    let mut transaction = json!({
        "id": payment.reference,
        "reference_id": number(payment),
        "status": word,
    });
    // There is one only for what was paid.
    if word == "TS" {
        transaction["airtel_money_id"] = json!(receipt(payment));
    }
    let is_paid = word == "TS";
    let body = json!({
        "data": { "transaction": transaction },
        "status": {
            "code": "200",
            "message": if is_paid { "Success" } else { "as the code says" },
            "response_code": code,
            "result_code": if is_paid { "ESB000010" } else { "ESB000011" },
            "success": is_paid,
        },
    });
    as_json(200, &body)
}

/// What is told of a payment once it is decided.
#[must_use]
pub fn told(payment: &Transfer, word: &str) -> Message {
    let body = json!({ "transaction": {
        "id": payment.reference,
        "message": format!("Paid KES {} to WANJIKU KAMAU", payment.amount_minor / 100),
        "status_code": word,
        "airtel_money_id": receipt(payment),
    } });
    Message::json(&payment.reference, Place::Notice(CALLBACK.to_owned()), &body)
}

/// The wallet's own number for a payment: always the same.
fn receipt(payment: &Transfer) -> String {
    format!("MP{}", number(payment))
}

fn number(payment: &Transfer) -> String {
    let letters = payment.reference.bytes();
    let sum = letters.fold(17_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte));
    format!("{sum:010}")
}
