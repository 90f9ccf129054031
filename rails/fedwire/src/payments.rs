//! Wires, and questions about them.
//!
//! The gateway answers a wire with a status, which is final where it is "settled" or a rejection
//! for a known reason. Whatever else it answers, and where it does not, it is asked.

use railhead_rail::fields::field;
use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Receipt, Refusal};
use railhead_rail::wording::speaks_of_a_copy;

use crate::amount;
use crate::charset::{says_something, tidy};
use crate::codes::{self, Class, Status};
use crate::days;
use crate::gateway::{self, STATUS, WIRE};
use crate::imad;
use crate::messages::{self, CREATED_AT, Sending};
use crate::parties::Party;
use crate::reference;
use crate::reports::{self, Rejection, Report, StatusReport};
use crate::settings::{SOURCE, Settings};

/// Fixes the UETR, and the source that the wire's IMAD is made with.
///
/// # Errors
/// No wire carries the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if amount::dollars(payment.amount_minor).is_none() {
        return Err(refusal("amount", "A wire carries a cent to 9,999,999,999.99 dollars"));
    }
    let recipient = |name| railhead_rail::fields::value(&payment.recipient, name);
    if !says_something(&tidy(recipient("name"))) {
        return Err(refusal("name", "A wire cannot carry the recipient's name"));
    }
    // Fedwire wants the payer's address: where a sender is named, it is the sender's.
    if Party::sender(payment).is_some_and(|sender| !sender.has_address()) {
        return Err(refusal("sender", "A wire names its sender with town and country"));
    }
    let reference = reference::uetr(&payment.payout, payment.serial);
    let source = Settings::read().source_id;
    let facts = if source.is_empty() { Vec::new() } else { vec![field(SOURCE, source)] };
    Ok(Opening { reference, facts })
}

/// Sends the wire.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    send(payment).unwrap_or_else(Outcome::Unknown)
}

/// Asks what became of it.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    ask(payment).unwrap_or_else(Finding::Unknown)
}

/// The instant of this call; a clock that is behind the one by which the payment was begun is wrong.
#[must_use]
pub fn now_ms(payment: &Payment) -> u64 {
    host::now_ms().max(payment.begun_at_ms)
}

fn send(payment: &Payment) -> Result<Outcome, String> {
    let settings = Settings::of(payment);
    let sending = Sending::now(payment, &settings, now_ms(payment))?;
    let message = messages::wire(payment, &settings, &sending)?;
    let response = gateway::post(WIRE, message)?;
    // Whoever fails, waits or knows the message already may have carried it out, whatever he says.
    if !matches!(response.status, 200..=202 | 400 | 422) {
        return Err(useless(&response));
    }
    match read(&response)? {
        Report::Status(report) => outcome(found(payment, &report, &response)?),
        Report::Rejection(rejection) => not_understood(&rejection, &sending, &response),
        _ => Err(useless(&response)),
    }
}

/// What an answer to a wire comes to. It cannot have come back yet.
fn outcome(found: Finding) -> Result<Outcome, String> {
    match found {
        Finding::Paid(receipt) => Ok(Outcome::Paid(receipt)),
        Finding::Accepted(receipt) => Ok(Outcome::Accepted(receipt)),
        Finding::Refused(refusal) => Ok(Outcome::Refused(refusal)),
        Finding::Returned(_) | Finding::NeverReceived(_) => {
            Err("the gateway answered what makes no sense of a wire just sent".to_owned())
        }
        Finding::Unknown(why) => Err(why),
    }
}

/// A wire that is not understood is not made: nothing but its syntax is refused so.
fn not_understood(
    rejection: &Rejection,
    sending: &Sending,
    response: &Response,
) -> Result<Outcome, String> {
    let reason = codes::plain(&rejection.reason);
    if rejection.about != sending.imad {
        return Err("the gateway rejected another message".to_owned());
    }
    let is_known = codes::class(&rejection.reason) == Class::Refused;
    if !is_known || speaks_of_a_copy(&rejection.description) {
        return Err(format!(
            "the gateway did not take the message, HTTP {}: {reason:?}",
            response.status
        ));
    }
    Ok(Outcome::Refused(refusal(&reason, "The gateway did not understand the wire")))
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    let settings = Settings::of(payment);
    let now_ms = now_ms(payment);
    let sending = Sending::earlier(payment, &settings)?;
    let id = messages::question_id(payment.serial, now_ms);
    let message = messages::question(payment, &settings, &sending, (&id, now_ms));
    let response = gateway::post(STATUS, message)?;
    if !matches!(response.status, 200 | 404) {
        return Err(useless(&response));
    }
    match (response.status, read(&response)?) {
        (200, Report::Status(report)) => found(payment, &report, &response),
        (404, Report::Rejection(rejection)) if rejection.about == id => not_known(payment, now_ms),
        _ => Err(useless(&response)),
    }
}

/// The gateway knows no such wire. On the day on which it was begun, sending it again is sending the
/// same message, with the IMAD that no network takes twice. On any other day it would be another
/// message, and if the answer is wrong, another payment: a person decides.
fn not_known(payment: &Payment, now_ms: u64) -> Result<Finding, String> {
    if days::cycle(payment.begun_at_ms) == days::cycle(now_ms) {
        return Ok(Finding::NeverReceived("the gateway knows no wire of this UETR".to_owned()));
    }
    Err("the gateway knows no wire of this UETR, whose day is over: it is not sent again"
        .to_owned())
}

fn read(response: &Response) -> Result<Report, String> {
    reports::read(&response.body)
        .map_err(|why| format!("the gateway answered HTTP {}, and {why}", response.status))
}

/// What a status proves of our wire: it must name it by UETR and IMAD, and no other amount.
///
/// # Errors
/// It proves nothing.
pub fn found(
    payment: &Payment,
    report: &StatusReport,
    response: &Response,
) -> Result<Finding, String> {
    let source = Settings::of(payment).source_id;
    let is_its = report.uetr == payment.reference
        && report.kind == messages::WIRE
        && imad::is_of_wire(&report.imad, &source, payment.serial);
    if !is_its {
        return Err("the gateway answered about another wire".to_owned());
    }
    if report.amount_minor.is_some_and(|amount| amount != payment.amount_minor) {
        return Err("the gateway answered about another amount".to_owned());
    }
    let finding = proved(report)?;
    // Under an error, only a refusal makes sense.
    match (response.status, &finding) {
        (200..=299, _) | (_, Finding::Refused(_)) => Ok(finding),
        _ => Err(useless(response)),
    }
}

/// What a status proves, whichever wire it is about.
///
/// # Errors
/// Nothing.
pub fn proved(report: &StatusReport) -> Result<Finding, String> {
    let receipt = || Receipt {
        code: report.status.clone(),
        network_id: Some(report.imad.clone()).filter(|imad| imad::is_imad(imad)),
        amount_minor: report.amount_minor,
        facts: report.created_at.iter().map(|at| field(CREATED_AT, at)).collect(),
    };
    match codes::status(&report.status) {
        Status::Settled => Ok(Finding::Paid(receipt())),
        Status::Underway => Ok(Finding::Accepted(receipt())),
        Status::Rejected => rejected(report).map(Finding::Refused),
        Status::CalledOff => {
            let message = "It was called off before it went out";
            Ok(Finding::Refused(refusal(&report.status, message)))
        }
        Status::Unclear => Err(format!("the wire is {:?} there", codes::plain(&report.status))),
    }
}

/// A rejection for reasons that are all known to refuse, and without a word of an earlier copy.
fn rejected(report: &StatusReport) -> Result<Refusal, String> {
    let reasons = &report.reasons;
    let is_final = |reason: &String| codes::class(reason) == Class::Refused;
    match reasons.first() {
        Some(reason) if reasons.iter().all(is_final) && !speaks_of_a_copy(&report.words) => {
            Ok(refusal(reason, codes::meaning(reason)))
        }
        _ => {
            let shown: Vec<String> = reasons.iter().map(|reason| codes::plain(reason)).collect();
            Err(format!("the wire was rejected, which proves nothing with {shown:?}"))
        }
    }
}

/// An answer of no use, in a sentence for the operator. It holds no text of the answer.
#[must_use]
pub fn useless(response: &Response) -> String {
    format!("the gateway answered HTTP {} and nothing that says more", response.status)
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}
