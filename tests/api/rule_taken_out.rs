//! Fraud packs that keep failing are taken out, and what they would have decided is held. Whoever
//! has a test key, or only one merchant's keys, cannot bring that about.

use std::sync::Arc;

use http::Method;
use railhead::config::{AfterFailures, Config};
use railhead::operator::assignments::take_out;
use railhead::rules::Pack;
use rstest::rstest;
use serde_json::{Value, json};

use crate::network::{Sends, live, open_bank, with_live_host, with_two_hosts};
use crate::packs::{
    adopt, assign, audited, decision, guard, read, restart, shown, until, until_seen,
};
use crate::rule_hostile::{AMOUNT, adopt_hostile};
use crate::test_host::{Answer, Engine, Merchant, TestHost, naira, unique, with_host_configured};

/// What the pack decides about.
const FINE: u64 = 100_000;
const HELD: &str = "awaiting_admin_review";
const LIMIT: usize = 5;

async fn pay(host: &TestHost, key: &str, amount: u64) -> Answer {
    host.pay_as(key, &unique(), naira(amount)).await.ok()
}

/// The merchant of the host and two others.
async fn three(host: &TestHost) -> [Merchant; 3] {
    let own = host.merchant.clone();
    [own, host.new_merchant("Second").await, host.new_merchant("Third").await]
}

/// Has the pack fail about so many live payouts, of one merchant after the other.
async fn fail(host: &TestHost, merchants: &[Merchant], times: usize) {
    for merchant in merchants.iter().cycle().take(times) {
        assert_eq!(pay(host, &merchant.live_key, AMOUNT).await.status_word(), HELD);
    }
}

/// The most failures in a row of a pack, and whether any is to be taken out.
fn failures(host: &TestHost) -> (u32, bool) {
    let packs = host.app().packs.now().packs();
    let most = packs.iter().map(|pack| pack.failures()).max().unwrap_or(0);
    (most, packs.iter().any(|pack| pack.keeps_failing()))
}

async fn state(host: &TestHost, version: &str) -> (Value, Value) {
    let pack = shown(host, version).await;
    (pack["state"].clone(), pack["held_for"].clone())
}

async fn until_taken_out(host: &TestHost, version: &str) {
    until("taken out", async || host.app().packs.now().held == 1).await;
    assert_eq!(state(host, version).await.0, "taken_out");
}

/// A payout is held, for want of a pack, and the operator sees why.
async fn is_held(host: &TestHost, key: &str) {
    let held = pay(host, key, FINE).await;
    assert_eq!(held.status_word(), HELD, "{}", held.text);
    assert_eq!(held.json["hold_reason"], "This payout is being reviewed.");
    let why = decision(host, &held.id()).await;
    assert_eq!((&why["hits"][0]["label"], &why["pack"]), (&json!("rules_failed"), &Value::Null));
    let failure = why["failure"].as_str().expect("why");
    assert!(failure.contains("taken out"), "{failure}");
}

/// Figures are kept for a second.
async fn until_told(host: &TestHost, line: &str) {
    let told = async || {
        let figures = host.send(Method::GET, "/metrics", "", &[], None).await.ok().text;
        figures.lines().any(|told| told == line)
    };
    until(line, told).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_text_in_a_request_uses_up_the_fuel_of_a_pack(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let rules = [("odd", "hold", "sender_country.contains('?')")];
        adopt(host, &guard("1", "sender_country", &rules)).await;
        let from = |country: &str| {
            let mut body = naira(FINE);
            body["sender"] = json!({ "first_name": "Ada", "country": country });
            body
        };
        for key in [&host.merchant.test_key, &host.merchant.live_key] {
            for length in [201, 900_000] {
                let refused = host.pay_as(key, &unique(), from(&"x".repeat(length))).await;
                assert_eq!(refused.refused(), (400, "invalid_field"), "{length}");
                assert_eq!(refused.field(), "sender.country");
            }
            host.pay_as(key, &unique(), from("NG")).await.ok();
        }
        assert_eq!(failures(host), (0, false));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_in_the_sandbox_takes_no_pack_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        adopt_hostile(host, "1", "trap").await;
        let merchants = three(host).await;
        for merchant in merchants.iter().cycle().take(4 * LIMIT) {
            assert_eq!(pay(host, &merchant.test_key, AMOUNT).await.status_word(), HELD);
        }
        assert_eq!(failures(host), (0, false));
        // Nor does what goes well there forgive what fails in earnest.
        fail(host, &merchants, LIMIT - 1).await;
        pay(host, &host.merchant.test_key, FINE).await;
        assert_eq!(failures(host), (4, false));
        assert_eq!(state(host, "hostile/1").await, (json!("active"), json!([])));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_for_fewer_than_three_merchants_takes_no_pack_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        adopt_hostile(host, "1", "trap").await;
        let merchants = three(host).await;
        fail(host, &merchants[..1], 2 * LIMIT).await;
        assert_eq!(failures(host), (10, false));
        fail(host, &merchants[..2], LIMIT).await;
        assert_eq!(failures(host), (15, false));
        // A success ends the row, and whose failures they were is forgotten with it.
        assert_eq!(pay(host, &merchants[0].live_key, FINE).await.status_word(), "queued");
        fail(host, &merchants[1..], LIMIT).await;
        assert_eq!(failures(host), (5, false));
        assert_eq!(state(host, "hostile/1").await, (json!("active"), json!([])));
        // Nor does a pack of one merchant give way, though it fails each time. Whatever failed
        // before somebody changed who decides for whom does not count any more.
        let own = json!({ "merchant_id": merchants[0].id });
        assign(host, "hostile/1", "activate", own).await.ok();
        assign(host, "hostile/1", "retire", json!({})).await.ok();
        fail(host, &merchants[..1], 2 * LIMIT).await;
        let active_for = shown(host, "hostile/1").await["active_for"].clone();
        assert_eq!((failures(host).1, active_for), (false, json!([merchants[0].id])));
        assert!(audited(host).await.iter().all(|(action, _)| action != "rule_pack.take_out"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_a_pack_was_taken_out_everything_is_held_until_somebody_assigns_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let url = open_bank().await;
    let change = |config: &mut Config| live(config, url.clone(), Sends::No);
    with_host_configured(engine, change, async |host| {
        let large = [("large", "hold", "amount_minor > 50000000")];
        adopt(host, &guard("1", "amount_minor", &large)).await;
        let merchants = three(host).await;
        let apart = host.new_merchant("With a pack of its own").await;
        let own = json!({ "merchant_id": apart.id });
        assign(host, "guard/1", "activate", own).await.ok();
        adopt_hostile(host, "1", "trap").await;
        until_told(host, "railhead_rule_packs_held 0").await;
        fail(host, &merchants, LIMIT).await;
        until_taken_out(host, "hostile/1").await;
        let generation = host.app().packs.now().generation;
        for _ in 0..2 {
            for key in [&merchants[0].test_key, &merchants[1].live_key, &merchants[2].live_key] {
                is_held(host, key).await;
            }
            assert_eq!(pay(host, &apart.live_key, FINE).await.status_word(), "queued");
            assert_eq!(state(host, "hostile/1").await, (json!("taken_out"), json!(["platform"])));
            let before = shown(host, "guard/1").await;
            assert_eq!(before["active_for"], json!([apart.id]), "nobody put it back");
            host.advance(2);
            until_told(host, "railhead_rule_packs_held 1").await;
            restart(host, change).await;
        }
        // Once is enough: nothing was exchanged again.
        assert_eq!(host.app().packs.now().generation, generation);
        let log = read(host, "audit?limit=100").await.ok().json["data"].clone();
        let taken = log.as_array().expect("lines").iter();
        let taken: Vec<_> = taken.filter(|line| line["action"] == "rule_pack.take_out").collect();
        assert_eq!((taken.len(), &taken[0]["actor"]), (1, &json!("host")), "{taken:?}");
        assert_eq!(taken[0]["before"], json!({ "scope": "platform", "active": "hostile/1" }));
        assert_eq!(taken[0]["after"], json!({ "scope": "platform", "active": "hold" }));
        assign(host, "guard/1", "rollback", json!({})).await.ok();
        assert_eq!(state(host, "hostile/1").await, (json!("retired"), json!([])));
        assert_eq!(pay(host, &merchants[1].live_key, FINE).await.status_word(), "queued");
        until_told(host, "railhead_rule_packs_held 0").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_knows_better_may_try_again_or_let_go_of_what_is_held(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let merchants = three(host).await;
        adopt_hostile(host, "1", "trap").await;
        fail(host, &merchants, LIMIT).await;
        until_taken_out(host, "hostile/1").await;
        // It fails as often again before it is taken out again.
        let change = assign(host, "hostile/1", "activate", json!({})).await.ok();
        assert_eq!(
            (failures(host), state(host, "hostile/1").await.0),
            ((0, false), json!("active"))
        );
        fail(host, &merchants, LIMIT - 1).await;
        assert_eq!(failures(host), (4, false));
        assert_eq!(host.app().packs.now().generation, change.json["generation"]);
        fail(host, &merchants, 1).await;
        until_taken_out(host, "hostile/1").await;
        is_held(host, &merchants[0].live_key).await;
        assign(host, "hostile/1", "retire", json!({})).await.ok();
        assert_eq!(state(host, "hostile/1").await, (json!("retired"), json!([])));
        assert_eq!(pay(host, &merchants[0].live_key, AMOUNT).await.status_word(), "queued");
        let refused = assign(host, "hostile/1", "retire", json!({})).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_host_holds_what_one_has_seen_fail() {
    with_two_hosts(Sends::No, async |host, beside| {
        let merchants = three(host).await;
        let change = adopt_hostile(host, "1", "trap").await;
        until_seen(beside, &change).await;
        fail(host, &merchants, LIMIT).await;
        until_taken_out(host, "hostile/1").await;
        until("held here too", async || beside.app().packs.now().held == 1).await;
        is_held(beside, &merchants[0].live_key).await;
        assert_eq!(state(beside, "hostile/1").await, (json!("taken_out"), json!(["platform"])));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_version_before_decides_where_the_operator_chose_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let url = open_bank().await;
    let change = |config: &mut Config| {
        live(config, url.clone(), Sends::No);
        config.rules.after_failures = AfterFailures::Previous;
    };
    with_host_configured(engine, change, async |host| {
        let merchants = three(host).await;
        adopt(host, &guard("1", "amount_minor", &[("held", "hold", "amount_minor == 444444")]))
            .await;
        adopt_hostile(host, "1", "trap").await;
        adopt_hostile(host, "2", "loop").await;
        // The version before fails as well: the one before that is the first that does not.
        for version in ["hostile/2", "hostile/1"] {
            fail(host, &merchants, LIMIT).await;
            let number = version.trim_start_matches("hostile/");
            let is_failing = |pack: &Arc<Pack>| {
                (pack.about.name.as_str(), pack.about.version.as_str()) == ("hostile", number)
            };
            let is_out = async || !host.app().packs.now().packs().iter().any(is_failing);
            until("taken out", is_out).await;
            assert_eq!(state(host, version).await.0, "retired");
        }
        assert_eq!(state(host, "guard/1").await.0, "active");
        let paid = pay(host, &merchants[0].live_key, AMOUNT).await;
        assert_eq!(paid.status_word(), "queued", "{}", paid.text);
        let taken = audited(host).await;
        let by_host = taken.iter().filter(|(action, _)| action == "rule_pack.take_out");
        assert_eq!(by_host.clone().count(), 2, "{taken:?}");
        assert!(by_host.clone().all(|(_, actor)| actor == "host"), "{taken:?}");
        // What an operator has retired, or gone back from, is not put back.
        let loose = guard("2", "amount_minor", &[("never", "block", "amount_minor < 0")]);
        adopt(host, &loose).await;
        assign(host, "guard/1", "rollback", json!({})).await.ok();
        let packs = host.app().packs.now().packs();
        let named = |name: &str| {
            let is = |pack: &&Arc<Pack>| pack.about.name == name;
            packs.iter().find(is).cloned().expect("one")
        };
        assert!(take_out(host.app(), &named("guard")).await.expect("taken out"));
        assert_eq!(state(host, "guard/1").await.0, "taken_out");
        assert_eq!(state(host, "guard/2").await.0, "retired");
        assign(host, "guard/1", "activate", json!({})).await.ok();
        // Where nobody else ever decided there is nobody to put back.
        let own = json!({ "merchant_id": merchants[0].id });
        assign(host, "guard/1", "retire", json!({})).await.ok();
        assign(host, "hostile/1", "activate", own.clone()).await.ok();
        let failing = host.app().packs.now().packs();
        let failing = failing.into_iter().find(|pack| pack.about.name == "hostile").expect("one");
        assert!(take_out(host.app(), &failing).await.expect("taken out"));
        let held_for = json!([merchants[0].id]);
        assert_eq!(state(host, "hostile/1").await, (json!("taken_out"), held_for));
        is_held(host, &merchants[0].live_key).await;
        assert_eq!(pay(host, &merchants[1].live_key, FINE).await.status_word(), "queued");
    })
    .await;
}
