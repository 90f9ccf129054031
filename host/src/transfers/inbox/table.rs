//! The inbox in the database.

use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::db::bulk::{Table, Update, int, text};
use crate::id::{Id as _, MessageId};

use super::Item;

/// An item as it is stored first.
pub(super) struct Stored {
    pub(super) item: Item,
    pub(super) digest: String,
    pub(super) content: String,
    pub(super) due_at: Moment,
    pub(super) lease_until: Moment,
}

pub(super) static INBOX: Table<Stored> = Table {
    name: "inbox",
    fixed: &[
        text("id", |it| it.item.id.as_str().into()),
        text("env", |it| it.item.env.as_str().into()),
        text("rail", |it| (&it.item.rail).into()),
        text("routes", |it| it.item.routes_text().into()),
        text("source", |it| it.item.arrival.source().into()),
        text("name", |it| it.item.arrival.name().into()),
        text("digest", |it| (&it.digest).into()),
        text("content", |it| (&it.content).into()),
        int("received_at", |it| it.item.received_at.into()),
    ],
    changing: &[
        text("state", |_| "new".into()),
        text("done", |_| "[]".into()),
        int("tries", |_| 0.into()),
        int("due_at", |it| it.due_at.into()),
        int("lease_until", |it| it.lease_until.into()),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// How an item stands after it was tried.
pub(super) struct Tried {
    pub(super) id: MessageId,
    pub(super) state: &'static str,
    pub(super) done: String,
    pub(super) tries: i64,
    pub(super) due_at: Moment,
    pub(super) taken_at: Option<Moment>,
    pub(super) why: Option<String>,
    /// The version of the rail that read it last.
    pub(super) read_by: Option<String>,
}

pub(super) static INBOX_TRIED: Update<Tried> = Update {
    name: "inbox",
    key: text("id", |it| it.id.as_str().into()),
    columns: &[
        text("state", |it| it.state.into()),
        text("done", |it| (&it.done).into()),
        int("tries", |it| it.tries.into()),
        int("due_at", |it| it.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("taken_at", |it| it.taken_at.into()),
        text("why", |it| (&it.why).into()),
        text("read_by", |it| (&it.read_by).into()),
    ],
    only_where: None,
};

/// A file that lay ready: for which routes, its name, and the digest of what it says.
pub(super) type File = (String, String, String);

/// Whether a file was stored before.
pub(super) async fn is_stored(db: &Db, (routes, name, digest): &File) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM inbox WHERE source = 'file' AND routes = $1 \
               AND name = $2 AND digest = $3";
    let query = sqlx::query_scalar(sql).bind(routes).bind(name).bind(digest);
    let known: i64 = query.fetch_one(db.pool()).await?;
    Ok(known > 0)
}

/// A file that was put there once more and could not be read the first time is tried again: the
/// rail may be another one by now.
pub(super) async fn read_again(
    db: &Db,
    (routes, name, digest): &File,
    now: Moment,
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE inbox SET state = 'new', tries = 0, due_at = $4 WHERE source = 'file' \
               AND routes = $1 AND name = $2 AND digest = $3 AND state = 'unreadable'";
    let mut tx = db.write().await?;
    let query = sqlx::query(sql).bind(routes).bind(name).bind(digest);
    query.bind(now.micros()).execute(tx.conn()).await?;
    tx.commit().await
}

/// What this version of a rail has not read yet, and no other could, is tried again.
pub(super) async fn read_by_another(
    db: &Db,
    (rail, digest): (&str, &str),
    now: Moment,
) -> Result<u64, sqlx::Error> {
    let sql = "SELECT id FROM inbox WHERE rail = $1 \
               AND (state = 'unreadable' OR (state = 'unmatched' AND why IS NOT NULL)) \
               AND COALESCE(read_by, '') <> $2 LIMIT 100";
    let query = sqlx::query_scalar(sql).bind(rail).bind(digest);
    let ids: Vec<String> = query.fetch_all(db.pool()).await?;
    if ids.is_empty() {
        return Ok(0);
    }
    let mut tx = db.write().await?;
    let among = db.engine().among("id", "$2");
    let sql = format!(
        "UPDATE inbox SET state = 'new', tries = 0, due_at = $1 WHERE {among} \
         AND state IN ('unreadable', 'unmatched')"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(now.micros());
    let query = query.bind(serde_json::to_string(&ids).unwrap_or_default());
    let found = query.execute(tx.conn()).await?.rows_affected();
    tx.commit().await?;
    Ok(found)
}

/// Writes down how far an item was taken in, and keeps others from it for as long again.
pub(super) async fn go_on(db: &Db, item: &Item) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let until = tx.now(db.engine()).await?.after(limits::LEASE);
    let sql = "UPDATE inbox SET done = $2, lease_until = $3 WHERE id = $1 AND state = 'new'";
    let done = serde_json::to_string(&item.done).unwrap_or_default();
    let query = sqlx::query(sql).bind(item.id.as_str()).bind(done).bind(until.micros());
    query.execute(tx.conn()).await?;
    tx.commit().await
}

/// Claims what is due, at most so many.
pub(super) async fn claim(
    db: &Db,
    now: Moment,
    most: usize,
) -> Result<Vec<MessageId>, sqlx::Error> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let sql = "SELECT COUNT(*) FROM (SELECT id FROM inbox WHERE state = 'new' \
               AND due_at <= $1 LIMIT 1) due";
    let due: i64 = sqlx::query_scalar(sql).bind(now.micros()).fetch_one(db.pool()).await?;
    if due == 0 {
        return Ok(Vec::new());
    }
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?;
    let sql = "UPDATE inbox SET lease_until = $1 WHERE lease_until < $2 AND id IN (\
               SELECT id FROM inbox WHERE state = 'new' AND due_at <= $3 \
               AND lease_until < $2 ORDER BY due_at LIMIT $4) \
               RETURNING id";
    let mut claimed: Vec<String> = sqlx::query_scalar(sql)
        .bind(database_now.after(limits::LEASE).micros())
        .bind(database_now.micros())
        .bind(now.micros())
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_all(tx.conn())
        .await?;
    tx.commit().await?;
    claimed.sort_unstable();
    Ok(claimed.into_iter().map(MessageId::from_text).collect())
}
