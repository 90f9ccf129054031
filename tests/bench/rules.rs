//! Rule packs: one decision, accepted payouts with rules and without, and swaps under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use railhead::keyring::Keyring;
use railhead::rules::Pack;
use railhead::wasm::module::repack;
use railhead::wasm::pack::{Fact, Value};
use railhead::wasm::section::CustomSections;
use railhead::wasm::{CodeCache, Engines};

use super::load::{Load, Run};
use super::server::{self, Engine, Server, Setup};

const CALLS: usize = 20_000;

/// Facts that need no counter, and velocities: count and sum over five counters.
const PLAIN: [&str; 8] = [
    "amount_minor",
    "currency",
    "method",
    "kind",
    "bank_code",
    "recipient_name",
    "hour",
    "wallet_age_s",
];
const VELOCITIES: [&str; 10] = [
    "count_per_wallet_1m",
    "sum_per_wallet_1m",
    "count_per_wallet_24h",
    "sum_per_wallet_24h",
    "count_per_merchant_30d",
    "sum_per_merchant_30d",
    "count_per_recipient_1h",
    "sum_per_recipient_1h",
    "count_per_bank_24h",
    "sum_per_bank_24h",
];

/// A hundred rules that look at every fact, and one that says which version it is. No rule of
/// the hundred matches, so every condition is worked out.
fn rules(version: &str) -> String {
    let facts: Vec<String> =
        PLAIN.iter().chain(&VELOCITIES).map(|name| format!("\"{name}\"")).collect();
    let mut text = format!(
        "manifest = 1\n[pack]\nname = \"bench\"\nversion = \"{version}\"\nkind = \"fraud\"\n\
         contract = \"railhead:rules@0.1.0\"\ntitle = \"Bench\"\nfacts = [{}]\n",
        facts.join(", ")
    );
    for number in 0..100 {
        let velocity = VELOCITIES[number % VELOCITIES.len()];
        text += &format!(
            "[[rule]]\nlabel = \"rule_{number}\"\nwhen = \"currency == 'NGN' && amount_minor > \
             {number} && {velocity} > {}\"\naction = \"hold\"\nreason = \"Rule {number}\"\n",
            i64::MAX / 2
        );
    }
    text += &format!(
        "[[rule]]\nlabel = \"version_{}\"\nwhen = \"hour >= 0\"\naction = \"allow\"\n\
         reason = \"Says who decided.\"\n",
        version.replace('.', "_")
    );
    text
}

/// One decision by itself: the call into the sandbox and back.
pub(crate) fn decision() {
    let keyring = Arc::new(Keyring::from_hex(&["22".repeat(32)]).unwrap());
    let engines = Engines::start().unwrap();
    let found = railhead::built_in::COMPONENTS.iter().find(|(name, _)| *name == "rules/fraud");
    let sections = CustomSections { declaration: rules("1.0.0"), ..CustomSections::default() };
    let component = repack(found.unwrap().1, &sections).unwrap();
    let pack = Pack::load(&engines, &CodeCache::new(None, keyring), &component).unwrap();
    let plain = PLAIN.iter().map(|name| Fact {
        name: (*name).into(),
        value: match *name {
            "amount_minor" | "hour" | "wallet_age_s" => Value::Int(12),
            "currency" => Value::String("NGN".into()),
            _ => Value::String("something".into()),
        },
    });
    let counted = VELOCITIES.iter().map(|name| Fact { name: (*name).into(), value: Value::Int(7) });
    let facts: Vec<Fact> = plain.chain(counted).collect();
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let one = Instant::now();
        assert_eq!(pack.assess(&facts).unwrap().hits.len(), 1);
        times.push(one.elapsed());
    }
    times.sort_unstable();
    let us = |percent: usize| times[times.len() * percent / 100].as_nanos() as f64 / 1000.0;
    println!(
        "    decision by 100 CEL rules on 18 facts, 10 of them velocities  p50 {:.1} us, p99 {:.1} us, {} units of fuel\n",
        us(50),
        us(99),
        pack.code.fuel_max()
    );
}

/// Accepted payouts with a hundred rules and without, then with a swap every second. The machine may
/// be quicker at one moment than at another: so each is measured first and last.
pub(crate) async fn run(engine: Engine, length: Duration, swapping: Duration) {
    println!("{engine:?}: accepted payouts with fraud rules (50 wallets, 128 connections)");
    println!("{}", Run::head());
    let mut rates = [0.0; 2];
    for with_rules in [false, true, true, false] {
        let name = if with_rules { "fees, 100 fraud rules" } else { "fees only" };
        let before = server::probe_disk();
        let server = Server::start(engine, Setup { batch_max: 256, dispatch: false }).await;
        if with_rules {
            server.push_rules(&rules("1.0.0")).await;
            server.assign_rules("1.0.0").await;
        }
        let load = load(&server).await;
        let run = load.run(&server, length / 2).await;
        println!("{}   disk {before}", run.line(name));
        rates[usize::from(with_rules)] += run.per_second();
        server.stop().await;
    }
    println!("    with rules against without: {:.0} %", 100.0 * rates[1] / rates[0]);
    swaps(engine, swapping).await;
}

async fn swaps(engine: Engine, length: Duration) {
    let server = Server::start(engine, Setup { batch_max: 256, dispatch: false }).await;
    let versions = ["1.0.0", "2.0.0"];
    for version in versions {
        server.push_rules(&rules(version)).await;
    }
    server.assign_rules(versions[0]).await;
    let load = load(&server).await;
    let swapping = async {
        let begun = Instant::now();
        let mut swaps = 0;
        while begun.elapsed() < length {
            tokio::time::sleep(Duration::from_secs(1)).await;
            swaps += 1;
            server.assign_rules(versions[swaps % 2]).await;
        }
        swaps
    };
    let (run, swaps) = tokio::join!(load.run(&server, length), swapping);
    println!("{}", run.line("the same, swapping"));
    let decided = server.decisions().await;
    let mixed: i64 = decided
        .iter()
        .filter(|(version, hits, _)| {
            let own = format!("version_{}", version.replace('.', "_"));
            !(hits.contains(&own) && hits.matches("version_").count() == 1)
        })
        .map(|(_, _, count)| count)
        .sum();
    let by_version: Vec<String> =
        decided.iter().map(|(version, _, count)| format!("{count} by {version}")).collect();
    println!(
        "    {swaps} swaps, one a second: {} decisions by a mixed version ({})",
        mixed,
        by_version.join(", ")
    );
    server.verify();
    println!();
    server.stop().await;
}

async fn load(server: &Server) -> Load {
    let targets = server.merchants(50).await;
    let load = Load { base: server.base.clone(), targets, connections: 128 };
    load.warm_up().await;
    load
}
