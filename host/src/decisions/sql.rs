//! Statements about decisions.

use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, int, text};
use crate::env::Env;
use crate::money::{Currency, Minor};
use crate::rules::{Action, Verdict};

use super::{Decision, Ruler};

/// A decision as it is written down.
#[derive(Clone, Debug)]
pub struct DecisionRow {
    /// What was decided about.
    pub payout_id: String,
    /// The merchant who wanted to pay.
    pub merchant_id: String,
    /// Test or live.
    pub env: Env,
    /// The amount's currency.
    pub currency: Currency,
    /// What the recipient would get.
    pub amount: Minor,
    /// Who decided; nobody where no pack was active.
    pub pack: Option<Ruler>,
    /// What was decided.
    pub verdict: Verdict,
    /// Why the pack did not decide, if it did not.
    pub failure: Option<String>,
    /// What was known, as JSON.
    pub facts: String,
    /// SHA-256 of that.
    pub facts_digest: String,
    /// When.
    pub created_at: Moment,
}

/// New decisions.
pub static DECISIONS: Table<DecisionRow> = Table {
    name: "decisions",
    fixed: &[
        text("payout_id", |row| (&row.payout_id).into()),
        text("merchant_id", |row| (&row.merchant_id).into()),
        text("env", |row| row.env.as_str().into()),
        text("currency", |row| row.currency.as_str().into()),
        int("amount_minor", |row| row.amount.into()),
        text("pack", |row| row.pack.as_ref().map(|pack| pack.name.as_str()).into()),
        text("version", |row| row.pack.as_ref().map(|pack| pack.version.as_str()).into()),
        text("digest", |row| row.pack.as_ref().map(|pack| pack.digest.as_str()).into()),
        text("action", |row| row.verdict.action.as_str().into()),
        text("hits", |row| serde_json::to_string(&row.verdict.hits).unwrap_or_default().into()),
        text("failure", |row| (&row.failure).into()),
        text("facts", |row| (&row.facts).into()),
        text("facts_digest", |row| (&row.facts_digest).into()),
        int("created_at", |row| row.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// The decision about a payout.
///
/// # Errors
/// The database cannot be read.
pub async fn get_decision(
    pool: &AnyPool,
    payout_id: &str,
) -> Result<Option<Decision>, sqlx::Error> {
    let sql = "SELECT * FROM decisions WHERE payout_id = $1";
    let row = sqlx::query(sql).bind(payout_id).fetch_optional(pool).await?;
    row.as_ref().map(decision).transpose()
}

/// Where a backtest goes on: after this instant and payout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instant of the last decision that was gone through.
    pub at: Moment,
    /// After which payout of that instant.
    pub payout_id: String,
    /// How many are still to be looked at, as far as they were counted; nothing where a backtest
    /// begins.
    pub remaining: Option<i64>,
}

/// Decisions after a place and up to another, oldest first; of one merchant, or of all.
///
/// # Errors
/// The database cannot be read.
pub async fn list_decisions(
    pool: &AnyPool,
    (after, until): (&Place, &Place),
    merchant: Option<&str>,
    limit: i64,
) -> Result<Vec<Decision>, sqlx::Error> {
    let sql = "SELECT * FROM decisions WHERE created_at >= $1 \
               AND (created_at > $1 OR payout_id > $2) AND created_at <= $3 \
               AND (created_at < $3 OR payout_id <= $4) \
               AND ($5 = '' OR merchant_id = $5) ORDER BY created_at, payout_id LIMIT $6";
    let rows = sqlx::query(sql)
        .bind(after.at.micros())
        .bind(&after.payout_id)
        .bind(until.at.micros())
        .bind(&until.payout_id)
        .bind(merchant.unwrap_or_default())
        .bind(limit)
        .fetch_all(pool)
        .await?;
    rows.iter().map(decision).collect()
}

/// The place of the last of so many decisions after a place and before an instant, whoever's they
/// are; nothing where there are fewer. Only the index is read.
///
/// # Errors
/// The database cannot be read.
pub async fn find_place(
    pool: &AnyPool,
    (after, before): (&Place, Moment),
    many: i64,
) -> Result<Option<Place>, sqlx::Error> {
    let sql = "SELECT created_at, payout_id FROM decisions WHERE created_at >= $1 \
               AND (created_at > $1 OR payout_id > $2) AND created_at < $3 \
               ORDER BY created_at, payout_id LIMIT 1 OFFSET $4";
    let row = sqlx::query(sql)
        .bind(after.at.micros())
        .bind(&after.payout_id)
        .bind(before.micros())
        .bind(many - 1)
        .fetch_optional(pool)
        .await?;
    let place = |row: AnyRow| {
        let at = Moment::from_micros(row.try_get("created_at")?);
        Ok(Place { at, payout_id: row.try_get("payout_id")?, remaining: None })
    };
    row.map(place).transpose()
}

/// How many decisions there are after a place and before an instant; of one merchant, or of all.
/// No more than the first `most` are looked at, whoever's they are.
///
/// # Errors
/// The database cannot be read.
pub async fn count_decisions(
    pool: &AnyPool,
    (after, before): (&Place, Moment),
    merchant: Option<&str>,
    most: i64,
) -> Result<i64, sqlx::Error> {
    let sql = match merchant {
        Some(_) => {
            "SELECT COUNT(*) FROM (SELECT merchant_id FROM decisions WHERE created_at >= $1 \
             AND (created_at > $1 OR payout_id > $2) AND created_at < $3 \
             ORDER BY created_at, payout_id LIMIT $4) AS counted \
             WHERE $5 = '' OR merchant_id = $5"
        }
        // The index alone tells.
        None => {
            "SELECT COUNT(*) FROM (SELECT payout_id FROM decisions WHERE created_at >= $1 \
             AND (created_at > $1 OR payout_id > $2) AND created_at < $3 \
             ORDER BY created_at, payout_id LIMIT $4) AS counted WHERE $5 = ''"
        }
    };
    sqlx::query_scalar(sql)
        .bind(after.at.micros())
        .bind(&after.payout_id)
        .bind(before.micros())
        .bind(most)
        .bind(merchant.unwrap_or_default())
        .fetch_one(pool)
        .await
}

fn decision(row: &AnyRow) -> Result<Decision, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let decode = |what: &str| sqlx::Error::Decode(format!("{what} of a decision").into());
    let pack: Option<String> = row.try_get("pack")?;
    let (version, digest): (Option<String>, Option<String>) =
        (row.try_get("version")?, row.try_get("digest")?);
    let ruler = match (pack, version, digest) {
        (Some(name), Some(version), Some(digest)) => Some(Ruler { name, version, digest }),
        _ => None,
    };
    let action = Action::parse(&text("action")?).ok_or_else(|| decode("action"))?;
    let hits = serde_json::from_str(&text("hits")?).map_err(|_| decode("hits"))?;
    let (facts, facts_digest) = (text("facts")?, text("facts_digest")?);
    Ok(Decision {
        payout_id: text("payout_id")?,
        merchant_id: text("merchant_id")?,
        env: text("env")?,
        pack: ruler,
        verdict: Verdict { action, hits },
        failure: row.try_get("failure")?,
        is_intact: hex::encode(Sha256::digest(&facts)) == facts_digest,
        facts: serde_json::from_str(&facts).map_err(|_| decode("facts"))?,
        facts_digest,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
