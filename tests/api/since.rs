//! Proving what came after an anchor costs what came after it, whatever lies there.

use railhead::db;
use railhead::ledger::verify::{Anchor, Fresh, heads};
use railhead::verify::{Wanted, prove};
use rstest::rstest;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::hooks::{listen, reach_loopback};
use crate::packs::{adopt, guard};
use crate::plans::{FEW, GROWING, plans, write_plans_down};
use crate::receiver::Receiver;
use crate::test_host::{Engine, TestHost, naira};

/// How often everything is there once more.
const COPIES: u64 = 2_000;

/// Tables that grow, with what makes a copy of a row another one.
const COPIED: &[(&str, &str)] = &[
    ("payouts", "'id', t.id || '~' || k, 'rail_reference', t.rail_reference || '~' || k"),
    (
        "journals",
        "'id', t.id || '~' || k, 'ref_id', t.ref_id || '~' || k, 'seq', t.seq - 1000 * (k + 1)",
    ),
    ("events", "'id', t.id || '~' || k, 'object_id', t.object_id || '~' || k"),
    (
        "attempts",
        "'id', t.id || '~' || k, 'transfer_id', t.transfer_id || '~' || k, \
         'rail_reference', t.rail_reference || '~' || k",
    ),
    ("rail_calls", "'id', t.id || '~' || k, 'transfer_id', t.transfer_id || '~' || k"),
    ("decisions", "'payout_id', t.payout_id || '~' || k"),
    ("idempotency_keys", "'key', t.key || '~' || k, 'resource_id', t.resource_id || '~' || k"),
    ("webhook_deliveries", "'id', t.id || '~' || k, 'event_id', t.event_id || '~' || k"),
];

async fn some_lives(host: &TestHost) {
    for kobo in 0..3 {
        host.pay("paid", naira(100_000 + kobo)).await.ok();
        host.pay("failed", naira(200_000 + kobo)).await.ok();
    }
    host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
}

/// A host on which payouts have lived, days ago, an anchor of then, and what came after it.
async fn with_a_past(
    engine: Engine,
    past: impl AsyncFnOnce(&TestHost),
    test: impl AsyncFnOnce(&TestHost, &Wanted),
) {
    let receiver = Receiver::open().await;
    let mut host = TestHost::open(engine, reach_loopback).await;
    let rules = [("large", "hold", "amount_minor > 405000")];
    adopt(&host, &guard("1", "amount_minor", &rules)).await;
    listen(&host, &receiver.url("/a"), json!(["*"])).await;
    some_lives(&host).await;
    past(&host).await;
    host.advance(2 * 86_400);
    some_lives(&host).await;
    let mut snapshot = host.app().db.snapshot().await.expect("a snapshot");
    let anchor = Anchor { heads: heads(&mut snapshot).await.expect("heads") };
    snapshot.rollback().await.expect("ended");
    some_lives(&host).await;
    // A wallet of which nothing is anchored.
    let late = host.new_merchant("Late").await;
    host.credit(&late.test_wallet, 500).await;
    let wanted = Wanted { now: host.clock.now(), against: Some(anchor), is_since: true };
    test(&host, &wanted).await;
    // Copies are no books.
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}

/// Puts everything there many times over.
async fn multiply(host: &TestHost) {
    let copies = COPIED.iter().map(|(table, other)| {
        format!(
            "INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object({other}))).* \
             FROM {table} t CROSS JOIN generate_series(1, {COPIES}) k"
        )
    });
    host.run(&copies.collect::<Vec<_>>()).await;
    // Small tables have a fine index of blocks, or all would be at the edge of what is new. The
    // host works meanwhile: whoever held the locks of several indexes could wait in a circle.
    let blocks = "SELECT CAST(i.indexrelid::regclass AS TEXT) FROM pg_index i \
                  JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam \
                  WHERE a.amname = 'brin'";
    let blocks: Vec<String> =
        sqlx::query_scalar(blocks).fetch_all(host.app().db.pool()).await.expect("indexes");
    let finer = blocks.iter().flat_map(|index| {
        [
            format!("ALTER INDEX {index} SET (pages_per_range = 4)"),
            format!("REINDEX INDEX CONCURRENTLY {index}"),
        ]
    });
    host.run(&finer.chain(["ANALYZE".to_owned()]).collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_anchor_covers_is_not_read_again() {
    let mut statements = Vec::new();
    with_a_past(Engine::Postgres, multiply, async |host, wanted| {
        write_plans_down(host).await;
        let mut session =
            sqlx::AnyConnection::connect(&host.database.url).await.expect("a session");
        let mut tx = session.begin().await.expect("a transaction");
        let report = prove(&mut tx, (db::Engine::Postgres, wanted), &mut |_, _| {}).await;
        let report = report.expect("read");
        assert!(report.faults.is_empty(), "{:#?}", report.faults);
        assert_eq!(report.payouts, 6, "what is new is proved");
        let sql = "SELECT CAST(relname AS TEXT), CAST(COALESCE(seq_tup_read, 0) \
                   + COALESCE(idx_tup_fetch, 0) AS BIGINT) FROM pg_stat_xact_user_tables";
        let read: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(&mut *tx).await.expect("read");
        let workers = "SHOW max_parallel_workers_per_gather";
        let workers: String = sqlx::query_scalar(workers).fetch_one(&mut *tx).await.expect("set");
        assert_eq!(workers, "0", "they take longer to start than all of it to read");
        tx.rollback().await.expect("rolled back");
        for (table, _) in COPIED {
            let rows = host.count(&format!("SELECT COUNT(*) FROM {table}")).await;
            // A month of it is a table as well.
            let own = read.iter().filter(|(name, _)| name.starts_with(table));
            let read: i64 = own.map(|(_, rows)| rows).sum();
            assert!(read * 10 < rows, "{table}: {read} of {rows} rows were read");
        }
        statements = plans(host).into_keys().collect();
    })
    .await;
    assert!(statements.len() > 80, "{} statements", statements.len());
    with_a_past(
        Engine::Sqlite,
        async |_| {},
        async |host, wanted| {
            let report = host.report(wanted).await;
            assert!(report.faults.is_empty(), "{:#?}", report.faults);
            for statement in &statements {
                explain(host, &on_sqlite(statement, &report.books.fresh)).await;
            }
        },
    )
    .await;
}

/// What waits from before the anchor is compared with what was told of it, whoever made it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_that_is_changed_while_a_payout_waits_is_noticed_since_an_anchor(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let hold = async |host: &TestHost| {
        host.pay("fraud_hold", naira(300_000)).await.ok();
    };
    with_a_past(engine, hold, async |host, wanted| {
        let clean = host.report(wanted).await;
        assert!(clean.faults.is_empty(), "{:#?}", clean.faults);
        let held = "FROM payouts WHERE status = 'awaiting_admin_review'";
        assert_eq!(host.count(&format!("SELECT COUNT(*) {held}")).await, 1);
        let other = "UPDATE payouts SET recipient = REPLACE(recipient, '0123456785', '0123456798') \
                     WHERE status = 'awaiting_admin_review'";
        host.run(&[other.to_owned()]).await;
        let report = host.report(wanted).await;
        assert!(report.faults.counts.contains_key("payout-told"), "{:#?}", report.faults);
    })
    .await;
}

/// What PostgreSQL was asked, as SQLite is.
fn on_sqlite(statement: &str, fresh: &Fresh) -> String {
    let [among, in_list] = [db::Engine::Postgres, db::Engine::Sqlite].map(|e| e.among("", "$1"));
    let mut asked = statement.replace(&among, &in_list);
    while let Some(at) = asked.find(".batch_id BETWEEN ") {
        let begin = asked[..at].rfind('(').expect("a condition");
        let end = at + asked[at..].find(')').expect("its end") + 1;
        let name = asked[begin + 1..at].to_owned();
        let is_its =
            |table: &&&str| name == **table || asked.contains(&format!(" {table} {name} "));
        let table = SEALED.iter().find(is_its).unwrap_or_else(|| panic!("{name}: {asked}"));
        // In small letters it is not found again.
        let rows = fresh.rows(table, &name).replace(" BETWEEN ", " between ");
        asked.replace_range(begin..end, &rows);
    }
    asked
}

/// Tables whose rows name their batch.
const SEALED: &[&str] = &[
    "api_keys",
    "attempts",
    "audit",
    "batches",
    "cases",
    "conversions",
    "decisions",
    "events",
    "expiring_keys",
    "idempotency_keys",
    "journals",
    "members",
    "merchants",
    "payouts",
    "rail_calls",
    "settlement_adjustments",
    "wallets",
];

/// What is read whole nevertheless, as the operators' page says.
const WHOLE: &[&str] = &["beneficiaries"];

/// SQLite finds what a statement asks for by an index, or among the last rows.
async fn explain(host: &TestHost, statement: &str) {
    // PostgreSQL is asked about its schema in its own way.
    if statement.contains(" pg_") {
        return;
    }
    let sql = format!("EXPLAIN QUERY PLAN {statement}");
    let steps = sqlx::query_as::<_, (i64, i64, i64, String)>(AssertSqlSafe(sql));
    for (.., step) in steps.fetch_all(host.app().db.pool()).await.expect(statement) {
        let Some(scanned) = step.strip_prefix("SCAN ") else { continue };
        let name = scanned.split(' ').next().unwrap_or_default();
        let is_its =
            |table: &&&str| **table == name || statement.contains(&format!(" {table} {name} "));
        let growing = GROWING.iter().filter(|table| !WHOLE.contains(table)).find(is_its);
        let is_few = FEW.iter().any(|index| scanned.ends_with(index));
        assert!(growing.is_none() || is_few, "SQLite: {step} for {statement}");
    }
}
