//! How databases find what statements ask for: by an index, however many rows there come to be.
//!
//! PostgreSQL is made to write down the plan of everything that a host asks of it; the same texts
//! are then explained by SQLite.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::packs::restart;
use crate::test_host::{Engine, TestHost, naira, with_host};

/// Tables that grow with every payout.
pub(crate) const GROWING: &[&str] = &[
    "attempts",
    "beneficiaries",
    "counters",
    "decisions",
    "events",
    "expiring_keys",
    "idempotency_keys",
    "journals",
    "payouts",
    "rail_calls",
    "request_logs",
    "webhook_deliveries",
];

/// Indexes that hold few rows of such a table, however many it has: they may be looked through.
pub(crate) const FEW: &[&str] = &["payouts_open_by_batch", "payouts_waiting"];

/// A batch asks for them beside rows of other tables, in any mixture.
const USED_KEYS: &str = "keys that were used";

/// Statements whose plans are kept, by words that only they have.
const KEPT: &[(&str, &str)] = &[
    ("a list of payouts", "AND env = $2 AND id < $3 AND ($4 = '' OR status = $4)"),
    ("a list of payouts that failed", "AND env = $2 AND id < $3 AND unusual = $4"),
    ("a list of payouts on their way", "FROM routes r CROSS JOIN transfers t"),
    ("the newest of them", "id DESC LIMIT 2 * $8) newest"),
    ("payouts that wait for somebody", "FROM payouts WHERE is_waiting = 1"),
    ("a payout", "SELECT * FROM payouts WHERE id = $1 AND merchant_id = $2"),
    ("its attempts", "c.id = a.configuration WHERE a.transfer_id = $1"),
    ("its messages", "FROM rail_calls WHERE transfer_id = $1"),
    ("its history", "FROM events WHERE object_id = $1"),
    ("its entries", "FROM entries e WHERE e.ref_id"),
    ("its deliveries", "FROM events v JOIN webhook_deliveries d"),
    ("a list of events", "body IS NOT NULL AND id < $6"),
    ("a list of deliveries", "WHERE d.owner_number = $7"),
    ("a list of deliveries to an endpoint", "WHERE d.endpoint_number = $7"),
    ("a list of deliveries to be made", "CROSS JOIN webhook_queue q"),
    ("a wallet's transactions", "AND e.first_seq < $2 AND e.seq < $2"),
    ("the place of a transaction", "(SELECT MAX(j.seq) FROM (SELECT seq FROM journals"),
    ("a settlement account's entries", "FROM (SELECT * FROM journals"),
    ("a bank statement", "e.first_seq, e.line LIMIT $4"),
    ("whoever is paid", "AS by_the_platform"),
    (USED_KEYS, "FROM idempotency_keys WHERE key = ANY"),
    ("old events", "SELECT DISTINCT h.object_id FROM events h"),
    ("old messages", "SELECT DISTINCT h.transfer_id FROM rail_calls h"),
    ("old decisions", "DELETE FROM decisions"),
    ("old keys", "DELETE FROM expiring_keys"),
    ("old counters", "DELETE FROM counters"),
    ("old deliveries", "FROM webhook_deliveries WHERE id > $1 AND id < $2"),
];

/// What is asked for by time, by words that only it has: it reads nothing that is older.
const SINCE: &[&str] =
    &["AND id < $3 AND ($4 = '' OR status = $4)", "body IS NOT NULL AND id < $6"];

/// Writes down the plan of every statement in sessions that begin from now on: the one that it has
/// once it was asked for often.
pub(crate) async fn write_plans_down(host: &TestHost) {
    write_down(host, ("plan_cache_mode", "force_generic_plan")).await;
}

/// The same of the plans that statements have, with a setting for those sessions.
pub(crate) async fn write_down(host: &TestHost, setting: (&str, &str)) {
    let (_, database) = host.database.url.rsplit_once('/').expect("a name");
    let set = [
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_format", "json"),
        setting,
    ];
    let set = set.map(|(name, value)| format!("ALTER DATABASE {database} SET {name} = '{value}'"));
    host.run(&set).await;
}

/// What was written down: statements, each with its plans.
pub(crate) fn plans(host: &TestHost) -> BTreeMap<String, Vec<Value>> {
    let log = std::env::var("TEST_POSTGRES_LOG").expect("tests/with-postgres");
    let log = std::fs::read(log).expect("the log");
    let (_, database) = host.database.url.rsplit_once('/').expect("a name");
    let begins = format!("{database}:LOG:  duration:");
    let mut texts = Vec::new();
    let mut is_ours = false;
    for line in String::from_utf8_lossy(&log).lines() {
        match line.strip_prefix('\t') {
            Some(more) if is_ours => texts
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|text: &mut String| text.push_str(more)),
            Some(_) => {}
            None => {
                is_ours = line.starts_with(&begins) && line.ends_with("plan:");
                texts.extend(is_ours.then(String::new));
            }
        }
    }
    let mut plans = BTreeMap::<String, Vec<Value>>::new();
    for text in texts {
        // One that is still being written has no end.
        let Ok(plan) = serde_json::from_str::<Value>(&text) else { continue };
        let statement = plan["Query Text"].as_str().expect("a text").to_owned();
        plans.entry(statement).or_default().push(plan["Plan"].clone());
    }
    plans
}

/// How a plan finds rows: tables, each with the condition by which its index is used.
fn ways(plan: &Value, found: &mut BTreeSet<(String, String)>) {
    let text = |name: &str| plan[name].as_str().unwrap_or_default().to_owned();
    let kind = text("Node Type");
    let by = match kind.as_str() {
        "Seq Scan" => Some("every row".to_owned()),
        "Index Scan" | "Index Only Scan" => match text("Index Cond") {
            none if none.is_empty() => Some(format!("all of {}", text("Index Name"))),
            condition => Some(condition),
        },
        "Bitmap Heap Scan" => Some(text("Recheck Cond")),
        _ => None,
    };
    if let Some(by) = by {
        let table = text("Relation Name");
        let table = table.strip_suffix("_other").unwrap_or(&table).to_owned();
        let table = match table.rsplitn(3, '_').collect::<Vec<_>>()[..] {
            [month, year, table] if [month, year].concat().parse::<u32>().is_ok() => {
                table.to_owned()
            }
            _ => table,
        };
        found.insert((table, by));
    }
    for inner in plan["Plans"].as_array().into_iter().flatten() {
        ways(inner, found);
    }
}

/// A life, and everything that may be asked for.
async fn everything(host: &TestHost) {
    let held = host.pay("fraud_hold", naira(200_001)).await.ok().id();
    let failed = host.pay("failed", naira(200_000)).await.ok().id();
    let paid = host.pay("paid", naira(100_000)).await.ok().id();
    let contract: Value =
        serde_json::from_str(include_str!("../../host/openapi.json")).expect("the contract");
    let wallet = host.merchant.test_wallet.clone();
    for (path, item) in contract["paths"].as_object().expect("paths") {
        // A stream does not end.
        if item.get("get").is_none() || path.ends_with("/stream") {
            continue;
        }
        for id in [&held, &failed, &paid, &wallet] {
            let path = path.replace("{id}", id).replace("{wallet_id}", id);
            if path.contains('{') {
                continue;
            }
            match path.strip_prefix("/admin/v1/") {
                Some(path) => host.admin(http::Method::GET, path, json!({})).await,
                None => host.get(&path).await,
            };
        }
    }
    for list in [
        "payouts?status=failed",
        "payouts?status=processing",
        "payouts?created_after=2026-11-20",
        "webhook_deliveries?status=failed",
        "webhook_deliveries?endpoint_id=ckwhe_0",
    ] {
        host.get(&format!("/v1/{list}")).await.ok();
    }
    host.get("/v1/reports/bank_statement?currency=NGN").await.ok();
    let transactions = format!("/v1/wallets/{wallet}/transactions");
    host.get(&format!("{transactions}?source=admin_credit")).await.ok();
    let first = host.get(&format!("{transactions}?limit=1")).await.ok();
    let cursor = first.json["data"][0]["id"].as_str().expect("an id");
    host.get(&format!("{transactions}?starting_after={cursor}")).await.ok();
    let days = "from=2026-01-01&to=2026-01-31";
    let entries = format!("settlement_entries?route=ngn_nip&env=live&{days}");
    host.admin(http::Method::GET, &entries, json!({})).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grows_is_never_looked_through() {
    with_host(Engine::Postgres, async |host| {
        write_plans_down(host).await;
        restart(host, |_| {}).await;
        everything(host).await;
        let plans = plans(host);
        assert!(plans.len() > 100, "{} statements", plans.len());
        let mut kept = String::new();
        for (statement, plans) in &plans {
            let mut found = BTreeSet::new();
            plans.iter().for_each(|plan| ways(plan, &mut found));
            for (table, by) in &found {
                let index = by.strip_prefix("all of ");
                let is_whole =
                    by == "every row" || index.is_some_and(|index| !FEW.contains(&index));
                assert!(!(is_whole && GROWING.contains(&&**table)), "{statement}: {table}, {by}");
            }
        }
        for (name, words) in KEPT {
            let own = plans.iter().filter(|(statement, _)| statement.contains(words));
            let mut found = BTreeSet::new();
            own.for_each(|(_, plans)| plans.iter().for_each(|plan| ways(plan, &mut found)));
            if *name == USED_KEYS {
                found.retain(|(table, _)| table == "idempotency_keys");
                found = found.into_iter().map(|(table, by)| (table, numbered(&by))).collect();
            }
            assert!(!found.is_empty(), "{name}: nobody asked");
            kept.push_str(&format!("{name}\n"));
            found.iter().for_each(|(table, by)| kept.push_str(&format!("    {table}: {by}\n")));
        }
        insta::assert_snapshot!("plans_of_postgresql", kept);
        let besides_payouts =
            plans.iter().filter(|(text, _)| text.contains("e.kind <> 'payout_debit'"));
        let mut besides_payouts = besides_payouts.flat_map(|(_, plans)| plans);
        let own_index = "\"journals_besides_payouts\"";
        assert!(besides_payouts.any(|plan| plan.to_string().contains(own_index)));
        let statements: Vec<&String> = plans.keys().collect();
        sqlite(&statements).await;
    })
    .await;
}

/// A condition in which it is the same which parameter it asks for.
fn numbered(condition: &str) -> String {
    condition.replace(|c: char| c.is_ascii_digit(), "n")
}

/// The same statements on SQLite, as far as it understands them.
async fn sqlite(statements: &[&String]) {
    with_host(Engine::Sqlite, async |host| {
        let (mut understood, mut bounded) = (0, 0);
        for statement in statements {
            let sql = format!("EXPLAIN QUERY PLAN {statement}");
            let rows = sqlx::query_as::<_, (i64, i64, i64, String)>(AssertSqlSafe(sql));
            let Ok(steps) = rows.fetch_all(host.app().db.pool()).await else { continue };
            understood += 1;
            if SINCE.iter().any(|words| statement.contains(words)) {
                bounded += 1;
                let is_bounded = steps
                    .iter()
                    .any(|(.., step)| step.contains("AND id_number>? AND id_number<?)"));
                assert!(is_bounded, "SQLite: {steps:?} for {statement}");
            }
            for (.., step) in steps {
                let Some(scanned) = step.strip_prefix("SCAN ") else { continue };
                let name = scanned.split(' ').next().unwrap_or_default();
                let is_growing = |table: &&&str| {
                    **table == name || statement.contains(&format!(" {table} {name} "))
                };
                let found = GROWING.iter().find(is_growing);
                assert!(found.is_none(), "SQLite: {step} for {statement}");
            }
        }
        assert!(understood > 50, "{understood} statements");
        assert_eq!(bounded, SINCE.len());
    })
    .await;
}
