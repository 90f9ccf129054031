//! Writing down what came of an attempt: the delivery, its place in the queue, the endpoint's
//! health, and switching off an endpoint where nobody is.

use std::time::Duration;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::events::outbox::Ready;
use crate::events::{DISABLED, Event};
use crate::id::EventId;
use crate::ledger::{Command, CounterChange, Effects, Guard, LockedState};
use crate::money::Minor;
use crate::outbound::Answer;

use super::model::{Endpoint, Next, Status, next};
use super::sql;
use super::view::EndpointView;

/// How long an endpoint's failures are remembered without a new one.
const HEALTH_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// What the counter's holder says of an endpoint that was switched off.
const OFF: &str = "off";

/// An attempt that was made.
#[derive(Clone)]
pub(super) struct Made {
    pub ready: Ready,
    pub endpoint: std::sync::Arc<Endpoint>,
    pub answer: Answer,
    /// Whether the endpoint's health has to be written too, or is known to be as before.
    pub is_news: bool,
}

/// The counter of an endpoint's failures: how many in a row, since when, and how often it was
/// switched off.
pub(super) fn health_key(endpoint: &str) -> String {
    format!("webhook/{endpoint}")
}

/// Writes an attempt down. Somebody else's later claim wins: then nothing is written.
///
/// # Errors
/// The database failed; the delivery is made again later.
pub(super) async fn record(app: &App, made: &Made) -> Result<(), Problem> {
    loop {
        match app.writer.submit(command(app, made)).await {
            // The result is known and must not be lost because others are writing.
            Err(problem) if problem.code() == ErrorCode::ServiceOverloaded => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(problem) if problem.code() == ErrorCode::StateConflict => return Ok(()),
            other => return other.map(drop),
        }
    }
}

fn command(app: &App, made: &Made) -> Command {
    let ready = &made.ready;
    let counters = match made.is_news {
        true => vec![health_key(ready.endpoint_id.as_str())],
        false => Vec::new(),
    };
    let guard = Guard {
        on: &sql::QUEUE_FENCES,
        id: ready.id.to_string(),
        version: ready.fence,
        next: ready.fence + 1,
    };
    let (made, spread, event) = (made.clone(), app.ids.below(1001), app.ids.id());
    Command {
        wallets: Vec::new(),
        guards: vec![guard],
        counters,
        reservation: None,
        decide: Box::new(move |locked| Ok(decide(locked, &made, spread, &event))),
    }
}

fn decide(locked: &LockedState<'_>, made: &Made, spread: u64, event: &EventId) -> Effects {
    let (ready, now) = (&made.ready, locked.now());
    let attempts = ready.attempts + 1;
    let next = next(attempts, &made.answer, now, spread);
    let mut effects = Effects::default();
    effects.rows.push(result_row(ready.id.as_str(), attempts, &made.answer, (next, now)));
    let id = ready.id.to_string();
    effects.rows.push(match next.again_at {
        Some(at) => {
            let row = vec![id.into(), at.micros().into(), 0.into(), (ready.fence + 1).into()];
            RowChange::Update(&sql::QUEUE_DELAYS, row)
        }
        None => RowChange::Delete(&sql::QUEUE_DELAYS, id),
    });
    if made.is_news {
        health(locked, made, event, &mut effects);
    }
    effects
}

/// A delivery after an attempt.
pub(super) fn result_row(
    id: &str,
    attempts: i64,
    answer: &Answer,
    (next, now): (Next, Moment),
) -> RowChange {
    let delivered_at = (next.status == Status::Delivered).then(|| now.micros());
    let error = match (&answer.error, answer.is_good()) {
        (Some(why), _) => Some(why.clone()),
        (None, true) => None,
        (None, false) => Some("the receiver did not answer with 2xx".to_owned()),
    };
    RowChange::Update(
        &sql::RESULTS,
        vec![
            id.into(),
            next.status.as_str().into(),
            attempts.into(),
            answer.status.map(i64::from).into(),
            answer.body.clone().into(),
            error.into(),
            next.again_at.map(Moment::micros).into(),
            delivered_at.into(),
        ],
    )
}

fn health(locked: &LockedState<'_>, made: &Made, event: &EventId, effects: &mut Effects) {
    let (endpoint, now) = (&made.endpoint, locked.now());
    let key = health_key(endpoint.id.as_str());
    let counter = locked.counter(&key);
    let mut change = CounterChange {
        key,
        holder: counter.holder,
        count: 0,
        sum: counter.sum,
        expires_at: now.after(HEALTH_KEPT).micros(),
    };
    let id = endpoint.id.as_str();
    if made.answer.is_good() {
        change.holder.clear();
        let row = vec![id.into(), now.micros().into(), 0.into()];
        effects.rows.push(RowChange::Update(&sql::ENDPOINT_SUCCESSES, row));
        effects.counters.push(change);
        return;
    }
    change.count = counter.count.saturating_add(1);
    if change.holder.is_empty() {
        change.holder = now.micros().to_string();
    }
    let row = vec![id.into(), now.micros().into(), change.count.into()];
    effects.rows.push(RowChange::Update(&sql::ENDPOINT_FAILURES, row));
    if let Some(reason) = hopeless(&change, &made.answer, now) {
        change.holder = OFF.to_owned();
        change.sum = change.sum.plus(Minor::new(1)).unwrap_or(change.sum);
        switch_off(endpoint, reason, (event, change.sum.units(), now), effects);
    }
    effects.counters.push(change);
}

/// Why an endpoint is to be switched off, if it is.
fn hopeless(health: &CounterChange, answer: &Answer, now: Moment) -> Option<&'static str> {
    if health.holder == OFF {
        return None;
    }
    if answer.status == Some(410) {
        return Some("the receiver answered 410 Gone");
    }
    let since = Moment::from_micros(health.holder.parse().ok()?);
    (since.after(limits::WEBHOOK_FAILING_MAX) <= now)
        .then_some("every delivery failed for five days")
}

fn switch_off(
    endpoint: &Endpoint,
    reason: &'static str,
    (event, sequence, now): (&EventId, i64, Moment),
    effects: &mut Effects,
) {
    let version = now.max(endpoint.updated_at.after(Duration::from_micros(1)));
    let off = Endpoint {
        is_active: false,
        disabled_reason: Some(reason.to_owned()),
        updated_at: version,
        ..endpoint.clone()
    };
    let row = vec![off.id.as_str().into(), 0.into(), reason.into(), version.micros().into()];
    effects.rows.push(RowChange::Update(&sql::ENDPOINT_DISABLED, row));
    let event = Event {
        id: event.clone(),
        merchant_id: off.merchant_id.clone(),
        env: off.env,
        name: DISABLED,
        object_type: "webhook_endpoint",
        object_id: off.id.to_string(),
        sequence,
        data: serde_json::to_string(&EndpointView::of(&off)).ok(),
        created_at: now,
    };
    effects.rows.push(event.row());
}
