//! Cases: what needs a person, and what was decided.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};
use crate::caller::{Done, Operator};
use crate::cases::sql::{self, Decided, StoredCase};
use crate::cases::{CaseKind, Resolution};
use crate::clock::Moment;
use crate::config::ApprovalAct;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page, PageQuery, Query, filter};
use crate::id::{CaseId, PayoutId};
use crate::ledger::{Command, Guard};
use crate::money::Minor;
use crate::payouts;

use super::{invalid, required};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_cases", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("get_case", &[ErrorCode::CaseNotFound]),
    (
        "resolve_case",
        &[
            ErrorCode::CaseNotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
            ErrorCode::InsufficientFunds,
            ErrorCode::WalletFrozen,
            ErrorCode::FxPayoutUnavailable,
            ErrorCode::FxRateUnavailable,
            ErrorCode::FxRateStale,
            ErrorCode::FxRateInverted,
            ErrorCode::FxExposureCapExceeded,
        ],
    ),
];

/// What needs a person.
#[derive(Debug, Serialize, ToSchema)]
pub struct CaseView {
    /// Always `case`.
    #[schema(example = "case")]
    pub object: &'static str,
    /// The case's id.
    #[schema(example = "case_0q8zj3vkw1d7c5m2x9s4b6ne")]
    pub id: String,
    /// What is the matter.
    #[schema(example = "paid_after_failure")]
    pub kind: &'static str,
    /// `open` or `resolved`.
    #[schema(example = "open")]
    pub status: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The merchant concerned, if there is one.
    pub merchant_id: Option<String>,
    /// `payout`, `file`, or `route` where neither is known.
    #[schema(example = "payout")]
    pub subject_type: &'static str,
    /// Its id.
    pub subject_id: String,
    /// The route concerned, by name.
    pub route: Option<String>,
    /// The currency of the amount.
    pub currency: Option<String>,
    /// The money in question, in minor units.
    #[schema(value_type = Option<String>)]
    pub amount_minor: Option<Minor>,
    /// What happened, in a sentence.
    pub summary: String,
    /// What shows it.
    #[schema(value_type = Object)]
    pub evidence: serde_json::Value,
    /// What to do about it.
    pub suggestion: &'static str,
    /// What may be decided, the likeliest first.
    pub resolutions: Vec<&'static str>,
    /// When it was opened.
    #[schema(value_type = String, format = DateTime)]
    pub opened_at: Moment,
    /// What was decided.
    pub resolution: Option<String>,
    /// What shows that the decision is right.
    pub resolution_evidence: Option<String>,
    /// Who asked for it first.
    pub requested_by: Option<String>,
    /// Who decided.
    pub resolved_by: Option<String>,
    /// When.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub resolved_at: Option<Moment>,
}

/// Filters of the list of cases.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ListQuery {
    /// Only cases of this kind.
    pub kind: Option<String>,
    /// `open` or `resolved`.
    pub status: Option<String>,
    /// Only cases about this payout, file or route, by id.
    pub subject_id: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List cases
#[utoipa::path(
    get, path = "/admin/v1/cases", operation_id = "list_cases", tag = "Operator",
    params(ListQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<CaseView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<ListQuery>,
) -> Result<Page<CaseView>, Problem> {
    let kind = filter("kind", query.kind, CaseKind::iter().map(CaseKind::as_str))?;
    let status = filter("status", query.status, ["open", "resolved"])?;
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let before = match page.starting_after {
        None => "~".to_owned(),
        Some(id) => match find(&app, &id).await {
            Ok(found) => found.case.id.to_string(),
            Err(_) => return Err(PageQuery::unknown_cursor()),
        },
    };
    let subject_id = query.subject_id.unwrap_or_default();
    let subject_id = match PayoutId::parse(&subject_id) {
        Some(payout) => payout.to_string(),
        None => subject_id,
    };
    let filter = sql::Filter { kind, status, subject_id, before, limit };
    let found = sql::list_cases(app.db.pool(), &filter).await?;
    Ok(Page::of(found.into_iter().map(view).collect(), limit))
}

/// Retrieve a case
#[utoipa::path(
    get, path = "/admin/v1/cases/{id}", operation_id = "get_case", tag = "Operator",
    params(("id" = String, Path, description = "The case")),
    responses((status = 200, description = "The case", body = CaseView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<CaseView>, Problem> {
    Ok(Json(view(find(&app, &id).await?)))
}

/// A decision.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResolveRequest {
    /// One of the case's `resolutions`. Required.
    #[schema(example = "charge")]
    pub resolution: Option<String>,
    /// What shows that it is right. Required.
    #[schema(example = "statement of 21 November, line 14")]
    pub evidence: Option<String>,
}

/// Resolve a case
///
/// Where two people are required for money, the first one asks and the second one, who must be
/// somebody else and ask for the same, decides.
#[utoipa::path(
    post, path = "/admin/v1/cases/{id}/resolve", operation_id = "resolve_case", tag = "Operator",
    params(("id" = String, Path, description = "The case")),
    request_body = ResolveRequest,
    responses(
        (status = 200, description = "Decided, and booked", body = CaseView),
        (status = 202, description = "A second person has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn resolve(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<ResolveRequest>,
) -> Result<Response, Problem> {
    let found = find(&app, &id).await?;
    let wanted = required("resolution", body.value.resolution)?;
    let evidence = required("evidence", body.value.evidence)?;
    let known = found.case.kind.resolutions();
    let Some(resolution) = Resolution::parse(&wanted).filter(|wanted| known.contains(wanted))
    else {
        let words: Vec<&str> = known.iter().map(|known| known.as_str()).collect();
        return Err(invalid("resolution", &format!("must be one of {}", words.join(", "))));
    };
    if found.status != "open" {
        let message = "This case is resolved already.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let agreement = match agree(&app, &operator, &found, (resolution, &evidence)).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let decided = Decided {
        id: found.case.id.clone(),
        status: "resolved",
        version: found.version + 1,
        resolution: resolution.as_str(),
        evidence: evidence.clone(),
        requested_by: agreement.first().unwrap_or(&operator.name).to_owned(),
        resolved_by: Some(operator.name.clone()),
        resolved_at: Some(app.now()),
    };
    let after = json!({
        "resolution": resolution.as_str(),
        "evidence": evidence,
        "status": decided.status,
    });
    let done = Done {
        action: "case.resolve",
        subject: ("case", found.case.id.as_str()),
        before: Some(json!({ "status": found.status, "subject_id": found.case.subject_id })),
        after: Some(agreement.told(after)),
    };
    let line = operator.did(done).row(&app.ids, app.now());
    let mut rows = vec![sql::CASE_DECISIONS.change(&decided), line];
    rows.extend(agreement.rows);
    let (case, agreed) = (guard(&found), agreement.guards);
    match resolution.moves_money() {
        true => {
            let with = payouts::Accompanied { case, agreed, rows };
            payouts::resolve(&app, &found, resolution, with).await?;
        }
        false => {
            app.writer.work(Command::rows(rows).guards([case])).await?;
        }
    }
    Ok(Json(view(find(&app, &id).await?)).into_response())
}

/// Whether one operator is enough for what moves money, or this completes their number.
async fn agree(
    app: &App,
    operator: &Operator,
    found: &StoredCase,
    (resolution, evidence): (Resolution, &str),
) -> Result<Verdict, Problem> {
    if !resolution.moves_money() {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let amount = found.case.amount.as_ref();
    let amount = amount.map(|(currency, amount)| (currency.as_str(), amount.units()));
    let done = ("case.resolve", ("case", found.case.id.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::Case, amount), done)
        .wanting(json!({ "resolution": resolution.as_str(), "version": found.version }))
        .saying(json!({ "evidence": evidence }), None);
    approvals::agree(app, operator, asked).await
}

fn guard(case: &StoredCase) -> Guard {
    Guard { on: &sql::CASE_VERSIONS, id: case.case.id.to_string(), version: case.version }
}

async fn find(app: &App, id: &str) -> Result<StoredCase, Problem> {
    let missing = || Problem::new(ErrorCode::CaseNotFound);
    let id = CaseId::parse(id).ok_or_else(missing)?;
    sql::get_case(app.db.pool(), &id).await?.ok_or_else(missing)
}

fn view(stored: StoredCase) -> CaseView {
    let StoredCase { case, status, resolution, resolution_evidence, .. } = stored;
    CaseView {
        object: "case",
        id: case.id.to_string(),
        kind: case.kind.as_str(),
        status,
        env: case.env.as_str(),
        merchant_id: case.merchant_id,
        subject_type: case.subject_type,
        subject_id: case.subject_id,
        route: case.route,
        currency: case.amount.map(|(currency, _)| currency.to_string()),
        amount_minor: case.amount.map(|(_, amount)| amount),
        summary: case.summary,
        evidence: case.evidence,
        suggestion: case.kind.suggestion(),
        resolutions: case.kind.resolutions().iter().map(|known| known.as_str()).collect(),
        opened_at: case.opened_at,
        resolution,
        resolution_evidence,
        requested_by: stored.requested_by,
        resolved_by: stored.resolved_by,
        resolved_at: stored.resolved_at,
    }
}
