//! Rates: set by operators, seen by merchants.

use http::Method;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use serde_json::{Value, json};

use crate::network::{Sends, with_two_hosts};
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, with, with_host, with_host_configured,
};

/// Sets a rate of the sandbox from dollars to naira; `with` is laid over the request.
pub(crate) async fn set(host: &TestHost, over: Value) -> Answer {
    let rate = json!({ "env": "test", "from": "USD", "to": "NGN", "rate": "1500" });
    host.admin(Method::PUT, "rates", with(rate, over)).await
}

/// What a merchant is told of dollars in naira; nothing where it is not on the list.
async fn told(host: &TestHost, key: &str) -> Option<String> {
    let path = "/v1/rates?from=USD&to=NGN";
    let rates = host.get_as(key, path).await.ok().json;
    let rows = rates["data"].as_array().expect("a list");
    rows.first().map(|row| row["rate"].as_str().expect("a decimal").to_owned())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn merchants_see_the_rate_that_applies_to_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let own = host.merchant.test_key.clone();
        let other = host.new_merchant("another").await;
        assert_eq!(told(host, &own).await, None);
        let set_rate = set(host, json!({ "spread_bps": 100 })).await.ok().json;
        assert_eq!(set_rate["effective_rate"], "1485", "{set_rate}");
        assert_eq!(told(host, &own).await.as_deref(), Some("1485"));
        let mine = json!({ "merchant_id": host.merchant.id, "rate": "1510.5" });
        set(host, mine).await.ok();
        assert_eq!(told(host, &own).await.as_deref(), Some("1510.5"));
        assert_eq!(told(host, &other.test_key).await.as_deref(), Some("1485"));
        assert_eq!(told(host, &host.merchant.live_key).await, None, "another environment");
        let own_rate = format!("rates?env=test&from=USD&to=NGN&merchant_id={}", host.merchant.id);
        let gone = host.admin(Method::DELETE, &own_rate, json!(null)).await.ok().json;
        assert_eq!((&gone["rate"], &gone["effective_rate"]), (&json!(null), &json!(null)));
        assert_eq!(told(host, &own).await.as_deref(), Some("1485"));
        let again = host.admin(Method::DELETE, &own_rate, json!(null)).await;
        assert_eq!(again.refused(), (404, "not_found"));
        assert_eq!(set(host, json!({ "rate": null })).await.refused(), (400, "missing_field"));

        // What is too old, or paused, is on no list.
        set(host, json!({ "valid_for_s": 3600 })).await.ok();
        assert_eq!(told(host, &own).await.as_deref(), Some("1500"));
        let pause = |is_paused: bool| {
            let body = json!({ "env": "test", "currency": "NGN", "is_paused": is_paused });
            host.admin(Method::PUT, "fx_limits", body)
        };
        pause(true).await.ok();
        assert_eq!(told(host, &own).await, None);
        pause(false).await.ok();
        assert_eq!(told(host, &own).await.as_deref(), Some("1500"));
        host.advance(3600);
        // A list may be a minute old: setting any rate has it made anew.
        set(host, json!({ "from": "NGN", "to": "USD", "rate": "0.0006" })).await.ok();
        assert_eq!(told(host, &own).await, None);

        let all = host.get("/v1/rates").await.ok().json;
        assert_eq!(all["data"].as_array().map(Vec::len), Some(1), "{all}");
        let unfiltered = host.get("/v1/rates?from=&to=").await.ok().json;
        assert_eq!(unfiltered["data"], all["data"]);
        for path in ["/v1/rates?from=XXX", "/v1/rates?to=usd"] {
            assert_eq!(host.get(path).await.refused(), (400, "unsupported_currency"), "{path}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_rate_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        for (over, field) in [
            (json!({ "env": "moon" }), "env"),
            (json!({ "from": "usd" }), "from"),
            (json!({ "to": "USD" }), "to"),
            (json!({ "to": "XYZ" }), "to"),
            (json!({ "rate": "0" }), "rate"),
            (json!({ "rate": "-1" }), "rate"),
            (json!({ "rate": "1e3" }), "rate"),
            (json!({ "rate": "1000000" }), "rate"),
            (json!({ "rate": "0.0000000000001" }), "rate"),
            (json!({ "spread_bps": 10_000 }), "spread_bps"),
            (json!({ "spread_bps": -1 }), "spread_bps"),
            (json!({ "rate": "0.000000000001", "spread_bps": 1 }), "spread_bps"),
            (json!({ "valid_for_s": 0 }), "valid_for_s"),
            (json!({ "as_of": "yesterday" }), "as_of"),
            (json!({ "as_of": "2999-01-01T00:00:00Z" }), "as_of"),
            (json!({ "spred_bps": 1 }), "spred_bps"),
        ] {
            let refused = set(host, over.clone()).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{over}");
            assert_eq!(refused.field(), field, "{over}");
        }
        let nobody = set(host, json!({ "merchant_id": "c000000000000000000000000" })).await;
        assert_eq!(nobody.status, 404);

        // All or none.
        let rate =
            |to: &str, rate: &str| json!({ "env": "live", "from": "USD", "to": to, "rate": rate });
        let import =
            |rates: Value| host.admin(Method::POST, "rates/import", json!({ "rates": rates }));
        let refused = import(json!([rate("GBP", "0.8"), rate("EUR", "x")])).await;
        assert_eq!((refused.refused().0, refused.field()), (400, "rates[1].rate"));
        let twice = import(json!([rate("GBP", "0.8"), rate("GBP", "0.9")])).await;
        assert_eq!((twice.refused().0, twice.field()), (400, "rates"));
        assert_eq!(import(json!([])).await.field(), "rates");
        assert_eq!(host.count("SELECT COUNT(*) FROM rates").await, 0);
        import(json!([rate("GBP", "0.8"), rate("EUR", "0.9")])).await.ok();
        let path = "/admin/v1/rates?limit=1";
        let page = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
        assert_eq!(
            (&page["has_more"], &page["data"][0]["id"]),
            (&json!(true), &json!("live/-/USD/EUR"))
        );
        let path = "/admin/v1/rates?starting_after=live/-/USD/EUR";
        let page = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
        assert_eq!((&page["has_more"], &page["data"][0]["rate"]), (&json!(false), &json!("0.8")));
        assert_eq!(host.last_line().await["action"], "rate.set");
    })
    .await;
}

/// A rate is as old as its provider says, and time does not go backwards.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_older_rate_takes_no_newer_ones_place(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        set(host, json!({ "as_of": "2026-11-20T12:00:00Z" })).await.ok();
        let older = json!({ "rate": "1", "as_of": "2026-11-20T11:59:59Z" });
        let refused = set(host, older.clone()).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "as_of"));
        set(host, json!({ "rate": "1501", "as_of": "2026-11-20T12:00:00Z" })).await.ok();
        let path = "rates?env=test&from=USD&to=NGN";
        host.admin(Method::DELETE, path, json!(null)).await.ok();
        assert_eq!(set(host, older).await.ok().json["rate"], "1", "nothing stands in its way");
    })
    .await;
}

/// Who sets a live rate can give money away.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_rate_can_take_two_people(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Rate];
    with_host_configured(engine, two, async |host| {
        let live = json!({ "env": "live", "spread_bps": 50 });
        assert_eq!(set(host, json!({})).await.status, 200, "nothing to lose in the sandbox");
        assert_eq!(set(host, live.clone()).await.status, 202);
        assert_eq!(set(host, live.clone()).await.status, 202, "not the same person");
        let rate = json!({ "env": "live", "from": "USD", "to": "NGN", "rate": "1500" });
        let second = async |method: Method, path: &str, body: Value| {
            let path = format!("/admin/v1/{path}");
            host.send(method, &path, DESK_TOKEN, &[], Some(body)).await
        };
        let dearer = with(rate.clone(), json!({ "spread_bps": 49 }));
        assert_eq!(second(Method::PUT, "rates", dearer).await.status, 202, "not the same");
        set(host, live).await;
        let agreed = with(rate, json!({ "spread_bps": 50 }));
        assert_eq!(
            second(Method::PUT, "rates", agreed).await.ok().json["effective_rate"],
            "1492.5"
        );
        let line = host.last_line().await;
        let (actor, asked) = (&line["actor"], &line["after"]["requested_by"]);
        assert_eq!((actor, asked), (&json!("desk"), &json!("operator")), "{line}");

        let gone = "rates?env=live&from=USD&to=NGN";
        assert_eq!(host.admin(Method::DELETE, gone, json!(null)).await.status, 202);
        assert_eq!(second(Method::DELETE, gone, json!(null)).await.status, 200);
        // Pausing takes one, going on takes two.
        let pause =
            |is_paused: bool| json!({ "env": "live", "currency": "NGN", "is_paused": is_paused });
        host.admin(Method::PUT, "fx_limits", pause(true)).await.ok();
        assert_eq!(host.admin(Method::PUT, "fx_limits", pause(false)).await.status, 202);
        assert_eq!(second(Method::PUT, "fx_limits", pause(false)).await.status, 200);
    })
    .await;
}

/// Nobody writes over what somebody else has just set, on whichever host.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_hosts_that_set_a_rate_at_once_neither_loses_the_others() {
    with_two_hosts(Sends::No, async |host, beside| {
        for round in 1..=20 {
            let over = |rate: String| json!({ "rate": rate });
            let first = set(host, over(format!("{round}.1")));
            let (first, second) = tokio::join!(first, set(beside, over(format!("{round}.2"))));
            let taken = [&first, &second].iter().filter(|answer| answer.status == 200).count();
            for answer in [&first, &second] {
                let status = answer.status;
                assert!(status == 200 || answer.refused() == (409, "state_conflict"), "{answer:?}");
            }
            assert!(taken > 0, "{first:?} {second:?}");
        }
        let set = host.count("SELECT COUNT(*) FROM audit WHERE action = 'rate.set'").await;
        assert_eq!(host.count("SELECT version FROM rates").await, set, "each counted");
    })
    .await;
}

/// The largest cap is no cap.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_cap_of_any_size_is_kept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let cap = |cap: &str| {
            let body = json!({ "env": "test", "currency": "NGN", "exposure_cap_minor": cap });
            host.admin(Method::PUT, "fx_limits", body)
        };
        for largest in ["9223372036854775807", "0"] {
            assert_eq!(cap(largest).await.ok().json["exposure_cap_minor"], largest);
        }
        for odd in ["-1", "9223372036854775808", "1.5", ""] {
            assert_eq!(cap(odd).await.field(), "exposure_cap_minor", "{odd}");
        }
        cap("9223372036854775807").await.ok();
        set(host, json!({})).await.ok();
        let key = host
            .new_key(&host.merchant.id, json!({ "env": "test", "capabilities": ["conversion"] }));
        let key = key.await;
        host.fund(&key, "USD", 100).await;
        let body =
            json!({ "from_currency": "USD", "to_currency": "NGN", "from_amount_minor": "100" });
        let once = [("idempotency-key", "4711")];
        let send = || host.send(Method::POST, "/v1/conversions", &key, &once, Some(body.clone()));
        let done = send().await.ok();
        assert_eq!(done.json["to_amount_minor"], "150000");
        // Who repeats it is told the same, whatever was switched off meanwhile.
        let off = json!({ "features": { "conversions": false } });
        let path = format!("merchants/{}", host.merchant.id);
        host.admin(Method::PATCH, &path, off).await.ok();
        assert_eq!(send().await.ok().json, done.json);
    })
    .await;
}
