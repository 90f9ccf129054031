//! Writing down what came of an attempt: the delivery, its place in the queue, the endpoint's
//! health, and switching off an endpoint where nobody is.

use std::time::Duration;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::events::outbox::Ready;
use crate::events::{DISABLED, Data, Event};
use crate::id::{DeliveryId, EventId};
use crate::ledger::{Command, CounterChange, Effects, Guard, LockedState};
use crate::money::Minor;
use crate::outbound::Answer;

use super::model::{Endpoint, Next, Receiver, Status, next};
use super::sql;
use super::view::EndpointView;

/// An attempt that was made.
#[derive(Clone)]
pub(super) struct Made {
    pub ready: Ready,
    pub endpoint: std::sync::Arc<Endpoint>,
    pub answer: Answer,
    /// Whether the endpoint's health has to be written too, or is known to be as before.
    pub is_news: bool,
}

/// The counter of an endpoint's failures: how many in a row, and since when.
pub(super) fn health_key(endpoint: &str) -> String {
    format!("webhook/{endpoint}")
}

/// That counter where there is nothing to count.
pub(super) fn forgiving(key: String, now: Moment) -> CounterChange {
    CounterChange {
        key,
        holder: String::new(),
        count: 0,
        sum: Minor::ZERO,
        expires_at: now.after(limits::WEBHOOK_HEALTH_KEPT).micros(),
    }
}

/// Writes an attempt down. Somebody else's later claim wins: then nothing is written.
///
/// # Errors
/// The database failed; the delivery is made again later.
pub(super) async fn record(app: &App, made: &Made) -> Result<(), Problem> {
    match app.writer.work(command(app, made)).await {
        Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(()),
        other => other.map(drop),
    }
}

fn command(app: &App, made: &Made) -> Command<()> {
    let ready = &made.ready;
    let endpoint = ready.endpoint_id.to_string();
    let counters = made.is_news.then(|| health_key(&endpoint));
    let guard = Guard { on: &sql::QUEUE_FENCES, id: ready.id.to_string(), version: ready.fence };
    let is_news = made.is_news;
    let (made, spread, event) = (made.clone(), app.ids.below(1001), app.ids.id());
    let command = Command::new(move |locked| Ok(decide(locked, &made, spread, &event)?.and(())));
    let command = command.guards([guard]).counters(counters);
    // Its health is written to the endpoint: locked before the counter, as by whoever changes it.
    match is_news {
        true => command.row(&sql::ENDPOINT_VERSIONS, endpoint),
        false => command,
    }
}

fn decide(
    locked: &LockedState<'_>,
    made: &Made,
    spread: u64,
    event: &EventId,
) -> Result<Effects, Problem> {
    let (ready, now) = (&made.ready, locked.now());
    let attempts = ready.attempts + 1;
    let receiver = receiver(locked, &made.endpoint)?;
    let next = next(attempts, &made.answer, receiver, now, spread);
    let mut effects = Effects::default();
    effects.rows.push(result_row(&ready.id, attempts, &made.answer, (next, now)));
    effects.rows.push(match next.again_at {
        Some(due_at) => {
            let (id, fence) = (ready.id.clone(), ready.fence + 1);
            sql::QUEUE_DELAYS.change(&sql::Delay { id, due_at, fence })
        }
        None => sql::QUEUE_DONE.of(ready.id.as_str()),
    });
    // Who failed where it was before says nothing of how it fares now.
    if made.is_news && (made.answer.is_good() || receiver == Receiver::Current) {
        health(locked, made, event, &mut effects)?;
    }
    Ok(effects)
}

/// Whether the endpoint is still what it was when it was asked. Its row is there for whatever
/// failed; of a good answer it does not matter.
fn receiver(locked: &LockedState<'_>, endpoint: &Endpoint) -> Result<Receiver, Problem> {
    let row = locked.row(&sql::ENDPOINT_VERSIONS, endpoint.id.as_str());
    let version = row.map(|row| row.int("updated_at")).transpose()?;
    Ok(match version == Some(endpoint.updated_at.micros()) {
        true => Receiver::Current,
        false => Receiver::Former,
    })
}

/// A delivery after an attempt.
pub(super) fn result_row(
    id: &DeliveryId,
    attempts: i64,
    answer: &Answer,
    (next, now): (Next, Moment),
) -> RowChange {
    let error = match (&answer.error, answer.is_good()) {
        (Some(why), _) => Some(why.clone()),
        (None, true) => None,
        (None, false) => Some("the receiver did not answer with 2xx".to_owned()),
    };
    sql::RESULTS.change(&sql::Attempted {
        id: id.clone(),
        status: next.status.as_str(),
        attempts,
        response_status: answer.status.map(i64::from),
        response_body: answer.body.clone(),
        error,
        again_at: next.again_at,
        delivered_at: (next.status == Status::Delivered).then_some(now),
    })
}

fn health(
    locked: &LockedState<'_>,
    made: &Made,
    event: &EventId,
    effects: &mut Effects,
) -> Result<(), Problem> {
    let (endpoint, now) = (&made.endpoint, locked.now());
    let key = health_key(endpoint.id.as_str());
    let counter = locked.counter(&key);
    let mut change = CounterChange { holder: counter.holder.clone(), ..forgiving(key, now) };
    let mut health = sql::Health { id: endpoint.id.clone(), at: now, failures: 0 };
    if made.answer.is_good() {
        change.holder.clear();
        effects.rows.push(sql::ENDPOINT_SUCCESSES.change(&health));
        effects.counters.push(change);
        return Ok(());
    }
    change.count = counter.count.saturating_add(1);
    health.failures = change.count;
    if change.holder.is_empty() {
        change.holder = now.micros().to_string();
    }
    effects.rows.push(sql::ENDPOINT_FAILURES.change(&health));
    if let Some(reason) = hopeless(&change, &made.answer, now)
        && let Some(row) = locked.row(&sql::ENDPOINT_VERSIONS, endpoint.id.as_str())
        && row.int("is_active")? != 0
    {
        change.holder.clear();
        let version = Moment::from_micros(row.int("updated_at")?).after(Duration::from_micros(1));
        let off = Endpoint {
            is_active: false,
            disabled_reason: Some(reason.to_owned()),
            updated_at: now.max(version),
            ..Endpoint::clone(endpoint)
        };
        switch_off(off, row.int("times_disabled")? + 1, (event, now), effects);
    }
    effects.counters.push(change);
    Ok(())
}

/// Why an endpoint is to be switched off, if it is.
fn hopeless(health: &CounterChange, answer: &Answer, now: Moment) -> Option<&'static str> {
    if answer.status == Some(410) {
        return Some("the receiver answered 410 Gone");
    }
    let since = Moment::from_micros(health.holder.parse().ok()?);
    (since.after(limits::WEBHOOK_FAILING_MAX) <= now)
        .then_some("every delivery failed for five days")
}

/// Switches an endpoint off, for the n-th time, and tells the merchant's others of it.
fn switch_off(off: Endpoint, times: i64, (event, now): (&EventId, Moment), effects: &mut Effects) {
    let event = Event {
        id: event.clone(),
        merchant_id: off.merchant_id.clone(),
        env: off.env,
        name: DISABLED,
        object_type: "webhook_endpoint",
        object_id: off.id.to_string(),
        sequence: times,
        data: serde_json::to_string(&EndpointView::of(&off)).ok().map(Data::Whole),
        created_at: now,
    };
    effects.rows.push(event.row());
    effects.rows.push(sql::ENDPOINT_DISABLED.change(&(off, times)));
}
