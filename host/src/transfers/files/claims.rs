//! Who has a file, and what takes it out of his hands.

use serde_json::json;
use sqlx::AnyPool;

use crate::audit;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::db::bulk::{RowChange, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::id::{Id as _, IdGenerator, PaymentFileId, RouteId};
use crate::ledger::{Command, Guard};

use super::table::{COLUMNS, FileState, LIVING, PaymentFile, UNACKNOWLEDGED, file};

/// Files that are claimed at a time.
const CLAIM: usize = 20;

/// Raised by every claim and every change.
static FILE_FENCES: Lookup =
    Lookup { name: "payment_files", key: "id", columns: &[("fence", Int)], lock: true };

static TAKEN_AWAY: Update<PaymentFile> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        int("fence", |file| (file.fence + 1).into()),
        int("lease_until", |_| 0.into()),
        int("due_at", |file| file.due_at.into()),
    ],
    only_where: None,
};

static MADE_AGAIN: Update<PaymentFile> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        text("state", |_| FileState::Closed.as_str().into()),
        int("fence", |file| (file.fence + 1).into()),
        int("lease_until", |_| 0.into()),
    ],
    only_where: None,
};

impl PaymentFile {
    /// Refuses what was decided about a file that anybody has changed meanwhile.
    #[must_use]
    pub fn untouched(&self) -> Guard {
        Guard { on: &FILE_FENCES, id: self.id.to_string(), version: self.fence }
    }

    /// Takes it out of the hands of whoever has it; with [`PaymentFile::untouched`].
    #[must_use]
    pub fn taken_away(&self, now: Moment) -> RowChange {
        // What kept one from being made may be out of it.
        let due_at = match self.state {
            FileState::Closed => self.due_at.min(now),
            _ => self.due_at,
        };
        TAKEN_AWAY.change(&Self { due_at, ..self.clone() })
    }

    /// The same, for one that was made: it is made again; with [`PaymentFile::untouched`].
    #[must_use]
    pub fn to_be_made_again(&self) -> RowChange {
        MADE_AGAIN.change(self)
    }
}

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

/// Writes down that a network has both refused and acknowledged a file.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn contradict(db: &Db, file: &PaymentFile) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE payment_files SET is_contradicted = 1 WHERE id = $1";
    sqlx::query(sql).bind(file.id.as_str()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Whether a network contradicts itself about a file of this route, and nobody has decided yet.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_contradicted(pool: &AnyPool, route: &RouteId) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM payment_files f JOIN cases c ON c.subject_id = f.id \
               WHERE f.route_id = $1 AND f.is_contradicted = 1 \
               AND c.kind = 'file_contradicted' AND c.status = 'open'";
    let found: i64 = sqlx::query_scalar(sql).bind(route.as_str()).fetch_one(pool).await?;
    Ok(found > 0)
}

/// Changes a file from outside its claim: whoever holds it does not write any more. Answers
/// whether the network may have had it, and had not said yet what it makes of as many deliveries.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn answered(
    db: &Db,
    file: &PaymentFile,
    (to, code, message): (FileState, &str, &str),
    now: Moment,
) -> Result<bool, sqlx::Error> {
    let mut tx = db.write().await?;
    // One that is about to be delivered again may have arrived the first time, and one that was
    // held back after a restore before that.
    let sql = format!(
        "UPDATE payment_files SET state = $2, code = $3, message = $4, answered_at = $5, \
         may_have_left = 1, fence = fence + 1, lease_until = 0 WHERE id = $1 \
         AND deliveries = $6 AND (state IN ({UNACKNOWLEDGED}) \
         OR (state = 'assembled' AND (deliveries > 0 OR restored_at IS NOT NULL)))"
    );
    let done = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(file.id.as_str())
        .bind(to.as_str())
        .bind(code)
        .bind(message)
        .bind(now.micros())
        .bind(file.deliveries)
        .execute(tx.conn())
        .await?;
    tx.commit().await?;
    Ok(done.rows_affected() == 1)
}

/// The command that holds a file back which may have left before the database was restored.
pub(super) fn hold_restored(file: &PaymentFile, (ids, now): (&IdGenerator, Moment)) -> Command<()> {
    let record = audit::Change {
        actor: "host".to_owned(),
        address: String::new(),
        action: "file.hold",
        subject_type: "file",
        subject_id: file.id.to_string(),
        before: Some(json!({ "is_held": file.is_held })),
        after: Some(json!({ "is_held": true, "reason": "the database was restored" })),
    };
    let mut rows = vec![HELD_RESTORED.change(file)];
    rows.extend((!file.is_held).then(|| record.row(ids, now)));
    Command::rows(rows).guards([file.untouched()])
}

static HELD_RESTORED: Update<PaymentFile> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        int("is_held", |_| 1.into()),
        int("restored_at", |file| file.restored_at.into()),
        int("may_have_left", |_| 1.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |file| (file.fence + 1).into()),
    ],
    only_where: None,
};
