//! Lists: newest first, a page at a time.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

/// Query parameters, read into `T`. One that is sent twice, or holds a NUL character, which
/// PostgreSQL cannot compare with, is `invalid_filter`.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let unreadable =
            || Problem::because(ErrorCode::InvalidFilter, "The query string cannot be read.");
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(unreadable());
        }
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|cause| unreadable().caused_by(cause))
    }
}

/// The paging parameters of every list.
#[derive(Clone, Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 50)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

impl PageQuery {
    /// The page size.
    ///
    /// # Errors
    /// `invalid_limit`.
    pub fn limit(&self) -> Result<i64, Problem> {
        let Some(text) = &self.limit else { return Ok(limits::PAGE_DEFAULT) };
        let limit = text.parse().ok().filter(|limit| (1..=limits::PAGE_MAX).contains(limit));
        limit.ok_or_else(|| Problem::new(ErrorCode::InvalidLimit).field("limit"))
    }

    /// What a cursor that nobody gave out is told.
    #[must_use]
    pub fn unknown_cursor() -> Problem {
        let message = "starting_after is not the id of an item of this list.";
        Problem::because(ErrorCode::InvalidField, message).field("starting_after")
    }
}

/// A page of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Page<T> {
    /// Always `list`.
    #[schema(example = "list")]
    pub object: &'static str,
    /// Whether another page follows.
    pub has_more: bool,
    /// The items, newest first.
    pub data: Vec<T>,
}

impl<T> Page<T> {
    /// A page of at most `limit` of these rows; the query asked for one more, to know whether
    /// there is another page.
    #[must_use]
    pub fn of(mut rows: Vec<T>, limit: i64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Self { object: "list", has_more, data: rows }
    }

    /// A list that is always whole.
    #[must_use]
    pub fn whole(data: Vec<T>) -> Self {
        Self { object: "list", has_more: false, data }
    }
}

impl<T: Serialize> axum::response::IntoResponse for Page<T> {
    fn into_response(self) -> axum::response::Response {
        axum::Json(self).into_response()
    }
}
