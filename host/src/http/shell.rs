//! What surrounds every handler: an id, a deadline, a net under panics, the error envelope,
//! and one line in the log.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Carried, ErrorCode, Kind, Problem};
use crate::id::{IdGenerator, RequestId};

use super::metrics::RequestMetrics;
use super::unread::read_out;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What pages of this host may load, and where they may be shown.
const PAGES_MAY: &str = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; \
                         base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// How much longer the gate may take than the handler behind it.
const GATE_MAX: Duration = Duration::from_secs(5);

/// What the shell needs to know.
#[derive(Clone)]
pub struct Shell {
    /// Makes request ids.
    pub ids: Arc<IdGenerator>,
    /// Address under which error pages are served.
    pub docs_url: Arc<str>,
    /// After this long a request is answered whether or not it is finished.
    pub timeout: Duration,
    /// Where requests are counted.
    pub metrics: RequestMetrics,
}

/// Runs a request inside the shell.
pub async fn run(shell: Shell, mut request: Request, next: Next) -> Response {
    let id: RequestId = shell.ids.id();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.extensions_mut().insert(id.clone());
    let begun = Instant::now();
    let response = answer(shell.timeout + GATE_MAX, read_out(request), next).await;
    let mut response = envelope(&shell, &id, response);
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    guard(&path, response.headers_mut());
    shell.metrics.request((&method, &path), response.status(), begun.elapsed());
    tracing::debug!(
        request.id = %id,
        http.method = %method,
        http.path = %shown(&path),
        http.status = response.status().as_u16(),
        duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "request"
    );
    response
}

/// A path as it may stand in a log: whoever has the token of a network's address may speak there.
fn shown(path: &str) -> Cow<'_, str> {
    let mut parts = path.splitn(5, '/');
    match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(""), Some("notices"), Some(route), Some(_), Some(rest)) => {
            format!("/notices/{route}/****/{rest}").into()
        }
        _ => path.into(),
    }
}

/// What browsers and caches are told: to guess no types, to keep nothing that is meant for one
/// caller, and to let a page of this host load its own scripts only, in no frame.
fn guard(path: &str, headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if ["/v1/", "/admin/v1/", "/notices/"].iter().any(|area| path.starts_with(area)) {
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| value.starts_with("text/html")) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGES_MAY));
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

/// What is behind `next`, or an answer in its place when it takes too long or panics. It
/// stands around handlers, so that even these answers have their rate-limit headers, and once
/// more around the gate before them.
pub async fn answer(timeout: Duration, request: Request, next: Next) -> Response {
    let handled = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(timeout, handled).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::panicked("a handler", &*panic).into_response(),
        Err(_) => Problem::new(ErrorCode::RequestTimeout).retry_after(1).into_response(),
    }
}

/// Writes the error envelope for a response that carries a problem, and logs what went wrong
/// on our side, once.
fn envelope(shell: &Shell, id: &RequestId, response: Response) -> Response {
    let Some(Carried(problem)) = response.extensions().get::<Carried>().cloned() else {
        return response;
    };
    let entry = problem.code().entry();
    // Whoever is overloaded has no time for a line about each that it turns away: the metrics count.
    let is_crowd = problem.code() == ErrorCode::ServiceOverloaded;
    if matches!(entry.kind, Kind::Api | Kind::Provider) && !is_crowd {
        tracing::error!(request.id = %id, error.code = entry.code, %problem, "request failed");
    }
    let (parts, _) = response.into_parts();
    let mut whole = (parts.status, Json(problem.envelope(&shell.docs_url))).into_response();
    let content_type = whole.headers_mut().remove(http::header::CONTENT_TYPE);
    whole.headers_mut().extend(parts.headers);
    if let Some(content_type) = content_type {
        whole.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    }
    whole.headers_mut().remove(http::header::CONTENT_LENGTH);
    if let Some(seconds) = problem.retry_after_s() {
        whole.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    *whole.extensions_mut() = parts.extensions;
    whole
}
