//! Endpoints where nobody is: switched off, and the merchant's others told.

use std::time::Duration;

use http::Method;
use railhead::clock::Moment;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{
    change, deliveries, endpoint, failing, let_it_look, listen, until_all, until_tried,
    with_receiver,
};
use crate::receiver::{Gate, Manner, Receiver};
use crate::test_host::{Engine, TestHost, naira};

const DISABLED: &str = "webhook_endpoint.disabled";

/// Endpoints that must not hear of it: of the other environment and of another merchant.
async fn listen_elsewhere(host: &TestHost, receiver: &Receiver) {
    let other = host.new_merchant("Other").await;
    for key in [&host.merchant.live_key, &other.test_key, &other.live_key] {
        let body = json!({ "url": receiver.url("/elsewhere"), "events": ["*"] });
        host.send(Method::POST, "/v1/webhook_endpoints", key, &[], Some(body)).await.ok();
    }
}

async fn until_off(host: &TestHost, id: &str) -> Value {
    for _ in 0..3_000 {
        let now = endpoint(host, id).await;
        if now["is_active"] == false {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} stays on");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn gone_switches_an_endpoint_off_and_the_others_hear_of_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        listen_elsewhere(host, receiver).await;
        let gone = listen(host, &receiver.url("/gone"), json!(["payout.paid"])).await;
        let id = gone.id();
        let watch = listen(host, &receiver.url("/watch"), json!(["refund_failed"])).await.id();
        receiver.behave("/gone", Manner::status(410));
        for round in 1..=2 {
            host.pay("paid", naira(100_000)).await.ok();
            let off = until_off(host, &id).await;
            assert!(off["disabled_reason"].as_str().is_some_and(|why| why.contains("410")));
            let found = until_all(host, &id, (round, "giving_up")).await;
            assert!(found.iter().all(|one| one["attempts"] == 1));
            let told = receiver.until("/watch", round).await.remove(round - 1);
            assert_eq!(told.header("x-service-event"), DISABLED);
            assert_eq!(
                (&told.json()["event"], &told.json()["sequence"]),
                (&json!(DISABLED), &json!(round))
            );
            let data = &told.json()["data"];
            assert_eq!((&data["id"], &data["is_active"]), (&json!(id), &json!(false)));
            assert_eq!(data["disabled_reason"], off["disabled_reason"]);
            assert!(!told.text().contains("secret"));
            // Nothing reaches it any more.
            host.pay("paid", naira(100_000)).await.ok();
            host.advance(86_400);
            let_it_look().await;
            receiver.until("/gone", round).await;
            let back = change(host, &id, json!({ "is_active": true })).await.ok();
            assert_eq!(
                (&back.json["is_active"], &back.json["disabled_reason"]),
                (&json!(true), &Value::Null)
            );
        }
        until_all(host, &watch, (2, "delivered")).await;
        assert_eq!(receiver.got("/elsewhere").len(), 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_to_an_endpoint_that_is_gone_wait_for_its_return(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let (id, _) = failing(host, receiver, "/a").await;
        receiver.behave("/a", Manner::status(410));
        host.pay("paid", naira(100_000)).await.ok();
        until_off(host, &id).await;
        receiver.behave("/a", Manner::status(200));
        host.advance(86_400);
        let_it_look().await;
        receiver.until("/a", 2).await;
        change(host, &id, json!({ "is_active": true })).await.ok();
        receiver.until("/a", 3).await;
        let query = format!("endpoint_id={id}&status=delivered");
        crate::hooks::until(host, &query, |found| found.len() == 1).await;
        assert_eq!(deliveries(host, "status=giving_up").await.len(), 1);
    })
    .await;
}

/// Who answers where an endpoint was says nothing of where it is now: the new address is asked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn gone_from_where_it_was_an_endpoint_is_asked_where_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/old"), json!(["payout.paid"])).await.id();
        listen(host, &receiver.url("/watch"), json!(["refund_failed"])).await;
        let gate = Gate::default();
        receiver.behave("/old", Manner::Waits(410, gate.clone()));
        host.pay("paid", naira(100_000)).await.ok();
        receiver.until("/old", 1).await;
        change(host, &id, json!({ "url": receiver.url("/new") })).await.ok();
        gate.open();
        let tried = until_tried(host, &id, 1).await;
        assert_eq!((&tried["status"], &tried["response_status"]), (&json!("failed"), &json!(410)));
        let now = endpoint(host, &id).await;
        assert_eq!((&now["is_active"], &now["disabled_reason"]), (&json!(true), &Value::Null));
        assert_eq!(now["consecutive_failures"], 0, "nobody has failed there");
        host.advance(6);
        let told = until_all(host, &id, (1, "delivered")).await.remove(0);
        assert_eq!(told["attempts"], 2);
        receiver.until("/new", 1).await;
        receiver.until("/old", 1).await;
        // Whoever is there now may say it.
        receiver.behave("/new", Manner::status(410));
        host.pay("paid", naira(100_000)).await.ok();
        until_off(host, &id).await;
        receiver.until("/watch", 1).await;
    })
    .await;
}

/// One more payout of which endpoints do not want to know, each time at another instant: a retry
/// may be the first to fail then, and leave the payout waiting.
async fn fail_once_more(host: &TestHost, ids: &[&str]) {
    let now = host.clock.now();
    let has_failed = async |id: &str| {
        let last = endpoint(host, id).await["last_failure_at"].clone();
        last.as_str().and_then(Moment::parse).is_some_and(|at| at >= now)
    };
    host.pay("paid", naira(100_000)).await.ok();
    for id in ids {
        for _ in 0..3_000 {
            if has_failed(id).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(has_failed(id).await, "{id}");
    }
}

/// Waits until an endpoint has heard of something. A retry that began before may have failed a
/// moment ago, and then it is left alone for a while: it is the success that counts.
async fn until_well(host: &TestHost, id: &str) {
    for turn in 1..=3_000 {
        if endpoint(host, id).await["consecutive_failures"] == 0 {
            return;
        }
        if turn % 100 == 0 {
            host.advance(10);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} hears of nothing");
}

/// Moves the clock on to so many seconds after an instant.
fn move_to(host: &TestHost, (begun, seconds): (Moment, u64)) {
    host.clock.advance(begun.after(Duration::from_secs(seconds)).since(host.clock.now()));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn five_days_without_a_success_switch_an_endpoint_off(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let dead = listen(host, &receiver.url("/dead"), json!(["payout.paid"])).await.id();
        let flaky = listen(host, &receiver.url("/flaky"), json!(["payout.paid"])).await.id();
        listen(host, &receiver.url("/watch"), json!(["refund_failed"])).await;
        let bad = Manner::status(500);
        receiver.behave("/dead", bad.clone());
        let begun = host.clock.now();
        for day in 0..5 {
            let manner = if day == 3 { Manner::status(200) } else { bad.clone() };
            receiver.behave("/flaky", manner);
            move_to(host, (begun, day * 86_400));
            if day == 3 {
                fail_once_more(host, &[&dead]).await;
                until_well(host, &flaky).await;
            } else {
                fail_once_more(host, &[&dead, &flaky]).await;
            }
            assert_eq!(endpoint(host, &dead).await["is_active"], true, "day {day}");
        }
        move_to(host, (begun, 5 * 86_400 - 60));
        fail_once_more(host, &[&dead, &flaky]).await;
        assert_eq!(endpoint(host, &dead).await["is_active"], true, "a minute is missing");
        assert_eq!(receiver.got("/watch").len(), 0);
        host.advance(600);
        fail_once_more(host, &[&dead, &flaky]).await;
        let off = until_off(host, &dead).await;
        assert!(off["disabled_reason"].as_str().is_some_and(|why| why.contains("five days")));
        assert_eq!(endpoint(host, &flaky).await["is_active"], true);
        let told = receiver.until("/watch", 1).await.remove(0);
        assert_eq!(told.json()["data"]["id"], dead);
        // It starts anew when it is switched on again.
        change(host, &dead, json!({ "is_active": true })).await.ok();
        host.advance(86_400);
        fail_once_more(host, &[&dead]).await;
        assert_eq!(endpoint(host, &dead).await["is_active"], true);
    })
    .await;
}

/// What failed for almost five days at one address is nothing against another one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_moves_has_five_days_anew(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/old"), json!(["payout.paid"])).await.id();
        for path in ["/old", "/new"] {
            receiver.behave(path, Manner::status(500));
        }
        let begun = host.clock.now();
        for day in 0..5 {
            move_to(host, (begun, day * 86_400));
            fail_once_more(host, &[&id]).await;
        }
        move_to(host, (begun, 5 * 86_400 - 60));
        change(host, &id, json!({ "url": receiver.url("/new") })).await.ok();
        move_to(host, (begun, 5 * 86_400 + 60));
        fail_once_more(host, &[&id]).await;
        assert_eq!(endpoint(host, &id).await["is_active"], true);
        assert!(!receiver.got("/new").is_empty());
    })
    .await;
}

/// The second time, long after whatever was counted about the first time has run out.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_switched_off_twice_is_told_of_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let gone = listen(host, &receiver.url("/gone"), json!(["payout.paid"])).await.id();
        listen(host, &receiver.url("/watch"), json!(["refund_failed"])).await;
        for times in 1..=2 {
            receiver.behave("/gone", Manner::status(410));
            host.pay("paid", naira(100_000)).await.ok();
            until_off(host, &gone).await;
            let told = receiver.until("/watch", times).await;
            assert_eq!(told[times - 1].json()["data"]["id"], gone);
            change(host, &gone, json!({ "is_active": true })).await.ok();
            receiver.behave("/gone", Manner::status(200));
            host.advance(40 * 86_400);
            sqlx::query("DELETE FROM counters").execute(host.app().db.pool()).await.expect("swept");
        }
        let numbers = "SELECT COUNT(*) FROM events WHERE type = 'webhook_endpoint.disabled' \
                       AND sequence IN (1, 2)";
        assert_eq!(host.count(numbers).await, 2);
    })
    .await;
}

/// What was given up a week ago and fails now has not failed for five days: nobody has asked
/// meanwhile. Nor has what was tried out well since.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_failures_that_follow_each_other_switch_an_endpoint_off(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        receiver.behave("/a", Manner::status(500));
        fail_once_more(host, &[&id]).await;
        let all = format!("endpoint_id={id}");
        while deliveries(host, &all).await[0]["status"] != "giving_up" {
            host.advance(9 * 3600);
            let_it_look().await;
        }
        let begun = host.clock.now().after(Duration::from_secs(6 * 86_400));
        for day in 0..5 {
            move_to(host, (begun, day * 86_400));
            fail_once_more(host, &[&id]).await;
        }
        receiver.behave("/a", Manner::status(200));
        host.post(&format!("/v1/webhook_endpoints/{id}/test"), json!({})).await.ok();
        let well = endpoint(host, &id).await;
        assert_eq!(well["consecutive_failures"], 0);
        assert!(well["last_success_at"].is_string(), "{well}");
        receiver.behave("/a", Manner::status(500));
        move_to(host, (begun, 5 * 86_400 + 60));
        fail_once_more(host, &[&id]).await;
        assert_eq!(endpoint(host, &id).await["is_active"], true);
    })
    .await;
}
