//! The audit log: who changed what, when, from where, and how it was before.

use http::Method;
use railhead::id::KeyId;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{change, listen, with_receiver};
use crate::team::{ask, join};
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host, with_host_configured,
};

async fn read(host: &TestHost, path: &str) -> Answer {
    host.send(Method::GET, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
}

fn new_key() -> Value {
    json!({ "env": "test", "label": "a key" })
}

fn movement() -> Value {
    json!({ "amount_minor": "5", "reason": "because" })
}

fn block() -> Value {
    json!({
        "scope": "platform",
        "currency": "NGN",
        "bank_code": "058",
        "account_number": "0123456785",
        "reason": "stolen",
    })
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_change_leaves_its_line_in_the_log(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let behind_a_proxy = |config: &mut railhead::config::Config| {
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    };
    with_host_configured(engine, behind_a_proxy, async |host| {
        let (merchant, wallet) = (host.merchant.id.clone(), host.merchant.test_wallet.clone());
        let key = host.admin(Method::POST, &format!("merchants/{merchant}/keys"), new_key()).await;
        let changes = [
            (format!("merchants/{merchant}/keys"), new_key(), "key.create", "api_key"),
            (format!("keys/{}/rotate", key.id()), json!({}), "key.rotate", "api_key"),
            (format!("keys/{}/revoke", key.id()), json!({}), "key.revoke", "api_key"),
            (
                "merchants".into(),
                json!({ "name": "B", "country": "NG" }),
                "merchant.create",
                "merchant",
            ),
            (format!("wallets/{wallet}/credit"), movement(), "wallet.credit", "wallet"),
            (format!("wallets/{wallet}/debit"), movement(), "wallet.debit", "wallet"),
            (format!("wallets/{wallet}/freeze"), json!({}), "wallet.freeze", "wallet"),
            (format!("wallets/{wallet}/unfreeze"), json!({}), "wallet.unfreeze", "wallet"),
            ("blacklist".into(), block(), "blacklist.add", "blacklist_entry"),
        ];
        for (second, (path, body, action, subject)) in (1..).zip(changes) {
            host.advance(1);
            let path = format!("/admin/v1/{path}");
            let headers = [("x-forwarded-for", "203.0.113.9")];
            let answer =
                host.send(Method::POST, &path, OPERATOR_TOKEN, &headers, Some(body)).await.ok();
            let line = read(host, "audit?limit=1").await.ok().json["data"][0].clone();
            let subject_id = if action == "key.rotate" { key.id() } else { answer.id() };
            for (field, expected) in [
                ("object", "audit_entry"),
                ("actor", "operator"),
                ("action", action),
                ("subject_type", subject),
                ("subject_id", &subject_id),
                ("address", "203.0.113.9"),
                ("created_at", &format!("2026-11-21T09:00:{second:02}.000Z")),
            ] {
                assert_eq!(line[field], expected, "{action} {field}");
            }
            let sides = (!line["before"].is_null(), !line["after"].is_null());
            let expected = match action {
                "key.rotate" | "wallet.freeze" | "wallet.unfreeze" => (true, true),
                "key.revoke" => (true, false),
                _ => (false, true),
            };
            assert_eq!(sides, expected, "{action}: {line}");
        }
        let suspended = json!({ "status": "suspended" });
        host.advance(1);
        host.admin(Method::PATCH, &format!("merchants/{merchant}"), suspended).await.ok();
        let line = read(host, "audit?limit=1").await.ok().json["data"][0].clone();
        assert_eq!(
            (&line["action"], &line["address"]),
            (&json!("merchant.update"), &json!("127.0.0.1"))
        );
        assert_eq!(line["before"]["status"], "active");
        assert_eq!(line["after"]["status"], "suspended");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_paged_holds_refusals_out_and_cannot_be_changed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = host.merchant.test_wallet.clone();
        for amount in 1..=5 {
            host.advance(1);
            host.credit(&wallet, amount).await;
        }
        let refused = json!({ "amount_minor": "99999999999", "reason": "too much" });
        let refused = host.admin(Method::POST, &format!("wallets/{wallet}/debit"), refused).await;
        assert_eq!(refused.status, 402);
        let all = read(host, "audit?limit=100").await.ok().json;
        let all = all["data"].as_array().expect("lines").clone();
        let amounts: Vec<&Value> = all.iter().map(|line| &line["after"]["amount_minor"]).collect();
        assert_eq!(amounts[..5], ["5", "4", "3", "2", "1"].map(Value::from).each_ref());
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = read(host, &format!("audit?limit=3{cursor}")).await.ok().json;
            let lines = page["data"].as_array().expect("lines").clone();
            cursor = format!(
                "&starting_after={}",
                lines.last().expect("a line")["id"].as_str().expect("an id")
            );
            paged.extend(lines);
            if page["has_more"] == false {
                break;
            }
        }
        assert_eq!(paged, all);
        let pool = host.app().db.pool();
        for sql in ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"] {
            let refused = sqlx::query(sql).execute(pool).await.expect_err("append-only");
            assert!(refused.to_string().contains("append-only"), "{refused}");
        }
        let key = unique();
        host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await.ok();
        assert_eq!(read(host, "audit?limit=100").await.ok().json["data"], json!(all));
    })
    .await;
}

/// The newest line with this action.
async fn line_of(host: &TestHost, action: &str) -> Value {
    let log = read(host, "audit?limit=100").await.ok().json;
    let lines = log["data"].as_array().expect("lines").clone();
    let found = lines.into_iter().find(|line| line["action"] == action);
    found.unwrap_or_else(|| panic!("no {action}: {log}"))
}

async fn id_of_test_key(host: &TestHost) -> String {
    let path = format!("merchants/{}/keys", host.merchant.id);
    let keys = read(host, &path).await.ok().json;
    let keys = keys["data"].as_array().expect("keys").clone();
    let key = keys.iter().find(|key| key["env"] == "test").expect("a test key");
    key["id"].as_str().expect("an id").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_merchant_changes_is_in_the_log_with_its_key(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let key = id_of_test_key(host).await;
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        let made = line_of(host, "webhook_endpoint.create").await;
        assert_eq!((&made["actor"], &made["subject_id"]), (&json!(key), &json!(id)));
        assert_eq!(made["after"]["url"], receiver.url("/a"));
        change(host, &id, json!({ "url": receiver.url("/b"), "is_active": false })).await.ok();
        let line = line_of(host, "webhook_endpoint.update").await;
        assert_eq!(line["actor"], key);
        assert_eq!(line["before"]["url"], receiver.url("/a"));
        assert_eq!(line["after"]["url"], receiver.url("/b"));
        assert_eq!(
            (&line["before"]["is_active"], &line["after"]["is_active"]),
            (&json!(true), &json!(false))
        );
        let path = format!("/v1/webhook_endpoints/{id}");
        let rotated = host.post(&format!("{path}/rotate_secret"), json!({})).await.ok();
        let line = line_of(host, "webhook_endpoint.rotate_secret").await;
        assert_ne!(line["before"], line["after"]);
        let test_key = host.merchant.test_key.clone();
        host.send(Method::DELETE, &path, &test_key, &[], None).await.ok();
        let line = line_of(host, "webhook_endpoint.delete").await;
        assert_eq!((&line["subject_id"], &line["after"]), (&json!(id), &Value::Null));

        let saved = json!({ "currency": "NGN", "name": "Ada", "bank_code": "058",
            "account_number": "0123456785", "email": "ada@example.com" });
        let saved = host.post("/v1/beneficiaries", saved).await.ok().id();
        let line = line_of(host, "beneficiary.create").await;
        assert_eq!((&line["actor"], &line["subject_id"]), (&json!(key), &json!(saved)));
        let path = format!("/v1/beneficiaries/{saved}");
        let body = json!({ "name": "Ada O", "email": "eda@example.com" });
        host.send(Method::PATCH, &path, &test_key, &[], Some(body)).await.ok();
        let line = line_of(host, "beneficiary.update").await;
        assert_eq!(
            (&line["before"]["name"], &line["after"]["name"]),
            (&json!("Ada"), &json!("Ada O"))
        );
        assert_eq!(line["after"]["changed"], json!(["name", "email"]));
        let body = Some(json!({ "reason": "left us" }));
        host.send(Method::DELETE, &path, &test_key, &[], body).await.ok();
        let line = line_of(host, "beneficiary.delete").await;
        assert_eq!(
            (&line["before"]["is_deleted"], &line["after"]["is_deleted"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(line["after"]["reason"], "left us");

        host.admin(Method::POST, "blacklist", block()).await.ok();
        let log = read(host, "audit?limit=100").await.ok();
        let secret = rotated.json["secret"].as_str().expect("a secret");
        for hidden in ["0123456785", "ada@example.com", secret] {
            assert!(!log.text.contains(hidden), "{hidden}");
        }
        let line = line_of(host, "blacklist.add").await;
        assert_eq!(line["after"]["recipient"]["account_number"], "******6785");
        assert_eq!(line["after"]["scope"], "platform");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_log_shows_what_a_key_may_do_and_where_a_route_goes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let may = json!({ "env": "live", "label": "payroll", "capabilities": ["payout_create"],
            "permissions": ["webhook_manage"], "ip_allowlist": ["203.0.113.0/24"],
            "expires_at": "2027-01-01T00:00:00.000Z" });
        let path = format!("merchants/{}/keys", host.merchant.id);
        let key = host.admin(Method::POST, &path, may.clone()).await.ok();
        host.admin(Method::POST, &format!("keys/{}/rotate", key.id()), json!({})).await.ok();
        let (made, replaced) =
            (line_of(host, "key.create").await, line_of(host, "key.rotate").await);
        for (name, value) in may.as_object().expect("an object") {
            for side in [&made["after"], &replaced["before"], &replaced["after"]] {
                assert_eq!(&side[name], value, "{name}: {side}");
            }
        }
        let secret = key.json["secret"].as_str().expect("a secret");
        assert!(!format!("{made}{replaced}").contains(secret));

        let routes = read(host, "routes").await.ok().json;
        let routes = routes["data"].as_array().expect("routes").clone();
        let live = routes
            .iter()
            .find(|route| route["env"] == "live" && route["name"] == "ngn_nip")
            .expect("a live route");
        let path = format!("routes/{}", live["id"].as_str().expect("an id"));
        let to = json!({ "settings": { "endpoint.gateway": "https://bank.example/a" } });
        host.admin(Method::PATCH, &path, to.clone()).await.ok();
        let line = line_of(host, "route.update").await;
        assert_eq!(line["before"]["settings"], json!({}));
        assert_eq!(line["after"]["settings"], to["settings"]);

        let path = format!("merchants/{}", host.merchant.id);
        host.admin(Method::PATCH, &path, json!({ "timezone": "Africa/Accra" })).await.ok();
        let line = line_of(host, "merchant.update").await;
        assert_eq!(line["before"]["timezone"], "Africa/Lagos");
        assert_eq!(line["after"]["timezone"], "Africa/Accra");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_told_once_a_minute_and_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const FAILED: &str = "SELECT COUNT(*) FROM audit WHERE action = 'operator.log_in_failed'";
    let behind_a_proxy = |config: &mut railhead::config::Config| {
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    };
    with_host_configured(engine, behind_a_proxy, async |host| {
        let try_from = async |from: &str, token: &str| {
            let headers = [("x-forwarded-for", from)];
            let answer = host.send(Method::GET, "/admin/v1/audit", token, &headers, None).await;
            assert_eq!(answer.status, 401, "{}", answer.text);
        };
        for _ in 0..5 {
            try_from("203.0.113.9", "op_guessed_in_vain").await;
        }
        host.until_count(FAILED, 1).await;
        let line = line_of(host, "operator.log_in_failed").await;
        assert_eq!((&line["actor"], &line["address"]), (&json!("unknown"), &json!("203.0.113.9")));
        assert!(!line.to_string().contains("op_guessed"), "{line}");
        host.advance(60);
        try_from("203.0.113.9", "op_guessed_in_vain").await;
        host.until_count(FAILED, 2).await;
        let line = line_of(host, "operator.log_in_failed").await;
        assert_eq!(line["after"]["untold_before"], 4);
        try_from("203.0.113.10", &host.merchant.test_key).await;
        host.until_count(FAILED, 3).await;
        for address in 11..99 {
            try_from(&format!("203.0.113.{address}"), "op_guessed_in_vain").await;
        }
        host.until_count(FAILED, 31).await;
    })
    .await;
}

/// Letters and digits that nothing makes shorter, the same every time.
fn noise(length: usize) -> String {
    let mut state: u64 = 42;
    let letters = (0..length).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = usize::try_from(state >> 59).expect("five bits");
        char::from(b"abcdefghijklmnopqrstuvwxyz234567"[at])
    });
    letters.collect()
}

/// Whoever asks for what is longer than an index takes is told of all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_in_the_log_however_long_what_was_asked_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const DENIED: &str = "SELECT COUNT(*) FROM audit WHERE action = 'member.denied'";
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let viewer = join(host, &merchant, ("ada", "viewer")).await;
        let long = noise(5_000);
        let path = format!("keys/{long}");
        let denied = ask(host, &viewer.token, (Method::GET, &path), Value::Null).await;
        assert_eq!(denied.refused(), (403, "permission_denied"));
        host.until_count(DENIED, 1).await;
        let line = line_of(host, "member.denied").await;
        assert_eq!(line["actor"], json!(viewer.id));
        let asked = format!("/admin/v1/{path}");
        assert_eq!(line["subject_id"].as_str(), Some(&asked[..256]));
        // Whoever asks for one key after the other asks for keys.
        for _ in 0..5 {
            let path = format!("keys/{}", host.app().ids.id::<KeyId>());
            let denied = ask(host, &viewer.token, (Method::GET, &path), Value::Null).await;
            assert_eq!(denied.refused(), (403, "permission_denied"));
        }
        ask(host, &viewer.token, (Method::GET, "audit"), Value::Null).await;
        host.until_count(&format!("{DENIED} AND subject_id = '/admin/v1/audit'"), 1).await;
        assert_eq!(host.count(DENIED).await, 2);
    })
    .await;
}
