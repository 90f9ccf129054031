//! A payment in a file, over a route that had been given up and was paid there all the same.

use std::collections::BTreeMap;

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::json;

use crate::ach::until_files;
use crate::hostile::{DECLARATION, Till, built, packed, with_hostile_configured};
use crate::hostile_files::{hours_pass, join, made, until_made};
use crate::lanes::{absent_gateway, attempts, pair};
use crate::notices::RIGHT;
use crate::overtaken::{counts, open_cases, until_one_case};
use crate::seams::{account, balance};
use crate::test_host::{Answer, Engine, TestHost};

const AMOUNT: i64 = 100_000;

/// A host with a rail for the same method that calls its bank, behind a route that comes first and
/// at which nobody answers.
async fn with_a_route_before(engine: Engine, test: impl AsyncFnOnce(&TestHost, &Till)) {
    let quick = DECLARATION.replacen("name = \"hostile\"", "name = \"quick\"", 1);
    let quick = quick.replacen("name = \"hostile\"", "name = \"bulk\"", 1);
    let quick = packed(&built("hostile", ""), &quick);
    let other = |config: &mut Config| {
        let folder = config.modules.dir.as_ref().expect("a folder");
        std::fs::write(folder.join("quick.wasm"), quick).expect("written");
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let secrets =
            [("door".to_owned(), RIGHT.to_owned()), ("stamp".to_owned(), "11".repeat(32))];
        config.routes.insert("ngn_quick".to_owned(), BTreeMap::from(secrets));
    };
    with_hostile_configured(engine, other, async |host: &mut TestHost, till: &Till| {
        let route = json!({
            "name": "ngn_quick", "env": "live", "currency": "NGN", "rail": "quick",
            "position": -1, "settings": { "endpoint.bank": absent_gateway() },
        });
        host.admin(Method::POST, "routes", route).await.ok();
        test(host, till).await;
    })
    .await;
}

/// Payouts with these deeds, in a file that is still open.
async fn in_a_file(host: &TestHost, deeds: &[&str]) -> Vec<String> {
    let ids = made(host, deeds).await;
    let count = i64::try_from(ids.len()).expect("a number");
    // Days later, whatever is still being sent would count as abandoned: it may have left.
    host.until_count("SELECT COUNT(*) FROM attempts WHERE bytes_left = 0", count).await;
    join(host, &ids).await;
    host.until_count("SELECT COUNT(*) FROM attempts WHERE file_id IS NOT NULL", count).await;
    ids
}

/// What a payout was called over each of its routes, in their order.
async fn references(host: &TestHost, id: &str) -> [String; 2] {
    let sql = "SELECT rail_reference FROM attempts WHERE transfer_id = $1 ORDER BY id";
    let found: Vec<String> =
        sqlx::query_scalar(sql).bind(id).fetch_all(host.app().db.pool()).await.expect("attempts");
    found.try_into().expect("one over each")
}

/// The bank behind the route that was given up says something.
async fn tell(host: &TestHost, line: &str) -> Answer {
    let url = format!("{}/notices/live/quick/told", host.base);
    let request = host.client.post(url).bearer_auth(RIGHT).body(line.to_owned());
    Answer::of(request.send().await.expect("an answer")).await
}

/// The only file that is with its network is refused as a whole, and paid nothing.
async fn refuse_file(host: &TestHost, till: &Till, sent: &str) {
    till.forget(sent);
    let delivered = "SELECT identity FROM payment_files WHERE state = 'delivered'";
    let pool = host.app().db.pool();
    let identity: String = sqlx::query_scalar(delivered).fetch_one(pool).await.expect("a file");
    till.lay(&format!("refused {identity} 0"));
    host.advance(300);
    host.until_count("SELECT COUNT(*) FROM payment_files WHERE state = 'delivered'", 0).await;
}

/// It was paid there, and nothing went in a file.
async fn is_paid_there(host: &TestHost, till: &Till, (id, left): (&str, i64)) {
    let [given_up, sent] = references(host, id).await;
    assert_eq!(counts(host, (id, "paid")).await, given_up);
    hours_pass(host).await;
    assert_eq!(till.paid(&sent), 0);
    assert_eq!(attempts(host, id).await[0], pair("ngn_quick", "paid"));
    assert_eq!(account(host, "settlement/ngn_quick").await, AMOUNT);
    assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
    assert_eq!(open_cases(host).await, 0);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_file_that_is_still_open_does_not_leave_in_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_a_route_before(engine, async |host, till| {
        let ids = in_a_file(host, &["pay"]).await;
        let (left, [given_up, _]) = (balance(host).await, references(host, &ids[0]).await);
        tell(host, &format!("paid reference {given_up} {AMOUNT}")).await.ok();
        host.advance(2);
        until_files(host, &[("empty", 1)]).await;
        is_paid_there(host, till, (&ids[0], left)).await;
    })
    .await;
}

/// It is turned down while a file is made of it: that was never sent, and what was paid counts.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_turned_down_for_a_file_and_was_paid_before_is_not_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_a_route_before(engine, async |host, till| {
        let ids = in_a_file(host, &["turn down", "dawdle"]).await;
        let (left, [given_up, _]) = (balance(host).await, references(host, &ids[0]).await);
        until_made(host).await;
        tell(host, &format!("paid reference {given_up} {AMOUNT}")).await.ok();
        host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'paid'", 1).await;
        // A busy machine may have no time for the rail the first time.
        hours_pass(host).await;
        until_files(host, &[("delivered", 1)]).await;
        is_paid_there(host, till, (&ids[0], left)).await;
    })
    .await;
}

/// Its file is refused as a whole: it goes into no other one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_a_file_that_is_refused_and_was_paid_before_is_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_a_route_before(engine, async |host, till| {
        let ids = in_a_file(host, &["pay"]).await;
        let (left, [given_up, sent]) = (balance(host).await, references(host, &ids[0]).await);
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        tell(host, &format!("paid reference {given_up} {AMOUNT}")).await.ok();
        until_one_case(host, "outcome_unknown").await;
        refuse_file(host, till, &sent).await;
        is_paid_there(host, till, (&ids[0], left)).await;
    })
    .await;
}

/// It was told while the file was held back: what is made then leaves without it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_before_its_file_is_made_is_left_out_of_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_a_route_before(engine, async |host, till| {
        let ids = in_a_file(host, &["pay", "dawdle", "refuse to make it"]).await;
        let [given_up, _] = references(host, &ids[0]).await;
        host.advance(2);
        until_one_case(host, "file_stuck").await;
        tell(host, &format!("paid reference {given_up} {AMOUNT}")).await.ok();
        until_one_case(host, "outcome_unknown").await;
        let body = json!({ "reason": "a fraud", "evidence": "a call" });
        host.admin(Method::POST, &format!("payouts/{}/mark_failed", ids[2]), body).await.ok();
        let left = balance(host).await;
        hours_pass(host).await;
        until_files(host, &[("delivered", 1)]).await;
        is_paid_there(host, till, (&ids[0], left)).await;
    })
    .await;
}

/// Both files that it was in are refused: it needs no third one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_two_files_that_are_refused_and_was_paid_before_ends(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_a_route_before(engine, async |host, till| {
        let ids = in_a_file(host, &["pay"]).await;
        let (left, [given_up, sent]) = (balance(host).await, references(host, &ids[0]).await);
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        refuse_file(host, till, &sent).await;
        let again = "SELECT COUNT(*) FROM attempts WHERE sends = 2";
        host.advance(24 * 3_600);
        host.until_count(again, 1).await;
        host.advance(2);
        until_files(host, &[("delivered", 1), ("refused", 1)]).await;
        tell(host, &format!("paid reference {given_up} {AMOUNT}")).await.ok();
        until_one_case(host, "outcome_unknown").await;
        refuse_file(host, till, &sent).await;
        is_paid_there(host, till, (&ids[0], left)).await;
    })
    .await;
}
