//! Statements about payouts.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::Db;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{BatchId, BeneficiaryId, Id as _, MerchantId, PayoutId, WalletId};
use crate::money::{Currency, Minor};
use crate::rails::RecipientFields;

use super::model::{Costs, Payout, Status, Terms};

/// New payouts.
pub static PAYOUTS: Table<Payout> = Table {
    name: "payouts",
    fixed: &[
        text("id", |payout| payout.id.as_str().into()),
        text("merchant_id", |payout| payout.merchant_id.as_str().into()),
        text("env", |payout| payout.env.as_str().into()),
        text("wallet_id", |payout| payout.wallet_id.as_str().into()),
        text("in_batch", |payout| payout.batch_id.as_ref().map(ToString::to_string).into()),
        text("currency", |payout| payout.currency.as_str().into()),
        text("method", |payout| (&payout.method).into()),
        int("amount_minor", |payout| payout.costs.amount.into()),
        int("fee_minor", |payout| payout.costs.fee.into()),
        int("tax_minor", |payout| payout.costs.tax.into()),
        int("levy_minor", |payout| payout.costs.levy.into()),
        text("beneficiary_id", |payout| payout.beneficiary_id.as_str().into()),
        text("recipient_identity", |payout| (&payout.recipient_identity).into()),
        text("recipient_name", |payout| (&payout.recipient_name).into()),
        text("recipient", |payout| payout.recipient.to_json().into()),
        text("sender", |payout| (&payout.sender).into()),
        text("narration", |payout| (&payout.narration).into()),
        text("merchant_reference", |payout| (&payout.merchant_reference).into()),
        text("customer_reference", |payout| (&payout.customer_reference).into()),
        text("pricing", |payout| serde_json::to_string(&payout.pricing).unwrap_or_default().into()),
        text("hold", |payout| (&payout.hold).into()),
        text("scenario", |payout| (&payout.scenario).into()),
        text("maker", |payout| (&payout.maker).into()),
        text("resolution", |payout| (&payout.resolution).into()),
        text("receipt_to", |payout| (&payout.receipt_to).into()),
        text("funding", |payout| kept(payout.funding.as_ref()).into()),
        int("created_at", |payout| payout.created_at.into()),
    ],
    changing: PAYOUT_STATES.columns,
    on_conflict: None,
    is_sealed: true,
};

/// What changes about a payout as it goes along.
pub static PAYOUT_STATES: Update<Payout> = Update {
    name: "payouts",
    key: text("id", |payout| payout.id.as_str().into()),
    columns: &[
        text("status", |payout| payout.status.as_str().into()),
        int("is_waiting", |payout| payout.status.is_waiting().into()),
        int("holds_batch", |payout| payout.holds_batch().into()),
        text("unusual", |payout| payout.status.unusual().into()),
        int("version", |payout| payout.version.into()),
        int("round", |payout| payout.round.into()),
        text("route", |payout| (&payout.route).into()),
        text("rail_reference", |payout| (&payout.rail_reference).into()),
        text("failure_code", |payout| (&payout.failure_code).into()),
        text("failure_message", |payout| (&payout.failure_message).into()),
        text("correction", |payout| (&payout.correction).into()),
        text("told", |payout| (&payout.told).into()),
        text("funded", |payout| kept(payout.funded.as_ref()).into()),
        int("queued_at", |payout| payout.queued_at.into()),
        int("processing_at", |payout| payout.processing_at.into()),
        int("completed_at", |payout| payout.completed_at.into()),
    ],
    only_where: None,
};

/// How many changes a payout has seen.
pub static PAYOUT_VERSIONS: Lookup =
    Lookup { name: "payouts", key: "id", columns: &[("version", Int)], lock: true };

/// A payout, whoever's it is; for jobs and the operator.
///
/// # Errors
/// The database cannot be read.
pub async fn get_payout(pool: &AnyPool, id: &PayoutId) -> Result<Option<Payout>, sqlx::Error> {
    let sql = "SELECT * FROM payouts WHERE id = $1";
    let row = sqlx::query(sql).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| payout(&row)).transpose()
}

/// The payouts of these ids, in any order; for jobs. One that cannot be read is left out, and
/// named in the log.
///
/// # Errors
/// The database cannot be read.
pub async fn list_payouts_by_id(db: &Db, ids: &[String]) -> Result<Vec<Payout>, sqlx::Error> {
    let sql = format!("SELECT * FROM payouts WHERE {}", db.engine().among("id", "$1"));
    let ids = serde_json::to_string(ids).unwrap_or_default();
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(ids).fetch_all(db.pool()).await?;
    let readable = rows.iter().filter_map(|row| {
        let id = row.try_get::<String, _>("id").unwrap_or_default();
        let unreadable =
            |cause: &sqlx::Error| tracing::error!(payout.id = id, %cause, "unreadable");
        payout(row).inspect_err(unreadable).ok()
    });
    Ok(readable.collect())
}

/// Whether a recipient was ever paid, or is about to be. Payouts that were held, or not paid in
/// the end, make nobody known.
///
/// # Errors
/// The database cannot be read.
pub async fn was_paid(pool: &AnyPool, beneficiary: &BeneficiaryId) -> Result<bool, sqlx::Error> {
    let sql = "SELECT id FROM payouts WHERE beneficiary_id = $1 AND status IN \
               ('queued', 'processing', 'paid', 'paid_manual', 'reversed') LIMIT 1";
    let found = sqlx::query(sql).bind(beneficiary.as_str()).fetch_optional(pool).await?;
    Ok(found.is_some())
}

/// A merchant's payout.
///
/// # Errors
/// The database cannot be read.
pub async fn find_payout(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    id: &PayoutId,
) -> Result<Option<Payout>, sqlx::Error> {
    let sql = "SELECT * FROM payouts WHERE id = $1 AND merchant_id = $2 AND env = $3";
    let row = sqlx::query(sql)
        .bind(id.as_str())
        .bind(merchant.as_str())
        .bind(env.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(|row| payout(&row)).transpose()
}

/// Which payouts are wanted. Instants are microseconds.
#[derive(Debug, Default)]
pub struct Filter {
    /// In this status; any, if empty.
    pub status: String,
    /// In this currency; any, if empty.
    pub currency: String,
    /// Created after this.
    pub after: i64,
    /// Created before this.
    pub before: i64,
    /// Before this id; from the newest, if none.
    pub cursor: Option<String>,
    /// Page size.
    pub limit: i64,
}

/// A page of a merchant's payouts, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_payouts(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    filter: &Filter,
) -> Result<Vec<Payout>, sqlx::Error> {
    // What few are in has an index: whoever looks for it does not meet all others.
    let sql = match Status::parse(&filter.status).and_then(Status::unusual) {
        Some(_) => {
            "SELECT * FROM payouts WHERE merchant_id = $1 AND env = $2 AND unusual = $4 \
             AND id < $3 AND ($5 = '' OR currency = $5) \
             AND created_at > $6 AND created_at < $7 ORDER BY id DESC LIMIT $8"
        }
        None => {
            "SELECT * FROM payouts WHERE merchant_id = $1 AND env = $2 AND id < $3 \
             AND ($4 = '' OR status = $4) AND ($5 = '' OR currency = $5) \
             AND created_at > $6 AND created_at < $7 ORDER BY id DESC LIMIT $8"
        }
    };
    let rows = sqlx::query(sql)
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(filter.cursor.as_deref().unwrap_or("~"))
        .bind(filter.status.as_str())
        .bind(filter.currency.as_str())
        .bind(filter.after)
        .bind(filter.before)
        .bind(filter.limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(payout).collect()
}

/// Which of the payouts that wait are wanted; an empty text means any.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Their status.
    pub status: String,
    /// Their environment.
    pub env: String,
    /// Whose they are.
    pub merchant: String,
    /// The last one of the page before.
    pub cursor: Option<PayoutId>,
    /// How many a page has.
    pub limit: i64,
}

/// Payouts that wait for somebody, newest first; one more than a page has.
///
/// # Errors
/// The database cannot be read.
pub async fn list_waiting(pool: &AnyPool, filter: &Waiting) -> Result<Vec<Payout>, sqlx::Error> {
    let sql = "SELECT * FROM payouts WHERE is_waiting = 1 \
               AND id < $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR env = $3) \
               AND ($4 = '' OR merchant_id = $4) ORDER BY id DESC LIMIT $5";
    let rows = sqlx::query(sql)
        .bind(filter.cursor.as_ref().map_or("~", PayoutId::as_str))
        .bind(filter.status.as_str())
        .bind(filter.env.as_str())
        .bind(filter.merchant.as_str())
        .bind(filter.limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(payout).collect()
}

fn kept(what: Option<&impl Serialize>) -> Option<String> {
    what.and_then(|what| serde_json::to_string(what).ok())
}

fn read<T: DeserializeOwned>(kept: Option<String>) -> Result<Option<T>, sqlx::Error> {
    let read = kept.map(|text| serde_json::from_str(&text)).transpose();
    read.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))
}

/// Reads a row of the table.
///
/// # Errors
/// It is not what this program writes.
pub fn payout(row: &AnyRow) -> Result<Payout, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    let minor = |column| row.try_get(column).map(Minor::new);
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    let unknown = |what: &'static str| move || sqlx::Error::Decode(what.into());
    let pricing = serde_json::from_str(&text("pricing")?);
    let terms = Terms {
        id: PayoutId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: Env::parse(&text("env")?).ok_or_else(unknown("an unknown environment"))?,
        wallet_id: WalletId::from_text(text("wallet_id")?),
        batch_id: maybe("in_batch")?.map(BatchId::from_text),
        currency: Currency::parse(&text("currency")?).ok_or_else(unknown("an odd currency"))?,
        method: text("method")?,
        costs: Costs {
            amount: minor("amount_minor")?,
            fee: minor("fee_minor")?,
            tax: minor("tax_minor")?,
            levy: minor("levy_minor")?,
        },
        beneficiary_id: BeneficiaryId::from_text(text("beneficiary_id")?),
        recipient_identity: text("recipient_identity")?,
        recipient_name: text("recipient_name")?,
        recipient: RecipientFields::from_json(&text("recipient")?),
        sender: maybe("sender")?,
        narration: maybe("narration")?,
        merchant_reference: maybe("merchant_reference")?,
        customer_reference: maybe("customer_reference")?,
        pricing: pricing.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        hold: maybe("hold")?,
        scenario: maybe("scenario")?,
        maker: text("maker")?,
        resolution: maybe("resolution")?,
        receipt_to: maybe("receipt_to")?,
        funding: read(maybe("funding")?)?,
        created_at: moment("created_at")?.unwrap_or_default(),
    };
    Ok(Payout {
        terms: Arc::new(terms),
        status: Status::parse(&text("status")?).ok_or_else(unknown("an unknown status"))?,
        version: row.try_get("version")?,
        round: row.try_get("round")?,
        route: maybe("route")?,
        rail_reference: maybe("rail_reference")?,
        failure_code: maybe("failure_code")?,
        failure_message: maybe("failure_message")?,
        funded: read(maybe("funded")?)?,
        correction: maybe("correction")?,
        told: maybe("told")?,
        queued_at: moment("queued_at")?,
        processing_at: moment("processing_at")?,
        completed_at: moment("completed_at")?,
    })
}
