//! What the operator allows per payout, day and recipient; what looks like a mistake.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::{account, to};
use crate::network::{Sends, with_live_host};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

async fn set(host: &TestHost, settings: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, settings).await.ok();
}

async fn limit(host: &TestHost, kind: &str, amount: u64) {
    set(host, json!({ "limits": { "NGN": { kind: amount.to_string() } } })).await;
}

/// A refusal for a limit, with everything that it says about it.
#[track_caller]
fn exceeds(answer: &Answer, kind: &str, [limit, used, requested]: [u64; 3]) {
    assert_eq!(answer.refused(), (422, "limit_violation"));
    let expected = json!({
        "kind": kind,
        "limit_minor": limit.to_string(),
        "used_minor": used.to_string(),
        "requested_minor": requested.to_string(),
    });
    assert_eq!(answer.json["error"]["detail"], expected);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_single_payout_has_a_largest_amount(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.credit(&host.merchant.test_wallet, 2_000_000_000).await;
        let refused = host.pay("paid", naira(1_000_000_001)).await;
        exceeds(&refused, "per_transaction", [1_000_000_000, 0, 1_000_000_001]);
        let refused = host.pay("paid", naira(99)).await;
        exceeds(&refused, "below_minimum", [100, 0, 99]);
        host.pay("paid", naira(1_000_000_000)).await.ok();
        host.pay("paid", naira(100)).await.ok();
        limit(host, "per_transaction_minor", 50_000).await;
        host.pay("paid", naira(50_000)).await.ok();
        let refused = host.pay("paid", naira(50_001)).await;
        exceeds(&refused, "per_transaction", [50_000, 0, 50_001]);
        // Another limit leaves it as it is.
        limit(host, "daily_minor", 5_000_000_000).await;
        assert_eq!(host.pay("paid", naira(50_001)).await.refused().0, 422);
        set(host, json!({ "limits": { "NGN": { "per_transaction_minor": null } } })).await;
        host.pay("paid", naira(50_001)).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_refuses_the_amounts_that_a_payout_refuses(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.credit(&host.merchant.test_wallet, 2_000_000_000).await;
        let quote = async |amount: u64| {
            let body = json!({ "currency": "NGN", "amount_minor": amount.to_string() });
            host.post("/v1/payouts/quote", body).await
        };
        for (limit, amounts) in [
            (None, [1, 99, 100, 1_000_000_000, 1_000_000_001, u64::MAX / 2]),
            (Some(50_000), [99, 100, 50_000, 50_001, 1_000_000_001, u64::MAX / 2]),
        ] {
            if let Some(limit) = limit {
                self::limit(host, "per_transaction_minor", limit).await;
            }
            for amount in amounts {
                let (quoted, paid) = (quote(amount).await, host.pay("paid", naira(amount)).await);
                let (quoted, paid) = (&quoted.json["error"], &paid.json["error"]);
                assert_eq!(quoted, paid, "{amount}");
                let is_refused = amount < 100 || amount > limit.unwrap_or(1_000_000_000);
                assert_eq!(quoted["code"] == "limit_violation", is_refused, "{amount}: {quoted}");
                assert!(!is_refused || quoted["field"] == "amount_minor", "{quoted}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_day_ends_at_midnight_where_the_merchant_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        ("Africa/Lagos", 14 * 3600),
        ("America/New_York", 20 * 3600),
        ("Asia/Kolkata", 9 * 3600 + 1800),
        ("UTC", 15 * 3600)
    )]
    place: (&str, u64),
) {
    let (timezone, until_midnight) = place;
    with_host(engine, async |host| {
        set(host, json!({ "timezone": timezone })).await;
        limit(host, "daily_minor", 300_000).await;
        host.pay("paid", with(naira(100_000), to(1))).await.ok();
        host.pay("paid", with(naira(150_000), to(2))).await.ok();
        let refused = host.pay("paid", naira(50_001)).await;
        exceeds(&refused, "daily", [300_000, 250_000, 50_001]);
        host.pay("paid", naira(50_000)).await.ok();
        host.advance(until_midnight - 1);
        let refused = host.pay("paid", naira(100)).await;
        exceeds(&refused, "daily", [300_000, 300_000, 100]);
        host.advance(1);
        host.pay("paid", naira(300_000)).await.ok();
        let refused = host.pay("paid", naira(100)).await;
        exceeds(&refused, "daily", [300_000, 300_000, 100]);
    })
    .await;
}

/// What comes back after the merchant has moved to where it is another day.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_is_of_the_day_on_which_it_was_taken(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let key = host.merchant.live_key.clone();
        host.advance(2 * 3600);
        limit(host, "daily_minor", 300_000).await;
        let pay = async |amount: u64, whom: u32| {
            host.pay_as(&key, &unique(), with(naira(amount), to(whom))).await
        };
        let before = pay(200_000, 1).await.ok().id();
        host.advance(1);
        set(host, json!({ "timezone": "Pacific/Kiritimati" })).await;
        pay(300_000, 2).await.ok();
        let body = Some(json!({ "reason": "a mistake" }));
        let path = format!("/v1/payouts/{before}/cancel");
        host.send(Method::POST, &path, &key, &[], body).await.ok();
        exceeds(&pay(100, 3).await, "daily", [300_000, 300_000, 100]);
        // And back to where it was taken, for whoever returns on the same day.
        host.advance(1);
        set(host, json!({ "timezone": "Africa/Lagos" })).await;
        pay(300_000, 4).await.ok();
        exceeds(&pay(100, 5).await, "daily", [300_000, 300_000, 100]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_recipient_gets_no_more_than_its_share_of_a_day(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        limit(host, "per_beneficiary_minor", 200_000).await;
        let first = host.pay("paid", with(naira(150_000), to(1))).await.ok();
        let beneficiary = first.json["beneficiary_id"].clone();
        let alias = json!({ "account_number": account(1), "bank_code": "000013" });
        for same in [to(1), json!({ "recipient": alias }), json!({ "beneficiary_id": beneficiary })]
        {
            let refused = host.pay("paid", with(naira(50_001), same)).await;
            exceeds(&refused, "per_beneficiary", [200_000, 150_000, 50_001]);
        }
        host.pay("paid", with(naira(200_000), to(2))).await.ok();
        host.pay("paid", with(naira(50_000), to(1))).await.ok();
        host.advance(14 * 3600);
        host.pay("paid", with(naira(200_000), to(1))).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_money_that_may_have_left_uses_up_a_limit(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let key = host.merchant.live_key.clone();
        limit(host, "daily_minor", 300_000).await;
        let pay = async |amount: u64| host.pay_as(&key, &unique(), naira(amount)).await;
        let act = async |id: &str, action: &str| {
            let body = json!({ "evidence": "a letter", "reason": "a test" });
            host.admin(Method::POST, &format!("payouts/{id}/{action}"), body).await.ok()
        };
        let id = pay(300_000).await.ok().id();
        exceeds(&pay(100).await, "daily", [300_000, 300_000, 100]);
        let body = Some(json!({ "reason": "a mistake" }));
        let path = format!("/v1/payouts/{id}/cancel");
        host.send(Method::POST, &path, &key, &[], body).await.ok();

        let id = pay(300_000).await.ok().id();
        exceeds(&pay(100).await, "daily", [300_000, 300_000, 100]);
        act(&id, "mark_failed").await;

        let id = pay(300_000).await.ok().id();
        act(&id, "mark_paid").await;
        act(&id, "reverse").await;
        exceeds(&pay(100).await, "daily", [300_000, 300_000, 100]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_sets_free_the_day_of_its_debit(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        limit(host, "daily_minor", 300_000).await;
        host.pay("failed", naira(300_000)).await.ok();
        let late = host.pay("processing", naira(200_000)).await.ok().id();
        host.advance(14 * 3600);
        host.pay("paid", naira(300_000)).await.ok();
        host.post(&format!("/v1/sandbox/payouts/{late}/fail"), json!({})).await.ok();
        let refused = host.pay("paid", naira(100)).await;
        exceeds(&refused, "daily", [300_000, 300_000, 100]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_counts_on_the_day_on_which_it_is_approved(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        set(host, json!({ "dual_control_threshold_minor": { "NGN": "100000" } })).await;
        limit(host, "daily_minor", 300_000).await;
        let draft = host.pay("paid", naira(200_001)).await.ok().id();
        host.pay("paid", naira(100_000)).await.ok();
        host.pay("paid", naira(100_000)).await.ok();
        let path = format!("payouts/{draft}/approve");
        let refused = host.admin(Method::POST, &path, json!({})).await;
        exceeds(&refused, "daily", [300_000, 200_000, 200_001]);
        host.advance(14 * 3600);
        host.admin(Method::POST, &path, json!({})).await.ok();
        let refused = host.pay("paid", naira(100_000)).await;
        exceeds(&refused, "daily", [300_000, 200_001, 100_000]);
        host.until(&host.merchant.test_key, &draft, "paid").await;
    })
    .await;
}

/// A payout that does not waive the cool-down.
fn careful(serial: u32) -> Value {
    with(with(naira(100_000), to(serial)), json!({ "allow_duplicate": null }))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_same_recipient_twice_within_five_minutes_looks_like_a_mistake(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let first = host.pay("paid", careful(1)).await.ok();
        let beneficiary = json!({ "beneficiary_id": first.json["beneficiary_id"] });
        host.advance(60);
        for body in [
            careful(1),
            with(careful(1), json!({ "amount_minor": "777" })),
            with(careful(1), json!({ "allow_duplicate": false })),
            with(careful(1), beneficiary),
        ] {
            let refused = host.pay("paid", body).await;
            assert_eq!(refused.refused(), (429, "beneficiary_cooldown"));
            assert_eq!(refused.headers["retry-after"], "240");
            let until = json!({ "retry_after_seconds": 240, "until": "2026-11-21T09:05:00.000Z" });
            assert_eq!(refused.json["error"]["detail"], until);
        }
        host.pay("paid", careful(2)).await.ok();
        host.pay_as(&host.merchant.live_key, &unique(), careful(1)).await.ok();
        host.advance(239);
        assert_eq!(host.pay("paid", careful(1)).await.refused(), (429, "beneficiary_cooldown"));
        host.advance(1);
        host.pay("paid", careful(1)).await.ok();
        host.pay("paid", with(careful(1), json!({ "allow_duplicate": true }))).await.ok();
        host.advance(299);
        assert_eq!(host.pay("paid", careful(1)).await.refused(), (429, "beneficiary_cooldown"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_cool_down_reaches_over_midnight(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.advance(14 * 3600 - 60);
        host.pay("paid", careful(1)).await.ok();
        host.advance(120);
        assert_eq!(host.pay("paid", careful(1)).await.refused(), (429, "beneficiary_cooldown"));
        host.advance(180);
        host.pay("paid", careful(1)).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_was_not_paid_can_be_paid_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        set(host, json!({ "dual_control_threshold_minor": { "NGN": "100000" } })).await;
        host.pay("failed", careful(1)).await.ok();
        host.pay("paid", careful(1)).await.ok();

        let large = with(careful(2), json!({ "amount_minor": "100001" }));
        for action in ["decline", "mark_failed"] {
            let draft = host.pay("paid", large.clone()).await.ok().id();
            assert_eq!(host.pay("paid", careful(2)).await.refused().1, "beneficiary_cooldown");
            let path = format!("payouts/{draft}/{action}");
            host.admin(Method::POST, &path, json!({ "reason": "no", "evidence": "a letter" }))
                .await
                .ok();
        }
        host.pay("paid", careful(2)).await.ok();
        let held = host.pay("fraud_hold", careful(3)).await.ok().id();
        host.admin(Method::POST, &format!("payouts/{held}/reject"), json!({ "reason": "no" }))
            .await
            .ok();
        host.pay("paid", careful(3)).await.ok();

        host.advance(14 * 3600 - 60);
        let draft = host.pay("paid", with(large, to(4))).await.ok().id();
        host.advance(120);
        host.post(&format!("/v1/payouts/{draft}/cancel"), json!({ "reason": "a typo" })).await.ok();
        host.pay("paid", careful(4)).await.ok();
        let refused = host.pay("unresolvable", careful(5)).await;
        assert_eq!(refused.refused().1, "recipient_unresolvable");
        host.pay("paid", careful(5)).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_is_unique_for_thirty_days(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        let other = host.new_merchant("Other").await;
        let body = with(naira(100_000), json!({ "merchant_reference": "INV/7 é" }));
        let large = with(body.clone(), json!({ "amount_minor": "900000000" }));
        assert_eq!(host.pay("paid", large).await.refused().1, "insufficient_funds");
        let first = host.pay("failed", body.clone()).await.ok();
        assert_eq!(first.json["merchant_reference"], "INV/7 é");
        for key in [&host.merchant.live_key, &other.test_key] {
            host.pay_as(key, &unique(), body.clone()).await.ok();
        }
        host.pay("paid", with(body.clone(), json!({ "merchant_reference": "inv/7 é" }))).await.ok();
        for wait in [0, 30 * 86_400 - 1] {
            host.advance(wait);
            let refused = host.pay("paid", with(body.clone(), to(9))).await;
            assert_eq!(refused.refused(), (409, "merchant_reference_duplicate"));
            assert_eq!(refused.field(), "merchant_reference");
            assert_eq!(refused.json["error"]["detail"], json!({ "payout_id": first.id() }));
        }
        host.advance(1);
        let second = host.pay("paid", body.clone()).await.ok();
        let refused = host.pay("paid", body).await;
        assert_eq!(refused.json["error"]["detail"]["payout_id"], second.id());
    })
    .await;
}
