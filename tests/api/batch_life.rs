//! What becomes of batches: their payouts fail, are taken back or approved, and hosts die meanwhile.

use http::Method;
use railhead::approvals::Agreement;
use railhead::batches::model::Change;
use railhead::batches::review::{ReviewRequest, review};
use railhead::caller::{Actor, OPERATOR};
use railhead::db::cell::Kind;
use railhead::db::lookup::Lookup;
use railhead::error::ErrorCode;
use railhead::ledger::Guard;
use rstest::rstest;
use serde_json::{Value, json};

use crate::batches::{AMOUNT, COST, Payroll, START, bulk_key, row, rows, waiting};
use crate::crash_at_random::until_all_ended;
use crate::live::with_bank;
use crate::program::Deployment;
use crate::test_host::{
    DESK_TOKEN, Engine, OPERATOR_TOKEN, unique, with, with_host, with_host_configured,
};

static REQUESTS: Lookup = Lookup {
    name: "approval_requests",
    key: "place",
    columns: &[("version", Kind::Int)],
    lock: true,
};

/// What could be done to batches behind the host's back, and the check that notices it.
pub(crate) const TAMPERINGS: &[(&str, &str)] = &[
    ("UPDATE batches SET stage = 'cancelled'", "batch-history"),
    ("UPDATE batches SET approved_at = approved_at + 600000000", "batch-history"),
    ("UPDATE batches SET reason = 'because'", "batch-history"),
    ("UPDATE batches SET completed_at = completed_at - 1000000", "batch-history"),
    ("UPDATE batches SET completed_at = NULL", "batch-told"),
    ("UPDATE batches SET version = version + 1", "batch-events"),
    ("UPDATE batches SET total_amount_minor = total_amount_minor + 1", "batch-payouts"),
    ("UPDATE batches SET maker = '{other_key}'", "payout-batch"),
    ("UPDATE payouts SET in_batch = NULL WHERE in_batch > ''", "batch-payouts"),
    ("DELETE FROM batches", "payout-batch"),
];

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_fail_give_their_money_back_and_are_counted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        let body = json!({ "currency": "NGN", "items": rows(3) });
        let made = payroll.send(&unique(), "failed", body.clone()).await.ok();
        let done = payroll.until(&made.id(), "completed_with_errors").await;
        assert_eq!(done.json["status_counts"], json!({ "failed": 3 }));
        assert_eq!(done.json["failure_count"], 3);
        let failed = payroll.get(&format!("{}/items?status=failed", made.id())).await.ok();
        let items = failed.json["data"].as_array().expect("items").clone();
        assert!(items.iter().all(|item| item["failure_code"].is_string()), "{}", failed.text);
        assert_eq!(payroll.balance().await, START);
        // One that is returned after all were paid makes it one with errors.
        let made = payroll.make(rows(3)).await.ok();
        payroll.until(&made.id(), "completed").await;
        let items = payroll.get(&format!("{}/items", made.id())).await.ok();
        let one = items.json["data"][1]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/sandbox/payouts/{one}/return");
        host.send(Method::POST, &path, &host.merchant.test_key, &[], None).await.ok();
        let done = payroll.until(&made.id(), "completed_with_errors").await;
        assert_eq!(done.json["status_counts"], json!({ "paid": 2, "reversed": 1 }));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_left_is_taken_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let idle = |config: &mut railhead::config::Config| config.worker.dispatch = false;
    with_host_configured(engine, idle, async |host| {
        let payroll = Payroll::new(host).await;
        let made = payroll.make(rows(4)).await.ok();
        assert_eq!(payroll.balance().await, START - 4 * COST);
        let items = payroll.get(&format!("{}/items", made.id())).await.ok();
        let one = items.json["data"][0]["id"].as_str().expect("an id");
        let path = format!("payouts/{one}/mark_paid");
        host.admin(Method::POST, &path, json!({ "evidence": "a receipt" })).await.ok();
        assert_eq!(payroll.get(&made.id()).await.ok().status_word(), "processing");
        let cancelled = payroll.cancel(&made.id()).await.ok();
        assert_eq!(
            cancelled.json,
            json!({
                "object": "batch",
                "id": made.id(),
                "reference": made.json["reference"],
                "status": "cancelled",
                "cancelled_count": 3,
            })
        );
        let now = payroll.get(&made.id()).await.ok();
        assert_eq!(now.status_word(), "cancelled");
        assert_eq!(now.json["status_counts"], json!({ "cancelled": 3, "paid_manual": 1 }));
        assert_eq!(payroll.balance().await, START - COST);
        assert_eq!(payroll.cancel(&made.id()).await.refused(), (409, "batch_not_cancellable"));
        host.until_count("SELECT COUNT(*) FROM batches WHERE completed_at IS NOT NULL", 1).await;
        // Another key can that may make batches, and one that may not cannot.
        let made = payroll.make(rows(1).into_iter().map(again).collect()).await.ok();
        let weak = json!({ "capabilities": ["bulk"], "permissions": ["webhook_manage"],
            "env": "test", "ip_allowlist": ["127.0.0.1"] });
        let weak = Payroll { host, key: host.new_key(&host.merchant.id, weak).await };
        assert_eq!(weak.cancel(&made.id()).await.refused(), (403, "permission_denied"));
        let reason = json!({ "reason": "x".repeat(501) });
        let path = format!("/v1/batches/{}/cancel", made.id());
        let refused = host.send(Method::POST, &path, &payroll.key, &[], Some(reason)).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "reason"));
        Payroll::new(host).await.cancel(&made.id()).await.ok();
        assert_eq!(payroll.balance().await, START - COST);
    })
    .await;
}

/// Nobody is asked about a batch of which nothing is left, whether or not it was set aside.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_rows_were_all_taken_out_waits_for_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
        let completed = "SELECT COUNT(*) FROM events WHERE type = 'batch.completed'";
        for (round, is_held) in [(0_u32, false), (1, true)] {
            let rows = (10 * round..10 * round + 2).map(row).collect::<Vec<_>>();
            let id = payroll.make(rows).await.ok().id();
            if is_held {
                payroll.decide(OPERATOR_TOKEN, "hold", &id).await.ok();
            }
            let items = payroll.get(&format!("{id}/items")).await.ok();
            for item in items.json["data"].as_array().expect("items") {
                let path = format!("/v1/payouts/{}/cancel", item["id"].as_str().expect("an id"));
                let reason = Some(json!({ "reason": "left the company" }));
                host.send(Method::POST, &path, &payroll.key, &[], reason).await.ok();
            }
            payroll.until(&id, "cancelled").await;
            host.until_count(completed, i64::from(round) + 1).await;
            let ended = payroll.get(&id).await.ok().json;
            assert_eq!(ended["status_counts"], json!({ "cancelled": 2 }));
            assert_ne!(ended["completed_at"], json!(null));
            assert_eq!(ended["approved_at"], json!(null));
            let approved = payroll.decide(OPERATOR_TOKEN, "approve", &id).await;
            assert_eq!(approved.refused(), (409, "state_conflict"));
        }
        let listed = host.admin(Method::GET, "batches?status=awaiting_approval", json!(null)).await;
        assert_eq!(listed.ok().json["data"], json!([]));
    })
    .await;
}

fn again(row: Value) -> Value {
    with(row, json!({ "allow_duplicate": true }))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_large_batch_waits_for_a_second_person(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "200000" } })).await;
        let at_the_threshold = payroll.make(rows(2)).await.ok();
        assert_eq!(at_the_threshold.status_word(), "approved");
        payroll.until(&at_the_threshold.id(), "completed").await;
        let balance = payroll.balance().await;
        let rows = |from: u32| (from..from + 3).map(row).collect::<Vec<_>>();
        let waiting = payroll.make(rows(10)).await.ok();
        let id = waiting.id();
        assert_eq!(waiting.status_word(), "awaiting_approval");
        assert_eq!(waiting.json["approved_at"], json!(null));
        assert_eq!(payroll.balance().await, balance, "drafts hold no money");
        assert_eq!(payroll.cancel(&id).await.refused(), (409, "batch_not_cancellable"));
        // Whoever is to approve sees whose it is, and who is to be paid.
        let listed = host.admin(Method::GET, "batches?status=awaiting_approval", json!(null)).await;
        let shown = &listed.ok().json["data"][0];
        assert_eq!((&shown["id"], &shown["env"]), (&json!(id), &json!("test")));
        assert_eq!(shown["merchant_id"], json!(host.merchant.id));
        let path = format!("batches/{id}/items?status=draft&limit=2");
        let rows_shown = host.admin(Method::GET, &path, json!(null)).await.ok();
        assert_eq!(rows_shown.json["has_more"], true);
        assert_eq!(rows_shown.json["data"][0]["amount_minor"], AMOUNT.to_string());
        // A row alone is not approved.
        let items = payroll.get(&format!("{id}/items?status=draft")).await.ok();
        let one = items.json["data"][0]["id"].as_str().expect("an id").to_owned();
        for verb in ["approve", "decline"] {
            let path = format!("payouts/{one}/{verb}");
            let refused = host.admin(Method::POST, &path, json!({ "reason": "no" })).await;
            assert_eq!(refused.refused(), (409, "state_conflict"));
        }
        // To hold it takes a reason.
        let silent = host.admin(Method::POST, &format!("batches/{id}/hold"), json!({})).await;
        assert_eq!((silent.refused(), silent.field()), ((400, "missing_field"), "reason"));
        let held = payroll.decide(OPERATOR_TOKEN, "hold", &id).await.ok();
        assert_eq!(held.status_word(), "flagged_held");
        assert_eq!(payroll.get(&id).await.ok().json["reason"], "a reason");
        let listed = host.admin(Method::GET, "batches?status=flagged_held", json!(null)).await.ok();
        assert_eq!(listed.json["data"][0]["id"], json!(id));
        assert_eq!(listed.json["data"].as_array().map(Vec::len), Some(1));
        // One that is taken out by hand stays out.
        let path = format!("/v1/payouts/{one}/cancel");
        let reason = Some(json!({ "reason": "left the company" }));
        host.send(Method::POST, &path, &host.merchant.test_key, &[], reason).await.ok();
        // The wallet has too little: it stays as it is.
        let wallet = &host.merchant.test_wallet;
        let all = json!({ "amount_minor": balance.to_string(), "reason": "elsewhere" });
        host.admin(Method::POST, &format!("wallets/{wallet}/debit"), all.clone()).await.ok();
        let refused = payroll.decide(OPERATOR_TOKEN, "approve", &id).await;
        assert_eq!(refused.refused(), (402, "insufficient_funds"));
        assert_eq!(payroll.get(&id).await.ok().status_word(), "flagged_held");
        host.admin(Method::POST, &format!("wallets/{wallet}/credit"), all).await.ok();
        let approved = payroll.decide(OPERATOR_TOKEN, "approve", &id).await.ok();
        assert_eq!(approved.json["status_counts"], json!({ "cancelled": 1, "queued": 2 }));
        let done = payroll.until(&id, "completed_with_errors").await;
        assert_eq!(done.json["status_counts"], json!({ "cancelled": 1, "paid": 2 }));
        assert_eq!(payroll.balance().await, balance - 2 * COST);
        let refused = payroll.decide(OPERATOR_TOKEN, "reject", &id).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        // A single row above the threshold of payouts is reason enough.
        payroll.set(json!({ "dual_control_threshold_minor": { "NGN": "150000" } })).await;
        let large = with(row(20), json!({ "amount_minor": "150001" }));
        let waiting = payroll.make(vec![large]).await.ok();
        assert_eq!(waiting.status_word(), "awaiting_approval");
        let rejected = payroll.decide(OPERATOR_TOKEN, "reject", &waiting.id()).await.ok();
        assert_eq!(rejected.status_word(), "rejected");
        let told = format!(
            "SELECT COUNT(*) FROM events WHERE type = 'batch.completed' AND object_id = '{}'",
            waiting.id()
        );
        host.until_count(&told, 1).await;
        let now = payroll.get(&waiting.id()).await.ok();
        assert_eq!(now.json["status_counts"], json!({ "cancelled": 1 }));
        assert_eq!(now.json["reason"], "a reason");
        assert_eq!(payroll.balance().await, balance - 2 * COST);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_decide_at_once_one_does(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
        let waiting = payroll.make(rows(20)).await.ok();
        let id = waiting.id();
        let verbs = ["approve", "reject", "approve", "reject", "hold", "approve"];
        let decided = verbs.map(|verb| payroll.decide(OPERATOR_TOKEN, verb, &id));
        let answers = futures::future::join_all(decided).await;
        let final_ones = answers
            .iter()
            .zip(verbs)
            .filter(|(answer, verb)| answer.status == 200 && *verb != "hold");
        assert_eq!(final_ones.count(), 1, "{answers:#?}");
        let now = payroll.get(&id).await.ok();
        let spent = match now.status_word() {
            "rejected" => 0,
            _ => {
                payroll.until(&id, "completed").await;
                20 * COST
            }
        };
        assert_eq!(payroll.balance().await, START - spent);
    })
    .await;
}

/// The request of those who agreed was taken away after it was read: no looking again brings it
/// back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_counts_no_more_is_refused_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = waiting(host).await;
        let gone = Guard { on: &REQUESTS, id: format!("batch.approve/{id}"), version: 1 };
        let request = ReviewRequest {
            actor: Actor {
                name: OPERATOR.to_owned(),
                address: "127.0.0.1".parse().expect("an address"),
                session: None,
            },
            reason: None,
            reservation: None,
            agreement: Agreement { guards: vec![gone], people: 2, ..Agreement::default() },
        };
        let reviewed = Box::pin(review(host.app(), &id, Change::Approve, &request));
        let in_time = tokio::time::timeout(std::time::Duration::from_secs(20), reviewed).await;
        let refused = in_time.expect("an answer").err().map(|problem| problem.code());
        assert_eq!(refused, Some(ErrorCode::StateConflict));
        let now = host.admin(Method::GET, &format!("batches/{id}"), json!(null)).await.ok();
        assert_eq!(now.status_word(), "awaiting_approval");
        // Those who ask now are heard.
        let payroll = Payroll::new(host).await;
        payroll.decide(OPERATOR_TOKEN, "approve", &id).await.ok();
        payroll.until(&id, "completed").await;
    })
    .await;
}

/// The host is killed again and again while it pays; a second one takes over in between.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_paid_once_whoever_dies_on_the_way(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = Deployment::open(engine, "").await;
    let key = bulk_key(&deployment.host, "live").await;
    let headers = [("idempotency-key", "payroll")];
    let body = json!({ "currency": "NGN", "items": rows(60) });
    let made = deployment
        .host
        .send(Method::POST, "/v1/batches", &key, &headers, Some(body.clone()))
        .await
        .ok();
    for pause in [20, 60, 120] {
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        deployment.kill().await;
        deployment.let_time_pass(std::time::Duration::from_secs(600)).await;
        deployment.start(&[]).await;
    }
    let host = &deployment.host;
    let again = host.send(Method::POST, "/v1/batches", &key, &headers, Some(body)).await.ok();
    assert_eq!(again.text, made.text);
    let path = format!("/v1/batches/{}", made.id());
    until_all_ended(&mut deployment).await;
    let batch = deployment.host.get_as(&key, &path).await.ok();
    assert_eq!(batch.json["status_counts"], json!({ "paid": 60 }), "{}", batch.text);
    let transfers = deployment.bank.transfers().await;
    assert_eq!(transfers.len(), 60);
    assert!(transfers.iter().all(|transfer| transfer.executed == 1));
    let told = "SELECT COUNT(*) FROM events WHERE type = 'batch.completed'";
    for _ in 0..3_000 {
        if deployment.count(told).await == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(deployment.count(told).await, 1);
    deployment.prove().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_made_the_key_does_not_approve_a_live_batch(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
        let waiting = payroll.make(rows(2)).await.ok();
        let denied = payroll.decide(DESK_TOKEN, "approve", &waiting.id()).await;
        assert_eq!(denied.refused(), (403, "self_approval_denied"));
        assert_eq!(host.last_line().await["action"], "batch.approve_denied");
        payroll.decide(OPERATOR_TOKEN, "approve", &waiting.id()).await.ok();
        payroll.until(&waiting.id(), "completed").await;
    })
    .await;
}
