//! Payments, and questions about them.

use railhead_rail::fields;
use railhead_rail::request::{Part, parameter, sealed, text};
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Refusal};
use serde::Serialize;

use crate::gateway::{self, CURRENCY, PAYMENT, STATUS};
use crate::msisdn;
use crate::names;
use crate::outcome::{self, Said, said};
use crate::reference;
use crate::settings::{self, NotFound};

/// A wallet of a person. Airtel refuses it of a business, which would be B2B.
const KIND: &str = "B2C";
/// A reference has 4 to 64 letters and digits.
const REFERENCE_CHARS_MAX: usize = 64;

/// Fixes the `transaction.id`.
///
/// # Errors
/// The amount is not in whole shillings, or the recipient has no name that Airtel can read.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if payment.currency != CURRENCY || payment.exponent != 2 {
        return Err(refusal("currency", "Airtel Money pays Kenyan shillings here"));
    }
    if payment.amount_minor <= 0 || payment.amount_minor % 100 != 0 {
        return Err(refusal("whole_shillings", "Airtel Money pays whole shillings"));
    }
    if !names::says_something(&names::plain(fields::value(&payment.recipient, "name"))) {
        return Err(refusal("invalid_field", names::UNREADABLE));
    }
    let reference = reference::of(payment.serial, payment.begun_at_ms)
        .ok_or_else(|| refusal("reference", "No reference can be made for the payment"))?;
    Ok(Opening { reference, facts: Vec::new() })
}

/// Orders the payment.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    order(payment).unwrap_or_else(Outcome::Unknown)
}

/// Asks what became of the payment.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    ask(payment).unwrap_or_else(Finding::Unknown)
}

fn order(payment: &Payment) -> Result<Outcome, String> {
    let answer = gateway::post(PAYMENT, body(payment)?)?;
    match (answer.status, said(&answer, payment)) {
        (200, Said::Paid(receipt)) => Ok(Outcome::Paid(receipt)),
        (200 | 202, Said::TakenOn(receipt)) => Ok(Outcome::Accepted(receipt)),
        (200 | 400, Said::Refused(refusal) | Said::TurnedAway(refusal)) => {
            Ok(Outcome::Refused(refusal))
        }
        (_, Said::Nothing(why)) => Err(why),
        // Under another status a code proves nothing: with 500 and 1005 nobody knows what failed.
        _ => Err(answer.sentence()),
    }
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    let kind = vec![parameter("transactionType", [text(KIND)])];
    let answer = gateway::get(STATUS, &payment.reference, kind)?;
    match (answer.status, said(&answer, payment)) {
        (200, Said::Paid(receipt)) => Ok(Finding::Paid(receipt)),
        (200, Said::TakenOn(receipt)) => Ok(Finding::Accepted(receipt)),
        (200, Said::Refused(refusal)) => Ok(Finding::Refused(refusal)),
        (200 | 400 | 404, Said::NotFound) => not_found(payment),
        (_, Said::Nothing(why)) => Err(why),
        // What is turned away is the question.
        _ => Err(answer.sentence()),
    }
}

fn not_found(payment: &Payment) -> Result<Finding, String> {
    let is_taken = fields::find(&payment.facts, outcome::TAKEN).is_some();
    match settings::not_found() {
        _ if is_taken => Err("Airtel took the payment on, and finds none of it".to_owned()),
        NotFound::Asked => Err("Airtel finds no payment of this reference".to_owned()),
        NotFound::NeverReceived => {
            Ok(Finding::NeverReceived("Airtel finds no payment of this reference".to_owned()))
        }
    }
}

#[derive(Serialize)]
struct Payee<'a> {
    currency: &'static str,
    msisdn: &'a str,
    name: String,
}

#[derive(Serialize)]
struct Transaction<'a> {
    /// Whole shillings.
    amount: i64,
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

fn body(payment: &Payment) -> Result<Vec<Part>, String> {
    let recipient = |name| fields::value(&payment.recipient, name);
    let payee = Payee {
        currency: CURRENCY,
        msisdn: msisdn::national(recipient("mobile_number")),
        name: names::plain(recipient("name")),
    };
    let transaction =
        Transaction { amount: payment.amount_minor / 100, id: &payment.reference, kind: KIND };
    let (payee, transaction) = (written(&payee)?, written(&transaction)?);
    let reference = note(payment);
    Ok(vec![
        text(format!("{{\"payee\":{payee},\"reference\":\"{reference}\",\"pin\":\"")),
        sealed("airtel", "pin"),
        text(format!("\",\"transaction\":{transaction}}}")),
    ])
}

fn written(part: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(part).map_err(|_| "not sent: it cannot be written".to_owned())
}

/// What stands beside a payment in Airtel's reports: the payout, in letters and digits.
fn note(payment: &Payment) -> String {
    let payout = payment.payout.chars().filter(char::is_ascii_alphanumeric);
    let note: String = payout.take(REFERENCE_CHARS_MAX).collect();
    if note.len() < 4 { payment.reference.clone() } else { note }
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}
