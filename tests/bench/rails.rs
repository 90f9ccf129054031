//! Rails by themselves, and the sandbox: a host in this process whose networks are components.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use railhead::app::App;
use railhead::clock::Clock;
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::rails::methods::{MethodTerms, Via};
use railhead::rails::{Declaration, ReadyRoute};
use railhead::start::{Sources, start};
use railhead::wasm::rail::{Enquiry, Field, Money, Payment, Resolution, Verdict};
use serde_json::{Value, json};

const TOKEN: &str = "op_of_the_bench_0";
const CALLS: u32 = 2_000;
/// Callers in the sandbox.
const CALLERS: usize = 16;

/// What each call takes, for every rail and method, and how many payouts of the sandbox a host
/// carries through.
pub(crate) async fn run(length: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config {
        database_url: Some(format!("sqlite:{}", folder.path().join("bench.db").display()).into()),
        operator_token: Some(TOKEN.to_owned().into()),
        ..Config::default()
    };
    config.data.dir = folder.path().join("data");
    config.encryption.keys = vec!["11".repeat(32)];
    config.server.address = "127.0.0.1:0".parse().unwrap();
    config.limits.write_per_minute = 100_000_000;
    let sources = Sources { clock: Clock::System, ids: IdGenerator::seeded(Clock::System, 1) };
    let host = start(config, sources).await.unwrap();
    let base = format!("http://{}", host.address);
    println!("Rails, {CALLS} calls each, p50 (p99) in microseconds; submit reaches the simulator");
    let caller = Caller::new(&base).await;
    let routes = host.app.routes.all().await.unwrap();
    let simulated = routes.iter().filter(|route| route.missing().is_none());
    let mut simulated: Vec<_> = simulated.filter(|it| it.route.env.as_str() == "test").collect();
    simulated.sort_by_key(|it| &it.route.name);
    for route in simulated {
        let declaration = &route.rail.declaration;
        let terms = declaration
            .methods
            .iter()
            .find(|it| it.name == route.route.method && it.currency == route.route.currency);
        let terms = terms.unwrap();
        let calls = calls(&host.app, route, terms).await;
        let sandbox = caller.payouts(declaration, terms, length).await;
        println!("    {:<12}{calls}  sandbox {sandbox:.0} payouts/s", route.route.name);
    }
    println!();
    host.stop().await.unwrap();
}

async fn calls(app: &App, route: &ReadyRoute, terms: &MethodTerms) -> String {
    let (code, now) = (&route.rail.code, app.clock.now());
    let pure = route.pure_grant(now);
    let (mut checks, mut prepares, mut submits) = (Vec::new(), Vec::new(), Vec::new());
    let sent = examples(&route.rail.declaration);
    let called = code.check(&pure, (&terms.name, terms.currency.as_str()), &sent).await;
    let resolution = resolution(app, route, called.result.unwrap().unwrap()).await;
    for serial in 0..u64::from(CALLS) {
        let begun = Instant::now();
        let called = code.check(&pure, (&terms.name, terms.currency.as_str()), &sent).await;
        checks.push(begun.elapsed());
        let payment = payment((serial, terms), called.result.unwrap().unwrap());
        let payment = Payment { resolution: resolution.clone(), ..payment };
        if terms.via == Via::Files {
            let begun = Instant::now();
            code.prepare_for_file(&pure, &payment).await.result.unwrap().unwrap();
            prepares.push(begun.elapsed());
            continue;
        }
        let begun = Instant::now();
        let seeds = route.rail.declaration.seeds.keys().map(|name| (name.clone(), "bench".into()));
        let grant = route.grant_with((now, Vec::new(), Money::MayMove), seeds.collect());
        let (called, kept) = code.prepare(&grant, &payment).await;
        let opening = called.result.unwrap().unwrap();
        prepares.push(begun.elapsed());
        let payment = Payment { reference: opening.reference, facts: opening.facts, ..payment };
        let begun = Instant::now();
        let called = code.submit(kept, &grant, &payment).await;
        assert!(called.may_have_moved_money, "{called:?}");
        submits.push(begun.elapsed());
    }
    let columns = [("check", checks), ("prepare", prepares), ("submit", submits)];
    let column = |(name, mut times): (&str, Vec<Duration>)| {
        times.sort_unstable();
        let at =
            |percent: usize| times.get(times.len() * percent / 100).map_or(0, Duration::as_micros);
        match times.is_empty() {
            true => format!("{name} -           "),
            false => format!("{name} {:>4} ({:>5})", at(50), at(99)),
        }
    };
    columns.map(column).join("  ")
}

/// Who holds the account, where the network says so.
async fn resolution(app: &App, route: &ReadyRoute, account: Vec<Field>) -> Option<Resolution> {
    if !route.rail.code.resolves_names() {
        return None;
    }
    let now = app.clock.now();
    let terms = &route.rail.declaration.methods[0];
    let enquiry = Enquiry {
        serial: 899_999_999,
        begun_at_ms: now.millis(),
        method: terms.name.clone(),
        currency: terms.currency.as_str().to_owned(),
        account,
    };
    let grant = route.enquiry_grant(now, Vec::new());
    match route.rail.code.resolve(&grant, &enquiry).await.result.unwrap() {
        Verdict::Named(found) | Verdict::Matches(found) | Verdict::Close(found) => Some(found),
        // It is paid without.
        Verdict::Unavailable(_) => None,
        other => panic!("{other:?}"),
    }
}

/// The recipient that a declaration gives as its example.
pub(crate) fn examples(declaration: &Declaration) -> Vec<Field> {
    let fields = declaration.recipient.fields.iter();
    let given = fields.filter_map(|field| {
        Some(Field { name: field.name.clone(), value: field.example.clone()? })
    });
    given.collect()
}

/// A payment of a serial number.
pub(crate) fn payment((serial, terms): (u64, &MethodTerms), recipient: Vec<Field>) -> Payment {
    Payment {
        payout: format!("po_{serial}"),
        reference: format!("R{serial:012}"),
        serial: 900_000_000 + serial,
        begun_at_ms: Clock::System.now().millis(),
        method: terms.name.clone(),
        currency: terms.currency.to_string(),
        exponent: terms.exponent,
        amount_minor: amount(terms),
        recipient,
        sender: Vec::new(),
        narration: "Invoice 17".to_owned(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}

fn amount(terms: &MethodTerms) -> i64 {
    100_000_i64.clamp(terms.amount_minor_min, terms.amount_minor_max) / terms.step * terms.step
}

/// A merchant with money in every wallet of the sandbox.
#[derive(Clone)]
struct Caller {
    client: reqwest::Client,
    base: String,
    key: String,
}

impl Caller {
    async fn new(base: &str) -> Self {
        let caller =
            Self { client: reqwest::Client::new(), base: base.to_owned(), key: TOKEN.to_owned() };
        let merchant = json!({ "name": "Bench", "country": "NG" });
        let merchant = caller.post("/admin/v1/merchants", merchant).await;
        for wallet in merchant["wallets"].as_array().unwrap() {
            if wallet["env"] == "test" {
                let path = format!("/admin/v1/wallets/{}/credit", wallet["id"].as_str().unwrap());
                let credit = json!({ "amount_minor": "90000000000000", "reason": "bench" });
                caller.post(&path, credit).await;
            }
        }
        let path = format!("/admin/v1/merchants/{}/keys", merchant["id"].as_str().unwrap());
        let capabilities = ["payout_create"];
        let key = json!({ "env": "test", "label": "bench", "capabilities": capabilities });
        let key = caller.post(&path, key).await["secret"].as_str().unwrap().to_owned();
        Self { key, ..caller }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        static KEYS: AtomicU64 = AtomicU64::new(1);
        let id = format!("bench-{}", KEYS.fetch_add(1, Ordering::SeqCst));
        let request = self.client.post(format!("{}{path}", self.base)).bearer_auth(&self.key);
        let answer = request.header("Idempotency-Key", id).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// Payouts a second, each carried to its end before it is answered.
    async fn payouts(
        &self,
        declaration: &Declaration,
        terms: &MethodTerms,
        length: Duration,
    ) -> f64 {
        let mut recipient = json!({});
        for field in examples(declaration) {
            // A field may stand in a block: `bank_address.city`.
            let names = field.name.split('.');
            *names.fold(&mut recipient, |place, name| &mut place[name]) = field.value.into();
        }
        let body = json!({
            "amount_minor": amount(terms).to_string(),
            "currency": terms.currency.to_string(),
            "method": terms.name,
            "recipient": recipient,
            "allow_duplicate": true,
        });
        let (body, begun) = (Arc::new(body), Instant::now());
        let mut calling = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let (caller, body) = (self.clone(), Arc::clone(&body));
            calling.spawn(async move {
                let mut count = 0_u32;
                while begun.elapsed() < length {
                    caller.post("/v1/payouts", (*body).clone()).await;
                    count += 1;
                }
                count
            });
        }
        let counts = calling.join_all().await;
        f64::from(counts.into_iter().sum::<u32>()) / begun.elapsed().as_secs_f64()
    }
}
