//! The books are written once, and whoever changes them behind our back is found out.

use rstest::rstest;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::test_host::{Engine, TestHost, naira, with_host};

/// Runs a statement as somebody with access to the database could.
async fn tamper(host: &TestHost, sql: &str) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(AssertSqlSafe(sql.to_owned())).execute(host.app().db.pool()).await?;
    Ok(done.rows_affected())
}

/// What proving the books says about them.
async fn verdict(host: &TestHost) -> String {
    let report = railhead::verify::verify(&host.app().db).await.expect("read");
    report.faults.list.first().map_or_else(|| "right".to_owned(), |fault| fault.what.clone())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn entries_journals_and_audit_are_append_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.pay("paid", naira(1_000_000)).await.ok();
        let mut statements = vec![
            "UPDATE entries SET amount_minor = amount_minor + 1".to_owned(),
            "UPDATE entries SET description = 'x' WHERE seq = 1".to_owned(),
            "UPDATE journals SET kind = 'x'".to_owned(),
            "UPDATE audit SET actor = 'nobody'".to_owned(),
        ];
        for table in ["entries", "journals", "audit"] {
            statements.push(format!("DELETE FROM {table}"));
            if engine == Engine::Postgres {
                statements.push(format!("TRUNCATE {table}"));
            }
        }
        for sql in statements {
            let refused = tamper(host, &sql).await.expect_err(&sql).to_string();
            assert!(refused.contains("append-only"), "{sql}: {refused}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_balance_below_zero_does_not_fit(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for column in ["available_minor", "pending_out_minor"] {
            let sql = format!("UPDATE wallets SET {column} = -1");
            assert!(tamper(host, &sql).await.is_err(), "{column}");
        }
    })
    .await;
}

/// Takes the triggers away, as an attacker would first.
async fn disarm(host: &TestHost) {
    for table in ["entries", "journals"] {
        if host.engine == Engine::Postgres {
            let sql = format!("ALTER TABLE {table} DISABLE TRIGGER USER");
            tamper(host, &sql).await.expect("disabled");
            continue;
        }
        for what in ["update", "delete"] {
            tamper(host, &format!("DROP TRIGGER {table}_no_{what}")).await.expect("dropped");
        }
    }
}

/// What is done to the books, what undoes it, and what is reported; `{p}` stands for a payout,
/// `{w}` for its wallet, `{j}` for its debit's journal.
const TAMPERINGS: &[(&str, &str, &str)] = &[
    (
        "UPDATE entries SET amount_minor = amount_minor + 1 WHERE journal_id = '{j}' AND line = 0",
        "UPDATE entries SET amount_minor = amount_minor - 1 WHERE journal_id = '{j}' AND line = 0",
        "journal {j} is off by 1 NGN",
    ),
    (
        "UPDATE entries SET amount_minor = amount_minor + CASE line WHEN 0 THEN 7 ELSE -7 END \
         WHERE journal_id = '{j}' AND line IN (0, 1)",
        "UPDATE entries SET amount_minor = amount_minor - CASE line WHEN 0 THEN 7 ELSE -7 END \
         WHERE journal_id = '{j}' AND line IN (0, 1)",
        "wallet {w}, entry 2: the balance does not follow",
    ),
    (
        "UPDATE entries SET balance_after_minor = balance_after_minor + 1 \
         WHERE journal_id = '{j}' AND line = 1",
        "UPDATE entries SET balance_after_minor = balance_after_minor - 1 \
         WHERE journal_id = '{j}' AND line = 1",
        "wallet {w}, entry 3: the balance does not follow",
    ),
    (
        "UPDATE entries SET hash = 'x' || hash WHERE journal_id = '{j}' AND line = 0",
        "UPDATE entries SET hash = substr(hash, 2) WHERE journal_id = '{j}' AND line = 0",
        "wallet {w}, entry 2: the hash does not follow",
    ),
    (
        "UPDATE entries SET created_at = created_at + 1 WHERE journal_id = '{j}' AND line = 2",
        "UPDATE entries SET created_at = created_at - 1 WHERE journal_id = '{j}' AND line = 2",
        "wallet {w}, entry 4: the hash does not follow",
    ),
    (
        "UPDATE entries SET source = 'payout_fees' WHERE journal_id = '{j}' AND line = 1",
        "UPDATE entries SET source = 'payout_fee' WHERE journal_id = '{j}' AND line = 1",
        "wallet {w}, entry 3: the hash does not follow",
    ),
    (
        "UPDATE entries SET seq = 99 WHERE journal_id = '{j}' AND line = 1",
        "UPDATE entries SET seq = 3 WHERE journal_id = '{j}' AND line = 1",
        "wallet {w} has entry 4 after entry 2",
    ),
    (
        "UPDATE entries SET seq = NULL WHERE journal_id = '{j}' AND line = 2",
        "UPDATE entries SET seq = 4 WHERE journal_id = '{j}' AND line = 2",
        "an unnumbered entry in journal {j}",
    ),
    (
        "UPDATE entries SET account_id = 'c-nobody' WHERE journal_id = '{j}' AND line < 3",
        "UPDATE entries SET account_id = '{w}' WHERE journal_id = '{j}' AND line < 3",
        "entries of wallet c-nobody, which does not exist",
    ),
    (
        "UPDATE entries SET account_id = 'system/test/NGN/levy' \
         WHERE account_id = 'system/test/NGN/fee_income'",
        "UPDATE entries SET account_id = 'system/test/NGN/fee_income' \
         WHERE account_id = 'system/test/NGN/levy' AND amount_minor < 5000",
        "system/test/NGN/fee_income holds 0, payouts and movements add up to 2500",
    ),
    (
        "UPDATE journals SET env = 'live' WHERE id = '{j}'",
        "UPDATE journals SET env = 'test' WHERE id = '{j}'",
        "journal {j} crosses environments",
    ),
    (
        "UPDATE journals SET id = 'x' || id WHERE id = '{j}'",
        "UPDATE journals SET id = '{j}' WHERE id = 'x{j}'",
        "entries without journal {j}",
    ),
    (
        "UPDATE wallets SET available_minor = available_minor + 1 WHERE id = '{w}'",
        "UPDATE wallets SET available_minor = available_minor - 1 WHERE id = '{w}'",
        "wallet {w} says 98992313 after 4 entries, its entries say 98992312 after 4",
    ),
    (
        "UPDATE wallets SET seq = 5 WHERE id = '{w}'",
        "UPDATE wallets SET seq = 4 WHERE id = '{w}'",
        "wallet {w} says 98992312 after 5 entries, its entries say 98992312 after 4",
    ),
    (
        "UPDATE wallets SET head_hash = 'x' || head_hash WHERE id = '{w}'",
        "UPDATE wallets SET head_hash = substr(head_hash, 2) WHERE id = '{w}'",
        "wallet {w} has another last hash than its entries",
    ),
    (
        "UPDATE wallets SET pending_out_minor = 5 WHERE id = '{w}'",
        "UPDATE wallets SET pending_out_minor = 0 WHERE id = '{w}'",
        "wallet {w} says 5 is on its way out, its payouts 0",
    ),
    (
        "UPDATE payouts SET status = 'failed' WHERE id = '{p}'",
        "UPDATE payouts SET status = 'paid' WHERE id = '{p}'",
        "payout {p} was given back although its status says otherwise, or the other way round",
    ),
    (
        "UPDATE payouts SET status = 'draft' WHERE id = '{p}'",
        "UPDATE payouts SET status = 'paid' WHERE id = '{p}'",
        "payout {p} is debited although its status holds no money, or the other way round",
    ),
    (
        "UPDATE payouts SET status = 'queued' WHERE id = '{p}'",
        "UPDATE payouts SET status = 'paid' WHERE id = '{p}'",
        "payout {p} is settled although its status says otherwise, or the other way round",
    ),
    (
        "UPDATE payouts SET fee_minor = fee_minor + 1 WHERE id = '{p}'",
        "UPDATE payouts SET fee_minor = fee_minor - 1 WHERE id = '{p}'",
        "payout {p} was debited another amount than it says",
    ),
    (
        "UPDATE payouts SET version = version + 1 WHERE id = '{p}'",
        "UPDATE payouts SET version = version - 1 WHERE id = '{p}'",
        "payout {p} has lost events, or has too many",
    ),
    (
        "UPDATE events SET object_id = 'x' || object_id WHERE object_id = '{p}' AND sequence = 2",
        "UPDATE events SET object_id = '{p}' WHERE object_id = 'x{p}'",
        "payout {p} has lost events, or has too many",
    ),
    (
        "UPDATE attempts SET state = 'open' WHERE transfer_id = '{p}'",
        "UPDATE attempts SET state = 'paid' WHERE payout_id = '{p}'",
        "payout {p} is processing without an open attempt, or has one although it ended",
    ),
    (
        "UPDATE attempts SET state = 'closed' WHERE payout_id = '{p}'",
        "UPDATE attempts SET state = 'paid' WHERE payout_id = '{p}'",
        "payout {p} is paid or failed by a rail without an attempt that says so",
    ),
    (
        "INSERT INTO dispatches VALUES ('{p}', 9223372036854775807, 0, 1, 0)",
        "DELETE FROM transfers",
        "payout {p} is waiting, and no dispatcher will look at it; or it ended, and one will",
    ),
    (
        "UPDATE payouts SET env = 'live' WHERE id = '{p}'",
        "UPDATE payouts SET env = 'test' WHERE id = '{p}'",
        "payout {p} is paid from a wallet of another merchant, environment or currency",
    ),
];

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_tampering_is_reported_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payout = host.pay("paid", naira(1_000_000)).await.ok().id();
        let pool = host.app().db.pool().clone();
        let sql = "SELECT id FROM journals WHERE ref_id = $1 AND kind = 'payout_debit'";
        let journal: String =
            sqlx::query_scalar(sql).bind(&payout).fetch_one(&pool).await.expect("a journal");
        let named = |text: &str| {
            let text = text.replace("{p}", &payout).replace("{j}", &journal);
            text.replace("{w}", &host.merchant.test_wallet)
        };
        disarm(host).await;
        assert_eq!(verdict(host).await, "right");
        for (does, undoes, reported) in TAMPERINGS {
            assert!(tamper(host, &named(does)).await.expect(does) > 0, "{does}");
            assert_eq!(verdict(host).await, named(reported), "{does}");
            tamper(host, &named(undoes)).await.expect(undoes);
            assert_eq!(verdict(host).await, "right", "{undoes}");
        }
    })
    .await;
}

/// Deletions, which nothing undoes: each has a database of its own.
const DELETIONS: &[(&str, &str)] = &[
    ("DELETE FROM entries WHERE journal_id = '{j}' AND line = 0", "is off by"),
    ("DELETE FROM entries WHERE journal_id = '{j}'", "has lost its entries"),
    ("DELETE FROM journals WHERE id = '{j}'", "entries without journal"),
    ("DELETE FROM payouts", "is in the ledger and nowhere else"),
];

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_deletion_is_reported(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(0, 1, 2, 3)] which: usize,
) {
    let mut host = TestHost::open(engine, |_| {}).await;
    let (deletion, reported) = DELETIONS[which];
    let payout = host.pay("paid", naira(1_000_000)).await.ok().id();
    let pool = host.app().db.pool().clone();
    let sql = "SELECT id FROM journals WHERE ref_id = $1 AND kind = 'payout_debit'";
    let journal: String =
        sqlx::query_scalar(sql).bind(&payout).fetch_one(&pool).await.expect("a journal");
    disarm(&host).await;
    assert_eq!(verdict(&host).await, "right");
    assert!(tamper(&host, &deletion.replace("{j}", &journal)).await.expect("done") > 0);
    let found = verdict(&host).await;
    assert!(found.contains(reported), "{deletion}: {found}");
    host.running.take().expect("a host").stop().await.expect("stopped");
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
    let body: Value = json!({ "evidence": "a letter" });
    match what {
        "settle" => host.post(&format!("/v1/sandbox/payouts/{id}/settle"), body).await,
        action => host.admin(http::Method::POST, &format!("payouts/{id}/{action}"), body).await,
    };
}
