//! What may be wrong with a recipient, in the contract's words.

use crate::types::Violation;

/// A field that is wrong, by an error code of the API.
#[must_use]
pub fn violation(field: &str, code: &str, message: impl Into<String>) -> Violation {
    Violation { field: field.to_owned(), code: code.to_owned(), message: message.into() }
}

/// A field that is not there; `what` says what belongs there.
#[must_use]
pub fn missing(field: &str, what: &str) -> Violation {
    violation(field, "missing_field", format!("{field} is required: {what}."))
}

/// The two letters of a country (ISO 3166 alpha-2) in capitals; none for an empty text.
///
/// # Errors
/// It is something else; `example` shows what it should be.
pub fn country(text: &str, example: &str) -> Result<Option<String>, Violation> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(Some(text.to_ascii_uppercase()));
    }
    let message = format!("country must be a country's two letters, such as {example}.");
    Err(violation("country", "invalid_field", message))
}
