//! A route takes the amounts that its operator lets it take; others go over the next one, or are
//! refused.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{UNTIL_MONDAY, dollars, funded, pay_live, status, until_files};
use crate::lanes::{attempts, pair, patch, with_two_routes};
use crate::live::{until, with_bank};
use crate::test_host::{Engine, TestHost, naira, unique, with};

async fn paid_over(host: &TestHost, amount: u64) -> Vec<(String, String)> {
    let key = &host.merchant.live_key;
    let id = host.pay_as(key, &unique(), naira(amount)).await.ok().id();
    host.until(key, &id, "paid").await;
    attempts(host, &id).await
}

async fn set(host: &TestHost, name: &str, least: Value, most: Value) {
    let settings = json!({ "bounds.least_minor": least, "bounds.most_minor": most });
    patch(host, name, json!({ "settings": settings })).await.ok();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn amounts_go_over_routes_that_take_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _bank| {
        let other = json!({
            "name": "ngn_other", "env": "live", "currency": "NGN", "rail": "nip", "position": -1,
        });
        host.admin(Method::POST, "routes", other).await.ok();
        set(host, "ngn_other", json!(null), json!("100000")).await;
        assert_eq!(paid_over(host, 100_000).await, [pair("ngn_other", "paid")]);
        assert_eq!(paid_over(host, 100_001).await, [pair("ngn_nip", "paid")]);

        set(host, "ngn_nip", json!("200000"), json!("300000")).await;
        assert_eq!(paid_over(host, 200_000).await, [pair("ngn_nip", "paid")]);
        for (amount, kind, limit) in
            [(150_000, "per_transaction", "100000"), (300_001, "per_transaction", "300000")]
        {
            let refused = host.pay_as(&host.merchant.live_key, &unique(), naira(amount)).await;
            assert_eq!(refused.refused(), (422, "limit_violation"), "{amount}");
            let asked = json!({ "amount_minor": amount.to_string(), "currency": "NGN" });
            let key = &host.merchant.live_key;
            let quote = host.send(Method::POST, "/v1/payouts/quote", key, &[], Some(asked)).await;
            assert_eq!(quote.refused(), (422, "limit_violation"), "no price for what nobody pays");
            let error = &refused.json["error"];
            assert_eq!(
                (&error["field"], &error["detail"]["kind"]),
                (&json!("amount_minor"), &json!(kind))
            );
            assert_eq!(error["detail"]["limit_minor"], json!(limit), "{error}");
        }
        set(host, "ngn_other", json!("50000"), json!("100000")).await;
        let refused = host.pay_as(&host.merchant.live_key, &unique(), naira(49_999)).await;
        assert_eq!(refused.json["error"]["detail"]["kind"], json!("below_minimum"));
        // Nothing was taken from anybody.
        let payouts = "SELECT COUNT(*) FROM payouts WHERE env = 'live'";
        assert_eq!(host.count(payouts).await, 3);

        let nothing = json!({ "settings": { "bounds.least_minor": "100001" } });
        let refused = patch(host, "ngn_other", nothing).await;
        assert_eq!(refused.field(), "settings.bounds.most_minor");
        let odd = json!({ "settings": { "bounds.least_minor": "1.00" } });
        assert_eq!(patch(host, "ngn_other", odd).await.field(), "settings.bounds.least_minor");
    })
    .await;
}

/// What waits for a window while bounds are narrowed stays behind, and goes with a later one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_goes_when_a_route_takes_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let large = pay_live(host, "77").await;
        let body = with(dollars(json!({})), json!({ "amount_minor": "100" }));
        let small = host.pay_as(&key, &unique(), body).await.ok().id();
        set(host, "usd_ach", json!(null), json!("1000")).await;
        host.advance(UNTIL_MONDAY);
        until(host, &small, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        // What lies ready is looked for every five minutes.
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(status(host, &large).await, "queued");
        assert_eq!(attempts(host, &large).await, []);
        set(host, "usd_ach", json!(null), json!(null)).await;
        host.advance(24 * 3600);
        until(host, &large, "processing").await;
        let acknowledged = "SELECT COUNT(*) FROM payment_files WHERE state = 'acknowledged'";
        crate::packs::until("both files are acknowledged", async || {
            host.advance(2);
            host.count(acknowledged).await == 2
        })
        .await;
    })
    .await;
}
