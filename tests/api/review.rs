//! What teammates, the operator and the merchant decide about a payout, and what may not be
//! decided any more.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with, with_host, with_host_configured,
};

const AMOUNT: u64 = 100_000;
/// What a payout of that amount takes from its wallet, fee and tax included.
const COST: i64 = 101_075;
const START: i64 = 100_000_000;

/// What the operator can do to a payout, and with which body.
const ACTIONS: [&str; 7] =
    ["approve", "decline", "release", "reject", "mark_paid", "mark_failed", "reverse"];

async fn act(host: &TestHost, action: &str, id: &str) -> Answer {
    let body = json!({ "reason": "a test", "evidence": "a letter" });
    host.admin(Method::POST, &format!("payouts/{id}/{action}"), body).await
}

async fn set(host: &TestHost, settings: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, settings).await.ok();
}

/// Payouts of more than 1,000.00 naira wait for a teammate from now on.
async fn require_teammate(host: &TestHost) {
    set(host, json!({ "dual_control_threshold_minor": { "NGN": "100000" } })).await;
}

async fn balance(host: &TestHost) -> i64 {
    host.balance(&host.merchant.test_wallet).await
}

async fn show(host: &TestHost, id: &str) -> Answer {
    host.get(&format!("/v1/payouts/{id}")).await.ok()
}

async fn cancel(host: &TestHost, id: &str) -> Answer {
    host.post(&format!("/v1/payouts/{id}/cancel"), json!({ "reason": "a mistake" })).await
}

/// A payout in this status. The host must not dispatch by itself.
async fn payout_in(host: &TestHost, status: &str) -> String {
    let (scenario, amount, actions): (&str, u64, &[&str]) = match status {
        "draft" => ("paid", AMOUNT + 1, &[]),
        "queued" => ("paid", AMOUNT + 1, &["approve"]),
        "awaiting_admin_review" => ("fraud_hold", AMOUNT, &[]),
        "processing" | "paid" | "failed" => (status, AMOUNT, &[]),
        "paid_manual" => ("processing", AMOUNT, &["mark_paid"]),
        "failed_manual" => ("processing", AMOUNT, &["mark_failed"]),
        "reversed" => ("paid", AMOUNT, &["reverse"]),
        "cancelled" => ("paid", AMOUNT + 1, &["decline"]),
        other => panic!("no way to {other}"),
    };
    let id = host.pay(scenario, naira(amount)).await.ok().id();
    for action in actions {
        act(host, action, &id).await.ok();
    }
    assert_eq!(show(host, &id).await.status_word(), status);
    id
}

const STATUSES: [&str; 10] = [
    "draft",
    "awaiting_admin_review",
    "queued",
    "processing",
    "paid",
    "paid_manual",
    "failed",
    "failed_manual",
    "reversed",
    "cancelled",
];

/// What becomes of a payout in a status when the operator acts; nothing where it may not.
fn allowed(status: &str, action: &str) -> Option<&'static str> {
    Some(match (status, action) {
        ("draft", "approve") | ("awaiting_admin_review", "release") => "queued",
        ("draft", "decline") => "cancelled",
        ("awaiting_admin_review", "reject") => "failed",
        ("paid" | "paid_manual", "reverse") => "reversed",
        ("paid" | "paid_manual", "mark_paid") => return None,
        (_, "mark_paid") => "paid_manual",
        ("draft" | "awaiting_admin_review" | "queued" | "processing", "mark_failed")
        | ("paid" | "paid_manual", "mark_failed") => "failed_manual",
        _ => return None,
    })
}

/// Whether a payout in this status has taken its costs from the wallet.
fn holds_money(status: &str) -> bool {
    matches!(status, "queued" | "processing" | "paid" | "paid_manual")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_action_is_possible_or_refused_as_the_status_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(
        engine,
        |config| config.worker.dispatch = false,
        async |host| {
            require_teammate(host).await;
            for status in STATUSES {
                for action in ACTIONS {
                    let id = payout_in(host, status).await;
                    let before = show(host, &id).await;
                    let answer = act(host, action, &id).await;
                    match allowed(status, action) {
                        Some(to) => assert_eq!(answer.ok().status_word(), to, "{status} {action}"),
                        None => {
                            let refused = answer.refused();
                            assert_eq!(refused, (409, "state_conflict"), "{status} {action}");
                            assert_eq!(show(host, &id).await.text, before.text);
                        }
                    }
                }
                let id = payout_in(host, status).await;
                let answer = cancel(host, &id).await;
                if matches!(status, "draft" | "queued") {
                    assert_eq!(answer.ok().status_word(), "cancelled");
                } else {
                    assert_eq!(answer.refused(), (409, "payout_not_cancellable"), "{status}");
                }
            }
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_change_moves_money_exactly_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(
        engine,
        |config| config.worker.dispatch = false,
        async |host| {
            require_teammate(host).await;
            for status in STATUSES {
                for action in ACTIONS {
                    let Some(to) = allowed(status, action) else { continue };
                    let start = balance(host).await;
                    let id = payout_in(host, status).await;
                    let total = show(host, &id).await.json["total_debit_minor"].clone();
                    let total: i64 = total.as_str().expect("money").parse().expect("digits");
                    let held = if holds_money(status) { total } else { 0 };
                    assert_eq!(balance(host).await, start - held, "{status}");
                    act(host, action, &id).await.ok();
                    let held = if holds_money(to) { total } else { 0 };
                    assert_eq!(balance(host).await, start - held, "{status} {action}");
                    host.prove().await;
                }
            }
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_ended_unpaid_is_debited_again_when_it_is_marked_as_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(
        engine,
        |config| config.worker.dispatch = false,
        async |host| {
            require_teammate(host).await;
            let wallet = host.merchant.test_wallet.clone();
            for status in ["failed", "failed_manual", "cancelled", "reversed"] {
                let id = payout_in(host, status).await;
                let before = show(host, &id).await;
                let start = balance(host).await;
                let debit =
                    |amount: i64| json!({ "amount_minor": amount.to_string(), "reason": "a test" });
                let path = format!("wallets/{wallet}/debit");
                host.admin(Method::POST, &path, debit(start - 1_000)).await.ok();
                let refused = act(host, "mark_paid", &id).await;
                assert_eq!(refused.refused(), (402, "insufficient_funds"), "{status}");
                assert_eq!(show(host, &id).await.text, before.text, "{status}");
                assert_eq!(balance(host).await, 1_000, "{status}");

                host.credit(&wallet, u64::try_from(start - 1_000).expect("money")).await;
                let marked = act(host, "mark_paid", &id).await.ok();
                assert_eq!(marked.status_word(), "paid_manual", "{status}");
                let total = marked.json["total_debit_minor"].as_str().expect("money");
                let total: i64 = total.parse().expect("digits");
                assert_eq!(balance(host).await, start - total, "{status}");
                let again = act(host, "mark_paid", &id).await;
                assert_eq!(again.refused(), (409, "state_conflict"), "{status}");
                assert_eq!(balance(host).await, start - total, "{status}");
                host.prove().await;
            }
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_above_the_threshold_waits_for_a_teammate(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        require_teammate(host).await;
        assert_eq!(host.pay("paid", naira(AMOUNT)).await.ok().status_word(), "paid");
        let draft = host.pay("paid", naira(AMOUNT + 1)).await.ok();
        assert_eq!((draft.status, draft.status_word()), (201, "draft"));
        assert!(draft.json["queued_at"].is_null() && draft.json["nip_reference"].is_null());
        assert_eq!(balance(host).await, START - COST);

        host.advance(60);
        let approved = act(host, "approve", &draft.id()).await.ok();
        assert_eq!(approved.status_word(), "queued");
        assert_eq!(approved.json["queued_at"], "2026-11-21T09:01:00.000Z");
        let paid = host.until(&host.merchant.test_key, &draft.id(), "paid").await;
        assert_eq!(paid.json["created_at"], "2026-11-21T09:00:00.000Z");
        assert_eq!(balance(host).await, START - 2 * COST - 1);

        let other = host.pay("paid", naira(AMOUNT + 1)).await.ok().id();
        let declined = act(host, "decline", &other).await.ok();
        assert_eq!(declined.status_word(), "cancelled");
        assert!(!declined.json["completed_at"].is_null() && declined.json["queued_at"].is_null());
        assert_eq!(balance(host).await, START - 2 * COST - 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_debited_stays_where_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        require_teammate(host).await;
        let wallet = host.merchant.test_wallet.clone();
        let draft = host.pay("paid", naira(AMOUNT + 1)).await.ok().id();
        let held = host.pay("fraud_hold", naira(AMOUNT)).await.ok().id();
        let debit = json!({ "amount_minor": "99950000", "reason": "a test" });
        host.admin(Method::POST, &format!("wallets/{wallet}/debit"), debit).await.ok();
        let cases = [("approve", &draft, "draft"), ("release", &held, "awaiting_admin_review")];
        for (action, id, status) in cases {
            let refused = act(host, action, id).await;
            assert_eq!(refused.refused(), (402, "insufficient_funds"));
            host.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await.ok();
            let refused = act(host, action, id).await;
            assert_eq!(refused.refused(), (403, "wallet_frozen"));
            host.admin(Method::POST, &format!("wallets/{wallet}/unfreeze"), json!({})).await.ok();
            set(host, json!({ "limits": { "NGN": { "daily_minor": "50000" } } })).await;
            let refused = act(host, action, id).await;
            assert_eq!(refused.refused(), (422, "limit_violation"));
            set(host, json!({ "limits": { "NGN": null } })).await;
            assert_eq!(show(host, id).await.status_word(), status);
            assert_eq!(balance(host).await, 50_000);
        }
        host.credit(&wallet, 200_000).await;
        for (action, id, _) in cases {
            act(host, action, id).await.ok();
            host.until(&host.merchant.test_key, id, "paid").await;
        }
        assert_eq!(balance(host).await, 250_000 - 2 * COST - 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_held_payout_is_released_or_rejected(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let held = host.pay("fraud_hold", naira(AMOUNT)).await.ok();
        assert_eq!(held.status_word(), "awaiting_admin_review");
        assert_eq!(balance(host).await, START);
        assert_eq!(act(host, "release", &held.id()).await.ok().status_word(), "queued");
        host.until(&host.merchant.test_key, &held.id(), "paid").await;
        assert_eq!(balance(host).await, START - COST);

        let held = host.pay("fraud_hold", naira(AMOUNT)).await.ok().id();
        let rejected = act(host, "reject", &held).await.ok();
        assert_eq!(rejected.status_word(), "failed");
        assert_eq!(rejected.json["failure_code"], "review_rejected");
        assert_eq!(rejected.json["failure_message"], "a test");
        assert_eq!(balance(host).await, START - COST);
        let entries =
            format!("/v1/wallets/{}/transactions?direction=debit", host.merchant.test_wallet);
        let entries = host.get(&entries).await.ok();
        assert_eq!(entries.json["data"].as_array().map(Vec::len), Some(2), "only of the first");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn marking_needs_evidence(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        for (action, end) in [("mark_paid", "paid_manual"), ("mark_failed", "failed_manual")] {
            let id = host.pay("timeout_then_unknown", naira(AMOUNT)).await.ok().id();
            let path = format!("payouts/{id}/{action}");
            for body in [
                json!({}),
                json!({ "reason": "they rang" }),
                json!({ "evidence": null }),
                json!({ "evidence": "" }),
                json!({ "evidence": "  " }),
            ] {
                let refused = host.admin(Method::POST, &path, body.clone()).await;
                assert_eq!(refused.refused(), (400, "missing_field"), "{body}");
                assert_eq!(refused.field(), "evidence");
            }
            assert_eq!(show(host, &id).await.status_word(), "processing");
            let evidence = json!({ "evidence": "statement of 21 November" });
            let marked = host.admin(Method::POST, &path, evidence).await.ok();
            assert_eq!(marked.status_word(), end);
            let audit =
                host.send(Method::GET, "/admin/v1/audit?limit=1", OPERATOR_TOKEN, &[], None).await;
            let line = &audit.ok().json["data"][0];
            assert_eq!(line["action"], format!("payout.{action}"));
            assert_eq!((&line["subject_id"], &line["actor"]), (&json!(id), &json!("operator")));
            assert_eq!(line["before"]["status"], "processing");
            assert_eq!(line["after"]["evidence"], "statement of 21 November");
        }
        assert_eq!(balance(host).await, START - COST);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_needs_a_reason(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        require_teammate(host).await;
        let pay = async || host.pay("paid", naira(AMOUNT + 1)).await.ok().id();
        let path = |id: &str| format!("/v1/payouts/{id}/cancel");
        let id = pay().await;
        for body in [
            json!({}),
            json!({ "reason": null }),
            json!({ "reason": "" }),
            json!({ "reason": "ab" }),
            json!({ "reason": "  ab  " }),
            json!({ "reason": "é".repeat(501) }),
            json!({ "reason": 12345 }),
        ] {
            let refused = host.post(&path(&id), body.clone()).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "reason"));
        }
        let refused = host.send(Method::POST, &path(&id), &host.merchant.test_key, &[], None).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "reason"));
        assert_eq!(show(host, &id).await.status_word(), "draft");
        for reason in ["abc".to_owned(), "é".repeat(500)] {
            let id = pay().await;
            let cancelled = host.post(&path(&id), json!({ "reason": reason })).await.ok();
            assert_eq!(cancelled.status_word(), "cancelled");
            assert_eq!(cancelled.text, show(host, &id).await.text);
        }
        let refused = cancel(host, "c0").await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        let other = host.new_merchant("Other").await;
        let body = Some(json!({ "reason": "not mine" }));
        let refused = host.send(Method::POST, &path(&id), &other.test_key, &[], body).await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        let refused = host
            .send(
                Method::POST,
                &path(&id),
                &host.merchant.live_key,
                &[],
                Some(json!({ "reason": "the other environment" })),
            )
            .await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        assert_eq!(balance(host).await, START);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn asking_again_does_nothing_to_a_payout_that_is_not_under_way(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(
        engine,
        |config| config.worker.dispatch = false,
        async |host| {
            require_teammate(host).await;
            for status in STATUSES {
                let id = payout_in(host, status).await;
                let (timeline, before) =
                    (format!("/v1/payouts/{id}/timeline"), show(host, &id).await);
                let steps = host.get(&timeline).await.ok();
                let answer = host.post(&format!("/v1/payouts/{id}/requery"), json!({})).await.ok();
                assert_eq!((answer.status, &answer.text), (200, &before.text), "{status}");
                let asked = host.get(&timeline).await.ok().text != steps.text;
                assert_eq!(asked, status == "processing", "{status}");
            }
            let reference = show(host, &payout_in(host, "paid").await).await;
            let reference = reference.json["reference"].as_str().expect("a reference").to_owned();
            host.post(&format!("/v1/payouts/{reference}/requery"), json!({})).await.ok();
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_change_has_one_event_and_they_are_numbered(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        require_teammate(host).await;
        let path: &[(&str, u64, &[&str], &[&str])] = &[
            ("paid", AMOUNT, &["reverse"], &["processing", "paid", "reversed"]),
            ("failed", AMOUNT, &[], &["processing", "failed"]),
            ("paid", AMOUNT + 1, &["decline"], &["cancelled"]),
            ("fraud_hold", AMOUNT, &["reject"], &["held", "failed"]),
            (
                "timeout_then_unknown",
                AMOUNT,
                &["mark_paid", "mark_failed"],
                &["processing", "paid", "failed"],
            ),
        ];
        for (scenario, amount, actions, told) in path {
            let body = with(naira(*amount), json!({ "customer_reference": "c-9" }));
            let id = host.pay(scenario, body).await.ok().id();
            for action in *actions {
                act(host, action, &id).await.ok();
            }
            let feed = host.get("/v1/events").await.ok();
            let events = feed.json["data"].as_array().expect("events");
            let mut mine: Vec<_> =
                events.iter().filter(|e| e["data"]["id"] == id.as_str()).collect();
            mine.reverse();
            let names: Vec<_> = mine.iter().filter_map(|e| e["event"].as_str()).collect();
            let expected: Vec<_> = told.iter().map(|word| format!("payout.{word}")).collect();
            assert_eq!(names, expected, "{scenario}");
            let numbers: Vec<_> = mine.iter().filter_map(|e| e["sequence"].as_i64()).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            let last = mine.last().expect("an event");
            assert_eq!(last["data"], show(host, &id).await.json);
            assert_eq!(last["data"]["customer_reference"], "c-9");
        }
        // That a payout goes at once is told to nobody, and not written.
        let gaps = "SELECT COUNT(*) FROM (SELECT object_id FROM events GROUP BY object_id \
                    HAVING MIN(sequence) > CASE WHEN MIN(object_type) = 'payout' THEN 2 ELSE 1 END \
                    OR MAX(sequence) - MIN(sequence) + 1 <> COUNT(*)) \
                    AS gaps";
        assert_eq!(host.count(gaps).await, 0);
    })
    .await;
}
