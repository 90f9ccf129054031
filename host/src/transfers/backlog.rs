//! What there is left to do, as whoever runs a host asks.

use sqlx::AnyPool;

use crate::clock::Moment;
use crate::id::RouteId;

/// How much work there is in each stage, as its rows say.
///
/// # Errors
/// The database cannot be read.
pub async fn count_by_stage(pool: &AnyPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = "SELECT stage, COUNT(*) FROM transfers GROUP BY stage";
    sqlx::query_as(sql).fetch_all(pool).await
}

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
    // Somebody looks every other second, and nobody counts a backlog by hand.
    const SOME: i64 = 100;
    let sql = "SELECT COUNT(*), MIN(unrouted_since) FROM (SELECT unrouted_since FROM transfers \
               WHERE route_id = $1 AND unrouted_since < $2 AND env = 'live' \
               ORDER BY unrouted_since LIMIT $3) u";
    let query = sqlx::query_as(sql).bind(lane.as_str()).bind(at.micros()).bind(SOME);
    let (count, since): (i64, Option<i64>) = query.fetch_one(pool).await?;
    Ok(since.map(|since| (count, Moment::from_micros(since))))
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
