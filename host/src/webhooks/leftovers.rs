//! Statements about what is left over: of endpoints that were deleted or switched off, and of
//! deliveries that ended long ago.

use std::time::{Duration, Instant};

use sqlx::AnyPool;

use crate::clock::Moment;
use crate::db::Db;
use crate::id::{DeliveryId, EndpointId};
use crate::retention::Portion;

/// Deletes some deliveries that nobody makes, because their endpoints are switched off, made before
/// one of this id; answers how many, and how long others had to wait. They would keep what was made
/// in their month for ever. Whatever waits and is so old is one of them, or belongs to who is slow.
pub(super) async fn sweep_unheard(
    db: &Db,
    before: &DeliveryId,
    portion: Portion,
) -> Result<(usize, Duration), sqlx::Error> {
    let sql = "SELECT w.delivery_id FROM webhook_queue w CROSS JOIN webhook_endpoints e \
               WHERE w.delivery_id < $1 AND e.id = w.endpoint_id AND e.is_active = 0 \
               ORDER BY w.delivery_id LIMIT $2";
    let query = sqlx::query_scalar(sql).bind(before.as_str()).bind(portion.rows());
    let found: Vec<String> = query.fetch_all(db.pool()).await?;
    if found.is_empty() {
        return Ok((0, Duration::ZERO));
    }
    let mut tx = db.write().await?;
    let (begun, database_now) = (Instant::now(), tx.now(db.engine()).await?);
    // Whoever has one under way since before ends it; an endpoint may be used again by now.
    let these = db.engine().among("delivery_id", "$1");
    let sql = format!(
        "DELETE FROM webhook_queue WHERE {these} AND lease_until < $2 AND endpoint_id IN \
         (SELECT id FROM webhook_endpoints WHERE is_active = 0) RETURNING delivery_id"
    );
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
    let query = query.bind(serde_json::Value::from(found).to_string());
    let left: Vec<String> = query.bind(database_now.micros()).fetch_all(tx.conn()).await?;
    let swept = left.len();
    let these = db.engine().among("id", "$1");
    let sql = format!("DELETE FROM webhook_deliveries WHERE {these}");
    let query = sqlx::query(sqlx::AssertSqlSafe(sql));
    query.bind(serde_json::Value::from(left).to_string()).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok((swept, begun.elapsed()))
}

/// Endpoints that were deleted before an instant, and of which something may be left.
pub(super) async fn list_deleted_endpoints(
    pool: &AnyPool,
    before: Moment,
) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT id FROM webhook_endpoints WHERE deleted_at < $1 ORDER BY id LIMIT 20";
    sqlx::query_scalar(sql).bind(before.micros()).fetch_all(pool).await
}

/// Deletes some of what is left of a deleted endpoint, and in the end the endpoint itself; answers
/// how long others had to wait, or nothing once it is gone. Nobody may have a delivery to it under
/// way any more: without the endpoint, nothing would lead to that.
pub(super) async fn sweep_endpoint(
    db: &Db,
    endpoint: &str,
    portion: Portion,
) -> Result<Option<Duration>, sqlx::Error> {
    // Both name all arguments: PostgreSQL wants to know the type of each.
    for sql in [
        "DELETE FROM webhook_queue WHERE delivery_id IN (SELECT delivery_id FROM webhook_queue \
         WHERE endpoint_id = $1 AND $2 = $2 LIMIT $3)",
        "DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries \
         WHERE endpoint_number = $2 AND endpoint_id = $1 ORDER BY id_number, id LIMIT $3)",
    ] {
        let mut tx = db.write().await?;
        let begun = Instant::now();
        let query = sqlx::query(sql)
            .bind(endpoint)
            .bind(EndpointId::number_of(endpoint))
            .bind(portion.rows());
        let deleted = query.execute(tx.conn());
        let deleted = deleted.await?.rows_affected();
        tx.commit().await?;
        if deleted > 0 {
            return Ok(Some(begun.elapsed()));
        }
    }
    let mut tx = db.write().await?;
    let sql = "DELETE FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NOT NULL";
    sqlx::query(sql).bind(endpoint).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(None)
}

/// Deletes some deliveries that ended and are old enough, from one id to another; answers the
/// last one, if there may be more, and how long others had to wait. The index leads straight to
/// them.
pub(super) async fn sweep_history(
    db: &Db,
    (after, before): (&str, &DeliveryId),
    portion: Portion,
) -> Result<(Option<String>, Duration), sqlx::Error> {
    let sql = "SELECT id FROM webhook_deliveries WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3";
    let query = sqlx::query_scalar(sql).bind(after).bind(before.as_str()).bind(portion.rows());
    let mut found: Vec<String> = query.fetch_all(db.pool()).await?;
    let is_last = i64::try_from(found.len()).unwrap_or(0) < portion.rows();
    let Some(last) = found.pop() else { return Ok((None, Duration::ZERO)) };
    let mut tx = db.write().await?;
    let begun = Instant::now();
    let sql = "DELETE FROM webhook_deliveries WHERE id > $1 AND id <= $2 \
               AND status IN ('delivered', 'giving_up')";
    sqlx::query(sql).bind(after).bind(&last).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(((!is_last).then_some(last), begun.elapsed()))
}
