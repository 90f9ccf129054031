//! Test and live never mix, and what is somebody else's does not exist.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Engine, Merchant, TestHost, naira, unique, with, with_host};

/// An id that has the shape of one and was never given out.
const NOBODY: &str = "c000000000000000000000000";

/// One object of each kind that belongs to the test host's merchant, in test.
struct Things {
    payout: String,
    reference: String,
    beneficiary: String,
    wallet: String,
    entry: String,
    funding: String,
    event: String,
}

/// Makes a payout, and finds what came with it.
async fn things(host: &TestHost) -> Things {
    let payout = host.pay("processing", naira(100_000)).await.ok();
    let wallet = host.merchant.test_wallet.clone();
    let first = async |path: &str| {
        let list = host.get(path).await.ok();
        list.json["data"][0]["id"].as_str().unwrap_or_else(|| panic!("{path} is empty")).to_owned()
    };
    Things {
        payout: payout.id(),
        reference: payout.json["reference"].as_str().expect("a reference").to_owned(),
        beneficiary: first("/v1/beneficiaries").await,
        entry: first(&format!("/v1/wallets/{wallet}/transactions")).await,
        funding: first(&format!("/v1/wallets/{wallet}/funding_events")).await,
        event: first("/v1/events").await,
        wallet,
    }
}

/// Every call that names an object by its id, with the id that belongs there.
fn calls(things: &Things) -> Vec<(Method, &'static str, &str, Value)> {
    let Things { payout, reference, beneficiary, wallet, .. } = things;
    let reason = json!({ "reason": "not mine" });
    vec![
        (Method::GET, "/v1/payouts/{}", payout, Value::Null),
        (Method::GET, "/v1/payouts/{}", reference, Value::Null),
        (Method::GET, "/v1/payouts/{}/timeline", payout, Value::Null),
        (Method::POST, "/v1/payouts/{}/requery", payout, Value::Null),
        (Method::POST, "/v1/payouts/{}/cancel", payout, reason.clone()),
        (Method::POST, "/v1/payouts/{}/cancel", reference, reason.clone()),
        (Method::GET, "/v1/beneficiaries/{}", beneficiary, Value::Null),
        (Method::PATCH, "/v1/beneficiaries/{}", beneficiary, json!({ "name": "Mine Now" })),
        (Method::DELETE, "/v1/beneficiaries/{}", beneficiary, reason),
        (Method::GET, "/v1/wallets/{}", wallet, Value::Null),
        (Method::GET, "/v1/wallets/{}/balance", wallet, Value::Null),
        (Method::GET, "/v1/wallets/{}/transactions", wallet, Value::Null),
        (Method::GET, "/v1/wallets/{}/funding_events", wallet, Value::Null),
    ]
}

/// Keys that must not see what the test host's merchant has in test.
fn strangers(host: &TestHost, other: &Merchant) -> Vec<(&'static str, String)> {
    vec![
        ("the same merchant's live key", host.merchant.live_key.clone()),
        ("another merchant's test key", other.test_key.clone()),
        ("another merchant's live key", other.live_key.clone()),
    ]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_somebody_elses_answers_like_what_is_not_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let things = things(host).await;
        let paths = ["/v1/payouts", "/v1/beneficiaries", "/v1/wallets", "/v1/balances"];
        let mut before = Vec::new();
        for path in paths {
            before.push(host.get(path).await.ok().json);
        }
        for (who, key) in strangers(host, &other) {
            for (method, path, id, body) in calls(&things) {
                let body = Some(body).filter(|body| !body.is_null());
                let ask = async |id: &str| {
                    let path = path.replace("{}", id);
                    host.send(method.clone(), &path, &key, &[], body.clone()).await
                };
                let (theirs, nobodys) = (ask(id).await, ask(NOBODY).await);
                assert_eq!(theirs.status, 404, "{who} {method} {path}: {}", theirs.text);
                assert_eq!(theirs.json["error"]["type"], "not_found_error");
                assert_eq!(theirs.json, nobodys.json, "{who} {method} {path}");
            }
        }
        for (path, before) in paths.iter().zip(before) {
            assert_eq!(host.get(path).await.ok().json, before, "{path} was touched");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_let_in_by_every_one_of_those_calls(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let things = things(host).await;
        let key = host.merchant.test_key.clone();
        for (method, path, id, body) in calls(&things) {
            let body = Some(body).filter(|body| !body.is_null());
            let answer = host.send(method, &path.replace("{}", id), &key, &[], body).await;
            match path {
                "/v1/payouts/{}/cancel" => {
                    assert_eq!(answer.refused(), (409, "payout_not_cancellable"));
                }
                _ => {
                    answer.ok();
                }
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_somebody_elses_list_is_unknown(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let things = things(host).await;
        let own = |wallet: &str, list: &str| format!("/v1/wallets/{wallet}/{list}");
        for (who, key, wallet) in [
            ("live", &host.merchant.live_key, &host.merchant.live_wallet),
            ("other", &other.test_key, &other.test_wallet),
        ] {
            for (list, id) in [
                ("/v1/payouts".to_owned(), &things.payout),
                ("/v1/payouts".to_owned(), &things.reference),
                ("/v1/beneficiaries".to_owned(), &things.beneficiary),
                ("/v1/events".to_owned(), &things.event),
                (own(wallet, "transactions"), &things.entry),
                (own(wallet, "funding_events"), &things.funding),
            ] {
                let answer = host.get_as(key, &format!("{list}?starting_after={id}")).await;
                assert_eq!(answer.refused(), (400, "invalid_field"), "{who} {list}");
                assert_eq!(answer.field(), "starting_after");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn lists_hold_ones_own_and_nothing_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        things(host).await;
        for (who, key) in strangers(host, &other) {
            for path in ["/v1/payouts", "/v1/beneficiaries", "/v1/beneficiaries?q=012345"] {
                let list = host.get_as(&key, path).await.ok();
                let empty = json!({ "object": "list", "has_more": false, "data": [] });
                assert_eq!(list.json, empty, "{who} {path}");
            }
            let events = host.get_as(&key, "/v1/events").await.ok();
            let events = events.json["data"].as_array().expect("events").clone();
            assert!(events.iter().all(|event| event["event"] == "wallet_funded"), "{who}");
            assert_eq!(events.len(), 1, "{who}");
            let wallets = host.get_as(&key, "/v1/wallets").await.ok();
            let balances = host.get_as(&key, "/v1/balances").await.ok();
            let env = if key.starts_with("sk_live_") { "live" } else { "test" };
            for row in wallets.json["data"].as_array().expect("wallets") {
                assert_eq!(row["env"], env, "{who}");
                assert_ne!(row["id"], host.merchant.test_wallet, "{who}");
            }
            for row in balances.json["data"].as_array().expect("balances") {
                assert_eq!(row["env"], env, "{who}");
                assert_ne!(row["wallet_id"], host.merchant.test_wallet, "{who}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_cannot_draw_on_what_is_somebody_elses(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let things = things(host).await;
        let balances = async || {
            let mut all = Vec::new();
            for wallet in [&host.merchant.test_wallet, &other.test_wallet, &other.live_wallet] {
                all.push(host.balance(wallet).await);
            }
            all
        };
        let before = balances().await;
        for (who, key) in strangers(host, &other) {
            for (field, id, status, code) in [
                ("wallet_id", things.wallet.as_str(), 422, "wallet_not_found"),
                ("wallet_id", NOBODY, 422, "wallet_not_found"),
                ("beneficiary_id", things.beneficiary.as_str(), 404, "beneficiary_not_found"),
                ("beneficiary_id", NOBODY, 404, "beneficiary_not_found"),
            ] {
                let body = with(naira(100_000), json!({ field: id }));
                let answer = host.pay_as(&key, &unique(), body).await;
                assert_eq!(answer.refused(), (status, code), "{who} {field}");
                assert_eq!(answer.field(), field, "{who}");
            }
        }
        assert_eq!(balances().await, before);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_references_are_ones_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let key = unique();
        let body = with(naira(100_000), json!({ "merchant_reference": "salary-1" }));
        let ours = host.pay_as(&host.merchant.test_key, &key, body.clone()).await.ok();
        let theirs = host.pay_as(&other.test_key, &key, body.clone()).await.ok();
        assert_ne!(ours.id(), theirs.id());
        assert!(!theirs.headers.contains_key("idempotent-replayed"));
        // In live the key is as good as new: it is the missing bank that refuses, not the key.
        let live = host.pay_as(&host.merchant.live_key, &key, body.clone()).await;
        assert_eq!(live.refused(), (503, "rail_not_configured"));
        let second = host.new_key(&host.merchant.id, json!({ "env": "test" })).await;
        let again = host.pay_as(&second, &key, body).await.ok();
        assert_eq!(
            (again.id(), &again.headers["idempotent-replayed"]),
            (ours.id(), &"true".into())
        );
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_is_for_test_keys_and_ones_own_payouts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let payout = things(host).await.payout;
        let fund = json!({ "currency": "NGN", "amount_minor": "500" });
        let live = host.merchant.live_key.clone();
        for id in [payout.as_str(), NOBODY] {
            for step in ["settle", "fail", "return"] {
                let path = format!("/v1/sandbox/payouts/{id}/{step}");
                let ask = async |key: &str| {
                    host.send(Method::POST, &path, key, &[], Some(json!({}))).await
                };
                assert_eq!(ask(&live).await.refused(), (400, "sandbox_only"), "{step}");
                let theirs = ask(&other.test_key).await;
                assert_eq!(theirs.refused(), (404, "payout_not_found"), "{step}");
            }
        }
        let path = "/v1/sandbox/fund";
        let refused = host.send(Method::POST, path, &live, &[], Some(fund.clone())).await;
        assert_eq!(refused.refused(), (400, "sandbox_only"));
        let live_before = host.balance(&host.merchant.live_wallet).await;
        let before = host.balance(&host.merchant.test_wallet).await;
        host.post(path, fund).await.ok();
        assert_eq!(host.balance(&host.merchant.test_wallet).await, before + 500);
        assert_eq!(host.balance(&host.merchant.live_wallet).await, live_before);
        let payout = host.get(&format!("/v1/payouts/{payout}")).await;
        assert_eq!(payout.status_word(), "processing");
    })
    .await;
}
