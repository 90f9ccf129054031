//! Several routes at once: a bank that hangs, one that is not there, one that is another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Method;
use railhead::config::Config;
use railhead::id::{Id as _, RouteId};
use railhead::transfers::attempt;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::bank::{Bank, Hold};
use crate::gateway::Tls;
use crate::hostile::{hostile, with_hostile};
use crate::live::{TOTAL, pay, reference, until, until_asked, with_bank};
use crate::network::{Sends, live};
use crate::packs::restart;
use crate::receiver::{authority_file, server_config};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host_configured};

/// A gateway that takes whatever it is sent, and never says a word until the guard is dropped.
async fn mute_gateway() -> (String, OwnedRwLockWriteGuard<()>) {
    let door = Arc::<RwLock<()>>::default();
    let shut = Arc::clone(&door).write_owned().await;
    let wait = move || {
        let door = Arc::clone(&door);
        async move {
            let _open = door.read().await;
        }
    };
    (Tls::open(server_config(), Router::new().fallback(wait)).await, shut)
}

/// What the bank behind the other route presents.
pub(crate) const OTHER: &str = "another bank's token";

/// Nobody listens there.
pub(crate) fn absent_gateway() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("https://{}", listener.local_addr().expect("an address"))
}

/// A host with a bank behind its own route, which may call a gateway on this machine as well.
pub(crate) fn settings(config: &mut Config, bank: &Bank) {
    config.simulator.url = Some(bank.url.clone());
    config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    let secrets = [("gateway_token", "simulator"), ("notice_token", OTHER)];
    config.routes.insert("ngn_other".to_owned(), of_nip(secrets));
}

/// What is configured for a live route of NIP: who pays, besides these secrets.
pub(crate) fn of_nip(secrets: [(&str, &str); 2]) -> BTreeMap<String, String> {
    let identity = [
        ("institution_code", "999998"),
        ("originator_account_name", "ACME LIMITED"),
        ("originator_account_number", "0123456785"),
        ("originator_kyc_level", "3"),
        ("transaction_location", "6.4300747,3.4110715"),
    ];
    let all = identity.into_iter().chain(secrets);
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A test host with a bank behind its own route, and a second route that a test may put before it.
pub(crate) async fn with_two_routes(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Bank)) {
    let bank = Bank::open().await;
    let change = |config: &mut Config| settings(config, &bank);
    with_host_configured(engine, change, async |host| {
        test(host, &bank).await;
        bank.prove().await;
    })
    .await;
}

/// A route before all others, to this gateway, for these merchants or for all.
pub(crate) async fn route_before(host: &TestHost, url: &str, merchants: &[&str]) -> String {
    let body = json!({
        "name": "ngn_other", "env": "live", "currency": "NGN", "rail": "nip", "position": -1,
        "merchants": merchants, "settings": { "endpoint.gateway": url },
    });
    host.admin(Method::POST, "routes", body).await.ok().id()
}

pub(crate) async fn route(host: &TestHost, name: &str) -> Value {
    let routes = host.admin(Method::GET, "routes", json!({})).await.ok();
    let routes = routes.json["data"].as_array().cloned().expect("routes");
    let found = routes.iter().find(|route| route["env"] == "live" && route["name"] == name);
    found.expect("a route").clone()
}

pub(crate) async fn patch(host: &TestHost, name: &str, changes: Value) -> Answer {
    let id = route(host, name).await["id"].as_str().expect("an id").to_owned();
    host.admin(Method::PATCH, &format!("routes/{id}"), changes).await
}

/// What became of each attempt of a payout, oldest first: its route, and how it stands.
pub(crate) async fn attempts(host: &TestHost, id: &str) -> Vec<(String, String)> {
    let sql = "SELECT route, state FROM attempts WHERE transfer_id = $1 ORDER BY id";
    sqlx::query_as(sql).bind(id).fetch_all(host.app().db.pool()).await.expect("attempts")
}

pub(crate) fn pair(route: &str, state: &str) -> (String, String) {
    (route.to_owned(), state.to_owned())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_hangs_delays_its_own_payments_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let few = |config: &mut Config| {
        settings(config, &bank);
        config.egress.extra_ca_file = Some(authority_file());
        config.worker.dispatch_concurrency = 8;
    };
    with_host_configured(engine, few, async |host| {
        let other = host.new_merchant("Other").await;
        // Names are on record: only the transfers themselves go out.
        for key in [&host.merchant.live_key, &other.live_key] {
            let id = host.pay_as(key, &unique(), naira(100_000)).await.ok().id();
            host.until(key, &id, "paid").await;
        }
        let (gateway, shut) = mute_gateway().await;
        route_before(host, &gateway, &[&host.merchant.id]).await;
        patch(host, "ngn_nip", json!({ "merchants": [other.id] })).await.ok();
        let (host, key) = (&*host, host.merchant.live_key.as_str());
        let stuck = (0..20).map(async |_| host.pay_as(key, &unique(), naira(100_000)).await);
        for answer in futures::future::join_all(stuck).await {
            answer.ok();
        }
        for _ in 0..5 {
            let id = host.pay_as(&other.live_key, &unique(), naira(100_000)).await.ok().id();
            host.until(&other.live_key, &id, "paid").await;
        }
        // None of the calls that hang had to end for that, and no more than the route has places
        // were begun.
        let begun = "SELECT COUNT(*) FROM attempts WHERE route = 'ngn_other'";
        host.until_count(begun, 8).await;
        let ended = "SELECT COUNT(*) FROM rail_calls c JOIN attempts a ON a.id = c.attempt_id \
                     WHERE a.route = 'ngn_other'";
        assert_eq!(host.count(ended).await, 0);
        // Whoever stops the host waits for them.
        drop(shut);
        bank.prove().await;
    })
    .await;
}

/// A lane is shared by merchants by turns: whoever has little to send is not behind everybody
/// who has much.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_with_much_to_send_does_not_keep_another_waiting(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let other = host.new_merchant("Other").await;
        let with = |sends: Sends| {
            let url = bank.url.clone();
            move |config: &mut Config| {
                live(config, url, sends);
                config.worker.dispatch_concurrency = 24;
            }
        };
        restart(host, with(Sends::No)).await;
        let key = host.merchant.live_key.clone();
        let many = (0..300).map(async |_| host.pay_as(&key, &unique(), naira(100_000)).await);
        for answer in futures::future::join_all(many).await {
            answer.ok();
        }
        let few = host.pay_as(&other.live_key, &unique(), naira(100_000)).await.ok().id();
        restart(host, with(Sends::Yes)).await;
        host.until(&other.live_key, &few, "paid").await;
        let before = "SELECT COUNT(*) FROM attempts a JOIN attempts o ON a.id < o.id \
                      JOIN payouts p ON p.id = o.transfer_id JOIN merchants m \
                      ON m.id = p.merchant_id WHERE m.name = 'Other'";
        let before = host.count(before).await;
        // Of what had places beside it, some may have been quicker.
        assert!(before < 100, "{before} of 300 went before it");
        bank.prove().await;
    })
    .await;
}

/// Claimed ahead of its places, a lane's work is free again when its bank has become slow, and when
/// the host stops: another one need not wait for leases to run out.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_claimed_ahead_is_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const AT_HAND: &str = "SELECT COUNT(*) FROM transfers t WHERE lease_until > 1 \
                           AND NOT EXISTS (SELECT 1 FROM attempts WHERE transfer_id = t.id)";
    with_bank(engine, async |host, bank| {
        let with = |sends: Sends| {
            let url = bank.url.clone();
            move |config: &mut Config| {
                live(config, url, sends);
                config.worker.dispatch_concurrency = 2;
            }
        };
        restart(host, with(Sends::No)).await;
        let key = host.merchant.live_key.clone();
        let many = (0..400).map(async |_| host.pay_as(&key, &unique(), naira(100_000)).await);
        for answer in futures::future::join_all(many).await {
            answer.ok();
        }
        restart(host, with(Sends::Yes)).await;
        let until_ahead = async |host: &TestHost| {
            let ahead = async { while host.count(AT_HAND).await <= 2 {} };
            let in_time = tokio::time::timeout(Duration::from_secs(30), ahead).await;
            in_time.expect("nothing is claimed ahead");
        };
        until_ahead(host).await;
        bank.door.hold(Hold::Answer);
        bank.door.until_held().await;
        host.until_count(AT_HAND, 0).await;
        bank.door.hold(Hold::Nothing);
        until_ahead(host).await;
        restart(host, with(Sends::No)).await;
        assert_eq!(host.count(AT_HAND).await, 0, "when the host has stopped");
        restart(host, with(Sends::Yes)).await;
        host.until_count("SELECT COUNT(*) FROM transfers", 0).await;
        bank.prove().await;
    })
    .await;
}

/// Its row says nothing of what is being sent for the first time, and whoever changes the gateway
/// has to know of it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_sent_is_open_and_in_order(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0123456785").await.ok().id();
        bank.door.until_held().await;
        host.prove().await;
        let pool = host.app().db.pool();
        let route = "SELECT route_id FROM route_configurations";
        let route: String = sqlx::query_scalar(route).fetch_one(pool).await.expect("one");
        let open = attempt::count_open(pool, &RouteId::from_text(route)).await;
        assert_eq!(open.expect("a number"), 1);
        bank.door.hold(Hold::Nothing);
        until(host, &id, "paid").await;
    })
    .await;
}

/// Payouts are read together, and one of them cannot be read: the others go out.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_cannot_be_read_keeps_no_other_one_waiting(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let url = bank.url.clone();
        restart(host, |config| live(config, url, Sends::No)).await;
        let bad = pay(host, "0123456785").await.ok().id();
        let good = pay(host, "0123456785").await.ok().id();
        let sql = "SELECT charges FROM payouts WHERE id = $1";
        let pool = host.app().db.pool();
        let kept: String = sqlx::query_scalar(sql).bind(&bad).fetch_one(pool).await.expect("one");
        host.run(&[format!("UPDATE payouts SET charges = '{{' WHERE id = '{bad}'")]).await;
        let url = bank.url.clone();
        restart(host, |config| live(config, url, Sends::Yes)).await;
        until(host, &good, "paid").await;
        // It is put off for a while, and its lease has to run out.
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 1).await;
        host.run(&[
            format!("UPDATE payouts SET charges = '{kept}' WHERE id = '{bad}'"),
            "UPDATE transfers SET lease_until = 1, due_at = 1".to_owned(),
        ])
        .await;
        until(host, &bad, "paid").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_never_left_goes_over_the_next_route_and_a_bad_one_is_left_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, bank| {
        let id = pay(host, "0123456785").await.ok().id();
        until(host, &id, "paid").await;
        route_before(host, &absent_gateway(), &[]).await;
        let mut ids = Vec::new();
        // One after the other: of what is tried at once nobody knows yet that the others failed.
        for _ in 0..20 {
            let id = pay(host, "0123456785").await.ok().id();
            until(host, &id, "paid").await;
            ids.push(id);
        }
        let over = attempts(host, &ids[0]).await;
        assert_eq!(over, [pair("ngn_other", "not_sent"), pair("ngn_nip", "paid")]);
        // After several failures in a row nothing is sent there for a while.
        let tried = "SELECT COUNT(*) FROM attempts WHERE route = 'ngn_other'";
        let tried = host.count(tried).await;
        assert!((8..20).contains(&tried), "{tried} tries");
        let left_alone = route(host, "ngn_other").await["breaker"].clone();
        assert_eq!(left_alone["failures"], tried, "{left_alone}");
        // After some seconds one payment may try it again.
        assert!(["open", "half_open"].map(Value::from).contains(&left_alone["state"]));
        assert_eq!(route(host, "ngn_nip").await["breaker"]["state"], "closed");
        assert_eq!(bank.transfers().await.len(), 21);
    })
    .await;
}

/// A payout whose first route leads nowhere, while the other one is paused.
pub(crate) async fn no_route_takes(host: &TestHost) -> String {
    let known = pay(host, "0123456785").await.ok().id();
    until(host, &known, "paid").await;
    route_before(host, &absent_gateway(), &[]).await;
    patch(host, "ngn_nip", json!({ "is_paused": true })).await.ok();
    let id = pay(host, "0123456785").await.ok().id();
    until(host, &id, "processing").await;
    until_asked(host, &id, 0).await;
    id
}

/// Nothing left over the first route, and there is no other one: the payout is not stranded.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_no_route_takes_it_a_payout_waits_and_goes_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _| {
        let id = no_route_takes(host).await;
        assert_eq!(attempts(host, &id).await, [pair("ngn_other", "open")]);
        host.prove().await;
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        host.advance(5);
        until(host, &id, "paid").await;
        let over = attempts(host, &id).await;
        assert_eq!(over, [pair("ngn_other", "not_sent"), pair("ngn_nip", "paid")]);
    })
    .await;
}

/// Nothing of it left, and then its route is repaired: the same route is worth another attempt.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_was_repaired_takes_what_waited_for_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _| {
        let id = no_route_takes(host).await;
        // Without an address of its own it leads to the bank of this test.
        patch(host, "ngn_other", json!({ "settings": { "endpoint.gateway": null } })).await.ok();
        host.advance(5);
        until(host, &id, "paid").await;
        let over = attempts(host, &id).await;
        assert_eq!(over, [pair("ngn_other", "not_sent"), pair("ngn_other", "paid")]);
    })
    .await;
}

/// A payout whose attempt ended and that does not know it, as a repair by hand may leave it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_state_is_found_work_goes_on_from_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("paid", "refused", "returned", "not_sent")] state: &str,
) {
    let bank = Bank::open().await;
    let url = bank.url.clone();
    let mut host = TestHost::open(engine, |config| config.simulator.url = Some(url)).await;
    let id = pay(&host, "0000001015").await.ok().id();
    until(&host, &id, "processing").await;
    until_asked(&host, &id, 0).await;
    host.run(&[format!("UPDATE attempts SET state = '{state}', answered_at = sent_at")]).await;
    host.advance(5);
    match state {
        "paid" => drop(until(&host, &id, "paid").await),
        "refused" | "returned" => drop(until(&host, &id, "failed").await),
        // There is no other route: it waits, and is looked at again and again.
        _ => {
            let looked_at = "SELECT COUNT(*) FROM transfers WHERE fence > 4";
            for _ in 0..3_000 {
                if host.count(looked_at).await == 1 {
                    break;
                }
                host.advance(60);
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            assert_eq!(host.count(looked_at).await, 1);
            until(&host, &id, "processing").await;
        }
    }
    // What was done to it by hand is in no evidence: this host ends without a proof.
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}

/// The same words from another gateway prove nothing: it was never sent there.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn never_received_from_another_gateway_does_not_permit_sending_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let other = Bank::open().await;
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001015").await.ok().id();
        let sent = reference(&until(host, &id, "processing").await);
        until_asked(host, &id, 0).await;
        restart(host, |config| config.simulator.url = Some(other.url.clone())).await;
        for queries in 1..=6 {
            host.advance(2 * 86_400);
            until_asked(host, &id, queries).await;
        }
        until(host, &id, "processing").await;
        assert_eq!(other.transfers().await.len(), 0, "it was sent to the other bank");
        assert_eq!(host.count("SELECT CAST(SUM(never_received) AS BIGINT) FROM attempts").await, 0);
        bank.control(&sent, "settle").await.ok();
        restart(host, |config| config.simulator.url = Some(bank.url.clone())).await;
        host.advance(2 * 86_400);
        until(host, &id, "paid").await;
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000 - TOTAL);
        assert_eq!(bank.transfer(&sent).await.received, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_payments_are_open_a_route_does_not_change_its_gateway(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001015").await.ok().id();
        let sent = reference(&until(host, &id, "processing").await);
        until_asked(host, &id, 0).await;
        let changes = || json!({ "settings": { "institution_code": "123456" } });
        let refused = patch(host, "ngn_nip", changes()).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        // What does not change where a payment is asked about may change.
        patch(host, "ngn_nip", json!({ "position": 3 })).await.ok();
        bank.control(&sent, "settle").await.ok();
        host.advance(5);
        until(host, &id, "paid").await;
        patch(host, "ngn_nip", changes()).await.ok();
        let to = with(naira(100_000), json!({}));
        let id = host.pay_as(&host.merchant.live_key, &unique(), to).await.ok().id();
        let paid = until(host, &id, "paid").await;
        assert!(reference(&paid).starts_with("123456"));
    })
    .await;
}

/// A network that refuses this host, and not the payment, is not sent the next ones at once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_refuses_us_is_left_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _till| {
        let health = async || {
            let routes = host.admin(Method::GET, "routes?limit=100", json!({})).await.ok();
            let routes = routes.json["data"].as_array().expect("routes").clone();
            let its = |it: &&Value| it["rail"] == "hostile" && it["env"] == "live";
            routes.iter().find(its).expect("a route")["breaker"]["state"].clone()
        };
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("refuse us")).await.ok().id();
        until(host, &id, "failed").await;
        assert_eq!(health().await, "open");
        // A person is told.
        let told = "SELECT COUNT(*) FROM cases WHERE kind = 'route_refused' AND status = 'open'";
        host.until_count(told, 1).await;
    })
    .await;
}
