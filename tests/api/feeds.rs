//! What networks leave lying ready is fetched, or somebody is told that it is not.

use rstest::rstest;

use crate::ach::{pay_live, until_files};
use crate::file_transport::{Over, acknowledge, close_window, put, with_files};
use crate::test_host::{Engine, TestHost};

/// Changes something behind the host's back.
async fn change(host: &TestHost, sql: &'static str) {
    let mut tx = host.app().db.write().await.expect("a transaction");
    sqlx::query(sql).execute(tx.conn()).await.expect("changed");
    tx.commit().await.expect("committed");
}

async fn open_cases(host: &TestHost, kind: &str) -> i64 {
    let sql = "SELECT COUNT(*) FROM cases WHERE kind = $1 AND status = 'open'";
    sqlx::query_scalar(sql).bind(kind).fetch_one(host.app().db.pool()).await.expect("a number")
}

/// The host asks for what lies ready, after so many seconds.
async fn asks(host: &TestHost, seconds: u64) {
    host.advance(seconds);
    let now = host.clock.now().micros();
    let due = format!("SELECT COUNT(*) FROM feed_turns WHERE due_at <= {now}");
    host.until_count(&due, 0).await;
    host.until_count("SELECT COUNT(*) FROM feeds WHERE lease_until > 0", 0).await;
}

/// What is fetched and cannot be stored is fetched again, and a person is told after an hour.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_fetched_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        let (full, emptied) = match engine {
            Engine::Sqlite => (
                "CREATE TRIGGER full BEFORE INSERT ON inbox BEGIN SELECT RAISE(ABORT, 'full'); END",
                "DROP TRIGGER full",
            ),
            Engine::Postgres => (
                "ALTER TABLE inbox RENAME TO inbox_elsewhere",
                "ALTER TABLE inbox_elsewhere RENAME TO inbox",
            ),
        };
        change(host, full).await;
        put(host, &server.path("incoming").join("first.txt"), "first", -60);
        let failing = "SELECT COUNT(*) FROM feeds WHERE failing_since IS NOT NULL";
        for _ in 0..8 {
            asks(host, 600).await;
            host.until_count(failing, 1).await;
        }
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'feed_unreachable'", 1).await;
        change(host, emptied).await;
        asks(host, 600).await;
        host.until_count("SELECT COUNT(*) FROM inbox", 1).await;
        host.until_count(failing, 0).await;
        acknowledge(host, server, &[id]).await;
    })
    .await;
}

/// A file that nobody can fetch keeps nothing else back, and is somebody's case: a return may be
/// in it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        let large = " ".repeat(17 << 20);
        put(host, &server.path("incoming").join("large.json"), &large, -60);
        asks(host, 600).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'feed_unreachable'", 1).await;
        for _ in 0..3 {
            asks(host, 600).await;
        }
        assert_eq!(open_cases(host, "feed_unreachable").await, 1);
        let sql = "SELECT summary FROM cases WHERE kind = 'feed_unreachable'";
        let summary: String =
            sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("a case");
        assert!(summary.contains("large.json"), "{summary}");
        acknowledge(host, server, &[id]).await;
    })
    .await;
}
