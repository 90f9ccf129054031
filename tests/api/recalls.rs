//! The money of a payment that was made is asked for: nothing changes until it has come back.

use http::Method;
use railhead::transfers::Claimed;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hostile::{attempt, hostile, with_hostile};
use crate::lanes::patch;
use crate::live::{until, until_asked};
use crate::news::tell;
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with_host};

const FUNDS: u64 = 10_000_000;

fn euros() -> Value {
    json!({
        "amount_minor": "125050", "currency": "EUR", "method": "sepa-instant",
        "recipient": {
            "iban": "DE89370400440532013000", "bic_code": "COBADEFFXXX", "name": "Jane Smith", "email": "jane@example.com",
            "street": "Hauptstrasse 1", "city": "Koeln", "zip_code": "50667", "country": "DE",
        },
    })
}

fn dollars() -> Value {
    json!({
        "amount_minor": "125050", "currency": "USD", "method": "wire",
        "recipient": {
            "account_number": "000123456789", "routing_number": "121042882",
            "swift_code": "WFBIUS6S", "account_type": "checking", "name": "Jane Smith",
            "email": "jane@example.com",
            "bank_name": "A Bank",
            "street": "1 Main Street", "city": "Springfield", "state": "IL", "zip_code": "62701",
            "country": "US",
            "bank_address": {
                "line1": "420 Montgomery Street", "city": "San Francisco", "country": "US",
            },
        },
    })
}

async fn recall(host: &TestHost, id: &str) -> Answer {
    let body = json!({ "reason": "ticket 4711: paid twice" });
    host.admin(Method::POST, &format!("payouts/{id}/recall"), body).await
}

#[rstest]
#[case::instant(euros())]
#[case::wire(dollars())]
#[tokio::test(flavor = "multi_thread")]
async fn only_its_return_undoes_a_payment(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] body: Value,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let currency = body["currency"].as_str().expect("a currency");
        let wallet = host.fund(&key, currency, FUNDS).await;
        let paid = host.pay_as(&key, &unique(), body.clone()).await.ok();
        assert_eq!(paid.status_word(), "paid", "{}", paid.text);
        let left = host.balance(&wallet).await;
        // Asked for once and again, whatever is answered: it is paid.
        for _ in 0..2 {
            assert_eq!(recall(host, &paid.id()).await.ok().status_word(), "paid");
        }
        assert_eq!(host.balance(&wallet).await, left);
        assert_eq!(host.count("SELECT COUNT(*) FROM cases WHERE status = 'open'").await, 0);
        let asked = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'recall'";
        assert_eq!(host.count(asked).await, 2);
        assert_eq!(host.last_line().await["action"], "payout.recall");

        let back = format!("/v1/sandbox/payouts/{}/return", paid.id());
        assert_eq!(host.post(&back, json!({})).await.ok().status_word(), "reversed");
        let late = recall(host, &paid.id()).await;
        assert_eq!(late.refused(), (409, "state_conflict"));
    })
    .await;
}

/// A payment of a network that answers recalls as the test wants; its reference.
async fn paid(host: &TestHost) -> (String, String) {
    let key = host.merchant.live_key.clone();
    let id = host.pay_as(&key, &unique(), hostile("sent, then claim")).await.ok().id();
    until(host, &id, "paid").await;
    let reference = attempt(host, &id).await.0;
    (id, reference)
}

async fn open_cases(host: &TestHost, kind: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM cases WHERE status = 'open' AND kind = '{kind}'");
    host.count(&sql).await
}

/// Whichever way a return is told first, it is booked once; another one is another.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_is_answered_and_told_is_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let wallet = &host.merchant.live_wallet;
        let before = host.balance(wallet).await;
        let (id, reference) = paid(host).await;
        till.answer_recalls("returned R-1 100000");
        assert_eq!(recall(host, &id).await.ok().status_word(), "reversed");
        assert_eq!(host.balance(wallet).await, before);
        tell(host, "/told", &format!("returned:R-1 reference {reference} 100000")).await.ok();
        assert_eq!(open_cases(host, "partial_return").await, 0);
        tell(host, "/told", &format!("returned:R-2 reference {reference} 100000")).await.ok();
        assert_eq!(open_cases(host, "partial_return").await, 1);
        assert_eq!(host.balance(wallet).await, before);
    })
    .await;
}

/// What a network answers for good to a recall is as good as if it had told it.
#[rstest]
#[case::a_part("returned R-1 40000", "partial_return")]
#[case::refused("refused", "refused_after_payment")]
#[case::still_paid("paid", "")]
#[tokio::test(flavor = "multi_thread")]
async fn a_definite_answer_to_a_recall_is_not_lost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] answer: &str,
    #[case] kind: &str,
) {
    with_hostile(engine, async |host, till| {
        let (id, _) = paid(host).await;
        till.answer_recalls(answer);
        assert_eq!(recall(host, &id).await.ok().status_word(), "paid");
        let all = host.count("SELECT COUNT(*) FROM cases WHERE status = 'open'").await;
        let wanted = i64::from(!kind.is_empty());
        assert_eq!((open_cases(host, kind).await, all), (wanted, wanted));
    })
    .await;
}

/// A route that leads elsewhere meanwhile tells another bank of nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn money_is_not_asked_back_of_another_bank(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let (id, _) = paid(host).await;
        let elsewhere = json!({ "settings": { "endpoint.bank": "https://bank.invalid" } });
        patch(host, "ngn_hostile", elsewhere).await.ok();
        host.advance(2);
        let refused = recall(host, &id).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        let back = json!({ "settings": { "endpoint.bank": null } });
        patch(host, "ngn_hostile", back).await.ok();
        host.advance(2);
        assert_eq!(till.recalled(), 0);
        till.answer_recalls("later");
        recall(host, &id).await.ok();
        assert_eq!(till.recalled(), 1);
    })
    .await;
}

/// Whoever asks while somebody asks is told so, and nobody is asked twice.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_same_money_is_asked_back_by_one_at_a_time(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let (id, _) = paid(host).await;
        till.until_knocked().await;
        till.answer_recalls("later");
        let shut = till.close().await;
        let (first, second) = futures::join!(recall(host, &id), async {
            till.until_knocked().await;
            let second = recall(host, &id).await;
            drop(shut);
            second
        });
        assert_eq!(second.refused(), (409, "state_conflict"));
        assert_eq!((first.ok().status_word(), till.recalled()), ("paid", 1));
    })
    .await;
}

/// A network that sends nothing back is not asked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_called_off_a_payment_stands(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let paid = host.pay("", naira(100_000)).await.ok();
        assert_eq!(paid.status_word(), "paid");
        // Said again, it is refused again: nothing was asked, and nothing says that it was.
        let path = format!("/admin/v1/payouts/{}/recall", paid.id());
        let body = json!({ "reason": "ticket 4711: paid twice" });
        let key = [("Idempotency-Key", "recall-0000000001")];
        for _ in 0..2 {
            let body = Some(body.clone());
            let refused = host.send(Method::POST, &path, OPERATOR_TOKEN, &key, body).await;
            assert_eq!(refused.refused(), (409, "state_conflict"));
        }
        let told = "SELECT COUNT(*) FROM audit WHERE action = 'payout.recall'";
        assert_eq!(host.count(told).await, 0);
    })
    .await;
}

/// The network is told why, and each request has a number of its own.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recall_says_why_and_is_no_copy_of_another(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let (id, reference) = paid(host).await;
        let path = format!("payouts/{id}/recall");
        let why = |code: Value| json!({ "reason": "ticket 4711", "reason_code": code });
        let odd = host.admin(Method::POST, &path, why(json!("DUPL"))).await;
        assert_eq!((odd.refused(), odd.field()), ((400, "invalid_field"), "reason_code"));
        till.answer_recalls("later");
        for code in [json!(null), json!("duplicate"), json!("fraud")] {
            host.admin(Method::POST, &path, why(code)).await.ok();
        }
        assert_eq!(host.last_line().await["after"]["reason_code"], "fraud");
        let recalls = till.recalls();
        let said: Vec<Vec<&str>> = recalls.iter().map(|it| it.split(' ').collect()).collect();
        let reasons: Vec<&str> = said.iter().map(|it| it[2]).collect();
        assert_eq!(
            reasons,
            ["RecallReason::CustomerRequest", "RecallReason::Duplicate", "RecallReason::Fraud"]
        );
        assert!(said.iter().all(|it| it[0] == reference), "{recalls:?}");
        let numbers: std::collections::BTreeSet<&str> = said.iter().map(|it| it[1]).collect();
        assert_eq!(numbers.len(), 3, "{recalls:?}");
    })
    .await;
}

/// Refused because a call was under way, it is not told as done to whoever repeats it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recall_that_nobody_made_is_not_told_as_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("accept")).await.ok().id();
        until(host, &id, "processing").await;
        till.answer_recalls("refused");
        let path = format!("/admin/v1/payouts/{id}/recall");
        let recall = async || {
            let body = Some(json!({ "reason": "ticket 4711: paid twice" }));
            let once = [("Idempotency-Key", "recall-0000000001")];
            host.send(Method::POST, &path, OPERATOR_TOKEN, &once, body).await
        };
        until_asked(host, &id, 0).await;
        let held = host.app().transfers.claim(&id).await.expect("a claim");
        let Claimed::Yes(claim) = held else { panic!("somebody is at it") };
        assert_eq!(recall().await.refused(), (409, "state_conflict"));
        let told = "SELECT COUNT(*) FROM audit WHERE action = 'payout.recall'";
        assert_eq!(host.count(told).await, 0);
        host.app().transfers.give_back(&claim).await;
        let first = recall().await.ok();
        assert_eq!((first.status_word(), till.recalled()), ("failed", 1));
        let again = recall().await.ok();
        assert_eq!((again.text, till.recalled()), (first.text, 1));
        assert_eq!(again.headers["idempotent-replayed"], "true");
    })
    .await;
}

/// It could not be written down that it was asked for: it is not asked for, and nobody is kept from
/// the payment.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recall_that_cannot_be_written_down_is_not_made(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("accept")).await.ok().id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        till.answer_recalls("refused");
        let broken = match engine {
            Engine::Sqlite => vec![
                "CREATE TRIGGER broken BEFORE INSERT ON audit WHEN NEW.action = 'payout.recall' \
                 BEGIN SELECT RAISE(ABORT, 'broken'); END"
                    .to_owned(),
            ],
            Engine::Postgres => vec![
                "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'broken'; END $$"
                    .to_owned(),
                "CREATE TRIGGER broken BEFORE INSERT ON audit FOR EACH ROW \
                 WHEN (NEW.action = 'payout.recall') EXECUTE FUNCTION broken()"
                    .to_owned(),
            ],
        };
        host.run(&broken).await;
        assert_eq!(recall(host, &id).await.status, 500);
        let on = if engine == Engine::Postgres { " ON audit" } else { "" };
        host.run(&[format!("DROP TRIGGER broken{on}")]).await;
        assert_eq!(till.recalled(), 0);
        assert_eq!(recall(host, &id).await.ok().status_word(), "failed");
    })
    .await;
}

/// Repeated before it has an answer, it is not asked for again, and nobody says that it was done.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recall_that_is_repeated_too_soon_is_made_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let (id, _) = paid(host).await;
        till.until_knocked().await;
        till.answer_recalls("later");
        let path = format!("/admin/v1/payouts/{id}/recall");
        let recall = async || {
            let body = Some(json!({ "reason": "ticket 4711: paid twice" }));
            let once = [("Idempotency-Key", "recall-0000000002")];
            host.send(Method::POST, &path, OPERATOR_TOKEN, &once, body).await
        };
        let shut = till.close().await;
        let (first, second) = futures::join!(recall(), async {
            till.until_knocked().await;
            let second = recall().await;
            drop(shut);
            second
        });
        assert_eq!(second.refused(), (409, "state_conflict"));
        assert!(second.text.contains("another key"), "{}", second.text);
        let first = first.ok();
        assert_eq!((recall().await.ok().text, till.recalled()), (first.text, 1));
    })
    .await;
}
