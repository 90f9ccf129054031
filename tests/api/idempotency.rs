//! A request that is repeated is carried out once, and answered the same every time.

use futures::future::join_all;
use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::network::{Sends, with_live_host, with_two_hosts};
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host};

/// Fee and tax of the small payouts here.
const CHARGES: i64 = 1_075;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn twenty_requests_with_one_key_make_one_payout(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::Yes, async |host| {
        for (key, wallet) in keys_and_wallets(host) {
            let once = unique();
            let requests = (0..20).map(|_| host.pay_as(&key, &once, naira(100_000)));
            all_are_one(&join_all(requests).await);
            assert_eq!(host.balance(&wallet).await, 100_000_000 - 100_000 - CHARGES);
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 2);
        assert_eq!(host.count("SELECT COUNT(*) FROM idempotency_keys").await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_agree_on_one_payout_for_one_key() {
    with_two_hosts(Sends::Yes, async |host, beside| {
        for (key, wallet) in keys_and_wallets(host) {
            for round in 1..=3 {
                let once = unique();
                let hosts = [&*host, beside].into_iter().cycle().take(20);
                let requests = hosts.map(|one| one.pay_as(&key, &once, naira(100_000)));
                all_are_one(&join_all(requests).await);
                let spent = round * (100_000 + CHARGES);
                assert_eq!(host.balance(&wallet).await, 100_000_000 - spent);
            }
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 6);
    })
    .await;
}

/// All are the same success, and all but one say that they were given before.
fn all_are_one(answers: &[Answer]) {
    let first = &answers[0];
    for answer in answers {
        assert_eq!((answer.status, &answer.text), (201, &first.text));
    }
    let fresh = answers.iter().filter(|a| !a.headers.contains_key("idempotent-replayed")).count();
    assert_eq!(fresh, 1);
}

fn keys_and_wallets(host: &TestHost) -> [(String, String); 2] {
    let merchant = host.merchant.clone();
    [(merchant.test_key, merchant.test_wallet), (merchant.live_key, merchant.live_wallet)]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_one_body(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let (key, once) = (host.merchant.test_key.clone(), unique());
        let body = with(naira(100_000), json!({ "narration": "rent" }));
        let first = host.pay_as(&key, &once, body.clone()).await.ok();
        let other = |account: &str, bank: &str| {
            json!({ "recipient": { "account_number": account, "bank_code": bank } })
        };
        for (changes, code) in [
            (json!({ "narration": "rents" }), "idempotency_key_conflict"),
            (json!({ "narration": null }), "idempotency_key_conflict"),
            (json!({ "merchant_reference": "r-1" }), "idempotency_key_conflict"),
            (json!({ "allow_duplicate": false }), "idempotency_key_conflict"),
            (json!({ "unknown_to_us": 1 }), "idempotency_key_conflict"),
            (json!({ "amount_minor": "100001" }), "idempotency_conflict"),
            (json!({ "amount_minor": "0" }), "idempotency_conflict"),
            (json!({ "amount_minor": null }), "idempotency_conflict"),
            (json!({ "amount_minor": "900000000" }), "idempotency_conflict"),
            (json!({ "currency": "GBP" }), "idempotency_conflict"),
            (other("0123456785", "011"), "idempotency_conflict"),
            (other("0123456784", "058"), "idempotency_conflict"),
            (json!({ "recipient": null }), "idempotency_conflict"),
        ] {
            let refused = host.pay_as(&key, &once, with(body.clone(), changes.clone())).await;
            assert_eq!(refused.refused(), (409, code), "{changes}");
        }
        let again = host.pay_as(&key, &once, body).await.ok();
        assert_eq!(again.text, first.text);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_merchant_one_world_and_one_call(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let (once, other) = (unique(), host.new_merchant("Other").await);
        let mut ids = Vec::new();
        for (key, amount) in [
            (&host.merchant.test_key, 100_000),
            (&host.merchant.live_key, 100_001),
            (&other.test_key, 100_002),
            (&other.live_key, 100_003),
        ] {
            let payout = host.pay_as(key, &once, naira(amount)).await.ok();
            assert!(!payout.headers.contains_key("idempotent-replayed"));
            ids.push(payout.id());
        }
        let fellow = host.new_key(&host.merchant.id, json!({ "env": "test" })).await;
        let replayed = host.pay_as(&fellow, &once, naira(100_000)).await.ok();
        assert_eq!(replayed.id(), ids[0], "a second key of the same merchant is the same caller");
        let body = json!({ "currency": "NGN", "name": "Ada", "account_number": "0123456785",
            "bank_code": "058" });
        let headers = [("idempotency-key", once.as_str())];
        let path = "/v1/beneficiaries";
        host.send(Method::POST, path, &host.merchant.test_key, &headers, Some(body)).await.ok();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_leaves_the_key_free(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let (key, wallet) = (host.merchant.test_key.clone(), host.merchant.test_wallet.clone());
        let once = unique();
        let refused = host.pay_as(&key, &once, naira(150_000_000)).await;
        assert_eq!(refused.refused(), (402, "insufficient_funds"));
        host.credit(&wallet, 60_000_000).await;
        let payout = host.pay_as(&key, &once, naira(150_000_000)).await.ok();
        assert!(!payout.headers.contains_key("idempotent-replayed"));

        let once = unique();
        let freeze = format!("wallets/{wallet}/freeze");
        host.admin(Method::POST, &freeze, json!({})).await.ok();
        let refused = host.pay_as(&key, &once, naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "wallet_frozen"));
        host.admin(Method::POST, &format!("wallets/{wallet}/unfreeze"), json!({})).await.ok();
        let refused = host.pay_as(&key, &once, naira(0)).await;
        assert_eq!(refused.refused(), (400, "invalid_field"));
        for (scenario, status, code) in
            [("provider_down", 502, "provider_error"), ("fraud_block", 422, "fraud_rule_blocked")]
        {
            let headers = [("idempotency-key", once.as_str()), ("x-sandbox-scenario", scenario)];
            let body = Some(naira(100_000));
            let refused = host.send(Method::POST, "/v1/payouts", &key, &headers, body).await;
            assert_eq!(refused.refused(), (status, code));
        }
        host.pay_as(&key, &once, naira(100_000)).await.ok();
        assert_eq!(host.count("SELECT COUNT(*) FROM idempotency_keys").await, 2);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 2);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn how_a_body_is_written_does_not_matter(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let once = unique();
        let texts = [
            r#"{"amount_minor":"100000","currency":"NGN","narration":"Adé & Co",
                "recipient":{"account_number":"0123456785","bank_code":"058"}}"#,
            r#"{"recipient":{"bank_code":"058","account_number":"0123456785"},
                "narration":"Ad\u00e9 \u0026 Co","currency":"NGN","amount_minor":"100000"}"#,
            "\n{ \"currency\" : \"NGN\",\t\"amount_minor\" : \"100000\", \"recipient\":\r\n\
             { \"account_number\" : \"0123456785\", \"bank_code\" : \"058\" },\
             \"narration\" : \"Adé & Co\" }\n",
        ];
        let mut answers = Vec::new();
        for text in texts {
            let request = host.client.post(format!("{}/v1/payouts", host.base));
            let request = request.bearer_auth(&host.merchant.test_key);
            let request = request.header("idempotency-key", &once).body(text);
            let request = request.header("content-type", "application/json");
            answers.push(Answer::of(request.send().await.expect("an answer")).await.ok());
        }
        all_are_one(&answers);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_first_answer_whatever_happened_since(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (key, once) = (host.merchant.test_key.clone(), unique());
        let first = host.pay_as(&key, &once, naira(100_000)).await.ok();
        let id = first.id();
        let beneficiary = first.json["beneficiary_id"].as_str().expect("an id").to_owned();
        let limits = json!({ "limits": { "NGN": { "per_transaction_minor": "1" } } });
        let changes: [(Method, String, &str, Value); 5] = [
            (
                Method::POST,
                format!("/admin/v1/payouts/{id}/reverse"),
                OPERATOR_TOKEN,
                json!({ "reason": "sent twice" }),
            ),
            (Method::DELETE, format!("/v1/beneficiaries/{beneficiary}"), &key, json!({})),
            (
                Method::POST,
                format!("/admin/v1/wallets/{}/freeze", host.merchant.test_wallet),
                OPERATOR_TOKEN,
                json!({}),
            ),
            (
                Method::PATCH,
                format!("/admin/v1/merchants/{}", host.merchant.id),
                OPERATOR_TOKEN,
                limits,
            ),
            (
                Method::POST,
                "/admin/v1/blacklist".into(),
                OPERATOR_TOKEN,
                json!({ "scope": "platform", "currency": "NGN", "bank_code": "058",
                    "account_number": "0123456785", "reason": "test" }),
            ),
        ];
        for (method, path, token, body) in changes {
            host.send(method, &path, token, &[], Some(body)).await.ok();
            host.advance(86_400);
            let again = host.pay_as(&key, &once, naira(100_000)).await;
            assert_eq!((again.status, &again.text), (201, &first.text), "{path}");
            assert_eq!(again.headers["idempotent-replayed"], "true");
            assert_ne!(again.headers["x-request-id"], first.headers["x-request-id"]);
        }
        assert_eq!(host.get(&format!("/v1/payouts/{id}")).await.status_word(), "reversed");
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_have_up_to_255_printable_characters(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        for good in ["k".repeat(255), "~!@#$%^&*()_+ `'\"/".to_owned(), "0".to_owned()] {
            let first = host.pay_as(&key, &good, naira(100_000)).await.ok();
            let again = host.pay_as(&key, &good, naira(100_000)).await.ok();
            assert_eq!(first.text, again.text, "{good}");
        }
        for bad in ["k".repeat(256), "clé".to_owned(), "a\tb".to_owned(), String::new()] {
            let refused = host.pay_as(&key, &bad, naira(100_000)).await;
            let (status, code) = refused.refused();
            let named = matches!(code, "invalid_field" | "idempotency_key_required");
            assert!(status == 400 && named, "{bad:?}: {status} {code}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 3);
    })
    .await;
}

/// Under its key stands how a payout began, and a repeat's answer is rendered from the payout:
/// whoever changes what a payout looks like must keep the old look for those of before.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_is_rendered_as_it_always_was(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let once = unique();
        let key = host.merchant.live_key.clone();
        let first = host.pay_as(&key, &once, naira(100_000)).await.ok();
        let changing = ["id", "reference", "beneficiary_id", "wallet_id", "created_at", "queued_at"];
        let looks = changing.iter().fold(first.text.clone(), |text, name| {
            let value = first.json[*name].as_str().expect("text");
            text.replace(&format!("\"{name}\":\"{value}\""), &format!("\"{name}\":\"?\""))
        });
        assert_eq!(
            looks,
            r#"{"object":"payout","id":"?","reference":"?","status":"queued","currency":"NGN","method":"nip","amount_minor":"100000","fee_minor":"1000","tax_minor":"75","levy_minor":"0","total_debit_minor":"101075","recipient_name":"HALIMA MUSA","recipient_account":"0123456785","recipient_bank_code":"058","beneficiary_id":"?","wallet_id":"?","nip_reference":null,"merchant_reference":null,"narration":null,"customer_id":null,"customer_reference":null,"batch_id":null,"failure_code":null,"failure_message":null,"created_at":"?","queued_at":"?","processing_at":null,"completed_at":null}"#
        );
        for is_cancelled in [false, true] {
            if is_cancelled {
                let path = format!("/v1/payouts/{}/cancel", first.id());
                host.send(Method::POST, &path, &key, &[], Some(json!({ "reason": "by mistake" }))).await.ok();
            }
            let again = host.pay_as(&key, &once, naira(100_000)).await.ok();
            assert_eq!((again.status, &again.text), (201, &first.text), "{is_cancelled}");
        }
    })
    .await;
}
