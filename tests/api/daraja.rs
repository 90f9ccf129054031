//! Daraja as its customers meet it: over TLS, with tokens that it gives for credentials and stops
//! taking when it likes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use railhead::config::Config;
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::gateway::Tls;
use crate::lanes::patch;
use crate::mpesa::{funded, shillings};
use crate::receiver::{authority_file, server_config};
use crate::test_host::{Engine, TestHost, unique, with_host_configured};

/// What every token begins with.
pub(crate) const TOKEN: &str = "a-token-of-daraja-2f6b91";
/// The route that leads to it, and what is configured for that.
pub(crate) const ROUTE: &str = "kes_mpesa";
pub(crate) const CONFIGURED: [(&str, &str); 4] = [
    ("consumer_key", "consumer-key-77e0c4"),
    ("consumer_secret", "consumer-secret-51ad3b"),
    ("initiator_password", "initiator-password-c90e28"),
    ("safaricom", include_str!("another_key.pub.pem")),
];
/// Where such a route can be told that results go.
pub(crate) const PUBLIC_URL: &str = "https://railhead.test";

/// Daraja, for as long as the test runs.
pub(crate) struct Daraja {
    url: String,
    shared: Arc<Shared>,
}

/// A request that came, with its body where it has one.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    call: &'static str,
    pub authorization: String,
    pub body: Value,
}

#[derive(Default)]
struct Shared {
    came: Mutex<Vec<Came>>,
    tokens: Mutex<Tokens>,
    /// Nobody is given a token while it is shut.
    door: Arc<RwLock<()>>,
}

#[derive(Default)]
struct Tokens {
    given: u32,
    /// The first so many are not taken any more.
    taken_back: u32,
    /// What is said of how long one lives; nothing is said if null.
    lifetime: Value,
    /// Whether one that is not taken is not found, as Daraja documents it.
    is_not_found: bool,
}

/// The secrets of the route.
pub(crate) fn secrets() -> BTreeMap<String, String> {
    CONFIGURED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Runs a test on a host whose shillings go there.
pub(crate) async fn with_daraja(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Daraja)) {
    let daraja = Daraja::open().await;
    let change = |config: &mut Config| {
        config.server.public_url = Some(PUBLIC_URL.to_owned());
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        config.egress.extra_ca_file = Some(authority_file());
        config.routes.insert(ROUTE.to_owned(), secrets());
    };
    with_host_configured(engine, change, async |host| {
        daraja.lead(host).await;
        test(host, &daraja).await;
    })
    .await;
}

impl Daraja {
    pub(crate) async fn open() -> Self {
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .route("/oauth/v1/generate", get(token))
            .route("/mpesa/b2c/v3/paymentrequest", post(payment))
            .route("/mpesa/transactionstatus/v1/query", post(status))
            .with_state(Arc::clone(&shared));
        Self { url: Tls::open(server_config(), router).await, shared }
    }

    /// Leads the live route of a host here, and gives its merchant something to pay from.
    pub(crate) async fn lead(&self, host: &TestHost) {
        let settings = json!({
            "endpoint.daraja": self.url,
            "short_code": "600001",
            "initiator_name": "acme",
            "throttle.per_second": "1000",
        });
        let led = patch(host, ROUTE, json!({ "settings": settings })).await.ok();
        assert_eq!(led.json["missing"], Value::Null);
        funded(host, &host.merchant.live_key).await;
    }

    /// What is said of the life of tokens from now on.
    pub(crate) fn says_lifetime(&self, lifetime: Value) {
        self.shared.tokens.lock().expect("a lock").lifetime = lifetime;
    }

    /// From now on a token that is not taken is not found.
    pub(crate) fn finds_no_token(&self) {
        self.shared.tokens.lock().expect("a lock").is_not_found = true;
    }

    /// From now on no token is taken that was given before.
    pub(crate) fn takes_back_tokens(&self) {
        let mut tokens = self.shared.tokens.lock().expect("a lock");
        tokens.taken_back = tokens.given;
    }

    /// Nobody is given a token until the guard is dropped.
    pub(crate) async fn gives_none(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.shared.door).write_owned().await
    }

    /// What came of one kind: `token`, `payment` or `status`.
    pub(crate) fn came(&self, call: &str) -> Vec<Came> {
        let came = self.shared.came.lock().expect("a lock");
        came.iter().filter(|it| it.call == call).cloned().collect()
    }

    /// Waits until so many of a kind came; more is a fault.
    pub(crate) async fn until_came(&self, call: &str, count: usize) -> Vec<Came> {
        for _ in 0..3_000 {
            if self.came(call).len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let came = self.came(call);
        assert_eq!(came.len(), count, "{call}: {came:?}");
        came
    }
}

/// A live payout to the wallet of this number; answers its id.
pub(crate) async fn pay(host: &TestHost, number: u32) -> String {
    let body = shillings(&format!("07123456{number:02}"));
    host.pay_as(&host.merchant.live_key, &unique(), body).await.ok().id()
}

async fn token(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> String {
    shared.note("token", &headers, Value::Null);
    let _open = shared.door.read().await;
    let mut tokens = shared.tokens.lock().expect("a lock");
    tokens.given += 1;
    let mut answer = json!({ "access_token": format!("{TOKEN}-{}", tokens.given) });
    if !tokens.lifetime.is_null() {
        answer["expires_in"] = tokens.lifetime.clone();
    }
    answer.to_string()
}

async fn payment(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    shared.acknowledge(("payment", "OriginatorConversationID"), &headers, &body)
}

async fn status(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    shared.acknowledge(("status", "OriginalConversationID"), &headers, &body)
}

impl Shared {
    /// Takes note of a request; answers what it presents.
    fn note(&self, call: &'static str, headers: &HeaderMap, body: Value) -> String {
        let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let authorization = presented.unwrap_or_default().to_owned();
        let came = Came { call, authorization: authorization.clone(), body };
        self.came.lock().expect("a lock").push(came);
        authorization
    }

    /// Takes a request on, with a good token.
    fn acknowledge(
        &self,
        (call, name): (&'static str, &str),
        headers: &HeaderMap,
        body: &str,
    ) -> (StatusCode, String) {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let reference = body[name].clone();
        let presented = self.note(call, headers, body);
        let tokens = self.tokens.lock().expect("a lock");
        let mut good = tokens.taken_back + 1..=tokens.given;
        if !good.any(|number| presented == format!("Bearer {TOKEN}-{number}")) {
            let (status, code) = match tokens.is_not_found {
                true => (StatusCode::NOT_FOUND, "404.001.03"),
                false => (StatusCode::UNAUTHORIZED, "401.002.01"),
            };
            let refusal = json!({ "requestId": "1", "errorCode": code,
                "errorMessage": "Error Occurred - Invalid Access Token" });
            return (status, refusal.to_string());
        }
        let taken = json!({
            "ConversationID": format!("AG-{}", reference.as_str().expect("a reference")),
            "OriginatorConversationID": reference,
            "ResponseCode": "0",
            "ResponseDescription": "Accept the service request successfully.",
        });
        (StatusCode::OK, taken.to_string())
    }
}
