//! Query strings of lists, asked of a whole host: an answer or a refusal, never a failure.

use railhead::clock::{Clock, Moment};
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::start::{Host, Sources, start};
use reqwest::{Client, Method, Url};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::inputs::fuzz;

const TOKEN: &str = "op_of_the_fuzzers";

/// Lists of a merchant, then of the operator.
const LISTS: [&str; 14] = [
    "/v1/payouts",
    "/v1/events",
    "/v1/beneficiaries",
    "/v1/banks",
    "/v1/webhook_endpoints",
    "/v1/webhook_deliveries",
    "/v1/request_logs",
    "/v1/wallets/{wallet}/transactions",
    "/admin/v1/merchants",
    "/admin/v1/cases",
    "/admin/v1/audit",
    "/admin/v1/routes",
    "/admin/v1/rule-packs/fraud/differences",
    "/admin/v1/blacklist",
];

const WORDS: &[&str] = &[
    "limit=",
    "limit=1",
    "limit=100",
    "limit=101",
    "limit=-1",
    "starting_after=",
    "status=paid",
    "status=",
    "currency=NGN",
    "created_after=2026-11-21",
    "created_before=2026-11-21T09:00:00Z",
    "created_after=-9999-01-01",
    "created_before=9999-12-31T23:59:59.999999999Z",
    "query=",
    "event_type=payout.paid",
    "type=",
    "endpoint_id=",
    "action=",
    "&",
    "=",
    "+",
    "%",
    "%2",
    "%00",
    "%ff",
    "%F0%9F%98%80",
    "~",
    "kind=",
    "state=open",
    "merchant_id=",
    "q=",
    "country=NG",
];

struct Lists {
    runtime: Runtime,
    host: Host,
    client: Client,
    key: String,
    wallet: String,
}

impl Lists {
    fn open(folder: &std::path::Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::new().expect("a runtime");
        let mut config = Config { operator_token: Some(TOKEN.into()), ..Config::default() };
        config.data.dir = folder.to_owned();
        config.encryption.keys = vec!["11".repeat(32)];
        config.server.address = "127.0.0.1:0".parse().expect("an address");
        config.limits.read_per_minute = u32::MAX;
        config.admin.requests_per_minute = u32::MAX;
        let clock = Clock::fixed(Moment::parse("2026-11-21T09:00:00Z").expect("an instant"));
        let sources = Sources { ids: IdGenerator::seeded(clock.clone(), 1), clock };
        let host = runtime.block_on(start(config, sources)).expect("a host");
        let (client, key, wallet) = (Client::new(), String::new(), String::new());
        let mut lists = Self { runtime, host, client, key, wallet };
        lists.fill();
        lists
    }

    /// A merchant with three payouts.
    fn fill(&mut self) {
        let merchant = self.post("/admin/v1/merchants", json!({ "name": "Acme", "country": "NG" }));
        let id = merchant["id"].as_str().expect("an id").to_owned();
        let wallets = merchant["wallets"].as_array().expect("wallets");
        let is_ours = |wallet: &&Value| wallet["env"] == "test" && wallet["currency"] == "NGN";
        let wallet = wallets.iter().find(is_ours).expect("a wallet")["id"].as_str().expect("an id");
        self.wallet = wallet.to_owned();
        let body = json!({ "env": "test", "label": "fuzz", "capabilities": ["payout_create"] });
        let key = self.post(&format!("/admin/v1/merchants/{id}/keys"), body);
        self.key = key["secret"].as_str().expect("a secret").to_owned();
        let credit = json!({ "amount_minor": "1000000", "reason": "fuzz" });
        self.post(&format!("/admin/v1/wallets/{}/credit", self.wallet), credit);
        let recipient = json!({ "account_number": "0123456785", "bank_code": "058" });
        for _ in 0..3 {
            let body = json!({
                "amount_minor": "10000", "currency": "NGN", "recipient": recipient,
                "allow_duplicate": true,
            });
            self.post("/v1/payouts", body);
        }
    }

    fn url(&self, path: &str) -> Url {
        let path = path.replace("{wallet}", &self.wallet);
        format!("http://{}{path}", self.host.address).parse().expect("a url")
    }

    fn token(&self, path: &str) -> &str {
        if path.starts_with("/admin/") { TOKEN } else { &self.key }
    }

    fn post(&self, path: &str, body: Value) -> Value {
        let key = format!("key-{}", self.host.app.ids.secret());
        let request = self.client.request(Method::POST, self.url(path)).json(&body);
        let request = request.bearer_auth(self.token(path)).header("idempotency-key", key);
        let (status, answer) = self.send(request);
        assert!((200..300).contains(&status), "{path}: {answer}");
        answer
    }

    fn get(&self, path: &str, query: &str) -> (u16, Value) {
        let mut url = self.url(path);
        url.set_query(Some(query));
        self.send(self.client.get(url).bearer_auth(self.token(path)))
    }

    fn send(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        self.runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            let status = answer.status().as_u16();
            (status, answer.json().await.expect("JSON"))
        })
    }
}

#[test]
fn lists() {
    let folder = tempfile::tempdir().expect("a folder");
    let lists = Lists::open(folder.path());
    fuzz("lists", WORDS, |input| {
        let query = String::from_utf8_lossy(input);
        let path = LISTS[input.len() % LISTS.len()];
        let (status, answer) = lists.get(path, &query);
        match status {
            200 => page(path, &query, &answer),
            400..500 => assert!(answer["error"]["code"].is_string(), "{path}?{query}: {answer}"),
            _ => panic!("{path}?{query}: {status} {answer}"),
        }
        assert_eq!(lists.get(path, &query).0, status, "{path}?{query}");
    });
    let Lists { runtime, host, .. } = lists;
    runtime.block_on(host.stop()).expect("stopped in order");
}

/// A page is one, and holds what was asked for.
fn page(path: &str, query: &str, answer: &Value) {
    assert_eq!(answer["object"], "list", "{path}?{query}: {answer}");
    assert!(answer["has_more"].is_boolean(), "{path}?{query}: {answer}");
    let data = answer["data"].as_array().expect("items");
    let parameters: Vec<(String, String)> = Url::parse(&format!("http://x/?{query}"))
        .expect("a url")
        .query_pairs()
        .into_owned()
        .collect();
    let sent =
        |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
    if let Some(limit) = sent("limit").and_then(|limit| limit.parse::<usize>().ok())
        && path != "/v1/banks"
    {
        assert!(data.len() <= limit || answer["has_more"] == false, "{path}?{query}: {answer}");
    }
    if path == "/v1/payouts" {
        for (field, value) in ["status", "currency"].map(|name| (name, sent(name))) {
            let asked = value.filter(|value| !value.is_empty());
            assert!(asked.is_none_or(|value| data.iter().all(|item| item[field] == *value)));
        }
    }
}
