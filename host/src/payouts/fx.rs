//! Paying out of another currency: who may, at which rate, and buying what is needed in the same
//! transaction as the payout.
//!
//! A payout that goes at once buys at the rate of that moment. One that waits for a person keeps
//! the amount that the recipient gets, and buys when it goes, at the rate of then; it does not go
//! where that would spend more than was agreed. Whatever becomes of it later, what was bought
//! stays in the wallet that it is paid from.

use serde_json::json;

use crate::app::App;
use crate::auth::{Capability, Feature, Merchant};
use crate::caller::Caller;
use crate::conversions::{Offer, Plan, Wanted, shift};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::fx::{Basis, Exchange, Pair};
use crate::id::ConversionId;
use crate::ledger::{Effects, LockedState};
use crate::money::{Currency, Minor};
use crate::simulator::scenario::RATE_STALE;

use super::across::{Costed, Funded, Funding};
use super::model::{Change, Payout};
use super::usage::violation;

/// The field in which a request says what pays.
pub(super) const FIELD: &str = "funding_currency";

/// Refuses a key that may not pay out of another currency.
///
/// # Errors
/// `permission_denied`.
pub(super) fn require_capability(caller: &Caller) -> Result<(), Problem> {
    match caller.key.can(Capability::PayoutFx) {
        true => Ok(()),
        false => Err(Capability::PayoutFx.missing().field(FIELD)),
    }
}

/// What the sandbox plays: a rate that is too old.
///
/// # Errors
/// `fx_rate_stale`.
pub(super) fn refuse_played(scenario: Option<&str>) -> Result<(), Problem> {
    match scenario {
        Some(RATE_STALE) => Err(Problem::new(ErrorCode::FxRateStale)),
        _ => Ok(()),
    }
}

/// What is offered to a merchant that pays like this, where it may.
///
/// # Errors
/// `fx_payout_disabled`, `fx_payout_terms_not_accepted`, `fx_payout_source_not_allowed`,
/// `fx_payout_tier_invalid`, `fx_payout_unavailable`, and those about rates.
pub(super) async fn offer(
    app: &App,
    (merchant, env): (&Merchant, Env),
    (from, to): (Currency, Currency),
) -> Result<Offer, Problem> {
    refuse_ineligible((merchant, env), (from, to))?;
    let unknown = || Problem::new(ErrorCode::FxPayoutSourceNotAllowed).field(FIELD);
    let shift = shift(app, from, to).ok_or_else(unknown)?;
    let pair = Pair { env, from, to };
    let offer = Offer::now(app, &merchant.id, (pair, shift)).await;
    offer.map_err(|problem| of_payouts(problem).field(FIELD))
}

/// Terms are asked for where money moves: in the sandbox nobody can accept any.
fn refuse_ineligible(
    (merchant, env): (&Merchant, Env),
    (from, to): (Currency, Currency),
) -> Result<(), Problem> {
    let settings = &merchant.settings;
    let refused = |code| Err(Problem::new(code).field(FIELD));
    if !settings.has(Feature::FxPayouts, env) {
        return refused(ErrorCode::FxPayoutDisabled);
    }
    if env == Env::Live && !settings.terms.fx_payouts {
        return refused(ErrorCode::FxPayoutTermsNotAccepted);
    }
    let is_source = settings.fx_sources.as_ref().is_none_or(|sources| sources.contains(&from));
    if !is_source || !settings.is_active(from) {
        return refused(ErrorCode::FxPayoutSourceNotAllowed);
    }
    let is_pair = settings
        .fx_pairs
        .as_ref()
        .is_none_or(|pairs| pairs.get(&from).is_some_and(|targets| targets.contains(&to)));
    match is_pair {
        true => Ok(()),
        false => refused(ErrorCode::FxPayoutTierInvalid),
    }
}

/// A refusal of exchanging, in the words of payouts.
fn of_payouts(problem: Problem) -> Problem {
    match problem.code() {
        ErrorCode::FxConvertUnavailable => Problem::new(ErrorCode::FxPayoutUnavailable),
        _ => problem,
    }
}

/// Plans to buy what a new payout takes, and has it say so.
///
/// # Errors
/// `fx_payout_source_not_allowed` where the merchant has no wallet in that currency.
pub(super) async fn plan(
    app: &App,
    caller: &Caller,
    costed: Costed,
    payout: &mut Payout,
) -> Result<Plan, Problem> {
    let Costed { basis, exchange, charges, most, .. } = costed;
    let pair = exchange.pair;
    let found = app.wallets.find(caller.owner(), pair.from).await?;
    let missing = || Problem::new(ErrorCode::FxPayoutSourceNotAllowed).field(FIELD);
    let (wallet_id, _) = found.ok_or_else(missing)?;
    let shift = shift(app, pair.from, pair.to).ok_or_else(missing)?;
    refuse_spending(&caller.merchant, (pair.from, exchange.sold))?;
    let quoted = exchange.sold;
    let funding = Funding { wallet_id, currency: pair.from, shift, most, quoted };
    let id: ConversionId = app.ids.id();
    let funded = Funded::by(&id, &exchange, charges);
    let plan = buying(app, (payout, &funding), (id, basis), &funded);
    payout.settling().funding = Some(funding);
    payout.funded = Some(funded);
    Ok(plan)
}

/// Refuses to take more at once than a single payout may.
///
/// # Errors
/// `limit_violation`.
pub(super) fn refuse_spending(
    merchant: &Merchant,
    (currency, sold): (Currency, Minor),
) -> Result<(), Problem> {
    let limit = merchant.settings.limits(currency).per_transaction_minor.map(|limit| limit.0);
    match limit.filter(|limit| sold > *limit) {
        Some(limit) => Err(violation("per_transaction", limit, Minor::ZERO, sold).field(FIELD)),
        None => Ok(()),
    }
}

/// What could not be bought any more does not go, either.
async fn refuse_unbuyable(
    app: &App,
    payout: &Payout,
    (funding, sold): (&Funding, Minor),
) -> Result<(), Problem> {
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::internal("a payout without a merchant"))?;
    refuse_ineligible((&merchant, payout.env), (funding.currency, payout.currency))
        .and_then(|()| refuse_spending(&merchant, (funding.currency, sold)))
        .map_err(Problem::without_field)
}

/// Refuses to spend more of the funding wallet than was agreed when the payout was made.
fn refuse_dearer(debit: Minor, funding: &Funding) -> Result<(), Problem> {
    match funding.most {
        Some(most) if debit > most => {
            let currency = funding.currency;
            let message = format!(
                "It would take {debit} minor units of {currency} now, and {most} were agreed. Wait \
                 for the rate, or end this one."
            );
            Err(Problem::because(ErrorCode::MaxDebitExceeded, message))
        }
        _ => Ok(()),
    }
}

fn buying(
    app: &App,
    (payout, funding): (&Payout, &Funding),
    (id, basis): (ConversionId, Basis),
    funded: &Funded,
) -> Plan {
    let pair = Pair { env: payout.env, from: funding.currency, to: payout.currency };
    let wanted = Wanted { pair, basis, shift: funding.shift };
    let wallets = (funding.wallet_id.clone(), payout.wallet_id.clone());
    let plan = Plan::new(app, &payout.merchant_id, (wanted, id), wallets);
    plan.for_payout(&payout.id, funded.rate)
}

/// What is offered now to a payout that waits, and what it takes of that.
async fn offered_now(
    app: &App,
    payout: &Payout,
    funding: &Funding,
) -> Result<(Offer, Exchange), Problem> {
    let pair = Pair { env: payout.env, from: funding.currency, to: payout.currency };
    let offer = Offer::now(app, &payout.merchant_id, (pair, funding.shift)).await;
    let offer = offer.map_err(of_payouts)?;
    let exchange = offer.exchange(Basis::Buy(payout.costs.total()?))?;
    Ok((offer, exchange))
}

/// What a payout that waits would take now from the wallet that pays, where another one does.
///
/// # Errors
/// `fx_payout_unavailable`, and those about rates.
pub(super) async fn debit_now(app: &App, payout: &Payout) -> Result<Option<Minor>, Problem> {
    match (&payout.funding, &payout.funded) {
        (Some(funding), None) => Ok(Some(offered_now(app, payout, funding).await?.1.sold)),
        _ => Ok(None),
    }
}

/// Plans to buy what a payout takes that waited for a person, and has it say so; nothing where
/// nothing is to be bought for it, or was already.
///
/// # Errors
/// `max_debit_exceeded`, `fx_payout_unavailable`, and those about rates.
pub(super) async fn plan_later(
    app: &App,
    payout: &mut Payout,
    change: Change,
) -> Result<Option<Plan>, Problem> {
    let (Some(funding), None) = (&payout.funding, &payout.funded) else { return Ok(None) };
    let (offer, exchange) = offered_now(app, payout, funding).await?;
    // Anything else says that the money has left already.
    if matches!(change, Change::Approve | Change::Release) {
        refuse_dearer(exchange.sold, funding)?;
        refuse_unbuyable(app, payout, (funding, exchange.sold)).await?;
    }
    let alone = offer.exchange(Basis::Buy(payout.costs.amount))?;
    let id: ConversionId = app.ids.id();
    let funded = Funded::by(&id, &exchange, exchange.sold.minus(alone.sold)?);
    let basis = Basis::Buy(exchange.bought);
    let plan = buying(app, (payout, funding), (id, basis), &funded);
    payout.funded = Some(funded);
    Ok(Some(plan))
}

/// Carries out what was planned for a payout, before anything is taken for it.
///
/// # Errors
/// As of [`Plan::complete`], in the words of payouts.
pub(super) fn buy(
    plan: &Plan,
    locked: &LockedState<'_>,
    effects: &mut Effects,
) -> Result<(), Problem> {
    let bought = plan.complete(locked, effects);
    let bought = bought.map_err(|problem| of_wallet(plan, of_payouts(problem)))?;
    let (from, _) = plan.wallets();
    match locked.wallet(from)?.available < bought.exchange.sold {
        true => Err(of_wallet(plan, Problem::new(ErrorCode::InsufficientFunds))),
        false => Ok(()),
    }
}

/// Says which of the two wallets a refusal is about: the one that pays.
fn of_wallet(plan: &Plan, problem: Problem) -> Problem {
    let (from, _) = plan.wallets();
    let currency = plan.pair().from;
    let what = match problem.code() {
        ErrorCode::InsufficientFunds => "does not have as much as the payout takes",
        ErrorCode::WalletFrozen => "is frozen",
        _ => return problem,
    };
    let message = format!("The {currency} wallet, which would pay, {what}.");
    let detail = json!({ "wallet_id": from, "currency": currency });
    Problem::because(problem.code(), message).detail(detail)
}
