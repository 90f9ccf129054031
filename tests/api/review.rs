//! What teammates, the operator and the merchant decide about a payout, and what may not be
//! decided any more.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::yard::{Answer, Engine, Yard, in_yard, in_yard_with, naira, with};

const AMOUNT: u64 = 100_000;
/// What a payout of that amount takes from its wallet, fee and tax included.
const COST: i64 = 101_075;
const START: i64 = 100_000_000;

/// What the operator can do to a payout, and with which body.
const ACTIONS: [&str; 7] =
    ["approve", "decline", "release", "reject", "mark_paid", "mark_failed", "reverse"];

async fn act(yard: &Yard, action: &str, id: &str) -> Answer {
    let body = json!({ "reason": "a test", "evidence": "a letter" });
    yard.admin(Method::POST, &format!("payouts/{id}/{action}"), body).await
}

async fn set(yard: &Yard, settings: Value) {
    let path = format!("merchants/{}", yard.merchant.id);
    yard.admin(Method::PATCH, &path, settings).await.ok();
}

/// Payouts of more than 1,000.00 naira wait for a teammate from now on.
async fn require_teammate(yard: &Yard) {
    set(yard, json!({ "dual_control_threshold_minor": { "NGN": "100000" } })).await;
}

async fn balance(yard: &Yard) -> i64 {
    yard.balance(&yard.merchant.test_wallet).await
}

async fn show(yard: &Yard, id: &str) -> Answer {
    yard.get(&format!("/v1/payouts/{id}")).await.ok()
}

async fn cancel(yard: &Yard, id: &str) -> Answer {
    yard.post(&format!("/v1/payouts/{id}/cancel"), json!({ "reason": "a mistake" })).await
}

/// A payout in this status. The host must not dispatch by itself.
async fn payout_in(yard: &Yard, status: &str) -> String {
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
    let id = yard.pay(scenario, naira(amount)).await.ok().id();
    for action in actions {
        act(yard, action, &id).await.ok();
    }
    assert_eq!(show(yard, &id).await.status_word(), status);
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
        ("draft" | "awaiting_admin_review" | "queued" | "processing", "mark_paid") => "paid_manual",
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
    in_yard_with(
        engine,
        |config| config.worker.dispatch = false,
        async |yard| {
            require_teammate(yard).await;
            for status in STATUSES {
                for action in ACTIONS {
                    let id = payout_in(yard, status).await;
                    let before = show(yard, &id).await;
                    let answer = act(yard, action, &id).await;
                    match allowed(status, action) {
                        Some(to) => assert_eq!(answer.ok().status_word(), to, "{status} {action}"),
                        None => {
                            let refused = answer.refused();
                            assert_eq!(refused, (409, "state_conflict"), "{status} {action}");
                            assert_eq!(show(yard, &id).await.text, before.text);
                        }
                    }
                }
                let id = payout_in(yard, status).await;
                let answer = cancel(yard, &id).await;
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
    in_yard_with(
        engine,
        |config| config.worker.dispatch = false,
        async |yard| {
            require_teammate(yard).await;
            for status in STATUSES {
                for action in ACTIONS {
                    let Some(to) = allowed(status, action) else { continue };
                    let start = balance(yard).await;
                    let id = payout_in(yard, status).await;
                    let total = show(yard, &id).await.json["total_debit_minor"].clone();
                    let total: i64 = total.as_str().expect("money").parse().expect("digits");
                    let held = if holds_money(status) { total } else { 0 };
                    assert_eq!(balance(yard).await, start - held, "{status}");
                    act(yard, action, &id).await.ok();
                    let held = if holds_money(to) { total } else { 0 };
                    assert_eq!(balance(yard).await, start - held, "{status} {action}");
                    yard.prove().await;
                }
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
    in_yard(engine, async |yard| {
        require_teammate(yard).await;
        assert_eq!(yard.pay("paid", naira(AMOUNT)).await.ok().status_word(), "paid");
        let draft = yard.pay("paid", naira(AMOUNT + 1)).await.ok();
        assert_eq!((draft.status, draft.status_word()), (201, "draft"));
        assert!(draft.json["queued_at"].is_null() && draft.json["nip_reference"].is_null());
        assert_eq!(balance(yard).await, START - COST);

        yard.advance(60);
        let approved = act(yard, "approve", &draft.id()).await.ok();
        assert_eq!(approved.status_word(), "queued");
        assert_eq!(approved.json["queued_at"], "2026-11-21T09:01:00.000Z");
        let paid = yard.until(&yard.merchant.test_key, &draft.id(), "paid").await;
        assert_eq!(paid.json["created_at"], "2026-11-21T09:00:00.000Z");
        assert_eq!(balance(yard).await, START - 2 * COST - 1);

        let other = yard.pay("paid", naira(AMOUNT + 1)).await.ok().id();
        let declined = act(yard, "decline", &other).await.ok();
        assert_eq!(declined.status_word(), "cancelled");
        assert!(!declined.json["completed_at"].is_null() && declined.json["queued_at"].is_null());
        assert_eq!(balance(yard).await, START - 2 * COST - 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_debited_stays_where_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        require_teammate(yard).await;
        let wallet = yard.merchant.test_wallet.clone();
        let draft = yard.pay("paid", naira(AMOUNT + 1)).await.ok().id();
        let held = yard.pay("fraud_hold", naira(AMOUNT)).await.ok().id();
        let debit = json!({ "amount_minor": "99950000", "reason": "a test" });
        yard.admin(Method::POST, &format!("wallets/{wallet}/debit"), debit).await.ok();
        let cases = [("approve", &draft, "draft"), ("release", &held, "awaiting_admin_review")];
        for (action, id, status) in cases {
            let refused = act(yard, action, id).await;
            assert_eq!(refused.refused(), (402, "insufficient_funds"));
            yard.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await.ok();
            let refused = act(yard, action, id).await;
            assert_eq!(refused.refused(), (403, "wallet_frozen"));
            yard.admin(Method::POST, &format!("wallets/{wallet}/unfreeze"), json!({})).await.ok();
            set(yard, json!({ "limits": { "NGN": { "daily_minor": "50000" } } })).await;
            let refused = act(yard, action, id).await;
            assert_eq!(refused.refused(), (422, "limit_violation"));
            set(yard, json!({ "limits": { "NGN": null } })).await;
            assert_eq!(show(yard, id).await.status_word(), status);
            assert_eq!(balance(yard).await, 50_000);
        }
        yard.credit(&wallet, 200_000).await;
        for (action, id, _) in cases {
            act(yard, action, id).await.ok();
            yard.until(&yard.merchant.test_key, id, "paid").await;
        }
        assert_eq!(balance(yard).await, 250_000 - 2 * COST - 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_held_payout_is_released_or_rejected(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        let held = yard.pay("fraud_hold", naira(AMOUNT)).await.ok();
        assert_eq!(held.status_word(), "awaiting_admin_review");
        assert_eq!(balance(yard).await, START);
        assert_eq!(act(yard, "release", &held.id()).await.ok().status_word(), "queued");
        yard.until(&yard.merchant.test_key, &held.id(), "paid").await;
        assert_eq!(balance(yard).await, START - COST);

        let held = yard.pay("fraud_hold", naira(AMOUNT)).await.ok().id();
        let rejected = act(yard, "reject", &held).await.ok();
        assert_eq!(rejected.status_word(), "failed");
        assert_eq!(rejected.json["failure_code"], "review_rejected");
        assert_eq!(rejected.json["failure_message"], "a test");
        assert_eq!(balance(yard).await, START - COST);
        let entries =
            format!("/v1/wallets/{}/transactions?direction=debit", yard.merchant.test_wallet);
        let entries = yard.get(&entries).await.ok();
        assert_eq!(entries.json["data"].as_array().map(Vec::len), Some(2), "only of the first");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn marking_needs_evidence(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    in_yard(engine, async |yard| {
        for (action, end) in [("mark_paid", "paid_manual"), ("mark_failed", "failed_manual")] {
            let id = yard.pay("timeout_then_unknown", naira(AMOUNT)).await.ok().id();
            let path = format!("payouts/{id}/{action}");
            for body in [
                json!({}),
                json!({ "reason": "they rang" }),
                json!({ "evidence": null }),
                json!({ "evidence": "" }),
                json!({ "evidence": "  " }),
            ] {
                let refused = yard.admin(Method::POST, &path, body.clone()).await;
                assert_eq!(refused.refused(), (400, "missing_field"), "{body}");
                assert_eq!(refused.field(), "evidence");
            }
            assert_eq!(show(yard, &id).await.status_word(), "processing");
            let evidence = json!({ "evidence": "statement of 21 November" });
            let marked = yard.admin(Method::POST, &path, evidence).await.ok();
            assert_eq!(marked.status_word(), end);
            let audit =
                yard.send(Method::GET, "/admin/v1/audit?limit=1", "op_test", &[], None).await;
            let line = &audit.ok().json["data"][0];
            assert_eq!(line["action"], format!("payout.{action}"));
            assert_eq!((&line["subject_id"], &line["actor"]), (&json!(id), &json!("operator")));
            assert_eq!(line["before"]["status"], "processing");
            assert_eq!(line["after"]["evidence"], "statement of 21 November");
        }
        assert_eq!(balance(yard).await, START - COST);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_needs_a_reason(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    in_yard(engine, async |yard| {
        require_teammate(yard).await;
        let pay = async || yard.pay("paid", naira(AMOUNT + 1)).await.ok().id();
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
            let refused = yard.post(&path(&id), body.clone()).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "reason"));
        }
        let refused = yard.send(Method::POST, &path(&id), &yard.merchant.test_key, &[], None).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "reason"));
        assert_eq!(show(yard, &id).await.status_word(), "draft");
        for reason in ["abc".to_owned(), "é".repeat(500)] {
            let id = pay().await;
            let cancelled = yard.post(&path(&id), json!({ "reason": reason })).await.ok();
            assert_eq!(cancelled.status_word(), "cancelled");
            assert_eq!(cancelled.text, show(yard, &id).await.text);
        }
        let refused = cancel(yard, "c0").await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        let other = yard.new_merchant("Other").await;
        let body = Some(json!({ "reason": "not mine" }));
        let refused = yard.send(Method::POST, &path(&id), &other.test_key, &[], body).await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        let refused = yard
            .send(
                Method::POST,
                &path(&id),
                &yard.merchant.live_key,
                &[],
                Some(json!({ "reason": "the other world" })),
            )
            .await;
        assert_eq!(refused.refused(), (404, "payout_not_found"));
        assert_eq!(balance(yard).await, START);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn asking_again_does_nothing_to_a_payout_that_is_not_under_way(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard_with(
        engine,
        |config| config.worker.dispatch = false,
        async |yard| {
            require_teammate(yard).await;
            for status in STATUSES {
                let id = payout_in(yard, status).await;
                let (timeline, before) =
                    (format!("/v1/payouts/{id}/timeline"), show(yard, &id).await);
                let steps = yard.get(&timeline).await.ok();
                let answer = yard.post(&format!("/v1/payouts/{id}/requery"), json!({})).await.ok();
                assert_eq!((answer.status, &answer.text), (200, &before.text), "{status}");
                let asked = yard.get(&timeline).await.ok().text != steps.text;
                assert_eq!(asked, status == "processing", "{status}");
            }
            let reference = show(yard, &payout_in(yard, "paid").await).await;
            let reference = reference.json["reference"].as_str().expect("a reference").to_owned();
            yard.post(&format!("/v1/payouts/{reference}/requery"), json!({})).await.ok();
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_change_has_one_event_and_they_are_numbered(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_yard(engine, async |yard| {
        require_teammate(yard).await;
        let path: &[(&str, u64, &[&str], &[&str])] = &[
            ("paid", AMOUNT, &["reverse"], &["processing", "paid", "reversed"]),
            ("failed", AMOUNT, &[], &["processing", "failed"]),
            ("paid", AMOUNT + 1, &["decline"], &["cancelled"]),
            ("fraud_hold", AMOUNT, &["reject"], &["failed"]),
            (
                "timeout_then_unknown",
                AMOUNT,
                &["mark_paid", "mark_failed"],
                &["processing", "paid", "failed"],
            ),
        ];
        for (scenario, amount, actions, told) in path {
            let body = with(naira(*amount), json!({ "customer_reference": "c-9" }));
            let id = yard.pay(scenario, body).await.ok().id();
            for action in *actions {
                act(yard, action, &id).await.ok();
            }
            let feed = yard.get("/v1/events").await.ok();
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
            assert_eq!(last["data"], show(yard, &id).await.json);
            assert_eq!(last["data"]["customer_reference"], "c-9");
        }
        let gaps = "SELECT COUNT(*) FROM (SELECT object_id FROM events GROUP BY object_id \
                    HAVING MIN(sequence) <> 1 OR MAX(sequence) <> COUNT(*)) AS gaps";
        assert_eq!(yard.count(gaps).await, 0);
    })
    .await;
}
