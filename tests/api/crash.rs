//! SIGKILL at every step of a payout's life.
//!
//! The program is a process of its own; the bank and the database outlive it. Nothing in the
//! program knows of these tests: it is killed while the bank does not answer, or while the
//! database does not let it write.

use std::time::Duration;

use rstest::rstest;
use sqlx::PgPool;

use crate::bank::Hold;
use crate::program::Deployment;
use crate::test_host::{Answer, Engine, SOMEBODY_WAITS, naira, unique};

/// Longer than a lease and than the first questions; less than a day.
const LATER: Duration = Duration::from_secs(600);
const A_DAY: Duration = Duration::from_secs(86_400);
/// Time for the program to get as far as it can. It cannot get past what holds it up.
const A_MOMENT: Duration = Duration::from_millis(200);

/// A recipient whose name the bank has been asked for: paying it again is one request less.
async fn deployment(engine: Engine) -> Deployment {
    let deployment = Deployment::open(engine, "").await;
    let paid = deployment.pay(&unique(), naira(100_000)).await.ok();
    deployment.until(&paid.id(), "paid").await;
    deployment
}

/// Waits until there is something to count.
async fn until_there_is(pool: &PgPool, sql: &'static str) {
    for _ in 0..3_000 {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a number");
        if count > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing is counted by {sql}");
}

/// A payout that the bank has carried out, and whoever sent it is gone: its key and first answer.
async fn killed_while_the_bank_answers(deployment: &mut Deployment) -> (String, Answer) {
    let key = unique();
    deployment.bank.door.hold(Hold::Answer);
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    deployment.bank.door.until_held().await;
    deployment.kill().await;
    deployment.bank.door.hold(Hold::Nothing);
    (key, made)
}

/// What a payout has come to after everything: once in the books, once at the bank.
async fn prove_paid_once(deployment: &Deployment, id: &str, key: &str, first: Option<&Answer>) {
    let paid = deployment.until(id, "paid").await;
    let again = deployment.pay(key, naira(100_000)).await.ok();
    assert_eq!(again.id(), id);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    if let Some(first) = first {
        assert_eq!((again.status, &again.text), (first.status, &first.text));
    }
    let reference = paid.json["nip_reference"].as_str().expect("a reference");
    assert_eq!(deployment.bank.transfer(reference).await.executed, 1);
    deployment.prove().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_its_commit_a_payout_was_never_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let key = unique();
    let locked = deployment.lock("wallets, payouts").await;
    let request = deployment.pay_in_vain(&key, naira(100_000));
    tokio::time::sleep(A_MOMENT).await;
    deployment.kill().await;
    drop(locked);
    assert!(request.await.expect("no panic").is_err(), "nobody is left to answer");
    assert_eq!(deployment.count("SELECT COUNT(*) FROM payouts").await, 1);
    assert_eq!(deployment.count("SELECT COUNT(*) FROM idempotency_keys").await, 1);
    deployment.start(&[]).await;
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.count("SELECT COUNT(*) FROM payouts").await, 2);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_its_commit_a_payout_is_sent_by_the_next_start(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    deployment.kill().await;
    deployment.start(&[("RAILHEAD_WORKER__DISPATCH", "false")]).await;
    let key = unique();
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    assert_eq!(made.status_word(), "queued");
    deployment.kill().await;
    assert_eq!(deployment.bank.transfers().await.len(), 1);
    deployment.start(&[]).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 0));
}

/// On SQLite a lock of one table is a lock of all, so that the work is not even claimed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_attempts_commit_nothing_has_left(
    #[values(Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let key = unique();
    let locked = deployment.lock("attempts").await;
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    // It gets as far as the lock, and no further.
    let claimed = "SELECT COUNT(*) FROM transfers WHERE fence > 0";
    let pool = deployment.host.connections().await;
    until_there_is(&pool, claimed).await;
    until_there_is(&pool, SOMEBODY_WAITS).await;
    pool.close().await;
    deployment.kill().await;
    drop(locked);
    assert_eq!(deployment.count(claimed).await, 1, "the work was claimed");
    assert_eq!(deployment.bank.transfers().await.len(), 1);
    deployment.start(&[]).await;
    let held = deployment.host.get_as(&deployment.host.merchant.live_key, "/v1/payouts").await;
    assert_eq!(held.json["data"][0]["status"], "queued", "its lease has not run out");
    deployment.let_time_pass(LATER).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 0));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_bank_has_not_heard_of_it_a_payout_is_asked_about_and_sent_once_allowed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let key = unique();
    deployment.bank.door.hold(Hold::Request);
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    deployment.bank.door.until_held().await;
    deployment.kill().await;
    deployment.bank.door.hold(Hold::Nothing);
    deployment.let_time_pass(LATER).await;
    deployment.start(&[("RAILHEAD_WORKER__DISPATCH", "false")]).await;
    // A byte may have left: three times "never received" is not enough on the same day.
    for queries in 1..=3 {
        assert_eq!(deployment.requery(&made.id()).await.status_word(), "processing");
        assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, queries));
    }
    deployment.let_time_pass(A_DAY).await;
    assert_eq!(deployment.requery(&made.id()).await.status_word(), "paid");
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (2, 4));
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.bank.transfers().await.len(), 2, "the reference stayed the same");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_the_bank_answers_a_payout_is_asked_about_and_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let (key, made) = killed_while_the_bank_answers(&mut deployment).await;
    deployment.let_time_pass(LATER).await;
    deployment.start(&[]).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 1));
}

/// Whoever sent it had not yet said when it is asked about. On SQLite the next start takes it over
/// at once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_next_start_takes_over_is_asked_about_when_it_is_time(
    #[values("system", "nothing")] moved: &str,
) {
    let mut deployment = deployment(Engine::Sqlite).await;
    let (key, made) = killed_while_the_bank_answers(&mut deployment).await;
    // As slow as the machine may be.
    deployment.run("UPDATE attempts SET sent_at = sent_at + 60000000 WHERE state = 'open'").await;
    // In quarantine as well.
    deployment.run(&format!("UPDATE meta SET value = '77' WHERE key = '{moved}'")).await;
    deployment.start(&[]).await;
    let put_off = "SELECT COUNT(*) FROM transfers WHERE stage = 'sent' AND lease_until = 0";
    for _ in 0..2_000 {
        if deployment.count(put_off).await > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 0));
    deployment.let_time_pass(LATER).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 1));
}

/// Nothing is sent from a database that may have forgotten something; what may have left is asked
/// about.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_as_its_host_died_is_asked_about_in_quarantine(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let (key, made) = killed_while_the_bank_answers(&mut deployment).await;
    deployment.let_time_pass(LATER).await;
    deployment.run("UPDATE meta SET value = '77' WHERE key = 'timeline'").await;
    deployment.start(&[]).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 1));
    let later = deployment.pay(&unique(), naira(100_000)).await.ok();
    assert_eq!(later.status_word(), "queued");
    assert_eq!(deployment.bank.transfers().await.len(), 2, "nothing new leaves");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_outcomes_commit_a_payout_is_asked_about_and_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let key = unique();
    deployment.bank.door.hold(Hold::Answer);
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    deployment.bank.door.until_held().await;
    let locked = deployment.lock("wallets, payouts").await;
    deployment.bank.door.hold(Hold::Nothing);
    deployment.bank.door.until_answered().await;
    tokio::time::sleep(A_MOMENT).await;
    deployment.kill().await;
    drop(locked);
    deployment.let_time_pass(LATER).await;
    deployment.start(&[]).await;
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 1));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_outcomes_commit_a_payout_is_left_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = deployment(engine).await;
    let key = unique();
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    deployment.until(&made.id(), "paid").await;
    deployment.kill().await;
    deployment.let_time_pass(LATER).await;
    deployment.start(&[]).await;
    assert_eq!(deployment.requery(&made.id()).await.status_word(), "paid");
    prove_paid_once(&deployment, &made.id(), &key, Some(&made)).await;
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 0));
}
