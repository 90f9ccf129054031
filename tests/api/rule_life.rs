//! The life of a rule pack: pushed, checked, tried, active, put back, retired.

use futures::future::join_all;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::json;

use crate::network::{Sends, with_two_hosts};
use crate::packs::{
    Rule, adopt, assign, assign_as, audited, fees, guard, pack, push, push_as, read, restart,
    shown, until, until_seen,
};
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host, with_host_configured,
};

const HOLD: [Rule<'_>; 1] = [("all", "hold", "amount_minor > 0")];
const BLOCK: [Rule<'_>; 1] = [("all", "block", "amount_minor > 0")];

fn holds(version: &str) -> String {
    guard(version, "amount_minor", &HOLD)
}

fn blocks(version: &str) -> String {
    guard(version, "amount_minor", &BLOCK)
}

/// What becomes of a payout now: `paid`, `awaiting_admin_review` or `fraud_rule_blocked`.
async fn fate(host: &TestHost) -> String {
    fate_of(host, &host.merchant.test_key).await
}

async fn fate_of(host: &TestHost, key: &str) -> String {
    let answer = host.pay_as(key, &unique(), naira(100_000)).await;
    match answer.status {
        201 => answer.status_word().to_owned(),
        _ => answer.refused().1.to_owned(),
    }
}

async fn state(host: &TestHost, version: &str) -> String {
    shown(host, version).await["state"].as_str().expect("a state").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_lives_from_its_push_to_its_end(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let pushed = push(host, &holds("1")).await;
        assert_eq!((pushed.status, &pushed.json["state"]), (201, &json!("checked")));
        assert_eq!(
            (&pushed.json["kind"], &pushed.json["facts"]),
            (&json!("fraud"), &json!(["amount_minor"]))
        );
        assert_eq!(pushed.json["pushed_by"], "operator");
        push(host, &blocks("2")).await.ok();
        // Who does what, where both versions stand then, and what becomes of a payout; and which
        // one decides again if nobody says a version.
        let mut previous = Vec::new();
        for (version, verb, first, second, becomes) in [
            ("guard/1", "shadow", "shadow", "checked", "paid"),
            ("guard/1", "activate", "active", "checked", "awaiting_admin_review"),
            ("guard/2", "shadow", "active", "shadow", "awaiting_admin_review"),
            ("guard/2", "activate", "retired", "active", "fraud_rule_blocked"),
            ("guard/1", "rollback", "active", "retired", "awaiting_admin_review"),
            ("guard/2", "rollback", "retired", "active", "fraud_rule_blocked"),
            ("guard/1", "shadow", "shadow", "active", "fraud_rule_blocked"),
            ("guard/1", "retire", "retired", "active", "fraud_rule_blocked"),
            ("guard/2", "retire", "retired", "retired", "paid"),
            ("guard/1", "rollback", "active", "retired", "awaiting_admin_review"),
        ] {
            let change = assign(host, version, verb, json!({})).await.ok();
            assert_eq!(
                (&change.json["status"], &change.json["scope"]),
                (&json!("done"), &json!("platform"))
            );
            let states = (state(host, "guard/1").await, state(host, "guard/2").await);
            assert_eq!((states.0.as_str(), states.1.as_str()), (first, second), "{version} {verb}");
            assert_eq!(fate(host).await, becomes, "{version} {verb}");
            for version in ["guard/1", "guard/2"] {
                if shown(host, version).await["previous_for"] == json!(["platform"]) {
                    previous.push((version, format!("after {verb}")));
                }
            }
        }
        // Nobody goes back to what was gone back from, or where nothing decides any more.
        let after = ["activate", "rollback", "shadow", "retire"];
        let first = after.map(|verb| ("guard/1", format!("after {verb}")));
        assert_eq!(previous, first);
        let known = shown(host, "guard/1").await;
        assert_eq!(
            (&known["active_for"], &known["shadow_for"]),
            (&json!(["platform"]), &json!([]))
        );
        let list = read(host, "rule-packs").await.ok();
        let names = list.json["data"].as_array().expect("packs").iter();
        let names: Vec<_> =
            names.map(|pack| json!([pack["name"], pack["version"], pack["state"]])).collect();
        assert!(names.contains(&json!(["guard", "2", "retired"])), "{names:?}");
        assert!(names.contains(&json!(["fraud", "1.0.0", "checked"])), "{names:?}");
        assert!(names.contains(&json!(["fees", "0.1.0", "active"])), "{names:?}");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_possible_is_refused_and_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &holds("1")).await.ok();
        push(host, &holds("2")).await.ok();
        assign(host, "guard/1", "activate", json!({})).await.ok();
        let merchant = json!({ "merchant_id": host.merchant.id });
        let nobody = json!({ "merchant_id": "cxxxxxxxxxxxxxxxxxxxxxxxx" });
        for (version, verb, body, refusal) in [
            ("guard/2", "rollback", json!({}), (409, "state_conflict")),
            ("guard/1", "rollback", json!({}), (409, "state_conflict")),
            ("guard/1", "rollback", merchant.clone(), (409, "state_conflict")),
            ("guard/1", "shadow", json!({}), (409, "state_conflict")),
            ("guard/2", "retire", json!({}), (409, "state_conflict")),
            ("guard/1", "retire", merchant.clone(), (409, "state_conflict")),
            ("guard/3", "activate", json!({}), (404, "not_found")),
            ("other/1", "retire", json!({}), (404, "not_found")),
            ("guard/1", "activate", nobody, (400, "invalid_field")),
            ("guard/1", "activate", json!({ "merchant_id": "x" }), (400, "invalid_field")),
        ] {
            let refused = assign(host, version, verb, body.clone()).await;
            assert_eq!(refused.refused(), refusal, "{version} {verb} {body}");
        }
        // The fee pack that came with the host was assigned first, the active guard second.
        assert_eq!(host.app().packs.now().generation, 2);
        assert_eq!(read(host, "rule-packs/guard/versions/9").await.refused().0, 404);
        assert_eq!(read(host, "rule-packs/other/differences").await.refused().0, 404);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_what_it_was_when_it_was_pushed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        // Whoever comes first: the others find it there.
        let rules = holds("1");
        let answers = join_all((0..4).map(|_| push(host, &rules))).await;
        let fates: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(fates.iter().filter(|status| **status == 201).count(), 1, "{fates:?}");
        assert_eq!(fates.iter().filter(|status| **status == 200).count(), 3, "{fates:?}");
        assert!(answers.iter().all(|answer| answer.json["digest"] == answers[0].json["digest"]));
        for other in [blocks("1"), pack("fraud", "1.0.0", "amount_minor", &HOLD)] {
            assert_eq!(push(host, &other).await.refused(), (409, "state_conflict"));
        }
        assert_eq!(push(host, &rules).await.status, 200);
        let pushes = audited(host).await;
        assert_eq!(pushes, [("rule_pack.push".to_owned(), "operator".to_owned())]);
        assert_eq!(host.count("SELECT COUNT(*) FROM rule_packs WHERE name = 'guard'").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn rules_with_mistakes_are_refused_with_their_places(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rule = |rule: Rule<'_>| guard("1", "amount_minor currency", &[rule]);
        for (what, rules, at, word) in [
            ("fact", guard("1", "amount", &[]), "pack", "did you mean amount_minor?"),
            (
                "fact of others",
                fees("1", "").replace("\"kind\"", "\"hour\""),
                "pack",
                "hour is no fact of fees",
            ),
            ("twice", guard("1", "hour hour", &[]), "pack", "twice"),
            ("name", rule(("a", "hold", "ammount_minor > 5")), "rule[0].when", "amount_minor"),
            ("syntax", rule(("a", "hold", "amount_minor >")), "rule[0].when", "column 15"),
            ("type", rule(("a", "hold", "currency > 5")), "rule[0].when", "string"),
            ("action", rule(("a", "refuse", "true")), "rule[0].action", "allow, hold or block"),
            ("label", rule(("A b", "hold", "true")), "rule[0].label", "a-z"),
            ("kind", holds("1").replace("\"fraud\"", "\"fees\""), "rules.toml", "rule"),
            ("strange kind", holds("1").replace("\"fraud\"", "\"luck\""), "pack", "luck"),
            ("manifest", holds("1").replace("manifest = 1", "manifest = 2"), "pack", "reads 1"),
            ("version", guard("1/2", "hour", &[]), "pack", "pack.version"),
            ("no TOML", "guard".to_owned(), "pack", "rules.toml"),
            ("empty", String::new(), "pack", "rules.toml"),
        ] {
            let refused = push(host, &rules).await;
            assert_eq!(refused.refused(), (422, "validation_failed"), "{what}: {}", refused.text);
            let problems = refused.json["error"]["detail"]["problems"].as_array().expect("a list");
            let told = problems.iter().any(|problem| {
                problem["at"].as_str().is_some_and(|place| place.starts_with(at))
                    && problem["message"].as_str().is_some_and(|text| text.contains(word))
            });
            assert!(told, "{what}: {problems:?}");
        }
        let two = [("a", "hold", "hourr > 5"), ("a", "halt", "amount_minor")];
        let refused = push(host, &guard("1", "amount_minor", &two)).await;
        let places = refused.json["error"]["detail"]["problems"].as_array().expect("a list").iter();
        let places: Vec<_> = places.map(|problem| problem["at"].clone()).collect();
        assert_eq!(places, ["rule[0].when", "rule[1].label", "rule[1].action", "rule[1].when"]);
        assert_eq!(host.count("SELECT COUNT(*) FROM rule_packs WHERE name = 'guard'").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_pack_at_all_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rules = holds("1").into_bytes();
        for (kind, body, refusal) in [
            ("application/json", rules.clone(), (415, "unsupported_media_type")),
            ("text/plain", rules.clone(), (415, "unsupported_media_type")),
            ("application/toml", vec![0xff, 0xfe], (400, "invalid_body")),
            ("application/toml", vec![b'#'; (1 << 20) + 1], (413, "body_too_large")),
            ("application/wasm", vec![0; (16 << 20) + 1], (413, "body_too_large")),
            ("application/wasm", rules.clone(), (422, "validation_failed")),
        ] {
            let refused = push_as(host, OPERATOR_TOKEN, kind, body).await;
            assert_eq!(refused.refused(), refusal, "{kind}");
        }
        let key = host.merchant.test_key.clone();
        for token in ["", "x", &key] {
            let refused = push_as(host, token, "application/toml", rules.clone()).await;
            assert_eq!(refused.refused().0, 401, "{token}");
        }
        let pushed = push_as(host, OPERATOR_TOKEN, "Application/TOML; charset=utf-8", rules).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_own_pack_comes_before_that_of_the_platform(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Another").await;
        let own = json!({ "merchant_id": host.merchant.id });
        push(host, &holds("1")).await.ok();
        push(host, &blocks("2")).await.ok();
        for (version, verb, body, mine, others) in [
            ("guard/1", "activate", own.clone(), "awaiting_admin_review", "paid"),
            ("guard/2", "activate", json!({}), "awaiting_admin_review", "fraud_rule_blocked"),
            ("guard/1", "retire", own.clone(), "fraud_rule_blocked", "fraud_rule_blocked"),
            ("guard/1", "rollback", own.clone(), "awaiting_admin_review", "fraud_rule_blocked"),
            ("guard/2", "retire", json!({}), "awaiting_admin_review", "paid"),
            ("guard/2", "activate", own.clone(), "fraud_rule_blocked", "paid"),
            ("guard/2", "retire", own.clone(), "paid", "paid"),
        ] {
            assign(host, version, verb, body.clone()).await.ok();
            assert_eq!(fate(host).await, mine, "{version} {verb} {body}");
            assert_eq!(fate_of(host, &other.test_key).await, others, "{version} {verb} {body}");
        }
        let known = assign(host, "guard/1", "activate", own.clone()).await.ok();
        assert_eq!(known.json["scope"], host.merchant.id);
        let known = shown(host, "guard/1").await;
        assert_eq!(
            (&known["state"], &known["active_for"]),
            (&json!("active"), &json!([host.merchant.id]))
        );
    })
    .await;
}

fn two_people(config: &mut Config) {
    config.approvals.two_people = vec![ApprovalAct::RulePack];
    for name in ["ada", "kemi"] {
        config
            .admin
            .operators
            .insert(name.into(), SecretString::from(format!("op_of_{name}_in_tests")));
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_it_takes_two_people_one_is_not_enough(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        push_as(host, "op_of_ada_in_tests", "application/toml", holds("1").into()).await.ok();
        let act = async |who: &str, verb: &str| -> u16 {
            assign_as(host, &format!("op_of_{who}_in_tests"), ("guard/1", verb), json!({}))
                .await
                .ok()
                .status
        };
        // What is only tried needs nobody else.
        assert_eq!(act("ada", "shadow").await, 200);
        assert_eq!((act("ada", "activate").await, act("ada", "activate").await), (202, 202));
        assert_eq!(fate(host).await, "paid");
        // A day later nobody remembers; the second is the first again.
        host.advance(24 * 3_600);
        assert_eq!((act("kemi", "activate").await, fate(host).await.as_str()), (202, "paid"));
        host.advance(24 * 3_600 - 1);
        assert_eq!(act("ada", "activate").await, 200);
        assert_eq!(fate(host).await, "awaiting_admin_review");
        // What was asked for was used up, and something else was not asked for.
        assert_eq!((act("kemi", "retire").await, act("kemi", "retire").await), (202, 202));
        assert_eq!(fate(host).await, "awaiting_admin_review");
        assert_eq!((act("ada", "retire").await, fate(host).await.as_str()), (200, "paid"));
        assert_eq!((act("ada", "rollback").await, act("kemi", "rollback").await), (202, 200));
        let log = audited(host).await;
        let log: Vec<_> =
            log.iter().rev().map(|(what, who)| (what.as_str(), who.as_str())).collect();
        let expected = [
            ("rule_pack.push", "ada"),
            ("rule_pack.shadow", "ada"),
            ("approval.request", "ada"),
            ("approval.request", "ada"),
            ("approval.request", "kemi"),
            ("rule_pack.activate", "ada"),
            ("approval.request", "kemi"),
            ("approval.request", "kemi"),
            ("rule_pack.retire", "ada"),
            ("approval.request", "ada"),
            ("rule_pack.rollback", "kemi"),
        ];
        assert_eq!(log, expected);
    })
    .await;
}

/// Others have decided twice since: it is asked for anew.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_asked_for_a_pack_before_others_decided_has_not_agreed_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        push(host, &holds("1")).await.ok();
        let act = async |who: &str, verb: &str| {
            let token = match who {
                "operator" => OPERATOR_TOKEN.to_owned(),
                who => format!("op_of_{who}_in_tests"),
            };
            assign_as(host, &token, ("guard/1", verb), json!({})).await.ok().status
        };
        for verb in ["activate", "retire"] {
            assert_eq!((act("operator", verb).await, act("ada", verb).await), (202, 200));
        }
        assert_eq!(act("kemi", "rollback").await, 202);
        for verb in ["activate", "retire"] {
            assert_eq!((act("operator", verb).await, act("ada", verb).await), (202, 200));
        }
        assert_eq!((act("ada", "rollback").await, act("kemi", "rollback").await), (202, 200));
        assert_eq!(fate(host).await, "awaiting_admin_review");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_active_survives_a_restart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let price = "[[price]]\ntiers = [{ flat_minor = 7 }]\n";
        adopt(host, &fees("1", price)).await;
        assign(host, "fraud/1.0.0", "activate", json!({})).await.ok();
        push(host, &blocks("1")).await.ok();
        assign(host, "guard/1", "shadow", json!({})).await.ok();
        let before = read(host, "rule-packs").await.ok().text;
        let kept = "SELECT COUNT(*) FROM rule_packs WHERE component IS NOT NULL";
        assert_eq!(host.count(kept).await, 4, "built-in packs are kept once they are used");
        restart(host, |_| {}).await;
        assert_eq!(read(host, "rule-packs").await.ok().text, before);
        let large: Answer = host.pay("paid", naira(50_000_001)).await.ok();
        assert_eq!(large.json["fee_minor"], "7", "{}", large.text);
        let sql = "SELECT COUNT(*) FROM decisions WHERE pack = 'fraud' AND action = 'allow'";
        assert_eq!(host.count(sql).await, 1);
        let tried = async || shown(host, "guard/1").await["shadow"]["differing"] == 1;
        until("a difference", tried).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_take_over_what_either_changes() {
    with_two_hosts(Sends::No, async |host, beside| {
        let change = adopt(host, &holds("1")).await;
        until_seen(beside, &change).await;
        assert_eq!(fate(beside).await, "awaiting_admin_review");
        let change = adopt(beside, &blocks("2")).await;
        until_seen(host, &change).await;
        assert_eq!(fate(host).await, "fraud_rule_blocked");
        // Of two who change an assignment at once, each is carried out or told that it was changed.
        for _ in 0..10 {
            let both = tokio::join!(
                assign(host, "guard/1", "activate", json!({})),
                assign(beside, "guard/2", "activate", json!({})),
            );
            let statuses = [both.0.status, both.1.status];
            assert!(statuses.contains(&200), "{statuses:?}");
            assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
        }
        let sql = "SELECT MAX(generation) - COUNT(*) FROM rule_assignments";
        assert_eq!(host.count(sql).await, 0, "no number is left out");
    })
    .await;
}

/// A pack without rules that match prices nothing: whoever has no price is told so.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_fee_pack_gives_way_to_the_built_in_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        adopt(host, &fees("1", "")).await;
        assert_eq!(fate(host).await, "rail_not_configured");
        assert_eq!(shown(host, "fees/0.1.0").await["state"], "retired");
        assign(host, "prices/1", "retire", json!({})).await.ok();
        assert_eq!(
            (fate(host).await.as_str(), state(host, "fees/0.1.0").await.as_str()),
            ("paid", "active")
        );
    })
    .await;
}
