//! Payouts in the sandbox, from the body to the books.

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::test_host::{Engine, naira, unique, with, with_host};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_is_paid_and_replayed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let key = unique();
        let first = host.pay_as(&host.merchant.test_key, &key, naira(2_500_000)).await.ok();
        assert_eq!(first.status, 201);
        assert_eq!(first.status_word(), "paid");
        let again = host.pay_as(&host.merchant.test_key, &key, naira(2_500_000)).await.ok();
        assert_eq!((again.status, &again.text), (201, &first.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000 - 2_507_688);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_ends_as_it_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (scenario, at_once, later) in [
            ("paid", "paid", "paid"),
            ("processing", "processing", "processing"),
            ("failed", "failed", "failed"),
            ("returned", "paid", "reversed"),
            ("timeout_then_paid", "processing", "paid"),
            ("timeout_then_failed", "processing", "failed"),
            ("timeout_then_unknown", "processing", "processing"),
            ("never_received", "processing", "paid"),
            ("duplicate_callback", "processing", "paid"),
            ("fraud_hold", "awaiting_admin_review", "awaiting_admin_review"),
        ] {
            let payout = host.pay(scenario, naira(100_000)).await.ok();
            if at_once == later || scenario != "returned" && scenario != "duplicate_callback" {
                assert_eq!(payout.status_word(), at_once, "{scenario}");
            }
            let id = payout.id();
            host.post(&format!("/v1/payouts/{id}/requery"), json!({})).await.ok();
            host.until(&host.merchant.test_key, &id, later).await;
        }
        let refused = host.pay("unresolvable", naira(100_000)).await;
        assert_eq!(refused.refused(), (422, "recipient_unresolvable"));
        let refused = host.pay("provider_down", naira(100_000)).await;
        assert_eq!(refused.refused(), (502, "provider_error"));
        let refused = host.pay("fraud_block", naira(100_000)).await;
        assert_eq!(refused.refused(), (422, "fraud_rule_blocked"));
        assert_eq!(refused.json["error"]["detail"]["hits"][0]["label"], "sandbox");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn bad_bodies_are_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let recipient = |account: &str, bank: &str| {
            json!({ "recipient": { "account_number": account, "bank_code": bank } })
        };
        for (changes, status, code, field) in [
            (json!({ "amount_minor": null }), 400, "missing_field", "amount_minor"),
            (json!({ "amount_minor": 5 }), 400, "invalid_field", "amount_minor"),
            (json!({ "amount_minor": "0" }), 400, "invalid_field", "amount_minor"),
            (json!({ "amount_minor": "1.5" }), 400, "invalid_field", "amount_minor"),
            (json!({ "amount_minor": "9223372036854775808" }), 400, "invalid_field", "amount_minor"),
            (json!({ "currency": null }), 400, "missing_field", "currency"),
            (json!({ "currency": "XYZ" }), 422, "unsupported_currency", "currency"),
            (json!({ "currency": "JPY" }), 422, "unsupported_currency", "currency"),
            (json!({ "currency": "naira" }), 422, "unsupported_currency", "currency"),
            (json!({ "recipient": null }), 400, "missing_field", "recipient"),
            (json!({ "recipient": {} }), 400, "missing_field", "recipient.account_number"),
            (recipient("012345678", "058"), 400, "invalid_field", "recipient.account_number"),
            (recipient("0123456785", "GTB"), 400, "invalid_field", "recipient.bank_code"),
            (recipient("0123456785", "999"), 422, "unknown_bank_code", "recipient.bank_code"),
            (recipient("0123456784", "058"), 422, "recipient_unresolvable", "recipient.account_number"),
            (
                json!({ "recipient": { "account_number": 123_456_785, "bank_code": "058" } }),
                400,
                "invalid_field",
                "recipient.account_number",
            ),
            (
                json!({ "recipient": { "account_number": "0123456785", "bank_code": "058", "email": "x" } }),
                422,
                "invalid_field",
                "recipient.email",
            ),
            (json!({ "beneficiary_id": "c0" }), 404, "beneficiary_not_found", "beneficiary_id"),
            (json!({ "wallet_id": "c0" }), 422, "wallet_not_found", "wallet_id"),
            (json!({ "customer_id": "cus_0" }), 404, "customer_not_found", "customer_id"),
            (json!({ "funding_currency": "NGN" }), 400, "invalid_funding_currency", "funding_currency"),
            (json!({ "funding_currency": "USD" }), 403, "permission_denied", "funding_currency"),
            (json!({ "funding_amount_minor": "1" }), 400, "ambiguous_amount", "funding_amount_minor"),
            (json!({ "max_debit_minor": "1" }), 400, "guard_field_wrong_method", "max_debit_minor"),
            (json!({ "amount_basis": "source" }), 400, "amount_basis_mismatch", "amount_basis"),
            (json!({ "narration": "x".repeat(101) }), 400, "invalid_field", "narration"),
            (json!({ "customer_reference": "x".repeat(65) }), 400, "invalid_field", "customer_reference"),
            (json!({ "method": "interac" }), 400, "invalid_field", "method"),
            (json!({ "allow_duplicate": "yes" }), 400, "invalid_field", "allow_duplicate"),
        ] {
            let refused = host.pay("paid", with(naira(100_000), changes.clone())).await;
            assert_eq!(refused.refused(), (status, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
            assert!(refused.json["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
        }
        let path = "/v1/payouts";
        let key = host.merchant.test_key.clone();
        let missing = host.send(Method::POST, path, &key, &[], Some(naira(1))).await;
        assert_eq!(missing.refused(), (400, "idempotency_key_required"));
        let long = "k".repeat(256);
        let headers = [("idempotency-key", long.as_str())];
        let refused = host.send(Method::POST, path, &key, &headers, Some(naira(1))).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "Idempotency-Key"));
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
        assert_eq!(host.count("SELECT COUNT(*) FROM idempotency_keys").await, 0);
    })
    .await;
}
