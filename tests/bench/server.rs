//! A host, a simulator and a database as processes of their own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Column as _, Connection as _, Executor as _, Row as _};

const TOKEN: &str = "op_of_the_bench_0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Postgres,
    Sqlite,
}

/// What differs between runs.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub batch_max: usize,
    pub dispatch: bool,
}

pub(crate) struct Server {
    pub engine: Engine,
    host: Child,
    simulator: Child,
    simulator_port: u16,
    pub base: String,
    url: String,
    folder: tempfile::TempDir,
    client: reqwest::Client,
}

/// A merchant's key and the ids that its payouts go to.
#[derive(Clone)]
pub(crate) struct Target {
    pub key: String,
    pub wallet: String,
    pub merchant: String,
    /// What requests say of their amounts.
    pub amounts: &'static str,
    /// How many people it pays, in turn.
    pub recipients: u64,
}

impl Server {
    pub(crate) async fn start(engine: Engine, setup: Setup) -> Self {
        Self::start_with(engine, setup, None).await
    }

    /// The same, delivering webhooks to this machine under a certificate of the caller's.
    pub(crate) async fn start_with(engine: Engine, setup: Setup, ca_file: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("bench.db").display()),
            Engine::Postgres => new_database().await,
        };
        let (port, simulator_port) = (free_port(), free_port());
        let program = program();
        let simulator = simulated_networks(&program, folder.path(), simulator_port);
        let webhooks = ca_file.map(|file| {
            let networks = "RAILHEAD_WEBHOOKS__ALLOW_PRIVATE_NETWORKS";
            let file = file.as_os_str().to_owned();
            [("RAILHEAD_WEBHOOKS__EXTRA_CA_FILE", file), (networks, "127.0.0.0/8".into())]
        });
        let host = Command::new(&program)
            .arg("serve")
            .current_dir(folder.path())
            .envs(webhooks.into_iter().flatten())
            .env("DATABASE_URL", &url)
            .env("RUST_LOG", "error")
            .env("RAILHEAD_OPERATOR_TOKEN", TOKEN)
            .env("RAILHEAD_SERVER__ADDRESS", format!("127.0.0.1:{port}"))
            .env("RAILHEAD_SIMULATOR__URL", format!("http://127.0.0.1:{simulator_port}"))
            .env("RAILHEAD_LIMITS__WRITE_PER_MINUTE", "100000000")
            .env("RAILHEAD_LIMITS__READ_PER_MINUTE", "100000000")
            .env("RAILHEAD_LIMITS__BULK_PER_MINUTE", "100000000")
            .env("RAILHEAD_WRITER__BATCH_MAX", setup.batch_max.to_string())
            .env("RAILHEAD_WORKER__DISPATCH", setup.dispatch.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let base = format!("http://127.0.0.1:{port}");
        let client = reqwest::Client::new();
        let server = Self { engine, host, simulator, simulator_port, base, url, folder, client };
        server.wait().await;
        server
    }

    async fn wait(&self) {
        let begun = Instant::now();
        let ready = format!("{}/readyz", self.base);
        while begun.elapsed() < Duration::from_secs(60) {
            if self.client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success())
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the host does not answer");
    }

    async fn admin(&self, path: &str, body: Value) -> Value {
        self.admin_as(reqwest::Method::POST, path, body).await
    }

    async fn admin_as(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let url = format!("{}/admin/v1/{path}", self.base);
        let request = self.client.request(method, url).bearer_auth(TOKEN);
        let answer = request.json(&body).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Merchants with one funded live wallet each.
    pub(crate) async fn merchants(&self, count: usize) -> Vec<Target> {
        let mut targets = Vec::new();
        for number in 0..count {
            let name = format!("Bench {number}");
            let merchant = self.admin("merchants", json!({ "name": name, "country": "NG" })).await;
            let id = merchant["id"].as_str().unwrap();
            let wallets = merchant["wallets"].as_array().unwrap();
            let is_its = |wallet: &&Value| wallet["env"] == "live" && wallet["currency"] == "NGN";
            let wallet = wallets.iter().find(is_its).unwrap();
            let wallet = wallet["id"].as_str().unwrap().to_owned();
            let body = json!({ "amount_minor": "900000000000000", "reason": "bench" });
            self.admin(&format!("wallets/{wallet}/credit"), body).await;
            let body = json!({ "env": "live", "label": "bench",
                "capabilities": ["payout_create", "payout_fx", "bulk"], "ip_allowlist": ["127.0.0.1"],
                "permissions": ["webhook_manage", "payout_bulk_upload"] });
            let key = self.admin(&format!("merchants/{id}/keys"), body).await;
            let key = key["secret"].as_str().unwrap().to_owned();
            let (merchant, amounts) = (id.to_owned(), r#""amount_minor":"1500000""#);
            targets.push(Target { key, wallet, merchant, amounts, recipients: 1 });
        }
        targets
    }

    /// Lets these merchants pay naira out of dollars, and gives them some.
    pub(crate) async fn open_exchange(&self, targets: &[Target]) {
        let rate = json!({ "env": "live", "from": "USD", "to": "NGN", "rate": "1500" });
        self.admin_as(reqwest::Method::PUT, "rates", rate).await;
        for target in targets {
            let path = format!("merchants/{}", target.merchant);
            let settings = json!({
                "features": { "fx_payouts": true }, "terms": { "fx_payouts": true },
            });
            let merchant = self.admin_as(reqwest::Method::PATCH, &path, settings).await;
            let wallets = merchant["wallets"].as_array().unwrap();
            let is_its = |wallet: &&Value| wallet["env"] == "live" && wallet["currency"] == "USD";
            let wallet = wallets.iter().find(is_its).unwrap()["id"].as_str().unwrap();
            let body = json!({ "amount_minor": "900000000000000", "reason": "bench" });
            self.admin(&format!("wallets/{wallet}/credit"), body).await;
        }
    }

    /// Has a merchant hear of events of this type at an address.
    pub(crate) async fn listen(&self, key: &str, url: &str, event: &str) {
        let body = json!({ "url": url, "events": [event] });
        let url = format!("{}/v1/webhook_endpoints", self.base);
        let answer = self.client.post(url).bearer_auth(key).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    /// The test key of a new merchant that hears at this address when its wallet is filled.
    pub(crate) async fn listener(&self, url: &str) -> String {
        let merchant = self.admin("merchants", json!({ "name": "Bench", "country": "NG" })).await;
        let id = merchant["id"].as_str().unwrap();
        let body = json!({ "env": "test", "label": "bench",
            "capabilities": ["payout_create"], "permissions": ["webhook_manage"] });
        let key = self.admin(&format!("merchants/{id}/keys"), body).await;
        let key = key["secret"].as_str().unwrap();
        self.listen(key, url, "wallet_funded").await;
        key.to_owned()
    }

    /// Pushes rules as text.
    pub(crate) async fn push_rules(&self, rules: &str) {
        let url = format!("{}/admin/v1/rule-packs", self.base);
        let request = self.client.post(url).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/toml").body(rules.to_owned());
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    /// Has a version of the rules decide.
    pub(crate) async fn assign_rules(&self, version: &str) {
        let path = format!("rule-packs/bench/versions/{version}/activate");
        let assignment = self.admin(&path, json!({})).await;
        assert_eq!(assignment["status"], "done", "{assignment}");
    }

    /// Version, hits and number of the decisions that were kept.
    pub(crate) async fn decisions(&self) -> Vec<(String, String, i64)> {
        let mut connection = self.connect().await;
        let sql = "SELECT version, hits, COUNT(*) FROM decisions GROUP BY version, hits";
        let found = sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        found
    }

    /// Payouts in a status.
    pub(crate) async fn count(&self, status: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM payouts WHERE status = '{status}'")).await
    }

    /// Waits until nothing is on its way out.
    pub(crate) async fn until_idle(&self) {
        self.until_idle_looking_every(Duration::from_millis(100)).await;
    }

    /// The same, looked at so often.
    pub(crate) async fn until_idle_looking_every(&self, pause: Duration) {
        // One connection: making one costs as much as several payouts.
        let mut connection = self.connect().await;
        let any = "SELECT COUNT(*) FROM (SELECT 1 AS one FROM transfers LIMIT 1) left_over";
        while sqlx::query_scalar::<_, i64>(any).fetch_one(&mut connection).await.unwrap() > 0 {
            tokio::time::sleep(pause).await;
        }
        connection.close().await.unwrap();
    }

    /// What the database says to a question for a number.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut connection = self.connect().await;
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        number
    }

    /// What the database says to a question for a text.
    pub(crate) async fn text(&self, sql: &str) -> String {
        let mut connection = self.connect().await;
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        let text = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        text
    }

    /// The columns of a table that has a row.
    pub(crate) async fn columns(&self, table: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        let sql = sqlx::AssertSqlSafe(format!("SELECT * FROM {table} LIMIT 1"));
        let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        row.columns().iter().map(|column| column.name().to_owned()).collect()
    }

    /// Has a merchant look something up.
    pub(crate) async fn get(&self, key: &str, path: &str) {
        let url = format!("{}{path}", self.base);
        let answer = self.client.get(url).bearer_auth(key).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.bytes().await.unwrap();
    }

    /// Has the database do something.
    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        connection.execute(sqlx::AssertSqlSafe(sql.to_owned())).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn connect(&self) -> sqlx::AnyConnection {
        sqlx::any::install_default_drivers();
        sqlx::AnyConnection::connect(&self.url).await.unwrap()
    }

    /// The host, and the simulated networks.
    pub(crate) fn pids(&self) -> [u32; 2] {
        [self.host.id(), self.simulator.id()]
    }

    /// Nothing of any network answers any more.
    pub(crate) fn lose_networks(&mut self) {
        self.simulator.kill().unwrap();
        self.simulator.wait().unwrap();
    }

    /// They are there again, and remember nothing.
    pub(crate) fn find_networks(&mut self) {
        self.simulator = simulated_networks(&program(), self.folder.path(), self.simulator_port);
    }

    pub(crate) fn resident_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.host.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kb.unwrap_or(0) / 1024
    }

    /// Proves the books after the run.
    pub(crate) fn verify(&self) {
        print!("    {}", self.proof(&[]));
    }

    /// Proves what came after an anchor.
    pub(crate) fn verify_since(&self, anchor: &Path) {
        self.proof(&["--since".as_ref(), anchor.as_ref()]);
    }

    fn proof(&self, arguments: &[&OsStr]) -> String {
        let mut command = Command::new(program());
        command.arg("verify").args(arguments).current_dir(self.folder.path());
        let output = command.env("DATABASE_URL", &self.url).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A file with where every chain of batches stands.
    pub(crate) async fn anchor(&self) -> PathBuf {
        let mut connection = self.connect().await;
        let heads = railhead::ledger::verify::heads(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let path = self.folder.path().join("anchor.json");
        std::fs::write(&path, json!({ "taken_at": "", "heads": heads }).to_string()).unwrap();
        path
    }

    /// As an operator stops them: they bring what they have begun to its end.
    pub(crate) async fn stop(mut self) {
        let (engine, url) = (self.engine, self.url.clone());
        // The host may be at something with a network.
        for child in [&mut self.host, &mut self.simulator] {
            let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            assert!(told.unwrap().success(), "kill");
            let ended = child.wait().unwrap();
            if !ended.success() {
                println!("    it was told to stop, and did not end well: {ended}");
            }
        }
        drop(self);
        if engine == Engine::Postgres {
            drop_database(&url).await;
        }
    }
}

/// Nothing is left running, however a run ends.
impl Drop for Server {
    fn drop(&mut self) {
        for child in [&mut self.host, &mut self.simulator] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The other sides of all networks, as a process of their own.
fn simulated_networks(program: &Path, folder: &Path, port: u16) -> Child {
    Command::new(program)
        .args(["simulator", "--address", &format!("127.0.0.1:{port}")])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// How long a start takes, compiled code being there: the median of several.
pub(crate) async fn start_up_ms() -> u128 {
    let folder = tempfile::tempdir().unwrap();
    let client = reqwest::Client::new();
    let mut times = Vec::new();
    for _ in 0..6 {
        let port = free_port();
        let begun = Instant::now();
        let mut host = Command::new(program())
            .arg("serve")
            .current_dir(folder.path())
            .env("RUST_LOG", "error")
            .env("RAILHEAD_OPERATOR_TOKEN", TOKEN)
            .env("RAILHEAD_SERVER__ADDRESS", format!("127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ready = format!("http://127.0.0.1:{port}/readyz");
        while !client.get(&ready).send().await.is_ok_and(|answer| answer.status().is_success()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        times.push(begun.elapsed().as_millis());
        let _ = host.kill();
        let _ = host.wait();
    }
    // The first one compiled and migrated.
    times.remove(0);
    times.sort_unstable();
    times[times.len() / 2]
}

/// The host's program: one that was named, or else what was built beside this one.
pub(crate) fn program() -> PathBuf {
    let Some(named) = std::env::var_os("BENCH_OF") else {
        return std::env::current_exe().unwrap().with_file_name("railhead-under-test");
    };
    // It is started in folders of its own.
    std::fs::canonicalize(&named).unwrap_or_else(|_| panic!("BENCH_OF={}", named.display()))
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) async fn new_database() -> String {
    let server = std::env::var("TEST_POSTGRES").unwrap();
    let mut connection = sqlx::PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
    let name = format!("bench_{}", free_port());
    connection.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    connection.close().await.unwrap();
    format!("{server}/{name}")
}

pub(crate) async fn drop_database(url: &str) {
    let (server, name) = url.rsplit_once('/').unwrap();
    let mut connection = sqlx::PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
    let sql = format!("DROP DATABASE {name} WITH (FORCE)");
    connection.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
}

/// Writes 8 kB and waits for the disk, for half a second.
pub(crate) fn probe_disk() -> String {
    use std::io::{Seek as _, Write as _};
    let mut file = tempfile::tempfile().unwrap();
    let block = [7u8; 8192];
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        let one = Instant::now();
        file.rewind().unwrap();
        file.write_all(&block).unwrap();
        file.sync_data().unwrap();
        times.push(one.elapsed());
    }
    times.sort_unstable();
    format!("{} syncs/s, p50 {} us", times.len() * 2, times[times.len() / 2].as_micros())
}
