//! What a key may do is what it was given: the calls, what each of them needs, and what a key
//! without it is told.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{listen, until_all, with_receiver};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

const ALL: [&str; 3] = ["webhook_manage", "beneficiary_manage", "payout_cancel"];

async fn key_with(host: &TestHost, capabilities: Value, permissions: Value) -> String {
    let with = json!({ "env": "test", "capabilities": capabilities, "permissions": permissions });
    host.new_key(&host.merchant.id, with).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_permission_changes_nothing_and_reads_everything(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let hook = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        let paid = host.pay("paid", naira(100_000)).await.ok();
        let delivery = until_all(host, &hook, (1, "delivered")).await.remove(0);
        let delivery = delivery["id"].as_str().expect("an id").to_owned();
        let saved = host.get("/v1/beneficiaries").await.ok();
        let saved = saved.json["data"][0]["id"].as_str().expect("an id").to_owned();
        let url = receiver.url("/b");
        let hooks = "/v1/webhook_endpoints";
        let new = json!({ "currency": "NGN", "name": "Ada", "bank_code": "058",
            "account_number": "0000001015" });
        let calls = [
            (Method::POST, hooks.to_owned(), json!({ "url": url, "events": ["*"] }), ALL[0]),
            (Method::PATCH, format!("{hooks}/{hook}"), json!({ "url": url }), ALL[0]),
            (Method::POST, format!("{hooks}/{hook}/rotate_secret"), json!({}), ALL[0]),
            (Method::POST, format!("{hooks}/{hook}/test"), json!({}), ALL[0]),
            (Method::POST, format!("/v1/webhook_deliveries/{delivery}/replay"), json!({}), ALL[0]),
            (Method::DELETE, format!("{hooks}/{hook}"), json!({}), ALL[0]),
            (Method::POST, "/v1/beneficiaries".to_owned(), new, ALL[1]),
            (Method::PATCH, format!("/v1/beneficiaries/{saved}"), json!({ "name": "B" }), ALL[1]),
            (Method::DELETE, format!("/v1/beneficiaries/{saved}"), json!({}), ALL[1]),
        ];
        for (method, path, body, needed) in calls {
            let others: Vec<&str> = ALL.into_iter().filter(|name| *name != needed).collect();
            let without = key_with(host, json!(["conversion"]), json!(others)).await;
            let ask = async |key: &str| {
                host.send(method.clone(), &path, key, &[], Some(body.clone())).await
            };
            let refused = ask(&without).await;
            assert_eq!(refused.refused(), (403, "permission_denied"), "{method} {path}");
            assert_eq!(refused.json["error"]["detail"]["missing"], json!([needed]));
            let message = refused.json["error"]["message"].as_str().expect("a message");
            assert!(message.contains(needed), "{message}");
            let with = key_with(host, json!([]), json!([needed])).await;
            ask(&with).await.ok();
        }
        let reader = key_with(host, json!([]), json!([])).await;
        for path in [
            hooks.to_owned(),
            "/v1/webhook_deliveries".to_owned(),
            "/v1/beneficiaries".to_owned(),
            format!("/v1/beneficiaries/{saved}"),
            format!("/v1/payouts/{}", paid.id()),
        ] {
            host.get_as(&reader, &path).await.ok();
        }
        let missing = |refused: Answer| {
            assert_eq!(refused.refused(), (403, "permission_denied"));
            refused.json["error"]["detail"]["missing"].clone()
        };
        let refused = host.pay_as(&reader, &unique(), naira(100_000)).await;
        assert_eq!(missing(refused), json!(["payout_create"]));
        let path = format!("/v1/wallets/{}/transactions?customer_id=c1", host.merchant.test_wallet);
        let refused = host.get_as(&reader, &path).await;
        assert_eq!(missing(refused), json!(["customer_transaction_view"]));
        let payer = key_with(host, json!(["payout_create"]), json!([])).await;
        let crossing = with(naira(100_000), json!({ "funding_currency": "GBP" }));
        let refused = host.pay_as(&payer, &unique(), crossing).await;
        assert_eq!(missing(refused), json!(["payout_fx"]));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_one_made_may_be_taken_back_and_what_others_made_takes_the_permission(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}", host.merchant.id);
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "100000" } });
        host.admin(Method::PATCH, &path, threshold).await.ok();
        let maker = key_with(host, json!(["payout_create"]), json!([])).await;
        let draft = async || {
            let made = host.pay_as(&maker, &unique(), naira(100_001)).await.ok();
            assert_eq!(made.status_word(), "draft");
            made.id()
        };
        let cancel = async |key: &str, id: &str| {
            let body = Some(json!({ "reason": "a typo" }));
            host.send(Method::POST, &format!("/v1/payouts/{id}/cancel"), key, &[], body).await
        };
        let other = key_with(host, json!(["payout_create"]), json!([])).await;
        let reader = key_with(host, json!([]), json!(["webhook_manage"])).await;
        let id = draft().await;
        for key in [&other, &reader] {
            let refused = cancel(key, &id).await;
            assert_eq!(refused.refused(), (403, "permission_denied"));
            assert_eq!(refused.json["error"]["detail"]["missing"], json!(["payout_cancel"]));
        }
        assert_eq!(cancel(&maker, &id).await.ok().status_word(), "cancelled");
        let may = key_with(host, json!([]), json!(["payout_cancel"])).await;
        assert_eq!(cancel(&may, &draft().await).await.ok().status_word(), "cancelled");
    })
    .await;
}
