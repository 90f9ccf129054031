//! Batches of 150 payouts beside single ones, and statements over what they leave behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::load::{Load, Run};
use super::server::{Engine, Server, Setup, Target};

const SETUP: Setup = Setup { batch_max: 256, dispatch: false };
const ROWS: u64 = 150;
const CALLERS: usize = 8;
/// Entries that a payout leaves in its wallet: amount, fee, levy.
const ENTRIES: u64 = 3;

/// Accepts single payouts for a while, then batches until the wallet has so many entries, and has
/// them all in one statement.
pub(crate) async fn run(engine: Engine, length: Duration, entries: u64) {
    println!("{engine:?}: batches of {ROWS} payouts, one wallet, {CALLERS} callers");
    println!("{}", Run::head());
    let server = Server::start(engine, SETUP).await;
    let targets = server.merchants(1).await;
    let load = Load { base: server.base.clone(), targets: targets.clone(), connections: 128 };
    load.warm_up().await;
    let single = load.run(&server, length).await;
    println!("{}", single.line("single payouts"));
    let (number, begun) = (AtomicU64::new(0), Instant::now());
    let wanted = entries.div_ceil(ENTRIES * ROWS);
    let callers = (0..CALLERS).map(|_| send(&server, &targets[0], (&number, wanted)));
    let slowest = futures::future::join_all(callers).await.into_iter().max().unwrap_or_default();
    let took = begun.elapsed().as_secs_f64();
    let batches = wanted as f64 / took;
    println!(
        "    batches {batches:.1}/s, payouts {:.0}/s ({:.2} x single), slowest {} ms; resident {} MB",
        batches * ROWS as f64,
        batches * ROWS as f64 / single.per_second(),
        slowest.as_millis(),
        server.resident_mb(),
    );
    for format in ["json", "csv", "xlsx"] {
        let begun = Instant::now();
        let path = format!("/v1/reports/bank_statement?currency=NGN&format={format}");
        let bytes = download(&server, &targets[0], &path).await;
        println!(
            "    a statement of {entries} entries as {format}: {:.1} s, {:.1} MB; resident {} MB",
            begun.elapsed().as_secs_f64(),
            bytes as f64 / 1e6,
            server.resident_mb(),
        );
    }
    for report in ["cashflow", "fees", "payouts"] {
        let begun = Instant::now();
        download(&server, &targets[0], &format!("/v1/reports/{report}")).await;
        println!("    {report}: {} ms", begun.elapsed().as_millis());
    }
    server.verify();
    server.stop().await;
    println!();
}

/// Sends batches until all are sent; answers how long the slowest took.
async fn send(server: &Server, target: &Target, (number, wanted): (&AtomicU64, u64)) -> Duration {
    let client = reqwest::Client::new();
    let item = json!({
        "amount_minor": "1500000",
        "recipient_bank_code": "058",
        "recipient_account_number": "0123456785",
        "allow_duplicate": true,
    });
    let body = json!({ "currency": "NGN", "items": vec![item; ROWS as usize] });
    let mut slowest = Duration::ZERO;
    loop {
        let turn = number.fetch_add(1, Ordering::Relaxed);
        if turn >= wanted {
            return slowest;
        }
        let begun = Instant::now();
        let request = client.post(format!("{}/v1/batches", server.base));
        let request = request.header("idempotency-key", format!("batch-{turn}")).json(&body);
        let answer = request.bearer_auth(&target.key).send().await.unwrap();
        let status = answer.status();
        let said: Value = answer.json().await.unwrap();
        assert_eq!(status, 201, "{said}");
        slowest = slowest.max(begun.elapsed());
    }
}

/// Reads an answer to its end, and keeps nothing of it.
async fn download(server: &Server, target: &Target, path: &str) -> usize {
    let request = reqwest::Client::new().get(format!("{}{path}", server.base));
    let mut answer = request.bearer_auth(&target.key).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut bytes = 0;
    while let Some(chunk) = answer.chunk().await.unwrap() {
        bytes += chunk.len();
    }
    bytes
}
