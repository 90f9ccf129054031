//! Statements about batches.

use std::collections::HashMap;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::Db;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{BatchId, Id as _, MerchantId, WalletId};
use crate::ledger::Guard;
use crate::money::{Currency, Minor};
use crate::payouts::model::{Payout, Status};
use crate::payouts::sql::payout;

use super::model::{Batch, Counts, Stage};

/// New batches.
pub static BATCHES: Table<Batch> = Table {
    name: "batches",
    fixed: &[
        text("id", |batch| batch.id.as_str().into()),
        text("merchant_id", |batch| batch.merchant_id.as_str().into()),
        text("env", |batch| batch.env.as_str().into()),
        text("wallet_id", |batch| batch.wallet_id.as_str().into()),
        text("currency", |batch| batch.currency.as_str().into()),
        int("total_count", |batch| batch.total_count.into()),
        int("total_amount_minor", |batch| batch.total_amount.into()),
        text("maker", |batch| (&batch.maker).into()),
        int("created_at", |batch| batch.created_at.into()),
    ],
    changing: BATCH_STATES.columns,
    on_conflict: None,
    is_sealed: true,
};

/// What changes about a batch as it goes along.
pub static BATCH_STATES: Update<Batch> = Update {
    name: "batches",
    key: text("id", |batch| batch.id.as_str().into()),
    columns: &[
        text("stage", |batch| batch.stage.as_str().into()),
        int("version", |batch| batch.version.into()),
        text("reason", |batch| (&batch.reason).into()),
        int("approved_at", |batch| batch.approved_at.into()),
        int("completed_at", |batch| batch.completed_at.into()),
    ],
    only_where: None,
};

static VERSIONS: Lookup =
    Lookup { name: "batches", key: "id", columns: &[("version", Int)], lock: true };

/// The batch as it was read: a change of another one is refused.
#[must_use]
pub fn version(batch: &Batch) -> Guard {
    Guard { on: &VERSIONS, id: batch.id.to_string(), version: batch.version }
}

/// A batch, whoever's it is; for jobs and the operator.
///
/// # Errors
/// The database cannot be read.
pub async fn get(pool: &AnyPool, id: &BatchId) -> Result<Option<Batch>, sqlx::Error> {
    let sql = "SELECT * FROM batches WHERE id = $1";
    let row = sqlx::query(sql).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| batch(&row)).transpose()
}

/// Which batches are wanted.
#[derive(Debug, Default)]
pub struct Filter {
    /// At this stage; at any, if none.
    pub stage: Option<Stage>,
    /// Of this merchant; of any, if empty.
    pub merchant: String,
    /// Before this id; from the newest, if none.
    pub cursor: Option<String>,
    /// How many.
    pub limit: i64,
}

/// Batches, newest first, and one more than wanted.
///
/// # Errors
/// The database cannot be read.
pub async fn list(pool: &AnyPool, filter: &Filter) -> Result<Vec<Batch>, sqlx::Error> {
    let sql = match filter.stage {
        Some(_) => {
            "SELECT * FROM batches WHERE stage = $1 AND id < $2 \
             AND ($3 = '' OR merchant_id = $3) ORDER BY id DESC LIMIT $4"
        }
        None => {
            "SELECT * FROM batches WHERE $1 = '' AND id < $2 \
             AND ($3 = '' OR merchant_id = $3) ORDER BY id DESC LIMIT $4"
        }
    };
    let rows = sqlx::query(sql)
        .bind(filter.stage.map_or("", Stage::as_str))
        .bind(filter.cursor.as_deref().unwrap_or("~"))
        .bind(filter.merchant.as_str())
        .bind(filter.limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(batch).collect()
}

/// Batches that are not known to be complete, and none of whose payouts is under way. It is asked
/// all the time, so it reads the few that are open, and not all of a stage.
///
/// # Errors
/// The database cannot be read.
pub async fn list_ended(pool: &AnyPool, limit: i64) -> Result<Vec<Batch>, sqlx::Error> {
    let sql = "SELECT * FROM batches b WHERE b.completed_at IS NULL \
               AND b.stage || '' IN ('approved', 'cancelled', 'rejected') AND NOT EXISTS \
               (SELECT 1 FROM payouts p WHERE p.in_batch = b.id AND p.holds_batch = 1) LIMIT $1";
    let rows = sqlx::query(sql).bind(limit).fetch_all(pool).await?;
    rows.iter().map(batch).collect()
}

/// Batches that wait for somebody, though none of their payouts does.
///
/// # Errors
/// The database cannot be read.
pub async fn list_emptied(pool: &AnyPool, limit: i64) -> Result<Vec<Batch>, sqlx::Error> {
    let sql = "SELECT * FROM batches b WHERE b.completed_at IS NULL \
               AND b.stage || '' IN ('awaiting_approval', 'flagged_held') AND NOT EXISTS \
               (SELECT 1 FROM payouts p WHERE p.in_batch = b.id AND p.holds_batch = 1) LIMIT $1";
    let rows = sqlx::query(sql).bind(limit).fetch_all(pool).await?;
    rows.iter().map(batch).collect()
}

/// What the payouts of these batches come to, by batch.
///
/// # Errors
/// The database cannot be read.
pub async fn count(db: &Db, ids: &[&BatchId]) -> Result<HashMap<String, Counts>, sqlx::Error> {
    let sql = format!(
        "SELECT in_batch, status, COUNT(*) AS n, MAX(completed_at) AS ended_at FROM payouts \
         WHERE {} GROUP BY in_batch, status",
        db.engine().among("in_batch", "$1")
    );
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    let mut counts: HashMap<String, Counts> = HashMap::new();
    for row in sqlx::query(AssertSqlSafe(sql)).bind(ids).fetch_all(db.pool()).await? {
        let status = Status::parse(row.try_get("status")?);
        let status = status.ok_or_else(|| sqlx::Error::Decode("an unknown status".into()))?;
        let ended_at = row.try_get::<Option<i64>, _>("ended_at")?.map(Moment::from_micros);
        let of = counts.entry(row.try_get("in_batch")?).or_default();
        of.add(status, (row.try_get("n")?, ended_at));
    }
    Ok(counts)
}

/// Which payouts of a batch are wanted.
#[derive(Debug, Default)]
pub struct Items {
    /// In this status; any, if empty.
    pub status: String,
    /// Before this id; from the last one, if none.
    pub cursor: Option<String>,
    /// How many.
    pub limit: i64,
}

/// Payouts of a batch, the last one first, and one more than wanted.
///
/// # Errors
/// The database cannot be read.
pub async fn list_items(
    pool: &AnyPool,
    id: &BatchId,
    wanted: &Items,
) -> Result<Vec<Payout>, sqlx::Error> {
    let sql = "SELECT * FROM payouts WHERE in_batch = $1 AND id < $2 \
               AND ($3 = '' OR status = $3) ORDER BY id DESC LIMIT $4";
    let rows = sqlx::query(sql)
        .bind(id.as_str())
        .bind(wanted.cursor.as_deref().unwrap_or("~"))
        .bind(wanted.status.as_str())
        .bind(wanted.limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(payout).collect()
}

/// Whose wallet it is not that batches of a currency are paid from: the environment and the
/// currency of a merchant's wallet.
///
/// # Errors
/// The database cannot be read.
pub async fn wallet_of(
    pool: &AnyPool,
    merchant: &MerchantId,
    id: &str,
) -> Result<Option<(String, String)>, sqlx::Error> {
    let sql = "SELECT env, currency FROM wallets WHERE id = $1 AND merchant_id = $2";
    let row = sqlx::query(sql).bind(id).bind(merchant.as_str()).fetch_optional(pool).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// Reads a row of the table.
pub(super) fn batch(row: &AnyRow) -> Result<Batch, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let odd = || sqlx::Error::Decode("an odd batch".into());
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    Ok(Batch {
        id: BatchId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: Env::parse(&text("env")?).ok_or_else(odd)?,
        wallet_id: WalletId::from_text(text("wallet_id")?),
        currency: Currency::parse(&text("currency")?).ok_or_else(odd)?,
        total_count: row.try_get("total_count")?,
        total_amount: row.try_get("total_amount_minor").map(Minor::new)?,
        maker: text("maker")?,
        created_at: moment("created_at")?.unwrap_or_default(),
        stage: Stage::parse(&text("stage")?).ok_or_else(odd)?,
        version: row.try_get("version")?,
        reason: row.try_get("reason")?,
        approved_at: moment("approved_at")?,
        completed_at: moment("completed_at")?,
    })
}
