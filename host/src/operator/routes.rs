//! Routes: which rail serves what, in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page};
use crate::id::MerchantId;
use crate::ledger::{Command, Guard};
use crate::money::Currency;
use crate::rails::file_transport::{is_about_files, objection};
use crate::rails::own_settings;
use crate::rails::{Rail, ReadyRoute, Route, sql};
use crate::transfers::lanes::Health;
use crate::transfers::{attempt, backlog};

use super::unique::Unique;
use super::{TEXT_MAX, invalid, required, write};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_routes", &[]),
    ("create_route", &[ErrorCode::MissingField, ErrorCode::InvalidField, ErrorCode::StateConflict]),
    ("retrieve_route", &[ErrorCode::NotFound]),
    ("delete_route", &[ErrorCode::NotFound, ErrorCode::StateConflict]),
    ("update_route", &[ErrorCode::NotFound, ErrorCode::InvalidField, ErrorCode::StateConflict]),
];

/// A route as the operator sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RouteView {
    /// Always `route`.
    #[schema(example = "route")]
    pub object: &'static str,
    /// The route's id.
    pub id: String,
    /// Its name; its secrets are configured as `routes.<name>.<secret>`.
    #[schema(example = "ngn_nip")]
    pub name: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The currency that it pays in, as an ISO 4217 code.
    pub currency: String,
    /// The payment method that it serves.
    pub method: String,
    /// The rail that serves it.
    pub rail: String,
    /// Routes of one currency and method are tried in this order.
    pub position: i64,
    /// Whether it takes no new payouts.
    pub is_paused: bool,
    /// Merchants that may use it; empty means all.
    pub merchants: Vec<String>,
    /// Settings, and addresses as `endpoint.<name>`.
    pub settings: BTreeMap<String, String>,
    /// What is missing before it can be used: the setting or secret, by its name in the
    /// configuration of the host that answers; null where nothing is.
    #[schema(example = "routes.ngn_nip.gateway_token is not configured")]
    pub missing: Option<String>,
    /// When its network opens, where it is closed now.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub opens_at: Option<Moment>,
    /// How it fares on the host that answers.
    pub breaker: BreakerView,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
}

/// Whether a route is left alone for a while because its network does not answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct BreakerView {
    /// `closed` (it is sent to), `open` (it is left alone) or `half_open` (one payment tries it).
    #[schema(example = "closed")]
    pub state: &'static str,
    /// Calls in a row that the network did not answer.
    pub failures: u32,
    /// Seconds until it is tried again, while it is open.
    pub retry_after_s: Option<u64>,
}

/// List routes
#[utoipa::path(
    get, path = "/admin/v1/routes", operation_id = "list_routes", tag = "Operator",
    responses((status = 200, description = "In the order in which they are tried", body = inline(Page<RouteView>))),
)]
pub async fn list(State(app): State<App>, _operator: Operator) -> Result<Page<RouteView>, Problem> {
    let mut views = Vec::new();
    for route in sql::list_routes(app.db.pool()).await? {
        views.push(view(&app, route).await?);
    }
    Ok(Page::whole(views))
}

/// Retrieve a route
#[utoipa::path(
    get, path = "/admin/v1/routes/{id}", operation_id = "retrieve_route", tag = "Operator",
    params(("id" = String, Path, description = "Its id, or the name of a live one")),
    responses((status = 200, description = "The route", body = RouteView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<RouteView>, Problem> {
    let route = find(&app, &id).await?;
    Ok(Json(view(&app, route).await?))
}

/// A new route.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateRoute {
    /// A word, unique in its environment. Required.
    pub name: Option<String>,
    /// `test` or `live`. Required.
    pub env: Option<String>,
    /// What it pays in. Required.
    pub currency: Option<String>,
    /// How; the rail's default if left out.
    pub method: Option<String>,
    /// The rail that serves it. Required.
    pub rail: Option<String>,
    /// Its place among routes of the same currency and method; 0 if left out.
    pub position: Option<i64>,
    /// Merchants that may use it; all if left out.
    pub merchants: Option<Vec<String>>,
    /// Settings, and addresses as `endpoint.<name>`.
    pub settings: Option<BTreeMap<String, String>>,
}

/// Create a route
#[utoipa::path(
    post, path = "/admin/v1/routes", operation_id = "create_route", tag = "Operator",
    request_body = CreateRoute,
    responses(
        (status = 201, description = "Created", body = RouteView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn create(
    State(app): State<App>,
    operator: Operator,
    body: Body<CreateRoute>,
) -> Result<Response, Problem> {
    let route = understand(&app, body.value)?;
    let taken = sql::list_routes(app.db.pool()).await?;
    if taken.iter().any(|known| (known.env, &known.name) == (route.env, &route.name)) {
        let message = "A route of this name exists in this environment.";
        return Err(Problem::because(ErrorCode::StateConflict, message).field("name"));
    }
    let asked = (("route.create", route.name.as_str()), state(&route));
    let agreement = match agree(&app, &operator, route.env, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let mut rows = vec![sql::ROUTES.insert(&route)];
    rows.extend(agreement.rows.iter().cloned());
    let command = unique(&route).make(rows);
    let done = Done {
        action: "route.create",
        subject: ("route", route.id.as_str()),
        before: None,
        after: Some(agreement.told(state(&route))),
    };
    write(&app, &operator, done, command.guards(agreement.guards)).await?;
    Ok((StatusCode::CREATED, Json(view(&app, route).await?)).into_response())
}

/// There is one route of a name in each environment.
fn unique(route: &Route) -> Unique {
    Unique::new("route", &format!("{}/{}", route.env, route.name))
}

/// Whether one operator is enough for what decides where live payments go, or this is the second.
async fn agree(
    app: &App,
    operator: &Operator,
    env: Env,
    ((action, subject), wanted): ((&'static str, &str), Value),
) -> Result<Verdict, Problem> {
    if env == Env::Test {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let done = (action, ("route", subject));
    let asked = Asked::by_policy(app, (ApprovalAct::LiveRoute, None), done).wanting(wanted);
    approvals::agree(app, operator, asked).await
}

/// The route that a body describes.
fn understand(app: &App, body: CreateRoute) -> Result<Route, Problem> {
    let name = required("name", body.name)?;
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        return Err(invalid("name", "must be lowercase letters, digits and underscores"));
    }
    let env = Env::parse(&required("env", body.env)?);
    let env = env.ok_or_else(|| invalid("env", "must be test or live"))?;
    let rail_name = required("rail", body.rail)?;
    let rail = app.rails.get(&rail_name);
    let rail = rail.ok_or_else(|| invalid("rail", "is not the name of a loaded rail"))?;
    let currency = Currency::parse(&required("currency", body.currency)?);
    let methods = currency.map(|code| rail.declaration.methods_of(code).collect::<Vec<_>>());
    let methods = methods.filter(|methods| !methods.is_empty());
    let methods = methods.ok_or_else(|| invalid("currency", "is not one that the rail serves"))?;
    let terms = match &body.method {
        Some(wanted) => methods.iter().find(|terms| terms.name == *wanted),
        None => methods.first(),
    };
    let terms = terms.ok_or_else(|| invalid("method", "is not one that the rail serves"))?;
    let settings = body.settings.unwrap_or_default();
    check_settings(&rail, &settings)?;
    if let Some((name, why)) = own_settings::objection_to_bounds(&settings) {
        return Err(invalid(&format!("settings.{name}"), &why));
    }
    let now = app.now();
    Ok(Route {
        id: app.ids.id(),
        name,
        env,
        currency: terms.currency,
        method: terms.name.clone(),
        rail: rail_name,
        position: body.position.unwrap_or(0),
        is_paused: false,
        merchants: merchants(&body.merchants.unwrap_or_default())?,
        settings,
        created_at: now,
        updated_at: now,
    })
}

/// A route as the audit log shows it.
fn state(route: &Route) -> Value {
    json!({
        "name": route.name,
        "env": route.env,
        "currency": route.currency.as_str(),
        "method": route.method,
        "rail": route.rail,
        "position": route.position,
        "is_paused": route.is_paused,
        "merchants": route.merchants,
        "settings": route.settings,
    })
}

/// What may be changed about a route.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateRoute {
    /// Its place among routes of the same currency and method.
    pub position: Option<i64>,
    /// Whether it takes no new payouts.
    pub is_paused: Option<bool>,
    /// Merchants that may use it; empty means all.
    pub merchants: Option<Vec<String>>,
    /// Settings, and addresses as `endpoint.<name>`, merged key by key; null takes a key away.
    pub settings: Option<BTreeMap<String, Option<String>>>,
}

/// Change a route
#[utoipa::path(
    patch, path = "/admin/v1/routes/{id}", operation_id = "update_route", tag = "Operator",
    params(("id" = String, Path, description = "Its id, or the name of a live one")),
    request_body = UpdateRoute,
    responses(
        (status = 200, description = "Changed", body = RouteView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn update(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<UpdateRoute>,
) -> Result<Response, Problem> {
    let before = find(&app, &id).await?;
    let wanted = serde_json::to_value(&body.value).map_err(Problem::internal)?;
    let after = changed(&app, &before, body.value)?;
    if leads(&after) != leads(&before) && !completes(&app, (&before, &after)).await? {
        refuse_while_open(&app, &before).await?;
    }
    let is_back = before.is_paused && !after.is_paused;
    // Who is paid over it, and by whom, is more than a pause.
    let is_other = (&after.settings, &after.merchants, after.position)
        != (&before.settings, &before.merchants, before.position);
    let agreement = if is_back || is_other {
        let asked = (("route.update", after.id.as_str()), wanted);
        match agree(&app, &operator, after.env, asked).await? {
            Verdict::Go(agreement) => agreement,
            Verdict::Wait(response) => return Ok(response),
        }
    } else {
        Agreement::default()
    };
    let mut rows = vec![sql::ROUTE_CHANGES.change(&after)];
    rows.extend(agreement.rows.iter().cloned());
    let done = Done {
        action: "route.update",
        subject: ("route", after.id.as_str()),
        before: Some(state(&before)),
        after: Some(agreement.told(state(&after))),
    };
    let command = Command::rows(rows).guards([as_read(&before)]).guards(agreement.guards);
    write(&app, &operator, done, command).await?;
    Ok(Json(view(&app, after).await?).into_response())
}

/// A route with what a body changes about it.
fn changed(app: &App, before: &Route, body: UpdateRoute) -> Result<Route, Problem> {
    let mut after = before.clone();
    after.position = body.position.unwrap_or(before.position);
    after.is_paused = body.is_paused.unwrap_or(before.is_paused);
    if let Some(ids) = body.merchants {
        after.merchants = merchants(&ids)?;
    }
    let rail = app.rails.get(&after.rail);
    for (name, value) in body.settings.into_iter().flatten() {
        match value {
            Some(_) if rail.is_none() => {
                let why = format!("cannot be checked: the rail {} is not loaded", after.rail);
                return Err(invalid(&format!("settings.{name}"), &why));
            }
            Some(value) => drop(after.settings.insert(name, value)),
            None => drop(after.settings.remove(&name)),
        }
    }
    let odd = own_settings::objection_to_step(&before.settings, &after.settings)
        .or_else(|| own_settings::objection_to_bounds(&after.settings));
    if let Some((name, why)) = odd {
        return Err(invalid(&format!("settings.{name}"), &why));
    }
    if let Some(rail) = rail.filter(|_| after.settings != before.settings) {
        check_settings(&rail, &after.settings)?;
    }
    // Never twice the same: it is the version.
    after.updated_at = app.now().max(before.updated_at.after(Duration::from_micros(1)));
    Ok(after)
}

/// Delete a route
///
/// Only one that no payment ever used: what went over a route is asked about there. Pause any other.
/// A route is paused for ten seconds before it can be deleted: by then no host sends over it.
#[utoipa::path(
    delete, path = "/admin/v1/routes/{id}", operation_id = "delete_route", tag = "Operator",
    params(("id" = String, Path, description = "Its id, or the name of a live one")),
    responses(
        (status = 200, description = "What was deleted", body = RouteView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn remove(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let route = find(&app, &id).await?;
    if !route.is_paused || route.updated_at.after(limits::ROUTE_REST) > app.now() {
        let message = "Pause the route, and delete it ten seconds later.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let pool = app.db.pool();
    let is_used =
        attempt::was_used(pool, &route.id).await? || backlog::waits_for(pool, &route.id).await?;
    if is_used {
        let message = "Payments went over this route or wait for it: pause it instead.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let asked = (("route.delete", route.id.as_str()), json!({}));
    let agreement = match agree(&app, &operator, route.env, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let done = Done {
        action: "route.delete",
        subject: ("route", route.id.as_str()),
        before: Some(state(&route)),
        after: agreement.first().is_some().then(|| agreement.told(json!({}))),
    };
    let mut rows = vec![sql::ROUTE_REMOVALS.of(route.id.as_str())];
    rows.extend(agreement.rows.iter().cloned());
    let command = unique(&route).remove(rows).guards([as_read(&route)]).guards(agreement.guards);
    write(&app, &operator, done, command).await?;
    Ok(Json(view(&app, route).await?).into_response())
}

/// The route as it was read: a change of another one is refused.
fn as_read(route: &Route) -> Guard {
    Guard { on: &sql::ROUTE_VERSIONS, id: route.id.to_string(), version: route.updated_at.micros() }
}

/// The route of this id, or the live one of this name.
async fn find(app: &App, named: &str) -> Result<Route, Problem> {
    let routes = sql::list_routes(app.db.pool()).await?;
    let by_name = |route: &&Route| route.env == Env::Live && route.name == named;
    // A name may look like an id.
    let by_id = routes.iter().find(|route| route.id.as_str() == named);
    let found = by_id.or_else(|| routes.iter().find(by_name)).cloned();
    found.ok_or_else(|| Problem::because(ErrorCode::NotFound, "No such route."))
}

/// What says where its payments go, and in whose name: not how fast.
fn leads(route: &Route) -> BTreeMap<&String, &String> {
    route.settings.iter().filter(|(name, _)| !own_settings::is_own(name)).collect()
}

/// Whether a change only gives a route what it lacks, such as a setting that the next version of its
/// rail requires: what is open was sent by versions that do not read it, or with that very value.
async fn completes(app: &App, (before, after): (&Route, &Route)) -> Result<bool, Problem> {
    let (had, has) = (leads(before), leads(after));
    let routes = app.transfers.routes.all().await?;
    let ready = routes.iter().find(|ready| ready.route.id == before.id);
    let lacking = ready.filter(|ready| ready.missing().is_some());
    let is_kept = had.iter().all(|(name, value)| has.get(name) == Some(value));
    let Some(loaded) = lacking.filter(|_| is_kept) else { return Ok(false) };
    let new: Vec<_> = has.iter().filter(|(name, _)| !had.contains_key(*name)).collect();
    if !new.iter().all(|(name, _)| reads(loaded, name)) {
        return Ok(false);
    }
    for sent in attempt::list_open_configurations(app.db.pool(), &before.id).await? {
        let sent = app.transfers.routes.as_sent(&sent).await?;
        let default = |name: &str| sent.rail.declaration.settings.get(name)?.default.as_ref();
        if new.iter().any(|(name, value)| reads(&sent, name) && default(name) != Some(**value)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the rail of a route reads this setting, or asks at this address.
fn reads(route: &ReadyRoute, name: &str) -> bool {
    let declaration = &route.rail.declaration;
    match name.strip_prefix("endpoint.") {
        Some(endpoint) => declaration.endpoints.contains_key(endpoint),
        None => declaration.settings.contains_key(name),
    }
}

/// A payment is asked about where it was sent to: another gateway's answer proves nothing.
async fn refuse_while_open(app: &App, route: &Route) -> Result<(), Problem> {
    let open = attempt::count_open(app.db.pool(), &route.id).await?;
    if open == 0 {
        return Ok(());
    }
    let message = format!(
        "{open} payments over this route have no outcome yet, and must be asked about with the \
         settings that they were sent with. Pause it, and create another route with the new ones."
    );
    Err(Problem::because(ErrorCode::StateConflict, message).field("settings"))
}

/// Settings must be declared, and of the declared shape. Secrets do not belong in the database.
fn check_settings(rail: &Rail, settings: &BTreeMap<String, String>) -> Result<(), Problem> {
    for (name, value) in settings {
        let at = format!("settings.{name}");
        if value.chars().count() > TEXT_MAX {
            return Err(invalid(&at, &format!("must have {TEXT_MAX} characters at most")));
        }
        if let Some(endpoint) = name.strip_prefix("endpoint.") {
            if !rail.declaration.endpoints.contains_key(endpoint) || !value.starts_with("https://")
            {
                let known: Vec<_> = rail.declaration.endpoints.keys().map(String::as_str).collect();
                let why = format!("must be the https address of {}", known.join(" or "));
                return Err(invalid(&at, &why));
            }
            continue;
        }
        if is_about_files(name) {
            match objection(&rail.declaration, name, value) {
                Some(why) => return Err(invalid(&at, &why)),
                None => continue,
            }
        }
        if own_settings::is_own(name) {
            match own_settings::objection(name, value) {
                Some(why) => return Err(invalid(&at, &why)),
                None => continue,
            }
        }
        if rail.declaration.secrets.contains_key(name) {
            return Err(invalid(&at, "is a secret: set it in the host's configuration"));
        }
        let Some(terms) = rail.declaration.settings.get(name) else {
            return Err(invalid(&at, "is not declared by the rail"));
        };
        if !terms.takes(value) {
            let pattern = terms.pattern.as_deref().unwrap_or_default();
            let why = format!("does not match {pattern} ({})", terms.title);
            return Err(invalid(&at, &why));
        }
    }
    Ok(())
}

fn merchants(ids: &[String]) -> Result<Vec<MerchantId>, Problem> {
    if ids.len() > limits::ROUTE_MERCHANTS_MAX {
        let most = limits::ROUTE_MERCHANTS_MAX;
        return Err(invalid("merchants", &format!("must be {most} at most")));
    }
    let parsed: Option<Vec<MerchantId>> = ids.iter().map(|id| MerchantId::parse(id)).collect();
    parsed.ok_or_else(|| invalid("merchants", "must be merchants' ids"))
}

async fn view(app: &App, route: Route) -> Result<RouteView, Problem> {
    let ready = app.routes.all().await?;
    let ready = ready.iter().find(|ready| ready.route.id == route.id);
    let missing = match (ready, app.rails.get(&route.rail)) {
        (_, None) => Some(format!("the rail {} is not loaded", route.rail)),
        (ready, Some(_)) => ready.and_then(|ready| ready.missing()).map(str::to_owned),
    };
    let (health, failures) = app.transfers.lanes.health(&route.id);
    let (breaker, retry_after_s) = match health {
        Health::Closed => ("closed", None),
        Health::Open(pause) => ("open", Some(pause.as_secs().max(1))),
        Health::HalfOpen => ("half_open", None),
    };
    Ok(RouteView {
        opens_at: ready.and_then(|ready| ready.opens_at(app.now())),
        missing,
        breaker: BreakerView { state: breaker, failures, retry_after_s },
        object: "route",
        id: route.id.to_string(),
        name: route.name,
        env: route.env.as_str(),
        currency: route.currency.to_string(),
        method: route.method,
        rail: route.rail,
        position: route.position,
        is_paused: route.is_paused,
        merchants: route.merchants.iter().map(ToString::to_string).collect(),
        settings: route.settings,
        created_at: route.created_at,
        updated_at: route.updated_at,
    })
}
