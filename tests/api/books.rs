//! What a wallet shows: entries in order with their running balance, balances, what came in.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, TestHost, naira, with_host};

/// Entries of the test wallet, newest first.
async fn entries(host: &TestHost, query: &str) -> Vec<Value> {
    let path = format!("/v1/wallets/{}/transactions?{query}", host.merchant.test_wallet);
    list(&host.get(&path).await.ok())
}

fn list(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.json["object"], "list");
    answer.json["data"].as_array().expect("a list").clone()
}

/// Source, direction, amount and balance afterwards of an entry.
fn line(entry: &Value) -> (&str, &str, &str, &str) {
    let text = |name: &str| entry[name].as_str().expect("a string");
    (text("source"), text("direction"), text("amount_minor"), text("balance_after_minor"))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_debits_principal_then_fee_then_stamp_duty(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payout = host.pay("paid", naira(1_000_000)).await.ok();
        let all = entries(host, "").await;
        let lines: Vec<_> = all.iter().rev().map(line).collect();
        assert_eq!(
            lines,
            [
                ("admin_credit", "credit", "100000000", "100000000"),
                ("payout_debit", "debit", "1000000", "99000000"),
                ("payout_fee", "debit", "2688", "98997312"),
                ("stamp_duty_collected", "debit", "5000", "98992312"),
            ]
        );
        assert_eq!(payout.json["total_debit_minor"], "1007688");
        for entry in &all[..3] {
            assert_eq!(entry["object"], "wallet_transaction");
            assert_eq!(entry["currency"], "NGN");
            assert_eq!(entry["source_ref_type"], "Payout");
            assert_eq!(entry["source_ref_id"], payout.id());
            assert_eq!(entry["created_at"], "2026-11-21T09:00:00.000Z");
            assert!(entry["description"].as_str().is_some_and(|text| !text.is_empty()));
            assert!(entry.get("sender").is_none());
        }
        let numbers: Vec<_> = all.iter().filter_map(|e| e["sequence"].as_i64()).collect();
        assert_eq!(numbers, [4, 3, 2, 1]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn below_the_threshold_there_is_no_stamp_duty(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.pay("paid", naira(999_999)).await.ok();
        let all = entries(host, "").await;
        let sources: Vec<_> = all.iter().map(|entry| line(entry).0).collect();
        assert_eq!(sources, ["payout_fee", "payout_debit", "admin_credit"]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reversal_gives_every_part_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("failed", "reversed")] how: &str,
) {
    with_host(engine, async |host| {
        let scenario = if how == "failed" { "failed" } else { "paid" };
        let id = host.pay(scenario, naira(1_000_000)).await.ok().id();
        if how == "reversed" {
            let path = format!("/v1/sandbox/payouts/{id}/return");
            host.post(&path, json!({})).await.ok();
        }
        let payout = host.until(&host.merchant.test_key, &id, how).await;
        let all = entries(host, "").await;
        let lines: Vec<_> = all.iter().rev().map(line).skip(4).collect();
        assert_eq!(
            lines,
            [
                ("payout_reversal", "credit", "1000000", "99992312"),
                ("payout_reversal", "credit", "5000", "99997312"),
                ("payout_fee_reversal", "credit", "2688", "100000000"),
            ]
        );
        assert!(all[..3].iter().all(|entry| entry["source_ref_id"] == id.as_str()));
        assert!(!payout.json["failure_code"].is_null());
        let funded = format!("/v1/wallets/{}/funding_events", host.merchant.test_wallet);
        assert_eq!(list(&host.get(&funded).await.ok()).len(), 1, "a reversal is no funding");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn money_on_its_way_out_is_shown_until_it_arrives(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = host.merchant.test_wallet.clone();
        let check = async |available: &str, out: &str| {
            let one = host.get(&format!("/v1/wallets/{wallet}")).await.ok().json;
            let balance = host.get(&format!("/v1/wallets/{wallet}/balance")).await.ok().json;
            let all = host.get("/v1/balances").await.ok().json;
            let listed = host.get("/v1/wallets").await.ok().json;
            let within = |list: &Value, id: &str| {
                let items = list["data"].as_array().expect("a list").clone();
                items.into_iter().find(|item| item[id] == wallet.as_str()).expect("the wallet")
            };
            for (shown, object) in [
                (&one, "wallet"),
                (&within(&listed, "id"), "wallet"),
                (&balance, "wallet_balance"),
                (&within(&all, "wallet_id"), "balance"),
            ] {
                assert_eq!(shown["object"], object);
                assert_eq!(shown["available_balance_minor"], available);
                assert_eq!(shown["pending_out_minor"], out);
                assert_eq!((&shown["currency"], &shown["env"]), (&json!("NGN"), &json!("test")));
            }
            assert!(one.get("is_demo").is_some() && within(&listed, "id").get("is_demo").is_none());
            assert_eq!(balance["fetched_at"], "2026-11-21T09:00:00.000Z");
        };
        check("100000000", "0").await;
        let paid = host.pay("processing", naira(100_000)).await.ok().id();
        let failed = host.pay("processing", naira(100_000)).await.ok().id();
        check("99797850", "202150").await;
        host.post(&format!("/v1/sandbox/payouts/{paid}/settle"), json!({})).await.ok();
        check("99797850", "101075").await;
        host.post(&format!("/v1/sandbox/payouts/{failed}/fail"), json!({})).await.ok();
        check("99898925", "0").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_came_in_is_a_funding_event(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = host.merchant.test_wallet.clone();
        for (way, source, amount) in [
            ("credit", "promotional_credit", "1"),
            ("credit", "reconciliation_adjust", "20"),
            ("debit", "reconciliation_adjust", "3"),
            ("debit", "admin_debit", "400"),
            ("credit", "demo_seed", "5000"),
        ] {
            let body = json!({ "amount_minor": amount, "source": source, "reason": "a test" });
            host.admin(Method::POST, &format!("wallets/{wallet}/{way}"), body).await.ok();
        }
        let fund = json!({ "currency": "NGN", "amount_minor": "60000" });
        host.post("/v1/sandbox/fund", fund).await.ok();
        host.pay("failed", naira(100_000)).await.ok();

        let path = format!("/v1/wallets/{wallet}/funding_events");
        let events = list(&host.get(&path).await.ok());
        let lines: Vec<_> = events.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                ("demo_self_fund", "credit", "60000", "100064618"),
                ("demo_seed", "credit", "5000", "100004618"),
                ("reconciliation_adjust", "credit", "20", "100000021"),
                ("promotional_credit", "credit", "1", "100000001"),
                ("admin_credit", "credit", "100000000", "100000000"),
            ]
        );
        for event in &events {
            assert_eq!(event["object"], "wallet_funding_event");
            assert!(event.get("sender").is_some_and(Value::is_null));
        }
        let told = list(&host.get("/v1/events?type=wallet_funded").await.ok());
        assert_eq!(told.len(), 5);
        assert_eq!(told[0]["data"]["source"], "demo_self_fund");
        assert_eq!(told[0]["data"]["amount_minor"], "60000");
        let first = list(&host.get(&format!("{path}?limit=2")).await.ok());
        let cursor = first[1]["id"].as_str().expect("an id");
        let rest = list(&host.get(&format!("{path}?starting_after={cursor}")).await.ok());
        assert_eq!([first, rest].concat(), events);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_cannot_overdraw_a_wallet(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("wallets/{}/debit", host.merchant.test_wallet);
        let debit = |amount: &str| json!({ "amount_minor": amount, "reason": "a test" });
        let refused = host.admin(Method::POST, &path, debit("100000001")).await;
        assert_eq!(refused.refused(), (402, "insufficient_funds"));
        host.admin(Method::POST, &path, debit("100000000")).await.ok();
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 0);
        assert_eq!(host.pay("paid", naira(100)).await.refused(), (402, "insufficient_funds"));
    })
    .await;
}
