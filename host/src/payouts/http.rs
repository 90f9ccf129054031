//! The calls about payouts.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{
    Body, IdempotencyKey, Page, PageQuery, Query, Replied, after, filter, instant, replied,
};
use crate::id::PayoutId;
use crate::simulator::scenario;

use super::create::{self, Answer};
use super::model::{Payout, Status};
use super::quote::{PayoutQuote, QuoteRequest, quote};
use super::request::CreatePayout;
use super::retrieve::find;
use super::timeline::{Step, timeline};
use super::transfer::PayoutTransfers;
use super::view::PayoutView;
use super::{cancel, sql};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("create_payout", CREATE_ERRORS),
    ("list_payouts", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("retrieve_payout", &[ErrorCode::PayoutNotFound]),
    ("requery_payout", &[ErrorCode::PayoutNotFound, ErrorCode::RailNotConfigured]),
    (
        "cancel_payout",
        &[
            ErrorCode::PayoutNotFound,
            ErrorCode::PermissionDenied,
            ErrorCode::PayoutNotCancellable,
            ErrorCode::InvalidField,
        ],
    ),
    ("payout_timeline", &[ErrorCode::PayoutNotFound]),
    ("quote_payout", QUOTE_ERRORS),
];

const CREATE_ERRORS: &[ErrorCode] = &[
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::RecipientFieldInvalid,
    ErrorCode::IdempotencyKeyRequired,
    ErrorCode::PermissionDenied,
    ErrorCode::AmbiguousAmount,
    ErrorCode::AmountRequired,
    ErrorCode::InvalidFundingCurrency,
    ErrorCode::GuardFieldWrongMethod,
    ErrorCode::AmountBasisMismatch,
    ErrorCode::FxPayoutDisabled,
    ErrorCode::FxPayoutTermsNotAccepted,
    ErrorCode::FxPayoutSourceNotAllowed,
    ErrorCode::FxPayoutTierInvalid,
    ErrorCode::FxPayoutUnavailable,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FxExposureCapExceeded,
    ErrorCode::FundingBelowFee,
    ErrorCode::MaxDebitExceeded,
    ErrorCode::MinReceiveNotMet,
    ErrorCode::CurrencyNotActive,
    ErrorCode::FxFeaturesNotEnabled,
    ErrorCode::PayoutWalletNotFound,
    ErrorCode::CustomerNotFound,
    ErrorCode::CustomerIdMismatch,
    ErrorCode::BeneficiaryNotFound,
    ErrorCode::BeneficiaryCurrencyMismatch,
    ErrorCode::BeneficiaryCooldown,
    ErrorCode::BeneficiaryBlacklistedForPayout,
    ErrorCode::BeneficiaryGloballyBlocked,
    ErrorCode::UnknownBankCode,
    ErrorCode::UnknownOperator,
    ErrorCode::InvalidAccount,
    ErrorCode::InvalidRecipient,
    ErrorCode::RecipientUnresolvable,
    ErrorCode::NameMismatch,
    ErrorCode::SenderInfoRequired,
    ErrorCode::LimitViolation,
    ErrorCode::FraudRuleBlocked,
    ErrorCode::WalletFrozen,
    ErrorCode::InsufficientFunds,
    ErrorCode::IdempotencyKeyConflict,
    ErrorCode::IdempotencyConflict,
    ErrorCode::MerchantReferenceDuplicate,
    ErrorCode::ProviderNotEntitled,
    ErrorCode::ProviderPaused,
    ErrorCode::RoutingFailed,
    ErrorCode::RailNotConfigured,
    ErrorCode::ProviderError,
    ErrorCode::InvalidAmount,
    ErrorCode::StateConflict,
];

const QUOTE_ERRORS: &[ErrorCode] = &[
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::UnsupportedCurrency,
    ErrorCode::FxFeaturesNotEnabled,
    ErrorCode::InvalidAmount,
    ErrorCode::AmbiguousAmount,
    ErrorCode::AmountRequired,
    ErrorCode::GuardFieldWrongMethod,
    ErrorCode::AmountBasisMismatch,
    ErrorCode::InvalidFundingCurrency,
    ErrorCode::FxPayoutDisabled,
    ErrorCode::FxPayoutTermsNotAccepted,
    ErrorCode::FxPayoutSourceNotAllowed,
    ErrorCode::FxPayoutTierInvalid,
    ErrorCode::FxPayoutUnavailable,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FundingBelowFee,
    ErrorCode::LimitViolation,
    ErrorCode::RailNotConfigured,
];

/// Create a payout
///
/// Sends money from a wallet to a recipient. With a test key the answer comes after the
/// simulated bank's; with a live key the payout is `queued` and sent at once by a worker.
#[utoipa::path(
    post, path = "/v1/payouts", operation_id = "create_payout", tag = "Payouts",
    params(
        ("Idempotency-Key" = String, Header, description = "Makes the request safe to repeat. It does not expire"),
        ("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays; test keys only"),
    ),
    request_body = CreatePayout,
    responses((status = 201, description = "Created", body = PayoutView)),
)]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    headers: HeaderMap,
    body: Body<CreatePayout>,
) -> Result<Response, Problem> {
    let scenario = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    let Answer { reply, is_replay } = create::create(&app, &caller, &key, body, scenario).await?;
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}

/// Filters of the list of payouts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ListQuery {
    /// A payout status.
    pub status: Option<String>,
    /// Only payouts in this currency, as an ISO 4217 code.
    pub currency: Option<String>,
    /// An instant or a day.
    pub created_after: Option<String>,
    /// An instant or a day.
    pub created_before: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List payouts
#[utoipa::path(
    get, path = "/v1/payouts", operation_id = "list_payouts", tag = "Payouts",
    params(ListQuery),
    responses((status = 200, description = "Newest first", body = Page<PayoutView>)),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let status = filter("status", query.status, Status::iter().map(Status::as_str))?;
    let currency = app.rails.filter(query.currency)?;
    let cursor = match &page.starting_after {
        Some(id) => Some(cursor(&app, &caller, id).await?),
        None => None,
    };
    let limit = page.limit()?;
    let filter = sql::Filter {
        status,
        currency,
        after: after("created_after", query.created_after.as_deref())?,
        before: instant("created_before", query.created_before.as_deref())?,
        cursor,
        limit,
    };
    let reads = &app.long_answers.reads;
    let permit = reads.acquire_for(&[&filter.currency], caller.owner()).await?;
    let payouts = sql::list_payouts(&app.db, caller.owner(), &filter).await?;
    drop(permit);
    let page = Page::of(payouts.iter().map(PayoutView::of).collect(), limit);
    Ok(page.into_response())
}

async fn cursor(app: &App, caller: &Caller, id: &str) -> Result<PayoutId, Problem> {
    let id = PayoutId::parse_either(id).ok_or_else(PageQuery::unknown_cursor)?;
    let found = sql::find_payout(app.db.pool(), caller.owner(), &id).await?;
    found.map(|payout| payout.id.clone()).ok_or_else(PageQuery::unknown_cursor)
}

/// Retrieve a payout
#[utoipa::path(
    get, path = "/v1/payouts/{id}", operation_id = "retrieve_payout", tag = "Payouts",
    params(("id" = String, Path, description = "Its id or po_ reference")),
    responses((status = 200, description = "The payout", body = PayoutView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let payout = find(&app, &caller, &id).await?;
    Ok(shown(&payout))
}

/// Requery a payout
///
/// Asks the rail about a payout that is processing, now. Nothing happens to any other.
#[utoipa::path(
    post, path = "/v1/payouts/{id}/requery", operation_id = "requery_payout", tag = "Payouts",
    params(("id" = String, Path, description = "Its id or po_ reference")),
    responses((status = 200, description = "The payout as it is now", body = PayoutView)),
)]
pub async fn requery(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let payout = find(&app, &caller, &id).await?;
    if payout.status == Status::Processing {
        let task = app.tasks.spawn({
            let (app, id) = (app.clone(), payout.id.clone());
            async move {
                let feature = PayoutTransfers(app.clone());
                app.transfers.work_now(&feature, id.as_str()).await
            }
        });
        match task.await.map_err(Problem::internal)? {
            // Somebody else was faster: what became of it is read below.
            Err(problem) if problem.code() != ErrorCode::StateConflict => return Err(problem),
            _ => {}
        }
    }
    let payout = find(&app, &caller, payout.id.as_str()).await?;
    let payout = PayoutTransfers(app).settled(payout).await?;
    Ok(shown(&payout))
}

/// The body of a cancellation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CancelRequest {
    /// Why: 3 to 500 characters. Required.
    #[schema(min_length = 3, max_length = 500)]
    pub reason: Option<String>,
}

/// Cancel a payout
///
/// Only a draft or a queued payout; the wallet gets everything back. A payout that another key
/// made needs the permission `payout_cancel`.
#[utoipa::path(
    post, path = "/v1/payouts/{id}/cancel", operation_id = "cancel_payout", tag = "Payouts",
    params(("id" = String, Path, description = "Its id or po_ reference")),
    request_body = CancelRequest,
    responses((status = 200, description = "The payout, cancelled", body = PayoutView)),
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalBody(Body { value: request, .. }): OptionalBody<CancelRequest>,
) -> Result<Response, Problem> {
    let payout = cancel::cancel(&app, &caller, &id, request.reason.as_deref()).await?;
    Ok(shown(&payout))
}

/// A payout's timeline.
#[derive(serde::Serialize, ToSchema)]
pub struct Timeline {
    /// Always `payout_timeline`.
    pub object: &'static str,
    /// The payout's id.
    pub payout_id: String,
    /// Steps, oldest first.
    pub data: Vec<Step>,
}

impl Timeline {
    /// The timeline of a payout.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn of(app: &App, payout: &Payout) -> Result<Self, Problem> {
        let (payout_id, data) = (payout.id.to_string(), timeline(app, payout).await?);
        Ok(Self { object: "payout_timeline", payout_id, data })
    }
}

/// Show a payout's timeline
///
/// Request, rules, route, the actual messages of the network (masked), ledger entries, events.
#[utoipa::path(
    get, path = "/v1/payouts/{id}/timeline", operation_id = "payout_timeline", tag = "Payouts",
    params(("id" = String, Path, description = "Its id or po_ reference")),
    responses((status = 200, description = "Oldest first", body = Timeline)),
)]
pub async fn show_timeline(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let payout = find(&app, &caller, &id).await?;
    Ok(axum::Json(Timeline::of(&app, &payout).await?).into_response())
}

/// Quote a payout
///
/// Fee and tax are exact; the levy is that of the default route. An amount that no payout may
/// have is refused as a payout of it would be. No money moves.
#[utoipa::path(
    post, path = "/v1/payouts/quote", operation_id = "quote_payout", tag = "Payouts",
    params(
        ("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays; test keys only"),
    ),
    request_body = QuoteRequest,
    responses((status = 200, description = "What it would cost", body = PayoutQuote)),
)]
pub async fn show_quote(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<QuoteRequest>,
) -> Result<Response, Problem> {
    let scenario = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    Ok(axum::Json(quote(&app, &caller, &body.value, scenario.as_deref()).await?).into_response())
}

fn shown(payout: &Payout) -> Response {
    axum::Json(PayoutView::of(payout)).into_response()
}
