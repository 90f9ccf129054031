//! Payments, and questions about them.
//!
//! An order is answered at once with "accepted", which proves nothing but that the gateway has
//! it: how it ended is told by a webhook (see [`crate::webhooks`]) or on a question.

use std::collections::BTreeMap;

use railhead_rail::fields;
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Receipt, Refusal};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::amount;
use crate::charset;
use crate::codes::{self, Class};
use crate::gateway::{self, PAYMENT, STATUS};
use crate::messages::{Decision, Decisions, Order, Status};
use crate::reference;
use crate::settings::Settings;
use railhead_rail::strict::{Object, Unrepeated};

/// The scheme's bound of one payment, in pence.
const AMOUNT_MINOR_MAX: i64 = 100_000_000;

/// Fixes the `endToEndIdentification`.
///
/// # Errors
/// The scheme would not carry the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if !(1..=AMOUNT_MINOR_MAX).contains(&payment.amount_minor) {
        return Err(refusal("amount", "Faster Payments carries a penny to a million pounds"));
    }
    let name = fields::value(&payment.recipient, "name");
    if charset::scheme_name(name).is_empty() || charset::foreign(&charset::tidy(name)).is_some() {
        return Err(refusal("name", "Faster Payments cannot carry the recipient's name"));
    }
    let reference = reference::payment(payment.begun_at_ms, payment.serial)
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
    let body = written(payment)?;
    let response = gateway::post(PAYMENT, &payment.reference, body)?;
    let Object(decisions): Object<Decisions> =
        serde_json::from_slice(&response.body).map_err(|_| gateway::useless(&response))?;
    let errors = decisions.errors.map(|Unrepeated(errors)| errors).unwrap_or_default();
    match (response.status, decisions.transactions.unwrap_or_default().as_slice()) {
        (202 | 400, [Object(only)]) if only.end_to_end_identification == payment.reference => {
            Ok(decided(response.status, only))
        }
        (400 | 422, []) => invalid(&response, &errors),
        // A duplicate (409) was taken on before; everything else may have passed it on.
        _ => Err(gateway::useless(&response)),
    }
}

fn written(payment: &Payment) -> Result<String, String> {
    let settings = Settings::read();
    let recipient = |name| fields::value(&payment.recipient, name).to_owned();
    let pounds = amount::pounds(payment.amount_minor).ok_or("there is nothing to pay")?;
    Order {
        reference: payment.reference.clone(),
        payment_type: settings.payment_type,
        debtor_address: settings.debtor_address,
        debtor_account: (settings.debtor_sort_code, settings.debtor_account),
        name: charset::scheme_name(&recipient("name")),
        account: (recipient("sort_code"), recipient("account_number")),
        pounds: RawValue::from_string(pounds).map_err(|_| "the amount cannot be written")?,
        remittance: charset::scheme_reference(&payment.narration, &payment.payout),
    }
    .write()
}

/// What the gateway's word proves of our one payment. An identification that it finds invalid
/// may be one that it knows already.
fn decided(status: u16, decision: &Decision) -> Outcome {
    let code = decision.response.as_str();
    let message = match (status, code) {
        (202, "Accepted") => {
            return Outcome::Accepted(Receipt {
                code: code.to_owned(),
                network_id: None,
                amount_minor: None,
                facts: Vec::new(),
            });
        }
        (
            _,
            "DebitPaymentDisabled" | "InsufficientFunds" | "InvalidAccount" | "InvalidCurrency",
        ) => codes::reject(code),
        // It turns the order away before anybody else has it.
        (_, "Rejected") => "The gateway rejected the payment",
        _ => {
            let code = codes::plain(code);
            return Outcome::Unknown(format!("the gateway answered HTTP {status} and {code:?}"));
        }
    };
    Outcome::Refused(refusal(code, message))
}

/// An order that was refused as a whole, before anything of it was taken. Where the complaint is
/// of an identification or of a duplicate, an earlier copy may have been.
fn invalid(response: &Response, errors: &BTreeMap<String, Vec<String>>) -> Result<Outcome, String> {
    let Some((first, _)) = errors.first_key_value() else {
        return Err(gateway::useless(response));
    };
    let is_of_a_copy = |text: &String| codes::is_of_a_copy(text);
    if errors.iter().any(|(name, texts)| is_of_a_copy(name) || texts.iter().any(is_of_a_copy)) {
        return Err("the gateway may know the payment's reference already".to_owned());
    }
    let member: String = first
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(40)
        .collect();
    let message = format!("The gateway found the payment invalid ({member})");
    Ok(Outcome::Refused(Refusal { code: response.status.to_string(), message }))
}

fn ask(payment: &Payment) -> Result<Finding, String> {
    let response = gateway::get(STATUS, &payment.reference)?;
    let Object(status): Object<Status> =
        serde_json::from_slice(&response.body).map_err(|_| gateway::useless(&response))?;
    // What does not name our payment speaks of something else, a path that is not there included.
    if status.end_to_end_identification != payment.reference {
        return Err("the gateway answered about another payment".to_owned());
    }
    match (response.status, &status.status) {
        (200, Some(Value::String(word))) => found(word, &status),
        (404, None | Some(Value::Number(_))) => {
            Ok(Finding::NeverReceived("the gateway knows no payment of this reference".to_owned()))
        }
        _ => Err(gateway::useless(&response)),
    }
}

/// What the gateway's word comes to, where it was asked. Nothing comes after "rejected": where it
/// does not say why, or for what nobody here knows, a copy of the payment may have been made, and a
/// person has to find out.
fn found(word: &str, status: &Status) -> Result<Finding, String> {
    let receipt = |amount_minor| Receipt {
        code: word.to_owned(),
        network_id: named(status.fpid.as_ref(), status.transaction_id.as_ref()),
        amount_minor,
        facts: Vec::new(),
    };
    match word {
        "Settled" => {
            let amount = status.amount.as_ref().map(|Object(amount)| amount);
            let pounds = amount.filter(|amount| amount.currency == "GBP");
            let pence = pounds.and_then(|amount| amount::pence(&amount.instructed_amount));
            let pence = pence.ok_or("the gateway says that it settled, and no amount")?;
            Ok(Finding::Paid(receipt(Some(pence))))
        }
        "Pending" | "Accepted" => Ok(Finding::Accepted(receipt(None))),
        "Rejected" | "Cancelled" => {
            let code = status.reason_code.as_deref().unwrap_or_default();
            let meaning = codes::reject(code);
            match codes::class(code) {
                Class::Refused => Ok(Finding::Refused(refusal(code, meaning))),
                Class::Unclear => {
                    let code = codes::plain(code);
                    Err(format!("{word}, which proves nothing with {code:?}: {meaning}"))
                }
            }
        }
        _ => Err(format!("the payment is {:?} at the gateway", codes::plain(word))),
    }
}

/// What the network calls a payment: the scheme's own name, which a return repeats, or else the
/// gateway's.
#[must_use]
pub fn named(fpid: Option<&String>, transaction_id: Option<&String>) -> Option<String> {
    [fpid, transaction_id].into_iter().flatten().find(|id| !id.is_empty()).cloned()
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}
