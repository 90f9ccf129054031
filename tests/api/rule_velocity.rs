//! Velocities: payouts that arrive at once are counted together, wherever they arrive.

use futures::future::join_all;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::to;
use crate::network::{Sends, with_live_host, with_two_hosts};
use crate::packs::{adopt, decision, guard, until_seen};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

const AMOUNT: u64 = 100_000;

/// Fifty payouts at once with the live key, over these hosts in turn.
async fn fifty(hosts: &[&TestHost]) -> Vec<Answer> {
    let requests = hosts
        .iter()
        .cycle()
        .take(50)
        .map(async |host| host.pay_as(&host.merchant.live_key, &unique(), naira(AMOUNT)).await);
    join_all(requests).await
}

/// How many were queued, held and blocked.
fn tally(answers: &[Answer]) -> (usize, usize, usize) {
    let count = |word: &str| {
        let is = |answer: &&Answer| match answer.status {
            201 => answer.status_word() == word,
            _ => answer.refused().1 == word,
        };
        answers.iter().filter(is).count()
    };
    (count("queued"), count("awaiting_admin_review"), count("fraud_rule_blocked"))
}

/// A rule that counts twenty payouts in some way, and what it does with others.
fn twenty(measure: &str, scope: &str, action: &str) -> String {
    let fact = format!("{measure}_per_{scope}_1h");
    let most = if measure == "sum" { 20 * AMOUNT } else { 20 };
    guard("1", &fact, &[("burst", action, &format!("{fact} > {most}"))])
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_payouts_at_once_twenty_go(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("count", "sum")] measure: &str,
    #[values("hold", "block")] action: &str,
) {
    with_live_host(engine, Sends::No, async |host| {
        adopt(host, &twenty(measure, "wallet", action)).await;
        let expected = if action == "hold" { (20, 30, 0) } else { (20, 0, 30) };
        assert_eq!(tally(&fifty(&[host]).await), expected);
        assert_eq!(host.count("SELECT COUNT(*) FROM decisions").await, 50);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_count_together(
    #[values("count", "sum")] measure: &str,
    #[values("hold", "block")] action: &str,
) {
    with_two_hosts(Sends::No, async |host, beside| {
        let change = adopt(host, &twenty(measure, "wallet", action)).await;
        until_seen(beside, &change).await;
        let expected = if action == "hold" { (20, 30, 0) } else { (20, 0, 30) };
        assert_eq!(tally(&fifty(&[host, beside]).await), expected);
    })
    .await;
}

/// The other half of the fifty comes from another merchant, on another host.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_counted_across_merchants_and_hosts(
    #[values("account", "account_and_amount")] scope: &str,
) {
    with_two_hosts(Sends::No, async |host, beside| {
        let change = adopt(host, &twenty("count", scope, "hold")).await;
        until_seen(beside, &change).await;
        let other = TestHost {
            merchant: host.new_merchant("Another").await,
            running: None,
            base: beside.base.clone(),
            client: beside.client.clone(),
            clock: beside.clock.clone(),
            database: std::sync::Arc::clone(&beside.database),
            engine: beside.engine,
        };
        assert_eq!(tally(&fifty(&[host, &other]).await), (20, 30, 0));
    })
    .await;
}

/// What the pack was told about a payout with the live key.
async fn told(host: &TestHost, key: &str, changes: Value) -> Value {
    let paid = host.pay_as(key, &unique(), with(naira(AMOUNT), changes)).await.ok();
    decision(host, &paid.id()).await["facts"].clone()
}

/// Scopes, and what a second payout must share with the first to be counted with it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_counts_what_belongs_together(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let scopes = "merchant wallet recipient recipient_and_amount customer bank account \
                      account_and_amount";
        let facts: Vec<String> =
            scopes.split_whitespace().map(|s| format!("count_per_{s}_1h sum_per_{s}_1h")).collect();
        adopt(host, &guard("1", &facts.join(" "), &[])).await;
        let (key, other) = (host.merchant.live_key.clone(), host.new_merchant("Another").await);
        let bank = json!({ "account_number": "0000000017", "bank_code": "044" });
        let first = json!({ "customer_reference": "kemi", "recipient": to(1)["recipient"] });
        for (key, changes, expected) in [
            (&key, first.clone(), [1, 1, 1, 1, 1, 1, 1, 1]),
            (&key, first.clone(), [2, 2, 2, 2, 2, 2, 2, 2]),
            (
                &key,
                with(first.clone(), json!({ "amount_minor": "100001" })),
                [3, 3, 3, 1, 3, 3, 3, 1],
            ),
            (
                &key,
                with(first.clone(), json!({ "customer_reference": "ada" })),
                [4, 4, 4, 3, 1, 4, 4, 3],
            ),
            (&key, with(first.clone(), to(2)), [5, 5, 1, 1, 4, 5, 1, 1]),
            (&key, with(first.clone(), json!({ "recipient": bank })), [6, 6, 1, 1, 5, 1, 1, 1]),
            (&other.live_key, first.clone(), [1, 1, 1, 1, 1, 1, 5, 4]),
        ] {
            let facts = told(host, key, changes.clone()).await;
            let counts: Vec<_> = scopes
                .split_whitespace()
                .map(|scope| facts[&format!("count_per_{scope}_1h")].as_i64().unwrap_or(-1))
                .collect();
            assert_eq!(counts, expected, "{changes}");
            let sum = facts["sum_per_recipient_and_amount_1h"].as_i64().expect("a sum");
            let amount = changes["amount_minor"].as_str().map_or(100_000, |_| 100_001);
            assert_eq!(sum, amount * counts[3], "{changes}");
        }
        // Nobody's payouts are not counted together.
        let facts = told(host, &key, to(3)).await;
        assert_eq!(facts["count_per_customer_1h"], Value::Null);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_window_slides(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        adopt(host, &guard("1", "count_per_wallet_10m sum_per_wallet_1h", &[])).await;
        let key = host.merchant.test_key.clone();
        // After these pauses, so many within ten minutes and an hour, this one included.
        for (pause, within_10m, within_1h) in [
            (0, 1, 1),
            (300, 2, 2),
            (299, 3, 3),
            (22, 3, 4), // The first is older than ten minutes and a part.
            (580, 2, 5),
            (621, 1, 6),
            (3_590, 1, 2),
            (3_721, 1, 1),
        ] {
            host.advance(pause);
            let facts = told(host, &key, json!({})).await;
            let counted = (
                facts["count_per_wallet_10m"].as_i64().expect("a count"),
                facts["sum_per_wallet_1h"].as_i64().expect("a sum") / 100_000,
            );
            assert_eq!(counted, (within_10m, within_1h), "after {pause} seconds");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn held_payouts_count_and_blocked_or_refused_ones_do_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rules =
            [("hold", "hold", "amount_minor == 2000"), ("block", "block", "amount_minor == 3000")];
        adopt(host, &guard("1", "amount_minor count_per_wallet_1h", &rules)).await;
        let key = host.merchant.test_key.clone();
        for (amount, status, counted) in [
            (100_000, 201, 1),
            (2_000, 201, 2),
            (3_000, 422, 2),
            (3_000, 422, 2),
            (200_000_000, 402, 2), // There is not so much in the wallet.
            (100_000, 201, 3),
        ] {
            let answer = host.pay_as(&key, &unique(), naira(amount)).await;
            assert_eq!(answer.status, status, "{amount}: {}", answer.text);
            let sql = "SELECT COALESCE(MAX(count), 0) FROM counters \
                       WHERE key LIKE 'velocity/%'";
            assert_eq!(host.count(sql).await, counted, "{amount}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn test_and_live_do_not_see_each_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let facts = "count_per_merchant_1h count_per_account_1h count_per_wallet_1h";
        adopt(host, &guard("1", facts, &[])).await;
        let keys = [host.merchant.test_key.clone(), host.merchant.live_key.clone()];
        for count in 1..4 {
            for key in &keys {
                let facts = told(host, key, json!({})).await;
                let all = facts.as_object().expect("facts").values();
                assert!(all.clone().all(|counted| *counted == count), "{facts}");
            }
        }
    })
    .await;
}
