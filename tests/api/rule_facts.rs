//! What a pack is told about a payout is what is so.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::{account, to};
use crate::network::{Sends, with_live_host};
use crate::packs::{PLAIN, adopt, decision, guard};
use crate::test_host::{Engine, TestHost, naira, unique, with, with_host};

async fn look(host: &TestHost) {
    adopt(host, &guard("1", PLAIN, &[])).await;
}

/// What the pack was told about a payout.
async fn told(host: &TestHost, key: &str, body: Value) -> Value {
    let paid = host.pay_as(key, &unique(), body).await.ok();
    decision(host, &paid.id()).await["facts"].clone()
}

async fn told_in_test(host: &TestHost, changes: Value) -> Value {
    told(host, &host.merchant.test_key, with(naira(100_000), changes)).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_fact_has_its_value(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_live_host(engine, Sends::No, async |host| {
        look(host).await;
        host.advance(3_600);
        let (test, live) = (host.merchant.test_key.clone(), host.merchant.live_key.clone());
        let mut facts = told(host, &test, naira(100_000)).await;
        let identity = facts["recipient"].take();
        assert!(identity.as_str().is_some_and(|text| text.len() == 22), "{identity}");
        let name = facts["recipient_name"].take();
        let plain = json!({
            "merchant": host.merchant.id, "env": "test", "currency": "NGN", "method": "nip",
            "kind": "single", "amount_minor": 100_000, "recipient": null, "recipient_name": null,
            "bank_code": "000013", "name_match": null, "first_payment": true,
            "recipient_age_s": 0, "merchant_age_s": 3_600, "wallet_age_s": 3_600,
            "hour": 11, "weekday": 6, "customer": null, "sender_country": null,
            "funding_currency": null, "funding_amount_minor": null,
        });
        let same_bank = ["000013", "058"].contains(&facts["bank_code"].as_str().unwrap_or(""));
        assert!(same_bank, "{facts}");
        facts["bank_code"] = "000013".into();
        assert_eq!(facts, plain);
        host.advance(86_400 + 13 * 3_600);
        let recipient = json!({
            "account_number": "0123456785", "bank_code": "058", "name": name,
        });
        let body = with(
            naira(777),
            json!({
                "recipient": recipient, "customer_reference": "kemi",
                "sender": { "first_name": "Ada", "last_name": "Obi", "country": "GB" },
            }),
        );
        let facts = told(host, &live, body).await;
        for (fact, value) in [
            ("env", json!("live")),
            ("amount_minor", json!(777)),
            ("recipient", identity),
            ("recipient_name", name),
            ("name_match", json!(100)),
            ("first_payment", json!(true)),
            ("recipient_age_s", json!(0)),
            ("merchant_age_s", json!(38 * 3_600)),
            ("hour", json!(0)),
            ("weekday", json!(1)),
            ("customer", json!("kemi")),
            ("sender_country", json!("GB")),
        ] {
            assert_eq!(facts[fact], value, "{fact}");
        }
        // What another currency pays.
        crate::rates::set(host, json!({})).await.ok();
        let capabilities = json!({ "env": "test", "capabilities": ["payout_create", "payout_fx"] });
        let key = host.new_key(&host.merchant.id, capabilities).await;
        host.fund(&key, "USD", 1_000).await;
        let across = with(
            naira(777),
            json!({ "amount_minor": null, "funding_currency": "USD",
                "funding_amount_minor": "1000", "fee_inclusive": true }),
        );
        let facts = told(host, &key, across).await;
        assert_eq!(facts["funding_currency"], "USD", "{facts}");
        assert_eq!(facts["funding_amount_minor"], 1_000, "{facts}");
    })
    .await;
}

/// The clock begins on a Saturday at nine, Greenwich.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn hours_and_days_are_those_of_the_merchant(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        look(host).await;
        for (timezone, hour, weekday) in [
            ("Africa/Lagos", 10, 6),
            ("Etc/UTC", 9, 6),
            ("Asia/Kathmandu", 14, 6),
            ("Pacific/Kiritimati", 23, 6),
            ("Pacific/Honolulu", 23, 5),
            ("America/New_York", 4, 6),
        ] {
            let path = format!("merchants/{}", host.merchant.id);
            host.admin(Method::PATCH, &path, json!({ "timezone": timezone })).await.ok();
            let facts = told_in_test(host, json!({})).await;
            assert_eq!(
                (&facts["hour"], &facts["weekday"]),
                (&json!(hour), &json!(weekday)),
                "{timezone}"
            );
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_are_compared_with_the_one_on_record(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        look(host).await;
        let record = told_in_test(host, json!({})).await["recipient_name"].clone();
        let record = record.as_str().expect("a name").to_owned();
        let turned: Vec<&str> = record.rsplit(' ').collect();
        for (name, least, most) in [
            (json!(record), 100, 100),
            (json!(record.to_lowercase()), 100, 100),
            (json!(turned.join(", ")), 100, 100),
            (json!(turned[0]), 50, 99),
            (json!("Xx Qq"), 0, 30),
        ] {
            let recipient = json!({
                "account_number": "0123456785", "bank_code": "058", "name": name,
            });
            let facts = told_in_test(host, json!({ "recipient": recipient })).await;
            let score = facts["name_match"].as_i64().expect("a number");
            assert!((least..=most).contains(&score), "{name}: {score}");
        }
        assert_eq!(told_in_test(host, json!({})).await["name_match"], Value::Null);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_has_an_age_and_is_paid_for_the_first_time_until_it_was_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rules = [("large", "hold", "amount_minor == 200000")];
        adopt(host, &guard("1", PLAIN, &rules)).await;
        let saved = json!({
            "currency": "NGN", "name": "Shop", "account_number": account(2), "bank_code": "058",
        });
        let saved = host.post("/v1/beneficiaries", saved).await.ok().id();
        host.advance(100);
        let saved = json!({ "beneficiary_id": saved, "recipient": null });
        let large = with(to(3), json!({ "amount_minor": "200000" }));
        // Who is paid, whether for the first time, and since when it is known.
        for (what, changes, is_first, age) in [
            ("unknown", to(1), true, 0),
            ("paid", to(1), false, 60),
            ("saved", saved.clone(), true, 220),
            ("saved and paid", saved.clone(), false, 280),
            ("saved and paid, by its account", to(2), false, 340),
            ("unknown and held", large.clone(), true, 0),
            ("held before", large, true, 60),
            ("held before, now small", to(3), true, 120),
            ("paid at last", to(3), false, 180),
        ] {
            let facts = told_in_test(host, changes).await;
            assert_eq!(facts["first_payment"], is_first, "{what}");
            assert_eq!(facts["recipient_age_s"], age, "{what}");
            host.advance(60);
        }
    })
    .await;
}

/// Whom the bank refused was not paid; whose payout is under way is about to be.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_was_never_paid_in_the_end_is_paid_for_the_first_time(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        look(host).await;
        for (scenario, is_first) in
            [("failed", true), ("failed", true), ("processing", true), ("paid", false)]
        {
            let paid = host.pay(scenario, naira(100_000)).await.ok();
            let facts = decision(host, &paid.id()).await["facts"].clone();
            assert_eq!(facts["first_payment"], is_first, "{scenario}");
        }
    })
    .await;
}
