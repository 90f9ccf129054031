//! Instant payments, and questions about them.
//!
//! A payment is one pacs.008 to the bank, which answers with a pacs.002 within ten seconds. Where
//! none comes nothing is known, and a pacs.028 asks. Payments that the bank answers for later it
//! tells of by itself; see [`crate::notices`].

use railhead_rail::fields::field;
use railhead_rail::file_gateway::{Fault, fault, sentence};
use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::request;
use railhead_rail::strict::Object;
use railhead_rail::types::{Finding, Outcome, Payment, Receipt};
use serde::Deserialize;

use crate::gateway;
use crate::messages;
use crate::order::order;
use crate::pacs002::{self, Said};
use crate::settings::Settings;
use crate::status::{Judged, Stage};
use crate::{reference, settings, time};

/// The call that moves money.
const PAYMENT: &str = "instant_payment";
/// The call that asks what became of a payment.
const STATUS: &str = "instant_status";
/// The fact that says on which day a payment was to be settled when it was sent last.
pub const SETTLED_ON: &str = "settled_on";
/// What these calls are sent.
pub const XML: &str = "application/xml";

/// The gateway's word for a message that is not one, of which it took nothing.
const INVALID: &str = "invalid_message";
/// Its word for a payment that it does not know.
const NOT_FOUND: &str = "not_found";

/// Makes the payment.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    sent(payment).unwrap_or_else(Outcome::Unknown)
}

/// Asks what became of the payment.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    asked(payment).unwrap_or_else(Finding::Unknown)
}

fn sent(payment: &Payment) -> Result<Outcome, String> {
    let settings = Settings::read()?;
    let order = order(payment).map_err(|why| format!("it cannot be written: {}", why.message))?;
    let now_ms = host::now_ms();
    let message = messages::payment(&order, &settings, now_ms);
    let response =
        gateway::post(PAYMENT, XML, &payment.reference, message).map_err(request::why)?;
    if matches!(response.status, 400 | 422)
        && let Some(fault) = fault(&response)
    {
        let is_refused = fault.code == INVALID && !gateway::is_of_a_copy(&fault);
        return match is_refused && names_it(&response, payment) {
            true => Ok(Outcome::Refused(railhead_rail::types::Refusal {
                code: fault.code,
                message: "The bank finds the message not well made".to_owned(),
            })),
            false => Err(sentence(response.status, Some(&fault))),
        };
    }
    Ok(match answered(&response, payment)? {
        Finding::Paid(receipt) => Outcome::Paid(sent_at(now_ms, receipt)),
        Finding::Accepted(receipt) => Outcome::Accepted(sent_at(now_ms, receipt)),
        Finding::Refused(refusal) => Outcome::Refused(refusal),
        Finding::Returned(_) | Finding::NeverReceived(_) => {
            return Err("the bank says of a payment what no answer says".to_owned());
        }
        Finding::Unknown(why) => Outcome::Unknown(why),
    })
}

/// A receipt with the day of settlement that the message had.
fn sent_at(now_ms: u64, receipt: Receipt) -> Receipt {
    Receipt { facts: vec![field(SETTLED_ON, time::settlement_date(now_ms))], ..receipt }
}

fn asked(payment: &Payment) -> Result<Finding, String> {
    let now_ms = host::now_ms();
    let name = reference::named("RQ", now_ms, payment.serial).ok_or("no question can be named")?;
    let message = messages::question(payment, &name, now_ms);
    let response = gateway::post(STATUS, XML, &name, message).map_err(request::why)?;
    if response.status == 404 {
        let fault = fault(&response);
        let is_unknown = |fault: &Fault| fault.code == NOT_FOUND && names_it(&response, payment);
        return match fault.as_ref().is_some_and(is_unknown) {
            true => {
                Ok(Finding::NeverReceived("the bank knows no payment of this reference".into()))
            }
            false => Err(sentence(404, fault.as_ref())),
        };
    }
    answered(&response, payment)
}

/// What an error of the gateway's is about.
#[derive(Deserialize)]
struct About {
    end_to_end_id: String,
}

/// Whether an error of the gateway's names the payment.
fn names_it(response: &Response, payment: &Payment) -> bool {
    let about = serde_json::from_slice::<Object<About>>(&response.body);
    about.is_ok_and(|Object(it)| it.end_to_end_id == payment.reference)
}

/// What a status report in an answer says of the payment. Under an error only a rejection is one
/// that agrees with it.
fn answered(response: &Response, payment: &Payment) -> Result<Finding, String> {
    let is_success = matches!(response.status, 200..=202);
    if !is_success && !matches!(response.status, 400 | 422) {
        return Err(sentence(response.status, fault(response).as_ref()));
    }
    let useless = |why| format!("{}: {why}", sentence(response.status, None));
    let said = pacs002::read(&response.body).map_err(useless)?;
    if said.reference != payment.reference {
        return Err("the bank speaks of another payment".to_owned());
    }
    if said.cents.is_some_and(|cents| cents != payment.amount_minor) {
        return Err("the bank speaks of another amount".to_owned());
    }
    match found(&said) {
        Finding::Paid(_) | Finding::Accepted(_) if !is_success => {
            Err(format!("{}, and that it accepts it", sentence(response.status, None)))
        }
        found => Ok(found),
    }
}

/// What a status report comes to.
#[must_use]
pub fn found(said: &Said) -> Finding {
    let receipt = || Receipt {
        code: said.word.clone(),
        network_id: said.network_id.clone(),
        amount_minor: said.cents,
        facts: Vec::new(),
    };
    match &said.judged {
        Some(Judged::Refused(refusal)) => Finding::Refused(refusal.clone()),
        Some(Judged::Unclear(why)) => Finding::Unknown(why.clone()),
        None if said.standing.has_reached(paid()) => Finding::Paid(receipt()),
        None if said.standing.is_over() => Finding::Unknown(format!("it is {}", said.word)),
        None => Finding::Accepted(receipt()),
    }
}

/// How far an instant payment must have come to be with the recipient.
fn paid() -> Stage {
    match settings::word("instant_paid", &["ACSC", "ACCP", "ACCC"]) {
        "ACCP" => Stage::Profile,
        "ACCC" => Stage::Credited,
        _ => Stage::Settled,
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "instant_tests.rs"]
mod tests;
