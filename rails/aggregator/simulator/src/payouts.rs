//! What becomes of a payout, and of questions about it.

use railhead_simulator::answers::{malformed, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};

use crate::requests::Order;
use crate::standing::{CALLBACK_URL, OPERATOR, standing, told};
use crate::{as_json, problem};

/// What payouts fail for that fail.
const REFUSAL: &str = "ACCOUNT_NOT_FOUND";

/// Takes a payout on.
#[must_use]
pub fn take(request: &Request) -> Answer {
    let (order, amount_minor) = match Order::read(request) {
        Ok(order) => order,
        Err(why) => {
            malformed("payout", &why);
            let about = ("reference", request.header("idempotency-key"));
            return problem(400, "INVALID_REQUEST", about);
        }
    };
    let reference = order.reference.as_str();
    let known = host::find(reference);
    if let Some(mut payout) = known.clone().filter(|payout| payout.state != State::Lost) {
        payout.received += 1;
        host::keep(&payout);
        return problem(409, "DUPLICATE_REFERENCE", ("reference", reference));
    }
    // What is not taken on leaves nothing behind.
    match host::scenario(&order.account).as_str() {
        "provider_down" => return unavailable(),
        "turned_away" => return problem(422, REFUSAL, ("reference", reference)),
        "out_of_float" => return problem(422, "INSUFFICIENT_FLOAT", ("reference", reference)),
        "key_refused" => return problem(401, "UNAUTHENTICATED", ("reference", reference)),
        _ => {}
    }
    let mut payout = known.unwrap_or_else(|| {
        Transfer::new(reference, amount_minor, &order.account)
            .noting(OPERATOR, &order.operator)
            .noting(CALLBACK_URL, order.callback_url.as_deref().unwrap_or_default())
    });
    let reply = receive(&mut payout);
    host::keep(&payout);
    reply.to(&payout)
}

/// What the aggregator answers once it has written a payout down, and how often it tells of it.
enum Reply {
    /// It never came.
    NotReceived,
    /// It is taken on, and nobody hears that.
    Unheard(usize),
    /// There is one of this reference.
    AlreadyThere,
    /// It is taken on.
    Taken(usize),
    /// It is decided already.
    Decided,
}

fn receive(payout: &mut Transfer) -> Reply {
    let is_first = payout.received == 0;
    payout.received += 1;
    if !is_first {
        payout.pay();
        return Reply::Taken(1);
    }
    let refused = |code: &str| State::Refused(code.to_owned());
    let scenario = payout.scenario.clone();
    match scenario.as_str() {
        "never_received" => return Reply::NotReceived,
        "processing" | "delayed" | "stuck" => payout.state = State::Pending,
        "failed" | "timeout_then_failed" => payout.state = refused(REFUSAL),
        "wallet_full" => payout.state = refused("ACCOUNT_LIMIT_REACHED"),
        "timeout_then_unknown" | "outcome_unknown" => payout.state = State::Unclear,
        _ => payout.pay(),
    }
    match scenario.as_str() {
        "already_exists" => Reply::AlreadyThere,
        "paid_at_once" => Reply::Decided,
        "callback_first" => Reply::Unheard(1),
        "callback_lost" | "processing" | "delayed" | "stuck" | "outcome_unknown" => Reply::Taken(0),
        "duplicate_callback" => Reply::Taken(2),
        scenario if scenario.starts_with("timeout_") => Reply::Unheard(0),
        _ => Reply::Taken(1),
    }
}

impl Reply {
    fn to(&self, payout: &Transfer) -> Answer {
        let pending = || Transfer { state: State::Pending, ..payout.clone() };
        match self {
            Self::NotReceived => Answer::NotReceived,
            Self::Unheard(times) => {
                tell_of(payout, *times);
                Answer::Silence
            }
            Self::AlreadyThere => {
                problem(409, "DUPLICATE_REFERENCE", ("reference", &payout.reference))
            }
            Self::Taken(times) => {
                tell_of(payout, *times);
                as_json(202, &standing(&pending()).unwrap_or_default())
            }
            Self::Decided => as_json(200, &standing(payout).unwrap_or_default()),
        }
    }
}

fn tell_of(payout: &Transfer, times: usize) {
    for message in std::iter::repeat_n(told(payout), times).flatten() {
        host::send(&message);
    }
}

/// Says how a payout stands.
#[must_use]
pub fn status(reference: &str) -> Answer {
    let Some(mut payout) = host::find(reference) else {
        return problem(404, "PAYOUT_NOT_FOUND", ("reference", reference));
    };
    if host::scenario(&payout.account) == "provider_down" {
        return unavailable();
    }
    let standing = standing(&payout);
    let waits = matches!(payout.state, State::Pending | State::Unclear);
    if waits && ["delayed", "outcome_unknown"].contains(&payout.scenario.as_str()) {
        // Whoever asks again finds it paid.
        payout.pay();
        host::keep(&payout);
    }
    match standing {
        Some(standing) => as_json(200, &standing),
        None => problem(404, "PAYOUT_NOT_FOUND", ("reference", reference)),
    }
}

/// Something happens to a payout.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands. What a wallet has
/// been paid does not come back, and what is stuck stays stuck.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut payout = host::find(reference).ok_or(Obstacle::Unknown)?;
    match (event, &payout.state) {
        _ if payout.scenario == "stuck" => return Err(Obstacle::Impossible),
        (Event::Settle, State::Pending | State::Unclear) => payout.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            payout.state = State::Refused(REFUSAL.to_owned());
        }
        _ => return Err(Obstacle::Impossible),
    }
    host::keep(&payout);
    tell_of(&payout, 1);
    Ok(payout)
}
