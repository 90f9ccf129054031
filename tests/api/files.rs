//! Files of payments where something goes wrong: hosts that die at any moment, two hosts and one
//! window, deliveries of which nobody knows, operators who decide meanwhile.

use std::time::Duration;

use http::Method;
use railhead::clock::Clock;
use railhead::config::Config;
use railhead::db::Db;
use railhead::id::IdGenerator;
use rstest::rstest;
use serde_json::json;

use crate::ach::{UNTIL_MONDAY, UNTIL_TUESDAY, funded, pay_live, reference, status, until_files};
use crate::bank::{Bank, Hold};
use crate::crash_at_random::seed;
use crate::file_transport::deliver_again;
use crate::live::{until, with_bank};
use crate::network::{beside, start_again, start_when_free};
use crate::restores::{back_up, restore};
use crate::test_host::{Engine, TestHost, config};

const KILLS: u64 = 25;
const PAYMENTS: i64 = 12;

/// Payments that were in time for a file, and those in a file that the bank carries out.
const JOINED: &str = "SELECT COUNT(*) FROM attempts WHERE file_id IS NOT NULL";
const CARRIED_OUT: &str = "SELECT COUNT(*) FROM attempts a JOIN payment_files f \
                           ON f.id = a.file_id WHERE f.state = 'acknowledged' \
                           AND a.network_id IS NOT NULL";

/// Runs a host for a moment, and drops it wherever it is: what it has not committed was never done.
fn run_and_kill(config: Config, clock: Clock, after: Duration) {
    let killed = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let running = runtime.block_on(async {
            let running = start_when_free(config, clock).await;
            tokio::time::sleep(after).await;
            running
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        // Not stopped in order: nothing of it runs any more.
        drop(running);
    });
    killed.join().expect("no panic");
}

/// What a dead host held is free: its leases have run out.
pub(crate) async fn release(host: &TestHost) {
    let db = Db::open_for_reading(&host.database.url.clone().into()).await.expect("a database");
    let mut tx = db.write().await.expect("a transaction");
    for sql in [
        "UPDATE transfers SET lease_until = 0",
        "UPDATE payment_files SET lease_until = 0",
        "UPDATE feeds SET lease_until = 0",
        "UPDATE inbox SET lease_until = 0",
    ] {
        sqlx::query(sql).execute(tx.conn()).await.expect("changed");
    }
    tx.commit().await.expect("committed");
}

/// Lets so many seconds pass, again and again, until as many payments have come so far. A file that
/// never arrived as its host died leaves once more because a person says so.
async fn let_pass_until(host: &TestHost, bank: &Bank, so_far: &str, seconds: u64) {
    let unclear = "SELECT COUNT(*) FROM payment_files WHERE state = 'unclear'";
    for _ in 0..300 {
        if host.count(so_far).await == PAYMENTS {
            return;
        }
        if host.count(unclear).await == 1 && bank.transfers().await.is_empty() {
            deliver_again(host).await;
        }
        host.advance(seconds);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(host.count(so_far).await, PAYMENTS, "{so_far}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_every_payment_of_a_file_leaves_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let mut ids = Vec::new();
        for number in 0..PAYMENTS {
            ids.push(pay_live(host, &format!("77{number}")).await);
        }
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        host.advance(UNTIL_MONDAY);
        let url = bank.url.clone();
        let with = |host: &TestHost| {
            let mut config = config(&host.database);
            config.simulator.url = Some(url.clone());
            config
        };
        let moments = IdGenerator::seeded(Clock::System, seed());
        for _ in 0..KILLS {
            let clock = host.clock.clone();
            let after = Duration::from_millis(moments.below(250));
            let config = with(host);
            tokio::task::spawn_blocking(move || run_and_kill(config, clock, after))
                .await
                .expect("no panic");
            release(host).await;
            host.advance(20);
        }
        start_again(host, with(host)).await;
        // Slowly: after a quarter of an hour it is too late to join, and their day is Tuesday.
        let_pass_until(host, bank, JOINED, 1).await;
        let_pass_until(host, bank, CARRIED_OUT, 30).await;
        host.advance(4 * 24 * 3600);
        for id in &ids {
            until(host, id, "paid").await;
            let transfer = bank.transfer(&reference(host, id).await).await;
            assert_eq!(transfer.executed, 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_make_one_file_of_one_window() {
    with_bank(Engine::Postgres, async |host, bank| {
        let url = bank.url.clone();
        let other = beside(host, |config| config.simulator.url = Some(url)).await;
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let mut ids = Vec::new();
        for number in 0..30 {
            let at = if number % 2 == 0 { &*host } else { &other };
            ids.push(pay_live(at, &format!("77{number}")).await);
        }
        host.advance(UNTIL_MONDAY);
        for id in &ids {
            until(host, id, "processing").await;
        }
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        host.advance(UNTIL_TUESDAY);
        for id in &ids {
            until(host, id, "paid").await;
            let transfer = bank.transfer(&reference(host, id).await).await;
            assert_eq!((transfer.received, transfer.executed), (1, 1));
        }
        other.close().await;
    })
    .await;
}

/// The bank may have the file or not. It is looked for, a person is told, and only a person has
/// it delivered again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_nobody_knows_of_is_looked_for_and_never_made_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let id = pay_live(host, "77").await;
        bank.door.hold(Hold::Request);
        host.advance(UNTIL_MONDAY);
        until(host, &id, "processing").await;
        host.advance(2);
        bank.door.until_held().await;
        bank.door.hold(Hold::Nothing);
        until_files(host, &[("unclear", 1)]).await;
        // For hours it does not lie there.
        for _ in 0..5 {
            host.advance(3_700);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let case = "SELECT COUNT(*) FROM cases WHERE kind = 'file_unacknowledged' \
                    AND status = 'open'";
        host.until_count(case, 1).await;
        assert!(bank.transfers().await.is_empty(), "nothing was sent again");
        assert_eq!(status(host, &id).await, "processing");
        let file = "SELECT id FROM payment_files";
        let file: String =
            sqlx::query_scalar(file).fetch_one(host.app().db.pool()).await.expect("a file");
        let path = format!("files/{file}/deliver");
        let body = json!({ "reason": "the bank says that it never had it" });
        // A host may be looking for it just now.
        let mut delivered = host.admin(Method::POST, &path, body.clone()).await;
        while delivered.status == 409 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            delivered = host.admin(Method::POST, &path, body.clone()).await;
        }
        delivered.ok();
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        host.until_count(case, 0).await;
        host.advance(UNTIL_TUESDAY);
        until(host, &id, "paid").await;
        let transfer = bank.transfer(&reference(host, &id).await).await;
        assert_eq!((transfer.received, transfer.executed), (1, 1));
    })
    .await;
}

/// An operator gives back what is in a file; then the bank carries the file out.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_ended_and_a_bank_carries_out_becomes_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        let key = host.merchant.live_key.clone();
        let wallet = funded(host, &key).await;
        let before = host.balance(&wallet).await;
        let (marked, other) = (pay_live(host, "77").await, pay_live(host, "78").await);
        host.advance(UNTIL_MONDAY);
        until(host, &marked, "processing").await;
        until(host, &other, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let path = format!("payouts/{marked}/mark_failed");
        let body = json!({ "reason": "lost", "evidence": "a call from the bank" });
        host.admin(Method::POST, &path, body).await.ok();
        assert_eq!(status(host, &marked).await, "failed_manual");
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        let case = "SELECT COUNT(*) FROM cases WHERE kind = 'paid_after_failure'";
        host.until_count(case, 1).await;
        host.advance(UNTIL_TUESDAY);
        until(host, &other, "paid").await;
        assert_eq!(status(host, &marked).await, "failed_manual");
        assert!(host.balance(&wallet).await < before);
    })
    .await;
}

/// Starts a host that was stopped, with its bank.
async fn start_with(host: &mut TestHost, bank: &Bank) {
    let mut with = config(&host.database);
    with.simulator.url = Some(bank.url.clone());
    start_again(host, with).await;
}

/// The file went out and was acknowledged, and the database has forgotten it, or that it left.
/// Nothing of it leaves again by itself.
#[rstest]
#[case::forgotten(false)]
#[case::unsent(true)]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_no_file_leaves_again_by_itself(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] has_joined: bool,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let id = pay_live(host, "77").await;
        if has_joined {
            // The file waits for somebody who is late, and is held back then.
            pay_live(host, "78").await;
            let late = "UPDATE transfers SET lease_until = 4000000000000000 WHERE id <> \
                        (SELECT MIN(id) FROM transfers)";
            change(host, late).await;
            host.advance(UNTIL_MONDAY);
            until(host, &id, "processing").await;
            until_files(host, &[("collecting", 1)]).await;
            hold(host).await;
            change(host, "UPDATE transfers SET lease_until = 0").await;
        }
        let backup = back_up(host).await;
        start_with(host, bank).await;
        match has_joined {
            true => let_go(host).await,
            false => host.advance(UNTIL_MONDAY),
        }
        host.advance(60);
        until_files(host, &[("delivered", 1)]).await;
        let reference = reference(host, &id).await;
        restore(host, &backup).await;
        start_with(host, bank).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        for _ in 0..30 {
            host.advance(3_600);
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        until(host, &id, "processing").await;
        // One at least.
        let told = "SELECT COUNT(*) FROM (SELECT id FROM cases WHERE status = 'open' AND kind IN \
                    ('forgotten_transfer', 'file_forgotten', 'cannot_send') LIMIT 1) c";
        host.until_count(told, 1).await;
        let transfer = bank.transfer(&reference).await;
        assert_eq!((transfer.received, transfer.executed), (1, 1));
    })
    .await;
}

/// Holds the file back that waits for somebody who is late.
async fn hold(host: &TestHost) {
    let file = "SELECT id FROM payment_files";
    let file: String =
        sqlx::query_scalar(file).fetch_one(host.app().db.pool()).await.expect("a file");
    let body = json!({ "reason": "a backup is made" });
    host.admin(Method::POST, &format!("files/{file}/hold"), body).await.ok();
}

async fn let_go(host: &TestHost) {
    let file = "SELECT id FROM payment_files";
    let file: String =
        sqlx::query_scalar(file).fetch_one(host.app().db.pool()).await.expect("a file");
    let body = json!({ "reason": "the backup is made" });
    host.admin(Method::POST, &format!("files/{file}/release"), body).await.ok();
}

async fn change(host: &TestHost, sql: &'static str) {
    let mut tx = host.app().db.write().await.expect("a transaction");
    sqlx::query(sql).execute(tx.conn()).await.expect("changed");
    tx.commit().await.expect("committed");
}
