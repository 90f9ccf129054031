//! The program itself, started as its users start it, and killed as nobody should.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use railhead::clock::Clock;
use railhead::db::{Db, Engine as DbEngine, Tx};
use serde_json::{Value, json};
use sqlx::Executor;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::bank::Bank;
use crate::notices::RIGHT;
use crate::test_host::{
    Answer, DESK_TOKEN, Database, Engine, Merchant, OPERATOR_TOKEN, TestHost, client,
};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_railhead-under-test");
/// Starting, migrations and compilation included, on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

/// A database, a bank, and a program that comes and goes between them.
pub(crate) struct Deployment {
    pub host: TestHost,
    pub bank: Bank,
    pub log: Arc<Mutex<String>>,
    config: PathBuf,
    program: Option<Child>,
    /// A second one on the same database, with a folder of its own.
    beside: Option<Child>,
    pub db: Db,
}

/// Somebody with the merchant's live key.
pub(crate) struct Requests {
    client: reqwest::Client,
    base: String,
    key: String,
}

/// The database, locked against everybody else's writing until this is dropped.
pub(crate) struct Locked(#[expect(dead_code, reason = "its end is what matters")] Tx);

impl Deployment {
    /// Opens everything and starts the program, with further lines of configuration.
    pub(crate) async fn open(engine: Engine, further: &str) -> Self {
        let database = Arc::new(Database::new(engine).await);
        let bank = Bank::open().await;
        let config = database.folder.path().join("railhead.toml");
        std::fs::write(&config, configuration(&database, &bank.url, further)).expect("written");
        let migrated = Command::new(PROGRAM)
            .args(["--config", &config.display().to_string(), "migrate"])
            .output()
            .await;
        assert!(migrated.expect("a program").status.success(), "migrated");
        let db = Db::open_for_reading(&database.url.clone().into()).await.expect("a database");
        let host = TestHost {
            engine,
            database,
            clock: Clock::System,
            running: None,
            base: String::new(),
            client: client(),
            merchant: Merchant::default(),
        };
        let log = Arc::default();
        let mut deployment = Self { host, bank, log, config, program: None, beside: None, db };
        deployment.start(&[]).await;
        deployment.host.merchant = deployment.host.new_merchant("Acme").await;
        deployment
    }

    /// Starts the program with these settings on top, and waits until it serves.
    pub(crate) async fn start(&mut self, settings: &[(&str, &str)]) {
        let mut program = self.spawn(settings);
        let address = until_serving(&mut program, &self.log).await;
        self.host.base = format!("http://{address}");
        self.program = Some(program);
    }

    fn spawn(&self, settings: &[(&str, &str)]) -> Child {
        assert!(self.program.is_none(), "it runs");
        self.spawn_another(settings)
    }

    fn spawn_another(&self, settings: &[(&str, &str)]) -> Child {
        Command::new(PROGRAM)
            .args(["--config", &self.config.display().to_string(), "serve"])
            .env_remove("DATABASE_URL")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a program")
    }

    /// Starts the program and kills it while it is still starting.
    pub(crate) async fn start_and_kill(&self, after: Duration) {
        let mut program = self.spawn(&[]);
        tokio::time::sleep(after).await;
        program.kill().await.expect("killed");
    }

    /// Starts a second program on the same database, which nobody speaks to.
    pub(crate) fn start_beside(&mut self, settings: &[(&str, &str)]) {
        let mut program = self.spawn_beside(settings);
        let mut lines = BufReader::new(program.stderr.take().expect("a log")).lines();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.beside = Some(program);
    }

    /// Starts the second program and lets it look at its database and what it sent itself.
    pub(crate) async fn until_beside_serves(&mut self) {
        let mut program = self.spawn_beside(&[]);
        until_serving(&mut program, &self.log).await;
        self.beside = Some(program);
    }

    fn spawn_beside(&self, settings: &[(&str, &str)]) -> Child {
        let folder = self.host.database.folder.path().join("beside").display().to_string();
        let settings = [settings, &[("RAILHEAD_DATA__DIR", folder.as_str())]].concat();
        self.spawn_another(&settings)
    }

    /// SIGKILL for the second program, if it runs.
    pub(crate) async fn kill_beside(&mut self) {
        if let Some(mut program) = self.beside.take() {
            program.kill().await.expect("killed");
        }
    }

    /// Stops the program in its tracks for a while: it notices nothing of the time in between.
    pub(crate) async fn freeze(&self, span: Duration) {
        let pid = self.program.as_ref().and_then(Child::id).expect("a program").to_string();
        let signal = |name: &'static str| {
            let done = std::process::Command::new("kill").args([name, &pid]).status();
            assert!(done.expect("a signal").success());
        };
        signal("-STOP");
        tokio::time::sleep(span).await;
        signal("-CONT");
    }

    /// SIGKILL: nothing in the program gets to hear of it.
    pub(crate) async fn kill(&mut self) {
        self.program.take().expect("a program").kill().await.expect("killed");
    }

    /// Memory of the running program that is in use, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most of it that was ever in use.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let pid = self.program.as_ref().and_then(Child::id).expect("a program");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix(kind)).expect("a size");
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kilobytes * 1024
    }

    /// As if this much time had passed since anything was sent, with nobody at work.
    pub(crate) async fn let_time_pass(&self, span: Duration) {
        let span = i64::try_from(span.as_micros()).expect("a span");
        let mut tx = self.db.write().await.expect("a transaction");
        for sql in [
            "UPDATE transfers SET due_at = due_at - $1, lease_until = CASE WHEN lease_until > $1 \
             THEN lease_until - $1 WHEN lease_until > 0 THEN 1 ELSE 0 END",
            "UPDATE attempts SET sent_at = sent_at - $1 WHERE state = 'open'",
            "UPDATE webhook_queue SET lease_until = lease_until - $1, due_at = due_at - $1",
        ] {
            sqlx::query(sql).bind(span).execute(tx.conn()).await.expect("changed");
        }
        tx.commit().await.expect("committed");
    }

    /// Runs a statement as somebody with access to the database could.
    pub(crate) async fn run(&self, sql: &str) {
        let mut tx = self.db.write().await.expect("a transaction");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(tx.conn()).await.expect(sql);
        tx.commit().await.expect("committed");
    }

    /// Keeps everybody from writing to these tables; on SQLite, to any.
    pub(crate) async fn lock(&self, tables: &str) -> Locked {
        let mut tx = self.db.write().await.expect("a transaction");
        if self.db.engine() == DbEngine::Postgres {
            let sql = format!("LOCK TABLE {tables} IN EXCLUSIVE MODE");
            tx.conn().execute(sqlx::AssertSqlSafe(sql)).await.expect("locked");
        }
        Locked(tx)
    }

    /// A number from the database.
    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.db.pool()).await.expect("a number")
    }

    /// A live payout under a key of one's own.
    pub(crate) async fn pay(&self, idempotency_key: &str, body: Value) -> Answer {
        self.host.pay_as(&self.host.merchant.live_key, idempotency_key, body).await
    }

    /// The same in a task of its own, which may be left without an answer.
    pub(crate) fn pay_in_vain(
        &self,
        idempotency_key: &str,
        body: Value,
    ) -> JoinHandle<reqwest::Result<Answer>> {
        let (requests, key) = (self.requests(), idempotency_key.to_owned());
        tokio::spawn(async move { requests.pay(&key, &body).await })
    }

    /// What a caller needs to make requests of its own.
    pub(crate) fn requests(&self) -> Requests {
        Requests {
            client: self.host.client.clone(),
            base: self.host.base.clone(),
            key: self.host.merchant.live_key.clone(),
        }
    }

    /// Waits until a live payout has a status.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Answer {
        self.host.until(&self.host.merchant.live_key, id, status).await
    }

    /// Waits until a payout has been sent, whatever came of it.
    pub(crate) async fn until_sent(&self, key: &str, id: &str) {
        for _ in 0..2_000 {
            let payout = self.host.get_as(key, &format!("/v1/payouts/{id}")).await;
            if payout.status_word() != "queued" {
                return self.until_nothing_is_leased().await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{id} is still queued");
    }

    /// Asks the rail about a live payout now.
    pub(crate) async fn requery(&self, id: &str) -> Answer {
        let (path, key) = (format!("/v1/payouts/{id}/requery"), &self.host.merchant.live_key);
        self.host.send(http::Method::POST, &path, key, &[], Some(json!({}))).await.ok()
    }

    /// How many payouts there are.
    pub(crate) async fn payouts(&self) -> usize {
        let count = self.count("SELECT COUNT(*) FROM payouts").await;
        usize::try_from(count).expect("a count")
    }

    /// Payouts that have not come to an end.
    pub(crate) async fn under_way(&self) -> Vec<String> {
        let sql = "SELECT id FROM payouts WHERE status IN ('queued', 'processing')";
        sqlx::query_scalar(sql).fetch_all(self.db.pool()).await.expect("ids")
    }

    /// Waits until nobody is at work.
    pub(crate) async fn until_nothing_is_leased(&self) {
        let leased = "SELECT COUNT(*) FROM transfers WHERE lease_until > 0";
        for _ in 0..1000 {
            if self.count(leased).await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("somebody is still at work");
    }

    /// The rail reference and the status of every payout.
    pub(crate) async fn endings(&self) -> Vec<(String, String)> {
        let sql = "SELECT rail_reference, status FROM payouts";
        sqlx::query_as(sql).fetch_all(self.db.pool()).await.expect("payouts")
    }

    /// How often the only attempt of a payout was sent, and asked about.
    pub(crate) async fn sends_and_queries(&self, id: &str) -> (i64, i64) {
        let sql = "SELECT sends, queries FROM attempts WHERE transfer_id = $1";
        sqlx::query_as(sql).bind(id).fetch_one(self.db.pool()).await.expect("one attempt")
    }

    /// The books are right, says `verify`, and the bank paid nobody twice.
    pub(crate) async fn prove(&self) {
        // Where time was made to pass, sendings were moved before the attempts that they are of.
        let sql = "UPDATE attempts SET sent_at = created_at WHERE sent_at < created_at";
        let mut tx = self.db.write().await.expect("a transaction");
        sqlx::query(sql).execute(tx.conn()).await.expect("changed");
        tx.commit().await.expect("committed");
        let verified = Command::new(PROGRAM)
            .args(["--config", &self.config.display().to_string(), "verify"])
            .env_remove("DATABASE_URL")
            .output()
            .await
            .expect("a program");
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
        self.bank.prove().await;
    }
}

impl Requests {
    /// Asks for a payout; an error is no answer.
    pub(crate) async fn pay(&self, idempotency_key: &str, body: &Value) -> reqwest::Result<Answer> {
        let request = self
            .client
            .post(format!("{}/v1/payouts", self.base))
            .bearer_auth(&self.key)
            .header("idempotency-key", idempotency_key)
            .json(body);
        Answer::read(request.send().await?).await
    }
}

/// Waits until a program serves; answers its address. What it logs is kept.
async fn until_serving(program: &mut Child, log: &Arc<Mutex<String>>) -> String {
    let mut lines = BufReader::new(program.stderr.take().expect("a log")).lines();
    let keep = |line: &str| log.lock().expect("a lock").push_str(&format!("{line}\n"));
    let reading = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            keep(&line);
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if line["fields"]["message"] == "serving" {
                return line["fields"]["address"].as_str().expect("an address").to_owned();
            }
        }
        panic!("it did not start: {}", log.lock().expect("a lock"));
    };
    let address = tokio::time::timeout(START_MAX, reading).await.expect("a start in time");
    let log = Arc::clone(log);
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            log.lock().expect("a lock").push_str(&format!("{line}\n"));
        }
    });
    address
}

fn configuration(database: &Database, bank: &str, further: &str) -> String {
    // Compiled code is the same for all: one folder of it makes every other start quick.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    format!(
        r#"
database_url = "{url}"
operator_token = "{OPERATOR_TOKEN}"
[server]
address = "127.0.0.1:0"
public_url = "http://railhead.test"
[data]
dir = "{folder}"
[encryption]
keys = ["{key}"]
[limits]
read_per_minute = 1000000
write_per_minute = 1000000
anonymous_per_minute = 1000000
[admin]
requests_per_minute = 1000000
operators.desk = "{DESK_TOKEN}"
[simulator]
url = "{bank}"
token = "{RIGHT}"
[log]
json = true
{further}
"#,
        url = database.url,
        folder = folder.display(),
        key = "11".repeat(32),
    )
}
