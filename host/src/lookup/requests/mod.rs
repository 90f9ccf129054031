//! `GET /v1/request_logs`: requests, for whoever wonders what became of one.

pub mod keep;
pub mod sql;

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::request_log::Entry;
use crate::http::{Page, PageQuery, Query};
use crate::id::RequestId;

/// What the call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[(
    "list_request_logs",
    &[ErrorCode::InvalidLimit, ErrorCode::InvalidField, ErrorCode::InvalidFilter],
)];

/// Filters of the log.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RequestLogQuery {
    /// A status such as `422`, or `2xx`, `4xx` or `5xx`.
    #[param(pattern = "^([245]xx|[1-5][0-9][0-9])$")]
    pub status: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List requests
///
/// Requests that were answered for you in this environment, whichever key they were made with;
/// those to this call itself are left out. They are kept for thirteen months, or as long as the
/// operator has set. Never a body, a query string or a secret.
#[utoipa::path(
    get, path = "/v1/request_logs", operation_id = "list_request_logs", tag = "Lookup",
    params(RequestLogQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<Entry>))),
)]
pub async fn request_logs(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<RequestLogQuery>,
) -> Result<Page<Entry>, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let page_len = usize::try_from(limit).unwrap_or(0);
    let status = statuses(query.status.as_deref())?;
    let (merchant, env) = caller.owner();
    let owner = format!("{merchant}/{env}");
    // Before what is stored, so that nothing falls between the two.
    let mut entries = app.requests.waiting_of(&owner);
    let pool = app.db.pool();
    let before = match page.starting_after.as_deref().map(RequestId::parse) {
        None => None,
        Some(None) => return Err(PageQuery::unknown_cursor()),
        Some(Some(id)) => {
            let is_known = entries.iter().any(|entry| entry.id == id)
                || sql::is_known(pool, (&owner, &id)).await?;
            Some(id).filter(|_| is_known).ok_or_else(PageQuery::unknown_cursor)?.into()
        }
    };
    let is_wanted = |entry: &Entry| {
        let known = i64::from(entry.status.unwrap_or_default());
        before.as_ref().is_none_or(|before| entry.id < *before)
            && (status.0..=status.1).contains(&known)
    };
    entries.retain(is_wanted);
    entries.extend(sql::list(pool, (&owner, before.as_ref()), (status, page_len)).await?);
    entries.sort_by(|a, b| b.id.cmp(&a.id));
    entries.dedup_by(|a, b| a.id == b.id);
    entries.truncate(page_len + 1);
    Ok(Page::of(entries, limit))
}

/// The least and the greatest status that is wanted; a request that was cut off has none, or 0.
fn statuses(filter: Option<&str>) -> Result<(i64, i64), Problem> {
    let unknown = || {
        let message = "status is one of: 2xx, 4xx, 5xx, or a status such as 422.";
        Problem::because(ErrorCode::InvalidFilter, message).field("status")
    };
    match filter {
        None => Ok((0, i64::MAX)),
        Some("2xx") => Ok((200, 299)),
        Some("4xx") => Ok((400, 499)),
        Some("5xx") => Ok((500, 599)),
        Some(text) => {
            let status: i64 = text.parse().map_err(|_| unknown())?;
            (100..=599).contains(&status).then_some((status, status)).ok_or_else(unknown)
        }
    }
}
