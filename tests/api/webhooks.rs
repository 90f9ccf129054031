//! Webhooks: who is told of what, and in which words.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{deliveries, endpoint, listen, listen_with, until_all, with_receiver};
use crate::receiver::Got;
use crate::test_host::{Engine, TestHost, naira};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_paid_payout_is_told_and_recorded(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let listening = listen(host, &receiver.url("/a?b=1"), json!(["payout_paid"])).await;
        assert_eq!(listening.json["last_success_at"], Value::Null);
        let payout = host.pay("paid", naira(100_000)).await.ok();
        let got = receiver.until("/a?b=1", 1).await.remove(0);
        let delivery = until_all(host, &listening.id(), (1, "delivered")).await.remove(0);
        let body = got.json();
        let payout = host.get(&format!("/v1/payouts/{}", payout.id())).await.ok();
        assert_eq!(body["data"], payout.json);
        for (name, value) in [
            ("event", json!("payout_paid")),
            ("created_at", json!("2026-11-21T09:00:00.000Z")),
            ("env", json!("test")),
            ("id", delivery["event_id"].clone()),
        ] {
            assert_eq!(body[name], value, "{name}");
        }
        assert_eq!(names(&body), ["created_at", "data", "env", "event", "id", "sequence"]);
        assert!(body["id"].as_str().is_some_and(|id| id.starts_with("evt_")));
        for (name, value) in [
            ("content-type", "application/json"),
            ("user-agent", "Service-Webhooks/1.0"),
            ("x-service-event", "payout_paid"),
            ("x-service-delivery", delivery["id"].as_str().expect("an id")),
            ("webhook-id", delivery["id"].as_str().expect("an id")),
            ("webhook-timestamp", "1795251600"),
            ("x-service-test", ""),
        ] {
            assert_eq!(got.header(name), value, "{name}");
        }
        assert!(got.header("x-service-signature").starts_with("t=1795251600,v1="));
        for (name, value) in [
            ("object", json!("webhook_delivery")),
            ("endpoint_id", json!(listening.id())),
            ("event_type", json!("payout_paid")),
            ("attempts", json!(1)),
            ("response_status", json!(200)),
            ("error_message", Value::Null),
            ("next_attempt_at", Value::Null),
            ("delivered_at", json!("2026-11-21T09:00:00.000Z")),
        ] {
            assert_eq!(delivery[name], value, "{name}");
        }
        let now = endpoint(host, &listening.id()).await;
        assert_eq!(now["last_success_at"], "2026-11-21T09:00:00.000Z");
        assert_eq!(now["consecutive_failures"], 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn money_that_comes_in_is_told_with_what_a_refund_will_need(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        listen(host, &receiver.url("/a"), json!(["wallet_funded"])).await;
        let body = json!({ "currency": "NGN", "amount_minor": "12345" });
        let funded = host.post("/v1/sandbox/fund", body).await.ok();
        let got = receiver.until("/a", 1).await.remove(0);
        assert_eq!(
            got.json()["data"],
            json!({
                "providerEventId": funded.json["provider_event_id"],
                "wallet_id": host.merchant.test_wallet,
                "currency": "NGN",
                "amount_minor": "12345",
                "fee_minor": "0",
                "source": "demo_self_fund",
                "sender": null,
                "virtual_account": null,
                "customer": null,
                "collection_id": null,
                "created_at": "2026-11-21T09:00:00.000Z",
            })
        );
        assert_eq!(got.json()["sequence"], 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn endpoints_hear_what_they_asked_for_in_their_own_spelling(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let mut endpoints = Vec::new();
        let cases: [(&str, Value, &[&str]); 7] = [
            ("/dots", json!(["payout.paid"]), &["payout.paid"]),
            ("/underscores", json!(["payout_paid"]), &["payout_paid"]),
            ("/both", json!(["payout_paid", "payout.paid"]), &["payout_paid"]),
            ("/all", json!(["*"]), &["payout.paid", "payout.processing"]),
            ("/mixed", json!(["*", "payout_paid"]), &["payout.processing", "payout_paid"]),
            ("/failures", json!(["payout.failed", "payout_reversed"]), &[]),
            ("/funding", json!(["wallet_funded", "refund_failed"]), &[]),
        ];
        for (path, events, _) in &cases {
            endpoints.push(listen(host, &receiver.url(path), events.clone()).await.id());
        }
        host.pay("paid", naira(100_000)).await.ok();
        for ((path, _, heard), endpoint) in cases.iter().zip(&endpoints) {
            let got = receiver.until(path, heard.len()).await;
            let events: BTreeSet<String> = got.iter().map(event).collect();
            assert_eq!(events.iter().collect::<Vec<_>>(), *heard, "{path}");
            let told: Vec<_> = got.iter().map(|got| got.header("x-service-event")).collect();
            assert!(told.iter().all(|name| events.contains(*name)), "{path}");
            until_all(host, endpoint, (heard.len(), "delivered")).await;
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_objects_events_are_numbered_and_the_feed_says_the_same(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let all = json!({ "events": ["*"], "ordered": true });
        listen_with(host, &receiver.url("/a"), all).await;
        let returned = host.pay("processing", naira(100_000)).await.ok().id();
        let other = host.pay("paid", naira(100_000)).await.ok().id();
        for step in ["settle", "return"] {
            host.post(&format!("/v1/sandbox/payouts/{returned}/{step}"), json!({})).await.ok();
        }
        let got = receiver.until("/a", 5).await;
        let of = |id: &str| -> Vec<(String, i64)> {
            let got = got.iter().filter(|got| got.json()["data"]["id"] == id);
            got.map(|got| (event(got), got.json()["sequence"].as_i64().expect("a number")))
                .collect()
        };
        // The first change of each is that it was queued, of which nobody is told.
        let paid = [("payout.processing".to_owned(), 2), ("payout.paid".to_owned(), 3)];
        assert_eq!(of(&other), paid);
        let mut reversed = paid.to_vec();
        reversed.push(("payout.reversed".to_owned(), 4));
        assert_eq!(of(&returned), reversed);
        let feed = host.get("/v1/events").await.ok();
        for got in &got {
            let (body, listed) = (got.json(), feed.json["data"].as_array().expect("events"));
            let same = listed.iter().find(|event| event["id"] == body["id"]).expect("in the feed");
            for name in ["event", "created_at", "env", "sequence", "data"] {
                assert_eq!(same[name], body[name], "{name}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_hears_of_another_merchant_or_of_the_other_world(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let other = host.new_merchant("Other").await;
        let own = host.merchant.clone();
        let environments = [
            ("/own/test", &own.test_key, &own.test_wallet),
            ("/own/live", &own.live_key, &own.live_wallet),
            ("/other/test", &other.test_key, &other.test_wallet),
            ("/other/live", &other.live_key, &other.live_wallet),
        ];
        for (path, key, _) in environments {
            let body = json!({ "url": receiver.url(path), "events": ["*"] });
            host.send(Method::POST, "/v1/webhook_endpoints", key, &[], Some(body)).await.ok();
        }
        for (_, _, wallet) in environments {
            host.credit(wallet, 500).await;
        }
        for (path, key, wallet) in environments {
            let got = receiver.until(path, 1).await.remove(0);
            assert_eq!(got.json()["data"]["wallet_id"], **wallet, "{path}");
            assert!(path.ends_with(got.json()["env"].as_str().expect("an environment")));
            let listed = host.get_as(key, "/v1/webhook_deliveries").await.ok();
            assert_eq!(listed.json["data"].as_array().expect("a list").len(), 1, "{path}");
        }
        nothing_of_others_can_be_reached(host, &environments.map(|(_, key, _)| key.clone())).await;
    })
    .await;
}

/// Each key finds one endpoint and one delivery, and those of the others do not exist for it.
async fn nothing_of_others_can_be_reached(host: &TestHost, keys: &[String; 4]) {
    let mut found = Vec::new();
    for key in keys {
        let mut ids = Vec::new();
        for list in ["/v1/webhook_endpoints", "/v1/webhook_deliveries"] {
            let listed = host.get_as(key, list).await.ok();
            ids.push(listed.json["data"][0]["id"].as_str().expect("an id").to_owned());
        }
        found.push(ids);
    }
    let replayer = json!({ "env": "test", "permissions": ["webhook_manage"] });
    let stranger = host.new_key(&host.new_merchant("Third").await.id, replayer).await;
    for ids in &found {
        let (endpoint, delivery) = (&ids[0], &ids[1]);
        for key in keys.iter().chain([&stranger]) {
            let is_own = host.get_as(key, "/v1/webhook_endpoints").await.text.contains(endpoint);
            if is_own {
                continue;
            }
            let path = format!("/v1/webhook_endpoints/{endpoint}");
            let missing = (404, "webhook_endpoint_not_found");
            for (method, end) in [
                (Method::GET, ""),
                (Method::PATCH, ""),
                (Method::DELETE, ""),
                (Method::POST, "/test"),
                (Method::POST, "/rotate_secret"),
            ] {
                let path = format!("{path}{end}");
                let refused = host.send(method, &path, key, &[], Some(json!({}))).await;
                assert_eq!(refused.refused(), missing, "{path}");
            }
            let query = format!("/v1/webhook_deliveries?endpoint_id={endpoint}");
            assert_eq!(host.get_as(key, &query).await.ok().json["data"], json!([]));
            let query = format!("/v1/webhook_deliveries?starting_after={delivery}");
            assert_eq!(host.get_as(key, &query).await.refused(), (400, "invalid_field"));
        }
        let path = format!("/v1/webhook_deliveries/{delivery}/replay");
        let refused = host.send(Method::POST, &path, &stranger, &[], Some(json!({}))).await;
        assert_eq!(refused.refused(), (404, "webhook_delivery_not_found"));
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_or_undone_is_told_to_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        listen(host, &receiver.url("/a"), json!(["*"])).await;
        let refused = host.pay("paid", naira(100_000_000)).await;
        assert_eq!(refused.refused(), (402, "insufficient_funds"));
        let refused = host.pay("unresolvable", naira(100_000)).await;
        assert_eq!(refused.refused(), (422, "recipient_unresolvable"));
        assert_eq!(deliveries(host, "").await, Vec::<Value>::new());
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_queue").await, 0);
        assert_eq!(receiver.connections(), 0);
    })
    .await;
}

fn event(got: &Got) -> String {
    got.json()["event"].as_str().expect("a name").to_owned()
}

fn names(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object.as_object().expect("an object").keys().collect();
    names.sort();
    names.into_iter().map(String::as_str).collect()
}
