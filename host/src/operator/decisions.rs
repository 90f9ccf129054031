//! Decisions of the past: made again, and tried with another pack.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::clock::Moment;
use crate::decisions::backtest::{Backtest, Span, slice};
use crate::decisions::explain::{Explanation, explain};
use crate::decisions::sql::Place;
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::id::PayoutId;
use crate::rules::PackKind;

use super::assignments::scope;
use super::rule_packs::find;
use super::{invalid, required};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("explain_payout", &[ErrorCode::NotFound]),
    (
        "backtest_rule_pack",
        &[
            ErrorCode::NotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
        ],
    ),
];

/// Explain the fraud decision about a payout
///
/// The decision as it was kept, and made again by the very pack that made it.
#[utoipa::path(
    get, path = "/admin/v1/payouts/{id}/decision", operation_id = "explain_payout",
    tag = "Operator",
    params(("id" = String, Path, description = "A payout, or error.detail.decision_id of one that was blocked")),
    responses((status = 200, description = "The decision, twice", body = Explanation)),
)]
pub async fn show(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<Explanation>, Problem> {
    let id = PayoutId::parse_either(&id).ok_or_else(|| Problem::new(ErrorCode::NotFound))?;
    explain(&app, id.as_str()).await.map(Json)
}

/// Which decisions to look at.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BacktestRequest {
    /// From this instant on, in RFC 3339 form. Required.
    pub from: Option<String>,
    /// To before this instant; now if left out.
    pub before: Option<String>,
    /// Of one merchant; of all if left out.
    pub merchant_id: Option<String>,
    /// `next` of the slice before.
    pub after: Option<String>,
}

/// Try a rule pack on past decisions
///
/// One slice of the stored decisions; repeat with `after` until `next` is null.
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/backtest",
    operation_id = "backtest_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body = BacktestRequest,
    responses((status = 200, description = "What it would have decided", body = Backtest)),
)]
pub async fn backtest(
    State(app): State<App>,
    _operator: Operator,
    Path((name, version)): Path<(String, String)>,
    body: Body<BacktestRequest>,
) -> Result<Json<Backtest>, Problem> {
    let body = body.value;
    let version = find(&app, (&name, &version)).await?;
    if version.kind != PackKind::Fraud || !version.is_checked {
        let message = "Only fraud packs that passed their checks can be tried on decisions.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let instant = |field: &'static str, text: &str| {
        Moment::parse(text).ok_or_else(|| invalid(field, "must be an instant in RFC 3339 form"))
    };
    let from = instant("from", &required("from", body.from)?)?;
    let before = body.before.as_deref().map(|text| instant("before", text)).transpose()?;
    let after = match body.after.as_deref() {
        None => Place::beginning(from),
        Some(text) => {
            Place::read(text).ok_or_else(|| invalid("after", "is not next of another slice"))?
        }
    };
    scope(&app, body.merchant_id.clone()).await?;
    let pack = app.pack_store.pack(&version.digest).await.map_err(Problem::internal)?;
    let before = before.unwrap_or_else(|| app.now());
    let span = Span { after, before, merchant: body.merchant_id };
    slice(&app, pack, span).await.map(Json)
}
