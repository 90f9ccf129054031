//! The calls about webhooks.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::Permission;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::events::{self, outbox};
use crate::http::{Body, IdempotencyKey, Page, PageQuery, Query, filter};
use crate::ledger::Reservation;

use super::endpoints::{self, EndpointFields};
use super::model::Status;
use super::view::{DeliveryView, EndpointDeleted, EndpointView, WebhookTestResult};
use super::{replay, sql, try_out};

const PATH: &str = "/v1/webhook_endpoints";

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "create_webhook_endpoint",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::InvalidUrl,
            ErrorCode::InvalidEventType,
            ErrorCode::IdempotencyKeyConflict,
        ],
    ),
    ("list_webhook_endpoints", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("retrieve_webhook_endpoint", &[ErrorCode::WebhookEndpointNotFound]),
    (
        "update_webhook_endpoint",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::WebhookEndpointNotFound,
            ErrorCode::InvalidField,
            ErrorCode::InvalidUrl,
            ErrorCode::InvalidEventType,
            ErrorCode::StateConflict,
        ],
    ),
    ("delete_webhook_endpoint", CHANGE_ERRORS),
    ("rotate_webhook_secret", CHANGE_ERRORS),
    (
        "test_webhook_endpoint",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::WebhookEndpointNotFound,
            ErrorCode::WebhookEndpointInactive,
            ErrorCode::DeliveryFailed,
        ],
    ),
    (
        "list_webhook_deliveries",
        &[ErrorCode::InvalidLimit, ErrorCode::InvalidField, ErrorCode::InvalidFilter],
    ),
    (
        "replay_webhook_delivery",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::WebhookDeliveryNotFound,
            ErrorCode::WebhookEndpointNotFound,
            ErrorCode::WebhookEndpointInactive,
        ],
    ),
];

const CHANGE_ERRORS: &[ErrorCode] =
    &[ErrorCode::PermissionDenied, ErrorCode::WebhookEndpointNotFound, ErrorCode::StateConflict];

/// A new endpoint.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CreateWebhookEndpoint {
    /// Where requests go; https only. Required.
    #[schema(example = "https://example.com/webhooks")]
    pub url: Option<String>,
    /// Names of events in either spelling, or `*`. Required.
    #[schema(example = json!(["payout.paid", "payout.failed"]))]
    pub events: Option<Vec<String>>,
    /// Whether an object's changes must arrive in their order. A delivery that fails then holds
    /// back later ones of the same object, and of no other.
    pub ordered: Option<bool>,
}

/// What is to change about an endpoint.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct UpdateWebhookEndpoint {
    /// Where requests go; https only.
    pub url: Option<String>,
    /// Names of events, or `*`.
    pub events: Option<Vec<String>>,
    /// Whether it hears of anything. What waited is delivered when it is switched on again.
    pub is_active: Option<bool>,
}

/// Create a webhook endpoint
///
/// The answer holds the secret that signs its deliveries. It is shown here only. Needs the
/// permission `webhook_manage`, as does every change of an endpoint.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints", operation_id = "create_webhook_endpoint", tag = "Webhooks",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat, for as long as the operator keeps such keys: 90 days unless set otherwise")),
    request_body = CreateWebhookEndpoint,
    responses((status = 200, description = "Created, with its secret", body = EndpointView)),
)]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: Option<IdempotencyKey>,
    body: Body<CreateWebhookEndpoint>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let (merchant, env) = caller.owner();
    let reservation = key.map(|key| Reservation {
        key: format!("{merchant}/{env}/create_webhook_endpoint/{}", key.as_str()),
        fingerprint: body.fingerprint(PATH),
        subject: String::new(),
        resource_id: String::new(),
        expires: true,
    });
    let CreateWebhookEndpoint { url, events, ordered } = body.value;
    let fields =
        EndpointFields { url, events, is_ordered: ordered.unwrap_or(false), is_active: None };
    let (body, is_replay) = endpoints::create(&app, &caller, fields, reservation).await?;
    let mut response = (StatusCode::OK, [(CONTENT_TYPE, "application/json")], body).into_response();
    if is_replay {
        let replayed = http::HeaderValue::from_static("true");
        response.headers_mut().insert("idempotent-replayed", replayed);
    }
    Ok(response)
}

/// List webhook endpoints
#[utoipa::path(
    get, path = "/v1/webhook_endpoints", operation_id = "list_webhook_endpoints", tag = "Webhooks",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = Page<EndpointView>)),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<Response, Problem> {
    let limit = page.limit()?;
    let (merchant, env) = caller.owner();
    let owner = outbox::owner(merchant, env);
    if let Some(id) = &page.starting_after
        && sql::find_endpoint(app.db.pool(), &owner, id).await?.is_none()
    {
        return Err(PageQuery::unknown_cursor());
    }
    let before = page.starting_after.as_deref().unwrap_or("~");
    let found = sql::list_endpoints(app.db.pool(), &owner, (before, limit)).await?;
    Ok(Page::of(found.iter().map(EndpointView::of).collect(), limit).into_response())
}

/// Retrieve a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook_endpoints/{id}", operation_id = "retrieve_webhook_endpoint", tag = "Webhooks",
    params(("id" = String, Path, description = "The endpoint")),
    responses((status = 200, description = "The endpoint", body = EndpointView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let endpoint = endpoints::find(&app, &caller, &id).await?;
    Ok(Json(EndpointView::of(&endpoint)).into_response())
}

/// Update a webhook endpoint
///
/// Needs the permission `webhook_manage`.
#[utoipa::path(
    patch, path = "/v1/webhook_endpoints/{id}", operation_id = "update_webhook_endpoint", tag = "Webhooks",
    params(("id" = String, Path, description = "The endpoint")),
    request_body = UpdateWebhookEndpoint,
    responses((status = 200, description = "Changed", body = EndpointView)),
)]
pub async fn update(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    body: Body<UpdateWebhookEndpoint>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let endpoint = endpoints::find(&app, &caller, &id).await?;
    let UpdateWebhookEndpoint { url, events, is_active } = body.value;
    let fields = EndpointFields { url, events, is_active, ..EndpointFields::default() };
    let endpoint = endpoints::update(&app, &caller, endpoint, fields).await?;
    Ok(Json(EndpointView::of(&endpoint)).into_response())
}

/// Delete a webhook endpoint
///
/// For good, and its deliveries with it. Needs the permission `webhook_manage`.
#[utoipa::path(
    delete, path = "/v1/webhook_endpoints/{id}", operation_id = "delete_webhook_endpoint", tag = "Webhooks",
    params(("id" = String, Path, description = "The endpoint")),
    responses((status = 200, description = "Deleted", body = EndpointDeleted)),
)]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let mut is_again = false;
    loop {
        let before = match endpoints::find(&app, &caller, &id).await {
            Err(gone) if is_again && gone.code() == ErrorCode::WebhookEndpointNotFound => break,
            found => found?,
        };
        match endpoints::delete(&app, &caller, before).await {
            // It was changed meanwhile, or somebody else has deleted it.
            Err(problem) if problem.code() == ErrorCode::StateConflict => is_again = true,
            done => break done?,
        }
    }
    let object = "webhook_endpoint_delete_result";
    Ok(Json(EndpointDeleted { object, id, deleted: true }).into_response())
}

/// Rotate a webhook endpoint's secret
///
/// For 60 minutes the old secret signs beside the new one. Needs the permission
/// `webhook_manage`.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints/{id}/rotate_secret", operation_id = "rotate_webhook_secret",
    tag = "Webhooks", params(("id" = String, Path, description = "The endpoint")),
    responses((status = 200, description = "With its new secret", body = EndpointView)),
)]
pub async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let endpoint = endpoints::find(&app, &caller, &id).await?;
    Ok(Json(endpoints::rotate(&app, &caller, endpoint).await?).into_response())
}

/// Test a webhook endpoint
///
/// Sends a payout that nobody made, and waits for the answer. Needs the permission
/// `webhook_manage`.
#[utoipa::path(
    post, path = "/v1/webhook_endpoints/{id}/test", operation_id = "test_webhook_endpoint",
    tag = "Webhooks", params(("id" = String, Path, description = "The endpoint")),
    responses((status = 200, description = "The receiver took it", body = WebhookTestResult)),
)]
pub async fn test(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let endpoint = endpoints::find(&app, &caller, &id).await?;
    Ok(Json(try_out::try_out(&app, endpoint).await?).into_response())
}

/// Filters of the list of deliveries.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct DeliveryQuery {
    /// Only deliveries to this endpoint, by its id.
    pub endpoint_id: Option<String>,
    /// `pending`, `delivered`, `failed` or `giving_up`.
    pub status: Option<String>,
    /// An event's name in either spelling.
    pub event_type: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List webhook deliveries
#[utoipa::path(
    get, path = "/v1/webhook_deliveries", operation_id = "list_webhook_deliveries", tag = "Webhooks",
    params(DeliveryQuery),
    responses((status = 200, description = "Newest first", body = Page<DeliveryView>)),
)]
pub async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<DeliveryQuery>,
) -> Result<Response, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let status = filter("status", query.status, Status::iter().map(Status::as_str))?;
    let event_type = events::named("event_type", query.event_type.as_deref())?.replace('.', "_");
    let (merchant, env) = caller.owner();
    let before = match page.starting_after.as_deref() {
        Some(id) => {
            let found =
                sql::find_delivery(app.db.pool(), &outbox::owner(merchant, env), id).await?;
            Some(found.ok_or_else(PageQuery::unknown_cursor)?.id)
        }
        None => None,
    };
    let filter = sql::Filter {
        endpoint_id: query.endpoint_id.unwrap_or_default(),
        status,
        event_type,
        before,
        limit,
    };
    let found = sql::list_deliveries(app.db.pool(), (merchant, env), &filter).await?;
    Ok(Page::of(found.iter().map(DeliveryView::of).collect(), limit).into_response())
}

/// Replay a webhook delivery
///
/// The same event once more, to the same endpoint, under a new delivery id. Needs the permission
/// `webhook_manage`.
#[utoipa::path(
    post, path = "/v1/webhook_deliveries/{id}/replay", operation_id = "replay_webhook_delivery",
    tag = "Webhooks", params(("id" = String, Path, description = "The delivery")),
    responses((status = 200, description = "The new delivery", body = DeliveryView)),
)]
pub async fn replay(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require_permission(Permission::WebhookManage)?;
    let delivery = replay::replay(&app, &caller, &id).await?;
    Ok(Json(DeliveryView::of(&delivery)).into_response())
}
