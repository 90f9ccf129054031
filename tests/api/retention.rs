//! What is old enough is swept away, what is still on its way is not, and the books stay in order.

use std::time::Duration;

use http::Method;
use railhead::clock::Clock;
use railhead::config::{Config, Retention};
use railhead::id::RequestId;
use railhead::retention::months;
use railhead::verify::{Wanted, verify};
use rstest::rstest;
use serde_json::json;

use crate::batches::{bulk_key, rows};
use crate::hooks::{change, listen};
use crate::packs::restart;
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host};

/// As short as may be set where decisions are not kept for longer.
const SHORT: Retention = Retention {
    idempotency_days: 30,
    events_days: 90,
    evidence_days: 90,
    deliveries_days: 30,
    request_log_days: 90,
};

fn short(config: &mut Config) {
    config.retention = SHORT;
    config.rules.decisions_kept_days = 90;
}

/// Up to when each table was swept.
async fn marks(host: &TestHost) -> Vec<(String, String)> {
    let sql = "SELECT key, value FROM meta WHERE key LIKE 'swept/%' ORDER BY key";
    sqlx::query_as(sql).fetch_all(host.app().db.pool()).await.expect("marks")
}

/// How many rows of a table are about a payout.
async fn count(host: &TestHost, table: &str, payout: &str) -> i64 {
    let column = match table {
        "rail_calls" => "transfer_id",
        _ => "object_id",
    };
    let sql = format!("SELECT COUNT(*) FROM {table} WHERE {column} = $1");
    let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(payout);
    count.fetch_one(host.app().db.pool()).await.expect("a count")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn old_history_is_swept_and_the_books_stay_in_order(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let old = host.pay("paid", naira(100_000)).await.ok().id();
        let on_its_way = host.pay("processing", naira(200_000)).await.ok().id();
        let held = host.pay("fraud_hold", naira(200_001)).await.ok().id();
        // More than are swept at once.
        for kobo in 1..60 {
            host.pay("paid", naira(300_000 + kobo)).await.ok();
        }
        host.advance(110 * 86_400);
        let young = host.pay("paid", naira(100_000)).await.ok().id();
        let kept = [count(host, "events", &young).await, count(host, "rail_calls", &young).await];
        restart(host, |config| config.retention = SHORT).await;
        let all = "SELECT COUNT(DISTINCT object_id) FROM events WHERE object_type = 'payout'";
        host.until_count(all, 3).await;
        for table in ["events", "rail_calls"] {
            assert_eq!(count(host, table, &old).await, 0, "{table} of what is old");
        }
        assert!(
            count(host, "events", &on_its_way).await >= 1,
            "what is on its way keeps its history"
        );
        assert!(count(host, "rail_calls", &on_its_way).await >= 1, "and what was said about it");
        for (payout, why) in [(&on_its_way, "on its way"), (&held, "waits for a person")] {
            assert!(count(host, "events", payout).await >= 1, "{why}");
        }
        let after = [count(host, "events", &young).await, count(host, "rail_calls", &young).await];
        assert_eq!(after, kept, "what is young");
        host.prove().await;
        // What can no longer be played again cannot be forgotten on its way either.
        let put = |status: &str| {
            let sql = "UPDATE payouts SET status = '{}', holds_batch = 0 WHERE id = ";
            vec![format!("{}'{old}'", sql.replace("{}", status))]
        };
        host.run(&put("processing")).await;
        let report = host.report(&Wanted::default()).await;
        assert!(report.faults.counts.contains_key("payout-work"), "{:#?}", report.faults);
        host.run(&put("paid")).await;
        // What is on its way is proven as a whole, however old it is.
        let refer = |to: &str| {
            vec![format!("UPDATE payouts SET merchant_reference = {to} WHERE id = '{on_its_way}'")]
        };
        host.run(&refer("'mine'")).await;
        let report = host.report(&Wanted::default()).await;
        assert!(report.faults.counts.contains_key("payout-told"), "{:#?}", report.faults);
        host.run(&refer("NULL")).await;
        host.prove().await;
        // The payout stays, and its books.
        let payout = host.get(&format!("/v1/payouts/{old}")).await.ok();
        assert_eq!(payout.json["status"], "paid");
        let timeline = host.get(&format!("/v1/payouts/{old}/timeline")).await.ok();
        assert!(timeline.text.contains("\"type\":\"entry\""), "{}", timeline.text);
        // Keeping things for longer from now on brings nothing back.
        let marks = marks(host).await;
        let longer = Retention { events_days: 15_000, ..Retention::default() };
        // A host that stops has swept once.
        for _ in 0..2 {
            restart(host, |config| config.retention = longer).await;
        }
        assert_eq!(self::marks(host).await, marks);
    })
    .await;
}

/// What was never delivered to an endpoint that is switched off goes like what was, and keeps nothing
/// of its month.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_an_endpoint_that_is_switched_off_never_heard_goes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let off = listen(host, "https://hooks.example.com/never", json!(["*"])).await.id();
        host.pay("paid", naira(100_000)).await.ok();
        change(host, &off, json!({ "is_active": false })).await.ok();
        let waiting = format!("SELECT COUNT(*) FROM webhook_queue WHERE endpoint_id = '{off}'");
        assert!(host.count(&waiting).await > 0);
        host.advance(110 * 86_400);
        restart(host, |config| config.retention = SHORT).await;
        host.until_count(&waiting, 0).await;
        let left = format!("SELECT COUNT(*) FROM webhook_deliveries WHERE endpoint_id = '{off}'");
        host.until_count(&left, 0).await;
        host.prove().await;
    })
    .await;
}

/// However old it is, what moved money is not done again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_what_moves_money_stay_and_others_go(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (once, key) = (unique(), host.merchant.test_key.clone());
        let paid = host.pay_as(&key, &once, naira(100_000)).await.ok();
        let bulk = bulk_key(host, "test").await;
        let path = format!("/admin/v1/wallets/{}/credit", host.merchant.test_wallet);
        let batch = json!({ "currency": "NGN", "items": rows(2) });
        let credit = json!({ "amount_minor": "1", "reason": "once" });
        let saved = json!({ "currency": "NGN", "name": "Ada Obi", "account_number": "0123456785",
                            "bank_code": "058" });
        let calls = [
            ("/v1/batches", bulk.as_str(), batch),
            (&path, OPERATOR_TOKEN, credit),
            ("/v1/beneficiaries", key.as_str(), saved),
        ];
        let send = async |host: &TestHost, which: usize| {
            let (path, by, body) = &calls[which];
            let headers = [("idempotency-key", once.as_str())];
            host.send(Method::POST, path, by, &headers, Some(body.clone())).await.ok()
        };
        let (made, credited) = (send(host, 0).await, send(host, 1).await);
        send(host, 2).await;
        let others = "SELECT COUNT(*) FROM expiring_keys";
        assert_eq!(host.count(others).await, 1);
        host.until_count("SELECT COUNT(*) FROM payouts WHERE status = 'paid'", 3).await;
        host.advance(110 * 86_400);
        restart(host, |config| config.retention = SHORT).await;
        host.until_count(others, 0).await;
        let told = format!("SELECT COUNT(*) FROM events WHERE object_id = '{}'", paid.id());
        host.until_count(&told, 0).await;
        for (repeat, first) in [
            (host.pay_as(&key, &once, naira(100_000)).await.ok(), &paid),
            (send(host, 0).await, &made),
            (send(host, 1).await, &credited),
        ] {
            assert_eq!(repeat.headers["idempotent-replayed"], "true");
            assert_eq!(repeat.text, first.text);
        }
        host.prove().await;
        let armed = host.disarm("idempotency_keys").await;
        let its = format!("FROM idempotency_keys WHERE resource_id = '{}'", paid.id());
        let rename = |from: &str, to: &str| {
            let key = format!("key = REPLACE(key, '{from}', '{to}')");
            vec![format!("UPDATE idempotency_keys SET {key}")]
        };
        host.run(&rename("create_", "made_")).await;
        let report = host.report(&Wanted::default()).await;
        assert!(report.faults.counts.contains_key("seal"), "{:#?}", report.faults);
        host.run(&rename("made_", "create_")).await;
        host.run(&[format!("CREATE TABLE gone AS SELECT * {its}"), format!("DELETE {its}")]).await;
        let report = host.report(&Wanted::default()).await;
        assert!(report.faults.counts.contains_key("reply"), "{:#?}", report.faults);
        let back = "INSERT INTO idempotency_keys SELECT * FROM gone".to_owned();
        host.run(&[back, "DROP TABLE gone".to_owned()]).await;
        host.run(&armed).await;
    })
    .await;
}

/// The tables of November's rows.
async fn of_november(host: &TestHost) -> Vec<String> {
    let sql = "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relname LIKE '%\\_2026\\_11' \
               ORDER BY relname";
    sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("tables")
}

/// On PostgreSQL a month is dropped, as soon as nothing of it is on its way any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_goes_as_a_whole() {
    const ALL: [&str; 5] =
        ["decisions", "events", "rail_calls", "request_logs", "webhook_deliveries"];
    with_host(Engine::Postgres, async |host| {
        let all = ALL.map(|table| format!("{table}_2026_11"));
        assert_eq!(of_november(host).await, all, "made at the start");
        for name in &all {
            let found = format!("SELECT COUNT(*) FROM {}_other", name.trim_end_matches("_2026_11"));
            assert_eq!(host.count(&found).await, 0, "{found}");
        }
        let paid = host.pay("paid", naira(100_000)).await.ok().id();
        crate::batches::paid(host).await;
        let held = host.pay("fraud_hold", naira(200_001)).await.ok().id();
        let told = host.get("/v1/events").await.ok().json["data"].as_array().expect("events").len();
        let truncated = format!("TRUNCATE {}", all[1]);
        let refused = sqlx::query(sqlx::AssertSqlSafe(truncated)).execute(host.app().db.pool());
        assert!(refused.await.expect_err("refused").to_string().contains("append-only"));
        host.prove().await;

        host.advance(110 * 86_400);
        restart(host, short).await;
        // Of the payout that waits there are events, and no messages.
        host.until_count("SELECT COUNT(*) FROM pg_class WHERE relname LIKE '%_2026_11'", 1).await;
        assert_eq!(of_november(host).await, [&*all[1]], "one payout still waits");
        // A row of the payout that waits is in its month, what is paid is gone from there.
        let of_paid = format!("SELECT COUNT(*) FROM events WHERE object_id = '{paid}'");
        host.until_count(&of_paid, 0).await;
        assert!(count(host, "events", &held).await >= 1);
        assert!(
            host.get("/v1/events").await.ok().json["data"].as_array().expect("events").len() < told
        );
        host.prove().await;

        let path = format!("payouts/{held}/reject");
        host.admin(Method::POST, &path, json!({ "reason": "Not needed" })).await.ok();
        restart(host, short).await;
        host.until_count("SELECT COUNT(*) FROM pg_class WHERE relname LIKE '%_2026_11'", 0).await;
        // What was told of its end is young.
        assert_eq!(count(host, "events", &held).await, 1);
        let payout = host.get(&format!("/v1/payouts/{held}")).await.ok();
        assert_eq!(payout.json["status"], "failed");
        host.prove().await;
    })
    .await;
}

/// What waits keeps the months that it has rows in, and no later ones; a payout that ended between
/// is not proven by half a history.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_keeps_no_later_month() {
    with_host(Engine::Postgres, async |host| {
        let old = host.pay("fraud_hold", naira(200_001)).await.ok().id();
        let over = host.pay("fraud_hold", naira(200_003)).await.ok().id();
        host.advance(30 * 86_400);
        restart(host, |_| {}).await;
        let path = format!("payouts/{over}/reject");
        host.admin(Method::POST, &path, json!({ "reason": "Not needed" })).await.ok();
        let december = "SELECT COUNT(*) FROM pg_class WHERE relname = 'events_2026_12'";
        assert_eq!(host.count(december).await, 1);
        assert!(host.count("SELECT COUNT(*) FROM events_2026_12").await >= 1);
        host.advance(110 * 86_400);
        restart(host, short).await;
        host.until_count(december, 0).await;
        assert_eq!(of_november(host).await, ["events_2026_11"], "one payout still waits");
        assert!(count(host, "events", &old).await >= 1);
        host.prove().await;
    })
    .await;
}

/// A month that somebody reads is not dropped, nor is it deleted row by row instead.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_that_is_read_stays_whole() {
    with_host(Engine::Postgres, async |host| {
        let paid = host.pay("paid", naira(100_000)).await.ok().id();
        let events = count(host, "events", &paid).await;
        host.advance(110 * 86_400);
        let pool = host.connections().await;
        let mut reader = pool.begin().await.expect("a reader");
        let read = "SELECT COUNT(*) FROM events";
        let read: i64 = sqlx::query_scalar(read).fetch_one(&mut *reader).await.expect("events");
        restart(host, short).await;
        // A host that stops has swept once.
        restart(host, short).await;
        assert!(of_november(host).await.contains(&"events_2026_11".to_owned()));
        assert!(read >= events && count(host, "events", &paid).await == events);
        reader.rollback().await.expect("read");
        restart(host, short).await;
        host.until_count("SELECT COUNT(*) FROM pg_class WHERE relname = 'events_2026_11'", 0).await;
    })
    .await;
}

/// Whoever proves the books sees the months of the moment at which they began.
#[tokio::test(flavor = "multi_thread")]
async fn no_month_goes_while_the_books_are_proven() {
    with_host(Engine::Postgres, async |host| {
        host.pay("paid", naira(100_000)).await.ok();
        let db = &host.app().db;
        let november = jiff::civil::date(2026, 11, 1);
        let events = months::find(db.engine(), "events").expect("a table of months");
        let mut tried = Vec::new();
        let mut progress = |_: &'static str, _: u64| {
            let drop = events.drop(db, november, (&[], &[]));
            let here = tokio::runtime::Handle::current();
            tried.push(tokio::task::block_in_place(|| here.block_on(drop)).is_ok());
        };
        let wanted = Wanted { now: host.clock.now(), ..Wanted::default() };
        let report = verify(db, &wanted, &mut progress).await.expect("read");
        assert_eq!(report.faults.list.len(), 0, "{:?}", report.faults.list);
        assert!(tried.len() > 3 && tried.iter().all(|is_gone| !is_gone), "{tried:?}");
    })
    .await;
}

/// A table that cannot be made now is made another time, and nothing waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_starts_while_somebody_reads_and_a_month_is_missing() {
    with_host(Engine::Postgres, async |host| {
        let december = "SELECT COUNT(*) FROM pg_class WHERE relname = 'events_2026_12'";
        assert_eq!(host.count(december).await, 1, "the next month");
        let pool = host.connections().await;
        let reader = loop {
            host.run(&["DROP TABLE events_2026_12".to_owned()]).await;
            let mut reader = pool.begin().await.expect("a reader");
            sqlx::query("SELECT 1 FROM events_other").execute(&mut *reader).await.expect("read");
            // The host may have made it again before anybody read.
            if host.count(december).await == 0 {
                break reader;
            }
            reader.rollback().await.expect("read");
        };
        restart(host, |_| {}).await;
        assert_eq!(host.count(december).await, 0);
        host.advance(15 * 86_400);
        let paid = host.pay("paid", naira(100_000)).await.ok().id();
        let events = count(host, "events", &paid).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM events_other").await, events);
        reader.rollback().await.expect("read");
        restart(host, |_| {}).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM events_other").await, 0);
        assert_eq!(host.count("SELECT COUNT(*) FROM events_2026_12").await, events);
        host.prove().await;
    })
    .await;
}

/// Whoever writes while a month gets its table waits for a moment, and is not turned away.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_made_while_everybody_writes() {
    with_host(Engine::Postgres, async |host| {
        host.advance(15 * 86_400);
        let december = "SELECT COUNT(*) FROM pg_class WHERE relname = 'events_2026_12'";
        for round in 0..3 {
            let elsewhere = [
                "ALTER TABLE events DETACH PARTITION events_2026_12",
                "INSERT INTO events_other SELECT * FROM events_2026_12",
                "DROP TABLE events_2026_12",
            ];
            host.run(&elsewhere.map(str::to_owned)).await;
            let host = &*host;
            let paying = (0..8).map(async |_| {
                for _ in 0..6 {
                    host.pay("paid", naira(100_000)).await.ok();
                }
            });
            let making = async {
                while host.count(december).await == 0 {
                    months::make_room(&host.app().db, host.app().now()).await.expect("made");
                }
            };
            futures::future::join(futures::future::join_all(paying), making).await;
            assert_eq!(host.count("SELECT COUNT(*) FROM events_other").await, 0, "{round}");
        }
        host.prove().await;
    })
    .await;
}

/// What somebody is writing is not seen by whoever moves a month's rows to its new table, and must
/// not be in the way of it either.
#[tokio::test(flavor = "multi_thread")]
async fn a_month_is_made_though_somebody_has_just_written_to_it() {
    with_host(Engine::Postgres, async |host| {
        let december = "SELECT COUNT(*) FROM pg_class WHERE relname = 'request_logs_2026_12'";
        host.run(&["DROP TABLE request_logs_2026_12".to_owned()]).await;
        let pool = host.connections().await;
        let first = RequestId::first_at(host.app().now().after(Duration::from_secs(15 * 86_400)));
        let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database() AND query LIKE '%request_logs%'";
        // Whoever makes it waits for a twentieth of a second only.
        let mut written = 0;
        while host.count(december).await == 0 {
            assert!(written < 50, "it is never made");
            written += 1;
            let mut writer = pool.begin().await.expect("a writer");
            let sql = "INSERT INTO request_logs_other (owner, id, first_id, statuses, count, \
                       requests, created_at) VALUES ('somebody', $1, $1, ',200,', 1, '[]', 0)";
            let insert = sqlx::query(sql).bind(format!("{first}{written}"));
            insert.execute(&mut *writer).await.expect("inserted");
            let app = host.app().clone();
            let making = tokio::spawn(async move { months::make_room(&app.db, app.now()).await });
            while host.count(waits).await == 0 && !making.is_finished() {}
            writer.commit().await.expect("committed");
            making.await.expect("no panic").expect("nothing keeps the host from its work");
        }
        let moved = "SELECT COUNT(*) FROM request_logs_2026_12 WHERE owner = 'somebody'";
        assert_eq!(host.count(moved).await, written);
    })
    .await;
}

/// By the clock of a host that is a month ahead of the database's, the day's sums and the guards of
/// references have run out. Nothing is deleted by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_clock_is_ahead_deletes_nothing() {
    let ahead = Duration::from_secs(31 * 86_400);
    let clock = Clock::fixed(Clock::System.now().before(ahead));
    let mut host = TestHost::open_at(clock, Engine::Postgres, |_| {}).await;
    host.pay("paid", with(naira(100_000), json!({ "merchant_reference": "rent" }))).await.ok();
    let guards = "SELECT COUNT(*) FROM counters WHERE key LIKE 'day/%' OR key LIKE 'reference/%'";
    assert_eq!(host.count(guards).await, 2);
    // From now on the host has the machine's clock, and the database one that is behind it.
    let name = host.database.url.rsplit('/').next().expect("a name").to_owned();
    let behind = [
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz \
         RETURN pg_catalog.clock_timestamp() - INTERVAL '31 days'"
            .to_owned(),
        format!("ALTER DATABASE {name} SET search_path = public, pg_catalog"),
    ];
    host.run(&behind).await;
    host.clock = Clock::System;
    // A host that stops has swept once.
    for _ in 0..2 {
        restart(&mut host, |_| {}).await;
        let there = host.app().db.now().await.expect("the database's clock");
        assert!(there.after(ahead / 2) < Clock::System.now(), "{there}");
    }
    assert_eq!(host.count(guards).await, 2, "they were swept");
    // Where both clocks say so, they go.
    host.run(&[format!("ALTER DATABASE {name} RESET search_path")]).await;
    restart(&mut host, |_| {}).await;
    host.until_count(guards, 0).await;
    host.close().await;
}

/// Nothing but the sweeper deletes, and it cannot be told to take what others rely on.
#[test]
fn what_others_rely_on_cannot_be_swept() {
    let rules = railhead::config::Rules::default();
    assert!(Retention::default().check(&rules).is_ok());
    for (retention, named) in [
        (Retention { idempotency_days: 29, ..Retention::default() }, "idempotency_days"),
        (Retention { events_days: 399, ..Retention::default() }, "events_days"),
        (Retention { evidence_days: 89, ..Retention::default() }, "evidence_days"),
        (Retention { deliveries_days: 29, ..Retention::default() }, "deliveries_days"),
    ] {
        let why = retention.check(&rules).expect_err("too short");
        assert!(why.contains(&format!("retention.{named}")) && why.contains("at least"), "{why}");
    }
}

/// What somebody took in goes after three months; what nobody could read is still there when a person
/// looks at its case.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_could_read_stays_as_long_as_evidence(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let at = host.clock.now().micros();
        let row = |id: &str, state: &str| {
            format!(
                "INSERT INTO inbox (id, env, rail, routes, source, name, digest, content, state, \
                 done, tries, due_at, lease_until, received_at) VALUES ('{id}', 'live', 'gone', '[]', \
                 'notice', '/', '', '', '{state}', '[]', 0, 0, 0, {at})"
            )
        };
        host.run(&[row("a", "taken"), row("b", "unreadable"), row("c", "unmatched")]).await;
        host.advance(91 * 86_400);
        restart(host, |_| {}).await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'taken'", 0).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 2);
        host.advance(8 * 366 * 86_400);
        restart(host, |_| {}).await;
        host.until_count("SELECT COUNT(*) FROM inbox", 0).await;
    })
    .await;
}
