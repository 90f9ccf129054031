//! The calls about rates and conversions.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::fx::lists::{REMEMBERED, RateRow};
use crate::http::{Body, IdempotencyKey, Page, PageQuery, Query, Replied, replied};
use crate::id::ConversionId;
use crate::money::Currency;
use crate::simulator::scenario;

use super::create;
use super::request::ConversionRequest;
use super::sql;
use super::view::{ConversionQuote, ConversionView};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_rates", &[ErrorCode::UnsupportedCurrency, ErrorCode::InvalidFilter]),
    ("create_conversion", CREATE_ERRORS),
    ("quote_conversion", QUOTE_ERRORS),
    ("list_conversions", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("retrieve_conversion", &[ErrorCode::NotFound]),
];

const CREATE_ERRORS: &[ErrorCode] = &[
    ErrorCode::IdempotencyKeyRequired,
    ErrorCode::PermissionDenied,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::UnsupportedCurrency,
    ErrorCode::InvalidCurrencyPair,
    ErrorCode::AmbiguousAmount,
    ErrorCode::AmountRequired,
    ErrorCode::InvalidAmount,
    ErrorCode::WalletFrozen,
    ErrorCode::InsufficientFunds,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FxConvertUnavailable,
    ErrorCode::FxExposureCapExceeded,
    ErrorCode::IdempotencyConflict,
];

const QUOTE_ERRORS: &[ErrorCode] = &[
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::UnsupportedCurrency,
    ErrorCode::InvalidCurrencyPair,
    ErrorCode::AmbiguousAmount,
    ErrorCode::AmountRequired,
    ErrorCode::InvalidAmount,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FxConvertUnavailable,
];

/// Filters of the list of rates.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RateQuery {
    /// Only rates at which this currency is sold, as an ISO 4217 code.
    pub from: Option<String>,
    /// Only rates at which this currency is bought, as an ISO 4217 code.
    pub to: Option<String>,
}

/// List rates
///
/// What one currency costs in another for this account, fees excluded. Indicative: the rate at
/// execution counts. The list is up to a minute old.
#[utoipa::path(
    get, path = "/v1/rates", operation_id = "list_rates", tag = "Conversions",
    params(RateQuery),
    responses((status = 200, description = "A row for each pair", body = inline(Page<RateRow>))),
)]
pub async fn rates(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<RateQuery>,
) -> Result<Response, Problem> {
    let known = |field: &'static str, code: Option<&str>| {
        let known = |code| Currency::parse(code).filter(|it| app.rails.exponent(*it).is_some());
        let unknown = || Problem::new(ErrorCode::UnsupportedCurrency).field(field);
        // Nothing named is left out.
        let code = code.filter(|code| !code.is_empty());
        code.map(|code| known(code).ok_or_else(unknown)).transpose()
    };
    let (from, to) = (known("from", query.from.as_deref())?, known("to", query.to.as_deref())?);
    let all = app.rates.list(caller.owner(), app.now()).await?;
    let settings = &caller.merchant.settings;
    let can_hold = |it: Currency| settings.is_active(it) && app.rails.exponent(it).is_some();
    let rows = all.iter().filter(|row| can_hold(row.from_currency) && can_hold(row.to_currency));
    let rows = rows.filter(|row| {
        from.is_none_or(|from| from == row.from_currency)
            && to.is_none_or(|to| to == row.to_currency)
    });
    let mut response = Page::whole(rows.cloned().collect::<Vec<_>>()).into_response();
    let age = format!("private, max-age={}", REMEMBERED.as_secs());
    let age = HeaderValue::try_from(age).map_err(Problem::internal)?;
    response.headers_mut().insert(CACHE_CONTROL, age);
    response.headers_mut().insert(VARY, HeaderValue::from_static("authorization"));
    Ok(response)
}

/// Convert between wallets
///
/// Sells exactly `from_amount_minor`, or buys exactly `to_amount_minor`, at the rate of this
/// moment. Where it is refused nothing moves.
#[utoipa::path(
    post, path = "/v1/conversions", operation_id = "create_conversion", tag = "Conversions",
    params(
        ("Idempotency-Key" = String, Header, description = "Makes the request safe to repeat. It does not expire"),
        ("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays; test keys only"),
    ),
    request_body = ConversionRequest,
    responses(
        (status = 201, description = "Converted", body = ConversionView),
        (status = 200, description = "Converted before, with the same key", body = ConversionView),
    ),
)]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    headers: HeaderMap,
    body: Body<ConversionRequest>,
) -> Result<Response, Problem> {
    let scenario = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    let made = create::create(&app, &caller, &key, body, scenario.as_deref()).await?;
    let (reply, is_replay) = made;
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}

/// Quote a conversion
///
/// What a conversion would come to at the rate of this moment. No money moves.
#[utoipa::path(
    post, path = "/v1/conversions/quote", operation_id = "quote_conversion", tag = "Conversions",
    params(
        ("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays; test keys only"),
    ),
    request_body = ConversionRequest,
    responses((status = 200, description = "What it would come to", body = ConversionQuote)),
)]
pub async fn quote(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<ConversionRequest>,
) -> Result<Json<ConversionQuote>, Problem> {
    let scenario = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    Ok(Json(create::quote(&app, &caller, &body.value, scenario.as_deref()).await?))
}

/// List conversions
#[utoipa::path(
    get, path = "/v1/conversions", operation_id = "list_conversions", tag = "Conversions",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<ConversionView>))),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<Page<ConversionView>, Problem> {
    let limit = page.limit()?;
    let before = match page.starting_after.as_deref() {
        Some(id) => Some(find(&app, &caller, id).await?.ok_or_else(PageQuery::unknown_cursor)?.id),
        None => None,
    };
    let before = before.as_ref().map(ConversionId::as_str);
    let rows = sql::list(app.db.pool(), caller.owner(), (before, limit)).await?;
    Ok(Page::of(rows.iter().map(ConversionView::of).collect(), limit))
}

/// Retrieve a conversion
#[utoipa::path(
    get, path = "/v1/conversions/{id}", operation_id = "retrieve_conversion", tag = "Conversions",
    params(("id" = String, Path, description = "The conversion")),
    responses((status = 200, description = "The conversion", body = ConversionView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ConversionView>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let missing = || Problem::because(ErrorCode::NotFound, "No such conversion.");
    Ok(Json(ConversionView::of(&found.ok_or_else(missing)?)))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<Option<sql::Conversion>, Problem> {
    let Some(id) = ConversionId::parse(id) else { return Ok(None) };
    Ok(sql::find(app.db.pool(), caller.owner(), &id).await?)
}
