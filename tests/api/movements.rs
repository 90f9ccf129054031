//! Wallets in the operator's hands: credited, debited, frozen.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::network::{Sends, with_live_host};
use crate::test_host::{Engine, naira, with, with_host};

const NOBODY: &str = "c000000000000000000000000";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_credited_and_debited_by_every_source(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let test = host.merchant.test_wallet.clone();
        let mut balance = host.balance(&test).await;
        for (verb, source, written, funds) in [
            ("credit", None, "admin_credit", true),
            ("credit", Some("admin_credit"), "admin_credit", true),
            ("credit", Some("promotional_credit"), "promotional_credit", true),
            ("credit", Some("reconciliation_adjust"), "reconciliation_adjust", true),
            ("credit", Some("demo_seed"), "demo_seed", true),
            ("debit", None, "admin_debit", false),
            ("debit", Some("admin_debit"), "admin_debit", false),
            ("debit", Some("reconciliation_adjust"), "reconciliation_adjust", false),
        ] {
            host.advance(1);
            let body = json!({ "amount_minor": "70", "source": source, "reason": "because" });
            let moved =
                host.admin(Method::POST, &format!("wallets/{test}/{verb}"), body).await.ok();
            balance += if verb == "credit" { 70 } else { -70 };
            assert_eq!(moved.json["available_balance_minor"], balance.to_string());
            let path = format!("/v1/wallets/{test}/transactions?limit=1");
            let entry = host.get(&path).await.ok().json["data"][0].clone();
            assert_eq!((&entry["source"], &entry["direction"]), (&json!(written), &json!(verb)));
            assert_eq!(
                (&entry["amount_minor"], &entry["description"]),
                (&json!("70"), &json!("because"))
            );
            let path = format!("/v1/wallets/{test}/funding_events?limit=1");
            let event = host.get(&path).await.ok().json["data"][0].clone();
            assert_eq!(event["id"] == entry["id"], funds, "{verb} {source:?}");
        }
        assert_eq!(host.get(&format!("/v1/wallets/{test}")).await.json["is_demo"], true);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_movement_that_is_none_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (test, live) = (host.merchant.test_wallet.clone(), host.merchant.live_wallet.clone());
        let before = (host.balance(&test).await, host.balance(&live).await);
        let all = i64::MAX.to_string();
        let (credit, debit, nobody) = ("credit", "debit", NOBODY.to_owned());
        for (wallet, verb, changes, status, code, field) in [
            (&test, credit, json!({ "amount_minor": null }), 400, "missing_field", "amount_minor"),
            (&test, credit, json!({ "reason": null }), 400, "missing_field", "reason"),
            (&test, credit, json!({ "reason": " " }), 400, "missing_field", "reason"),
            (&test, credit, json!({ "amount_minor": 5 }), 400, "invalid_field", "amount_minor"),
            (&test, credit, json!({ "amount_minor": "0" }), 400, "invalid_field", "amount_minor"),
            (&test, debit, json!({ "amount_minor": "-5" }), 400, "invalid_field", "amount_minor"),
            (&test, credit, json!({ "source": "admin_debit" }), 400, "invalid_field", "source"),
            (&test, credit, json!({ "source": "payout_debit" }), 400, "invalid_field", "source"),
            (&test, debit, json!({ "source": "admin_credit" }), 400, "invalid_field", "source"),
            (&test, debit, json!({ "source": "demo_seed" }), 400, "invalid_field", "source"),
            (&live, credit, json!({ "source": "demo_seed" }), 400, "invalid_field", "source"),
            (&test, debit, json!({ "amount_minor": "9999999999" }), 402, "insufficient_funds", ""),
            (&test, credit, json!({ "amount_minor": all }), 400, "invalid_amount", "amount_minor"),
            (&nobody, debit, json!({}), 404, "wallet_not_found", ""),
        ] {
            let path = format!("wallets/{wallet}/{verb}");
            let body = with(json!({ "amount_minor": "5", "reason": "x" }), changes.clone());
            let refused = host.admin(Method::POST, &path, body).await;
            assert_eq!(refused.refused(), (status, code), "{verb} {changes}");
            assert_eq!(refused.field(), field, "{verb} {changes}");
        }
        assert_eq!((host.balance(&test).await, host.balance(&live).await), before);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_wallet_takes_money_and_gives_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = host.merchant.test_wallet.clone();
        let before = host.balance(&wallet).await;
        let frozen = host.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await;
        assert_eq!(frozen.ok().json["is_frozen"], true);
        assert_eq!(host.get(&format!("/v1/wallets/{wallet}")).await.json["is_frozen"], true);
        let refused = host.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "wallet_frozen"));
        let body = json!({ "amount_minor": "5", "reason": "x" });
        let refused = host.admin(Method::POST, &format!("wallets/{wallet}/debit"), body).await;
        assert_eq!(refused.refused(), (403, "wallet_frozen"));
        host.credit(&wallet, 5).await;
        assert_eq!(host.balance(&wallet).await, before + 5);
        let path = format!("wallets/{wallet}/unfreeze");
        let thawed = host.admin(Method::POST, &path, json!({ "reason": "checked" })).await.ok();
        assert_eq!(thawed.json["is_frozen"], false);
        host.pay("paid", naira(100_000)).await.ok();
        for verb in ["freeze", "unfreeze"] {
            let path = format!("wallets/{NOBODY}/{verb}");
            let refused = host.admin(Method::POST, &path, json!({})).await;
            assert_eq!(refused.refused(), (404, "wallet_not_found"));
        }
    })
    .await;
}

/// What a credit is answered is the balance right after it, whatever came next.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_movements_is_answered_with_its_own_balance(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let (host, wallet) = (&*host, host.merchant.live_wallet.clone());
        let path = format!("wallets/{wallet}/credit");
        let credit = async |_| {
            let body = json!({ "amount_minor": "1", "reason": "a test" });
            let answer = host.admin(Method::POST, &path, body).await.ok();
            answer.json["available_balance_minor"].as_str().expect("money").to_owned()
        };
        let balances: BTreeSet<String> =
            futures::future::join_all((0..40).map(credit)).await.into_iter().collect();
        let expected: BTreeSet<String> = (1..=40).map(|n| (100_000_000 + n).to_string()).collect();
        assert_eq!(balances, expected);
        let page = format!("/v1/wallets/{wallet}/transactions?limit=100");
        let page = host.get_as(&host.merchant.live_key, &page).await.ok();
        let ids: BTreeSet<&str> = page.json["data"]
            .as_array()
            .expect("entries")
            .iter()
            .filter_map(|e| e["id"].as_str())
            .collect();
        assert_eq!(ids.len(), 41, "each entry has an id of its own");
    })
    .await;
}

/// Nobody may put in so much that sums over wallets are no numbers any more.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn absurd_amounts_are_refused_and_the_books_stay_provable(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        const MOST: &str = "1000000000000000";
        let wallet = host.merchant.test_wallet.clone();
        let fund = async |amount: &str| {
            let body = json!({ "currency": "NGN", "amount_minor": amount });
            host.post("/v1/sandbox/fund", body).await
        };
        let credit = async |amount: &str| {
            let body = json!({ "amount_minor": amount, "reason": "because" });
            host.admin(Method::POST, &format!("wallets/{wallet}/credit"), body).await
        };
        for absurd in ["9223372036854775807", "1000000000000001"] {
            for refused in [fund(absurd).await, credit(absurd).await] {
                assert_eq!(refused.refused(), (400, "invalid_amount"), "{absurd}");
                assert_eq!(refused.field(), "amount_minor");
                assert!(refused.text.contains(MOST), "{}", refused.text);
            }
        }
        for _ in 0..8 {
            fund(MOST).await.ok();
        }
        for refused in [fund(MOST).await, credit(MOST).await] {
            assert_eq!(refused.refused(), (400, "invalid_amount"), "a wallet holds no more");
        }
        host.pay("paid", naira(100_000)).await.ok();
    })
    .await;
}
