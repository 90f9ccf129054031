//! A conversion as the writer decides it: from the rates and limits that it sees under lock.

use crate::app::App;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::events::{Data, Event};
use crate::fx::{self, Basis, Exchange, Pair, Rate, market, position};
use crate::id::{ConversionId, EventId, MerchantId, PayoutId, WalletId};
use crate::ledger::{Command, Effects, LockedState};

use super::offer::refuse_paused;
use super::request::Wanted;
use super::sql::{CONVERSIONS, Conversion};
use super::view::ConversionView;

/// The event of a conversion that somebody asked for, by itself or with a payout.
const COMPLETED: &str = "conversion.completed";

/// A conversion to be decided, with all that is needed for it.
#[derive(Clone)]
pub struct Plan {
    id: ConversionId,
    event_id: EventId,
    merchant: MerchantId,
    wanted: Wanted,
    rate_ids: [String; 4],
    /// The one that is debited, and the one that is credited.
    wallets: (WalletId, WalletId),
    /// The payout that it is for, and the rate that its amounts were made with.
    payout: Option<(PayoutId, Rate)>,
}

impl Plan {
    /// What is to be converted between two wallets of a merchant: the first one is debited.
    #[must_use]
    pub fn new(
        app: &App,
        merchant: &MerchantId,
        (wanted, id): (Wanted, ConversionId),
        wallets: (WalletId, WalletId),
    ) -> Self {
        let rate_ids = wanted.pair.rate_ids(merchant);
        let (event_id, merchant) = (app.ids.id(), merchant.clone());
        Self { id, event_id, merchant, wanted, rate_ids, wallets, payout: None }
    }

    /// The same for a payout, at this rate and no other.
    #[must_use]
    pub fn for_payout(self, id: &PayoutId, rate: Rate) -> Self {
        Self { payout: Some((id.clone(), rate)), ..self }
    }

    /// The wallets: the one that is debited, and the one that is credited.
    #[must_use]
    pub const fn wallets(&self) -> (&WalletId, &WalletId) {
        (&self.wallets.0, &self.wallets.1)
    }

    /// What is sold, and what is bought.
    #[must_use]
    pub const fn pair(&self) -> Pair {
        self.wanted.pair
    }

    /// The command with all that this conversion reads and changes.
    #[must_use]
    pub fn locks<T>(&self, command: Command<T>) -> Command<T> {
        let pair = self.wanted.pair;
        let limit = fx::Limit::none(pair.env, pair.to).id();
        let (from, to) = self.wallets.clone();
        let command = command.wallets([from, to]).counters(position::counters(pair));
        let command = command.row(&fx::sql::LIMITS, limit);
        let ids = self.rate_ids.iter();
        ids.fold(command, |command, id| command.row(&fx::sql::RATES, id.as_str()))
    }

    /// Exchanges, writes the conversion down, and tells of it.
    ///
    /// # Errors
    /// The codes of the contract's table for conversions; `fx_rate_stale` also where the rate is
    /// no longer the one that a payout was made with.
    pub fn complete(
        &self,
        locked: &LockedState<'_>,
        effects: &mut Effects,
    ) -> Result<Conversion, Problem> {
        let conversion = self.execute(locked, effects)?;
        let data = ConversionView::json(&conversion);
        effects.rows.push(self.event(&conversion, COMPLETED, data));
        Ok(conversion)
    }

    /// Exchanges, and writes the conversion down.
    ///
    /// # Errors
    /// See [`Self::complete`].
    pub(super) fn execute(
        &self,
        locked: &LockedState<'_>,
        effects: &mut Effects,
    ) -> Result<Conversion, Problem> {
        let Wanted { pair, basis, shift } = self.wanted;
        let (from, to) = &self.wallets;
        if locked.wallet(from)?.is_frozen {
            return Err(Problem::new(ErrorCode::WalletFrozen));
        }
        let limit = fx::sql::locked_limit(locked, (pair.env, pair.to))?;
        refuse_paused(&limit)?;
        let rates = fx::sql::locked_rates(locked, &self.rate_ids)?;
        let applied = market::applied(&rates, locked.now())?;
        if self.payout.as_ref().is_some_and(|(_, rate)| *rate != applied.rate) {
            return Err(Problem::new(ErrorCode::FxRateStale));
        }
        let exchange = Exchange::of(pair, basis, applied.rate, shift)?;
        let held = locked.counter(&position::held(pair.env, pair.to)).sum;
        let excess = exchange.refuse_excess(held, &limit);
        // Who could not pay for it is told so, and nothing of what the platform holds.
        if excess.is_err() && locked.wallet(from)?.available < exchange.sold {
            return Err(Problem::new(ErrorCode::InsufficientFunds));
        }
        excess?;
        let most = limits::BALANCE_MINOR_MAX;
        if locked.wallet(to)?.available.plus(exchange.bought)?.units() > most {
            let message = format!("The balance of a wallet may be {most} minor units at most.");
            return Err(Problem::because(ErrorCode::InvalidAmount, message));
        }
        exchange.book(locked, effects, (from, to), self.id.as_str())?;
        let conversion = Conversion {
            id: self.id.clone(),
            merchant_id: self.merchant.clone(),
            from_wallet: from.clone(),
            to_wallet: to.clone(),
            is_target_basis: matches!(basis, Basis::Buy(_)),
            shift,
            rate_as_of: applied.as_of,
            payout_id: self.payout.as_ref().map(|(id, _)| id.clone()),
            exchange,
            created_at: locked.now(),
        };
        effects.rows.push(CONVERSIONS.insert(&conversion));
        Ok(conversion)
    }

    /// What tells of it.
    pub(super) fn event(
        &self,
        conversion: &Conversion,
        name: &'static str,
        data: String,
    ) -> RowChange {
        let event = Event {
            id: self.event_id.clone(),
            merchant_id: self.merchant.clone(),
            env: conversion.exchange.pair.env,
            name,
            object_type: "conversion",
            object_id: conversion.id.to_string(),
            sequence: 1,
            data: Some(Data::Whole(data)),
            created_at: conversion.created_at,
        };
        event.row()
    }
}
