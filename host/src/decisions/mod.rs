//! Decisions about fraud as they are kept: enough to make each one again, years later, with the
//! very pack that made it, or with another one to see what that would have changed.

pub mod backtest;
pub mod explain;
pub mod shadow;
pub mod sql;

use serde_json::{Map, Value};

use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::id::{MerchantId, PayoutId};
use crate::money::{Currency, Minor};
use crate::rules::{Ruling, Verdict, facts};

/// A payout that was decided about.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Its id, also where it was refused and never came to be.
    pub payout_id: &'a PayoutId,
    /// The merchant who wanted to pay.
    pub merchant_id: &'a MerchantId,
    /// Test or live.
    pub env: Env,
    /// The amount's currency.
    pub currency: Currency,
    /// What the recipient would get.
    pub amount: Minor,
}

/// A decision as it was kept.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What it was about.
    pub payout_id: String,
    /// The merchant who wanted to pay.
    pub merchant_id: String,
    /// `test` or `live`.
    pub env: String,
    /// Name, version and digest of the pack; none where none was active.
    pub pack: Option<Ruler>,
    /// What was decided.
    pub verdict: Verdict,
    /// Why the pack did not decide, if it did not.
    pub failure: Option<String>,
    /// What was known.
    pub facts: Map<String, Value>,
    /// SHA-256 of the facts as they are stored.
    pub facts_digest: String,
    /// Whether they still have it.
    pub is_intact: bool,
    /// When it was decided.
    pub created_at: Moment,
}

/// A pack that decided.
#[derive(Clone, Debug)]
pub struct Ruler {
    /// The name in its declaration.
    pub name: String,
    /// The version in its declaration.
    pub version: String,
    /// SHA-256 of its file.
    pub digest: String,
}

/// A decision as a row for the writer.
#[must_use]
pub fn row(subject: &Subject<'_>, ruling: &Ruling, now: Moment) -> RowChange {
    let (facts, facts_digest) = facts::stored(&ruling.facts);
    let pack = ruling.assignment.pack.as_deref();
    sql::DECISIONS.insert(&sql::DecisionRow {
        payout_id: subject.payout_id.to_string(),
        merchant_id: subject.merchant_id.to_string(),
        env: subject.env,
        currency: subject.currency,
        amount: subject.amount,
        pack: pack.map(|pack| Ruler {
            name: pack.about.name.clone(),
            version: pack.about.version.clone(),
            digest: pack.digest.clone(),
        }),
        verdict: ruling.verdict.clone(),
        failure: ruling.failure.clone(),
        facts,
        facts_digest,
        created_at: now,
    })
}
