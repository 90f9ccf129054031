//! What the active pack decides about payouts, and that each decision can be made again.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::network::{Sends, with_live_host};
use crate::packs::{
    Rule, adopt, assign, blocked, decision, fees, guard, push, read, restart, version_of,
};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

const FACTS: &str = "currency amount_minor count_per_wallet_1h";
/// Held above 2,000.00, blocked above 3,000.00.
const RULES: [Rule<'_>; 3] = [
    ("large", "hold", "amount_minor > 200000"),
    ("huge", "block", "currency == 'NGN' && amount_minor > 300000"),
    ("any", "allow", "amount_minor > 0"),
];
/// What a payout of 2,500.00 takes, fee and tax included.
const COST: i64 = 251_075;
const START: i64 = 100_000_000;

async fn pay(host: &TestHost, amount: u64) -> Answer {
    host.pay("paid", naira(amount)).await
}

fn hits(labels: &[(&str, &str)]) -> Value {
    let hits = labels.iter().map(|(label, action)| {
        json!({ "label": label, "action": action, "reason": format!("The rule {label} says so.") })
    });
    hits.collect()
}

/// The same hits as merchants see them, with what they read about each.
fn told(labels: &[(&str, &str)]) -> Value {
    let hits = labels.iter().map(|(label, message)| json!({ "label": label, "message": message }));
    hits.collect()
}

/// What a merchant reads where the rule has no words for it.
const REVIEWED: &str = "This payout is being reviewed.";
const REFUSED: &str = "This payout is refused by the platform's rules.";
const FREE: &str = "This payout may go.";

/// The step of a payout's timeline that shows the decision.
async fn step(host: &TestHost, id: &str) -> Value {
    let timeline = host.get(&format!("/v1/payouts/{id}/timeline")).await.ok();
    let steps = timeline.json["data"].as_array().expect("steps").clone();
    let mut decided = steps.into_iter().filter(|step| step["digest"].is_string());
    decided.find(|step| step["hits"].is_array()).expect("a decision")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_is_held_waits_for_the_operator(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        adopt(host, &guard("1", FACTS, &RULES)).await;
        let wallet = host.merchant.test_wallet.clone();
        let held = pay(host, 250_000).await;
        assert_eq!((held.status, held.status_word()), (201, "awaiting_admin_review"));
        assert_eq!(host.balance(&wallet).await, START);
        let id = held.id();
        let timeline = host.get(&format!("/v1/payouts/{id}/timeline")).await.ok();
        let steps = timeline.json["data"].as_array().expect("steps");
        let hold = steps.iter().find(|step| step["type"] == "hold").expect("why it is held");
        assert_eq!(hold["reason"], REVIEWED, "{}", timeline.text);
        let why = decision(host, &id).await;
        assert_eq!(
            (&why["action"], &why["hits"]),
            (&json!("hold"), &hits(&[("large", "hold"), ("any", "allow"),]))
        );
        let release = json!({ "reason": "known" });
        host.admin(Method::POST, &format!("payouts/{id}/release"), release).await.ok();
        let paid = host.until(&host.merchant.test_key, &id, "paid").await;
        assert_eq!(host.balance(&wallet).await, START - COST, "{}", paid.text);
        assert_eq!(decision(host, &id).await["again"]["same"], true);
        assert_eq!(host.count("SELECT COUNT(*) FROM decisions").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_is_blocked_leaves_its_decision_and_nothing_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let adopted = adopt(host, &guard("1", FACTS, &RULES)).await;
        let (key, once) = (host.merchant.test_key.clone(), unique());
        let body = with(naira(350_000), json!({ "merchant_reference": "invoice 7" }));
        let refused = host.pay_as(&key, &once, body.clone()).await;
        let id = blocked(&refused);
        let seen = told(&[("large", REVIEWED), ("huge", REFUSED), ("any", FREE)]);
        assert_eq!(refused.json["error"]["detail"]["hits"], seen);
        let expected = hits(&[("large", "hold"), ("huge", "block"), ("any", "allow")]);
        for (table, sql) in [
            ("payouts", "SELECT COUNT(*) FROM payouts"),
            ("events", "SELECT COUNT(*) FROM events WHERE type LIKE 'payout.%'"),
            ("beneficiaries", "SELECT COUNT(*) FROM beneficiaries"),
            ("idempotency keys", "SELECT COUNT(*) FROM idempotency_keys"),
            ("counters", "SELECT COUNT(*) FROM counters"),
        ] {
            assert_eq!(host.count(sql).await, 0, "{table}");
        }
        assert_eq!(host.balance(&host.merchant.test_wallet).await, START);
        assert_eq!(host.get(&format!("/v1/payouts/{id}")).await.refused().0, 404);
        let why = decision(host, &id).await;
        assert_eq!((&why["action"], &why["hits"]), (&json!("block"), &expected));
        let facts = json!({ "currency": "NGN", "amount_minor": 350_000, "count_per_wallet_1h": 1 });
        assert_eq!(why["facts"], facts);
        assert_eq!((&why["again"]["same"], &why["version"]), (&json!(true), &json!("1")));
        assert_eq!(why["merchant_id"], host.merchant.id);
        // The key and the reference are free: the same call may succeed under other rules.
        assign(host, &version_of(&adopted), "retire", json!({})).await.ok();
        assert_eq!(host.pay_as(&key, &once, body).await.ok().status, 201);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_made_again_by_the_pack_that_made_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rules = guard("1", FACTS, &RULES);
        let digest = push(host, &rules).await.ok().json["digest"].clone();
        assign(host, "guard/1", "activate", json!({})).await.ok();
        let allowed = pay(host, 100_000).await.ok().id();
        let held = pay(host, 250_000).await.ok().id();
        let refused = blocked(&pay(host, 350_000).await);
        let shown = step(host, &held).await;
        assert_eq!((&shown["pack"], &shown["version"]), (&json!("guard"), &json!("1")));
        assert_eq!((&shown["digest"], &shown["action"]), (&digest, &json!("hold")));
        assert_eq!(shown["hits"], told(&[("large", REVIEWED), ("any", FREE)]));
        // Other rules decide now, then none, then those of another process.
        let other = guard("2", "amount_minor", &[("all", "block", "amount_minor > 0")]);
        for change in 0..3 {
            match change {
                0 => drop(adopt(host, &other).await),
                1 => drop(assign(host, "guard/2", "retire", json!({})).await.ok()),
                _ => restart(host, |_| {}).await,
            }
            for (id, action) in [(&allowed, "allow"), (&held, "hold"), (&refused, "block")] {
                let why = decision(host, id).await;
                assert_eq!((&why["digest"], &why["action"]), (&digest, &json!(action)));
                assert_eq!(why["again"]["same"], true, "{why}");
                assert_eq!(why["again"]["verdict"]["hits"], why["hits"]);
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_facts_were_changed_is_not_the_same(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        adopt(host, &guard("1", FACTS, &RULES)).await;
        let id = pay(host, 100_000).await.ok().id();
        let armed = host.disarm("decisions").await;
        let change = async |from: &str, to: &str| {
            let sql = "UPDATE decisions SET facts = REPLACE(facts, $1, $2)";
            let query = sqlx::query(sql).bind(from).bind(to);
            query.execute(host.app().db.pool()).await.expect("changed");
        };
        change("100000", "900000").await;
        let why = decision(host, &id).await;
        assert_eq!(why["again"]["same"], false);
        let told = why["again"]["failure"].as_str().expect("why not");
        assert!(told.contains("digest differs"), "{told}");
        change("900000", "100000").await;
        host.run(&armed).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_a_held_payout_is_answered_with_the_same_bytes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        adopt(host, &guard("1", FACTS, &RULES)).await;
        let (key, once) = (host.merchant.live_key.clone(), unique());
        let first = host.pay_as(&key, &once, naira(250_000)).await.ok();
        // Rules that would block it now do not matter any more.
        let other = guard("2", "amount_minor", &[("all", "block", "amount_minor > 0")]);
        adopt(host, &other).await;
        let again = host.pay_as(&key, &once, naira(250_000)).await.ok();
        assert_eq!(again.text, first.text);
        assert_eq!(host.count("SELECT COUNT(*) FROM decisions").await, 1);
    })
    .await;
}

/// The reason of a rule is for operators. Merchants read what the rule says to them, wherever they
/// look.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn merchants_read_what_the_rules_say_to_them_and_operators_everything(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let large = "reason = \"The rule large says so.\"\n";
        let (size, twice) = ("Payouts of this size are reviewed.", "Nobody is paid so much.");
        let mut rules = guard("1", FACTS, &RULES);
        rules = rules.replace(large, &format!("{large}public = {size:?}\n"));
        let huge = "reason = \"The rule huge says so.\"\n";
        rules = rules.replace(huge, &format!("{huge}public = {twice:?}\n"));
        for label in ["one", "another", "third"] {
            let public = if label == "third" { "" } else { "public = \"We look twice.\"\n" };
            rules += &format!(
                "[[rule]]\nlabel = {label:?}\naction = \"hold\"\nwhen = \"amount_minor == 777\"\n\
                 reason = \"The rule {label} says so.\"\n{public}"
            );
        }
        // What allows ends the look: here it matches nothing.
        let rules = rules.replace("\"amount_minor > 0\"", "\"amount_minor == 78\"");
        adopt(host, &rules).await;

        let held = pay(host, 250_000).await.ok();
        let id = held.id();
        let payout = host.get(&format!("/v1/payouts/{id}")).await.ok();
        let events = host.get("/v1/events").await.ok();
        let mut news = events.json["data"].as_array().expect("events").iter();
        let event = news.find(|event| event["event"] == "payout.held").expect("an event");
        let list = host.get("/v1/payouts").await.ok();
        for object in [&held.json, &payout.json, &list.json["data"][0], &event["data"]] {
            assert_eq!(object["hold_reason"], size, "{object}");
        }
        let timeline = host.get(&format!("/v1/payouts/{id}/timeline")).await.ok();
        assert_eq!(step(host, &id).await["hits"], told(&[("large", size)]));
        let refused = pay(host, 350_000).await;
        let seen = told(&[("large", size), ("huge", twice)]);
        assert_eq!(refused.json["error"]["detail"]["hits"], seen);
        for answer in [&held, &payout, &events, &list, &timeline, &refused] {
            assert!(!answer.text.contains("says so"), "{}", answer.text);
        }
        // Several rules: what they say, each thing once, in their order.
        let several = pay(host, 777).await.ok();
        assert_eq!(several.json["hold_reason"], format!("We look twice. {REVIEWED}"));

        let why = decision(host, &id).await;
        let reason = "The rule large says so.";
        let hit = json!({ "label": "large", "action": "hold", "reason": reason, "public": size });
        assert_eq!((&why["hits"], &why["again"]["same"]), (&json!([hit]), &json!(true)), "{why}");
        assert_eq!(decision(host, &blocked(&refused)).await["hits"][1]["public"], twice);
        let release = json!({ "reason": "known" });
        host.admin(Method::POST, &format!("payouts/{id}/release"), release).await.ok();
        let paid = host.until(&host.merchant.test_key, &id, "paid").await;
        assert_eq!(paid.json.get("hold_reason"), None, "{}", paid.text);
    })
    .await;
}

/// The example of the pages, and the recipient that the API's own documentation gives as one: the
/// bank's name takes the place of the one in the request.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_rules_let_the_examples_go(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        assign(host, "fraud/1.0.0", "activate", json!({})).await.ok();
        let (test, live) = (host.merchant.test_key.clone(), host.merchant.live_key.clone());
        let example = |amount: u64, name: Value| {
            with(
                naira(amount),
                json!({
                    "narration": "Invoice 1001",
                    "recipient": {
                        "account_number": "0123456785", "bank_code": "058", "name": name,
                    },
                }),
            )
        };
        let paid = host.pay_as(&test, &unique(), example(1_500_000, Value::Null)).await.ok();
        assert_eq!(paid.status_word(), "paid", "{}", paid.text);
        let record = paid.json["recipient_name"].as_str().expect("a name").to_owned();
        for name in ["Ada Obi", "Xx Qq", &record] {
            let paid = host.pay_as(&test, &unique(), example(1_500_000, json!(name))).await.ok();
            assert_eq!(paid.status_word(), "paid", "{name}: {}", paid.text);
            assert_eq!(paid.json["recipient_name"], record, "{name}");
        }
        // In earnest a slip is none either; somebody else's account is.
        let first = record.split(' ').next().expect("a word");
        let married = format!("{first} Uzoamaka");
        let misspelt = record.replacen('A', "E", 1);
        for (amount, (name, status)) in (1_500_000..).zip([
            (record.as_str(), "queued"),
            (first, "queued"),
            (&married, "queued"),
            (&misspelt, "queued"),
            ("Xx Qq", "awaiting_admin_review"),
        ]) {
            let paid = host.pay_as(&live, &unique(), example(amount, json!(name))).await.ok();
            assert_eq!(paid.status_word(), status, "{name}: {}", paid.text);
            let public = "The name of the recipient is not the name on the account.";
            let told = paid.json["hold_reason"].as_str();
            assert_eq!(told, (status != "queued").then_some(public), "{name}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_a_pack_nothing_is_decided(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = pay(host, 350_000).await.ok().id();
        assert_eq!(host.count("SELECT COUNT(*) FROM decisions").await, 0);
        let path = format!("payouts/{id}/decision");
        assert_eq!(read(host, &path).await.refused(), (404, "not_found"));
        assert_eq!(read(host, "payouts/x/decision").await.refused(), (404, "not_found"));
    })
    .await;
}

/// What a merchant is told that a payout costs, and what it is charged.
async fn quote_and_charge(host: &TestHost, amount: u64) -> (i64, i64) {
    let body = json!({ "currency": "NGN", "amount_minor": amount.to_string() });
    let quote = host.post("/v1/payouts/quote", body).await.ok();
    let before = host.balance(&host.merchant.test_wallet).await;
    pay(host, amount).await.ok();
    let charged = before - host.balance(&host.merchant.test_wallet).await;
    let total = quote.json["total_debit_minor"].as_str().expect("a total");
    (total.parse().expect("a number"), charged)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_is_what_is_charged_whoever_pays_and_however_much(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let tiers = |flat: u64| {
            format!(
                "tiers = [{{ up_to_minor = 200000, flat_minor = {flat} }}, \
                 {{ flat_minor = 100, percent = \"1.5\" }}]\ntax_percent = \"7.5\"\n"
            )
        };
        let own = format!("[[price]]\nwhen = {{ merchant = {:?} }}\n", host.merchant.id);
        let general = "[[price]]\nwhen = { currency = \"NGN\" }\n";
        let prices = own + &tiers(3_000) + general + &tiers(500);
        for (amount, built_in, cost) in [
            (100_000, 1_075, 3_225),
            (200_000, 1_075, 3_225),
            (200_001, 1_075, 3_332),
            (1_000_000, 7_688, 16_232),
        ] {
            let total = i64::try_from(amount).expect("small");
            assert_eq!(quote_and_charge(host, amount).await, (total + built_in, total + built_in));
            adopt(host, &fees(&format!("1.{amount}"), &prices)).await;
            assert_eq!(quote_and_charge(host, amount).await, (total + cost, total + cost));
            let version = format!("prices/1.{amount}");
            assign(host, &version, "retire", json!({})).await.ok();
        }
        adopt(host, &fees("2", &prices)).await;
        host.merchant = host.new_merchant("Another").await;
        assert_eq!(quote_and_charge(host, 100_000).await, (100_538, 100_538));
    })
    .await;
}
