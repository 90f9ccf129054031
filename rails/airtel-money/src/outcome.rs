//! What an answer says became of a payment.
//!
//! It has a code for the request and a word for the transaction: `TS` for success, `TF` for failed,
//! `TIP` for in progress, `TA` for ambiguous. Only where both say the same is it believed.

use railhead_rail::document::Document;
use railhead_rail::fields::field;
use railhead_rail::types::{Field, Payment, Receipt, Refusal};

use crate::codes::{self, Class, Stage};
use crate::gateway::Answer;

/// The fact that Airtel has taken a payment on. That it finds none later proves nothing then.
pub const TAKEN: &str = "taken";

/// What became of a payment, as an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The wallet has the money.
    Paid(Receipt),
    /// Airtel has it, and is not through with it.
    TakenOn(Receipt),
    /// It failed.
    Refused(Refusal),
    /// The request was refused, and no transaction is named: none was begun.
    TurnedAway(Refusal),
    /// Airtel finds none.
    NotFound,
    /// Nothing, in a sentence.
    Nothing(String),
}

/// What an answer says about a payment, whatever its HTTP status.
#[must_use]
pub fn said(answer: &Answer, payment: &Payment) -> Said {
    let data = answer.body.get("data");
    let code = answer.code();
    let transaction = match data.get("transaction") {
        transaction @ Document::Object(_) => transaction,
        _ if answer.body.has("data") && has_something(data) => {
            return Said::Nothing("Airtel names the payment in a way that is not known".to_owned());
        }
        _ => return without_transaction(answer),
    };
    if transaction.text("id") != payment.reference {
        return Said::Nothing("Airtel answered about another payment than was sent".to_owned());
    }
    // It is not documented to be there; where it is, it has to be ours.
    let (amount, currency) = (transaction.text("amount"), transaction.text("currency"));
    let is_amount = is_amount(amount, payment.amount_minor / 100) || !transaction.has("amount");
    let is_currency = currency == payment.currency || !transaction.has("currency");
    if !is_amount || !is_currency {
        return Said::Nothing("Airtel answered about another amount than was sent".to_owned());
    }
    let receipt = Receipt {
        code: code.to_owned(),
        network_id: network_id(transaction),
        amount_minor: transaction.has("amount").then_some(payment.amount_minor),
        facts: taken(),
    };
    match (transaction.text("status"), codes::class(code)) {
        ("TS", Class::Paid) => Said::Paid(receipt),
        ("TF", Class::Refused(_) | Class::Ours(_)) => Said::Refused(refusal(code)),
        ("TIP", Class::Open | Class::Paid) => Said::TakenOn(receipt),
        (status, _) => {
            let status = codes::shown(status);
            Said::Nothing(format!("{}; the payment is {status:?}", answer.sentence()))
        }
    }
}

fn without_transaction(answer: &Answer) -> Said {
    match codes::class(answer.code()) {
        Class::Refused(Stage::Request) | Class::Ours(Stage::Request) => {
            Said::TurnedAway(refusal(answer.code()))
        }
        Class::NotFound => Said::NotFound,
        Class::Paid
        | Class::Open
        | Class::Refused(Stage::Transaction)
        | Class::Ours(Stage::Transaction) => Said::Nothing(answer.sentence()),
    }
}

/// Whether a decimal number is this many shillings: `1250`, or with cents that are zeros.
fn is_amount(text: &str, shillings: i64) -> bool {
    let (whole, cents) = text.split_once('.').unwrap_or((text, "0"));
    let is_whole = !cents.is_empty() && cents.bytes().all(|digit| digit == b'0');
    is_whole && whole == shillings.to_string()
}

/// Whether more stands there than an empty object.
fn has_something(data: &Document) -> bool {
    !matches!(data, Document::Object(members) if members.is_empty())
}

/// The wallet's own number for the payment or, where there is none, that of the gateway.
fn network_id(transaction: &Document) -> Option<String> {
    let named = ["airtel_money_id", "reference_id"].map(|name| transaction.text(name));
    named.into_iter().find(|id| !id.is_empty()).map(str::to_owned)
}

fn refusal(code: &str) -> Refusal {
    let message = codes::refusing(code).unwrap_or_default().to_owned();
    Refusal { code: code.to_owned(), message }
}

/// What is noted of a payment that Airtel has taken on.
#[must_use]
pub fn taken() -> Vec<Field> {
    vec![field(TAKEN, "yes")]
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::is_amount;

    #[test]
    fn amounts_are_compared_as_numbers() {
        for text in ["1250", "1250.0", "1250.00", "1250.0000"] {
            assert!(is_amount(text, 1_250), "{text}");
        }
        for text in [
            "", ".", "1250.", "1250.5", "1250.01", "1250.0.0", "1250,00", "125", "12500", "01250",
            "+1250", " 1250", "1.25e3", "1,250", "-1250", ".00",
        ] {
            assert!(!is_amount(text, 1_250), "{text:?}");
        }
    }
}
