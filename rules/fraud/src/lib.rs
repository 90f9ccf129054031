//! The built-in fraud pack.
//!
//! [`rules`] reads `rules.toml`, whose conditions are written in the language of [`cel`];
//! [`assess()`] looks at the rules for one payout.

pub mod assess;
pub mod cel;
pub mod rules;

use railhead_rule::{Facts, FraudPack, Problem, Verdict, export_fraud_pack};

use crate::assess::assess;
use crate::rules::Rules;

impl FraudPack for Rules {
    fn open(rules: &str) -> Result<Self, Vec<Problem>> {
        Self::read(rules)
    }

    fn assess(&self, facts: &Facts<'_>) -> Verdict {
        assess(self, facts)
    }
}

export_fraud_pack!(Rules);
