//! What becomes of a transfer, and of questions about it.

use railhead_simulator::answers::{answer, malformed, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};

use crate::requests::TransferRequest;
use crate::standing::{CALLBACK_URL, EXTERNAL_ID, PAYEE_NOTE, PAYER_MESSAGE, standing, told};
use crate::{as_json, error};

/// What transfers fail for that fail.
const REFUSAL: &str = "PAYEE_NOT_FOUND";

/// Takes a transfer on.
#[must_use]
pub fn take(request: &Request) -> Answer {
    let request = match TransferRequest::read(request) {
        Ok(request) => request,
        Err(fault) => {
            malformed("transfer", &fault.at);
            return error(fault.status, fault.code);
        }
    };
    let number = &request.order.payee.party_id;
    if host::scenario(number) == "provider_down" {
        return unavailable();
    }
    let mut transfer = host::find(&request.reference).unwrap_or_else(|| {
        Transfer::new(&request.reference, request.amount_minor, number)
            .noting(CALLBACK_URL, &request.callback_url)
            .noting(EXTERNAL_ID, &request.order.external_id)
            .noting(PAYER_MESSAGE, &request.order.payer_message)
            .noting(PAYEE_NOTE, &request.order.payee_note)
    });
    let reply = receive(&mut transfer);
    host::keep(&transfer);
    match reply {
        Reply::NotReceived => Answer::NotReceived,
        Reply::Unheard(times) => {
            tell_of(&transfer, times);
            Answer::Silence
        }
        Reply::AlreadyThere => error(409, "RESOURCE_ALREADY_EXIST"),
        Reply::Taken(times) => {
            tell_of(&transfer, times);
            answer(202, "application/json", "")
        }
    }
}

/// What MTN does with a transfer once it has written it down, and how often it tells of it.
enum Reply {
    /// It never came.
    NotReceived,
    /// It is taken on, and nobody hears that.
    Unheard(usize),
    /// There is one of this reference.
    AlreadyThere,
    /// It is taken on.
    Taken(usize),
}

fn receive(transfer: &mut Transfer) -> Reply {
    let is_first = transfer.received == 0;
    transfer.received += 1;
    let scenario = transfer.scenario.clone();
    if !is_first {
        if scenario != "never_received" || transfer.state != State::Lost {
            return Reply::AlreadyThere;
        }
        transfer.pay();
        return Reply::Taken(1);
    }
    let refused = |reason: &str| State::Refused(reason.to_owned());
    match scenario.as_str() {
        "never_received" => return Reply::NotReceived,
        "processing" | "delayed" => transfer.state = State::Pending,
        "failed" | "timeout_then_failed" => transfer.state = refused(REFUSAL),
        "out_of_float" => transfer.state = refused("NOT_ENOUGH_FUNDS"),
        "wallet_full" => transfer.state = refused("PAYEE_LIMIT_REACHED"),
        "no_clear_reason" => transfer.state = refused("INTERNAL_PROCESSING_ERROR"),
        "timeout_then_unknown" => transfer.state = State::Unclear,
        _ => transfer.pay(),
    }
    match scenario.as_str() {
        "already_exists" => Reply::AlreadyThere,
        "callback_first" => Reply::Unheard(1),
        "callback_lost" | "processing" | "delayed" => Reply::Taken(0),
        "duplicate_callback" => Reply::Taken(2),
        scenario if scenario.starts_with("timeout_") => Reply::Unheard(0),
        _ => Reply::Taken(1),
    }
}

fn tell_of(transfer: &Transfer, times: usize) {
    for message in std::iter::repeat_n(told(transfer), times).flatten() {
        host::send(&message);
    }
}

/// Says how a transfer stands.
#[must_use]
pub fn status(reference: &str) -> Answer {
    let Some(mut transfer) = host::find(reference) else {
        return error(404, "RESOURCE_NOT_FOUND");
    };
    if host::scenario(&transfer.account) == "provider_down" {
        return unavailable();
    }
    let standing = standing(&transfer);
    if transfer.scenario == "delayed" && transfer.state == State::Pending {
        // Whoever asks again finds it paid.
        transfer.pay();
        host::keep(&transfer);
    }
    match (standing, &transfer.state) {
        (Some(standing), _) => as_json(200, &standing),
        (None, State::Lost) => error(404, "RESOURCE_NOT_FOUND"),
        (None, _) => error(500, "INTERNAL_PROCESSING_ERROR"),
    }
}

/// Something happens to a transfer.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands. What a wallet has
/// been paid does not come back.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut transfer = host::find(reference).ok_or(Obstacle::Unknown)?;
    match (event, &transfer.state) {
        (Event::Settle, State::Pending | State::Unclear) => transfer.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            transfer.state = State::Refused(REFUSAL.to_owned());
        }
        _ => return Err(Obstacle::Impossible),
    }
    host::keep(&transfer);
    tell_of(&transfer, 1);
    Ok(transfer)
}
