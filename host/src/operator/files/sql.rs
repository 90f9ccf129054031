//! Statements about files of payments, as operators see and change them.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Update, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::lookup::Lookup;
use crate::id::{PaymentFileId, RouteId};
use crate::money::{Currency, Minor};
use crate::transfers::files::closing::JOINS;

/// What decides whether an operator may change a file.
pub(super) static FILES: Lookup = Lookup {
    name: "payment_files",
    key: "id",
    columns: &[("state", Text), ("is_held", Int), ("may_have_left", Int), ("fence", Int)],
    lock: true,
};

/// A file that is taken out of the hands of whoever has it: his fence is too low from now on.
pub(super) struct Taken {
    pub(super) id: PaymentFileId,
    pub(super) is_held: bool,
    pub(super) due_at: Moment,
    pub(super) fence: i64,
}

/// Held back, or let go.
pub(super) static HELD: Update<Taken> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        int("is_held", |file| file.is_held.into()),
        int("due_at", |file| file.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |file| file.fence.into()),
    ],
    only_where: None,
};

/// A window that is closed before its time.
pub(super) struct Closed {
    pub(super) id: PaymentFileId,
    pub(super) at: Moment,
    pub(super) business_date: String,
    pub(super) local_time: String,
    pub(super) fence: i64,
}

pub(super) static CLOSED: Update<Closed> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        int("closes_at", |file| file.at.into()),
        int("due_at", |file| file.at.into()),
        text("business_date", |file| (&file.business_date).into()),
        text("local_time", |file| (&file.local_time).into()),
        int("lease_until", |_| 0.into()),
        int("fence", |file| file.fence.into()),
    ],
    only_where: None,
};

/// To be delivered, as if it had not been yet. That it may have left stays known.
pub(super) static TO_DELIVER: Update<Taken> = Update {
    name: "payment_files",
    key: text("id", |file| file.id.as_str().into()),
    columns: &[
        text("state", |_| "assembled".into()),
        // Whoever asks for this has decided what became of it before a restore.
        int("restored_at", |file| file.due_at.into()),
        int("due_at", |file| file.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |file| file.fence.into()),
    ],
    only_where: None,
};

/// How many payments are in a file, and what recipients get by them.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn count_payments(
    pool: &AnyPool,
    file: &PaymentFileId,
) -> Result<(i64, Minor), sqlx::Error> {
    let sql = "SELECT COUNT(*) AS payments, CAST(COALESCE(SUM(p.amount_minor), 0) AS BIGINT) \
               AS amount_minor FROM attempts a JOIN payouts p ON p.id = a.transfer_id \
               WHERE a.file_id = $1";
    let row = sqlx::query(sql).bind(file.as_str()).fetch_one(pool).await?;
    Ok((row.try_get("payments")?, Minor::new(row.try_get("amount_minor")?)))
}

/// How many payments wait over a route until an instant within these two.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn count_waiting(
    pool: &AnyPool,
    route: &RouteId,
    (from, before): (Moment, Moment),
) -> Result<i64, sqlx::Error> {
    let sql = format!(
        "SELECT COUNT(*) FROM transfers WHERE route_id = $1 AND due_at >= $2 AND due_at < $3 \
         AND {JOINS}"
    );
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(route.as_str());
    query.bind(from.micros()).bind(before.micros()).fetch_one(pool).await
}

/// A payment of a file.
pub(super) struct Payment {
    pub(super) attempt: String,
    pub(super) payout: String,
    pub(super) merchant: String,
    pub(super) reference: String,
    pub(super) entry_key: Option<String>,
    pub(super) state: String,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) currency: Currency,
    pub(super) amount: Minor,
}

/// A page of a file's payments, newest first, and one more where there are more.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_payments(
    pool: &AnyPool,
    file: &PaymentFileId,
    (before, limit): (&str, i64),
) -> Result<Vec<Payment>, sqlx::Error> {
    let sql = "SELECT a.id, a.transfer_id, p.merchant_id, a.rail_reference, a.network_id, \
               a.state, a.code, a.message, p.currency, p.amount_minor \
               FROM attempts a JOIN payouts p ON p.id = a.transfer_id \
               WHERE a.file_id = $1 AND a.id < $2 ORDER BY a.id DESC LIMIT $3";
    let query = sqlx::query(sql).bind(file.as_str()).bind(before).bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(payment).collect()
}

fn payment(row: &AnyRow) -> Result<Payment, sqlx::Error> {
    let currency: String = row.try_get("currency")?;
    let odd = || sqlx::Error::Decode("an unknown currency".into());
    Ok(Payment {
        attempt: row.try_get("id")?,
        payout: row.try_get("transfer_id")?,
        merchant: row.try_get("merchant_id")?,
        reference: row.try_get("rail_reference")?,
        entry_key: row.try_get("network_id")?,
        state: row.try_get("state")?,
        code: row.try_get("code")?,
        message: row.try_get("message")?,
        currency: Currency::parse(&currency).ok_or_else(odd)?,
        amount: Minor::new(row.try_get("amount_minor")?),
    })
}

/// Whether an attempt is in a file.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn has_payment(
    pool: &AnyPool,
    file: &PaymentFileId,
    attempt: &str,
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM attempts WHERE file_id = $1 AND id = $2";
    let query = sqlx::query_scalar(sql).bind(file.as_str()).bind(attempt);
    let found: i64 = query.fetch_one(pool).await?;
    Ok(found == 1)
}
