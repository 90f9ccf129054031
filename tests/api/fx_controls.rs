//! What stands between a merchant and its money holds when another currency pays, too.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::cross_currency::{act, desk, get, inclusive, merchant, pay, quote, spend};
use crate::rates::set;
use crate::test_host::{Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, with, with_host};

/// The limits of the sandbox's dollars.
async fn limit_dollars(host: &TestHost, limits: Value) {
    merchant(host, json!({ "limits": { "USD": limits } })).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_that_pays_keeps_its_limits(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let refused = |answer: &Answer, kind: &str| {
            assert_eq!(answer.refused().1, "limit_violation", "{}", answer.text);
            assert_eq!(answer.json["error"]["detail"]["kind"], kind, "{}", answer.text);
            assert_eq!(answer.field(), "funding_currency", "{}", answer.text);
        };
        limit_dollars(host, json!({ "per_transaction_minor": "5000" })).await;
        refused(&pay(host, &desk.test, inclusive(5_001)).await, "per_transaction");
        refused(&quote(host, &desk.test, &inclusive(5_001)).await, "per_transaction");
        pay(host, &desk.test, inclusive(5_000)).await.ok();

        // What was bought before counts, and so does what became of nothing.
        limit_dollars(host, json!({ "daily_minor": "10000" })).await;
        let failing = [("idempotency-key", "failing"), ("x-sandbox-scenario", "failed")];
        let body = Some(inclusive(3_000));
        let made = host.send(Method::POST, "/v1/payouts", &desk.test, &failing, body).await.ok();
        host.until(&desk.test, &made.id(), "failed").await;
        refused(&pay(host, &desk.test, inclusive(2_001)).await, "daily");
        pay(host, &desk.test, inclusive(2_000)).await.ok();
        refused(&pay(host, &desk.test, inclusive(100)).await, "daily");
        host.advance(24 * 3_600);
        set(host, json!({})).await.ok();
        pay(host, &desk.test, inclusive(100)).await.ok();
        assert_eq!(host.balance(&desk.dollars).await, 100_000 - 10_100);
        host.prove().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_teammate_is_asked_by_what_the_wallet_pays(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        merchant(host, json!({ "dual_control_threshold_minor": { "USD": "3000" } })).await;
        assert_eq!(pay(host, &desk.test, inclusive(3_000)).await.ok().status_word(), "paid");
        let draft = pay(host, &desk.test, inclusive(3_001)).await.ok();
        assert_eq!(draft.status_word(), "draft");
        let fx = &draft.json["fx"];
        assert_eq!(
            (&fx["quoted_debit_minor"], &fx["max_debit_minor"]),
            (&json!("3001"), &json!("3001"))
        );
        let open = pay(host, &desk.test, get(6_000_000)).await.ok();
        assert_eq!(open.status_word(), "draft");
        assert_eq!(open.json["fx"]["max_debit_minor"], Value::Null, "{}", open.text);

        // By the time it is approved, the limits of then hold.
        limit_dollars(host, json!({ "per_transaction_minor": "3000" })).await;
        assert_eq!(act(host, &draft.id(), "approve").await.refused().1, "limit_violation");
        let of_a_day = json!({ "per_transaction_minor": null, "daily_minor": "6000" });
        limit_dollars(host, of_a_day).await;
        assert_eq!(act(host, &draft.id(), "approve").await.refused().1, "limit_violation");
        limit_dollars(host, json!({ "daily_minor": "6001" })).await;
        act(host, &draft.id(), "approve").await.ok();
        assert_eq!(act(host, &open.id(), "approve").await.refused().1, "limit_violation");
        assert_eq!(act(host, &open.id(), "mark_paid").await.refused().1, "limit_violation");
        limit_dollars(host, json!({ "daily_minor": "11000" })).await;
        act(host, &open.id(), "mark_paid").await.ok();
        assert_eq!(pay(host, &desk.test, inclusive(1_000)).await.refused().1, "limit_violation");
        host.prove().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_made_any_more_does_not_go(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        merchant(host, json!({ "dual_control_threshold_minor": { "NGN": "1" } })).await;
        let draft = pay(host, &desk.test, spend(1_000)).await.ok();
        for (stopped, undone, code) in [
            (
                json!({ "features": { "fx_payouts": false } }),
                json!({ "features": { "fx_payouts": null } }),
                "fx_payout_disabled",
            ),
            (
                json!({ "fx_sources": ["GBP"] }),
                json!({ "fx_sources": null }),
                "fx_payout_source_not_allowed",
            ),
            (
                json!({ "fx_pairs": { "USD": ["GBP"] } }),
                json!({ "fx_pairs": null }),
                "fx_payout_tier_invalid",
            ),
            (
                json!({ "currencies": ["NGN", "GBP"] }),
                json!({ "currencies": null }),
                "fx_payout_source_not_allowed",
            ),
            (json!({ "status": "suspended" }), json!({ "status": "active" }), "merchant_suspended"),
        ] {
            merchant(host, stopped.clone()).await;
            let refused = act(host, &draft.id(), "approve").await;
            assert_eq!(refused.refused().1, code, "{stopped}");
            assert_eq!(refused.json["error"]["field"], Value::Null, "{stopped}");
            merchant(host, undone).await;
        }
        assert_eq!(host.balance(&desk.dollars).await, 100_000);
        act(host, &draft.id(), "approve").await.ok();
        host.until(&desk.test, &draft.id(), "paid").await;
    })
    .await;
}

/// One that the rules held is released by one person, unless it has become one for two.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_moves_can_make_it_one_for_two(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        merchant(host, json!({ "dual_control_threshold_minor": { "USD": "3000" } })).await;
        let played = [("idempotency-key", "held"), ("x-sandbox-scenario", "fraud_hold")];
        let body = Some(get(4_000_000));
        let held = host.send(Method::POST, "/v1/payouts", &desk.test, &played, body).await.ok();
        assert_eq!(held.status_word(), "awaiting_admin_review");
        let release = async |who: &str| {
            let path = format!("/admin/v1/payouts/{}/release", held.id());
            let body = json!({ "reason": "a test" });
            host.send(Method::POST, &path, who, &[], Some(body)).await
        };
        set(host, json!({ "rate": "500" })).await.ok();
        assert_eq!(release(DESK_TOKEN).await.refused(), (403, "self_approval_denied"));
        release(OPERATOR_TOKEN).await.ok();
    })
    .await;
}

/// Where a network knows no cents, what a source amount comes to is whole all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_source_amount_comes_to_what_the_network_can_pay(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        set(host, json!({ "to": "KES", "rate": "129.37" })).await.ok();
        for (cents, is_inclusive) in [(1_000, true), (1_001, false), (2_503, true), (777, false)] {
            let question = json!({
                "currency": "KES", "funding_currency": "USD", "fee_inclusive": is_inclusive,
                "funding_amount_minor": cents.to_string(),
            });
            let path = "/v1/payouts/quote";
            let quoted = host.send(Method::POST, path, &desk.test, &[], Some(question)).await.ok();
            let amount: i64 = quoted.json["amount_minor"].as_str().expect("").parse().expect("");
            assert!(amount > 0 && amount % 100 == 0, "{}", quoted.text);
            let debit: i64 =
                quoted.json["fx"]["source_debit_minor"].as_str().expect("").parse().expect("");
            // Less than a shilling is left over.
            let converted: i64 =
                quoted.json["fx"]["converted_minor"].as_str().expect("").parse().expect("");
            assert!(!is_inclusive || debit == cents, "{}", quoted.text);
            assert!(converted - amount < 100 + 20_000, "{}", quoted.text);
        }
        set(host, json!({ "to": "KES", "rate": "0.5" })).await.ok();
        let little = json!({
            "currency": "KES", "funding_currency": "USD", "funding_amount_minor": "100",
        });
        let path = "/v1/payouts/quote";
        let refused = host.send(Method::POST, path, &desk.test, &[], Some(little)).await;
        assert_eq!(
            (refused.refused().1, refused.field()),
            ("invalid_amount", "funding_amount_minor")
        );
    })
    .await;
}

/// Each pair alone is fair; by way of a third currency somebody would gain.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gains_by_way_of_a_third_currency(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        set(host, json!({ "from": "NGN", "to": "EUR", "rate": "0.0006" })).await.ok();
        set(host, json!({ "from": "EUR", "to": "USD", "rate": "1.1" })).await.ok();
        quote(host, &desk.test, &get(150_000)).await.ok();
        set(host, json!({ "rate": "1600" })).await.ok();
        let convert = async |once: &str, from: &str, to: &str| {
            let body =
                json!({ "from_currency": from, "to_currency": to, "from_amount_minor": "1000" });
            let headers = [("idempotency-key", once)];
            host.send(Method::POST, "/v1/conversions", &desk.test, &headers, Some(body)).await
        };
        let inverted = (422, "fx_rate_inverted");
        assert_eq!(pay(host, &desk.test, get(150_000)).await.refused(), inverted);
        assert_eq!(quote(host, &desk.test, &get(150_000)).await.refused(), inverted);
        for (from, to) in [("USD", "NGN"), ("NGN", "EUR"), ("EUR", "USD")] {
            assert_eq!(convert(from, from, to).await.refused(), inverted, "{from} {to}");
        }
        let listed = host.get_as(&desk.test, "/v1/rates").await.ok().json;
        assert_eq!(listed["data"], json!([]));
        let path = "/admin/v1/rates?env=test";
        let set_rates = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
        for rate in set_rates["data"].as_array().expect("a list") {
            assert_eq!(rate["refused_as"], "fx_rate_inverted", "{rate}");
        }

        // A merchant's own rate that closes the way opens the market for it.
        let own = json!({ "merchant_id": host.merchant.id, "rate": "1500" });
        set(host, own).await.ok();
        convert("USD again", "USD", "NGN").await.ok();
        // One that is too old is a way no more.
        set(host, json!({ "merchant_id": host.merchant.id, "rate": "1600" })).await.ok();
        assert_eq!(convert("once more", "USD", "NGN").await.refused(), inverted);
        let aged = json!({ "from": "EUR", "to": "USD", "rate": "1.1", "valid_for_s": 60 });
        set(host, aged).await.ok();
        host.advance(60);
        convert("once more", "USD", "NGN").await.ok();
        host.prove().await;
    })
    .await;
}

/// What the platform can still take on is nobody's business who does not bring the money.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_the_platforms_position_for_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let cap = json!({ "env": "test", "currency": "NGN", "exposure_cap_minor": "100000000" });
        host.admin(Method::PUT, "fx_limits", cap).await.ok();
        for cents in [1_000, 99_000, 600_000] {
            quote(host, &desk.test, &inclusive(cents)).await.ok();
        }
        let over = pay(host, &desk.test, inclusive(99_000)).await;
        assert_eq!(over.refused(), (422, "fx_exposure_cap_exceeded"));
        let poor = pay(host, &desk.test, inclusive(600_000)).await;
        assert_eq!(poor.refused(), (402, "insufficient_funds"));
    })
    .await;
}

/// Whoever may not act has nothing exchanged.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_suspended_merchant_gets_stays_as_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        merchant(host, json!({ "auto_convert": { "USD": "NGN" }, "status": "suspended" })).await;
        let path = format!("wallets/{}/credit", desk.dollars);
        let credit = json!({ "amount_minor": "5000", "reason": "a mistake" });
        host.admin(Method::POST, &path, credit.clone()).await.ok();
        assert_eq!(host.balance(&desk.dollars).await, 105_000);
        let debit = format!("wallets/{}/debit", desk.dollars);
        host.admin(Method::POST, &debit, credit.clone()).await.ok();
        merchant(host, json!({ "status": "active" })).await;
        host.admin(Method::POST, &path, with(credit, json!({}))).await.ok();
        assert_eq!(host.balance(&desk.dollars).await, 100_000);
    })
    .await;
}

/// A rate that nobody has set shows in what was converted at it, long after it was put back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_at_a_rate_that_nobody_set_is_found(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut host = TestHost::open(engine, |_| {}).await;
    let desk = desk(&host).await;
    let write = async |sql: &str| {
        let pool = host.app().db.pool();
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(pool).await.expect("written");
    };
    let convert = async |once: &str| {
        let body =
            json!({ "from_currency": "USD", "to_currency": "NGN", "from_amount_minor": "100" });
        let headers = [("idempotency-key", once)];
        host.send(Method::POST, "/v1/conversions", &desk.test, &headers, Some(body)).await.ok()
    };
    convert("fair").await;
    host.prove().await;
    write("UPDATE rates SET rate = '900000'").await;
    convert("forged").await;
    write("UPDATE rates SET rate = '1500'").await;
    let report = host.report(&railhead::verify::Wanted::default()).await;
    let found = &report.faults.counts;
    assert!(found.contains_key("conversion-rate-set"), "{found:?}");
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}
