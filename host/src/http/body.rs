//! JSON bodies.

use std::fmt::Formatter;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequest, Request};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

/// Longest explanation of what is wrong with a field.
const SENT_BYTES_MAX: usize = 200;
/// And of what is expected in its place.
const EXPECTED_BYTES_MAX: usize = 2_000;

/// A JSON object, read into `T`. Fields that `T` does not know are ignored, so that clients
/// may send newer ones.
pub struct Body<T> {
    /// The body, read into its type.
    pub value: T,
    bytes: Bytes,
}

impl<T> Body<T> {
    /// The first half of the SHA-256 over the path and the body in canonical form (sorted keys, no
    /// white space), in base64: two requests are the same when this is.
    #[must_use]
    pub fn fingerprint(&self, path: &str) -> String {
        let canonical = serde_json::from_slice::<serde_json::Value>(&self.bytes);
        // A field that nobody knows may be too deep, or hold what has no canonical form.
        let canonical = canonical.map_or_else(|_| self.bytes.clone(), |v| v.to_string().into());
        let digest = Sha256::new().chain_update(path).chain_update("\n").chain_update(canonical);
        BASE64_URL_SAFE_NO_PAD.encode(&digest.finalize()[..16])
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(&request) {
            return Err(Problem::new(ErrorCode::UnsupportedMediaType));
        }
        let bytes = read(request).await?;
        let value = parse(&bytes)?;
        Ok(Self { value, bytes })
    }
}

/// A JSON object that may also be left out altogether.
pub struct OptionalBody<T>(pub Body<T>);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let json = is_json(&request);
        let bytes = read(request).await?;
        match (bytes.is_empty(), json) {
            (true, _) => Ok(Self(Body { value: T::default(), bytes })),
            (false, true) => Ok(Self(Body { value: parse(&bytes)?, bytes })),
            (false, false) => Err(Problem::new(ErrorCode::UnsupportedMediaType)),
        }
    }
}

/// A file that is pushed: a component, or a text that stands for one.
pub enum Upload {
    /// `application/wasm`.
    Component(Bytes),
    /// `application/toml`.
    Text(String),
}

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match essence(&request).to_ascii_lowercase().as_str() {
            "application/wasm" => {
                let most = (limits::COMPONENT_BYTES_MAX, limits::UPLOAD_MAX);
                read_at_most(request, most).await.map(Self::Component)
            }
            "application/toml" => {
                let text = String::from_utf8(read(request).await?.to_vec());
                text.map(Self::Text)
                    .map_err(|_| Problem::because(ErrorCode::InvalidBody, "The body is not UTF-8."))
            }
            _ => {
                let message = "Send application/wasm or application/toml.";
                Err(Problem::because(ErrorCode::UnsupportedMediaType, message))
            }
        }
    }
}

fn is_json(request: &Request) -> bool {
    essence(request).eq_ignore_ascii_case("application/json")
}

/// The content type without its parameters.
fn essence(request: &Request) -> &str {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(|value| value.split(';').next()).unwrap_or("").trim()
}

/// Whether whoever began a request may still make it. A body may take seconds, and whoever sends it
/// says how many: long enough to lose a key or a session meanwhile.
#[derive(Clone)]
pub struct StillAdmitted(pub Arc<dyn Fn() -> Admission + Send + Sync>);

/// Nothing, or why not.
pub type Admission = Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>>;

/// What takes longer to arrive is from somebody who is looked at once more.
const LOOKED_AT_AGAIN: Duration = Duration::from_millis(100);

/// A body as it arrived, within the limits of every body.
///
/// # Errors
/// `body_too_large`, `invalid_json` for one that does not arrive whole and in time; and why whoever
/// sent it may not do so any more.
pub async fn read(request: Request) -> Result<Bytes, Problem> {
    read_at_most(request, (limits::BODY_BYTES_MAX, limits::BODY_MAX)).await
}

async fn read_at_most(
    request: Request,
    (bytes_max, longest): (usize, Duration),
) -> Result<Bytes, Problem> {
    let (mut parts, body) = request.into_parts();
    let begun = Instant::now();
    let reading = axum::body::to_bytes(body, bytes_max);
    let read = tokio::time::timeout(longest, reading).await;
    let read = read.map_err(|_| {
        let message = format!("The body did not arrive within {} s.", longest.as_secs());
        Problem::because(ErrorCode::InvalidJson, message)
    })?;
    let read = read.map_err(|cause| match std::error::Error::source(&cause) {
        Some(source) if source.is::<http_body_util::LengthLimitError>() => {
            Problem::new(ErrorCode::BodyTooLarge)
        }
        _ => Problem::because(ErrorCode::InvalidJson, "The body did not arrive whole."),
    })?;
    if begun.elapsed() > LOOKED_AT_AGAIN
        && let Some(StillAdmitted(ask)) = parts.extensions.remove()
    {
        ask().await?;
    }
    Ok(read)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::because(ErrorCode::InvalidJson, "The body is not UTF-8."))?;
    // Only an object is read into a type: an array would be taken for its fields in order.
    if !text.trim_start().starts_with('{') {
        return Err(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Problem::new(ErrorCode::InvalidBody),
            Err(cause) => not_json(&cause),
        });
    }
    if holds_nul(text) {
        let message = "The body holds a NUL character, which PostgreSQL cannot store.";
        return Err(Problem::because(ErrorCode::InvalidJson, message));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (path, cause) = (error.path().to_string(), error.into_inner());
        match cause.classify() {
            serde_json::error::Category::Data => {
                let why = cause.to_string();
                let why = shortened(why.split(" at line ").next().unwrap_or(&why));
                let refused = |text| Problem::because(ErrorCode::InvalidField, text);
                match (twice(&why), path.as_str()) {
                    (Some(name), ".") => refused(format!("{name} is sent twice.")).field(name),
                    (Some(name), _) => {
                        let field = format!("{path}.{name}");
                        refused(format!("{field} is sent twice.")).field(field)
                    }
                    (None, ".") => refused(format!("{why}.")),
                    (None, _) => refused(format!("{path}: {why}.")).field(path),
                }
            }
            _ => not_json(&cause),
        }
    })?;
    reader.end().map_err(|_| {
        Problem::because(ErrorCode::InvalidJson, "Something follows the JSON object.")
    })?;
    Ok(value)
}

/// What was sent may stand in it, and be as long as a body; what is expected stays.
fn shortened(why: &str) -> String {
    let cut = |text: &str, most| text[..text.floor_char_boundary(most)].to_owned();
    let (sent, expected) = why.split_at(why.rfind(", expected ").unwrap_or(why.len()));
    cut(sent, SENT_BYTES_MAX) + &cut(expected, EXPECTED_BYTES_MAX)
}

/// The field that is sent twice, if that is why.
fn twice(why: &str) -> Option<&str> {
    why.strip_prefix("duplicate field `")?.strip_suffix('`')
}

/// An object within a body, or null: a list is not taken for its fields in order.
///
/// # Errors
/// It is something else.
pub fn object_or_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(ObjectOrNull(PhantomData))
}

struct ObjectOrNull<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOrNull<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

fn not_json(cause: &serde_json::Error) -> Problem {
    Problem::because(ErrorCode::InvalidJson, format!("The body is not JSON: {cause}."))
}

/// Whether a string of this JSON holds U+0000, which can only be written as an escape.
fn holds_nul(text: &str) -> bool {
    text.match_indices("\\u0000").any(|(at, _)| {
        let before = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        before % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Sample {
        #[serde(default)]
        amount_minor: Option<String>,
        #[serde(default)]
        recipient: Option<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[serde(default)]
        account_number: Option<String>,
    }

    fn refusal(text: &str) -> (ErrorCode, String) {
        let problem = parse::<Sample>(text.as_bytes()).expect_err("a refusal");
        let shown = serde_json::to_value(problem.envelope("")).expect("JSON");
        (problem.code(), shown["error"]["field"].as_str().unwrap_or("").to_owned())
    }

    #[test]
    fn every_kind_of_wrong_body_has_its_code() {
        assert_eq!(refusal("").0, ErrorCode::InvalidJson);
        assert_eq!(refusal("{").0, ErrorCode::InvalidJson);
        assert_eq!(refusal("{} {}").0, ErrorCode::InvalidJson);
        assert_eq!(refusal("[1]").0, ErrorCode::InvalidBody);
        assert_eq!(refusal("3").0, ErrorCode::InvalidBody);
        assert_eq!(refusal("null").0, ErrorCode::InvalidBody);
        let twice = refusal(r#"{"amount_minor": "5", "amount_minor": "6"}"#);
        assert_eq!(twice, (ErrorCode::InvalidField, "amount_minor".into()));
        let twice = refusal(r#"{"recipient": {"account_number": "5", "account_number": "6"}}"#);
        assert_eq!(twice, (ErrorCode::InvalidField, "recipient.account_number".into()));
        assert_eq!(
            refusal(r#"{"amount_minor": 5}"#),
            (ErrorCode::InvalidField, "amount_minor".into())
        );
        assert_eq!(
            refusal(r#"{"recipient": {"account_number": true}}"#),
            (ErrorCode::InvalidField, "recipient.account_number".into())
        );
        assert_eq!(refusal(&"[".repeat(10_000)).0, ErrorCode::InvalidJson);
        assert_eq!(refusal(r#"{"new": "a\u0000"}"#).0, ErrorCode::InvalidJson);
        assert_eq!(refusal(r#"{"new": "\\\u0000"}"#).0, ErrorCode::InvalidJson);
    }

    #[test]
    fn unknown_fields_and_nulls_are_let_through() {
        let sample: Sample = parse(br#"{"new": 1, "amount_minor": null}"#).expect("accepted");
        parse::<Sample>(br#"{"new": "a backslash and \\u0000"}"#).expect("accepted");
        assert!(sample.amount_minor.is_none());
        assert!(sample.recipient.and_then(|inner| inner.account_number).is_none());
    }

    #[tokio::test]
    async fn a_body_that_does_not_end_is_given_up() {
        let never =
            axum::body::Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>());
        let longest = Duration::from_millis(10);
        let refused = read_at_most(Request::new(never), (100, longest)).await.expect_err("refused");
        assert_eq!(refused.code(), ErrorCode::InvalidJson);
        assert!(refused.message().contains("did not arrive within"), "{}", refused.message());
    }

    #[test]
    fn the_fingerprint_ignores_order_and_white_space() {
        let body =
            |text: &'static str| Body { value: (), bytes: Bytes::from_static(text.as_bytes()) };
        let one = body(r#"{"a":1,"b":{"d":2,"c":3}}"#).fingerprint("/v1/payouts");
        let other = body("{ \"b\": {\"c\":3, \"d\":2},\n\"a\":1 }").fingerprint("/v1/payouts");
        assert_eq!(one, other);
        assert_ne!(one, body(r#"{"a":1,"b":{"d":2,"c":4}}"#).fingerprint("/v1/payouts"));
        assert_ne!(one, body(r#"{"a":1,"b":{"d":2,"c":3}}"#).fingerprint("/v1/batches"));
    }
}
