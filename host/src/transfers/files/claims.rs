//! Who has a file, and what takes it out of his hands.

use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::id::{Id as _, PaymentFileId};

use super::table::{COLUMNS, FileState, LIVING, PaymentFile, UNACKNOWLEDGED, file};

/// Files that are claimed at a time.
const CLAIM: usize = 20;

/// Claims files that something is to be done about and that nobody holds.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn claim_due(db: &Db, now: Moment) -> Result<Vec<PaymentFile>, sqlx::Error> {
    let database_now = db.now().await?.micros();
    let sql = format!(
        "SELECT id FROM payment_files WHERE {LIVING} AND due_at <= $1 AND lease_until < $2 \
         ORDER BY CASE env WHEN 'live' THEN 0 ELSE 1 END, due_at LIMIT {CLAIM}"
    );
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(now.micros()).bind(database_now);
    let due: Vec<String> = query.fetch_all(db.pool()).await?;
    let mut claimed = Vec::new();
    for id in due {
        claimed.extend(claim_one(db, &PaymentFileId::from_text(id)).await?);
    }
    Ok(claimed)
}

/// Claims a file, due or not, unless somebody holds it or nothing is to be done about it.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn claim_one(
    db: &Db,
    id: &PaymentFileId,
) -> Result<Option<PaymentFile>, sqlx::Error> {
    let mut tx = db.write().await?;
    let now = tx.now(db.engine()).await?;
    let sql = format!(
        "UPDATE payment_files SET lease_until = $1, fence = fence + 1 \
         WHERE id = $2 AND lease_until < $3 AND {LIVING} RETURNING {COLUMNS}"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(now.after(limits::FILE_LEASE).micros())
        .bind(id.as_str())
        .bind(now.micros())
        .fetch_optional(tx.conn())
        .await?;
    tx.commit().await?;
    row.as_ref().map(file).transpose()
}

/// Puts off what could not be done, for whoever claims it next.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn put_off(
    db: &Db,
    file: &PaymentFile,
    (at, why): (Moment, &str),
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE payment_files SET due_at = $3, lease_until = 0, message = $4 \
               WHERE id = $1 AND fence = $2";
    let mut tx = db.write().await?;
    let query = sqlx::query(sql).bind(file.id.as_str()).bind(file.fence);
    query.bind(at.micros()).bind(why).execute(tx.conn()).await?;
    tx.commit().await
}

/// Holds back everything over a route that has not left: its network contradicts itself.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn hold_unsent(db: &Db, file: &PaymentFile) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE payment_files SET code = 'contradicted' WHERE id = $1";
    sqlx::query(sql).bind(file.id.as_str()).execute(tx.conn()).await?;
    let sql = "UPDATE payment_files SET is_held = 1, fence = fence + 1, lease_until = 0 \
               WHERE route_id = $1 AND state IN ('collecting', 'closed', 'assembled')";
    sqlx::query(sql).bind(file.route_id.as_str()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Changes a file from outside its claim: whoever holds it does not write any more. Answers
/// whether the network may have had it and had not said yet what it makes of it.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn answered(
    db: &Db,
    id: &PaymentFileId,
    (to, code, message): (FileState, &str, &str),
    now: Moment,
) -> Result<bool, sqlx::Error> {
    let mut tx = db.write().await?;
    // One that is about to be delivered again may have arrived the first time.
    let sql = format!(
        "UPDATE payment_files SET state = $2, code = $3, message = $4, answered_at = $5, \
         may_have_left = 1, fence = fence + 1, lease_until = 0 WHERE id = $1 \
         AND (state IN ({UNACKNOWLEDGED}) OR (state = 'assembled' AND deliveries > 0))"
    );
    let done = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .bind(to.as_str())
        .bind(code)
        .bind(message)
        .bind(now.micros())
        .execute(tx.conn())
        .await?;
    tx.commit().await?;
    Ok(done.rows_affected() == 1)
}

/// Holds a file back that may have left before the database was restored, and says so.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn hold_restored(
    db: &Db,
    file: &PaymentFile,
    code: &str,
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE payment_files SET is_held = 1, code = $3, lease_until = 0, may_have_left = 1 \
               WHERE id = $1 AND fence = $2";
    let mut tx = db.write().await?;
    let query = sqlx::query(sql).bind(file.id.as_str()).bind(file.fence).bind(code);
    query.execute(tx.conn()).await?;
    tx.commit().await
}
