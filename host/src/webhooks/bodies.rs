//! Queries for what deliveries send: their own body, or what follows from their events. Of one that
//! cannot be told now, another host may be of a later build, or somebody mends what it tells of.

use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::Db;
use crate::events::outbox::Head;
use crate::events::sql::StoredEvent;
use crate::id::DeliveryId;
use crate::payouts::event_body;

use super::claims::Claim;

/// When a delivery that cannot be told is looked at again, and how long after it was made no more.
const UNTOLD_AGAIN: Duration = Duration::from_secs(600);
const UNTOLD_FOR: Duration = Duration::from_secs(3 * 24 * 3600);
/// Why such a delivery is given up.
pub(super) const UNTOLD: &str = "the event that it tells is gone or cannot be read";

/// What a row says of what its delivery sends.
pub(super) enum Source {
    /// This.
    Own(String),
    /// What this event tells, under the name that the endpoint knows.
    Event(StoredEvent, String),
    /// Nothing: its event is not there.
    Missing,
}

/// Columns that [`Source::of`] reads: of a delivery `d`, and of its event [`EVENT`].
pub(super) const COLUMNS: &str = "d.body, d.event_type, v.id AS told_id, v.object_id AS told_of, \
    v.type AS told_type, v.sequence AS told_sequence, v.env AS told_env, v.body AS told_body, \
    v.created_at AS told_at";

/// A delivery's event `v`, found among those of whoever owns the endpoint `e`.
pub(super) const EVENT: &str = "LEFT JOIN events v ON v.owner_number = e.owner_number \
    AND v.id_number = d.event_number AND v.id = d.event_id AND v.merchant_id = e.merchant_id \
    AND v.env = e.env AND v.body IS NOT NULL";

impl Source {
    /// Read from a row of [`COLUMNS`]; what cannot be read is not there.
    pub(super) fn of(row: &AnyRow) -> Self {
        Self::read(row).unwrap_or(Self::Missing)
    }

    fn read(row: &AnyRow) -> Result<Self, sqlx::Error> {
        if let Some(body) = row.try_get("body")? {
            return Ok(Self::Own(body));
        }
        let Some(id) = row.try_get("told_id")? else { return Ok(Self::Missing) };
        let event = StoredEvent {
            id,
            object_id: row.try_get("told_of")?,
            name: row.try_get("told_type")?,
            sequence: row.try_get("told_sequence")?,
            env: row.try_get("told_env")?,
            body: row.try_get("told_body")?,
            created_at: Moment::from_micros(row.try_get("told_at")?),
        };
        Ok(Self::Event(event, row.try_get("event_type")?))
    }
}

/// The bytes that each of these deliveries sends, whenever and by whichever host. None where its
/// event is not there or cannot be shown.
pub(super) async fn bodies(db: &Db, of: Vec<Source>) -> Result<Vec<Option<String>>, sqlx::Error> {
    let events: Vec<StoredEvent> = of
        .iter()
        .filter_map(|source| match source {
            Source::Event(event, _) => Some(event.clone()),
            Source::Own(_) | Source::Missing => None,
        })
        .collect();
    let mut objects = event_body::objects(db, &events).await?.into_iter();
    let body = |source| match source {
        Source::Own(body) => Some(body),
        Source::Event(event, name) => {
            let object = objects.next().flatten();
            object.and_then(|object| head(&event).body(&name, &object))
        }
        Source::Missing => None,
    };
    Ok(of.into_iter().map(body).collect())
}

fn head(event: &StoredEvent) -> Head<'_> {
    Head { id: &event.id, created_at: event.created_at, env: &event.env, sequence: event.sequence }
}

/// Puts claims off that cannot be told now, and gives up those that were put off before and are old.
/// Neither keeps others waiting, but for later changes of the same object at an ordered endpoint.
pub(super) async fn put_off(db: &Db, claims: &[Claim], now: Moment) -> Result<(), sqlx::Error> {
    let (old, again_at) = (DeliveryId::first_at(now.before(UNTOLD_FOR)), now.after(UNTOLD_AGAIN));
    let mut tx = db.write().await?;
    let queued = db.engine().among("delivery_id", "$1");
    let these = db.engine().among("id", "$1");
    for (fence, ids) in Claim::by_fence(claims) {
        let sql = format!(
            "DELETE FROM webhook_queue WHERE {queued} AND fence = $2 AND delivery_id < $3 \
             AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.id = webhook_queue.delivery_id \
             AND d.error_message = $4) RETURNING delivery_id"
        );
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(&ids).bind(fence);
        let query = query.bind(old.as_str()).bind(UNTOLD);
        let gone: Vec<String> = query.fetch_all(tx.conn()).await?;
        let sql = format!(
            "UPDATE webhook_deliveries SET status = 'giving_up', attempts = attempts + 1, \
             next_attempt_at = NULL WHERE {these}"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(serde_json::Value::from(gone).to_string());
        query.execute(tx.conn()).await?;
        let sql = format!(
            "UPDATE webhook_queue SET due_at = $3, lease_until = 0 WHERE {queued} AND fence = $2 \
             RETURNING delivery_id"
        );
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(ids).bind(fence);
        let query = query.bind(again_at.micros());
        let later: Vec<String> = query.fetch_all(tx.conn()).await?;
        let sql = format!(
            "UPDATE webhook_deliveries SET error_message = $2, next_attempt_at = $3 WHERE {these}"
        );
        let query =
            sqlx::query(AssertSqlSafe(sql)).bind(serde_json::Value::from(later).to_string());
        query.bind(UNTOLD).bind(again_at.micros()).execute(tx.conn()).await?;
    }
    tx.commit().await?;
    let first = claims.first().map(|claim| claim.id.as_str());
    tracing::error!(delivery.id = first, count = claims.len(), "not delivered now: {UNTOLD}");
    Ok(())
}
