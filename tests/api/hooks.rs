//! Endpoints and deliveries as their owner makes and sees them.

use std::time::Duration;

use http::Method;
use railhead::clock::Moment;
use railhead::config::Config;
use serde_json::{Value, json};

use crate::receiver::{Manner, Receiver, authority_file};
use crate::test_host::{Answer, Engine, TestHost, naira, with_host_configured};

/// Runs a test on a test host that may deliver to loopback, with a receiver there.
pub(crate) async fn with_receiver(
    engine: Engine,
    test: impl AsyncFnOnce(&mut TestHost, &Receiver),
) {
    let receiver = Receiver::open().await;
    with_host_configured(engine, reach_loopback, async |host| test(host, &receiver).await).await;
}

/// Lets a host deliver to receivers of tests.
pub(crate) fn reach_loopback(config: &mut Config) {
    config.webhooks.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config.webhooks.extra_ca_file = Some(authority_file());
}

/// The same for a program that reads a file.
pub(crate) fn reach_loopback_in_file() -> String {
    let file = authority_file();
    format!(
        "[webhooks]\nallow_private_networks = [\"127.0.0.0/8\"]\nextra_ca_file = \"{}\"\n",
        file.display()
    )
}

/// A new endpoint of the test host's merchant in the test environment.
pub(crate) async fn listen(host: &TestHost, url: &str, events: Value) -> Answer {
    listen_with(host, url, json!({ "events": events })).await
}

/// The same with further fields.
pub(crate) async fn listen_with(host: &TestHost, url: &str, fields: Value) -> Answer {
    let mut body = fields;
    body["url"] = url.into();
    host.post("/v1/webhook_endpoints", body).await.ok()
}

/// Changes an endpoint.
pub(crate) async fn change(host: &TestHost, endpoint: &str, body: Value) -> Answer {
    let path = format!("/v1/webhook_endpoints/{endpoint}");
    host.send(Method::PATCH, &path, &host.merchant.test_key, &[], Some(body)).await
}

/// An endpoint as it is now.
pub(crate) async fn endpoint(host: &TestHost, id: &str) -> Value {
    host.get(&format!("/v1/webhook_endpoints/{id}")).await.ok().json
}

/// Deliveries in the test environment that a query finds, oldest first.
pub(crate) async fn deliveries(host: &TestHost, query: &str) -> Vec<Value> {
    let page = host.get(&format!("/v1/webhook_deliveries?limit=100&{query}")).await.ok();
    let mut found = page.json["data"].as_array().expect("a page").clone();
    found.reverse();
    found
}

/// Waits until what a query finds is as wanted, and answers it.
pub(crate) async fn until(
    host: &TestHost,
    query: &str,
    wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..3000 {
        found = deliveries(host, query).await;
        if wanted(&found) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("deliveries of {query} stay as they are: {found:#?}");
}

/// Waits until all deliveries of an endpoint, of which there must be so many, have a status.
pub(crate) async fn until_all(
    host: &TestHost,
    endpoint: &str,
    (count, status): (usize, &str),
) -> Vec<Value> {
    let query = format!("endpoint_id={endpoint}");
    until(host, &query, |found| {
        found.len() == count && found.iter().all(|one| one["status"] == status)
    })
    .await
}

/// Waits until an endpoint's only delivery was tried so many times.
pub(crate) async fn until_tried(host: &TestHost, endpoint: &str, attempts: i64) -> Value {
    let query = format!("endpoint_id={endpoint}");
    let found = until(host, &query, |found| found.iter().all(|one| one["attempts"] == attempts));
    let found = found.await;
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

/// An endpoint for `payout.paid` whose receiver fails: its id, and its delivery after one attempt.
pub(crate) async fn failing(host: &TestHost, receiver: &Receiver, path: &str) -> (String, Value) {
    let id = listen(host, &receiver.url(path), json!(["payout.paid"])).await.id();
    receiver.behave(path, Manner::status(500));
    host.pay("paid", naira(100_000)).await.ok();
    let delivery = until_tried(host, &id, 1).await;
    (id, delivery)
}

/// An instant in an answer.
#[track_caller]
pub(crate) fn moment(value: &Value) -> Moment {
    let text = value.as_str().unwrap_or_else(|| panic!("no instant: {value}"));
    Moment::parse(text).expect("an instant")
}

/// Longer than between two looks of the deliverer into the queue: whatever is due is begun.
pub(crate) async fn let_it_look() {
    tokio::time::sleep(Duration::from_millis(600)).await;
}
