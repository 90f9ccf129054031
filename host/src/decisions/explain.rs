//! Making a decision again.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::rules::{Action, Hit, Verdict, facts};

use super::{Decision, sql};

/// A decision, and the same decision made again.
#[derive(Debug, Serialize, ToSchema)]
pub struct Explanation {
    /// Always `decision`.
    #[schema(example = "decision")]
    pub object: &'static str,
    /// The payout; one that was blocked never came to be.
    pub payout_id: String,
    /// The merchant who wanted to pay.
    pub merchant_id: String,
    /// `test` or `live`.
    pub env: String,
    /// The pack's name; null where none was active.
    pub pack: Option<String>,
    /// The pack's version.
    pub version: Option<String>,
    /// SHA-256 of its file.
    pub digest: Option<String>,
    /// What was decided.
    pub action: Action,
    /// The rules that matched.
    pub hits: Vec<Hit>,
    /// Why the pack did not decide, if it did not.
    pub failure: Option<String>,
    /// What was known.
    #[schema(value_type = Object)]
    pub facts: Map<String, Value>,
    /// SHA-256 of the facts as they are stored.
    pub facts_digest: String,
    /// What the same pack says about the same facts now; null where no pack decided.
    pub again: Option<Again>,
    /// When it was decided.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// A decision made again.
#[derive(Debug, Serialize, ToSchema)]
pub struct Again {
    /// Whether it is the same to the letter.
    pub same: bool,
    /// What it is now.
    pub verdict: Option<Verdict>,
    /// Why there is none.
    pub failure: Option<String>,
}

/// The decision about a payout, made again by the pack that made it.
///
/// # Errors
/// `not_found` where nothing was decided about such a payout.
pub async fn explain(app: &App, payout_id: &str) -> Result<Explanation, Problem> {
    let found = sql::get_decision(app.db.pool(), payout_id).await?;
    let decision = found.ok_or_else(|| {
        let message = "No rule pack has decided about a payout of this id.";
        Problem::because(ErrorCode::NotFound, message)
    })?;
    let again = match &decision.pack {
        Some(ruler) => Some(again(app, &ruler.digest, &decision).await),
        None => None,
    };
    let Decision { pack, verdict, .. } = decision;
    let (name, version, digest) = match pack {
        Some(ruler) => (Some(ruler.name), Some(ruler.version), Some(ruler.digest)),
        None => (None, None, None),
    };
    Ok(Explanation {
        object: "decision",
        payout_id: decision.payout_id,
        merchant_id: decision.merchant_id,
        env: decision.env,
        pack: name,
        version,
        digest,
        action: verdict.action,
        hits: verdict.hits,
        failure: decision.failure,
        facts: decision.facts,
        facts_digest: decision.facts_digest,
        again,
        created_at: decision.created_at,
    })
}

async fn again(app: &App, digest: &str, decision: &Decision) -> Again {
    let cannot = |why: String| Again { same: false, verdict: None, failure: Some(why) };
    if !decision.is_intact {
        return cannot("the facts are not those that were stored: their digest differs".to_owned());
    }
    let pack = match app.pack_store.pack(digest).await {
        Ok(pack) => pack,
        Err(why) => return cannot(why.to_string()),
    };
    let facts = match facts::recalled(&pack.about.facts, &decision.facts) {
        Ok(facts) => facts,
        Err(missing) => return cannot(format!("not stored: {}", missing.join(", "))),
    };
    match pack.assess_all(&[facts]).map(|mut all| all.pop()) {
        Ok(verdict) => Again {
            same: decision.failure.is_none() && verdict.as_ref() == Some(&decision.verdict),
            verdict,
            failure: None,
        },
        // A pack that trapped then traps now: that is the same decision.
        Err(why) => Again { same: decision.failure.is_some(), ..cannot(why) },
    }
}
