//! The body of a conversion, and what it asks for once it is understood.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::fx::{Basis, Pair};
use crate::money::{Currency, Minor};

/// `POST /v1/conversions`, and its quote.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct ConversionRequest {
    /// The currency of the wallet that is debited. Required.
    #[schema(example = "USD")]
    pub from_currency: Option<String>,
    /// The currency of the wallet that is credited. Required.
    #[schema(example = "NGN")]
    pub to_currency: Option<String>,
    /// Exactly what is debited. This or `to_amount_minor` is required.
    #[schema(example = "10000")]
    pub from_amount_minor: Option<String>,
    /// Exactly what is credited.
    pub to_amount_minor: Option<String>,
}

/// A conversion that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// What is sold, and what is bought.
    pub pair: Pair,
    /// How much.
    pub basis: Basis,
    /// By how many decimal places the currency that is bought has more.
    pub shift: i32,
}

impl ConversionRequest {
    /// Understands the body.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(super) fn read(&self, app: &App, caller: &Caller) -> Result<Wanted, Problem> {
        let (from, sold_places) =
            currency(app, caller, ("from_currency", self.from_currency.as_deref()))?;
        let (to, bought_places) =
            currency(app, caller, ("to_currency", self.to_currency.as_deref()))?;
        if from == to {
            return Err(Problem::new(ErrorCode::InvalidCurrencyPair).field("to_currency"));
        }
        let basis = match (&self.from_amount_minor, &self.to_amount_minor) {
            (Some(_), Some(_)) => {
                return Err(Problem::new(ErrorCode::AmbiguousAmount).field("to_amount_minor"));
            }
            (None, None) => {
                return Err(Problem::new(ErrorCode::AmountRequired).field("from_amount_minor"));
            }
            (Some(text), None) => Basis::Sell(amount("from_amount_minor", text)?),
            (None, Some(text)) => Basis::Buy(amount("to_amount_minor", text)?),
        };
        let shift = i32::from(bought_places) - i32::from(sold_places);
        Ok(Wanted { pair: Pair { env: caller.key.env, from, to }, basis, shift })
    }
}

impl Wanted {
    /// The field that the amount was sent in.
    pub(super) const fn amount_field(&self) -> &'static str {
        match self.basis {
            Basis::Sell(_) => "from_amount_minor",
            Basis::Buy(_) => "to_amount_minor",
        }
    }
}

/// A currency that this merchant can hold, and its decimal places.
fn currency(
    app: &App,
    caller: &Caller,
    (field, code): (&'static str, Option<&str>),
) -> Result<(Currency, u8), Problem> {
    let code = code.filter(|code| !code.is_empty()).ok_or_else(|| {
        Problem::because(ErrorCode::MissingField, format!("{field} is required.")).field(field)
    })?;
    let known = Currency::parse(code).filter(|it| caller.merchant.settings.is_active(*it));
    let places = known.and_then(|known| Some((known, app.rails.exponent(known)?)));
    places.ok_or_else(|| Problem::new(ErrorCode::UnsupportedCurrency).field(field))
}

fn amount(field: &'static str, text: &str) -> Result<Minor, Problem> {
    Minor::parse(text).ok_or_else(|| Problem::new(ErrorCode::InvalidAmount).field(field))
}
