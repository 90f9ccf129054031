//! What is served beside the API: health, documentation, and the networks' own messages.

use std::sync::{Arc, LazyLock};

use askama::Template;
use axum::Json;
use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::app::App;
use crate::caller::{address, bearer};
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::body;
use crate::metrics;
use crate::payouts::PayoutTransfers;
use crate::transfers::{Answer, Arrived, Door};
use crate::wasm::rail::Message;

/// Whether the host is there, and ready.
pub fn health() -> Router<App> {
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready))
}

/// What this host counts.
pub fn metrics() -> Router<App> {
    Router::new().route("/metrics", get(show_metrics))
}

/// Documentation, and the door of the networks. The document is made when somebody asks for it.
pub fn public(document: impl FnOnce() -> Value + Send + 'static) -> Router<App> {
    let document: Arc<LazyLock<Bytes, _>> =
        Arc::new(LazyLock::new(move || Bytes::from(document().to_string())));
    let show = move || {
        let document = (**document).clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], document) }
    };
    let docs = SwaggerUi::new("/docs").config(Config::from("/openapi.json"));
    Router::new()
        .route("/", get(home))
        .route("/openapi.json", get(show))
        .route("/errors/{code}", get(error_page))
        .route("/notices/{first}/{second}/{*path}", any(notice))
        .merge(docs)
}

async fn home() -> Json<Value> {
    Json(json!({
        "service": "railhead",
        "version": env!("CARGO_PKG_VERSION"),
        "docs": "/docs",
        "openapi": "/openapi.json",
    }))
}

/// Ready once the database answers and until the host is told to stop.
async fn ready(State(app): State<App>) -> Response {
    if app.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping").into_response();
    }
    let away = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if app.writer.is_late() {
        return away("the database does not take what is to be written");
    }
    match tokio::time::timeout(limits::READY_WAIT_MAX, app.db.ping()).await {
        Ok(Ok(())) => "ready".into_response(),
        Ok(Err(_)) | Err(_) => away("the database is away"),
    }
}

async fn show_metrics(State(app): State<App>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics::text(&app).await).into_response()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    code: String,
    entries: Vec<PageEntry>,
}

struct PageEntry {
    status: u16,
    kind: &'static str,
    message: &'static str,
    meaning: &'static str,
    remedy: &'static str,
}

async fn error_page(Path(code): Path<String>) -> Result<Html<String>, Problem> {
    let entries: Vec<PageEntry> = ErrorCode::iter()
        .filter(|error| error.entry().code == code)
        .map(|error| {
            let (entry, texts) = (error.entry(), error.texts());
            PageEntry {
                status: entry.status,
                kind: entry.kind.literal(),
                message: &texts.message,
                meaning: &texts.meaning,
                remedy: &texts.remedy,
            }
        })
        .collect();
    if entries.is_empty() {
        return Err(Problem::new(ErrorCode::NotFound));
    }
    ErrorPage { code, entries }.render().map(Html).map_err(Problem::internal)
}

/// A message that a network sends by itself, to `/notices/<env>/<rail>/<path of the network>` with
/// a bearer token, or to the address that it was given, `/notices/<route>/<token>/<path>`.
async fn notice(
    State(app): State<App>,
    Path((first, second, path)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let token = bearer(request.headers()).ok().map(str::to_owned);
    let from = address(&app, &request);
    let message = message(&request, format!("/{path}"));
    let body = async { Ok(body::read(request).await?.to_vec()) };
    let by = match Env::parse(&first) {
        Some(env) => Door::Rail { env, rail: &second, bearer: token.as_deref() },
        None => Door::Route { id: &first, token: &second, bearer: token.as_deref() },
    };
    let arrived = Arrived { by, from, message };
    let feature = PayoutTransfers(app.clone());
    let Answer { status, content_type, headers, body } =
        app.transfers.receive(&feature, arrived, body).await?;
    let content_type = HeaderValue::try_from(content_type).map_err(Problem::internal)?;
    let mut response = (status, [(header::CONTENT_TYPE, content_type)], body).into_response();
    for (name, value) in headers {
        let name = HeaderName::try_from(name).map_err(Problem::internal)?;
        let value = HeaderValue::try_from(value).map_err(Problem::internal)?;
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// What a rail is shown of a request, but for its body. Who sent it is the host's business.
fn message(request: &Request, path: String) -> Message {
    const CREDENTIALS: [HeaderName; 3] =
        [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];
    let headers = request.headers().iter().filter(|(name, _)| !CREDENTIALS.contains(name));
    let headers = headers.filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    Message {
        method: request.method().to_string(),
        path,
        query: query.map(|Query(pairs)| pairs).unwrap_or_default(),
        headers: headers.collect(),
        body: Vec::new(),
    }
}
