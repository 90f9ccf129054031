//! A network that has too much to do, and says when to come again.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hostile::{built, hostile, packed};
use crate::live::{until, until_asked};
use crate::notices::RIGHT;
use crate::receiver::{Got, Manner, Receiver, authority_file};
use crate::test_host::{Engine, TestHost, unique, with_host_configured};

const DECLARATION: &str = include_str!("../hostile/rail.toml");
/// For how long the network wants to be left alone, and what is paid meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
const WAITING: usize = 5;

/// A host with a route to a network that answers as a test wants, and is asked about nothing: an
/// answer to a question would say that it has time again.
async fn with_network(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Receiver)) {
    with_declared(engine, ("schedule_s = [60]", "schedule_s = [86_400]"), test).await;
}

/// The same, where the rail declares something else.
async fn with_declared(
    engine: Engine,
    (before, after): (&str, &str),
    test: impl AsyncFnOnce(&mut TestHost, &Receiver),
) {
    let (network, folder) = (Receiver::open().await, tempfile::tempdir().expect("a folder"));
    let declaration = DECLARATION.replace("schedule_s = [60]", "schedule_s = [86_400]");
    let declaration = declaration.replacen(before, after, 1);
    assert!(declaration.contains(after), "{after}");
    let rail = packed(&built("hostile", ""), &declaration);
    std::fs::write(folder.path().join("hostile.wasm"), rail).expect("written");
    let change = |config: &mut Config| {
        config.modules.dir = Some(folder.path().to_owned());
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        config.egress.extra_ca_file = Some(authority_file());
        let secrets = [("door", RIGHT), ("stamp", "what both sides sign with")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        config.routes.insert("busy".to_owned(), secrets.into());
    };
    with_host_configured(engine, change, async |host| {
        let body = json!({ "name": "busy", "env": "live", "currency": "NGN", "method": "hostile",
            "rail": "hostile", "position": -1, "settings": { "endpoint.bank": network.url("") } });
        host.admin(Method::POST, "routes", body).await.ok();
        test(host, &network).await;
    })
    .await;
}

async fn pay(host: &TestHost) -> String {
    pay_as(host, "accept").await
}

async fn pay_as(host: &TestHost, deed: &str) -> String {
    let key = host.merchant.live_key.clone();
    host.pay_as(&key, &unique(), hostile(deed)).await.ok().id()
}

async fn breaker(host: &TestHost) -> Value {
    let routes = host.admin(Method::GET, "routes", json!({})).await.ok();
    let mut routes = routes.json["data"].as_array().expect("routes").iter();
    let route = routes.find(|route| route["name"] == "busy").expect("the route");
    route["breaker"].clone()
}

/// What is paid after a 429 waits for as long as the network asks, without an attempt, and goes out
/// then by itself. How long that is goes by the machine's own clock: the test's stands still.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_asks_for_patience_is_sent_nothing_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_network(engine, async |host, network| {
        let later = vec![("retry-after", PATIENCE.as_secs().to_string())];
        network.behave("/pay", Manner::Says(429, later, String::new()));
        let refused = pay(host).await;
        until(host, &refused, "processing").await;
        until_asked(host, &refused, 0).await;
        let left_alone = breaker(host).await;
        assert_eq!(left_alone["state"], "open", "{left_alone}");
        assert_eq!(left_alone["failures"], 0, "it answered: {left_alone}");
        network.behave("/pay", Manner::status(200));
        for _ in 0..WAITING {
            pay(host).await;
        }
        for _ in 0..1_500 {
            if network.got("/pay").len() > WAITING {
                break;
            }
            // Whoever was put off is due again.
            host.advance(PATIENCE.as_secs());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let got = network.until("/pay", 1 + WAITING).await;
        let waited = got[1].at - got[0].at;
        assert!(waited >= PATIENCE, "it was sent to again after {waited:?}");
        let references: BTreeSet<&str> = got.iter().map(Got::text).collect();
        assert_eq!(references.len(), got.len(), "each left once");
        let attempts = "SELECT COUNT(*) FROM attempts WHERE sends = 1 AND route = 'busy'";
        host.until_count(attempts, i64::try_from(1 + WAITING).expect("few")).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, host.count(attempts).await);
        assert_eq!(breaker(host).await["state"], "closed");
    })
    .await;
}

/// A network is waited for as long as its rail declares.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_the_time_that_is_declared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_declared(engine, ("timeout_ms = 5_000", "timeout_ms = 3_000"), async |host, network| {
        network.behave("/pay", Manner::Hangs);
        let id = pay(host).await;
        until(host, &id, "processing").await;
        let told = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit' \
                    AND result LIKE '%within 3s%'";
        host.until_count(told, 1).await;
    })
    .await;
}

/// An answer is as long as its rail declares, and a longer one is none.
#[rstest]
#[case::too_long("path = \"/flood\"", false)]
#[case::long("path = \"/flood\"\nanswer_bytes_max = 200_000", true)]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_as_long_as_is_declared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] declared: &str,
    #[case] is_read: bool,
) {
    with_declared(engine, ("path = \"/flood\"", declared), async |host, network| {
        network.behave("/flood", Manner::Says(200, Vec::new(), "x".repeat(100_000)));
        let id = pay_as(host, "sent, then flood").await;
        until(host, &id, if is_read { "paid" } else { "processing" }).await;
        let answered = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'";
        host.until_count(answered, 1).await;
    })
    .await;
}
