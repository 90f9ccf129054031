//! A rule pack that does everything that a rule pack must not, as its rules say: while it reads
//! them, whenever it is asked, or only about payouts of one amount that no check makes up.
//! Otherwise it holds every payout of 4,444.44.

#![cfg(target_family = "wasm")]
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "what a pack must not do")]

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/rules.wit",
        inline: "
            package railhead:hostile;
            world hostile {
                export railhead:rules/pack@0.1.0;
                export railhead:rules/fraud@0.1.0;
                export railhead:rules/fees@0.1.0;
            }
        ",
        world: "railhead:hostile/hostile",
        generate_all,
    });
    export!(Hostile);
    use super::Hostile;
}

#[cfg(feature = "clock")]
#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod host {
    wit_bindgen::generate!({
        path: "../../wit/host.wit",
        inline: "
            package railhead:hostile;
            world curious { import railhead:host/clock@1.0.0; }
        ",
        world: "railhead:hostile/curious",
        generate_all,
    });
}

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod dice {
    wit_bindgen::generate!({
        inline: "
            package wasi:random@0.2.0;
            interface random { get-random-bytes: func(len: u64) -> list<u8>; get-random-u64: func() -> u64; }
            world dice { import random; }
        ",
    });
}

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bindings::exports::railhead::rules::fraud::{Action, Fact, Guest, Hit, Verdict};
use bindings::exports::railhead::rules::{fees, pack};
use bindings::railhead::rules::facts::Value;

struct Hostile;

/// What is done to payouts of this amount, or to all.
const AMOUNT: i64 = 6_660_066;
const HELD: i64 = 444_444;

static RULES: OnceLock<String> = OnceLock::new();
static CALLS: AtomicU64 = AtomicU64::new(0);

/// The value of `name = "value"` in the rules.
fn said(name: &str) -> Option<&'static str> {
    let lines = RULES.get()?.lines();
    let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    values.next().map(|value| value.trim_matches('"'))
}

impl pack::Guest for Hostile {
    fn open(rules: String) -> Result<(), Vec<pack::Problem>> {
        drop(RULES.set(rules));
        match said("opening") {
            Some("problems") => {
                let problem = || pack::Problem { at: "rule[7]".into(), message: "no".into() };
                Err((0..3).map(|_| problem()).collect())
            }
            Some(deed) => {
                run(deed, 0);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Guest for Hostile {
    fn assess(payouts: Vec<Vec<Fact>>) -> Vec<Verdict> {
        #[cfg(feature = "files")]
        black_box(std::fs::read("/etc/passwd").is_ok());
        #[cfg(feature = "clock")]
        black_box(host::railhead::host::clock::now_ms());
        if let Some("few" | "many") = said("always") {
            let wanted = if said("always") == Some("few") { 0 } else { payouts.len() + 1 };
            return (0..wanted).map(|_| verdict(Action::Allow, Vec::new())).collect();
        }
        let mut verdicts: Vec<Verdict> = payouts.iter().map(|facts| decide(facts)).collect();
        match (said("deed"), payouts.iter().any(|facts| amount(facts) == AMOUNT)) {
            (Some("few"), true) => verdicts.clear(),
            (Some("many"), true) => verdicts.push(verdict(Action::Allow, Vec::new())),
            _ => {}
        }
        verdicts
    }
}

impl fees::Guest for Hostile {
    /// One kobo, or what is asked for.
    fn price(payouts: Vec<Vec<Fact>>) -> Vec<Result<Vec<fees::Line>, String>> {
        let line = |label: &str, amount_minor| fees::Line {
            kind: fees::Kind::Fee,
            label: label.into(),
            amount_minor,
        };
        let price = |facts: &Vec<Fact>| match (said("always"), said("deed"), amount(facts)) {
            (Some(deed), ..) | (None, Some(deed), AMOUNT) => match deed {
                "negative" => vec![line(deed, -1)],
                "long" => vec![line(&deed.repeat(500), 1)],
                "crowd" => (0..200).map(|_| line(deed, 1)).collect(),
                deed => {
                    run(deed, 0);
                    Vec::new()
                }
            },
            _ => vec![line("Fee", 1)],
        };
        payouts.iter().map(|facts| Ok(price(facts))).collect()
    }
}

fn amount(facts: &[Fact]) -> i64 {
    match facts.iter().find(|fact| fact.name == "amount_minor").map(|fact| &fact.value) {
        Some(Value::Int(amount)) => *amount,
        _ => 0,
    }
}

fn decide(facts: &[Fact]) -> Verdict {
    let calls = CALLS.fetch_add(1, Ordering::Relaxed);
    match (said("always"), said("deed"), amount(facts)) {
        (Some(deed), _, _) | (None, Some(deed), AMOUNT) => run(deed, calls),
        (_, _, HELD) => verdict(Action::Hold, vec![hit("quiet", Action::Hold, "As asked.".into())]),
        _ => verdict(Action::Allow, Vec::new()),
    }
}

fn verdict(action: Action, hits: Vec<Hit>) -> Verdict {
    Verdict { action, hits }
}

fn hit(label: &str, action: Action, reason: String) -> Hit {
    Hit { label: label.into(), action, reason, public: None }
}

/// Does what is asked for. What it answers is as good as nothing.
fn run(deed: &str, calls: u64) -> Verdict {
    let hold =
        |label: &str, reason: String| verdict(Action::Hold, vec![hit(label, Action::Hold, reason)]);
    match deed {
        "loop" => loop {
            black_box(deed);
        },
        "allocate" => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        "recurse" => {
            black_box(dig(u64::MAX));
            hold(deed, String::new())
        }
        "trap" => panic!("as asked"),
        "exit" => std::process::exit(0),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3_600));
            hold(deed, "Good morning.".into())
        }
        "shout" => loop {
            println!("{deed}");
        },
        // Costs the guest next to nothing, and the host 50 MB.
        "dice" => {
            black_box(dice::wasi::random::random::get_random_bytes(50 << 20));
            hold(deed, String::new())
        }
        "giant" => hold(deed, "x".repeat(8 << 20)),
        "long" => hold(deed, "x".repeat(501)),
        "talkative" | "mute" => {
            let public = if deed == "mute" { String::new() } else { "x".repeat(501) };
            let hit = Hit { public: Some(public), ..hit(deed, Action::Hold, "Why not.".into()) };
            verdict(Action::Hold, vec![hit])
        }
        "nameless" => hold("", "Why not.".into()),
        "crowd" => {
            let hits = (0..1_001).map(|_| hit(deed, Action::Hold, "One of many.".into()));
            verdict(Action::Hold, hits.collect())
        }
        "mild" => verdict(Action::Allow, vec![hit(deed, Action::Block, "Yet it goes.".into())]),
        "harsh" => verdict(Action::Block, vec![hit(deed, Action::Allow, "It goes.".into())]),
        "remember" if calls % 2 == 1 => hold(deed, "Every other payout.".into()),
        "time" => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            hold(deed, format!("{now:?} {:?}", std::env::vars().collect::<Vec<_>>()))
        }
        _ => verdict(Action::Allow, Vec::new()),
    }
}

fn dig(depth: u64) -> u64 {
    let ballast = black_box([depth; 64]);
    if depth == 0 { 0 } else { dig(depth - 1) ^ ballast[7] }
}
