//! What is the matter at this moment, from whatever knows it.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::AnyPool;

use crate::app::App;
use crate::cases;
use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::Problem;
use crate::id::RouteId;
use crate::money::{Currency, Minor};
use crate::rails::{Route, sql};
use crate::transfers::lanes::Health;
use crate::transfers::{backlog, work};
use crate::{anchors, notifications, rules};

use super::AlertKind;

/// Something that is the matter.
#[derive(Debug)]
pub(super) struct Matter {
    /// What makes it the same as before.
    pub(super) key: String,
    /// What kind of thing it is.
    pub(super) kind: AlertKind,
    /// In one sentence.
    pub(super) summary: String,
    /// What to do.
    pub(super) advice: String,
    /// How many are concerned.
    pub(super) count: i64,
    /// Who sees it.
    pub(super) visibility: Visibility,
}

/// What keys of alerts about open cases begin with; the kind of the cases follows.
pub(super) const OF_CASES: &str = "cases/";

/// Who sees what is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Every host.
    Shared,
    /// Every host whose clock is a little ahead, or behind. It keeps an alert and opens none: hosts
    /// that are not of one mind would do both in turn.
    WithinClockSkew,
    /// Other hosts may not see it.
    ThisHost,
}

/// Since when something lasts that is not told at once.
#[derive(Default)]
pub(super) struct Lasting {
    /// As of the look before.
    before: HashMap<String, Moment>,
    /// As of this one.
    now: HashMap<String, Moment>,
}

impl Lasting {
    /// Whether something that is there now has been for so long.
    fn is_long(&mut self, key: &str, (now, long): (Moment, Duration)) -> bool {
        let since = self.before.get(key).copied().unwrap_or(now);
        self.now.insert(key.to_owned(), since);
        now.since(since) >= long
    }
}

/// Everything that is the matter, as this host sees it.
pub(super) async fn collect(
    app: &App,
    host: &str,
    lasting: &mut Lasting,
) -> Result<Vec<Matter>, Problem> {
    let mut matters = of_cases(app).await?;
    matters.extend(quarantine(app).await?);
    matters.extend(rules_held(app).await?);
    matters.extend(not_told(app).await?);
    matters.extend(no_route(app, host, lasting).await?);
    matters.extend(left_alone(app, host, lasting).await?);
    matters.extend(intents_unwritten(app, host).await);
    matters.extend(anchor(app, host, lasting).await);
    lasting.before = std::mem::take(&mut lasting.now);
    matters.extend(rate_sources(app, host));
    Ok(matters)
}

/// Open cases about live money, and money that has been in question for long.
async fn of_cases(app: &App) -> Result<Vec<Matter>, Problem> {
    let mut matters: Vec<Matter> = Vec::new();
    for (kind, route, count) in cases::sql::count_open_live(app.db.pool()).await? {
        let (word, route) = (kind.as_str(), route.unwrap_or_default());
        let of = if route.is_empty() { String::new() } else { format!(" on {route}") };
        let are = if count == 1 { "case is" } else { "cases are" };
        matters.push(Matter {
            key: format!("{OF_CASES}{word}/{route}"),
            kind: AlertKind::Cases,
            summary: format!("{count} {are} open: {word}{of}"),
            advice: format!("{} railhead admin case list --status open", kind.suggestion()),
            count,
            visibility: Visibility::Shared,
        });
    }
    let (pool, long_ago) = (app.db.pool(), app.now().before(limits::ALERT_SUSPENSE_AFTER));
    let long = cases::sql::in_question_since(pool, long_ago).await?;
    let soon = cases::sql::in_question_since(pool, long_ago.after(limits::CLOCKS_APART)).await?;
    let is_new = |it: &(Currency, i64, Minor)| long.iter().all(|known| known.0 != it.0);
    let soon: Vec<_> =
        soon.into_iter().filter(is_new).map(|it| (it, Visibility::WithinClockSkew)).collect();
    let long = long.into_iter().map(|it| (it, Visibility::Shared));
    for ((currency, count, sum), visibility) in long.chain(soon) {
        let places = app.rails.places_shown(currency);
        let cases = if count == 1 { "case" } else { "cases" };
        matters.push(Matter {
            key: format!("suspense/{currency}"),
            kind: AlertKind::Suspense,
            summary: format!(
                "{currency} {} in {count} {cases} has been in question for more than a day",
                sum.major(places)
            ),
            advice: "Resolve the cases, the oldest first: until then the books do not say whose \
                     this money is. railhead admin case list --status open"
                .to_owned(),
            count,
            visibility,
        });
    }
    Ok(matters)
}

async fn quarantine(app: &App) -> Result<Option<Matter>, Problem> {
    let state = app.transfers.quarantine.state().await?;
    Ok(state.map(|state| Matter {
        key: "quarantine".to_owned(),
        kind: AlertKind::Quarantine,
        summary: format!("Nothing live is sent: {}", state.reasons.join("; ")),
        advice: "The database may have forgotten payments. Compare the bank's statement, look at \
                 the cases, then: railhead admin quarantine release --reason …"
            .to_owned(),
        count: 1,
        visibility: Visibility::Shared,
    }))
}

async fn rules_held(app: &App) -> Result<Vec<Matter>, Problem> {
    let held = rules::sql::list_held(app.db.pool()).await?;
    let matter = |(kind, scope): (String, String)| Matter {
        key: format!("rules_held/{kind}/{scope}"),
        kind: AlertKind::RulesHeld,
        summary: format!("Payouts are held: the {kind} pack of {scope} kept failing"),
        advice: "Assign a version that works; the one before is a rollback away: railhead rules \
                 rollback"
            .to_owned(),
        count: 1,
        visibility: Visibility::Shared,
    };
    Ok(held.into_iter().map(matter).collect())
}

async fn not_told(app: &App) -> Result<Option<Matter>, Problem> {
    let (pool, since) = (app.db.pool(), app.now().before(limits::ALERT_NOT_TOLD_FOR));
    let mut visibility = Visibility::Shared;
    let mut count = notifications::sql::given_up_since(pool, since).await?;
    if count == 0 {
        visibility = Visibility::WithinClockSkew;
        let since = since.before(limits::CLOCKS_APART);
        count = notifications::sql::given_up_since(pool, since).await?;
    }
    Ok((count > 0).then(|| Matter {
        key: "not_told".to_owned(),
        kind: AlertKind::NotTold,
        summary: format!("{count} messages to people were given up within a day"),
        advice: "Their addresses, the mail server, or the receiver of alerts: railhead admin \
                 notifications --status given_up"
            .to_owned(),
        count,
        visibility,
    }))
}

/// Payouts that no route has taken for a while. Their own route may be gone, or its rail: nobody
/// asks about those that have left, either, and no file is made.
async fn no_route(app: &App, host: &str, lasting: &mut Lasting) -> Result<Vec<Matter>, Problem> {
    let (pool, routes) = (app.db.pool(), app.routes.all().await?);
    let long_ago = app.now().before(limits::ALERT_NO_ROUTE_AFTER);
    let mut matters = Vec::new();
    for lane in work::list_routes_with_work(pool).await? {
        let ready = routes.iter().find(|ready| ready.route.id == lane);
        if ready.is_some_and(|ready| ready.route.env == Env::Test) {
            continue;
        }
        let mut visibility = Visibility::Shared;
        let mut found = backlog::unrouted(pool, &lane, long_ago).await?;
        if found.is_none() {
            visibility = Visibility::WithinClockSkew;
            let soon = long_ago.after(limits::CLOCKS_APART);
            found = backlog::unrouted(pool, &lane, soon).await?;
        }
        let Some((count, since)) = found else {
            let key = format!("without_rail/{lane}@{host}");
            if ready.is_none() && lasting.is_long(&key, (app.now(), limits::ALERT_NO_ROUTE_AFTER)) {
                matters.extend(without_rail(pool, &lane, key).await?);
            }
            continue;
        };
        let name = ready.map_or_else(|| lane.as_str(), |ready| ready.route.name.as_str());
        matters.push(Matter {
            key: format!("no_route/{lane}"),
            kind: AlertKind::NoRoute,
            summary: format!("No route takes payouts for {name}, since {since}"),
            advice: "Whatever could carry them is paused, gone, not for their merchants, or was \
                     tried already: railhead admin under-way, route list. Resume a route or make \
                     one, or cancel what is not to be paid any more"
                .to_owned(),
            count,
            visibility,
        });
    }
    Ok(matters)
}

/// Live work of a route that this host cannot use at all.
async fn without_rail(
    pool: &AnyPool,
    lane: &RouteId,
    key: String,
) -> Result<Option<Matter>, Problem> {
    let count = backlog::count_live(pool, lane).await?;
    let known = sql::list_routes(pool).await?;
    let (gone, advice) = match known.iter().find(|route| route.id == *lane) {
        None => (
            format!("The route {lane} is gone"),
            "What it has left to do is listed by railhead admin under-way",
        ),
        Some(Route { name, rail, .. }) => (
            format!("The rail {rail} of {name} is not loaded on this host"),
            "Put the rail's file into modules.dir, and start the host again, unless others have it; \
             what waits is listed by railhead admin under-way",
        ),
    };
    Ok((count > 0).then(|| Matter {
        key,
        kind: AlertKind::NoRoute,
        summary: format!("{gone}: it neither sends its payouts nor asks about them"),
        advice: advice.to_owned(),
        count,
        visibility: Visibility::ThisHost,
    }))
}

/// Live routes whose networks this host has been leaving alone for a while.
async fn left_alone(app: &App, host: &str, lasting: &mut Lasting) -> Result<Vec<Matter>, Problem> {
    let mut matters = Vec::new();
    for ready in app.routes.all().await?.iter().filter(|ready| ready.route.env == Env::Live) {
        let (health, failures) = app.transfers.lanes.health(&ready.route.id);
        if health == Health::Closed {
            continue;
        }
        let route = &ready.route.name;
        let key = format!("route/{route}@{host}");
        if lasting.is_long(&key, (app.now(), limits::ALERT_BREAKER_AFTER)) {
            matters.push(Matter {
                key,
                kind: AlertKind::RouteLeftAlone,
                summary: format!("The network of {route} is left alone: it does not answer"),
                advice: format!(
                    "{failures} calls in a row came to nothing. Ask the network. Where another \
                     route serves its payouts, pause this one so that they go there: railhead \
                     admin route pause {}; where none does, its payouts would be refused",
                    ready.route.id
                ),
                count: 1,
                visibility: Visibility::ThisHost,
            });
        }
    }
    Ok(matters)
}

/// What is not written down does not leave: what is claimed here is put off again and again.
async fn intents_unwritten(app: &App, host: &str) -> Option<Matter> {
    // What is restored may not know of it any more.
    if app.transfers.quarantine.is_closed() {
        app.transfers.intents.forget_unwritten();
    }
    let why = app.transfers.intents.retry_unwritten(app.now()).await?;
    Some(Matter {
        key: format!("intents_unwritten@{host}"),
        kind: AlertKind::IntentsUnwritten,
        summary: format!("What is about to leave cannot be written down: {why}"),
        advice: "Make room on the disk of data.dir, or mend it: until then nothing live leaves by \
                 this host. Stop it if another one could go on without it"
            .to_owned(),
        count: 1,
        visibility: Visibility::ThisHost,
    })
}

async fn anchor(app: &App, host: &str, lasting: &mut Lasting) -> Option<Matter> {
    let newest = anchors::missed(app).await?;
    let key = format!("anchor_missed@{host}");
    let since = newest.map_or_else(String::new, |at| format!(" since {at}"));
    lasting.is_long(&key, (app.now(), limits::ALERT_ANCHOR_AFTER)).then(|| Matter {
        key,
        kind: AlertKind::AnchorMissed,
        summary: format!("The books were not anchored{since}"),
        advice: "The folder of anchors.dir must be there, and this host must be able to write to \
                 it; its log says what stands in the way"
            .to_owned(),
        count: 1,
        visibility: Visibility::ThisHost,
    })
}

fn rate_sources(app: &App, host: &str) -> Vec<Matter> {
    let matter = |provider: &std::sync::Arc<crate::fx::Provider>| {
        let (name, state) = (&provider.source.about.name, provider.state());
        let is_failing = state.failures >= limits::ALERT_RATE_FAILURES && provider.env == Env::Live;
        is_failing.then(|| Matter {
            key: format!("rate_source/{name}@{host}"),
            kind: AlertKind::RateSource,
            summary: format!("No rates come from {name}"),
            advice: format!(
                "Its last {} tries came to nothing ({}). Conversions stop when its rates are too \
                 old: set them by hand meanwhile, with railhead admin rate set",
                state.failures,
                state.problem.unwrap_or_default()
            ),
            count: 1,
            visibility: Visibility::ThisHost,
        })
    };
    app.providers.all().filter_map(matter).collect()
}
