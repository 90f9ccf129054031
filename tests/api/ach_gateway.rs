//! The file gateway of a bank as its customers meet it, over TLS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, put};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::file_transport::{set, settings};
use crate::gateway::Tls;
use crate::receiver::server_config;
use crate::test_host::{TestHost, with};

/// The route that leads to it, and what is configured for that.
pub(crate) const ROUTE: &str = "usd_ach";
pub(crate) const KEY: &str = "a-key-of-the-bank-9b25d3";

/// The gateway, for as long as the test runs.
pub(crate) struct AchGateway {
    url: String,
    shared: Arc<Mutex<Bank>>,
}

#[derive(Default)]
struct Bank {
    /// What each request presented, by the kind of request.
    presented: Vec<(&'static str, String)>,
    /// What was delivered, by name.
    files: Vec<String>,
    /// What lies ready: name and content.
    ready: Vec<(String, String)>,
}

type Shared = State<Arc<Mutex<Bank>>>;

/// The secrets of the route.
pub(crate) fn secrets() -> BTreeMap<String, String> {
    BTreeMap::from([("api_key".to_owned(), KEY.to_owned())])
}

impl AchGateway {
    pub(crate) async fn open() -> Self {
        let shared = Arc::<Mutex<Bank>>::default();
        let router = Router::new()
            .route("/outgoing/{name}", put(deliver).get(look))
            .route("/incoming", get(list))
            .route("/incoming/{name}", get(fetch))
            .with_state(Arc::clone(&shared));
        Self { url: Tls::open(server_config(), router).await, shared }
    }

    /// Leads the live route of a host here.
    pub(crate) async fn lead(&self, host: &TestHost) {
        let carried = json!({ "files.deliver_to": null, "files.fetch_from.incoming": null });
        let settings = with(settings("", ""), carried);
        let led = set(host, with(settings, json!({ "endpoint.gateway": self.url }))).await.ok();
        assert_eq!(led.json["missing"], Value::Null);
    }

    /// What was presented with requests of one kind: `deliver`, `look`, `list` or `fetch`.
    pub(crate) fn presented(&self, kind: &str) -> Vec<String> {
        let bank = self.shared.lock().expect("a lock");
        let presented = bank.presented.iter().filter(|(known, _)| *known == kind);
        presented.map(|(_, key)| key.clone()).collect()
    }

    /// Lays something ready.
    pub(crate) fn lay(&self, name: &str, content: &Value) {
        let mut bank = self.shared.lock().expect("a lock");
        bank.ready.push((name.to_owned(), content.to_string()));
    }
}

impl Bank {
    fn note(&mut self, kind: &'static str, headers: &HeaderMap) {
        let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.presented.push((kind, presented.unwrap_or_default().to_owned()));
    }
}

fn fault(code: &str) -> String {
    json!({ "code": code, "message": "There is no such thing." }).to_string()
}

/// Takes a file, and breaks down before it can say so.
async fn deliver(
    State(shared): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
    _content: String,
) -> StatusCode {
    let mut bank = shared.lock().expect("a lock");
    bank.note("deliver", &headers);
    bank.files.push(name);
    StatusCode::BAD_GATEWAY
}

async fn look(
    State(shared): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, String) {
    let mut bank = shared.lock().expect("a lock");
    bank.note("look", &headers);
    if !bank.files.contains(&name) {
        return (StatusCode::NOT_FOUND, fault("not_found"));
    }
    let code = name.trim_end_matches(".ach").rsplit('-').next().unwrap_or_default();
    let known = json!({ "name": name, "reference_code": code, "status": "received" });
    (StatusCode::OK, known.to_string())
}

async fn list(State(shared): Shared, uri: http::Uri, headers: HeaderMap) -> String {
    let mut bank = shared.lock().expect("a lock");
    bank.note("list", &headers);
    let after = uri.query().and_then(|query| query.strip_prefix("after="));
    let after: usize = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    let listed = bank.ready.iter().enumerate().skip(after);
    let listed =
        listed.map(|(index, (name, _))| json!({ "cursor": (index + 1).to_string(), "name": name }));
    json!({ "files": listed.collect::<Vec<_>>() }).to_string()
}

async fn fetch(
    State(shared): Shared,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, String) {
    let mut bank = shared.lock().expect("a lock");
    bank.note("fetch", &headers);
    match bank.ready.iter().find(|(known, _)| *known == name) {
        Some((_, content)) => (StatusCode::OK, content.clone()),
        None => (StatusCode::NOT_FOUND, fault("not_found")),
    }
}
