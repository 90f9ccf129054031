//! Requests that arrive at once cannot do together what none of them may do alone.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use http::Method;
use railhead::cases::{Case, CaseKind};
use railhead::env::Env;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::to;
use crate::ach::dollars;
use crate::fps::pounds;
use crate::mpesa::shillings;
use crate::network::{Sends, with_live_host, with_two_hosts};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};
use crate::writer_lanes::lane_of;

const AMOUNT: u64 = 100_000;
/// A mobile number that takes money.
const NUMBER: &str = "0712345678";
/// What a payout of that amount takes from its wallet, fee and tax included.
const COST: i64 = 101_075;

/// Fifty payouts at once with the live key, over these hosts in turn.
async fn fifty(hosts: &[&TestHost], changes: Value) -> Vec<Answer> {
    let requests = hosts.iter().cycle().take(50).map(async |host| {
        let body = with(naira(AMOUNT), changes.clone());
        host.pay_as(&host.merchant.live_key, &unique(), body).await
    });
    join_all(requests).await
}

/// How often each code was answered; a success counts under its status.
fn tally(answers: &[Answer]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for answer in answers {
        let word = match answer.status {
            201 => answer.status_word().to_owned(),
            _ => answer.refused().1.to_owned(),
        };
        *tally.entry(word).or_default() += 1;
    }
    tally
}

fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.into_iter().map(|(word, count)| (word.to_owned(), count)).collect()
}

/// Takes money from the live wallet until this much is left.
async fn leave(host: &TestHost, left: i64) {
    let wallet = &host.merchant.live_wallet;
    let surplus = host.balance(wallet).await - left;
    let body = json!({ "amount_minor": surplus.to_string(), "reason": "test" });
    host.admin(Method::POST, &format!("wallets/{wallet}/debit"), body).await.ok();
}

/// The numbers of the live wallet's entries run from 1 without a gap.
async fn numbers_have_no_gap(host: &TestHost) {
    let wallet = &host.merchant.live_wallet;
    let path = format!("/v1/wallets/{wallet}/transactions?limit=100");
    let page = host.get_as(&host.merchant.live_key, &path).await.ok();
    let entries = page.json["data"].as_array().expect("entries");
    let mut numbers: Vec<i64> = entries.iter().filter_map(|e| e["sequence"].as_i64()).collect();
    numbers.reverse();
    let expected: Vec<i64> = (1..).take(entries.len()).collect();
    assert_eq!(numbers, expected);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn money_for_twenty_pays_for_twenty(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(0, 1)] missing: i64,
) {
    with_live_host(engine, Sends::No, async |host| {
        leave(host, 20 * COST - missing).await;
        let answers = fifty(&[host], json!({})).await;
        let paid = 20 - usize::try_from(missing).expect("small");
        assert_eq!(tally(&answers), counts([("queued", paid), ("insufficient_funds", 50 - paid)]));
        let left = if missing == 0 { 0 } else { COST - missing };
        assert_eq!(host.balance(&host.merchant.live_wallet).await, left);
        let path = format!("/v1/wallets/{}/balance", host.merchant.live_wallet);
        let balance = host.get_as(&host.merchant.live_key, &path).await.ok();
        let out = i64::try_from(paid).expect("small") * COST;
        assert_eq!(balance.json["pending_out_minor"], out.to_string());
        numbers_have_no_gap(host).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_pay_for_twenty_with_money_for_twenty(
    #[values(Sends::No, Sends::Yes)] sends: Sends,
) {
    with_two_hosts(sends, async |host, beside| {
        leave(host, 20 * COST).await;
        let answers = fifty(&[host, beside], json!({})).await;
        assert_eq!(tally(&answers), counts([("queued", 20), ("insufficient_funds", 30)]));
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 0);
        if sends == Sends::Yes {
            for answer in answers.iter().filter(|answer| answer.status == 201) {
                host.until(&host.merchant.live_key, &answer.id(), "paid").await;
            }
            let sent = "SELECT COUNT(*) FROM attempts WHERE sends = 1 AND number > 0";
            assert_eq!(host.count(sent).await, 20);
            assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 20);
        }
        numbers_have_no_gap(host).await;
    })
    .await;
}

/// What the operator limits, and what is answered beyond the limit.
fn limits() -> [(Value, &'static str); 2] {
    let limit = (20 * AMOUNT).to_string();
    [
        (json!({ "NGN": { "daily_minor": limit } }), "daily"),
        (json!({ "NGN": { "per_beneficiary_minor": limit } }), "per_beneficiary"),
    ]
}

async fn limit(host: &TestHost, limits: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, json!({ "limits": limits })).await.ok();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_at_once_do_not_slip_under_a_limit_together(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(0, 1)] which: usize,
) {
    with_live_host(engine, Sends::No, async |host| {
        let (limits, kind) = limits()[which].clone();
        limit(host, limits).await;
        let answers = fifty(&[host], json!({})).await;
        assert_eq!(tally(&answers), counts([("queued", 20), ("limit_violation", 30)]));
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(answer.json["error"]["detail"]["kind"], kind);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_keep_a_limit_together() {
    with_two_hosts(Sends::No, async |host, beside| {
        limit(host, limits()[0].0.clone()).await;
        let answers = fifty(&[host, beside], json!({})).await;
        assert_eq!(tally(&answers), counts([("queued", 20), ("limit_violation", 30)]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_take_a_reference_and_pay_a_recipient_once() {
    with_two_hosts(Sends::No, async |host, beside| {
        let hosts = [&*host, beside];
        let answers = fifty(&hosts, json!({ "merchant_reference": "invoice 7" })).await;
        let expected = counts([("queued", 1), ("merchant_reference_duplicate", 49)]);
        assert_eq!(tally(&answers), expected);
        let changes = with(to(7), json!({ "allow_duplicate": false }));
        let answers = fifty(&hosts, changes).await;
        assert_eq!(tally(&answers), counts([("queued", 1), ("beneficiary_cooldown", 49)]));
    })
    .await;
}

/// The lanes of a merchant's wallets that pay below.
async fn lanes(host: &TestHost, key: &str) -> BTreeSet<usize> {
    let wallets = host.get_as(key, "/v1/wallets").await.ok().json["data"].clone();
    let wallets = wallets.as_array().expect("wallets").iter();
    let paying = ["NGN", "GBP", "USD", "KES"].map(Value::from);
    let paying = wallets.filter(|wallet| paying.contains(&wallet["currency"]));
    paying.map(|wallet| lane_of(host, wallet["id"].as_str().expect("an id"))).collect()
}

/// Its wallets are served by different threads.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_merchant_asks_once_is_done_once_whichever_wallets_pay(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (host, mut key) = (&*host, host.merchant.test_key.clone());
        while engine == Engine::Postgres && lanes(host, &key).await.len() < 2 {
            key = host.new_merchant(&unique()).await.test_key;
        }
        let key = key.as_str();
        for currency in ["GBP", "USD", "KES"] {
            host.fund(key, currency, 100_000_000).await;
        }
        let all = || [naira(AMOUNT), pounds(json!({})), dollars(json!({})), shillings(NUMBER)];
        for round in 0..4 {
            let reference = json!({ "merchant_reference": format!("invoice {round}") });
            let paying = all()
                .map(async |body| host.pay_as(key, &unique(), with(body, reference.clone())).await);
            one_is_made(&join_all(paying).await, &["merchant_reference_duplicate"]);
            let same = unique();
            let paying = all().map(async |body| host.pay_as(key, &same, body).await);
            let conflicts = ["idempotency_key_conflict", "idempotency_conflict"];
            one_is_made(&join_all(paying).await, &conflicts);
        }
    })
    .await;
}

/// One of these was accepted, and the others were refused with one of these codes.
fn one_is_made(answers: &[Answer], codes: &[&str]) {
    let mut made = 0;
    for answer in answers {
        match answer.status {
            201 => made += 1,
            status => {
                let (_, code) = answer.refused();
                assert!(status == 409 && codes.contains(&code), "{:?}", tally(answers));
            }
        }
    }
    assert_eq!(made, 1, "{:?}", tally(answers));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_recipient_is_saved_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_live_host(engine, Sends::No, async |host| {
        let answers = fifty(&[host], json!({})).await;
        assert_eq!(tally(&answers), counts([("queued", 50)]));
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 1);
        let ids = "SELECT COUNT(DISTINCT beneficiary_id) FROM payouts";
        assert_eq!(host.count(ids).await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_is_frozen_meanwhile_pays_nothing_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let wallet = host.merchant.live_wallet.clone();
        let path = format!("wallets/{wallet}/freeze");
        let freeze = async {
            // Some of the fifty are under way by the time that this one is answered.
            host.pay_as(&host.merchant.live_key, &unique(), naira(AMOUNT)).await.ok();
            host.admin(Method::POST, &path, json!({})).await.ok();
            host.balance(&wallet).await
        };
        let hosts = [&*host];
        let (answers, left) = tokio::join!(fifty(&hosts, json!({})), freeze);
        let paid = 1 + answers.iter().filter(|answer| answer.status == 201).count();
        let refused = answers.iter().filter(|answer| answer.status == 403).count();
        assert_eq!(paid + refused, 51, "{:?}", tally(&answers));
        assert_eq!(host.balance(&wallet).await, left, "nothing left it once it was frozen");
        assert_eq!(left, 100_000_000 - i64::try_from(paid).expect("few") * COST);
        let late = fifty(&[host], json!({})).await;
        assert_eq!(tally(&late), counts([("wallet_frozen", 50)]));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_decisions_about_one_payout_one_counts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let host = &*host;
        let key = &host.merchant.live_key;
        for _ in 0..5 {
            let payout = host.pay_as(key, &unique(), naira(AMOUNT)).await.ok().id();
            let decisions = (0..12).map(|number| decide(host, &payout, number));
            let answers = join_all(decisions).await;
            let won = answers.iter().filter(|answer| answer.status == 200).count();
            // Some may follow one another: what is marked as failed may be marked as paid. Each
            // that was told that it counts is one change, and the others are none.
            let sql = "SELECT version FROM payouts WHERE id = $1";
            let pool = host.app().db.pool();
            let version: i64 =
                sqlx::query_scalar(sql).bind(&payout).fetch_one(pool).await.expect("a version");
            assert!(won >= 1, "none counted");
            assert_eq!(version, 1 + i64::try_from(won).expect("few"));
            for answer in answers.iter().filter(|answer| answer.status != 200) {
                let (status, code) = answer.refused();
                assert_eq!(status, 409);
                assert!(matches!(code, "state_conflict" | "payout_not_cancellable"), "{code}");
            }
        }
    })
    .await;
}

/// Cancels, marks as paid or marks as failed, by turns.
async fn decide(host: &TestHost, payout: &str, number: usize) -> Answer {
    let key = &host.merchant.live_key;
    let evidence = json!({ "evidence": "a letter" });
    match number % 3 {
        0 => {
            let path = format!("/v1/payouts/{payout}/cancel");
            let body = json!({ "reason": "a mistake" });
            host.send(Method::POST, &path, key, &[], Some(body)).await
        }
        1 => host.admin(Method::POST, &format!("payouts/{payout}/mark_paid"), evidence).await,
        _ => host.admin(Method::POST, &format!("payouts/{payout}/mark_failed"), evidence).await,
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_books_are_proven_while_a_host_writes_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::Yes, async |host| {
        let pay = async {
            for _ in 0..4 {
                fifty(&[host], json!({})).await;
            }
        };
        let prove = async {
            for _ in 0..20 {
                host.prove().await;
            }
        };
        tokio::join!(pay, prove);
    })
    .await;
}

/// A case as it is opened by whoever notices what it is about.
fn case(host: &TestHost) -> Case {
    Case {
        id: host.app().ids.id(),
        kind: CaseKind::PaidTwice,
        fingerprint: "paid_twice/by two at once".to_owned(),
        env: Env::Live,
        merchant_id: None,
        subject_type: "payout",
        subject_id: "a payout".to_owned(),
        route: None,
        amount: None,
        summary: "Two notice the same.".to_owned(),
        evidence: Value::Null,
        opened_at: host.app().now(),
    }
}

/// What another host writes a moment earlier is not there yet for whoever looks, and there already
/// for whoever writes: it looks again.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_a_moment_slower_finds_what_the_other_one_wrote() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        let (pool, slower) = (host.app().db.pool().clone(), case(host));
        let cases = format!("SELECT COUNT(*) FROM cases WHERE fingerprint = '{}'", slower.fingerprint);
        let mut faster = pool.begin().await.expect("a transaction");
        let sql = "INSERT INTO cases (id, kind, fingerprint, env, subject_type, subject_id, summary, \
                   evidence, opened_at, status, version, batch_id) VALUES \
                   ('faster', 'paid_twice', $1, 'live', 'payout', 'a payout', '', 'null', 0, 'open', \
                   1, 0)";
        let query = sqlx::query(sql).bind(slower.fingerprint.clone());
        query.execute(&mut *faster).await.expect("inserted");
        let app = host.app().clone();
        let opening = tokio::spawn(async move { app.writer.work(slower.opening(&app.ids)).await });
        let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database()";
        host.until_count(waits, 1).await;
        faster.commit().await.expect("committed");
        opening.await.expect("no panic").expect("it is there, and that is all that was wanted");
        assert_eq!(host.count(&cases).await, 1);
        host.run(&["DELETE FROM cases WHERE id = 'faster'".to_owned()]).await;
    })
    .await;
}
