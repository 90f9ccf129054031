//! Dollars on the same day: windows that a route has once its operator wants them, and that take
//! no more than a million dollars an entry.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{dollars, reference, status, until_files};
use crate::lanes::patch;
use crate::live::{until, with_bank};
use crate::test_host::{Engine, TestHost, unique, with};

/// The most that a window of the same day takes, in cents.
const MILLION: i64 = 100_000_000;

/// Tests begin on a Saturday at 09:00 UTC. What follows is in New York, from one to the next:
/// Monday 10:00, 13:00 and 16:45, Tuesday 08:30.
const UNTIL_FIRST_WINDOW: u64 = (2 * 24 + 6) * 3600;
const UNTIL_FIRST_SETTLES: u64 = 3 * 3600;
const UNTIL_LAST_WINDOW: u64 = (3 * 60 + 45) * 60;
const UNTIL_TUESDAY: u64 = (15 * 60 + 45) * 60;

async fn pay(host: &TestHost, (account, amount): (&str, i64)) -> String {
    let body = dollars(json!({ "account_number": account }));
    let body = with(body, json!({ "amount_minor": amount.to_string() }));
    host.pay_as(&host.merchant.live_key, &unique(), body).await.ok().id()
}

/// The files there are, the oldest first.
async fn files(host: &TestHost) -> Vec<Value> {
    let files = host.admin(Method::GET, "files", json!({})).await.ok();
    files.json["data"].as_array().expect("files").iter().rev().cloned().collect()
}

/// The window, the days and the sum of a file.
fn told(file: &Value) -> [&str; 5] {
    ["window", "business_date", "value_date", "settles_at", "amount_minor"]
        .map(|name| file[name].as_str().unwrap_or_else(|| panic!("no {name}: {file}")))
}

/// Waits until the bank has so many files, whether it has said so of them or not.
async fn until_sent(host: &TestHost, count: i64) {
    let sent = "SELECT COUNT(*) FROM payment_files WHERE state IN ('delivered', 'acknowledged')";
    host.until_count(sent, count).await;
}

/// Waits until every payment that is due by the clock was looked at.
async fn until_looked_at(host: &TestHost) {
    let now = host.clock.now().micros();
    let due = format!("SELECT COUNT(*) FROM transfers WHERE due_at <= {now}");
    host.until_count(&due, 0).await;
}

/// An entry of a million dollars goes in the first window of the day, and is paid at that window's
/// own hour; one of a cent more goes in the window of the next day.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_goes_on_the_same_day_up_to_a_million_dollars(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        patch(host, "usd_ach", json!({ "settings": { "same_day": "yes" } })).await.ok();
        host.fund(&host.merchant.live_key, "USD", MILLION.unsigned_abs() * 3).await;
        let small = pay(host, ("77", MILLION)).await;
        let large = pay(host, ("88", MILLION + 1)).await;
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 2).await;

        host.advance(UNTIL_FIRST_WINDOW);
        until(host, &small, "processing").await;
        host.advance(2);
        until_sent(host, 1).await;
        let first = files(host).await.remove(0);
        let settles = "2026-11-23T18:00:00.000Z";
        assert_eq!(told(&first), ["same-day-1", "2026-11-23", "2026-11-23", settles, "100000000"]);
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        // A minute before its hour it is not paid.
        host.advance(UNTIL_FIRST_SETTLES - 302 - 60);
        until_looked_at(host).await;
        assert_eq!(status(host, &small).await, "processing");
        host.advance(60);
        until(host, &small, "paid").await;
        assert_eq!(status(host, &large).await, "queued");

        host.advance(UNTIL_LAST_WINDOW);
        until(host, &large, "processing").await;
        host.advance(2);
        until_sent(host, 2).await;
        let second = files(host).await.remove(1);
        let settles = "2026-11-24T13:30:00.000Z";
        assert_eq!(told(&second), ["next-day", "2026-11-23", "2026-11-24", settles, "100000001"]);
        host.advance(300);
        until_files(host, &[("acknowledged", 2)]).await;
        host.advance(UNTIL_TUESDAY - 302);
        until(host, &large, "paid").await;
        for id in [&small, &large] {
            let transfer = bank.transfer(&reference(host, id).await).await;
            assert_eq!((transfer.received, transfer.executed), (1, 1));
        }
    })
    .await;
}

/// What comes too late for one window of the day goes in the next one of them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_late_for_one_window_goes_in_the_next(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        patch(host, "usd_ach", json!({ "settings": { "same_day": "yes" } })).await.ok();
        host.fund(&host.merchant.live_key, "USD", MILLION.unsigned_abs()).await;
        host.advance(UNTIL_FIRST_WINDOW + 60);
        let late = pay(host, ("77", 125_050)).await;
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 1).await;
        // At 12:30 in New York.
        host.advance(150 * 60 - 60);
        until(host, &late, "processing").await;
        host.advance(2);
        until_sent(host, 1).await;
        let file = files(host).await.remove(0);
        let settles = "2026-11-23T22:00:00.000Z";
        assert_eq!(told(&file), ["same-day-2", "2026-11-23", "2026-11-23", settles, "125050"]);
    })
    .await;
}

/// Where the operator does not want them, there are none.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nothing_goes_on_the_same_day(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let windows = async || {
            let windows = host.admin(Method::GET, "windows", json!({})).await.ok();
            let windows = windows.json["data"].as_array().expect("windows").clone();
            let is_its = |it: &Value| it["env"] == "live" && it["route"] == "usd_ach";
            let live = windows.into_iter().filter(is_its);
            live.map(|window| window["window"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(windows().await, ["next-day"]);
        patch(host, "usd_ach", json!({ "settings": { "same_day": "yes" } })).await.ok();
        let mut all = windows().await;
        all.sort_by_key(Value::to_string);
        assert_eq!(all, ["next-day", "same-day-1", "same-day-2", "same-day-3"]);
        let refused = patch(host, "usd_ach", json!({ "settings": { "same_day": "maybe" } })).await;
        assert_eq!(refused.refused(), (400, "invalid_field"));
    })
    .await;
}
