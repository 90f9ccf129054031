//! The audit log: who changed what, when, from where, and how it was before.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

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
            (format!("wallets/{wallet}/freeze"), movement(), "wallet.freeze", "wallet"),
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
