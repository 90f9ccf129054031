//! Every operation of the API against every kind of caller and of nonsense. The table is made from
//! the OpenAPI document, so that a new operation is in it without anybody thinking of it.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host};

/// An operation as it is documented.
struct Operation {
    method: Method,
    path: String,
    id: String,
    /// Names and schemas of its body's properties.
    body: Vec<(String, Value)>,
    takes_body: bool,
    queries: Vec<String>,
}

/// Objects of one merchant, by the operations' words for them.
struct Objects {
    payout: String,
    beneficiary: String,
    wallet: String,
    endpoint: String,
}

/// Answered without a key: the explanation of a refusal.
const OPEN: &[&str] = &["explain_error"];

async fn operations(host: &TestHost) -> Vec<Operation> {
    let document = host.send(Method::GET, "/openapi.json", "", &[], None).await.ok().json;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let content = operation["requestBody"]["content"].as_object();
            let schema = content.and_then(|content| content.get("application/json"));
            let schema = schema.map(|content| resolved(&document, &content["schema"]));
            let properties = schema.as_ref().and_then(|schema| schema["properties"].as_object());
            let properties = properties.into_iter().flatten();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let queries = parameters.filter(|known| known["in"] == "query");
            operations.push(Operation {
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                id: operation["operationId"].as_str().expect("an id").to_owned(),
                body: properties.map(|(name, of)| (name.clone(), of.clone())).collect(),
                takes_body: content.is_some(),
                queries: queries
                    .filter_map(|known| Some(known["name"].as_str()?.to_owned()))
                    .collect(),
            });
        }
    }
    assert!(operations.len() > 50, "the document lost its operations");
    operations
}

/// A schema without references, with the properties of all its alternatives.
fn resolved(document: &Value, schema: &Value) -> Value {
    if let Some(to) = schema["$ref"].as_str() {
        return resolved(document, document.pointer(to.trim_start_matches('#')).expect("a schema"));
    }
    let mut whole = schema.clone();
    for alternatives in ["oneOf", "anyOf", "allOf"] {
        for one in schema[alternatives].as_array().into_iter().flatten() {
            let one = resolved(document, one);
            for (name, of) in one["properties"].as_object().into_iter().flatten() {
                if whole["properties"].get(name).is_none() {
                    whole["properties"][name] = of.clone();
                }
            }
        }
    }
    whole
}

impl Operation {
    fn is_merchants(&self) -> bool {
        self.path.starts_with("/v1/")
    }

    /// Its path, with the ids of these objects.
    fn at(&self, objects: &Objects, env: &str) -> String {
        let path = self.path.replace("{code}", "not_found");
        let id =
            match path.split('/').find(|part| !matches!(*part, "" | "v1" | "admin" | "sandbox")) {
                Some("payouts") => &objects.payout,
                Some("beneficiaries") => &objects.beneficiary,
                Some("wallets") => &objects.wallet,
                Some("webhook_endpoints") => &objects.endpoint,
                _ => env,
            };
        self.filled(&path, id)
    }

    /// Its path with every variable replaced.
    fn filled(&self, path: &str, by: &str) -> String {
        let parts = path.split('/').map(|part| if part.starts_with('{') { by } else { part });
        parts.collect::<Vec<_>>().join("/")
    }

    async fn call(&self, host: &TestHost, path: &str, key: &str, body: Option<Value>) -> Answer {
        let body = body.or_else(|| self.takes_body.then(|| json!({})));
        let idempotency = unique();
        let headers = [("idempotency-key", idempotency.as_str())];
        host.send(self.method.clone(), path, key, &headers, body).await
    }
}

async fn objects(host: &TestHost) -> Objects {
    let payout = host.pay("processing", naira(100_000)).await.ok();
    let saved = host.get("/v1/beneficiaries").await.ok();
    let endpoint = json!({ "url": "https://8.8.8.8/", "events": ["payout.paid"] });
    Objects {
        payout: payout.id(),
        beneficiary: saved.json["data"][0]["id"].as_str().expect("one").to_owned(),
        wallet: host.merchant.test_wallet.clone(),
        endpoint: host.post("/v1/webhook_endpoints", endpoint).await.ok().id(),
    }
}

/// Whoever has no right key is nobody, whatever he asks for.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_operation_answers_a_stranger(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let objects = objects(host).await;
        let revoked = host.new_key(&host.merchant.id, json!({ "env": "test" })).await;
        let path = format!("/admin/v1/merchants/{}", host.merchant.id);
        let key = json!({ "env": "test", "label": "gone" });
        let path = format!("{path}/keys");
        let gone = host.send(Method::POST, &path, OPERATOR_TOKEN, &[], Some(key)).await.ok();
        let id = gone.json["id"].as_str().expect("an id").to_owned();
        host.admin(Method::POST, &format!("keys/{id}/revoke"), json!({})).await.ok();
        let gone = gone.json["secret"].as_str().expect("a secret").to_owned();
        let cut = revoked[..revoked.len() - 1].to_owned();
        for operation in operations(host).await {
            let path = operation.at(&objects, "test");
            let foreign = match operation.is_merchants() {
                true => OPERATOR_TOKEN.to_owned(),
                false => host.merchant.live_key.clone(),
            };
            for key in ["", "x", &cut, &gone, &foreign, "sk_live_", "operator", "null", "simulator"]
            {
                let answer = operation.call(host, &path, key, None).await;
                let expected = match operation.id.as_str() {
                    // Who signs in has nothing to show yet.
                    "sign_in" | "accept_invitation" => 400,
                    id if OPEN.contains(&id) => 200,
                    _ => 401,
                };
                assert_eq!(answer.status, expected, "{} {path} {key:?}", operation.method);
            }
        }
    })
    .await;
}

/// Another merchant, or the other environment, cannot tell an object from one that does not exist.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_somebody_else_is_not_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let objects = objects(host).await;
        let other = host.new_merchant("Other").await;
        let others =
            [other.test_key.clone(), other.live_key.clone(), host.merchant.live_key.clone()];
        let nobody = "c000000000000000000000000";
        for operation in operations(host).await {
            let is_public = OPEN.contains(&operation.id.as_str());
            if !operation.is_merchants() || !operation.path.contains('{') || is_public {
                continue;
            }
            let (path, absent) =
                (operation.at(&objects, "test"), operation.filled(&operation.path, nobody));
            for key in &others {
                let answer = operation.call(host, &path, key, None).await;
                let missing = operation.call(host, &absent, key, None).await;
                let told = format!("{} {path}", operation.method);
                assert!(matches!(answer.status, 400..=404), "{told}: {}", answer.text);
                assert_eq!(answer.refused(), missing.refused(), "{told}");
                let words =
                    |answer: &Answer| answer.text.replace(nobody, "").replace(&objects.payout, "");
                assert_eq!(words(&answer).len(), words(&missing).len(), "{told}: {}", answer.text);
            }
        }
        let still = host.get(&format!("/v1/payouts/{}", objects.payout)).await.ok();
        assert_eq!(still.status_word(), "processing");
        host.get(&format!("/v1/webhook_endpoints/{}", objects.endpoint)).await.ok();
        host.get(&format!("/v1/beneficiaries/{}", objects.beneficiary)).await.ok();
    })
    .await;
}

/// Texts that are longer, deeper or odder than anybody means.
fn nonsense() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!(" "),
        json!("x".repeat(300_000)),
        json!("9".repeat(5_000)),
        json!("\u{202e}\u{feff}\u{1}\u{7f}"),
        json!("'; DROP TABLE payouts; --"),
        json!({ "a": "b" }),
        json!([]),
        json!(["x".repeat(100_000), 1, null]),
        deep,
    ]
}

/// Nothing that is sent makes the host fail: every refusal has a code of its own.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_refused_and_never_breaks_anything(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let objects = objects(host).await;
        let spare = host.new_merchant("Spare").await;
        let long = "x".repeat(7_000);
        for operation in operations(host).await {
            let key = match operation.is_merchants() {
                true => spare.test_key.as_str(),
                false => OPERATOR_TOKEN,
            };
            let told = |answer: &Answer, with: &str| {
                let with: String = with.chars().take(80).collect();
                assert!(
                    answer.status < 500
                        || matches!(answer.refused().1, "provider_error" | "delivery_failed"),
                    "{} {} with {with}: {} {}",
                    operation.method,
                    operation.path,
                    answer.status,
                    answer.text
                );
            };
            if operation.path.contains('{') {
                for id in [
                    long.as_str(),
                    "%00",
                    "%ff",
                    "..",
                    "%2e%2e%2f",
                    "-1",
                    "%F0%9F%92%A9",
                    "'",
                    "null",
                ] {
                    let path = operation.filled(&operation.path, id);
                    told(&operation.call(host, &path, key, None).await, id);
                }
            }
            let path = operation.at(&objects, "test");
            if operation.method == Method::GET {
                for query in &operation.queries {
                    for value in [
                        long.as_str(),
                        "",
                        "%00",
                        "%ff",
                        "-1",
                        "%27",
                        "1e400",
                        "null",
                        "%F0%9F%92%A9",
                    ] {
                        let path = format!("{path}?{query}={value}");
                        // A stream that is let in would never end.
                        if operation.id == "stream_events" {
                            continue;
                        }
                        told(&operation.call(host, &path, key, None).await, &path);
                    }
                }
                continue;
            }
            for (name, _) in &operation.body {
                for value in nonsense() {
                    let body = json!({ name.as_str(): value });
                    told(
                        &operation.call(host, &path, key, Some(body.clone())).await,
                        &body.to_string(),
                    );
                }
            }
            for body in
                ["", "{", "[]", "null", "\"x\"", "{\"a\":1}{}", "\u{feff}{}", "{\"a\":\"\\ud800\"}"]
            {
                let url = format!("{}{path}", host.base);
                let request = host.client.request(operation.method.clone(), url).bearer_auth(key);
                let request = request.header("content-type", "application/json").body(body);
                told(&Answer::of(request.send().await.expect("an answer")).await, body);
            }
        }
    })
    .await;
}

/// A text that is too long is refused wherever it stands, in a request that is good without it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_text_that_merchants_send_has_an_end(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let objects = objects(host).await;
        let recipient = json!({ "account_number": "0123456785", "bank_code": "058" });
        let account = json!({ "account_number": "0123456785", "bank_code": "058", "currency": "NGN" });
        let good = |id: &str| match id {
            "create_payout" => Some(naira(100_000)),
            "quote_payout" => Some(json!({ "currency": "NGN", "amount_minor": "100000" })),
            "enquire_name" => Some(account.clone()),
            "upsert_beneficiary" => Some(json!({ "currency": "NGN", "name": "Ada", "account_number": "0123456785", "bank_code": "058" })),
            "update_beneficiary" => Some(json!({ "name": "Ada" })),
            "create_webhook_endpoint" => Some(json!({ "url": "https://8.8.8.8/", "events": ["payout.paid"] })),
            "update_webhook_endpoint" => Some(json!({ "events": ["payout.paid"] })),
            "sandbox_fund" => Some(json!({ "currency": "NGN", "amount_minor": "100" })),
            _ => None,
        };
        let mut tried = 0;
        for operation in operations(host).await {
            let Some(base) = good(&operation.id).filter(|_| operation.is_merchants()) else { continue };
            let path = operation.at(&objects, "test");
            let key = &host.merchant.test_key.clone();
            operation.call(host, &path, key, Some(base.clone())).await.ok();
            let mut places: Vec<(String, Value)> =
                operation.body.iter().map(|(name, _)| (name.clone(), json!({}))).collect();
            if operation.id == "create_payout" {
                let fields = ["account_number", "bank_code", "bank_name", "name", "email"];
                places.extend(fields.map(|name| (format!("recipient.{name}"), recipient.clone())));
                let fields = ["first_name", "country", "street", "id_number", "phone", "email"];
                places.extend(fields.map(|name| (format!("sender.{name}"), json!({}))));
            }
            for (place, around) in places {
                let long = json!("7".repeat(100_000));
                let mut body = base.clone();
                match place.split_once('.') {
                    Some((outer, inner)) => {
                        let mut object = around;
                        object[inner] = long;
                        body[outer] = object;
                    }
                    None => body[&place] = long,
                }
                let answer = operation.call(host, &path, key, Some(body)).await;
                let told = format!("{} {place}: {}", operation.id, answer.text);
                assert!(matches!(answer.status, 400..=499), "{}", &told[..told.len().min(300)]);
                assert!(answer.text.len() < 4_096, "the refusal of {place} repeats what was sent");
                tried += 1;
            }
        }
        assert!(tried > 30, "{tried} places were tried");
    })
    .await;
}
