//! Where networks may speak from, and the addresses that they are given.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::live::{until, with_bank};
use crate::mpesa::{funded, shillings, tell};
use crate::test_host::{Answer, Engine, TestHost, unique};

/// Changes a setting of the live route to M-Pesa.
async fn set(host: &TestHost, name: &str, value: Value) -> Answer {
    let routes = host.admin(Method::GET, "routes", json!(null)).await.ok();
    let mut routes = routes.json["data"].as_array().expect("routes").iter();
    let live = routes.find(|route| route["env"] == "live" && route["name"] == "kes_mpesa");
    let path = format!("routes/{}", live.expect("a route")["id"].as_str().expect("an id"));
    host.admin(Method::PATCH, &path, json!({ "settings": { name: value } })).await
}

/// A payout that its network has taken on; its id, and where the result goes.
async fn taken_on(host: &TestHost, bank: &crate::bank::Bank) -> (String, String, String) {
    let key = host.merchant.live_key.clone();
    let id = host.pay_as(&key, &unique(), shillings("0712345678")).await.ok().id();
    let message = bank.message().await;
    let body = message.text();
    let url: http::Uri = message.url.expect("an address").parse().expect("an address");
    (id, url.path().to_owned(), body)
}

/// Whoever has the address, and is not where the network is, is not heard.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_heard_from_where_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let (id, path, body) = taken_on(host, bank).await;
        for odd in ["everywhere", "10.0.0.0/33", ""] {
            let refused = set(host, "notices.networks", json!(odd)).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{odd}");
        }
        set(host, "notices.networks", json!("196.201.212.0/22, 2001:db8::/32")).await.ok();
        assert_eq!(tell(host, &path, &body).await.status, 401);
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 0);
        until(host, &id, "processing").await;
        set(host, "notices.networks", json!("196.201.212.0/22,127.0.0.1")).await.ok();
        tell(host, &path, &body).await.ok();
        until(host, &id, "paid").await;
    })
    .await;
}

/// An address that has become known is replaced, and what is under way still comes in at the old
/// one; after another time it does not.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_became_known_is_replaced(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let (first, old, told) = taken_on(host, bank).await;
        assert_eq!(set(host, "notices.generation", json!("0")).await.refused().0, 400);
        set(host, "notices.generation", json!("2")).await.ok();
        let (second, new, later) = taken_on(host, bank).await;
        assert_ne!(old, new);
        tell(host, &old, &told).await.ok();
        until(host, &first, "paid").await;
        set(host, "notices.generation", json!("3")).await.ok();
        assert_eq!(tell(host, &old, &later).await.status, 401);
        tell(host, &new, &later).await.ok();
        until(host, &second, "paid").await;
    })
    .await;
}
