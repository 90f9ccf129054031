//! Statements about the log of requests.

use std::borrow::Cow;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, int, text};
use crate::http::request_log::{Entry, Owned};
use crate::id::{Id as _, RequestId};

/// Requests as they are kept. One that is written twice is there once.
pub static REQUESTS: Table<Owned> = Table {
    name: "request_logs",
    fixed: &[
        text("owner", |owned| (&owned.owner).into()),
        text("id", |owned| owned.entry.id.as_str().into()),
        text("method", |owned| (&owned.entry.method).into()),
        text("path", |owned| (&owned.entry.path).into()),
        int("status", |owned| i64::from(owned.entry.status.unwrap_or_default()).into()),
        int("duration_ms", |owned| {
            i64::try_from(owned.entry.duration_ms).unwrap_or(i64::MAX).into()
        }),
        text("key_prefix", |owned| (&owned.entry.key_prefix).into()),
        text("error_code", |owned| owned.entry.error_code.as_deref().into()),
        int("created_at", |owned| owned.entry.created_at.into()),
    ],
    changing: &[],
    on_conflict: Some("(owner, id) DO NOTHING"),
    is_sealed: false,
};

/// Whether an owner's log has a request.
pub(super) async fn is_known(
    pool: &AnyPool,
    (owner, id): (&str, &RequestId),
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM request_logs WHERE owner = $1 AND id = $2";
    let found: i64 = sqlx::query_scalar(sql).bind(owner).bind(id.as_str()).fetch_one(pool).await?;
    Ok(found == 1)
}

/// An owner's requests before one of them, newest first; one more than a page has.
pub(super) async fn list(
    pool: &AnyPool,
    (owner, before): (&str, Option<&RequestId>),
    ((least, most), limit): ((i64, i64), i64),
) -> Result<Vec<Entry>, sqlx::Error> {
    let sql = "SELECT * FROM request_logs WHERE owner = $1 AND id < $2 \
               AND status BETWEEN $3 AND $4 ORDER BY id DESC LIMIT $5";
    let rows = sqlx::query(sql)
        .bind(owner)
        .bind(before.map_or("~", RequestId::as_str))
        .bind(least)
        .bind(most)
        .bind(limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(entry).collect()
}

fn entry(row: &AnyRow) -> Result<Entry, sqlx::Error> {
    let number = |column| row.try_get::<i64, _>(column);
    let error: Option<String> = row.try_get("error_code")?;
    Ok(Entry {
        object: "request_log",
        id: RequestId::from_text(row.try_get("id")?),
        method: row.try_get("method")?,
        path: row.try_get("path")?,
        status: u16::try_from(number("status")?).ok().filter(|status| *status > 0),
        duration_ms: u64::try_from(number("duration_ms")?).unwrap_or(0),
        key_prefix: row.try_get("key_prefix")?,
        error_code: error.map(Cow::Owned),
        created_at: Moment::from_micros(number("created_at")?),
    })
}
