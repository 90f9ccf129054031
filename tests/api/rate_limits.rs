//! Budgets: what counts, against whom, and what a spent one answers.

use futures::future::join_all;
use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::json;
use sqlx::{Connection as _, Executor as _};

use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host_configured,
};

/// The minute in which every test host begins ends here.
const RESET: i64 = 1_795_251_660;

fn small(config: &mut Config) {
    config.limits.read_per_minute = 3;
    config.limits.write_per_minute = 4;
    config.limits.bulk_per_minute = 10;
    config.limits.anonymous_per_minute = 3;
    config.server.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
}

fn header(answer: &Answer, name: &str) -> i64 {
    let value = answer.headers.get(&format!("x-ratelimit-{name}"));
    let value =
        value.unwrap_or_else(|| panic!("no X-RateLimit: {} {}", answer.status, answer.text));
    value.parse().expect("a number")
}

fn remaining(answer: &Answer) -> i64 {
    header(answer, "remaining")
}

/// The answer is a 429 of this tier that tells the same in headers and body.
#[track_caller]
fn assert_spent(answer: &Answer, tier: &str, limit: i64, retry_after_s: i64) {
    assert_eq!(answer.refused(), (429, "rate_limit_exceeded"));
    assert_eq!(answer.json["error"]["type"], "rate_limit_error");
    let detail = json!({ "tier": tier, "limit": limit, "retry_after_seconds": retry_after_s });
    assert_eq!(answer.json["error"]["detail"], detail);
    assert_eq!(answer.headers["retry-after"], retry_after_s.to_string());
    assert_eq!((header(answer, "limit"), remaining(answer)), (limit, 0));
}

/// A read without a key, from an address.
async fn nameless(host: &TestHost, address: &str) -> Answer {
    let headers = [("x-forwarded-for", address)];
    host.send(Method::GET, "/v1/wallets", "", &headers, None).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_spent_by_successes_and_refusals_and_comes_back_with_the_minute(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        for minute in 0..2 {
            let reset = RESET + minute * 60;
            let ok = host.get("/v1/wallets").await.ok();
            assert_eq!((header(&ok, "limit"), remaining(&ok), header(&ok, "reset")), (3, 2, reset));
            let missing = host.get("/v1/payouts/c0").await;
            assert_eq!((missing.status, remaining(&missing)), (404, 1));
            let wrong = host.get("/v1/payouts?limit=0").await;
            assert_eq!((wrong.status, remaining(&wrong)), (400, 0));
            assert!(!wrong.headers.contains_key("retry-after"));
            host.advance(15);
            for _ in 0..3 {
                assert_spent(&host.get("/v1/wallets").await, "read", 3, 45);
            }
            host.advance(44);
            let last = host.get("/v1/wallets").await;
            assert_spent(&last, "read", 3, 1);
            assert_eq!(header(&last, "reset"), reset);
            host.advance(1);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn tiers_and_keys_have_budgets_of_their_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let second = host.new_key(&host.merchant.id, json!({ "env": "test" })).await;
        for left in [2, 1, 0] {
            assert_eq!(remaining(&host.get("/v1/wallets").await), left);
        }
        assert_eq!(host.get("/v1/wallets").await.status, 429);
        let key = host.merchant.test_key.clone();
        for (method, path, left) in [
            (Method::POST, "/v1/payouts/quote", 3),
            (Method::PATCH, "/v1/beneficiaries/c0", 2),
            (Method::DELETE, "/v1/beneficiaries/c0", 1),
            (Method::PUT, "/v1/payouts", 0),
        ] {
            let answer = host.send(method.clone(), path, &key, &[], Some(json!({}))).await;
            assert_eq!(
                (header(&answer, "limit"), remaining(&answer)),
                (4, left),
                "{method} {path}"
            );
        }
        let spent = host.post("/v1/payouts/quote", json!({})).await;
        assert_spent(&spent, "write", 4, 60);
        let batch = host.post("/v1/batches", json!({})).await;
        assert_eq!((header(&batch, "limit"), remaining(&batch)), (10, 9));
        for other in [&second, &host.merchant.live_key] {
            assert_eq!(remaining(&host.get_as(other, "/v1/wallets").await.ok()), 2);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn neither_5xx_nor_429_count_and_replays_do(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let (test, key) = (host.merchant.test_key.clone(), unique());
        let paid = host.pay_as(&test, &key, naira(100_000)).await.ok();
        assert_eq!(remaining(&paid), 3);
        let soon = with(naira(100_000), json!({ "allow_duplicate": false }));
        let soon = host.pay("paid", soon).await;
        assert_eq!((soon.refused(), remaining(&soon)), ((429, "beneficiary_cooldown"), 3));
        // As often as a budget has places: after that they do.
        for left in [3, 3, 3, 2] {
            let failed = host.pay("provider_down", naira(100_000)).await;
            assert_eq!(failed.refused(), (502, "provider_error"));
            assert_eq!(remaining(&failed), left);
        }
        host.advance(60);
        for left in [3, 2, 1, 0] {
            let replay = host.pay_as(&test, &key, naira(100_000)).await.ok();
            assert_eq!(replay.headers["idempotent-replayed"], "true");
            assert_eq!(remaining(&replay), left);
        }
        assert_spent(&host.pay_as(&test, &key, naira(100_000)).await, "write", 4, 60);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_never_overspent_by_requests_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let host = &*host;
        let answers = join_all((0..40).map(|_| host.get("/v1/wallets"))).await;
        let admitted = answers.iter().filter(|answer| answer.status == 200).count();
        let spent = answers.iter().filter(|answer| answer.status == 429).count();
        assert_eq!((admitted, spent), (3, 37));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_spends_the_budget_of_the_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let wrong = [("x-forwarded-for", "203.0.113.1"), ("authorization", "Bearer sk_test_no")];
        let missing = nameless(host, "203.0.113.1").await;
        assert_eq!(missing.refused(), (401, "missing_api_key"));
        assert_eq!((header(&missing, "limit"), remaining(&missing)), (3, 2));
        assert_eq!(header(&missing, "reset"), RESET);
        let unknown = host.send(Method::POST, "/v1/payouts", "", &wrong, Some(naira(1))).await;
        assert_eq!(unknown.refused(), (401, "invalid_api_key"));
        assert_eq!(remaining(&unknown), 1);
        let admin = host.send(Method::GET, "/admin/v1/audit", "", &wrong, None).await;
        assert_eq!((admin.refused(), remaining(&admin)), ((401, "invalid_api_key"), 0));
        assert_spent(&nameless(host, "203.0.113.1").await, "anon", 3, 60);
        let admin = host.send(Method::GET, "/admin/v1/audit", "", &wrong, None).await;
        assert_spent(&admin, "anon", 3, 60);

        assert_eq!(nameless(host, "203.0.113.2").await.status, 401);
        let key = host.merchant.test_key.clone();
        let known = host.send(Method::GET, "/v1/wallets", &key, &wrong[..1], None).await.ok();
        assert_eq!(remaining(&known), 2);
        host.advance(60);
        assert_eq!(nameless(host, "203.0.113.1").await.status, 401);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_turned_away_spends_the_address_and_a_denied_capability_the_key(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let id = host.merchant.id.clone();
        let elsewhere = json!({ "env": "test", "ip_allowlist": ["198.51.100.1"] });
        let elsewhere = host.new_key(&id, elsewhere).await;
        let reader = host.new_key(&id, json!({ "env": "test", "capabilities": [] })).await;
        for (left, status) in [(2, 403), (1, 403), (0, 403), (0, 429)] {
            let answer = host.get_as(&elsewhere, "/v1/wallets").await;
            assert_eq!((answer.status, remaining(&answer)), (status, left));
        }
        // The address has nothing left, and the key has all of its own.
        for (left, status) in [(3, 403), (2, 403), (1, 403), (0, 403), (0, 429)] {
            let answer = host.pay_as(&reader, &unique(), naira(100_000)).await;
            assert_eq!((answer.status, remaining(&answer)), (status, left));
            assert_eq!(header(&answer, "limit"), 4);
        }
        assert_spent(&host.pay_as(&reader, &unique(), naira(1)).await, "write", 4, 60);
        host.advance(60);
        let suspended = json!({ "status": "suspended" });
        host.admin(Method::PATCH, &format!("merchants/{id}"), suspended).await.ok();
        for (left, status) in [(2, 403), (1, 403), (0, 403), (0, 429)] {
            let answer = host.get("/v1/wallets").await;
            assert_eq!((answer.status, remaining(&answer)), (status, left));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_outside_the_api_has_no_budget(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, small, async |host| {
        let paths = ["/", "/healthz", "/readyz", "/openapi.json", "/errors/not_found", "/nowhere"];
        for path in paths {
            for _ in 0..5 {
                let answer = host.send(Method::GET, path, "", &[], None).await;
                assert_eq!(answer.status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
                assert!(!answer.headers.contains_key("x-ratelimit-limit"), "{path}");
            }
        }
        // With a key, the explanation of an error is a read like any other.
        let path = "/v1/errors/missing_api_key";
        let known = host.get(path).await.ok();
        assert_eq!((header(&known, "limit"), remaining(&known)), (3, 2));
        // It needs no key, and is part of the API all the same.
        for (left, status) in [(2, 200), (1, 200), (0, 200), (0, 429)] {
            let answer = host.send(Method::GET, path, "", &[], None).await;
            assert_eq!((answer.status, remaining(&answer)), (status, left));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_has_a_budget_of_its_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    // The test host itself makes four calls as this operator: a merchant, its features, two credits.
    // The keys are made by another one.
    let change = |config: &mut Config| {
        small(config);
        config.admin.requests_per_minute = 6;
    };
    with_host_configured(engine, change, async |host| {
        let read = host.send(Method::GET, "/admin/v1/routes", OPERATOR_TOKEN, &[], None);
        let read = read.await.ok();
        assert_eq!((header(&read, "limit"), remaining(&read)), (6, 1));
        let write = host.admin(Method::POST, "merchants", json!({})).await;
        assert_eq!((write.status, remaining(&write)), (400, 0));
        assert_spent(&host.admin(Method::POST, "merchants", json!({})).await, "admin", 6, 60);
        assert_eq!(remaining(&host.get("/v1/wallets").await.ok()), 2);
        host.advance(60);
        let read = host.send(Method::GET, "/admin/v1/routes", OPERATOR_TOKEN, &[], None).await;
        assert_eq!(remaining(&read.ok()), 5);
    })
    .await;
}

/// Only PostgreSQL can be made to keep readers waiting.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_too_long_says_so_and_costs_nothing() {
    with_host_configured(
        Engine::Postgres,
        |config| config.server.timeout_s = 3,
        async |host| {
            let key = host.merchant.test_key.clone();
            let remaining = |answer: &Answer| -> u64 {
                answer.headers["x-ratelimit-remaining"].parse().expect("a number")
            };
            let before = host.get_as(&key, "/v1/payouts").await.ok();
            let mut other = sqlx::PgConnection::connect(&host.database.url).await.expect("another");
            other
                .execute("BEGIN; LOCK TABLE payouts IN ACCESS EXCLUSIVE MODE")
                .await
                .expect("held");
            let late = host.get_as(&key, "/v1/payouts").await;
            assert_eq!(late.refused(), (503, "request_timeout"));
            assert_eq!(late.headers["retry-after"], "1");
            assert_eq!(remaining(&late), remaining(&before));
            other.execute("ROLLBACK").await.expect("let go");
            let after = host.get_as(&key, "/v1/payouts").await.ok();
            assert_eq!(remaining(&after), remaining(&before) - 1);
        },
    )
    .await;
}
