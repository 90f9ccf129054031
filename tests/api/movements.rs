//! Wallets in the operator's hands: credited, debited, frozen.

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::yard::{Engine, in_yard, naira, with};

const NOBODY: &str = "c000000000000000000000000";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_is_credited_and_debited_by_every_source(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        let test = yard.merchant.test_wallet.clone();
        let mut balance = yard.balance(&test).await;
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
            yard.advance(1);
            let body = json!({ "amount_minor": "70", "source": source, "reason": "because" });
            let moved =
                yard.admin(Method::POST, &format!("wallets/{test}/{verb}"), body).await.ok();
            balance += if verb == "credit" { 70 } else { -70 };
            assert_eq!(moved.json["available_balance_minor"], balance.to_string());
            let path = format!("/v1/wallets/{test}/transactions?limit=1");
            let entry = yard.get(&path).await.ok().json["data"][0].clone();
            assert_eq!((&entry["source"], &entry["direction"]), (&json!(written), &json!(verb)));
            assert_eq!(
                (&entry["amount_minor"], &entry["description"]),
                (&json!("70"), &json!("because"))
            );
            let path = format!("/v1/wallets/{test}/funding_events?limit=1");
            let event = yard.get(&path).await.ok().json["data"][0].clone();
            assert_eq!(event["id"] == entry["id"], funds, "{verb} {source:?}");
        }
        assert_eq!(yard.get(&format!("/v1/wallets/{test}")).await.json["is_demo"], true);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_movement_that_is_none_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        let (test, live) = (yard.merchant.test_wallet.clone(), yard.merchant.live_wallet.clone());
        let before = (yard.balance(&test).await, yard.balance(&live).await);
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
            (&test, credit, json!({ "amount_minor": all }), 400, "invalid_amount", ""),
            (&nobody, debit, json!({}), 404, "wallet_not_found", ""),
        ] {
            let path = format!("wallets/{wallet}/{verb}");
            let body = with(json!({ "amount_minor": "5", "reason": "x" }), changes.clone());
            let refused = yard.admin(Method::POST, &path, body).await;
            assert_eq!(refused.refused(), (status, code), "{verb} {changes}");
            assert_eq!(refused.field(), field, "{verb} {changes}");
        }
        assert_eq!((yard.balance(&test).await, yard.balance(&live).await), before);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_wallet_takes_money_and_gives_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        let wallet = yard.merchant.test_wallet.clone();
        let before = yard.balance(&wallet).await;
        let frozen = yard.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await;
        assert_eq!(frozen.ok().json["is_frozen"], true);
        assert_eq!(yard.get(&format!("/v1/wallets/{wallet}")).await.json["is_frozen"], true);
        let refused = yard.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "wallet_frozen"));
        let body = json!({ "amount_minor": "5", "reason": "x" });
        let refused = yard.admin(Method::POST, &format!("wallets/{wallet}/debit"), body).await;
        assert_eq!(refused.refused(), (403, "wallet_frozen"));
        yard.credit(&wallet, 5).await;
        assert_eq!(yard.balance(&wallet).await, before + 5);
        let path = format!("wallets/{wallet}/unfreeze");
        let thawed = yard.admin(Method::POST, &path, json!({ "reason": "checked" })).await.ok();
        assert_eq!(thawed.json["is_frozen"], false);
        yard.pay("paid", naira(100_000)).await.ok();
        for verb in ["freeze", "unfreeze"] {
            let path = format!("wallets/{NOBODY}/{verb}");
            let refused = yard.admin(Method::POST, &path, json!({})).await;
            assert_eq!(refused.refused(), (404, "wallet_not_found"));
        }
    })
    .await;
}
