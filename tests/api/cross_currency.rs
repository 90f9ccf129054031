//! Payouts in one currency out of a wallet in another.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::to;
use crate::live::with_bank;
use crate::rates::set;
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

/// Dollars that pay naira, at 1,500.
pub(crate) struct Desk {
    pub test: String,
    pub live: String,
    pub dollars: String,
    pub naira: String,
}

const CAPABLE: [&str; 3] = ["payout_create", "payout_fx", "conversion"];

/// A merchant with 1,000.00 dollars and 1,000,000.00 naira in the sandbox.
pub(crate) async fn desk(host: &TestHost) -> Desk {
    let key =
        |env: &str| host.new_key(&host.merchant.id, json!({ "env": env, "capabilities": CAPABLE }));
    let (test, live) = (key("test").await, key("live").await);
    let dollars = host.fund(&test, "USD", 100_000).await;
    set(host, json!({})).await.ok();
    Desk { dollars, naira: host.merchant.test_wallet.clone(), test, live }
}

/// A payout of this many kobo out of dollars.
pub(crate) fn get(amount: u64) -> Value {
    with(naira(amount), json!({ "funding_currency": "USD" }))
}

/// A payout for this many cents.
pub(crate) fn spend(cents: u64) -> Value {
    let source = json!({ "amount_minor": null, "funding_amount_minor": cents.to_string() });
    with(get(1), source)
}

pub(crate) fn inclusive(cents: u64) -> Value {
    with(spend(cents), json!({ "fee_inclusive": true }))
}

pub(crate) async fn pay(host: &TestHost, key: &str, body: Value) -> Answer {
    host.pay_as(key, &unique(), body).await
}

pub(crate) async fn quote(host: &TestHost, key: &str, body: &Value) -> Answer {
    let more = json!({ "recipient": null, "allow_duplicate": null, "max_debit_minor": null });
    let body = with(with(body.clone(), more), json!({ "min_receive_minor": null }));
    host.send(Method::POST, "/v1/payouts/quote", key, &[], Some(body)).await
}

fn minor(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

pub(crate) async fn merchant(host: &TestHost, settings: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, settings).await.ok();
}

/// Each method debits and pays what its quote said, to the unit.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_method_pays_what_its_quote_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let (mut dollars, mut kobo) = (100_000, 100_000_000);
        for (body, amount, debit) in [
            // Fee and tax of 26.88 naira and the levy of 50 are six cents.
            (get(1_500_000), 1_500_000, 1_006),
            (spend(1_000), 1_500_000, 1_006),
            (inclusive(1_000), 1_492_312, 1_000),
            (
                with(get(300), json!({ "max_debit_minor": "2", "amount_basis": "destination" })),
                300,
                1,
            ),
        ] {
            let quoted = quote(host, &desk.test, &body).await.ok().json;
            let once = unique();
            let paid = host.pay_as(&desk.test, &once, body.clone()).await;
            assert_eq!((paid.status, paid.status_word()), (201, "paid"), "{}", paid.text);
            let (payout, fx) = (&paid.json, &paid.json["fx"]);
            for name in ["amount_minor", "fee_minor", "tax_minor", "levy_minor"] {
                assert_eq!(payout[name], quoted[name], "{name} {quoted}");
            }
            for name in ["source_debit_minor", "fee_source_minor", "converted_minor", "rate"] {
                assert_eq!(fx[name], quoted["fx"][name], "{name}: {fx} {quoted}");
            }
            assert_eq!(quoted["total_debit_minor"], fx["source_debit_minor"]);
            assert_eq!((&fx["rate"], &fx["funding_currency"]), (&json!("1500"), &json!("USD")));
            assert_eq!(fx["funding_wallet_id"], desk.dollars.as_str());
            assert_eq!(payout["wallet_id"], desk.naira.as_str());
            assert_eq!(minor(&payout["amount_minor"]), amount, "{payout}");
            assert_eq!(minor(&fx["source_debit_minor"]), debit, "{fx} {payout}");
            dollars -= debit;
            kobo += minor(&fx["converted_minor"]) - minor(&payout["total_debit_minor"]);
            assert_eq!(host.balance(&desk.dollars).await, dollars);
            assert_eq!(host.balance(&desk.naira).await, kobo);
            // The same again is the same payout, and buys nothing.
            let again = host.pay_as(&desk.test, &once, body).await;
            assert_eq!((again.status, &again.text), (201, &paid.text));
            let path = format!("/v1/conversions/{}", fx["conversion_id"].as_str().expect("an id"));
            let bought = host.get_as(&desk.test, &path).await.ok().json;
            assert_eq!(bought["payout_id"], payout["id"]);
            assert_eq!(bought["to_amount_minor"], fx["converted_minor"]);
            assert_eq!(bought["from_amount_minor"], fx["source_debit_minor"]);
            let found = host.get_as(&desk.test, &format!("/v1/payouts/{}", paid.id())).await.ok();
            assert_eq!(found.json["fx"], *fx);
            let path = format!("/v1/payouts/{}/timeline", paid.id());
            let steps = host.get_as(&desk.test, &path).await.ok().json;
            let mut steps = steps["data"].as_array().expect("steps").iter();
            let step = steps.find(|step| step["type"] == "conversion").expect("a step");
            assert_eq!(step["conversion_id"], fx["conversion_id"]);
        }
        assert_eq!(host.balance(&desk.dollars).await, dollars);
        let plain = quote(host, &desk.test, &naira(100)).await.ok().json;
        assert_eq!(plain["fx"], Value::Null);
        let alike = with(naira(100), json!({ "funding_currency": "NGN" }));
        assert_eq!(quote(host, &desk.test, &alike).await.ok().json["fx"], Value::Null);
        host.prove().await;
    })
    .await;
}

/// What is refused moves nothing, and leaves its key free.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paid_is_refused_by_its_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        for (over, refusal, field) in [
            (json!({ "funding_amount_minor": "5" }), "ambiguous_amount", "funding_amount_minor"),
            (json!({ "amount_minor": null }), "amount_required", "amount_minor"),
            (json!({ "min_receive_minor": "5" }), "guard_field_wrong_method", "min_receive_minor"),
            (json!({ "amount_basis": "source" }), "amount_basis_mismatch", "amount_basis"),
            (json!({ "funding_currency": "NGN" }), "invalid_funding_currency", "funding_currency"),
            (json!({ "funding_currency": "usd" }), "invalid_funding_currency", "funding_currency"),
        ] {
            let refused = pay(host, &desk.test, with(get(150_000), over)).await;
            assert_eq!((refused.refused(), refused.field()), ((400, refusal), field));
        }
        let plain = host.merchant.test_key.clone();
        let refused = pay(host, &plain, get(150_000)).await;
        assert_eq!(
            (refused.refused(), refused.field()),
            ((403, "permission_denied"), "funding_currency")
        );

        for (settings, undone, refusal) in [
            (
                json!({ "features": { "fx_payouts": false } }),
                json!({ "features": { "fx_payouts": true } }),
                (403, "fx_payout_disabled"),
            ),
            (
                json!({ "fx_sources": ["GBP"] }),
                json!({ "fx_sources": null }),
                (422, "fx_payout_source_not_allowed"),
            ),
            (
                json!({ "fx_pairs": { "USD": ["GBP"] } }),
                json!({ "fx_pairs": null }),
                (422, "fx_payout_tier_invalid"),
            ),
            (
                json!({ "fx_pairs": { "GBP": ["NGN"] } }),
                json!({ "fx_pairs": null }),
                (422, "fx_payout_tier_invalid"),
            ),
        ] {
            merchant(host, settings.clone()).await;
            assert_eq!(pay(host, &desk.test, get(150_000)).await.refused(), refusal, "{settings}");
            let quoted = quote(host, &desk.test, &get(150_000)).await;
            assert_eq!(quoted.refused(), refusal, "{settings}");
            merchant(host, undone).await;
        }
        // What may be paid is set again pair by pair.
        let path = format!("merchants/{}", host.merchant.id);
        let itself = json!({ "fx_pairs": { "USD": ["GBP", "USD"] } });
        let itself = host.admin(Method::PATCH, &path, itself).await;
        assert_eq!((itself.refused(), itself.field()), ((400, "invalid_field"), "fx_pairs.USD"));
        merchant(host, json!({ "fx_pairs": { "USD": ["GBP"] } })).await;
        merchant(host, json!({ "fx_pairs": { "USD": ["NGN"], "EUR": ["NGN"] } })).await;
        quote(host, &desk.test, &get(150_000)).await.ok();
        merchant(host, json!({ "fx_pairs": null })).await;
        let other = with(get(150_000), json!({ "funding_currency": "GBP" }));
        assert_eq!(pay(host, &desk.test, other).await.refused(), (422, "fx_rate_unavailable"));
        let odd = with(get(150_000), json!({ "funding_currency": "XXX" }));
        assert_eq!(
            pay(host, &desk.test, odd).await.refused(),
            (422, "fx_payout_source_not_allowed")
        );

        for (body, refusal, field) in [
            (
                with(get(150_000), json!({ "max_debit_minor": "100" })),
                (422, "max_debit_exceeded"),
                "max_debit_minor",
            ),
            (
                with(spend(100), json!({ "min_receive_minor": "150001" })),
                (422, "min_receive_not_met"),
                "min_receive_minor",
            ),
            (
                with(inclusive(100), json!({ "min_receive_minor": "149999" })),
                (422, "min_receive_not_met"),
                "min_receive_minor",
            ),
            (spend(100_000), (402, "insufficient_funds"), "funding_currency"),
            (inclusive(100_001), (402, "insufficient_funds"), "funding_currency"),
        ] {
            let refused = pay(host, &desk.test, body.clone()).await;
            assert_eq!((refused.refused(), refused.field()), (refusal, field), "{body}");
        }
        set(host, json!({ "rate": "10" })).await.ok();
        for below in [
            pay(host, &desk.test, inclusive(100)).await,
            quote(host, &desk.test, &inclusive(100)).await,
        ] {
            assert_eq!(below.refused(), (422, "funding_below_fee"));
        }
        set(host, json!({})).await.ok();

        let limit = async |over: Value| {
            let mut body = json!({ "env": "test", "currency": "NGN" });
            body.as_object_mut()
                .expect("an object")
                .extend(over.as_object().cloned().expect("one"));
            host.admin(Method::PUT, "fx_limits", body).await.ok();
        };
        limit(json!({ "exposure_cap_minor": "150000" })).await;
        let once = unique();
        let refused = host.pay_as(&desk.test, &once, get(150_000)).await;
        assert_eq!(refused.refused(), (422, "fx_exposure_cap_exceeded"));
        assert_eq!(refused.field(), "funding_currency");
        limit(json!({ "is_paused": true, "exposure_cap_minor": null })).await;
        let refused = host.pay_as(&desk.test, &once, get(150_000)).await;
        assert_eq!(refused.refused(), (503, "fx_payout_unavailable"));
        limit(json!({ "is_paused": false })).await;

        let freeze = format!("wallets/{}/freeze", desk.dollars);
        host.admin(Method::POST, &freeze, json!({})).await.ok();
        let frozen = host.pay_as(&desk.test, &once, get(150_000)).await;
        assert_eq!(
            (frozen.refused(), frozen.field()),
            ((403, "wallet_frozen"), "funding_currency")
        );
        assert_eq!(frozen.json["error"]["detail"]["wallet_id"], json!(desk.dollars));
        let thaw = format!("wallets/{}/unfreeze", desk.dollars);
        host.admin(Method::POST, &thaw, json!({})).await.ok();

        let played = [("idempotency-key", once.as_str()), ("x-sandbox-scenario", "rate_stale")];
        let stale =
            host.send(Method::POST, "/v1/payouts", &desk.test, &played, Some(get(150_000))).await;
        assert_eq!(stale.refused(), (422, "fx_rate_stale"));
        let quote_path = "/v1/payouts/quote";
        let question =
            json!({ "currency": "NGN", "funding_currency": "USD", "amount_minor": "150000" });
        let stale =
            host.send(Method::POST, quote_path, &desk.test, &played[1..], Some(question)).await;
        assert_eq!(stale.refused(), (422, "fx_rate_stale"));
        // What was sent is what has to be changed.
        merchant(host, json!({ "limits": { "NGN": { "per_transaction_minor": "1000" } } })).await;
        for refused in
            [pay(host, &desk.test, spend(100)).await, quote(host, &desk.test, &spend(100)).await]
        {
            assert_eq!(refused.refused().1, "limit_violation");
            assert_eq!(refused.field(), "funding_amount_minor");
        }
        merchant(host, json!({ "limits": { "NGN": null } })).await;
        set(host, json!({ "valid_for_s": 60 })).await.ok();
        host.advance(60);
        assert_eq!(
            host.pay_as(&desk.test, &once, get(150_000)).await.refused(),
            (422, "fx_rate_stale")
        );
        // Back and forth would pay.
        let back = json!({ "from": "NGN", "to": "USD", "rate": "0.001" });
        set(host, back).await.ok();
        set(host, json!({})).await.ok();
        assert_eq!(
            host.pay_as(&desk.test, &once, get(150_000)).await.refused(),
            (422, "fx_rate_inverted")
        );
        set(host, json!({ "from": "NGN", "to": "USD", "rate": "0.0006" })).await.ok();

        assert_eq!(host.balance(&desk.dollars).await, 100_000);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000);
        host.pay_as(&desk.test, &once, get(150_000)).await.ok();
        host.prove().await;
    })
    .await;
}

/// Terms are for where money moves.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn live_money_needs_the_feature_and_the_terms(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let desk = desk(host).await;
        let dollars = host.fund(&desk.live, "USD", 10_000).await;
        let rate = json!({ "env": "live", "from": "USD", "to": "NGN", "rate": "1500" });
        host.admin(Method::PUT, "rates", rate).await.ok();
        assert_eq!(pay(host, &desk.live, spend(100)).await.refused(), (403, "fx_payout_disabled"));
        merchant(host, json!({ "features": { "fx_payouts": true } })).await;
        let refused = pay(host, &desk.live, spend(100)).await;
        assert_eq!(refused.refused(), (403, "fx_payout_terms_not_accepted"));
        merchant(host, json!({ "terms": { "fx_payouts": true } })).await;
        let queued = pay(host, &desk.live, spend(100)).await.ok();
        assert_eq!(queued.json["fx"]["source_debit_minor"], "101", "{}", queued.text);
        host.until(&desk.live, &queued.id(), "paid").await;
        assert_eq!(host.balance(&dollars).await, 10_000 - 101);
        // The sandbox's rate and limits are its own.
        assert_eq!(host.balance(&desk.dollars).await, 100_000);
        host.prove().await;
    })
    .await;
}

/// Whatever becomes of a payout, what was bought for it stays where it is paid from.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_bought_stays_where_a_payout_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        for (scenario, ends) in [("failed", "failed"), ("returned", "reversed")] {
            let (dollars, kobo) =
                (host.balance(&desk.dollars).await, host.balance(&desk.naira).await);
            let once = unique();
            let played = [("idempotency-key", once.as_str()), ("x-sandbox-scenario", scenario)];
            let path = "/v1/payouts";
            let made =
                host.send(Method::POST, path, &desk.test, &played, Some(spend(1_000))).await.ok();
            host.until(&desk.test, &made.id(), ends).await;
            let debit = minor(&made.json["fx"]["source_debit_minor"]);
            assert_eq!(host.balance(&desk.dollars).await, dollars - debit, "{scenario}");
            let bought = minor(&made.json["fx"]["converted_minor"]);
            assert_eq!(host.balance(&desk.naira).await, kobo + bought, "{scenario}");
        }
        host.prove().await;
    })
    .await;
}

/// What somebody else than the key's maker does to a payout.
pub(crate) async fn act(host: &TestHost, id: &str, what: &str) -> Answer {
    let body = match what {
        "approve" => json!({}),
        _ => json!({ "reason": "a test", "evidence": "a letter" }),
    };
    host.admin(Method::POST, &format!("payouts/{id}/{what}"), body).await
}

/// What waits for a person takes nothing, and buys when it goes, at the rate of then.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_buys_when_it_goes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        merchant(host, json!({ "dual_control_threshold_minor": { "NGN": "100000" } })).await;
        let draft = async |body: Value| {
            let draft = pay(host, &desk.test, body).await.ok();
            assert_eq!(draft.status_word(), "draft");
            let fx = &draft.json["fx"];
            assert_eq!(fx["funding_currency"], "USD");
            for name in ["source_debit_minor", "rate", "converted_minor", "conversion_id"] {
                assert_eq!(fx[name], Value::Null, "{name}");
            }
            draft
        };
        let guarded = draft(with(get(1_500_000), json!({ "max_debit_minor": "1100" }))).await;
        let spent = draft(spend(1_000)).await;
        let (taken, dropped) = (draft(inclusive(1_000)).await, draft(spend(1_000)).await);
        assert_eq!(host.balance(&desk.dollars).await, 100_000);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000);

        // A dollar buys less: what was agreed would not be enough.
        set(host, json!({ "rate": "1400" })).await.ok();
        let refused = act(host, &spent.id(), "approve").await;
        assert_eq!(refused.refused(), (422, "max_debit_exceeded"), "{}", refused.text);
        let gone = act(host, &guarded.id(), "approve").await.ok();
        assert_eq!(gone.json["fx"]["rate"], "1400");
        let debit = minor(&gone.json["fx"]["source_debit_minor"]);
        assert_eq!(debit, 1_077);
        let paid = host.until(&desk.test, &guarded.id(), "paid").await;
        assert_eq!(paid.json["amount_minor"], "1500000");
        assert_eq!(host.balance(&desk.dollars).await, 100_000 - debit);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000);

        // A dollar buys more, and nobody is debited for that.
        set(host, json!({ "rate": "1600" })).await.ok();
        let gone = act(host, &spent.id(), "approve").await.ok();
        assert!(minor(&gone.json["fx"]["source_debit_minor"]) < 1_000);
        host.until(&desk.test, &spent.id(), "paid").await;
        let cancel = format!("/v1/payouts/{}/cancel", dropped.id());
        let reason = json!({ "reason": "not wanted" });
        host.send(Method::POST, &cancel, &desk.test, &[], Some(reason)).await.ok();
        // It was paid by hand: what it costs now is bought, whatever was agreed.
        set(host, json!({ "rate": "1000" })).await.ok();
        let marked = act(host, &taken.id(), "mark_paid").await.ok();
        assert_eq!(marked.json["fx"]["rate"], "1000");
        assert!(minor(&marked.json["fx"]["source_debit_minor"]) > 1_000);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000);

        // A fraud rule holds one that would go at once.
        merchant(host, json!({ "dual_control_threshold_minor": {} })).await;
        let once = unique();
        let played = [("idempotency-key", once.as_str()), ("x-sandbox-scenario", "fraud_hold")];
        let body = Some(with(spend(1_000), to(7)));
        let held = host.send(Method::POST, "/v1/payouts", &desk.test, &played, body).await.ok();
        assert_eq!(
            (held.status_word(), &held.json["fx"]["rate"]),
            ("awaiting_admin_review", &Value::Null)
        );
        let dollars = host.balance(&desk.dollars).await;
        set(host, json!({ "rate": "1500" })).await.ok();
        let released = act(host, &held.id(), "release").await.ok();
        let debit = minor(&released.json["fx"]["source_debit_minor"]);
        assert_eq!(host.balance(&desk.dollars).await, dollars - debit);
        host.until(&desk.test, &held.id(), "paid").await;
        // The first answer stays what it was.
        let again = host
            .send(Method::POST, "/v1/payouts", &desk.test, &played, Some(with(spend(1_000), to(7))))
            .await;
        assert_eq!(again.text, held.text);
        host.prove().await;
    })
    .await;
}

/// Many at once spend no more than there is, while the rate moves under them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_spend_no_more_than_there_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let pays = (0..24).map(|_| pay(host, &desk.test, inclusive(10_000)));
        let moves = async {
            for rate in ["1510", "1520", "1530", "1540"] {
                set(host, json!({ "rate": rate })).await.ok();
            }
        };
        let (paid, ()) = tokio::join!(futures::future::join_all(pays), moves);
        let is_done = |answer: &&Answer| answer.status == 201;
        let done: Vec<&Answer> = paid.iter().filter(is_done).collect();
        for refused in paid.iter().filter(|answer| answer.status != 201) {
            let refused = refused.refused();
            assert!(
                [(402, "insufficient_funds"), (422, "fx_rate_stale")].contains(&refused),
                "{refused:?}"
            );
        }
        assert!(done.len() <= 10, "{}", done.len());
        let spent = i64::try_from(done.len()).expect("few") * 10_000;
        assert_eq!(host.balance(&desk.dollars).await, 100_000 - spent);
        for answer in done {
            host.until(&desk.test, &answer.id(), "paid").await;
        }
        host.prove().await;
    })
    .await;
}

/// A payout out of another currency, for who wants to find something in the books.
pub(crate) async fn ordinary(host: &TestHost) {
    let desk = desk(host).await;
    let paid = pay(host, &desk.test, with(spend(100), to(9))).await.ok();
    assert_eq!(paid.status_word(), "paid");
}
