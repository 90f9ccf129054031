//! The built-in fee pack.
//!
//! [`rules`] reads `rules.toml` into what [`price()`] works with.

pub mod percent;
pub mod price;
pub mod rules;

use railhead_rule::{Facts, FeePack, Line, Problem, export_fee_pack};

use crate::price::price;
use crate::rules::Rules;

impl FeePack for Rules {
    fn open(rules: &str) -> Result<Self, Vec<Problem>> {
        Self::read(rules)
    }

    fn price(&self, facts: &Facts<'_>) -> Result<Vec<Line>, String> {
        price(self, facts)
    }
}

export_fee_pack!(Rules);
