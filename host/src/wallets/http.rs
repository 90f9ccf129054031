//! The calls about wallets.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use utoipa::IntoParams;

use crate::app::App;
use crate::auth::Permission;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query, filter};
use crate::id::{JournalId, WalletId};
use crate::ledger::Source;
use crate::ledger::wallets::{self as rows, Filter, WalletRow};

use super::view::{Balance, Balances, Wallet, WalletBalance, WalletTransaction};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_wallets", &[]),
    ("list_balances", &[]),
    ("retrieve_wallet", &[ErrorCode::WalletNotFound]),
    ("retrieve_wallet_balance", &[ErrorCode::WalletNotFound]),
    (
        "list_wallet_transactions",
        &[
            ErrorCode::WalletNotFound,
            ErrorCode::InvalidFilter,
            ErrorCode::InvalidLimit,
            ErrorCode::InvalidField,
            ErrorCode::PermissionDenied,
            ErrorCode::CustomerNotFound,
        ],
    ),
    ("list_wallets", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField, ErrorCode::InvalidFilter]),
    (
        "list_funding_events",
        &[ErrorCode::WalletNotFound, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
];

/// List wallets
#[utoipa::path(
    get, path = "/v1/wallets", operation_id = "list_wallets", tag = "Wallets", params(PageQuery),
    responses((status = 200, description = "One per currency", body = inline(Page<Wallet>))),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<Page<Wallet>, Problem> {
    let (limit, wallets) =
        (page.limit()?, rows::list_wallets(app.db.pool(), caller.owner()).await?);
    let from = match &page.starting_after {
        None => 0,
        Some(id) => {
            let last = wallets.iter().position(|wallet| wallet.id.as_str() == id);
            last.ok_or_else(PageQuery::unknown_cursor)? + 1
        }
    };
    Ok(Page::of(wallets[from..].iter().map(Wallet::of).collect(), limit))
}

/// Show all balances
#[utoipa::path(
    get, path = "/v1/balances", operation_id = "list_balances", tag = "Wallets",
    responses((status = 200, description = "One line per wallet", body = Balances)),
)]
pub async fn balances(State(app): State<App>, caller: Caller) -> Result<Json<Balances>, Problem> {
    let wallets = rows::list_wallets(app.db.pool(), caller.owner()).await?;
    let data = wallets.into_iter().map(|row| Balance {
        object: "balance",
        wallet_id: row.id.to_string(),
        currency: row.currency.to_string(),
        env: row.env.as_str(),
        available_balance_minor: row.available,
        pending_out_minor: row.pending_out,
        is_active: row.is_active,
        is_frozen: row.is_frozen,
    });
    Ok(Json(Balances { object: "list", data: data.collect(), fetched_at: app.now() }))
}

/// Retrieve a wallet
#[utoipa::path(
    get, path = "/v1/wallets/{id}", operation_id = "retrieve_wallet", tag = "Wallets",
    params(("id" = String, Path, description = "The wallet")),
    responses((status = 200, description = "The wallet", body = Wallet)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Wallet>, Problem> {
    let row = find(&app, &caller, &id).await?;
    Ok(Json(Wallet { is_demo: Some(row.is_demo), ..Wallet::of(&row) }))
}

/// Show a wallet's balance
#[utoipa::path(
    get, path = "/v1/wallets/{id}/balance", operation_id = "retrieve_wallet_balance",
    tag = "Wallets", params(("id" = String, Path, description = "The wallet")),
    responses((status = 200, description = "The balance", body = WalletBalance)),
)]
pub async fn balance(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WalletBalance>, Problem> {
    let row = find(&app, &caller, &id).await?;
    Ok(Json(WalletBalance {
        object: "wallet_balance",
        wallet_id: row.id.to_string(),
        currency: row.currency.to_string(),
        env: row.env.as_str(),
        available_balance_minor: row.available,
        pending_out_minor: row.pending_out,
        fetched_at: app.now(),
    }))
}

/// Filters of the list of transactions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct TransactionQuery {
    /// A ledger source.
    pub source: Option<String>,
    /// `credit` or `debit`.
    pub direction: Option<String>,
    /// One customer's entries only.
    pub customer_id: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List a wallet's transactions
#[utoipa::path(
    get, path = "/v1/wallets/{id}/transactions", operation_id = "list_wallet_transactions",
    tag = "Wallets", params(("id" = String, Path, description = "The wallet"), TransactionQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<WalletTransaction>))),
)]
pub async fn transactions(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<TransactionQuery>,
) -> Result<Page<WalletTransaction>, Problem> {
    let wallet = find(&app, &caller, &id).await?;
    if query.customer_id.is_some() {
        let permitted = caller.require_permission(Permission::CustomerTransactionView);
        permitted.map_err(|problem| problem.field("customer_id"))?;
        return Err(Problem::new(ErrorCode::CustomerNotFound).field("customer_id"));
    }
    let source = filter("source", query.source, Source::iter().map(Source::as_str))?;
    let way = filter("direction", query.direction, ["credit", "debit"])?;
    let direction = match way.as_str() {
        "credit" => 1,
        "debit" => -1,
        _ => 0,
    };
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let before_seq = cursor(&app, &wallet.id, page.starting_after.as_deref()).await?;
    let filter = Filter { source, direction, funding_only: false, before_seq };
    let filters = [filter.source.as_str(), way.as_str()];
    let permit = app.long_answers.reads.acquire_for(&filters, caller.owner()).await?;
    let entries = rows::list_entries(app.db.pool(), &wallet.id, &filter, limit).await?;
    drop(permit);
    Ok(Page::of(entries.into_iter().map(WalletTransaction::of).collect(), limit))
}

/// List what came into a wallet
#[utoipa::path(
    get, path = "/v1/wallets/{id}/funding_events", operation_id = "list_funding_events",
    tag = "Wallets", params(("id" = String, Path, description = "The wallet"), PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<WalletTransaction>))),
)]
pub async fn funding_events(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Page<WalletTransaction>, Problem> {
    let wallet = find(&app, &caller, &id).await?;
    let limit = page.limit()?;
    let before_seq = cursor(&app, &wallet.id, page.starting_after.as_deref()).await?;
    let filter = Filter { source: String::new(), direction: 0, funding_only: true, before_seq };
    let entries = rows::list_entries(app.db.pool(), &wallet.id, &filter, limit).await?;
    Ok(Page::of(entries.into_iter().map(WalletTransaction::funding).collect(), limit))
}

/// The number of the entry that a cursor names.
async fn cursor(
    app: &App,
    wallet: &WalletId,
    starting_after: Option<&str>,
) -> Result<Option<i64>, Problem> {
    let Some(id) = starting_after else { return Ok(None) };
    let (journal, line) = JournalId::of_entry(id).ok_or_else(PageQuery::unknown_cursor)?;
    let seq = rows::find_seq(app.db.pool(), wallet, (&journal, line)).await?;
    seq.map(Some).ok_or_else(PageQuery::unknown_cursor)
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<WalletRow, Problem> {
    let missing = || Problem::new(ErrorCode::WalletNotFound);
    let id = WalletId::parse(id).ok_or_else(missing)?;
    let row = rows::get_wallet(app.db.pool(), &id).await?.ok_or_else(missing)?;
    match (&row.merchant_id, row.env) == caller.owner() {
        true => Ok(row),
        false => Err(missing()),
    }
}
