//! What Vola says about a payment, in an answer or by itself: the same words.

use railhead_rail::types::{Finding, Message, News, Notice, Receipt, Refusal, Reply, Subject};
use serde_json::Value;

pub struct Told {
    pub id: String,
    state: String,
    reason: String,
    /// In whole ariary.
    amount: i64,
}

pub fn read(body: &[u8]) -> Option<Told> {
    let told: Value = serde_json::from_slice(body).ok()?;
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    Some(Told {
        id: Some(text("id")).filter(|id| !id.is_empty())?,
        state: text("state"),
        reason: text("reason"),
        amount: told["amount"].as_i64()?,
    })
}

pub fn finding(told: &Told) -> Finding {
    match told.state.as_str() {
        "paid" => Finding::Paid(Receipt {
            code: "paid".to_owned(),
            network_id: None,
            amount_minor: told.amount.checked_mul(100),
            facts: Vec::new(),
        }),
        "refused" => Finding::Refused(refusal(&told.reason)),
        _ => Finding::Unknown("Vola has not decided yet".to_owned()),
    }
}

pub fn refusal(reason: &str) -> Refusal {
    let message = match reason {
        "no_wallet" => "There is no such wallet",
        _ => "Vola refused the payment",
    };
    Refusal { code: reason.to_owned(), message: message.to_owned() }
}

pub fn receive(message: &Message) -> Result<(Reply, Vec<Notice>), String> {
    let told = read(&message.body).ok_or("the message is none of Vola's")?;
    let notice =
        Notice { about: Subject::Reference(told.id.clone()), news: News::Found(finding(&told)) };
    Ok((Reply::ok("text/plain", b"ok"), vec![notice]))
}
