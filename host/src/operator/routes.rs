//! Routes: which rail serves what, in which order.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page};
use crate::id::MerchantId;
use crate::ledger::{Command, Guard};
use crate::money::Currency;
use crate::rails::{Rail, Route, sql};
use crate::transfers::attempt;
use crate::transfers::lanes::Health;

use super::{Done, invalid, required, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_routes", &[]),
    ("create_route", &[ErrorCode::MissingField, ErrorCode::InvalidField, ErrorCode::StateConflict]),
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

/// A new route.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
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
    responses((status = 201, description = "Created", body = RouteView)),
)]
pub async fn create(
    State(app): State<App>,
    operator: Operator,
    body: Body<CreateRoute>,
) -> Result<(StatusCode, Json<RouteView>), Problem> {
    let body = body.value;
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
    let terms = currency.and_then(|code| rail.declaration.currency(code));
    let terms = terms.ok_or_else(|| invalid("currency", "is not one that the rail serves"))?;
    let method = body.method.unwrap_or_else(|| terms.methods[0].clone());
    if !terms.methods.contains(&method) {
        return Err(invalid("method", "is not one that the rail serves"));
    }
    let settings = body.settings.unwrap_or_default();
    check_settings(&rail, &settings)?;
    let now = app.now();
    let route = Route {
        id: app.ids.id(),
        name,
        env,
        currency: terms.code,
        method,
        rail: rail_name,
        position: body.position.unwrap_or(0),
        is_paused: false,
        merchants: merchants(&body.merchants.unwrap_or_default())?,
        settings,
        created_at: now,
        updated_at: now,
    };
    let taken = sql::list_routes(app.db.pool()).await?;
    if taken.iter().any(|known| (known.env, &known.name) == (route.env, &route.name)) {
        let message = "A route of this name exists in this environment.";
        return Err(Problem::because(ErrorCode::StateConflict, message).field("name"));
    }
    let rows = vec![sql::ROUTES.insert(&route)];
    let done = Done {
        action: "route.create",
        subject: ("route", route.id.as_str()),
        before: None,
        after: Some(state(&route)),
    };
    write(&app, &operator, done, Command::rows(rows)).await?;
    Ok((StatusCode::CREATED, Json(view(&app, route).await?)))
}

/// A route as the audit log shows it.
fn state(route: &Route) -> serde_json::Value {
    json!({
        "name": route.name,
        "env": route.env,
        "rail": route.rail,
        "position": route.position,
        "is_paused": route.is_paused,
        "merchants": route.merchants,
        "settings": route.settings,
    })
}

/// What may be changed about a route.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateRoute {
    /// Its place among routes of the same currency and method.
    pub position: Option<i64>,
    /// Whether it takes no new payouts.
    pub is_paused: Option<bool>,
    /// Merchants that may use it; empty means all.
    pub merchants: Option<Vec<String>>,
    /// Settings, and addresses as `endpoint.<name>`; replaces all of them.
    pub settings: Option<BTreeMap<String, String>>,
}

/// Change a route
#[utoipa::path(
    patch, path = "/admin/v1/routes/{id}", operation_id = "update_route", tag = "Operator",
    params(("id" = String, Path, description = "The route")),
    request_body = UpdateRoute,
    responses((status = 200, description = "Changed", body = RouteView)),
)]
pub async fn update(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<UpdateRoute>,
) -> Result<Json<RouteView>, Problem> {
    let routes = sql::list_routes(app.db.pool()).await?;
    let before = routes.into_iter().find(|route| route.id.as_str() == id);
    let before = before.ok_or_else(|| Problem::because(ErrorCode::NotFound, "No such route."))?;
    let body = body.value;
    let mut after = before.clone();
    after.position = body.position.unwrap_or(before.position);
    after.is_paused = body.is_paused.unwrap_or(before.is_paused);
    if let Some(ids) = body.merchants {
        after.merchants = merchants(&ids)?;
    }
    if let Some(settings) = body.settings {
        if let Some(rail) = app.rails.get(&after.rail) {
            check_settings(&rail, &settings)?;
        }
        after.settings = settings;
    }
    if after.settings != before.settings {
        refuse_while_open(&app, &before).await?;
    }
    // Never twice the same: it is the version.
    after.updated_at = app.now().max(before.updated_at.after(Duration::from_micros(1)));
    let guard = Guard {
        on: &sql::ROUTE_VERSIONS,
        id: after.id.to_string(),
        version: before.updated_at.micros(),
    };
    let done = Done {
        action: "route.update",
        subject: ("route", after.id.as_str()),
        before: Some(state(&before)),
        after: Some(state(&after)),
    };
    let rows = vec![sql::ROUTE_CHANGES.change(&after)];
    write(&app, &operator, done, Command::rows(rows).guards([guard])).await?;
    Ok(Json(view(&app, after).await?))
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
        if let Some(endpoint) = name.strip_prefix("endpoint.") {
            if !rail.declaration.endpoints.contains_key(endpoint) || !value.starts_with("https://")
            {
                return Err(invalid(
                    &format!("settings.{name}"),
                    "must be a declared endpoint's https address",
                ));
            }
            continue;
        }
        let at = format!("settings.{name}");
        if rail.declaration.secrets.contains_key(name) {
            return Err(invalid(&at, "is a secret: set it in the host's configuration"));
        }
        let Some(terms) = rail.declaration.settings.get(name) else {
            return Err(invalid(&at, "is not declared by the rail"));
        };
        let pattern = terms.pattern.as_deref().and_then(|p| regex_lite::Regex::new(p).ok());
        if pattern.is_some_and(|pattern| !pattern.is_match(value)) {
            return Err(invalid(&at, "does not have the declared format"));
        }
    }
    Ok(())
}

fn merchants(ids: &[String]) -> Result<Vec<MerchantId>, Problem> {
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
