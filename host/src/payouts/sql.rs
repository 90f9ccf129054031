//! Statements about payouts.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{Any, AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::db::{Db, Engine};
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
        text("tariff", |payout| (&payout.tariff).into()),
        text("charges", |payout| serde_json::to_string(&payout.charges).unwrap_or_default().into()),
        text("hold", |payout| (&payout.hold).into()),
        text("scenario", |payout| (&payout.scenario).into()),
        text("maker", |payout| (&payout.maker).into()),
        text("resolution", |payout| (&payout.resolution).into()),
        text("receipt_to", |payout| (&payout.receipt_to).into()),
        text("funding", |payout| kept(payout.funding.as_ref()).into()),
        int("created_at", |payout| payout.created_at.into()),
        int("owner_number", |payout| payout.merchant_id.owner_number(payout.env).into()),
        int("id_number", |payout| payout.id.number().into()),
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
        int("is_waiting", |payout| payout.status.waits_for_somebody().into()),
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
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(ids).fetch_all(db.pool()).await?;
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

/// Which payouts are wanted.
#[derive(Debug, Default)]
pub struct Filter {
    /// In this status; any, if empty.
    pub status: String,
    /// In this currency; any, if empty.
    pub currency: String,
    /// Created after this.
    pub after: Option<Moment>,
    /// Created before this.
    pub before: Option<Moment>,
    /// Before this one; from the newest, if none.
    pub cursor: Option<PayoutId>,
    /// Page size.
    pub limit: i64,
}

impl Filter {
    /// Ids of wanted payouts are after the first of these and before the last, if there are such:
    /// they rise with time.
    fn ids(&self) -> (Option<PayoutId>, Option<PayoutId>) {
        let first = self.after.map(|after| PayoutId::first_at(after.before(limits::IDS_DIFFER)));
        let end = self.before.map(|before| PayoutId::first_at(before.after(limits::IDS_DIFFER)));
        (first, self.cursor.clone().into_iter().chain(end).min())
    }

    /// Statements to try in turn, until one fills the page. Rare statuses have an index; those
    /// under way are found by their rows of `transfers` (stages as in `transfers/work.rs`).
    fn searches(&self, engine: Engine) -> Vec<String> {
        // By numbers, which only the owner's index has in this order.
        const OWN: &str = "SELECT * FROM payouts WHERE owner_number = $9 AND id_number <= $10 \
                           AND id_number >= $11 AND merchant_id = $1 AND env = $2 AND id < $3";
        // The same bounds for those that are found by their work: as sums, so that PostgreSQL does
        // not choose the owner's index. `has_work` names merchant, environment and cursor.
        const BOUNDS: &str = "owner_number + 0 = $9 AND id_number + 0 <= $10 \
                              AND id_number + 0 >= $11";
        const ORDER: &str = "ORDER BY id_number DESC, id DESC LIMIT";
        const WANTED: &str = "($5 = '' OR currency = $5) AND created_at > $6 AND created_at < $7";
        let status = Status::parse(&self.status);
        if let Some(work) = status.and_then(work) {
            let has_work = has_work(engine, work);
            // Where very many are on their way, the newest are as well.
            return vec![
                format!(
                    "SELECT * FROM ({OWN} {ORDER} 2 * $8) newest \
                     WHERE status = $4 AND {WANTED} ORDER BY id DESC LIMIT $8"
                ),
                format!(
                    "SELECT * FROM payouts WHERE {has_work} AND {BOUNDS} \
                     AND status = $4 AND {WANTED} ORDER BY id DESC LIMIT $8"
                ),
            ];
        }
        let of_status = match status.and_then(Status::unusual) {
            Some(_) => "unusual = $4",
            None => "($4 = '' OR status = $4)",
        };
        vec![format!("{OWN} AND {of_status} AND {WANTED} {ORDER} $8")]
    }
}

/// The work of payouts in a status, if they have any. Whoever is at a payment may not have written
/// yet that it was sent.
fn work(status: Status) -> Option<&'static str> {
    match status {
        Status::Queued => Some("t.stage = 'queued'"),
        Status::Processing => {
            Some("t.stage IN ('queued', 'sent') AND (t.stage = 'sent' OR t.lease_until > 0)")
        }
        _ => None,
    }
}

/// The condition that there is such work for a payout of the merchant. It is not found by its id:
/// in that order there is everybody's. PostgreSQL then looks payouts up one by one, the newest
/// first, until the page is full, whatever its planner thinks of their number.
fn has_work(engine: Engine, work: &str) -> String {
    let found = format!(
        "SELECT t.id FROM routes r CROSS JOIN transfers t WHERE r.env = $2 \
         AND t.route_id = r.id AND {work} AND t.merchant_id = $1 AND t.env = $2 \
         AND t.id || '' < $3"
    );
    match engine {
        Engine::Sqlite => format!("id IN ({found})"),
        Engine::Postgres => format!("id = ANY(ARRAY({found}))"),
    }
}

/// A page of a merchant's payouts, newest first; one more than a page has, if there is one.
///
/// # Errors
/// The database cannot be read.
pub async fn list_payouts(
    db: &Db,
    (merchant, env): (&MerchantId, Env),
    filter: &Filter,
) -> Result<Vec<Payout>, sqlx::Error> {
    let (first, last) = filter.ids();
    let limit = filter.limit + 1;
    let mut found = Vec::new();
    for sql in filter.searches(db.engine()) {
        // Planned each time, for these values: a plan for any takes a span of time for a short one,
        // and reads all of it, whoever paid.
        let query = sqlx::query::<Any>(AssertSqlSafe(sql))
            .persistent(false)
            .bind(merchant.as_str())
            .bind(env.as_str())
            .bind(last.as_ref().map_or("~", PayoutId::as_str))
            .bind(filter.status.as_str())
            .bind(filter.currency.as_str())
            .bind(filter.after.map_or(i64::MIN, Moment::micros))
            .bind(filter.before.map_or(i64::MAX, Moment::micros))
            .bind(limit)
            .bind(merchant.owner_number(env))
            .bind(last.as_ref().map_or(i64::MAX, PayoutId::number))
            .bind(first.as_ref().map_or(0, PayoutId::number));
        let rows = query.fetch_all(db.pool()).await?;
        found = rows.iter().map(payout).collect::<Result<Vec<_>, _>>()?;
        if i64::try_from(found.len()).is_ok_and(|found| found >= limit) {
            break;
        }
    }
    Ok(found)
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
    let charges = serde_json::from_str(&text("charges")?);
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
        tariff: text("tariff")?,
        charges: charges.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_bound_by_the_instants_that_are_asked_for() {
        let at = |text| Moment::parse(text).expect("an instant");
        let id = |text| PayoutId::first_at(at(text));
        let between = |after, before| Filter {
            after: Some(at(after)),
            before: Some(at(before)),
            ..Filter::default()
        };
        let day = between("2026-11-21", "2026-11-22").ids();
        let wanted = (id("2026-11-20T23:00:00Z"), id("2026-11-22T01:00:00Z"));
        assert_eq!(day, (Some(wanted.0), Some(wanted.1)));
        let (first, last) = between("1900-01-01", "9999-12-30").ids();
        assert!(first.is_some_and(|first| first < id("1970-01-02")));
        assert!(last.is_some_and(|last| last > id("9999-12-29")));
        assert_eq!(Filter::default().ids(), (None, None));
        for (cursor, last) in [
            ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z"),
            ("2026-11-23T12:00:00Z", "2026-11-22T01:00:00Z"),
        ] {
            let filter = Filter { cursor: Some(id(cursor)), ..between("2026-11-21", "2026-11-22") };
            assert_eq!(filter.ids().1, Some(id(last)));
        }
    }
}
