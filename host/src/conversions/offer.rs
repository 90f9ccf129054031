//! At which rate something could be exchanged now, before anybody locks anything.

use crate::app::App;
use crate::error::{ErrorCode, Problem};
use crate::fx::{self, Applied, Basis, Exchange, Limit, Pair, market};
use crate::id::MerchantId;
use crate::money::Currency;

/// What the platform offers a merchant for a pair at this moment. How much it takes on is asked when
/// something is executed only: who may ask for nothing would learn what others exchange.
#[derive(Clone, Debug)]
pub struct Offer {
    pair: Pair,
    shift: i32,
    /// The rate.
    pub applied: Applied,
}

impl Offer {
    /// What is offered now. `shift` is by how many decimal places the currency that is bought has
    /// more.
    ///
    /// # Errors
    /// `fx_convert_unavailable`, and the refusals of [`market::offered`].
    pub async fn now(
        app: &App,
        merchant: &MerchantId,
        (pair, shift): (Pair, i32),
    ) -> Result<Self, Problem> {
        let limit = fx::sql::limit(app.db.pool(), (pair.env, pair.to)).await?;
        refuse_paused(&limit)?;
        let around = fx::sql::around(app.db.pool(), pair, Some(merchant)).await?;
        let applied = market::offered(&around, (pair, Some(merchant)), app.now())?;
        Ok(Self { pair, shift, applied })
    }

    /// What an amount comes to.
    ///
    /// # Errors
    /// See [`Exchange::of`].
    pub fn exchange(&self, basis: Basis) -> Result<Exchange, Problem> {
        Exchange::of(self.pair, basis, self.applied.rate, self.shift)
    }
}

/// By how many decimal places the one currency has more than the other; nothing where one of them
/// is no rail's.
#[must_use]
pub fn shift(app: &App, from: Currency, to: Currency) -> Option<i32> {
    let (sold, bought) = (app.rails.exponent(from)?, app.rails.exponent(to)?);
    Some(i32::from(bought) - i32::from(sold))
}

/// Refuses what the operator has paused.
///
/// # Errors
/// `fx_convert_unavailable`.
pub(super) fn refuse_paused(limit: &Limit) -> Result<(), Problem> {
    match limit.is_paused {
        true => Err(Problem::new(ErrorCode::FxConvertUnavailable)),
        false => Ok(()),
    }
}
