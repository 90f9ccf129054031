//! Payouts that an operator has reversed, and what banks say of them afterwards.

use rstest::rstest;
use serde_json::json;

use crate::live::{TOTAL, until, with_bank};
use crate::notices::{RIGHT, deliver, status};
use crate::seams::{START, account, balance, mark, marked_while_unknown, resolve, until_case};
use crate::test_host::{Engine, naira};

/// The operator took it for paid, and gave it back; what the bank says then contradicts the books.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_paid_what_was_marked_and_reversed_is_heard(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, reference) = marked_while_unknown(host, "mark_paid").await;
        mark(host, "reverse", &id).await.ok();
        assert_eq!(balance(host).await, START);
        bank.control(&reference, "settle").await.ok();
        for _ in 0..2 {
            deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
        }
        let case = until_case(host, "paid_after_failure").await;
        assert_eq!((&case["subject_id"], &case["amount_minor"]), (&json!(id), &json!("100000")));
        assert_eq!((balance(host).await, account(host, "suspense").await), (START, -100_000));
        host.prove().await;
        resolve(host, &case, "charge").await.ok();
        until(host, &id, "paid_manual").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (START - TOTAL, 0));
        // What was paid and written off is not paid once more in the books.
        let (written_off, reference) = marked_while_unknown(host, "mark_failed").await;
        bank.control(&reference, "settle").await.ok();
        deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
        let case = until_case(host, "paid_after_failure").await;
        resolve(host, &case, "write_off").await.ok();
        let refused = mark(host, "mark_paid", &written_off).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        // Whom it was taken back from, the bank has not paid either.
        let (id, reference) = marked_while_unknown(host, "mark_paid").await;
        mark(host, "reverse", &id).await.ok();
        bank.control(&reference, "fail").await.ok();
        deliver(host, ("live", RIGHT), &status(&reference, "57")).await.ok();
        let refused = format!(
            "SELECT COUNT(*) FROM attempts WHERE transfer_id = '{id}' AND state = 'refused'"
        );
        host.until_count(&refused, 1).await;
        assert_eq!(account(host, "suspense").await, 0);
        host.prove().await;
        // What had failed, was marked as paid and reversed adds up, too.
        let failed = host.pay("failed", naira(100_000)).await.ok().id();
        mark(host, "mark_paid", &failed).await.ok();
        mark(host, "reverse", &failed).await.ok();
        host.prove().await;
    })
    .await;
}
