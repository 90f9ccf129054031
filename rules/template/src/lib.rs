//! {{name}}: holds large first payments.
//!
//! Test it with `cargo test`; build the component with
//! `cargo build --release --target wasm32-wasip2`.

use std::collections::BTreeMap;

use railhead_rule::{Action, Facts, FraudPack, Hit, Problem, Verdict, export_fraud_pack};
use serde::Deserialize;

/// What this pack reads of `rules.toml`.
#[derive(Deserialize)]
struct Rules {
    /// By currency.
    first_payment_max_minor: BTreeMap<String, i64>,
}

impl FraudPack for Rules {
    /// Called once, before anything is decided. A pack that answers with problems is not
    /// activated, so everything that can be wrong is best found here.
    fn open(rules: &str) -> Result<Self, Vec<Problem>> {
        let rules: Self = toml::from_str(rules)
            .map_err(|cause| vec![Problem::new("rules.toml", cause.to_string())])?;
        let negative = rules.first_payment_max_minor.iter().filter(|(_, limit)| **limit < 0);
        let problems: Vec<Problem> = negative
            .map(|(currency, _)| {
                let at = format!("first_payment_max_minor.{currency}");
                Problem::new(at, "must not be negative")
            })
            .collect();
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    /// Called for every payout. The same facts must give the same verdict: nothing else may
    /// count, not even what was decided before.
    fn assess(&self, facts: &Facts<'_>) -> Verdict {
        let limit = facts.string("currency").and_then(|code| self.first_payment_max_minor.get(code));
        let is_first = facts.bool("first_payment") == Some(true);
        let mut hits = Vec::new();
        if let (Some(limit), Some(amount), true) = (limit, facts.int("amount_minor"), is_first)
            && amount > *limit
        {
            let reason = "A large first payment to this recipient.";
            let hit = Hit::new("first_payment", Action::Hold, reason);
            // The reason is for operators; this is what the merchant reads.
            hits.push(hit.with_public("Large first payments are reviewed."));
        }
        Verdict::of(hits)
    }
}

export_fraud_pack!(Rules);

#[cfg(test)]
mod tests {
    use railhead_rule::fact;

    use super::*;

    const RULES: &str = include_str!("../rules.toml");

    #[test]
    fn large_first_payments_are_held() {
        let rules = Rules::open(RULES).expect("the rules are valid");
        let action = |amount: i64, is_first: bool| {
            let facts = [
                fact("currency", "NGN"),
                fact("amount_minor", amount),
                fact("first_payment", is_first),
            ];
            rules.assess(&Facts(&facts)).action
        };
        assert_eq!(action(100_000_000, true), Action::Allow);
        assert_eq!(action(100_000_001, true), Action::Hold);
        assert_eq!(action(100_000_001, false), Action::Allow);
    }

    #[test]
    fn negative_limits_are_refused() {
        let refused = Rules::open("[first_payment_max_minor]\nNGN = -1\n");
        let problems = refused.err().expect("a problem");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].at, "first_payment_max_minor.NGN");
    }
}
