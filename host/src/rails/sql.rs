//! Statements about routes.

use std::collections::{HashMap, HashSet};

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::Tx;
use crate::db::bulk::{Removal, Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{Id as _, MerchantId, RouteId};
use crate::money::Currency;

use super::configuration::RouteConfiguration;
use super::route::Route;

/// New routes.
pub static ROUTES: Table<Route> = Table {
    name: "routes",
    fixed: &[
        text("id", |route| route.id.as_str().into()),
        text("name", |route| (&route.name).into()),
        text("env", |route| route.env.as_str().into()),
        text("currency", |route| route.currency.as_str().into()),
        text("method", |route| (&route.method).into()),
        text("rail", |route| (&route.rail).into()),
        int("created_at", |route| route.created_at.into()),
    ],
    changing: ROUTE_CHANGES.columns,
    // Two hosts that start on a new database both seed its routes.
    on_conflict: Some("(env, name) DO NOTHING"),
    is_sealed: false,
};

/// How routes were set when something was sent over them.
pub static CONFIGURATIONS: Table<RouteConfiguration> = Table {
    name: "route_configurations",
    fixed: &[
        text("id", |it| (&it.id).into()),
        text("route_id", |it| it.route_id.as_str().into()),
        text("rail_version", |it| (&it.rail_version).into()),
        text("rail_digest", |it| (&it.rail_digest).into()),
        text("fingerprint", |it| (&it.fingerprint).into()),
    ],
    changing: &[],
    on_conflict: Some("(id) DO NOTHING"),
    is_sealed: false,
};

/// Changes of routes.
pub static ROUTE_CHANGES: Update<Route> = Update {
    name: "routes",
    key: text("id", |route| route.id.as_str().into()),
    columns: &[
        int("position", |route| route.position.into()),
        int("is_paused", |route| route.is_paused.into()),
        text("merchants", |route| {
            serde_json::to_string(&route.merchants).unwrap_or_default().into()
        }),
        text("settings", |route| serde_json::to_string(&route.settings).unwrap_or_default().into()),
        int("updated_at", |route| route.updated_at.into()),
    ],
    only_where: None,
};

/// Routes that are deleted.
pub static ROUTE_REMOVALS: Removal = Removal { name: "routes", key: "id" };

/// When a route last changed, which serves as its version.
pub static ROUTE_VERSIONS: Lookup =
    Lookup { name: "routes", key: "id", columns: &[("updated_at", Int)], lock: true };

/// When this database saw each rail first, by its name, in microseconds.
///
/// # Errors
/// The database cannot be read.
pub async fn list_first_seen(pool: &AnyPool) -> Result<HashMap<String, i64>, sqlx::Error> {
    let sql = "SELECT name, MIN(created_at) FROM rail_versions GROUP BY name";
    let seen: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(pool).await?;
    Ok(seen.into_iter().collect())
}

/// The decimal places with which this database has counted each currency so far.
///
/// # Errors
/// The database cannot be read.
pub async fn list_exponents(pool: &AnyPool) -> Result<HashMap<String, u8>, sqlx::Error> {
    let sql = "SELECT key, value FROM meta WHERE key LIKE 'exponent_of/%'";
    let kept: Vec<(String, String)> = sqlx::query_as(sql).fetch_all(pool).await?;
    let read = |(key, value): (String, String)| {
        Some((key.strip_prefix("exponent_of/")?.to_owned(), value.parse().ok()?))
    };
    Ok(kept.into_iter().filter_map(read).collect())
}

/// Remembers with how many decimal places a currency is counted.
///
/// # Errors
/// The database cannot be written.
pub async fn update_exponent(
    tx: &mut Tx,
    currency: Currency,
    exponent: u8,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) \
               DO UPDATE SET value = excluded.value";
    let key = format!("exponent_of/{currency}");
    sqlx::query(sql).bind(key).bind(exponent.to_string()).execute(tx.conn()).await?;
    Ok(())
}

/// What has got its routes once: rail, currency and method.
///
/// # Errors
/// The database cannot be read.
pub async fn list_seeded(pool: &AnyPool) -> Result<HashSet<String>, sqlx::Error> {
    let sql = "SELECT substr(key, 11) FROM meta WHERE key LIKE 'routes_of/%'";
    let seeded: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await?;
    Ok(seeded.into_iter().collect())
}

/// Remembers that something has got its routes.
///
/// # Errors
/// The database cannot be written.
pub async fn insert_seeded(tx: &mut Tx, what: &str) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, 'made') ON CONFLICT (key) DO NOTHING";
    sqlx::query(sql).bind(format!("routes_of/{what}")).execute(tx.conn()).await?;
    Ok(())
}

/// Whether anybody has, or had, money in this currency.
///
/// # Errors
/// The database cannot be read.
pub async fn has_wallets(pool: &AnyPool, currency: Currency) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM wallets WHERE currency = $1 LIMIT 1) AS held";
    let held: i64 = sqlx::query_scalar(sql).bind(currency.as_str()).fetch_one(pool).await?;
    Ok(held > 0)
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
