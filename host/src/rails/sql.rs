//! Statements about routes.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{Lookup, Row, Table, Update};
use crate::env::Env;
use crate::id::{Id as _, MerchantId, RouteId};
use crate::money::Currency;

use super::route::Route;

/// New routes.
pub const ROUTES: Table = Table {
    name: "routes",
    columns: &[
        ("id", Text),
        ("name", Text),
        ("env", Text),
        ("currency", Text),
        ("method", Text),
        ("rail", Text),
        ("position", Int),
        ("is_paused", Int),
        ("merchants", Text),
        ("settings", Text),
        ("created_at", Int),
        ("updated_at", Int),
    ],
    // Two hosts that start on a new database both seed its routes.
    on_conflict: Some("(env, name) DO NOTHING"),
};

/// Changes of routes.
pub const ROUTE_CHANGES: Update = Update {
    name: "routes",
    key: "id",
    columns: &[
        ("position", Int),
        ("is_paused", Int),
        ("merchants", Text),
        ("settings", Text),
        ("updated_at", Int),
    ],
    only_where: None,
};

/// When a route last changed, which serves as its version.
pub const ROUTE_VERSIONS: Lookup =
    Lookup { name: "routes", key: "id", columns: &[("updated_at", Int)], lock: true };

/// A new route as a row of [`ROUTES`].
#[must_use]
pub fn route_row(route: &Route) -> Row {
    let mut row = vec![
        route.id.as_str().into(),
        route.name.as_str().into(),
        route.env.as_str().into(),
        route.currency.as_str().into(),
        route.method.as_str().into(),
        route.rail.as_str().into(),
    ];
    row.extend(route_state(route));
    row.push(route.created_at.micros().into());
    row.push(route.updated_at.micros().into());
    row
}

/// A changed route as a row of [`ROUTE_CHANGES`].
#[must_use]
pub fn route_change(route: &Route) -> Row {
    let mut row = vec![route.id.as_str().into()];
    row.extend(route_state(route));
    row.push(route.updated_at.micros().into());
    row
}

fn route_state(route: &Route) -> Row {
    vec![
        route.position.into(),
        i64::from(route.is_paused).into(),
        serde_json::to_string(&route.merchants).unwrap_or_default().into(),
        serde_json::to_string(&route.settings).unwrap_or_default().into(),
    ]
}

/// Every route, in the order in which they are tried.
///
/// # Errors
/// The database cannot be read.
pub async fn list_routes(pool: &AnyPool) -> Result<Vec<Route>, sqlx::Error> {
    let sql = "SELECT id, name, env, currency, method, rail, position, is_paused, merchants, \
               settings, created_at, updated_at FROM routes ORDER BY env, currency, position, id";
    let rows = sqlx::query(sql).fetch_all(pool).await?;
    rows.iter().map(route).collect()
}

fn route(row: &AnyRow) -> Result<Route, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let malformed = |cause: serde_json::Error| sqlx::Error::Decode(Box::new(cause));
    let unknown = || sqlx::Error::Decode("an unknown environment or currency".into());
    let merchants: Vec<String> = serde_json::from_str(&text("merchants")?).map_err(malformed)?;
    Ok(Route {
        id: RouteId::from_text(text("id")?),
        name: text("name")?,
        env: Env::parse(&text("env")?).ok_or_else(unknown)?,
        currency: Currency::parse(&text("currency")?).ok_or_else(unknown)?,
        method: text("method")?,
        rail: text("rail")?,
        position: row.try_get("position")?,
        is_paused: row.try_get::<i64, _>("is_paused")? != 0,
        merchants: merchants.into_iter().map(MerchantId::from_text).collect(),
        settings: serde_json::from_str(&text("settings")?).map_err(malformed)?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
        updated_at: Moment::from_micros(row.try_get("updated_at")?),
    })
}
