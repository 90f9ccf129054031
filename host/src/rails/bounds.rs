//! Between which amounts a route takes payments: narrower than its rail allows, where its operator
//! says so. A bank may have sold less than its network carries.

use std::collections::BTreeMap;

use serde_json::json;

use crate::error::{ErrorCode, Problem};
use crate::money::Minor;

/// The smallest amount, in minor units of the route's currency.
pub(super) const LEAST: &str = "bounds.least_minor";
/// The largest.
pub(super) const MOST: &str = "bounds.most_minor";

/// Amounts that a route takes. What is left out is not bounded here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    least: Option<Minor>,
    most: Option<Minor>,
}

impl Bounds {
    /// What the settings of a route say.
    pub(super) fn of(settings: &BTreeMap<String, String>) -> Self {
        let read = |name| settings.get(name).and_then(|text| amount(text));
        Self { least: read(LEAST), most: read(MOST) }
    }

    /// Whether an amount is within them.
    pub(super) fn take(self, amount: Minor) -> bool {
        self.least.is_none_or(|least| least <= amount)
            && self.most.is_none_or(|most| amount <= most)
    }

    /// Whether there is an amount that they take.
    pub(super) fn take_any(self) -> bool {
        self.most.is_none_or(|most| self.take(most))
    }

    /// The refusal of an amount that is within none of these.
    pub(super) fn refusal(all: &[Self], amount: Minor) -> Problem {
        let least = all.iter().map(|it| it.least.unwrap_or(Minor::ZERO)).min();
        let least = least.filter(|least| amount < *least);
        // Above some, and below others: what is a little less is taken.
        let reached = all.iter().filter_map(|it| it.most).filter(|most| *most < amount).max();
        let (kind, limit) = match (least, reached) {
            (Some(least), _) => ("below_minimum", least),
            (None, most) => ("per_transaction", most.unwrap_or(Minor::ZERO)),
        };
        let word = if kind == "below_minimum" { "from" } else { "up to" };
        let message = format!("Payouts of this kind are taken {word} {limit} minor units.");
        Problem::because(ErrorCode::LimitViolation, message).field("amount_minor").detail(json!({
            "kind": kind,
            "limit_minor": limit,
            "used_minor": Minor::ZERO,
            "requested_minor": amount,
        }))
    }
}

/// An amount as an operator writes one.
pub(super) fn amount(text: &str) -> Option<Minor> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|units| is_plain && *units > 0).map(Minor::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(least: Option<i64>, most: Option<i64>) -> Bounds {
        Bounds { least: least.map(Minor::new), most: most.map(Minor::new) }
    }

    #[test]
    fn what_is_within_and_what_is_refused() {
        let both = bounds(Some(10), Some(20));
        for (amount, is_taken) in [(9, false), (10, true), (20, true), (21, false)] {
            assert_eq!(both.take(Minor::new(amount)), is_taken, "{amount}");
            assert!(Bounds::default().take(Minor::new(amount)));
        }
        assert!(both.take_any() && !bounds(Some(20), Some(10)).take_any());
        let set =
            |name: &str, value: &str| Bounds::of(&BTreeMap::from([(name.into(), value.into())]));
        assert_eq!(set(LEAST, "10"), bounds(Some(10), None));
        assert_eq!(set(MOST, "-1"), Bounds::default());
        let refused = |all: &[Bounds], amount| {
            let problem = Bounds::refusal(all, Minor::new(amount));
            problem.to_string()
        };
        let all = [both, bounds(Some(30), Some(40))];
        assert!(refused(&all, 5).contains("from 10 minor units"), "{}", refused(&all, 5));
        assert!(refused(&all, 25).contains("up to 20 minor units"));
        assert!(refused(&all, 50).contains("up to 40 minor units"));
    }
}
