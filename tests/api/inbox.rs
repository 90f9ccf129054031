//! What networks send is stored before they are answered, and has its effect once, however long
//! that takes.

use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::fps;
use crate::live::{TOTAL, pay, reference, until, with_bank};
use crate::notices::{RIGHT, deliver};
use crate::test_host::{Engine, TestHost};

/// States of everything in the inbox, the oldest first.
async fn states(host: &TestHost) -> Vec<String> {
    let sql = "SELECT state FROM inbox ORDER BY id";
    sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("the inbox")
}

/// Changes something behind the host's back.
async fn change(host: &TestHost, sql: &str) {
    let mut tx = host.app().db.write().await.expect("a transaction");
    sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(tx.conn()).await.expect("changed");
    tx.commit().await.expect("committed");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_finds_its_payment_busy_is_taken_in_after_that(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001015").await.ok().id();
        let sent = until(host, &id, "processing").await;
        crate::live::until_asked(host, &id, 0).await;
        bank.control(&reference(&sent), "settle").await.ok();
        bank.control(&reference(&sent), "return").await.ok();
        // Somebody is at it, and stays.
        change(host, "UPDATE transfers SET lease_until = 4000000000000000").await;
        let message = loop {
            let message = bank.message().await;
            if message.path.contains("fundtransfer") {
                break message;
            }
        };
        let told = deliver(host, ("live", RIGHT), &message).await;
        assert_eq!(told.ok().status, 200);
        assert_eq!(states(host).await, ["new"]);
        host.until_count("SELECT COUNT(*) FROM inbox WHERE tries = 1", 1).await;
        until(host, &id, "processing").await;
        change(host, "UPDATE transfers SET lease_until = 0").await;
        host.advance(6);
        let ended = until_either(host, &id, &["reversed", "failed"]).await;
        assert!(["reversed", "failed"].contains(&ended.as_str()));
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'taken'", 1).await;
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000);
    })
    .await;
}

/// A payment whose network has said that it was paid, while somebody stays at it: its id, once that
/// had no effect.
async fn told_in_vain(host: &TestHost, bank: &Bank) -> String {
    fps::funded(host, &host.merchant.live_key.clone()).await;
    let id = fps::pay_live(host).await;
    let settled = bank.message().await;
    // Whoever has sent it is done with it.
    crate::live::until_asked(host, &id, 0).await;
    change(host, "UPDATE transfers SET lease_until = 4000000000000000").await;
    fps::answered(host, &settled).await;
    host.until_count("SELECT COUNT(*) FROM inbox WHERE tries = 1", 1).await;
    id
}

/// What has no effect in a day and more, as where somebody stays at its payment, is a person's to
/// know of; and it is tried on.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_has_no_effect_for_long_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = told_in_vain(host, bank).await;
        let open = "SELECT COUNT(*) FROM cases WHERE kind = 'unreadable_message' \
                    AND status = 'open'";
        // As if it had been tried as often as to be told next time.
        change(host, "UPDATE inbox SET tries = 5").await;
        for (tries, cases) in [(6, 0), (7, 1), (8, 1)] {
            host.advance(24 * 3_600);
            let tried = format!("SELECT COUNT(*) FROM inbox WHERE tries = {tries}");
            host.until_count(&tried, 1).await;
            assert_eq!(host.count(open).await, cases, "after {tries}");
        }
        assert_eq!(states(host).await, ["new"]);
        change(host, "UPDATE transfers SET lease_until = 0").await;
        host.advance(24 * 3_600);
        until(host, &id, "paid").await;
    })
    .await;
}

/// What no key opens is tried on, and a person is told: it may be money that came back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_opened_is_somebodys_case_until_it_can(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = told_in_vain(host, bank).await;
        change(host, "UPDATE inbox SET tries = 6, content = 'x' || content").await;
        host.advance(24 * 3_600);
        let open = "SELECT COUNT(*) FROM cases WHERE kind = 'unreadable_message' \
                    AND summary LIKE '%no key%'";
        host.until_count(open, 1).await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE tries = 7", 1).await;
        assert_eq!(states(host).await, ["new"]);
        change(host, "UPDATE transfers SET lease_until = 0").await;
        change(host, "UPDATE inbox SET content = SUBSTR(content, 2)").await;
        host.advance(24 * 3_600);
        until(host, &id, "paid").await;
    })
    .await;
}

async fn until_either(host: &TestHost, id: &str, wanted: &[&str]) -> String {
    let path = format!("/v1/payouts/{id}");
    for _ in 0..2_000 {
        let payout = host.get_as(&host.merchant.live_key, &path).await.ok();
        if wanted.contains(&payout.status_word()) {
            return payout.status_word().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{id} is none of {wanted:?}");
}

/// A host died after it had stored a message, or after it had taken it in: it is taken in again,
/// and what it says has had its effect already.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_taken_in_twice_has_its_effect_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0123456785").await.ok().id();
        let paid = until(host, &id, "paid").await;
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000 - TOTAL);
        bank.control(&reference(&paid), "return").await.ok();
        deliver(host, ("live", RIGHT), &bank.message().await).await.ok();
        until(host, &id, "reversed").await;
        assert_eq!(states(host).await, ["taken"]);
        let kept = "SELECT content FROM inbox";
        let kept: String =
            sqlx::query_scalar(kept).fetch_one(host.app().db.pool()).await.expect("a message");
        assert!(kept.starts_with("s1.") && !kept.contains(&reference(&paid)), "{kept}");
        change(host, "UPDATE inbox SET state = 'new', done = '[]', due_at = 0").await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'taken'", 1).await;
        until(host, &id, "reversed").await;
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000);
        let events = "SELECT COUNT(*) FROM events WHERE type = 'payout.reversed'";
        assert_eq!(host.count(events).await, 1);
    })
    .await;
}

/// The scheme's own name for a payment is told when it settles. A return that names it comes
/// before: nobody knows it, a case is opened, and ends by itself.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_comes_before_its_payment_is_known_finds_it_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        fps::funded(host, &host.merchant.live_key.clone()).await;
        let id = fps::pay_live(host).await;
        let settled = bank.message().await;
        until(host, &id, "processing").await;
        let said: Value = serde_json::from_slice(&settled.body).expect("JSON");
        let own = said["Payload"]["ActualEndToEndTransactionId"].as_str().expect("a name");
        let body = json!({ "Type": "TransactionSettled", "Version": 6, "Nonce": 77,
            "Payload": { "TransactionId": "RT1", "Status": "Settled", "CurrencyCode": "GBP",
                "EndToEndTransactionId": "theirs", "Amount": 1250.5, "DebitCreditCode": "Credit",
                "SupplementaryData": [{ "Name": "ReturnedPaymentFpId", "Value": own }],
                "IsReturn": true } });
        fps::answered(host, &fps::signed(&settled, body.to_string())).await;
        let open = "SELECT COUNT(*) FROM cases WHERE kind = 'unknown_reference' \
                    AND status = 'open'";
        assert_eq!(host.count(open).await, 1);
        fps::answered(host, &settled).await;
        until(host, &id, "paid").await;
        host.advance(6);
        until(host, &id, "reversed").await;
        host.until_count(open, 0).await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'taken'", 2).await;
    })
    .await;
}
