//! A load over connections that stay open: each sends the next request when it has the answer to
//! the one before, or when it is due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Builder;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::cpu::{COLUMNS, Cpu};
use super::server::{Server, Target};

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A load.
pub(crate) struct Load {
    pub base: String,
    pub targets: Vec<Target>,
    pub connections: usize,
}

/// What a run measured.
pub(crate) struct Run {
    accepted: usize,
    refused: usize,
    took: Duration,
    latencies: Vec<Duration>,
    /// The p99 of what was due in each second.
    p99_by_second: Vec<Duration>,
    cpu: Cpu,
}

/// When an answered request was due, since the run began, and how long it took from then.
struct Timed {
    due: Duration,
    took: Duration,
}

impl Load {
    /// Every wallet once, so that recipients are saved and code is warm.
    pub(crate) async fn warm_up(&self) {
        let mut connection = self.connect().await;
        for target in &self.targets {
            for _ in 0..3 {
                assert!(pay(&mut connection, &self.base, target).await, "a warm-up payout failed");
            }
        }
    }

    /// Everybody who is paid, of every wallet, so that all of them are saved.
    pub(crate) async fn save_recipients(&self, each: u64) {
        let mut tasks = Vec::new();
        for target in self.targets.clone() {
            let (mut connection, base) = (self.connect().await, self.base.clone());
            tasks.push(tokio::spawn(async move {
                for person in 0..each {
                    let is_paid = pay_to(&mut connection, &base, &target, person).await;
                    assert!(is_paid, "a recipient was not saved");
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    }

    /// Payouts for this long, over all connections.
    pub(crate) async fn run(&self, server: &Server, length: Duration) -> Run {
        self.run_at(server, length, None).await
    }

    /// The same at so many a second, whatever the answers: a request is timed from the moment at
    /// which it was due, so that one that had to wait for a connection counts as slow.
    pub(crate) async fn run_at(
        &self,
        server: &Server,
        length: Duration,
        per_second: Option<f64>,
    ) -> Run {
        let before = Cpu::now(server);
        let begun = Instant::now();
        let targets = Arc::new(self.targets.clone());
        let due = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for index in 0..self.connections {
            let due = Arc::clone(&due);
            let mut connection = self.connect().await;
            let (targets, base) = (Arc::clone(&targets), self.base.clone());
            tasks.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut refused = 0;
                let mut turn = index;
                while begun.elapsed() < length {
                    let one = match per_second {
                        None => Instant::now(),
                        Some(rate) => {
                            let number = due.fetch_add(1, Ordering::Relaxed);
                            let at = begun + Duration::from_secs_f64(number as f64 / rate);
                            tokio::time::sleep_until(at.into()).await;
                            at
                        }
                    };
                    match pay(&mut connection, &base, &targets[turn % targets.len()]).await {
                        true => latencies.push(Timed { due: one - begun, took: one.elapsed() }),
                        false => refused += 1,
                    }
                    turn += 1;
                }
                (latencies, refused)
            }));
        }
        let mut latencies = Vec::new();
        let mut refused = 0;
        for task in tasks {
            let (times, bad) = task.await.unwrap();
            latencies.extend(times);
            refused += bad;
        }
        let took = begun.elapsed();
        let cpu = Cpu::now(server).since(before);
        let p99_by_second = p99_by_second(&latencies);
        let mut latencies: Vec<Duration> = latencies.into_iter().map(|timed| timed.took).collect();
        latencies.sort_unstable();
        Run { accepted: latencies.len(), refused, took, latencies, p99_by_second, cpu }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        connect(&self.base).await
    }
}

/// The p99 of what was due in each second.
fn p99_by_second(timed: &[Timed]) -> Vec<Duration> {
    let mut seconds: BTreeMap<u64, Vec<Duration>> = BTreeMap::new();
    for Timed { due, took } in timed {
        seconds.entry(due.as_secs()).or_default().push(*took);
    }
    let p99 = |mut times: Vec<Duration>| {
        times.sort_unstable();
        within(&times, 99)
    };
    seconds.into_values().map(p99).collect()
}

/// The time within which so many of a hundred were answered.
fn within(sorted: &[Duration], percent: usize) -> Duration {
    let index = sorted.len() * percent / 100;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub(crate) async fn connect(base: &str) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(base.trim_start_matches("http://")).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// A payout to whoever's turn it is.
async fn pay(connection: &mut SendRequest<Full<Bytes>>, base: &str, target: &Target) -> bool {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let person = TURN.fetch_add(1, Ordering::Relaxed) % target.recipients;
    pay_to(connection, base, target, person).await
}

async fn pay_to(
    connection: &mut SendRequest<Full<Bytes>>,
    base: &str,
    target: &Target,
    person: u64,
) -> bool {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let body = format!(
        "{{{},\"currency\":\"NGN\",\"wallet_id\":\"{}\",\
         \"recipient\":{{\"account_number\":\"{}\",\"bank_code\":\"058\"}},\
         \"narration\":\"Invoice {number}\",\"allow_duplicate\":true}}",
        target.amounts,
        target.wallet,
        account(person)
    );
    let request = post(base, "/v1/payouts", &target.key)
        .header("idempotency-key", format!("bench-{}-{number}", std::process::id()))
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    send(connection, request).await
}

/// The account of this number at bank 058, with its check digit.
fn account(number: u64) -> String {
    let serial = format!("{:09}", 12_345_678 + number);
    let digits = "058".bytes().chain(serial.bytes()).map(|digit| u64::from(digit - b'0'));
    let sum: u64 =
        digits.zip([3, 7, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    format!("{serial}{}", (10 - sum % 10) % 10)
}

/// A call with a key, without its body.
pub(crate) fn post(base: &str, path: &str, key: &str) -> Builder {
    Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", base.trim_start_matches("http://"))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
}

/// Whether a call succeeded. The first refusals are shown.
pub(crate) async fn send(
    connection: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> bool {
    connection.ready().await.unwrap();
    let response = connection.send_request(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    if !status.is_success() {
        static SHOWN: AtomicU64 = AtomicU64::new(0);
        if SHOWN.fetch_add(1, Ordering::Relaxed) < 3 {
            println!("    {status} {}", String::from_utf8_lossy(&body));
        }
    }
    status.is_success()
}

impl Run {
    pub(crate) fn head() -> String {
        format!(
            "    run                        payouts/s   p50 ms   p99 ms   CPU us per payout: {COLUMNS}   refused"
        )
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted
    }

    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.accepted as f64 / self.took.as_secs_f64()
    }

    /// The time within which so many of a hundred were answered, in milliseconds.
    pub(crate) fn within_ms(&self, percent: usize) -> f64 {
        within(&self.latencies, percent).as_secs_f64() * 1000.0
    }

    /// The p99 of each second: a stall shows in a few of them, a load that is too much in all.
    pub(crate) fn p99_line(&self) -> String {
        let seconds = self.p99_by_second.iter();
        let seconds = seconds.map(|time| format!("{:.0}", time.as_secs_f64() * 1000.0));
        format!("    p99 of each second, in ms: {}", seconds.collect::<Vec<_>>().join(" "))
    }

    pub(crate) fn line(&self, name: &str) -> String {
        format!(
            "    {name:<26} {:>9.0}   {:>6.2}   {:>6.2}   {:>57}   {:>7}",
            self.per_second(),
            self.within_ms(50),
            self.within_ms(99),
            self.cpu.of_each(self.accepted),
            self.refused
        )
    }
}
