//! Rails that pay by file and mean harm: what is in a file leaves once, and what no file can hold
//! keeps nothing else back.

use std::time::Duration;

use http::Method;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use serde_json::json;

use crate::ach::{status, until_files};
use crate::hostile::{Till, attempt, with_hostile, with_hostile_configured};
use crate::lanes::patch;
use crate::live::until;
use crate::test_host::{DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with};

/// Tests begin on a Saturday at 09:00 UTC: until Monday, 16:00 in Lagos.
pub(crate) const UNTIL_MONDAY: u64 = (2 * 24 + 6) * 3600;

/// A live payout by file, with a deed.
pub(crate) async fn pay(host: &TestHost, deed: &str) -> String {
    let body = with(naira(100_000), json!({ "method": "bulk", "narration": deed }));
    let body = with(body, json!({ "allow_duplicate": true }));
    host.pay_as(&host.merchant.live_key.clone(), &unique(), body).await.ok().id()
}

/// Payouts by file, each with a deed, after their window has closed.
pub(crate) async fn paid_with(host: &TestHost, deeds: &[&str]) -> Vec<String> {
    let ids = joined(host, deeds).await;
    host.advance(2);
    ids
}

/// The same when they have joined a file.
async fn joined(host: &TestHost, deeds: &[&str]) -> Vec<String> {
    let ids = made(host, deeds).await;
    join(host, &ids).await;
    ids
}

/// Payouts by file that wait for their window.
pub(crate) async fn made(host: &TestHost, deeds: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for deed in deeds {
        ids.push(pay(host, deed).await);
    }
    ids
}

/// Their window comes, and they join a file.
pub(crate) async fn join(host: &TestHost, ids: &[String]) {
    host.advance(UNTIL_MONDAY);
    for id in ids {
        until(host, id, "processing").await;
    }
}

/// How often each of them was paid.
async fn received(host: &TestHost, till: &Till, ids: &[String]) -> Vec<u32> {
    let mut received = Vec::new();
    for id in ids {
        received.push(till.paid(&attempt(host, id).await.0));
    }
    received
}

/// Waits until they were paid so often. In which order they stand in a file is chance, and so is
/// into how many one is taken apart.
async fn until_received(host: &TestHost, till: &Till, (ids, wanted): (&[String], &[u32])) {
    for _ in 0..3_000 {
        if received(host, till, ids).await == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(received(host, till, ids).await, wanted);
}

async fn open_cases(host: &TestHost, kind: &str) -> i64 {
    // Of this rail: nobody answers for the others here.
    let sql = "SELECT COUNT(*) FROM cases WHERE kind = $1 AND status = 'open' \
               AND summary LIKE '%bulk%'";
    sqlx::query_scalar(sql).bind(kind).fetch_one(host.app().db.pool()).await.expect("a number")
}

/// Hours in which whatever is tried again is.
pub(crate) async fn hours_pass(host: &TestHost) {
    for _ in 0..3 {
        host.advance(3_700);
        let now = host.clock.now().micros();
        let due = format!(
            "SELECT COUNT(*) FROM payment_files WHERE due_at <= {now} \
             AND state NOT IN ('acknowledged', 'refused', 'empty')"
        );
        host.until_count(&due, 0).await;
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_a_file_goes_into_further_ones(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay"; 7]).await;
        until_files(host, &[("delivered", 3)]).await;
        assert_eq!(received(host, till, &ids).await, [1; 7]);
        let numbers = "SELECT COUNT(DISTINCT number) FROM payment_files WHERE entries <= 3";
        assert_eq!(host.count(numbers).await, 3);
    })
    .await;
}

/// The component traps over one payment: it stands alone in the end, and an operator ends it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_over_which_the_rail_fails_keeps_no_other_one_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", "trap", "pay"]).await;
        until_received(host, till, (&ids, &[1, 0, 1])).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck'", 1).await;
        let path = format!("payouts/{}/mark_failed", ids[1]);
        let body = json!({ "reason": "no file takes it", "evidence": "the case" });
        host.admin(Method::POST, &path, body).await.ok();
        assert_eq!(status(host, &ids[1]).await, "failed_manual");
        hours_pass(host).await;
        assert_eq!(received(host, till, &ids).await, [1, 0, 1]);
    })
    .await;
}

/// Waits until a host makes the only file there is; answers its id.
pub(crate) async fn until_made(host: &TestHost) -> String {
    host.advance(2);
    host.until_count(
        "SELECT COUNT(*) FROM payment_files WHERE state = 'closed' AND lease_until > 0",
        1,
    )
    .await;
    let file = "SELECT id FROM payment_files";
    sqlx::query_scalar(file).fetch_one(host.app().db.pool()).await.expect("a file")
}

/// An operator ends a payment while a host makes the file that it is in: it leaves without it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ended_while_its_file_is_made_does_not_leave_in_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = joined(host, &["dawdle", "pay"]).await;
        until_made(host).await;
        let path = format!("payouts/{}/mark_failed", ids[1]);
        let body = json!({ "reason": "a fraud", "evidence": "a call" });
        host.admin(Method::POST, &path, body).await.ok();
        hours_pass(host).await;
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(received(host, till, &ids).await, [1, 0]);
        assert_eq!(status(host, &ids[1]).await, "failed_manual");
    })
    .await;
}

/// Whoever was overtaken at a file takes nothing out of it: none of it leaves that is held back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_while_it_is_made_is_not_taken_apart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = joined(host, &["dawdle, then trap", "pay", "pay"]).await;
        let file = until_made(host).await;
        let path = format!("files/{file}/hold");
        host.admin(Method::POST, &path, json!({ "reason": "a dispute" })).await.ok();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        hours_pass(host).await;
        until_files(host, &[("closed", 1)]).await;
        assert_eq!(received(host, till, &ids).await, [0, 0, 0]);
        let path = format!("files/{file}/release");
        host.admin(Method::POST, &path, json!({ "reason": "it is settled" })).await.ok();
        until_received(host, till, (&ids, &[0, 1, 1])).await;
    })
    .await;
}

/// Whoever was overtaken at a file writes nothing down about its payments, and ends none.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_while_it_is_made_stays_as_it_was(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = joined(host, &["dawdle", "pay", "turn down"]).await;
        let file = until_made(host).await;
        let path = format!("files/{file}/hold");
        host.admin(Method::POST, &path, json!({ "reason": "a dispute" })).await.ok();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        hours_pass(host).await;
        until_files(host, &[("closed", 1)]).await;
        assert_eq!(host.count("SELECT COUNT(network_id) FROM attempts").await, 0);
        assert_eq!(status(host, &ids[2]).await, "processing");
        let path = format!("files/{file}/release");
        host.admin(Method::POST, &path, json!({ "reason": "it is settled" })).await.ok();
        until_received(host, till, (&ids, &[1, 1, 0])).await;
        assert_eq!(status(host, &ids[2]).await, "failed");
    })
    .await;
}

/// A host died after it had written down what the network calls each payment, and before the file
/// was fixed: what is ended then was never in it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ended_before_its_file_is_fixed_was_never_in_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", "refuse to make it"]).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck'", 1).await;
        let mut tx = host.app().db.write().await.expect("a transaction");
        let sql = "UPDATE attempts SET network_id = 'key of ' || rail_reference";
        sqlx::query(sql).execute(tx.conn()).await.expect("changed");
        tx.commit().await.expect("committed");
        let file: String = sqlx::query_scalar("SELECT id FROM payment_files")
            .fetch_one(host.app().db.pool())
            .await
            .expect("a file");
        let hold = json!({ "reason": "a dispute" });
        host.admin(Method::POST, &format!("files/{file}/hold"), hold.clone()).await.ok();
        let path = format!("payouts/{}/mark_failed", ids[1]);
        let body = json!({ "reason": "no file takes it", "evidence": "the case" });
        host.admin(Method::POST, &path, body).await.ok();
        host.admin(Method::POST, &format!("files/{file}/release"), hold).await.ok();
        until_received(host, till, (&ids, &[1, 0])).await;
        till.lay(&format!("accepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(open_cases(host, "paid_after_failure").await, 0);
    })
    .await;
}

/// What a rail refuses to make, makes wrong or names like another file leaves nothing, and is
/// tried again as it was: it is not taken apart.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_made_leaves_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("refuse to make it", "lose")] deed: &str,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", deed]).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck'", 1).await;
        hours_pass(host).await;
        until_files(host, &[("closed", 1)]).await;
        assert_eq!(received(host, till, &ids).await, [0, 0]);
        assert_eq!(open_cases(host, "file_stuck").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_used_is_not_used_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let first = paid_with(host, &["pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let second = pay(host, "repeat the name").await;
        host.advance(24 * 3600);
        until(host, &second, "processing").await;
        host.advance(2);
        until_files(host, &[("closed", 1), ("delivered", 1)]).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck'", 1).await;
        let calls = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'assemble'";
        let written = host.count(calls).await;
        hours_pass(host).await;
        assert_eq!(host.count(calls).await, written, "evidence of files that are none");
        assert_eq!(received(host, till, &[first[0].clone(), second]).await, [1, 0]);
    })
    .await;
}

/// A rail is believed neither that nothing was taken, once all of it has left, nor that something
/// was, where nothing has. Looking for a file moves no money.
#[rstest]
#[case::denied("deny that it was taken", 1, "unclear")]
#[case::claimed("claim that it was taken", 0, "assembled")]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_that_lies_about_a_delivery_is_not_believed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] deed: &str,
    #[case] times: u32,
    #[case] state: &str,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &[deed]).await;
        until_files(host, &[(state, 1)]).await;
        hours_pass(host).await;
        until_files(host, &[(state, 1)]).await;
        assert_eq!(received(host, till, &ids).await, [times]);
        assert_eq!(till.paid("looked"), 0);
        let (unclear, stuck) = if times == 1 { (1, 0) } else { (0, 1) };
        assert_eq!(open_cases(host, "file_unacknowledged").await, unclear);
        assert_eq!(open_cases(host, "file_stuck").await, stuck);
    })
    .await;
}

/// What makes no sense of one payment keeps nobody else from being paid, and a person is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_odd_entry_keeps_no_other_payment_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", "pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let odd = attempt(host, &ids[0]).await.0;
        till.lay(&format!("returned {odd} 0\naccepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'unreadable'", 1).await;
        assert_eq!(open_cases(host, "unreadable_message").await, 1);
        host.advance(24 * 3600);
        until(host, &ids[1], "paid").await;
    })
    .await;
}

/// The network carries the file out, and says of one payment what nobody can act on: it is not paid
/// with the others, and a person ends it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_question_is_not_paid_with_its_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", "pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let odd = attempt(host, &ids[0]).await.0;
        till.lay(&format!("unknown {odd} 0\naccepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(open_cases(host, "outcome_unknown").await, 1);
        host.advance(24 * 3600);
        until(host, &ids[1], "paid").await;
        for _ in 0..3 {
            host.advance(24 * 3600);
            host.until_count("SELECT COUNT(*) FROM transfers WHERE lease_until > 0", 0).await;
        }
        until(host, &ids[0], "processing").await;
        assert_eq!(open_cases(host, "outcome_unknown").await, 1);
        let body = json!({ "evidence": "the bank's letter of today" });
        let path = format!("payouts/{}/mark_failed", ids[0]);
        // A host may be looking at it just now.
        let mark = async || host.admin(Method::POST, &path, body.clone()).await.status == 200;
        let marked = async { while !mark().await {} };
        tokio::time::timeout(Duration::from_secs(30), marked).await.expect("marked in time");
        until(host, &ids[0], "failed_manual").await;
    })
    .await;
}

/// And then its file is refused as a whole: it joins no other one before somebody has looked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_question_joins_no_other_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay", "pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let odd = attempt(host, &ids[0]).await.0;
        till.lay(&format!("unknown {odd} 0"));
        host.advance(300);
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'outcome_unknown'", 1).await;
        for id in &ids {
            till.forget(&attempt(host, id).await.0);
        }
        till.lay(&format!("refused {} 0", identity(host).await));
        host.advance(300);
        host.until_count("SELECT COUNT(*) FROM payment_files WHERE state = 'refused'", 1).await;
        host.advance(24 * 3600);
        host.until_count("SELECT COUNT(*) FROM attempts WHERE sends = 2", 1).await;
        host.advance(2);
        until_received(host, till, (&ids, &[0, 1])).await;
        let sql = "SELECT id FROM cases WHERE kind = 'outcome_unknown'";
        let case: String =
            sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("one");
        let body = json!({ "resolution": "acknowledge", "evidence": "they never had it" });
        host.admin(Method::POST, &format!("cases/{case}/resolve"), body).await.ok();
        host.advance(24 * 3600);
        host.until_count("SELECT COUNT(*) FROM attempts WHERE sends = 2", 2).await;
        host.advance(2);
        until_received(host, till, (&ids, &[1, 1])).await;
    })
    .await;
}

/// It was made, and its network speaks of one of its payments before it leaves: it leaves without.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_before_its_file_leaves_does_not_leave_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = joined(host, &["pay", "pay"]).await;
        patch(host, "ngn_bulk", json!({ "is_paused": true })).await.ok();
        host.advance(2);
        until_files(host, &[("assembled", 1)]).await;
        let ended = attempt(host, &ids[0]).await.0;
        till.lay(&format!("returned {ended} 100000"));
        host.advance(300);
        until(host, &ids[0], "failed").await;
        patch(host, "ngn_bulk", json!({ "is_paused": false })).await.ok();
        hours_pass(host).await;
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(received(host, till, &ids).await, [0, 1]);
        assert_eq!(host.count("SELECT entries FROM payment_files").await, 1);
    })
    .await;
}

/// Somebody's whole report came to the wrong place: a person is told, in few words.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_report_full_of_strangers_opens_few_cases(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        paid_with(host, &["pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let strangers = (0..300).map(|number| format!("returned stranger-{number} 5\n"));
        till.lay(strangers.collect::<String>().trim_end());
        host.advance(300);
        host.until_count("SELECT COUNT(*) FROM inbox WHERE tries > 0", 1).await;
        let open = "SELECT COUNT(*) FROM cases WHERE kind = 'unknown_reference'";
        assert_eq!(host.count(open).await, 21);
        for tries in 1..4 {
            host.advance(3_600);
            let tried = format!("SELECT COUNT(*) FROM inbox WHERE tries > {tries}");
            host.until_count(&tried, 1).await;
        }
        assert_eq!(host.count(open).await, 21);
    })
    .await;
}

/// A file over which the rail fails is tried again, and not for ever: then a person is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rail_fails_over_is_tried_again_and_not_for_ever(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        till.lay("trap");
        till.lay(&format!("accepted {} 0", identity(host).await));
        host.advance(300);
        // It keeps nothing back that comes after it.
        until_files(host, &[("acknowledged", 1)]).await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'new'", 1).await;
        assert_eq!(open_cases(host, "unreadable_message").await, 0);
        for _ in 0..60 {
            host.advance(2 * 3600);
            let now = host.clock.now().micros();
            let due = format!("SELECT COUNT(*) FROM inbox WHERE state = 'new' AND due_at <= {now}");
            host.until_count(&due, 0).await;
        }
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'unreadable'", 1).await;
        assert_eq!(open_cases(host, "unreadable_message").await, 1);
        until(host, &ids[0], "paid").await;
    })
    .await;
}

/// Returns may lie where nobody can fetch them: after an hour a person is told, once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_fails_for_an_hour_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        till.shut_feed();
        let failing = "SELECT COUNT(*) FROM feeds WHERE failing_since IS NOT NULL \
                       AND lease_until = 0 AND feed = 'news'";
        let fetching = async |seconds: u64| {
            host.advance(seconds);
            let now = host.clock.now().micros();
            let due = format!("SELECT COUNT(*) FROM feed_turns WHERE due_at <= {now}");
            host.until_count(&due, 0).await;
            host.until_count(failing, 1).await;
        };
        for _ in 0..11 {
            fetching(300).await;
        }
        assert_eq!(open_cases(host, "feed_unreachable").await, 0);
        for _ in 0..3 {
            fetching(600).await;
        }
        assert_eq!(open_cases(host, "feed_unreachable").await, 1);
        till.open_feed();
        till.lay(&format!("accepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(host.count(failing).await, 0);
        host.advance(24 * 3600);
        until(host, &ids[0], "paid").await;
    })
    .await;
}

/// What the network calls the only file there is.
pub(crate) async fn identity(host: &TestHost) -> String {
    let sql = "SELECT identity FROM payment_files";
    sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("a file")
}

/// A route that is paused before its window closes: what waited goes over the other one, together.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_route_that_is_paused_goes_over_the_other_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let other = json!({ "name": "ngn_other", "env": "live", "currency": "NGN",
            "method": "bulk", "rail": "bulk", "position": 9 });
        host.admin(Method::POST, "routes", other).await.ok();
        let mut ids = Vec::new();
        for _ in 0..20 {
            ids.push(pay(host, "pay").await);
        }
        patch(host, "ngn_bulk", json!({ "is_paused": true })).await.ok();
        host.advance(UNTIL_MONDAY);
        for id in &ids {
            until(host, id, "processing").await;
        }
        host.advance(2);
        until_files(host, &[("delivered", 7)]).await;
        let others = "SELECT COUNT(*) FROM payment_files WHERE route = 'ngn_other'";
        assert_eq!(host.count(others).await, 7);
        assert_eq!(received(host, till, &ids).await, [1; 20]);
        // Both read what the bank leaves lying ready: each report is taken in once, and is nobody's
        // that is not known.
        let sql = "SELECT identity FROM payment_files";
        let identities: Vec<String> =
            sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("files");
        identities.iter().for_each(|identity| till.lay(&format!("accepted {identity} 0")));
        host.advance(300);
        until_files(host, &[("acknowledged", 7)]).await;
        let reading = "SELECT COUNT(*) FROM feeds WHERE feed = 'news' AND cursor <> '7'";
        host.until_count(reading, 0).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 7);
        assert_eq!(open_cases(host, "unknown_reference").await, 0);
    })
    .await;
}

/// Whoever asked for a mark did so before the bank acknowledged the file that the payout is in.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_agreed_to_a_mark_has_not_agreed_to_it_after_the_bank_has_acknowledged_its_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Mark];
    with_hostile_configured(engine, two, async |host: &mut TestHost, till: &Till| {
        let id = joined(host, &["pay"]).await.remove(0);
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let mark = async |who: &str| {
            let body = json!({ "evidence": "the bank never had it", "reason": "a test" });
            let path = format!("/admin/v1/payouts/{id}/mark_failed");
            host.send(Method::POST, &path, who, &[], Some(body)).await.ok().status
        };
        assert_eq!(mark(OPERATOR_TOKEN).await, 202);
        till.lay(&format!("accepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(mark(DESK_TOKEN).await, 202);
        assert_eq!(status(host, &id).await, "processing");
        // They know of it now; and not of what does not fit that.
        till.lay(&format!("accepted {} 77", identity(host).await));
        host.advance(300);
        let told = "SELECT COUNT(*) FROM cases WHERE kind = 'file_contradicted'";
        host.until_count(told, 1).await;
        assert_eq!(mark(OPERATOR_TOKEN).await, 202);
        assert_eq!(mark(DESK_TOKEN).await, 200);
    })
    .await;
}
