//! Payouts, and the question what became of one.

use railhead_rail::fields;
use railhead_rail::json::Object;
use railhead_rail::request::{Part, callback};
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Refusal};

use crate::gateway::{self, Answer, PAYOUT, STATUS};
use crate::standing::{self, Said, said};
use crate::words::{self, EXPONENT};
use crate::{callbacks, codes, countries, reference, settings};

/// The code of a reference that the aggregator does not know.
const NOT_FOUND: &str = "PAYOUT_NOT_FOUND";

/// Fixes the reference.
///
/// # Errors
/// No wallet holds the currency, or the amount.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    let country = countries::of_currency(&payment.currency);
    let Some(country) = country.filter(|_| payment.exponent == EXPONENT) else {
        return Err(refusal("currency", "No wallet that is paid here holds this currency"));
    };
    if payment.amount_minor <= 0 {
        return Err(refusal("amount", "There is nothing to pay"));
    }
    if payment.amount_minor % country.step_minor != 0 {
        return Err(refusal("whole_units", "These wallets hold whole units of their currency"));
    }
    let reference = reference::of(&payment.payout, payment.serial, payment.begun_at_ms);
    Ok(Opening { reference, facts: Vec::new() })
}

/// Orders the payout.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    order(payment).unwrap_or_else(Outcome::Unknown)
}

/// Asks what became of the payout.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    ask(payment).unwrap_or_else(Finding::Unknown)
}

fn order(payment: &Payment) -> Result<Outcome, String> {
    let answer = gateway::post(PAYOUT, Some(&payment.reference), body(payment)?)?;
    match answer.status {
        200 => Ok(match said(&answer.body, payment)? {
            Said::Paid(receipt) => Outcome::Paid(receipt),
            Said::TakenOn(receipt) => Outcome::Accepted(receipt),
            Said::Refused(refusal) => Outcome::Refused(refusal),
        }),
        202 => match said(&answer.body, payment)? {
            Said::TakenOn(receipt) => Ok(Outcome::Accepted(receipt)),
            Said::Paid(_) | Said::Refused(_) => {
                Err("the aggregator took the payout on, and says that it is decided".to_owned())
            }
        },
        400 | 401 | 403 | 422 => turned_away(&answer, payment),
        // 409 among them: there is a payout of this reference.
        _ => Err(answer.sentence()),
    }
}

/// What it means that a payout is not taken on.
fn turned_away(answer: &Answer, payment: &Payment) -> Result<Outcome, String> {
    let problem = answer.problem();
    let meaning = codes::refusing(&problem.code).ok_or_else(|| answer.sentence())?;
    // Whoever refuses without having read what was sent may be anybody on the way.
    if problem.reference != payment.reference {
        return Err(format!("{}, not naming the payout", answer.sentence()));
    }
    Ok(Outcome::Refused(refusal(&problem.code, meaning)))
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    let answer = gateway::get(STATUS, &payment.reference)?;
    match answer.status {
        200 => Ok(match said(&answer.body, payment)? {
            Said::Paid(receipt) => Finding::Paid(receipt),
            Said::TakenOn(receipt) => Finding::Accepted(receipt),
            Said::Refused(refusal) => Finding::Refused(refusal),
        }),
        404 => not_found(&answer, payment),
        _ => Err(answer.sentence()),
    }
}

fn not_found(answer: &Answer, payment: &Payment) -> Result<Finding, String> {
    let problem = answer.problem();
    // A path that is not there is 404, too.
    if problem.code != NOT_FOUND || problem.reference != payment.reference {
        return Err(answer.sentence());
    }
    if fields::find(&payment.facts, standing::TAKEN).is_some() {
        return Err("the aggregator took the payout on, and knows none of its reference".to_owned());
    }
    Ok(Finding::NeverReceived("the aggregator knows no payout of this reference".to_owned()))
}

fn body(payment: &Payment) -> Result<Vec<Part>, String> {
    let recipient = |name| fields::value(&payment.recipient, name);
    let amount = words::amount(payment.amount_minor);
    let amount = amount.ok_or("not sent: there is nothing to pay")?;
    let payout = Object::new()
        .text("reference", &payment.reference)
        .text("amount", &amount)
        .text("currency", &payment.currency)
        .text("operator", recipient("mobile_operator"))
        .text("account", recipient("mobile_number"))
        .text("name", recipient("name"))
        .text("narration", &words::narration(&payment.narration));
    if !settings::gives_address() {
        return Ok(payout.finish());
    }
    let path = format!("{}{}", callbacks::PAYOUTS, payment.reference);
    Ok(payout.part("callback_url", callback(&path)).finish())
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}
