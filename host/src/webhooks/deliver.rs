//! The loop that makes deliveries: whatever is fresh at once, whatever else is due from the
//! queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::mpsc;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db;
use crate::error::Problem;
use crate::events::outbox::{Handed, Ready};
use crate::id::{DeliveryId, EndpointId};
use crate::outbound::Answer;
use crate::retention::Portion;

use super::claims;
use super::lanes::{Ended, Hungry, Lanes};
use super::leftovers;
use super::model::Endpoint;
use super::record::{Made, record};
use super::sql;
use crate::outbound::sign::{Letter, headers};

/// How often the queue is looked through for what nobody handed over.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A claim is held this long: longer than an exchange and the writing down of it.
const LEASE: Duration = Duration::from_secs(60);
/// How often a good answer is noted on the endpoint.
const HEALTH_EVERY: Duration = Duration::from_secs(1);
/// How often what is left of deleted endpoints is swept away.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// For how long an endpoint is taken to be what it was: another host may have changed it.
const TRUSTED: Duration = Duration::from_secs(1);
/// For how long an endpoint is left to whoever has deleted or changed it: longer than any batch
/// takes that read it before, and more than clocks are apart.
pub(super) const LEFT_ALONE: Duration =
    limits::BATCH_DEADLINE.saturating_add(Duration::from_secs(300));

/// What tasks tell the loop.
enum News {
    Slow(Ready),
    /// How an exchange ended, and when.
    Ended(Ready, Ended, Moment),
    /// Something else may be made now that this is.
    Next(EndpointId),
    Claimed(EndpointId, Vec<Ready>, bool),
    Due(Vec<EndpointId>),
    /// It is time to look again.
    Rested,
}

/// Delivers until the host is told to stop.
pub async fn deliver(app: App, mut handed: mpsc::Receiver<Handed>) {
    let mut lanes = Lanes::new(app.config.webhooks.concurrency);
    let (tell, mut told) = mpsc::unbounded_channel();
    let deliverer =
        Deliverer { app: app.clone(), tell, targets: Arc::default(), noted: Arc::default() };
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut is_looking = false;
    loop {
        while let Some(ready) = lanes.next(app.now()) {
            app.tasks.spawn(deliverer.clone().make(ready));
        }
        let dropped = lanes.dropped();
        if !dropped.is_empty() {
            app.tasks.spawn(deliverer.clone().give_back(dropped));
        }
        for lane in lanes.hungry(app.now()) {
            app.tasks.spawn(deliverer.clone().claim(lane));
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            Some(handed) = handed.recv() => match handed {
                Handed::Fresh(fresh) => fresh.into_iter().for_each(|ready| lanes.offer(ready, app.now())),
                Handed::Queued(endpoint) => lanes.found(&endpoint),
                Handed::Renewed(endpoint) => lanes.renew(&endpoint),
                Handed::Changed(endpoint) => deliverer.forget(&endpoint),
            },
            Some(news) = told.recv() => match news {
                News::Slow(ready) => lanes.slow_down(&ready),
                News::Ended(ready, ended, at) => lanes.ended(&ready, ended, at),
                News::Next(endpoint) => lanes.found(&endpoint),
                News::Claimed(endpoint, claimed, more) => {
                    claimed.into_iter().for_each(|ready| lanes.offer(ready, app.now()));
                    lanes.looked(&endpoint);
                    if more {
                        lanes.found(&endpoint);
                    }
                }
                News::Due(endpoints) => endpoints.iter().for_each(|endpoint| lanes.found(endpoint)),
                News::Rested => is_looking = false,
            },
            _ = look.tick(), if !is_looking => {
                is_looking = true;
                lanes.tidy(app.now());
                app.tasks.spawn(deliverer.clone().look());
            }
        }
    }
}

/// Sweeps away what is left of deleted endpoints.
pub async fn sweep(app: App) {
    loop {
        if let Err(cause) = sweep_once(&app).await {
            tracing::warn!(%cause, "sweeping deliveries");
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

async fn sweep_once(app: &App) -> Result<(), sqlx::Error> {
    let before = app.now().before(LEFT_ALONE);
    for endpoint in db::in_time(leftovers::list_deleted_endpoints(app.db.pool(), before)).await? {
        sweep_endpoint(app, &endpoint).await?;
    }
    Ok(())
}

/// Deletes deliveries that were made before an instant for endpoints that are switched off, in
/// portions.
///
/// # Errors
/// The database cannot be written.
pub(crate) async fn sweep_unheard(app: &App, before: Moment) -> Result<(), sqlx::Error> {
    let before = DeliveryId::first_at(before);
    let (mut portion, turn) = (Portion::FIRST, Instant::now());
    while turn.elapsed() < limits::SWEEP_FOR && !app.stopping.is_cancelled() {
        let (swept, took) = leftovers::sweep_unheard(&app.db, &before, portion).await?;
        if i64::try_from(swept).unwrap_or(i64::MAX) < portion.rows() {
            break;
        }
        portion = portion.after(took);
    }
    Ok(())
}

/// Deletes deliveries that ended and were made before an instant, in portions.
///
/// # Errors
/// The database cannot be written.
pub(crate) async fn sweep_history(app: &App, before: Moment) -> Result<(), sqlx::Error> {
    let before = DeliveryId::first_at(before);
    let (mut after, mut portion, turn) = (String::new(), Portion::FIRST, Instant::now());
    while turn.elapsed() < limits::SWEEP_FOR && !app.stopping.is_cancelled() {
        let (last, took) = leftovers::sweep_history(&app.db, (&after, &before), portion).await?;
        match last {
            Some(last) => after = last,
            None => break,
        }
        portion = portion.after(took);
    }
    Ok(())
}

/// Takes away an endpoint that was deleted a moment ago, once whoever read it before has written
/// what there is for it. Where somebody takes too long, it is left to the sweeper.
pub(super) async fn sweep_deleted(app: &App, endpoint: &str) -> Result<(), sqlx::Error> {
    let have_ended = tokio::select! {
        have_ended = sql::wait_for_others(&app.db) => have_ended?,
        () = app.stopping.cancelled() => false,
    };
    match have_ended {
        true => sweep_endpoint(app, endpoint).await,
        false => Ok(()),
    }
}

/// Takes away what is left of a deleted endpoint, in portions.
async fn sweep_endpoint(app: &App, endpoint: &str) -> Result<(), sqlx::Error> {
    let mut portion = Portion::FIRST;
    while !app.stopping.is_cancelled() {
        match db::in_time(leftovers::sweep_endpoint(&app.db, endpoint, portion)).await? {
            Some(took) => portion = portion.after(took),
            None => break,
        }
    }
    Ok(())
}

/// What every task of the deliverer works with.
#[derive(Clone)]
struct Deliverer {
    app: App,
    tell: mpsc::UnboundedSender<News>,
    targets: Arc<Mutex<HashMap<EndpointId, (Target, Instant)>>>,
    noted: Arc<Mutex<HashMap<EndpointId, Moment>>>,
}

/// An endpoint with its secrets in clear.
#[derive(Clone)]
pub(super) struct Target {
    pub endpoint: Arc<Endpoint>,
    pub secrets: Vec<SecretString>,
}

impl Deliverer {
    /// Makes one delivery and writes down what came of it.
    async fn make(self, ready: Ready) {
        let (ended, at) = match self.target(&ready).await {
            Ok(Some(target)) if target.endpoint.is_active => self.exchange(&ready, target).await,
            Ok(_) => {
                // Gone or switched off since it was claimed.
                self.clone().give_back(vec![ready.clone()]).await;
                (Ended::Untried, self.app.now())
            }
            Err(problem) => {
                tracing::warn!(%problem, endpoint.id = %ready.endpoint_id, "reading an endpoint");
                (Ended::Untried, self.app.now())
            }
        };
        // The loop has ended when nobody listens.
        let _ = self.tell.send(News::Ended(ready, ended, at));
    }

    /// Sends, and writes down what came of it: how it ended, and when. A pause counts from then,
    /// however long the writing takes.
    async fn exchange(&self, ready: &Ready, target: Target) -> (Ended, Moment) {
        let sending = send(&self.app, &target, ready);
        tokio::pin!(sending);
        let answer = tokio::select! {
            answer = &mut sending => answer,
            () = tokio::time::sleep(limits::WEBHOOK_SLOW_AFTER) => {
                let _ = self.tell.send(News::Slow(ready.clone()));
                sending.await
            }
        };
        let at = self.app.now();
        let outcome = if answer.is_good() { "delivered" } else { "failed" };
        self.app.metrics.deliveries.attempt(outcome, answer.took);
        let ended = match (answer.is_good(), answer.took > limits::WEBHOOK_SLOW_AFTER) {
            (false, _) => Ended::Badly,
            (true, true) => Ended::Slowly,
            (true, false) => Ended::Quickly,
        };
        let is_news = self.is_news(&ready.endpoint_id, &answer);
        let is_ordered = target.endpoint.is_ordered;
        let endpoint = Arc::clone(&target.endpoint);
        let made = Made { ready: ready.clone(), endpoint, answer, is_news };
        if let Err(problem) = record(&self.app, &made).await {
            // The claim runs out, and the receiver hears of it once more.
            tracing::warn!(%problem, delivery.id = %ready.id, "recording a delivery");
        }
        if is_ordered {
            let _ = self.tell.send(News::Next(ready.endpoint_id.clone()));
        }
        (ended, at)
    }

    /// Whether the endpoint's health has to be written: not for every good answer of many.
    fn is_news(&self, endpoint: &EndpointId, answer: &Answer) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.app.now();
        if !answer.is_good() {
            noted.remove(endpoint);
            return true;
        }
        let fresh = noted.get(endpoint).is_some_and(|at| at.after(HEALTH_EVERY) > now);
        if !fresh {
            noted.insert(endpoint.clone(), now);
        }
        !fresh
    }

    /// The endpoint as it was when the delivery was made for it, or later.
    async fn target(&self, ready: &Ready) -> Result<Option<Target>, Problem> {
        let known = {
            let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
            targets.get(&ready.endpoint_id).cloned()
        };
        let asked_at = Instant::now();
        if let Some((target, read_at)) = known
            && asked_at.duration_since(read_at) < TRUSTED
            && target.endpoint.updated_at.micros() >= ready.version
            // A secret that no longer counts must not sign.
            && target.secrets.len() == 1 + target.endpoint.old_secrets(self.app.now()).count()
        {
            return Ok(Some(target));
        }
        let found = sql::get_endpoint(self.app.db.pool(), &ready.endpoint_id);
        let endpoint = db::in_time(found).await?;
        let Some(endpoint) = endpoint else { return Ok(None) };
        let target = open(&self.app, endpoint)?;
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.insert(ready.endpoint_id.clone(), (target.clone(), asked_at));
        Ok(Some(target))
    }

    /// Reads an endpoint anew when it is needed next.
    fn forget(&self, endpoint: &EndpointId) {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).remove(endpoint);
    }

    /// Claims what is due for one endpoint.
    async fn claim(self, lane: Hungry) {
        let now = self.app.now();
        let claimed =
            db::in_time(claims::claim_deliveries(&self.app.db, &lane, (now, LEASE))).await;
        let (claimed, more) = claimed.unwrap_or_else(|cause| {
            tracing::warn!(%cause, endpoint.id = %lane.endpoint, "claiming deliveries");
            (Vec::new(), false)
        });
        let _ = self.tell.send(News::Claimed(lane.endpoint, claimed, more));
    }

    /// Leaves to others, or for later, what was claimed in vain.
    async fn give_back(self, claimed: Vec<Ready>) {
        let claims: Vec<claims::Claim> = claimed.iter().map(claims::Claim::from).collect();
        if let Err(cause) = db::in_time(claims::release_deliveries(&self.app.db, &claims)).await {
            // The claims run out by themselves.
            tracing::warn!(%cause, "giving deliveries back");
        }
    }

    /// Forgets what was noted of endpoints, where that is much.
    fn tidy(&self) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() > limits::HANDED_OVER_MAX {
            noted.clear();
            self.targets.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Looks for endpoints that have something due.
    async fn look(self) {
        let begun = Instant::now();
        let due = db::in_time(sql::find_due_endpoints(&self.app.db, self.app.now())).await;
        let due = due.unwrap_or_else(|cause| {
            tracing::warn!(%cause, "looking for deliveries that are due");
            Vec::new()
        });
        self.tidy();
        let _ = self.tell.send(News::Due(due));
        // Where many endpoints have something waiting, going past all of them takes a while.
        let rest = limits::rest_after(begun.elapsed(), (LOOK_EVERY, limits::LOOK_EVERY_MAX));
        tokio::time::sleep(rest - LOOK_EVERY).await;
        let _ = self.tell.send(News::Rested);
    }
}

/// An endpoint with the secrets that count now.
pub(super) fn open(app: &App, endpoint: Endpoint) -> Result<Target, Problem> {
    let place = Endpoint::place(&endpoint.id);
    let open = |sealed: &str| -> Result<SecretString, Problem> {
        let secret = app.keyring.open(&place, sealed).map_err(Problem::internal)?;
        Ok(String::from_utf8(secret).map_err(Problem::internal)?.into())
    };
    let mut secrets = vec![open(&endpoint.secret)?];
    for old in endpoint.old_secrets(app.now()) {
        secrets.push(open(&old.secret)?);
    }
    Ok(Target { endpoint: Arc::new(endpoint), secrets })
}

/// One exchange with a receiver.
pub(super) async fn send(app: &App, target: &Target, ready: &Ready) -> Answer {
    let letter = Letter {
        id: ready.id.as_str(),
        event: &ready.event,
        is_test: ready.is_test,
        body: &ready.body,
    };
    let headers = headers(&letter, &target.secrets, app.now());
    app.outbound.post(&target.endpoint.url, headers, ready.body.clone()).await
}
