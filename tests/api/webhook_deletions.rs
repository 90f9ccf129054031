//! Endpoints that are deleted while something is about to be written to them: nothing of it stays.
//! And those that are made or changed meanwhile: what comes after the answer is told to them.

use http::Method;
use railhead::verify::Wanted;
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};

use crate::hooks::{change, let_it_look, listen, reach_loopback, until_all, with_receiver};
use crate::network::beside;
use crate::receiver::{Gate, Manner};
use crate::test_host::{Answer, Engine, Merchant, SOMEBODY_WAITS, TestHost, naira, unique};
use crate::writer_lanes::lane_of;

const PATH: &str = "/v1/webhook_endpoints";

/// Whose transaction has its number in the database first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Event,
    Deletion,
}

/// A merchant whose funding does not wait in the lane of requests that name no wallet.
async fn in_another_lane(host: &TestHost) -> Merchant {
    loop {
        let merchant = host.new_merchant(&unique()).await;
        if lane_of(host, &merchant.test_wallet) != 0 {
            return merchant;
        }
    }
}

/// Whoever writes to a table waits until this is over.
async fn hold(database: &PgPool, table: &str) -> Transaction<'static, Postgres> {
    let mut holder = database.begin().await.expect("a transaction");
    let sql = format!("LOCK TABLE {table} IN SHARE MODE");
    sqlx::query(AssertSqlSafe(sql)).execute(&mut *holder).await.expect("held");
    holder
}

/// Waits until somebody wants to write to a table that is held.
async fn until_held_up(host: &TestHost, table: &str) {
    let waits = format!(
        "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock' \
         AND relation = to_regclass('{table}') AND database = (SELECT oid FROM pg_database \
         WHERE datname = current_database())"
    );
    host.until_count(&waits, 1).await;
}

/// The database's clock, in microseconds.
async fn by_the_database(host: &TestHost) -> i64 {
    host.count("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)").await
}

/// Finds whoever has looked since at what others have under way.
fn looks(since: i64) -> String {
    format!(
        "SELECT 1 AS one FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'SELECT CAST(backend_xid%' \
         AND EXTRACT(EPOCH FROM query_start) * 1000000 > {since}"
    )
}

/// Waits until somebody looks at what others have under way.
async fn until_somebody_looks(host: &TestHost, since: i64) {
    let found = format!("SELECT COUNT(*) FROM ({} LIMIT 1) AS found", looks(since));
    host.until_count(&found, 1).await;
}

/// Waits until somebody, who has deleted an endpoint since, looks at what others have under way; or
/// until it has been swept away, which would be too early.
async fn until_it_may_go(host: &TestHost, endpoint: &str, since: i64) {
    let found = format!(
        "SELECT COUNT(*) FROM ({} UNION ALL SELECT 1 WHERE NOT EXISTS \
         (SELECT 1 FROM webhook_endpoints WHERE id = '{endpoint}') LIMIT 1) AS found",
        looks(since)
    );
    host.until_count(&found, 1).await;
}

/// Makes an event in the lane of the merchant's wallet.
async fn fund(host: &TestHost) {
    let body = json!({ "currency": "NGN", "amount_minor": "100" });
    host.post("/v1/sandbox/fund", body).await.ok();
}

async fn delete(host: &TestHost, endpoint: &str) -> Answer {
    let path = format!("{PATH}/{endpoint}");
    host.send(Method::DELETE, &path, &host.merchant.test_key, &[], None).await
}

/// Whoever makes an event has read that the endpoint listens, and writes its delivery after it was
/// deleted.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_written_after_its_endpoint_was_deleted_goes_with_it(
    #[values(First::Event, First::Deletion)] first: First,
) {
    with_receiver(Engine::Postgres, async |host, receiver| {
        host.merchant = in_another_lane(host).await;
        let host = &*host;
        let events = json!(["wallet_funded"]);
        let doomed = listen(host, &receiver.url("/doomed"), events.clone()).await.id();
        listen(host, &receiver.url("/kept"), events).await;
        let database = host.connections().await;
        let (audit, events) = (hold(&database, "audit").await, hold(&database, "events").await);

        let deleting = async {
            if first == First::Event {
                until_held_up(host, "events").await;
            }
            delete(host, &doomed).await.ok();
        };
        let funding = async {
            if first == First::Deletion {
                until_held_up(host, "audit").await;
            }
            fund(host).await;
        };
        let letting_go = async {
            until_held_up(host, "audit").await;
            until_held_up(host, "events").await;
            let since = by_the_database(host).await;
            audit.commit().await.expect("let go");
            until_it_may_go(host, &doomed, since).await;
            events.commit().await.expect("let go");
        };
        tokio::join!(deleting, funding, letting_go);

        host.until_count("SELECT COUNT(*) FROM webhook_endpoints", 1).await;
        // The endpoints were read: the other one hears of it.
        receiver.until("/kept", 1).await;
        for table in ["webhook_deliveries", "webhook_queue"] {
            let left = format!("SELECT COUNT(*) FROM {table} WHERE endpoint_id = '{doomed}'");
            assert_eq!(host.count(&left).await, 0, "{table}");
        }
        host.prove().await;
    })
    .await;
}

/// Another host has deleted the endpoint and has not committed yet: whoever asks for a replay or a
/// test waits for that, and is answered as if it had been gone before.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_an_endpoint_while_it_is_deleted_is_not_written() {
    with_receiver(Engine::Postgres, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        host.pay("paid", naira(100_000)).await.ok();
        let original = until_all(host, &id, (1, "delivered")).await.remove(0)["id"].clone();
        let original = original.as_str().expect("an id");
        let database = host.connections().await;
        let mut deleting = database.begin().await.expect("a transaction");
        let sql = "UPDATE webhook_endpoints SET is_active = 0, deleted_at = updated_at + 1, \
                   updated_at = updated_at + 1 WHERE id = $1";
        sqlx::query(sql).bind(&id).execute(&mut *deleting).await.expect("deleted");

        let (replay, test) =
            (format!("/v1/webhook_deliveries/{original}/replay"), format!("{PATH}/{id}/test"));
        let commit = async {
            host.until_count(SOMEBODY_WAITS, 2).await;
            deleting.commit().await.expect("committed");
        };
        let (replayed, tested, ()) =
            tokio::join!(host.post(&replay, json!({})), host.post(&test, json!({})), commit);
        assert_eq!(replayed.refused(), (404, "webhook_delivery_not_found"));
        assert_eq!(tested.refused(), (404, "webhook_endpoint_not_found"));
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_deliveries").await, 1);
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_queue").await, 0);
    })
    .await;
}

/// Whoever deletes one waits for others before it sweeps; a host that sweeps what it finds does
/// not, and leaves alone what may still be waited for.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_was_deleted_a_moment_ago_is_nobody_elses_to_sweep() {
    with_receiver(Engine::Postgres, async |host, receiver| {
        let mut ids = Vec::new();
        for path in ["/a", "/b"] {
            ids.push(listen(host, &receiver.url(path), json!(["*"])).await.id());
        }
        // In the order in which they are swept: the one that must stay first.
        ids.sort();
        let now = host.clock.now().micros();
        for (id, ago) in ids.iter().zip([60, 3_600]) {
            let deleted_at = now - ago * 1_000_000;
            host.run(&[format!(
                "UPDATE webhook_endpoints SET is_active = 0, deleted_at = {deleted_at} \
                 WHERE id = '{id}'"
            )])
            .await;
        }
        let sweeping = beside(host, reach_loopback).await;
        let left = |id| format!("SELECT COUNT(*) FROM webhook_endpoints WHERE id = '{id}'");
        host.until_count(&left(&ids[1]), 0).await;
        assert_eq!(host.count(&left(&ids[0])).await, 1, "it was swept");
        sweeping.close().await;
    })
    .await;
}

/// An endpoint bears the instant at which it was asked for. What happens between that and its
/// commit was not for it, and nobody who proves the books misses it.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_an_endpoint_is_written_need_not_be_told_to_it() {
    with_receiver(Engine::Postgres, async |host, receiver| {
        host.merchant = in_another_lane(host).await;
        let host = &*host;
        let database = host.connections().await;
        let audit = hold(&database, "audit").await;
        let funding = async {
            until_held_up(host, "audit").await;
            host.advance(60);
            fund(host).await;
            audit.commit().await.expect("let go");
        };
        let url = receiver.url("/a");
        tokio::join!(listen(host, &url, json!(["wallet_funded"])), funding);
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_deliveries").await, 0);
        host.prove().await;
        fund(host).await;
        receiver.until("/a", 1).await;
        host.prove().await;
    })
    .await;
}

/// Whoever makes an event has read what the endpoint listened for before, and commits after the
/// change: it is answered when that is over, and whatever happens then is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_events_is_answered_when_nobody_goes_by_the_old_ones() {
    with_receiver(Engine::Postgres, async |host, receiver| {
        host.merchant = in_another_lane(host).await;
        let host = &*host;
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        let database = host.connections().await;
        let events = hold(&database, "events").await;
        let changing = async {
            until_held_up(host, "events").await;
            let since = by_the_database(host).await;
            let answer = change(host, &id, json!({ "events": ["payout.paid", "wallet_funded"] }));
            tokio::pin!(answer);
            tokio::select! {
                early = &mut answer => panic!("somebody goes by the old ones: {early:?}"),
                () = until_somebody_looks(host, since) => {}
            }
            events.commit().await.expect("let go");
            answer.await.ok();
        };
        tokio::join!(fund(host), changing);
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_deliveries").await, 0);
        fund(host).await;
        receiver.until("/a", 1).await;
        host.prove().await;
    })
    .await;
}

/// What an endpoint was not told is missed where it came later than any batch can take that did not
/// see it yet.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_what_comes_well_after_a_change_is_missed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        // The merchant's wallet was filled before, and at the same instant.
        let id = listen(host, &receiver.url("/a"), json!(["wallet_funded"])).await.id();
        let now = host.clock.now().micros();
        for (earlier, is_missed) in [(60, false), (3_600, true), (0, false)] {
            let updated_at = now - earlier * 1_000_000;
            host.run(&[format!(
                "UPDATE webhook_endpoints SET updated_at = {updated_at} WHERE id = '{id}'"
            )])
            .await;
            let faults = host.report(&Wanted::default()).await.faults;
            let missed = faults.counts.contains_key("delivery-missing");
            assert_eq!(missed, is_missed, "{earlier} seconds: {faults:#?}");
        }
    })
    .await;
}

/// What waits for a receiver goes to where the endpoint is now, or nowhere. What is under way stays
/// where it is.
#[rstest]
#[case::moved(json!({ "url": "" }), true)]
#[case::off(json!({ "is_active": false }), false)]
#[case::deleted(json!(null), false)]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_goes_where_an_endpoint_is_now(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] mut to: Value,
    #[case] goes_on: bool,
) {
    with_receiver(engine, async |host, receiver| {
        let gate = Gate::default();
        receiver.behave("/old", Manner::Waits(200, gate.clone()));
        let id = listen(host, &receiver.url("/old"), json!(["payout_paid"])).await.id();
        for _ in 0..24 {
            host.pay("paid", naira(100_000)).await.ok();
        }
        // Some are under way, and no more.
        let_it_look().await;
        let begun = receiver.got("/old").len();
        assert!((1..24).contains(&begun), "{begun}");
        let path = format!("{PATH}/{id}");
        if to.is_null() {
            let key = host.merchant.test_key.clone();
            host.send(Method::DELETE, &path, &key, &[], None).await.ok();
        } else {
            if goes_on {
                to["url"] = json!(receiver.url("/new"));
            }
            change(host, &id, to).await.ok();
        }
        gate.open();
        if goes_on {
            until_all(host, &id, (24, "delivered")).await;
            assert_eq!(receiver.got("/new").len(), 24 - begun);
        }
        let_it_look().await;
        assert_eq!(receiver.got("/old").len(), begun);
    })
    .await;
}
