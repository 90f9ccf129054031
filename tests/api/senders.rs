//! Who pays, for merchants of whom the operator wants to know it.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::funded;
use crate::fps::{self, pounds};
use crate::hours::wire;
use crate::secrets::columns_with;
use crate::test_host::{Engine, TestHost, naira, with, with_host};

fn person() -> Value {
    json!({
        "first_name": "Ngozi",
        "last_name": "Eze",
        "date_of_birth": "1990-01-31",
        "country": "NG",
        "id_type": "passport",
        "id_number": "A01234567",
    })
}

fn business() -> Value {
    json!({ "business_name": "Eze Trading", "country": "NG", "id_type": "cac",
        "id_number": "RC123456" })
}

async fn require(host: &TestHost, is_required: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    let body = json!({ "sender_info_required": is_required });
    host.admin(Method::PATCH, &path, body).await.ok();
}

/// What the rail declares of a sender must be there, of a person or of a business, once the
/// operator wants it of the merchant; what is missing is said by name.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_is_required_of_merchants_that_are_set_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let of = |sender: Value| with(naira(100_000), json!({ "sender": sender }));
        assert_eq!(host.pay("", naira(100_000)).await.ok().status_word(), "paid");
        require(host, json!(true)).await;
        let all =
            json!(["first_name", "last_name", "date_of_birth", "country", "id_type", "id_number"]);
        for (body, missing) in [
            (naira(100_000), all.clone()),
            (of(json!({})), all),
            (of(with(person(), json!({ "date_of_birth": null }))), json!(["date_of_birth"])),
            (
                of(with(person(), json!({ "last_name": "", "id_number": null }))),
                json!(["last_name", "id_number"]),
            ),
            (
                of(with(business(), json!({ "country": null, "id_type": null }))),
                json!(["country", "id_type"]),
            ),
        ] {
            let refused = host.pay("", body.clone()).await;
            assert_eq!(refused.refused(), (422, "sender_info_required"), "{body}");
            assert_eq!(refused.field(), "sender", "{body}");
            assert_eq!(refused.json["error"]["detail"]["missing"], missing, "{body}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
        for sender in [person(), business()] {
            assert_eq!(host.pay("", of(sender)).await.ok().status_word(), "paid");
        }
        // The numbers of what proves who they are can be read nowhere in the database.
        let numbers = ["A01234567", "RC123456"].map(str::to_owned);
        assert_eq!(columns_with(&host.app().db, &numbers).await, BTreeSet::new());
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts WHERE sender IS NOT NULL").await, 2);
        fps::funded(host, &host.merchant.test_key).await;
        let refused = host.pay("", pounds(json!({}))).await;
        assert_eq!(refused.refused(), (422, "sender_info_required"));
        require(host, json!(false)).await;
        assert_eq!(host.pay("", naira(100_000)).await.ok().status_word(), "paid");
        assert_eq!(host.pay("", pounds(json!({}))).await.ok().status_word(), "paid");
    })
    .await;
}

/// What is said of a sender has to have the right form, whether it is required or not.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_is_malformed_is_refused_by_its_field(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (changes, field) in [
            (json!({ "country": "Nigeria" }), "sender.country"),
            (json!({ "email": "nobody" }), "sender.email"),
            (json!({ "first_name": "x".repeat(141) }), "sender.first_name"),
        ] {
            let sender = with(person(), changes);
            let refused = host.pay("", with(naira(100_000), json!({ "sender": sender }))).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
        }
    })
    .await;
}

/// Who pays is sealed in the database, and told to a network that wants to know.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_told_of_the_sender(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        // On Monday the network is open.
        host.advance(54 * 3600);
        assert_eq!(host.pay("", wire()).await.ok().status_word(), "paid");
        // It says nothing of where the business is, which this network has to know.
        let id = host.pay("", with(wire(), json!({ "sender": business() }))).await.ok().id();
        let refused = host.get(&format!("/v1/payouts/{id}")).await.ok();
        assert_eq!(refused.status_word(), "failed", "{}", refused.text);
        let why = refused.json["failure_message"].as_str().expect("a message");
        assert_eq!(why, "A wire names its sender with town and country");
    })
    .await;
}
