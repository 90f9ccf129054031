//! What takes more than one operator.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;
use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr};

use super::listed;

/// What takes more than one operator: the first one asks, and others ask for the same within a day.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Approvals {
    /// The kinds of acts that take two; none unless set.
    #[serde(deserialize_with = "listed")]
    pub two_people: Vec<ApprovalAct>,
    /// By currency, in minor units: the credits and debits of a wallet above this amount; all of
    /// them in a currency that is left out.
    pub credit_above_minor: BTreeMap<String, i64>,
    /// Acts about larger amounts that take more.
    pub tiers: Vec<ApprovalTier>,
}

/// From which amount on an act takes how many operators.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalTier {
    /// The kind of act; one that is about an amount.
    pub act: ApprovalAct,
    /// The currency of the amount.
    pub currency: String,
    /// Amounts above this one, in minor units.
    pub above_minor: i64,
    /// How many operators have to ask for it, the first one included.
    pub people: u32,
}

/// Kinds of acts that may take more than one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, EnumIter, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalAct {
    /// Crediting or debiting a wallet.
    Credit,
    /// A merchant's limits, and the thresholds above which its own people need a teammate.
    Limits,
    /// A live route: made, given other settings or addresses, or taking payouts again.
    LiveRoute,
    /// Ending a payout on evidence.
    Mark,
    /// Giving a paid payout back.
    Reverse,
    /// Making or replacing a merchant's key.
    Key,
    /// Delivering a file of payments once more that the bank may have.
    Redeliver,
    /// Closing a window of files before its time: what waits in it leaves.
    CloseWindow,
    /// Calling a payment off at its network.
    Recall,
    /// Rates of live conversions, and lifting what limits them.
    Rate,
    /// Which rule pack decides.
    RulePack,
    /// Resolving a case in which money moves.
    Case,
    /// Inviting a member of a merchant's team, inviting one again, or giving one more to do.
    Member,
    /// Taking a difference between a bank's statement and the books into the books; in live it takes
    /// two, whatever is said here.
    Adjust,
}

impl ApprovalAct {
    /// The word in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether it is about an amount, and so may have tiers.
    #[must_use]
    pub const fn has_amount(self) -> bool {
        matches!(
            self,
            Self::Credit | Self::Mark | Self::Reverse | Self::Recall | Self::Case | Self::Adjust
        )
    }
}

impl FromStr for ApprovalAct {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::iter().find(|act| act.as_str() == text);
        let words = || Self::iter().map(Self::as_str).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("{text} is none of {}", words()))
    }
}

impl Approvals {
    /// How many operators an act takes; one where nothing is said of it. The amount that it is about
    /// is its currency and minor units.
    #[must_use]
    pub fn people(&self, act: ApprovalAct, amount: Option<(&str, i64)>) -> u32 {
        let is_free = act == ApprovalAct::Credit
            && amount.is_some_and(|(currency, minor)| minor <= self.credit_free_minor(currency));
        let two = if self.is_named(act) && !is_free { 2 } else { 1 };
        let above = self.tiers.iter().filter(|tier| {
            tier.act == act
                && amount.is_some_and(|(currency, minor)| {
                    tier.currency.eq_ignore_ascii_case(currency) && minor > tier.above_minor
                })
        });
        above.map(|tier| tier.people).fold(two, u32::max)
    }

    /// Whether an act takes two. Members count for what is about their own merchant: where that takes
    /// two, so does making one, or whoever makes one would be two by themselves.
    fn is_named(&self, act: ApprovalAct) -> bool {
        use ApprovalAct::{Key, Limits, Member};
        let members_count = self.two_people.contains(&Key) || self.two_people.contains(&Limits);
        self.two_people.contains(&act) || (act == Member && members_count)
    }

    /// The amount of a currency up to which one operator is enough for a credit.
    fn credit_free_minor(&self, currency: &str) -> i64 {
        let mut amounts = self.credit_above_minor.iter();
        amounts.find(|(code, _)| code.eq_ignore_ascii_case(currency)).map_or(0, |(_, most)| *most)
    }

    /// What stands against these settings where there are so many operators.
    ///
    /// # Errors
    /// The setting, and what it must be.
    pub fn check(&self, operators: usize) -> Result<(), String> {
        if !self.two_people.is_empty() && operators < 2 {
            return Err("approvals.two_people needs a second operator in admin.operators".into());
        }
        if let Some((currency, _)) = self.credit_above_minor.iter().find(|(_, most)| **most < 0) {
            return Err(format!("approvals.credit_above_minor.{currency} must be 0 at least"));
        }
        for ApprovalTier { act, currency, above_minor, people } in &self.tiers {
            let tier = format!("approvals.tiers: {} {currency} above {above_minor}", act.as_str());
            if !act.has_amount() {
                return Err(format!("{tier}: this act is about no amount"));
            }
            if *above_minor < 0 {
                return Err(format!("{tier}: above_minor must be 0 at least"));
            }
            if *people < 2 {
                return Err(format!("{tier}: people must be 2 at least"));
            }
            if usize::try_from(*people).unwrap_or(usize::MAX) > operators {
                return Err(format!("{tier}: {people} people are more than there are operators"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_amounts_take_more_people() {
        let tier = |act, above_minor, people| ApprovalTier {
            act,
            currency: "NGN".to_owned(),
            above_minor,
            people,
        };
        let approvals = Approvals {
            two_people: vec![ApprovalAct::Credit, ApprovalAct::Key],
            credit_above_minor: [("ngn".to_owned(), 100)].into(),
            tiers: vec![tier(ApprovalAct::Credit, 1_000, 3), tier(ApprovalAct::Mark, 500, 2)],
        };
        use ApprovalAct::{Credit, Key, Mark, Member, Rate, Reverse};
        for (act, amount, people) in [
            (Credit, Some(("NGN", 100)), 1),
            (Credit, Some(("NGN", 101)), 2),
            (Credit, Some(("NGN", 1_001)), 3),
            (Credit, Some(("USD", 1)), 2),
            (Mark, Some(("NGN", 500)), 1),
            (Mark, Some(("ngn", 501)), 2),
            (Mark, Some(("USD", 501)), 1),
            (Reverse, Some(("NGN", 501)), 1),
            (Key, None, 2),
            // Whoever could make a member alone could be both people.
            (Member, None, 2),
            (Rate, None, 1),
        ] {
            assert_eq!(approvals.people(act, amount), people, "{act:?} {amount:?}");
        }
        assert!(approvals.check(3).is_ok());
        assert!(approvals.check(2).expect_err("three people").contains("3 people"));
        assert!(approvals.check(1).expect_err("one operator").contains("two_people"));
        let odd = Approvals { tiers: vec![tier(Key, 1, 2)], ..Approvals::default() };
        assert!(odd.check(9).expect_err("no amount").contains("no amount"));
        for (tier, what) in [
            (tier(Credit, -1, 2), "above_minor must be 0"),
            (tier(Credit, 1, 1), "people must be 2"),
        ] {
            let odd = Approvals { tiers: vec![tier], ..Approvals::default() };
            assert!(odd.check(9).expect_err(what).contains(what));
        }
        let credit_above_minor = [("NGN".to_owned(), -1)].into();
        let odd = Approvals { credit_above_minor, ..Approvals::default() };
        assert!(odd.check(9).expect_err("below 0").contains("credit_above_minor.NGN"));
    }

    #[test]
    fn a_misspelt_act_is_told_what_there_is() {
        assert_eq!("close_window".parse(), Ok(ApprovalAct::CloseWindow));
        let refusal = "marks".parse::<ApprovalAct>().expect_err("a misspelling");
        assert!(refusal.contains("mark,") && refusal.contains("rule_pack"), "{refusal}");
    }
}
