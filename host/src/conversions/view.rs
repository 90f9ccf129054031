//! What merchants see of a conversion, and of its quote.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::fx::Exchange;
use crate::money::{Currency, Minor};

use super::sql::Conversion;

/// A conversion.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversionView {
    /// Always `conversion`.
    #[schema(example = "conversion")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// The currency of the wallet that was debited.
    #[schema(value_type = String, example = "USD")]
    pub from_currency: Currency,
    /// The currency of the wallet that was credited.
    #[schema(value_type = String, example = "NGN")]
    pub to_currency: Currency,
    /// What was debited.
    #[schema(value_type = String, example = "10000")]
    pub from_amount_minor: Minor,
    /// What was credited.
    #[schema(value_type = String, example = "15422500")]
    pub to_amount_minor: Minor,
    /// How much of the currency that was bought one major unit of the other came to: a decimal.
    #[schema(example = "1542.25")]
    pub rate: String,
    /// Always `completed`: where it fails, nothing moves.
    #[schema(example = "completed")]
    pub status: &'static str,
    /// The wallet that was debited.
    pub from_wallet_id: String,
    /// The wallet that was credited.
    pub to_wallet_id: String,
    /// The payout that it was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payout_id: Option<String>,
    /// When it was executed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

impl ConversionView {
    pub(super) fn of(conversion: &Conversion) -> Self {
        let Exchange { pair, sold, bought, rate } = &conversion.exchange;
        Self {
            object: "conversion",
            id: conversion.id.to_string(),
            from_currency: pair.from,
            to_currency: pair.to,
            from_amount_minor: *sold,
            to_amount_minor: *bought,
            rate: rate.to_string(),
            status: "completed",
            from_wallet_id: conversion.from_wallet.to_string(),
            to_wallet_id: conversion.to_wallet.to_string(),
            payout_id: conversion.payout_id.as_ref().map(ToString::to_string),
            created_at: conversion.created_at,
        }
    }

    /// The bytes that are answered, stored and delivered.
    pub(super) fn json(conversion: &Conversion) -> String {
        serde_json::to_string(&Self::of(conversion)).unwrap_or_default()
    }
}

/// What a conversion would come to.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversionQuote {
    /// Always `conversion_quote`.
    #[schema(example = "conversion_quote")]
    pub object: &'static str,
    /// The currency of the wallet that would be debited.
    #[schema(value_type = String, example = "USD")]
    pub from_currency: Currency,
    /// The currency of the wallet that would be credited.
    #[schema(value_type = String, example = "NGN")]
    pub to_currency: Currency,
    /// What would be debited.
    #[schema(value_type = String, example = "10000")]
    pub from_amount_minor: Minor,
    /// What would be credited.
    #[schema(value_type = String, example = "15422500")]
    pub to_amount_minor: Minor,
    /// The rate, as a decimal.
    #[schema(example = "1542.25")]
    pub rate: String,
    /// As of when the rate was so.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub as_of: Option<Moment>,
    /// Always true: the rate at execution counts.
    pub indicative: bool,
}

impl ConversionQuote {
    pub(super) fn of(exchange: &Exchange, as_of: Moment) -> Self {
        let Exchange { pair, sold, bought, rate } = exchange;
        Self {
            object: "conversion_quote",
            from_currency: pair.from,
            to_currency: pair.to,
            from_amount_minor: *sold,
            to_amount_minor: *bought,
            rate: rate.to_string(),
            as_of: Some(as_of),
            indicative: true,
        }
    }
}
