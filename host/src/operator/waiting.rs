//! Payouts that wait for somebody: drafts for a teammate, held ones for an operator.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Actor;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query, filter};
use crate::id::PayoutId;
use crate::payouts::http::Timeline;
use crate::payouts::model::{Payout, Status};
use crate::payouts::{self, PayoutView, sql};

use super::under_way::{self, UnderWay};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "list_waiting_payouts",
        &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
    ("inspect_payout", &[ErrorCode::PayoutNotFound]),
    ("inspect_payout_timeline", &[ErrorCode::PayoutNotFound]),
];

/// A payout as operators and its merchant's team see it.
#[derive(Debug, Serialize, ToSchema)]
pub struct InspectedPayout<'a> {
    /// The payout.
    #[serde(flatten)]
    #[schema(value_type = PayoutView)]
    pub payout: PayoutView<'a>,
    /// Whose it is.
    pub merchant_id: &'a str,
    /// `test` or `live`.
    pub env: &'static str,
    /// The key that it was made with.
    pub maker: &'a str,
    /// How many people have to approve it, besides whoever made that key.
    pub approvers: u32,
    /// How it stands with what is to be sent, and what that waits for; for operators, and as long as
    /// it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<UnderWay>,
}

/// Filters of what waits.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct WaitingQuery {
    /// `draft` or `awaiting_admin_review`; both if left out.
    pub status: Option<String>,
    /// `test` or `live`; both if left out.
    pub env: Option<String>,
    /// Only those of this merchant; a member sees their own.
    pub merchant_id: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List payouts that wait for somebody
#[utoipa::path(
    get, path = "/admin/v1/payouts", operation_id = "list_waiting_payouts", tag = "Operator",
    params(WaitingQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<InspectedPayout>))),
)]
pub async fn list(
    State(app): State<App>,
    actor: Actor,
    Query(query): Query<WaitingQuery>,
) -> Result<Response, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let waiting = Status::iter().filter(|status| status.waits_for_somebody());
    let status = filter("status", query.status, waiting.map(Status::as_str))?;
    let env = filter("env", query.env, Env::ALL.map(Env::as_str))?;
    let cursor = match &page.starting_after {
        None => None,
        Some(id) => Some(PayoutId::parse_either(id).ok_or_else(PageQuery::unknown_cursor)?),
    };
    let merchant = match actor.merchant() {
        Some(own) => own.to_string(),
        None => query.merchant_id.unwrap_or_default(),
    };
    let filter = sql::Waiting { status, env, merchant, cursor, limit };
    let payouts = sql::list_waiting(app.db.pool(), &filter).await?;
    let mut shown = Vec::with_capacity(payouts.len());
    for payout in &payouts {
        shown.push(view(&app, payout).await?);
    }
    Ok(Page::of(shown, limit).into_response())
}

/// Show a payout
#[utoipa::path(
    get, path = "/admin/v1/payouts/{id}", operation_id = "inspect_payout", tag = "Operator",
    params(("id" = String, Path, description = "Its id or po_ reference")),
    responses((status = 200, description = "The payout", body = InspectedPayout)),
)]
pub async fn retrieve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let payout = payouts::seen(&app, &actor, &id).await?;
    let mut shown = view(&app, &payout).await?;
    if actor.merchant().is_none() {
        shown.under_way = under_way::of(&app, &payout).await?;
    }
    Ok(Json(shown).into_response())
}

/// Show a payout's timeline
///
/// Request, rules, route, the actual messages of the network (masked), ledger entries, events.
#[utoipa::path(
    get, path = "/admin/v1/payouts/{id}/timeline", operation_id = "inspect_payout_timeline",
    tag = "Operator", params(("id" = String, Path, description = "Its id or po_ reference")),
    responses((status = 200, description = "Oldest first", body = Timeline)),
)]
pub async fn show_timeline(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<Timeline>, Problem> {
    let payout = payouts::seen(&app, &actor, &id).await?;
    Ok(Json(Timeline::of(&app, &payout).await?))
}

/// A payout as operators see it.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn view<'a>(
    app: &App,
    payout: &'a Payout,
) -> Result<InspectedPayout<'a>, Problem> {
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let approvers = merchant.map_or(0, |merchant| payout.approvers(&merchant.settings, None));
    let least = u32::from(payout.status == Status::Draft);
    Ok(InspectedPayout {
        payout: PayoutView::guarded(payout),
        merchant_id: payout.merchant_id.as_str(),
        env: payout.env.as_str(),
        maker: &payout.maker,
        approvers: approvers.max(least),
        under_way: None,
    })
}
