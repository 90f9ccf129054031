//! What a pack would have decided about payouts of the past.
//!
//! A slice of the stored decisions at a time, so that no request takes long and a caller can
//! show how far it is. Decisions are found by their time, and one merchant's stand among
//! everybody's: a slice of those ends after so many of any, and may hold few or none. How many
//! there are is counted once, where a backtest begins. Facts that were not stored then cannot be
//! made up now: decisions without them are counted as skipped, with the names of the facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::rules::{Action, Pack, Verdict, facts};
use crate::wasm::pack::Fact;

use super::Decision;
use super::sql::{self, Place};

/// Decisions that one slice goes through, whoever's they are, where it looks at one merchant's.
const GONE_THROUGH_MAX: i64 = 10 * limits::BACKTEST_SLICE;
/// Decisions that are counted at most: how many of all there are is told by an index alone.
const COUNTED_MAX: i64 = 1_000_000;
/// The same where one merchant's are counted: every row is read to see whose it is.
const COUNTED_OF_ONE_MAX: i64 = 100_000;
/// Examples of changed decisions in one slice.
const EXAMPLES_MAX: usize = 20;

/// What one slice showed.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Backtest {
    /// Always `backtest`.
    #[schema(example = "backtest")]
    pub object: &'static str,
    /// Decisions in this slice and all later ones; a lower bound where there are very many.
    pub remaining: i64,
    /// Decisions looked at.
    pub examined: i64,
    /// Decisions that the pack cannot make because a fact was not stored.
    pub skipped: i64,
    /// The facts that were not on record.
    pub missing_facts: Vec<String>,
    /// Decisions about which the pack failed.
    pub failed: i64,
    /// How many would change, by `before>after`, such as `allow>hold`; those that stay as they
    /// were too.
    pub moves: BTreeMap<String, i64>,
    /// How often each rule matched: then and now.
    pub rules: BTreeMap<String, ThenNow>,
    /// Some of the decisions that would change.
    pub examples: Vec<Changed>,
    /// Where to go on; null at the end.
    pub next: Option<String>,
}

/// How often a rule matched.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct ThenNow {
    /// In the decisions as they were made.
    pub then: i64,
    /// In the decisions as this pack would make them.
    pub now: i64,
}

/// A decision that would change.
#[derive(Debug, Serialize, ToSchema)]
pub struct Changed {
    /// The payout that was decided about.
    pub payout_id: String,
    /// What was decided.
    pub before: Action,
    /// What would be decided.
    pub after: Action,
    /// The rules that would match.
    pub labels: Vec<String>,
}

/// Which decisions are looked at.
#[derive(Clone, Debug)]
pub struct Span {
    /// From here on, or after the decision where the last slice ended.
    pub after: Place,
    /// To before this instant.
    pub before: Moment,
    /// Of one merchant, or of all.
    pub merchant: Option<String>,
}

impl Place {
    /// The beginning of an instant.
    #[must_use]
    pub const fn beginning(at: Moment) -> Self {
        Self { at, payout_id: String::new(), remaining: None }
    }

    /// Just after a decision.
    fn of(decision: &Decision) -> Self {
        let (at, payout_id) = (decision.created_at, decision.payout_id.clone());
        Self { at, payout_id, remaining: None }
    }

    /// As a caller carries it from slice to slice.
    #[must_use]
    pub fn write(&self) -> String {
        let remaining = self.remaining.map(|count| format!(".{count}")).unwrap_or_default();
        format!("{}.{}{remaining}", self.at.micros(), self.payout_id)
    }

    /// Reads what [`Self::write`] wrote.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (at, rest) = text.split_once('.')?;
        let at = Moment::from_micros(at.parse().ok()?);
        let (payout_id, remaining) = match rest.split_once('.') {
            None => (rest, None),
            Some((payout_id, count)) => {
                (payout_id, Some(count.parse::<i64>().ok().filter(|count| *count >= 0)?))
            }
        };
        Some(Self { at, payout_id: payout_id.to_owned(), remaining })
    }
}

/// Looks at one slice.
///
/// # Errors
/// The database cannot be read.
pub async fn slice(app: &App, pack: Arc<Pack>, span: Span) -> Result<Backtest, Problem> {
    let pool = app.db.pool();
    let (which, merchant) = ((&span.after, span.before), span.merchant.as_deref());
    let end = match merchant {
        Some(_) => sql::find_place(pool, which, GONE_THROUGH_MAX).await?,
        None => None,
    };
    let until = end.clone().unwrap_or_else(|| Place::beginning(span.before));
    let limit = limits::BACKTEST_SLICE;
    let found = sql::list_decisions(pool, (&span.after, &until), merchant, limit).await?;
    let examined = i64::try_from(found.len()).unwrap_or(limit);
    let next = match found.last() {
        Some(last) if examined == limit => Some(Place::of(last)),
        _ => end,
    };
    let remaining = match (&next, span.after.remaining) {
        (None, _) => examined,
        (Some(_), Some(counted)) => counted.max(examined),
        (Some(_), None) => {
            let most = if merchant.is_none() { COUNTED_MAX } else { COUNTED_OF_ONE_MAX };
            sql::count_decisions(pool, which, merchant, most).await?
        }
    };
    let left = Some((remaining - examined).max(0));
    let next = next.map(|place| Place { remaining: left, ..place }.write());
    let looked = tokio::task::spawn_blocking(move || look(&pack, &found)).await;
    let looked = looked.map_err(|cause| Problem::new(ErrorCode::ApiError).caused_by(cause))?;
    Ok(Backtest { object: "backtest", remaining, next, ..looked })
}

fn look(pack: &Pack, decisions: &[Decision]) -> Backtest {
    let mut seen = Backtest::default();
    let mut asked: Vec<(&Decision, Vec<Fact>)> = Vec::new();
    for decision in decisions {
        seen.examined += 1;
        match facts::recalled(&pack.about.facts, &decision.facts) {
            Ok(facts) => asked.push((decision, facts)),
            Err(missing) => {
                seen.skipped += 1;
                let news = missing.into_iter().filter(|name| !seen.missing_facts.contains(name));
                let news: Vec<_> = news.collect();
                seen.missing_facts.extend(news);
            }
        }
    }
    for some in asked.chunks(100) {
        let facts: Vec<Vec<Fact>> = some.iter().map(|(_, facts)| facts.clone()).collect();
        match pack.assess_all(&facts) {
            Ok(verdicts) => {
                for ((decision, _), verdict) in some.iter().zip(verdicts) {
                    seen.take(decision, &verdict);
                }
            }
            // One bad decision spoils the call: each is tried by itself.
            Err(_) => {
                for (decision, facts) in some {
                    match pack.assess_all(std::slice::from_ref(facts)) {
                        Ok(verdicts) => verdicts.iter().for_each(|v| seen.take(decision, v)),
                        Err(_) => seen.failed += 1,
                    }
                }
            }
        }
    }
    seen
}

impl Backtest {
    fn take(&mut self, decision: &Decision, verdict: &Verdict) {
        let (before, after) = (decision.verdict.action, verdict.action);
        let step = format!("{}>{}", before.as_str(), after.as_str());
        *self.moves.entry(step).or_default() += 1;
        for label in decision.verdict.labels() {
            self.rules.entry(label.to_owned()).or_default().then += 1;
        }
        for label in verdict.labels() {
            self.rules.entry(label.to_owned()).or_default().now += 1;
        }
        if before != after && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(Changed {
                payout_id: decision.payout_id.clone(),
                before,
                after,
                labels: verdict.labels().into_iter().map(str::to_owned).collect(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let beginning = Place::beginning(Moment::from_micros(7));
        let middle = Place { payout_id: "p1".to_owned(), remaining: Some(12), ..beginning.clone() };
        for place in [beginning, middle] {
            assert_eq!(Place::read(&place.write()), Some(place));
        }
        for odd in ["", "7", "x.p1", "7.p1.x", "7.p1.-1", "7.p1.1.2", "7.p1."] {
            assert_eq!(Place::read(odd), None, "{odd}");
        }
    }
}
