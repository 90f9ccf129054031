//! Transfers and what becomes of them.
//!
//! One rule governs the module: money goes back to the sender only on an answer that proves
//! that it did not move. Everything else is `unknown` and is asked about again.

use railhead_rail::fields;
use railhead_rail::host;
use railhead_rail::types::{Finding, Outcome, Payment, Receipt, Refusal};

use crate::amount;
use crate::codes::{self, Class};
use crate::gateway::{self, Answer};
use crate::requests;
use crate::session;
use crate::settings::Settings;

/// The SessionID of a payment; empty where none can be made, which the log explains.
#[must_use]
pub fn reference(payment: &Payment) -> String {
    let institution = Settings::read().institution_code;
    session::make(&institution, payment.begun_at_ms, payment.serial).unwrap_or_else(|reason| {
        host::warn(&format!("no SessionID can be made: {reason}"));
        String::new()
    })
}

/// Orders the transfer.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    order(payment).unwrap_or_else(Outcome::Unknown)
}

/// Asks what became of the transfer.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    ask(payment).unwrap_or_else(Finding::Unknown)
}

fn order(payment: &Payment) -> Result<Outcome, String> {
    let body = requests::transfer(payment, &Settings::read())?;
    let root = "FTSingleCreditResponse";
    let answer = gateway::ask(gateway::TRANSFER, body, root, &payment.reference)?;
    match answer.class(|code| code.transfer) {
        Class::Done => {
            echoes(&answer, payment)?;
            Ok(Outcome::Paid(receipt(&answer)))
        }
        Class::Pending => Ok(Outcome::Accepted(receipt(&answer))),
        Class::Refused => Ok(Outcome::Refused(refusal(&answer))),
        Class::NotFound | Class::Unclear => Err(answer.sentence()),
    }
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    if !session::is_session(&payment.reference) {
        return Err("the payment's reference is not a SessionID".into());
    }
    let body = requests::status_query(&payment.reference, &Settings::read());
    let root = "TSQuerySingleResponse";
    let answer = gateway::ask(gateway::STATUS_QUERY, body, root, &payment.reference)?;
    match answer.class(|code| code.query) {
        Class::Done => Ok(Finding::Paid(receipt(&answer))),
        Class::Pending => Ok(Finding::Accepted(receipt(&answer))),
        Class::Refused => Ok(Finding::Refused(refusal(&answer))),
        Class::NotFound => Ok(Finding::NeverReceived(answer.sentence())),
        Class::Unclear => Err(answer.sentence()),
    }
}

/// Whether an approval is of what was ordered. One that is not, or does not say, leaves the
/// outcome unknown; the status query tells.
fn echoes(answer: &Answer, payment: &Payment) -> Result<(), String> {
    let account = fields::value(&payment.recipient, "account_number");
    if answer.get("BeneficiaryAccountNumber") != account {
        return Err("NIP approved a transfer to another account than was ordered".into());
    }
    if amount::kobo(answer.get("Amount")) != Some(payment.amount_minor) {
        return Err("NIP approved another amount than was ordered".into());
    }
    Ok(())
}

fn receipt(answer: &Answer) -> Receipt {
    let amount_minor = amount::kobo(answer.get("Amount"));
    Receipt { code: answer.code.clone(), network_id: None, amount_minor, facts: Vec::new() }
}

fn refusal(answer: &Answer) -> Refusal {
    Refusal { code: answer.code.clone(), message: codes::refusal(&answer.code).into() }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "payments_tests.rs"]
mod tests;
