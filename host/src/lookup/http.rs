//! The calls that look things up.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Caller;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::events::{self, EventView, sql};
use crate::http::{Body, Page, PageQuery, Query, after};
use crate::money::Currency;
use crate::payouts::event_body;
use crate::rails::declaration::OperatorTerms;
use crate::rails::directory::{self, Bank};
use crate::rails::{Block, Choice, Rail};
use crate::recipients::{Question, resolve};
use crate::simulator::scenario;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_banks", &[ErrorCode::UnsupportedCurrency]),
    ("list_momo_operators", &[ErrorCode::UnsupportedCurrency]),
    (
        "enquire_name",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::InvalidFormat,
            ErrorCode::UnsupportedCurrency,
            ErrorCode::UnknownBankCode,
            ErrorCode::RecipientUnresolvable,
            ErrorCode::ProviderError,
            ErrorCode::RoutingFailed,
            ErrorCode::ProviderNotEntitled,
            ErrorCode::ProviderPaused,
            ErrorCode::RailNotConfigured,
        ],
    ),
    ("list_events", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("explain_error", &[ErrorCode::NotFound]),
];

/// Which banks or operators are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct CurrencyQuery {
    /// What is paid to them.
    pub currency: Option<String>,
}

/// List banks
#[utoipa::path(
    get, path = "/v1/banks", operation_id = "list_banks", tag = "Lookup", params(CurrencyQuery),
    responses((status = 200, description = "Banks that can be paid, by name", body = inline(Page<Bank>))),
)]
pub async fn banks(
    State(app): State<App>,
    _caller: Caller,
    Query(query): Query<CurrencyQuery>,
) -> Result<Page<Bank>, Problem> {
    let unsupported = || unsupported(query.currency.as_deref(), &["NGN"]);
    let currency = query.currency.as_deref().and_then(Currency::parse).ok_or_else(unsupported)?;
    let rails = app.rails.all();
    let mut serving = rails.iter().filter(|rail| rail.declaration.serves(currency));
    let table = serving.find_map(|rail| rail.tables.get(directory::TABLE));
    Ok(Page::whole(directory::banks(table.ok_or_else(unsupported)?)))
}

/// No list for this currency; these have such a list.
fn unsupported(currency: Option<&str>, known: &[&str]) -> Problem {
    let message = match currency {
        Some(_) => {
            let known = known.join(" and ");
            format!("There is no such list for this currency; there is one for {known}.")
        }
        None => {
            let example = known.last().copied().unwrap_or("KES");
            format!("currency is required, as in ?currency={example}.")
        }
    };
    Problem::because(ErrorCode::UnsupportedCurrency, message).field("currency")
}

/// A mobile money operator.
#[derive(Debug, Serialize, ToSchema)]
pub struct MomoOperator {
    /// Always `momo_operator`.
    #[schema(example = "momo_operator")]
    pub object: &'static str,
    /// What recipients name as `mobile_operator`.
    #[schema(example = "mpesa")]
    pub slug: String,
    /// As people call it.
    #[schema(example = "M-Pesa")]
    pub name: String,
    /// ISO 3166 alpha-2.
    #[schema(example = "KE")]
    pub country: String,
    /// What its wallets hold.
    #[schema(example = "KES")]
    pub currency: String,
}

/// List mobile money operators
///
/// Operators whose wallets can be paid, from the declarations of the loaded rails.
#[utoipa::path(
    get, path = "/v1/momo_operators", operation_id = "list_momo_operators", tag = "Lookup",
    params(CurrencyQuery),
    responses((status = 200, description = "Operators, by slug", body = inline(Page<MomoOperator>))),
)]
pub async fn momo_operators(
    State(app): State<App>,
    _caller: Caller,
    Query(query): Query<CurrencyQuery>,
) -> Result<Page<MomoOperator>, Problem> {
    let rails = app.rails.all();
    let of_currency = |rail: &Arc<Rail>| {
        let of_it = |it: &&OperatorTerms| Some(it.currency.as_str()) == query.currency.as_deref();
        rail.declaration.operators.iter().filter(of_it).cloned().collect::<Vec<_>>()
    };
    let mut found: Vec<OperatorTerms> = rails.iter().flat_map(of_currency).collect();
    if found.is_empty() {
        let all = rails.iter().flat_map(|rail| &rail.declaration.operators);
        let known: BTreeSet<&str> = all.map(|terms| terms.currency.as_str()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(unsupported(query.currency.as_deref(), &known));
    }
    found.sort_by(|a, b| a.slug.cmp(&b.slug));
    let shown = found.into_iter().map(|OperatorTerms { slug, name, country, currency }| {
        let currency = currency.to_string();
        MomoOperator { object: "momo_operator", slug, name, country, currency }
    });
    Ok(Page::whole(shown.collect()))
}

/// The body of a name enquiry.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct NameEnquiry {
    /// Exactly 10 digits. Required.
    #[schema(example = "0123456785")]
    pub account_number: Option<String>,
    /// Any code of the bank list. Required.
    #[schema(example = "058")]
    pub bank_code: Option<String>,
    /// Must be NGN. Required.
    #[schema(example = "NGN")]
    pub currency: Option<String>,
    /// The bank's name as the caller knows it; nothing is decided by it.
    pub bank_name: Option<String>,
}

/// A resolved name.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResolvedName {
    /// The name that the bank has on record, in capitals.
    #[schema(example = "ADA OBI")]
    pub resolved_name: String,
    /// `beneficiary_cache` or `provider`.
    #[schema(example = "provider")]
    pub source: &'static str,
    /// Who knew it; opaque and unstable.
    pub resolved_by_provider: Option<String>,
}

/// Enquire a name
///
/// Who holds an account: from your saved beneficiaries, or asked of the network.
#[utoipa::path(
    post, path = "/v1/name-enquiry", operation_id = "enquire_name", tag = "Lookup",
    params(("X-Sandbox-Scenario" = Option<String>, Header, description = "What the sandbox plays; test keys only")),
    request_body = NameEnquiry,
    responses((status = 200, description = "The name on record", body = ResolvedName)),
)]
pub async fn name_enquiry(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Body<NameEnquiry>,
) -> Result<Json<ResolvedName>, Problem> {
    let body = body.value;
    let required = |name: &'static str, value: &Option<String>| {
        let value = value.clone().filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
        })
    };
    let unsupported = || Problem::new(ErrorCode::UnsupportedCurrency).field("currency");
    let currency = required("currency", &body.currency)?;
    let currency = Currency::parse(&currency).ok_or_else(unsupported)?;
    // Other networks only say whether a name that is given is the one.
    let served = app.rails.serving(currency, Choice::of(None)).ok();
    let served = served.filter(|(rail, _)| rail.overwrites_names());
    let (rail, method) = served.ok_or_else(unsupported)?;
    required("account_number", &body.account_number)?;
    required("bank_code", &body.bank_code)?;
    let checked =
        app.recipients.check(&rail, (&method, currency, Block::Identity), |name| match name {
            "account_number" => body.account_number.clone(),
            "bank_code" => body.bank_code.clone(),
            "bank_name" => body.bank_name.clone(),
            _ => None,
        });
    let checked = checked.await.map_err(format_problem)?;
    let asked_for = scenario::asked_for(caller.key.env, &headers, || app.rails.scenarios())?;
    let chosen = rail.declaration.scenario(|field| Some(checked.fields.get(field).to_owned()));
    let chosen = chosen.filter(|_| caller.key.env == Env::Test);
    let scenario = asked_for.as_deref().or(chosen);
    let known = app.recipients.known(caller.owner(), (currency, &checked.identity)).await?;
    let saved = known.beneficiary.as_ref().filter(|saved| saved.deleted_at.is_none());
    let fresh_for = rail.declaration.names.as_ref().map_or(0, |names| names.fresh_for_days);
    let fresh_for = std::time::Duration::from_secs(u64::from(fresh_for) * 24 * 3600);
    let now = app.now();
    if let Some(saved) = saved.filter(|saved| {
        scenario.is_none() && saved.resolved_at.is_some_and(|at| at.after(fresh_for) > now)
    }) && let Some(name) = &saved.account_name
    {
        return Ok(Json(ResolvedName {
            resolved_name: name.clone(),
            source: "beneficiary_cache",
            resolved_by_provider: None,
        }));
    }
    let question = Question {
        merchant: &caller.merchant.id,
        env: caller.key.env,
        currency,
        method: &method,
        account: &checked.fields,
        number: app.transfers.enquiry_number().await?,
        scenario,
    };
    let resolved = resolve(&app.routes, now, &question).await?;
    Ok(Json(ResolvedName {
        resolved_name: resolved.resolution.name,
        source: "provider",
        resolved_by_provider: Some(resolved.route),
    }))
}

/// In this call, a field of the wrong shape has a code of its own.
fn format_problem(problem: Problem) -> Problem {
    match problem.code() {
        ErrorCode::InvalidField => problem.with_code(ErrorCode::InvalidFormat),
        _ => problem,
    }
}

/// Filters of the feed of events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct EventQuery {
    /// An event's name.
    #[serde(rename = "type")]
    pub name: Option<String>,
    /// An instant or a day.
    pub created_after: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List events
///
/// The same events that webhooks carry, to be fetched instead.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "list_events", tag = "Events", params(EventQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<EventView>))),
)]
pub async fn events(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EventQuery>,
) -> Result<Page<EventView>, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let name = events::named("type", query.name.as_deref())?.to_owned();
    let after = after("created_after", query.created_after.as_deref())?;
    let limit = page.limit()?;
    let (pool, owner) = (app.db.pool(), caller.owner());
    if let Some(id) = &page.starting_after
        && !sql::find_event(pool, owner, id).await?
    {
        return Err(PageQuery::unknown_cursor());
    }
    let filter = sql::Filter { name, after, cursor: page.starting_after };
    let permit = app.long_answers.reads.acquire_for(&[&filter.name], owner).await?;
    let events = sql::list_events(pool, owner, &filter, limit).await?;
    drop(permit);
    Ok(Page::of(event_body::views(&app.db, events).await?, limit))
}

/// Explain an error code
#[utoipa::path(
    get, path = "/v1/errors/{code}", operation_id = "explain_error", tag = "Lookup",
    params(("code" = String, Path, description = "A literal code")), security(()),
    responses((status = 200, description = "What it means and what to do", body = Object)),
)]
pub async fn explain_error(Path(code): Path<String>) -> Result<Json<Value>, Problem> {
    let explained = explanation(&code);
    explained.map(Json).ok_or_else(|| Problem::new(ErrorCode::NotFound))
}

/// Everything that the catalogue says about a literal code.
#[must_use]
pub fn explanation(code: &str) -> Option<Value> {
    let entries: Vec<ErrorCode> = ErrorCode::iter().filter(|e| e.entry().code == code).collect();
    let first = entries.first()?;
    let meanings: Vec<Value> = entries
        .iter()
        .map(|error| {
            let (entry, texts) = (error.entry(), error.texts());
            json!({
                "status": entry.status,
                "type": entry.kind.literal(),
                "message": texts.message,
                "meaning": texts.meaning,
                "remedy": texts.remedy,
            })
        })
        .collect();
    let (entry, texts) = (first.entry(), first.texts());
    Some(json!({
        "object": "error_code",
        "code": code,
        "type": entry.kind.literal(),
        "status": entry.status,
        "message": texts.message,
        "meaning": texts.meaning,
        "remedy": texts.remedy,
        "variants": meanings,
    }))
}
