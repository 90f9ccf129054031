//! Every background job on one screen.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Method, Request, header};
use tokio::sync::{Semaphore, mpsc};
use tower::ServiceExt as _;

use crate::app::App;
use crate::config::limits;
use crate::decisions::shadow;
use crate::error::ErrorCode;
use crate::events::outbox::Handed;
use crate::operator::assignments::take_out;
use crate::payouts::{attempt, dispatch};
use crate::rules::Compared;
use crate::simulator::{OwnMessage, TOKEN};
use crate::webhooks;

/// How often what has expired is swept away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// A marker of a batch is needed for seconds; a day is generous.
const MARKERS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Starts every job. They end when the app is told to stop.
pub fn start(app: &App, handed: mpsc::Receiver<Handed>, compared: mpsc::Receiver<Compared>) {
    if app.config.worker.dispatch {
        app.tasks.spawn(dispatcher(app.clone()));
    }
    if app.config.webhooks.deliver {
        app.tasks.spawn(webhooks::deliver::deliver(app.clone(), handed));
        app.tasks.spawn(webhooks::deliver::sweep(app.clone()));
    }
    app.tasks.spawn(rules(app.clone()));
    app.tasks.spawn(shadow::compare(app.clone(), compared));
    app.tasks.spawn(sweeper(app.clone()));
}

/// Takes over which packs decide, and takes out those that keep failing.
async fn rules(app: App) {
    // Packs that fail and have nobody to put back, until assignments change.
    let mut kept: HashMap<String, i64> = HashMap::new();
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::RULES_POLL) => {}
        }
        match app.pack_store.refresh(&app.packs).await {
            Ok(false) => {}
            Ok(true) => {
                let generation = app.packs.now().generation;
                tracing::info!(generation, packs = ?app.packs.now().packs(), "rule packs changed");
            }
            Err(why) => tracing::error!(%why, "the rule packs stay as they were"),
        }
        let assignments = app.packs.now();
        for pack in assignments.packs() {
            let is_kept = kept.get(&pack.digest) == Some(&assignments.generation);
            if pack.failures() < limits::PACK_FAILURES_MAX || is_kept {
                continue;
            }
            match take_out(&app, &pack).await {
                Ok(true) => tracing::error!(?pack, "a rule pack that fails was taken out"),
                Ok(false) => {
                    tracing::error!(?pack, "a rule pack fails, and there is none to put back");
                    kept.insert(pack.digest.clone(), assignments.generation);
                }
                Err(problem) => {
                    tracing::error!(?pack, %problem, "a rule pack that fails is not taken out");
                }
            }
        }
    }
}

/// Sends queued payouts and asks about those under way, as many at once as configured.
async fn dispatcher(app: App) {
    let slots = Arc::new(Semaphore::new(app.config.worker.dispatch_concurrency.max(1)));
    let lease = i64::try_from(limits::LEASE.as_micros()).unwrap_or(i64::MAX);
    while !app.stopping.is_cancelled() {
        let free = i64::try_from(slots.available_permits()).unwrap_or(1);
        let wanted = free.min(limits::CLAIM_MAX);
        let claims = match wanted {
            0 => Vec::new(),
            _ => match attempt::claim_dispatches(&app.db, app.now(), (lease, wanted)).await {
                Ok(claims) => claims,
                Err(cause) => {
                    tracing::warn!(%cause, "claiming payouts to dispatch");
                    Vec::new()
                }
            },
        };
        if claims.is_empty() {
            tokio::select! {
                () = app.stopping.cancelled() => return,
                () = app.dispatch.notified(), if wanted > 0 => {}
                () = tokio::time::sleep(limits::DISPATCH_POLL), if wanted > 0 => {}
                _ = slots.acquire(), if wanted == 0 => {}
            }
            continue;
        }
        for claim in claims {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let app = app.clone();
            app.clone().tasks.spawn(async move {
                let payout = claim.payout_id.clone();
                match dispatch::work(&app, claim).await {
                    // Somebody else changed the payout first: nothing is left to do here.
                    Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                    Err(problem) => tracing::error!(payout.id = %payout, %problem, "dispatch"),
                    Ok(_) => {}
                }
                drop(slot);
            });
        }
    }
}

/// Rows that are deleted in one transaction.
const SWEPT_AT_ONCE: u64 = 5_000;

/// Deletes counters, markers and decisions that no longer matter.
async fn sweeper(app: App) {
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        let now = app.now();
        let kept = u64::from(app.config.rules.decisions_kept_days);
        let decided = now.before(Duration::from_secs(kept * 24 * 3600));
        for (sql, before) in [
            (
                "DELETE FROM counters WHERE key IN \
                 (SELECT key FROM counters WHERE expires_at < $1 LIMIT 5000)",
                now,
            ),
            (
                "DELETE FROM writer_batches WHERE id IN \
                 (SELECT id FROM writer_batches WHERE created_at < $1 LIMIT 5000)",
                now.before(MARKERS_KEPT),
            ),
            (
                "DELETE FROM decisions WHERE payout_id IN \
                 (SELECT payout_id FROM decisions WHERE created_at < $1 LIMIT 5000)",
                decided,
            ),
            (
                "DELETE FROM rule_differences WHERE id IN \
                 (SELECT id FROM rule_differences WHERE created_at < $1 LIMIT 5000)",
                decided,
            ),
            (
                "DELETE FROM rule_requests WHERE created_at < $1",
                now.before(limits::RULES_REQUEST_VALID),
            ),
        ] {
            if let Err(cause) = sweep(&app, sql, before.micros()).await {
                tracing::warn!(%cause, "sweeping");
            }
        }
    }
}

/// In portions, so that nobody waits long for a lock and no statement runs into its limit.
async fn sweep(app: &App, sql: &'static str, before: i64) -> Result<(), sqlx::Error> {
    loop {
        let mut tx = app.db.write().await?;
        let swept = sqlx::query(sql).bind(before).execute(tx.conn()).await?.rows_affected();
        tx.commit().await?;
        if swept < SWEPT_AT_ONCE || app.stopping.is_cancelled() {
            return Ok(());
        }
    }
}

/// How often a network tries to deliver a message of its own.
const NOTICE_TRIES: u32 = 8;

/// Carries what the sandbox's networks send by themselves to this host's own door. Like a real
/// network, they try again when they are not listened to: a payment may come back before we
/// have noted that it was made.
pub async fn carry_notices(
    app: App,
    service: Router,
    mut messages: mpsc::UnboundedReceiver<OwnMessage>,
) {
    loop {
        let message = tokio::select! {
            () = app.stopping.cancelled() => return,
            message = messages.recv() => message,
        };
        let Some(message) = message else { return };
        app.tasks.spawn(deliver(service.clone(), message));
    }
}

async fn deliver(service: Router, OwnMessage { rail, path, body }: OwnMessage) {
    for tries in 0..NOTICE_TRIES {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/notices/test/{rail}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .body(Body::from(body.clone()));
        let Ok(request) = request else { return };
        let Ok(response) = service.clone().oneshot(request).await;
        if response.status().is_success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20 << tries)).await;
    }
    tracing::warn!(path, "a notice of the sandbox was refused");
}
