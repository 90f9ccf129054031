//! Reconciliation: what a route's settlement account says was paid, against what its bank says.
//!
//! The books are the only memory. What the bank has and the books lack, or the other way round, is
//! taken in by an adjusting entry under the reference of what it explains: whoever compares again
//! finds the two together.

pub mod matching;
mod pairs;
pub mod sql;
pub mod verify;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::env::Env;
use crate::id::AdjustmentId;
use crate::ledger::{Account, Journal, Source, SystemAccount};
use crate::money::{Currency, Minor, Overflow};

/// Where the money of an adjusting entry went, or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::EnumIter, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contra {
    /// The operator's own money: put into the bank account, or taken out of it.
    Funding,
    /// What the bank charges, and pays as interest.
    BankCharges,
    /// What nobody can explain, and the platform bears.
    WrittenOff,
}

impl Contra {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Funding => "funding",
            Self::BankCharges => "bank_charges",
            Self::WrittenOff => "written_off",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|contra| contra.as_str() == text)
    }

    const fn account(self) -> SystemAccount {
        match self {
            Self::Funding => SystemAccount::Funding,
            Self::BankCharges => SystemAccount::BankCharges,
            Self::WrittenOff => SystemAccount::WrittenOff,
        }
    }
}

/// An adjusting entry: a difference between a bank's statement and the books, taken into the books.
#[derive(Clone, Debug)]
pub struct Adjustment {
    /// Its id.
    pub id: AdjustmentId,
    /// Test or live.
    pub env: Env,
    /// Whose settlement account it is about, by the route's name.
    pub route: String,
    /// The account's currency.
    pub currency: Currency,
    /// What the settlement account says was paid from now on; below zero, what came back.
    pub amount: Minor,
    /// Where that went, or came from.
    pub contra: Contra,
    /// The reference of what it explains, on the statement or in the books.
    pub reference: String,
    /// On which day the bank booked it.
    pub booked_on: String,
    /// Which one it is about this difference, from 1: one that was taken in by mistake is taken back,
    /// and may be taken in again.
    pub nth: i64,
    /// Why, for whoever reads it later.
    pub reason: String,
    /// When it was made.
    pub created_at: Moment,
}

impl Adjustment {
    /// Which difference it is about, whichever way it goes.
    #[must_use]
    pub fn difference(&self) -> String {
        let Self { env, route, currency, booked_on, amount, reference, .. } = self;
        let amount = amount.units().unsigned_abs();
        format!("{env}/{route}/{currency}/{booked_on}/{amount}/{reference}")
    }

    /// What no other one has.
    #[must_use]
    pub fn unique_key(&self) -> String {
        format!("{}/{}", self.difference(), self.nth)
    }

    /// Whether it may be taken in after the others about this difference, in the order in which
    /// they were made: each way once, until it was taken back. What names one of them by its id
    /// takes something back, and does not book what the bank has besides.
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn may_follow(&self, before: &[Self]) -> Result<bool, Overflow> {
        let sum = Minor::total(before.iter().map(|it| it.amount))?.plus(self.amount)?;
        let takes_back = before.iter().any(|it| it.id.as_str() == self.reference);
        let is_as_before = before.first().is_some_and(|first| first.amount == sum);
        Ok(match takes_back {
            true => sum == Minor::ZERO || is_as_before,
            false => sum.units().unsigned_abs() <= self.amount.units().unsigned_abs(),
        })
    }

    /// It as a line of the account, under its reference and its id: either may be named to take it
    /// back.
    #[must_use]
    pub fn entry(&self, journal_id: String) -> SettlementEntry {
        SettlementEntry {
            journal_id,
            kind: JOURNAL_KIND.to_owned(),
            amount_minor: self.amount,
            subject_id: self.id.to_string(),
            references: vec![self.reference.clone(), self.id.to_string()],
            file_id: None,
            file_references: Vec::new(),
            booked_on: Some(self.booked_on.clone()),
            created_at: self.created_at.to_string(),
        }
    }

    /// How it is booked.
    ///
    /// # Errors
    /// The amount has no opposite.
    pub fn journal(&self) -> Result<Journal, Overflow> {
        let mut journal = Journal {
            kind: JOURNAL_KIND,
            ref_type: "SettlementAdjustment",
            ref_id: self.id.to_string(),
            round: 1,
            env: self.env,
            currency: self.currency,
            postings: Vec::with_capacity(2),
        };
        let settlement = SystemAccount::Settlement(self.route.clone());
        let source = Source::ReconciliationAdjust;
        journal.post(Account::System(settlement), self.amount, source, "");
        journal.post(Account::System(self.contra.account()), self.amount.negated()?, source, "");
        Ok(journal)
    }
}

/// What journals of adjusting entries are called.
pub const JOURNAL_KIND: &str = "settlement_adjustment";

/// A line of a settlement account, as `GET /admin/v1/settlement_entries` tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettlementEntry {
    /// Its journal.
    #[schema(example = "c01kaz3v8d1f7wq5n2x4y6z8ab9")]
    pub journal_id: String,
    /// What kind of journal it is, such as `payout_settlement` or `settlement_adjustment`.
    #[schema(example = "payout_settlement")]
    pub kind: String,
    /// What the bank was told to pay, in minor units; below zero, what came back.
    #[schema(value_type = String, example = "100000")]
    pub amount_minor: Minor,
    /// The payout, the case or the adjusting entry that it is about.
    pub subject_id: String,
    /// What the bank may call it: the payment's references, and those of its file.
    pub references: Vec<String>,
    /// The file that it left in.
    pub file_id: Option<String>,
    /// References of that file: the bank may book it as one.
    pub file_references: Vec<String>,
    /// On which day the bank booked it, as an adjusting entry says; null of any other.
    pub booked_on: Option<String>,
    /// When it was booked here.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: String,
}

/// What stands before the lines of a settlement account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettlementAccount {
    /// The route's name.
    pub route: String,
    /// `test` or `live`.
    pub env: String,
    /// The account's currency.
    pub currency: String,
    /// Decimal places of its major unit.
    pub places: u8,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "object", rename_all = "snake_case")]
pub enum SettlementLine {
    /// The first: which account it is.
    SettlementAccount(SettlementAccount),
    /// An entry.
    SettlementEntry(SettlementEntry),
    /// The last: without it, the answer was cut off.
    End {
        /// How many entries there were.
        count: u64,
    },
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::id::Id as _;

    fn adjustment(id: &str, amount: i64, reference: &str) -> Adjustment {
        Adjustment {
            id: AdjustmentId::from_text(id.to_owned()),
            env: Env::Live,
            route: "ngn_nip".to_owned(),
            currency: Currency::parse("NGN").expect("a currency"),
            amount: Minor::new(amount),
            contra: Contra::BankCharges,
            reference: reference.to_owned(),
            booked_on: "2026-11-21".to_owned(),
            nth: 2,
            reason: "a charge".to_owned(),
            created_at: Moment::from_micros(0),
        }
    }

    fn may(new: &Adjustment, before: &[&Adjustment]) -> bool {
        let before: Vec<Adjustment> = before.iter().map(|it| (*it).clone()).collect();
        new.may_follow(&before).expect("it fits")
    }

    #[test]
    fn an_adjustment_balances_and_says_whose_account_it_is() {
        for contra in Contra::iter() {
            assert_eq!(Contra::parse(contra.as_str()), Some(contra));
            let adjustment = Adjustment { contra, ..adjustment("adj_1", -5_000, "BR 1") };
            let journal = adjustment.journal().expect("it balances");
            assert_eq!(journal.sum(), Ok(Minor::ZERO));
            assert_eq!(journal.postings[0].amount, Minor::new(-5_000));
            assert_eq!(adjustment.unique_key(), "live/ngn_nip/NGN/2026-11-21/5000/BR 1/2");
        }
    }

    #[test]
    fn a_difference_is_taken_in_once_until_it_was_taken_back() {
        let (there, back) = (adjustment("adj_1", -5, "BR 1"), adjustment("adj_2", 5, "BR 1"));
        assert!(may(&there, &[]) && !may(&there, &[&there]));
        assert!(may(&back, &[&there]) && may(&there, &[&there, &back]));
        assert!(may(&back, &[&there, &back]) && !may(&back, &[&back]));
    }

    #[test]
    fn what_was_taken_back_under_one_name_is_not_taken_back_under_the_other() {
        let (there, back) = (adjustment("adj_1", -5, "BR 1"), adjustment("adj_2", 5, "BR 1"));
        assert_eq!(there.entry("c1".to_owned()).references, ["BR 1", "adj_1"]);
        let by_id = adjustment("adj_3", 5, "adj_1");
        assert!(may(&by_id, &[&there]));
        assert!(!may(&by_id, &[&there, &back]) && !may(&by_id, &[&there, &by_id]));
        // Then it may be taken in again, or what took it back is taken back.
        assert!(may(&there, &[&there, &by_id]));
        let again = adjustment("adj_4", -5, "adj_3");
        assert!(may(&again, &[&there, &by_id]) && !may(&again, &[&there, &by_id, &again]));
        assert!(may(&by_id, &[&there, &by_id, &again]));
    }
}
