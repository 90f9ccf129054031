//! Recent requests: what became of them, for their owner.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, TestHost, naira, with, with_host, with_host_configured};

const PATH: &str = "/v1/request_logs";

async fn log(host: &TestHost, key: &str) -> Vec<Value> {
    host.get_as(key, PATH).await.ok().json["data"].as_array().expect("requests").clone()
}

fn paths(log: &[Value]) -> Vec<&str> {
    log.iter().filter_map(|entry| entry["path"].as_str()).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_shown_with_what_became_of_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let recipient = json!({ "account_number": "0123456785", "bank_code": "999" });
        let answers: Vec<Answer> = vec![
            host.pay("paid", naira(100_000)).await.ok(),
            host.pay("paid", with(naira(100_000), json!({ "recipient": recipient }))).await,
            host.get("/v1/payouts?limit=5&customer_id=secret").await,
            host.get("/v1/nowhere").await,
            host.send(Method::DELETE, "/v1/payouts", &key, &[], None).await,
        ];
        let answer = host.get(PATH).await.ok();
        assert_eq!(
            (&answer.json["object"], &answer.json["has_more"]),
            (&"list".into(), &false.into())
        );
        let shown = log(host, &key).await;
        assert_eq!(paths(&shown).len(), 5, "reading the log leaves nothing in it");
        for (entry, answer) in shown.iter().rev().zip(&answers) {
            assert_eq!(entry["object"], "request_log");
            assert_eq!(entry["id"], answer.headers["x-request-id"]);
            assert_eq!(entry["status"], answer.status);
            assert_eq!(entry["error_code"], answer.json["error"]["code"]);
            assert_eq!(entry["key_prefix"], key[..12]);
            assert_eq!(entry["created_at"], "2026-11-21T09:00:00.000Z");
            assert!(entry["duration_ms"].is_u64());
        }
        let of = |at: usize| (shown[at]["method"].as_str(), shown[at]["path"].as_str());
        assert_eq!(of(0), (Some("DELETE"), Some("/v1/payouts")));
        assert_eq!(of(1), (Some("GET"), Some("/v1/nowhere")));
        assert_eq!(of(2), (Some("GET"), Some("/v1/payouts")));
        let text = host.get(PATH).await.text;
        for private in [&key, "0123456785", "customer_id", "secret"] {
            assert!(!text.contains(private), "{private}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_confined_and_paged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        for number in 0..5 {
            host.get(&format!("/v1/payouts/c{number}")).await;
        }
        host.get_as(&host.merchant.live_key, "/v1/wallets").await.ok();
        host.get_as(&other.test_key, "/v1/banks?currency=NGN").await.ok();
        host.get_as("sk_test_nobody", "/v1/wallets").await;
        assert_eq!(paths(&log(host, &host.merchant.live_key).await), ["/v1/wallets"]);
        assert_eq!(paths(&log(host, &other.test_key).await), ["/v1/banks"]);
        // Another key of the same merchant reads the same log.
        let second = host.new_key(&host.merchant.id, json!({ "env": "test" })).await;
        let whole = log(host, &second).await;
        assert_eq!(paths(&whole)[..2], ["/v1/payouts/c4", "/v1/payouts/c3"]);

        let (mut seen, mut path) = (Vec::new(), format!("{PATH}?limit=2"));
        loop {
            let page = host.get(&path).await.ok();
            seen.extend(page.json["data"].as_array().expect("requests").clone());
            let last = seen.last().and_then(|entry| entry["id"].as_str()).expect("an id");
            path = format!("{PATH}?limit=2&starting_after={last}");
            if page.json["has_more"] == false {
                break;
            }
        }
        assert_eq!(seen, whole);
        for (query, code, field) in [
            ("limit=0", "invalid_limit", "limit"),
            ("starting_after=req_1", "invalid_field", "starting_after"),
        ] {
            let refused = host.get(&format!("{PATH}?{query}")).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), field));
        }
        let foreign = log(host, &other.test_key).await[0]["id"].clone();
        let foreign = foreign.as_str().expect("an id");
        let refused = host.get(&format!("{PATH}?starting_after={foreign}")).await;
        assert_eq!(refused.refused(), (400, "invalid_field"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_turned_away_or_cut_off_are_in_the_log(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let change = |config: &mut railhead::config::Config| {
        config.limits.write_per_minute = 1;
        config.server.timeout_s = 1;
    };
    with_host_configured(engine, change, async |host| {
        host.pay("paid", naira(100_000)).await.ok();
        let refused = host.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        host.advance(60);
        // Somebody else holds what the payout needs until the deadline has passed.
        let mut tx = host.app().db.write().await.expect("a transaction");
        if engine == Engine::Postgres {
            let sql = "SELECT id FROM wallets FOR UPDATE";
            sqlx::query(sql).fetch_all(tx.conn()).await.expect("locked");
        }
        let late = host.pay("paid", naira(100_000)).await;
        assert_eq!(late.refused().1, "request_timeout");
        drop(tx);
        let log = log(host, &host.merchant.test_key).await;
        let ends: Vec<_> = log.iter().map(|e| (&e["status"], e["error_code"].as_str())).collect();
        let limited = Some("rate_limit_exceeded");
        let late = Some("request_timeout");
        let expected = [(&json!(503), late), (&json!(429), limited), (&json!(201), None)];
        assert_eq!(ends, expected);
    })
    .await;
}
