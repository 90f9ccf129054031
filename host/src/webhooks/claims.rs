//! Queries for claims: which host makes which deliveries, until when.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Db, Engine};
use crate::events::outbox::Ready;
use crate::id::{DeliveryId, EndpointId, Id as _};

use super::bodies::{self, Source};
use super::lanes::{First, Hungry};

/// Which of an endpoint's deliveries are claimed.
struct Pick {
    among: &'static str,
    order: &'static str,
}

/// What has been due for longest.
const OLDEST: Pick = Pick { among: "", order: "q.due_at, q.delivery_id" };
/// What was made last, of some that fell due last: it may be the turn of none of these.
const NEWEST: Pick = Pick {
    among: "AND q.delivery_id IN (SELECT n.delivery_id FROM webhook_queue n \
            WHERE n.endpoint_id = $2 AND n.due_at <= $3 AND n.lease_until < $4 \
            ORDER BY n.due_at DESC LIMIT 100)",
    order: "q.delivery_id DESC",
};

/// Claims deliveries of an endpoint that are due and that nobody holds, in the order wanted, for
/// `lease` by the database's clock. Of an endpoint that wants order, only those that no
/// earlier change of the same object waits before. What was handed over and turned away is due.
/// Answers as well whether there may be more.
pub(super) async fn claim_deliveries(
    db: &Db,
    Hungry { endpoint, room, turned_away, first }: &Hungry,
    (now, lease): (Moment, Duration),
) -> Result<(Vec<Ready>, bool), sqlx::Error> {
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?;
    // Waits for nobody who has a row: he may want one of these.
    let skip = match db.engine() {
        Engine::Postgres => "FOR UPDATE OF q SKIP LOCKED",
        Engine::Sqlite => "",
    };
    if !turned_away.is_empty() {
        let these = db.engine().among("q.delivery_id", "$2");
        let sql = format!(
            "UPDATE webhook_queue SET due_at = $1 WHERE delivery_id IN (\
             SELECT q.delivery_id FROM webhook_queue q \
             WHERE {these} AND q.fence = 0 AND q.due_at > $1 {skip})"
        );
        let ids: Vec<&str> = turned_away.iter().map(DeliveryId::as_str).collect();
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(now.micros());
        query.bind(serde_json::Value::from(ids).to_string()).execute(tx.conn()).await?;
    }
    let picks = match first {
        First::Oldest => &[OLDEST][..],
        First::Newest => &[NEWEST, OLDEST],
    };
    let lease_until = database_now.after(lease).micros();
    let mut claimed: Vec<String> = Vec::new();
    for Pick { among, order } in picks {
        let sql = format!(
            "UPDATE webhook_queue SET lease_until = $1, fence = fence + 1 WHERE delivery_id IN (\
             SELECT q.delivery_id FROM webhook_queue q JOIN webhook_endpoints e \
             ON e.id = q.endpoint_id \
             WHERE q.endpoint_id = $2 AND e.is_active = 1 AND q.due_at <= $3 AND q.lease_until < $4 \
             AND NOT EXISTS (SELECT 1 FROM webhook_queue o \
             WHERE o.endpoint_id = q.endpoint_id AND o.object_id = q.object_id \
             AND o.sequence < q.sequence) {among} ORDER BY {order} LIMIT $5 {skip}) \
             RETURNING delivery_id"
        );
        claimed = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(lease_until)
            .bind(endpoint.as_str())
            .bind(now.micros())
            .bind(database_now.micros())
            .bind(i64::try_from(*room).unwrap_or(1))
            .fetch_all(tx.conn())
            .await?;
        if !claimed.is_empty() {
            break;
        }
    }
    let rows = if claimed.is_empty() {
        Vec::new()
    } else {
        let these = db.engine().among("q.delivery_id", "$1");
        let sql = format!(
            "SELECT d.id, d.attempts, d.is_test, q.fence, e.updated_at, {} \
             FROM webhook_queue q JOIN webhook_deliveries d ON d.id = q.delivery_id \
             JOIN webhook_endpoints e ON e.id = q.endpoint_id {} \
             WHERE {these} ORDER BY q.due_at, d.id",
            bodies::COLUMNS,
            bodies::EVENT
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        query.bind(serde_json::Value::from(claimed).to_string()).fetch_all(tx.conn()).await?
    };
    tx.commit().await?;
    let until = now.after(lease.saturating_sub(2 * limits::WEBHOOK_EXCHANGE_MAX));
    let is_full = rows.len() >= *room;
    Ok((told(db, &rows, (endpoint, now, until)).await?, is_full))
}

/// Claimed deliveries with what they send. Those that cannot be told are put off.
async fn told(
    db: &Db,
    rows: &[AnyRow],
    (endpoint, now, until): (&EndpointId, Moment, Moment),
) -> Result<Vec<Ready>, sqlx::Error> {
    let claims: Vec<Claim> = rows.iter().map(Claim::of).collect::<Result<_, _>>()?;
    let bodies = match bodies::bodies(db, rows.iter().map(Source::of).collect()).await {
        Ok(bodies) => bodies,
        Err(cause) => {
            release_deliveries(db, &claims).await?;
            return Err(cause);
        }
    };
    let (mut found, mut untold) = (Vec::new(), Vec::new());
    for ((row, claim), body) in rows.iter().zip(claims).zip(bodies) {
        match body {
            Some(body) => found.push(ready(row, (endpoint, until), body)?),
            None => untold.push(claim),
        }
    }
    // Where that fails, their leases run out.
    if !untold.is_empty()
        && let Err(cause) = bodies::put_off(db, &untold, now).await
    {
        tracing::warn!(%cause, "putting deliveries off");
    }
    Ok(found)
}

/// A delivery that this host has claimed.
pub(super) struct Claim {
    pub id: DeliveryId,
    pub fence: i64,
}

impl From<&Ready> for Claim {
    fn from(ready: &Ready) -> Self {
        Self { id: ready.id.clone(), fence: ready.fence }
    }
}

impl Claim {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self { id: DeliveryId::from_text(row.try_get("id")?), fence: row.try_get("fence")? })
    }

    /// Those of the claims that have the same fence, by fence, as JSON.
    pub(super) fn by_fence(claims: &[Self]) -> impl Iterator<Item = (i64, String)> {
        let mut by_fence: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for claim in claims {
            by_fence.entry(claim.fence).or_default().push(claim.id.as_str());
        }
        by_fence.into_iter().map(|(fence, ids)| (fence, serde_json::Value::from(ids).to_string()))
    }
}

/// Gives claims back of which nothing came.
pub(super) async fn release_deliveries(db: &Db, claims: &[Claim]) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let these = db.engine().among("delivery_id", "$1");
    let sql = format!("UPDATE webhook_queue SET lease_until = 0 WHERE {these} AND fence = $2");
    for (fence, ids) in Claim::by_fence(claims) {
        let query = sqlx::query(sqlx::AssertSqlSafe(sql.as_str())).bind(ids).bind(fence);
        query.execute(tx.conn()).await?;
    }
    tx.commit().await
}

/// A claimed delivery, with what it sends.
fn ready(
    row: &AnyRow,
    (endpoint, until): (&EndpointId, Moment),
    body: String,
) -> Result<Ready, sqlx::Error> {
    Ok(Ready {
        id: DeliveryId::from_text(row.try_get("id")?),
        endpoint_id: endpoint.clone(),
        event: row.try_get("event_type")?,
        body,
        attempts: row.try_get("attempts")?,
        is_test: row.try_get::<i64, _>("is_test")? != 0,
        fence: row.try_get("fence")?,
        version: row.try_get("updated_at")?,
        until,
    })
}
