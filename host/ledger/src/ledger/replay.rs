//! What became of an idempotency key, read outside the writer.

use crate::db::Db;
use crate::error::Problem;

use super::command::{Done, Reply, Reservation};
use super::state::Reserved;

/// What a request with this key is told if the key was used before; nothing if it was not.
///
/// # Errors
/// `idempotency_conflict` or `idempotency_key_conflict` where the key stands for another
/// request.
pub async fn replay<T>(db: &Db, reservation: &Reservation) -> Result<Option<Done<T>>, Problem> {
    match find(db, (&reservation.key, reservation.expires)).await? {
        Some(reserved) => reserved.answer(reservation).map(Some),
        None => Ok(None),
    }
}

/// The reply stored under a key that does not expire, if there is one yet.
///
/// # Errors
/// The database cannot be read.
pub async fn stored_reply(db: &Db, key: &str) -> Result<Option<Reply>, Problem> {
    Ok(find(db, (key, false)).await?.and_then(|reserved| reserved.reply))
}

async fn find(db: &Db, (key, expires): (&str, bool)) -> Result<Option<Reserved>, Problem> {
    use sqlx::Row as _;
    let sql = match expires {
        false => {
            "SELECT fingerprint, subject, resource_id, status, response \
             FROM idempotency_keys WHERE key = $1"
        }
        true => {
            "SELECT fingerprint, '' AS subject, resource_id, status, response \
             FROM expiring_keys WHERE key = $1"
        }
    };
    let row = sqlx::query(sql).bind(key).fetch_optional(db.pool()).await?;
    let Some(row) = row else { return Ok(None) };
    let status: Option<i64> = row.try_get("status")?;
    let status = status.and_then(|status| u16::try_from(status).ok());
    let body: Option<String> = row.try_get("response")?;
    Ok(Some(Reserved {
        fingerprint: row.try_get("fingerprint")?,
        subject: row.try_get("subject")?,
        resource_id: row.try_get("resource_id")?,
        reply: status.zip(body).map(|(status, body)| Reply { status, body }),
    }))
}
