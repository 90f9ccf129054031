//! Packs are swapped while payouts stream in: each is decided by the packs of one moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::accounts::to;
use crate::batches::{Payroll, bulk_key, rows};
use crate::network::{Sends, live, open_bank, with_live_host, with_two_hosts};
use crate::packs::{assign, decision, fees, guard, push, restart, until_seen};
use crate::test_host::{
    Answer, Engine, TestHost, naira, unique, with, with_host, with_host_configured,
};

/// Versions of the pack that are swapped; each holds amounts that end in its number.
const VERSIONS: usize = 4;
/// Payouts of each stream.
const STREAM: usize = 40;

async fn push_all(host: &TestHost) -> Vec<String> {
    let mut digests = Vec::new();
    for version in 0..VERSIONS {
        let when = format!("amount_minor % {VERSIONS} == {version}");
        let rules = guard(
            &version.to_string(),
            "amount_minor count_per_wallet_1h",
            &[("mine", "hold", &when)],
        );
        let pushed = push(host, &rules).await.ok();
        digests.push(pushed.json["digest"].as_str().expect("a digest").to_owned());
    }
    digests
}

/// Activates one version after the other until told to stop; how many were.
async fn swap(hosts: &[&TestHost], stop: &AtomicBool) -> usize {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        let version = format!("guard/{}", swaps % VERSIONS);
        let host = hosts[swaps % hosts.len()];
        let answer = assign(host, &version, "activate", json!({})).await;
        assert!([200, 409].contains(&answer.status), "{}", answer.text);
        swaps += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    swaps
}

/// Payouts one after the other, to an account of their own.
async fn stream(host: &TestHost, serial: u32) -> Vec<Answer> {
    let mut answers = Vec::new();
    for number in 0..STREAM as u64 {
        let body = with(naira(10_000 + number), to(serial));
        answers.push(host.pay_as(&host.merchant.live_key, &unique(), body).await);
    }
    answers
}

/// Every decision is one of a pack that was pushed, and is made again the same.
async fn check(host: &TestHost, answers: &[Answer], digests: &[String]) {
    let mut used = [0; VERSIONS];
    for answer in answers {
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    // Every third is looked at closely.
    for payout in answers.iter().step_by(3) {
        let why = decision(host, &payout.id()).await;
        let digest = why["digest"].as_str().expect("a digest");
        let version = digests.iter().position(|known| known == digest).expect("a known pack");
        used[version] += 1;
        assert_eq!(why["version"], version.to_string());
        let amount = why["facts"]["amount_minor"].as_u64().expect("an amount");
        let is_held = amount % VERSIONS as u64 == version as u64;
        assert_eq!(payout.status_word() == "awaiting_admin_review", is_held, "{why}");
        assert_eq!(why["again"]["same"], true, "{why}");
    }
    assert!(used.iter().filter(|count| **count > 0).count() > 1, "{used:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_payout_fails_while_packs_are_swapped_on_two_hosts() {
    with_two_hosts(Sends::No, async |host, beside| {
        let digests = push_all(host).await;
        assign(host, "guard/0", "activate", json!({})).await.ok();
        let change = assign(host, "guard/1", "activate", json!({})).await.ok();
        crate::packs::until_seen(beside, &change).await;
        let (stop, hosts) = (AtomicBool::new(false), [&*host, beside]);
        let pay = async {
            let streams = (1..9).map(|serial| stream(hosts[serial as usize % 2], serial));
            let answers = futures::future::join_all(streams).await.concat();
            stop.store(true, Ordering::Relaxed);
            answers
        };
        let (answers, swaps) = tokio::join!(pay, swap(&hosts, &stop));
        assert!(swaps > 10, "{swaps} swaps");
        check(host, &answers, &digests).await;
    })
    .await;
}

/// The fee pack of a number is activated, then the fraud pack of that number, then the next
/// two: a price meets a decision of its own number or of the one before, never of the next.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_is_priced_and_decided_by_the_packs_of_one_moment(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let digests = push_all(host).await;
        for version in 0..VERSIONS {
            let price = format!("[[price]]\ntiers = [{{ flat_minor = {version} }}]\n");
            push(host, &fees(&version.to_string(), &price)).await.ok();
        }
        let activate = async |version: String| {
            assign(host, &version, "activate", json!({})).await.ok();
        };
        activate("prices/0".into()).await;
        activate("guard/0".into()).await;
        let stop = AtomicBool::new(false);
        let swap = async {
            for number in (1..VERSIONS).chain(0..1).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                activate(format!("prices/{number}")).await;
                activate(format!("guard/{number}")).await;
            }
        };
        let pay = async {
            let streams = (1..7).map(|serial| stream(host, serial));
            let answers = futures::future::join_all(streams).await.concat();
            stop.store(true, Ordering::Relaxed);
            answers
        };
        let (answers, ()) = tokio::join!(pay, swap);
        check(host, &answers, &digests).await;
        for answer in answers.iter().step_by(2) {
            let path = format!("/v1/payouts/{}/timeline", answer.id());
            let steps = host.get_as(&host.merchant.live_key, &path).await.ok().json;
            let version = |step: usize| steps["data"][step]["version"].as_str().expect("a version");
            let number = |step: usize| version(step).parse::<usize>().expect("a number");
            let ahead = (VERSIONS + number(1) - number(2)) % VERSIONS;
            assert!(ahead < 2, "priced by {} and decided by {}", number(1), number(2));
        }
    })
    .await;
}

/// The way to a bank, closed until somebody opens it.
struct Gate {
    url: String,
    is_open: watch::Sender<bool>,
    knocks: watch::Sender<u32>,
}

impl Gate {
    async fn before(bank: &str) -> Self {
        let bank = bank.strip_prefix("http://").expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let gate = Self { url, is_open: watch::Sender::new(false), knocks: watch::Sender::new(0) };
        let (is_open, knocks) = (gate.is_open.clone(), gate.knocks.clone());
        tokio::spawn(async move {
            while let Ok((mut host, _)) = listener.accept().await {
                knocks.send_modify(|count| *count += 1);
                let (mut is_open, bank) = (is_open.subscribe(), bank.clone());
                tokio::spawn(async move {
                    let _ = is_open.wait_for(|is_open| *is_open).await;
                    let mut inside = TcpStream::connect(&bank).await.expect("the bank");
                    let _ = tokio::io::copy_bidirectional(&mut host, &mut inside).await;
                });
            }
        });
        gate
    }

    /// Waits until somebody wants to ask the bank something.
    async fn until_knocked(&self) {
        let mut knocks = self.knocks.subscribe();
        let knocked = knocks.wait_for(|count| *count > 0);
        let knocked = tokio::time::timeout(Duration::from_secs(20), knocked).await;
        knocked.expect("in time").expect("a gate");
    }
}

/// The first rows wait for the names that the bank has on record, and the last are not looked at
/// before: the packs are others by then.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn all_rows_of_a_batch_are_priced_and_decided_by_the_packs_of_one_moment(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let gate = Gate::before(&open_bank().await).await;
    let change = |config: &mut Config| live(config, gate.url.clone(), Sends::No);
    with_host_configured(engine, change, async |host| {
        let activate = async |version: &str| {
            for pack in ["prices", "guard"] {
                let pack = format!("{pack}/{version}");
                let change = assign(host, &pack, "activate", json!({})).await.ok();
                until_seen(host, &change).await;
            }
        };
        for version in ["1", "2"] {
            let price = format!("[[price]]\ntiers = [{{ flat_minor = {version} }}]\n");
            push(host, &fees(version, &price)).await.ok();
            let rules = [("huge", "block", "amount_minor > 900000")];
            push(host, &guard(version, "amount_minor", &rules)).await.ok();
        }
        activate("1").await;
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        let swap = async {
            gate.until_knocked().await;
            activate("2").await;
            gate.is_open.send_replace(true);
        };
        let (made, ()) = tokio::join!(payroll.make(rows(20)), swap);
        let items = payroll.get(&format!("{}/items", made.ok().id())).await.ok();
        let items = items.json["data"].as_array().expect("items");
        let fees: Vec<&str> = items.iter().filter_map(|item| item["fee_minor"].as_str()).collect();
        assert_eq!(fees, ["1"; 20]);
        let priced = "SELECT COUNT(DISTINCT tariff || charges) FROM payouts";
        assert_eq!(host.count(priced).await, 1);
        let decided = "SELECT COUNT(*) FROM decisions WHERE version = '1'";
        assert_eq!(host.count(decided).await, 20);
    })
    .await;
}

/// Conditions out of parts that fit and parts that do not.
fn condition(number: usize) -> String {
    let wholes =
        ["amount_minor", "hour", "count_per_wallet_1h", "5", "-1", "9223372036854775807", "0"];
    let operators = ["+", "-", "*", "/", "%", "==", "<", ">=", "&&", "||", "in", "?"];
    let others =
        ["currency", "'NGN'", "customer", "true", "null", "first_payment", "!", "(", "[1, 2]"];
    let pick = |list: &[&'static str], salt: usize| {
        list[(number.wrapping_mul(2_654_435_761).wrapping_add(salt * 40_503) >> 7) % list.len()]
    };
    match number % 4 {
        0 => format!(
            "{} {} {} > {}",
            pick(&wholes, 1),
            pick(&operators[..5], 2),
            pick(&wholes, 3),
            pick(&wholes, 4)
        ),
        1 => format!("{} {} {}", pick(&wholes, 1), pick(&operators, 2), pick(&others, 3)),
        2 => format!("{} {} {}", pick(&others, 1), pick(&operators, 2), pick(&others, 3)),
        _ => format!(
            "customer == null || {} {} {} == {}",
            pick(&wholes, 1),
            pick(&operators[..5], 2),
            pick(&wholes, 3),
            pick(&wholes, 4)
        ),
    }
}

/// Rules at random, a dozen to a pack: those that are refused are left out, and the others
/// answer, today, again and after a restart.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn random_rules_are_refused_or_answer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let facts = "amount_minor hour count_per_wallet_1h currency customer first_payment";
        let (mut payouts, mut refused) = (Vec::new(), 0);
        for version in 0..12 {
            let conditions: Vec<String> = (0..24).map(|n| condition(version * 24 + n)).collect();
            let labels: Vec<String> = (0..24).map(|number| format!("r{number}")).collect();
            let rule =
                |number: usize| (labels[number].as_str(), "hold", conditions[number].as_str());
            let all: Vec<_> = (0..24).map(rule).collect();
            let first = push(host, &guard(&version.to_string(), facts, &all)).await;
            let mut wrong = [false; 24];
            if first.status == 422 {
                for problem in first.json["error"]["detail"]["problems"].as_array().expect("a list")
                {
                    let at = problem["at"].as_str().expect("a place");
                    let number = at.strip_prefix("rule[").and_then(|at| at.strip_suffix("].when"));
                    wrong[number.expect("a rule").parse::<usize>().expect("a number")] = true;
                }
                let right: Vec<_> = (0..24).filter(|number| !wrong[*number]).map(rule).collect();
                let pushed = push(host, &guard(&version.to_string(), facts, &right)).await.ok();
                assert_eq!(pushed.json["state"], "checked", "{}", pushed.text);
            }
            refused += wrong.iter().filter(|wrong| **wrong).count();
            assign(host, &format!("guard/{version}"), "activate", json!({})).await.ok();
            for amount in [1, 100_000, 6_660_066] {
                let paid = host.pay("paid", naira(amount)).await;
                payouts.extend(paid.json["id"].as_str().map(str::to_owned));
            }
        }
        assert!((30..250).contains(&refused), "{refused} of 288 were refused");
        assert!(payouts.len() > 20, "{}", payouts.len());
        for _ in 0..2 {
            for id in &payouts {
                let why = decision(host, id).await;
                assert_eq!(
                    (&why["again"]["same"], &why["failure"]),
                    (&json!(true), &Value::Null),
                    "{why}"
                );
            }
            restart(host, |_| {}).await;
        }
        let sql = "SELECT COUNT(*) FROM decisions WHERE action = 'hold'";
        assert!(host.count(sql).await > 0);
    })
    .await;
}
