//! A payment over a route that had been given up, and was paid there all the same.

use std::collections::BTreeMap;

use http::Method;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use serde_json::{Value, json};

use crate::hostile::{Till, hostile, with_hostile, with_hostile_configured};
use crate::lanes::{absent_gateway, attempts, pair};
use crate::live::{until, until_asked};
use crate::news::tell;
use crate::notices::RIGHT;
use crate::seams::{self, account, balance, mark, resolve, until_case};
use crate::test_host::{DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, unique};

const AMOUNT: i64 = 100_000;

/// A payout that is under way over the second route, the first having been given up.
struct Overtaken {
    id: String,
    /// What it is called at the first bank, and at the second.
    given_up: String,
    sent: String,
    /// What is left in the wallet.
    left: i64,
}

async fn with_overtaken(engine: Engine, test: impl AsyncFnOnce(&TestHost, Overtaken)) {
    with_overtaken_by(engine, "accept", async |host, _, it| test(host, it).await).await;
}

/// One of which the bank behind the first route says that it paid it, with what the rail does at the
/// second.
async fn with_overtaken_by(
    engine: Engine,
    deed: &str,
    test: impl AsyncFnOnce(&TestHost, &Till, Overtaken),
) {
    with_given_up(engine, deed, async |host, till, it| {
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.given_up)).await.ok();
        let case = until_case(host, "outcome_unknown").await;
        assert_eq!(case["subject_id"], json!(it.id));
        assert_eq!(counts(host, (&it.id, "processing")).await, it.sent);
        host.prove().await;
        test(host, till, it).await;
    })
    .await;
}

async fn with_given_up(
    engine: Engine,
    deed: &str,
    test: impl AsyncFnOnce(&TestHost, &Till, Overtaken),
) {
    let other = |config: &mut Config| {
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let secrets =
            [("door".to_owned(), RIGHT.to_owned()), ("stamp".to_owned(), "11".repeat(32))];
        config.routes.insert("ngn_other".to_owned(), BTreeMap::from(secrets));
    };
    with_hostile_configured(engine, other, async |host: &mut TestHost, till: &Till| {
        let route = json!({
            "name": "ngn_other", "env": "live", "currency": "NGN", "rail": "hostile",
            "position": -1, "settings": { "endpoint.bank": absent_gateway() },
        });
        host.admin(Method::POST, "routes", route).await.ok();
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile(deed)).await.ok().id();
        until(host, &id, "processing").await;
        let given_up = "SELECT COUNT(*) FROM attempts WHERE state = 'not_sent'";
        host.until_count(given_up, 1).await;
        // Whoever sends it is done with it.
        until_asked(host, &id, 0).await;
        let sql = "SELECT rail_reference FROM attempts WHERE state = 'not_sent'";
        let pool = host.app().db.pool();
        let given_up: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("one");
        let sent = counts(host, (&id, "processing")).await;
        assert_ne!(sent, given_up);
        let left = balance(host).await;
        test(host, till, Overtaken { id, given_up, sent, left }).await;
    })
    .await;
}

/// Waits until a payout has a status; answers the reference that counts then.
pub(crate) async fn counts(host: &TestHost, (id, status): (&str, &str)) -> String {
    until(host, id, status).await;
    let sql = "SELECT rail_reference FROM payouts WHERE id = $1";
    let pool = host.app().db.pool();
    sqlx::query_scalar(sql).bind(id).fetch_one(pool).await.expect("a reference")
}

/// About payouts.
pub(crate) async fn open_cases(host: &TestHost) -> i64 {
    let sql = "SELECT COUNT(*) FROM cases WHERE status = 'open' AND subject_type = 'payout'";
    host.count(sql).await
}

/// Waits for a case of this kind among whatever others there are.
pub(crate) async fn until_one_case(host: &TestHost, kind: &str) -> Value {
    for _ in 0..2_000 {
        if let Some(case) = seams::open_cases(host).await.iter().find(|case| case["kind"] == kind) {
            return case.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no case: {:?}", seams::open_cases(host).await);
}

/// The second bank refuses it: it is paid by the first, and nothing is given back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_over_a_route_that_was_given_up_is_not_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("refused reference {} 0", it.sent)).await.ok();
        assert_eq!(counts(host, (&it.id, "paid")).await, it.given_up);
        let over = attempts(host, &it.id).await;
        assert_eq!(over[0], pair("ngn_other", "paid"));
        assert_eq!(over[1].1, "refused");
        // It left the first bank's account, and nobody has to look.
        assert_eq!(account(host, "settlement/ngn_other").await, AMOUNT);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        assert_eq!(open_cases(host).await, 0);
    })
    .await;
}

/// The second bank has paid it, too: a person is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_over_both_routes_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.sent)).await.ok();
        assert_eq!(counts(host, (&it.id, "paid")).await, it.sent);
        let case = until_case(host, "paid_twice").await;
        assert_eq!((&case["subject_id"], &case["route"]), (&json!(it.id), &json!("ngn_other")));
        assert_eq!(case["evidence"]["reference"], it.given_up);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, -AMOUNT));
    })
    .await;
}

/// What the second bank was sent comes back: it is paid by the first, until that comes back as well.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_over_a_route_that_was_given_up_outlasts_a_return_of_the_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        let returned = |of: &str| format!("returned:{of}-back reference {of} {AMOUNT}");
        tell(host, "/told", &returned(&it.sent)).await.ok();
        assert_eq!(counts(host, (&it.id, "paid")).await, it.given_up);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        host.prove().await;
        tell(host, "/told", &returned(&it.given_up)).await.ok();
        until(host, &it.id, "reversed").await;
    })
    .await;
}

/// An operator cannot say that it failed; that it was paid is booked where it was.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_marks_what_was_paid_over_a_route_that_was_given_up_as_paid_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        let mark = async |action: &str| {
            let body = json!({ "evidence": "a letter", "reason": "a test" });
            host.admin(Method::POST, &format!("payouts/{}/{action}", it.id), body).await
        };
        assert_eq!(mark("mark_failed").await.refused(), (409, "state_conflict"));
        mark("mark_paid").await.ok();
        assert_eq!(counts(host, (&it.id, "paid_manual")).await, it.given_up);
        assert_eq!(account(host, "settlement/ngn_other").await, AMOUNT);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
    })
    .await;
}

/// The second bank never had it: it is not sent there again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_over_a_route_that_was_given_up_is_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken_by(engine, "sent, then trap", async |host, till, it| {
        till.forget(&it.sent);
        let asked =
            format!("SELECT never_received FROM attempts WHERE rail_reference = '{}'", it.sent);
        for answers in 1..=3 {
            host.advance(60);
            host.until_count(&asked, answers).await;
        }
        host.advance(86_400);
        assert_eq!(counts(host, (&it.id, "paid")).await, it.given_up);
        assert_eq!(till.paid(&it.sent), 0);
        assert_eq!((balance(host).await, open_cases(host).await), (it.left, 0));
    })
    .await;
}

/// The first bank takes its word back: neither has paid.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_bank_takes_back_does_not_count(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("refused reference {} 0", it.given_up)).await.ok();
        host.prove().await;
        tell(host, "/told", &format!("refused reference {} 0", it.sent)).await.ok();
        assert_eq!(counts(host, (&it.id, "failed")).await, it.sent);
        assert!(balance(host).await >= it.left + AMOUNT);
        assert_eq!((account(host, "suspense").await, open_cases(host).await), (0, 0));
    })
    .await;
}

/// What came back whole to the first bank, before the second one has paid, stands in no books, told
/// as paid before or not: nothing is left that anybody could credit.
#[rstest]
#[case::that_was_told_as_paid(true)]
#[case::that_was_not(false)]
#[tokio::test(flavor = "multi_thread")]
async fn what_came_back_whole_to_a_route_that_was_given_up_is_nobodys(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] was_told: bool,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        let told = async |line: String| tell(host, "/told", &line).await.ok();
        if was_told {
            told(format!("paid reference {} {AMOUNT}", it.given_up)).await;
            until_case(host, "outcome_unknown").await;
        }
        let returned = format!("returned:back reference {} {AMOUNT}", it.given_up);
        let paid = format!("paid reference {} {AMOUNT}", it.sent);
        for line in [returned, paid] {
            told(line).await;
        }
        assert_eq!(counts(host, (&it.id, "paid")).await, it.sent);
        assert_eq!(attempts(host, &it.id).await[0], pair("ngn_other", "returned"));
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        assert_eq!((account(host, "settlement/ngn_other").await, open_cases(host).await), (0, 0));
    })
    .await;
}

/// A part of what the first bank paid besides is not the wallet's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_of_an_attempt_that_does_not_count_is_not_credited(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.sent)).await.ok();
        until_case(host, "paid_twice").await;
        let part = format!("returned:part reference {} {}", it.given_up, AMOUNT / 2);
        tell(host, "/told", &part).await.ok();
        let case = until_one_case(host, "partial_return").await;
        assert_eq!(resolve(host, &case, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &case, "forwarded").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, -AMOUNT));
    })
    .await;
}

/// Both have paid it, and the second bank sends it back: one payment stands, and the wallet is given
/// nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_of_what_was_paid_twice_is_not_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.sent)).await.ok();
        let twice = until_case(host, "paid_twice").await;
        let returned = format!("returned:back reference {} {AMOUNT}", it.sent);
        for _ in 0..2 {
            tell(host, "/told", &returned).await.ok();
        }
        let back = until_one_case(host, "partial_return").await;
        assert_eq!(counts(host, (&it.id, "paid")).await, it.sent);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        host.prove().await;
        assert_eq!(resolve(host, &back, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &twice, "recovered").await.ok();
        assert_eq!(resolve(host, &back, "credit").await.refused(), (409, "state_conflict"));
        resolve(host, &back, "forwarded").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        // The other one comes back, too: now nobody has it.
        let returned = format!("returned:all reference {} {AMOUNT}", it.given_up);
        tell(host, "/told", &returned).await.ok();
        until(host, &it.id, "reversed").await;
        assert!(balance(host).await >= it.left + AMOUNT);
        for own in ["suspense", "settlement/ngn_other", "settlement/ngn_hostile"] {
            assert_eq!(account(host, own).await, 0, "{own}");
        }
    })
    .await;
}

/// An operator has marked it as paid, because one of the two banks did: what comes back of either is
/// somebody's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_of_what_an_operator_took_for_paid_is_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        mark(host, "mark_paid", &it.id).await.ok();
        let returned = format!("returned:back reference {} {AMOUNT}", it.given_up);
        tell(host, "/told", &returned).await.ok();
        let back = until_case(host, "partial_return").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, AMOUNT));
        resolve(host, &back, "credit").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left + AMOUNT, 0));
    })
    .await;
}

/// An operator has marked it as paid, and the first bank says that it paid, too: what comes back of
/// that is not the wallet's, which has paid for one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_of_the_excess_over_a_mark_is_not_credited(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        mark(host, "mark_paid", &it.id).await.ok();
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.given_up)).await.ok();
        until_case(host, "paid_twice").await;
        let part = format!("returned:part reference {} {}", it.given_up, AMOUNT / 2);
        tell(host, "/told", &part).await.ok();
        let back = until_one_case(host, "partial_return").await;
        assert_eq!(resolve(host, &back, "credit").await.refused(), (409, "state_conflict"));
        assert_eq!(balance(host).await, it.left);
    })
    .await;
}

/// It was charged for the payment of the first bank, and the second one has paid as well.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_charged_for_one_payment_and_made_twice_is_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        mark(host, "mark_failed", &it.id).await.ok();
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.given_up)).await.ok();
        let after = until_case(host, "paid_after_failure").await;
        resolve(host, &after, "charge").await.ok();
        let charged = balance(host).await;
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.sent)).await.ok();
        let twice = until_case(host, "paid_twice").await;
        assert_eq!(twice["evidence"]["reference"], it.sent);
        assert_eq!((balance(host).await, account(host, "suspense").await), (charged, -AMOUNT));
        let part = format!("returned:part reference {} {}", it.sent, AMOUNT / 2);
        tell(host, "/told", &part).await.ok();
        let back = until_one_case(host, "partial_return").await;
        assert_eq!(resolve(host, &back, "credit").await.refused(), (409, "state_conflict"));
    })
    .await;
}

/// The other payment was recovered: what comes back of the one that stands is the wallet's again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_once_the_other_payment_was_recovered_is_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_overtaken(engine, async |host, it| {
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.sent)).await.ok();
        let twice = until_case(host, "paid_twice").await;
        resolve(host, &twice, "recovered").await.ok();
        // Its bank says so later, too.
        let returned = |of: &str| format!("returned:{of}-back reference {of} {AMOUNT}");
        tell(host, "/told", &returned(&it.given_up)).await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        tell(host, "/told", &returned(&it.sent)).await.ok();
        until(host, &it.id, "reversed").await;
        assert!(balance(host).await >= it.left + AMOUNT);
        assert_eq!((account(host, "suspense").await, open_cases(host).await), (0, 0));
    })
    .await;
}

/// Whichever attempt it was charged for is the one that counts: what its bank takes back is news, and
/// whatever is given back goes to that bank's account.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_charged_for_the_first_of_two_is_in_question_when_its_bank_takes_it_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        tell(host, "/told", &format!("refused reference {} 0", it.sent)).await.ok();
        until(host, &it.id, "failed").await;
        let whole = balance(host).await;
        tell(host, "/told", &format!("paid reference {} {AMOUNT}", it.given_up)).await.ok();
        let after = until_case(host, "paid_after_failure").await;
        resolve(host, &after, "charge").await.ok();
        assert_eq!(counts(host, (&it.id, "paid_manual")).await, it.given_up);
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        tell(host, "/told", &format!("refused reference {} 0", it.given_up)).await.ok();
        let refused = until_case(host, "refused_after_payment").await;
        resolve(host, &refused, "give_back").await.ok();
        assert_eq!(balance(host).await, whole);
        for own in ["suspense", "settlement/ngn_other", "settlement/ngn_hostile"] {
            assert_eq!(account(host, own).await, 0, "{own}");
        }
    })
    .await;
}

/// Nobody gives back what the bank has paid after all.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_says_again_that_it_paid_is_not_given_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_given_up(engine, "accept", async |host, _, it| {
        let paid = format!("paid reference {} {AMOUNT}", it.sent);
        tell(host, "/told", &paid).await.ok();
        until(host, &it.id, "paid").await;
        tell(host, "/told", &format!("refused reference {} 0", it.sent)).await.ok();
        let refused = until_case(host, "refused_after_payment").await;
        tell(host, "/told", &paid).await.ok();
        let again = "SELECT COUNT(*) FROM attempts WHERE state = 'paid'";
        host.until_count(again, 1).await;
        assert_eq!(resolve(host, &refused, "give_back").await.refused(), (409, "state_conflict"));
        assert_eq!(balance(host).await, it.left);
        resolve(host, &refused, "uphold").await.ok();
        assert_eq!((balance(host).await, account(host, "suspense").await), (it.left, 0));
        // It says once more that it did not, and then the same again.
        for _ in 0..2 {
            tell(host, "/told", &format!("refused reference {} 0", it.sent)).await.ok();
            let again = until_case(host, "refused_after_payment").await;
            assert_ne!(again["id"], refused["id"]);
            assert_eq!(account(host, "suspense").await, AMOUNT);
        }
        host.prove().await;
    })
    .await;
}

/// The bank took back what it had paid by mistake, and pays it once more.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_paid_again_after_it_was_recovered_is_in_question_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("accept")).await.ok().id();
        let reference = counts(host, (&id, "processing")).await;
        until_asked(host, &id, 0).await;
        let paid = format!("paid reference {reference} {AMOUNT}");
        let refused = format!("refused reference {reference} 0");
        let how_often = async || host.count("SELECT COUNT(*) FROM cases").await;
        tell(host, "/told", &refused).await.ok();
        until(host, &id, "failed").await;
        for times in 1..=2 {
            tell(host, "/told", &paid).await.ok();
            let case = until_case(host, "paid_after_failure").await;
            tell(host, "/told", &paid).await.ok();
            assert_eq!((how_often().await, account(host, "suspense").await), (times, -AMOUNT));
            resolve(host, &case, "recovered").await.ok();
            // That it says so once more is no news.
            tell(host, "/told", &paid).await.ok();
            assert_eq!((how_often().await, account(host, "suspense").await), (times, 0));
            tell(host, "/told", &refused).await.ok();
            host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'refused'", 1).await;
        }
        // What was written off is out of the books as it is: paid once more, it is where it was.
        tell(host, "/told", &paid).await.ok();
        let case = until_case(host, "paid_after_failure").await;
        resolve(host, &case, "write_off").await.ok();
        tell(host, "/told", &refused).await.ok();
        host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'refused'", 1).await;
        tell(host, "/told", &paid).await.ok();
        host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'paid'", 1).await;
        assert_eq!((how_often().await, account(host, "suspense").await), (3, 0));
        host.prove().await;
    })
    .await;
}

/// Whoever asked for a mark did so before the bank spoke, and before a case about it was decided.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_agreed_to_a_mark_has_not_agreed_to_it_after_the_bank_has_spoken(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Mark];
    with_hostile_configured(engine, two, async |host: &mut TestHost, _: &Till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("accept")).await.ok().id();
        let reference = counts(host, (&id, "processing")).await;
        until_asked(host, &id, 0).await;
        let mark = async |who: &str, action: &str| {
            let body = json!({ "evidence": "a letter", "reason": "a test" });
            let path = format!("/admin/v1/payouts/{id}/{action}");
            host.send(Method::POST, &path, who, &[], Some(body)).await.ok().status
        };
        assert_eq!(mark(OPERATOR_TOKEN, "mark_failed").await, 202);
        assert_eq!(mark(DESK_TOKEN, "mark_failed").await, 200);
        let whole = balance(host).await;
        assert_eq!(mark(OPERATOR_TOKEN, "mark_paid").await, 202);
        tell(host, "/told", &format!("paid reference {reference} {AMOUNT}")).await.ok();
        let after = until_case(host, "paid_after_failure").await;
        assert_eq!(mark(DESK_TOKEN, "mark_paid").await, 202);
        resolve(host, &after, "write_off").await.ok();
        assert_eq!(mark(OPERATOR_TOKEN, "mark_paid").await, 202);
        assert_eq!(balance(host).await, whole);
    })
    .await;
}

/// Whoever asked for a decision did so before the bank took its word back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_asked_for_a_decision_has_not_asked_for_it_after_the_bank_has_spoken_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Case];
    with_hostile_configured(engine, two, async |host: &mut TestHost, _: &Till| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("accept")).await.ok().id();
        let reference = counts(host, (&id, "processing")).await;
        until_asked(host, &id, 0).await;
        tell(host, "/told", &format!("refused reference {reference} 0")).await.ok();
        until(host, &id, "failed").await;
        tell(host, "/told", &format!("paid reference {reference} {AMOUNT}")).await.ok();
        let case = until_case(host, "paid_after_failure").await;
        let path = format!("/admin/v1/cases/{}/resolve", case["id"].as_str().expect("an id"));
        let ask = async |who: &str| {
            let body = json!({ "resolution": "recovered", "evidence": "line 14" });
            host.send(Method::POST, &path, who, &[], Some(body)).await.ok().status
        };
        assert_eq!(ask(OPERATOR_TOKEN).await, 202);
        tell(host, "/told", &format!("refused reference {reference} 0")).await.ok();
        host.until_count("SELECT COUNT(*) FROM attempts WHERE state = 'refused'", 1).await;
        assert_eq!(ask(DESK_TOKEN).await, 202);
        // The same once more is no news.
        tell(host, "/told", &format!("refused reference {reference} 0")).await.ok();
        assert_eq!(ask(OPERATOR_TOKEN).await, 200);
        assert_eq!(account(host, "suspense").await, 0);
    })
    .await;
}
