//! Every background job on one screen.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures::FutureExt as _;
use http::{Request, Uri, header};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::alerts;
use crate::anchors;
use crate::app::App;
use crate::batches;
use crate::config::limits;
use crate::db;
use crate::decisions::shadow;
use crate::events::outbox::Handed;
use crate::lookup::requests;
use crate::notifications::{self, Channel};
use crate::operator::assignments::take_out;
use crate::operator::rate_sources;
use crate::payouts::PayoutTransfers;
use crate::rules::Compared;
use crate::simulator::OwnMessage;
use crate::sweeper;
use crate::transfers::work;
use crate::webhooks;

/// How often a host looks whether a quarantine has begun or ended.
const QUARANTINE_POLL: Duration = Duration::from_secs(1);

/// Starts every job. They end when the app is told to stop; with one that is gone before, the host
/// is broken.
pub fn start(
    app: &App,
    (handed, compared): (mpsc::Receiver<Handed>, mpsc::Receiver<Compared>),
    (service, messages): (Router, mpsc::UnboundedReceiver<OwnMessage>),
    broken: &CancellationToken,
) {
    let jobs = Jobs { app, broken };
    jobs.begin("the sandbox's notices", carry_notices(app.clone(), service, messages));
    if app.config.worker.dispatch {
        let (transfers, feature) = (&app.transfers, PayoutTransfers(app.clone()));
        jobs.begin("dispatch", transfers.clone().dispatch(feature.clone()));
        jobs.begin("files of payments", transfers.clone().carry_files(feature.clone()));
        jobs.begin("the inbox", transfers.clone().take_in_what_is_left(feature));
    }
    if app.config.webhooks.deliver {
        jobs.begin("webhooks", webhooks::deliver::deliver(app.clone(), handed));
        jobs.begin("deleted webhook endpoints", webhooks::deliver::sweep(app.clone()));
    }
    for provider in app.providers.all() {
        jobs.begin("a rate source", rate_sources::keep_up(app.clone(), Arc::clone(provider)));
    }
    jobs.begin("the ends of batches", batches::complete::tell(app.clone()));
    jobs.begin("e-mail", notifications::send::send(app.clone(), Channel::Email));
    jobs.begin("alerts' webhooks", notifications::send::send(app.clone(), Channel::Webhook));
    jobs.begin("alerts", alerts::watch::watch(app.clone()));
    if let Some(folder) = app.config.anchors.dir.clone() {
        jobs.begin("anchors", anchors::keep(app.clone(), folder));
    }
    jobs.begin("the gate before live payments", quarantine(app.clone()));
    jobs.begin("rule packs", rules(app.clone()));
    jobs.begin("packs in shadow", shadow::compare(app.clone(), compared));
    jobs.begin("the log of requests", requests::keep::keep(app.clone()));
    jobs.begin("the sweeper", sweeper::sweep(app.clone()));
}

/// What every job of a host is started with.
struct Jobs<'a> {
    app: &'a App,
    broken: &'a CancellationToken,
}

impl Jobs<'_> {
    fn begin(&self, name: &'static str, job: impl Future<Output = ()> + Send + 'static) {
        let tokens = (self.app.stopping.clone(), self.broken.clone());
        self.app.tasks.spawn(watched(name, job, tokens));
    }
}

/// Carries a job out. A host that goes on without one would look healthy and leave its work undone:
/// it stops instead, and whoever keeps it running starts it again.
async fn watched(
    name: &'static str,
    job: impl Future<Output = ()>,
    (stopping, broken): (CancellationToken, CancellationToken),
) {
    match AssertUnwindSafe(job).catch_unwind().await {
        Ok(()) if stopping.is_cancelled() => return,
        Ok(()) => tracing::error!(job = name, "a background job ended; this host stops"),
        Err(_) => tracing::error!(job = name, "a background job panicked; this host stops"),
    }
    broken.cancel();
}

/// Takes over which packs decide, and takes out those that keep failing.
async fn rules(app: App) {
    // Packs that fail and stay, until assignments change.
    let mut kept: HashMap<String, i64> = HashMap::new();
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::RULES_POLL) => {}
        }
        match db::within(limits::JOB_DEADLINE, app.pack_store.refresh(&app.packs)).await {
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
            if !pack.keeps_failing() || is_kept {
                continue;
            }
            match db::in_time(take_out(&app, &pack)).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!(?pack, "a rule pack keeps failing, and stays");
                    kept.insert(pack.digest.clone(), assignments.generation);
                }
                Err(problem) => {
                    tracing::error!(?pack, %problem, "a rule pack that fails is not taken out");
                }
            }
        }
    }
}

/// Watches over the gate before live payments. Ends where what is written would be lost, and the
/// host with it.
async fn quarantine(app: App) {
    let gate = &app.transfers.quarantine;
    let mut looked = None::<Instant>;
    while !app.db.is_replaced() {
        if let Err(why) = gate.attend(&app.writer).await {
            tracing::warn!(%why, "looking after the gate before live payments");
        }
        // Nothing queued is claimed meanwhile, not even by who would see that it was sent.
        if gate.is_closed() && looked.is_none_or(|at| at.elapsed() >= limits::EPOCH_EVERY) {
            looked = Some(Instant::now());
            if let Err(cause) = db::in_time(work::find_abandoned(&app.db)).await {
                tracing::warn!(%cause, "looking for what was sent by whoever died over it");
            }
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(QUARANTINE_POLL) => {}
        }
    }
    tracing::error!("{}", db::REPLACED);
}

/// How often a network tries to deliver a message of its own.
const NOTICE_TRIES: u32 = 8;

/// Carries what the sandbox's networks send by themselves to this host's own door. Like a real
/// network, they try again when they are not listened to: a payment may come back before we
/// have noted that it was made.
async fn carry_notices(
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
        app.tasks.spawn(deliver(service.clone(), app.sandbox.token.clone(), message));
    }
}

async fn deliver(
    service: Router,
    token: SecretString,
    OwnMessage { rail, method, path, url, headers, body, on_its_way }: OwnMessage,
) {
    // What the network was given leads here, whatever host it names.
    let given = url.and_then(|url| url.parse::<Uri>().ok());
    let given = given.and_then(|uri| Some(uri.path_and_query()?.to_string()));
    let to = given.unwrap_or_else(|| format!("/notices/test/{rail}{path}"));
    for tries in 0..NOTICE_TRIES {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(&to)
            .header(header::AUTHORIZATION, format!("Bearer {}", token.expose_secret()));
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.clone()));
        let Ok(request) = request else { return };
        let Ok(response) = service.clone().oneshot(request).await;
        // What is no message of this network's is none the next time either.
        if response.status().is_client_error() {
            tracing::warn!(rail, path, status = %response.status(), "a notice of the sandbox");
        }
        if response.status().is_success() || response.status().is_client_error() {
            drop(on_its_way);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20 << tries)).await;
    }
    tracing::warn!(rail, path, "a notice of the sandbox was refused");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a host goes on after this job.
    async fn goes_on(job: impl Future<Output = ()>, stopping: &CancellationToken) -> bool {
        let broken = CancellationToken::new();
        watched("a job", job, (stopping.clone(), broken.clone())).await;
        !broken.is_cancelled()
    }

    #[tokio::test]
    async fn a_job_that_is_gone_stops_its_host() {
        let stopping = CancellationToken::new();
        assert!(!goes_on(async { panic!("a job breaks") }, &stopping).await);
        assert!(!goes_on(async {}, &stopping).await);
        // Whoever is told to stop may end.
        stopping.cancel();
        assert!(goes_on(async {}, &stopping).await);
        assert!(!goes_on(async { panic!("a job breaks") }, &stopping).await);
    }
}
