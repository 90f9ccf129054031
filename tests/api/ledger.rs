//! The books are written once, and whoever changes them behind our back is found out.

use http::Method;
use railhead::db::bulk::Shape as _;
use railhead::payouts::sql::PAYOUT_STATES;
use railhead::transfers::attempt::ATTEMPT_STATES;
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::packs::{adopt, guard};
use crate::test_host::{Engine, TestHost, naira, with_host};

/// Runs a statement as somebody with access to the database could.
async fn tamper(host: &TestHost, sql: &str) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(AssertSqlSafe(sql.to_owned())).execute(host.app().db.pool()).await?;
    Ok(done.rows_affected())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_once_cannot_be_changed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        adopt(host, &guard("1", "amount_minor", &[("large", "hold", "amount_minor > 200000")]))
            .await;
        host.pay("paid", naira(100_000)).await.ok();
        let saved = json!({ "currency": "NGN", "name": "Ada Obi", "account_number": "0123456785",
                            "bank_code": "058" });
        let (by, once) = (&host.merchant.test_key, [("idempotency-key", "once")]);
        host.send(Method::POST, "/v1/beneficiaries", by, &once, Some(saved)).await.ok();
        let mut statements = vec![
            "UPDATE journals SET lines = '[]' WHERE seq = 1".to_owned(),
            "UPDATE journals SET hash = 'x' WHERE wallet_id IS NOT NULL".to_owned(),
            "UPDATE journals SET kind = 'x'".to_owned(),
            "UPDATE audit SET actor = 'nobody'".to_owned(),
            "UPDATE rail_calls SET result = 'paid'".to_owned(),
            "UPDATE events SET type = 'payout.failed'".to_owned(),
            "UPDATE decisions SET action = 'allow'".to_owned(),
            "UPDATE idempotency_keys SET resource_id = 'x'".to_owned(),
            "UPDATE idempotency_keys SET response = '{}'".to_owned(),
            "UPDATE expiring_keys SET response = '{}'".to_owned(),
        ];
        for table in [
            "journals",
            "audit",
            "rail_calls",
            "events",
            "decisions",
            "expiring_keys",
            "idempotency_keys",
        ] {
            statements.push(format!("DELETE FROM {table}"));
            if engine == Engine::Postgres {
                statements.push(format!("TRUNCATE {table}"));
            }
        }
        for sql in statements {
            let refused = tamper(host, &sql).await.expect_err(&sql).to_string();
            assert!(refused.contains("append-only"), "{sql}: {refused}");
        }
        // Not even what sweeps takes these.
        host.run(&["INSERT INTO sweeping (id) VALUES (1)".to_owned()]).await;
        let refused = tamper(host, "DELETE FROM idempotency_keys").await.expect_err("kept");
        assert!(refused.to_string().contains("append-only"), "{refused}");
        host.run(&["DELETE FROM sweeping".to_owned()]).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_balance_below_zero_does_not_fit(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for column in ["available_minor", "taken_out_minor"] {
            let sql = format!("UPDATE wallets SET {column} = -1");
            assert!(tamper(host, &sql).await.is_err(), "{column}");
        }
    })
    .await;
}

/// A payout's row stays on its page, and no index is written to, from queued to paid: only if no
/// index has a column that changes in between.
#[tokio::test(flavor = "multi_thread")]
async fn no_index_has_what_changes_on_the_way_of_a_payout() {
    with_host(Engine::Postgres, async |host| {
        let payouts: Vec<&str> = PAYOUT_STATES.columns().iter().map(|(name, _)| *name).collect();
        // What moves a payout in and out of an index: drafts, reviews, and whose batch waits.
        let rarely = ["is_waiting", "holds_batch", "unusual"];
        are_not_indexed(host, "payouts", &payouts[1..], &rarely).await;
        let attempts: Vec<&str> = ATTEMPT_STATES.columns().iter().map(|(name, _)| *name).collect();
        // Of networks that give payments names of their own, and of files.
        are_not_indexed(host, "attempts", &attempts[1..], &["network_id", "file_id"]).await;
    })
    .await;
}

/// An index that has what changes makes PostgreSQL write every index of the table again.
async fn are_not_indexed(host: &TestHost, table: &str, changing: &[&str], rarely: &[&str]) {
    let sql = "SELECT DISTINCT CAST(a.attname AS TEXT) FROM pg_index i \
               JOIN pg_depend d ON d.objid = i.indexrelid AND d.refobjid = i.indrelid \
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND (a.attnum = d.refobjsubid \
               OR a.attnum = ANY(i.indkey)) WHERE i.indrelid = to_regclass($1)";
    let query = sqlx::query_scalar(sql).bind(table);
    let indexed: Vec<String> = query.fetch_all(host.app().db.pool()).await.expect("columns");
    for column in ["id"].iter().chain(rarely) {
        assert!(indexed.iter().any(|indexed| indexed == column), "{table}: {indexed:?}");
    }
    for column in indexed.iter().filter(|column| !rarely.contains(&column.as_str())) {
        assert!(
            !changing.contains(&column.as_str()),
            "{column} changes, an index of {table} has it"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_on_postgresql_is_compared_by_its_bytes() {
    with_host(Engine::Postgres, async |host| {
        let sql = "SELECT table_name || '.' || column_name FROM information_schema.columns \
                   WHERE table_schema = current_schema() AND data_type IN ('text', \
                   'character varying', 'character') AND collation_name IS DISTINCT FROM 'C' \
                   AND table_name NOT LIKE '\\_sqlx%'";
        let pool = host.app().db.pool();
        let wrong: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await.expect("names");
        assert_eq!(wrong, Vec::<String>::new());
    })
    .await;
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's MMIX generator; its high bits are the good ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let index = self.below(u64::try_from(from.len()).expect("few"));
        from[usize::try_from(index).expect("few")]
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_sequence_of_movements_breaks_the_books(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(1, 2, 3)] seed: u64,
) {
    with_host(engine, async |host| {
        let mut dice = Dice(seed);
        let mut payouts: Vec<String> = Vec::new();
        for step in 0..60 {
            let amount = 100 + dice.below(20_000_000);
            match dice.below(4) {
                0 => {
                    let way = dice.pick(&["credit", "debit"]);
                    let path = format!("wallets/{}/{way}", host.merchant.test_wallet);
                    let body = json!({ "amount_minor": amount.to_string(), "reason": "a test" });
                    host.admin(http::Method::POST, &path, body).await;
                }
                1 if !payouts.is_empty() => decide(host, &mut dice, &payouts).await,
                _ => {
                    let scenario = dice.pick(&["paid", "failed", "processing", "fraud_hold"]);
                    let answer = host.pay(scenario, naira(amount)).await;
                    payouts.extend(answer.json["id"].as_str().map(str::to_owned));
                }
            }
            if step % 20 == 19 {
                host.prove().await;
            }
        }
        assert!(payouts.len() > 10);
    })
    .await;
}

/// Something happens to one of the payouts, or is refused.
async fn decide(host: &TestHost, dice: &mut Dice, payouts: &[String]) {
    let payouts: Vec<&str> = payouts.iter().map(String::as_str).collect();
    let id = dice.pick(&payouts);
    let what = dice.pick(&["release", "reject", "mark_paid", "mark_failed", "reverse", "settle"]);
    let body: Value = json!({ "evidence": "a letter", "reason": "a test" });
    match what {
        "settle" => host.post(&format!("/v1/sandbox/payouts/{id}/settle"), body).await,
        action => host.admin(http::Method::POST, &format!("payouts/{id}/{action}"), body).await,
    };
}
