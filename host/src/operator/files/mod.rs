//! Files of payments: what stands in them, and where they stand.

pub mod acts;
mod sql;
pub mod windows;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use strum::IntoEnumIterator as _;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query, filter};
use crate::id::PaymentFileId;
use crate::ledger::Command;
use crate::money::Minor;
use crate::transfers::files::table::{self, FileState, PaymentFile};

use super::write;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_windows", &[]),
    ("close_window", CHANGE_ERRORS),
    ("hold_window", CHANGE_ERRORS),
    ("release_window", CHANGE_ERRORS),
    ("list_files", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("get_file", &[ErrorCode::NotFound]),
    (
        "list_file_payments",
        &[ErrorCode::NotFound, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
    ("get_file_content", &[ErrorCode::NotFound, ErrorCode::StateConflict]),
    ("hold_file", CHANGE_ERRORS),
    ("release_file", CHANGE_ERRORS),
    ("deliver_file", DELIVER_ERRORS),
];

const CHANGE_ERRORS: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::StateConflict,
];
const DELIVER_ERRORS: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::StateConflict,
    ErrorCode::IdempotencyKeyConflict,
];

/// A file of payments.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileView {
    /// Always `file`.
    #[schema(example = "file")]
    pub object: &'static str,
    /// The file's id.
    #[schema(example = "pf_0q8zj3vkw1d7c5m2x9s4b6ne")]
    pub id: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The route that it goes over, by id.
    pub route_id: String,
    /// The name of that route.
    #[schema(example = "usd_ach")]
    pub route: String,
    /// The rail.
    #[schema(example = "ach")]
    pub rail: String,
    /// The payment method.
    pub method: String,
    /// What recipients get.
    pub currency: String,
    /// The window that it is made in.
    #[schema(example = "next-day")]
    pub window: String,
    /// When that window closes, or was closed before its time.
    #[schema(value_type = String, format = DateTime)]
    pub closes_at: Moment,
    /// The day of the closing, where the network is.
    #[schema(value_type = String, format = Date)]
    pub business_date: String,
    /// The time of the closing there.
    #[schema(example = "16:45")]
    pub local_time: String,
    /// On which day recipients shall have the money.
    #[schema(value_type = String, format = Date)]
    pub value_date: String,
    /// From when its payments count as paid, if the network carries it out.
    #[schema(value_type = String, format = DateTime)]
    pub settles_at: Moment,
    /// Its number among the files to its bank, which routes of one rail may share; none before its
    /// window has closed.
    pub number: Option<i64>,
    /// Its number among those of the day.
    pub number_of_day: Option<i64>,
    /// The first of its entries' numbers.
    pub first_entry: Option<i64>,
    /// `collecting`, `closed`, `assembled`, `sending`, `unclear`, `delivered`, `acknowledged`,
    /// `refused`, or `empty`.
    #[schema(example = "delivered")]
    pub state: &'static str,
    /// Whether an operator holds it back.
    pub is_held: bool,
    /// The name that it is delivered under.
    pub name: Option<String>,
    /// What the network's acknowledgement calls it.
    pub identity: Option<String>,
    /// SHA-256 of its bytes.
    pub digest: Option<String>,
    /// How many payments it was made of.
    pub entries: i64,
    /// What they came to, in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
    /// Whether a byte of it may have left.
    pub may_have_left: bool,
    /// How often its delivery was begun.
    pub deliveries: i64,
    /// The network's last code.
    pub code: Option<String>,
    /// What was learnt last.
    pub message: Option<String>,
    /// When something is done about it next.
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Moment,
    /// When its delivery was begun last.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub sent_at: Option<Moment>,
    /// When the network acknowledged or refused it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub answered_at: Option<Moment>,
    /// When it was opened.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// What is in it now, where one file is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payments: Option<FilePayments>,
}

/// What is in a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FilePayments {
    /// Payments; those of a file that was refused are in the next one.
    pub count: i64,
    /// What recipients get by them, in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
}

/// Filters of the list of files.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ListQuery {
    /// Only files of this environment: `test` or `live`.
    pub env: Option<String>,
    /// Only files over the route of this name.
    pub route: Option<String>,
    /// Only files in this state.
    pub state: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List files of payments
#[utoipa::path(
    get, path = "/admin/v1/files", operation_id = "list_files", tag = "Operator",
    params(ListQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<FileView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<ListQuery>,
) -> Result<Page<FileView>, Problem> {
    let state = filter("state", query.state, FileState::iter().map(FileState::as_str))?;
    let env = filter("env", query.env, Env::ALL.map(Env::as_str))?;
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let before = match page.starting_after {
        None => "~".to_owned(),
        Some(id) => match find(&app, &id).await {
            Ok(file) => file.id.to_string(),
            Err(problem) if problem.code() == ErrorCode::NotFound => {
                return Err(PageQuery::unknown_cursor());
            }
            Err(problem) => return Err(problem),
        },
    };
    let route = query.route.unwrap_or_default();
    let filter = table::Filter { env, route, state, before, limit };
    let files = table::list(app.db.pool(), &filter).await?;
    Ok(Page::of(files.iter().map(view).collect(), limit))
}

/// Retrieve a file of payments
#[utoipa::path(
    get, path = "/admin/v1/files/{id}", operation_id = "get_file", tag = "Operator",
    params(("id" = String, Path, description = "The file")),
    responses((status = 200, description = "The file, and how much is in it", body = FileView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<FileView>, Problem> {
    let file = find(&app, &id).await?;
    let (count, amount_minor) = sql::count_payments(app.db.pool(), &file.id).await?;
    let payments = Some(FilePayments { count, amount_minor });
    Ok(Json(FileView { payments, ..view(&file) }))
}

/// A payment of a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FilePaymentView {
    /// Always `file_payment`.
    #[schema(example = "file_payment")]
    pub object: &'static str,
    /// The id of the attempt by which the payout is in the file.
    pub id: String,
    /// The payout.
    pub payout_id: String,
    /// Whose payout it is.
    pub merchant_id: String,
    /// Our reference of it.
    #[schema(example = "R16000000000042")]
    pub reference: String,
    /// What the network calls its entry, once the file is made.
    #[schema(example = "121042880000001")]
    pub entry_key: Option<String>,
    /// Where the attempt stands: `open`, `paid`, `refused`, `returned`, `not_sent` or `closed`.
    #[schema(example = "open")]
    pub state: String,
    /// The network's code for it.
    pub code: Option<String>,
    /// What the network says of it.
    pub message: Option<String>,
    /// What the recipient gets, as an ISO 4217 code.
    pub currency: String,
    /// How much, in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
}

/// List the payments of a file
#[utoipa::path(
    get, path = "/admin/v1/files/{id}/payments", operation_id = "list_file_payments",
    tag = "Operator", params(("id" = String, Path, description = "The file"), PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<FilePaymentView>))),
)]
pub async fn payments(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Page<FilePaymentView>, Problem> {
    let (limit, pool) = (page.limit()?, app.db.pool());
    let file = find(&app, &id).await?;
    let cursor = page.starting_after.as_deref();
    if let Some(attempt) = cursor
        && !sql::has_payment(pool, &file.id, attempt).await?
    {
        return Err(PageQuery::unknown_cursor());
    }
    let before = (cursor.unwrap_or("~"), limit);
    let payments = sql::list_payments(pool, &file.id, before).await?;
    Ok(Page::of(payments.into_iter().map(payment).collect(), limit))
}

/// Download a file of payments
///
/// The very bytes that the network gets, with recipients' names and accounts in clear: that they
/// were read stands in the audit log.
#[utoipa::path(
    get, path = "/admin/v1/files/{id}/content", operation_id = "get_file_content",
    tag = "Operator", params(("id" = String, Path, description = "The file")),
    responses((status = 200, description = "The bytes", body = String, content_type = "text/plain")),
)]
pub async fn content(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let file = find(&app, &id).await?;
    if matches!(file.state, FileState::Collecting | FileState::Closed | FileState::Empty) {
        let message = format!("This file is {}: it has no bytes.", file.state.as_str());
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let bytes = table::content(app.db.pool(), &app.keyring, &file).await?;
    let done = Done {
        action: "file.read",
        subject: ("file", file.id.as_str()),
        before: None,
        after: Some(json!({ "digest": file.digest, "bytes": bytes.len() })),
    };
    write(&app, &operator, done, Command::rows(Vec::new())).await?;
    let name = file.name.as_deref().unwrap_or(file.id.as_str());
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let disposition = disposition.map_err(Problem::internal)?;
    let kind = HeaderValue::from_static("text/plain");
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, disposition)], bytes).into_response())
}

/// The file of this id.
async fn find(app: &App, id: &str) -> Result<PaymentFile, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such file.");
    let id = PaymentFileId::parse(id).ok_or_else(missing)?;
    table::get(app.db.pool(), &id).await?.ok_or_else(missing)
}

fn view(file: &PaymentFile) -> FileView {
    let file = file.clone();
    let allotted = |number: i64| (file.number > 0).then_some(number);
    FileView {
        object: "file",
        id: file.id.to_string(),
        env: file.env.as_str(),
        route_id: file.route_id.to_string(),
        number: allotted(file.number),
        number_of_day: allotted(file.number_of_day),
        first_entry: allotted(file.first_entry),
        route: file.route,
        rail: file.rail,
        method: file.method,
        currency: file.currency,
        window: file.window,
        closes_at: file.closes_at,
        business_date: file.business_date,
        local_time: file.local_time,
        value_date: file.value_date,
        settles_at: file.settles_at,
        state: file.state.as_str(),
        is_held: file.is_held,
        name: file.name,
        identity: file.identity,
        digest: file.digest,
        entries: file.entries,
        amount_minor: Minor::new(file.amount_minor),
        may_have_left: file.may_have_left,
        deliveries: file.deliveries,
        code: file.code,
        message: file.message,
        due_at: file.due_at,
        sent_at: file.sent_at,
        answered_at: file.answered_at,
        created_at: file.created_at,
        payments: None,
    }
}

fn payment(payment: sql::Payment) -> FilePaymentView {
    FilePaymentView {
        object: "file_payment",
        id: payment.attempt,
        payout_id: payment.payout,
        merchant_id: payment.merchant,
        reference: payment.reference,
        entry_key: payment.entry_key,
        state: payment.state,
        code: payment.code,
        message: payment.message,
        currency: payment.currency.to_string(),
        amount_minor: payment.amount,
    }
}
