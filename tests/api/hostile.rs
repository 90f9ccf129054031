//! Rails that mean harm: the host serves on, and knows what may have left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::routing::post;
use http::{Method, StatusCode};
use railhead::config::{Config, limits};
use railhead::wasm::rail::{Broken, Payment};
use railhead::wasm::section::{self, CustomSections};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedRwLockWriteGuard, RwLock};

use crate::accounts::account;
use crate::live::{until, until_asked};
use crate::news::{accepted, tell};
use crate::notices::RIGHT;
use crate::program::Deployment;
use crate::test_host::{Engine, TestHost, config, naira, unique, with, with_host_configured};

pub(crate) const DECLARATION: &str = include_str!("../hostile/rail.toml");
/// The same component as a rail that pays by file.
const BY_FILE: &str = include_str!("../hostile/bulk.toml");

/// What the rail does before a byte has left, and a word of what is written down about it.
const BEFORE: [(&str, &str); 11] = [
    ("loop", "interrupt"),
    ("allocate", "the component failed"),
    ("recurse", "wasm trap"),
    ("trap", "as asked"),
    ("log", "interrupt"),
    ("claim", "nothing was sent"),
    ("giant", "the component failed"),
    ("garbage", "utf-8"),
    ("stranger", "not granted"),
    ("undeclared", "not granted"),
    ("climb", "cannot stand at the end of the path"),
];

/// What it does after the payment was sent.
const AFTER: [(&str, &str); 10] = [
    ("loop", "interrupt"),
    ("allocate", "the component failed"),
    ("recurse", "wasm trap"),
    ("trap", "as asked"),
    ("log", "interrupt"),
    ("giant", "the component failed"),
    ("garbage", "utf-8"),
    ("knock", "more than 4 requests"),
    ("again", "has left already"),
    ("flood", "unknown"),
];

/// The hostile rail as a component, packed with its declaration; with files, one that wants
/// what no component gets.
fn component(features: &str) -> Vec<u8> {
    packed(&built("hostile", features), DECLARATION)
}

/// The component of a crate in this folder of the tests.
pub(crate) fn built(folder: &str, features: &str) -> Vec<u8> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    // Where the built-in components are built: what they share is there already.
    let components = target.join("components");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    cargo.args(["build", "--locked", "--profile", "component", "--target", "wasm32-wasip2"]);
    cargo.arg("--features").arg(features).arg("--target-dir").arg(&components);
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let built = cargo.output().expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let file = format!("railhead_{}.wasm", folder.replace('-', "_"));
    let file = components.join("wasm32-wasip2/component").join(file);
    std::fs::read(file).expect("a component")
}

pub(crate) fn packed(component: &[u8], declaration: &str) -> Vec<u8> {
    let declaration = declaration.to_owned();
    section::pack(component, &CustomSections { declaration, ..CustomSections::default() })
}

/// A folder of modules with the hostile rail in it.
fn modules() -> tempfile::TempDir {
    let (folder, plain) = (tempfile::tempdir().expect("a folder"), built("hostile", ""));
    for (name, declaration) in [("hostile", DECLARATION), ("bulk", BY_FILE)] {
        let path = folder.path().join(name).with_extension("wasm");
        std::fs::write(path, packed(&plain, declaration)).expect("written");
    }
    folder
}

/// A bank that notes what it is asked to pay, and how often it is knocked at.
#[derive(Clone, Default)]
pub(crate) struct Till {
    paid: Arc<Mutex<BTreeMap<String, u32>>>,
    /// What came back of payments.
    back: Arc<Mutex<BTreeMap<String, i64>>>,
    door: Arc<RwLock<()>>,
    knocked: Arc<Notify>,
    /// What lies ready, and whether nobody can fetch it.
    news: Arc<Mutex<(Vec<String>, bool)>>,
    /// What is answered to recalls, and what they said.
    recalls: Arc<Mutex<(String, Vec<String>)>>,
}

impl Till {
    pub(crate) async fn open(&self) -> String {
        let router = Router::new()
            .route("/pay", post(Self::pay))
            .route("/knock", post(Self::pay))
            .route("/ask", post(Self::ask))
            .route("/recall", post(Self::recall))
            .route("/flood", post(Self::flood))
            .route("/feed", post(Self::feed))
            .with_state(self.clone());
        // Below its rail's name, as every network is.
        let router = Router::new().nest("/hostile", router.clone()).nest("/bulk", router);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    async fn pay(State(till): State<Self>, references: String) {
        // One, or those that a file begins its lines with.
        for line in references.trim_end().split('\n') {
            let reference = line.split(' ').next().unwrap_or_default().to_owned();
            *till.paid.lock().expect("a lock").entry(reference).or_default() += 1;
        }
        till.knocked.notify_one();
        let _open = till.door.read().await;
    }

    /// It knows nothing of a payment any more.
    pub(crate) fn forget(&self, reference: &str) {
        self.paid.lock().expect("a lock").remove(reference);
    }

    /// Whoever pays gets no answer until the door is open again.
    pub(crate) async fn close(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.door).write_owned().await
    }

    /// Until somebody has paid.
    pub(crate) async fn until_knocked(&self) {
        self.knocked.notified().await;
    }

    async fn ask(State(till): State<Self>, reference: String) -> (StatusCode, String) {
        let back = till.back.lock().expect("a lock").get(&reference).map(i64::to_string);
        let paid = till.paid.lock().expect("a lock").contains_key(&reference);
        let status = if paid { StatusCode::OK } else { StatusCode::NOT_FOUND };
        (status, back.unwrap_or_default())
    }

    /// Whoever asks about a payment is told that so much of it came back.
    pub(crate) fn give_back(&self, reference: &str, amount: i64) {
        self.back.lock().expect("a lock").insert(reference.to_owned(), amount);
    }

    async fn recall(State(till): State<Self>, request: String) -> String {
        let answer = {
            let mut recalls = till.recalls.lock().expect("a lock");
            recalls.1.push(request);
            recalls.0.clone()
        };
        till.knocked.notify_one();
        let _open = till.door.read().await;
        answer
    }

    /// What is answered to recalls from now on.
    pub(crate) fn answer_recalls(&self, answer: &str) {
        answer.clone_into(&mut self.recalls.lock().expect("a lock").0);
    }

    /// How many recalls there were.
    pub(crate) fn recalled(&self) -> usize {
        self.recalls.lock().expect("a lock").1.len()
    }

    /// What the recalls said: reference, number and reason.
    pub(crate) fn recalls(&self) -> Vec<String> {
        self.recalls.lock().expect("a lock").1.clone()
    }

    /// The next thing that lies ready after as many.
    async fn feed(State(till): State<Self>, after: String) -> Result<String, StatusCode> {
        let (ready, is_shut) = till.news.lock().expect("a lock").clone();
        match is_shut {
            true => Err(StatusCode::SERVICE_UNAVAILABLE),
            false => Ok(ready.get(after.parse().unwrap_or(0)).cloned().unwrap_or_default()),
        }
    }

    /// Lays something ready.
    pub(crate) fn lay(&self, news: &str) {
        self.news.lock().expect("a lock").0.push(news.to_owned());
    }

    /// From now on nobody can fetch what lies ready.
    pub(crate) fn shut_feed(&self) {
        self.news.lock().expect("a lock").1 = true;
    }

    /// From now on everybody can.
    pub(crate) fn open_feed(&self) {
        self.news.lock().expect("a lock").1 = false;
    }

    /// An answer without an end.
    async fn flood() -> Body {
        let chunk = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 64 * 1024]));
        Body::from_stream(futures::stream::repeat_with(chunk))
    }

    pub(crate) fn paid(&self, reference: &str) -> u32 {
        self.paid.lock().expect("a lock").get(reference).copied().unwrap_or(0)
    }
}

pub(crate) fn hostile(deed: &str) -> Value {
    with(naira(100_000), json!({ "method": "hostile", "narration": deed }))
}

/// A payout over the default rail, which a rail that was added does not become, whatever its
/// name.
fn harmless() -> Value {
    naira(100_000)
}

pub(crate) async fn with_hostile(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Till)) {
    with_hostile_configured(engine, |_| {}, test).await;
}

pub(crate) async fn with_hostile_configured(
    engine: Engine,
    more: impl FnOnce(&mut Config),
    test: impl AsyncFnOnce(&mut TestHost, &Till),
) {
    let (till, folder) = (Till::default(), modules());
    let url = till.open().await;
    let change = |config: &mut Config| {
        config.simulator.url = Some(url);
        config.simulator.token = Some(RIGHT.into());
        config.modules.dir = Some(folder.path().to_owned());
        more(config);
    };
    with_host_configured(engine, change, async |host| test(host, &till).await).await;
}

/// What is written down about the first call of a payout's rail.
async fn first_result(host: &TestHost, id: &str) -> String {
    let path = format!("/v1/payouts/{id}/timeline");
    let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
    let mut steps = timeline.json["data"].as_array().expect("steps").iter();
    let call = steps.find(|step| step["operation"] == "submit").expect("a call");
    call["result"].as_str().expect("a result").to_owned()
}

pub(crate) async fn attempt(host: &TestHost, id: &str) -> (String, i64, i64) {
    let sql = "SELECT rail_reference, sends, bytes_left FROM attempts WHERE transfer_id = $1";
    sqlx::query_as(sql).bind(id).fetch_one(host.app().db.pool()).await.expect("one attempt")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_that_fails_before_anything_left_is_tried_again_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let mut payouts = Vec::new();
        for (deed, word) in BEFORE {
            let key = host.merchant.live_key.clone();
            let payout = host.pay_as(&key, &unique(), hostile(deed)).await.ok();
            let id = payout.id();
            until(host, &id, "processing").await;
            until_asked(host, &id, 0).await;
            let result = first_result(host, &id).await;
            assert!(result.starts_with("unknown: ") && result.contains(word), "{deed}: {result}");
            let (reference, sends, bytes_left) = attempt(host, &id).await;
            assert_eq!((sends, bytes_left, till.paid(&reference)), (1, 0, 0), "{deed}");
            assert_eq!(host.pay("paid", harmless()).await.ok().status_word(), "paid");
            payouts.push((deed, id, reference));
        }
        host.advance(60);
        for (deed, id, reference) in payouts {
            until(host, &id, "paid").await;
            assert_eq!(attempt(host, &id).await, (reference.clone(), 2, 1), "{deed}");
            assert_eq!(till.paid(&reference), 1, "{deed}");
        }
        assert_eq!(till.paid(""), 0, "nobody knocked");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_that_fails_after_it_sent_is_asked_and_not_sent_to(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let mut payouts = Vec::new();
        for (deed, word) in AFTER {
            let (key, deed) = (host.merchant.live_key.clone(), format!("sent, then {deed}"));
            let payout = host.pay_as(&key, &unique(), hostile(&deed)).await.ok();
            let id = payout.id();
            until(host, &id, "processing").await;
            until_asked(host, &id, 0).await;
            let result = first_result(host, &id).await;
            assert!(result.starts_with("unknown: ") && result.contains(word), "{deed}: {result}");
            let (reference, sends, bytes_left) = attempt(host, &id).await;
            assert_eq!((sends, bytes_left, till.paid(&reference)), (1, 1, 1), "{deed}");
            assert_eq!(host.pay("paid", harmless()).await.ok().status_word(), "paid");
            payouts.push((deed, id, reference));
        }
        assert_eq!(till.paid(""), 3, "four requests in all, and the payment was one of them");
        host.advance(60);
        for (deed, id, reference) in payouts {
            until(host, &id, "paid").await;
            assert_eq!(attempt(host, &id).await, (reference.clone(), 1, 1), "{deed}");
            assert_eq!(till.paid(&reference), 1, "{deed}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rail_refuses_before_anything_left_is_refused_for_good(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let payout = host.pay_as(&key, &unique(), hostile("refuse at once")).await.ok();
        let id = payout.id();
        let failed = until(host, &id, "failed").await;
        assert_eq!(failed.json["failure_code"], "NO");
        let (reference, sends, bytes_left) = attempt(host, &id).await;
        assert_eq!((sends, bytes_left, till.paid(&reference)), (0, 0, 0));
        let path = format!("/v1/payouts/{id}/timeline");
        let timeline = host.get_as(&key, &path).await.ok();
        let mut steps = timeline.json["data"].as_array().expect("steps").iter();
        let prepared = steps.find(|step| step["operation"] == "prepare").expect("a call");
        assert_eq!(prepared["result"], "refused (NO): not even tried");
        assert_eq!(host.count("SELECT COUNT(*) FROM transfers").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_question_moves_no_money_whatever_the_rail_tries(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let payout = host.pay_as(&key, &unique(), hostile("sent, then pay again")).await.ok();
        let id = payout.id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        host.advance(60);
        until_asked(host, &id, 1).await;
        let (reference, sends, bytes_left) = attempt(host, &id).await;
        assert_eq!((sends, bytes_left, till.paid(&reference)), (1, 1, 1));
        let why = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'query' \
                   AND result LIKE '%moves money, and nothing is sent here%'";
        assert_eq!(host.count(why).await, 1);
    })
    .await;
}

/// A rail that takes the answer to a question for one to a payment is neither believed nor given
/// another chance to send.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_claimed_without_a_payment_is_asked_about_and_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("ask")).await.ok().id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        assert!(first_result(host, &id).await.contains("nothing was sent"));
        host.advance(60);
        until_asked(host, &id, 1).await;
        let (reference, sends, bytes_left) = attempt(host, &id).await;
        assert_eq!((sends, bytes_left, till.paid(&reference)), (1, 1, 0));

        // A recipient that was saved for one method is not paid by another.
        let saved = json!({ "currency": "NGN", "name": "Ada", "bank_code": "058",
            "account_number": account(7) });
        let saved = host.send(Method::POST, "/v1/beneficiaries", &key, &[], Some(saved)).await.ok();
        let body = json!({ "amount_minor": "100000", "currency": "NGN", "method": "hostile",
            "beneficiary_id": saved.id() });
        let refused = host.pay_as(&key, &unique(), body).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "method"));
    })
    .await;
}

/// A network says in a hundred thousand characters what a word would say. It is understood, and of
/// what it said the beginning is kept.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_what_a_network_says_at_length_the_beginning_is_kept(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _till| {
        let (id, reference) = accepted(host).await;
        let line = format!("paid:{} reference {reference} 100000", "x".repeat(100_000));
        tell(host, "/told", &line).await.ok();
        until(host, &id, "paid").await;
        let path = format!("/v1/payouts/{id}/timeline");
        let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
        let mut steps = timeline.json["data"].as_array().expect("steps").iter();
        let told = steps.find(|step| step["operation"] == "receive").expect("a call");
        let (kept, length) = (&line[..limits::EVIDENCE_BYTES_MAX], line.len());
        assert_eq!(
            told["messages"][0]["request"],
            format!("{kept} [cut off: {length} bytes in all]")
        );
    })
    .await;
}

/// A component that was built against another version of the contract says so at load.
#[test]
fn a_rail_of_another_version_is_refused_by_its_version() {
    let engines = railhead::wasm::Engines::start().expect("engines");
    let keyring = railhead::keyring::Keyring::from_hex(&["22".repeat(32)]).expect("a key");
    let cache = railhead::wasm::CodeCache::new(None, Arc::new(keyring));
    let refused = |component: &[u8], declaration: &str| {
        let bytes = packed(component, declaration);
        let loaded = railhead::rails::Rail::load(&engines, &cache, &bytes, None);
        loaded.err().expect("it is refused").to_string()
    };
    let today = built("hostile", "");
    for version in ["0.9.0", "1.1.0", "2.0.0"] {
        let why = refused(&of_version(&today, version), DECLARATION);
        assert!(why.contains(&format!("@{version}")) && why.contains("@1.0.0"), "{why}");
        let declaration = DECLARATION.replace("rail@1.0.0", &format!("rail@{version}"));
        let why = refused(&today, &declaration);
        assert!(why.contains(&format!("rail.contract is railhead:rail@{version}")), "{why}");
    }
}

/// A call waits for one of the instances. One that none becomes free for is not made, which says
/// nothing of the rail.
#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_instance_waits_and_is_not_made() {
    let engines = railhead::wasm::Engines::start().expect("engines");
    let keyring = railhead::keyring::Keyring::from_hex(&["22".repeat(32)]).expect("a key");
    let cache = railhead::wasm::CodeCache::new(None, Arc::new(keyring));
    let rail = railhead::rails::Rail::load(&engines, &cache, &component(""), None).expect("a rail");
    let grant = rail.pure_grant(0);
    let payment = Payment {
        payout: "one".to_owned(),
        reference: String::new(),
        serial: 1,
        begun_at_ms: 0,
        method: "hostile".to_owned(),
        currency: "NGN".to_owned(),
        exponent: 2,
        amount_minor: 100,
        recipient: Vec::new(),
        sender: Vec::new(),
        narration: "harmless".to_owned(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    };
    let mut kept = Vec::new();
    for _ in 0..limits::RAIL_GUESTS_MAX {
        let (made, instance) = rail.code.prepare(&grant, &payment).await;
        made.result.expect("an answer").expect("an opening");
        kept.push(instance.expect("it is kept for the sending"));
    }
    let check = async || rail.code.check(&grant, ("hostile", "NGN"), &[]).await.result;
    let asked_at = tokio::time::Instant::now();
    let broken = check().await.expect_err("there is no instance left");
    assert!(matches!(broken, Broken::Crowded), "{broken}");
    assert!(asked_at.elapsed() >= limits::GUEST_WAIT_MAX);
    let problem = railhead::error::Problem::from(broken);
    assert_eq!(problem.code(), railhead::error::ErrorCode::ServiceOverloaded);
    let (checked, ()) = tokio::join!(check(), async { drop(kept.pop()) });
    checked.expect("it waited").expect("it is a good recipient");
}

/// A component that was built against another version, with as many bytes, so that it stays one.
pub(crate) fn of_version(component: &[u8], version: &str) -> Vec<u8> {
    let mut other = component.to_vec();
    for at in 0..other.len().saturating_sub(6) {
        if &other[at..at + 6] == b"@1.0.0" {
            other[at + 1..at + 6].copy_from_slice(version.as_bytes());
        }
    }
    other
}

/// Checking a recipient is part of a merchant's own request.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_that_fails_while_it_checks_a_recipient_makes_no_payout(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let check = async |deed: &str| {
            let recipient = json!({ "account_number": "1", "bank_code": "1", "name": deed });
            let body = with(hostile("claim"), json!({ "recipient": recipient }));
            host.pay_as(&key, &unique(), body).await
        };
        for deed in ["loop", "allocate", "recurse", "trap", "log"] {
            assert_eq!(check(deed).await.refused(), (500, "api_error"), "{deed}");
        }
        // Nothing can be sent from a check, whatever it asks for.
        check("knock").await.ok();
        assert_eq!(till.paid(""), 0);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
    })
    .await;
}

/// In a process of its own, so that its memory is its own.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_rails_leave_no_memory_behind() {
    const GROWTH_MAX: u64 = 48 << 20;
    let (till, folder) = (Till::default(), modules());
    let further = format!("[modules]\ndir = \"{}\"", folder.path().display());
    let mut deployment = Deployment::open(Engine::Sqlite, &further).await;
    deployment.kill().await;
    deployment.start(&[("RAILHEAD_SIMULATOR__URL", &till.open().await)]).await;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        for (deed, _) in AFTER {
            let deed = format!("sent, then {deed}");
            let payout = deployment.pay(&unique(), hostile(&deed)).await.ok();
            deployment.until(&payout.id(), "processing").await;
        }
        deployment.until_nothing_is_leased().await;
        sizes.push(deployment.resident_bytes());
        let paid = deployment.host.pay("paid", harmless()).await.ok();
        assert_eq!(paid.status_word(), "paid");
    }
    assert!(sizes[3] < sizes[0] + GROWTH_MAX, "{sizes:?}");
    deployment.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_cannot_be_trusted_is_refused_at_start_by_name() {
    let plain = component("");
    for (bytes, why) in [
        (component("files"), "imports wasi:filesystem/"),
        (b"not a component".to_vec(), "not a WebAssembly component"),
        (plain[..plain.len() / 2].to_vec(), "not a WebAssembly component"),
        (vec![0; 33 << 20], "at most"),
        (packed(&plain[..8], ""), "rail.toml"),
    ] {
        let database = crate::databases::Database::new(Engine::Sqlite).await;
        let mut config = config(&database);
        let folder: PathBuf = database.folder.path().join("modules");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("bad.wasm"), bytes).expect("written");
        config.modules.dir = Some(folder);
        let sources = railhead::start::Sources::system().expect("sources");
        let refusal = railhead::start::start(config, sources).await.err().expect("a refusal");
        let refusal = refusal.to_string();
        assert!(refusal.contains("bad.wasm: ") && refusal.contains(why), "{why}: {refusal}");
    }
}
