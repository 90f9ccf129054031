//! A window that an operator closes before its time.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{UNTIL_MONDAY, funded, pay_live, status, until_files};
use crate::live::{until, with_bank};
use crate::test_host::{Answer, Engine, TestHost};
use crate::under_way::until_it_waits;

/// The closings over the live route, the next one first.
async fn windows(host: &TestHost) -> Vec<Value> {
    let all = host.admin(Method::GET, "windows", json!(null)).await.ok().json;
    let all = all["data"].as_array().expect("windows").clone();
    let is_its = |window: &Value| window["env"] == "live" && window["route"] == "usd_ach";
    all.into_iter().filter(is_its).collect()
}

async fn close(host: &TestHost, window: &Value) -> Answer {
    let id = window["id"].as_str().expect("an id");
    let body = json!({ "reason": "the bank closes early today" });
    host.admin(Method::POST, &format!("windows/{id}/close"), body).await
}

/// Until so many payments wait for a window.
async fn wait(host: &TestHost, payments: i64) {
    let now = host.clock.now().micros();
    let sql = format!("SELECT COUNT(*) FROM transfers WHERE stage = 'queued' AND due_at > {now}");
    host.until_count(&sql, payments).await;
}

/// What waits leaves at once, with the value date that it had; what comes later leaves with the
/// next window, and the books say who closed it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_leaves_when_a_window_is_closed_early(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let (first, second) = (pay_live(host, "77").await, pay_live(host, "88").await);
        wait(host, 2).await;
        let before = windows(host).await;
        assert_eq!((before.len(), &before[0]["payments"]), (1, &json!(2)));
        let file = close(host, &before[0]).await.ok();
        // Time goes on before anybody has looked at it.
        host.advance(30);
        assert_eq!(file.json["business_date"], "2026-11-21");
        assert_eq!(file.json["value_date"], before[0]["value_date"]);
        for id in [&first, &second] {
            until(host, id, "processing").await;
        }
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let again = close(host, &before[0]).await;
        assert_eq!(again.refused(), (404, "not_found"));
        // The one after it is the next.
        let late = pay_live(host, "99").await;
        wait(host, 1).await;
        let after = windows(host).await;
        assert_eq!((after.len(), &after[0]["payments"]), (1, &json!(1)), "{after:?}");
        assert_ne!(after[0]["closes_at"], before[0]["closes_at"]);
        let its = until_it_waits(host, &late, "window").await;
        assert_eq!(its["until"], after[0]["closes_at"]);
        host.advance(UNTIL_MONDAY + 60);
        host.until_count("SELECT COUNT(*) FROM transfers WHERE lease_until > 0", 0).await;
        assert_eq!(status(host, &late).await, "queued");
        until_files(host, &[("acknowledged", 1)]).await;
        host.advance(24 * 3600);
        until(host, &first, "paid").await;
        until(host, &late, "processing").await;
        host.advance(2);
        until_files(host, &[("acknowledged", 1), ("delivered", 1)]).await;
        let references: Vec<String> = {
            let sql = "SELECT rail_reference FROM attempts";
            sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("attempts")
        };
        assert_eq!(references.len(), 3);
        for reference in references {
            let transfer = bank.transfer(&reference).await;
            assert_eq!((transfer.received, transfer.executed), (1, 1));
        }
        let line = "SELECT COUNT(*) FROM audit WHERE action = 'window.close'";
        assert_eq!(host.count(line).await, 1);
    })
    .await;
}

/// What comes too late for it waits for the next, which may be held back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_came_late_is_told_of_the_window_that_it_waits_for(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let first = pay_live(host, "77").await;
        wait(host, 1).await;
        close(host, &windows(host).await[0]).await.ok();
        host.advance(30);
        until(host, &first, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let late = pay_live(host, "99").await;
        wait(host, 1).await;
        let next = windows(host).await.remove(0);
        let its = until_it_waits(host, &late, "window").await;
        assert_eq!(its["until"], next["closes_at"]);
        let (next, why) = (next["id"].as_str().expect("an id"), json!({ "reason": "a call" }));
        host.admin(Method::POST, &format!("windows/{next}/hold"), why).await.ok();
        until_it_waits(host, &late, "held_file").await;
    })
    .await;
}

/// The rail puts one of two payments off: it goes with the next file, and the other one leaves.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_room_in_an_early_file_keeps_nothing_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        // The last trace number but none: after it they begin anew, in another file.
        let sql = "INSERT INTO file_numbers (place, files, entries, day, of_day) \
                   VALUES ('live/ach', 1, 9999998, '2026-11-20', 1)";
        host.run(&[sql.to_owned()]).await;
        let (first, second) = (pay_live(host, "77").await, pay_live(host, "88").await);
        wait(host, 2).await;
        close(host, &windows(host).await[0]).await.ok();
        for id in [&first, &second] {
            until(host, id, "processing").await;
        }
        host.advance(2);
        until_files(host, &[("collecting", 1), ("delivered", 1)]).await;
        let sql = "SELECT COUNT(*) FROM attempts a JOIN payment_files f ON f.id = a.file_id \
                   WHERE f.state = 'collecting'";
        assert_eq!(host.count(sql).await, 1);
        assert_eq!(host.count("SELECT COUNT(*) FROM cases").await, 0);
    })
    .await;
}

/// What is held back, what closes already, the sandbox's, and a route that takes nothing are not
/// closed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_cannot_be_closed_is_left_as_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let id = pay_live(host, "77").await;
        let window = windows(host).await[0].clone();
        let path = |verb: &str| format!("windows/{}/{verb}", window["id"].as_str().expect("an id"));
        let reason = json!({ "reason": "as the bank asks" });
        host.admin(Method::POST, &path("hold"), reason.clone()).await.ok();
        assert_eq!(close(host, &window).await.refused(), (409, "state_conflict"));
        host.admin(Method::POST, &path("release"), reason).await.ok();
        let nothing = host.admin(Method::POST, &path("close"), json!({})).await;
        assert_eq!(nothing.refused(), (400, "missing_field"));
        let route = format!("routes/{}", window["route_id"].as_str().expect("an id"));
        host.admin(Method::PATCH, &route, json!({ "is_paused": true })).await.ok();
        assert_eq!(close(host, &window).await.refused(), (409, "state_conflict"));
        host.admin(Method::PATCH, &route, json!({ "is_paused": false })).await.ok();
        assert_eq!(status(host, &id).await, "queued");
        close(host, &window).await.ok();
        until(host, &id, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
    })
    .await;
}

/// One of two payments in a file cannot be read: it goes into another file, of which a person is told,
/// and leaves when it can be.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_keeps_nothing_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let (good, bad) = (pay_live(host, "77").await, pay_live(host, "88").await);
        wait(host, 2).await;
        close(host, &windows(host).await[0]).await.ok();
        for id in [&good, &bad] {
            until(host, id, "processing").await;
        }
        let sql = "SELECT charges FROM payouts WHERE id = $1";
        let pool = host.app().db.pool();
        let kept: String = sqlx::query_scalar(sql).bind(&bad).fetch_one(pool).await.expect("one");
        host.run(&[format!("UPDATE payouts SET charges = '{{' WHERE id = '{bad}'")]).await;
        host.advance(2);
        until_files(host, &[("collecting", 1), ("delivered", 1)]).await;
        let case = crate::overtaken::until_one_case(host, "file_stuck").await;
        assert!(case["summary"].as_str().expect("a text").contains("cannot be read"), "{case}");
        host.run(&[format!("UPDATE payouts SET charges = '{kept}' WHERE id = '{bad}'")]).await;
        host.advance(3600);
        until_files(host, &[("acknowledged", 2)]).await;
    })
    .await;
}

/// A payment that waits for a window does not join its file for whom is blocked: a person is told, and
/// it goes with a later one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_window_does_not_leave_for_whom_is_blocked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let id = pay_live(host, "77").await;
        wait(host, 1).await;
        let block = json!({ "scope": "platform", "currency": "USD", "method": "ach",
            "account_number": "77", "routing_number": "021000021", "reason": "stolen" });
        let entry = host.admin(Method::POST, "blacklist", block).await.ok().id();
        close(host, &windows(host).await[0]).await.ok();
        crate::overtaken::until_one_case(host, "cannot_send").await;
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 0);
        host.admin(Method::DELETE, &format!("blacklist/{entry}"), json!({})).await.ok();
        host.advance(UNTIL_MONDAY + 60);
        until(host, &id, "processing").await;
    })
    .await;
}
