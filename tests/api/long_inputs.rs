//! Whatever is sent, however long: it is refused by name, is never kept, and is never our fault.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::account;
use crate::batches;
use crate::hooks::{listen, with_receiver};
use crate::receiver::Manner;
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

const LONG: usize = 50_000;

/// The objects that calls are about.
struct Things {
    payout: String,
    beneficiary: String,
    endpoint: String,
    batch: String,
    /// A key that batches can be made with.
    bulk_key: String,
}

async fn things(host: &TestHost, url: &str) -> Things {
    let payout = host.pay("processing", naira(100_000)).await.ok();
    let beneficiary = payout.json["beneficiary_id"].as_str().expect("an id").to_owned();
    let endpoint = listen(host, url, json!(["payout.paid"])).await.id();
    let bulk_key = batches::bulk_key(host, "test").await;
    let batch = batches::waiting(host).await;
    host.admin(Method::POST, &format!("batches/{batch}/approve"), json!({})).await.ok();
    Things { payout: payout.id(), beneficiary, endpoint, batch, bulk_key }
}

/// A call with a body that is accepted as it is, as far as its fields go.
struct Call {
    method: Method,
    /// As the document names it.
    template: &'static str,
    id: String,
    body: Value,
    /// Another key than the merchant's usual one.
    key: Option<String>,
}

/// Every call of merchants that has a body.
fn calls(things: &Things, url: &str) -> Vec<Call> {
    let call = |method, template, id: &str, body| Call {
        method,
        template,
        id: id.into(),
        body,
        key: None,
    };
    let bulk = |call| Call { key: Some(things.bulk_key.clone()), ..call };
    let item = json!({ "amount_minor": "100000", "recipient_bank_code": "058",
        "recipient_account_number": account(700_000_001), "allow_duplicate": true });
    let batch = json!({ "currency": "NGN", "items": [item] });
    let named = json!({ "currency": "NGN", "account_number": account(7), "bank_code": "058" });
    let reason = json!({ "reason": "a mistake" });
    let (events, payout) = (json!(["payout.paid"]), naira(100_000));
    let quote = json!({ "currency": "NGN", "amount_minor": "100000" });
    let pair = json!({ "from_currency": "USD", "to_currency": "NGN" });
    let conversion = with(pair, json!({ "from_amount_minor": "100" }));
    let hook = json!({ "url": url, "events": events });
    let saved = with(named.clone(), json!({ "name": "Ada" }));
    vec![
        call(Method::POST, "/v1/payouts", "", payout),
        call(Method::POST, "/v1/payouts/quote", "", quote.clone()),
        call(Method::POST, "/v1/payouts/{id}/cancel", &things.payout, reason.clone()),
        bulk(call(Method::POST, "/v1/batches", "", batch)),
        bulk(call(Method::POST, "/v1/batches/{id}/cancel", &things.batch, json!({}))),
        call(Method::POST, "/v1/beneficiaries", "", saved),
        call(Method::PATCH, "/v1/beneficiaries/{id}", &things.beneficiary, json!({})),
        call(Method::DELETE, "/v1/beneficiaries/{id}", &things.beneficiary, reason),
        call(Method::POST, "/v1/name-enquiry", "", named),
        call(Method::POST, "/v1/webhook_endpoints", "", hook),
        call(Method::PATCH, "/v1/webhook_endpoints/{id}", &things.endpoint, json!({})),
        call(Method::POST, "/v1/sandbox/fund", "", quote),
        call(Method::POST, "/v1/conversions", "", conversion.clone()),
        call(Method::POST, "/v1/conversions/quote", "", conversion),
    ]
}

async fn document(host: &TestHost) -> Value {
    host.send(Method::GET, "/openapi.json", "", &[], None).await.ok().json
}

/// The schema that another one stands for.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.strip_prefix('#').expect("a local reference");
        return resolved(document, document.pointer(pointer).expect("a schema"));
    }
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|kind| schema[kind].as_array());
    let choices = choices.flatten();
    let mut choices = choices;
    match choices.find(|choice| choice["type"] != "null") {
        Some(choice) => resolved(document, choice),
        None => schema,
    }
}

/// Where a schema holds texts: the way to each, and the most characters that it names.
fn texts(document: &Value, schema: &Value, at: &[&str]) -> Vec<(Vec<String>, Option<usize>)> {
    let schema = resolved(document, schema);
    if let Some(fields) = schema["properties"].as_object() {
        let inside = fields.iter().flat_map(|(name, field)| {
            let at: Vec<&str> = at.iter().copied().chain([name.as_str()]).collect();
            texts(document, field, &at)
        });
        return inside.collect();
    }
    let is = |kind: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|known| known == kind),
        known => known == kind,
    };
    let here = at.iter().map(ToString::to_string).collect();
    match (is("string"), is("array")) {
        (true, _) => {
            let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok());
            vec![(here, most)]
        }
        (_, true) => {
            let at: Vec<&str> = at.iter().copied().chain(["0"]).collect();
            texts(document, &schema["items"], &at)
        }
        _ => Vec::new(),
    }
}

/// A body with a value at the end of a way.
fn put(body: &Value, at: &[String], value: Value) -> Value {
    let mut body = body.clone();
    let mut place = &mut body;
    for name in at {
        place = match name.as_str() {
            "0" => {
                if !place.is_array() {
                    *place = json!([null]);
                }
                &mut place[0]
            }
            name => {
                if !place.is_object() {
                    *place = json!({});
                }
                &mut place[name]
            }
        };
    }
    *place = value;
    body
}

async fn send(host: &TestHost, call: &Call, body: Value) -> Answer {
    let path = call.template.replace("{id}", &call.id);
    let key = unique();
    let headers = [("idempotency-key", key.as_str())];
    let own = call.key.as_ref().unwrap_or(&host.merchant.test_key);
    host.send(call.method.clone(), &path, own, &headers, Some(body)).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_any_body_is_as_long_as_one_likes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let things = things(host, &receiver.url("/a")).await;
        let calls = calls(&things, &receiver.url("/a"));
        let document = document(host).await;
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let is_known = |call: &&Call| {
                    call.template == path && call.method.as_str().to_lowercase() == *method
                };
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                if !path.starts_with("/v1/") || schema.is_null() {
                    continue;
                }
                let call = calls.iter().find(is_known);
                let call = call.unwrap_or_else(|| panic!("{method} {path} is not tried out"));
                let mut found = texts(&document, schema, &[]);
                if path == "/v1/beneficiaries" {
                    let fields = [
                        "currency",
                        "name",
                        "email",
                        "phone",
                        "external_reference",
                        "account_number",
                        "bank_code",
                        "bank_name",
                    ];
                    found = fields.map(|field| (vec![field.to_owned()], None)).into();
                }
                assert!(!found.is_empty(), "{method} {path}");
                for (at, most) in found {
                    let field = at.join(".");
                    for length in most.map(|most| most + 1).into_iter().chain([300_000]) {
                        let body = put(&call.body, &at, "x".repeat(length).into());
                        let answer = send(host, call, body).await;
                        let told =
                            format!("{method} {path} {field} of {length}: {}", answer.status);
                        assert!((400..500).contains(&answer.status), "{told}");
                        assert!(answer.text.len() < 10_000, "{told}");
                        if most.is_some() {
                            // Rows of batches have codes of their own.
                            let code = match (field.as_str(), path == "/v1/batches") {
                                ("url", _) => "invalid_url",
                                ("items.0.sender.id_type", _) => "invalid_id_type",
                                (_, true) => "invalid_format",
                                (_, false) => "invalid_field",
                            };
                            assert_eq!(answer.refused().1, code, "{told}");
                            let field = field.replace("items.0", "items[0]");
                            assert_eq!(answer.field(), field, "{told}");
                        }
                    }
                }
            }
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 2);
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_endpoints").await, 1);
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 2);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_refused_by_its_limit_and_kept_up_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let things = things(host, &receiver.url("/a")).await;
        let calls = calls(&things, &receiver.url("/a"));
        let call = |template: &str, method: Method| {
            calls.iter().find(|call| call.template == template && call.method == method)
        };
        let pay = call("/v1/payouts", Method::POST).expect("a call");
        let save = call("/v1/beneficiaries", Method::POST).expect("a call");
        let change = call("/v1/beneficiaries/{id}", Method::PATCH).expect("a call");
        for (call, field, most) in [
            (save, "name", 140),
            (save, "phone", 40),
            (save, "external_reference", 128),
            (change, "name", 140),
            (change, "phone", 40),
            (pay, "merchant_reference", 128),
            (pay, "narration", 100),
            (pay, "customer_reference", 64),
            (pay, "sender.first_name", 140),
            (pay, "sender.business_name", 140),
            (pay, "sender.street", 120),
            (pay, "sender.zip_code", 20),
            (pay, "sender.id_number", 64),
        ] {
            let at: Vec<String> = field.split('.').map(str::to_owned).collect();
            let fits = put(&call.body, &at, "\u{e9}".repeat(most).into());
            send(host, call, fits).await.ok();
            let long = put(&call.body, &at, "\u{e9}".repeat(most + 1).into());
            let refused = send(host, call, long).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
            let message = refused.json["error"]["message"].as_str().expect("a message");
            assert!(message.contains(&most.to_string()), "{message}");
        }
        for country in ["N", "NGA", "ng", "12"] {
            let body = with(pay.body.clone(), json!({ "sender": { "country": country } }));
            let refused = send(host, pay, body).await;
            let told = (refused.refused(), refused.field());
            assert_eq!(told, ((400, "invalid_field"), "sender.country"), "{country}");
        }
        let body = with(pay.body.clone(), json!({ "sender": { "country": "NG", "city": "" } }));
        send(host, pay, body).await.ok();
        // White space does not smuggle anything in.
        let spaces = " ".repeat(500_000);
        let recipient = json!({ "account_number": account(99), "bank_code": "058",
            "name": format!("{spaces}Ada{spaces}") });
        let body = with(naira(100_000), json!({ "recipient": recipient }));
        let saved = host.pay("paid", body).await.ok().json["beneficiary_id"].clone();
        let saved =
            host.get(&format!("/v1/beneficiaries/{}", saved.as_str().expect("an id"))).await;
        assert_eq!(saved.ok().json["name"], "Ada");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_email_address_is_taken_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let things = things(host, &receiver.url("/a")).await;
        let calls = calls(&things, &receiver.url("/a"));
        let find = |template: &str, method: Method| {
            let found = calls.iter().find(|c| c.template == template && c.method == method);
            found.expect("a call")
        };
        let places = [
            (find("/v1/beneficiaries", Method::POST), "email", 400),
            (find("/v1/beneficiaries/{id}", Method::PATCH), "email", 400),
            (find("/v1/payouts", Method::POST), "sender.email", 400),
            (find("/v1/payouts", Method::POST), "recipient.email", 422),
        ];
        let too_long = format!("{}@example.com", "a".repeat(243));
        for (call, field, status) in places {
            let at: Vec<String> = field.split('.').map(str::to_owned).collect();
            for email in ["x", "a@b", "a b@c.ng", "a@b.ng,c@d.ng", "<a@b.ng>", "a@-b.ng", &too_long]
            {
                let refused = send(host, call, put(&call.body, &at, email.into())).await;
                let told = (refused.refused(), refused.field());
                assert_eq!(told, ((status, "invalid_field"), field), "{email:.40}");
            }
            let longest = format!("{}@example.com", "a".repeat(242));
            send(host, call, put(&call.body, &at, longest.into())).await.ok();
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn webhook_events_are_no_more_than_the_catalogue_has(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let things = things(host, &receiver.url("/a")).await;
        let calls = calls(&things, &receiver.url("/b"));
        for call in calls.iter().filter(|call| call.template.contains("webhook_endpoints")) {
            let many = vec!["payout.paid"; railhead::events::CATALOGUE.len() + 1];
            for events in [json!(many), json!(vec!["*"; 50_000])] {
                let body = with(call.body.clone(), json!({ "events": events }));
                let refused = send(host, call, body).await;
                let told = (refused.refused(), refused.field());
                assert_eq!(told, ((400, "invalid_event_type"), "events"));
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_long_address_is_our_fault(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let wallet = host.merchant.test_wallet.clone();
        let bulk_key = batches::bulk_key(host, "test").await;
        let document = document(host).await;
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                if !path.starts_with("/v1/") {
                    continue;
                }
                let method =
                    Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                for parameter in parameters {
                    let name = parameter["name"].as_str().expect("a name");
                    let long = "9".repeat(LONG);
                    let (path, headers) = match parameter["in"].as_str() {
                        Some("path") => {
                            let start = path.find('{').expect("a variable");
                            let end = path.find('}').expect("a variable") + 1;
                            (format!("{}{long}{}", &path[..start], &path[end..]), Vec::new())
                        }
                        Some("query") => {
                            let path = path.replace("{id}", &wallet);
                            (format!("{path}?{name}={long}"), Vec::new())
                        }
                        _ => (path.replace("{id}", &wallet), vec![(name, long.as_str())]),
                    };
                    let is_bulk = path.starts_with("/v1/batches");
                    let key = if is_bulk { &bulk_key } else { &host.merchant.test_key };
                    let has_body = operation.get("requestBody").is_some();
                    let body = has_body.then(|| json!({}));
                    let answer = host.send(method.clone(), &path, key, &headers, body).await;
                    let told = format!("{method} {path:.60} {name}: {}", answer.status);
                    assert!((400..500).contains(&answer.status), "{told}");
                    assert!(answer.text.len() < 10_000, "{told}");
                    if parameter["in"] == "query" {
                        assert_eq!((answer.status, answer.field()), (400, name), "{told}");
                    }
                }
            }
        }
        for token in ["", "sk_test_"] {
            let token = format!("{token}{}", "9".repeat(LONG));
            assert_eq!(host.get_as(&token, "/v1/wallets").await.status, 401);
        }
        let q = format!("/v1/beneficiaries?q={}", "%25".repeat(254));
        host.get(&q).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_odd_json_is_our_fault(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_receiver(engine, async |host, receiver| {
        let things = things(host, &receiver.url("/a")).await;
        let digits = "9".repeat(10_000);
        let deep =
            |open: &str, close: &str| format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        let odd = [
            digits.clone(),
            format!("-{digits}.{digits}e{digits}"),
            format!("\"{digits}\""),
            deep("[", "]"),
            deep(r#"{"a":"#, "}"),
            r#""\ud800""#.to_owned(),
            r#""\udc00\ud800""#.to_owned(),
            r#"{"a":1,"a":2}"#.to_owned(),
            r#"[["payout.paid"]]"#.to_owned(),
        ];
        for call in calls(&things, &receiver.url("/a")) {
            let whole = call.body.to_string();
            let rest = &whole[1..];
            let comma = if rest == "}" { "" } else { "," };
            let names =
                ["amount_minor", "name", "recipient", "sender", "events", "reason", "newer"];
            for (name, odd) in names.iter().flat_map(|name| odd.iter().map(move |odd| (name, odd)))
            {
                // Where the field is there already, it is sent twice.
                let body = format!("{{\"{name}\":{odd}{comma}{rest}");
                let path = call.template.replace("{id}", &call.id);
                let request =
                    host.client.request(call.method.clone(), format!("{}{path}", host.base));
                let request = request.bearer_auth(&host.merchant.test_key);
                let request = request.header("idempotency-key", unique());
                let request = request.header("content-type", "application/json").body(body);
                let answer = Answer::of(request.send().await.expect("an answer")).await;
                let told = format!("{path} {name} {odd:.40}: {}", answer.text);
                assert!(answer.status < 500, "{told:.300}");
                assert!(answer.text.len() < 10_000, "{told:.300}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_would_be_too_large_is_cut_and_goes_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let endpoint = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        // As JSON each of these bytes is six: an answer is almost 100 KiB.
        receiver.behave("/a", Manner::Says(200, Vec::new(), "\u{1}".repeat(16 * 1024)));
        for _ in 0..30 {
            host.post(&format!("/v1/webhook_endpoints/{endpoint}/test"), json!({})).await.ok();
        }
        let mut seen: Vec<String> = Vec::new();
        let mut pages = 0;
        loop {
            let after = seen.last().map(|id| format!("&starting_after={id}")).unwrap_or_default();
            let page = host.get(&format!("/v1/webhook_deliveries?limit=100{after}")).await.ok();
            assert!(page.text.len() < 2 * 1024 * 1024 + 1000, "{}", page.text.len());
            let items = page.json["data"].as_array().expect("a list");
            assert!(!items.is_empty());
            seen.extend(items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned));
            pages += 1;
            if page.json["has_more"] == false {
                break;
            }
        }
        assert_eq!((seen.len(), pages), (30, 2));
        seen.dedup();
        assert_eq!(seen.len(), 30);
        assert!(seen.is_sorted_by(|a, b| a > b));
    })
    .await;
}
