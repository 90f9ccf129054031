//! Payouts: approved, released, ended on evidence.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::payouts::PayoutView;
use crate::payouts::model::Change;
use crate::payouts::review::{ReviewRequest, review};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("approve_payout", DEBIT_ERRORS),
    ("decline_payout", PLAIN_ERRORS),
    ("release_payout", DEBIT_ERRORS),
    ("reject_payout", PLAIN_ERRORS),
    ("mark_payout_paid", DEBIT_ERRORS),
    ("mark_payout_failed", DEBIT_ERRORS),
    ("reverse_payout", PLAIN_ERRORS),
];

const PLAIN_ERRORS: &[ErrorCode] = &[ErrorCode::PayoutNotFound, ErrorCode::StateConflict];
const DEBIT_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::LimitViolation,
];

/// Why, and on what evidence.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct PayoutChangeRequest {
    /// Why, for the audit log; for a payout that ends unpaid also the message that merchants read.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking.
    pub evidence: Option<String>,
}

/// Approve a draft
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/approve", operation_id = "approve_payout",
    tag = "Operator", params(("id" = String, Path, description = "A draft")),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Debited and queued", body = PayoutView)),
)]
pub async fn approve(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::Approve, body)).await
}

/// Decline a draft
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/decline", operation_id = "decline_payout",
    tag = "Operator", params(("id" = String, Path, description = "A draft")),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Cancelled", body = PayoutView)),
)]
pub async fn decline(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::Decline, body)).await
}

/// Release a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/release", operation_id = "release_payout",
    tag = "Operator", params(("id" = String, Path, description = "A held payout")),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Debited and queued", body = PayoutView)),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::Release, body)).await
}

/// Reject a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reject", operation_id = "reject_payout",
    tag = "Operator", params(("id" = String, Path, description = "A held payout")),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Failed, no wallet movement", body = PayoutView)),
)]
pub async fn reject(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::Reject, body)).await
}

/// Mark a payout as paid
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_paid", operation_id = "mark_payout_paid",
    tag = "Operator", params(("id" = String, Path, description = "The payout")),
    request_body = PayoutChangeRequest,
    responses((status = 200, description = "Paid on evidence", body = PayoutView)),
)]
pub async fn mark_paid(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::MarkPaid, body)).await
}

/// Mark a payout as failed
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_failed", operation_id = "mark_payout_failed",
    tag = "Operator", params(("id" = String, Path, description = "The payout")),
    request_body = PayoutChangeRequest,
    responses((status = 200, description = "Failed on evidence, given back", body = PayoutView)),
)]
pub async fn mark_failed(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::MarkFailed, body)).await
}

/// Reverse a paid payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reverse", operation_id = "reverse_payout",
    tag = "Operator", params(("id" = String, Path, description = "A paid payout")),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Given back", body = PayoutView)),
)]
pub async fn reverse(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, &operator, &id, (Change::Reverse, body)).await
}

async fn run(
    app: &App,
    operator: &Operator,
    id: &str,
    (what, body): (Change, PayoutChangeRequest),
) -> Result<Response, Problem> {
    let request = ReviewRequest {
        actor: "operator".to_owned(),
        address: operator.address.to_string(),
        reason: body.reason,
        evidence: body.evidence,
    };
    let payout = review(app, id, what, &request).await?;
    Ok(Json(PayoutView::of(&payout)).into_response())
}
