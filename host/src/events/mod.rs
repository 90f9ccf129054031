//! Events: changes of state, numbered per object, written in the transaction that makes them. That a
//! payout goes at once is left out (`payouts/event_body.rs`).
//!
//! Those of the catalogue carry the object as it was then, or what of it changes; deliveries carry
//! the bytes that are sent. The others only keep the history.

mod metrics;
pub mod outbox;
pub mod sql;

pub use metrics::DeliveryMetrics;

use serde::Serialize;

use crate::clock::Moment;
use crate::db::bulk::{Render, RowChange};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{EventId, MerchantId};

/// A state change.
#[derive(Clone, Debug)]
pub struct Event {
    /// The id, which sorts by time of creation.
    pub id: EventId,
    /// Whose object it is.
    pub merchant_id: MerchantId,
    /// Whether the object is of the test or the live environment.
    pub env: Env,
    /// What happened, such as `payout.paid`.
    pub name: &'static str,
    /// What kind of object.
    pub object_type: &'static str,
    /// The object's id.
    pub object_id: String,
    /// The number of this change of the object, from 1.
    pub sequence: i64,
    /// The object afterwards, where merchants are told.
    pub data: Option<Data>,
    /// When the object changed.
    pub created_at: Moment,
}

/// An object as events tell of it.
#[derive(Clone)]
pub enum Data {
    /// The object as JSON, as it is kept and told.
    Whole(String),
    /// Part of the object, if the rest stands elsewhere and never changes.
    Part {
        /// What is kept; it begins with [`KEPT_MARK`].
        kept: String,
        /// Renders the object as JSON.
        render: Render,
    },
}

/// What begins with this is part of an object. No JSON begins like this.
pub const KEPT_MARK: char = '@';

impl Data {
    fn kept(&self) -> &str {
        match self {
            Self::Whole(kept) | Self::Part { kept, .. } => kept,
        }
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kept())
    }
}

/// Events that merchants are told of.
pub const CATALOGUE: &[&str] = &[
    "payout.held",
    "payout.processing",
    "payout.paid",
    "payout.failed",
    "payout.reversed",
    "payout.cancelled",
    "payout.recipient_corrected",
    "wallet_funded",
    "conversion.completed",
    "wallet_auto_converted",
    "customer.status_changed",
    "customer_verified",
    "refund_succeeded",
    "refund_failed",
    "batch.completed",
    "collection.settled",
    "collection.failed",
    DISABLED,
];

/// A webhook endpoint was switched off because nobody answered there. All other endpoints of
/// the merchant are told, whatever they subscribed to.
pub const DISABLED: &str = "webhook_endpoint.disabled";

/// The event that a name means: both `payout.paid` and `payout_paid` are in use.
#[must_use]
pub fn canonical(name: &str) -> Option<&'static str> {
    let same = |known: &str| {
        known.len() == name.len()
            && known
                .bytes()
                .zip(name.bytes())
                .all(|(a, b)| a == b || (a, b) == (b'.', b'_') || (a, b) == (b'_', b'.'))
    };
    CATALOGUE.iter().find(|known| same(known)).copied()
}

/// The event that a filter of a list names; empty where none was sent.
///
/// # Errors
/// `invalid_filter`, with the names.
pub fn named(field: &str, name: Option<&str>) -> Result<&'static str, Problem> {
    let Some(name) = name else { return Ok("") };
    canonical(name).ok_or_else(|| {
        let message = format!("{field} is one of: {}.", CATALOGUE.join(", "));
        Problem::because(ErrorCode::InvalidFilter, message).field(field)
    })
}

impl Event {
    /// The event as a row for the writer.
    #[must_use]
    pub fn row(&self) -> RowChange {
        match &self.data {
            Some(Data::Part { render, .. }) => {
                sql::EVENTS.insert_rendered(self, Render::clone(render))
            }
            Some(Data::Whole(_)) | None => sql::EVENTS.insert(self),
        }
    }
}

/// An event as the feed shows it, in the shape that deliveries have.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventView {
    /// The id, which sorts by time of creation.
    #[schema(example = "evt_0q8zj3vkw1d7c5m2x9s4b6ne")]
    pub id: String,
    /// Always `event`.
    #[schema(example = "event")]
    pub object: &'static str,
    /// The event's name, such as `payout.paid`.
    #[schema(example = "payout.paid")]
    pub event: String,
    /// The number of this change of the object, from 1: sort by it, and notice gaps.
    pub sequence: i64,
    /// When the object changed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// `test` or `live`.
    pub env: String,
    /// The object afterwards.
    #[schema(value_type = Object)]
    pub data: Box<serde_json::value::RawValue>,
}

impl EventView {
    /// An event with its object as JSON.
    ///
    /// # Errors
    /// The object is no JSON.
    pub fn of(event: sql::StoredEvent, data: String) -> Result<Self, serde_json::Error> {
        let sql::StoredEvent { id, name, sequence, env, created_at, .. } = event;
        let data = serde_json::value::RawValue::from_string(data)?;
        Ok(Self { id, object: "event", event: name, sequence, created_at, env, data })
    }
}
