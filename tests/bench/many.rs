//! What a database of many payouts makes slower.
//!
//! Some payouts live a real life; then the database multiplies everything that they left, under
//! ids of their own, so that one merchant has them all. The same calls are timed before and after.

use std::time::{Duration, Instant};

use super::load::Load;
use super::server::{Engine, Server, Setup, Target};

const SETUP: Setup = Setup { batch_max: 256, dispatch: true };
/// Calls of each kind; their median counts.
const CALLS: usize = 41;
/// Copies that are made at a time.
const STEP: i64 = 20;
/// What the id of a copy has, and no other.
const COPIED: &str = "~";

/// Tables with the columns that hold what has to be different in each copy.
const TABLES: &[(&str, &[&str])] = &[
    ("payouts", &["id", "rail_reference"]),
    ("journals", &["id", "ref_id"]),
    ("events", &["id", "object_id"]),
    ("attempts", &["id", "transfer_id", "rail_reference"]),
    ("rail_calls", &["id", "transfer_id", "attempt_id"]),
    ("idempotency_keys", &["key", "resource_id"]),
];

/// Times the calls with a few thousand payouts and with about as many as wanted.
pub(crate) async fn run(engine: Engine, wanted: i64) {
    println!("{engine:?}: one merchant with many payouts");
    let server = Server::start(engine, SETUP).await;
    let targets = server.merchants(1).await;
    let target = targets[0].clone();
    let load = Load { base: server.base.clone(), targets, connections: 32 };
    load.warm_up().await;
    load.run(&server, Duration::from_secs(2)).await;
    server.until_idle().await;
    let real = server.count("paid").await;
    server.execute(analyze(engine)).await;
    let before = time_all(&server, &target).await;
    let copies = wanted / real.max(1);
    let begun = Instant::now();
    for first in (1..=copies).step_by(STEP as usize) {
        multiply(&server, (first, copies.min(first + STEP - 1))).await;
    }
    server.execute(analyze(engine)).await;
    let many = server.number("SELECT COUNT(*) FROM payouts").await;
    println!("    made in {:.0} s", begun.elapsed().as_secs_f64());
    let reads = whole_reads(&server).await;
    let after = time_all(&server, &target).await;
    println!("    {:<44} {:>12} {:>12} {:>8}", "ms, median", real, many, "ratio");
    for ((name, before), (_, after)) in before.into_iter().zip(after) {
        let ratio = after / before;
        println!("    {name:<44} {before:>12.2} {after:>12.2} {ratio:>7.1}x");
    }
    if engine == Engine::Postgres {
        let reads = whole_reads(&server).await - reads;
        println!("    tables of many rows that were read whole meanwhile: {reads}\n");
    }
    server.stop().await;
}

const fn analyze(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgres => "VACUUM ANALYZE",
        Engine::Sqlite => "ANALYZE",
    }
}

/// How often one of the tables was read from its beginning to its end.
async fn whole_reads(server: &Server) -> i64 {
    if server.engine == Engine::Sqlite {
        return 0;
    }
    let names: Vec<String> = TABLES.iter().map(|(name, _)| format!("'{name}'")).collect();
    let sql = format!(
        "SELECT CAST(SUM(seq_scan) AS BIGINT) FROM pg_stat_user_tables WHERE relname IN ({})",
        names.join(", ")
    );
    server.number(&sql).await
}

/// Copies every row, once for each number.
async fn multiply(server: &Server, (first, last): (i64, i64)) {
    let numbers = match server.engine {
        Engine::Postgres => format!("generate_series({first}, {last}) AS n(k)"),
        Engine::Sqlite => format!(
            "(WITH RECURSIVE n(k) AS (VALUES ({first}) UNION ALL SELECT k + 1 FROM n \
             WHERE k < {last}) SELECT k FROM n) AS n"
        ),
    };
    for (table, own) in TABLES {
        let columns = server.columns(table).await;
        let values = columns.iter().map(|column| match column.as_str() {
            name if own.contains(&name) => {
                format!("t.{name} || '{COPIED}' || CAST(n.k AS TEXT)")
            }
            // Before every real number; null stays null where a journal touches no wallet.
            "seq" => "t.seq - 10000000 - 100000 * n.k".to_owned(),
            name => format!("t.{name}"),
        });
        let values: Vec<String> = values.collect();
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM {table} t CROSS JOIN {numbers} \
             WHERE t.{} NOT LIKE '%{COPIED}%'",
            columns.join(", "),
            values.join(", "),
            own[0],
        );
        server.execute(&sql).await;
    }
}

/// The median of each call in milliseconds.
async fn time_all(server: &Server, target: &Target) -> Vec<(String, f64)> {
    let id = format!(
        "SELECT id FROM payouts WHERE id NOT LIKE '%{COPIED}%' ORDER BY id LIMIT 1 OFFSET 500"
    );
    let id = server.text(&id).await;
    let wallet = &target.wallet;
    let mut times = Vec::new();
    for (name, path) in [
        ("payouts, first page", "/v1/payouts".to_owned()),
        ("payouts, a page in the middle", format!("/v1/payouts?starting_after={id}")),
        ("payouts, in a status that none has", "/v1/payouts?status=reversed".to_owned()),
        ("a payout", format!("/v1/payouts/{id}")),
        ("its timeline", format!("/v1/payouts/{id}/timeline")),
        ("balances", "/v1/balances".to_owned()),
        ("a wallet's transactions", format!("/v1/wallets/{wallet}/transactions")),
        (
            "of a source that is rare",
            format!("/v1/wallets/{wallet}/transactions?source=admin_credit"),
        ),
        ("events", "/v1/events".to_owned()),
    ] {
        let mut took = Vec::new();
        for _ in 0..CALLS {
            let begun = Instant::now();
            server.get(&target.key, &path).await;
            took.push(begun.elapsed());
        }
        times.push((name.to_owned(), median(took)));
    }
    let load = Load { base: server.base.clone(), targets: vec![target.clone()], connections: 1 };
    let (mut took, mut lives) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let begun = Instant::now();
        load.warm_up().await;
        took.push(begun.elapsed() / 3);
        server.until_idle_looking_every(Duration::from_millis(1)).await;
        lives.push(begun.elapsed());
    }
    times.push(("accepting a payout".to_owned(), median(took)));
    times.push(("until three of them are claimed, sent, paid".to_owned(), median(lives)));
    let mut proofs = Vec::new();
    for _ in 0..3 {
        let anchor = server.anchor().await;
        for _ in 0..CALLS {
            load.warm_up().await;
        }
        server.until_idle().await;
        let begun = Instant::now();
        server.verify_since(&anchor);
        proofs.push(begun.elapsed());
    }
    let payouts = CALLS * 3;
    times.push((format!("proving {payouts} payouts since an anchor"), median(proofs)));
    times
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}
