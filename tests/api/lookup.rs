//! Looking up names, banks and prices.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::{account, to};
use crate::network::{Sends, live, open_bank};
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with, with_host, with_host_configured,
};

fn question(serial: u32) -> Value {
    json!({ "currency": "NGN", "account_number": account(serial), "bank_code": "058" })
}

async fn ask(host: &TestHost, body: Value) -> Answer {
    host.post("/v1/name-enquiry", body).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_asked_for_until_it_is_saved_and_again_when_it_is_old(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let asked = json!({ "resolved_name": "ADA ADEYEMI", "source": "provider",
            "resolved_by_provider": "ngn_nip" });
        let known = json!({ "resolved_name": "ADA ADEYEMI", "source": "beneficiary_cache",
            "resolved_by_provider": null });
        for body in [question(1), with(question(1), json!({ "bank_code": "000013" }))] {
            assert_eq!(ask(host, body).await.ok().json, asked, "an enquiry saves nobody");
        }
        let payout = host.pay("paid", with(naira(100_000), to(1))).await.ok();
        assert_eq!(ask(host, question(1)).await.ok().json, known);
        let path = "/v1/name-enquiry";
        let body = Some(question(1));
        let live = host.send(Method::POST, path, &host.merchant.live_key, &[], body).await;
        assert_eq!(live.refused(), (503, "rail_not_configured"), "the environments share nothing");
        host.advance(30 * 86_400 - 1);
        assert_eq!(ask(host, question(1)).await.ok().json, known);
        host.advance(1);
        assert_eq!(ask(host, question(1)).await.ok().json, asked);
        host.pay("paid", with(naira(100_000), to(1))).await.ok();
        assert_eq!(ask(host, question(1)).await.ok().json, known);
        let id = payout.json["beneficiary_id"].as_str().expect("an id");
        let path = format!("/v1/beneficiaries/{id}");
        host.send(Method::DELETE, &path, &host.merchant.test_key, &[], None).await.ok();
        assert_eq!(ask(host, question(1)).await.ok().json, asked);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_found_are_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (changes, status, code, field) in [
            (json!({ "currency": null }), 400, "missing_field", "currency"),
            (json!({ "account_number": null }), 400, "missing_field", "account_number"),
            (json!({ "bank_code": null }), 400, "missing_field", "bank_code"),
            (json!({ "currency": "GBP" }), 400, "unsupported_currency", "currency"),
            (json!({ "currency": "x" }), 400, "unsupported_currency", "currency"),
            (json!({ "account_number": "123" }), 400, "invalid_format", "account_number"),
            (json!({ "account_number": "01234567851" }), 400, "invalid_format", "account_number"),
            (json!({ "bank_code": "GTB" }), 400, "invalid_format", "bank_code"),
            (json!({ "bank_code": "999" }), 422, "unknown_bank_code", "bank_code"),
            (
                json!({ "account_number": "0123456784" }),
                422,
                "recipient_unresolvable",
                "account_number",
            ),
            (json!({ "account_number": "0000001091" }), 422, "recipient_unresolvable", ""),
            (json!({ "account_number": "0000001101" }), 502, "provider_error", ""),
        ] {
            let refused = ask(host, with(question(1), changes.clone())).await;
            assert_eq!(refused.refused(), (status, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
        }
        for (scenario, status, code) in [
            ("unresolvable", 422, "recipient_unresolvable"),
            ("provider_down", 502, "provider_error"),
        ] {
            let headers = [("x-sandbox-scenario", scenario)];
            let (key, path) = (&host.merchant.test_key, "/v1/name-enquiry");
            let refused = host.send(Method::POST, path, key, &headers, Some(question(1))).await;
            assert_eq!(refused.refused(), (status, code));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_next_route_is_asked_where_one_is_down(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = open_bank().await;
    let change = |config: &mut railhead::config::Config| {
        live(config, bank, Sends::No);
        let tokens = ["gateway_token", "notice_token"].map(|name| (name, "a bank's own token"));
        config.routes.insert("ngn_down".into(), crate::lanes::of_nip(tokens));
    };
    with_host_configured(engine, change, async |host| {
        let route = json!({ "name": "ngn_down", "env": "live", "currency": "NGN", "rail": "nip",
            "position": -1, "settings": { "endpoint.gateway": "https://127.0.0.1:1" } });
        let route = host.admin(Method::POST, "routes", route).await.ok();
        assert_eq!(route.json["position"], -1);
        let key = host.merchant.live_key.clone();
        let path = "/v1/name-enquiry";
        let answer = host.send(Method::POST, path, &key, &[], Some(question(1))).await.ok();
        assert_eq!(answer.json["resolved_name"], "ADA ADEYEMI");
        assert_eq!(answer.json["resolved_by_provider"], "ngn_nip");

        let routes =
            host.send(Method::GET, "/admin/v1/routes", OPERATOR_TOKEN, &[], None).await.ok();
        let routes = routes.json["data"].as_array().expect("routes").clone();
        let other = routes.iter().find(|r| r["env"] == "live" && r["name"] == "ngn_nip");
        let other = other.expect("a route")["id"].as_str().expect("an id").to_owned();
        let pause = json!({ "is_paused": true });
        host.admin(Method::PATCH, &format!("routes/{other}"), pause).await.ok();
        let refused = host.send(Method::POST, path, &key, &[], Some(question(1))).await;
        assert_eq!(refused.refused(), (502, "provider_error"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn banks_are_listed_with_their_codes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let page = host.get("/v1/banks?currency=NGN").await.ok();
        assert_eq!((&page.json["object"], &page.json["has_more"]), (&json!("list"), &json!(false)));
        let banks = page.json["data"].as_array().expect("banks");
        assert!(banks.len() > 100);
        let guaranty = banks.iter().find(|bank| bank["slug"] == "guaranty-trust-bank");
        let expected = json!({ "code": "058", "cbn_code": "058", "nip_code": "000013",
            "name": "Guaranty Trust Bank", "slug": "guaranty-trust-bank", "kind": "dmb" });
        assert_eq!(guaranty, Some(&expected));
        let kinds = ["dmb", "mfb", "mobile_money", "psb", "merchant_bank", "fintech"];
        for bank in banks {
            let code =
                if bank["cbn_code"].is_null() { &bank["nip_code"] } else { &bank["cbn_code"] };
            assert_eq!(&bank["code"], code);
            let digits = bank["code"].as_str().is_some_and(|code| {
                (3..=6).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_digit())
            });
            assert!(digits && kinds.iter().any(|kind| bank["kind"] == *kind), "{bank}");
        }
        for field in ["slug", "code", "name"] {
            let distinct: BTreeSet<_> =
                banks.iter().filter_map(|bank| bank[field].as_str()).collect();
            assert_eq!(distinct.len(), banks.len(), "{field}");
        }
        assert!(!banks.iter().any(|bank| bank["slug"] == "heritage-bank"), "revoked");
        for query in ["", "?currency=GBP", "?currency=ngn", "?currency="] {
            let refused = host.get(&format!("/v1/banks{query}")).await;
            assert_eq!(refused.refused(), (400, "unsupported_currency"), "{query}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_is_what_is_charged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        host.credit(&host.merchant.test_wallet, 3_000_000_000).await;
        for (amount, fee, tax, levy) in [
            (100, "1000", "75", "0"),
            (499_999, "1000", "75", "0"),
            (500_000, "1000", "75", "0"),
            (500_001, "2500", "188", "0"),
            (999_999, "2500", "188", "0"),
            (1_000_000, "2500", "188", "5000"),
            (1_000_001, "2500", "188", "5000"),
            (5_000_000, "2500", "188", "5000"),
            (5_000_001, "5000", "375", "5000"),
            (1_000_000_000, "5000", "375", "5000"),
        ] {
            let body = json!({ "currency": "NGN", "amount_minor": amount.to_string() });
            let quote = host.post("/v1/payouts/quote", body).await.ok();
            assert_eq!((quote.status, &quote.json["object"]), (200, &json!("payout_quote")));
            let before = host.balance(&host.merchant.test_wallet).await;
            let payout = host.pay("paid", naira(amount)).await.ok();
            let spent = before - host.balance(&host.merchant.test_wallet).await;
            for (field, expected) in [("fee_minor", fee), ("tax_minor", tax), ("levy_minor", levy)]
            {
                assert_eq!(quote.json[field], expected, "{amount} {field}");
                assert_eq!(payout.json[field], expected, "{amount} {field}");
            }
            assert_eq!(quote.json["total_debit_minor"], payout.json["total_debit_minor"]);
            assert_eq!(quote.json["total_debit_minor"], spent.to_string());
            assert!(quote.json["fx"].is_null());
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_that_makes_no_sense_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let good = json!({ "currency": "NGN", "amount_minor": "100000" });
        for (changes, code) in [
            (json!({ "currency": null }), "missing_field"),
            (json!({ "currency": "XYZ" }), "unsupported_currency"),
            (json!({ "amount_minor": null }), "amount_required"),
            (json!({ "amount_minor": "0" }), "invalid_amount"),
            (json!({ "amount_minor": "-5" }), "invalid_amount"),
            (json!({ "amount_minor": "1e3" }), "invalid_amount"),
            (json!({ "amount_minor": "9223372036854775808" }), "invalid_amount"),
            (json!({ "funding_amount_minor": "5" }), "ambiguous_amount"),
            (
                json!({ "amount_minor": null, "funding_amount_minor": "5" }),
                "guard_field_wrong_method",
            ),
            (json!({ "fee_inclusive": true }), "guard_field_wrong_method"),
            (json!({ "amount_basis": "destination" }), "amount_basis_mismatch"),
            (json!({ "funding_currency": "nairas" }), "invalid_funding_currency"),
        ] {
            let body = with(good.clone(), changes.clone());
            let refused = host.post("/v1/payouts/quote", body).await;
            assert_eq!(refused.refused(), (400, code), "{changes}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
    })
    .await;
}
