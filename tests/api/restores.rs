//! A database that has forgotten something: restored from a backup, failed over, or copied.

use http::Method;
use railhead::clock::Clock;
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};

use crate::bank::Bank;
use crate::lanes::{
    absent_gateway, attempts, no_route_takes, pair, patch, route_before, settings, with_two_routes,
};
use crate::live::{TOTAL, pay, reference, until, with_bank};
use crate::network::{Sends, live};
use crate::packs::restart;
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira};

/// Everything that a database holds, set aside.
pub(crate) struct Backup {
    /// The folder of the file, or the name of a copy on the server.
    pub(crate) place: String,
}

pub(crate) fn file(host: &TestHost) -> std::path::PathBuf {
    host.database.folder.path().join("railhead.db")
}

pub(crate) fn server(host: &TestHost) -> (String, String) {
    let (server, name) = host.database.url.rsplit_once('/').expect("a database");
    (format!("{server}/postgres"), name.to_owned())
}

/// Copies a database within the server, over whatever is there.
pub(crate) async fn copy(server: &str, from: &str, to: &str) {
    let mut connection = sqlx::PgConnection::connect(server).await.expect("PostgreSQL");
    for sql in [
        // Sessions of programs that were killed may last a little longer than they.
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{from}'"),
        format!("DROP DATABASE IF EXISTS {to} WITH (FORCE)"),
        format!("CREATE DATABASE {to} TEMPLATE {from}"),
    ] {
        connection.execute(sqlx::AssertSqlSafe(sql)).await.expect("copied");
    }
    connection.close().await.expect("closed");
}

/// Stops the host and sets a copy of its database aside.
pub(crate) async fn back_up(host: &mut TestHost) -> Backup {
    host.running.take().expect("a host").stop().await.expect("stopped in order");
    match host.engine {
        Engine::Sqlite => {
            let place = file(host).with_extension("backup");
            std::fs::copy(file(host), &place).expect("copied");
            Backup { place: place.display().to_string() }
        }
        Engine::Postgres => {
            let (server, name) = server(host);
            let place = format!("{name}_backup");
            copy(&server, &name, &place).await;
            Backup { place }
        }
    }
}

/// Stops the host and puts the copy back.
pub(crate) async fn restore(host: &mut TestHost, backup: &Backup) {
    host.running.take().expect("a host").stop().await.expect("stopped in order");
    match host.engine {
        Engine::Sqlite => {
            for ending in ["db-wal", "db-shm"] {
                // Neither needs to be there.
                let _ = std::fs::remove_file(file(host).with_extension(ending));
            }
            std::fs::copy(&backup.place, file(host)).expect("restored");
        }
        Engine::Postgres => {
            let (server, name) = server(host);
            copy(&server, &backup.place, &name).await;
        }
    }
}

pub(crate) async fn start_again(host: &mut TestHost, bank: &Bank, sends: Sends) {
    let mut config = crate::test_host::config(&host.database);
    settings(&mut config, bank);
    live(&mut config, bank.url.clone(), sends);
    crate::network::start_again(host, config).await;
}

pub(crate) async fn quarantine(host: &TestHost) -> Value {
    let path = "/admin/v1/quarantine";
    host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json
}

pub(crate) async fn release(host: &TestHost) {
    let body = json!({ "reason": "the statement was compared" });
    // The last line is told by its instant.
    host.advance(1);
    let over = host.admin(Method::POST, "quarantine/release", body).await.ok();
    assert_eq!(over.json["is_active"], false);
    let line = host.last_line().await;
    assert_eq!(
        (&line["action"], &line["actor"]),
        (&json!("quarantine.release"), &json!("operator"))
    );
    assert_eq!(line["after"]["reason"], "the statement was compared");
}

/// The payout that was queued goes out, is forgotten, and goes out again under the same
/// reference only after the bank was asked; the one that is wholly forgotten is a case.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_nothing_leaves_until_the_operator_says_so_and_nobody_is_paid_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let first = pay(host, "0123456785").await.ok().id();
        until(host, &first, "paid").await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::No).await;
        let queued = pay(host, "0123456785").await.ok().id();
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        assert_eq!(quarantine(host).await["is_active"], false, "nothing has happened");
        let sent = reference(&until(host, &queued, "paid").await);
        let forgotten = pay(host, "0123456785").await.ok().id();
        let gone = reference(&until(host, &forgotten, "paid").await);
        assert_eq!(bank.transfers().await.len(), 3);

        restore(host, &backup).await;
        start_again(host, bank, Sends::Yes).await;
        let shown = quarantine(host).await;
        assert_eq!(
            (&shown["is_active"], &shown["forgotten"]),
            (&json!(true), &json!(2)),
            "{shown}"
        );
        assert!(shown["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()));
        host.advance(61);
        host.pay("paid", naira(100_000)).await.ok();
        let fresh = pay(host, "0123456785").await.ok().id();
        for _ in 0..3 {
            host.advance(60);
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        assert_eq!(bank.transfers().await.len(), 3, "something left in quarantine");
        for id in [&queued, &fresh] {
            until(host, id, "queued").await;
        }
        let cases = host.send(Method::GET, "/admin/v1/cases", OPERATOR_TOKEN, &[], None).await.ok();
        let cases = cases.json["data"].as_array().cloned().expect("cases");
        let about: Vec<_> = cases
            .iter()
            .map(|case| {
                (
                    case["kind"].as_str().unwrap_or(""),
                    case["evidence"]["reference"].as_str().unwrap_or(""),
                )
            })
            .collect();
        assert!(about.contains(&("forgotten_transfer", gone.as_str())), "{about:?}");

        // It may have left: whoever takes it back has to wait for the bank's word.
        let path = format!("/v1/payouts/{queued}/cancel");
        let key = host.merchant.live_key.clone();
        let cancel = async |host: &TestHost| {
            let body = Some(json!({ "reason": "no longer wanted" }));
            host.send(Method::POST, &path, &key, &[], body).await
        };
        assert_eq!(cancel(host).await.refused(), (409, "payout_not_cancellable"));
        let (its, why) = (format!("payouts/{queued}"), json!({ "reason": "no longer wanted" }));
        let by_hand = host.admin(Method::POST, &format!("{its}/cancel"), why).await;
        assert_eq!(by_hand.refused(), (409, "payout_not_cancellable"));
        let seen = host.get_as(OPERATOR_TOKEN, &format!("/admin/v1/{its}")).await.ok();
        assert_eq!(seen.json["under_way"]["waits_for"], "quarantine");

        release(host).await;
        host.advance(60);
        let again = until(host, &queued, "paid").await;
        assert_eq!(reference(&again), sent, "the same payout has the same reference");
        until(host, &fresh, "paid").await;
        assert_eq!(bank.transfer(&sent).await.received, 1, "asked about, and not sent again");
        assert_eq!(bank.transfers().await.len(), 4);
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000 - 3 * TOTAL);
        // A start like any other does not begin it again.
        let url = bank.url.clone();
        restart(host, |config| config.simulator.url = Some(url)).await;
        assert_eq!(quarantine(host).await["is_active"], false);
    })
    .await;
}

/// The host that made it had a clock that was ahead of that of the one that notices: a little, or so
/// much that only the case about it shows that it left.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_what_a_clock_ahead_has_made_is_asked_about_as_well(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(30, 600)] ahead_s: u64,
) {
    with_bank(engine, async |host, bank| {
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::No).await;
        let right = host.clock.now();
        host.advance(ahead_s);
        let id = pay(host, "0123456785").await.ok().id();
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        let sent = reference(&until(host, &id, "paid").await);
        restore(host, &backup).await;
        host.clock = Clock::fixed(right);
        start_again(host, bank, Sends::No).await;
        release(host).await;
        let (path, key) = (format!("/v1/payouts/{id}/cancel"), host.merchant.live_key.clone());
        let body = Some(json!({ "reason": "no longer wanted" }));
        let refused = host.send(Method::POST, &path, &key, &[], body).await;
        assert_eq!(refused.refused(), (409, "payout_not_cancellable"));
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::Yes).await;
        host.advance(ahead_s + 60);
        assert_eq!(reference(&until(host, &id, "paid").await), sent);
        assert_eq!(bank.transfer(&sent).await.received, 1);
    })
    .await;
}

/// Whom nothing may be sent to is asked about all the same: it may have left before.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_what_went_to_whom_is_blocked_now_is_asked_about(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::No).await;
        let id = pay(host, "0123456785").await.ok().id();
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        let sent = reference(&until(host, &id, "paid").await);
        restore(host, &backup).await;
        start_again(host, bank, Sends::No).await;
        release(host).await;
        let block = json!({ "scope": "platform", "currency": "NGN", "bank_code": "058",
            "account_number": "0123456785", "reason": "stolen" });
        host.admin(Method::POST, "blacklist", block).await.ok();
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::Yes).await;
        host.advance(60);
        assert_eq!(reference(&until(host, &id, "paid").await), sent);
        assert_eq!(bank.transfer(&sent).await.received, 1);
    })
    .await;
}

/// A host that comes up on a database that is another one, as after a failover or with a copy of
/// production, sends nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_another_one_is_not_trusted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("system", "timeline")] what: &str,
) {
    with_bank(engine, async |host, bank| {
        host.run(&[format!("UPDATE meta SET value = '77' WHERE key = '{what}'")]).await;
        let url = bank.url.clone();
        restart(host, |config| config.simulator.url = Some(url)).await;
        assert_eq!(quarantine(host).await["is_active"], true);
        // What comes in from now on cannot have left before, whatever the clocks of others say.
        host.advance(61);
        let id = pay(host, "0123456785").await.ok().id();
        host.advance(60);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        until(host, &id, "queued").await;
        let refused = host.admin(Method::POST, "quarantine/release", json!({})).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "missing_field"), "reason"));
        release(host).await;
        host.advance(60);
        until(host, &id, "paid").await;
        let refused =
            host.admin(Method::POST, "quarantine/release", json!({ "reason": "x" })).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
    })
    .await;
}

/// It went over the second route, because the first one was not there. After the restore it is
/// asked about where it went, and not sent over the first route, which is back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_a_payout_is_asked_about_where_it_went(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::No).await;
        route_before(host, &absent_gateway(), &[]).await;
        let id = pay(host, "0123456785").await.ok().id();
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        let sent = reference(&until(host, &id, "paid").await);
        let over = [pair("ngn_other", "not_sent"), pair("ngn_nip", "paid")];
        assert_eq!(attempts(host, &id).await, over);
        restore(host, &backup).await;
        start_again(host, bank, Sends::Yes).await;
        release(host).await;
        host.advance(60);
        let again = until(host, &id, "paid").await;
        assert_eq!(reference(&again), sent);
        assert_eq!(attempts(host, &id).await, [pair("ngn_nip", "paid")]);
        assert_eq!(bank.transfer(&sent).await.received, 1);
        assert_eq!(bank.transfers().await.len(), 2);
    })
    .await;
}

/// A draft that was approved and paid is a draft again, and is approved once more. Its reference
/// cannot be made a second time, so nothing is sent, and a person has to look.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_a_draft_that_was_paid_is_not_paid_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "1000" } });
        let path = format!("merchants/{}", host.merchant.id);
        host.admin(Method::PATCH, &path, threshold).await.ok();
        let id = pay(host, "0123456785").await.ok().id();
        until(host, &id, "draft").await;
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        let approve = format!("payouts/{id}/approve");
        host.admin(Method::POST, &approve, json!({})).await.ok();
        until(host, &id, "paid").await;
        restore(host, &backup).await;
        start_again(host, bank, Sends::Yes).await;
        release(host).await;
        host.advance(1);
        host.admin(Method::POST, &approve, json!({})).await.ok();
        let wanted = "SELECT COUNT(*) FROM cases WHERE kind = 'cannot_send'";
        for _ in 0..2_000 {
            if host.count(wanted).await == 1 {
                break;
            }
            host.advance(3600);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(host.count(wanted).await, 1);
        until(host, &id, "queued").await;
        assert_eq!(bank.transfers().await.len(), 1);
    })
    .await;
}

/// Its first attempt was open and unsent when the copy was made; then another route took over.
/// The first route is repaired after the restore, and still nothing goes out over it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_an_attempt_that_another_one_followed_is_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, bank| {
        let id = no_route_takes(host).await;
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        host.advance(5);
        let sent = reference(&until(host, &id, "paid").await);
        restore(host, &backup).await;
        start_again(host, bank, Sends::Yes).await;
        assert_eq!(quarantine(host).await["forgotten"], json!(1));
        patch(host, "ngn_other", json!({ "settings": { "endpoint.gateway": null } })).await.ok();
        release(host).await;
        host.advance(60);
        let again = until(host, &id, "paid").await;
        assert_eq!(reference(&again), sent);
        let over = [pair("ngn_other", "not_sent"), pair("ngn_nip", "paid")];
        assert_eq!(attempts(host, &id).await, over);
        assert_eq!(bank.transfer(&sent).await.received, 1);
        assert_eq!(bank.transfers().await.len(), 2);
    })
    .await;
}
