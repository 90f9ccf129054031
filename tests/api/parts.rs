//! Parts of payments that came back, and all of it besides.

use railhead::simulator::OwnMessage;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::hostile::{attempt, hostile, with_hostile};
use crate::live::{TOTAL, pay, reference, until, with_bank};
use crate::news::tell;
use crate::notices::{RIGHT, deliver, status};
use crate::overtaken::until_one_case;
use crate::seams::{account, balance, mark, marked_while_unknown, resolve, until_case};
use crate::test_host::{Engine, TestHost, unique};

/// What the bank says of a payment of 1,000.00 that comes back, and the same of 400.00 of it.
async fn returns(bank: &Bank, reference: &str) -> (OwnMessage, OwnMessage) {
    bank.control(reference, "return").await.ok();
    let whole = bank.message().await;
    let body = whole.text().replace("1000.00", "400.00").into_bytes();
    let part = OwnMessage { body, ..whole.clone() };
    (whole, part)
}

/// The case about a part that came back.
async fn told_of_part(host: &TestHost, part: &OwnMessage) -> Value {
    deliver(host, ("live", RIGHT), part).await.ok();
    until_case(host, "partial_return").await
}

/// A payout of which a part came back: its id, what the bank says where all of it does, and the case.
async fn paid_and_part(host: &TestHost, bank: &Bank) -> (String, OwnMessage, Value) {
    let id = pay(host, "0123456785").await.ok().id();
    let paid = until(host, &id, "paid").await;
    let (whole, part) = returns(bank, &reference(&paid)).await;
    let case = told_of_part(host, &part).await;
    (id, whole, case)
}

/// A part has been credited, and then the bank sends all of it: the wallet does not get more than
/// it paid.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn all_that_comes_back_after_a_credited_part_is_a_persons(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let began = balance(host).await;
        let (id, whole, case) = paid_and_part(host, bank).await;
        resolve(host, &case, "credit").await.ok();
        for _ in 0..2 {
            deliver(host, ("live", RIGHT), &whole).await.ok();
        }
        let case = until_case(host, "partial_return").await;
        assert_eq!((&case["subject_id"], &case["amount_minor"]), (&json!(id), &json!("100000")));
        let left = began - TOTAL + 40_000;
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 100_000));
        host.prove().await;
        assert_eq!(resolve(host, &case, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &case, "forwarded").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
        until(host, &id, "paid").await;
    })
    .await;
}

/// All of it comes back before anybody has decided about the part: there is nothing to credit then.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_what_came_back_whole_cannot_be_credited(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let began = balance(host).await;
        let (id, whole, case) = paid_and_part(host, bank).await;
        deliver(host, ("live", RIGHT), &whole).await.ok();
        until(host, &id, "reversed").await;
        assert_eq!(resolve(host, &case, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &case, "forwarded").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (began, 0));
    })
    .await;
}

/// Nor is what the bank did not pay after all, once a part of it was credited.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_credited_in_part_is_not_given_back_whole(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let other = pay(host, "0123456785").await.ok().id();
        let other = reference(&until(host, &other, "paid").await);
        let (id, marked) = marked_while_unknown(host, "mark_paid").await;
        let left = balance(host).await;
        let (_, part) = returns(bank, &other).await;
        let body = part.text().replace(&other, &marked).into_bytes();
        let case = told_of_part(host, &OwnMessage { body, ..part }).await;
        resolve(host, &case, "credit").await.ok();
        bank.control(&marked, "fail").await.ok();
        deliver(host, ("live", RIGHT), &status(&marked, "05")).await.ok();
        let case = until_case(host, "refused_after_payment").await;
        assert_eq!(resolve(host, &case, "give_back").await.refused(), (409, "state_conflict"));
        resolve(host, &case, "uphold").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (left + 40_000, 0));
        until(host, &id, "paid_manual").await;
    })
    .await;
}

/// It was marked as failed, paid all the same, and came back: it is nobody's to pay for.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_came_back_after_it_was_paid_in_spite_of_a_mark_is_not_charged(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, marked) = marked_while_unknown(host, "mark_failed").await;
        let left = balance(host).await;
        bank.control(&marked, "settle").await.ok();
        deliver(host, ("live", RIGHT), &status(&marked, "00")).await.ok();
        let paid = until_case(host, "paid_after_failure").await;
        let (whole, _) = returns(bank, &marked).await;
        for _ in 0..2 {
            deliver(host, ("live", RIGHT), &whole).await.ok();
        }
        let back = until_one_case(host, "partial_return").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
        assert_eq!(resolve(host, &paid, "charge").await.refused(), (409, "state_conflict"));
        assert_eq!(resolve(host, &back, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &paid, "recovered").await.ok();
        resolve(host, &back, "forwarded").await.ok();
        until(host, &id, "failed_manual").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
    })
    .await;
}

/// A part that the bank only tells of when it is asked, before the payment has ended and after.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_told_to_a_question_is_not_lost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("accept", "sent, then claim")] deed: &str,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile(deed)).await.ok().id();
        let status = if deed == "accept" { "processing" } else { "paid" };
        until(host, &id, status).await;
        let (reference, _, _) = attempt(host, &id).await;
        let left = balance(host).await;
        till.give_back(&reference, 40_000);
        for _ in 0..2 {
            tell(host, "/hinted", &format!("paid reference {reference} 100000")).await.ok();
        }
        let case = until_case(host, "partial_return").await;
        assert_eq!((&case["subject_id"], &case["amount_minor"]), (&json!(id), &json!("40000")));
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 40_000));
        until(host, &id, status).await;
    })
    .await;
}

/// It was paid, marked as failed on evidence, and comes back: everything was given back before.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_after_it_was_given_back_on_evidence_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let began = balance(host).await;
        let id = pay(host, "0123456785").await.ok().id();
        let sent = reference(&until(host, &id, "paid").await);
        let settled = account(host, "settlement/ngn_nip").await;
        mark(host, "mark_failed", &id).await.ok();
        let (whole, _) = returns(bank, &sent).await;
        deliver(host, ("live", RIGHT), &whole).await.ok();
        until(host, &id, "failed_manual").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (began, 0));
        assert_eq!(account(host, "settlement/ngn_nip").await, settled - 100_000);
        assert_eq!(host.count("SELECT COUNT(*) FROM cases WHERE status = 'open'").await, 0);
    })
    .await;
}
