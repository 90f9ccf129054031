//! What a payout's timeline shows of it.

use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{deliveries, listen, until, with_receiver};
use crate::packs::{adopt, guard};
use crate::test_host::{Engine, TestHost, naira, with_host};

async fn steps(host: &TestHost, id: &str) -> Vec<Value> {
    let timeline = host.get(&format!("/v1/payouts/{id}/timeline")).await.ok();
    timeline.json["data"].as_array().expect("steps").clone()
}

fn of_type<'a>(steps: &'a [Value], kind: &str) -> Vec<&'a Value> {
    steps.iter().filter(|step| step["type"] == kind).collect()
}

/// Every amount, however deep, is a string.
fn assert_amounts_are_strings(part: &Value) {
    match part {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            assert!(!name.ends_with("_minor") || value.is_string(), "{name}: {value}");
            assert_amounts_are_strings(value);
        }),
        Value::Array(items) => items.iter().for_each(assert_amounts_are_strings),
        _ => {}
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn it_shows_what_was_charged_over_which_route_it_went_and_who_was_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let endpoint = listen(host, &receiver.url("/a"), json!(["payout_paid"])).await.id();
        let gone = listen(host, &receiver.url("/b"), json!(["payout.paid"])).await.id();
        let id = host.pay("timeout_then_paid", naira(1_000_000)).await.ok().id();
        assert!(of_type(&steps(host, &id).await, "delivery").is_empty());
        host.post(&format!("/v1/payouts/{id}/requery"), json!({})).await.ok();
        until(host, &format!("endpoint_id={endpoint}"), |found| {
            found.iter().any(|delivery| delivery["status"] == "delivered")
        })
        .await;
        let path = format!("/v1/webhook_endpoints/{gone}");
        let key = &host.merchant.test_key;
        host.send(http::Method::DELETE, &path, key, &[], None).await.ok();

        let steps = steps(host, &id).await;
        steps.iter().for_each(assert_amounts_are_strings);
        let price = of_type(&steps, "rules");
        let lines = json!([
            { "kind": "fee", "label": price[0]["lines"][0]["label"], "amount_minor": "2500" },
            { "kind": "tax", "label": price[0]["lines"][1]["label"], "amount_minor": "188" },
            { "kind": "levy", "label": price[0]["lines"][2]["label"], "amount_minor": "5000" },
        ]);
        assert_eq!((price.len(), &price[0]["lines"]), (1, &lines));
        assert!(price[0].get("hold").is_none());
        let sent = [of_type(&steps, "attempt"), of_type(&steps, "rail")].concat();
        assert_eq!(sent.len(), 3, "an attempt, its sending, its question");
        assert!(sent.iter().all(|step| step["route"] == "ngn_nip"), "{sent:?}");
        let told = of_type(&steps, "delivery");
        let delivery = &deliveries(host, &format!("endpoint_id={endpoint}")).await[0];
        let expected = json!({
            "type": "delivery", "at": delivery["created_at"], "id": delivery["id"],
            "endpoint_id": endpoint, "event": "payout_paid", "status": "delivered",
            "attempts": 1, "response_status": 200,
        });
        assert_eq!(told, [&expected]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn why_it_was_held_stands_apart_from_what_it_costs(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let by_scenario = host.pay("fraud_hold", naira(100_000)).await.ok();
        adopt(host, &guard("1", "amount_minor", &[("large", "hold", "amount_minor > 200000")]))
            .await;
        let by_rule = host.pay("paid", naira(250_000)).await.ok();
        for (payout, decisions) in [(by_scenario, 0), (by_rule, 1)] {
            let steps = steps(host, &payout.id()).await;
            let held = of_type(&steps, "hold");
            assert_eq!(held.len(), 1, "{steps:?}");
            assert_eq!(held[0]["reason"], payout.json["hold_reason"]);
            assert!(of_type(&steps, "rules")[0].get("hold").is_none());
            let decided = of_type(&steps, "decision");
            assert_eq!(decided.len(), decisions);
            for decision in decided {
                let told = json!({ "label": "large", "message": payout.json["hold_reason"] });
                assert_eq!(decision["hits"], json!([told]));
            }
        }
    })
    .await;
}
