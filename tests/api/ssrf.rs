//! Addresses at which no merchant's receiver can be: refused when they are given, and not
//! connected to when they get there in another way.

use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{change, endpoint, listen, until, until_tried, with_receiver};
use crate::receiver::{Manner, Receiver, authority_file};
use crate::test_host::{Engine, TestHost, naira, with_host, with_host_configured};

const SETTING: &str = "webhooks.allow_private_networks";

/// Places inside, in every spelling that some library understands. Whoever gives one is told
/// which setting of the operator's would open it.
const INSIDE: [&str; 47] = [
    "127.0.0.1",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "169.254.169.254",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[fc00::1]",
    "[fdff::1]",
    "[fe80::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a00:1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::1]",
    "[5f00::1]",
    "localhost",
    "a.LOCALHOST.",
];

/// What is no address for anybody.
const MALFORMED: [&str; 14] = [
    "http://example.com/",
    "HTTP://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "unix:///var/run/docker.sock",
    "https:///",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com/#fragment",
    "https://example.com/\r\nhost: inside",
    "https://exam\tple.com/",
    " https://example.com/",
    "https://[::1%25eth0]/",
];

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_place_inside_can_be_given(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let body = json!({ "url": "https://8.8.8.8/", "events": ["payout.failed"] });
        let good = host.post("/v1/webhook_endpoints", body).await.ok().id();
        let inside = INSIDE.iter().flat_map(|name| {
            [format!("https://{name}/"), format!("https://{name}:8443/hooks?x=1")]
        });
        let malformed = MALFORMED.iter().map(|url| (*url).to_owned());
        let all = inside.map(|url| (url, true)).chain(malformed.map(|url| (url, false)));
        for (url, names_setting) in all {
            let body = json!({ "url": url, "events": ["*"] });
            let created = host.post("/v1/webhook_endpoints", body).await;
            let changed = change(host, &good, json!({ "url": url })).await;
            for refused in [created, changed] {
                assert_eq!(
                    (refused.refused(), refused.field()),
                    ((400, "invalid_url"), "url"),
                    "{url:?}"
                );
                let why = refused.json["error"]["message"].as_str().unwrap_or_default();
                assert_eq!(why.contains(SETTING), names_setting, "{url:?}: {why}");
            }
        }
        assert_eq!(endpoint(host, &good).await["url"], "https://8.8.8.8/");
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_endpoints").await, 1);
    })
    .await;
}

/// Brings an endpoint to an address that it was never given, as a change of its name would; whoever
/// proves the books notices, until it is brought back.
async fn lead_astray(host: &TestHost, id: &str, url: &str) {
    let mut tx = host.app().db.write().await.expect("a transaction");
    // A later version: nothing may be delivered to what was read before.
    let sql = "UPDATE webhook_endpoints SET url = $1, updated_at = updated_at + 1 WHERE id = $2";
    sqlx::query(sql).bind(url).bind(id).execute(tx.conn()).await.expect("changed");
    tx.commit().await.expect("committed");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_inside_is_connected_to_however_an_endpoint_got_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let port = receiver.address.port();
    // The certificate is not what keeps it out.
    let trusting = |config: &mut railhead::config::Config| {
        config.webhooks.extra_ca_file = Some(authority_file());
    };
    with_host_configured(engine, trusting, async |host| {
        let mut endpoints = Vec::new();
        for name in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1."] {
            let body = json!({ "url": "https://8.8.8.8/", "events": ["payout.paid"] });
            let id = host.post("/v1/webhook_endpoints", body).await.ok().id();
            lead_astray(host, &id, &format!("https://{name}:{port}/")).await;
            endpoints.push(id);
        }
        host.pay("paid", naira(100_000)).await.ok();
        for id in &endpoints {
            let delivery = until_tried(host, id, 1).await;
            assert_eq!(
                (&delivery["status"], &delivery["response_status"]),
                (&json!("failed"), &Value::Null)
            );
            let why = delivery["error_message"].as_str().unwrap_or_default();
            assert!(why.contains(SETTING), "{why}");
            let tried = host.post(&format!("/v1/webhook_endpoints/{id}/test"), json!({})).await;
            assert_eq!(tried.refused(), (502, "delivery_failed"));
            lead_astray(host, id, "https://8.8.8.8/").await;
        }
        assert_eq!(receiver.connections(), 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_judged_by_what_it_stands_for_whenever_it_is_connected_to(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let url = format!("https://localhost:{}/", receiver.address.port());
    // Names of a network inside are allowed, so that only what they stand for tells.
    let elsewhere = |config: &mut railhead::config::Config| {
        config.webhooks.allow_private_networks = vec!["10.99.0.0/16".parse().expect("a network")];
        config.webhooks.extra_ca_file = Some(authority_file());
    };
    with_host_configured(engine, elsewhere, async |host| {
        let body = json!({ "url": url, "events": ["payout.paid"] });
        let refused = host.post("/v1/webhook_endpoints", body).await;
        assert_eq!(refused.refused(), (400, "invalid_url"));
        assert!(refused.text.contains(SETTING), "{}", refused.text);
        let id = listen(host, "https://8.8.8.8/", json!(["payout.paid"])).await.id();
        lead_astray(host, &id, &url).await;
        host.pay("paid", naira(100_000)).await.ok();
        let delivery = until_tried(host, &id, 1).await;
        let why = delivery["error_message"].as_str().unwrap_or_default();
        assert!(why.contains(SETTING), "{why}");
        assert_eq!(receiver.connections(), 0);
        lead_astray(host, &id, "https://8.8.8.8/").await;
    })
    .await;
}

/// The same addresses are reached where the operator says so: what keeps them out above is the
/// rule, and nothing else.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_open_loopback_and_a_redirect_opens_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let port = receiver.address.port();
        for (number, name) in ["127.0.0.1", "2130706433", "localhost"].iter().enumerate() {
            let url = format!("https://{name}:{port}/{number}");
            listen(host, &url, json!(["payout.paid"])).await;
        }
        let inside = vec![("location", "http://169.254.169.254/latest/meta-data".to_owned())];
        receiver.behave("/2", Manner::Says(307, inside, String::new()));
        let body = json!({ "url": "https://10.0.0.1/", "events": ["*"] });
        let refused = host.post("/v1/webhook_endpoints", body).await;
        assert_eq!(refused.refused(), (400, "invalid_url"));
        host.pay("paid", naira(100_000)).await.ok();
        until(host, "status=delivered", |found| found.len() == 2).await;
        let found = until(host, "status=failed", |found| found.len() == 1).await;
        assert_eq!(found[0]["response_status"], 307);
    })
    .await;
}

/// A receiver whose certificate nobody vouches for, or which speaks no TLS, hears nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_receivers_that_prove_who_they_are_are_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let reach = |config: &mut railhead::config::Config| {
        config.webhooks.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    };
    with_host_configured(engine, reach, async |host| {
        let stranger = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        let plain = host.base.replace("http:", "https:");
        let plain = listen(host, &plain, json!(["payout.paid"])).await.id();
        host.pay("paid", naira(100_000)).await.ok();
        for id in [stranger, plain] {
            let delivery = until_tried(host, &id, 1).await;
            assert_eq!(delivery["response_status"], Value::Null);
            assert_eq!(delivery["status"], "failed");
        }
        assert_eq!(receiver.got("/a").len(), 0);
    })
    .await;
}
