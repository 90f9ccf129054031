//! Where an operator, a bank, a merchant and a host meet over one payout.

use std::collections::BTreeSet;

use http::Method;
use railhead::config::ApprovalAct;
use railhead::simulator::State;
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::bank::{Bank, Hold};
use crate::lanes::{OTHER, absent_gateway, route_before, with_two_routes};
use crate::live::{LEASES_OVER, TOTAL, pay, reference, until, until_asked, with_bank};
use crate::network::{Sends, beside, live, with_live_host};
use crate::notices::{RIGHT, deliver, status};
use crate::packs::restart;
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host_configured,
};

pub(crate) const START: i64 = 100_000_000;

pub(crate) async fn mark(host: &TestHost, action: &str, id: &str) -> Answer {
    let body = json!({ "evidence": "a letter", "reason": "a test" });
    host.admin(Method::POST, &format!("payouts/{id}/{action}"), body).await
}

/// The cases that are open, oldest first.
pub(crate) async fn open_cases(host: &TestHost) -> Vec<Value> {
    let path = "/admin/v1/cases?status=open";
    let page = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok();
    page.json["data"].as_array().expect("cases").iter().rev().cloned().collect()
}

/// Waits for the one case that there is to be.
pub(crate) async fn until_case(host: &TestHost, kind: &str) -> Value {
    for _ in 0..2_000 {
        if let [case] = open_cases(host).await.as_slice() {
            assert_eq!(case["kind"], kind, "{case}");
            return case.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no case: {:?}", open_cases(host).await);
}

pub(crate) async fn resolve(host: &TestHost, case: &Value, resolution: &str) -> Answer {
    let id = case["id"].as_str().expect("an id");
    let body = json!({ "resolution": resolution, "evidence": "line 14 of the statement" });
    host.admin(Method::POST, &format!("cases/{id}/resolve"), body).await
}

pub(crate) async fn balance(host: &TestHost) -> i64 {
    host.balance(&host.merchant.live_wallet).await
}

/// What stands in one of the platform's own accounts.
pub(crate) async fn account(host: &TestHost, name: &str) -> i64 {
    let sql = "SELECT COALESCE(CAST(SUM(amount_minor) AS BIGINT), 0) FROM own_entries \
               WHERE account_id = $1";
    let id = format!("system/live/NGN/{name}");
    let pool = host.app().db.pool();
    sqlx::query_scalar(sql).bind(id).fetch_one(pool).await.expect("a sum")
}

/// A payout that the bank has taken and not decided about, which the operator then marks.
pub(crate) async fn marked_while_unknown(host: &TestHost, action: &str) -> (String, String) {
    let id = pay(host, "0000001015").await.ok().id();
    let reference = reference(&until(host, &id, "processing").await);
    until_asked(host, &id, 0).await;
    mark(host, action, &id).await.ok();
    (id, reference)
}

/// While a call to the bank is under way, its answer counts.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_refused_while_the_bank_is_being_called(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("mark_failed", "mark_paid")] action: &str,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0123456785").await.ok().id();
        bank.door.until_held().await;
        let refused = mark(host, action, &id).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        assert!(refused.headers.contains_key("retry-after"));
        bank.door.hold(Hold::Nothing);
        until(host, &id, "paid").await;
        assert_eq!(balance(host).await, START - TOTAL);
        assert_eq!(open_cases(host).await, Vec::<Value>::new());
    })
    .await;
}

/// The lease of whoever sends has run out (it hangs, or its clock stood still), and its answer
/// comes after the mark.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_after_a_mark_is_written_down_and_opens_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0123456785").await.ok().id();
        bank.door.until_held().await;
        host.run(&[LEASES_OVER.to_owned()]).await;
        mark(host, "mark_failed", &id).await.ok();
        assert_eq!(balance(host).await, START);
        bank.door.hold(Hold::Nothing);
        let case = until_case(host, "paid_after_failure").await;
        assert_eq!((&case["subject_id"], &case["amount_minor"]), (&json!(id), &json!("100000")));
        let calls = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'";
        assert_eq!(host.count(calls).await, 1, "what the bank said is kept");
        until(host, &id, "failed_manual").await;
        assert_eq!((balance(host).await, account(host, "suspense").await), (START, -100_000));
    })
    .await;
}

/// It says what the mark said: nothing is to be done, and it is kept all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_agrees_with_a_mark_is_written_down(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0123456785").await.ok().id();
        bank.door.until_held().await;
        host.run(&[LEASES_OVER.to_owned()]).await;
        mark(host, "mark_paid", &id).await.ok();
        bank.door.hold(Hold::Nothing);
        host.until_count("SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'", 1).await;
        until(host, &id, "paid_manual").await;
        assert_eq!(open_cases(host).await, Vec::<Value>::new());
        assert_eq!((balance(host).await, account(host, "suspense").await), (START - TOTAL, 0));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_paid_what_was_marked_as_failed_is_heard_and_each_decision_is_booked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let mut left = START;
        for (resolution, end) in [
            ("charge", "paid_manual"),
            ("recovered", "failed_manual"),
            ("write_off", "failed_manual"),
        ] {
            let (id, reference) = marked_while_unknown(host, "mark_failed").await;
            bank.control(&reference, "settle").await.ok();
            let (settled, written_off) =
                (account(host, "settlement/ngn_nip").await, account(host, "written_off").await);
            for _ in 0..2 {
                deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
            }
            let case = until_case(host, "paid_after_failure").await;
            assert_eq!(account(host, "suspense").await, -100_000);
            let refused = mark(host, "mark_paid", &id).await;
            assert_eq!(refused.refused(), (409, "state_conflict"), "the case comes first");
            let refused = resolve(host, &case, "uphold").await;
            assert_eq!(
                (refused.refused(), refused.field()),
                ((400, "invalid_field"), "resolution")
            );
            let resolved = resolve(host, &case, resolution).await.ok();
            assert_eq!(
                (&resolved.json["status"], &resolved.json["resolved_by"]),
                (&json!("resolved"), &json!("operator"))
            );
            assert_eq!(resolve(host, &case, resolution).await.refused(), (409, "state_conflict"));
            until(host, &id, end).await;
            left -= if resolution == "charge" { TOTAL } else { 0 };
            assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
            let moved = account(host, "settlement/ngn_nip").await - settled;
            let given_up = account(host, "written_off").await - written_off;
            let expected = match resolution {
                "charge" => (100_000, 0),
                "recovered" => (0, 0),
                _ => (100_000, -100_000),
            };
            assert_eq!((moved, given_up), expected, "{resolution}");
            // The same is told once more: nothing happens twice.
            deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
            assert_eq!(open_cases(host).await, Vec::<Value>::new());
            host.prove().await;
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_refused_what_was_marked_as_paid_is_heard(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let mut left = START;
        for (resolution, end) in [("give_back", "failed_manual"), ("uphold", "paid_manual")] {
            let (id, reference) = marked_while_unknown(host, "mark_paid").await;
            left -= TOTAL;
            bank.control(&reference, "fail").await.ok();
            deliver(host, ("live", RIGHT), &status(&reference, "05")).await.ok();
            let case = until_case(host, "refused_after_payment").await;
            assert_eq!((balance(host).await, account(host, "suspense").await), (left, 100_000));
            resolve(host, &case, resolution).await.ok();
            until(host, &id, end).await;
            left += if resolution == "give_back" { TOTAL } else { 0 };
            assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
            host.prove().await;
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_money_is_concerned_a_second_person_has_to_agree(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(bank.url.clone());
        config.approvals.two_people = vec![ApprovalAct::Case];
        for name in ["ada", "bola"] {
            let token = SecretString::from(format!("op_of_{name}_in_tests"));
            config.admin.operators.insert(name.into(), token);
        }
    };
    with_host_configured(engine, change, async |host| {
        let (id, reference) = marked_while_unknown(host, "mark_failed").await;
        bank.control(&reference, "settle").await.ok();
        deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
        let case = until_case(host, "paid_after_failure").await;
        let path = format!("/admin/v1/cases/{}/resolve", case["id"].as_str().expect("an id"));
        let ask = async |who: &str, resolution: &str| {
            let body = json!({ "resolution": resolution, "evidence": "line 14" });
            host.send(Method::POST, &path, who, &[], Some(body)).await
        };
        for (who, resolution) in [
            ("op_of_ada_in_tests", "charge"),
            ("op_of_ada_in_tests", "charge"),
            ("op_of_bola_in_tests", "write_off"),
        ] {
            assert_eq!(ask(who, resolution).await.ok().status, 202, "{who} {resolution}");
        }
        let resolved = ask("op_of_ada_in_tests", "write_off").await.ok();
        assert_eq!(resolved.status, 200);
        let line = host.last_line().await;
        assert_eq!((&line["action"], &line["actor"]), (&json!("case.resolve"), &json!("ada")));
        assert_eq!(line["after"]["status"], "resolved");
        assert_eq!(
            (&resolved.json["requested_by"], &resolved.json["resolved_by"]),
            (&json!("bola"), &json!("ada"))
        );
        until(host, &id, "failed_manual").await;
    })
    .await;
}

/// A return of another amount than was sent is nobody's to decide but a person's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn part_of_a_payout_that_comes_back_opens_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let mut left = START;
        for resolution in ["credit", "forwarded"] {
            let id = pay(host, "0123456785").await.ok().id();
            let paid = until(host, &id, "paid").await;
            left -= TOTAL;
            bank.control(&reference(&paid), "return").await.ok();
            let message = bank.message().await;
            let body = message.text().replace("1000.00", "400.00").into_bytes();
            let part = railhead::simulator::OwnMessage { body, ..message };
            for _ in 0..2 {
                deliver(host, ("live", RIGHT), &part).await.ok();
            }
            let case = until_case(host, "partial_return").await;
            assert_eq!(case["amount_minor"], "40000");
            assert_eq!((balance(host).await, account(host, "suspense").await), (left, 40_000));
            resolve(host, &case, resolution).await.ok();
            left += if resolution == "credit" { 40_000 } else { 0 };
            if resolution == "credit" {
                // Everything, and the part once more, would be more than it was.
                let refused = mark(host, "mark_failed", &id).await;
                assert_eq!(refused.refused(), (409, "state_conflict"));
            }
            assert_eq!((balance(host).await, account(host, "suspense").await), (left, 0));
            until(host, &id, "paid").await;
            host.prove().await;
        }
    })
    .await;
}

/// It went over the second route, and the first one's bank claims to send it back: the payout
/// stands, and a person finds out whose money that is.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_of_an_attempt_that_never_left_opens_a_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        route_before(host, &absent_gateway(), &[]).await;
        let id = pay(host, "0123456785").await.ok().id();
        let sent = reference(&until(host, &id, "paid").await);
        let sql = "SELECT rail_reference FROM attempts WHERE state = 'not_sent'";
        let pool = host.app().db.pool();
        let unsent: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("one");
        bank.control(&sent, "return").await.ok();
        let message = bank.message().await;
        let body = message.text().replace(&sent, &unsent).into_bytes();
        let others = railhead::simulator::OwnMessage { body, ..message.clone() };
        deliver(host, ("live", OTHER), &others).await.ok();
        let case = until_case(host, "partial_return").await;
        assert_eq!((&case["subject_id"], &case["route"]), (&json!(id), &json!("ngn_other")));
        until(host, &id, "paid").await;
        let left = START - 2 * TOTAL;
        assert_eq!((balance(host).await, account(host, "suspense").await), (left, 100_000));
        // The bank that paid it sends it back as well: that is the payout's own money.
        deliver(host, ("live", RIGHT), &message).await.ok();
        until(host, &id, "reversed").await;
        host.prove().await;
    })
    .await;
}

/// Marks as fast as payouts are made and sent: whatever the bank executed is not given back, or
/// there is a case about it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn marks_that_race_with_sending_never_give_back_what_was_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let host = &*host;
        let one = async |number: u64| {
            let id = pay(host, "0123456785").await.ok().id();
            tokio::time::sleep(std::time::Duration::from_millis(number % 13)).await;
            let answer = mark(host, "mark_failed", &id).await;
            (id, answer.status)
        };
        let mut all = Vec::new();
        for round in 0..8 {
            all.extend(futures::future::join_all((0..10).map(|n| one(round * 10 + n))).await);
        }
        host.until_count("SELECT COUNT(*) FROM transfers", 0).await;
        let paid: BTreeSet<String> = bank
            .transfers()
            .await
            .into_iter()
            .filter(|transfer| transfer.state == State::Paid)
            .map(|transfer| transfer.reference)
            .collect();
        let cases: BTreeSet<String> = open_cases(host)
            .await
            .iter()
            .filter_map(|case| case["subject_id"].as_str().map(str::to_owned))
            .collect();
        for (id, answer) in all {
            let payout = host.get_as(&host.merchant.live_key, &format!("/v1/payouts/{id}")).await;
            let was_paid = payout.json["nip_reference"].as_str().is_some_and(|r| paid.contains(r));
            let end = payout.status_word();
            assert!([200, 409].contains(&answer), "{answer}");
            // A mark that came after the payment is a decision of the operator's own.
            let is_corrected = end == "failed_manual" && answer == 200;
            assert!(
                !was_paid || end == "paid" || is_corrected || cases.contains(&id),
                "{id} {end}"
            );
            assert!(was_paid || end == "failed_manual", "{id} {end}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaves_for_a_suspended_merchant_or_from_a_frozen_wallet(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("suspended", "frozen")] how: &str,
) {
    with_bank(engine, async |host, bank| {
        let sends = |sends: Sends| {
            let url = bank.url.clone();
            move |config: &mut railhead::config::Config| live(config, url, sends)
        };
        restart(host, sends(Sends::No)).await;
        let (wallet, merchant) = (host.merchant.live_wallet.clone(), host.merchant.id.clone());
        let id = host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await.ok().id();
        let set = async |host: &TestHost, is_let: bool| {
            let (path, body, method) = match (how, is_let) {
                ("suspended", true) => {
                    (format!("merchants/{merchant}"), json!({ "status": "active" }), Method::PATCH)
                }
                ("suspended", false) => (
                    format!("merchants/{merchant}"),
                    json!({ "status": "suspended" }),
                    Method::PATCH,
                ),
                (_, true) => (format!("wallets/{wallet}/unfreeze"), json!({}), Method::POST),
                (_, false) => (format!("wallets/{wallet}/freeze"), json!({}), Method::POST),
            };
            host.admin(method, &path, body).await.ok();
        };
        set(host, false).await;
        restart(host, sends(Sends::Yes)).await;
        for _ in 0..3 {
            host.advance(300);
            host.app().transfers.wake();
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 0);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts WHERE status = 'queued'").await, 1);
        set(host, true).await;
        host.advance(300);
        until(host, &id, "paid").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_repeats_a_call_moves_money_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let wallet = host.merchant.live_wallet.clone();
        let key = unique();
        let credit = async |path: &str, amount: &str| {
            let body = json!({ "amount_minor": amount, "reason": "a test" });
            let path = format!("/admin/v1/wallets/{wallet}/{path}");
            let headers = [("idempotency-key", key.as_str())];
            host.send(Method::POST, &path, OPERATOR_TOKEN, &headers, Some(body)).await
        };
        let first = credit("credit", "700").await.ok();
        let again = credit("credit", "700").await.ok();
        assert_eq!((&again.text, balance(host).await), (&first.text, START + 700));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(credit("credit", "800").await.refused(), (409, "idempotency_key_conflict"));
        // Another call under the same key is another call.
        credit("debit", "700").await.ok();
        assert_eq!(balance(host).await, START);
        let id = host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await.ok().id();
        let mark = async || {
            let body = json!({ "evidence": "a letter" });
            let path = format!("/admin/v1/payouts/{id}/mark_paid");
            let headers = [("idempotency-key", key.as_str())];
            host.send(Method::POST, &path, OPERATOR_TOKEN, &headers, Some(body)).await
        };
        let first = mark().await.ok();
        assert_eq!(mark().await.ok().text, first.text);
        assert_eq!(balance(host).await, START - TOTAL);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_names_the_person(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let change = |config: &mut railhead::config::Config| {
        config.worker.dispatch = false;
        config.admin.operators.insert("ada".into(), SecretString::from("op_of_ada_in_tests"));
    };
    with_host_configured(engine, change, async |host| {
        let settings = json!({ "dual_control_threshold_minor": { "NGN": "100000" } });
        host.admin(Method::PATCH, &format!("merchants/{}", host.merchant.id), settings).await.ok();
        let act = async |id: &str, action: &str| {
            let body = json!({ "evidence": "a letter", "reason": "a test" });
            let path = format!("/admin/v1/payouts/{id}/{action}");
            host.send(Method::POST, &path, "op_of_ada_in_tests", &[], Some(body)).await.ok();
            let sql = "SELECT actor FROM audit WHERE subject_id = $1 AND action = $2";
            let pool = host.app().db.pool();
            let query = sqlx::query_scalar(sql).bind(id).bind(format!("payout.{action}"));
            let actor: String = query.fetch_one(pool).await.expect("a line");
            assert_eq!(actor, "ada", "{action}");
        };
        let draft = async || host.pay("paid", naira(100_001)).await.ok().id();
        let held = async || host.pay("fraud_hold", naira(100_000)).await.ok().id();
        act(&draft().await, "approve").await;
        act(&draft().await, "decline").await;
        act(&held().await, "release").await;
        act(&held().await, "reject").await;
        let marked = host.pay("processing", naira(100_000)).await.ok().id();
        act(&marked, "mark_paid").await;
        act(&marked, "reverse").await;
        let marked = host.pay("processing", naira(100_000)).await.ok().id();
        act(&marked, "mark_failed").await;
    })
    .await;
}

/// The recipient was paid a moment ago, and then a second payout to it failed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_does_not_make_the_payment_before_it_forgotten(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let key = host.merchant.live_key.clone();
        let once = |allow: bool| with(naira(100_000), json!({ "allow_duplicate": allow }));
        host.pay_as(&key, &unique(), once(false)).await.ok();
        let second = host.pay_as(&key, &unique(), once(true)).await.ok().id();
        mark(host, "mark_failed", &second).await.ok();
        let refused = host.pay_as(&key, &unique(), once(false)).await;
        assert_eq!(refused.refused(), (429, "beneficiary_cooldown"));
    })
    .await;
}

/// Merchants ask out of turn as often as they like; the turns stay what they were.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn asking_out_of_turn_does_not_slow_the_turns(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let id = pay(host, "0000001060").await.ok().id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        let path = format!("/v1/payouts/{id}/requery");
        for queries in 1..=5 {
            host.send(Method::POST, &path, &host.merchant.live_key, &[], Some(json!({})))
                .await
                .ok();
            until_asked(host, &id, queries).await;
        }
        // The first turn is after five seconds, as if nobody had asked.
        host.advance(5);
        until_asked(host, &id, 6).await;
    })
    .await;
}

/// A counter that ran out and was renewed a moment ago is not swept away with the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_was_just_renewed_is_not_swept() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await.ok();
        let old = "SELECT COUNT(*) FROM counters WHERE key LIKE 'day/%'";
        assert_eq!(host.count(old).await, 1);
        host.advance(40 * 86_400);
        // Somebody renews it and has not committed yet; the sweeper finds it old, and waits.
        let mut tx = host.app().db.write().await.expect("a transaction");
        let renewed = host.clock.now().after(std::time::Duration::from_secs(86_400)).micros();
        let sql = "UPDATE counters SET expires_at = $1 WHERE key LIKE 'day/%'";
        sqlx::query(sql).bind(renewed).execute(tx.conn()).await.expect("renewed");
        let sweeping = beside(host, |config| config.worker.dispatch = false).await;
        let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND query LIKE 'DELETE FROM counters%' AND datname = current_database()";
        host.until_count(waits, 1).await;
        tx.commit().await.expect("committed");
        host.until_count(waits, 0).await;
        assert_eq!(host.count(old).await, 1, "it was swept");
        let undone = format!("DELETE FROM counters WHERE expires_at = {renewed}");
        host.run(&[undone]).await;
        sweeping.close().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_figures_name_what_waits_and_no_merchant(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (_, reference) = marked_while_unknown(host, "mark_failed").await;
        bank.control(&reference, "settle").await.ok();
        deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
        until_case(host, "paid_after_failure").await;
        let figures = host.send(Method::GET, "/metrics", "", &[], None).await.ok().text;
        for line in [
            "railhead_cases_open{kind=\"paid_after_failure\"} 1",
            "railhead_quarantine_active 0",
            "railhead_database_up 1",
            "railhead_route_breaker_open{route=\"ngn_nip\",env=\"live\"} 0",
        ] {
            assert!(figures.contains(line), "{line} in {figures}");
        }
        for name in ["http_requests", "writer_batch_commands", "transfers_calls"] {
            assert!(figures.contains(&format!("railhead_{name}")), "{name}");
        }
        assert!(!figures.contains(&host.merchant.id), "a merchant");
    })
    .await;
}
