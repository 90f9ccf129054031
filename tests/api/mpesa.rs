//! Kenyan shillings to M-Pesa: a network that acknowledges, and answers everything later.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::live::{until, until_asked, with_bank};
use crate::test_host::{Answer, Engine, TestHost, unique, with, with_host};

/// 1,250 shillings; what they cost beside.
const AMOUNT: i64 = 125_000;
const FEE: i64 = 500;

pub(crate) fn shillings(number: &str) -> Value {
    json!({
        "amount_minor": AMOUNT.to_string(),
        "currency": "KES",
        "recipient": {
            "mobile_operator": "mpesa",
            "mobile_number": number,
            "name": "Wanjiku Kamau",
        },
        "allow_duplicate": true,
    })
}

/// Gives the merchant's wallet in this environment something to pay from; answers its id.
pub(crate) async fn funded(host: &TestHost, key: &str) -> String {
    host.fund(key, "KES", 10_000_000).await
}

/// Carries the network's next message to the address that it was given.
async fn carry(host: &TestHost, bank: &Bank) -> Answer {
    let message = bank.message().await;
    let url: http::Uri = message.url.expect("an address").parse().expect("an address");
    tell(host, url.path(), &message.body).await
}

pub(crate) async fn tell(host: &TestHost, path: &str, body: impl AsRef<[u8]>) -> Answer {
    let request = host.client.post(format!("{}{path}", host.base)).body(body.as_ref().to_vec());
    Answer::of(request.send().await.expect("an answer")).await
}

/// In the sandbox the network's own word is there before the caller is answered.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_ends_as_it_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let wallet = funded(host, &key).await;
        for (scenario, at_once, asked) in [
            ("paid", "paid", "paid"),
            ("failed", "failed", "failed"),
            ("duplicate_callback", "paid", "paid"),
            ("processing", "processing", "processing"),
            ("timeout_then_paid", "processing", "paid"),
            ("timeout_then_failed", "processing", "failed"),
            ("timeout_then_unknown", "processing", "processing"),
            ("never_received", "processing", "paid"),
            ("provider_down", "processing", "processing"),
            ("result_first", "paid", "paid"),
            ("result_twice", "paid", "paid"),
            ("code_as_text", "paid", "paid"),
        ] {
            let payout = host.pay(scenario, shillings("0712345678")).await.ok();
            assert_eq!(payout.status_word(), at_once, "{scenario}");
            if at_once == "failed" {
                assert_eq!(payout.json["failure_code"], "2040");
            }
            let later = host.requery(&key, &payout.id()).await;
            assert_eq!(later.status_word(), asked, "{scenario}");
        }
        // A recipient that chooses by itself: it waits too long in a queue, and was paid.
        let queued = host.pay("", shillings("0700000132")).await.ok();
        assert_eq!(queued.status_word(), "paid");
        // A question that is answered inconclusively is asked again in its turn, and not at once.
        assert_eq!(host.count("SELECT MAX(queries) FROM attempts").await, 1);
        let paid = 8 * (AMOUNT + FEE);
        let under_way = 3 * (AMOUNT + FEE);
        assert_eq!(host.balance(&wallet).await, 10_000_000 - paid - under_way);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_waits_is_settled_or_fails_as_the_sandbox_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        for (step, end) in [("settle", "paid"), ("fail", "failed")] {
            let payout = host.pay("processing", shillings("0712345678")).await.ok();
            let path = format!("/v1/sandbox/payouts/{}/{step}", payout.id());
            let ended = host.post(&path, json!({})).await.ok();
            assert_eq!(ended.status_word(), end);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paid_is_refused_in_words(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host, &host.merchant.test_key.clone()).await;
        let recipient = |changes: Value| {
            let whole = shillings("0712345678");
            let recipient = with(whole["recipient"].clone(), changes);
            with(whole, json!({ "recipient": recipient }))
        };
        for (body, refusal, field) in [
            (
                recipient(json!({ "mobile_operator": "orange" })),
                (422, "unknown_operator"),
                "recipient.mobile_operator",
            ),
            (
                recipient(json!({ "mobile_operator": null })),
                (400, "missing_field"),
                "recipient.mobile_operator",
            ),
            (
                recipient(json!({ "mobile_number": "0202012345" })),
                (400, "invalid_field"),
                "recipient.mobile_number",
            ),
            (recipient(json!({ "name": "" })), (400, "missing_field"), "recipient.name"),
            (
                with(shillings("0712345678"), json!({ "amount_minor": "125050" })),
                (422, "limit_violation"),
                "amount_minor",
            ),
            (
                with(shillings("0712345678"), json!({ "amount_minor": "900" })),
                (422, "limit_violation"),
                "amount_minor",
            ),
            (
                with(shillings("0712345678"), json!({ "method": "nip" })),
                (400, "invalid_field"),
                "method",
            ),
        ] {
            let refused = host.pay("", body.clone()).await;
            assert_eq!((refused.refused(), refused.field()), (refusal, field), "{body}");
        }
        let question = json!({ "currency": "KES", "amount_minor": "125050" });
        let refused = host.post("/v1/payouts/quote", question).await;
        assert_eq!(
            (refused.refused(), refused.field()),
            ((422, "limit_violation"), "amount_minor")
        );
        assert_eq!(refused.json["error"]["detail"]["kind"], "step");
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn operators_are_listed_and_recipients_saved(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let listed = host.get("/v1/momo_operators?currency=KES").await.ok();
        let mpesa = json!({ "object": "momo_operator", "slug": "mpesa", "name": "M-Pesa",
            "country": "KE", "currency": "KES" });
        let all = listed.json["data"].as_array().expect("operators").clone();
        assert!(all.contains(&mpesa) && all.iter().all(|it| it["currency"] == "KES"), "{all:?}");
        for path in
            ["/v1/momo_operators?currency=NGN", "/v1/momo_operators", "/v1/banks?currency=KES"]
        {
            assert_eq!(host.get(path).await.refused(), (400, "unsupported_currency"), "{path}");
        }
        funded(host, &host.merchant.test_key.clone()).await;
        let body = json!({ "currency": "KES", "name": "Wanjiku Kamau",
            "mobile_operator": "mpesa", "mobile_number": "+254 712 345 678" });
        let saved = host.post("/v1/beneficiaries", body.clone()).await.ok();
        let again = host.post("/v1/beneficiaries", body).await.ok();
        assert_eq!((saved.id(), &again.json["created"]), (again.id(), &json!(false)));
        let to =
            json!({ "amount_minor": "125000", "currency": "KES", "beneficiary_id": saved.id() });
        assert_eq!(host.pay("", to).await.ok().status_word(), "paid");
        // The same wallet as it is dialled at home is the same recipient.
        let inline = host.pay("", shillings("0712345678")).await.ok();
        assert_eq!(inline.json["beneficiary_id"], json!(saved.id()));
        let shown = (&inline.json["recipient_account"], &inline.json["recipient_bank_code"]);
        assert_eq!(shown, (&json!("254712345678"), &json!("mpesa")));
        let shown = (&saved.json["mobile_number"], &saved.json["mobile_operator"]);
        assert_eq!(shown, (&json!("254712345678"), &json!("mpesa")));
        let found = host.get("/v1/beneficiaries?q=54712345").await.ok();
        assert_eq!(found.json["data"][0]["id"], json!(saved.id()));
        let block = json!({ "scope": "platform", "currency": "KES", "reason": "fraud",
            "mobile_operator": "mpesa", "mobile_number": "0712345678", "name": "W" });
        let blocked = host.admin(Method::POST, "blacklist", block).await.ok();
        let names = blocked.json["recipient"].as_object().expect("a recipient").keys();
        assert!(names.eq(["mobile_number", "mobile_operator", "name"]), "{}", blocked.text);
        let refused = host.pay("", shillings("254712345678")).await;
        assert_eq!(refused.refused().1, "beneficiary_globally_blocked");
    })
    .await;
}

/// Live, over HTTP: a token is fetched once, results come in at the address that was given, and
/// nothing secret is written down.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn live_results_come_in_at_the_address_that_was_given(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        let wallet = funded(host, &key).await;
        let payout = host.pay_as(&key, &unique(), shillings("0712345678")).await.ok();
        let id = payout.id();
        let message = bank.message().await;
        let url: http::Uri = message.url.clone().expect("an address").parse().expect("an address");
        let path = url.path();
        // Nobody who was not given the address is heard.
        let (way, last) = path.rsplit_once('/').expect("a path");
        let (way, token) = way.rsplit_once('/').expect("a token");
        let wrong: String = token.chars().rev().collect();
        assert_eq!(tell(host, &format!("{way}/{wrong}/{last}"), &message.body).await.status, 401);
        let rails = format!("/notices/live/mpesa/{last}");
        assert_eq!(tell(host, &rails, &message.body).await.status, 401);
        let told = tell(host, path, &message.body).await.ok();
        assert_eq!(told.json, json!({ "ResultCode": 0, "ResultDesc": "Accepted" }));
        until(host, &id, "paid").await;
        assert_eq!(host.balance(&wallet).await, 10_000_000 - AMOUNT - FEE);

        // Another amount than was sent is asked about, and the answer comes in by itself.
        let payout = host.pay_as(&key, &unique(), shillings("0712345678")).await.ok();
        let id = payout.id();
        let message = bank.message().await;
        let other = message.text().replace("1250", "1249");
        assert_ne!(other, message.text());
        tell(host, path, other).await.ok();
        until_asked(host, &id, 1).await;
        until(host, &id, "processing").await;
        carry(host, bank).await.ok();
        until(host, &id, "paid").await;

        let timeline = host.get_as(&key, &format!("/v1/payouts/{id}/timeline")).await.ok();
        let masked = r#"SecurityCredential\":\"****\""#;
        assert!(timeline.text.contains(masked), "{}", timeline.text);
        for secret in [token, "a-token-of-the", "254712345678"] {
            assert!(!timeline.text.contains(secret), "{secret}: {}", timeline.text);
        }
        assert!(timeline.text.contains("paymentrequest"), "{}", timeline.text);
        let mut steps = timeline.json["data"].as_array().expect("steps").iter();
        let attempt = steps.find(|step| step["type"] == "attempt").expect("an attempt");
        let receipt = attempt["network_reference"].as_str().expect("a receipt");
        assert!(receipt.starts_with("RH"), "{receipt}");
        let fetched = "SELECT COUNT(*) FROM rail_calls WHERE exchanges LIKE '%oauth%'";
        assert_eq!(host.count(fetched).await, 1, "one token for all calls");
    })
    .await;
}

/// A network that tells a thing once is heard while its route takes no new payments, and as long
/// as the very call is under way that it answers.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn results_are_heard_while_the_route_is_paused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let payout = host.pay_as(&key, &unique(), shillings("0712345678")).await.ok();
        let message = bank.message().await;
        let routes = host.admin(Method::GET, "routes", json!(null)).await.ok();
        let mut routes = routes.json["data"].as_array().expect("routes").iter();
        let live = routes.find(|route| route["env"] == "live" && route["name"] == "kes_mpesa");
        let path = format!("routes/{}", live.expect("a route")["id"].as_str().expect("an id"));
        host.admin(Method::PATCH, &path, json!({ "is_paused": true })).await.ok();
        let url: http::Uri = message.url.expect("an address").parse().expect("an address");
        tell(host, url.path(), &message.body).await.ok();
        until(host, &payout.id(), "paid").await;
        // What came in is on record.
        let timeline = host.get_as(&key, &format!("/v1/payouts/{}/timeline", payout.id())).await;
        assert!(timeline.ok().text.contains("POST /result"), "no message");
        let refused = host.pay_as(&key, &unique(), shillings("0712345678")).await;
        assert_eq!(refused.refused().1, "provider_paused");
    })
    .await;
}
