//! `POST /v1/payouts/quote`: what a payout would cost, from the same call that charges it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::fx::Rate;
use crate::money::{Currency, Minor};
use crate::rails::Choice;
use crate::rules::{FeeFacts, PayoutKind, Price};

use super::across::{Across, AmountFields, Asked, cost};
use super::fx;
use super::model::Costs;
use super::usage::refuse_amount;

/// The body of a quote.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct QuoteRequest {
    /// The destination currency. Required.
    #[schema(example = "NGN")]
    pub currency: Option<String>,
    /// The currency that would pay, if another one.
    pub funding_currency: Option<String>,
    /// What the recipient would get. This or `funding_amount_minor` is required.
    #[schema(example = "2500000")]
    pub amount_minor: Option<String>,
    /// What would leave the funding wallet.
    pub funding_amount_minor: Option<String>,
    /// Whether the fee is part of `funding_amount_minor`.
    pub fee_inclusive: Option<bool>,
    /// `source` or `destination`; across currencies only.
    pub amount_basis: Option<String>,
    /// How it would be sent, where the currency has several ways.
    pub method: Option<String>,
}

/// A quote.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PayoutQuote {
    /// Always `payout_quote`.
    #[schema(example = "payout_quote")]
    pub object: &'static str,
    /// The destination currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// What the recipient would get.
    #[schema(value_type = String, example = "2500000")]
    pub amount_minor: Minor,
    /// The fee; exact.
    #[schema(value_type = String, example = "2500")]
    pub fee_minor: Minor,
    /// Tax on the fee; exact.
    #[schema(value_type = String, example = "188")]
    pub tax_minor: Minor,
    /// Statutory levy on the default route; indicative.
    #[schema(value_type = String, example = "5000")]
    pub levy_minor: Minor,
    /// Everything that would leave the wallet; across currencies, the funding wallet.
    #[schema(value_type = String, example = "2507688")]
    pub total_debit_minor: Minor,
    /// Only across currencies.
    pub fx: Option<QuotedFx>,
}

/// What would pay for a payout out of another currency.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QuotedFx {
    /// The currency that would pay.
    #[schema(value_type = String, example = "USD")]
    pub funding_currency: Currency,
    /// What would leave the funding wallet: the same as `total_debit_minor`.
    #[schema(value_type = String, example = "1626")]
    pub source_debit_minor: Minor,
    /// What would come into the wallet that the payout is paid from.
    #[schema(value_type = String, example = "2507688")]
    pub converted_minor: Minor,
    /// What of the debit would be for fee, tax and levy.
    #[schema(value_type = String, example = "4")]
    pub fee_source_minor: Minor,
    /// How much of `currency` one major unit of the other comes to: a decimal.
    #[schema(value_type = String, example = "1542.25")]
    pub rate: Rate,
    /// As of when the rate was so.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Moment,
    /// Always true: what is executed has the rate of its own moment.
    pub indicative: bool,
}

/// What is no currency of a payout is none of a quote, by another code.
fn as_unsupported(problem: Problem) -> Problem {
    match problem.code() {
        ErrorCode::CurrencyNotActive => wrong(ErrorCode::UnsupportedCurrency, "currency"),
        _ => problem,
    }
}

/// Prices a payout without making one.
///
/// # Errors
/// The codes of the contract for quotes.
pub(super) async fn quote(
    app: &App,
    caller: &Caller,
    request: &QuoteRequest,
    scenario: Option<&str>,
) -> Result<PayoutQuote, Problem> {
    let code = request.currency.as_deref().filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| wrong(ErrorCode::MissingField, "currency"))?;
    let unsupported = || wrong(ErrorCode::UnsupportedCurrency, "currency");
    let currency = Currency::parse(code).ok_or_else(unsupported)?;
    let settings = &caller.merchant.settings;
    settings.refuse_currency(currency, caller.key.env).map_err(as_unsupported)?;
    let asked = request.asked(currency)?;
    if let Asked::Across(_) = asked {
        fx::refuse_played(scenario)?;
    }
    let (method, usual) =
        (request.method.as_deref(), caller.merchant.settings.usual_method(currency));
    let choice = Choice { usual, ..Choice::of(method) };
    let (rail, method) = app.rails.serving(currency, choice).map_err(as_unsupported)?;
    let packs = app.packs.now();
    let price = |amount| {
        packs.price(&FeeFacts {
            merchant: &caller.merchant.id,
            currency,
            method: &method,
            kind: PayoutKind::Single,
            amount,
            is_live: false,
        })
    };
    let (amount, across) = match &asked {
        Asked::Plain(amount) => (*amount, None),
        Asked::Across(across) => {
            let step = rail.declaration.step(currency, &method);
            let quoted = quote_across(app, caller, (across, currency), (price, step)).await?;
            (quoted.0.amount, Some(quoted))
        }
    };
    let payment = (currency, amount, asked.amount_field());
    refuse_amount(&caller.merchant, (&rail.declaration, &method), payment)?;
    let wanted = (currency, method.as_str(), caller.key.env);
    // What is in the way of a payout now may be gone later; an amount that no route takes is not.
    match app.routes.carriers(wanted, &caller.merchant.id, amount).await {
        Err(problem) if problem.code() == ErrorCode::LimitViolation => return Err(problem),
        _ => {}
    }
    let (costs, total_debit_minor, fx) = match across {
        Some((costs, fx)) => (costs, fx.source_debit_minor, Some(fx)),
        None => {
            let (costs, _) = cost(amount, &price)?;
            (costs, costs.total()?, None)
        }
    };
    Ok(PayoutQuote {
        object: "payout_quote",
        currency,
        amount_minor: amount,
        fee_minor: costs.fee,
        tax_minor: costs.tax,
        levy_minor: costs.levy,
        total_debit_minor,
        fx,
    })
}

impl QuoteRequest {
    /// How much is to be paid, and out of what.
    fn asked(&self, currency: Currency) -> Result<Asked, Problem> {
        let fields = AmountFields {
            amount: self.amount_minor.as_deref(),
            funding_amount: self.funding_amount_minor.as_deref(),
            max_debit: None,
            min_receive: None,
            fee_inclusive: self.fee_inclusive,
            basis: self.amount_basis.as_deref(),
        };
        let code = self.funding_currency.as_deref();
        // Here one may name the currency that is paid out anyway.
        let code = code.filter(|code| Currency::parse(code) != Some(currency));
        if let Some(from) = fields.funding(currency, code)? {
            return Ok(Asked::Across(Across { from, method: fields.method(amount)? }));
        }
        if fields.funding_amount.is_some() {
            return Err(wrong(ErrorCode::GuardFieldWrongMethod, "funding_amount_minor"));
        }
        fields.refuse_guards()?;
        let text = fields.amount.ok_or_else(|| wrong(ErrorCode::AmountRequired, "amount_minor"))?;
        Ok(Asked::Plain(amount("amount_minor", text)?))
    }
}

fn wrong(code: ErrorCode, field: &'static str) -> Problem {
    Problem::new(code).field(field)
}

fn amount(field: &str, text: &str) -> Result<Minor, Problem> {
    Minor::parse(text).ok_or_else(|| Problem::new(ErrorCode::InvalidAmount).field(field))
}

/// The same functions as those of a payout, a moment earlier.
async fn quote_across(
    app: &App,
    caller: &Caller,
    (across, currency): (&Across, Currency),
    (price, step): (impl Fn(Minor) -> Result<Price, Problem>, i64),
) -> Result<(Costs, QuotedFx), Problem> {
    let (_, env) = caller.owner();
    let offer = fx::offer(app, (&caller.merchant, env), (across.from, currency)).await?;
    let costed = across.method.cost(|basis| offer.exchange(basis), price, step)?;
    fx::refuse_spending(&caller.merchant, (across.from, costed.exchange.sold))?;
    let fx = QuotedFx {
        funding_currency: across.from,
        source_debit_minor: costed.exchange.sold,
        converted_minor: costed.exchange.bought,
        fee_source_minor: costed.charges,
        rate: costed.exchange.rate,
        as_of: offer.applied.as_of,
        indicative: true,
    };
    Ok((costed.costs, fx))
}
