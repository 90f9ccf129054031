//! What becomes of a transfer, of questions about it, and of its cancellation.

use railhead_simulator::answers::unavailable;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};
use serde::Serialize;
use serde_json::json;

use crate::orders::{self, Fault, Order};
use crate::views::{self, AUTHENTICATION, NOT_REQUIRED, PAYMENT_LEVEL};
use crate::{is_json, refused};

/// What an order is refused with that is not taken on.
pub const BLOCKED: &str = "RECIPIENT_BLOCKED";
/// What a transfer has failed with whose recipient's bank did not take it.
pub const UNWANTED: &str = "DEPOSIT_REFUSED";
/// What one has failed with whose recipient did not know the answer.
pub const TRIES: &str = "ANSWER_TRIES_EXCEEDED";

const NOT_FOUND: &str = "PAYMENT_NOT_FOUND";

/// Takes an order.
///
/// # Errors
/// The participant would not understand it.
pub fn take(request: &Request) -> Result<Answer, Fault> {
    is_json(request)?;
    let order = orders::read(&request.body)?;
    if request.header("idempotency-key") != order.reference {
        return Err(Fault::invalid("the Idempotency-Key is not the transfer's"));
    }
    let found = host::find(&order.reference);
    let mut transfer = found.unwrap_or_else(|| new(&order));
    if host::scenario(&order.email) == "provider_down" {
        // Nothing has arrived. What it would have been about is remembered all the same, for a
        // question to find the participant as far down.
        host::keep(&transfer);
        return Ok(unavailable());
    }
    let reply = receive(&mut transfer);
    host::keep(&transfer);
    Ok(match reply {
        Reply::NotReceived => Answer::NotReceived,
        Reply::Silence => Answer::Silence,
        Reply::Duplicate => refused(409, &["DUPLICATE_PAYMENT"], Some(&transfer.reference)),
        Reply::TurnedDown => refused(422, &[BLOCKED], Some(&transfer.reference)),
        Reply::Taken => {
            let is_automatic = transfer.noted(AUTHENTICATION) == NOT_REQUIRED;
            let word = if is_automatic { "REALTIME_INITIATED" } else { "INITIATED" };
            shown(201, &transfer, (word, None))
        }
    })
}

/// Whether its recipient is asked: with Autodeposit nobody is.
fn new(order: &Order) -> Transfer {
    let transfer = Transfer::new(&order.reference, order.amount_minor, &order.email);
    let is_asked = matches!(
        transfer.scenario.as_str(),
        "claim"
            | "processing"
            | "duplicate_callback"
            | "declined"
            | "expired"
            | "answer_tries_exhausted"
    );
    transfer.noting(AUTHENTICATION, if is_asked { PAYMENT_LEVEL } else { NOT_REQUIRED })
}

/// An answer about a transfer.
#[derive(Serialize)]
struct Shown<'a> {
    data: views::Data<'a>,
}

/// What the participant does with an order that has arrived.
enum Reply {
    /// It has not.
    NotReceived,
    /// It is not answered.
    Silence,
    /// It came before.
    Duplicate,
    /// It is refused at once.
    TurnedDown,
    /// It is answered.
    Taken,
}

fn receive(transfer: &mut Transfer) -> Reply {
    let is_first = transfer.received == 0;
    transfer.received += 1;
    if transfer.state != State::Lost {
        return Reply::Duplicate;
    }
    let scenario = transfer.scenario.clone();
    let ended = |code: &str| State::Refused(code.to_owned());
    match scenario.as_str() {
        "never_received" if is_first => return Reply::NotReceived,
        "processing" | "claim" => transfer.state = State::Pending,
        "failed" => transfer.state = ended(BLOCKED),
        "timeout_then_failed" => transfer.state = ended(UNWANTED),
        "timeout_then_unknown" | "deposit_failed" => transfer.state = State::Unclear,
        "declined" => transfer.state = ended("DECLINED"),
        "expired" => transfer.state = ended("EXPIRED"),
        "answer_tries_exhausted" => transfer.state = ended(TRIES),
        _ => transfer.pay(),
    }
    match scenario.as_str() {
        "failed" => return Reply::TurnedDown,
        it if it.starts_with("timeout_") => return Reply::Silence,
        _ => speak(transfer, &scenario),
    }
    if scenario == "notice_first" { Reply::Silence } else { Reply::Taken }
}

/// What is told by itself: how the transfer has gone on until now.
fn speak(transfer: &Transfer, scenario: &str) {
    let (waits, now) = (("AVAILABLE", None), views::word(transfer));
    let words = match scenario {
        "processing" => vec![],
        "claim" => vec![waits],
        // Deposited, an older "available", and the first once more.
        "duplicate_callback" => vec![now, waits, now],
        "declined" | "expired" => vec![waits, now],
        "answer_tries_exhausted" => vec![waits, ("AUTHENTICATION_FAILURE", None), now],
        _ => vec![now],
    };
    let mut numbers = 1..;
    for (word, number) in words.into_iter().zip(&mut numbers) {
        host::send(&views::notice(transfer, word, number));
    }
}

/// Answers a question about a transfer.
#[must_use]
pub fn status(reference: &str) -> Answer {
    let found = host::find(reference);
    let account = found.as_ref().map_or("", |transfer| transfer.account.as_str());
    if host::scenario(account) == "provider_down" {
        return unavailable();
    }
    let Some(transfer) = found.filter(|transfer| transfer.state != State::Lost) else {
        return refused(404, &[NOT_FOUND], Some(reference));
    };
    if transfer.scenario == "timeout_then_unknown" && transfer.state == State::Unclear {
        return refused(500, &["INTERNAL_ERROR"], Some(reference));
    }
    shown(200, &transfer, views::word(&transfer))
}

/// Cancels a transfer that waits for its recipient.
///
/// # Errors
/// The participant would not understand the request.
pub fn cancel(reference: &str, request: &Request) -> Result<Answer, Fault> {
    is_json(request)?;
    let reason = json!({ "cancellation_reason": "REQUESTED_BY_SENDER" });
    let said: serde_json::Value =
        serde_json::from_slice(&request.body).map_err(|cause| Fault::invalid(cause.to_string()))?;
    if said != reason {
        return Err(Fault::invalid("the reason of the cancellation is not as documented"));
    }
    let known = host::find(reference).filter(|transfer| transfer.state != State::Lost);
    let Some(mut transfer) = known else {
        return Ok(refused(404, &[NOT_FOUND], Some(reference)));
    };
    let is_cancelled = transfer.state == State::Refused("CANCELLED".to_owned());
    if transfer.state == State::Pending {
        transfer.state = State::Refused("CANCELLED".to_owned());
        host::keep(&transfer);
        host::send(&views::notice(&transfer, views::word(&transfer), transfer.received + 10));
    } else if !is_cancelled {
        return Ok(refused(409, &["PAYMENT_NOT_CANCELLABLE"], Some(reference)));
    }
    Ok(shown(200, &transfer, views::word(&transfer)))
}

/// Something happens to a transfer: the recipient claims it, or declines.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands. What was deposited
/// does not come back.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut transfer = host::find(reference).ok_or(Obstacle::Unknown)?;
    let is_automatic = transfer.noted(AUTHENTICATION) == NOT_REQUIRED;
    match (event, &transfer.state) {
        (Event::Settle, State::Pending | State::Unclear) => transfer.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            let code = if is_automatic { UNWANTED } else { "DECLINED" };
            transfer.state = State::Refused(code.to_owned());
        }
        _ => return Err(Obstacle::Impossible),
    }
    host::keep(&transfer);
    host::send(&views::notice(&transfer, views::word(&transfer), transfer.received + 20));
    Ok(transfer)
}

fn shown(status: u16, transfer: &Transfer, word: (&str, Option<&str>)) -> Answer {
    crate::json(status, &Shown { data: views::data(transfer, word) })
}
