//! Whether a payout may go.
//!
//! The facts that need no lock are worked out beforehand; velocities are read, and the pack is
//! asked, while the ledger's writer holds the counters. A pack that fails never decides: the
//! operator's setting does.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::{OnFailure, limits};
use crate::env::Env;
use crate::id::MerchantId;
use crate::ledger::{CounterChange, LockedState};
use crate::money::Minor;
use crate::wasm::pack::{self as wasm, Fact};

use super::assignment::Assignment;
use super::facts::{Given, PayoutFacts};
use super::pack::{Observed, Pack};

/// What shall become of a payout, the mildest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The payout is accepted.
    Allow,
    /// It waits for the operator.
    Hold,
    /// It is refused.
    Block,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// The rule's name.
    pub label: String,
    /// What it wants.
    pub action: Action,
    /// Why, in words for operators.
    pub reason: String,
    /// What merchants read instead, where the rule says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<String>,
}

/// A rule that matched, as merchants see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PublicHit {
    /// The rule's name.
    #[schema(example = "amount_cap")]
    pub label: String,
    /// What the rule says to merchants.
    #[schema(example = "This payout is being reviewed.")]
    pub message: String,
}

/// What a pack says about one payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    /// What shall become of it.
    pub action: Action,
    /// The rules that matched, in the pack's order.
    pub hits: Vec<Hit>,
}

/// A decision about a payout, with everything that it rests on.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// Who decided and who is being tried.
    pub assignment: Arc<Assignment>,
    /// What was decided.
    pub verdict: Verdict,
    /// Why the pack did not decide, if it did not.
    pub failure: Option<String>,
    /// What was known: the facts of the deciding pack first, then those that only the pack
    /// in shadow wants.
    pub facts: Vec<Fact>,
}

/// A payout that is about to be decided.
#[derive(Clone, Debug)]
pub struct Assessment {
    assignment: Arc<Assignment>,
    given: Given,
    amount: Minor,
    on_failure: OnFailure,
}

impl Action {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Hold => "hold",
            Self::Block => "block",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Hold, Self::Block].into_iter().find(|action| action.as_str() == text)
    }

    /// What merchants read where a rule has no words for them.
    const fn public(self) -> &'static str {
        match self {
            Self::Allow => "This payout may go.",
            Self::Hold => "This payout is being reviewed.",
            Self::Block => "This payout is refused by the platform's rules.",
        }
    }
}

impl Hit {
    /// What merchants see of it.
    #[must_use]
    pub fn public(&self) -> PublicHit {
        let message = self.public.as_deref().unwrap_or_else(|| self.action.public());
        PublicHit { label: self.label.clone(), message: message.to_owned() }
    }
}

impl Assessment {
    pub(super) fn new(
        assignment: Arc<Assignment>,
        payout: &PayoutFacts<'_>,
        on_failure: OnFailure,
    ) -> Self {
        let given = assignment.wanted.given(payout);
        Self { assignment, given, amount: payout.amount, on_failure }
    }

    /// The counters that the decision reads.
    #[must_use]
    pub fn counters(&self) -> Vec<String> {
        self.given.tracked.iter().map(|tracked| tracked.key.clone()).collect()
    }

    /// Decides on what the locked counters say. Besides, the counters with the payout in them, to be
    /// written where it is accepted.
    #[must_use]
    pub fn decide(&self, locked: &LockedState<'_>) -> (Ruling, Vec<CounterChange>) {
        let (counted, mut facts) = self.given.counted(locked, self.amount);
        let (verdict, failure) = match (&self.assignment.pack, &self.assignment.missing) {
            (_, Some(missing)) => {
                (Verdict::without(missing.decided(self.on_failure)), Some(missing.to_string()))
            }
            (None, None) => (Verdict::allow(), None),
            (Some(pack), None) => {
                let others = facts.split_off(pack.about.facts.len());
                let said = pack.assess(&facts);
                facts.extend(others);
                match said {
                    Ok(verdict) => (verdict, None),
                    Err(why) => (Verdict::without(self.on_failure), Some(why)),
                }
            }
        };
        let assignment = Arc::clone(&self.assignment);
        (Ruling { assignment, verdict, failure, facts }, counted)
    }
}

impl Ruling {
    /// Tells the pack how it did about a payout of this merchant, once what it decided is written: a
    /// decision may be made more than once until then.
    pub fn observe(&self, merchant: &MerchantId, env: Env) {
        if let Some(pack) = &self.assignment.pack {
            let (is_live, failure) = (env == Env::Live, self.failure.as_deref());
            pack.observe(Observed { merchant, is_live, failure });
        }
    }
}

impl Verdict {
    /// Nothing matched.
    #[must_use]
    pub const fn allow() -> Self {
        Self { action: Action::Allow, hits: Vec::new() }
    }

    /// What the operator wants where the pack fails.
    fn without(on_failure: OnFailure) -> Self {
        let action = match on_failure {
            OnFailure::Closed => Action::Hold,
            OnFailure::Open => Action::Allow,
        };
        let reason = "The rules could not be applied to this payout.".to_owned();
        let hit = Hit { label: "rules_failed".to_owned(), action, reason, public: None };
        Self { action, hits: vec![hit] }
    }

    /// Whether both decide the same by the same rules, whatever words these have.
    #[must_use]
    pub fn decides_as(&self, other: &Self) -> bool {
        self.action == other.action && self.labels() == other.labels()
    }

    /// The labels of the rules that matched.
    #[must_use]
    pub fn labels(&self) -> Vec<&str> {
        self.hits.iter().map(|hit| hit.label.as_str()).collect()
    }

    /// The rules that matched, as merchants see them.
    #[must_use]
    pub fn public(&self) -> Vec<PublicHit> {
        self.hits.iter().map(Hit::public).collect()
    }

    /// Why it holds or blocks, in words for merchants: what the rules say that want just that,
    /// each thing once.
    #[must_use]
    pub fn public_reason(&self) -> String {
        let mut told: Vec<String> = Vec::new();
        for hit in self.hits.iter().filter(|hit| hit.action == self.action) {
            let message = hit.public().message;
            if !told.contains(&message) {
                told.push(message);
            }
        }
        told.join(" ")
    }

    /// What the guest said, if it makes sense.
    fn read(said: wasm::Verdict) -> Result<Self, String> {
        if said.hits.len() > limits::PACK_HITS_MAX {
            return Err(format!("the pack answered {} hits", said.hits.len()));
        }
        let hits: Vec<Hit> = said.hits.into_iter().map(hit).collect();
        let is_odd = |hit: &Hit| {
            hit.label.is_empty()
                || hit.label.len() > limits::PACK_LABEL_MAX
                || hit.reason.len() > limits::PACK_REASON_MAX
                || hit.public.as_ref().is_some_and(|text| {
                    text.trim().is_empty() || text.len() > limits::PACK_REASON_MAX
                })
        };
        if let Some(odd) = hits.iter().find(|hit| is_odd(hit)) {
            let label: String = odd.label.chars().take(limits::PACK_LABEL_MAX).collect();
            return Err(format!("a text of hit {label:?} is empty or too long"));
        }
        let action = action(said.action);
        match hits.iter().map(|hit| hit.action).max().unwrap_or(Action::Allow) {
            severest if severest == action => Ok(Self { action, hits }),
            severest => {
                let (said, is) = (action.as_str(), severest.as_str());
                Err(format!("the pack answered {said}, its severest hit is {is}"))
            }
        }
    }
}

impl Pack {
    /// What the pack says about one payout.
    ///
    /// # Errors
    /// In words: it trapped, ran out of fuel, or answered nonsense.
    pub fn assess(&self, facts: &Vec<Fact>) -> Result<Verdict, String> {
        let answers = self.assess_all(std::slice::from_ref(facts))?;
        answers.into_iter().next().ok_or_else(|| "no answer".to_owned())
    }

    /// What the pack says about many payouts.
    ///
    /// # Errors
    /// As for one.
    pub fn assess_all(&self, payouts: &[Vec<Fact>]) -> Result<Vec<Verdict>, String> {
        let answers = self.code.assess(payouts).map_err(|broken| broken.to_string())?;
        answers.into_iter().map(Verdict::read).collect()
    }
}

fn hit(said: wasm::Hit) -> Hit {
    let wasm::Hit { label, action: wanted, reason, public } = said;
    Hit { label, action: action(wanted), reason, public }
}

fn action(said: wasm::Action) -> Action {
    match said {
        wasm::Action::Allow => Action::Allow,
        wasm::Action::Hold => Action::Hold,
        wasm::Action::Block => Action::Block,
    }
}
