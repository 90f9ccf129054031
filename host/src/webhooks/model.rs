//! Endpoints and deliveries, and what follows from an attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::id::{DeliveryId, EndpointId, EventId, MerchantId};
use crate::outbound::Answer;

/// Where a merchant wants to hear of events. Secrets are sealed.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The id, which sorts by time of creation.
    pub id: EndpointId,
    /// Whose it is.
    pub merchant_id: MerchantId,
    /// Test or live; it hears of nothing else.
    pub env: Env,
    /// Where requests go.
    pub url: String,
    /// Names of events in the merchant's spelling; `*` for all.
    pub events: Vec<String>,
    /// Whether an object's changes must arrive in their order.
    pub is_ordered: bool,
    /// Whether it hears of anything.
    pub is_active: bool,
    /// Why it was switched off, if not by its owner.
    pub disabled_reason: Option<String>,
    /// The secret that signs.
    pub secret: String,
    /// Those before, the last one first.
    pub old_secrets: Vec<OldSecret>,
    /// When a delivery last arrived.
    pub last_success_at: Option<Moment>,
    /// When a delivery last failed.
    pub last_failure_at: Option<Moment>,
    /// How many deliveries have failed since one arrived.
    pub consecutive_failures: i64,
    /// When it was created.
    pub created_at: Moment,
    /// When its owner last changed it; never twice the same.
    pub updated_at: Moment,
}

/// A secret that was replaced. Sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OldSecret {
    /// The secret.
    pub secret: String,
    /// Until when it signs beside the new one, in microseconds.
    pub until_us: i64,
}

impl Endpoint {
    /// Secrets that were replaced and sign still.
    pub fn old_secrets(&self, now: Moment) -> impl Iterator<Item = &OldSecret> {
        self.old_secrets.iter().filter(move |old| Moment::from_micros(old.until_us) > now)
    }

    /// The place in the table that its secrets are sealed to.
    #[must_use]
    pub fn place(id: &EndpointId) -> String {
        format!("webhook_endpoints/{id}")
    }
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Status {
    /// Not tried yet.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It did not, and will be tried again.
    Failed,
    /// It did not, and will not be tried again.
    GivingUp,
}

impl Status {
    /// The word on the wire and in the table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::GivingUp => "giving_up",
        }
    }
}

/// An event for one endpoint, and how it went.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The id, which sorts by time of creation.
    pub id: DeliveryId,
    /// The endpoint that hears of it.
    pub endpoint_id: EndpointId,
    /// The id of the event that it tells; none for a test.
    pub event_id: Option<EventId>,
    /// The event's name in the endpoint's spelling.
    pub event_type: String,
    /// Whether it only tries the endpoint out.
    pub is_test: bool,
    /// The delivery that it repeats.
    pub replayed_from_id: Option<String>,
    /// `pending`, `delivered`, `failed` or `giving_up`.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// HTTP status of the last answer.
    pub response_status: Option<i64>,
    /// The beginning of the last answer.
    pub response_body: Option<String>,
    /// Why the last attempt failed.
    pub error_message: Option<String>,
    /// When it is tried next.
    pub next_attempt_at: Option<Moment>,
    /// When it arrived.
    pub delivered_at: Option<Moment>,
    /// When it was made.
    pub created_at: Moment,
}

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// How the delivery stands.
    pub status: Status,
    /// When it is tried again.
    pub again_at: Option<Moment>,
}

/// Who has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The endpoint as it is.
    Current,
    /// As it was before it was changed or deleted: perhaps at another address.
    Former,
}

/// What follows from the attempt that makes `attempts`, answered at `now`. `spread` is between
/// 0 and 1000 and keeps those that failed together from coming back together.
#[must_use]
pub fn next(attempts: i64, answer: &Answer, receiver: Receiver, now: Moment, spread: u64) -> Next {
    if answer.is_good() {
        return Next { status: Status::Delivered, again_at: None };
    }
    let delay = usize::try_from(attempts).ok().and_then(|made| limits::WEBHOOK_DELAYS.get(made));
    // Gone for good: the receiver says so, and it is still the one to say it.
    let is_gone = answer.status == Some(410) && receiver == Receiver::Current;
    let Some(delay) = delay.filter(|_| !is_gone) else {
        return Next { status: Status::GivingUp, again_at: None };
    };
    let tenth = u64::try_from(delay.as_micros() / 10).unwrap_or(u64::MAX);
    let jitter = Duration::from_micros(tenth.saturating_mul(spread.min(1000)) / 1000);
    let delay = answer.retry_after.unwrap_or_default().max(*delay + jitter);
    Next { status: Status::Failed, again_at: Some(now.after(delay)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Answer {
        Answer { status: Some(status), ..Answer::default() }
    }

    #[test]
    fn seven_attempts_are_made_on_a_growing_schedule() {
        let now = Moment::parse("2026-11-21T09:00:00Z").expect("an instant");
        let after = |attempts| next(attempts, &answer(500), Receiver::Current, now, 0).again_at;
        let spans: Vec<_> =
            (1..7).map(|made| after(made).map(|at| at.seconds() - now.seconds())).collect();
        assert_eq!(spans, [5, 60, 300, 1800, 7200, 28_800].map(Some));
        assert_eq!(next(7, &answer(500), Receiver::Current, now, 0).status, Status::GivingUp);
        let late = next(2, &answer(500), Receiver::Current, now, 1000).again_at.expect("another");
        assert_eq!(late.seconds() - now.seconds(), 66);
    }

    #[test]
    fn answers_mean_what_they_say() {
        let now = Moment::default();
        let after = |answer: &Answer| next(1, answer, Receiver::Current, now, 0);
        assert_eq!(after(&answer(204)).status, Status::Delivered);
        assert_eq!(after(&answer(301)).status, Status::Failed);
        assert_eq!(after(&answer(410)).status, Status::GivingUp);
        let cut = Answer { error: Some("cut".into()), ..answer(200) };
        assert_eq!(after(&cut).status, Status::Failed);
        let patient = Answer { retry_after: Some(Duration::from_secs(90)), ..answer(429) };
        assert_eq!(after(&patient).again_at, Some(now.after(Duration::from_secs(90))));
    }

    #[test]
    fn a_410_of_a_former_receiver_is_a_failed_attempt() {
        let now = Moment::default();
        let after = |attempts, status| next(attempts, &answer(status), Receiver::Former, now, 0);
        for status in [410, 500] {
            assert_eq!(after(1, status).again_at, Some(now.after(limits::WEBHOOK_DELAYS[1])));
            assert_eq!(after(7, status).status, Status::GivingUp);
        }
        assert_eq!(after(1, 200).status, Status::Delivered);
    }
}
