//! An exchange in the books, and what the platform holds because of it.
//!
//! | | wallet sold from | its `fx_position` | `fx_position` bought | wallet bought into |
//! |---|---|---|---|---|
//! | journal of the currency sold | − sold | + sold | | |
//! | journal of the currency bought | | | − bought | + bought |

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::WalletId;
use crate::ledger::{Account, CounterChange, Effects, Journal, LockedState, Source, SystemAccount};
use crate::money::{Currency, Minor, Overflow};

use super::market::Pair;
use super::rate::Rate;

/// What an operator lets the platform do in a currency.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Test or live.
    pub env: Env,
    /// The currency that is bought.
    pub currency: Currency,
    /// How often it has been set.
    pub version: i64,
    /// Whether nothing is exchanged into it.
    pub is_paused: bool,
    /// How far the platform's position may go below zero, in minor units.
    pub exposure_cap: Option<Minor>,
    /// When it was set.
    pub updated_at: Moment,
}

impl Limit {
    /// No limit at all.
    #[must_use]
    pub fn none(env: Env, currency: Currency) -> Self {
        let updated_at = Moment::default();
        Self { env, currency, version: 0, is_paused: false, exposure_cap: None, updated_at }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.env, self.currency)
    }
}

/// An exchange from one wallet of a merchant into another.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What is sold, and what is bought.
    pub pair: Pair,
    /// What leaves the one wallet.
    pub sold: Minor,
    /// What enters the other.
    pub bought: Minor,
    /// At which rate.
    pub rate: Rate,
}

/// What was exchanged within a pair so far.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// The pair.
    pub pair: Pair,
    /// How often.
    pub count: i64,
    /// What was sold.
    pub sold: Minor,
    /// What was bought.
    pub bought: Minor,
}

/// What is counted of an environment.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// What the platform holds, by currency.
    pub held: BTreeMap<Currency, Minor>,
    /// What was exchanged, pair by pair.
    pub exchanged: Vec<Exchanged>,
}

/// How much is to be exchanged: exactly this on one of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// So much is sold.
    Sell(Minor),
    /// So much is bought.
    Buy(Minor),
}

/// Counters of exchanges never end.
pub const FOR_EVER: i64 = i64::MAX;

/// The counter of what the platform holds of a currency.
#[must_use]
pub fn held(env: Env, currency: Currency) -> String {
    format!("fx/{env}/{currency}")
}

/// The counters of what was exchanged within a pair: how often and how much was sold, and bought.
#[must_use]
pub fn exchanged(pair: Pair) -> [String; 2] {
    let Pair { env, from, to } = pair;
    ["sold", "bought"].map(|side| format!("fx/{env}/{from}/{to}/{side}"))
}

/// Every counter that an exchange within a pair changes.
#[must_use]
pub fn counters(pair: Pair) -> [String; 4] {
    let [sold, bought] = exchanged(pair);
    [held(pair.env, pair.from), held(pair.env, pair.to), sold, bought]
}

impl Exchange {
    /// The exchange at a rate. `shift` is by how many decimal places the currency that is bought
    /// has more.
    ///
    /// # Errors
    /// `invalid_amount` where it comes to nothing, or to more than can be.
    pub fn of(pair: Pair, basis: Basis, rate: Rate, shift: i32) -> Result<Self, Problem> {
        let (sold, bought) = match basis {
            Basis::Sell(sold) => (sold, rate.bought(sold, shift)?),
            Basis::Buy(bought) => (rate.sold(bought, shift)?, bought),
        };
        let most = limits::MOVEMENT_MINOR_MAX;
        let message = match (bought.units(), sold.units().max(bought.units())) {
            (..=0, _) => format!("The amount comes to nothing in {}.", pair.to),
            (_, larger) if larger > most => {
                format!("One conversion may be {most} minor units at most, on either side.")
            }
            _ => return Ok(Self { pair, sold, bought, rate }),
        };
        Err(Problem::because(ErrorCode::InvalidAmount, message))
    }

    /// Refuses what an operator does not let the platform do, which holds so much of what is bought.
    ///
    /// # Errors
    /// `fx_exposure_cap_exceeded`.
    pub fn refuse_excess(&self, held: Minor, limit: &Limit) -> Result<(), Problem> {
        let Some(cap) = limit.exposure_cap else { return Ok(()) };
        let room = i128::from(held.units()) + i128::from(cap.units());
        match room >= i128::from(self.bought.units()) {
            true => Ok(()),
            false => Err(Problem::new(ErrorCode::FxExposureCapExceeded)),
        }
    }

    /// Its two journals between the wallet that is debited and the one that is credited.
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn journals(
        &self,
        (from, to): (&WalletId, &WalletId),
        id: &str,
    ) -> Result<[Journal; 2], Overflow> {
        let Self { pair, sold, bought, rate } = self;
        let mut out = journal(*pair, (pair.from, "conversion_debit"), id);
        let label = format!("Converted to {} at {rate}", pair.to);
        out.post(Account::Wallet(from.clone()), sold.negated()?, Source::FxConversion, &label);
        out.post(Account::System(SystemAccount::FxPosition), *sold, Source::FxConversion, "");
        let mut into = journal(*pair, (pair.to, "conversion_credit"), id);
        let label = format!("Converted from {} at {rate}", pair.from);
        into.post(Account::Wallet(to.clone()), *bought, Source::FxConversion, &label);
        let position = Account::System(SystemAccount::FxPosition);
        into.post(position, bought.negated()?, Source::FxConversion, "");
        Ok([out, into])
    }

    /// Moves the money, and counts it. `id` is that of the conversion.
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn book(
        &self,
        locked: &LockedState<'_>,
        effects: &mut Effects,
        wallets: (&WalletId, &WalletId),
        id: &str,
    ) -> Result<(), Overflow> {
        let Self { pair, sold, bought, .. } = self;
        effects.journals.extend(self.journals(wallets, id)?);
        for (key, change) in
            [(held(pair.env, pair.from), *sold), (held(pair.env, pair.to), bought.negated()?)]
        {
            let before = locked.counter(&key).sum;
            let sum = match pair.env {
                Env::Live => before.plus(change)?,
                Env::Test => wrapping_sum(before, change),
            };
            effects.counters.push(counted(locked, key, sum));
        }
        // What is known of a pair goes no further than a number can, and refuses nothing.
        for (key, change) in exchanged(*pair).into_iter().zip([sold, bought]) {
            let before = locked.counter(&key).sum;
            let sum = match pair.env {
                Env::Live => Minor::new(before.units().saturating_add(change.units())),
                Env::Test => wrapping_sum(before, *change),
            };
            effects.counters.push(counted(locked, key, sum));
        }
        Ok(())
    }
}

/// With play money one merchant can reach the end of a number, and the platform's sums are
/// everybody's: they go on from the other end, and nobody is refused anything.
fn wrapping_sum(sum: Minor, change: Minor) -> Minor {
    Minor::new(sum.units().wrapping_add(change.units()))
}

/// What is counted under a key of which all changes come to `sum`.
#[must_use]
pub fn stored_sum(key: &str, sum: i128) -> i64 {
    if !key.starts_with(&format!("fx/{}/", Env::Test)) {
        // What is known of a pair goes no further than a number can.
        return i64::try_from(sum).unwrap_or(i64::MAX);
    }
    let [_, _, _, _, _, _, _, _, low @ ..] = sum.to_be_bytes();
    i64::from_be_bytes(low)
}

fn journal(pair: Pair, (currency, kind): (Currency, &'static str), id: &str) -> Journal {
    Journal {
        kind,
        ref_type: "Conversion",
        ref_id: id.to_owned(),
        round: 1,
        env: pair.env,
        currency,
        postings: Vec::with_capacity(2),
    }
}

fn counted(locked: &LockedState<'_>, key: String, sum: Minor) -> CounterChange {
    let count = locked.counter(&key).count + 1;
    CounterChange { key, holder: String::new(), count, sum, expires_at: FOR_EVER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_play_money_go_round_the_end_and_are_proved_so() {
        let most = Minor::new(i64::MAX);
        let mut sum = Minor::ZERO;
        let mut all = 0_i128;
        for change in [most, most, most, Minor::new(-5), Minor::new(7)] {
            sum = wrapping_sum(sum, change);
            all += i128::from(change.units());
            assert_eq!(stored_sum("fx/test/NGN", all), sum.units());
        }
        assert_eq!(stored_sum("fx/live/NGN", 7), 7);
        assert_eq!(stored_sum("fx/live/NGN", i128::MAX), i64::MAX);
    }
}
