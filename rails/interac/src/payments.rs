//! Payments, questions about them, and their cancellation.
//!
//! An order is answered at once, and seldom with the end: a notice tells that the money was
//! deposited (see [`crate::notices`]), or a question does. The question and the answer for the
//! recipient go with every order; with Autodeposit the network asks nobody.

use railhead_rail::fields::{self, field};
use railhead_rail::host;
use railhead_rail::strict::Object;
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Refusal};
use serde_json::value::RawValue;

use crate::amount;
use crate::codes::{self, Class};
use crate::memo;
use crate::messages::{self, Order, Standing};
use crate::participant::{self, Answered};
use crate::reference;
use crate::settings::Settings;
use crate::standing;

/// Most of one transfer, in cents, whatever the setting says.
const AMOUNT_MINOR_MAX: i64 = 2_500_000;

/// The fact that `prepare` fixes: what the recipient is asked, if anything. It is not told anybody
/// before the network has said that it asks.
const TO_ASK: &str = "security_question";

/// Fixes the `end_to_end_identification` and the question.
///
/// # Errors
/// The network would not carry the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    let settings = Settings::read();
    let most = settings.amount_minor_max.unwrap_or(AMOUNT_MINOR_MAX).min(AMOUNT_MINOR_MAX);
    if payment.amount_minor < 1 {
        return Err(refused("AMOUNT_TOO_LOW"));
    }
    if payment.amount_minor > most {
        return Err(refused("AMOUNT_TOO_HIGH"));
    }
    let is_addressed = |name| !fields::value(&payment.recipient, name).is_empty();
    if !["email", "interac_first_name", "interac_last_name"].into_iter().all(is_addressed) {
        return Err(refused("INVALID_REQUEST"));
    }
    let reference = reference::payment(payment.begun_at_ms, payment.serial)
        .ok_or_else(|| refused("INVALID_REQUEST"))?;
    Ok(Opening { reference, facts: vec![field(TO_ASK, settings.security_question)] })
}

/// Orders the transfer.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    match order(payment) {
        Ok(Finding::Paid(receipt)) => Outcome::Paid(receipt),
        Ok(Finding::Accepted(receipt)) => Outcome::Accepted(receipt),
        Ok(Finding::Refused(refusal)) => Outcome::Refused(refusal),
        Ok(Finding::Returned(_)) => Outcome::Unknown("it is said to have come back".to_owned()),
        Ok(Finding::NeverReceived(why) | Finding::Unknown(why)) | Err(why) => Outcome::Unknown(why),
    }
}

/// Asks what became of the transfer.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    participant::ask(&payment.reference)
        .and_then(|answered| found(&answered, payment))
        .unwrap_or_else(Finding::Unknown)
}

/// Asks for the transfer to be cancelled, and where that is not done, how it stands: it may have
/// been deposited, and with Autodeposit nothing can be called off.
#[must_use]
pub fn recall(payment: &Payment) -> Finding {
    let answered = match participant::cancel(&payment.reference, messages::cancellation()) {
        Ok(answered) => answered,
        Err(why) => return Finding::Unknown(why),
    };
    if answered.status == 200 {
        return known(&answered, payment).unwrap_or_else(Finding::Unknown);
    }
    match query(payment) {
        // Not known and never sent are two things while it is being called off.
        Finding::NeverReceived(why) => Finding::Unknown(why),
        found => found,
    }
}

fn order(payment: &Payment) -> Result<Finding, String> {
    let answered = participant::order(&payment.reference, written(payment)?.write()?)?;
    match answered.status {
        200..=202 => known(&answered, payment),
        400 | 422 => turned_down(&answered, payment),
        // A duplicate (409) was taken on before; everything else may have passed it on.
        _ => Err(answered.useless()),
    }
}

fn written(payment: &Payment) -> Result<Order, String> {
    let settings = Settings::read();
    let question = question(payment);
    let recipient = |name| fields::value(&payment.recipient, name).to_owned();
    let dollars = amount::dollars(payment.amount_minor).ok_or("there is nothing to pay")?;
    let (first, last) = (recipient("interac_first_name"), recipient("interac_last_name"));
    Ok(Order {
        reference: payment.reference.clone(),
        language: settings.language,
        dollars: RawValue::from_string(dollars).map_err(|_| "the amount cannot be written")?,
        sender_name: settings.sender_name,
        debtor_account: settings.debtor_account,
        name: format!("{first} {last}"),
        email: recipient("email"),
        memo: memo::memo(&payment.narration, &payment.payout, &question),
        question,
    })
}

/// What the recipient is asked: as `prepare` fixed it, whatever the setting has become.
fn question(payment: &Payment) -> String {
    let fixed = fields::find(&payment.facts, TO_ASK).map(str::to_owned);
    fixed.unwrap_or_else(|| Settings::read().security_question)
}

/// An order that was not taken on: every code says so. One that is not listed, or that speaks of an
/// earlier copy, proves nothing.
fn turned_down(answered: &Answered, payment: &Payment) -> Result<Finding, String> {
    let is_of_another = answered.answer.data.as_ref().is_some_and(|Object(data)| {
        data.end_to_end_identification != payment.reference || data.payment_status.is_some()
    });
    let codes = answered.codes();
    match codes.first().filter(|_| !is_of_another) {
        Some(first) if codes.iter().all(|code| codes::refusal(code) == Class::Ended) => {
            Ok(Finding::Refused(standing::refusal(first)))
        }
        Some(code) => {
            let code = codes::plain(code);
            Err(format!("the participant answered HTTP {} and {code:?}", answered.status))
        }
        None => Err(answered.useless()),
    }
}

/// What an answer says of a transfer that was asked about.
fn found(answered: &Answered, payment: &Payment) -> Result<Finding, String> {
    if answered.status == 200 {
        return known(answered, payment);
    }
    // A path that is not there answers 404 as well: it has to be our payment that is not known.
    let is_it = answered.answer.data.as_ref().is_some_and(|Object(data)| {
        data.end_to_end_identification == payment.reference && data.payment_status.is_none()
    });
    if answered.status == 404 && is_it && answered.codes() == ["PAYMENT_NOT_FOUND"] {
        let why = "the participant knows no transfer of this reference".to_owned();
        return Ok(Finding::NeverReceived(why));
    }
    Err(answered.useless())
}

/// What an answer says of our transfer. Of another one, or of another amount, it says nothing.
fn known(answered: &Answered, payment: &Payment) -> Result<Finding, String> {
    let Some(Object(standing)) = &answered.answer.data else { return Err(answered.useless()) };
    if standing.end_to_end_identification != payment.reference {
        return Err(not_believed(payment, "answered about another transfer"));
    }
    if !is_amount(standing, payment) {
        return Err(not_believed(payment, "names another amount"));
    }
    Ok(standing::finding(standing, Some(&question(payment))))
}

/// Whether what is said of the amount, if anything is, is what was sent.
fn is_amount(standing: &Standing, payment: &Payment) -> bool {
    standing.amount.as_ref().is_none_or(|Object(said)| {
        said.currency == payment.currency
            && amount::cents(&said.amount) == Some(payment.amount_minor)
    })
}

fn not_believed(payment: &Payment, what: &str) -> String {
    host::warn(&format!("{}: the participant {what}", payment.reference));
    format!("the participant {what}")
}

fn refused(code: &str) -> Refusal {
    standing::refusal(code)
}
