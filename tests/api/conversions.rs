//! Conversions between a merchant's own wallets.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::rates::set;
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, unique, with, with_host};

/// A merchant's keys that may convert, and its wallets.
struct Desk {
    test: String,
    live: String,
    dollars: String,
    naira: String,
}

/// A merchant with 1,000.00 dollars and 1,000,000.00 naira in the sandbox, at 1,500.
async fn desk(host: &TestHost) -> Desk {
    let key = |env: &str| {
        let with = json!({ "env": env, "capabilities": ["payout_create", "conversion"] });
        host.new_key(&host.merchant.id, with)
    };
    let (test, live) = (key("test").await, key("live").await);
    let dollars = host.fund(&test, "USD", 100_000).await;
    set(host, json!({})).await.ok();
    Desk { dollars, naira: host.merchant.test_wallet.clone(), test, live }
}

fn sell(amount: &str) -> Value {
    json!({ "from_currency": "USD", "to_currency": "NGN", "from_amount_minor": amount })
}

fn buy(amount: &str) -> Value {
    json!({ "from_currency": "USD", "to_currency": "NGN", "to_amount_minor": amount })
}

async fn convert(host: &TestHost, key: &str, body: Value) -> Answer {
    convert_as(host, key, &unique(), body).await
}

async fn convert_as(host: &TestHost, key: &str, once: &str, body: Value) -> Answer {
    let headers = [("idempotency-key", once)];
    host.send(Method::POST, "/v1/conversions", key, &headers, Some(body)).await
}

async fn quote(host: &TestHost, key: &str, body: Value) -> Answer {
    host.send(Method::POST, "/v1/conversions/quote", key, &[], Some(body)).await
}

async fn position(host: &TestHost, currency: &str) -> (String, Value) {
    let path = "/admin/v1/fx_positions?env=test";
    let all = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
    let mut rows = all["data"].as_array().expect("positions").iter();
    let row = rows.find(|row| row["currency"] == currency).cloned().unwrap_or_default();
    (row["position_minor"].as_str().unwrap_or_default().to_owned(), row["bought_with"].clone())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_exact_amount_is_sold_or_bought(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let quoted = quote(host, &desk.test, sell("10001")).await.ok().json;
        assert_eq!(quoted["to_amount_minor"], "15001500", "{quoted}");
        assert_eq!((&quoted["rate"], &quoted["indicative"]), (&json!("1500"), &json!(true)));
        let once = unique();
        let sold = convert_as(host, &desk.test, &once, sell("10001")).await;
        assert_eq!(sold.status, 201, "{}", sold.text);
        for name in ["from_currency", "to_currency", "from_amount_minor", "to_amount_minor", "rate"] {
            assert_eq!(sold.json[name], quoted[name], "{name}");
        }
        assert_eq!(sold.status_word(), "completed");
        // The same again is the same conversion; another one is refused.
        let again = convert_as(host, &desk.test, &once, sell("10001")).await;
        assert_eq!((again.status, &again.text), (200, &sold.text));
        let other = convert_as(host, &desk.test, &once, sell("10002")).await;
        assert_eq!(other.refused(), (409, "idempotency_conflict"));

        let bought = convert(host, &desk.test, buy("1501")).await.ok().json;
        assert_eq!((&bought["from_amount_minor"], &bought["to_amount_minor"]), (&json!("2"), &json!("1501")));
        assert_eq!(host.balance(&desk.dollars).await, 100_000 - 10_001 - 2);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000 + 15_001_500 + 1_501);
        assert_eq!(position(host, "USD").await.0, "10003");
        let (held, bought_with) = position(host, "NGN").await;
        assert_eq!(held, "-15003001");
        let pair = json!([{ "currency": "USD", "count": 2, "sold_minor": "10003", "bought_minor": "15003001" }]);
        assert_eq!(bought_with, pair);

        let path = format!("/v1/wallets/{}/transactions?source=fx_conversion", desk.naira);
        let entries = host.get_as(&desk.test, &path).await.ok().json;
        let line = &entries["data"][1];
        assert_eq!((&line["direction"], &line["amount_minor"]), (&json!("credit"), &json!("15001500")));
        assert_eq!(line["description"], "Converted from USD at 1500");
        let found = host.get_as(&desk.test, &format!("/v1/conversions/{}", sold.id())).await.ok();
        assert_eq!(found.text, sold.text);
        let list = host.get_as(&desk.test, "/v1/conversions?limit=1").await.ok().json;
        assert_eq!((&list["has_more"], &list["data"][0]["id"]), (&json!(true), &bought["id"]));
        let events = host.get_as(&desk.test, "/v1/events").await.ok().text;
        assert!(events.contains("conversion.completed") && events.contains(&sold.id()), "{events}");
        // Nobody else sees it.
        let other = host.new_merchant("another").await;
        let path = format!("/v1/conversions/{}", sold.id());
        assert_eq!(host.get_as(&other.test_key, &path).await.status, 404);
        assert_eq!(host.get_as(&desk.live, &path).await.status, 404);
        host.prove().await;
    })
    .await;
}

/// What is refused moves nothing, and leaves its key free.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_converted_is_refused_by_its_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let both = with(sell("1"), json!({ "to_amount_minor": "1" }));
        let neither = json!({ "from_currency": "USD", "to_currency": "NGN" });
        for (body, refusal, field) in [
            (both, (400, "ambiguous_amount"), "to_amount_minor"),
            (neither, (400, "amount_required"), "from_amount_minor"),
            (
                with(sell("1"), json!({ "from_currency": null })),
                (400, "missing_field"),
                "from_currency",
            ),
            (with(sell("1"), json!({ "to_currency": "" })), (400, "missing_field"), "to_currency"),
            (
                with(sell("1"), json!({ "to_currency": "USD" })),
                (400, "invalid_currency_pair"),
                "to_currency",
            ),
            (
                with(sell("1"), json!({ "to_currency": "XXX" })),
                (400, "unsupported_currency"),
                "to_currency",
            ),
            (
                with(sell("1"), json!({ "from_currency": "usd" })),
                (400, "unsupported_currency"),
                "from_currency",
            ),
            (sell("0"), (400, "invalid_amount"), "from_amount_minor"),
            (sell("1.5"), (400, "invalid_amount"), "from_amount_minor"),
            (buy("-1"), (400, "invalid_amount"), "to_amount_minor"),
            (sell("9223372036854775807"), (400, "invalid_amount"), "from_amount_minor"),
            (sell("900000000000000000"), (400, "invalid_amount"), "from_amount_minor"),
        ] {
            for refused in [
                quote(host, &desk.test, body.clone()).await,
                convert(host, &desk.test, body.clone()).await,
            ] {
                assert_eq!((refused.refused(), refused.field()), (refusal, field), "{body}");
            }
        }
        let back =
            json!({ "from_currency": "NGN", "to_currency": "USD", "from_amount_minor": "1000" });
        let unknown = convert(host, &desk.test, back.clone()).await;
        assert_eq!(unknown.refused(), (422, "fx_rate_unavailable"));
        let too_much = convert(host, &desk.test, sell("100001")).await;
        assert_eq!(too_much.refused(), (402, "insufficient_funds"));

        // Going back would pay: neither direction is used.
        let inverse = json!({ "from": "NGN", "to": "USD", "rate": "0.000667" });
        let inverted = set(host, inverse).await.ok().json;
        assert_eq!(inverted["refused_as"], "fx_rate_inverted");
        let listed = host.get_as(&desk.test, "/v1/rates").await.ok().json;
        assert_eq!(listed["data"], json!([]), "what is not used is on no list");
        assert_eq!(
            convert(host, &desk.test, sell("100")).await.refused(),
            (422, "fx_rate_inverted")
        );
        assert_eq!(
            quote(host, &desk.test, back.clone()).await.refused(),
            (422, "fx_rate_inverted")
        );
        set(host, json!({ "from": "NGN", "to": "USD", "rate": "0.00066" })).await.ok();
        let listed = host.get_as(&desk.test, "/v1/rates").await.ok().json;
        assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed}");
        let nothing = quote(host, &desk.test, back).await;
        assert_eq!(
            (nothing.refused(), nothing.field()),
            ((400, "invalid_amount"), "from_amount_minor")
        );

        let limit = |over: Value| {
            let body = with(json!({ "env": "test", "currency": "NGN" }), over);
            host.admin(Method::PUT, "fx_limits", body)
        };
        limit(json!({ "exposure_cap_minor": "150000" })).await.ok();
        let refused = convert(host, &desk.test, sell("101")).await;
        assert_eq!(refused.refused(), (422, "fx_exposure_cap_exceeded"));
        let once = unique();
        assert_eq!(convert_as(host, &desk.test, &once, sell("101")).await.status, 422);
        convert_as(host, &desk.test, &once, sell("100")).await.ok();
        assert_eq!(convert(host, &desk.test, sell("1")).await.status, 422, "there is no room left");
        limit(json!({ "is_paused": true })).await.ok();
        assert_eq!(
            convert(host, &desk.test, sell("1")).await.refused(),
            (503, "fx_convert_unavailable")
        );
        // The cap stays while somebody pauses, and until somebody takes it away.
        limit(json!({ "is_paused": false })).await.ok();
        let full = convert(host, &desk.test, sell("1")).await;
        assert_eq!(full.refused(), (422, "fx_exposure_cap_exceeded"));
        // How much room there is, is told to those who bring the money.
        quote(host, &desk.test, sell("1")).await.ok();
        let poor = convert(host, &desk.test, sell("1000000")).await;
        assert_eq!(poor.refused(), (402, "insufficient_funds"));
        let unlimited = json!({ "env": "test", "currency": "NGN", "exposure_cap_minor": null });
        host.admin(Method::PUT, "fx_limits", unlimited).await.ok();

        let freeze = format!("wallets/{}/freeze", desk.dollars);
        host.admin(Method::POST, &freeze, json!({})).await.ok();
        assert_eq!(convert(host, &desk.test, sell("1")).await.refused(), (403, "wallet_frozen"));
        let thaw = format!("wallets/{}/unfreeze", desk.dollars);
        host.admin(Method::POST, &thaw, json!({})).await.ok();

        let played = [("idempotency-key", "a"), ("x-sandbox-scenario", "rate_stale")];
        let path = "/v1/conversions";
        let stale = host.send(Method::POST, path, &desk.test, &played, Some(sell("1"))).await;
        assert_eq!(stale.refused(), (422, "fx_rate_stale"));
        let played = [("idempotency-key", "a"), ("x-sandbox-scenario", "returned")];
        let odd = host.send(Method::POST, path, &desk.test, &played, Some(sell("1"))).await;
        assert_eq!((odd.refused(), odd.field()), ((400, "invalid_field"), "X-Sandbox-Scenario"));
        set(host, json!({ "valid_for_s": 60 })).await.ok();
        host.advance(60);
        assert_eq!(convert(host, &desk.test, sell("1")).await.refused(), (422, "fx_rate_stale"));
        set(host, json!({})).await.ok();
        convert_as(host, &desk.test, "a", sell("1")).await.ok();

        assert_eq!(host.balance(&desk.dollars).await, 100_000 - 100 - 1);
        host.prove().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_convert_is_told_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let plain = convert(host, &host.merchant.test_key, sell("1")).await;
        assert_eq!(plain.refused(), (403, "permission_denied"));
        // Anybody may ask what it would come to.
        quote(host, &host.merchant.test_key, sell("1")).await.ok();
        // In live it is off until somebody switches it on, and so it can be in the sandbox.
        assert_eq!(
            convert(host, &desk.live, sell("1")).await.refused(),
            (403, "permission_denied")
        );
        let path = format!("merchants/{}", host.merchant.id);
        let switched = |on: bool| json!({ "settings": { "features": { "conversions": on } } });
        let of = |on: bool| host.admin(Method::PATCH, &path, switched(on)["settings"].clone());
        of(true).await.ok();
        let live = convert(host, &desk.live, sell("1")).await;
        assert_eq!(
            live.refused(),
            (422, "fx_rate_unavailable"),
            "rates of the sandbox are not live"
        );
        of(false).await.ok();
        assert_eq!(
            convert(host, &desk.test, sell("1")).await.refused(),
            (403, "permission_denied")
        );
        let none = host.post("/v1/conversions", sell("1")).await;
        assert_eq!(none.refused(), (400, "idempotency_key_required"));
    })
    .await;
}

/// Many at once take no more than there is, and the rate at execution counts.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_take_no_more_than_there_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let quoted = quote(host, &desk.test, sell("10000")).await.ok().json;
        set(host, json!({ "rate": "1600" })).await.ok();
        let (host, desk) = (&*host, &desk);
        let all = (0..20).map(|_| convert(host, &desk.test, sell("10000")));
        let all = futures::future::join_all(all).await;
        let made: Vec<&Answer> = all.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(made.len(), 10);
        for refused in all.iter().filter(|answer| answer.status != 201) {
            assert_eq!(refused.refused(), (402, "insufficient_funds"));
        }
        assert_eq!(quoted["to_amount_minor"], "15000000");
        assert!(made.iter().all(|answer| answer.json["to_amount_minor"] == "16000000"));
        assert_eq!(host.balance(&desk.dollars).await, 0);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000 + 160_000_000);
        host.prove().await;
    })
    .await;
}

/// What comes in is converted at once where the merchant has it so, and stays where that cannot be.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_in_is_converted_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let desk = desk(host).await;
        let merchant = format!("merchants/{}", host.merchant.id);
        let odd = json!({ "auto_convert": { "USD": "USD" } });
        let refused = host.admin(Method::PATCH, &merchant, odd).await;
        assert_eq!((refused.refused().0, refused.field()), (400, "auto_convert.USD"));
        let into_naira = json!({ "auto_convert": { "USD": "NGN" } });
        host.admin(Method::PATCH, &merchant, into_naira).await.ok();
        let fund = async || {
            let body = json!({ "currency": "USD", "amount_minor": "500" });
            host.send(Method::POST, "/v1/sandbox/fund", &desk.test, &[], Some(body)).await
        };
        let funded = fund().await.ok().json;
        assert_eq!(funded["available_balance_minor"], "100000", "{funded}");
        assert_eq!(host.balance(&desk.dollars).await, 100_000);
        assert_eq!(host.balance(&desk.naira).await, 100_000_000 + 750_000);
        let events = host.get_as(&desk.test, "/v1/events").await.ok().json;
        let mut events = events["data"].as_array().expect("events").iter();
        let told = events.find(|it| it["event"] == "wallet_auto_converted").expect("an event");
        assert_eq!(told["data"]["providerEventId"], funded["provider_event_id"]);
        assert_eq!(told["data"]["to_amount_minor"], "750000");
        let path = format!("/v1/conversions/{}", told["data"]["id"].as_str().expect("an id"));
        host.get_as(&desk.test, &path).await.ok();

        // A credit by an operator is one too; a correction of the books is none.
        let path = format!("wallets/{}/credit", desk.dollars);
        let credit = async |source: &str| {
            let body = json!({ "amount_minor": "100", "source": source, "reason": "test" });
            host.admin(Method::POST, &path, body).await
        };
        assert_eq!(credit("admin_credit").await.ok().json["available_balance_minor"], "100000");
        let corrected = credit("reconciliation_adjust").await.ok().json;
        assert_eq!(corrected["available_balance_minor"], "100100");
        assert_eq!(host.balance(&desk.naira).await, 100_000_000 + 900_000);

        // What cannot be converted stays.
        let limit = |over: Value| {
            let body = with(json!({ "env": "test", "currency": "NGN" }), over);
            host.admin(Method::PUT, "fx_limits", body)
        };
        limit(json!({ "is_paused": true })).await.ok();
        assert_eq!(fund().await.ok().json["available_balance_minor"], "100600");
        limit(json!({ "is_paused": false })).await.ok();
        let freeze = format!("wallets/{}/freeze", desk.dollars);
        host.admin(Method::POST, &freeze, json!({})).await.ok();
        assert_eq!(fund().await.ok().json["available_balance_minor"], "101100");
        let thaw = format!("wallets/{}/unfreeze", desk.dollars);
        host.admin(Method::POST, &thaw, json!({})).await.ok();
        let off = json!({ "features": { "auto_convert": false } });
        host.admin(Method::PATCH, &merchant, off).await.ok();
        assert_eq!(fund().await.ok().json["available_balance_minor"], "101600");
        assert_eq!(host.balance(&desk.naira).await, 100_000_000 + 900_000);
        host.prove().await;
    })
    .await;
}

/// A conversion and a limit, for who wants to find something in the books.
pub(crate) async fn ordinary(host: &TestHost) {
    let desk = desk(host).await;
    let cap = json!({ "env": "test", "currency": "NGN", "exposure_cap_minor": "99999999" });
    host.admin(Method::PUT, "fx_limits", cap).await.ok();
    convert(host, &desk.test, sell("100")).await.ok();
}
