//! What a rule pack is written with.
//!
//! A pack is a type that reads its rules once ([`FeePack::open`], [`FraudPack::open`]) and
//! then decides about one payout at a time. One line makes a component of it:
//!
//! ```
//! use railhead_rule::{Action, Facts, FraudPack, Hit, Problem, Verdict, export_fraud_pack};
//!
//! struct Capped;
//!
//! impl FraudPack for Capped {
//!     fn open(_rules: &str) -> Result<Self, Vec<Problem>> {
//!         Ok(Self)
//!     }
//!
//!     fn assess(&self, facts: &Facts<'_>) -> Verdict {
//!         let is_high = facts.int("amount_minor").is_some_and(|amount| amount > 1_000_000);
//!         let hit = || Hit::new("amount_cap", Action::Hold, "The amount is unusually high.");
//!         Verdict::of(is_high.then(hit).into_iter().collect())
//!     }
//! }
//!
//! export_fraud_pack!(Capped);
//! ```
//!
//! On the developer's own machine the line exports nothing, so packs are tested like any other
//! code. A pack must be pure: no clock, no randomness, no state that one decision leaves to
//! the next.

#[doc(hidden)]
pub mod bindings;
mod facts;
mod fees;
mod fraud;
#[doc(hidden)]
pub mod guest;

pub use bindings::types::railhead::rules::facts::{Fact, Value};
pub use facts::{Facts, fact};
pub use fees::{FeePack, Kind, Line};
pub use fraud::{Action, FraudPack, Hit, Verdict};

/// Something that is wrong in the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a dotted path into `rules.toml`.
    pub at: String,
    /// What, for the one who wrote it.
    pub message: String,
}

impl Problem {
    /// A problem at a place.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into() }
    }
}
