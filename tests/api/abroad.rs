//! Pounds, dollars and euros: who may pay in them, and whose account they leave.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::dollars;
use crate::fps::{self, pounds};
use crate::test_host::{Engine, TestHost, naira, unique, with, with_host};

async fn set(host: &TestHost, changes: Value) {
    host.admin(Method::PATCH, &format!("merchants/{}", host.merchant.id), changes).await.ok();
}

/// Who does not have the feature neither pays in such a currency, nor asks what it costs, nor saves a
/// recipient. In live, nobody has it by themselves.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn international_currencies_need_their_feature(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let off = (403, "fx_features_not_enabled");
        let (test, live) = (host.merchant.test_key.clone(), host.merchant.live_key.clone());
        let quote = json!({ "currency": "GBP", "amount_minor": "10000" });
        let saved = json!({
            "currency": "GBP", "name": "Ada Lovelace", "country": "GB",
            "bank": { "account_number": "12345678", "sort_code": "040004" },
        });
        fps::funded(host, &host.merchant.test_key).await;
        for (feature, key) in [(json!(false), &test), (Value::Null, &live)] {
            set(host, json!({ "features": { "international_accounts": feature } })).await;
            let paid = async |body: Value| host.pay_as(key, &unique(), body).await;
            assert_eq!(paid(pounds(json!({}))).await.refused(), off);
            assert_eq!(paid(dollars(json!({}))).await.refused(), off);
            let ask = async |path: &str, body: &Value| {
                host.send(Method::POST, path, key, &[], Some(body.clone())).await
            };
            assert_eq!(ask("/v1/payouts/quote", &quote).await.refused(), off);
            assert_eq!(ask("/v1/beneficiaries", &saved).await.refused(), off);
            assert_ne!(paid(naira(100_000)).await.status, 403);
        }
        // In the sandbox everybody does.
        assert_eq!(host.pay_as(&test, &unique(), pounds(json!({}))).await.status, 201);
        // Of a currency that was taken away nobody is told what it costs, either.
        set(host, json!({ "currencies": ["NGN", "USD"] })).await;
        let ask = async |path: &str, body: &Value| {
            host.send(Method::POST, path, &test, &[], Some(body.clone()))
                .await
                .refused()
                .1
                .to_owned()
        };
        assert_eq!(ask("/v1/payouts/quote", &quote).await, "unsupported_currency");
        assert_eq!(ask("/v1/beneficiaries", &saved).await, "unsupported_currency");
    })
    .await;
}

/// Where a customer is to pay, nobody else does.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_customer_who_is_to_pay_is_not_overlooked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        fps::funded(host, &host.merchant.test_key).await;
        let key = host.merchant.test_key.clone();
        let named = json!({ "sender_customer_id": "cus_1" });
        for (mode, sender, refusal) in [
            ("own", named.clone(), Some((400, "customer_id_mismatch"))),
            ("both", named.clone(), Some((404, "customer_not_found"))),
            ("customer", named.clone(), Some((404, "customer_not_found"))),
            ("customer", json!({}), Some((400, "missing_field"))),
            ("both", json!({}), None),
            ("own", json!({}), None),
        ] {
            set(host, json!({ "payer_mode": mode })).await;
            let body = with(pounds(json!({})), sender.clone());
            let body = with(body, json!({ "allow_duplicate": true }));
            let answer = host.pay_as(&key, &unique(), body).await;
            match refusal {
                Some(refusal) => {
                    assert_eq!(answer.refused(), refusal, "{mode} {sender}");
                    assert_eq!(answer.json["error"]["field"], "sender_customer_id");
                }
                None => assert_eq!(answer.status, 201, "{mode}: {}", answer.text),
            }
        }
        // Nor in Canadian dollars.
        set(host, json!({ "payer_mode": "own" })).await;
        let canadian = json!({
            "amount_minor": "10000", "currency": "CAD",
            "recipient": { "email": "ada@example.com", "first_name": "Ada", "last_name": "Obi" },
        });
        let refused = host.pay_as(&key, &unique(), with(canadian, named.clone())).await;
        assert_eq!(refused.refused(), (400, "customer_id_mismatch"));
        // Naira know nothing of it.
        set(host, json!({ "payer_mode": "customer" })).await;
        host.pay_as(&key, &unique(), with(naira(100_000), named)).await.ok();
    })
    .await;
}
