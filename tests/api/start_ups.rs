//! Starting: what a host refuses before it changes anything, and what is shown until it was seen.

use std::process::Stdio;
use std::time::Duration;

use railhead::clock::Clock;
use railhead::config::Config;
use railhead::db::Db;
use railhead::id::IdGenerator;
use railhead::start::{Sources, start};
use rstest::rstest;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::network::start_when_free;
use crate::packs::restart;
use crate::program::PROGRAM;
use crate::test_host::{Database, Engine, KEY, beginning, config, data_folder, with_host};

/// A change of the configuration.
type Change = fn(&mut Config);

/// Starting, or stopping, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a host with this change to its settings does not start.
async fn refusal(database: &Database, change: impl Fn(&mut Config)) -> String {
    for _ in 0..1_000 {
        let mut config = config(database);
        change(&mut config);
        let sources = Sources { ids: IdGenerator::seeded(Clock::System, 7), clock: Clock::System };
        let why = Box::pin(start(config, sources)).await.err().expect("a refusal").to_string();
        // Whoever has stopped lets go of the file a moment later.
        if !why.contains("in use by another host") {
            return why;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the database stays in use");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_another_master_key_leaves_the_schema_as_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let database = Database::new(engine).await;
    let host = start_when_free(config(&database), beginning()).await;
    host.stop().await.expect("stopped in order");
    // As if an older version had been here: the newest step of the schema is still to be made.
    let db = Db::open_for_reading(&database.url.clone().into()).await.expect("a database");
    let steps = async || -> i64 {
        let sql = "SELECT COUNT(*) FROM _sqlx_migrations";
        sqlx::query_scalar(sql).fetch_one(db.pool()).await.expect("a number")
    };
    let known = steps().await;
    let mut tx = db.write().await.expect("a transaction");
    let sql = "DELETE FROM _sqlx_migrations \
               WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)";
    sqlx::query(sql).execute(tx.conn()).await.expect("forgotten");
    tx.commit().await.expect("committed");
    let why = refusal(&database, |config| config.encryption.keys = vec!["22".repeat(32)]).await;
    assert!(why.contains("set up with master key"), "{why}");
    assert_eq!(steps().await, known - 1);
    // Whoever has the key as well as another one is let in as far as the schema.
    let both = |config: &mut Config| {
        config.encryption.keys = vec!["22".repeat(32), KEY.to_owned()];
    };
    let why = refusal(&database, both).await;
    assert!(why.contains("migrating the database"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_no_host_can_work_with_are_refused_by_name() {
    let database = Database::new(Engine::Sqlite).await;
    let odd: [(Change, &str); 8] = [
        (|config| config.server.timeout_s = 0, "server.timeout_s is 0"),
        (|config| config.server.timeout_s = u64::MAX, "server.timeout_s is 18446744073709551615"),
        (|config| config.server.connections_max = usize::MAX, "server.connections_max is"),
        (|config| config.server.database_connections = 0, "server.database_connections is 0"),
        (|config| config.admin.requests_per_minute = 0, "admin.requests_per_minute is 0"),
        (|config| config.limits.write_per_minute = 0, "limits.write_per_minute is 0"),
        (
            |config| config.worker.dispatch_concurrency = 2_305_843_009_213_693_952,
            "worker.dispatch_concurrency is 2305843009213693952, and must be 10000 at most",
        ),
        (|config| config.alerts.remind_hours = 0, "alerts.remind_hours is 0"),
    ];
    for (change, words) in odd {
        let why = refusal(&database, change).await;
        assert!(why.contains(words), "{why}");
    }
    let file = database.folder.path().join("hostname");
    std::fs::write(&file, "payments.example\n").expect("written");
    for (why, setting) in [
        (
            refusal(&database, |config| config.egress.extra_ca_file = Some(file.clone())).await,
            "egress",
        ),
        (
            refusal(&database, |config| config.webhooks.extra_ca_file = Some(file.clone())).await,
            "webhooks",
        ),
        (
            refusal(&database, |config| config.email.extra_ca_file = Some(file.clone())).await,
            "email",
        ),
    ] {
        let is_named = why.contains(&format!("{setting}.extra_ca_file"));
        assert!(is_named && why.contains("no certificate"), "{why}");
    }
    assert!(!database.folder.path().join("railhead.db").exists(), "nothing was begun");
}

/// `railhead serve` on this database, where nobody configured the operator's token.
fn serve(database: &Database, settings: &[(&str, &str)]) -> Child {
    Command::new(PROGRAM)
        .arg("serve")
        .current_dir(database.folder.path())
        .env_remove("RAILHEAD_OPERATOR_TOKEN")
        .env_remove("RUST_LOG")
        .env("DATABASE_URL", &database.url)
        .env("RAILHEAD_DATA__DIR", data_folder(database, "data"))
        .env("RAILHEAD_ENCRYPTION__KEYS", KEY)
        .env("RAILHEAD_SERVER__ADDRESS", "127.0.0.1:0")
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a program")
}

/// What a program prints that is told to stop as soon as it serves.
async fn printed(mut program: Child) -> String {
    let mut lines = BufReader::new(program.stderr.take().expect("a log")).lines();
    let serving = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            if line.contains("serving address=") {
                return;
            }
        }
        panic!("it did not start");
    };
    tokio::time::timeout(PATIENCE, serving).await.expect("a start in time");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let pid = program.id().expect("a program").to_string();
    let told = std::process::Command::new("kill").args(["-TERM", &pid]).status();
    assert!(told.expect("a signal").success());
    let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let output = output.expect("an end in time").expect("its output");
    assert!(output.status.success(), "stopped in order");
    String::from_utf8(output.stdout).expect("text")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_token_is_shown_until_a_start_has_shown_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let database = Database::new(engine).await;
    let nowhere = [("RAILHEAD_MODULES__DIR", "/no/such")];
    let failed = serve(&database, &nowhere).wait_with_output().await.expect("its output");
    let log = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && log.contains("/no/such"), "{log}");
    assert!(failed.stdout.is_empty());
    // The token was made, and nobody has seen it.
    let shown = printed(serve(&database, &[])).await;
    assert!(shown.contains("Operator token (shown once): op_"), "{shown}");
    let shown = printed(serve(&database, &[])).await;
    assert!(!shown.contains("Operator token"), "{shown}");
}

/// Whoever still remembers routes to the sandbox keeps no database open: another host may have it.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_has_stopped_holds_its_file_no_longer_whoever_remembers_its_routes() {
    with_host(Engine::Sqlite, async |host| {
        let remembered = host.app().routes.all().await.expect("routes");
        restart(host, |_| {}).await;
        drop(remembered);
    })
    .await;
}
