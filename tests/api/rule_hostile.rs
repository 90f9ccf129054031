//! Rule packs that mean harm: refused when they are pushed, or contained where they decide.

use std::sync::OnceLock;

use railhead::config::{Config, OnFailure};
use railhead::operator::assignments::take_out;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hostile::{built, packed};
use crate::network::{Sends, with_live_host};
use crate::packs::{assign, decision, guard, push_as, read, shown, version_of};
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host, with_host_configured,
};

/// What the hostile pack does harm to, once it decides.
pub(crate) const AMOUNT: u64 = 6_660_066;
/// What it holds as a pack should.
const HELD: u64 = 444_444;

/// What it does about a payout, and a word of what is written down about it.
const DEEDS: [(&str, &str); 18] = [
    ("loop", "fuel"),
    ("allocate", ""),
    ("recurse", ""),
    ("trap", ""),
    ("exit", ""),
    ("sleep", ""),
    ("shout", ""),
    ("dice", "random"),
    ("giant", ""),
    ("long", "too long"),
    ("nameless", "empty"),
    ("talkative", "too long"),
    ("mute", "empty"),
    ("crowd", "1001 hits"),
    ("mild", "its severest hit is block"),
    ("harsh", "its severest hit is allow"),
    ("few", "0 came"),
    ("many", "2 came"),
];

/// The hostile pack with these lines in its rules.
pub(crate) fn hostile(version: &str, lines: &str) -> Vec<u8> {
    packed(plain(), &rules(version, lines))
}

fn plain() -> &'static [u8] {
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    PLAIN.get_or_init(|| built("hostile-pack", ""))
}

fn rules(version: &str, lines: &str) -> String {
    let head = guard(version, "amount_minor", &[]);
    head.replace("manifest = 1", &format!("manifest = 1\n{lines}")).replace("guard", "hostile")
}

async fn push(host: &TestHost, component: Vec<u8>) -> Answer {
    push_as(host, OPERATOR_TOKEN, "application/wasm", component).await
}

pub(crate) async fn adopt_hostile(host: &TestHost, version: &str, deed: &str) -> Answer {
    let pushed = push(host, hostile(version, &format!("deed = \"{deed}\""))).await.ok();
    assert_eq!(pushed.json["state"], "checked", "{deed}: {}", pushed.text);
    assign(host, &version_of(&pushed), "activate", json!({})).await.ok()
}

fn on_failure(on_failure: OnFailure) -> impl FnOnce(&mut Config) {
    move |config: &mut Config| config.rules.on_failure = on_failure
}

async fn pay(host: &TestHost, amount: u64) -> Answer {
    host.pay("paid", naira(amount)).await.ok()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_fails_where_it_decides_is_contained(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(OnFailure::Closed, OnFailure::Open)] setting: OnFailure,
) {
    let (status, action) = match setting {
        OnFailure::Closed => ("awaiting_admin_review", "hold"),
        OnFailure::Open => ("paid", "allow"),
    };
    with_host_configured(engine, on_failure(setting), async |host| {
        host.credit(&host.merchant.test_wallet, 100_000_000).await;
        for (version, (deed, word)) in DEEDS.iter().enumerate() {
            adopt_hostile(host, &version.to_string(), deed).await;
            assert_eq!(pay(host, 100_000).await.status_word(), "paid", "{deed}");
            let failed = pay(host, AMOUNT).await;
            assert_eq!(failed.status_word(), status, "{deed}");
            let why = decision(host, &failed.id()).await;
            let hits = why["hits"].as_array().expect("hits");
            assert_eq!(hits.len(), 1, "{deed}");
            assert_eq!(
                (&hits[0]["label"], &hits[0]["action"]),
                (&json!("rules_failed"), &json!(action))
            );
            let failure = why["failure"].as_str().expect("a failure");
            assert!(failure.contains(word) && failure.len() < 1_000, "{deed}: {failure}");
            assert_eq!(why["again"]["same"], true, "{deed}: {why}");
            assert_eq!(pay(host, HELD).await.status_word(), "awaiting_admin_review", "{deed}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_fails_at_once_is_kept_but_not_used() {
    with_host(Engine::Sqlite, async |host| {
        for (version, (deed, word)) in DEEDS.iter().chain(&[("remember", "more than")]).enumerate()
        {
            let lines = format!("always = \"{deed}\"");
            let pushed = push(host, hostile(&version.to_string(), &lines)).await.ok();
            assert_eq!((pushed.status, &pushed.json["state"]), (201, &json!("uploaded")), "{deed}");
            let failures = pushed.json["conformance"]["failures"].to_string();
            let word = word.replace("2 came", "came");
            assert!(failures.contains(&word) && failures.len() < 2_000, "{deed}: {failures}");
            for verb in ["shadow", "activate", "rollback", "retire"] {
                let refused = assign(host, &version_of(&pushed), verb, json!({})).await;
                assert_eq!(refused.refused(), (409, "state_conflict"), "{deed} {verb}");
            }
        }
        assert_eq!(pay(host, AMOUNT).await.status_word(), "paid");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_cannot_be_a_pack_is_refused_in_words() {
    with_host(Engine::Sqlite, async |host| {
        let whole = hostile("1", "");
        let asks_for = |features| packed(&built("hostile-pack", features), &rules("1", ""));
        let opening = |deed| hostile("1", &format!("opening = \"{deed}\""));
        for (what, component, word) in [
            ("files", asks_for("files"), "imports wasi:filesystem/"),
            ("clock", asks_for("clock"), "imports railhead:host/clock"),
            ("nothing", Vec::new(), "not a WebAssembly component"),
            ("text", b"not a component".to_vec(), "not a WebAssembly component"),
            ("half", whole[..whole.len() / 2].to_vec(), "not a WebAssembly component"),
            ("no rules", plain().to_vec(), "carries no declaration"),
            ("loop", opening("loop"), "fuel"),
            ("allocate", opening("allocate"), "reading the rules"),
            ("recurse", opening("recurse"), "reading the rules"),
            ("trap", opening("trap"), "reading the rules"),
            ("exit", opening("exit"), "reading the rules"),
            ("sleep", opening("sleep"), "reading the rules"),
            ("shout", opening("shout"), "reading the rules"),
        ] {
            let refused = push(host, component).await;
            assert_eq!(refused.refused(), (422, "validation_failed"), "{what}: {}", refused.text);
            let problems = refused.json["error"]["detail"]["problems"].to_string();
            assert!(problems.contains(word) && problems.len() < 2_000, "{what}: {problems}");
            assert_eq!(pay(host, AMOUNT).await.status_word(), "paid");
        }
        let refused = push(host, opening("problems")).await;
        let problems = refused.json["error"]["detail"]["problems"].as_array().expect("a list");
        assert_eq!(problems.len(), 3);
        assert_eq!(problems[0], json!({ "at": "rule[7]", "message": "no" }));
        let listed = read(host, "rule-packs").await.ok();
        assert!(!listed.text.contains("hostile"), "{}", listed.text);
    })
    .await;
}

/// Nothing of this machine shows: its clock stands at the beginning and it has no names.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_sees_neither_time_nor_surroundings(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let pushed = push(host, hostile("1", "always = \"time\"")).await.ok();
        assign(host, &version_of(&pushed), "activate", json!({})).await.ok();
        for _ in 0..3 {
            let why = decision(host, &pay(host, 100_000).await.id()).await;
            assert_eq!(why["hits"][0]["reason"], "Ok(0ns) []", "{why}");
            assert_eq!((&why["again"]["same"], &why["failure"]), (&json!(true), &Value::Null));
            host.advance(86_400);
        }
    })
    .await;
}

/// The hostile pack as one that prices.
fn hostile_fees(version: &str, lines: &str) -> Vec<u8> {
    let rules = rules(version, lines).replace("\"fraud\"", "\"fees\"");
    packed(plain(), &rules)
}

const ODD_PRICES: [(&str, &str); 4] = [
    ("trap", "the component failed"),
    ("negative", "negative"),
    ("long", "too long"),
    ("crowd", "200 lines"),
];

/// What cannot be priced is neither quoted nor paid, and the pack stays: there is no price to fall
/// back on. Only what fails about live payouts counts.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_fee_pack_that_fails_stays_and_prices_what_it_can(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        for (number, (deed, word)) in ODD_PRICES.iter().enumerate() {
            let lines = format!("always = \"{deed}\"");
            let kept = push(host, hostile_fees(&format!("{number}.1"), &lines)).await.ok();
            assert_eq!(kept.json["state"], "uploaded", "{deed}");
            let failures = kept.json["conformance"]["failures"].to_string();
            assert!(failures.contains(word) && failures.len() < 2_000, "{deed}: {failures}");
            let lines = format!("deed = \"{deed}\"");
            let pushed = push(host, hostile_fees(&number.to_string(), &lines)).await.ok();
            assert_eq!(pushed.json["state"], "checked", "{deed}: {}", pushed.text);
            assign(host, &version_of(&pushed), "activate", json!({})).await.ok();
            assert_eq!(pay(host, 100_000).await.json["fee_minor"], "1", "{deed}");
            let question = json!({ "currency": "NGN", "amount_minor": AMOUNT.to_string() });
            for _ in 0..5 {
                let refused = host.pay("paid", naira(AMOUNT)).await;
                assert_eq!(refused.refused(), (500, "api_error"), "{deed}");
                let refused = host.post("/v1/payouts/quote", question.clone()).await;
                assert_eq!(refused.refused(), (500, "api_error"), "{deed}");
            }
            let failing = host.app().packs.now().packs();
            assert!(failing.iter().all(|pack| pack.failures() == 0), "{deed}");
            let others = [host.new_merchant("One").await, host.new_merchant("Another").await];
            for merchant in others.iter().chain([&host.merchant]).cycle().take(6) {
                let refused = host.pay_as(&merchant.live_key, &unique(), naira(AMOUNT)).await;
                assert_eq!(refused.refused(), (500, "api_error"), "{deed}");
            }
            let failing = failing.into_iter().find(|pack| pack.keeps_failing()).expect("one");
            assert_eq!(failing.failures(), 6, "{deed}");
            assert!(!take_out(host.app(), &failing).await.expect("a look"), "{deed}");
            assert_eq!(shown(host, &version_of(&pushed)).await["state"], "active", "{deed}");
            assert_eq!(pay(host, 100_000).await.json["fee_minor"], "1", "{deed}");
        }
    })
    .await;
}
