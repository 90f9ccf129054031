//! A network that sleeps: payments wait until it opens, and can be cancelled until then.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::live::{until, with_bank};
use crate::test_host::{Engine, TestHost, unique, with};
use crate::under_way::until_it_waits;

pub(crate) fn wire() -> Value {
    json!({
        "currency": "USD",
        "amount_minor": "125000",
        "recipient": {
            "method": "wire", "account_number": "000123456789", "routing_number": "121042882",
            "swift_code": "WFBIUS6S", "account_type": "checking", "name": "Jane Smith",
            "bank_name": "Wells Fargo Bank", "email": "jane@example.com",
            "street": "1 Main Street", "city": "Springfield", "state": "IL",
            "zip_code": "62701", "country": "US",
            "bank_address": { "line1": "420 Montgomery Street", "city": "San Francisco",
                "country": "US" },
        },
        "allow_duplicate": true,
    })
}

async fn opens_at(host: &TestHost, name: &str) -> Value {
    let routes = host.admin(Method::GET, "routes", json!(null)).await.ok();
    let mut routes = routes.json["data"].as_array().expect("routes").iter();
    let route = routes.find(|route| route["name"] == name && route["env"] == "live");
    route.expect("the route")["opens_at"].clone()
}

/// Tests begin on a Saturday morning: wires open on Sunday, at nine in the evening in New York.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_waits_until_its_network_opens(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        let key = host.merchant.live_key.clone();
        let wallet = host.fund(&key, "USD", 10_000_000).await;
        assert_eq!(opens_at(host, "usd_wire").await, "2026-11-23T02:00:00.000Z");
        assert_eq!(opens_at(host, "usd_ach").await, Value::Null);
        let stays = host.pay_as(&key, &unique(), wire()).await.ok().id();
        let goes = host.pay_as(&key, &unique(), wire()).await.ok().id();
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 2).await;
        for _ in 0..4 {
            host.advance(3600);
            host.until_count("SELECT COUNT(*) FROM transfers WHERE lease_until > 0", 0).await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 0);
        let its = until_it_waits(host, &stays, "hours").await;
        assert_eq!(its["until"], "2026-11-23T02:00:00.000Z");
        let cancel = format!("/v1/payouts/{goes}/cancel");
        let reason = json!({ "reason": "no longer needed" });
        let gone = host.send(Method::POST, &cancel, &key, &[], Some(reason)).await.ok();
        assert_eq!(gone.status_word(), "cancelled");
        host.advance(37 * 3600);
        until(host, &stays, "paid").await;
        assert_eq!(opens_at(host, "usd_wire").await, Value::Null);
        // In the sandbox it is always open.
        host.fund(&host.merchant.test_key.clone(), "USD", 10_000_000).await;
        assert_eq!(host.pay("", wire()).await.ok().status_word(), "paid");
        assert!(host.balance(&wallet).await < 10_000_000);
        let ach = with(wire(), json!({ "method": "ach" }));
        assert_eq!(host.pay("", ach).await.status, 400);
    })
    .await;
}
