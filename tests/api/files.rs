//! Files of payments where something goes wrong: hosts that die at any moment, two hosts and one
//! window, deliveries of which nobody knows, operators who decide meanwhile.

use std::time::Duration;

use http::Method;
use railhead::clock::{Clock, Moment};
use railhead::config::Config;
use railhead::db::Db;
use railhead::id::IdGenerator;
use rstest::rstest;
use serde_json::json;

use crate::ach::{UNTIL_MONDAY, UNTIL_TUESDAY, funded, pay_live, reference, status, until_files};
use crate::bank::{Bank, Hold};
use crate::crash_at_random::seed;
use crate::file_transport::deliver_again;
use crate::lanes::patch;
use crate::live::{until, with_bank};
use crate::network::{beside, start_again, start_when_free};
use crate::restores::{back_up, restore};
use crate::test_host::{Engine, TestHost, config};
use crate::under_way::until_it_waits;

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

/// Nobody can be asked about what may have left in a file: a person is told at its first window.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_what_may_have_left_by_file_is_somebodys_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let id = pay_live(host, "77").await;
        wait_for_a_window(host, &id).await;
        let backup = back_up(host).await;
        start_with(host, bank).await;
        restore(host, &backup).await;
        start_with(host, bank).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        host.advance(UNTIL_MONDAY);
        let its = until_it_waits(host, &id, "person").await;
        assert_eq!(its["cases"][0]["kind"], "cannot_send", "{its}");
        let path = format!("payouts/{id}");
        let why = json!({ "reason": "made by mistake" });
        let cancelled = host.admin(Method::POST, &format!("{path}/cancel"), why).await;
        assert_eq!(cancelled.refused(), (409, "payout_not_cancellable"));
        let evidence = json!({ "evidence": "the bank has no such file" });
        let failed = host.admin(Method::POST, &format!("{path}/mark_failed"), evidence).await.ok();
        assert_eq!(failed.status_word(), "failed_manual");
        assert!(bank.transfers().await.is_empty());
    })
    .await;
}

/// Windows on the same day: Monday and Tuesday at 10:00 and 12:30 in New York.
const MONDAY: [&str; 2] = ["2026-11-23T15:00:00Z", "2026-11-23T17:30:00Z"];
const TUESDAY: [&str; 2] = ["2026-11-24T15:00:00Z", "2026-11-24T17:30:00Z"];
/// When the last window of Monday has closed.
const MONDAY_EVENING: &str = "2026-11-23T22:00:00Z";

/// Files that have their numbers.
const NUMBERED: &str = "SELECT COUNT(*) FROM payment_files WHERE number > 0";

fn advance_to(host: &TestHost, instant: &str) {
    let then = Moment::parse(instant).expect("an instant");
    host.clock.advance(then.since(host.clock.now()));
}

/// Until a payment waits for its window.
async fn wait_for_a_window(host: &TestHost, id: &str) {
    let now = host.clock.now().micros();
    let sql = format!(
        "SELECT COUNT(*) FROM transfers WHERE id = '{id}' AND stage = 'queued' AND due_at > {now}"
    );
    host.until_count(&sql, 1).await;
}

/// Pays, and has the payment join the file of the window that closes then.
async fn joined(host: &TestHost, closes_at: &str) {
    let id = pay_live(host, "77").await;
    wait_for_a_window(host, &id).await;
    advance_to(host, closes_at);
    until(host, &id, "processing").await;
    host.advance(2);
}

/// The same, until the file has its numbers.
async fn through_a_window(host: &TestHost, closes_at: &str) {
    let before = host.count(NUMBERED).await;
    joined(host, closes_at).await;
    host.until_count(NUMBERED, before + 1).await;
}

/// The business date of each file and its number of that day, as they were allotted.
async fn numbers_of_days(host: &TestHost) -> Vec<(String, i64)> {
    let sql = "SELECT business_date, number_of_day FROM payment_files WHERE number > 0 \
               ORDER BY number";
    sqlx::query_as(sql).fetch_all(host.app().db.pool()).await.expect("numbers")
}

fn numbered(day: &str, number: i64) -> (String, i64) {
    (day.to_owned(), number)
}

/// The second file of a day is held back until the next day has a file. Let go, it has a number that
/// the first one has not, and so has the next one of the next day.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_held_overnight_repeats_no_number_of_either_day(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        patch(host, "usd_ach", json!({ "settings": { "same_day": "yes" } })).await.ok();
        through_a_window(host, MONDAY[0]).await;
        let windows = host.admin(Method::GET, "windows", json!({})).await.ok();
        let mut windows = windows.json["data"].as_array().expect("windows").iter();
        let next = windows.find(|window| {
            window["env"] == "live"
                && window["route"] == "usd_ach"
                && window["window"] == "same-day-2"
        });
        let id = next.expect("a window")["id"].as_str().expect("an id");
        let body = json!({ "reason": "the bank asks for it" });
        let held = host.admin(Method::POST, &format!("windows/{id}/hold"), body.clone()).await;
        let held = held.ok().id();
        joined(host, MONDAY[1]).await;
        advance_to(host, MONDAY_EVENING);
        through_a_window(host, TUESDAY[0]).await;
        host.admin(Method::POST, &format!("files/{held}/release"), body).await.ok();
        host.until_count(NUMBERED, 3).await;
        through_a_window(host, TUESDAY[1]).await;
        let (monday, tuesday) = ("2026-11-23", "2026-11-24");
        let days =
            [numbered(monday, 1), numbered(tuesday, 1), numbered(monday, 2), numbered(tuesday, 2)];
        assert_eq!(numbers_of_days(host).await, days);
    })
    .await;
}

/// The backup is of a day before: it does not know that Monday has had a file. The next one of
/// Monday has a number far from that; the days after begin with their first.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_no_number_of_a_day_since_the_backup_is_repeated(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        patch(host, "usd_ach", json!({ "settings": { "same_day": "yes" } })).await.ok();
        let backup = back_up(host).await;
        start_with(host, bank).await;
        through_a_window(host, MONDAY[0]).await;
        let (monday, wednesday) = ("2026-11-23", "2026-11-25");
        assert_eq!(numbers_of_days(host).await, [numbered(monday, 1)]);
        restore(host, &backup).await;
        start_with(host, bank).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        // What is paid from now on was not there when the quarantine began, by any host's clock.
        host.advance(120);
        through_a_window(host, MONDAY[1]).await;
        assert_eq!(numbers_of_days(host).await, [numbered(monday, 9)]);
        advance_to(host, "2026-11-24T22:00:00Z");
        through_a_window(host, "2026-11-25T15:00:00Z").await;
        let days = [numbered(monday, 9), numbered(wednesday, 1)];
        assert_eq!(numbers_of_days(host).await, days);
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
