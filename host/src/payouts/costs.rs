//! What a payout costs its wallet.

use crate::money::{Minor, Overflow};
use crate::rules::tariff::Tariff;

/// What a payout costs its wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// What the recipient gets.
    pub amount: Minor,
    /// What the platform charges, as the fee pack decided.
    pub fee: Minor,
    /// The state's share of the fee.
    pub tax: Minor,
    /// The state's charge on the payment.
    pub levy: Minor,
}

impl Costs {
    /// Of an amount at a price: a tariff, and the amount of each of its lines.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn of(amount: Minor, tariff: &Tariff, charges: &[i64]) -> Result<Self, Overflow> {
        let sum = |kind| tariff.sum(kind, charges);
        let (fee, tax, levy) = (sum("fee")?, sum("tax")?, sum("levy")?);
        let costs = Self { amount, fee, tax, levy };
        costs.total().map(|_| costs)
    }

    /// Everything that leaves the wallet.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn total(&self) -> Result<Minor, Overflow> {
        Minor::total([self.amount, self.fee, self.tax, self.levy])
    }
}
