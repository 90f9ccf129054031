//! `POST /v1/webhook_deliveries/{id}/replay`: the same event once more, to the same endpoint.

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::events::outbox::{Handed, NewDelivery, owner};

use super::endpoints;
use super::model::Delivery;
use super::sql;

/// Makes a new delivery of what an earlier one carried.
///
/// # Errors
/// `webhook_delivery_not_found`, `webhook_endpoint_inactive`.
pub(super) async fn replay(app: &App, caller: &Caller, id: &str) -> Result<Delivery, Problem> {
    let (merchant, env) = caller.owner();
    let owner = owner(merchant, env);
    let missing = || Problem::new(ErrorCode::WebhookDeliveryNotFound);
    let earlier = sql::find_delivery(app.db.pool(), &owner, id).await?.ok_or_else(missing)?;
    let endpoint = endpoints::find(app, caller, earlier.endpoint_id.as_str()).await?;
    if !endpoint.is_active {
        return Err(Problem::new(ErrorCode::WebhookEndpointInactive));
    }
    let gone = || {
        let message = "What it told is not kept any more, and cannot be told again.";
        Problem::because(ErrorCode::WebhookDeliveryNotFound, message)
    };
    let body = sql::find_body(&app.db, &owner, id).await?.ok_or_else(gone)?;
    let again = NewDelivery {
        id: app.ids.id(),
        owner: owner.clone(),
        owner_number: merchant.owner_number(env),
        endpoint_id: earlier.endpoint_id,
        event_id: earlier.event_id,
        event: earlier.event_type,
        // It may outlive the event.
        own_body: Some(body),
        is_test: earlier.is_test,
        replayed_from: Some(earlier.id.to_string()),
        created_at: app.now(),
    };
    // It waits for nothing: a replay is asked for, whatever happened since.
    let rows = vec![again.row(), again.queue_row(None, app.now())];
    let gone = ErrorCode::WebhookDeliveryNotFound;
    app.writer.request(endpoints::unless_deleted(&again.endpoint_id, (rows, None), gone)).await?;
    let _ = app.handover.try_send(Handed::Queued(again.endpoint_id));
    let made = sql::find_delivery(app.db.pool(), &owner, again.id.as_str()).await?;
    made.ok_or_else(missing)
}
