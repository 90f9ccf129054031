//! Packs that are tried: in shadow beside the one that decides, and on decisions of the past.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::packs::{Rule, adopt, assign, decision, guard, pack, push, push_as, read, shown, until};
use crate::rule_hostile::hostile;
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host};

/// The candidate holds what the guard lets through from 2,000.00 on.
const CANDIDATE: [Rule<'_>; 1] = [("large", "hold", "amount_minor >= 200000")];
const GUARD: [Rule<'_>; 1] = [("huge", "block", "amount_minor >= 300000")];

async fn pay(host: &TestHost, amount: u64) -> Answer {
    host.pay("paid", naira(amount)).await
}

/// Lets a candidate be tried.
async fn try_out(host: &TestHost, rules: &str) -> String {
    let pushed = push(host, rules).await.ok();
    let version = crate::packs::version_of(&pushed);
    assign(host, &version, "shadow", json!({})).await.ok();
    version
}

/// Waits until a version was compared so often; how often it differed and failed.
async fn tally(host: &TestHost, version: &str, compared: i64) -> (i64, i64) {
    let seen = async || shown(host, version).await["shadow"]["compared"] == compared;
    until("compared", seen).await;
    let tally = &shown(host, version).await["shadow"];
    (tally["differing"].as_i64().expect("a count"), tally["failed"].as_i64().expect("a count"))
}

async fn differences(host: &TestHost, query: &str) -> Answer {
    read(host, &format!("rule-packs/candidate/differences{query}")).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_in_shadow_changes_nothing_and_is_compared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rules = [("huge", "block", "amount_minor == 300000")];
        adopt(host, &guard("1", "amount_minor", &rules)).await;
        let facts = "amount_minor count_per_wallet_1h";
        let version = try_out(host, &pack("candidate", "1", facts, &CANDIDATE)).await;
        let mut payouts = Vec::new();
        for amount in [100_000, 200_000, 150_000, 250_000] {
            let paid = pay(host, amount).await.ok();
            assert_eq!(paid.status_word(), "paid", "{amount}");
            payouts.push(paid.id());
            host.advance(1);
        }
        let refused = crate::packs::blocked(&pay(host, 300_000).await);
        // What is refused for want of money was decided by nobody.
        assert_eq!(pay(host, 200_000_000).await.refused(), (402, "insufficient_funds"));
        assert_eq!(pay(host, 199_999).await.ok().status, 201);
        assert_eq!(tally(host, &version, 6).await, (3, 0));
        let page = differences(host, "").await.ok();
        let found = page.json["data"].as_array().expect("differences");
        let found: Vec<_> = found
            .iter()
            .map(|d| {
                (
                    d["payout_id"].clone(),
                    d["before"]["action"].clone(),
                    d["after"]["action"].clone(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (json!(refused), json!("block"), json!("hold")),
                (json!(payouts[3]), json!("allow"), json!("hold")),
                (json!(payouts[1]), json!("allow"), json!("hold")),
            ]
        );
        let newest = &page.json["data"][0];
        assert_eq!((&newest["active"], &newest["version"]), (&json!("guard/1"), &json!("1")));
        assert_eq!(newest["after"]["hits"][0]["label"], "large");
        // Decisions are the guard's; the facts of the candidate are kept with them.
        let why = decision(host, &payouts[3]).await;
        assert_eq!(
            (&why["pack"], &why["facts"]["count_per_wallet_1h"]),
            (&json!("guard"), &json!(4))
        );
        assert_eq!(why["again"]["same"], true);
    })
    .await;
}

/// The words of a rule are no difference.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_decides_the_same_in_other_words_does_not_differ(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let reworded = guard("2", "amount_minor", &GUARD).replace("says so", "said so");
        assert_ne!(reworded, guard("2", "amount_minor", &GUARD));
        adopt(host, &guard("1", "amount_minor", &GUARD)).await;
        let version = try_out(host, &reworded).await;
        crate::packs::blocked(&pay(host, 300_000).await);
        assert_eq!(pay(host, 100_000).await.ok().status_word(), "paid");
        assert_eq!(tally(host, &version, 2).await, (0, 0));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn differences_are_read_page_by_page(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let version = try_out(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await;
        let mut payouts = Vec::new();
        for _ in 0..7 {
            payouts.push(pay(host, 200_000).await.ok().id());
            host.advance(1);
        }
        assert_eq!(tally(host, &version, 7).await, (7, 0));
        payouts.reverse();
        let (mut seen, mut query) = (Vec::new(), "?limit=3".to_owned());
        loop {
            let page = differences(host, &query).await.ok();
            let items = page.json["data"].as_array().expect("differences").clone();
            seen.extend(items.iter().map(|d| d["payout_id"].as_str().unwrap_or("").to_owned()));
            if page.json["has_more"] != true {
                break;
            }
            let last = items.last().expect("one")["id"].as_str().expect("an id").to_owned();
            query = format!("?limit=3&starting_after={last}");
        }
        assert_eq!(seen, payouts);
        for (query, refusal) in
            [("?limit=0", (400, "invalid_limit")), ("?starting_after=x", (400, "invalid_field"))]
        {
            assert_eq!(differences(host, query).await.refused(), refusal, "{query}");
        }
    })
    .await;
}

/// Nobody decides: everything is allowed, and the candidate is compared with that.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_can_be_tried_where_nobody_decides(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let version = try_out(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await;
        let id = pay(host, 200_000).await.ok().id();
        assert_eq!(pay(host, 100_000).await.ok().status_word(), "paid");
        assert_eq!(tally(host, &version, 2).await, (1, 0));
        let difference = differences(host, "").await.ok().json["data"][0].clone();
        assert_eq!((&difference["active"], &difference["payout_id"]), (&Value::Null, &json!(id)));
        let why = decision(host, &id).await;
        assert_eq!(
            (&why["pack"], &why["action"], &why["again"]),
            (&Value::Null, &json!("allow"), &Value::Null)
        );
        assert_eq!(why["facts"], json!({ "amount_minor": 200_000 }));
        // A merchant's candidate is tried on that merchant only.
        assign(host, &version, "retire", json!({})).await.ok();
        let other = host.new_merchant("Another").await;
        assign(host, &version, "shadow", json!({ "merchant_id": other.id })).await.ok();
        pay(host, 200_000).await.ok();
        host.pay_as(&other.test_key, &unique(), naira(200_000)).await.ok();
        assert_eq!(tally(host, &version, 3).await, (2, 0));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_fails_in_shadow_harms_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        adopt(host, &guard("1", "amount_minor", &GUARD)).await;
        let component = hostile("1", "deed = \"loop\"");
        push_as(host, OPERATOR_TOKEN, "application/wasm", component).await.ok();
        assign(host, "hostile/1", "shadow", json!({})).await.ok();
        for _ in 0..8 {
            assert_eq!(pay(host, 100_000).await.ok().status_word(), "paid");
        }
        let id = crate::packs::blocked(&pay(host, 6_660_066).await);
        assert_eq!(decision(host, &id).await["failure"], Value::Null);
        for _ in 0..7 {
            pay(host, 6_660_066).await;
        }
        assert_eq!(tally(host, "hostile/1", 16).await, (0, 8));
        // It failed eight times; that counts for nothing where it decides from now on.
        let change = assign(host, "hostile/1", "activate", json!({})).await.ok();
        let assignments = host.app().packs.now();
        assert_eq!(assignments.generation, change.json["generation"]);
        assert!(assignments.packs().iter().all(|pack| pack.failures() == 0));
    })
    .await;
}

async fn backtest(host: &TestHost, version: &str, body: Value) -> Answer {
    assign(host, version, "backtest", body).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_says_what_would_have_changed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await.ok();
        push(host, &pack("candidate", "2", "amount_minor hour customer", &[])).await.ok();
        adopt(host, &guard("1", "amount_minor", &GUARD)).await;
        let other = host.new_merchant("Another").await;
        let mut held = Vec::new();
        for amount in [100_000, 200_000, 150_000, 250_000, 300_000] {
            host.advance(60);
            let paid = pay(host, amount).await;
            held.extend(paid.json["id"].as_str().filter(|_| amount >= 200_000).map(str::to_owned));
        }
        host.pay_as(&other.live_key, &unique(), naira(1)).await;
        host.pay_as(&other.test_key, &unique(), naira(200_000)).await.ok();
        host.advance(60);
        let all = json!({ "from": "2026-11-21T00:00:00Z" });
        let found = backtest(host, "candidate/1", all.clone()).await.ok().json;
        assert_eq!(
            (&found["examined"], &found["remaining"], &found["skipped"]),
            (&json!(6), &json!(6), &json!(0))
        );
        let moves = json!({ "allow>allow": 2, "allow>hold": 3, "block>hold": 1 });
        assert_eq!((&found["moves"], &found["next"]), (&moves, &Value::Null));
        let rules = json!({ "huge": { "then": 1, "now": 0 }, "large": { "then": 0, "now": 4 } });
        assert_eq!(found["rules"], rules);
        let examples = found["examples"].as_array().expect("examples");
        assert_eq!((examples.len(), &examples[0]["payout_id"]), (4, &json!(held[0])));
        assert_eq!(
            examples[0],
            json!({
                "payout_id": held[0], "before": "allow", "after": "hold", "labels": ["large"],
            })
        );
        // Of one merchant, and of a span of time.
        for (body, examined) in [
            (json!({ "merchant_id": other.id }), 1),
            (json!({ "merchant_id": host.merchant.id }), 5),
            (json!({ "from": "2026-11-21T09:02:00Z" }), 5),
            (json!({ "before": "2026-11-21T09:02:00Z" }), 1),
            (json!({ "from": "2026-11-21T09:02:00Z", "before": "2026-11-21T09:04:00+00:00" }), 2),
            (json!({ "from": "2026-11-22T09:02:00Z" }), 0),
        ] {
            let found =
                backtest(host, "candidate/1", crate::test_host::with(all.clone(), body.clone()))
                    .await
                    .ok();
            assert_eq!(
                (&found.json["examined"], &found.json["remaining"]),
                (&json!(examined), &json!(examined)),
                "{body}"
            );
        }
        // Facts that were not stored then cannot be made up now.
        let found = backtest(host, "candidate/2", all).await.ok().json;
        assert_eq!((&found["examined"], &found["skipped"]), (&json!(6), &json!(6)));
        assert_eq!(
            (&found["missing_facts"], &found["moves"]),
            (&json!(["hour", "customer"]), &json!({}))
        );
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_goes_through_many_decisions_slice_by_slice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await.ok();
        adopt(host, &guard("1", "amount_minor", &GUARD)).await;
        pay(host, 200_000).await.ok();
        // As many as would take long to make, all of the same instant.
        let columns = "merchant_id, env, currency, amount_minor, pack, version, digest, action, \
                       hits, failure, facts, facts_digest, created_at, batch_id";
        let numbers =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2499)";
        let sql = format!(
            "INSERT INTO decisions (payout_id, {columns}) {numbers} \
             SELECT CAST(i AS TEXT), {columns} FROM decisions, n"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(host.app().db.pool()).await.expect("copied");
        host.advance(1);
        let (mut slices, mut body) = (Vec::new(), json!({ "from": "2026-11-21T00:00:00Z" }));
        loop {
            let found = backtest(host, "candidate/1", body.clone()).await.ok().json;
            slices.push([
                found["remaining"].as_i64().expect("a count"),
                found["examined"].as_i64().expect("a count"),
                found["moves"]["allow>hold"].as_i64().expect("a count"),
            ]);
            assert!(found["examples"].as_array().expect("examples").len() <= 20);
            match &found["next"] {
                Value::Null => break,
                next => body["after"] = next.clone(),
            }
        }
        assert_eq!(slices, [[2_500, 1_000, 1_000], [1_500, 1_000, 1_000], [500, 500, 500]]);
        let armed = host.disarm("decisions").await;
        let copies = "DELETE FROM decisions WHERE LENGTH(payout_id) < 6".to_owned();
        host.run(&[vec![copies], armed].concat()).await;
    })
    .await;
}

/// One merchant's decisions stand among everybody's: no slice goes through more than so many of
/// any, and those that hold none lead on.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_of_one_merchant_goes_past_the_others_slice_by_slice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await.ok();
        adopt(host, &guard("1", "amount_minor", &GUARD)).await;
        let other = host.new_merchant("Another").await;
        pay(host, 200_000).await.ok();
        host.advance(1);
        host.pay_as(&other.test_key, &unique(), naira(200_000)).await.ok();
        // 25,000 of the other merchant, a microsecond apart.
        let columns = "merchant_id, env, currency, amount_minor, pack, version, digest, action, \
                       hits, failure, facts, facts_digest, batch_id";
        let numbers =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 24999)";
        let sql = format!(
            "INSERT INTO decisions (payout_id, created_at, {columns}) {numbers} \
             SELECT CAST(i AS TEXT), created_at + i, {columns} FROM decisions, n \
             WHERE merchant_id = '{}'",
            other.id
        );
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(host.app().db.pool()).await.expect("copied");
        host.advance(1);
        pay(host, 200_000).await.ok();
        host.advance(1);
        let of = |whose: &str| json!({ "from": "2026-11-21T00:00:00Z", "merchant_id": whose });
        let (mut slices, mut body) = (Vec::new(), of(&host.merchant.id));
        loop {
            let found = backtest(host, "candidate/1", body.clone()).await.ok().json;
            let held = found["moves"]["allow>hold"].as_i64().unwrap_or_default();
            slices.push([&found["remaining"], &found["examined"]].map(Value::clone));
            assert_eq!(found["examined"], held);
            match &found["next"] {
                Value::Null => break,
                next => body["after"] = next.clone(),
            }
        }
        assert_eq!(json!(slices), json!([[2, 1], [1, 0], [1, 1]]));
        // One that has many has them a slice at a time, as all merchants together do.
        let found = backtest(host, "candidate/1", of(&other.id)).await.ok().json;
        assert_eq!(
            (&found["remaining"], &found["examined"], found["next"].is_string()),
            (&json!(25_000), &json!(1_000), true)
        );
        let armed = host.disarm("decisions").await;
        let copies = "DELETE FROM decisions WHERE LENGTH(payout_id) < 6".to_owned();
        host.run(&[vec![copies], armed].concat()).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_that_makes_no_sense_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &pack("candidate", "1", "amount_minor", &CANDIDATE)).await.ok();
        let uploaded = hostile("2", "always = \"trap\"");
        push_as(host, OPERATOR_TOKEN, "application/wasm", uploaded).await.ok();
        push_as(host, OPERATOR_TOKEN, "application/wasm", hostile("1", "deed = \"trap\""))
            .await
            .ok();
        let from = "2026-11-21T00:00:00Z";
        for (version, body, refusal) in [
            ("candidate/1", json!({}), (400, "missing_field")),
            ("candidate/1", json!({ "from": "yesterday" }), (400, "invalid_field")),
            (
                "candidate/1",
                json!({ "from": from, "before": "2026-13-21" }),
                (400, "invalid_field"),
            ),
            ("candidate/1", json!({ "from": from, "after": "x" }), (400, "invalid_field")),
            (
                "candidate/1",
                json!({ "from": from, "merchant_id": "nobody" }),
                (400, "invalid_field"),
            ),
            ("candidate/9", json!({ "from": from }), (404, "not_found")),
            ("fees/0.1.0", json!({ "from": from }), (409, "state_conflict")),
            ("hostile/2", json!({ "from": from }), (409, "state_conflict")),
        ] {
            let refused = backtest(host, version, body.clone()).await;
            assert_eq!(refused.refused(), refusal, "{version} {body}");
        }
        // A pack that fails about some of them is no reason to stop.
        adopt(host, &guard("1", "amount_minor", &[])).await;
        for amount in [100_000, 6_660_066, 444_444, 6_660_066] {
            pay(host, amount).await.ok();
        }
        host.advance(1);
        let found = backtest(host, "hostile/1", json!({ "from": from })).await.ok().json;
        assert_eq!((&found["examined"], &found["failed"]), (&json!(4), &json!(2)));
        assert_eq!(found["moves"], json!({ "allow>allow": 1, "allow>hold": 1 }));
        let list = host.admin(Method::GET, "rule-packs", Value::Null).await;
        assert_eq!(list.status, 200);
    })
    .await;
}
