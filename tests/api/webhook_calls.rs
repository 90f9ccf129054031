//! The calls about endpoints and deliveries, with everything that they refuse.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{
    change, deliveries, endpoint, failing, listen, until, until_all, until_tried, with_receiver,
};
use crate::receiver::Manner;
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with};

const PATH: &str = "/v1/webhook_endpoints";

async fn create(host: &TestHost, key: &str, body: Value) -> Answer {
    let headers = [("idempotency-key", key)];
    host.send(Method::POST, PATH, &host.merchant.test_key, &headers, Some(body)).await
}

/// A key that may replay.
async fn replayer(host: &TestHost) -> String {
    host.new_key(&host.merchant.id, json!({ "env": "test", "permissions": ["webhook_manage"] }))
        .await
}

async fn replay(host: &TestHost, key: &str, delivery: &str) -> Answer {
    let path = format!("/v1/webhook_deliveries/{delivery}/replay");
    host.send(Method::POST, &path, key, &[], None).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn creating_twice_under_one_key_answers_the_same_secret(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let body = json!({ "url": receiver.url("/a"), "events": ["payout.paid"] });
        let first = create(host, "once", body.clone()).await.ok();
        assert_eq!(first.status, 200);
        let secret = first.json["secret"].as_str().expect("a secret");
        assert!(secret.starts_with("whsec_") && secret.len() > 40, "{secret}");
        assert!(first.id().starts_with("ckwhe_"));
        for (name, value) in [
            ("object", json!("webhook_endpoint")),
            ("url", json!(receiver.url("/a"))),
            ("events", json!(["payout.paid"])),
            ("is_active", json!(true)),
            ("env", json!("test")),
            ("last_success_at", Value::Null),
            ("last_failure_at", Value::Null),
            ("consecutive_failures", json!(0)),
        ] {
            assert_eq!(first.json[name], value, "{name}");
        }
        let again = create(host, "once", body.clone()).await.ok();
        assert_eq!((again.status, &again.text), (200, &first.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let other = with(body.clone(), json!({ "events": ["*"] }));
        let refused = create(host, "once", other).await;
        assert_eq!(refused.refused(), (409, "idempotency_key_conflict"));
        let second = create(host, "twice", body).await.ok();
        assert_ne!(second.json["secret"], first.json["secret"]);
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_endpoints").await, 2);
        for read in [PATH.to_owned(), format!("{PATH}/{}", first.id())] {
            assert!(!host.get(&read).await.ok().text.contains("secret"), "{read}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_endpoint_is_refused_with_its_reason(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let good = json!({ "url": receiver.url("/a"), "events": ["payout.paid"] });
        let existing = listen(host, &receiver.url("/b"), json!(["*"])).await;
        let (long, plain) =
            (format!("https://a.test/{}", "x".repeat(2048)), receiver.url("/a").replace("s:", ":"));
        for (changes, code, field, on_change) in [
            (json!({ "url": null }), "missing_field", "url", false),
            (json!({ "events": null }), "missing_field", "events", false),
            (json!({ "url": 5 }), "invalid_field", "url", true),
            (json!({ "url": "" }), "invalid_url", "url", true),
            (json!({ "url": "hooks" }), "invalid_url", "url", true),
            (json!({ "url": plain }), "invalid_url", "url", true),
            (json!({ "url": long }), "invalid_url", "url", true),
            (json!({ "url": "https://a@a.test/" }), "invalid_url", "url", true),
            (json!({ "url": "https://10.0.0.1/" }), "invalid_url", "url", true),
            (json!({ "events": "payout.paid" }), "invalid_field", "events", true),
            (json!({ "events": [5] }), "invalid_field", "events", true),
            (json!({ "events": [] }), "invalid_event_type", "events", true),
            (json!({ "events": ["payout.lost"] }), "invalid_event_type", "events", true),
            (json!({ "events": ["payout.paid", ""] }), "invalid_event_type", "events", true),
            (json!({ "events": ["Payout.Paid"] }), "invalid_event_type", "events", true),
            (json!({ "ordered": "yes" }), "invalid_field", "ordered", false),
        ] {
            let refused = create(host, &unique(), with(good.clone(), changes.clone())).await;
            let at = refused.field().trim_end_matches("[0]");
            assert_eq!((refused.refused(), at), ((400, code), field), "{changes}");
            if on_change {
                let refused = change(host, &existing.id(), changes.clone()).await;
                let at = refused.field().trim_end_matches("[0]");
                assert_eq!((refused.refused(), at), ((400, code), field), "{changes}");
            }
        }
        let refused = change(host, &existing.id(), json!({ "is_active": "no" })).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "is_active"));
        let now = endpoint(host, &existing.id()).await;
        assert_eq!(now, with(existing.json, json!({ "secret": null })));
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_endpoints").await, 1);
        // What was refused may be said better under the same key.
        let key = unique();
        let wrong = with(good.clone(), json!({ "url": "http://a.test/" }));
        assert_eq!(create(host, &key, wrong).await.refused(), (400, "invalid_url"));
        create(host, &key, good).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_endpoint_cannot_be_spoken_to(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let gone = listen(host, &receiver.url("/a"), json!(["*"])).await.id();
        let path = format!("{PATH}/{gone}");
        let key = host.merchant.test_key.clone();
        let deleted = host.send(Method::DELETE, &path, &key, &[], None).await.ok();
        let object = "webhook_endpoint_delete_result";
        assert_eq!(deleted.json, json!({ "object": object, "id": gone, "deleted": true }));
        for id in [gone.as_str(), "ckwhe_0", "%25"] {
            for (method, end, body) in [
                (Method::GET, "", None),
                (Method::PATCH, "", Some(json!({ "is_active": false }))),
                (Method::DELETE, "", None),
                (Method::POST, "/test", None),
                (Method::POST, "/rotate_secret", None),
            ] {
                let path = format!("{PATH}/{id}{end}");
                let refused = host.send(method.clone(), &path, &key, &[], body).await;
                assert_eq!(refused.status, 404, "{method} {path}: {}", refused.text);
            }
        }
        let replayer = replayer(host).await;
        let refused = replay(host, &replayer, "ckwhd_0").await;
        assert_eq!(refused.refused(), (404, "webhook_delivery_not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_change_names_changes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let created = listen(host, &receiver.url("/a"), json!(["payout.failed"])).await;
        let id = created.id();
        let mut expected = with(created.json.clone(), json!({ "secret": null }));
        for changes in [
            json!({ "url": receiver.url("/b") }),
            json!({ "events": ["payout_paid"] }),
            json!({ "is_active": false }),
            json!({ "is_active": true }),
            json!({}),
            // Not theirs to change.
            json!({ "secret": "whsec_x", "env": "live", "consecutive_failures": 7, "id": "x" }),
        ] {
            host.advance(1);
            let changed = change(host, &id, changes.clone()).await.ok();
            for name in ["url", "events", "is_active"] {
                if let Some(value) = changes.get(name) {
                    expected[name] = value.clone();
                }
            }
            assert_ne!(changed.json["updated_at"], expected["updated_at"]);
            expected["updated_at"] = changed.json["updated_at"].clone();
            assert_eq!(changed.json, expected, "{changes}");
            assert_eq!(endpoint(host, &id).await, expected, "{changes}");
        }
        host.pay("failed", naira(100_000)).await.ok();
        host.pay("paid", naira(100_000)).await.ok();
        assert_eq!(receiver.until("/b", 1).await[0].json()["event"], "payout_paid");
        assert_eq!(receiver.got("/a").len(), 0);
        until_all(host, &id, (1, "delivered")).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_takes_its_history_and_its_future_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let doomed = listen(host, &receiver.url("/doomed"), json!(["payout.paid"])).await.id();
        let kept = listen(host, &receiver.url("/kept"), json!(["payout.paid"])).await.id();
        receiver.behave("/doomed", Manner::status(500));
        host.pay("paid", naira(100_000)).await.ok();
        let waiting = until_tried(host, &doomed, 1).await;
        assert_eq!(waiting["status"], "failed");
        until_all(host, &kept, (1, "delivered")).await;
        let path = format!("{PATH}/{doomed}");
        host.send(Method::DELETE, &path, &host.merchant.test_key, &[], None).await.ok();
        let left = deliveries(host, "").await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0]["endpoint_id"], kept);
        assert_eq!(deliveries(host, &format!("endpoint_id={doomed}")).await.len(), 0);
        let replayer = replayer(host).await;
        let refused = replay(host, &replayer, waiting["id"].as_str().expect("an id")).await;
        assert_eq!(refused.refused(), (404, "webhook_delivery_not_found"));
        host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
        host.until_count("SELECT COUNT(*) FROM webhook_endpoints", 1).await;
        // A day later only the other one hears of anything.
        host.advance(86_400);
        host.pay("paid", naira(100_000)).await.ok();
        receiver.until("/kept", 2).await;
        receiver.until("/doomed", 1).await;
    })
    .await;
}

/// What is left of an endpoint goes in portions, and whoever proves the books meanwhile is not
/// alarmed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn books_can_be_proved_while_an_endpoint_goes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let (id, _) = failing(host, receiver, "/doomed").await;
        host.run(&[
            format!("UPDATE webhook_endpoints SET deleted_at = updated_at WHERE id = '{id}'"),
            format!("DELETE FROM webhook_queue WHERE endpoint_id = '{id}'"),
        ])
        .await;
        host.prove().await;
    })
    .await;
}

/// The same where a replay is left and what it replays has gone before it: with the endpoint, or
/// because it was old enough.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_may_go_after_its_original(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(true, false)] with_its_endpoint: bool,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/doomed"), json!(["payout.paid"])).await.id();
        host.pay("paid", naira(100_000)).await.ok();
        let original = until_all(host, &id, (1, "delivered")).await.remove(0)["id"].clone();
        let original = original.as_str().expect("an id");
        replay(host, &replayer(host).await, original).await.ok();
        until_all(host, &id, (2, "delivered")).await;
        if with_its_endpoint {
            let sql = "UPDATE webhook_endpoints SET deleted_at = updated_at WHERE id";
            host.run(&[format!("{sql} = '{id}'")]).await;
        } else {
            host.advance(30 * 86_400);
        }
        host.run(&[format!("DELETE FROM webhook_deliveries WHERE id = '{original}'")]).await;
        host.prove().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_can_be_tried_out(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.failed"])).await.id();
        let tried = host.post(&format!("{PATH}/{id}/test"), json!({})).await.ok();
        let got = receiver.until("/a", 1).await.remove(0);
        assert_eq!(
            tried.json,
            json!({
                "object": "webhook_test_result",
                "endpoint_id": id,
                "delivery_id": got.header("x-service-delivery"),
                "status": "delivered",
                "response_status": 200,
                "attempts": 1,
            })
        );
        assert_eq!(got.header("x-service-test"), "true");
        assert_eq!(got.header("x-service-event"), "payout_paid");
        let body = got.json();
        assert_eq!((&body["_test"], &body["event"]), (&json!(true), &json!("payout_paid")));
        for name in ["amount_minor", "currency", "recipient_name", "bank_code", "timestamp"] {
            assert!(body["data"][name].is_string(), "{name}");
        }
        assert!(body["data"]["reference"].as_str().is_some_and(|text| text.starts_with("test_")));
        // Said once more, it is a test as before.
        let replayer = replayer(host).await;
        let again = replay(host, &replayer, got.header("x-service-delivery")).await.ok();
        let heard = receiver.until("/a", 2).await.remove(1);
        assert_eq!(heard.header("x-service-delivery"), again.id());
        assert_eq!((heard.header("x-service-test"), heard.text()), ("true", got.text()));
        until_all(host, &id, (2, "delivered")).await;
        for (manner, status) in [
            (Manner::status(500), json!(500)),
            (Manner::status(302), json!(302)),
            (Manner::status(410), json!(410)),
            (Manner::Resets, Value::Null),
            (Manner::Babbles, Value::Null),
        ] {
            receiver.behave("/a", manner);
            let failed = host.post(&format!("{PATH}/{id}/test"), json!({})).await;
            assert_eq!(failed.refused(), (502, "delivery_failed"));
            assert_eq!(failed.json["error"]["detail"]["response_status"], status);
        }
        let made = deliveries(host, &format!("endpoint_id={id}")).await;
        let ends: Vec<_> = made.iter().map(|one| one["status"].as_str().expect("one")).collect();
        assert_eq!(ends, [&["delivered"; 2][..], &["giving_up"; 5]].concat());
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_queue").await, 0);
        change(host, &id, json!({ "is_active": false })).await.ok();
        let refused = host.post(&format!("{PATH}/{id}/test"), json!({})).await;
        assert_eq!(refused.refused(), (400, "webhook_endpoint_inactive"));
        assert_eq!(receiver.got("/a").len(), 7);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_listed_by_endpoint_status_and_event(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let good = listen(host, &receiver.url("/good"), json!(["*"])).await.id();
        let spelt = json!(["payout_paid", "wallet.funded"]);
        let bad = listen(host, &receiver.url("/bad"), spelt).await.id();
        receiver.behave("/bad", Manner::status(500));
        // A receiver that fails is told of one event at a time.
        for failed in 1..=2 {
            host.pay("paid", naira(100_000)).await.ok();
            until_all(host, &bad, (failed, "failed")).await;
        }
        host.credit(&host.merchant.test_wallet.clone(), 500).await;
        until_all(host, &good, (5, "delivered")).await;
        until_all(host, &bad, (3, "failed")).await;
        for (query, count) in [
            (String::new(), 8),
            (format!("endpoint_id={good}"), 5),
            (format!("endpoint_id={bad}"), 3),
            ("endpoint_id=ckwhe_0".into(), 0),
            ("status=delivered".into(), 5),
            ("status=failed".into(), 3),
            ("status=pending".into(), 0),
            ("status=giving_up".into(), 0),
            ("event_type=payout_paid".into(), 4),
            ("event_type=payout.paid".into(), 4),
            ("event_type=payout.processing".into(), 2),
            ("event_type=wallet_funded".into(), 2),
            ("event_type=wallet.funded".into(), 2),
            ("event_type=refund_failed".into(), 0),
            (format!("event_type=payout.paid&status=failed&endpoint_id={bad}"), 2),
        ] {
            let found = deliveries(host, &query).await;
            assert_eq!(found.len(), count, "{query}");
            let mut paged = Vec::new();
            let mut after = String::new();
            loop {
                let path = format!("/v1/webhook_deliveries?limit=2&{query}{after}");
                let page = host.get(&path).await.ok();
                paged.extend(page.json["data"].as_array().expect("a page").clone());
                if page.json["has_more"] == false {
                    break;
                }
                let last = paged.last().and_then(|one| one["id"].as_str()).expect("a full page");
                after = format!("&starting_after={last}");
            }
            paged.reverse();
            assert_eq!(paged, found, "{query}");
        }
        for (query, code, field) in [
            ("status=lost", "invalid_filter", "status"),
            ("event_type=payout.lost", "invalid_filter", "event_type"),
            ("limit=0", "invalid_limit", "limit"),
            ("limit=101", "invalid_limit", "limit"),
            ("starting_after=ckwhd_0", "invalid_field", "starting_after"),
        ] {
            let refused = host.get(&format!("/v1/webhook_deliveries?{query}")).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), field), "{query}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_says_the_same_under_a_new_id(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout_paid"])).await.id();
        listen(host, &receiver.url("/b"), json!(["payout_paid"])).await;
        host.pay("paid", naira(100_000)).await.ok();
        let first = until_all(host, &id, (1, "delivered")).await.remove(0);
        let original = first["id"].as_str().expect("an id");
        let key =
            host.new_key(&host.merchant.id, json!({ "env": "test", "permissions": [] })).await;
        assert_eq!(replay(host, &key, original).await.refused(), (403, "permission_denied"));
        let replayer = replayer(host).await;
        host.advance(60);
        let again = replay(host, &replayer, original).await.ok();
        assert_eq!(again.json["replayed_from_id"], original);
        assert_ne!(again.id(), original);
        let got = receiver.until("/a", 2).await;
        assert_eq!(got[0].text(), got[1].text());
        assert_eq!(got[1].header("x-service-delivery"), again.id());
        assert_eq!(got[1].sent_at() - got[0].sent_at(), 60);
        let both = until_all(host, &id, (2, "delivered")).await;
        assert_eq!(both[0], first, "the original stays as it is");
        receiver.until("/b", 1).await;
        change(host, &id, json!({ "is_active": false })).await.ok();
        let refused = replay(host, &replayer, original).await;
        assert_eq!(refused.refused(), (400, "webhook_endpoint_inactive"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_and_what_was_given_up_can_be_replayed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout_paid"])).await.id();
        receiver.behave("/a", Manner::status(500));
        host.pay("paid", naira(100_000)).await.ok();
        let failed = until_tried(host, &id, 1).await;
        host.post(&format!("{PATH}/{id}/test"), json!({})).await.refused();
        receiver.behave("/a", Manner::status(200));
        let replayer = replayer(host).await;
        let given_up = deliveries(host, "status=giving_up").await.remove(0);
        for (count, original) in [(1, &failed), (2, &given_up)] {
            let original = original["id"].as_str().expect("an id");
            replay(host, &replayer, original).await.ok();
            until(host, "status=delivered", |found| found.len() == count).await;
            let got = receiver.got("/a");
            let body = |id: &str| {
                let found = got.iter().find(|got| got.header("webhook-id") == id);
                found.expect("a request").bytes.clone()
            };
            assert_eq!(got.last().expect("a request").bytes, body(original));
        }
        assert_eq!(deliveries(host, "status=failed").await, [failed]);
        assert_eq!(deliveries(host, "status=giving_up").await, [given_up]);
    })
    .await;
}
