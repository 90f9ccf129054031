//! Files of payments: a rail that makes one of ten thousand, and a window that closes on as many.
//! The host runs in this process, on a clock that the measurement moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use railhead::clock::{Clock, Moment};
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::keyring::Keyring;
use railhead::rails::methods::{MethodTerms, Via};
use railhead::rails::{Declaration, Rail};
use railhead::start::{Sources, load, start};
use railhead::wasm::rail::{Payment, Window};
use railhead::wasm::{CodeCache, Engines};
use serde_json::{Value, json};

use super::rails::{examples, payment};
use super::server::{Engine, new_database};

const ENTRIES: usize = 10_000;
const TOKEN: &str = "op_of_the_bench_0";
/// A Saturday; the next window closes on Monday, 16:45 in New York.
const BEGINNING: &str = "2026-11-21T09:00:00Z";
const UNTIL_MONDAY: Duration = Duration::from_secs((2 * 24 + 12) * 3600 + 45 * 60);

/// What the rails alone take.
pub(crate) async fn assembling() {
    let keyring = Arc::new(Keyring::from_hex(&["22".repeat(32)]).unwrap());
    let engines = Engines::start().unwrap();
    let components = load(&engines, &CodeCache::new(None, keyring), None).unwrap();
    for rail in components.rails {
        let methods = rail.declaration.methods.iter().filter(|terms| terms.via == Via::Files);
        for terms in methods {
            assembling_by(&rail, terms).await;
        }
    }
}

async fn assembling_by(rail: &Rail, terms: &MethodTerms) {
    let declaration = &rail.declaration;
    let simulated = declaration.settings.iter();
    let settings = simulated.filter_map(|(name, terms)| Some((name.clone(), terms.sandboxed()?)));
    let access = railhead::wasm::rail::Access {
        rail: declaration.rail.name.clone(),
        settings: settings.collect(),
        tables: rail.tables.clone(),
        ..Default::default()
    };
    let begun_at_ms = Moment::parse(BEGINNING).unwrap().millis();
    let grant =
        Arc::new(railhead::wasm::rail::Grant { access: Arc::new(access), ..Default::default() });
    let which = (terms.name.as_str(), terms.currency.as_str());
    let checked = rail.code.check(&grant, which, &examples(declaration)).await;
    let recipient = checked.result.unwrap().unwrap();
    // As many as one file of it may have.
    let entries = ENTRIES.min(declaration.files.as_ref().unwrap().entries_max);
    let mut payments = Vec::with_capacity(entries);
    for serial in 0..entries as u64 {
        let payment = payment((serial, terms), recipient.clone());
        let payment = Payment { begun_at_ms, reference: String::new(), ..payment };
        let prepared = rail.code.prepare_for_file(&grant, &payment).await;
        let opening = prepared.result.unwrap().unwrap();
        payments.push(Payment { reference: opening.reference, facts: opening.facts, ..payment });
    }
    let (window, mut times) = (window(declaration, terms), Vec::new());
    let mut size = 0;
    for _ in 0..5 {
        let begun = Instant::now();
        let made = rail.code.assemble(&grant, &window, &payments).await.result.unwrap().unwrap();
        times.push(begun.elapsed());
        assert_eq!(made.placed.len(), entries);
        size = made.content.len();
    }
    times.sort_unstable();
    let name = &terms.name;
    println!(
        "    {name:<12} a file of {entries:>6} made by the rail, {size:>9} bytes  {:.0?}",
        times[2]
    );
}

fn window(declaration: &Declaration, terms: &MethodTerms) -> Window {
    Window {
        name: declaration.files.as_ref().unwrap().windows[0].name.clone(),
        method: terms.name.clone(),
        currency: terms.currency.to_string(),
        exponent: terms.exponent,
        number: 1,
        number_of_day: 1,
        first_entry: 1,
        business_date: "2026-11-23".to_owned(),
        local_time: "16:45".to_owned(),
        value_date: "2026-11-24".to_owned(),
    }
}

fn recipient() -> Value {
    json!({
        "account_number": "000123456789", "routing_number": "021000021",
        "account_type": "checking", "name": "Jane Smith", "bank_name": "A Bank",
        "email": "jane@example.com", "street": "1 Main Street", "city": "Springfield",
        "state": "IL", "zip_code": "62701", "country": "US",
        "bank_address": { "line1": "1 Bank Street", "city": "New York", "country": "US" },
    })
}

/// From the closing of a window until its file lies ready, committed, with a reference and an
/// entry for each payment.
pub(crate) async fn window_of_many(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let url = match engine {
        Engine::Sqlite => format!("sqlite:{}", folder.path().join("bench.db").display()),
        Engine::Postgres => new_database().await,
    };
    let clock = Clock::fixed(Moment::parse(BEGINNING).unwrap());
    let mut config = Config {
        database_url: Some(url.into()),
        operator_token: Some(TOKEN.to_owned().into()),
        ..Config::default()
    };
    config.data.dir = folder.path().join("data");
    config.encryption.keys = vec!["11".repeat(32)];
    config.server.address = "127.0.0.1:0".parse().unwrap();
    config.limits.write_per_minute = 100_000_000;
    // Nobody is there: the file stays where it is measured.
    config.simulator.url = Some("http://127.0.0.1:9".to_owned());
    let ids = IdGenerator::seeded(clock.clone(), 1);
    let host = start(config, Sources { clock: clock.clone(), ids }).await.unwrap();
    let base = format!("http://{}", host.address);
    let client = reqwest::Client::new();
    let before = resident_mb();
    pay_many(&client, &base).await;
    let begun = Instant::now();
    clock.advance(UNTIL_MONDAY);
    let mut joined = Duration::ZERO;
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let files = format!("{base}/admin/v1/files");
        let files = client.get(files).bearer_auth(TOKEN).send().await.unwrap();
        let files: Value = files.json().await.unwrap();
        let state = files["data"][0]["state"].as_str().unwrap_or("none").to_owned();
        if state != "none" && state != "collecting" && joined.is_zero() {
            joined = begun.elapsed();
        }
        match state.as_str() {
            "none" | "closed" => {}
            // It waits for those who are late, by the host's clock.
            "collecting" => clock.advance(Duration::from_millis(20)),
            _ => break,
        }
    }
    let took = begun.elapsed();
    println!(
        "    {engine:?}: a window of {ENTRIES}: all have joined {joined:.1?}, file committed {took:.1?} \
         ({:.0}/s); resident memory {before} MB before, {} MB after",
        ENTRIES as f64 / took.as_secs_f64(),
        resident_mb()
    );
    host.stop().await.unwrap();
}

async fn pay_many(client: &reqwest::Client, base: &str) {
    let post = async |path: &str, token: &str, body: Value| -> Value {
        let request = client.post(format!("{base}{path}")).bearer_auth(token).json(&body);
        let key = format!("{}", Counter::next());
        let answer = request.header("Idempotency-Key", key).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    };
    let merchant = json!({ "name": "Bench", "country": "US" });
    let merchant = post("/admin/v1/merchants", TOKEN, merchant).await;
    let wallets = merchant["wallets"].as_array().unwrap().iter();
    let mut wallets = wallets.filter(|it| it["env"] == "live" && it["currency"] == "USD");
    let wallet = wallets.next().unwrap()["id"].as_str().unwrap().to_owned();
    let credit = json!({ "amount_minor": "900000000000", "reason": "bench" });
    post(&format!("/admin/v1/wallets/{wallet}/credit"), TOKEN, credit).await;
    let id = merchant["id"].as_str().unwrap();
    let key = json!({ "env": "live", "label": "bench", "capabilities": ["payout_create"] });
    let key = post(&format!("/admin/v1/merchants/{id}/keys"), TOKEN, key).await;
    let key = key["secret"].as_str().unwrap().to_owned();
    let left = Arc::new(AtomicUsize::new(ENTRIES));
    let payers = (0..64).map(|_| {
        let (client, base, key) = (client.clone(), base.to_owned(), key.clone());
        let left = Arc::clone(&left);
        tokio::spawn(async move {
            let one = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one).is_ok() {
                let body = json!({ "amount_minor": "1000", "currency": "USD",
                    "recipient": recipient(), "allow_duplicate": true });
                let request = client.post(format!("{base}/v1/payouts")).bearer_auth(&key);
                let key = format!("{}", Counter::next());
                let answer = request.header("Idempotency-Key", key).json(&body).send().await;
                let answer = answer.unwrap();
                assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
            }
        })
    });
    for payer in payers.collect::<Vec<_>>() {
        payer.await.unwrap();
    }
}

/// Keys of requests.
struct Counter;

impl Counter {
    fn next() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        NEXT.fetch_add(1, Ordering::SeqCst)
    }
}

pub(crate) fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}
