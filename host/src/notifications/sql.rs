//! Statements about what people are to be told.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, int, text};
use crate::db::{Db, Engine};
use crate::id::{Id as _, NotificationId};

use super::Channel;

/// A new one.
pub struct New {
    /// Its id.
    pub id: NotificationId,
    /// How it leaves.
    pub channel: Channel,
    /// What it tells.
    pub kind: &'static str,
    /// What it is about.
    pub subject_id: String,
    /// What it says, sealed.
    pub content: String,
    /// When it was written.
    pub created_at: Moment,
}

/// What is to be told.
pub static NOTIFICATIONS: Table<New> = Table {
    name: "notifications",
    fixed: &[
        text("id", |new| new.id.as_str().into()),
        text("channel", |new| new.channel.as_str().into()),
        text("kind", |new| new.kind.into()),
        text("subject_id", |new| (&new.subject_id).into()),
        int("created_at", |new| new.created_at.into()),
    ],
    changing: &[
        text("content", |new| (&new.content).into()),
        text("status", |_| "queued".into()),
        int("tries", |_| 0.into()),
        int("due_at", |new| new.created_at.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |_| 0.into()),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// One that a host has taken to send.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) id: NotificationId,
    pub(super) content: String,
    pub(super) tries: i64,
    pub(super) fence: i64,
}

/// What came of a try.
pub(super) enum Ended {
    /// It was taken.
    Sent,
    /// It is tried again then.
    Later(Moment, String),
    /// It is not.
    GivenUp(String),
}

/// Takes what is due by a channel, for a while: alerts first, then the oldest.
pub(super) async fn claim(
    db: &Db,
    (channel, limit): (Channel, i64),
    now: Moment,
) -> Result<Vec<Taken>, sqlx::Error> {
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?;
    let skip = match db.engine() {
        Engine::Postgres => "FOR UPDATE SKIP LOCKED",
        Engine::Sqlite => "",
    };
    let mut claimed = Vec::new();
    // Each in the order of its index, which has the very condition: a backlog is not sorted for the
    // first few of it.
    for which in ["AND kind = 'alert'", ""] {
        let left = limit - i64::try_from(claimed.len()).unwrap_or(limit);
        if left <= 0 {
            break;
        }
        let sql = format!(
            "UPDATE notifications SET lease_until = $1, fence = fence + 1 WHERE id IN (\
             SELECT id FROM notifications WHERE status = 'queued' {which} AND channel = $5 \
             AND due_at <= $2 AND lease_until < $3 ORDER BY due_at LIMIT $4 {skip}) \
             RETURNING id, content, tries, fence"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(database_now.after(limits::NOTIFICATION_LEASE).micros())
            .bind(now.micros())
            .bind(database_now.micros())
            .bind(left)
            .bind(channel.as_str())
            .fetch_all(tx.conn())
            .await?;
        claimed.extend(rows);
    }
    tx.commit().await?;
    claimed.iter().map(taken).collect()
}

/// Writes down what came of a try, unless somebody else has taken it meanwhile. What it said is kept
/// no longer than it is needed.
pub(super) async fn end(
    db: &Db,
    taken: &Taken,
    (ended, now): (&Ended, Moment),
) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let query = match ended {
        Ended::Sent => sqlx::query(
            "UPDATE notifications SET status = 'sent', content = '', error = NULL, ended_at = $3, \
             tries = tries + 1, lease_until = 0 WHERE id = $1 AND fence = $2",
        )
        .bind(taken.id.as_str())
        .bind(taken.fence)
        .bind(now.micros()),
        Ended::Later(due, why) => sqlx::query(
            "UPDATE notifications SET due_at = $3, error = $4, tries = tries + 1, \
             lease_until = 0 WHERE id = $1 AND fence = $2",
        )
        .bind(taken.id.as_str())
        .bind(taken.fence)
        .bind(due.micros())
        .bind(why.as_str()),
        Ended::GivenUp(why) => sqlx::query(
            "UPDATE notifications SET status = 'given_up', content = '', error = $4, \
             ended_at = $3, tries = tries + 1, lease_until = 0 WHERE id = $1 AND fence = $2",
        )
        .bind(taken.id.as_str())
        .bind(taken.fence)
        .bind(now.micros())
        .bind(why.as_str()),
    };
    query.execute(tx.conn()).await?;
    tx.commit().await
}

/// What was taken by a host that is there no more: where there is one host only, nobody has any.
///
/// # Errors
/// The database cannot be written.
pub async fn release_leases(db: &Db) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE notifications SET lease_until = 0, fence = fence + 1 \
               WHERE status = 'queued' AND lease_until > 0";
    sqlx::query(sql).execute(tx.conn()).await?;
    tx.commit().await
}

/// One as operators see it: never what it says.
pub struct Stored {
    /// Its id.
    pub id: NotificationId,
    /// `email` or `webhook`.
    pub channel: String,
    /// What it tells.
    pub kind: String,
    /// What it is about.
    pub subject_id: String,
    /// `queued`, `sent` or `given_up`.
    pub status: String,
    /// How often it was tried.
    pub tries: i64,
    /// Why it was not taken.
    pub error: Option<String>,
    /// When it was written.
    pub created_at: Moment,
    /// When it is tried next.
    pub due_at: Moment,
    /// When it was sent or given up.
    pub ended_at: Option<Moment>,
}

/// A page of them before `cursor`, newest first; an empty status means any.
///
/// # Errors
/// The database cannot be read.
pub async fn list(
    pool: &AnyPool,
    status: &str,
    (cursor, limit): (Option<&NotificationId>, i64),
) -> Result<Vec<Stored>, sqlx::Error> {
    let sql = "SELECT id, channel, kind, subject_id, status, tries, error, created_at, due_at, \
               ended_at FROM notifications WHERE id < $1 AND ($2 = '' OR status = $2) \
               ORDER BY id DESC LIMIT $3";
    let query = sqlx::query(sql).bind(cursor.map_or("~", NotificationId::as_str)).bind(status);
    query.bind(limit + 1).fetch_all(pool).await?.iter().map(stored).collect()
}

/// How many were given up since an instant.
///
/// # Errors
/// The database cannot be read.
pub async fn given_up_since(pool: &AnyPool, since: Moment) -> Result<i64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM notifications WHERE status = 'given_up' AND ended_at > $1";
    sqlx::query_scalar(sql).bind(since.micros()).fetch_one(pool).await
}

fn taken(row: &AnyRow) -> Result<Taken, sqlx::Error> {
    Ok(Taken {
        id: NotificationId::from_text(row.try_get("id")?),
        content: row.try_get("content")?,
        tries: row.try_get("tries")?,
        fence: row.try_get("fence")?,
    })
}

fn stored(row: &AnyRow) -> Result<Stored, sqlx::Error> {
    let at = |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    Ok(Stored {
        id: NotificationId::from_text(row.try_get("id")?),
        channel: row.try_get("channel")?,
        kind: row.try_get("kind")?,
        subject_id: row.try_get("subject_id")?,
        status: row.try_get("status")?,
        tries: row.try_get("tries")?,
        error: row.try_get("error")?,
        created_at: at("created_at")?.unwrap_or_default(),
        due_at: at("due_at")?.unwrap_or_default(),
        ended_at: at("ended_at")?,
    })
}
