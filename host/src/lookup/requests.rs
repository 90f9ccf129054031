//! `GET /v1/request_logs`: recent requests, for whoever wonders what became of one.

use axum::extract::State;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::request_log::Entry;
use crate::http::{Page, PageQuery, Query};

/// What the call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] =
    &[("list_request_logs", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField])];

/// List recent requests
///
/// The last 250 requests that this host answered for you in this environment, whichever key
/// they were made with; those to this call itself are left out. They are kept in the memory of
/// one host: another host, or this one after a restart, knows others. Never a body, a query
/// string or a secret.
#[utoipa::path(
    get, path = "/v1/request_logs", operation_id = "list_request_logs", tag = "Lookup",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<Entry>))),
)]
pub async fn request_logs(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<Page<Entry>, Problem> {
    let limit = page.limit()?;
    let most = usize::try_from(limit + 1).unwrap_or(0);
    let (merchant, env) = caller.owner();
    let after = page.starting_after.as_deref();
    let entries = app.requests.list(&format!("{merchant}/{env}"), after, most);
    Ok(Page::of(entries.ok_or_else(PageQuery::unknown_cursor)?, limit))
}
