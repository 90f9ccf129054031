//! What there is left to do, as whoever runs a host asks.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::Db;
use crate::env::Env;
use crate::id::{Id as _, RouteId};

/// Work that has not ended.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The object that is on its way out.
    pub id: String,
    /// Test or live.
    pub env: Env,
    /// The route in whose lane it is.
    pub route_id: RouteId,
    /// When it is looked at next.
    pub due_at: Moment,
    /// Whether somebody is at it.
    pub is_held: bool,
    /// Since when no route takes it, if none does.
    pub unrouted_since: Option<Moment>,
}

/// Which work is wanted; an empty text stands for any.
#[derive(Clone, Debug)]
pub struct Filter {
    /// `test` or `live`.
    pub env: String,
    /// Of this merchant.
    pub merchant: String,
    /// In the lane of one of these routes; of any, where none is named.
    pub routes: Vec<String>,
    /// Queued before this instant.
    pub before: Option<Moment>,
    /// After this object.
    pub after: String,
    /// How many a page has.
    pub limit: i64,
}

/// What is read of it; `$1` is the database's clock.
const PENDING: &str = "SELECT id, env, route_id, due_at, unrouted_since, \
    CAST(CASE WHEN lease_until >= $1 THEN 1 ELSE 0 END AS BIGINT) AS is_held FROM transfers";

/// The work for an object, if there is any.
///
/// # Errors
/// The database cannot be read.
pub async fn find_pending(db: &Db, id: &str) -> Result<Option<Pending>, sqlx::Error> {
    let sql = format!("{PENDING} WHERE id = $2");
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(db.now().await?.micros()).bind(id);
    query.fetch_optional(db.pool()).await?.as_ref().map(pending).transpose()
}

/// The work that is wanted, those of it first whose objects were made first; one more than a page
/// has.
///
/// # Errors
/// The database cannot be read.
pub async fn list_pending(db: &Db, wanted: &Filter) -> Result<Vec<Pending>, sqlx::Error> {
    let routes = match wanted.routes.as_slice() {
        [] => "$6 = '[]'".to_owned(),
        _ => db.engine().among("route_id", "$6"),
    };
    let sql = format!(
        "{PENDING} WHERE id > $2 AND queued_at < $3 AND ($4 = '' OR env = $4) \
         AND ($5 = '' OR merchant_id = $5) AND {routes} ORDER BY id LIMIT $7"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(db.now().await?.micros())
        .bind(wanted.after.as_str())
        .bind(wanted.before.map_or(i64::MAX, Moment::micros))
        .bind(wanted.env.as_str())
        .bind(wanted.merchant.as_str())
        .bind(serde_json::to_string(&wanted.routes).unwrap_or_default())
        .bind(wanted.limit + 1)
        .fetch_all(db.pool())
        .await?;
    rows.iter().map(pending).collect()
}

fn pending(row: &AnyRow) -> Result<Pending, sqlx::Error> {
    let env: String = row.try_get("env")?;
    let is_held: i64 = row.try_get("is_held")?;
    Ok(Pending {
        id: row.try_get("id")?,
        env: Env::parse(&env).ok_or_else(|| sqlx::Error::Decode(env.into()))?,
        route_id: RouteId::from_text(row.try_get("route_id")?),
        due_at: Moment::from_micros(row.try_get("due_at")?),
        is_held: is_held == 1,
        unrouted_since: row.try_get::<Option<i64>, _>("unrouted_since")?.map(Moment::from_micros),
    })
}

/// How much work there is in each stage, as its rows say.
///
/// # Errors
/// The database cannot be read.
pub async fn count_by_stage(pool: &AnyPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = "SELECT stage, COUNT(*) FROM transfers GROUP BY stage";
    sqlx::query_as(sql).fetch_all(pool).await
}

/// Somebody looks every other second, and nobody counts a backlog by hand.
const SOME: i64 = 100;

/// How much live work in the lane of a route no route has taken since before `at`, a hundred at
/// most, and since when; nothing where there is none.
///
/// # Errors
/// The database cannot be read.
pub async fn unrouted(
    pool: &AnyPool,
    lane: &RouteId,
    at: Moment,
) -> Result<Option<(i64, Moment)>, sqlx::Error> {
    let sql = "SELECT COUNT(*), MIN(unrouted_since) FROM (SELECT unrouted_since FROM transfers \
               WHERE route_id = $1 AND unrouted_since < $2 AND env = 'live' \
               ORDER BY unrouted_since LIMIT $3) u";
    let query = sqlx::query_as(sql).bind(lane.as_str()).bind(at.micros()).bind(SOME);
    let (count, since): (i64, Option<i64>) = query.fetch_one(pool).await?;
    Ok(since.map(|since| (count, Moment::from_micros(since))))
}

/// How much live work there is in the lane of a route, a hundred at most.
///
/// # Errors
/// The database cannot be read.
pub async fn count_live(pool: &AnyPool, lane: &RouteId) -> Result<i64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT id FROM transfers WHERE route_id = $1 \
               AND env = 'live' LIMIT $2) w";
    sqlx::query_scalar(sql).bind(lane.as_str()).bind(SOME).fetch_one(pool).await
}

/// Whether anything waits in the lane of a route.
///
/// # Errors
/// The database cannot be read.
pub async fn waits_for(pool: &AnyPool, route: &RouteId) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT id FROM transfers WHERE route_id = $1 LIMIT 1) w";
    let found: i64 = sqlx::query_scalar(sql).bind(route.as_str()).fetch_one(pool).await?;
    Ok(found > 0)
}
