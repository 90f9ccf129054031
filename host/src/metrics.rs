//! `GET /metrics`: what an operator's monitoring reads. No label names a merchant.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use strum::IntoEnumIterator as _;

use crate::app::App;
use crate::cases;
use crate::error::Problem;
use crate::transfers::backlog;
use crate::transfers::files::table::{self, FileState};
use crate::transfers::lanes::Health;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: String,
    env: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: String,
    env: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStage {
    stage: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPack {
    kind: &'static str,
    name: String,
    version: String,
}

/// How long the database has for its share; without it the other figures are told all the same.
const DATABASE_WAIT: Duration = Duration::from_secs(2);

/// Everything that is counted, as text for Prometheus; kept for a second, because anybody may ask.
pub async fn text(app: &App) -> String {
    app.metrics.told.get_with((), collect(app)).await
}

async fn collect(app: &App) -> String {
    let mut registry = Registry::with_prefix("railhead");
    app.metrics.requests.register(&mut registry);
    app.writer.metrics().register(&mut registry);
    app.transfers.metrics.register(&mut registry);
    app.metrics.deliveries.register(&mut registry);
    let lost = app.requests.lost.clone();
    registry.register("request_log_lost", "Requests for which their log had no room", lost);
    writer(app, &mut registry);
    pool(app, &mut registry);
    packs(app, &mut registry);
    rate_sources(app, &mut registry);
    let stored = async {
        app.db.ping().await.map_err(Problem::from)?;
        routes(app, &mut registry).await?;
        waiting(app, &mut registry).await?;
        files(app, &mut registry).await
    };
    let is_up = matches!(tokio::time::timeout(DATABASE_WAIT, stored).await, Ok(Ok(())));
    gauge(&mut registry, "database_up", "Whether the database answered", i64::from(is_up));
    let mut text = String::new();
    if let Err(cause) = encode(&mut text, &registry) {
        tracing::error!(%cause, "writing figures");
    }
    text
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn writer(app: &App, registry: &mut Registry) {
    let oldest = i64::try_from(app.writer.oldest_waiting().as_millis()).unwrap_or(i64::MAX);
    let help = "Age of the oldest command that waits for the database";
    gauge(registry, "writer_oldest_waiting_milliseconds", help, oldest);
    let is_closed = i64::from(app.transfers.quarantine.is_closed());
    gauge(registry, "quarantine_active", "Whether nothing live is sent", is_closed);
}

fn pool(app: &App, registry: &mut Registry) {
    let (size, idle) = (app.db.pool().size(), app.db.pool().num_idle());
    gauge(registry, "database_connections", "Connections for reads", size.into());
    let idle = i64::try_from(idle).unwrap_or(i64::MAX);
    gauge(registry, "database_connections_idle", "Those that nobody uses now", idle);
}

fn packs(app: &App, registry: &mut Registry) {
    let failures: Family<OfPack, Gauge> = Family::default();
    let packs = app.packs.now();
    for pack in packs.packs() {
        let (name, version) = (pack.about.name.clone(), pack.about.version.clone());
        let labels = OfPack { kind: pack.about.kind.as_str(), name, version };
        failures.get_or_create(&labels).set(pack.failures().into());
    }
    let help = "Failures in a row of assigned packs about live payouts";
    registry.register("rule_pack_failures", help, failures);
    let held = i64::try_from(packs.held).unwrap_or(i64::MAX);
    let help = "For how many, the platform being one, a pack was taken out and payouts are held";
    gauge(registry, "rule_packs_held", help, held);
    let help = "Number of the last change of assignments";
    gauge(registry, "rule_generation", help, packs.generation);
}

fn rate_sources(app: &App, registry: &mut Registry) {
    let failures: Family<OfSource, Gauge> = Family::default();
    let age: Family<OfSource, Gauge> = Family::default();
    let left_alone: Family<OfSource, Gauge> = Family::default();
    for provider in app.providers.all() {
        let (source, env) = (provider.source.about.name.clone(), provider.env.as_str());
        let (labels, state) = (OfSource { source, env }, provider.state());
        failures.get_or_create(&labels).set(state.failures.into());
        let count = i64::try_from(state.left_alone.len()).unwrap_or(i64::MAX);
        left_alone.get_or_create(&labels).set(count);
        if let Some(as_of) = state.as_of {
            let seconds = app.now().since(as_of).as_secs();
            age.get_or_create(&labels).set(i64::try_from(seconds).unwrap_or(i64::MAX));
        }
    }
    let help = "Attempts in a row to get rates that came to nothing";
    registry.register("rate_source_failures", help, failures);
    registry.register("rate_source_age_seconds", "Age of the newest rate of a source", age);
    let help = "Rates that a source does not keep up";
    registry.register("rate_source_left_alone", help, left_alone);
}

async fn routes(app: &App, registry: &mut Registry) -> Result<(), Problem> {
    let open: Family<OfRoute, Gauge> = Family::default();
    let failures: Family<OfRoute, Gauge> = Family::default();
    for ready in app.routes.all().await?.iter() {
        let labels = OfRoute { route: ready.route.name.clone(), env: ready.route.env.as_str() };
        let (health, count) = app.transfers.lanes.health(&ready.route.id);
        open.get_or_create(&labels).set(i64::from(health != Health::Closed));
        failures.get_or_create(&labels).set(count.into());
    }
    registry.register("route_breaker_open", "Whether a route is left alone for a while", open);
    registry.register("route_failures", "Calls in a row that failed", failures);
    Ok(())
}

async fn waiting(app: &App, registry: &mut Registry) -> Result<(), Problem> {
    let cases: Family<OfKind, Gauge> = Family::default();
    for kind in cases::CaseKind::iter() {
        cases.get_or_create(&OfKind { kind: kind.as_str().to_owned() }).set(0);
    }
    for (kind, count) in cases::sql::count_open(app.db.pool()).await? {
        cases.get_or_create(&OfKind { kind }).set(count);
    }
    registry.register("cases_open", "Cases that wait for a person", cases);
    let transfers: Family<OfStage, Gauge> = Family::default();
    for stage in ["queued", "sent"] {
        transfers.get_or_create(&OfStage { stage: stage.to_owned() }).set(0);
    }
    for (stage, count) in backlog::count_by_stage(app.db.pool()).await? {
        transfers.get_or_create(&OfStage { stage }).set(count);
    }
    registry.register(
        "transfers_waiting",
        "Payments on their way out, by stage; a first sending is queued until its answer is written down",
        transfers,
    );
    Ok(())
}

/// Live files of payments that something is to be done about.
async fn files(app: &App, registry: &mut Registry) -> Result<(), Problem> {
    let files: Family<InState, Gauge> = Family::default();
    use FileState::{Acknowledged, Empty, Refused};
    for state in FileState::iter().filter(|it| ![Acknowledged, Refused, Empty].contains(it)) {
        files.get_or_create(&InState { state: state.as_str().to_owned() }).set(0);
    }
    for (state, count) in table::count_living(app.db.pool()).await? {
        files.get_or_create(&InState { state }).set(count);
    }
    registry.register("files_waiting", "Live files of payments on their way, by state", files);
    let sent_at = table::oldest_unacknowledged(app.db.pool()).await?;
    let age = sent_at.map_or(Duration::ZERO, |sent_at| app.now().since(sent_at));
    let help = "Age of the oldest live file that its network has not acknowledged";
    let age = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    gauge(registry, "files_oldest_unacknowledged_seconds", help, age);
    Ok(())
}
