//! The payments of files, as they stand in the database, and the numbers that files are made with.

use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Update, text};
use crate::db::{Db, Tx};
use crate::error::{ErrorCode, Problem};
use crate::id::{AttemptId, PaymentFileId};

use super::closing::JOINS;
use super::table::{self, PaymentFile};

/// What the network calls a payment of a file.
pub(super) struct EntryKey {
    pub(super) attempt: AttemptId,
    pub(super) key: String,
}

pub(super) static ENTRY_KEYS: Update<EntryKey> = Update {
    name: "attempts",
    key: text("id", |entry| entry.attempt.as_str().into()),
    columns: &[text("network_id", |entry| (&entry.key).into())],
    only_where: Some("t.state = 'open'"),
};

/// What a file's payments and its own numbers are made from.
pub(super) struct Numbers {
    pub(super) number: i64,
    pub(super) number_of_day: i64,
    pub(super) first_entry: i64,
}

/// The next numbers in a rail and environment, or of those counted by one value of a setting there,
/// for so many entries.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn allot(
    db: &Db,
    (file, numbered_by): (&PaymentFile, Option<&str>),
    entries: i64,
) -> Result<Numbers, sqlx::Error> {
    let rail = format!("{}/{}", file.env, file.rail);
    let place = numbered_by.map_or_else(|| rail.clone(), |by| format!("{rail}/{by}"));
    let mut tx = db.write().await?;
    // Whoever else wants numbers there waits for this row. Where the row is new, it may have been
    // forgotten in a restore, which has raised the rail's own: no number comes twice.
    let sql = "INSERT INTO file_numbers (place, files, entries, day, of_day) VALUES ($1, \
               1 + COALESCE((SELECT r.files FROM file_numbers r WHERE r.place = $3), 0), \
               $2 + COALESCE((SELECT r.entries FROM file_numbers r WHERE r.place = $3), 0), \
               COALESCE((SELECT r.day FROM file_numbers r WHERE r.place = $3), ''), \
               COALESCE((SELECT r.of_day FROM file_numbers r WHERE r.place = $3), 0)) \
               ON CONFLICT (place) DO UPDATE SET \
               files = file_numbers.files + 1, entries = file_numbers.entries + $2 \
               RETURNING files, entries, day, of_day";
    let query = sqlx::query(sql).bind(&place).bind(entries).bind(&rail);
    let row = query.fetch_one(tx.conn()).await?;
    let may_be_forgotten = file.business_date <= row.try_get::<String, _>("day")?;
    let skipped: i64 = if may_be_forgotten { row.try_get("of_day")? } else { 0 };
    let sql = "INSERT INTO file_days (place, day, files) VALUES ($1, $2, $3) \
               ON CONFLICT (place, day) DO UPDATE SET files = file_days.files + 1 RETURNING files";
    let query = sqlx::query_scalar(sql).bind(&place).bind(&file.business_date);
    let number_of_day: i64 = query.bind(skipped + 1).fetch_one(tx.conn()).await?;
    tx.commit().await?;
    Ok(Numbers {
        number: row.try_get("files")?,
        number_of_day,
        first_entry: row.try_get::<i64, _>("entries")? - entries + 1,
    })
}

/// Makes the work of all payments in a file due.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn make_due(db: &Db, id: &PaymentFileId, at: Moment) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE transfers SET due_at = $2, nudges = nudges + 1 WHERE id IN \
               (SELECT transfer_id FROM attempts WHERE file_id = $1 AND state = 'open')";
    sqlx::query(sql).bind(id.as_str()).bind(at.micros()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Moves payments out of a file into another one that nobody has closed.
///
/// # Errors
/// `state_conflict` where somebody has changed the file, or closed the other one; the database
/// cannot be written.
pub(super) async fn shift(
    db: &Db,
    attempts: &[AttemptId],
    (from, to): (&PaymentFile, &PaymentFile),
) -> Result<(), Problem> {
    let mut tx = db.write().await?;
    untouched(&mut tx, from).await?;
    // Whoever wants to close it waits.
    let sql = "UPDATE payment_files SET due_at = due_at WHERE id = $1 AND is_closed = 0";
    let open = sqlx::query(sql).bind(to.id.as_str()).execute(tx.conn()).await?;
    if open.rows_affected() != 1 {
        return Err(Problem::new(ErrorCode::StateConflict));
    }
    move_in(&mut tx, db, attempts, (from, to)).await?;
    Ok(tx.commit().await?)
}

/// Puts payments that are too much for a file into a further one with the same terms, which is
/// made with them in it.
///
/// # Errors
/// `state_conflict` where somebody has changed the file; the database cannot be written.
pub(super) async fn split(
    db: &Db,
    attempts: &[AttemptId],
    (from, to): (&PaymentFile, &PaymentFile),
) -> Result<(), Problem> {
    let mut tx = db.write().await?;
    untouched(&mut tx, from).await?;
    table::insert(&mut tx, to, to.id.as_str()).await?;
    move_in(&mut tx, db, attempts, (from, to)).await?;
    Ok(tx.commit().await?)
}

/// Takes out of a file what has ended since it was made before: it is made without.
pub(super) async fn take_out_ended(db: &Db, file: &PaymentFile) -> Result<(), Problem> {
    let mut tx = db.write().await?;
    untouched(&mut tx, file).await?;
    let sql = "UPDATE attempts SET file_id = NULL WHERE file_id = $1 AND state <> 'open' \
               AND network_id IS NOT NULL";
    sqlx::query(sql).bind(file.id.as_str()).execute(tx.conn()).await?;
    Ok(tx.commit().await?)
}

/// Whoever was overtaken at a file moves nothing out of it: it may have left with everything.
async fn untouched(tx: &mut Tx, file: &PaymentFile) -> Result<(), Problem> {
    let sql = "UPDATE payment_files SET fence = fence WHERE id = $1 AND fence = $2";
    let query = sqlx::query(sql).bind(file.id.as_str()).bind(file.fence);
    match query.execute(tx.conn()).await?.rows_affected() {
        1 => Ok(()),
        _ => Err(Problem::new(ErrorCode::StateConflict)),
    }
}

async fn move_in(
    tx: &mut Tx,
    db: &Db,
    attempts: &[AttemptId],
    (from, to): (&PaymentFile, &PaymentFile),
) -> Result<(), sqlx::Error> {
    let ids: Vec<&str> = attempts.iter().map(AttemptId::as_str).collect();
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    let among = db.engine().among("id", "$3");
    let sql = format!(
        "UPDATE attempts SET file_id = $1 WHERE file_id = $2 AND state = 'open' AND {among}"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(to.id.as_str()).bind(from.id.as_str());
    query.bind(&ids).execute(tx.conn()).await?;
    let among = db.engine().among("a.id", "$2");
    let sql = format!(
        "UPDATE transfers SET due_at = $1 WHERE id IN \
         (SELECT a.transfer_id FROM attempts a WHERE {among})"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(to.settles_at.micros()).bind(&ids);
    query.execute(tx.conn()).await?;
    Ok(())
}

/// Whether payments that may join a closing still wait in the lane of its route.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_waited_for(pool: &AnyPool, file: &PaymentFile) -> Result<bool, sqlx::Error> {
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT 1 AS one FROM transfers WHERE route_id = $1 \
         AND due_at <= $2 AND {JOINS} LIMIT 1) w"
    );
    let found: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(file.route_id.as_str())
        .bind(file.closes_at.micros())
        .fetch_one(pool)
        .await?;
    Ok(found > 0)
}
