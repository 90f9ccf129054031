//! What becomes of a payment, and of questions about it.

use railhead_simulator::answers::{malformed, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};

use crate::answers::{about, failed, told};
use crate::requests::PaymentRequest;

const PAID: &str = "DP00900001001";
const AMBIGUOUS: &str = "DP00900001000";
const IN_PROGRESS: &str = "DP00900001006";
const DUPLICATE: &str = "DP00900001017";
const NOT_FOUND: &str = "DP00900001015";
/// What payments fail for that fail.
const REFUSED: &str = "DP00900001013";

/// Takes a request for payment.
#[must_use]
pub fn take(request: &Request) -> Answer {
    let request = match PaymentRequest::read(request) {
        Ok(request) => request,
        Err(fault) => {
            malformed("payment", &fault.at);
            return failed(400, fault.code);
        }
    };
    let account = request.account();
    match host::scenario(&account).as_str() {
        "provider_down" => return unavailable(),
        // The gateway in front looks at it first.
        "wrong_pin" => return failed(400, "ROUTER115"),
        _ => {}
    }
    let (id, amount) = (&request.transaction.id, request.transaction.amount);
    let new = || Transfer::new(id, amount * 100, &account);
    let mut payment = host::find(id).unwrap_or_else(new);
    let answer = receive(&mut payment);
    host::keep(&payment);
    if payment.scenario == "duplicate_callback" && payment.received == 1 {
        (0..2).for_each(|_| host::send(&told(&payment, "TS")));
    }
    answer
}

fn receive(payment: &mut Transfer) -> Answer {
    let is_first = payment.received == 0;
    payment.received += 1;
    let scenario = payment.scenario.clone();
    if !is_first {
        if scenario != "never_received" || payment.state != State::Lost {
            return failed(200, DUPLICATE);
        }
        payment.pay();
        return about(payment, "TS", PAID);
    }
    let refused = |code: &str| State::Refused(code.to_owned());
    match scenario.as_str() {
        "never_received" => return Answer::NotReceived,
        "processing" | "in_progress" => payment.state = State::Pending,
        "timeout_then_unknown" => payment.state = State::Unclear,
        "failed" | "timeout_then_failed" => payment.state = refused(REFUSED),
        "out_of_float" => payment.state = refused("DP00900001007"),
        "number_unknown" => payment.state = refused("DP00900001012"),
        _ => payment.pay(),
    }
    match scenario.as_str() {
        // The simplest of them name no transaction.
        "number_unknown" => failed(200, "DP00900001012"),
        "ambiguous" => about(payment, "TA", AMBIGUOUS),
        "similar_exists" => failed(200, "DP00900001011"),
        "duplicate_id" => failed(200, DUPLICATE),
        "timed_out" => failed(200, "DP00900001014"),
        scenario if scenario.starts_with("timeout_") => Answer::Silence,
        _ => standing(payment),
    }
}

/// How a payment stands.
fn standing(payment: &Transfer) -> Answer {
    match &payment.state {
        State::Paid | State::Returned => about(payment, "TS", PAID),
        State::Refused(code) => about(payment, "TF", code),
        State::Pending => about(payment, "TIP", IN_PROGRESS),
        State::Unclear => about(payment, "TA", AMBIGUOUS),
        State::Lost => failed(200, NOT_FOUND),
    }
}

/// Says how a payment stands.
#[must_use]
pub fn status(request: &Request, id: &str) -> Answer {
    if request.parameter("transactionType") != "B2C" {
        malformed("question", "transactionType");
        return failed(400, "ESB000008");
    }
    let Some(mut payment) = host::find(id) else { return failed(200, NOT_FOUND) };
    if host::scenario(&payment.account) == "provider_down" {
        return unavailable();
    }
    let answer = standing(&payment);
    if payment.scenario == "in_progress" && payment.state == State::Pending {
        // Whoever asks again finds it paid.
        payment.pay();
        host::keep(&payment);
    }
    answer
}

/// Something happens to a payment.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands. What a wallet has
/// been paid does not come back.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut payment = host::find(reference).ok_or(Obstacle::Unknown)?;
    let word = match (event, &payment.state) {
        (Event::Settle, State::Pending | State::Unclear) => {
            payment.pay();
            "TS"
        }
        (Event::Fail, State::Pending | State::Unclear) => {
            payment.state = State::Refused(REFUSED.to_owned());
            "TF"
        }
        _ => return Err(Obstacle::Impossible),
    };
    host::keep(&payment);
    host::send(&told(&payment, word));
    Ok(payment)
}
