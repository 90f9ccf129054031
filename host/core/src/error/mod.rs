//! The error catalogue and the one error type that reaches a caller.
//!
//! [`ErrorCode`] names every refusal; [`catalogue`] says once what each means: its type,
//! HTTP status, literal code and texts. A handler picks a code and never a status.
//! A [`Problem`] keeps what the caller may read apart from its private cause.

mod catalogue;
mod code;
pub mod database;
mod response;

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error as StdError;

pub use catalogue::{Entry, Kind, Texts};
pub use code::ErrorCode;
pub use response::Carried;
use serde::Serialize;
use serde_json::Value;

use crate::config::limits;

/// Result of anything that may be refused.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// A refusal or a failure: what the caller is told, and why it really happened.
#[derive(Debug)]
pub struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: ErrorCode,
    message: Cow<'static, str>,
    field: Option<String>,
    detail: Option<Value>,
    rows: Option<(&'static str, Value)>,
    retry_after_s: Option<u64>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Problem {
    /// The code with its own message from the catalogue.
    #[must_use]
    pub fn new(code: ErrorCode) -> Self {
        Self::because(code, code.texts().message.as_str())
    }

    /// The code with a message that says what was wrong this time and what to do. One that quotes
    /// too much of what was sent is cut.
    #[must_use]
    pub fn because(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(limits::MESSAGE_MAX) {
            message = Cow::Owned(format!("{}\u{2026}", &message[..end]));
        }
        Self(Box::new(Inner {
            code,
            message,
            field: None,
            detail: None,
            rows: None,
            retry_after_s: None,
            cause: None,
        }))
    }

    /// An unexpected failure inside the host; the cause is logged and never shown.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ErrorCode::ApiError).caused_by(cause)
    }

    /// The same of a panic, by what panicked.
    #[must_use]
    pub fn panicked(what: &str, panic: &(dyn Any + Send)) -> Self {
        Self::internal(format!("{what} panicked: {}", panic_message(panic)))
    }

    /// Names the offending field as a dotted path, as it was sent.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>) -> Self {
        self.0.field = Some(path.into());
        self
    }

    /// The same about no field: whoever asks has not sent it.
    #[must_use]
    pub fn without_field(mut self) -> Self {
        self.0.field = None;
        self
    }

    /// Machine-readable particulars, under `error.detail`.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.0.detail = Some(detail);
        self
    }

    /// A per-row array at the top level of `error`, as batches use it.
    #[must_use]
    pub fn rows(mut self, key: &'static str, rows: Value) -> Self {
        self.0.rows = Some((key, rows));
        self
    }

    /// Seconds after which a retry makes sense; becomes the `Retry-After` header.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// Keeps the private cause for the log.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Which refusal this is.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The public message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The same problem under another code, where a call has a code of its own for it.
    #[must_use]
    pub fn with_code(mut self, code: ErrorCode) -> Self {
        self.0.code = code;
        self
    }

    /// Puts `prefix.` before the field's path, for a block inside a block.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.0.field = Some(match self.0.field.take() {
            Some(path) => format!("{prefix}.{path}"),
            None => prefix.to_owned(),
        });
        self
    }

    /// The same about an item of a list, which field and message name.
    #[must_use]
    pub fn of_item(self, list: &str, index: usize) -> Self {
        let item = format!("{list}[{index}]");
        let mut problem = self.within(&item);
        let Inner { field, message, .. } = &mut *problem.0;
        let path = field.as_deref().unwrap_or_default();
        // Many messages begin with the name of the field.
        let rest = path.rsplit('.').next().and_then(|name| message.strip_prefix(name));
        let said = match rest.filter(|rest| rest.starts_with(' ')) {
            Some(rest) => format!("{path}{rest}"),
            None => format!("{path}: {message}"),
        };
        *message = Cow::Owned(said);
        problem
    }

    /// The field that it is about, as it was sent.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// Its machine-readable particulars.
    #[must_use]
    pub fn particulars(&self) -> Option<&Value> {
        self.0.detail.as_ref()
    }

    /// `Retry-After` in seconds, where a retry makes sense.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.0.retry_after_s
    }

    /// The private cause, for the log.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn StdError + Send + Sync)> {
        self.0.cause.as_deref()
    }

    /// The error envelope. `docs` is the address under which error pages are served.
    #[must_use]
    pub fn envelope(&self, docs: &str) -> Envelope<'_> {
        let entry = self.0.code.entry();
        Envelope {
            error: Shown {
                kind: entry.kind.literal(),
                code: entry.code,
                message: &self.0.message,
                field: self.0.field.as_deref(),
                detail: self.0.detail.as_ref(),
                rows: self.0.rows.iter().map(|(key, rows)| (*key, rows)).collect(),
                docs_url: format!("{docs}/{}", entry.code),
            },
        }
    }
}

/// What a caller reads of a problem.
#[derive(Debug, Serialize)]
pub struct Envelope<'a> {
    error: Shown<'a>,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a Value>,
    #[serde(flatten)]
    rows: BTreeMap<&'static str, &'a Value>,
    docs_url: String,
}

/// The text that a panic came with; empty where it was no text.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.0.code.entry().code, self.0.message)?;
        match &self.0.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl StdError for Problem {}

/// A database failure is never the caller's doing and never shown. One that passes may be tried
/// again.
impl From<sqlx::Error> for Problem {
    fn from(cause: sqlx::Error) -> Self {
        match database::failure(&cause) {
            database::Failure::Passing => {
                Self::new(ErrorCode::ServiceUnavailable).retry_after(1).caused_by(cause)
            }
            _ => Self::internal(cause),
        }
    }
}

/// The same for a failure that several wait for.
impl From<std::sync::Arc<sqlx::Error>> for Problem {
    fn from(cause: std::sync::Arc<sqlx::Error>) -> Self {
        match database::failure(&cause) {
            database::Failure::Passing => {
                Self::new(ErrorCode::ServiceUnavailable).retry_after(1).caused_by(cause)
            }
            _ => Self::internal(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn the_catalogue_is_what_was_reviewed() {
        let mut table = String::new();
        for code in ErrorCode::iter() {
            let entry = code.entry();
            let kind = entry.kind.literal();
            table.push_str(&format!("{:<34} {} {kind}\n", entry.code, entry.status));
        }
        insta::assert_snapshot!("error_table", table);
    }

    #[test]
    fn a_code_and_status_name_one_entry() {
        let mut seen = std::collections::BTreeMap::new();
        for code in ErrorCode::iter() {
            let entry = code.entry();
            let earlier = seen.insert((entry.code, entry.status), code);
            assert!(earlier.is_none(), "{} {} stands twice", entry.code, entry.status);
            let texts = code.texts();
            assert!(!texts.remedy.is_empty() && !texts.meaning.is_empty(), "{}", entry.code);
        }
    }

    #[test]
    fn a_message_does_not_quote_a_megabyte() {
        let long = Problem::because(ErrorCode::InvalidField, "\u{e9}".repeat(1_000_000));
        assert_eq!(long.message().chars().count(), limits::MESSAGE_MAX + 1);
        let whole = "\u{e9}".repeat(limits::MESSAGE_MAX);
        assert_eq!(Problem::because(ErrorCode::InvalidField, whole.clone()).message(), whole);
    }

    #[test]
    fn what_is_wrong_with_an_item_names_it() {
        let said = |problem: Problem| problem.of_item("items", 3).message().to_owned();
        let problem = |message| Problem::because(ErrorCode::InvalidField, message);
        let amount = || problem("amount_minor must be digits.").field("amount_minor");
        assert_eq!(said(amount()), "items[3].amount_minor must be digits.");
        let within = said(amount().within("recipient"));
        assert_eq!(within, "items[3].recipient.amount_minor must be digits.");
        assert_eq!(said(problem("No.").field("wallet_id")), "items[3].wallet_id: No.");
        assert_eq!(said(problem("No.")), "items[3]: No.");
    }

    #[test]
    fn the_private_cause_stays_out_of_the_envelope() {
        let problem = Problem::internal("password=hunter2").field("a").within("b");
        let shown = serde_json::to_string(&problem.envelope("/errors")).expect("JSON");
        assert!(!shown.contains("hunter2"));
        assert!(shown.contains(r#""field":"b.a""#));
    }
}
