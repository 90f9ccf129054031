//! Payouts that wait for a route, many of them: they cost nothing meanwhile, and wait no longer than
//! they have to.

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::ach::{UNTIL_MONDAY, pay_live};
use crate::batches::{Payroll, bulk_key, rows};
use crate::file_transport::{Over, with_files};
use crate::lanes::{absent_gateway, patch, route_before, with_two_routes};
use crate::live::{until, with_bank};
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira, unique};

const MANY: u32 = 150;

/// A live batch that waits for approval.
async fn waiting(payroll: &Payroll<'_>) -> String {
    payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
    payroll.make(rows(MANY)).await.ok().id()
}

/// A live batch of which everything was looked at once, and no route takes any of it.
async fn unrouted(payroll: &Payroll<'_>) -> String {
    let batch = waiting(payroll).await;
    patch(payroll.host, "ngn_nip", json!({ "is_paused": true })).await.ok();
    payroll.decide(OPERATOR_TOKEN, "approve", &batch).await.ok();
    until_looked_at(payroll.host).await;
    batch
}

/// How much is not looked at again for longer than a minute.
async fn parked(host: &TestHost) -> i64 {
    let soon = host.clock.now().after(std::time::Duration::from_secs(61)).micros();
    host.count(&format!("SELECT COUNT(*) FROM transfers WHERE due_at > {soon}")).await
}

async fn until_looked_at(host: &TestHost) {
    let now = host.clock.now().micros();
    let looked_at = format!("SELECT COUNT(*) FROM transfers WHERE due_at > {now}");
    host.until_count(&looked_at, MANY.into()).await;
}

/// A few are looked at again and again; when one of them has gone, so do all.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_route_goes_when_one_of_it_has_gone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        let batch = unrouted(&payroll).await;
        assert!(parked(host).await > i64::from(MANY / 4));
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        host.advance(30);
        payroll.until(&batch, "completed").await;
    })
    .await;
}

/// The same of a wallet that was frozen: its merchant's payouts wait, and nobody else's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_wallet_goes_when_it_may(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        let batch = unrouted(&payroll).await;
        let wallet = format!("wallets/{}", host.merchant.live_wallet);
        let why = json!({ "reason": "a letter" });
        host.admin(Method::POST, &format!("{wallet}/freeze"), why.clone()).await.ok();
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        host.advance(300);
        until_looked_at(host).await;
        assert!(parked(host).await > i64::from(MANY / 4));
        host.admin(Method::POST, &format!("{wallet}/unfreeze"), why).await.ok();
        host.advance(60);
        payroll.until(&batch, "completed").await;
    })
    .await;
}

/// Another route takes some of what is queued behind all that it does not take.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_another_route_takes_waits_for_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        let batch = waiting(&payroll).await;
        route_before(host, &absent_gateway(), &[]).await;
        let bounds = json!({ "settings": { "bounds.most_minor": "50000" } });
        patch(host, "ngn_nip", bounds).await.ok();
        payroll.decide(OPERATOR_TOKEN, "approve", &batch).await.ok();
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), naira(50_000)).await.ok().id();
        until(host, &id, "paid").await;
    })
    .await;
}

/// A window does not wait: what goes by file is not parked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_by_file_is_looked_at_soon(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, _| {
        host.fund(&host.merchant.live_key, "USD", 10_000_000).await;
        for _ in 0..80 {
            pay_live(host, "77").await;
        }
        host.until_count("SELECT COUNT(*) FROM transfers WHERE fence = 1", 80).await;
        patch(host, "usd_ach", json!({ "is_paused": true })).await.ok();
        host.advance(UNTIL_MONDAY);
        let now = host.clock.now().micros();
        let looked_at = format!("SELECT COUNT(*) FROM transfers WHERE due_at > {now}");
        host.until_count(&looked_at, 80).await;
        assert_eq!(parked(host).await, 0);
    })
    .await;
}
