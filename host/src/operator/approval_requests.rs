//! What waits for more people: listed, and refused.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::approvals::{self, ApprovalView, Request};
use crate::caller::{Actor, Done};
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::ApprovalId;
use crate::ledger::Command;

use super::{required, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_approval_requests", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    (
        "refuse_approval_request",
        &[ErrorCode::NotFound, ErrorCode::MissingField, ErrorCode::StateConflict],
    ),
];

/// List what waits for more people
///
/// A member of a team sees what their merchant's own people may agree to.
#[utoipa::path(
    get, path = "/admin/v1/approval_requests", operation_id = "list_approval_requests",
    tag = "Operator", params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<ApprovalView>))),
)]
pub async fn list(
    State(app): State<App>,
    actor: Actor,
    Query(page): Query<PageQuery>,
) -> Result<Page<ApprovalView>, Problem> {
    // The one that it names may be gone by now.
    let (before, limit) = (page.cursor(ApprovalId::parse)?, page.limit()?);
    let whose = (actor.merchant(), app.now());
    let requests = approvals::list(app.db.pool(), whose, (before, limit)).await?;
    Ok(Page::of(requests.into_iter().map(ApprovalView::of).collect(), limit))
}

/// Why a request is refused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RefuseRequest {
    /// Why, for the audit log. Required.
    pub reason: Option<String>,
}

/// A request that is gone.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusedRequest {
    /// Always `approval_request`.
    #[schema(example = "approval_request")]
    pub object: &'static str,
    /// The request's id.
    pub id: String,
    /// Always `refused`.
    #[schema(example = "refused")]
    pub status: &'static str,
}

/// Refuse what waits for more people
///
/// Nobody's word counts any more: whoever still wants it asks anew. Whoever asked may take it back
/// in the same way. What stays of a payment that waits is refused by declining the payout or
/// rejecting the batch.
#[utoipa::path(
    post, path = "/admin/v1/approval_requests/{id}/refuse",
    operation_id = "refuse_approval_request", tag = "Operator",
    params(("id" = String, Path, description = "The request")),
    request_body = RefuseRequest,
    responses((status = 200, description = "It is gone", body = RefusedRequest)),
)]
pub async fn refuse(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    body: Body<RefuseRequest>,
) -> Result<Json<RefusedRequest>, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such approval request.");
    let id = ApprovalId::parse(&id).ok_or_else(missing)?;
    let found = approvals::find(app.db.pool(), (&id, app.now())).await?;
    let is_theirs = |request: &Request| {
        actor.merchant().is_none_or(|own| request.merchant_id.as_ref() == Some(own))
    };
    let request = found.filter(is_theirs).ok_or_else(missing)?;
    approvals::require_say(&actor, &request)?;
    let reason = required("reason", body.value.reason)?;
    let wanted: Value = serde_json::from_str(&request.wanted).unwrap_or_default();
    let voters: Vec<&str> = request.votes.iter().map(|vote| vote.by.as_str()).collect();
    let done = Done {
        action: "approval.refuse",
        subject: ("approval_request", id.as_str()),
        before: Some(json!({
            "action": request.action,
            "subject_id": request.subject_id,
            "wanted": wanted,
            "asked": voters,
        })),
        after: Some(json!({ "reason": reason })),
    };
    let (row, guard) = approvals::taken_away(&request);
    write(&app, &actor, done, Command::rows(vec![row]).guards([guard])).await?;
    let object = "approval_request";
    Ok(Json(RefusedRequest { object, id: id.to_string(), status: "refused" }))
}
