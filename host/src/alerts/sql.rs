//! Statements about alerts.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::id::{AlertId, Id as _};
use crate::ledger::Guard;

use super::{Alert, AlertKind};

/// Alerts as they are from now on.
pub static ALERTS: Table<Alert> = Table {
    name: "alerts",
    fixed: &[
        text("id", |alert| alert.id.as_str().into()),
        text("key", |alert| (&alert.key).into()),
        text("kind", |alert| alert.kind.as_str().into()),
        text("host", |alert| (&alert.host).into()),
        int("opened_at", |alert| alert.opened_at.into()),
    ],
    changing: &[
        text("summary", |alert| (&alert.summary).into()),
        text("advice", |alert| (&alert.advice).into()),
        int("count", |alert| alert.count.into()),
        int("seen_at", |alert| alert.seen_at.into()),
        int("told_at", |alert| alert.told_at.into()),
        int("told_count", |alert| alert.told_count.into()),
        text("acknowledged_by", |alert| {
            alert.acknowledged.as_ref().map(|(by, _)| by.as_str()).into()
        }),
        int("acknowledged_at", |alert| alert.acknowledged.as_ref().map(|(_, at)| *at).into()),
        int("ended_at", |alert| alert.ended_at.into()),
    ],
    on_conflict: Some(
        "(id) DO UPDATE SET summary = excluded.summary, advice = excluded.advice, \
         count = excluded.count, seen_at = excluded.seen_at, told_at = excluded.told_at, \
         told_count = excluded.told_count, acknowledged_by = excluded.acknowledged_by, \
         acknowledged_at = excluded.acknowledged_at, ended_at = excluded.ended_at",
    ),
    is_sealed: false,
};

/// How many changes alerts have seen.
static TURNS: Lookup =
    Lookup { name: "alert_turns", key: "id", columns: &[("version", Int)], lock: true };

/// The next one.
pub static TURN: Update<i64> = Update {
    name: "alert_turns",
    key: text("id", |_| "alerts".into()),
    columns: &[int("version", |version| (*version).into())],
    only_where: None,
};

/// Refuses what was decided on alerts that have changed since.
#[must_use]
pub fn guard(version: i64) -> Guard {
    Guard { on: &TURNS, id: "alerts".to_owned(), version }
}

/// How many changes alerts have seen. Whoever changes them reads this before anything else.
///
/// # Errors
/// The database cannot be read.
pub async fn get_turn(pool: &AnyPool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT version FROM alert_turns WHERE id = 'alerts'").fetch_one(pool).await
}

/// Those that are not over.
///
/// # Errors
/// The database cannot be read.
pub async fn list_open(pool: &AnyPool) -> Result<Vec<Alert>, sqlx::Error> {
    let sql = "SELECT * FROM alerts WHERE ended_at IS NULL ORDER BY id";
    sqlx::query(sql).fetch_all(pool).await?.iter().map(alert).collect()
}

/// A page of them before `cursor`, newest first: all, or those that are over, or are not. One more
/// than the page holds at most.
///
/// # Errors
/// The database cannot be read.
pub async fn list(
    pool: &AnyPool,
    is_over: Option<bool>,
    (cursor, limit): (Option<&AlertId>, i64),
) -> Result<Vec<Alert>, sqlx::Error> {
    let sql = match is_over {
        None => "SELECT * FROM alerts WHERE id < $1 ORDER BY id DESC LIMIT $2",
        Some(true) => {
            "SELECT * FROM alerts WHERE id < $1 AND ended_at IS NOT NULL ORDER BY id DESC LIMIT $2"
        }
        Some(false) => {
            "SELECT * FROM alerts WHERE id < $1 AND ended_at IS NULL ORDER BY id DESC LIMIT $2"
        }
    };
    let query = sqlx::query(sql).bind(cursor.map_or("~", AlertId::as_str)).bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(alert).collect()
}

/// An alert.
///
/// # Errors
/// The database cannot be read.
pub async fn get(pool: &AnyPool, id: &AlertId) -> Result<Option<Alert>, sqlx::Error> {
    let query = sqlx::query("SELECT * FROM alerts WHERE id = $1").bind(id.as_str());
    query.fetch_optional(pool).await?.as_ref().map(alert).transpose()
}

fn alert(row: &AnyRow) -> Result<Alert, sqlx::Error> {
    let at = |column| row.try_get(column).map(Moment::from_micros);
    let maybe_at =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    let kind: String = row.try_get("kind")?;
    let by: Option<String> = row.try_get("acknowledged_by")?;
    Ok(Alert {
        id: AlertId::from_text(row.try_get("id")?),
        key: row.try_get("key")?,
        kind: AlertKind::parse(&kind).ok_or_else(|| sqlx::Error::Decode(kind.into()))?,
        summary: row.try_get("summary")?,
        advice: row.try_get("advice")?,
        count: row.try_get("count")?,
        host: row.try_get("host")?,
        opened_at: at("opened_at")?,
        seen_at: at("seen_at")?,
        told_at: at("told_at")?,
        told_count: row.try_get("told_count")?,
        acknowledged: by.zip(maybe_at("acknowledged_at")?),
        ended_at: maybe_at("ended_at")?,
    })
}
