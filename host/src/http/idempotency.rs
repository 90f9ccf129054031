//! The Idempotency-Key header.

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

/// The key of a request that must be safe to repeat. As an extractor it is required; as
/// `Option<IdempotencyKey>` it is not.
#[derive(Clone, Debug)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key as it was sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        read(parts)?.ok_or_else(|| Problem::new(ErrorCode::IdempotencyKeyRequired))
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Problem> {
        read(parts)
    }
}

fn read(parts: &Parts) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let printable = |bytes: &[u8]| bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    let bytes = value.as_bytes();
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX || !printable(bytes) {
        let message = "Idempotency-Key must be 1 to 255 printable ASCII characters.";
        return Err(Problem::because(ErrorCode::InvalidField, message).field("Idempotency-Key"));
    }
    Ok(Some(IdempotencyKey(String::from_utf8_lossy(bytes).into_owned())))
}
