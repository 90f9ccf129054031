//! `make bench`: the speed of a whole host, with its database and its load on one machine.
//!
//! Every figure stands beside another one from the same run: batches beside single writes, one
//! wallet beside fifty, the probe of the disk beside everything. Figures from different
//! machines, or from different days of one, are not comparable.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used, reason = "a bench")]
#![allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "statistics, no money")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]

mod across;
mod batches;
mod cpu;
mod files;
mod growth;
mod load;
mod many;
mod micro;
mod outage;
mod rails;
mod receivers;
mod recipients;
mod rules;
mod server;
mod statements;
mod steady;
mod tpcb;
mod webhooks;
mod whole_life;

use std::time::Duration;

use growth::Growth;
use load::{Load, Run};
use server::{Engine, Server, Setup};
use tpcb::TpcB;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    // One run of one engine, for a profiler: --only postgres "50 wallets".
    let only = arguments.iter().position(|argument| argument == "--only");
    let only =
        only.and_then(|at| Some((arguments.get(at + 1)?.clone(), arguments.get(at + 2)?.clone())));
    let length = Duration::from_secs(if quick { 2 } else { 8 });
    let size = match quick {
        true => webhooks::Size { length: Duration::from_secs(4), waiting: 5_000 },
        false => webhooks::Size { length: Duration::from_secs(15), waiting: 100_000 },
    };
    let pause = Duration::from_secs(if quick { 1 } else { 20 });
    let calm = Duration::from_secs(if quick { 5 } else { 60 });
    // With those of single payouts no more than a sheet holds.
    let entries = if quick { 100_000 } else { 900_000 };
    let of_a_bank = if quick { 100_000 } else { 1_000_000 };
    let many_payouts = std::env::var("PAYOUTS").ok().and_then(|many| many.parse().ok());
    let many_payouts = many_payouts.unwrap_or(if quick { 100_000 } else { 1_000_000 });
    println!("{}\n", machine());
    let tpcb = TpcB::measure(length).await;
    let swapping = Duration::from_secs(if quick { 5 } else { 60 });
    if only.is_none() {
        micro::run().await;
        rails::run(length).await;
        files::assembling().await;
        rules::decision();
        statements::run(of_a_bank);
    }
    for engine in [Engine::Postgres, Engine::Sqlite] {
        if engine == Engine::Postgres && std::env::var("TEST_POSTGRES").is_err() {
            println!("PostgreSQL: not measured (run `make bench`)");
            continue;
        }
        if let Some((wanted, run)) = &only {
            if *wanted == format!("{engine:?}").to_lowercase() {
                match run.as_str() {
                    "whole life" => whole_life::run(engine, length, tpcb).await,
                    "webhooks" => webhooks::run(engine, size).await,
                    "rules" => {
                        rules::decision();
                        rules::run(engine, length, swapping).await;
                    }
                    "70 %" => steady::run(engine, length, calm).await,
                    "outage" => outage::run(engine, length).await,
                    "recipients" => recipients::run(engine, length).await,
                    "another currency" => across::run(engine, length).await,
                    "batches" => batches::run(engine, length, entries).await,
                    "rails" => rails::run(length).await,
                    "statements" => statements::run(of_a_bank),
                    "files" => {
                        files::assembling().await;
                        files::window_of_many(engine).await;
                    }
                    "many payouts" => many::run(engine, many_payouts).await,
                    "webhooks that wait" => webhooks::after_a_pause(engine, size).await,
                    name => one(engine, name, length, tpcb).await,
                }
            }
            continue;
        }
        accepted(engine, length, pause, tpcb).await;
        recipients::run(engine, length).await;
        across::run(engine, length).await;
        batches::run(engine, length, entries).await;
        steady::run(engine, length, calm).await;
        whole_life::run(engine, length, tpcb).await;
        outage::run(engine, length).await;
        rules::run(engine, length, swapping).await;
        webhooks::run(engine, size).await;
        files::window_of_many(engine).await;
    }
}

/// The runs: name, wallets, payouts in a transaction at most, connections.
const RUNS: &[(&str, usize, usize, usize)] = &[
    ("50 wallets", 50, 256, 128),
    ("1 wallet", 1, 256, 128),
    ("50 wallets, 256 connections", 50, 256, 256),
    ("50 wallets, batch of 1", 50, 1, 128),
    ("50 wallets, 1 connection", 50, 256, 1),
];

async fn one(engine: Engine, name: &str, length: Duration, tpcb: TpcB) {
    let run = RUNS.iter().find(|run| run.0 == name).expect("a run of this name");
    let server = Server::start(engine, Setup { batch_max: run.2, dispatch: false }).await;
    let targets = server.merchants(run.1).await;
    let load = Load { base: server.base.clone(), targets, connections: run.3 };
    load.warm_up().await;
    let growth = Growth::begin(&server).await;
    let run = load.run(&server, length).await;
    println!(
        "{}\n{}\n    accepted {}",
        Run::head(),
        run.line(name),
        tpcb.against(run.per_second())
    );
    growth.print(&server, run.accepted()).await;
    server.stop().await;
}

/// Accepted payouts a second: fifty wallets, one wallet, and one payout a transaction.
async fn accepted(engine: Engine, length: Duration, pause: Duration, tpcb: TpcB) {
    println!("{engine:?}: accepted payouts (live key, fees in WASM, distinct idempotency keys)");
    println!("{}", Run::head());
    let mut rates = Vec::new();
    for &(name, wallets, batch_max, connections) in RUNS {
        let before = server::probe_disk();
        let setup = Setup { batch_max, dispatch: false };
        let server = Server::start(engine, setup).await;
        let targets = server.merchants(wallets).await;
        let load = Load { base: server.base.clone(), targets, connections };
        load.warm_up().await;
        let growth = Growth::begin(&server).await;
        let run = load.run(&server, length).await;
        println!("{}   {}   disk {before}", run.line(name), tpcb.against(run.per_second()));
        rates.push(run.per_second());
        if name == "50 wallets" {
            growth.print(&server, run.accepted()).await;
            println!("    resident memory of the host {} MB", server.resident_mb());
            server.verify();
        }
        server.stop().await;
        tokio::time::sleep(pause).await;
    }
    println!(
        "    one wallet against fifty {:.0} %, batches against single writes {:.1} x\n",
        100.0 * rates[1] / rates[0],
        rates[0] / rates[3]
    );
}

fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model.lines().find_map(|line| line.strip_prefix("model name\t: ")).unwrap_or("?");
    let host = server::program();
    format!(
        "{cpus} cores, {model}; host, database and load generator share them; the host is {}",
        host.display()
    )
}
