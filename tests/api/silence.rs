//! A database that does not answer, a writer that is dead, and more requests than can be served.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use railhead::db::bulk::{Table, text};
use railhead::db::lookup::Lookup;
use railhead::id::IdGenerator;
use railhead::ledger::{Command, HookRows, OutboxHook, RunHook, Writer, WriterParts};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use sqlx::{Connection as _, Executor as _};
use tokio_util::sync::CancellationToken;

use crate::bank::Hold;
use crate::line::QuietLine;
use crate::live::{pay, until, with_bank};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with_host};

async fn ready(host: &TestHost) -> Answer {
    host.send(Method::GET, "/readyz", "", &[], None).await
}

/// Waits until the host says that it is ready, or not.
async fn until_ready(host: &TestHost, wanted: u16) {
    for _ in 0..300 {
        if ready(host).await.status == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} and not {wanted}", ready(host).await.status);
}

/// Calls wait for a while and are refused in words; the host says that it is not ready; when the
/// line carries again it goes on by itself, and every key is there once.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_silent_holds_nobody_for_ever() {
    let database = Arc::new(crate::databases::Database::new(Engine::Postgres).await);
    let mut config = crate::test_host::config(&database);
    let (line, url) = QuietLine::open(config.database_url().expose_secret()).await;
    config.database_url = Some(url.into());
    let mut host = TestHost::open_with(Engine::Postgres, database, config).await;
    let key = unique();
    line.fall_silent();
    let begun = tokio::time::Instant::now();
    let waiting = host.pay("paid", naira(100_000));
    let (answer, ()) = tokio::join!(waiting, until_ready(&host, 503));
    // Which of the two depends on how lately the connection was used.
    let (status, code) = answer.refused();
    let is_told = matches!(code, "service_unavailable" | "request_timeout");
    assert!(status == 503 && is_told, "{}", answer.text);
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    line.speak();
    until_ready(&host, 200).await;
    for _ in 0..100 {
        let answer = host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await;
        if answer.status == 201 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let answer = host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await.ok();
    assert_eq!(answer.headers["idempotent-replayed"], "true");
    host.prove().await;
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}

/// The connections to a server that is gone stay as they are, and nobody ever answers on them:
/// whoever waits is told, and everything goes on over new ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_goes_on_where_another_server_takes_the_place_of_a_lost_one() {
    let database = Arc::new(crate::databases::Database::new(Engine::Postgres).await);
    let mut config = crate::test_host::config(&database);
    let (line, url) = QuietLine::open(config.database_url().expose_secret()).await;
    config.database_url = Some(url.into());
    let mut host = TestHost::open_with(Engine::Postgres, database, config).await;
    host.pay("paid", naira(100_000)).await.ok();
    // More callers than connections: each of these is waited at.
    let asking = (0..40).map(async |_| host.get("/v1/payouts").await);
    let (answers, ()) = tokio::join!(futures::future::join_all(asking), async {
        line.fall_silent();
        tokio::time::sleep(Duration::from_millis(500)).await;
        line.lose_the_server();
        line.speak();
    });
    assert!(answers.iter().all(|answer| [200, 503].contains(&answer.status)));
    let paid = async {
        let key = unique();
        while host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await.status != 201 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        until_ready(&host, 200).await;
    };
    let paid = tokio::time::timeout(Duration::from_secs(60), paid).await;
    paid.expect("it goes on with new connections");
    host.prove().await;
    line.lose_the_server();
    let stopping = host.running.take().expect("a host").stop();
    // Whether all was written that waited is another question.
    let stopped = tokio::time::timeout(Duration::from_secs(60), stopping).await;
    drop(stopped.expect("it does not wait for the server"));
}

/// A database in which nothing can be written for a while: the host says so, and goes on by itself when
/// that is over, over sessions that know it.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_goes_on_when_its_database_can_be_written_again() {
    with_host(Engine::Postgres, async |host| {
        host.pay("paid", naira(100_000)).await.ok();
        let pool = host.app().db.pool();
        let name: String = sqlx::query_scalar("SELECT current_database()::text")
            .fetch_one(pool)
            .await
            .expect("a name");
        let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let only_read = |is: &str| {
            vec![format!("ALTER DATABASE {name} SET default_transaction_read_only = {is}")]
        };
        host.run(&only_read("on")).await;
        host.count(cut).await;
        until_ready(host, 503).await;
        assert_eq!(host.pay("paid", naira(100_000)).await.status, 503);
        let mut beside = sqlx::PgConnection::connect(&host.database.url).await.expect("PostgreSQL");
        for sql in ["SET default_transaction_read_only = off", &only_read("off")[0]] {
            beside.execute(sqlx::AssertSqlSafe(sql)).await.expect("set");
        }
        until_ready(host, 200).await;
        for _ in 0..20 {
            host.pay("paid", naira(100_000)).await.ok();
        }
        host.prove().await;
    })
    .await;
}

/// A decision that panics is one command's misfortune: it is refused, its neighbours are not, and
/// the next one finds the writer at work.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_panics_harms_nobody_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let broken = async || {
            let command: Command<()> = Command::new(|_| panic!("a decision that was never tried"));
            host.app().writer.work(command).await.expect_err("refused").code()
        };
        let paid = async || host.pay("paid", naira(100_000)).await.ok();
        let (code, _, _) = tokio::join!(broken(), paid(), paid());
        assert_eq!(code, railhead::error::ErrorCode::ApiError);
        paid().await;
        assert_eq!(ready(host).await.status, 200);
    })
    .await;
}

/// Rows of `meta` for writers of tests, and how their hooks look it up.
static META: Table<&str> = Table {
    name: "meta",
    fixed: &[text("key", |key| (*key).into()), text("value", |key| (*key).into())],
    changing: &[],
    on_conflict: None,
    is_sealed: false,
};
static META_KEYS: Lookup = Lookup { name: "meta", key: "key", columns: &[], lock: false };

/// A writer beside the host's, with a hook of its own on [`META`].
async fn writer_with(host: &TestHost, run: RunHook, broken: &CancellationToken) -> Writer {
    let hook = OutboxHook {
        of: "meta",
        lookup: &META_KEYS,
        keys: |new| new.iter().map(|new| new.row.text("key").map(str::to_owned)).collect(),
        run,
    };
    let parts = WriterParts {
        db: host.app().db.clone(),
        clock: host.clock.clone(),
        ids: Arc::new(IdGenerator::seeded(host.clock.clone(), 46)),
        hook: Some(Arc::new(hook)),
        batch_max: 10,
        broken: broken.clone(),
    };
    Writer::start(parts).await.expect("a writer")
}

/// A writer whose task ends by itself takes its host with it, rather than leave it alive without
/// one; who waits is told so.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_dies_stops_its_host(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let broken = CancellationToken::new();
        let committed = || panic!("what was never tried");
        let run: RunHook = Box::new(move |_, _, _| {
            Ok(HookRows { rows: Vec::new(), committed: Box::new(committed) })
        });
        let writer = writer_with(host, run, &broken).await;
        let command = Command::rows(vec![META.insert(&"written")]);
        let refused = writer.work(command).await.expect_err("nobody can tell");
        assert_eq!(refused.code(), railhead::error::ErrorCode::ServiceUnavailable);
        let stopped = tokio::time::timeout(Duration::from_secs(10), broken.cancelled()).await;
        stopped.expect("the host is told");
        assert_eq!(host.count("SELECT COUNT(*) FROM meta WHERE key = 'written'").await, 1);
    })
    .await;
}

/// A row of which nothing can be told is one command's misfortune: nothing of that is written, and
/// its neighbours in the batch are.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_panics_harms_nobody_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let broken = CancellationToken::new();
        let most = Arc::new(AtomicUsize::new(0));
        // The first batch waits until all have been handed in.
        let (all_are_in, wait) = std::sync::mpsc::channel::<()>();
        let (seen, wait) = (Arc::clone(&most), Mutex::new(wait));
        let run: RunHook = Box::new(move |new, _, _| {
            let _ = wait.lock().expect("one writer").recv();
            seen.fetch_max(new.len(), Ordering::Relaxed);
            for new in new {
                assert_ne!(new.row.text("key")?, "never", "a row that was never tried");
            }
            Ok(HookRows { rows: Vec::new(), committed: Box::new(|| {}) })
        });
        let writer = writer_with(host, run, &broken).await;
        let write = async |key| writer.work(Command::rows(vec![META.insert(&key)])).await;
        let (first, refused, last, ()) =
            tokio::join!(write("first"), write("never"), write("last"), async {
                drop(all_are_in);
            });
        assert_eq!(refused.expect_err("refused").code(), railhead::error::ErrorCode::ApiError);
        assert!(first.is_ok() && last.is_ok(), "{first:?} {last:?}");
        write("next").await.expect("it is at work");
        let written = "SELECT COUNT(*) FROM meta WHERE key IN ('first', 'last', 'next')";
        assert_eq!(host.count(written).await, 3);
        assert_eq!(host.count("SELECT COUNT(*) FROM meta WHERE key = 'never'").await, 0);
        assert!(!broken.is_cancelled(), "its host goes on");
        assert!(most.load(Ordering::Relaxed) > 1, "some were one batch");
    })
    .await;
}

/// A batch whose COMMIT fails as often as it is tried takes nothing else with it: the writer goes on
/// with a chain of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_commits_fail_goes_on_afterwards() {
    static APART: Table<&str> = Table {
        name: "apart",
        fixed: &[text("id", |id| (*id).into())],
        changing: &[],
        on_conflict: None,
        is_sealed: false,
    };
    with_host(Engine::Sqlite, async |host| {
        let db = &host.app().db;
        // Whether the other one is there is looked at by COMMIT.
        let sql = "CREATE TABLE apart (id TEXT PRIMARY KEY \
                   REFERENCES meta (key) DEFERRABLE INITIALLY DEFERRED)";
        let mut tx = db.write().await.expect("a transaction");
        sqlx::query(sql).execute(tx.conn()).await.expect("a table");
        tx.commit().await.expect("committed");
        let writer = &host.app().writer;
        let write = |id| writer.work(Command::rows(vec![APART.insert(&id)]));
        let refused = write("nowhere").await.expect_err("it cannot be committed");
        assert_eq!(refused.code(), railhead::error::ErrorCode::ServiceUnavailable);
        let mut tx = db.write().await.expect("a transaction");
        let sql = "INSERT INTO meta (key, value) VALUES ('here', 'here')";
        sqlx::query(sql).execute(tx.conn()).await.expect("a row");
        tx.commit().await.expect("committed");
        let written = tokio::time::timeout(Duration::from_secs(10), write("here")).await;
        written.expect("it does not wait for itself").expect("written");
        assert_eq!(host.count("SELECT COUNT(*) FROM apart").await, 1);
        let mut tx = db.write().await.expect("a transaction");
        sqlx::query("DROP TABLE apart").execute(tx.conn()).await.expect("gone");
        tx.commit().await.expect("committed");
    })
    .await;
}

/// The database is held up while requests pile up: new ones are shed before they cost anything,
/// and what the bank answers meanwhile is written down first.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn overload_sheds_requests_and_never_a_banks_answer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let mut under_way = Vec::new();
        for _ in 0..10 {
            under_way.push(pay(host, "0123456785").await.ok().id());
        }
        host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'open'", 10).await;
        bank.door.until_held().await;
        let mut tx = host.app().db.write().await.expect("a transaction");
        if engine == Engine::Postgres {
            let sql = "LOCK TABLE wallets IN EXCLUSIVE MODE";
            sqlx::query(sql).execute(tx.conn()).await.expect("locked");
        }
        bank.door.hold(Hold::Nothing);
        let (host, key) = (&*host, host.merchant.live_key.as_str());
        let requests = async {
            // Some are not answered as long as the table is locked.
            let ask = async |_| {
                let once = unique();
                let asked = host.pay_as(key, &once, naira(100_000));
                tokio::time::timeout(Duration::from_millis(1500), asked).await.ok()
            };
            let mut shed = 0;
            // Waves: once those that wait are old, the next ones do not wait at all.
            for _ in 0..6 {
                let answers = futures::future::join_all((0..50).map(ask)).await;
                let answers: Vec<_> = answers.into_iter().flatten().collect();
                let is_shed = |answer: &&Answer| answer.status == 503;
                shed += answers.iter().filter(is_shed).count();
                for answer in answers.iter().filter(is_shed) {
                    assert!(answer.headers.contains_key("retry-after"), "{}", answer.text);
                }
            }
            shed
        };
        let shed = requests.await;
        tx.commit().await.expect("let go");
        assert!(shed > 0, "nobody was turned away");
        for id in &under_way {
            until(host, id, "paid").await;
        }
        let evidence = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'";
        assert!(host.count(evidence).await >= 10);
        host.until_count("SELECT COUNT(*) FROM transfers", 0).await;
        for transfer in bank.transfers().await {
            assert_eq!(transfer.received, 1, "{transfer:?}");
        }
    })
    .await;
}

/// Whoever has a wallet's row, as a batch of requests has while it becomes durable, keeps none of
/// the wallet's payments from being written down as paid.
#[tokio::test(flavor = "multi_thread")]
async fn payments_come_to_their_ends_beside_whoever_has_the_wallet() {
    with_bank(Engine::Postgres, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0123456785").await.ok().id();
        bank.door.until_held().await;
        let mut tx = host.app().db.write().await.expect("a transaction");
        let sql = "SELECT id FROM wallets FOR UPDATE";
        sqlx::query(sql).fetch_all(tx.conn()).await.expect("locked");
        bank.door.hold(Hold::Nothing);
        until(host, &id, "paid").await;
        tx.commit().await.expect("let go");
        assert_eq!(host.count("SELECT COUNT(*) FROM settled_out").await, 1);
        bank.prove().await;
    })
    .await;
}
