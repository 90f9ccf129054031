//! Payouts: approved, released, ended on evidence.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::config::ApprovalAct;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{Body, IdempotencyKey};
use crate::ledger::{Reply, replay};
use crate::payouts::PayoutView;
use crate::payouts::model::{Change, Payout};
use crate::payouts::review::{Agreed, ReviewRequest, action, possible, review};

use super::approvals::{self, Agreement, ApprovalView, Asked, Verdict};
use super::{answer, once, optional};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("approve_payout", APPROVE_ERRORS),
    ("decline_payout", PLAIN_ERRORS),
    ("release_payout", APPROVE_ERRORS),
    ("reject_payout", PLAIN_ERRORS),
    ("mark_payout_paid", DEBIT_ERRORS),
    ("mark_payout_failed", DEBIT_ERRORS),
    ("reverse_payout", PLAIN_ERRORS),
];

const PLAIN_ERRORS: &[ErrorCode] =
    &[ErrorCode::PayoutNotFound, ErrorCode::StateConflict, ErrorCode::IdempotencyKeyConflict];
const APPROVE_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::SelfApprovalDenied,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::LimitViolation,
    ErrorCode::InvalidField,
    ErrorCode::IdempotencyKeyConflict,
];
const DEBIT_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::LimitViolation,
    ErrorCode::IdempotencyKeyConflict,
];

/// Why, and on what evidence.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PayoutChangeRequest {
    /// Why, for the audit log; for a payout that ends unpaid also the message that merchants read.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking.
    pub evidence: Option<String>,
}

/// Approve a draft
///
/// By another operator than the one who made the key that it was made with.
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/approve", operation_id = "approve_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A draft"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Debited and queued", body = PayoutView)),
)]
pub async fn approve(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::Approve, body)).await
}

/// Decline a draft
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/decline", operation_id = "decline_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A draft"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Cancelled", body = PayoutView)),
)]
pub async fn decline(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::Decline, body)).await
}

/// Release a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/release", operation_id = "release_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A held payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Debited and queued", body = PayoutView)),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::Release, body)).await
}

/// Reject a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reject", operation_id = "reject_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A held payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses((status = 200, description = "Failed, no wallet movement", body = PayoutView)),
)]
pub async fn reject(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::Reject, body)).await
}

/// Mark a payout as paid
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_paid", operation_id = "mark_payout_paid",
    tag = "Operator", params(
        ("id" = String, Path, description = "The payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses(
        (status = 200, description = "Paid on evidence", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn mark_paid(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::MarkPaid, body)).await
}

/// Mark a payout as failed
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_failed", operation_id = "mark_payout_failed",
    tag = "Operator", params(
        ("id" = String, Path, description = "The payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses(
        (status = 200, description = "Failed on evidence, given back", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn mark_failed(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::MarkFailed, body)).await
}

/// Reverse a paid payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reverse", operation_id = "reverse_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A paid payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses(
        (status = 200, description = "Given back", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn reverse(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator, (&id, key), (Change::Reverse, body)).await
}

async fn run(
    app: &App,
    operator: Operator,
    (id, key): (&str, Option<IdempotencyKey>),
    (what, body): (Change, Body<PayoutChangeRequest>),
) -> Result<Response, Problem> {
    let reservation = once(&operator, key, &format!("/admin/v1/payouts/{id}/{what:?}"), &body);
    if let Some(reservation) = &reservation
        && let Some(done) = replay::<Payout>(&app.db, reservation).await?
    {
        return answer(done, shown);
    }
    let PayoutChangeRequest { reason, evidence } = body.value;
    let (reason, evidence) = (optional("reason", reason)?, optional("evidence", evidence)?);
    let agreed = Agreed::default();
    let mut request = ReviewRequest { operator, reason, evidence, reservation, agreed };
    if let Some(act) = act(what) {
        let payout = possible(app, id, what, &request).await?;
        let asked = Asked {
            act,
            action: action(what),
            subject: ("payout", payout.id.as_str()),
            wanted: json!({ "status": payout.status.as_str() }),
            said: json!({ "reason": request.reason, "evidence": request.evidence }),
            once: request.reservation.clone(),
        };
        match approvals::agree(app, &request.operator, asked).await? {
            Verdict::Go(Agreement { rows, guard, first }) => {
                request.agreed = Agreed { rows, guard, first, status: Some(payout.status) };
            }
            Verdict::Wait(response) => return Ok(response),
        }
    }
    answer(review(app, id, what, &request).await?, shown)
}

/// What the policy calls this change, if it may take two operators.
fn act(what: Change) -> Option<ApprovalAct> {
    match what {
        Change::MarkPaid | Change::MarkFailed => Some(ApprovalAct::Mark),
        Change::Reverse => Some(ApprovalAct::Reverse),
        _ => None,
    }
}

fn shown(payout: &Payout) -> Reply {
    Reply { status: 200, body: PayoutView::json(payout) }
}
