//! What reports read: entries by their numbers, payouts by their ids.

use jiff::civil::Date;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::id::{MerchantId, PayoutId};
use crate::ledger::wallets::{IN_SPAN, Span, WalletRow};
use crate::money::Minor;
use crate::payouts::model::Payout;
use crate::payouts::sql::payout;

use super::range::{Part, Range};

/// What the entries of a day come to, of one kind.
#[derive(Debug)]
pub(super) struct Added {
    /// The day.
    pub day: Date,
    /// The kind: a source.
    pub kind: String,
    /// Whether they belong to payouts of batches.
    pub is_bulk: bool,
    /// How many credits.
    pub credits: i64,
    /// What they come to.
    pub credited: Minor,
    /// How many debits.
    pub debits: i64,
    /// What they come to, above zero.
    pub debited: Minor,
    /// Tax on the fees of the payouts that they belong to.
    pub tax: Minor,
}

/// Which entries are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// All of them.
    All,
    /// None of those that payouts took: what is few among very many is found by an index.
    BesidesPayouts,
}

/// Adds up a slice of a wallet's entries of a range by day and source.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn add_entries(
    pool: &AnyPool,
    (wallet, span, which): (&WalletRow, Span, Entries),
    range: &Range,
) -> Result<Vec<Added>, sqlx::Error> {
    // Literally the condition of the index.
    let which = match which {
        Entries::All => "",
        Entries::BesidesPayouts => "AND e.kind <> 'payout_debit'",
    };
    let sql = format!(
        "SELECT (e.created_at + $4) / 86400000000 AS day, e.source, \
               CASE WHEN p.in_batch IS NULL THEN 0 ELSE 1 END AS is_bulk, \
               SUM(CASE WHEN e.amount_minor > 0 THEN 1 ELSE 0 END) AS credits, \
               CAST(SUM(CASE WHEN e.amount_minor > 0 THEN e.amount_minor ELSE 0 END) AS BIGINT) \
               AS credited, SUM(CASE WHEN e.amount_minor < 0 THEN 1 ELSE 0 END) AS debits, \
               CAST(SUM(CASE WHEN e.amount_minor < 0 THEN -e.amount_minor ELSE 0 END) AS BIGINT) \
               AS debited, CAST(SUM(COALESCE(p.tax_minor, 0)) AS BIGINT) AS tax \
               FROM entries e LEFT JOIN payouts p ON p.id = e.ref_id WHERE {IN_SPAN} {which} \
               AND e.created_at >= $5 AND e.created_at < $6 GROUP BY 1, 2, 3"
    );
    let mut added = Vec::new();
    for Part { start, end, offset } in range.parts() {
        let rows = sqlx::query(AssertSqlSafe(sql.as_str()))
            .bind(wallet.id.as_str())
            .bind(span.from)
            .bind(span.to)
            .bind(offset)
            .bind(start)
            .bind(end)
            .fetch_all(pool)
            .await?;
        for row in rows {
            let minor = |column| row.try_get(column).map(Minor::new);
            added.push(Added {
                day: range.day(row.try_get("day")?),
                kind: row.try_get("source")?,
                is_bulk: integer(&row, "is_bulk")? != 0,
                credits: row.try_get("credits")?,
                credited: minor("credited")?,
                debits: row.try_get("debits")?,
                debited: minor("debited")?,
                tax: minor("tax")?,
            });
        }
    }
    Ok(added)
}

/// PostgreSQL takes a small literal for a small number.
fn integer(row: &AnyRow, column: &str) -> Result<i64, sqlx::Error> {
    row.try_get::<i64, _>(column).or_else(|_| row.try_get::<i32, _>(column).map(i64::from))
}

/// How many payouts of a day are in a status.
#[derive(Debug)]
pub(super) struct Counted {
    /// The day on which they were made.
    pub day: Date,
    /// The currency.
    pub currency: String,
    /// The status.
    pub status: String,
    /// How many.
    pub count: i64,
    /// What their recipients get.
    pub amount: Minor,
}

/// Whose payouts, of which currency; of any, if empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose<'a> {
    /// The merchant.
    pub merchant: &'a MerchantId,
    /// Test or live.
    pub env: Env,
    /// The currency.
    pub currency: &'a str,
}

/// Where those payouts end that are counted at a time, of some numbers: the number of the next one;
/// nothing where they are fewer.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn end_of_slice(
    pool: &AnyPool,
    whose: Whose<'_>,
    (first, end): (i64, i64),
) -> Result<Option<i64>, sqlx::Error> {
    // Of many at one instant all belong to one slice. Where two owners share a number, slices are
    // smaller.
    let sql = "SELECT id_number FROM payouts \
               WHERE owner_number = $1 AND id_number > $2 AND id_number < $3 \
               ORDER BY id_number LIMIT 1 OFFSET $4";
    sqlx::query_scalar(sql)
        .bind(whose.merchant.owner_number(whose.env))
        .bind(first)
        .bind(end)
        .bind(limits::REPORT_SUMMED)
        .fetch_optional(pool)
        .await
}

/// Counts payouts that were made in a range and have numbers from the first one to before the end, by
/// day, currency and status.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn count_payouts(
    pool: &AnyPool,
    whose: Whose<'_>,
    (range, first, end): (&Range, i64, i64),
) -> Result<Vec<Counted>, sqlx::Error> {
    let sql = "SELECT (created_at + $1) / 86400000000 AS day, currency, status, \
               COUNT(*) AS count, CAST(SUM(amount_minor) AS BIGINT) AS amount FROM payouts \
               WHERE owner_number = $2 AND id_number >= $3 AND id_number < $4 \
               AND merchant_id = $5 AND env = $6 AND ($7 = '' OR currency = $7) \
               AND created_at >= $8 AND created_at < $9 GROUP BY 1, 2, 3";
    let mut counted = Vec::new();
    for part in range.parts() {
        let rows = sqlx::query(sql)
            .bind(part.offset)
            .bind(whose.merchant.owner_number(whose.env))
            .bind(first)
            .bind(end)
            .bind(whose.merchant.as_str())
            .bind(whose.env.as_str())
            .bind(whose.currency)
            .bind(part.start.max(range.start.micros()))
            .bind(part.end.min(range.end.micros()))
            .fetch_all(pool)
            .await?;
        for row in rows {
            counted.push(Counted {
                day: range.day(row.try_get("day")?),
                currency: row.try_get("currency")?,
                status: row.try_get("status")?,
                count: row.try_get("count")?,
                amount: row.try_get("amount").map(Minor::new)?,
            });
        }
    }
    Ok(counted)
}

/// Payouts that were made in a range and failed, newest first, and how many there are.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_failed(
    pool: &AnyPool,
    whose: Whose<'_>,
    (range, limit): (&Range, i64),
) -> Result<(Vec<Payout>, i64), sqlx::Error> {
    const WHICH: &str = "FROM payouts WHERE owner_number = $1 AND id_number >= $2 \
                         AND id_number < $3 AND merchant_id = $4 AND env = $5 \
                         AND ($6 = '' OR currency = $6) AND created_at >= $7 AND created_at < $8 \
                         AND unusual IN ('failed', 'failed_manual', 'reversed')";
    let (first, end) = numbers(range);
    let ask = |sql: String| {
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(whose.merchant.owner_number(whose.env))
            .bind(first)
            .bind(end)
            .bind(whose.merchant.as_str().to_owned())
            .bind(whose.env.as_str())
            .bind(whose.currency.to_owned())
            .bind(range.start.micros())
            .bind(range.end.micros())
    };
    let count = ask(format!("SELECT COUNT(*) {WHICH}")).fetch_one(pool).await?;
    let rows = ask(format!("SELECT * {WHICH} ORDER BY id_number DESC, id DESC LIMIT {limit}"));
    let rows = rows.fetch_all(pool).await?;
    Ok((rows.iter().map(payout).collect::<Result<_, _>>()?, count.try_get(0)?))
}

/// Those of a range's payouts are from the first of these numbers to before the second.
pub(super) fn numbers(range: &Range) -> (i64, i64) {
    let first = Moment::from_micros(range.start.micros().max(0)).before(limits::IDS_DIFFER);
    (
        PayoutId::first_at(Moment::from_micros(first.micros().max(0))).number(),
        PayoutId::first_at(range.end.after(limits::IDS_DIFFER)).number(),
    )
}
