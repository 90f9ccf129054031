//! A test host: a host for one test, with a merchant, keys and a clock that stands still.
//!
//! On the way out the books are proven: every test is also a test of the invariants.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use http::Method;
use railhead::clock::{Clock, Moment};
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::start::{Host, Sources, start};
use railhead::verify::{Report, Wanted, verify};
use secrecy::SecretString;
use serde_json::{Value, json};
use sqlx::PgPool;

pub(crate) use crate::databases::{Database, Engine};

pub(crate) const OPERATOR_TOKEN: &str = "op_test_of_the_host";
/// The operator who makes merchants' keys, so that another one may approve what is paid with them.
pub(crate) const DESK_TOKEN: &str = "op_test_of_the_desk";
const BEGINNING: &str = "2026-11-21T09:00:00Z";

/// Something to make requests with.
pub(crate) fn client() -> reqwest::Client {
    // Whoever is second finds the first one's in place.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// A running host with one merchant.
pub(crate) struct TestHost {
    pub engine: Engine,
    pub database: Arc<Database>,
    pub clock: Clock,
    pub running: Option<Host>,
    pub base: String,
    pub client: reqwest::Client,
    pub merchant: Merchant,
}

/// A merchant with a key for each environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merchant {
    pub id: String,
    pub test_key: String,
    pub live_key: String,
    pub test_wallet: String,
    pub live_wallet: String,
}

/// What a call answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub text: String,
    pub json: Value,
}

/// A folder for all hosts of this process, gone with the machine's temporary files.
fn shared_folder() -> std::path::PathBuf {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    let new = || tempfile::tempdir().expect("a folder").keep();
    FOLDER.get_or_init(new).clone()
}

/// A data folder for one host. Compiled components are shared between all: the keys that vouch
/// for them are the same.
pub(crate) fn data_folder(database: &Database, name: &str) -> std::path::PathBuf {
    let folder = database.folder.path().join(name);
    share_compiled(&folder);
    folder
}

/// Has the host with this data folder, if [`KEY`] is its key, use what others have compiled.
pub(crate) fn share_compiled(folder: &std::path::Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let cache = shared_folder().join("cache");
    std::fs::create_dir_all(&cache).expect("a folder");
    if !folder.join("cache").exists() {
        std::os::unix::fs::symlink(cache, folder.join("cache")).expect("a link");
    }
}

/// The key of every test's host.
pub(crate) const KEY: &str = "1111111111111111111111111111111111111111111111111111111111111111";

/// A configuration for tests: budgets that do not get in the way.
pub(crate) fn config(database: &Database) -> Config {
    let mut config = Config::default();
    config.database_url = Some(SecretString::from(database.url.clone()));
    config.operator_token = Some(SecretString::from(OPERATOR_TOKEN));
    config.data.dir = data_folder(database, "data");
    config.simulator.token = Some(SecretString::from(crate::notices::RIGHT));
    config.encryption.keys = vec![KEY.to_owned()];
    config.compiler = Some(crate::program::PROGRAM.into());
    config.rail_guests = Some(448);
    config.server.address = "127.0.0.1:0".parse().expect("an address");
    config.server.public_url = Some("http://railhead.test".into());
    config.limits.read_per_minute = 1_000_000;
    config.limits.write_per_minute = 1_000_000;
    config.limits.bulk_per_minute = 1_000_000;
    config.limits.anonymous_per_minute = 1_000_000;
    config.admin.requests_per_minute = 1_000_000;
    config.admin.operators.insert("desk".into(), SecretString::from(DESK_TOKEN));
    config
}

/// A clock that stands where every test begins.
pub(crate) fn beginning() -> Clock {
    Clock::fixed(Moment::parse(BEGINNING).expect("an instant"))
}

/// How many sessions of a PostgreSQL database wait for a lock.
pub(crate) const SOMEBODY_WAITS: &str = "SELECT COUNT(*) FROM pg_stat_activity \
                                         WHERE wait_event_type = 'Lock' \
                                         AND datname = current_database()";

/// Runs a test on a test host and proves the books afterwards.
pub(crate) async fn with_host(engine: Engine, test: impl AsyncFnOnce(&mut TestHost)) {
    with_host_configured(engine, |_| {}, test).await;
}

/// The same with a configuration of one's own.
pub(crate) async fn with_host_configured(
    engine: Engine,
    change: impl FnOnce(&mut Config),
    test: impl AsyncFnOnce(&mut TestHost),
) {
    let mut host = TestHost::open(engine, change).await;
    test(&mut host).await;
    host.close().await;
}

impl TestHost {
    pub(crate) async fn open(engine: Engine, change: impl FnOnce(&mut Config)) -> Self {
        Self::open_at(beginning(), engine, change).await
    }

    /// Starts one that shares its clock with somebody.
    pub(crate) async fn open_at(
        clock: Clock,
        engine: Engine,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let database = Arc::new(Database::new(engine).await);
        let mut config = config(&database);
        change(&mut config);
        Self::start(clock, (engine, database), config).await
    }

    /// Starts a host with this configuration on this database.
    pub(crate) async fn open_with(engine: Engine, database: Arc<Database>, config: Config) -> Self {
        Self::start(beginning(), (engine, database), config).await
    }

    async fn start(
        clock: Clock,
        (engine, database): (Engine, Arc<Database>),
        config: Config,
    ) -> Self {
        let client = client();
        let sources = Sources { clock: clock.clone(), ids: IdGenerator::seeded(clock.clone(), 42) };
        let running = start(config, sources).await.expect("a host");
        let base = format!("http://{}", running.address);
        let merchant = Merchant::default();
        let mut host =
            Self { engine, database, clock, running: Some(running), base, client, merchant };
        host.merchant = host.new_merchant("Acme").await;
        host
    }

    /// Proves the books and stops the host.
    pub(crate) async fn close(mut self) {
        self.prove().await;
        self.running.take().expect("a host").stop().await.expect("stopped in order");
    }

    /// Every sum, chain, state and event is right.
    pub(crate) async fn prove(&self) {
        let report = self.report(&Wanted::default()).await;
        assert!(report.faults.is_empty(), "{:#?}", report.faults);
    }

    /// What proving the books comes to.
    pub(crate) async fn report(&self, wanted: &Wanted) -> Report {
        let wanted = Wanted { now: self.clock.now(), against: wanted.against.clone(), ..*wanted };
        let db = &self.app().db;
        verify(db, &wanted, &mut |_, _| {}).await.expect("the books are read")
    }

    pub(crate) fn app(&self) -> &railhead::app::App {
        &self.running.as_ref().expect("a host").app
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A merchant with 1,000,000.00 in its NGN test wallet and the same in its live one.
    pub(crate) async fn new_merchant(&self, name: &str) -> Merchant {
        let merchant =
            self.admin(Method::POST, "merchants", json!({ "name": name, "country": "NG" })).await;
        let id = merchant.id();
        let abroad = json!({ "features": { "international_accounts": true } });
        self.admin(Method::PATCH, &format!("merchants/{id}"), abroad).await.ok();
        let wallet = |env: &str| {
            let wallets = merchant.json["wallets"].as_array().expect("wallets");
            let found = wallets.iter().find(|w| w["env"] == env && w["currency"] == "NGN");
            found.expect("a wallet")["id"].as_str().expect("an id").to_owned()
        };
        let merchant = Merchant {
            test_key: self.new_key(&id, json!({ "env": "test" })).await,
            live_key: self.new_key(&id, json!({ "env": "live" })).await,
            test_wallet: wallet("test"),
            live_wallet: wallet("live"),
            id,
        };
        for wallet in [&merchant.test_wallet, &merchant.live_wallet] {
            self.credit(wallet, 100_000_000).await;
        }
        merchant
    }

    pub(crate) async fn credit(&self, wallet: &str, amount: u64) {
        let body = json!({ "amount_minor": amount.to_string(), "reason": "test" });
        self.admin(Method::POST, &format!("wallets/{wallet}/credit"), body).await.ok();
    }

    /// A key; `with` is laid over one that may create payouts and has every permission.
    pub(crate) async fn new_key(&self, merchant: &str, with: Value) -> String {
        let mut body = json!({
            "label": "test",
            "capabilities": ["payout_create"],
            "permissions": ["webhook_manage", "beneficiary_manage", "payout_cancel"],
        });
        for (name, value) in with.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let path = format!("/admin/v1/merchants/{merchant}/keys");
        let ask =
            async |token| self.send(Method::POST, &path, token, &[], Some(body.clone())).await.ok();
        let mut key = ask(DESK_TOKEN).await;
        if key.status == 202 {
            key = ask(OPERATOR_TOKEN).await;
        }
        key.json["secret"].as_str().expect("a secret").to_owned()
    }

    /// Connections to its PostgreSQL database, beside its own.
    pub(crate) async fn connections(&self) -> PgPool {
        PgPool::connect(&self.database.url).await.expect("the database")
    }

    /// A call of the operator.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Value) -> Answer {
        self.send(method, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], Some(body)).await
    }

    /// The newest line of the audit log.
    pub(crate) async fn last_line(&self) -> Value {
        let path = "/admin/v1/audit?limit=1";
        let log = self.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok();
        log.json["data"][0].clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_as(&self.merchant.test_key, path).await
    }

    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Answer {
        self.send(Method::GET, path, key, &[], None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &self.merchant.test_key, &[], Some(body)).await
    }

    /// Creates a payout with the test key under a key of its own, in a scenario.
    pub(crate) async fn pay(&self, scenario: &str, body: Value) -> Answer {
        let key = unique();
        let headers = [("idempotency-key", key.as_str()), ("x-sandbox-scenario", scenario)];
        let path = "/v1/payouts";
        self.send(Method::POST, path, &self.merchant.test_key, &headers, Some(body)).await
    }

    /// Gives the wallet of a key's merchant in this currency something to pay from; answers its id.
    pub(crate) async fn fund(&self, key: &str, currency: &str, amount: u64) -> String {
        let wallets = self.get_as(key, "/v1/wallets").await.ok();
        let mut wallets = wallets.json["data"].as_array().expect("wallets").iter();
        let wallet = wallets.find(|wallet| wallet["currency"] == currency).expect("a wallet");
        let id = wallet["id"].as_str().expect("an id").to_owned();
        self.credit(&id, amount).await;
        id
    }

    /// Has a payout asked about.
    pub(crate) async fn requery(&self, key: &str, id: &str) -> Answer {
        let path = format!("/v1/payouts/{id}/requery");
        self.send(Method::POST, &path, key, &[], None).await.ok()
    }

    /// Creates a payout as somebody, under a given key.
    pub(crate) async fn pay_as(&self, key: &str, idempotency_key: &str, body: Value) -> Answer {
        let headers = [("idempotency-key", idempotency_key)];
        self.send(Method::POST, "/v1/payouts", key, &headers, Some(body)).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.base));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = Answer::of(request.send().await.expect("an answer")).await;
        self.check_declared(&method, path, &answer).await;
        answer
    }

    /// An error that a call answers must be one that its documentation names.
    pub(crate) async fn check_declared(&self, method: &Method, path: &str, answer: &Answer) {
        let Some(code) = answer.json["error"]["code"].as_str() else { return };
        let declared = declared_errors(self).await;
        let path = path.split('?').next().unwrap_or(path);
        let Some(codes) = declared.iter().find(|(key, _)| key.matches(method, path)) else {
            return;
        };
        assert!(
            codes.1.iter().any(|(status, known)| *status == answer.status && known == code),
            "{method} {path} answered {} {code}, which its documentation does not name",
            answer.status
        );
    }

    /// Waits until a payout has a status, or fails.
    pub(crate) async fn until(&self, key: &str, id: &str, status: &str) -> Answer {
        for _ in 0..2_000 {
            let payout = self.get_as(key, &format!("/v1/payouts/{id}")).await;
            if payout.json["status"] == status {
                return payout;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let payout = self.get_as(key, &format!("/v1/payouts/{id}")).await;
        panic!("{id} is {} and not {status}", payout.json["status"]);
    }

    pub(crate) async fn balance(&self, wallet: &str) -> i64 {
        let sql = "SELECT available_minor FROM wallets WHERE id = $1";
        sqlx::query_scalar(sql)
            .bind(wallet)
            .fetch_one(self.app().db.pool())
            .await
            .expect("a wallet")
    }

    /// Waits until a count is what it is to become.
    pub(crate) async fn until_count(&self, sql: &str, wanted: i64) {
        for _ in 0..4_000 {
            if self.count(sql).await == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.count(sql).await, wanted, "{sql}");
    }

    /// Takes away the triggers that keep a table from being changed; answers what puts them back.
    pub(crate) async fn disarm(&self, table: &str) -> Vec<String> {
        if self.engine == Engine::Postgres {
            self.run(&[format!("ALTER TABLE {table} DISABLE TRIGGER USER")]).await;
            return vec![format!("ALTER TABLE {table} ENABLE TRIGGER USER")];
        }
        let sql = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = $1";
        let pool = self.app().db.pool();
        let triggers: Vec<(String, String)> =
            sqlx::query_as(sql).bind(table).fetch_all(pool).await.expect("triggers");
        let drops: Vec<_> =
            triggers.iter().map(|(name, _)| format!("DROP TRIGGER {name}")).collect();
        self.run(&drops).await;
        triggers.into_iter().map(|(_, sql)| sql).collect()
    }

    /// Runs statements as somebody with access to the database could.
    pub(crate) async fn run(&self, statements: &[String]) {
        let mut connection = self.app().db.pool().acquire().await.expect("a connection");
        // Whatever this connection remembers of the schema may be out of date.
        let look = "SELECT COUNT(*) FROM meta";
        sqlx::query(look).execute(&mut *connection).await.expect("a look");
        for sql in statements {
            let query = sqlx::query(sqlx::AssertSqlSafe(sql.clone()));
            query.execute(&mut *connection).await.expect(sql);
        }
    }

    /// A number from the database.
    pub(crate) async fn count(&self, sql: &str) -> i64 {
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()));
        query.fetch_one(self.app().db.pool()).await.expect("a number")
    }
}

impl Answer {
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        Self::read(response).await.expect("a body")
    }

    /// The answer, if all of it arrives.
    pub(crate) async fn read(response: reqwest::Response) -> reqwest::Result<Self> {
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned()))
            .collect();
        let text = response.text().await?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Self { status, headers, text, json })
    }

    /// The answer, which must be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text);
        self
    }

    /// Status and code of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self) -> (u16, &str) {
        let code = self.json["error"]["code"].as_str();
        (self.status, code.unwrap_or_else(|| panic!("no refusal: {} {}", self.status, self.text)))
    }

    pub(crate) fn field(&self) -> &str {
        self.json["error"]["field"].as_str().unwrap_or("")
    }

    #[track_caller]
    pub(crate) fn id(&self) -> String {
        let id = self.json["id"].as_str();
        id.unwrap_or_else(|| panic!("no id: {} {}", self.status, self.text)).to_owned()
    }

    #[track_caller]
    pub(crate) fn status_word(&self) -> &str {
        let word = self.json["status"].as_str();
        word.unwrap_or_else(|| panic!("no status: {} {}", self.status, self.text))
    }
}

/// A documented operation: method and path with its variables.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    method: String,
    segments: Vec<String>,
}

impl Operation {
    fn matches(&self, method: &Method, path: &str) -> bool {
        let segments: Vec<&str> = path.split('/').collect();
        self.method == method.as_str().to_lowercase()
            && segments.len() == self.segments.len()
            && self
                .segments
                .iter()
                .zip(segments)
                .all(|(known, sent)| known.starts_with('{') && !sent.is_empty() || known == sent)
    }
}

type Declared = Vec<(Operation, Vec<(u16, String)>)>;

async fn declared_errors(host: &TestHost) -> Declared {
    static DECLARED: OnceLock<Mutex<Option<Declared>>> = OnceLock::new();
    let slot = DECLARED.get_or_init(|| Mutex::new(None));
    if let Some(declared) = slot.lock().expect("a lock").clone() {
        return declared;
    }
    let document: Value = host
        .client
        .get(format!("{}/openapi.json", host.base))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("a document");
    let mut declared = Declared::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let mut codes = Vec::new();
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let listed = response["x-error-codes"].as_array().into_iter().flatten();
                let listed = listed.filter_map(Value::as_str);
                let status = status.parse().unwrap_or(0);
                codes.extend(listed.map(|code| (status, code.to_owned())));
            }
            let segments = path.split('/').map(str::to_owned).collect();
            declared.push((Operation { method: method.clone(), segments }, codes));
        }
    }
    // Literal paths before those with variables.
    declared.sort_by_key(|(key, _)| key.segments.iter().filter(|s| s.starts_with('{')).count());
    *slot.lock().expect("a lock") = Some(declared.clone());
    declared
}

/// A text that no other test uses.
pub(crate) fn unique() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("key-{}", NUMBER.fetch_add(1, Ordering::SeqCst))
}

/// A payout of 1,000.00 naira to an account at Guaranty Trust Bank.
pub(crate) fn naira(amount_minor: u64) -> Value {
    json!({
        "amount_minor": amount_minor.to_string(),
        "currency": "NGN",
        "recipient": { "account_number": "0123456785", "bank_code": "058" },
        "allow_duplicate": true,
    })
}

/// A body with some fields changed; null takes one away.
pub(crate) fn with(mut body: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => {
                body.as_object_mut().expect("an object").remove(name);
            }
            value => body[name] = value.clone(),
        }
    }
    body
}
