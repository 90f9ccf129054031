//! Statements about events.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, int, text};
use crate::env::Env;
use crate::id::{EventId, MerchantId};

use super::{Data, Event};

/// New events.
pub static EVENTS: Table<Event> = Table {
    name: "events",
    fixed: &[
        text("object_id", |event| (&event.object_id).into()),
        int("sequence", |event| event.sequence.into()),
        text("id", |event| event.id.as_str().into()),
        text("merchant_id", |event| event.merchant_id.as_str().into()),
        text("env", |event| event.env.as_str().into()),
        text("type", |event| event.name.into()),
        text("object_type", |event| event.object_type.into()),
        text("body", |event| event.data.as_ref().map(Data::kept).into()),
        int("created_at", |event| event.created_at.into()),
        int("owner_number", |event| event.merchant_id.owner_number(event.env).into()),
        int("id_number", |event| event.id.number().into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// An event that merchants are told of, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// The id, which sorts by time of creation.
    pub id: String,
    /// The object that changed.
    pub object_id: String,
    /// What happened.
    pub name: String,
    /// The number of this change of the object.
    pub sequence: i64,
    /// `test` or `live`.
    pub env: String,
    /// The object afterwards, or the part of it that is kept.
    pub body: String,
    /// When the object changed.
    pub created_at: Moment,
}

/// Which events of the feed are wanted.
#[derive(Debug, Default)]
pub struct Filter {
    /// Of this type; any, if empty.
    pub name: String,
    /// After this instant.
    pub after: Option<Moment>,
    /// Before this id; from the newest, if none.
    pub cursor: Option<String>,
}

/// A page of a merchant's feed, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_events(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    filter: &Filter,
    limit: i64,
) -> Result<Vec<StoredEvent>, sqlx::Error> {
    // They rise with time: what is too old is not looked at.
    let first = filter.after.map(|after| EventId::first_at(after.before(limits::IDS_DIFFER)));
    let sql = "SELECT id, object_id, type, sequence, env, body, created_at FROM events \
               WHERE owner_number = $1 AND id_number <= $2 AND id_number >= $3 \
               AND merchant_id = $4 AND env = $5 AND body IS NOT NULL AND id < $6 AND id > $7 \
               AND ($8 = '' OR type = $8) AND created_at > $9 \
               ORDER BY id_number DESC, id DESC LIMIT $10";
    let rows = sqlx::query(sql)
        .bind(merchant.owner_number(env))
        .bind(filter.cursor.as_deref().map_or(i64::MAX, EventId::number_of))
        .bind(first.as_ref().map_or(0, EventId::number))
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(filter.cursor.as_deref().unwrap_or("~"))
        .bind(first.as_ref().map_or("", EventId::as_str))
        .bind(filter.name.as_str())
        .bind(filter.after.map_or(i64::MIN, Moment::micros))
        .bind(limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(event).collect()
}

/// Ids of a merchant's feed after one, oldest first: of one type, or of any if that is empty.
///
/// # Errors
/// The database cannot be read.
pub async fn list_event_ids(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    (name, after): (&str, &str),
    limit: i64,
) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT id FROM events WHERE owner_number = $1 AND id_number >= $2 \
               AND merchant_id = $3 AND env = $4 AND body IS NOT NULL AND id > $5 \
               AND ($6 = '' OR type = $6) ORDER BY id_number, id LIMIT $7";
    let ids =
        sqlx::query_scalar(sql).bind(merchant.owner_number(env)).bind(EventId::number_of(after));
    let ids = ids.bind(merchant.as_str()).bind(env.as_str()).bind(after);
    ids.bind(name).bind(limit).fetch_all(pool).await
}

/// Events of a merchant's feed from one id to another, oldest first: of one type, or of any if
/// that is empty.
///
/// # Errors
/// The database cannot be read.
pub async fn list_events_between(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    name: &str,
    (first, last): (&str, &str),
) -> Result<Vec<StoredEvent>, sqlx::Error> {
    let sql = "SELECT id, object_id, type, sequence, env, body, created_at FROM events \
               WHERE owner_number = $1 AND id_number >= $2 AND id_number <= $3 \
               AND merchant_id = $4 AND env = $5 AND body IS NOT NULL AND id >= $6 \
               AND id <= $7 AND ($8 = '' OR type = $8) ORDER BY id_number, id";
    let rows = sqlx::query(sql).bind(merchant.owner_number(env)).bind(EventId::number_of(first));
    let rows = rows.bind(EventId::number_of(last)).bind(merchant.as_str()).bind(env.as_str());
    let rows = rows.bind(first).bind(last).bind(name).fetch_all(pool).await?;
    rows.iter().map(event).collect()
}

/// Whether a merchant's feed has this event.
///
/// # Errors
/// The database cannot be read.
pub async fn find_event(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    id: &str,
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM events WHERE owner_number = $1 AND id_number = $2 \
               AND merchant_id = $3 AND env = $4 AND body IS NOT NULL AND id = $5";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(merchant.owner_number(env))
        .bind(EventId::number_of(id))
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(id)
        .fetch_one(pool)
        .await?;
    Ok(found == 1)
}

/// An object's events, oldest first: name, sequence and instant.
///
/// # Errors
/// The database cannot be read.
pub async fn list_history(
    pool: &AnyPool,
    object_id: &str,
) -> Result<Vec<(String, i64, Moment)>, sqlx::Error> {
    let sql =
        "SELECT type, sequence, created_at FROM events WHERE object_id = $1 ORDER BY sequence";
    let rows = sqlx::query(sql).bind(object_id).fetch_all(pool).await?;
    rows.iter()
        .map(|row| {
            let created_at = Moment::from_micros(row.try_get("created_at")?);
            Ok((row.try_get("type")?, row.try_get("sequence")?, created_at))
        })
        .collect()
}

/// A delivery of an event, as far as whoever asks about the event's object wants to know.
#[derive(Clone, Debug)]
pub struct Told {
    /// The delivery's id.
    pub id: String,
    /// The endpoint that hears of it.
    pub endpoint_id: String,
    /// The event's name in the endpoint's spelling.
    pub event: String,
    /// `pending`, `delivered`, `failed` or `giving_up`.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// HTTP status of the last answer.
    pub response_status: Option<i64>,
    /// When it was made.
    pub created_at: Moment,
}

/// The deliveries of an object's events, oldest first, to endpoints that are still there.
///
/// # Errors
/// The database cannot be read.
pub async fn list_deliveries_about(
    pool: &AnyPool,
    object_id: &str,
) -> Result<Vec<Told>, sqlx::Error> {
    let sql = "SELECT d.id, d.endpoint_id, d.event_type, d.status, d.attempts, d.response_status, \
               d.created_at FROM events v JOIN webhook_deliveries d \
               ON d.event_number = v.id_number AND d.event_id = v.id \
               JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.deleted_at IS NULL \
               WHERE v.object_id = $1 ORDER BY d.id LIMIT $2";
    let query = sqlx::query(sql).bind(object_id).bind(limits::TIMELINE_DELIVERIES_MAX);
    let rows = query.fetch_all(pool).await?;
    rows.iter()
        .map(|row| {
            Ok(Told {
                id: row.try_get("id")?,
                endpoint_id: row.try_get("endpoint_id")?,
                event: row.try_get("event_type")?,
                status: row.try_get("status")?,
                attempts: row.try_get("attempts")?,
                response_status: row.try_get("response_status")?,
                created_at: Moment::from_micros(row.try_get("created_at")?),
            })
        })
        .collect()
}

fn event(row: &AnyRow) -> Result<StoredEvent, sqlx::Error> {
    Ok(StoredEvent {
        id: row.try_get("id")?,
        object_id: row.try_get("object_id")?,
        name: row.try_get("type")?,
        sequence: row.try_get("sequence")?,
        env: row.try_get("env")?,
        body: row.try_get("body")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
