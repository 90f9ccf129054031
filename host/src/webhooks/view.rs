//! Endpoints and deliveries as merchants see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;

use super::model::{Delivery, Endpoint};

/// A webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub(super) struct EndpointView {
    /// Always `webhook_endpoint`.
    #[schema(example = "webhook_endpoint")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    #[schema(example = "ckwhe_01ygvhgtj8v3y2tpl4icsgxq")]
    pub id: String,
    /// Where requests go.
    #[schema(example = "https://example.com/webhooks")]
    pub url: String,
    /// What it hears of, as it was written.
    #[schema(example = json!(["payout.paid", "payout.failed"]))]
    pub events: Vec<String>,
    /// Whether an object's changes arrive in their order; a failing one holds back its object.
    pub ordered: bool,
    /// Whether it hears of anything.
    pub is_active: bool,
    /// Why it was switched off, if not by you.
    pub disabled_reason: Option<String>,
    /// `test` or `live`.
    pub env: &'static str,
    /// When a delivery last arrived.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Moment>,
    /// When a delivery last failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_failure_at: Option<Moment>,
    /// How many deliveries have failed since one arrived.
    pub consecutive_failures: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When you last changed it.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
    /// What signs its deliveries; on create and rotation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    pub secret: Option<String>,
}

impl EndpointView {
    /// An endpoint without its secret.
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        Self {
            object: "webhook_endpoint",
            id: endpoint.id.to_string(),
            url: endpoint.url.clone(),
            events: endpoint.events.clone(),
            ordered: endpoint.is_ordered,
            is_active: endpoint.is_active,
            disabled_reason: endpoint.disabled_reason.clone(),
            env: endpoint.env.as_str(),
            last_success_at: endpoint.last_success_at,
            last_failure_at: endpoint.last_failure_at,
            consecutive_failures: endpoint.consecutive_failures,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
            secret: None,
        }
    }
}

/// A delivery of an event to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(super) struct DeliveryView {
    /// Always `webhook_delivery`.
    #[schema(example = "webhook_delivery")]
    pub object: &'static str,
    /// Its id, which the receiver gets as X-Service-Delivery.
    pub id: String,
    /// The endpoint that hears of it.
    pub endpoint_id: String,
    /// The id of the event that it tells; null for a test.
    pub event_id: Option<String>,
    /// The event's name in the endpoint's spelling.
    pub event_type: String,
    /// `pending`, `delivered`, `failed` (tried again) or `giving_up`.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// HTTP status of the last answer.
    pub response_status: Option<i64>,
    /// The first 16 KiB of the last answer.
    pub response_body: Option<String>,
    /// Why the last attempt failed.
    pub error_message: Option<String>,
    /// When it is tried next.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<Moment>,
    /// When it arrived.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub delivered_at: Option<Moment>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// The delivery that it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_from_id: Option<String>,
}

impl DeliveryView {
    /// A delivery without what it carries.
    pub(super) fn of(delivery: &Delivery) -> Self {
        Self {
            object: "webhook_delivery",
            id: delivery.id.to_string(),
            endpoint_id: delivery.endpoint_id.to_string(),
            event_id: delivery.event_id.as_ref().map(ToString::to_string),
            event_type: delivery.event_type.clone(),
            status: delivery.status.clone(),
            attempts: delivery.attempts,
            response_status: delivery.response_status,
            response_body: delivery.response_body.clone(),
            error_message: delivery.error_message.clone(),
            next_attempt_at: delivery.next_attempt_at,
            delivered_at: delivery.delivered_at,
            created_at: delivery.created_at,
            replayed_from_id: delivery.replayed_from_id.clone(),
        }
    }
}

/// What deleting an endpoint answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EndpointDeleted {
    /// Always `webhook_endpoint_delete_result`.
    #[schema(example = "webhook_endpoint_delete_result")]
    pub object: &'static str,
    /// The endpoint's id.
    pub id: String,
    /// Always true.
    pub deleted: bool,
}

/// What trying an endpoint out answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookTestResult {
    /// Always `webhook_test_result`.
    #[schema(example = "webhook_test_result")]
    pub object: &'static str,
    /// The id of the endpoint that was tried out.
    pub endpoint_id: String,
    /// The delivery that was made.
    pub delivery_id: String,
    /// Always `delivered`: a test that fails is answered with `delivery_failed`.
    pub status: &'static str,
    /// HTTP status of the answer.
    pub response_status: Option<u16>,
    /// Always 1.
    pub attempts: i64,
}
