//! Batches that wait for somebody else.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::approvals::{self, Act, Agreement, ApprovalView, Asked, Verdict};
use crate::auth::Permission;
use crate::batches::http::{ItemsQuery, Wanted};
use crate::batches::model::{Batch, Change, Counts, Stage};
use crate::batches::review::{ReviewRequest, Reviewed, action, reply, review, teammates};
use crate::batches::{BatchView, get, sql};
use crate::caller::repeat::{answer, before, once};
use crate::caller::{Actor, Operator};
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{Body, IdempotencyKey, Page, PageQuery, Query, filter};
use crate::id::BatchId;
use crate::payouts::PayoutView;
use crate::payouts::model::Status;

use super::{optional, required};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_batches", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("inspect_batch", &[ErrorCode::BatchNotFound]),
    (
        "inspect_batch_items",
        &[
            ErrorCode::BatchNotFound,
            ErrorCode::InvalidFilter,
            ErrorCode::InvalidLimit,
            ErrorCode::InvalidField,
        ],
    ),
    (
        "approve_batch",
        &[
            ErrorCode::BatchNotFound,
            ErrorCode::StateConflict,
            ErrorCode::SelfApprovalDenied,
            ErrorCode::PermissionDenied,
            ErrorCode::CurrencyNotActive,
            ErrorCode::InsufficientFunds,
            ErrorCode::BatchWalletFrozen,
            ErrorCode::BeneficiaryGloballyBlocked,
            ErrorCode::BeneficiaryBlacklistedForPayout,
            ErrorCode::MerchantSuspended,
            ErrorCode::MerchantClosed,
            ErrorCode::LimitViolation,
            ErrorCode::IdempotencyKeyConflict,
        ],
    ),
    ("reject_batch", REFUSE_ERRORS),
    ("hold_batch", REFUSE_ERRORS),
];

const REFUSE_ERRORS: &[ErrorCode] = &[
    ErrorCode::BatchNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::IdempotencyKeyConflict,
];

/// Filters of the list of batches.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct BatchQuery {
    /// What people have decided: `awaiting_approval`, `flagged_held`, `approved` (also where its
    /// payouts have ended), `rejected` or `cancelled`.
    pub status: Option<String>,
    /// Only those of this merchant; a member sees their own.
    pub merchant_id: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List batches
#[utoipa::path(
    get, path = "/admin/v1/batches", operation_id = "list_batches", tag = "Operator",
    params(BatchQuery),
    responses((status = 200, description = "Newest first", body = Page<BatchView>)),
)]
pub async fn list(
    State(app): State<App>,
    actor: Actor,
    Query(query): Query<BatchQuery>,
) -> Result<Response, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let stage = filter("status", query.status, Stage::ALL.map(Stage::as_str))?;
    let stage = Stage::parse(&stage);
    let before = match &page.starting_after {
        None => None,
        Some(id) => Some(BatchId::parse_either(id).ok_or_else(PageQuery::unknown_cursor)?),
    };
    let cursor = before.map(|id| id.to_string());
    let merchant = match actor.merchant() {
        Some(own) => own.to_string(),
        None => query.merchant_id.unwrap_or_default(),
    };
    let filter = sql::Filter { stage, merchant, cursor, limit };
    let batches = sql::list(app.db.pool(), &filter).await?;
    let ids: Vec<&BatchId> = batches.iter().map(|batch| &batch.id).collect();
    let mut counts = sql::count(&app.db, &ids).await?;
    let mut of = |batch: &Batch| counts.remove(batch.id.as_str()).unwrap_or_default();
    let counted: Vec<(&Batch, Counts)> = batches.iter().map(|it| (it, of(it))).collect();
    let shown = counted.iter().map(|(batch, counts)| BatchView::for_operators(batch, counts));
    Ok(Page::of(shown.collect(), limit).into_response())
}

/// Show a batch
#[utoipa::path(
    get, path = "/admin/v1/batches/{id}", operation_id = "inspect_batch", tag = "Operator",
    params(("id" = String, Path, description = "Its id or bat_ reference")),
    responses((status = 200, description = "The batch", body = BatchView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (batch, counts) = find(&app, &actor, &id).await?;
    Ok(Json(BatchView::for_operators(&batch, &counts)).into_response())
}

/// List a batch's payouts
///
/// What is to be approved, row by row: the last one first.
#[utoipa::path(
    get, path = "/admin/v1/batches/{id}/items", operation_id = "inspect_batch_items",
    tag = "Operator",
    params(("id" = String, Path, description = "Its id or bat_ reference"), ItemsQuery),
    responses((status = 200, description = "The last row first", body = Page<PayoutView>)),
)]
pub async fn items(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Response, Problem> {
    let wanted = Wanted::read(query)?;
    let (batch, _) = find(&app, &actor, &id).await?;
    let (payouts, limit) = wanted.page(&app, &batch).await?;
    Ok(Page::of(payouts.iter().map(PayoutView::guarded).collect(), limit).into_response())
}

/// Why something is decided about a batch.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchReviewRequest {
    /// Why: for the audit log, and unless it is approved for the merchant. Required for rejecting
    /// and holding.
    pub reason: Option<String>,
}

/// Approve a batch
///
/// By somebody else than whoever made the key that it was made with: an operator, or a member of the
/// team with the permission `payout_bulk_approve`. An owner may approve their own. All its payouts
/// are debited and queued at once; where one cannot be, none is. Where the merchant's tiers ask for
/// more than one, each approval but the last is answered 202.
#[utoipa::path(
    post, path = "/admin/v1/batches/{id}/approve", operation_id = "approve_batch",
    tag = "Operator", params(
        ("id" = String, Path, description = "A batch that waits"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<BatchReviewRequest>),
    responses(
        (status = 200, description = "Debited and queued", body = BatchView),
        (status = 202, description = "More people have to approve it", body = ApprovalView),
    ),
)]
pub async fn approve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<BatchReviewRequest>,
) -> Result<Response, Problem> {
    actor.require(Permission::PayoutBulkApprove)?;
    run(&app, actor, (&id, key), (Change::Approve, body)).await
}

/// Reject a batch
///
/// All its payouts are cancelled; no money has moved.
#[utoipa::path(
    post, path = "/admin/v1/batches/{id}/reject", operation_id = "reject_batch",
    tag = "Operator", params(
        ("id" = String, Path, description = "A batch that waits"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = BatchReviewRequest,
    responses((status = 200, description = "Rejected", body = BatchView)),
)]
pub async fn reject(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<BatchReviewRequest>,
) -> Result<Response, Problem> {
    actor.require(Permission::PayoutBulkApprove)?;
    run(&app, actor, (&id, key), (Change::Reject, body)).await
}

/// Hold a batch
///
/// Sets a batch aside that waits for approval, and tells the merchant why: its status is
/// `flagged_held`. It can still be approved, by operators alone, or rejected.
#[utoipa::path(
    post, path = "/admin/v1/batches/{id}/hold", operation_id = "hold_batch",
    tag = "Operator", params(
        ("id" = String, Path, description = "A batch that awaits approval"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = BatchReviewRequest,
    responses((status = 200, description = "Set aside", body = BatchView)),
)]
pub async fn hold(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<BatchReviewRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::Hold, body)).await
}

async fn run(
    app: &App,
    actor: Actor,
    (id, key): (&str, Option<IdempotencyKey>),
    (what, body): (Change, Body<BatchReviewRequest>),
) -> Result<Response, Problem> {
    let shown = |(batch, counts): &Reviewed| reply(batch, counts);
    let reservation = once(&actor, key, &format!("/admin/v1/batches/{id}/{}", action(what)), &body);
    if let Some(done) = before::<Reviewed>(&app.db, &actor, reservation.as_ref()).await? {
        return answer(done, shown);
    }
    let reason = match what {
        Change::Approve => optional("reason", body.value.reason)?,
        _ => Some(required("reason", body.value.reason)?),
    };
    let agreement = Agreement::default();
    let mut request = ReviewRequest { actor, reason, reservation, agreement };
    let (batch, counts) = find(app, &request.actor, id).await?;
    // What is not possible is refused before anybody is asked to agree.
    batch.after(what, (request.reason.clone(), app.now()))?;
    if what == Change::Approve {
        let people = teammates(app, (&batch, &counts), &request.actor).await?;
        let asked = Asked {
            act: Act::Batch,
            action: action(what),
            subject: ("batch", batch.id.as_str()),
            merchant: Some(&batch.merchant_id),
            people,
            valid_for: limits::TEAM_APPROVAL_VALID,
            wanted: json!({
                "status": batch.status(&counts),
                "currency": batch.currency,
                "total_amount_minor": batch.total_amount,
                "drafts": counts.of(Status::Draft),
            }),
            said: json!({ "reason": request.reason }),
            once: request.reservation.clone(),
        };
        request.agreement = match approvals::agree(app, &request.actor, asked).await? {
            Verdict::Go(agreement) => agreement,
            Verdict::Wait(response) => return Ok(response),
        };
    }
    answer(review(app, id, what, &request).await?, shown)
}

/// A batch, if it is theirs to see.
async fn find(app: &App, actor: &Actor, id: &str) -> Result<(Batch, Counts), Problem> {
    let (batch, counts) = get(app, id).await?;
    match actor.sees(&batch.merchant_id) {
        true => Ok((batch, counts)),
        false => Err(Problem::new(ErrorCode::BatchNotFound)),
    }
}
