//! Prices of single payouts.

use railhead_rule::{Facts, Kind, Line};

use crate::rules::{Conditions, Price, Rules, Tier};

/// The price of one payout; lines of nothing are left out.
///
/// # Errors
/// No rule matches, or a sum does not fit.
pub fn price(rules: &Rules, facts: &Facts<'_>) -> Result<Vec<Line>, String> {
    let amount = facts.int("amount_minor").filter(|&amount| amount > 0);
    let amount = amount.ok_or("the amount is not known")?;
    let rule = rules.price.iter().find(|rule| rule.when.hold(facts));
    let rule = rule.ok_or_else(|| {
        let currency = facts.string("currency").unwrap_or("this currency");
        format!("no price matches a payout in {currency}")
    })?;
    let fee = rule.fee(amount).ok_or("the fee does not fit")?;
    let tax = rule.tax_percent.of(fee).ok_or("the tax does not fit")?;
    let mut lines = Vec::new();
    let mut add = |kind, label: &str, amount_minor| {
        if amount_minor > 0 {
            lines.push(Line { kind, label: label.to_owned(), amount_minor });
        }
    };
    add(Kind::Fee, "Payout fee", fee);
    add(Kind::Tax, "Tax on the fee", tax);
    for levy in &rules.levy {
        if levy.when.hold(facts) && amount >= levy.from_minor {
            add(Kind::Levy, &levy.label, levy.amount_minor);
        }
    }
    Ok(lines)
}

impl Conditions {
    fn hold(&self, facts: &Facts<'_>) -> bool {
        self.wanted().all(|(fact, want)| facts.string(fact) == Some(want))
    }
}

impl Price {
    fn fee(&self, amount: i64) -> Option<i64> {
        let tier = self.tiers.iter().find(|tier| tier.up_to_minor.is_none_or(|up| amount <= up));
        tier.and_then(|tier| tier.charge(amount))
    }
}

impl Tier {
    fn charge(&self, amount: i64) -> Option<i64> {
        let fee = self.flat_minor.checked_add(self.percent.of(amount)?)?;
        Some(fee.max(self.min_minor).min(self.max_minor.unwrap_or(i64::MAX)))
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
#[expect(clippy::expect_used, reason = "tests")]
mod tests {
    use railhead_rule::{Fact, fact};

    use super::*;

    const BUILT_IN: &str = include_str!("../rules.toml");
    const HEAD: &str = "manifest = 1\n[pack]\nname = 'own'\n\
        facts = ['merchant', 'currency', 'method', 'kind', 'amount_minor']\n";

    fn payout(merchant: &str, currency: &str, amount: i64) -> Vec<Fact> {
        vec![
            fact("merchant", merchant),
            fact("currency", currency),
            fact("method", "nip"),
            fact("kind", "single"),
            fact("amount_minor", amount),
        ]
    }

    fn sums(rules: &Rules, facts: &[Fact]) -> (i64, i64, i64) {
        let lines = price(rules, &Facts(facts)).expect("a price");
        let sum = |kind| lines.iter().filter(|l| l.kind == kind).map(|l| l.amount_minor).sum();
        (sum(Kind::Fee), sum(Kind::Tax), sum(Kind::Levy))
    }

    #[test]
    fn the_built_in_rules_price_naira_by_band() {
        let rules = Rules::read(BUILT_IN).expect("valid");
        for (amount, expected) in [
            (1, (1_000, 75, 0)),
            (500_000, (1_000, 75, 0)),
            (500_001, (2_500, 188, 0)),
            (999_999, (2_500, 188, 0)),
            (1_000_000, (2_500, 188, 5_000)),
            (5_000_001, (5_000, 375, 5_000)),
            (i64::MAX, (5_000, 375, 5_000)),
        ] {
            assert_eq!(sums(&rules, &payout("c1", "NGN", amount)), expected, "{amount}");
        }
        // What has no price of its own costs nothing, so that a rail can be tried.
        assert_eq!(sums(&rules, &payout("c1", "JPY", 1)), (0, 0, 0));
        assert!(price(&rules, &Facts(&payout("c1", "NGN", 0))).is_err());
    }

    #[test]
    fn what_no_rule_is_for_has_no_price() {
        let text = format!(
            "{HEAD}[[price]]\nwhen = {{ currency = 'NGN' }}\ntiers = [{{ flat_minor = 7 }}]\n"
        );
        let rules = Rules::read(&text).expect("valid");
        assert!(price(&rules, &Facts(&payout("c1", "JPY", 1))).is_err());
    }

    #[test]
    fn the_first_match_counts_and_bounds_hold() {
        let text = format!(
            "{HEAD}[[price]]\nwhen = {{ merchant = 'c1' }}\ntiers = [{{ flat_minor = 7 }}]\n\
             [[price]]\ntiers = [{{ percent = '1.5', min_minor = 100, max_minor = 200 }}]\n"
        );
        let rules = Rules::read(&text).expect("valid");
        assert_eq!(sums(&rules, &payout("c1", "NGN", 10_000)), (7, 0, 0));
        assert_eq!(sums(&rules, &payout("c2", "NGN", 1_000)), (100, 0, 0));
        assert_eq!(sums(&rules, &payout("c2", "NGN", 10_000)), (150, 0, 0));
        assert_eq!(sums(&rules, &payout("c2", "NGN", 1_000_000)), (200, 0, 0));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let text = format!(
            "{HEAD}[[price]]\nwhen = {{ kind = 'bulk', currency = 'ngn' }}\n\
             tiers = [{{ flat_minor = 1 }}, {{ up_to_minor = 5, flat_minor = -1 }}]\n\
             [[levy]]\nlabel = 'x'\namount_minor = -5\n"
        );
        let problems = Rules::read(&text).expect_err("mistakes");
        let places: Vec<_> = problems.iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(
            places,
            [
                "price[0].when.kind",
                "price[0].when.currency",
                "price[0].tiers[0]",
                "price[0].tiers[1]",
                "price[0].tiers[1]",
                "levy[0]"
            ]
        );
        // The host tells a pack what it lists, and nothing else.
        let text = "manifest = 1\n[pack]\nfacts = ['method']\n[[price]]\n\
                    when = { currency = 'NGN', method = 'nip' }\ntiers = [{ flat_minor = 1 }]\n\
                    [[levy]]\namount_minor = 1\nlabel = '";
        let problems = Rules::read(&format!("{text}{}'\n", "x".repeat(65))).expect_err("mistakes");
        let places: Vec<_> = problems.iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(places, ["pack.facts", "price[0].when.currency", "levy[0].label"]);
        for typo in ["tax_percent = '7,5'", "tax = '7.5'", "tiers = [{ flat = 1 }]"] {
            let text = format!("{HEAD}[[price]]\ntiers = [{{ flat_minor = 1 }}]\n{typo}\n");
            assert!(Rules::read(&text).is_err(), "{typo}");
        }
    }
}
