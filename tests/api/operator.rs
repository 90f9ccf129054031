//! The operator's calls about merchants and keys, and who may make them.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with_host};

const NOBODY: &str = "c000000000000000000000000";

async fn read(host: &TestHost, path: &str) -> Answer {
    host.send(Method::GET, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_and_merchants_do_not_open_each_others_doors(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for path in ["/v1/wallets", "/v1/payouts", "/v1/events"] {
            let refused = host.get_as(OPERATOR_TOKEN, path).await;
            assert_eq!(refused.refused(), (401, "invalid_api_key"), "{path}");
        }
        let document = host.send(Method::GET, "/openapi.json", "", &[], None).await.ok().json;
        let mut asked = 0;
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in item.as_object().expect("operations").keys() {
                // Who signs in has nothing to show yet.
                let is_open = ["/admin/v1/sessions", "/admin/v1/invitations/accept"];
                if !path.starts_with("/admin/") || (method == "post" && is_open.contains(&&**path))
                {
                    continue;
                }
                let path = path.replace("{id}", NOBODY);
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("one");
                for (key, code) in [
                    (host.merchant.test_key.as_str(), "invalid_api_key"),
                    (&host.merchant.live_key, "invalid_api_key"),
                    ("op_tes", "invalid_api_key"),
                    ("op_test2", "invalid_api_key"),
                    ("", "missing_api_key"),
                ] {
                    let body = Some(json!({ "reason": "none" }));
                    let refused = host.send(method.clone(), &path, key, &[], body).await;
                    assert_eq!(refused.refused(), (401, code), "{method} {path}");
                    asked += 1;
                }
            }
        }
        assert!(asked > 100, "{asked}");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_created_with_wallets_in_both_worlds(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (country, timezone) in
            [("NG", "Africa/Lagos"), ("KE", "Africa/Nairobi"), ("GB", "Europe/London")]
        {
            let body = json!({ "name": " Beta ", "country": country });
            let made = host.admin(Method::POST, "merchants", body).await.ok();
            assert_eq!(made.status, 201);
            assert_eq!(
                (&made.json["name"], &made.json["timezone"]),
                (&json!("Beta"), &json!(timezone))
            );
            assert_eq!(made.json["status"], "active");
            let read = read(host, &format!("merchants/{}", made.id())).await.ok();
            assert_eq!(read.json, made.json);
        }
        let body = json!({ "name": "Gamma", "country": "NG", "currencies": ["NGN", "GBP", "NGN"],
                           "timezone": "UTC" });
        let made = host.admin(Method::POST, "merchants", body).await.ok();
        let wallets = made.json["wallets"].as_array().expect("wallets");
        let mut has: Vec<String> =
            wallets.iter().map(|w| format!("{} {}", w["env"], w["currency"])).collect();
        has.sort();
        let all = ["\"live\" \"GBP\"", "\"live\" \"NGN\"", "\"test\" \"GBP\"", "\"test\" \"NGN\""];
        assert_eq!(has, all);
        for (body, code, field) in [
            (json!({}), "missing_field", "name"),
            (json!({ "name": "  ", "country": "NG" }), "missing_field", "name"),
            (json!({ "name": "x" }), "missing_field", "country"),
            (json!({ "name": "x", "country": "ng" }), "invalid_field", "country"),
            (json!({ "name": "x", "country": "NGA" }), "invalid_field", "country"),
            (json!({ "name": 5, "country": "NG" }), "invalid_field", "name"),
            (
                json!({ "name": "x", "country": "NG", "timezone": "Lagos" }),
                "invalid_field",
                "timezone",
            ),
            (
                json!({ "name": "x", "country": "NG", "currencies": ["naira"] }),
                "invalid_field",
                "currencies",
            ),
            (
                json!({ "name": "x", "country": "NG", "currencies": "NGN" }),
                "invalid_field",
                "currencies",
            ),
        ] {
            let refused = host.admin(Method::POST, "merchants", body.clone()).await;
            assert_eq!(refused.refused(), (400, code), "{body}");
            assert_eq!(refused.field(), field, "{body}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM merchants").await, 5);
        assert_eq!(read(host, &format!("merchants/{NOBODY}")).await.refused(), (404, "not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_settings_are_merged_and_take_effect(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}", host.merchant.id);
        let set = async |changes: Value| host.admin(Method::PATCH, &path, changes).await.ok().json;
        let limits = json!({ "per_transaction_minor": "200000", "daily_minor": null });
        let set_limits = set(json!({ "limits": { "NGN": limits } })).await;
        assert_eq!(set_limits["limits"]["NGN"]["per_transaction_minor"], "200000");
        set(json!({ "features": { "fx_payouts": true, "collections": false } })).await;
        set(json!({ "features": { "collections": null }, "terms": { "fx_payouts": true } })).await;
        set(json!({ "payer_mode": "both", "timezone": "Africa/Accra" })).await;
        let after = set(json!({ "dual_control_threshold_minor": { "NGN": "150000" } })).await;
        assert_eq!(after["limits"]["NGN"]["per_transaction_minor"], "200000");
        assert_eq!(after["features"]["fx_payouts"], true);
        assert_eq!(after["features"]["collections"], Value::Null);
        assert_eq!(after["terms"]["fx_payouts"], true);
        assert_eq!(
            (&after["payer_mode"], &after["timezone"]),
            (&json!("both"), &json!("Africa/Accra"))
        );
        assert_eq!(read(host, &path).await.ok().json, after);

        let refused = host.pay("paid", naira(200_001)).await;
        assert_eq!(refused.refused(), (422, "limit_violation"));
        assert_eq!(refused.json["error"]["detail"]["kind"], "per_transaction");
        assert_eq!(host.pay("paid", naira(150_001)).await.ok().status_word(), "draft");
        assert_eq!(host.pay("paid", naira(150_000)).await.ok().status_word(), "paid");
        let after = set(json!({ "limits": { "NGN": null } })).await;
        assert_eq!(after["limits"], json!({}));
        let after = set(json!({ "dual_control_threshold_minor": null })).await;
        assert_eq!(after["dual_control_threshold_minor"], json!({}));
        assert_eq!(host.pay("paid", naira(200_001)).await.ok().status_word(), "paid");

        let after = set(json!({ "currencies": ["GBP"] })).await;
        let wallets = after["wallets"].as_array().expect("wallets");
        assert_eq!(wallets.iter().filter(|wallet| wallet["currency"] == "GBP").count(), 2);
        let refused = host.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (422, "unsupported_currency"));
        set(json!({ "currencies": null })).await;
        host.pay("paid", naira(100_000)).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_is_none_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}", host.merchant.id);
        let before = read(host, &path).await.ok().json;
        let limit = |value: Value| json!({ "limits": { "NGN": { "daily_minor": value } } });
        for (changes, field) in [
            (json!({ "status": "paused" }), "status"),
            (json!({ "status": null }), "status"),
            (json!({ "status": "closed", "timezone": "Mars/Olympus" }), "timezone"),
            (json!({ "timezone": 1 }), "timezone"),
            (limit(json!(100)), "limits.NGN.daily_minor"),
            (limit(json!("0")), "limits.NGN.daily_minor"),
            (limit(json!("-5")), "limits.NGN.daily_minor"),
            (limit(json!("1.5")), "limits.NGN.daily_minor"),
            (json!({ "limits": { "NGN": { "weekly_minor": "1" } } }), "limits.NGN.weekly_minor"),
            (json!({ "features": { "fx_payouts": "yes" } }), "features.fx_payouts"),
            (json!({ "terms": { "fx_payouts": 1 } }), "terms.fx_payouts"),
            (json!({ "payer_mode": "nobody" }), "payer_mode"),
            (json!({ "sender_info_required": "yes" }), "sender_info_required"),
            (json!({ "currencies": ["NGN", "naira"] }), "currencies[1]"),
            (
                json!({ "dual_control_threshold_minor": { "NGN": 5 } }),
                "dual_control_threshold_minor.NGN",
            ),
            // Whoever misspells a currency would believe the limit to be in force.
            (json!({ "limits": { "NGM": { "daily_minor": "100" } } }), "limits.NGM"),
            (json!({ "currencies": ["NGN", "NGM"] }), "currencies"),
            (json!({ "fx_pairs": { "NGN": ["USX"] } }), "fx_pairs.NGN"),
            (json!({ "auto_convert": { "NGN": "USX" } }), "auto_convert.NGN"),
        ] {
            let refused = host.admin(Method::PATCH, &path, changes.clone()).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{changes}");
            assert_eq!(refused.field(), field, "{changes}: {}", refused.text);
        }
        for changes in [
            json!({ "limits": { "naira": {} } }),
            json!({ "limits": 5 }),
            // A list is not an object's fields in order.
            json!({ "limits": { "NGN": ["5"] } }),
            json!({ "features": [true, true] }),
            json!({ "terms": [true] }),
        ] {
            let refused = host.admin(Method::PATCH, &path, changes.clone()).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{changes}");
        }
        assert_eq!(read(host, &path).await.ok().json, before);
        let nobody = host.admin(Method::PATCH, &format!("merchants/{NOBODY}"), json!({})).await;
        assert_eq!(nobody.refused(), (404, "not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_as_asked_or_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let wanted = json!({
            "env": "live", "label": "payroll",
            "capabilities": ["payout_create", "payout_fx", "conversion", "collections_create",
                             "refunds", "virtual_accounts_create", "bulk"],
            "permissions": ["payout_bulk_upload", "payout_bulk_approve",
                            "customer_transaction_view", "webhook_manage"],
            "ip_allowlist": ["127.0.0.1/32", "2001:db8::/32"],
            "expires_at": "2027-01-01T00:00:00.000Z",
        });
        let made = host.admin(Method::POST, &path, wanted.clone()).await.ok();
        for (field, value) in wanted.as_object().expect("an object") {
            assert_eq!(&made.json[field], value, "{field}");
        }
        for (changes, code, field) in [
            (json!({ "env": null }), "missing_field", "env"),
            (json!({ "env": "prod" }), "invalid_field", "env"),
            (json!({ "label": null }), "missing_field", "label"),
            (json!({ "label": " " }), "missing_field", "label"),
            (json!({ "capabilities": ["fly"] }), "invalid_field", "capabilities[0]"),
            (json!({ "capabilities": "bulk" }), "invalid_field", "capabilities"),
            (json!({ "permissions": ["payout_create"] }), "invalid_field", "permissions[0]"),
            (json!({ "ip_allowlist": "127.0.0.1" }), "invalid_field", "ip_allowlist"),
            (json!({ "expires_at": "tomorrow" }), "invalid_field", "expires_at"),
            (json!({ "expires_at": "2020-01-01T00:00:00Z" }), "invalid_field", "expires_at"),
        ] {
            let body = crate::test_host::with(wanted.clone(), changes.clone());
            let refused = host.admin(Method::POST, &path, body).await;
            assert_eq!(refused.refused(), (400, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
        }
        for path in [
            format!("merchants/{NOBODY}/keys"),
            format!("keys/{NOBODY}/rotate"),
            format!("keys/{NOBODY}/revoke"),
            "keys/x/revoke".into(),
        ] {
            let body = if path.ends_with("/keys") { wanted.clone() } else { json!({}) };
            let refused = host.admin(Method::POST, &path, body).await;
            assert_eq!(refused.refused(), (404, "not_found"), "{path}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM api_keys").await, 3);
    })
    .await;
}

/// Who is to agree to a credit sees whose wallet it is, and what it holds.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn wallets_are_shown_to_operators(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (merchant, wallet) = (host.merchant.id.clone(), host.merchant.live_wallet.clone());
        let shown = read(host, &format!("wallets/{wallet}")).await.ok().json;
        assert_eq!(
            (&shown["merchant_id"], &shown["env"], &shown["currency"]),
            (&json!(merchant), &json!("live"), &json!("NGN"))
        );
        let balance = host.balance(&wallet).await.to_string();
        assert_eq!(shown["available_balance_minor"], balance);
        let list = read(host, &format!("merchants/{merchant}/wallets")).await.ok().json;
        let list = list["data"].as_array().expect("wallets").clone();
        assert!(list.contains(&shown));
        let test = list.iter().filter(|it| it["env"] == "test");
        assert!(test.clone().any(|it| it["id"] == json!(host.merchant.test_wallet)));
        assert_eq!(list[0]["env"], "live", "what is real comes first");
        for path in [format!("wallets/{NOBODY}"), format!("merchants/{NOBODY}/wallets")] {
            assert_eq!(read(host, &path).await.status, 404, "{path}");
        }
    })
    .await;
}
