//! Allow-lists of networks that hold nearly everything are no allow-lists.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::batches::Payroll;
use crate::team::{join, post};
use crate::test_host::{Engine, OPERATOR_TOKEN, unique, with_host};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_not_given_a_network_that_holds_nearly_everything(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let admin = join(host, &host.merchant.id, ("ada", "admin")).await;
        let make = async |who: &str, network: &str| {
            let list = json!(["203.0.113.7", network]);
            let body = json!({ "env": "test", "label": "x", "ip_allowlist": list });
            post(host, who, &path, body).await
        };
        for who in [OPERATOR_TOKEN, admin.token.as_str()] {
            for wide in
                ["0.0.0.0/0", "128.0.0.0/1", "126.0.0.0/7", "::ffff:0:0/96", "::/0", "2000::/15"]
            {
                let refused = make(who, wide).await;
                assert_eq!(refused.refused(), (400, "invalid_field"), "{wide}");
                assert_eq!(refused.field(), "ip_allowlist", "{wide}");
            }
            let many: Vec<String> = (11..=15).map(|first| format!("{first}.0.0.0/8")).collect();
            let body = json!({ "env": "test", "label": "x", "ip_allowlist": many });
            assert_eq!(post(host, who, &path, body).await.refused(), (400, "invalid_field"));
            for narrow in ["10.0.0.0/8", "2001::/16"] {
                make(who, narrow).await.ok();
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_given_such_before_makes_no_batches(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let admin = join(host, &host.merchant.id, ("ada", "admin")).await;
        let body = json!({
            "env": "test",
            "label": "x",
            "capabilities": ["payout_create", "bulk"],
            "permissions": ["payout_bulk_upload"],
            "ip_allowlist": ["127.0.0.1"],
        });
        let path = format!("merchants/{}/keys", host.merchant.id);
        let made = host.admin(Method::POST, &path, body).await.ok();
        let turn = |from: &str, to: &str| {
            format!(
                "UPDATE api_keys SET ip_allowlist = REPLACE(ip_allowlist, '{from}', '{to}') \
                 WHERE ip_allowlist LIKE '%{from}%'"
            )
        };
        let key = made.json["secret"].as_str().expect("a secret").to_owned();
        let many: Vec<String> = (124..=128).map(|first| format!("{first}.0.0.0/8")).collect();
        for wide in ["0.0.0.0/0", &many.join("\",\"")] {
            host.run(&[turn("127.0.0.1/32", wide)]).await;
            // No host goes by what it knew a second ago.
            host.advance(2);
            let payroll = Payroll { host, key: key.clone() };
            let refused = payroll.send(&unique(), "", json!({})).await;
            assert_eq!(refused.refused(), (403, "bulk_requires_ip_allowlist"), "{wide}");
            // Nor does its team get another one like it.
            let path = format!("keys/{}/rotate", made.id());
            let refused = post(host, &admin.token, &path, Value::Null).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{wide}");
            assert_eq!(refused.field(), "ip_allowlist");
            host.run(&[turn(wide, "127.0.0.1/32")]).await;
        }
    })
    .await;
}
