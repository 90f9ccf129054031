//! Transfers, and questions about them.
//!
//! A transfer is taken on with 202 and nothing else. How it ended is told when it is asked for (see
//! [`crate::standing`]).

use railhead_rail::fields;
use railhead_rail::request::{Parameter, callback, parameter, text};
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Receipt, Refusal};
use serde::Serialize;

use crate::callbacks;
use crate::gateway::{self, Answer, STATUS, TRANSFER};
use crate::note;
use crate::reasons;
use crate::reference;
use crate::settings::{Settings, Unclear};
use crate::standing::{self, Standing};
use crate::{amount, countries};

/// How the gateway in front of MTN begins what it says to a subscription key that it does not take.
const ACCESS_DENIED: &str = "Access denied due to";

/// Fixes the `X-Reference-Id`.
///
/// # Errors
/// There is nothing to pay, or no wallet that holds the currency.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    let country = countries::of_currency(&payment.currency);
    if country.is_none_or(|country| country.exponent != payment.exponent) {
        return Err(refusal("currency", "No MTN wallet that is paid here holds this currency"));
    }
    if amount::written(payment.amount_minor, payment.exponent).is_none() {
        return Err(refusal("amount", "There is nothing to pay"));
    }
    let reference = reference::of(&payment.payout, payment.serial, payment.begun_at_ms);
    Ok(Opening { reference, facts: Vec::new() })
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
    let answer = gateway::send(TRANSFER, "", headers(payment), vec![text(body(payment)?)])?;
    match answer.status {
        202 => Ok(Outcome::Accepted(Receipt {
            code: "202".to_owned(),
            network_id: None,
            amount_minor: None,
            facts: standing::taken(),
        })),
        400 => match reasons::refusing(answer.code(), Unclear::Asked) {
            Some(meaning) => Ok(Outcome::Refused(refusal(answer.code(), meaning))),
            None => Err(answer.sentence()),
        },
        401 if is_denied(&answer) => Ok(Outcome::Refused(refusal(
            "ACCESS_DENIED",
            "MTN takes no payments from this service at present",
        ))),
        // A transfer of this reference (409) was taken on before. With 500 MTN answers what it
        // would not have as well as what it could not do.
        _ => Err(answer.sentence()),
    }
}

/// Whether the gateway in front of MTN turned a request away for its subscription key.
fn is_denied(answer: &Answer) -> bool {
    answer.body.text("statusCode") == "401"
        && answer.body.text("message").starts_with(ACCESS_DENIED)
}

fn headers(payment: &Payment) -> Vec<Parameter> {
    let mut headers = vec![
        parameter("Content-Type", [text("application/json")]),
        parameter("X-Reference-Id", [text(payment.reference.as_str())]),
    ];
    if Settings::read().gives_address {
        let path = format!("{}{}", callbacks::TRANSFERS, payment.reference);
        headers.push(parameter("X-Callback-Url", [callback(&path)]));
    }
    headers
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transfer<'a> {
    amount: String,
    currency: &'a str,
    /// Unlike the header, it stands in what MTN says about the transfer.
    external_id: &'a str,
    payee: Party<'a>,
    payer_message: String,
    payee_note: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Party<'a> {
    party_id_type: &'static str,
    party_id: &'a str,
}

fn body(payment: &Payment) -> Result<String, String> {
    let amount = amount::written(payment.amount_minor, payment.exponent);
    let party_id = fields::value(&payment.recipient, "mobile_number");
    let transfer = Transfer {
        amount: amount.ok_or("not sent: there is nothing to pay")?,
        currency: &payment.currency,
        external_id: &payment.reference,
        payee: Party { party_id_type: "MSISDN", party_id },
        payer_message: note::plain(&payment.payout),
        payee_note: note::plain(&payment.narration),
    };
    serde_json::to_string(&transfer).map_err(|_| "not sent: it cannot be written".to_owned())
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    let answer = gateway::send(STATUS, &payment.reference, Vec::new(), Vec::new())?;
    match answer.status {
        200 => {
            let standing = Standing(&answer.body);
            is_about(&standing, payment)?;
            standing.finding(Settings::read().unclear)
        }
        // The gateway in front says 404 too, without a code, of a path that is not there.
        404 if answer.code() == "RESOURCE_NOT_FOUND" => {
            if fields::find(&payment.facts, standing::TAKEN).is_some() {
                return Err("MTN took the transfer on, and knows none of its reference".to_owned());
            }
            Ok(Finding::NeverReceived("MTN knows no transfer of this reference".to_owned()))
        }
        _ => Err(answer.sentence()),
    }
}

/// # Errors
/// It speaks of another transfer than was asked about.
fn is_about(standing: &Standing<'_>, payment: &Payment) -> Result<(), String> {
    let number = fields::value(&payment.recipient, "mobile_number");
    let other = match () {
        () if standing.reference() != payment.reference => "reference",
        () if standing.currency() != payment.currency => "currency",
        () if standing.amount_minor() != Some(payment.amount_minor) => "amount",
        () if !standing.is_to(number) => "wallet",
        () => return Ok(()),
    };
    Err(format!("MTN answered about another {other} than was sent"))
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}
