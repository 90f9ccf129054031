//! What there is left to do, as whoever runs a host asks.

use sqlx::AnyPool;

use crate::clock::Moment;
use crate::id::{Id as _, RouteId};

/// How much work there is in each stage, as its rows say.
///
/// # Errors
/// The database cannot be read.
pub async fn count_by_stage(pool: &AnyPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = "SELECT stage, COUNT(*) FROM transfers GROUP BY stage";
    sqlx::query_as(sql).fetch_all(pool).await
}

/// Live work that no route has taken since before `at`: in whose lane it waits, how much of it there
/// is at least, and since when.
///
/// # Errors
/// The database cannot be read.
pub async fn list_unrouted(
    pool: &AnyPool,
    at: Moment,
) -> Result<Vec<(RouteId, i64, Moment)>, sqlx::Error> {
    // Somebody looks every other second, and nobody counts a backlog by hand.
    const SOME: i64 = 100;
    let sql = "SELECT route_id, COUNT(*), MIN(unrouted_since) FROM (SELECT route_id, \
               unrouted_since FROM transfers WHERE unrouted_since < $1 AND env = 'live' \
               ORDER BY unrouted_since LIMIT $2) u GROUP BY route_id ORDER BY route_id";
    let query = sqlx::query_as(sql).bind(at.micros()).bind(SOME);
    let found: Vec<(String, i64, i64)> = query.fetch_all(pool).await?;
    let of_lane =
        |(route, count, since)| (RouteId::from_text(route), count, Moment::from_micros(since));
    Ok(found.into_iter().map(of_lane).collect())
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
