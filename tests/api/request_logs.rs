//! Requests: what became of them, for their owner, for as long as they are kept.

use std::time::Duration;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use railhead::id::RequestId;

use crate::packs::restart;
use crate::test_host::{
    Answer, Engine, TestHost, config, naira, with, with_host, with_host_configured,
};

const PATH: &str = "/v1/request_logs";
const WRITTEN: &str = "SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM request_logs";

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
        // A method that nobody knows may be as long as a whole head.
        let odd = Method::from_bytes("X".repeat(5_000).as_bytes()).expect("a method");
        host.send(odd, "/v1/payouts", &key, &[], None).await;
        assert_eq!(log(host, &key).await[0]["method"], "other");
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
        config.server.timeout_s = 3;
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

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_known_after_a_restart_and_on_another_host(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        // More than are written at once.
        for number in 0..600 {
            host.get(&format!("/v1/payouts/c{number}")).await;
        }
        let before = log(host, &key).await;
        assert_eq!(before.len(), 50);
        restart(host, |_| {}).await;
        assert_eq!(log(host, &key).await, before);
        assert_eq!(host.count(WRITTEN).await, 600);
        host.advance(1);
        host.get("/v1/wallets").await.ok();
        host.until_count(WRITTEN, 601).await;
        if engine == Engine::Postgres {
            // Two hosts on one database tell the same.
            let mut other = config(&host.database);
            other.data.dir = crate::test_host::data_folder(&host.database, "second");
            let sources = railhead::start::Sources {
                clock: host.clock.clone(),
                ids: railhead::id::IdGenerator::seeded(host.clock.clone(), 7),
            };
            let second = railhead::start::start(other, sources).await.expect("a host");
            let url = format!("http://{}{PATH}", second.address);
            let answer = host.client.get(url).bearer_auth(&key).send().await.expect("an answer");
            let answer = Answer::of(answer).await.ok();
            assert_eq!(answer.json["data"][0]["path"], "/v1/wallets");
            second.stop().await.expect("stopped in order");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_filtered_by_status(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        host.get("/v1/wallets").await.ok();
        host.get("/v1/nowhere").await;
        host.get("/v1/payouts?limit=0").await;
        // Whether they were written or not.
        for _ in 0..2 {
            for (filter, wanted) in [
                ("2xx", vec!["/v1/wallets"]),
                ("4xx", vec!["/v1/payouts", "/v1/nowhere"]),
                ("404", vec!["/v1/nowhere"]),
                ("5xx", vec![]),
            ] {
                let shown = host.get(&format!("{PATH}?status={filter}")).await.ok();
                let shown = shown.json["data"].as_array().expect("requests").clone();
                assert_eq!(paths(&shown), wanted, "{filter}");
            }
            host.until_count(WRITTEN, 3).await;
        }
        for filter in ["3xx", "99", "600", "ok", ""] {
            let refused = host.get(&format!("{PATH}?status={filter}")).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_filter"), "status"));
        }
    })
    .await;
}

/// Thirteen months and a little: what is older is gone, a month at a time where a database has
/// tables for them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_old_is_forgotten(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        host.get("/v1/wallets").await.ok();
        host.until_count(WRITTEN, 1).await;
        let months = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = \
                      CAST('request_logs' AS regclass)";
        if engine == Engine::Postgres {
            // This month and the next, and one for what is in none of them.
            host.until_count(months, 3).await;
            host.until_count("SELECT COUNT(*) FROM request_logs_2026_11", 1).await;
        }
        host.advance(400 * 86_400);
        host.get("/v1/balances").await.ok();
        host.until_count(WRITTEN, 2).await;
        restart(host, |config| config.retention.request_log_days = 401).await;
        assert_eq!(paths(&log(host, &key).await), ["/v1/balances", "/v1/wallets"]);
        // The 26th of December of next year; what is left of November goes with its last day.
        restart(host, |config| config.retention.request_log_days = 360).await;
        host.until_count(WRITTEN, 1).await;
        assert_eq!(paths(&log(host, &key).await), ["/v1/balances"]);
        if engine == Engine::Postgres {
            // What came before its month had a table is in it now.
            host.until_count("SELECT COUNT(*) FROM request_logs_2027_12", 1).await;
            assert_eq!(host.count("SELECT COUNT(*) FROM request_logs_other").await, 0);
        }
    })
    .await;
}

/// Two hosts write what they answered within the same seconds: pages go through both.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_two_hosts_wrote_is_paged_in_one_order(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let owner = format!("{}/test", host.merchant.id);
        let now = host.app().now();
        let id = |number: u64| RequestId::first_at(now.after(Duration::from_millis(9 * number)));
        let mut inserts = Vec::new();
        for (first, which) in (0..20).flat_map(|chunk| [(40 * chunk, 0), (40 * chunk, 1)]) {
            // Every other one of forty.
            let numbers = (first..first + 40).filter(|number| number % 2 == which);
            let ids: Vec<RequestId> = numbers.clone().map(id).collect();
            let status = |number: u64| if number.is_multiple_of(5) { 404 } else { 200 };
            let requests: Vec<Value> = numbers
                .zip(&ids)
                .map(|(number, id)| {
                    json!([id, "GET", "/v1/wallets", status(number), 1, "sk_test_ab12", null, 0])
                })
                .collect();
            inserts.push(format!(
                "INSERT INTO request_logs (owner, id, first_id, statuses, count, requests, \
                 created_at) VALUES ('{owner}', '{}', '{}', ',200,404,', {}, '{}', 0)",
                ids[ids.len() - 1],
                ids[0],
                ids.len(),
                Value::from(requests),
            ));
        }
        host.run(&inserts).await;
        for (filter, wanted) in [("", 800), ("&status=4xx", 160), ("&status=5xx", 0)] {
            let (mut seen, mut after): (Vec<String>, String) = (Vec::new(), String::new());
            loop {
                let page = host.get(&format!("{PATH}?limit=7{filter}{after}")).await.ok();
                let entries = page.json["data"].as_array().expect("requests");
                seen.extend(
                    entries.iter().map(|entry| entry["id"].as_str().expect("an id").into()),
                );
                if page.json["has_more"] == false {
                    break;
                }
                assert_eq!(entries.len(), 7);
                after = format!("&starting_after={}", seen[seen.len() - 1]);
            }
            assert!(seen.is_sorted_by(|newer, older| newer > older), "{filter}");
            assert_eq!(seen.len(), wanted, "{filter}");
        }
    })
    .await;
}
