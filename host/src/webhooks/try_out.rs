//! `POST /v1/webhook_endpoints/{id}/test`: one delivery, made while the caller waits.

use serde_json::json;

use crate::app::App;
use crate::error::{ErrorCode, Problem};
use crate::events::outbox::{NewDelivery, owner};

use super::deliver::{open, send};
use super::endpoints::unless_deleted;
use super::model::{Endpoint, Next, Status};
use super::record::{forgiving, health_key, result_row};
use super::sql;
use super::view::WebhookTestResult;

/// The event that a test plays, in the spelling that its body has.
const EVENT: &str = "payout_paid";

/// Sends a payout that nobody made.
///
/// # Errors
/// `webhook_endpoint_inactive`, `delivery_failed`; `webhook_endpoint_not_found` where it is deleted
/// meanwhile.
pub(super) async fn try_out(app: &App, endpoint: Endpoint) -> Result<WebhookTestResult, Problem> {
    if !endpoint.is_active {
        return Err(Problem::new(ErrorCode::WebhookEndpointInactive));
    }
    let now = app.now();
    let body = json!({
        "_test": true,
        "event": EVENT,
        "data": {
            "reference": format!("test_{}", now.millis()),
            "amount_minor": "100000",
            "currency": "NGN",
            "recipient_name": "TEST RECIPIENT",
            "bank_code": "058",
            "timestamp": now,
        },
    })
    .to_string();
    let delivery = NewDelivery {
        id: app.ids.id(),
        owner: owner(&endpoint.merchant_id, endpoint.env),
        owner_number: endpoint.merchant_id.owner_number(endpoint.env),
        endpoint_id: endpoint.id.clone(),
        event_id: None,
        event: EVENT.to_owned(),
        own_body: Some(body.clone()),
        is_test: true,
        replayed_from: None,
        created_at: now,
    };
    let ready = delivery.ready(body, endpoint.updated_at.micros());
    let answer = send(app, &open(app, endpoint)?, &ready).await;
    // A test is not repeated: whoever made it sees what came of it.
    let status = if answer.is_good() { Status::Delivered } else { Status::GivingUp };
    let result = {
        let next = Next { status, again_at: None };
        result_row(&ready.id, 1, &answer, (next, app.now()))
    };
    let (mut rows, gone) = (vec![delivery.row(), result], ErrorCode::WebhookEndpointNotFound);
    let forgiven = answer.is_good().then(|| forgiving(health_key(ready.endpoint_id.as_str()), now));
    if answer.is_good() {
        let health = sql::Health { id: ready.endpoint_id.clone(), at: app.now(), failures: 0 };
        rows.push(sql::ENDPOINT_SUCCESSES.change(&health));
    }
    app.writer.work(unless_deleted(&ready.endpoint_id, (rows, forgiven), gone)).await?;
    if !answer.is_good() {
        let why = answer.error.clone().unwrap_or_else(|| {
            format!("the receiver answered {}", answer.status.unwrap_or_default())
        });
        let problem =
            Problem::because(ErrorCode::DeliveryFailed, format!("The test failed: {why}."));
        return Err(problem.detail(json!({
            "delivery_id": ready.id,
            "response_status": answer.status,
        })));
    }
    Ok(WebhookTestResult {
        object: "webhook_test_result",
        endpoint_id: ready.endpoint_id.to_string(),
        delivery_id: ready.id.to_string(),
        status: status.as_str(),
        response_status: answer.status,
        attempts: 1,
    })
}
