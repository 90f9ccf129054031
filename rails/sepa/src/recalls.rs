//! Calling an instant payment off: camt.056.001.08, and what is answered. The host recalls nothing
//! that left in a file.
//!
//! A recall asks the recipient's bank, which asks the recipient: an answer takes up to fifteen
//! business days. That a bank agrees does not say whether the payment had been made; the return of
//! the money says it, or the rejection of the payment, each in a message of its own.

use railhead_rail::fields;
use railhead_rail::file_gateway::{fault, sentence};
use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::request;
use railhead_rail::types::{
    Finding, News, Notice, Payment, RecallReason, RecallRequest, Receipt, Subject,
};
use railhead_rail::wording::speaks_of_a_copy;

use crate::gateway;
use crate::instant::{SETTLED_ON, XML};
use crate::messages::{self, Recall};
use crate::settings::Settings;
use crate::xml::{self, Element, Odd};
use crate::{codes, pacs004, reference};

/// The call that asks to call a payment off. It moves nothing of ours.
const RECALL: &str = "recall";
/// What is answered to a recall.
pub const RESOLUTION: &str = "camt.029.001.09";

/// Asks the network to call the payment off.
#[must_use]
pub fn recall(payment: &Payment, request: &RecallRequest) -> Finding {
    asked(payment, request).unwrap_or_else(Finding::Unknown)
}

/// The code for why payments are called off (EPC135-18).
const fn code(reason: RecallReason) -> &'static str {
    match reason {
        RecallReason::CustomerRequest => "CUST",
        RecallReason::Duplicate => "DUPL",
        RecallReason::TechnicalProblem => "TECH",
        RecallReason::Fraud => "FRAD",
        RecallReason::WrongAmount => "AM09",
        RecallReason::WrongAccount => "AC03",
    }
}

fn asked(payment: &Payment, request: &RecallRequest) -> Result<Finding, String> {
    let settings = Settings::read()?;
    if !reference::is_instant(&payment.reference) {
        return Err("it has no reference of this rail's instant payments".to_owned());
    }
    let name = reference::named("RC", request.begun_at_ms, request.serial);
    let name = name.ok_or("no recall can be named")?;
    let recall = Recall {
        name: &name,
        reason: code(request.reason),
        settled_on: fields::find(&payment.facts, SETTLED_ON),
    };
    let message = messages::recall(payment, &recall, &settings, host::now_ms());
    let response = gateway::post(RECALL, XML, &name, message).map_err(request::why)?;
    answered(&response, payment)
}

fn answered(response: &Response, payment: &Payment) -> Result<Finding, String> {
    if response.status == 409
        && let Some(fault) = fault(response)
        && speaks_of_a_copy(&fault.code)
    {
        return Ok(undecided("recalled before"));
    }
    if !matches!(response.status, 200..=202) {
        return Err(sentence(response.status, fault(response).as_ref()));
    }
    if response.status == 202 && response.body.trim_ascii().is_empty() {
        return Ok(undecided("recalled"));
    }
    let message = xml::read(&response.body)
        .map_err(|why| format!("{}: {why}", sentence(response.status, None)))?;
    match message.kind.as_str() {
        RESOLUTION => {
            let (named, word) = resolution(&message.content)?;
            match named == payment.reference {
                true => Ok(undecided(&word)),
                false => Err("the bank speaks of another payment".to_owned()),
            }
        }
        pacs004::KIND => returned(&pacs004::read(&message.content)?, payment),
        _ => Err("the bank answered something else than a resolution".to_owned()),
    }
}

/// The return that answers a recall.
fn returned(notices: &[Notice], payment: &Payment) -> Result<Finding, String> {
    match notices {
        [Notice { about: Subject::Reference(named), news: News::Found(found) }]
            if *named == payment.reference =>
        {
            Ok(found.clone())
        }
        _ => Err("the bank returns another payment, or several".to_owned()),
    }
}

/// The network decides later, or will not do it.
fn undecided(word: &str) -> Finding {
    Finding::Accepted(Receipt {
        code: word.to_owned(),
        network_id: None,
        amount_minor: None,
        facts: Vec::new(),
    })
}

/// What became of a recall that was decided later. It changes nothing by itself: the host asks.
///
/// # Errors
/// It cannot be read.
pub fn resolved(content: &Element) -> Result<Option<Notice>, Odd> {
    let (named, word) = match resolution(content) {
        Ok(resolution) => resolution,
        Err(why) => {
            host::warn(&format!("the resolution of a recall is of no use here: {why}"));
            return Ok(None);
        }
    };
    host::warn(&format!("{named}: the recall came to {word}"));
    Ok(Some(Notice { about: Subject::Reference(named), news: News::Ask }))
}

/// Which payment a resolution is about, and what it comes to: its status, and its reason.
fn resolution(content: &Element) -> Result<(String, String), Odd> {
    if content.name() != "RsltnOfInvstgtn" {
        return Err("it is no resolution of a recall".to_owned());
    }
    let details = content.find("CxlDtls")?.ok_or("it is about no payment")?;
    let payment = details.find("TxInfAndSts")?.ok_or("it is about no single payment")?;
    let named = payment.need(&["OrgnlEndToEndId"])?;
    if !reference::is_instant(named) {
        return Err("it is about a payment that was not made here".to_owned());
    }
    let overall = content.text(&["Sts", "Conf"])?;
    let own = payment.text(&["TxCxlSts"])?;
    let word = own.or(overall).ok_or("it says no status")?;
    let reason = payment.text(&["CxlStsRsnInf", "Rsn", "Cd"])?;
    let words = [Some(word), reason].into_iter().flatten().map(codes::plain);
    Ok((named.to_owned(), words.collect::<Vec<_>>().join("/")))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "recalls_tests.rs"]
mod tests;
