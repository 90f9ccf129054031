//! What the operator made can be read back one by one, and a route that was never used deleted.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::packs::restart;
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with_host};

const NOBODY: &str = "c000000000000000000000000";

async fn ask(host: &TestHost, method: Method, path: &str) -> Answer {
    host.send(method, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
}

async fn read(host: &TestHost, path: &str) -> Answer {
    ask(host, Method::GET, path).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_listed_and_shown_without_their_secrets(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let path = format!("merchants/{}/keys", host.merchant.id);
        let body = json!({ "env": "live", "label": "payroll", "capabilities": ["payout_create"],
            "permissions": ["payout_cancel"], "ip_allowlist": ["203.0.113.0/24"] });
        let made = host.admin(Method::POST, &path, body).await.ok();
        let new = host.admin(Method::POST, &format!("keys/{}/rotate", made.id()), json!({})).await;
        host.admin(Method::POST, &format!("keys/{}/revoke", new.id()), json!({})).await.ok();
        let list = read(host, &path).await.ok();
        let keys = list.json["data"].as_array().expect("keys").clone();
        let labels: Vec<&Value> = keys.iter().map(|key| &key["label"]).collect();
        assert_eq!(labels, ["payroll", "payroll", "test", "test"]);
        for secret in [&made.json["secret"], &new.json["secret"], &json!(host.merchant.test_key)] {
            assert!(!list.text.contains(secret.as_str().expect("a secret")));
        }
        for key in &keys {
            assert_eq!(key["merchant_id"], host.merchant.id);
            let shown = read(host, &format!("keys/{}", key["id"].as_str().expect("an id"))).await;
            assert_eq!(&shown.ok().json, key);
        }
        let [newest, older, ..] = keys.as_slice() else { panic!("{keys:?}") };
        assert_eq!((&newest["id"], &newest["created_by"]), (&new.json["id"], &json!("operator")));
        assert!(newest["revoked_at"].is_string() && newest["secret"].is_null());
        assert!(older["grace_until"].is_string() && older["revoked_at"].is_null());
        assert_eq!(keys[2]["created_by"], "desk");

        let first = read(host, &format!("{path}?limit=1")).await.ok().json;
        assert_eq!((&first["data"][0], &first["has_more"]), (newest, &json!(true)));
        let after = |id: &str| format!("{path}?limit=1&starting_after={id}");
        let second = read(host, &after(newest["id"].as_str().expect("an id"))).await.ok().json;
        assert_eq!(&second["data"][0], older);
        let theirs = read(host, &format!("merchants/{}/keys", other.id)).await.ok().json;
        let theirs = theirs["data"][0]["id"].as_str().expect("an id").to_owned();
        for unknown in [NOBODY, "x", &theirs] {
            assert_eq!(read(host, &after(unknown)).await.refused(), (400, "invalid_field"));
        }
        for path in [format!("keys/{NOBODY}"), format!("merchants/{NOBODY}/keys")] {
            assert_eq!(read(host, &path).await.refused(), (404, "not_found"), "{path}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_shown_and_deleted_unless_anything_went_over_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let body = json!({ "name": "spare", "env": "test", "currency": "NGN", "rail": "nip",
            "position": 5 });
        let made = host.admin(Method::POST, "routes", body.clone()).await.ok();
        let path = format!("routes/{}", made.id());
        assert_eq!(read(host, &path).await.ok().json, made.json);
        host.pay("paid", naira(100_000)).await.ok();
        let routes = read(host, "routes").await.ok().json;
        let used = routes["data"].as_array().expect("routes").iter().find(|route| {
            (&route["env"], &route["position"]) == (&json!("test"), &json!(0))
                && route["currency"] == "NGN"
        });
        let used = format!("routes/{}", used.expect("a route")["id"].as_str().expect("an id"));
        let pause = async |path: &str, is_paused: bool| {
            host.admin(Method::PATCH, path, json!({ "is_paused": is_paused })).await.ok()
        };
        pause(&used, true).await;
        host.advance(11);
        let refused = ask(host, Method::DELETE, &used).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        pause(&used, false).await;
        let message = refused.json["error"]["message"].as_str().expect("a message");
        assert!(message.contains("pause"), "{message}");
        // Another host may have it at hand until it has been paused for a while.
        let at_work = ask(host, Method::DELETE, &path).await;
        assert_eq!(at_work.refused(), (409, "state_conflict"));
        let paused = pause(&path, true).await;
        assert_eq!(ask(host, Method::DELETE, &path).await.refused(), (409, "state_conflict"));
        host.advance(11);
        assert_eq!(ask(host, Method::DELETE, &path).await.ok().json, paused.json);
        let log = read(host, "audit?limit=1").await.ok().json["data"][0].clone();
        assert_eq!(
            (&log["action"], &log["before"]["name"]),
            (&json!("route.delete"), &json!("spare"))
        );
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(ask(host, method, &path).await.refused(), (404, "not_found"));
        }
        // Its name is free again.
        host.admin(Method::POST, "routes", body).await.ok();
        host.pay("paid", naira(100_000)).await.ok();
    })
    .await;
}

/// What a rail begins with is there for the first start only.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_was_deleted_does_not_come_back_with_the_host(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut host = TestHost::open(engine, |_| {}).await;
    let ids = async |host: &TestHost| -> Vec<String> {
        let routes = read(host, "routes").await.ok().json["data"].clone();
        let routes = routes.as_array().cloned().expect("routes");
        routes.iter().map(|route| route["id"].as_str().expect("an id").to_owned()).collect()
    };
    let mut routes = ids(&host).await;
    let gone = routes.remove(0);
    let path = format!("routes/{gone}");
    host.admin(Method::PATCH, &path, json!({ "is_paused": true })).await.ok();
    host.advance(11);
    ask(&host, Method::DELETE, &path).await.ok();
    restart(&mut host, |_| {}).await;
    assert_eq!(ids(&host).await, routes);
    host.close().await;
}
