//! A database for each test, on either engine.

use std::sync::atomic::{AtomicU64, Ordering};

use railhead::db::Db;
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::OnceCell;

/// The two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// A database of its own, gone when dropped.
pub(crate) struct Database {
    pub url: String,
    pub folder: tempfile::TempDir,
}

impl Database {
    pub(crate) async fn new(engine: Engine) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = match engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("railhead.db").display()),
            Engine::Postgres => new_postgres().await,
        };
        Self { url, folder }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some((server, name)) = self.url.rsplit_once('/').filter(|_| is_postgres(&self.url))
        else {
            return;
        };
        let (server, sql) = (server.to_owned(), format!("DROP DATABASE {name} WITH (FORCE)"));
        // Nobody waits for it, and the process may end before: the server goes as a whole.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let dropped = runtime.expect("a runtime").block_on(run(&server, &sql));
            if let Err(cause) = dropped {
                eprintln!("a test's database stays: {cause}");
            }
        });
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres:")
}

async fn run(server: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(&format!("{server}/postgres")).await?;
    connection.execute(AssertSqlSafe(sql)).await?;
    connection.close().await
}

/// A copy of one that has its tables: making them takes longer than most tests.
async fn new_postgres() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    static MODEL: OnceCell<String> = OnceCell::const_new();
    let server = std::env::var("TEST_POSTGRES").expect(
        "PostgreSQL for tests: run `make test`, or tests/with-postgres cargo test --workspace",
    );
    let model = MODEL.get_or_init(|| model(&server)).await;
    let name = format!("t{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    run(&server, &format!("CREATE DATABASE {name} TEMPLATE {model}")).await.expect("a database");
    format!("{server}/{name}")
}

async fn model(server: &str) -> String {
    let name = format!("model{}", std::process::id());
    // One whose tables could not be made may be in its place.
    run(server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.expect("dropped");
    run(server, &format!("CREATE DATABASE {name}")).await.expect("a database");
    let url = SecretString::from(format!("{server}/{name}"));
    let db = Db::open(&url, 1).await.expect("PostgreSQL");
    db.migrate().await.expect("its tables");
    db.close().await;
    name
}
