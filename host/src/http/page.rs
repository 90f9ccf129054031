//! Lists: newest first, a page at a time, which is cut where it becomes too large.

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::clock::Moment;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};

use super::texts::FILTER;

/// Query parameters, read into `T`. One that is sent twice, is too long, or holds a NUL
/// character, which PostgreSQL cannot compare with, is `invalid_filter`.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let unreadable =
            || Problem::because(ErrorCode::InvalidFilter, "The query string cannot be read.");
        let text = parts.uri.query().unwrap_or_default();
        if text.contains("%00") {
            return Err(unreadable());
        }
        refuse_long(text)?;
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|cause| unreadable().caused_by(cause))
    }
}

/// A filter by one of some words, as it was sent; empty where none was.
///
/// # Errors
/// `invalid_filter`, with the words.
pub fn filter<'a>(
    name: &str,
    value: Option<String>,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<String, Problem> {
    let Some(value) = value else { return Ok(String::new()) };
    let words: Vec<&str> = words.into_iter().collect();
    if words.contains(&value.as_str()) {
        return Ok(value);
    }
    let message = format!("{name} is one of: {}.", words.join(", "));
    Err(Problem::because(ErrorCode::InvalidFilter, message).field(name))
}

/// A filter by time, where there is one.
///
/// # Errors
/// `invalid_filter`.
pub fn instant(name: &str, value: Option<&str>) -> Result<Option<Moment>, Problem> {
    let wrong = || {
        let message = format!("{name} is an instant or a day: 2026-11-20T09:00:00Z, 2026-11-20.");
        Problem::because(ErrorCode::InvalidFilter, message).field(name)
    };
    value.map(|text| Moment::parse(text).ok_or_else(wrong)).transpose()
}

/// A filter by what comes after a time, where there is one. Answers show instants to the millisecond:
/// what was made within one that is named like that does not come after it.
///
/// # Errors
/// `invalid_filter`.
pub fn after(name: &str, value: Option<&str>) -> Result<Option<Moment>, Problem> {
    let is_shown = |at: &Moment| value == Some(at.to_string().as_str());
    let end_of = |at: Moment| Moment::from_micros(at.micros().saturating_add(999));
    Ok(instant(name, value)?.map(|at| if is_shown(&at) { end_of(at) } else { at }))
}

/// Refuses a filter that could find nothing: too long, or with control characters. Page sizes, cursors and
/// currencies have refusals of their own.
fn refuse_long(query: &str) -> Result<(), Problem> {
    for (name, value) in query.split('&').filter_map(|part| part.split_once('=')) {
        let is_filter = !matches!(name, "limit" | "starting_after" | "currency");
        if is_filter && !FILTER.fits(&percent_decode_str(value).decode_utf8_lossy()) {
            // The name could be as long.
            let name: String = name.chars().take(FILTER.most).collect();
            let message = format!(
                "A filter must have at most {} characters, and no control characters.",
                FILTER.most
            );
            return Err(Problem::because(ErrorCode::InvalidFilter, message).field(name));
        }
    }
    Ok(())
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

    /// The item after which the page begins, read as an id of the list's kind.
    ///
    /// # Errors
    /// `invalid_field`.
    pub fn cursor<I>(&self, parse: fn(&str) -> Option<I>) -> Result<Option<I>, Problem> {
        let read = |id: &String| parse(id).ok_or_else(Self::unknown_cursor);
        self.starting_after.as_ref().map(read).transpose()
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
    /// Whether it must not be cut.
    #[serde(skip)]
    is_whole: bool,
}

impl<T> Page<T> {
    /// A page of at most `limit` of these rows; the query asked for one more, to know whether
    /// there is another page.
    #[must_use]
    pub fn of(mut rows: Vec<T>, limit: i64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Self { object: "list", has_more, data: rows, is_whole: false }
    }

    /// A list that is always whole: it has no cursor, and is not cut.
    #[must_use]
    pub fn whole(data: Vec<T>) -> Self {
        Self { object: "list", has_more: false, data, is_whole: true }
    }
}

impl<T: Serialize> Page<T> {
    /// The page as it is sent. Items beyond `most` bytes of JSON are left for the next page; the
    /// first is always there, so that whoever pages gets on.
    fn cut(self, most: usize) -> serde_json::Result<Page<Box<RawValue>>> {
        let (mut data, mut bytes) = (Vec::with_capacity(self.data.len()), 0);
        for item in self.data {
            let item = serde_json::value::to_raw_value(&item)?;
            bytes += item.get().len();
            if bytes > most && !data.is_empty() && !self.is_whole {
                return Ok(Page { has_more: true, ..Page::whole(data) });
            }
            data.push(item);
        }
        Ok(Page { has_more: self.has_more, ..Page::whole(data) })
    }
}

impl<T: Serialize> axum::response::IntoResponse for Page<T> {
    fn into_response(self) -> axum::response::Response {
        match self.cut(limits::PAGE_BYTES_MAX) {
            Ok(page) => axum::Json(page).into_response(),
            Err(cause) => Problem::internal(cause).into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_it_becomes_too_large() {
        let cut = |items: &[&str], has_more, most| {
            let data = items.iter().map(ToString::to_string).collect();
            let page = Page::<String> { object: "list", has_more, data, is_whole: false }
                .cut(most)
                .expect("JSON");
            (page.data.len(), page.has_more)
        };
        // Each item has two more bytes: its quotation marks.
        assert_eq!(cut(&["a", "b", "c"], false, 9), (3, false));
        assert_eq!(cut(&["a", "b", "c"], true, 9), (3, true));
        assert_eq!(cut(&["a", "b", "c"], false, 8), (2, true));
        assert_eq!(cut(&["far too long", "b"], false, 8), (1, true));
        assert_eq!(cut(&["far too long"], false, 8), (1, false));
        assert_eq!(cut(&[], false, 8), (0, false));
        let page = Page::whole(vec!["a"]).cut(8).expect("JSON");
        let text = serde_json::to_string(&page).expect("JSON");
        assert_eq!(text, r#"{"object":"list","has_more":false,"data":["a"]}"#);
    }

    #[test]
    fn a_filter_has_an_end() {
        let long = |name: &str| format!("{name}={}", "%41".repeat(255));
        let fits = format!("a=1&q={}&flag", "%41".repeat(254));
        refuse_long(&fits).expect("accepted");
        refuse_long(&long("limit")).expect("refused elsewhere");
        refuse_long(&long("starting_after")).expect("refused elsewhere");
        let refused = refuse_long(&long("q")).expect_err("a refusal");
        assert_eq!(refused.code(), ErrorCode::InvalidFilter);
    }
}
