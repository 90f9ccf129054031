//! Who gets in: keys in every state, from every address, and what remains of a secret.

use http::Method;
use railhead::keyring::Keyring;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{
    Answer, Engine, Merchant, TestHost, naira, unique, with_host, with_host_configured,
};

const PROBE: &str = "/v1/wallets";

/// Creates a key and answers its whole description, with the id and the secret.
async fn key(host: &TestHost, merchant: &Merchant, with: Value) -> Answer {
    let mut body = json!({ "env": "test", "label": "a key", "capabilities": ["payout_create"] });
    for (name, value) in with.as_object().expect("an object") {
        body[name] = value.clone();
    }
    host.admin(Method::POST, &format!("merchants/{}/keys", merchant.id), body).await.ok()
}

fn secret(key: &Answer) -> String {
    key.json["secret"].as_str().expect("a secret").to_owned()
}

/// Status and code of a probe with this key; 200 and nothing if it is let in.
async fn probe(host: &TestHost, key: &str) -> (u16, String) {
    probe_from(host, key, &[]).await
}

async fn probe_from(host: &TestHost, key: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let answer = host.send(Method::GET, PROBE, key, headers, None).await;
    let code = answer.json["error"]["code"].as_str().unwrap_or("").to_owned();
    (answer.status, code)
}

fn let_in() -> (u16, String) {
    (200, String::new())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_a_well_formed_header_with_a_known_key_is_let_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let known = host.merchant.test_key.clone();
        let missing = host.send(Method::GET, PROBE, "", &[], None).await;
        assert_eq!(missing.refused(), (401, "missing_api_key"));
        assert_eq!(missing.json["error"]["type"], "authentication_error");
        for (header, expected) in [
            (format!("Bearer {known}"), 200),
            (format!("bearer {known}"), 200),
            (format!("BEARER  {known} "), 200),
            (known.clone(), 401),
            (format!("Basic {known}"), 401),
            (format!("Token {known}"), 401),
            (format!("Bearer{known}"), 401),
            ("Bearer".into(), 401),
            ("Bearer ".into(), 401),
            (String::new(), 401),
            (format!("Bearer {}", &known[..12]), 401),
            (format!("Bearer {known}x"), 401),
            (format!("Bearer {known} {known}"), 401),
            (format!("Bearer {}", known.replace("sk_test_", "sk_live_")), 401),
            (format!("Bearer {}", known.to_uppercase()), 401),
            (format!("Bearer sk_test_{}", "a".repeat(43)), 401),
            (format!("Bearer {}", "k".repeat(6_000)), 401),
            ("Bearer ' OR 1=1 --".into(), 401),
        ] {
            let headers = [("authorization", header.as_str())];
            let answer = host.send(Method::GET, PROBE, "", &headers, None).await;
            assert_eq!(answer.status, expected, "{header}: {}", answer.text);
            if expected == 401 {
                assert_eq!(answer.refused(), (401, "invalid_api_key"), "{header}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_expires_at_its_instant(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let expires = json!({ "expires_at": "2026-11-21T09:10:00Z" });
        let made = key(host, &host.merchant, expires).await;
        assert_eq!(made.json["expires_at"], "2026-11-21T09:10:00.000Z");
        let secret = secret(&made);
        host.advance(599);
        assert_eq!(probe(host, &secret).await, let_in());
        host.advance(1);
        assert_eq!(probe(host, &secret).await, refused(401, "key_expired"));
        // Nor does one come in its place that would have expired as well.
        let path = format!("keys/{}/rotate", made.id());
        let rotated = host.admin(Method::POST, &path, json!({})).await;
        assert_eq!(rotated.refused(), (409, "state_conflict"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_at_once_and_for_good(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let made = key(host, &host.merchant, json!({})).await;
        let (id, secret) = (made.id(), secret(&made));
        assert_eq!(probe(host, &secret).await, let_in());
        let path = format!("keys/{id}/revoke");
        let revoked = host.admin(Method::POST, &path, json!({})).await.ok();
        assert_eq!(revoked.json, json!({ "object": "api_key", "id": id, "revoked": true }));
        assert_eq!(probe(host, &secret).await, refused(401, "invalid_api_key"));
        host.admin(Method::POST, &path, json!({})).await.ok();
        let rotated = host.admin(Method::POST, &format!("keys/{id}/rotate"), json!({})).await;
        assert_eq!(rotated.refused(), (409, "state_conflict"));
        assert_eq!(probe(host, &host.merchant.test_key).await, let_in());
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_works_until_its_grace_ends(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let with = json!({ "ip_allowlist": ["127.0.0.0/8"], "permissions": ["webhook_manage"] });
        for (grace, seconds) in
            [(json!({ "grace_seconds": 60 }), 60), (json!({}), 24 * 3600), (Value::Null, 24 * 3600)]
        {
            let old = key(host, &host.merchant, with.clone()).await;
            let path = format!("/admin/v1/keys/{}/rotate", old.id());
            let body = Some(grace).filter(|grace| !grace.is_null());
            let token = crate::test_host::OPERATOR_TOKEN;
            let new = host.send(Method::POST, &path, token, &[], body).await.ok();
            assert_eq!(new.status, 201);
            for field in ["env", "label", "capabilities", "permissions", "ip_allowlist"] {
                assert_eq!(new.json[field], old.json[field], "{field}");
            }
            assert_ne!(new.json["secret"], old.json["secret"]);
            assert_eq!(probe(host, &secret(&old)).await, let_in());
            assert_eq!(probe(host, &secret(&new)).await, let_in());
            let again = host.send(Method::POST, &path, token, &[], Some(json!({}))).await;
            assert_eq!(again.refused(), (409, "state_conflict"));
            host.advance(seconds - 1);
            assert_eq!(probe(host, &secret(&old)).await, let_in());
            host.advance(1);
            assert_eq!(probe(host, &secret(&old)).await, refused(401, "grace_expired"));
            assert_eq!(probe(host, &secret(&new)).await, let_in());
        }
        let old = key(host, &host.merchant, json!({})).await;
        let path = format!("keys/{}/rotate", old.id());
        for wrong in [json!(30 * 24 * 3600 + 1), json!("60"), json!(-1), json!(1.5)] {
            let body = json!({ "grace_seconds": wrong });
            let answer = host.admin(Method::POST, &path, body).await;
            assert_eq!(answer.refused(), (400, "invalid_field"), "{wrong}");
            assert_eq!(answer.field(), "grace_seconds");
        }
        host.admin(Method::POST, &path, json!({ "grace_seconds": 0 })).await.ok();
        assert_eq!(probe(host, &secret(&old)).await, refused(401, "grace_expired"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_or_closed_merchant_is_kept_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let Merchant { id, test_key, live_key, .. } = host.merchant.clone();
        let other = host.new_merchant("Other").await;
        let path = format!("merchants/{id}");
        for (status, code) in [("suspended", "merchant_suspended"), ("closed", "merchant_closed")] {
            host.admin(Method::PATCH, &path, json!({ "status": status })).await.ok();
            for key in [&test_key, &live_key] {
                assert_eq!(probe(host, key).await, refused(403, code));
                let answer = host.pay_as(key, &unique(), naira(100_000)).await;
                assert_eq!(answer.refused(), (403, code));
                assert_eq!(answer.json["error"]["type"], "permission_error");
            }
            assert_eq!(probe(host, &other.test_key).await, let_in());
            host.admin(Method::PATCH, &path, json!({ "status": "active" })).await.ok();
            assert_eq!(probe(host, &test_key).await, let_in());
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_allowlist_admits_its_addresses_and_networks(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let behind_a_proxy = |config: &mut railhead::config::Config| {
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
    };
    with_host_configured(engine, behind_a_proxy, async |host| {
        let list = ["203.0.113.0/24", "198.51.100.7", "2001:db8::/32", "2001:db9::1"];
        let made = key(host, &host.merchant, json!({ "ip_allowlist": list })).await;
        let secret = secret(&made);
        for (forwarded, expected) in [
            ("203.0.113.0", 200),
            ("203.0.113.255", 200),
            ("::ffff:203.0.113.9", 200),
            ("198.51.100.7", 200),
            ("2001:db8:ffff::1", 200),
            ("2001:db9::1", 200),
            ("6.6.6.6, 203.0.113.9", 200),
            ("203.0.112.255", 403),
            ("203.0.114.0", 403),
            ("198.51.100.8", 403),
            ("2001:db9::2", 403),
            ("::1", 403),
            ("203.0.113.9, 6.6.6.6", 403),
            ("203.0.113.9, nonsense", 403),
            ("", 403),
        ] {
            let headers = [("x-forwarded-for", forwarded)];
            let (status, code) = probe_from(host, &secret, &headers).await;
            assert_eq!(status, expected, "{forwarded}");
            assert_eq!(code, if status == 200 { "" } else { "ip_not_allowed" }, "{forwarded}");
        }
        assert_eq!(probe(host, &secret).await, refused(403, "ip_not_allowed"));
        for wrong in ["office", "203.0.113.0/33", "203.0.113", "", "*"] {
            let path = format!("merchants/{}/keys", host.merchant.id);
            let body = json!({ "env": "test", "label": "x", "ip_allowlist": [wrong] });
            let answer = host.admin(Method::POST, &path, body).await;
            assert_eq!(answer.refused(), (400, "invalid_field"), "{wrong}");
            assert_eq!(answer.field(), "ip_allowlist");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_forwarded_address_is_believed_only_from_a_trusted_proxy(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let elsewhere = |config: &mut railhead::config::Config| {
        config.server.trusted_proxies = vec!["10.0.0.0/8".parse().expect("a network")];
    };
    with_host_configured(engine, elsewhere, async |host| {
        let list = json!({ "ip_allowlist": ["203.0.113.9"] });
        let stranger = secret(&key(host, &host.merchant, list).await);
        let headers = [("x-forwarded-for", "203.0.113.9")];
        let answer = probe_from(host, &stranger, &headers).await;
        assert_eq!(answer, refused(403, "ip_not_allowed"));
        let list = json!({ "ip_allowlist": ["127.0.0.1"] });
        let local = secret(&key(host, &host.merchant, list).await);
        assert_eq!(probe_from(host, &local, &headers).await, let_in());
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_the_capability_reads_and_creates_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let with = json!({ "env": "test", "capabilities": ["payout_fx", "refunds", "bulk"] });
        let reader = host.new_key(&host.merchant.id, with).await;
        let refused = host.pay_as(&reader, &unique(), naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "permission_denied"));
        assert_eq!(refused.json["error"]["type"], "permission_error");
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
        let wallet = host.merchant.test_wallet.clone();
        let customers = format!("/v1/wallets/{wallet}/transactions?customer_id=cus_1");
        let refused = host.get_as(&reader, &customers).await;
        assert_eq!(refused.refused(), (403, "permission_denied"));
        for path in ["/v1/wallets", "/v1/payouts", "/v1/balances", "/v1/events"] {
            host.get_as(&reader, path).await.ok();
        }
        let quote = json!({ "currency": "NGN", "amount_minor": "100000" });
        host.send(Method::POST, "/v1/payouts/quote", &reader, &[], Some(quote)).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_shown_once_and_kept_as_a_keyed_hash(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let made = key(host, &host.merchant, json!({})).await;
        let secret = secret(&made);
        assert_eq!(made.json["prefix"], secret[..12]);
        assert!(secret.starts_with("sk_test_") && secret.len() == 51, "{secret}");
        let new = host.admin(Method::POST, &format!("keys/{}/rotate", made.id()), json!({})).await;
        let new = new.json["secret"].as_str().expect("a secret").to_owned();

        let log = host.admin(Method::GET, "audit?limit=100", json!({})).await.ok();
        assert!(log.text.contains(&secret[..12]));
        let everything = "SELECT id || merchant_id || env || label || hash || prefix || \
            capabilities || permissions || ip_allowlist FROM api_keys";
        let pool = host.app().db.pool();
        let mut rows: Vec<String> =
            sqlx::query_scalar(everything).fetch_all(pool).await.expect("keys");
        rows.push(log.text);
        for secret in [&secret, &new] {
            assert!(!rows.concat().contains(&secret[12..]), "a secret was kept");
        }
        let stored = "SELECT hash FROM api_keys WHERE id = $1";
        let stored: String =
            sqlx::query_scalar(stored).bind(made.id()).fetch_one(pool).await.expect("a key");
        let under = |key: &str| Keyring::from_hex(&[key.repeat(32)]).expect("a key");
        assert_eq!(under("11").hash_api_key(&secret), stored);
        assert_ne!(under("22").hash_api_key(&secret), stored, "the hash does not need the key");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_replacements_at_once_one_counts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let body = json!({ "env": "test", "label": "raced", "capabilities": [] });
        let key = host.admin(Method::POST, &path, body).await.ok().id();
        let path = format!("keys/{key}/rotate");
        let rotate = || host.admin(Method::POST, &path, json!({}));
        let answers = futures::future::join_all((0..8).map(|_| rotate())).await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        let conflicts = answers.iter().filter(|answer| answer.status == 409).count();
        assert_eq!((made, conflicts), (1, 7));
    })
    .await;
}

/// So does each of them that is one too many get nobody anything.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_has_so_many_keys_that_work(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let create = async |env: &str| {
            let body = json!({ "env": env, "label": "one more" });
            host.admin(Method::POST, &path, body).await
        };
        let mut last = String::new();
        let refused = loop {
            let made = create("test").await;
            if made.status != 201 {
                break made;
            }
            last = made.id();
        };
        assert_eq!(refused.refused(), (409, "state_conflict"));
        let working = "SELECT COUNT(*) FROM api_keys WHERE env = 'test' AND revoked_at IS NULL";
        assert_eq!(host.count(working).await, railhead::config::limits::KEYS_MAX);
        create("live").await.ok();
        host.admin(Method::POST, &format!("keys/{last}/revoke"), json!({})).await.ok();
        create("test").await.ok();
    })
    .await;
}
