//! A batch as merchants see it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::money::{Currency, Minor};

use super::model::{Batch, Counts};

/// The batch object.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub struct BatchView<'a> {
    /// Always `batch`.
    #[schema(example = "batch")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: &'a str,
    /// The reference for people: `bat_` and the id.
    pub reference: String,
    /// `awaiting_approval`, `flagged_held` (set aside by a person), `approved`, `processing`,
    /// `completed`, `completed_with_errors`, `cancelled` or `rejected`.
    #[schema(example = "processing")]
    pub status: &'static str,
    /// The merchant who pays; for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merchant_id: Option<&'a str>,
    /// `test` or `live`; for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<&'static str>,
    /// The key that it was made with; for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maker: Option<&'a str>,
    /// Of all its payouts.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// The wallet that pays.
    pub wallet_id: &'a str,
    /// How many payouts it has.
    #[schema(example = 150)]
    pub total_count: i64,
    /// How many are paid.
    #[schema(example = 120)]
    pub success_count: i64,
    /// How many ended otherwise: failed, reversed or cancelled.
    #[schema(example = 2)]
    pub failure_count: i64,
    /// How many have not ended.
    #[schema(example = 28)]
    pub in_flight_count: i64,
    /// What the recipients get together, in minor units.
    #[schema(value_type = String, example = "375000000")]
    pub total_amount_minor: Minor,
    /// Why it was rejected, set aside or cancelled, where somebody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// Since when its payouts may go.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub approved_at: Option<Moment>,
    /// When the last of its payouts ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Moment>,
    /// How many payouts are in which status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_counts: Option<BTreeMap<&'static str, i64>>,
}

impl<'a> BatchView<'a> {
    /// A batch whose payouts are in these statuses.
    #[must_use]
    pub fn of(batch: &'a Batch, counts: &Counts) -> Self {
        Self {
            object: "batch",
            id: batch.id.as_str(),
            reference: batch.id.reference(),
            status: batch.status(counts),
            merchant_id: None,
            env: None,
            maker: None,
            currency: batch.currency,
            wallet_id: batch.wallet_id.as_str(),
            total_count: batch.total_count,
            success_count: counts.success(),
            failure_count: counts.failure(),
            in_flight_count: counts.in_flight(),
            total_amount_minor: batch.total_amount,
            reason: batch.reason.as_deref(),
            created_at: batch.created_at,
            approved_at: batch.approved_at,
            // What happens to a payment later changes how it ended, and not when.
            completed_at: match batch.stage.is_waiting() {
                true => None,
                false => batch.completed_at.or_else(|| counts.ended_at()),
            },
            status_counts: None,
        }
    }

    /// The same, with how many payouts are in which status.
    #[must_use]
    pub fn whole(batch: &'a Batch, counts: &Counts) -> Self {
        Self { status_counts: Some(counts.by_status().clone()), ..Self::of(batch, counts) }
    }

    /// The same, and whose it is.
    #[must_use]
    pub fn for_operators(batch: &'a Batch, counts: &Counts) -> Self {
        Self {
            merchant_id: Some(batch.merchant_id.as_str()),
            env: Some(batch.env.as_str()),
            maker: Some(&batch.maker),
            ..Self::whole(batch, counts)
        }
    }

    /// The object as JSON text, as replies and events carry it.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
