//! The sandbox: scenarios by name, and recipients that choose one by themselves.

use std::sync::Arc;

use http::Method;
use railhead::rails::Rail;
use railhead::transfers::Claimed;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::account;
use crate::network::{Sends, with_live_host};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

async fn send(host: &TestHost, key: &str, path: &str, scenario: &str) -> Answer {
    let body = match path {
        "/v1/payouts" => naira(100_000),
        _ => json!({ "currency": "NGN", "account_number": account(1), "bank_code": "058" }),
    };
    let once = unique();
    let headers = [("idempotency-key", once.as_str()), ("x-sandbox-scenario", scenario)];
    host.send(Method::POST, path, key, &headers, Some(body)).await
}

/// What is told of a payout while somebody is at it has its effect before the caller is answered.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_settles_a_payout_that_is_being_asked_about_is_answered_how_it_ended(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = host.pay("processing", naira(100_000)).await.ok().id();
        let transfers = &host.app().transfers;
        let claimed = transfers.claim(&id).await.expect("claimed");
        let Claimed::Yes(claim) = claimed else { panic!("somebody is at it") };
        let path = format!("/v1/sandbox/payouts/{id}/settle");
        let settling = host.post(&path, json!({}));
        let asking = async {
            host.until_count("SELECT COUNT(*) FROM transfers WHERE nudges > 0", 1).await;
            transfers.give_back(&claim).await;
        };
        let (settled, ()) = tokio::join!(settling, asking);
        assert_eq!(settled.ok().status_word(), "paid");
    })
    .await;
}

/// Gives every test wallet of the merchant something to pay from.
async fn fund_all(host: &TestHost) {
    let wallets = host.get("/v1/wallets").await.ok();
    for wallet in wallets.json["data"].as_array().expect("wallets") {
        host.credit(wallet["id"].as_str().expect("an id"), 100_000_000).await;
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_scenario_is_refused_with_a_test_key_and_ignored_with_a_live_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        for path in ["/v1/payouts", "/v1/name-enquiry"] {
            for wrong in ["fialed", "Failed", "paid,failed"] {
                let refused = send(host, &host.merchant.test_key, path, wrong).await;
                let told = (refused.refused(), refused.field());
                assert_eq!(told, ((400, "invalid_field"), "X-Sandbox-Scenario"), "{path} {wrong}");
                let message = refused.json["error"]["message"].as_str().expect("a message");
                assert!(message.contains("timeout_then_paid, timeout_then_failed"), "{message}");
                send(host, &host.merchant.live_key, path, wrong).await.ok();
            }
            for right in ["paid", " paid ", ""] {
                send(host, &host.merchant.test_key, path, right).await.ok();
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_recipients_that_are_listed_do_what_is_said_of_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let list = host.get("/v1/sandbox/recipients").await.ok();
        assert_eq!((&list.json["object"], &list.json["has_more"]), (&json!("list"), &json!(false)));
        let recipients = list.json["data"].as_array().expect("a list");
        let of_rail = |rail: &Arc<Rail>| {
            let chosen = rail.declaration.scenarios.as_ref().map_or(0, |it| it.values.len());
            rail.declaration.methods.len() * (1 + chosen)
        };
        let declared: usize = host.app().rails.all().iter().map(of_rail).sum();
        assert_eq!(recipients.len(), declared);
        fund_all(host).await;
        let first = json!({ "account_number": "0123456785", "bank_code": "058" });
        assert_eq!(
            (&recipients[0]["recipient"], &recipients[0]["scenario"]),
            (&first, &json!("paid"))
        );
        for recipient in recipients {
            let text = |field: &str| recipient[field].as_str().expect("a text");
            assert_eq!(text("object"), "sandbox_recipient");
            assert!(!text("description").is_empty(), "{recipient}");
            let to = json!({ "recipient": recipient["recipient"], "currency": text("currency") });
            let body = with(naira(100_000), to);
            let key = unique();
            let answer = host.pay_as(&host.merchant.test_key, &key, body).await;
            match text("scenario") {
                "unresolvable" => assert_eq!(answer.refused(), (422, "recipient_unresolvable")),
                "name_mismatch" => assert_eq!(answer.refused(), (422, "name_mismatch")),
                "provider_down" if answer.status >= 400 => {
                    assert_eq!(answer.refused(), (502, "provider_error"));
                }
                "fraud_block" => assert_eq!(answer.refused(), (422, "fraud_rule_blocked")),
                "fraud_hold" => assert_eq!(answer.ok().status_word(), "awaiting_admin_review"),
                "failed" => assert_eq!(answer.ok().status_word(), "failed"),
                "paid" => assert_eq!(answer.ok().status_word(), "paid"),
                // They go on by themselves, or when they are asked about.
                _ => drop(answer.ok()),
            }
        }
        let refused = host.get_as(&host.merchant.live_key, "/v1/sandbox/recipients").await;
        assert_eq!(refused.refused(), (400, "sandbox_only"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_readme_lists_the_recipients_of_the_sandbox(#[values(Engine::Sqlite)] engine: Engine) {
    with_host(engine, async |host| {
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        let readme = std::fs::read_to_string(readme).expect("the README");
        let list = host.get("/v1/sandbox/recipients").await.ok();
        let shown_there = ["nip", "mpesa", "fps", "ach"];
        for recipient in list.json["data"].as_array().expect("a list") {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            // The others' are on the pages of their rails.
            if !shown_there.contains(&text(&recipient["method"]).as_str()) {
                continue;
            }
            let shown = recipient["recipient"].as_object().expect("a recipient");
            let account = shown.get("account_number").or_else(|| shown.get("mobile_number"));
            let account = text(account.expect("an account"));
            let scenario = text(&recipient["scenario"]);
            let row = match scenario.split_once('_') {
                // By their codes.
                Some(("return" | "correction", _)) => format!("`{}NN`", &account[..8]),
                _ => format!("| `{account}` | `{scenario}` |"),
            };
            assert!(readme.contains(&row), "README.md has no row {row}");
        }
    })
    .await;
}
