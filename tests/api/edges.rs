//! The edges of HTTP: what is not a call, not JSON, not a page.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host};

const QUOTE: &str = "/v1/payouts/quote";

/// Posts bytes as they are, with the test key.
async fn post_raw(host: &TestHost, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
    let mut request = host
        .client
        .post(format!("{}{path}", host.base))
        .bearer_auth(&host.merchant.test_key)
        .header("idempotency-key", unique())
        .body(body);
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    Answer::of(request.send().await.expect("an answer")).await
}

async fn post_json(host: &TestHost, path: &str, body: &str) -> Answer {
    post_raw(host, path, "application/json", body.as_bytes().to_vec()).await
}

/// The envelope is whole: type, code, message, a page about the code, a request id.
#[track_caller]
fn assert_envelope(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.refused(), (status, code), "{}", answer.text);
    let error = &answer.json["error"];
    assert!(error["type"].as_str().is_some_and(|kind| !kind.is_empty()), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    assert_eq!(error["docs_url"], format!("http://railhead.test/errors/{code}"));
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.headers["x-request-id"].starts_with("req_"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_call_is_refused_in_the_same_envelope(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        for (method, path, token, status, code) in [
            (Method::GET, "/v1", &*key, 404, "not_found"),
            (Method::GET, "/v1/", &key, 404, "not_found"),
            (Method::GET, "/v1/nowhere", &key, 404, "not_found"),
            (Method::GET, "/v1/payouts/", &key, 404, "not_found"),
            (Method::GET, "/v1//payouts", &key, 404, "not_found"),
            (Method::GET, "/v1/Payouts", &key, 404, "not_found"),
            (Method::GET, "/v1/payouts/x/y/z", &key, 404, "not_found"),
            (Method::POST, "/v1/payouts/x/refund", &key, 404, "not_found"),
            (Method::GET, "/v2/payouts", "", 404, "not_found"),
            (Method::GET, "/nowhere", "", 404, "not_found"),
            (Method::GET, "/admin/v1/nowhere", OPERATOR_TOKEN, 404, "not_found"),
            (Method::PUT, "/v1/payouts", &key, 405, "method_not_allowed"),
            (Method::DELETE, "/v1/payouts", &key, 405, "method_not_allowed"),
            (Method::POST, "/v1/wallets", &key, 405, "method_not_allowed"),
            (Method::GET, QUOTE.trim_end_matches("quote"), &key, 404, "not_found"),
            (Method::DELETE, QUOTE, &key, 405, "method_not_allowed"),
            (Method::OPTIONS, "/v1/payouts", &key, 405, "method_not_allowed"),
            (Method::DELETE, "/admin/v1/audit", OPERATOR_TOKEN, 405, "method_not_allowed"),
            (Method::POST, "/healthz", "", 405, "method_not_allowed"),
            (Method::GET, "/v1/nowhere", "", 401, "missing_api_key"),
            (Method::PUT, "/v1/payouts", "", 401, "missing_api_key"),
        ] {
            let answer = host.send(method.clone(), path, token, &[], None).await;
            assert_envelope(&answer, status, code);
            let limited = path.starts_with("/v1") || path.starts_with("/admin/v1");
            assert_eq!(answer.headers.contains_key("x-ratelimit-limit"), limited, "{path}");
            if status == 405 {
                assert!(!answer.headers["allow"].is_empty(), "{method} {path}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_text_does_not_exist(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for path in [
            "/v1/payouts/%ff",
            "/v1/wallets/%C3%28/balance",
            "/v1/errors/%ff",
            "/errors/%80",
            "/v1/payouts/%00",
        ] {
            let request = host.client.get(format!("{}{path}", host.base));
            let request = request.bearer_auth(&host.merchant.test_key);
            let answer = Answer::of(request.send().await.expect("an answer")).await;
            assert_envelope(&answer, 404, "not_found");
        }
        for path in ["/v1/payouts/%E2%82%AC", "/v1/payouts/..%2F..%2Fadmin"] {
            assert_eq!(host.get(path).await.refused(), (404, "payout_not_found"), "{path}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_or_of_another_kind_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let most = 1024 * 1024;
        let frame = r#"{"currency":"NGN","amount_minor":"100000","note":""}"#.len();
        let of = |bytes: usize| {
            let note = "x".repeat(bytes - frame);
            format!(r#"{{"currency":"NGN","amount_minor":"100000","note":"{note}"}}"#)
        };
        post_json(host, QUOTE, &of(most)).await.ok();
        for path in [QUOTE, "/v1/payouts", "/v1/beneficiaries"] {
            let answer = post_json(host, path, &of(most + 1)).await;
            assert_envelope(&answer, 413, "body_too_large");
        }
        let good = of(frame);
        for (content_type, status) in [
            ("application/json", 200),
            ("application/json; charset=utf-8", 200),
            ("Application/JSON", 200),
            ("", 415),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("application/jsonp", 415),
            ("application/vnd.api+json", 415),
            ("multipart/form-data; boundary=application/json", 415),
        ] {
            let answer = post_raw(host, QUOTE, content_type, good.clone().into_bytes()).await;
            assert_eq!(answer.status, status, "{content_type}: {}", answer.text);
            if status == 415 {
                assert_envelope(&answer, 415, "unsupported_media_type");
            }
        }
        // A body that may be left out must still be JSON if it is there.
        let path = "/v1/payouts/c0/cancel";
        let answer = post_raw(host, path, "text/plain", b"reason=none".to_vec()).await;
        assert_envelope(&answer, 415, "unsupported_media_type");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_refused_by_what_is_wrong_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let deep = |open: &str, close: &str| {
            format!(
                r#"{{"recipient":{{"account_number":{}{}}}}}"#,
                open.repeat(5_000),
                close.repeat(5_000)
            )
        };
        for (body, code, field) in [
            ("", "invalid_json", ""),
            ("   ", "invalid_json", ""),
            ("{", "invalid_json", ""),
            ("nonsense", "invalid_json", ""),
            ("{'currency':'NGN'}", "invalid_json", ""),
            (r#"{"currency":"NGN",}"#, "invalid_json", ""),
            (r#"{"currency":NaN}"#, "invalid_json", ""),
            (r#"{"currency":"NGN"} {}"#, "invalid_json", ""),
            (r#"{"currency":"\ud800"}"#, "invalid_json", ""),
            ("{\"currency\":\"N\nGN\"}", "invalid_json", ""),
            ("\u{feff}{}", "invalid_json", ""),
            (&deep("[", "]"), "invalid_json", ""),
            (&deep(r#"{"a":"#, "}"), "invalid_json", ""),
            (&"[".repeat(100_000), "invalid_json", ""),
            ("[]", "invalid_body", ""),
            ("\"text\"", "invalid_body", ""),
            ("null", "invalid_body", ""),
            ("true", "invalid_body", ""),
            ("5", "invalid_body", ""),
            (r#"{"currency":["NGN"]}"#, "invalid_field", "currency"),
            (r#"{"currency":{}}"#, "invalid_field", "currency"),
            (r#"{"amount_minor":100000}"#, "invalid_field", "amount_minor"),
            (r#"{"amount_minor":1e5}"#, "invalid_field", "amount_minor"),
            (r#"{"recipient":"0123456785"}"#, "invalid_field", "recipient"),
            (r#"{"recipient":[1]}"#, "invalid_field", "recipient"),
            (r#"{"allow_duplicate":1}"#, "invalid_field", "allow_duplicate"),
            (r#"{"sender":{"first_name":7}}"#, "invalid_field", "sender.first_name"),
            (r#"{"sender":["Ada","Obi"]}"#, "invalid_field", "sender"),
        ] {
            let answer = post_json(host, "/v1/payouts", body).await;
            let shown = &body[..body.len().min(60)];
            assert_eq!(answer.refused(), (400, code), "{shown}: {}", answer.text);
            assert_envelope(&answer, 400, code);
            assert_eq!(answer.field(), field, "{shown}");
        }
        for bytes in [&b"{\"currency\":\"\xff\"}"[..], b"\xff\xfe{\x00}\x00", b"\x80"] {
            let answer = post_raw(host, "/v1/payouts", "application/json", bytes.to_vec()).await;
            assert_envelope(&answer, 400, "invalid_json");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_sent_twice_is_not_guessed_at(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let twice = r#"{"currency":"NGN","amount_minor":"100000","amount_minor":"900000"}"#;
        let answer = post_json(host, QUOTE, twice).await;
        assert_envelope(&answer, 400, "invalid_field");
        let message = answer.json["error"]["message"].as_str().expect("a message");
        assert!(message.contains("amount_minor"), "{message}");
        let wallet = &host.merchant.test_wallet;
        let transactions = format!("/v1/wallets/{wallet}/transactions");
        let funding = format!("/v1/wallets/{wallet}/funding_events");
        for path in ["/v1/payouts", "/v1/beneficiaries", "/v1/events", &transactions, &funding] {
            let answer = host.get(&format!("{path}?limit=1&limit=2")).await;
            assert_envelope(&answer, 400, "invalid_filter");
        }
        for path in ["merchants", "audit", "blacklist", "approval_requests"] {
            let path = format!("{path}?limit=1&limit=2");
            let answer = host.admin(Method::GET, &path, json!({})).await;
            assert_envelope(&answer, 400, "invalid_filter");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_are_let_through_and_still_tell_requests_apart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let deep = |letter: &str| format!("{}\"{letter}\"{}", "[".repeat(500), "]".repeat(500));
        for (one, other) in [
            (json!("a").to_string(), json!("b").to_string()),
            (deep("a"), deep("b")),
            (r#""\ud800 a""#.into(), r#""\ud800 b""#.into()),
            ("1e999".into(), "2e999".into()),
        ] {
            let key = unique();
            let pay = async |newer: &str| {
                let body = naira(100_000).to_string();
                let body = format!(r#"{{"newer":{newer},{}"#, &body[1..]);
                let request = host.client.post(format!("{}/v1/payouts", host.base));
                let request = request.bearer_auth(&host.merchant.test_key);
                let request = request.header("idempotency-key", &key);
                let request = request.header("content-type", "application/json").body(body);
                Answer::of(request.send().await.expect("an answer")).await
            };
            let first = pay(&one).await.ok();
            assert_eq!(pay(&one).await.ok().id(), first.id());
            let refused = pay(&other).await;
            assert_eq!(refused.refused(), (409, "idempotency_key_conflict"), "{one:.20}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_a_request_id_of_its_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let sent = [("x-request-id", "mine")];
        let mut seen = BTreeSet::new();
        for (method, path, key) in [
            (Method::GET, "/v1/wallets", host.merchant.test_key.as_str()),
            (Method::HEAD, "/v1/wallets", host.merchant.test_key.as_str()),
            (Method::GET, "/v1/wallets", "sk_test_unknown"),
            (Method::GET, "/v1/payouts/c0", host.merchant.test_key.as_str()),
            (Method::GET, "/admin/v1/routes", OPERATOR_TOKEN),
            (Method::GET, "/healthz", ""),
            (Method::GET, "/openapi.json", ""),
            (Method::GET, "/docs/", ""),
            (Method::GET, "/nowhere", ""),
        ] {
            let answer = host.send(method, path, key, &sent, None).await;
            let id = answer.headers["x-request-id"].clone();
            assert!(id.starts_with("req_") && id.len() == 28, "{path} {id}");
            assert!(seen.insert(id), "{path}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_size_or_a_cursor_that_is_none_is_refused_by_every_list(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = &host.merchant.test_wallet;
        for (list, token) in [
            ("/v1/payouts".to_owned(), host.merchant.test_key.as_str()),
            ("/v1/beneficiaries".to_owned(), &host.merchant.test_key),
            ("/v1/events".to_owned(), &host.merchant.test_key),
            (format!("/v1/wallets/{wallet}/transactions"), &host.merchant.test_key),
            (format!("/v1/wallets/{wallet}/funding_events"), &host.merchant.test_key),
            ("/admin/v1/merchants".to_owned(), OPERATOR_TOKEN),
            ("/admin/v1/audit".to_owned(), OPERATOR_TOKEN),
            ("/admin/v1/blacklist".to_owned(), OPERATOR_TOKEN),
        ] {
            let ask = async |query: &str| {
                let path = format!("{list}?{query}");
                host.send(Method::GET, &path, token, &[], None).await
            };
            for limit in ["0", "101", "-1", "1.5", "ten", "", "99999999999999999999", "%201"] {
                let answer = ask(&format!("limit={limit}")).await;
                assert_eq!(answer.refused(), (400, "invalid_limit"), "{list} {limit}");
                assert_eq!(answer.field(), "limit");
            }
            for cursor in ["", "x", "c000000000000000000000000", "po_0", "%27", "~"] {
                let answer = ask(&format!("starting_after={cursor}")).await;
                assert_eq!(answer.refused(), (400, "invalid_field"), "{list} {cursor}");
                assert_eq!(answer.field(), "starting_after");
            }
            for limit in ["1", "100"] {
                let page = ask(&format!("limit={limit}&unknown=1")).await.ok();
                assert_eq!(page.json["object"], "list", "{list}");
                assert!(page.json["has_more"].is_boolean() && page.json["data"].is_array());
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_error_is_explained_to_machines_and_to_people(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let open = async |path: &str| host.send(Method::GET, path, "", &[], None).await;
        let document = open("/openapi.json").await.ok();
        let codes = document.json["components"]["schemas"]["ErrorCode"]["enum"].clone();
        let codes: Vec<String> = serde_json::from_value(codes).expect("codes");
        assert!(codes.len() > 100, "{}", codes.len());
        for code in &codes {
            let explained = open(&format!("/v1/errors/{code}")).await.ok();
            assert_eq!(explained.json["code"], **code);
            for field in ["type", "message", "meaning", "remedy"] {
                let text = explained.json[field].as_str();
                assert!(text.is_some_and(|text| !text.is_empty()), "{code} has no {field}");
            }
            let page = open(&format!("/errors/{code}")).await.ok();
            assert!(page.headers["content-type"].starts_with("text/html"), "{code}");
            assert!(page.text.contains(&format!("<h1>{code}</h1>")), "{code}");
            assert_offline(&page.text);
        }
        for path in ["/v1/errors/nonsense", "/errors/nonsense", "/errors/%3Cscript%3E"] {
            assert_envelope(&open(path).await, 404, "not_found");
        }
        let refused = host.get("/v1/payouts/c0").await;
        let url = refused.json["error"]["docs_url"].as_str().expect("an address").to_owned();
        open(url.strip_prefix("http://railhead.test").expect("our address")).await.ok();
    })
    .await;
}

/// The page loads nothing from elsewhere.
#[track_caller]
fn assert_offline(page: &str) {
    for mark in ["src=\"http", "src='http", "src=\"//", "href=\"http", "href=\"//", "@import"] {
        assert!(!page.contains(mark), "{mark}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_is_served_without_the_internet(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let open = async |path: &str| host.send(Method::GET, path, "", &[], None).await;
        let page = open("/docs/").await.ok();
        assert_offline(&page.text);
        let mut loaded = 0;
        for part in page.text.split(['"', '\'']).filter(|part| part.starts_with("./")) {
            let part = open(&format!("/docs/{}", &part[2..])).await.ok();
            assert!(!part.text.is_empty());
            loaded += 1;
        }
        assert!(loaded >= 3, "{}", page.text);
        let start = open("/docs/swagger-initializer.js").await.ok();
        assert!(start.text.contains("/openapi.json"), "{}", start.text);
        assert!(!start.text.contains("http"), "{}", start.text);
        assert_eq!(open("/docs").await.status, 200, "without the slash, by a redirect");

        let document = open("/openapi.json").await.ok().json;
        assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let id = operation["operationId"].as_str().expect("an id").to_owned();
                assert!(ids.insert(id), "{method} {path}");
                assert!(operation["summary"].is_string(), "{method} {path}");
            }
        }
        assert!(ids.len() > 40, "{}", ids.len());
        assert_references_resolve(&document, &document);
    })
    .await;
}

/// Every `$ref` of the document leads somewhere in it.
fn assert_references_resolve(document: &Value, part: &Value) {
    match part {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.strip_prefix('#').expect("a local reference");
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            fields.values().for_each(|field| assert_references_resolve(document, field));
        }
        Value::Array(items) => {
            items.iter().for_each(|item| assert_references_resolve(document, item));
        }
        _ => {}
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_says_that_it_lives_and_is_ready(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    // Not on a test host that proves the books: this one loses its database.
    let mut host = TestHost::open(engine, |_| {}).await;
    let open = async |path: &str| host.send(Method::GET, path, "", &[], None).await;
    assert_eq!(open("/healthz").await.ok().text, "ok");
    assert_eq!(open("/readyz").await.ok().text, "ready");
    assert_eq!(open("/").await.ok().json["service"], "railhead");
    host.app().db.close().await;
    assert_eq!(open("/healthz").await.ok().text, "ok");
    assert_eq!(open("/readyz").await.status, 503);
    let failed = host.get("/v1/wallets").await;
    assert_envelope(&failed, 503, "service_unavailable");
    assert!(!failed.text.to_lowercase().contains("pool"), "{}", failed.text);
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_nul_character_is_refused_on_both_engines_alike(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = &host.merchant.test_wallet;
        for path in [
            "/v1/payouts?starting_after=%00",
            "/v1/events?starting_after=%00",
            "/v1/beneficiaries?q=a%00",
            &format!("/v1/wallets/{wallet}/funding_events?starting_after=%00"),
        ] {
            assert_envelope(&host.get(path).await, 400, "invalid_filter");
        }
        for path in ["audit?starting_after=%00", "blacklist?starting_after=%00"] {
            let answer = host.admin(Method::GET, path, json!({})).await;
            assert_envelope(&answer, 400, "invalid_filter");
        }
        for changes in [
            json!({ "narration": "a\0b" }),
            json!({ "merchant_reference": "\0" }),
            json!({ "newer": ["\0"] }),
        ] {
            let answer = host.pay("paid", with(naira(100_000), changes)).await;
            assert_envelope(&answer, 400, "invalid_json");
        }
        let answer = host.admin(Method::POST, "merchants", json!({ "name": "\0" })).await;
        assert_envelope(&answer, 400, "invalid_json");
    })
    .await;
}
