//! A gateway of Faster Payments as its customers meet it, over TLS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::gateway::Tls;
use crate::lanes::patch;
use crate::receiver::server_config;
use crate::test_host::TestHost;

/// The route that leads to it, and what is configured for that.
pub(crate) const ROUTE: &str = "gbp_fps";
pub(crate) const TOKEN: &str = "a-token-of-the-portal-c41f07";
/// A key that nobody else has.
pub(crate) const SIGNING_KEY: &str = include_str!("our_key.pem");

/// An account that is refused, and one of which it says later that it knows no payment.
pub(crate) const REFUSED: &str = "10000002";
pub(crate) const FORGOTTEN: &str = "10000003";

/// The gateway, for as long as the test runs.
pub(crate) struct FpsGateway {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// What each request presented: a token, and a signature.
    presented: Mutex<Vec<(String, String)>>,
    /// Accounts that were paid, by reference.
    paid: Mutex<BTreeMap<String, String>>,
}

/// The secrets of the route.
pub(crate) fn secrets() -> BTreeMap<String, String> {
    let gateway = include_str!("another_key.pub.pem");
    let secrets = [("api_token", TOKEN), ("signing", SIGNING_KEY), ("gateway", gateway)];
    secrets.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl FpsGateway {
    pub(crate) async fn open() -> Self {
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .route("/open-banking/outbound/v1/name-verification", post(name))
            .route("/v3/payments/fps", post(order))
            .route("/v3/payments/fps/{reference}", get(status))
            .with_state(Arc::clone(&shared));
        Self { url: Tls::open(server_config(), router).await, shared }
    }

    /// Leads the live route of a host here.
    pub(crate) async fn lead(&self, host: &TestHost) {
        let settings = json!({
            "endpoint.gateway": self.url,
            "debtor_sort_code": "040004",
            "debtor_account": "12345678",
            "debtor_address": "UK, London, High Street, 1, EC1A 1AA",
        });
        let led = patch(host, ROUTE, json!({ "settings": settings })).await.ok();
        assert_eq!(led.json["missing"], Value::Null);
    }

    /// What each request presented.
    pub(crate) fn presented(&self) -> Vec<(String, String)> {
        self.shared.presented.lock().expect("a lock").clone()
    }
}

impl Shared {
    fn note(&self, headers: &HeaderMap) {
        let of = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let presented = (of(AUTHORIZATION.as_str()), of("digitalsignature"));
        self.presented.lock().expect("a lock").push(presented);
    }
}

/// What it was shown, as a gateway under test repeats it.
fn heard(headers: &HeaderMap) -> Value {
    headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).into()
}

async fn name(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> String {
    shared.note(&headers);
    json!({ "Data": { "VerificationReport": { "Matched": true } } }).to_string()
}

async fn order(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    shared.note(&headers);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let payment = &body["paymentInstructions"][0]["creditTransfers"][0];
    let reference = &payment["paymentIdentification"]["endToEndIdentification"];
    let account = &payment["creditorAccount"]["identification"]["other"]["identification"];
    let account = account.as_str().expect("an account").to_owned();
    let (status, response) = match account.ends_with(REFUSED) {
        true => (StatusCode::BAD_REQUEST, "InvalidAccount"),
        false => (StatusCode::ACCEPTED, "Accepted"),
    };
    let key = reference.as_str().expect("a reference").to_owned();
    shared.paid.lock().expect("a lock").insert(key, account);
    let decision = json!({ "endToEndIdentification": reference, "response": response });
    (status, json!({ "transactions": [decision], "heard": heard(&headers) }).to_string())
}

async fn status(
    State(shared): State<Arc<Shared>>,
    Path(reference): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, String) {
    shared.note(&headers);
    let paid = shared.paid.lock().expect("a lock");
    let is_known = paid.get(&reference).is_some_and(|account| !account.ends_with(FORGOTTEN));
    let mut answer = json!({ "endToEndIdentification": reference, "heard": heard(&headers) });
    if !is_known {
        return (StatusCode::NOT_FOUND, answer.to_string());
    }
    answer["status"] = json!("Settled");
    answer["transactionId"] = json!(format!("T-{reference}"));
    answer["amount"] = json!({ "instructedAmount": 1250.5, "currency": "GBP" });
    (StatusCode::OK, answer.to_string())
}
