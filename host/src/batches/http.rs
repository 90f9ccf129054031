//! The calls about batches.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{Body, IdempotencyKey, Page, PageQuery, Query, Replied, filter, replied};
use crate::id::PayoutId;
use crate::payouts::PayoutView;
use crate::payouts::model::{Payout, Status};
use crate::payouts::sql::get_payout;
use crate::simulator::scenario;

use super::create::{self, Answer};
use super::model::Batch;
use super::request::CreateBatch;
use super::retrieve::find;
use super::view::BatchView;
use super::{cancel, sql};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("create_batch", CREATE_ERRORS),
    ("retrieve_batch", &[ErrorCode::BatchNotFound, BULK[0], BULK[1]]),
    (
        "list_batch_items",
        &[
            ErrorCode::BatchNotFound,
            BULK[0],
            BULK[1],
            ErrorCode::InvalidFilter,
            ErrorCode::InvalidLimit,
            ErrorCode::InvalidField,
        ],
    ),
    (
        "cancel_batch",
        &[
            ErrorCode::BatchNotFound,
            BULK[0],
            BULK[1],
            ErrorCode::PermissionDenied,
            ErrorCode::BatchNotCancellable,
            ErrorCode::InvalidField,
        ],
    ),
];

const BULK: [ErrorCode; 2] = [ErrorCode::BulkDisabledForKey, ErrorCode::BulkRequiresIpAllowlist];

const CREATE_ERRORS: &[ErrorCode] = &[
    BULK[0],
    BULK[1],
    ErrorCode::PermissionDenied,
    ErrorCode::IdempotencyKeyRequired,
    ErrorCode::IdempotencyKeyConflict,
    ErrorCode::InvalidBody,
    ErrorCode::InvalidField,
    ErrorCode::MissingField,
    ErrorCode::InvalidAmount,
    ErrorCode::InvalidFormat,
    ErrorCode::InvalidIdType,
    ErrorCode::ItemsEmpty,
    ErrorCode::ItemsTooMany,
    ErrorCode::BatchCurrencyNotSupported,
    ErrorCode::CurrencyNotActive,
    ErrorCode::WalletNotFound,
    ErrorCode::CurrencyMismatch,
    ErrorCode::WalletEnvMismatch,
    ErrorCode::BatchWalletFrozen,
    ErrorCode::GuardFieldWrongMethod,
    ErrorCode::AmountBasisMismatch,
    ErrorCode::CustomerNotFound,
    ErrorCode::CustomerIdMismatch,
    ErrorCode::BeneficiaryNotFound,
    ErrorCode::BeneficiaryCurrencyMismatch,
    ErrorCode::BeneficiaryCooldown,
    ErrorCode::BeneficiaryBlacklistedForPayout,
    ErrorCode::BeneficiaryGloballyBlocked,
    ErrorCode::InvalidAccount,
    ErrorCode::InvalidRecipient,
    ErrorCode::NameMismatch,
    ErrorCode::MerchantReferenceDuplicate,
    ErrorCode::SenderInfoRequired,
    ErrorCode::UnknownBankCode,
    ErrorCode::RecipientUnresolvable,
    ErrorCode::LimitViolation,
    ErrorCode::FraudRuleBlocked,
    ErrorCode::BatchInsufficientFunds,
    ErrorCode::ProviderNotEntitled,
    ErrorCode::ProviderPaused,
    ErrorCode::RoutingFailed,
    ErrorCode::RailNotConfigured,
    ErrorCode::ProviderError,
    ErrorCode::StateConflict,
];

/// Create a batch
///
/// Sends money from one wallet to 1 to 150 recipients: all of these payouts are made, or none. What
/// is wrong with rows is told of all of them at once, in `violations` or `unresolved`. Afterwards
/// each payout succeeds or fails by itself. A batch above the merchant's threshold waits for a
/// second person.
#[utoipa::path(
    post, path = "/v1/batches", operation_id = "create_batch", tag = "Batches",
    params(
        ("Idempotency-Key" = String, Header, description = "Makes the request safe to repeat, and does not expire. A batch that is refused for its rows is refused under this key for good: mend it and use another one"),
        ("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays for every row; test keys only"),
    ),
    request_body = CreateBatch,
    responses((status = 201, description = "Created", body = BatchView)),
)]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    headers: HeaderMap,
    body: Body<CreateBatch>,
) -> Result<Response, Problem> {
    let scenario = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    let Answer { reply, is_replay } = create::create(&app, &caller, &key, body, scenario).await?;
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}

/// Retrieve a batch
///
/// How far it has come follows from its payouts: a payment that comes back later makes a completed
/// batch one with errors.
#[utoipa::path(
    get, path = "/v1/batches/{id}", operation_id = "retrieve_batch", tag = "Batches",
    params(("id" = String, Path, description = "Its id or bat_ reference")),
    responses((status = 200, description = "The batch", body = BatchView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require_bulk()?;
    let (batch, counts) = find(&app, &caller, &id).await?;
    Ok(Json(BatchView::whole(&batch, &counts)).into_response())
}

/// Filters of the list of a batch's payouts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ItemsQuery {
    /// A payout status.
    pub status: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List a batch's payouts
///
/// The last row first. Each that failed carries `failure_code` and `failure_message`.
#[utoipa::path(
    get, path = "/v1/batches/{id}/items", operation_id = "list_batch_items", tag = "Batches",
    params(("id" = String, Path, description = "Its id or bat_ reference"), ItemsQuery),
    responses((status = 200, description = "The last row first", body = Page<PayoutView>)),
)]
pub async fn items(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Response, Problem> {
    caller.require_bulk()?;
    let wanted = Wanted::read(query)?;
    let (batch, _) = find(&app, &caller, &id).await?;
    let (payouts, limit) = wanted.page(&app, &batch).await?;
    Ok(Page::of(payouts.iter().map(PayoutView::of).collect(), limit).into_response())
}

/// Which payouts of a batch are wanted.
pub(crate) struct Wanted {
    status: String,
    after: Option<PayoutId>,
    limit: i64,
}

impl Wanted {
    /// Reads the filters.
    ///
    /// # Errors
    /// `invalid_limit`, `invalid_filter`, `invalid_field`.
    pub(crate) fn read(query: ItemsQuery) -> Result<Self, Problem> {
        let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
        let limit = page.limit()?;
        let status = filter("status", query.status, Status::iter().map(Status::as_str))?;
        let after = match &page.starting_after {
            None => None,
            Some(text) => Some(PayoutId::parse_either(text).ok_or_else(PageQuery::unknown_cursor)?),
        };
        Ok(Self { status, after, limit })
    }

    /// A page of them, one more than it shows, and how many it shows.
    ///
    /// # Errors
    /// `invalid_field` for a cursor that is no payout of this batch.
    pub(crate) async fn page(
        self,
        app: &App,
        batch: &Batch,
    ) -> Result<(Vec<Payout>, i64), Problem> {
        let Self { status, after, limit } = self;
        let cursor = match after {
            None => None,
            Some(after) => {
                let known = get_payout(app.db.pool(), &after).await?;
                let known = known.filter(|payout| payout.batch_id.as_ref() == Some(&batch.id));
                Some(known.ok_or_else(PageQuery::unknown_cursor)?.id.to_string())
            }
        };
        let wanted = sql::Items { status, cursor, limit };
        Ok((sql::list_items(app.db.pool(), &batch.id, &wanted).await?, limit))
    }
}

/// Why a batch is cancelled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CancelBatchRequest {
    /// Why; at most 500 characters.
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// A batch that was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledBatch {
    /// Always `batch`.
    #[schema(example = "batch")]
    pub object: &'static str,
    /// Its id.
    pub id: String,
    /// Its reference for people.
    pub reference: String,
    /// Always `cancelled`.
    #[schema(example = "cancelled")]
    pub status: &'static str,
    /// How many payouts were taken back. The others had left, and go on.
    #[schema(example = 140)]
    pub cancelled_count: usize,
}

/// Cancel a batch
///
/// Takes back every payout that has not left, all at once; the wallet has everything back. What is
/// under way goes on. Only an approved batch with a payout that has not left can be cancelled, with
/// a key that has the permission `payout_bulk_upload` or `payout_cancel`.
#[utoipa::path(
    post, path = "/v1/batches/{id}/cancel", operation_id = "cancel_batch", tag = "Batches",
    params(("id" = String, Path, description = "Its id or bat_ reference")),
    request_body(content = Option<CancelBatchRequest>),
    responses((status = 200, description = "Cancelled", body = CancelledBatch)),
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalBody(Body { value: request, .. }): OptionalBody<CancelBatchRequest>,
) -> Result<Response, Problem> {
    caller.require_bulk()?;
    let (batch, cancelled_count) =
        cancel::cancel(&app, &caller, &id, request.reason.as_deref()).await?;
    let cancelled = CancelledBatch {
        object: "batch",
        id: batch.id.to_string(),
        reference: batch.id.reference(),
        status: "cancelled",
        cancelled_count,
    };
    Ok(Json(cancelled).into_response())
}
