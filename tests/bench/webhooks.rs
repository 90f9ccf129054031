//! Webhooks: from the event until a receiver holds it, over HTTPS, with all receivers good and
//! with some of them bad. The time covers the commit of the event too.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use railhead::clock::{Clock, Moment};

use super::cpu::{COLUMNS, Cpu};
use super::load::{connect, post, send};
use super::receivers::{Manner, Receipt, Receivers};
use super::server::{Engine, Server, Setup};

const ENDPOINTS: usize = 100;
const RATES: [f64; 2] = [200.0, 1000.0];
const CONNECTIONS: u64 = 64;
/// How long what was not heard yet is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same, of everything that waits for one receiver.
const DRAIN_MAX: Duration = Duration::from_secs(1200);

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// A host with a merchant for each receiver.
struct Town {
    server: Server,
    receivers: Receivers,
    keys: Arc<Vec<String>>,
}

/// What a run measured, of receivers that are good.
struct Run {
    per_second: f64,
    latencies: Vec<Duration>,
    lost: usize,
    again: usize,
    cpu: Cpu,
}

/// How long a load lasts, and how many deliveries wait for a receiver that is down.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub length: Duration,
    pub waiting: u64,
}

/// Everything about webhooks on one engine.
pub(crate) async fn run(engine: Engine, size: Size) {
    println!(
        "{engine:?}: webhooks to {ENDPOINTS} receivers, a merchant each (POST /v1/sandbox/fund); \
         from created_at to receipt, commit included"
    );
    println!("{}", Run::head());
    for rate in RATES {
        for bad in [5, 20] {
            beside_bad_ones(engine, rate, (bad, size.length)).await;
        }
    }
    after_a_pause(engine, size).await;
    println!();
}

/// The same load twice: all receivers good, then some of them hang, trickle or fail.
async fn beside_bad_ones(engine: Engine, rate: f64, (bad, length): (usize, Duration)) {
    let town = Town::build(engine).await;
    let all = |_: usize| true;
    let before = town.run((rate, length), all).await;
    println!("{}", before.line(&format!("{rate}/s, all good"), None));
    for which in 0..bad {
        town.receivers.turn(which, [Manner::Hangs, Manner::Trickles, Manner::Fails][which % 3]);
    }
    let beside = town.run((rate, length), |which| which >= bad).await;
    println!("{}", beside.line(&format!("{rate}/s, {bad} % bad: good ones"), Some(&before)));
    town.server.stop().await;
}

/// One receiver is down while events for it are made, then comes back.
pub(crate) async fn after_a_pause(engine: Engine, Size { waiting, .. }: Size) {
    let town = Town::build(engine).await;
    let good = |which: usize| which > 0;
    let load = (RATES[0], Duration::from_secs(5));
    let before = town.run(load, |_| true).await;
    println!("{}", before.line(&format!("{}/s before", load.0), None));
    town.receivers.turn(0, Manner::IsDown);
    let memory_before = town.server.resident_mb();
    let begun = Instant::now();
    let only_the_first = Arc::new(vec![town.keys[0].clone()]);
    let owed = make(&town.server.base, &only_the_first, (f64::INFINITY, waiting)).await;
    let per_second = waiting as f64 / begun.elapsed().as_secs_f64();
    let memory_full = town.server.resident_mb();
    let beside = town.run(load, good).await;
    println!("{}", beside.line(&format!("{}/s, {waiting} waiting", load.0), Some(&before)));

    town.receivers.turn(0, Manner::Takes);
    let (back, from) = (Clock::System.now(), town.receivers.count());
    let given_up = Instant::now() + DRAIN_MAX;
    let mut beside = Vec::new();
    let mut drained = Drained::default();
    while drained.count < waiting as usize && Instant::now() < given_up {
        beside.push(town.run((load.0, Duration::from_secs(2)), good).await);
        drained = Drained::of(&town.receivers.heard_after(from), &owed);
    }
    let name = format!("{}/s while they are delivered", load.0);
    println!("{}", Run::sum(beside).line(&name, Some(&before)));
    drained.print(back);
    println!(
        "    {waiting} were made at {per_second:.0}/s; resident memory of the host: {memory_before} \
         MB before, {memory_full} MB while they wait, {} MB after",
        town.server.resident_mb()
    );
    town.server.verify();
    town.server.stop().await;
}

/// What a receiver heard that was owed to it.
#[derive(Default)]
struct Drained {
    count: usize,
    again: usize,
    /// When, in order.
    times: Vec<Moment>,
}

impl Drained {
    fn of(heard: &[Receipt], owed: &Range<u64>) -> Self {
        let (seen, again) = sort(heard, |number| owed.contains(&number));
        let mut times: Vec<Moment> = seen.values().map(|receipt| receipt.at).collect();
        times.sort_unstable();
        Self { count: seen.len(), again, times }
    }

    /// The last ones were tried in vain before: they come when their schedule says so.
    fn print(&self, back: Moment) {
        let most = self.count * 99 / 100;
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else {
            println!("    nothing was delivered");
            return;
        };
        let seconds = |from: Moment, to: Moment| (to.micros() - from.micros()) as f64 / 1e6;
        let took = seconds(*first, self.times[most.min(self.count - 1)]);
        println!(
            "    back, and found to be after {:.1} s; then 99 % of {} delivered in {took:.1} s \
             ({:.0}/s), the last one after {:.1} s, {} twice",
            seconds(back, *first),
            self.count,
            most as f64 / took,
            seconds(*first, *last),
            self.again
        );
    }
}

impl Town {
    async fn build(engine: Engine) -> Self {
        let receivers = Receivers::open(ENDPOINTS).await;
        let setup = Setup { batch_max: 256, dispatch: false };
        let server = Server::start_with(engine, setup, Some(&receivers.ca_file)).await;
        let mut keys = Vec::new();
        for url in &receivers.urls {
            keys.push(server.listener(url).await);
        }
        let town = Self { server, receivers, keys: Arc::new(keys) };
        // Connections are open and code is warm.
        town.run((RATES[0], Duration::from_secs(2)), |_| true).await;
        town
    }

    /// Events at a rate to all receivers in turn, of which some are to be measured.
    async fn run(&self, (rate, length): (f64, Duration), measured: impl Fn(usize) -> bool) -> Run {
        let before = Cpu::now(&self.server);
        let begun = Instant::now();
        let from = self.receivers.count();
        let count = (rate * length.as_secs_f64()) as u64;
        let owed = make(&self.server.base, &self.keys, (rate, count)).await;
        let took = begun.elapsed();
        let cpu = Cpu::now(&self.server).since(before);
        let is_owed = |number| owed.contains(&number) && measured(number as usize % ENDPOINTS);
        let count_owed = owed.clone().filter(|number| is_owed(*number)).count();
        let given_up = Instant::now() + PATIENCE;
        let (mut seen, mut again) = (HashMap::new(), 0);
        while seen.len() < count_owed && Instant::now() < given_up {
            tokio::time::sleep(Duration::from_millis(200)).await;
            (seen, again) = sort(&self.receivers.heard_after(from), is_owed);
        }
        Run {
            per_second: count as f64 / took.as_secs_f64(),
            latencies: seen.values().map(|receipt| receipt.latency()).collect(),
            lost: count_owed - seen.len(),
            again,
            cpu,
        }
    }
}

/// The first receipt of each event that is wanted, and how many came again.
fn sort(heard: &[Receipt], wanted: impl Fn(u64) -> bool) -> (HashMap<u64, Receipt>, usize) {
    let mut seen: HashMap<u64, Receipt> = HashMap::new();
    let mut again = 0;
    for receipt in heard.iter().filter(|receipt| wanted(receipt.number)) {
        match seen.contains_key(&receipt.number) {
            true => again += 1,
            false => drop(seen.insert(receipt.number, *receipt)),
        }
    }
    (seen, again)
}

/// Makes events, for keys in turn, at an even rate, and answers their numbers. What is late is
/// made at once.
async fn make(base: &str, keys: &Arc<Vec<String>>, (rate, count): (f64, u64)) -> Range<u64> {
    let first = NUMBER.fetch_add(count, Ordering::SeqCst);
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for turn in 0..CONNECTIONS {
        let mut connection = connect(base).await;
        let (base, keys) = (base.to_owned(), Arc::clone(keys));
        tasks.push(tokio::spawn(async move {
            for index in (turn..count).step_by(CONNECTIONS as usize) {
                let at = begun + Duration::from_secs_f64(index as f64 / rate);
                tokio::time::sleep_until(at.into()).await;
                let number = first + index;
                let key = &keys[number as usize % keys.len()];
                let body = format!("{{\"currency\":\"NGN\",\"amount_minor\":\"{number}\"}}");
                let request = post(&base, "/v1/sandbox/fund", key);
                let request = request.body(Full::new(Bytes::from(body))).unwrap();
                assert!(send(&mut connection, request).await, "a call failed");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    first..first + count
}

impl Run {
    fn head() -> String {
        format!(
            "    run                             events/s   p50 ms   p95 ms   p99 ms   p99 to all good   lost   twice   CPU us per event: {COLUMNS}"
        )
    }

    fn line(&self, name: &str, before: Option<&Self>) -> String {
        let ratio = before.map(|before| self.at(99) / before.at(99).max(0.001));
        format!(
            "    {name:<31} {:>8.0}   {:>6.2}   {:>6.2}   {:>6.2}   {:>15}   {:>4}   {:>5}   {:>56}",
            self.per_second,
            self.at(50),
            self.at(95),
            self.at(99),
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x")),
            self.lost,
            self.again,
            self.cpu.of_each(self.latencies.len()),
        )
    }

    fn at(&self, percent: usize) -> f64 {
        let mut times = self.latencies.clone();
        times.sort_unstable();
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }

    /// Runs one after the other as one.
    fn sum(runs: Vec<Self>) -> Self {
        let count = runs.len().max(1) as f64;
        let mut sum =
            Self { per_second: 0.0, latencies: Vec::new(), lost: 0, again: 0, cpu: Cpu::default() };
        for run in runs {
            sum.per_second += run.per_second / count;
            sum.latencies.extend(run.latencies);
            sum.lost += run.lost;
            sum.again += run.again;
            sum.cpu = sum.cpu.plus(run.cpu);
        }
        sum
    }
}
