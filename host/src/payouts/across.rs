//! Paying in one currency out of a wallet in another: what is asked for, and what it comes to.
//!
//! What is needed is bought into the merchant's wallet of the recipient's currency, and the payout
//! is paid from there. At a rate, selling `x` buys `B(x)`, and buying `y` takes `S(y)`; both are
//! rounded as in [`crate::fx::rate`]. A payout of `a` costs `C(a)`: `a`, fee, tax and levy.
//!
//! | asked for | the recipient gets `a` | bought | debited |
//! |---|---|---|---|
//! | `amount_minor` | as asked for | `C(a)` | `S(C(a))`, at most `max_debit_minor` |
//! | `funding_amount_minor` = `f`, charges on top | `B(f)`, at least `min_receive_minor` | `C(a)` | `S(C(a))` |
//! | the same, charges included | `a` with `C(a) ≤ B(f) < C(a + 1)`, at least `min_receive_minor` | `B(f)` | `f` |
//!
//! The charges in the currency that pays are `S(C(a)) − S(a)`. Where they are on top, the debit is
//! at most `f` and they; it is less by what rounding would have kept of `f`. Where they are
//! included, what is left of `B(f)` because charges have steps stays in the wallet that pays out.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{ErrorCode, Problem};
use crate::fx::{Basis, Exchange, Rate};
use crate::id::{ConversionId, WalletId};
use crate::money::{Currency, Minor};
use crate::rules::Price;

use super::costs::Costs;

/// How much is paid, and out of what.
#[derive(Clone, Debug)]
pub enum Asked {
    /// So much, from the wallet of the same currency.
    Plain(Minor),
    /// From the wallet of another currency.
    Across(Across),
}

impl Asked {
    /// The field whose amount decides what the recipient gets.
    #[must_use]
    pub const fn amount_field(&self) -> &'static str {
        match self {
            Self::Across(across) => across.method.field(),
            Self::Plain(_) => "amount_minor",
        }
    }
}

/// A payment out of another currency.
#[derive(Clone, Debug)]
pub struct Across {
    /// The currency that pays.
    pub from: Currency,
    /// How much.
    pub method: Method,
}

/// Which amount is the exact one, with the guard of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// What the recipient gets.
    Destination {
        /// How much.
        amount: Minor,
        /// The most that may leave the funding wallet.
        max_debit: Option<Minor>,
    },
    /// What is spent.
    Source {
        /// How much.
        amount: Minor,
        /// Whether it includes the charges.
        is_inclusive: bool,
        /// The least that the recipient may get.
        min_receive: Option<Minor>,
    },
}

/// What such a payment comes to.
#[derive(Clone, Debug)]
pub(super) struct Costed {
    /// What leaves the wallet of the recipient's currency.
    pub costs: Costs,
    /// What is charged, and by which pack.
    pub price: Price,
    /// Which side of the exchange is the exact one.
    pub basis: Basis,
    /// What is bought for it.
    pub exchange: Exchange,
    /// The charges in the currency that pays.
    pub charges: Minor,
    /// The most that may leave the funding wallet where the payout goes later, and the rate is
    /// another one by then: who pays from a source did not agree to spend more.
    pub most: Option<Minor>,
}

impl Method {
    /// The field in which the exact amount was sent.
    pub(super) const fn field(&self) -> &'static str {
        match self {
            Self::Destination { .. } => "amount_minor",
            Self::Source { .. } => "funding_amount_minor",
        }
    }

    /// What it comes to where `exchange` says what amounts make of each other, and `price` what a
    /// payout is charged. What a recipient gets of a source amount is a multiple of `step`; what is
    /// bought beyond that stays in the wallet.
    ///
    /// # Errors
    /// `max_debit_exceeded`, `min_receive_not_met`, `funding_below_fee`, `invalid_amount` for what
    /// comes to nothing or is too large, and the refusals of `price`.
    pub(super) fn cost(
        &self,
        exchange: impl Fn(Basis) -> Result<Exchange, Problem>,
        price: impl Fn(Minor) -> Result<Price, Problem>,
        step: i64,
    ) -> Result<Costed, Problem> {
        let exchange = |basis| exchange(basis).map_err(|problem| problem.field(self.field()));
        let (costs, price) = match *self {
            Self::Destination { amount, .. } => cost(amount, &price)?,
            Self::Source { amount, is_inclusive, .. } => {
                let all = exchange(Basis::Sell(amount))?.bought;
                match is_inclusive {
                    true => most_within((all, step), &price)?,
                    false => cost(whole_steps(all, step)?, &price)?,
                }
            }
        };
        let needed = Basis::Buy(costs.total()?);
        let basis = match *self {
            Self::Source { amount, is_inclusive: true, .. } => Basis::Sell(amount),
            _ => needed,
        };
        let alone = exchange(Basis::Buy(costs.amount))?;
        let charges = exchange(needed)?.sold.minus(alone.sold)?;
        let bought = exchange(basis)?;
        let most = match *self {
            Self::Destination { max_debit, .. } => max_debit,
            Self::Source { .. } => Some(bought.sold),
        };
        let costed = Costed { costs, price, basis, exchange: bought, charges, most };
        self.guard(&costed)?;
        Ok(costed)
    }

    fn guard(&self, costed: &Costed) -> Result<(), Problem> {
        match *self {
            Self::Destination { max_debit: Some(most), .. } if costed.exchange.sold > most => {
                let detail = json!({ "debit_minor": costed.exchange.sold });
                let problem = Problem::new(ErrorCode::MaxDebitExceeded).field("max_debit_minor");
                Err(problem.detail(detail))
            }
            Self::Source { min_receive: Some(least), .. } if costed.costs.amount < least => {
                let detail = json!({ "amount_minor": costed.costs.amount });
                let problem = Problem::new(ErrorCode::MinReceiveNotMet).field("min_receive_minor");
                Err(problem.detail(detail))
            }
            _ => Ok(()),
        }
    }
}

/// As much of an amount as is a multiple of `step`.
///
/// # Errors
/// `invalid_amount` where that is nothing.
fn whole_steps(all: Minor, step: i64) -> Result<Minor, Problem> {
    let whole = all.units() - all.units() % step;
    if whole == 0 {
        let message = format!("It buys less than {step} minor units: nobody can be paid less.");
        return Err(
            Problem::because(ErrorCode::InvalidAmount, message).field("funding_amount_minor")
        );
    }
    Ok(Minor::new(whole))
}

/// What an amount costs.
///
/// # Errors
/// Those of `price`; the sum does not fit.
pub(super) fn cost(
    amount: Minor,
    price: &impl Fn(Minor) -> Result<Price, Problem>,
) -> Result<(Costs, Price), Problem> {
    let price = price(amount)?;
    Ok((Costs::of(amount, &price.tariff, &price.amounts)?, price))
}

/// The amount that costs so much and would cost more with a step on top.
fn most_within(
    (all, step): (Minor, i64),
    price: &impl Fn(Minor) -> Result<Price, Problem>,
) -> Result<(Costs, Price), Problem> {
    // An amount of nothing is affordable, and one above everything is not: charges are no gifts.
    let (mut low, mut high) = (0, (all.units() / step).saturating_add(1));
    let mut found = None;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let (costs, price) = cost(Minor::new(middle * step), price)?;
        match costs.total()? <= all {
            true => (low, found) = (middle, Some((costs, price))),
            false => high = middle,
        }
    }
    found.ok_or_else(|| Problem::new(ErrorCode::FundingBelowFee).field("funding_amount_minor"))
}

/// What pays for a payout in another currency, as it was agreed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funding {
    /// The wallet that what is needed is bought from.
    pub wallet_id: WalletId,
    /// Its currency.
    pub currency: Currency,
    /// By how many decimal places the payout's currency has more.
    pub shift: i32,
    /// The most that may leave the wallet, where that was said.
    pub most: Option<Minor>,
    /// What would have left it when the payout was made.
    pub quoted: Minor,
}

/// What was bought for a payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Funded {
    /// The conversion.
    pub conversion_id: ConversionId,
    /// Its rate.
    pub rate: Rate,
    /// What left the funding wallet.
    pub sold: Minor,
    /// What came into the wallet that pays out.
    pub bought: Minor,
    /// What of `sold` is for the charges.
    pub charges: Minor,
}

impl Funded {
    /// By a conversion.
    pub(super) fn by(id: &ConversionId, exchange: &Exchange, charges: Minor) -> Self {
        let Exchange { rate, sold, bought, .. } = *exchange;
        Self { conversion_id: id.clone(), rate, sold, bought, charges }
    }
}

/// What a request says of its amounts, and of the currency that pays.
pub(super) struct AmountFields<'a> {
    /// `amount_minor`.
    pub amount: Option<&'a str>,
    /// `funding_amount_minor`.
    pub funding_amount: Option<&'a str>,
    /// `max_debit_minor`.
    pub max_debit: Option<&'a str>,
    /// `min_receive_minor`.
    pub min_receive: Option<&'a str>,
    /// `fee_inclusive`.
    pub fee_inclusive: Option<bool>,
    /// `amount_basis`.
    pub basis: Option<&'a str>,
}

impl AmountFields<'_> {
    /// The currency that pays, if it is another one.
    ///
    /// # Errors
    /// `ambiguous_amount`, `invalid_funding_currency`.
    pub(super) fn funding(
        &self,
        currency: Currency,
        code: Option<&str>,
    ) -> Result<Option<Currency>, Problem> {
        if self.amount.is_some() && self.funding_amount.is_some() {
            return Err(wrong(ErrorCode::AmbiguousAmount, "funding_amount_minor"));
        }
        let Some(code) = code else { return Ok(None) };
        let other = Currency::parse(code).filter(|other| *other != currency);
        let other =
            other.ok_or_else(|| wrong(ErrorCode::InvalidFundingCurrency, "funding_currency"));
        other.map(Some)
    }

    /// Refuses what belongs to paying from another currency.
    ///
    /// # Errors
    /// `guard_field_wrong_method`, `amount_basis_mismatch`.
    pub(super) fn refuse_guards(&self) -> Result<(), Problem> {
        self.refuse([
            ("max_debit_minor", self.max_debit.is_some()),
            ("min_receive_minor", self.min_receive.is_some()),
            ("fee_inclusive", self.fee_inclusive.is_some()),
        ])?;
        match self.basis {
            Some(_) => Err(wrong(ErrorCode::AmountBasisMismatch, "amount_basis")),
            None => Ok(()),
        }
    }

    /// Which amount is the exact one; `parse` reads one of them.
    ///
    /// # Errors
    /// `amount_required`, `guard_field_wrong_method`, `amount_basis_mismatch`, and those of `parse`.
    pub(super) fn method(
        &self,
        parse: impl Fn(&str, &str) -> Result<Minor, Problem>,
    ) -> Result<Method, Problem> {
        let read = |name, text: Option<&str>| text.map(|text| parse(name, text)).transpose();
        let amount = read("amount_minor", self.amount)?;
        let (method, basis) = match (amount, read("funding_amount_minor", self.funding_amount)?) {
            (Some(amount), _) => {
                self.refuse([
                    ("min_receive_minor", self.min_receive.is_some()),
                    ("fee_inclusive", self.fee_inclusive.is_some()),
                ])?;
                let max_debit = read("max_debit_minor", self.max_debit)?;
                (Method::Destination { amount, max_debit }, "destination")
            }
            (None, Some(amount)) => {
                self.refuse([("max_debit_minor", self.max_debit.is_some())])?;
                let min_receive = read("min_receive_minor", self.min_receive)?;
                let is_inclusive = self.fee_inclusive.unwrap_or(false);
                (Method::Source { amount, is_inclusive, min_receive }, "source")
            }
            (None, None) => return Err(wrong(ErrorCode::AmountRequired, "amount_minor")),
        };
        match self.basis {
            Some(said) if said != basis => {
                Err(wrong(ErrorCode::AmountBasisMismatch, "amount_basis"))
            }
            _ => Ok(method),
        }
    }

    fn refuse<const N: usize>(&self, fields: [(&'static str, bool); N]) -> Result<(), Problem> {
        match fields.into_iter().find(|(_, is_sent)| *is_sent) {
            Some((field, _)) => Err(wrong(ErrorCode::GuardFieldWrongMethod, field)),
            None => Ok(()),
        }
    }
}

fn wrong(code: ErrorCode, field: &'static str) -> Problem {
    Problem::new(code).field(field)
}

#[cfg(test)]
#[path = "across_tests.rs"]
mod tests;
