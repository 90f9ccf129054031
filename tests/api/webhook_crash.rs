//! Hosts that die between an event and its receiver, and hosts that share the work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use railhead::clock::Clock;
use railhead::id::IdGenerator;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::hooks::{
    deliveries, listen, reach_loopback, reach_loopback_in_file, until_all, until_tried,
};
use crate::network::beside;
use crate::program::Deployment;
use crate::receiver::{Manner, Receiver};
use crate::test_host::{Answer, Engine, TestHost, naira};

const KILLS: u64 = 4;
const CALLERS: usize = 4;
/// Longer than any claim and any head start.
const TWO_MINUTES: Duration = Duration::from_secs(120);

/// Movements that somebody was told had been made.
type Told = Arc<Mutex<BTreeSet<String>>>;

/// Callers who fill a test wallet until nobody answers any more.
fn callers(host: &TestHost, told: &Told) -> Vec<JoinHandle<()>> {
    let caller = |_| {
        let (client, told) = (host.client.clone(), Arc::clone(told));
        let (url, key) = (format!("{}/v1/sandbox/fund", host.base), host.merchant.test_key.clone());
        tokio::spawn(async move {
            let body = json!({ "currency": "NGN", "amount_minor": "100" });
            loop {
                let sent = client.post(&url).bearer_auth(&key).json(&body).send().await;
                let Ok(response) = sent else { return };
                let Ok(answer) = Answer::read(response).await else { return };
                let id = answer.ok().json["provider_event_id"].as_str().expect("an id").to_owned();
                told.lock().expect("a lock").insert(id);
            }
        })
    };
    (0..CALLERS).map(caller).collect()
}

async fn until_nothing_waits(deployment: &Deployment) {
    let waiting = "SELECT COUNT(*) FROM webhook_queue";
    for _ in 0..3000 {
        if deployment.count(waiting).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} deliveries still wait", deployment.count(waiting).await);
}

/// The bodies that a path got, by movement. However often it got one, it was the same.
fn bodies(receiver: &Receiver, path: &str) -> BTreeMap<String, Vec<u8>> {
    let mut bodies = BTreeMap::new();
    for got in receiver.got(path) {
        let id = got.json()["data"]["providerEventId"].as_str().expect("an id").to_owned();
        let known = bodies.entry(id).or_insert_with(|| got.bytes.clone());
        assert_eq!(*known, got.bytes, "{path} got other bytes the second time");
    }
    bodies
}

/// Every movement in the test environment.
async fn movements(deployment: &Deployment) -> BTreeSet<String> {
    let sql = "SELECT object_id FROM events WHERE type = 'wallet_funded' AND env = 'test'";
    let ids: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(deployment.db.pool()).await.expect("ids");
    ids.into_iter().collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_no_event_is_lost_and_none_is_told_differently(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let mut deployment = Deployment::open(engine, &reach_loopback_in_file()).await;
    receiver.behave("/dawdles", Manner::Dawdles(Duration::from_millis(50)));
    let paths = ["/a", "/dawdles", "/ordered"];
    let mut endpoints = Vec::new();
    for path in paths {
        let body = json!({
            "url": receiver.url(path), "events": ["wallet_funded"], "ordered": path == "/ordered",
        });
        endpoints.push(deployment.host.post("/v1/webhook_endpoints", body).await.ok().id());
    }
    let before = movements(&deployment).await;
    let told = Told::default();
    let moments = IdGenerator::seeded(Clock::System, u64::from(std::process::id()));
    for _ in 0..KILLS {
        let callers = callers(&deployment.host, &told);
        tokio::time::sleep(Duration::from_millis(200 + moments.below(400))).await;
        deployment.kill().await;
        for caller in callers {
            caller.await.expect("no panic");
        }
        deployment.let_time_pass(TWO_MINUTES).await;
        deployment.start(&[]).await;
    }
    until_nothing_waits(&deployment).await;
    let made: BTreeSet<String> =
        movements(&deployment).await.difference(&before).cloned().collect();
    let told = told.lock().expect("a lock").clone();
    assert!(!told.is_empty() && told.is_subset(&made));
    for path in paths {
        let heard: BTreeSet<String> = bodies(&receiver, path).into_keys().collect();
        assert_eq!(heard, made, "{path}");
    }
    let delivered = "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'delivered'";
    let wanted = i64::try_from(made.len() * endpoints.len()).expect("small");
    assert_eq!(deployment.count(delivered).await, wanted);
    assert_eq!(deployment.count("SELECT COUNT(*) FROM webhook_deliveries").await, wanted);
    deployment.prove().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_whose_answer_nobody_wrote_down_is_made_again_with_the_same_bytes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let mut deployment = Deployment::open(engine, &reach_loopback_in_file()).await;
    let id = listen(&deployment.host, &receiver.url("/a"), json!(["payout_paid"])).await.id();
    receiver.behave("/a", Manner::Hangs);
    deployment.host.pay("paid", naira(100_000)).await.ok();
    receiver.until("/a", 1).await;
    deployment.kill().await;
    receiver.behave("/a", Manner::status(200));
    deployment.let_time_pass(TWO_MINUTES).await;
    deployment.start(&[]).await;
    let delivery = until_all(&deployment.host, &id, (1, "delivered")).await.remove(0);
    let got = receiver.until("/a", 2).await;
    assert_eq!(got[0].bytes, got[1].bytes);
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    // The first one did not fail: nobody knows what came of it.
    assert_eq!(delivery["attempts"], 1);
    deployment.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_share_the_deliveries_and_make_none_twice() {
    let receiver = Receiver::open().await;
    let deployment = Deployment::open(Engine::Postgres, &reach_loopback_in_file()).await;
    let other = beside(&deployment.host, reach_loopback).await;
    let id = listen(&deployment.host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
    let late = listen(&deployment.host, &receiver.url("/late"), json!(["payout.paid"])).await.id();
    receiver.behave("/late", Manner::status(500));
    for _ in 0..4 {
        for host in [&deployment.host, &other] {
            host.pay("paid", naira(100_000)).await.ok();
        }
    }
    until_all(&other, &id, (8, "delivered")).await;
    // All at once, with both hosts looking at the same queue.
    let tried = |found: &[Value]| found.iter().filter(|one| one["attempts"] != 0).count() >= 5;
    crate::hooks::until(&other, &format!("endpoint_id={late}"), tried).await;
    receiver.behave("/late", Manner::status(200));
    deployment.let_time_pass(TWO_MINUTES).await;
    until_all(&deployment.host, &late, (8, "delivered")).await;
    receiver.until("/a", 8).await;
    let found = deliveries(&other, &format!("endpoint_id={late}")).await;
    let attempts: i64 = found.iter().filter_map(|one| one["attempts"].as_i64()).sum();
    receiver.until("/late", usize::try_from(attempts).expect("small")).await;
    other.close().await;
    deployment.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_held_is_delivered_by_another() {
    let receiver = Receiver::open().await;
    let mut deployment = Deployment::open(Engine::Postgres, &reach_loopback_in_file()).await;
    let failed =
        listen(&deployment.host, &receiver.url("/failed"), json!(["payout.paid"])).await.id();
    let held = listen(&deployment.host, &receiver.url("/held"), json!(["payout.paid"])).await.id();
    receiver.behave("/failed", Manner::status(500));
    receiver.behave("/held", Manner::Hangs);
    deployment.host.pay("paid", naira(100_000)).await.ok();
    until_tried(&deployment.host, &failed, 1).await;
    receiver.until("/held", 1).await;
    deployment.kill().await;
    for path in ["/failed", "/held"] {
        receiver.behave(path, Manner::status(200));
    }
    // Where hosts share a database, one that starts frees nothing that another one holds.
    let other = beside(&deployment.host, reach_loopback).await;
    deployment.let_time_pass(TWO_MINUTES).await;
    for (id, path, attempts) in [(&failed, "/failed", 2), (&held, "/held", 1)] {
        let delivery = until_all(&other, id, (1, "delivered")).await.remove(0);
        assert_eq!(delivery["attempts"], attempts);
        let got = receiver.until(path, 2).await;
        assert_eq!(got[0].bytes, got[1].bytes);
    }
    other.close().await;
    deployment.prove().await;
}
