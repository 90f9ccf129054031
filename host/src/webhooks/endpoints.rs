//! Endpoints: created, changed, given a new secret, deleted.

use std::time::Duration;

use serde_json::json;

use crate::app::App;
use crate::audit;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::{self, bulk::RowChange};
use crate::error::{ErrorCode, Problem};
use crate::events::outbox::{Handed, owner};
use crate::events::{CATALOGUE, canonical};
use crate::id::EndpointId;
use crate::ledger::{
    Command, CounterChange, Done, Effects, Guard, LockedState, Reply, Reservation, replay,
};

use super::deliver::sweep_deleted;
use super::model::{Endpoint, OldSecret};
use super::record::{forgiving, health_key};
use super::sql;
use super::view::EndpointView;
use crate::outbound::sign::new_secret;

/// What a body asks for, understood.
#[derive(Default)]
pub(super) struct EndpointFields {
    pub url: Option<String>,
    pub events: Option<Vec<String>>,
    pub is_ordered: bool,
    pub is_active: Option<bool>,
}

/// An endpoint of the caller.
///
/// # Errors
/// `webhook_endpoint_not_found`.
pub(super) async fn find(app: &App, caller: &Caller, id: &str) -> Result<Endpoint, Problem> {
    let (merchant, env) = caller.owner();
    let found = sql::find_endpoint(app.db.pool(), &owner(merchant, env), id).await?;
    found.ok_or_else(|| Problem::new(ErrorCode::WebhookEndpointNotFound))
}

/// Refuses an address that requests must not go to.
pub(super) async fn check_url(app: &App, text: &str) -> Result<String, Problem> {
    let wrong = |why: String| {
        Problem::because(ErrorCode::InvalidUrl, format!("This url cannot be used: {why}."))
            .field("url")
    };
    let url = app.outbound.read(text).map_err(wrong)?;
    app.outbound.look_up(&url).await.map_err(wrong)?;
    Ok(text.to_owned())
}

/// Refuses a list that is empty or longer than the catalogue, and names that no event has.
pub(super) fn check_events(events: Vec<String>) -> Result<Vec<String>, Problem> {
    let wrong = |why: String| Problem::because(ErrorCode::InvalidEventType, why).field("events");
    if events.is_empty() {
        return Err(wrong("events must name at least one event, or \"*\".".into()));
    }
    if events.len() > CATALOGUE.len() {
        let most = CATALOGUE.len();
        return Err(wrong(format!(
            "events must name at most {most} events; \"*\" stands for all."
        )));
    }
    let mut known: Vec<String> = Vec::new();
    for event in events {
        if event != "*" && canonical(&event).is_none() {
            return Err(wrong(format!("There is no event {event:?}.")));
        }
        // Two spellings of one event would be one delivery anyway: the first one counts.
        if !known.iter().any(|other| {
            *other == event || canonical(other).is_some_and(|name| canonical(&event) == Some(name))
        }) {
            known.push(event);
        }
    }
    Ok(known)
}

/// Creates an endpoint. A repeat with the same key gets the same answer, secret included, so
/// the stored answer is sealed.
///
/// # Errors
/// The codes of the contract for this call.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    fields: EndpointFields,
    reservation: Option<Reservation>,
) -> Result<(String, bool), Problem> {
    // What is refused now may have been accepted before.
    if let Some(reservation) = &reservation
        && let Some(Done::Before { reply: Some(reply), .. }) =
            replay::<()>(&app.db, reservation).await?
    {
        return Ok((unseal(app, reservation, &reply)?, true));
    }
    let (merchant, env) = caller.owner();
    let owner = owner(merchant, env);
    let missing = |field: &str| {
        Problem::because(ErrorCode::MissingField, format!("{field} is required.")).field(field)
    };
    let url = check_url(app, &fields.url.ok_or_else(|| missing("url"))?).await?;
    let events = check_events(fields.events.ok_or_else(|| missing("events"))?)?;
    let most = i64::try_from(limits::WEBHOOK_ENDPOINTS_MAX).unwrap_or(i64::MAX);
    if sql::count_endpoints(app.db.pool(), &owner).await? >= most {
        let message = format!("There may be {most} webhook endpoints; delete one first.");
        return Err(Problem::because(ErrorCode::InvalidField, message));
    }
    let id: EndpointId = app.ids.id();
    let secret = new_secret(&app.ids);
    let now = app.now();
    let sealed = app.keyring.seal(&app.ids, &Endpoint::place(&id), secret.as_bytes());
    let endpoint = Endpoint {
        merchant_id: merchant.clone(),
        env,
        url,
        events,
        is_ordered: fields.is_ordered,
        is_active: true,
        disabled_reason: None,
        secret: sealed.map_err(Problem::internal)?,
        old_secrets: Vec::new(),
        last_success_at: None,
        last_failure_at: None,
        consecutive_failures: 0,
        created_at: now,
        updated_at: now,
        id,
    };
    let view = EndpointView { secret: Some(secret), ..EndpointView::of(&endpoint) };
    let body = serde_json::to_string(&view).map_err(Problem::internal)?;
    let reply = match &reservation {
        Some(reservation) => Some(seal(app, reservation, &body)?),
        None => None,
    };
    let told = record(app, caller, "webhook_endpoint.create", (None, Some(&endpoint)));
    let rows = vec![sql::ENDPOINTS.insert(&endpoint), told];
    let command = Command::new(move |_| {
        let (rows, reply) = (rows.clone(), reply.clone());
        Ok(Effects { rows, reply, ..Effects::default() }.and(()))
    });
    match (app.writer.request(command.reserve(reservation.clone())).await?, &reservation) {
        (Done::Before { reply: Some(reply), .. }, Some(reservation)) => {
            Ok((unseal(app, reservation, &reply)?, true))
        }
        _ => {
            // What happens after this answer reaches it. The wait is bounded.
            let _ = sql::wait_for_others(&app.db).await?;
            Ok((body, false))
        }
    }
}

fn seal(app: &App, reservation: &Reservation, body: &str) -> Result<Reply, Problem> {
    let body = app.keyring.seal(&app.ids, &reservation.key, body.as_bytes());
    Ok(Reply { status: 200, body: body.map_err(Problem::internal)? })
}

fn unseal(app: &App, reservation: &Reservation, reply: &Reply) -> Result<String, Problem> {
    let body = app.keyring.open(&reservation.key, &reply.body).map_err(Problem::internal)?;
    String::from_utf8(body).map_err(Problem::internal)
}

/// Changes what a body names.
///
/// # Errors
/// The codes of the contract for this call.
pub(super) async fn update(
    app: &App,
    caller: &Caller,
    before: Endpoint,
    fields: EndpointFields,
) -> Result<Endpoint, Problem> {
    let mut after = before.clone();
    if let Some(url) = fields.url {
        after.url = check_url(app, &url).await?;
    }
    if let Some(events) = fields.events {
        after.events = check_events(events)?;
    }
    if let Some(is_active) = fields.is_active {
        after.is_active = is_active;
        after.disabled_reason = after.disabled_reason.filter(|_| !is_active);
    }
    after.updated_at = newer(app, &before);
    let told = record(app, caller, "webhook_endpoint.update", (Some(&before), Some(&after)));
    let rows = vec![sql::ENDPOINT_CHANGES.change(&after), told];
    let is_back = after.is_active && !before.is_active;
    // How it fared at another address says nothing of how it will fare at this one.
    let is_renewed = is_back || after.url != before.url;
    let health = if is_renewed { Health::Forgiven } else { Health::Kept };
    submit(app, &before, rows, health).await?;
    forget_target(app, &after.id);
    if is_back || (after.is_active && after.events != before.events) {
        // What happens after this answer reaches it. The wait is bounded.
        let _ = sql::wait_for_others(&app.db).await?;
    }
    if is_renewed {
        // What waited meanwhile may go on: here at once, and on other hosts when their pause is over.
        let _ = app.handover.try_send(Handed::Renewed(after.id.clone()));
    }
    Ok(after)
}

/// Gives an endpoint a new secret; the old one signs too for a while.
///
/// # Errors
/// The endpoint changed meanwhile, or the database failed.
pub(super) async fn rotate(
    app: &App,
    caller: &Caller,
    before: Endpoint,
) -> Result<EndpointView, Problem> {
    let secret = new_secret(&app.ids);
    let sealed = app.keyring.seal(&app.ids, &Endpoint::place(&before.id), secret.as_bytes());
    let now = app.now();
    let until_us = now.after(limits::WEBHOOK_OLD_SECRET).micros();
    let replaced = OldSecret { secret: before.secret.clone(), until_us };
    let old = [replaced].into_iter().chain(before.old_secrets(now).cloned());
    let after = Endpoint {
        secret: sealed.map_err(Problem::internal)?,
        old_secrets: old.take(limits::WEBHOOK_OLD_SECRETS_MAX).collect(),
        updated_at: newer(app, &before),
        ..before.clone()
    };
    let sides = (Some(&before), Some(&after));
    let told = record(app, caller, "webhook_endpoint.rotate_secret", sides);
    let rows = vec![sql::ENDPOINT_SECRETS.change(&after), told];
    submit(app, &before, rows, Health::Kept).await?;
    forget_target(app, &after.id);
    Ok(EndpointView { secret: Some(secret), ..EndpointView::of(&after) })
}

/// Deletes an endpoint, and with it everything that was or would be delivered to it.
///
/// # Errors
/// The endpoint changed meanwhile, or the database failed.
pub(super) async fn delete(app: &App, caller: &Caller, before: Endpoint) -> Result<(), Problem> {
    let after = Endpoint { updated_at: newer(app, &before), ..before.clone() };
    // Its history is gone for every reader with this; the rows follow in portions, and nobody who
    // asks for it waits for them.
    let told = record(app, caller, "webhook_endpoint.delete", (Some(&before), None));
    let rows = vec![sql::ENDPOINT_DELETED.change(&after), told];
    submit(app, &before, rows, Health::Kept).await?;
    forget_target(app, &after.id);
    let sweeping = app.clone();
    app.tasks.spawn(async move {
        // What this does not manage, the sweeper does.
        let swept = sweep_deleted(&sweeping, before.id.as_str());
        if let Err(cause) = db::within(limits::JOB_DEADLINE, swept).await {
            tracing::warn!(%cause, endpoint.id = %before.id, "sweeping");
        }
    });
    Ok(())
}

/// Has this host's deliverer read the endpoint anew: what waits goes where it is now, or nowhere. Other
/// hosts know within a second.
fn forget_target(app: &App, endpoint: &EndpointId) {
    let _ = app.handover.try_send(Handed::Changed(endpoint.clone()));
}

/// Writes deliveries to an endpoint, under its lock: whoever deletes it sees them, or has deleted
/// it before, and then they are refused as where it is long gone. With them its count of failures,
/// where that is another one.
pub(super) fn unless_deleted(
    endpoint: &EndpointId,
    (rows, counter): (Vec<RowChange>, Option<CounterChange>),
    gone: ErrorCode,
) -> Command<()> {
    let id = endpoint.to_string();
    let counters = counter.as_ref().map(|counter| counter.key.clone());
    let command = Command::new({
        let id = id.clone();
        move |locked: &LockedState<'_>| {
            let row = locked.row(&sql::ENDPOINT_VERSIONS, &id);
            match row.map(|row| row.maybe_int("deleted_at")).transpose()? {
                Some(None) => {
                    let (rows, counters) = (rows.clone(), counter.iter().cloned().collect());
                    Ok(Effects { rows, counters, ..Effects::default() }.and(()))
                }
                Some(Some(_)) | None => Err(Problem::new(gone)),
            }
        }
    });
    command.row(&sql::ENDPOINT_VERSIONS, id).counters(counters)
}

/// The line of the audit log about a change by a merchant's key.
fn record(
    app: &App,
    caller: &Caller,
    action: &'static str,
    (before, after): (Option<&Endpoint>, Option<&Endpoint>),
) -> RowChange {
    let subject = after.or(before).map(|endpoint| endpoint.id.to_string());
    let change = audit::Change {
        actor: caller.key.id.to_string(),
        address: caller.address.to_string(),
        action,
        subject_type: "webhook_endpoint",
        subject_id: subject.unwrap_or_default(),
        before: before.map(state),
        after: after.map(state),
    };
    change.row(&app.ids, app.now())
}

/// An endpoint as the audit log shows it: that its secret was replaced, never which one it is.
fn state(endpoint: &Endpoint) -> serde_json::Value {
    let old_until = endpoint.old_secrets.first().map(|old| Moment::from_micros(old.until_us));
    json!({
        "url": endpoint.url,
        "events": endpoint.events,
        "ordered": endpoint.is_ordered,
        "is_active": endpoint.is_active,
        "old_secret_until": old_until,
    })
}

/// Versions rise even where the clock does not: caches go by them.
fn newer(app: &App, before: &Endpoint) -> Moment {
    app.now().max(before.updated_at.after(Duration::from_micros(1)))
}

/// What a change does to the memory of failures.
#[derive(Clone, Copy)]
enum Health {
    Kept,
    Forgiven,
}

async fn submit(
    app: &App,
    before: &Endpoint,
    rows: Vec<RowChange>,
    health: Health,
) -> Result<(), Problem> {
    let forgiven = match health {
        Health::Forgiven => Some(health_key(before.id.as_str())),
        Health::Kept => None,
    };
    let guard = Guard {
        on: &sql::ENDPOINT_VERSIONS,
        id: before.id.to_string(),
        version: before.updated_at.micros(),
    };
    let counters = forgiven.clone();
    let command = Command::new(move |locked| {
        let counters = forgiven.iter().map(|key| forgiving(key.clone(), locked.now())).collect();
        Ok(Effects { rows: rows.clone(), counters, ..Effects::default() }.and(()))
    });
    app.writer.request(command.guards([guard]).counters(counters)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_are_checked_and_kept_as_written() {
        let check =
            |events: &[&str]| check_events(events.iter().map(ToString::to_string).collect());
        assert_eq!(
            check(&["payout_paid", "payout.failed"]).expect("known"),
            ["payout_paid", "payout.failed"]
        );
        assert_eq!(
            check(&["payout_paid", "payout.paid", "*"]).expect("known"),
            ["payout_paid", "*"]
        );
        for wrong in [&[][..], &["payout.unknown"], &[""], &["payout.paid", "PAYOUT.PAID"]] {
            let refusal = check(wrong).expect_err("a refusal");
            assert_eq!(refusal.code(), ErrorCode::InvalidEventType);
        }
    }
}
