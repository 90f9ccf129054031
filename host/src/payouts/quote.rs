//! `POST /v1/payouts/quote`: what a payout would cost, from the same call that charges it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::money::{Currency, Minor};
use crate::rules::{FeeFacts, PayoutKind};

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
    /// Everything that would leave the wallet.
    #[schema(value_type = String, example = "2507688")]
    pub total_debit_minor: Minor,
    /// Only across currencies.
    #[schema(value_type = Option<Object>)]
    pub fx: Option<()>,
}

/// Prices a payout without making one.
///
/// # Errors
/// The codes of the contract for quotes.
pub(super) fn quote(
    app: &App,
    caller: &Caller,
    request: &QuoteRequest,
) -> Result<PayoutQuote, Problem> {
    let wrong = |code, field: &str| Problem::new(code).field(field);
    let code = request.currency.as_deref().filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| wrong(ErrorCode::MissingField, "currency"))?;
    let unsupported = || wrong(ErrorCode::UnsupportedCurrency, "currency");
    let currency = Currency::parse(code).ok_or_else(unsupported)?;
    if request.amount_minor.is_some() && request.funding_amount_minor.is_some() {
        return Err(wrong(ErrorCode::AmbiguousAmount, "funding_amount_minor"));
    }
    match request.funding_currency.as_deref().map(Currency::parse) {
        Some(Some(funding)) if funding != currency => {
            return Err(Problem::new(ErrorCode::FxPayoutDisabled));
        }
        Some(None) => return Err(wrong(ErrorCode::InvalidFundingCurrency, "funding_currency")),
        Some(Some(_)) | None => {}
    }
    if request.funding_amount_minor.is_some() {
        return Err(wrong(ErrorCode::GuardFieldWrongMethod, "funding_amount_minor"));
    }
    if request.fee_inclusive.is_some() {
        return Err(wrong(ErrorCode::GuardFieldWrongMethod, "fee_inclusive"));
    }
    if request.amount_basis.is_some() {
        return Err(wrong(ErrorCode::AmountBasisMismatch, "amount_basis"));
    }
    let text = request.amount_minor.as_deref();
    let text = text.ok_or_else(|| wrong(ErrorCode::AmountRequired, "amount_minor"))?;
    let amount =
        Minor::parse(text).ok_or_else(|| wrong(ErrorCode::InvalidAmount, "amount_minor"))?;
    let served = app.rails.serving(currency, request.method.as_deref(), &crate::rails::nobody);
    let (rail, method) = served.map_err(|problem| match problem.code() {
        ErrorCode::CurrencyNotActive => unsupported(),
        _ => problem,
    })?;
    refuse_amount(&caller.merchant, (&rail.declaration, &method), (currency, amount))?;
    let price = app.packs.now().price(&FeeFacts {
        merchant: &caller.merchant.id,
        currency,
        method: &method,
        kind: PayoutKind::Single,
        amount,
        is_live: false,
    })?;
    let costs = Costs::of(amount, &price)?;
    Ok(PayoutQuote {
        object: "payout_quote",
        currency,
        amount_minor: amount,
        fee_minor: costs.fee,
        tax_minor: costs.tax,
        levy_minor: costs.levy,
        total_debit_minor: costs.total()?,
        fx: None,
    })
}
