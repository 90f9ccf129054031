//! Pounds over Faster Payments: every body is signed, names are compared and not told, and the
//! network speaks of outcomes and returns by signed messages of its own.

use http::Method;
use railhead::simulator::{OwnMessage, State, sandbox_keys};
use railhead::wasm::keys::Algorithm;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::hostile::attempt;
use crate::live::{until, until_asked, with_bank};
use crate::notices::RIGHT;
use crate::packs::restart;
use crate::test_host::{Answer, Engine, TestHost, unique, with, with_host, with_host_configured};

/// 1,250.50 pounds, and what they cost beside.
const AMOUNT: i64 = 125_050;
const FEE: i64 = 35;
const START: i64 = 10_000_000;

fn recipient() -> Value {
    json!({
        "sort_code": "08-99-99",
        "account_number": "66374958",
        "name": "Jane Smith",
        "bank_name": "The Co-operative Bank",
        "email": "jane@example.com",
        "street": "1 High Street",
        "city": "Leeds",
        "country": "GB",
        "zip_code": "LS1 4AP",
    })
}

pub(crate) fn pounds(changes: Value) -> Value {
    json!({
        "amount_minor": AMOUNT.to_string(),
        "currency": "GBP",
        "recipient": with(recipient(), changes),
        "allow_duplicate": true,
    })
}

/// Gives the merchant's wallet in this environment something to pay from; answers its id.
pub(crate) async fn funded(host: &TestHost, key: &str) -> String {
    host.fund(key, "GBP", START.unsigned_abs()).await
}

pub(crate) async fn pay_live(host: &TestHost) -> String {
    let key = host.merchant.live_key.clone();
    host.pay_as(&key, &unique(), pounds(json!({}))).await.ok().id()
}

/// Delivers a message of the network, with a token or without one.
async fn deliver(host: &TestHost, token: Option<&str>, message: &OwnMessage) -> Answer {
    let url = format!("{}/notices/live/{}{}", host.base, message.rail, message.path);
    let mut request = host.client.post(url).body(message.body.clone());
    for (name, value) in &message.headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    Answer::of(request.send().await.expect("an answer")).await
}

/// In base64, of whoever has the key: the same for the same text.
fn signature(text: &[u8]) -> String {
    let key = sandbox_keys().signing(Algorithm::RsaPkcs1Sha256).expect("a key");
    key.sign_text(text).expect("signed")
}

/// The same message with another body, signed again by whoever has the key.
pub(crate) fn signed(message: &OwnMessage, body: String) -> OwnMessage {
    let signature = signature(body.as_bytes());
    let mut headers = message.headers.clone();
    for (name, value) in &mut headers {
        if name.eq_ignore_ascii_case("digitalsignature") {
            value.clone_from(&signature);
        }
    }
    OwnMessage { headers, body: body.into_bytes(), ..message.clone() }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_ends_as_it_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let wallet = funded(host, &key).await;
        let mut left = START;
        for (scenario, at_once, asked) in [
            ("paid", "paid", "paid"),
            ("failed", "failed", "failed"),
            ("returned", "reversed", "reversed"),
            ("duplicate_callback", "paid", "paid"),
            ("processing", "processing", "processing"),
            ("timeout_then_paid", "processing", "paid"),
            ("timeout_then_failed", "processing", "failed"),
            ("timeout_then_unknown", "processing", "processing"),
            ("never_received", "processing", "paid"),
            ("provider_down", "processing", "processing"),
            ("rejected_at_once", "failed", "failed"),
            // What is wrongly signed is not heard, whatever it says.
            ("webhook_forged", "processing", "paid"),
            ("key_rotated", "processing", "paid"),
        ] {
            let payout = host.pay(scenario, pounds(json!({}))).await.ok();
            assert_eq!(payout.status_word(), at_once, "{scenario}");
            let later = host.requery(&key, &payout.id()).await;
            assert_eq!(later.status_word(), asked, "{scenario}");
            left -= if ["failed", "reversed"].contains(&asked) { 0 } else { AMOUNT + FEE };
        }
        assert_eq!(host.balance(&wallet).await, left);
        for (step, end) in [("settle", "paid"), ("fail", "failed"), ("return", "reversed")] {
            let scenario = if step == "return" { "paid" } else { "processing" };
            let payout = host.pay(scenario, pounds(json!({}))).await.ok();
            let path = format!("/v1/sandbox/payouts/{}/{step}", payout.id());
            assert_eq!(host.post(&path, json!({})).await.ok().status_word(), end);
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
        for (scenario, changes, refusal, field) in [
            ("", json!({ "sort_code": "8999" }), (400, "invalid_field"), "recipient.sort_code"),
            (
                "",
                json!({ "account_number": "6637495" }),
                (400, "invalid_field"),
                "recipient.account_number",
            ),
            ("", json!({ "street": null }), (400, "missing_field"), "recipient.street"),
            ("", json!({ "email": null }), (400, "missing_field"), "recipient.email"),
            ("", json!({ "bank_name": null }), (400, "missing_field"), "recipient.bank_name"),
            ("", json!({ "name": "Jos\u{e9}" }), (400, "invalid_field"), "recipient.name"),
            ("", json!({ "country": "GBR" }), (400, "invalid_field"), "recipient.country"),
            ("name_mismatch", json!({}), (422, "name_mismatch"), "recipient.name"),
            ("unresolvable", json!({}), (422, "recipient_unresolvable"), ""),
        ] {
            let refused = host.pay(scenario, pounds(changes.clone())).await;
            assert_eq!(refused.refused(), refusal, "{changes}");
            if !field.is_empty() {
                assert_eq!(refused.field(), field, "{changes}");
            }
        }
        let too_much = with(pounds(json!({})), json!({ "amount_minor": "100000001" }));
        assert_eq!(host.pay("", too_much).await.refused(), (422, "limit_violation"));
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
        let enquiry = json!({ "currency": "GBP", "account_number": "1", "bank_code": "2" });
        let refused = host.post("/v1/name-enquiry", enquiry).await;
        assert_eq!(refused.refused(), (400, "unsupported_currency"));
    })
    .await;
}

/// A recipient is saved as the contract's table has it, in blocks; what a request says of the
/// same account later is what is paid.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn recipients_are_saved_and_what_a_request_says_is_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host, &host.merchant.test_key.clone()).await;
        let body = json!({
            "currency": "GBP", "name": "Jane Smith", "country": "GB",
            "bank": { "account_number": "66374958", "sort_code": "08-99-99" },
            "address": { "street": "1 High Street", "city": "Leeds", "zip_code": "LS1 4AP" },
        });
        for (changes, field) in [
            (json!({ "bank": null }), "bank.account_number"),
            (json!({ "bank": { "account_number": "66374958" } }), "bank.sort_code"),
            (json!({ "address": { "street": "1 High Street" } }), "address.city"),
        ] {
            let refused = host.post("/v1/beneficiaries", with(body.clone(), changes)).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "missing_field"), field));
        }
        let odd = with(body.clone(), json!({ "bank": { "sort_code": 89_999 } }));
        let refused = host.post("/v1/beneficiaries", odd).await;
        assert_eq!(
            (refused.refused(), refused.field()),
            ((400, "invalid_field"), "bank.sort_code")
        );
        let saved = host.post("/v1/beneficiaries", body).await.ok();
        let bank = &saved.json["bank"];
        assert_eq!(
            (&bank["account_number"], &bank["sort_code"]),
            (&json!("66374958"), &json!("089999"))
        );
        // Identifiers of other currencies are there, and null; those of naira are not there.
        assert_eq!(
            (&bank["routing_number"], bank.as_object().map(serde_json::Map::len)),
            (&json!(null), Some(9))
        );
        assert_eq!(saved.json["address"]["city"], "Leeds");
        assert!(saved.json.get("bank_code").is_none() && saved.json.get("interac_email").is_none());
        let to = json!({ "amount_minor": "125050", "currency": "GBP",
            "beneficiary_id": saved.id() });
        let paid = host.pay("", to).await.ok();
        assert_eq!(
            (paid.status_word(), &paid.json["recipient_name"]),
            ("paid", &json!("Jane Smith"))
        );

        let renamed = host.pay("", pounds(json!({ "name": "Jane Jones" }))).await.ok();
        assert_eq!(renamed.json["beneficiary_id"], json!(saved.id()));
        assert_eq!(renamed.json["recipient_name"], json!("Jane Jones"));
        let path = format!("/v1/payouts/{}/timeline", renamed.id());
        let timeline = host.get(&path).await.ok();
        let mut steps = timeline.json["data"].as_array().expect("steps").iter();
        assert!(steps.any(|step| step["operation"] == "submit"), "{}", timeline.text);
        assert!(!timeline.text.contains("66374958"), "{}", timeline.text);
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 1);
        // What was saved stays what it was, and is paid as it is.
        let path = format!("/v1/beneficiaries/{}", saved.id());
        let kept = host.get(&path).await.ok();
        let shown = (&kept.json["name"], &kept.json["account_name"]);
        assert_eq!(shown, (&json!("Jane Smith"), &json!("Jane Smith")));
        changed(host, &path, saved.id()).await;
    })
    .await;
}

/// The name may be changed, and is compared and paid then; whose account it is may not.
async fn changed(host: &TestHost, path: &str, id: String) {
    let key = host.merchant.test_key.clone();
    let patch = async |body: Value| host.send(Method::PATCH, path, &key, &[], Some(body)).await;
    for (body, field) in [
        (json!({ "bank": { "account_number": "11111111" } }), "bank"),
        (json!({ "sort_code": "089998" }), "sort_code"),
        (json!({ "address": 5 }), "address"),
    ] {
        let refused = patch(body).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
    }
    let renamed = patch(json!({ "name": "Jane Jones" })).await.ok();
    let shown = (&renamed.json["name"], &renamed.json["account_name"]);
    assert_eq!(shown, (&json!("Jane Jones"), &json!("Jane Jones")));
    let to = json!({ "amount_minor": "125050", "currency": "GBP", "beneficiary_id": id,
        "allow_duplicate": true });
    let paid = host.pay("", to).await.ok();
    assert_eq!(paid.json["recipient_name"], json!("Jane Jones"));
    for (body, field) in [
        (json!({ "account_number": "66374959" }), "bank.account_number"),
        (json!({ "bank": "x" }), "bank"),
    ] {
        let whole = json!({
            "currency": "GBP", "name": "Jane Smith", "country": "GB",
            "bank": { "account_number": "66374958", "sort_code": "089999" },
            "address": { "street": "1 High Street", "city": "Leeds", "zip_code": "LS1 4AP" },
        });
        let refused = host.post("/v1/beneficiaries", with(whole, body)).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
    }
}

/// What is nearly the name on the account is paid, and told; what is not, is neither.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_nearly_the_same_is_taken(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host, &host.merchant.test_key.clone()).await;
        // Jane A Smith has it.
        let to = |name: &str| pounds(json!({ "account_number": "00001149", "name": name }));
        let paid = host.pay("", to("Jane Smith")).await.ok();
        assert_eq!(
            (paid.status_word(), &paid.json["recipient_name"]),
            ("paid", &json!("Jane Smith"))
        );
        // Nobody can be asked, and the payment goes; what was known of another name stays away.
        let paid = host.pay("provider_down", to("Peter Miller")).await.ok();
        assert_eq!(paid.json["recipient_name"], json!("Peter Miller"));
    })
    .await;
}

/// Two parts of the same amount that come back are two, however alike they are told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_part_that_comes_back_is_one_of_its_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let id = pay_live(host).await;
        answered(host, &bank.message().await).await;
        until(host, &id, "paid").await;
        let (reference, ..) = attempt(host, &id).await;
        let part = |own: &str, nonce: u32| {
            let body = json!({ "Type": "TransactionSettled", "Version": 6, "Nonce": nonce,
                "Payload": { "TransactionId": own, "Status": "Settled", "CurrencyCode": "GBP",
                    "EndToEndTransactionId": reference, "Amount": 30, "DebitCreditCode": "Credit",
                    "IsReturn": true } });
            let empty = ("digitalsignature".to_owned(), String::new());
            let message = OwnMessage {
                rail: "fps".to_owned(),
                path: "/webhooks".to_owned(),
                headers: vec![empty],
                ..OwnMessage::default()
            };
            signed(&message, body.to_string())
        };
        // The first one is told twice.
        for message in [part("RA1", 1), part("RA1", 2), part("RA2", 3)] {
            answered(host, &message).await;
        }
        let cases = "SELECT COUNT(*) FROM cases WHERE kind = 'partial_return'";
        assert_eq!(host.count(cases).await, 2);
        // Money that nobody can attribute is two cases as well.
        for (own, nonce) in [("RB1", 4), ("RB2", 5), ("RB1", 6)] {
            let message = part(own, nonce);
            let body = message.text().replace(&reference, "somebody else's");
            answered(host, &signed(&message, body)).await;
        }
        let cases = "SELECT COUNT(*) FROM cases WHERE kind = 'unknown_reference'";
        assert_eq!(host.count(cases).await, 2);
    })
    .await;
}

/// The key that everybody knows opens no route in earnest.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_sandboxs_key_is_nobodys_in_earnest(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let known = include_str!("../../host/src/simulator/keys.pem").to_owned();
    let another = include_str!("another_key.pub.pem").to_owned();
    let change = |config: &mut railhead::config::Config| {
        let keys =
            [("api_token", "a token of ours".to_owned()), ("signing", known), ("gateway", another)];
        let keys = keys.map(|(name, value)| (name.to_owned(), value));
        config.routes.insert("gbp_real".to_owned(), keys.into());
    };
    with_host_configured(engine, change, async |host| {
        let route = json!({ "name": "gbp_real", "env": "live", "currency": "GBP", "rail": "fps",
            "position": 9, "settings": { "endpoint.gateway": "https://gateway.example",
                "debtor_sort_code": "040004", "debtor_account": "12345678",
                "debtor_address": "UK, London, High Street, 1, EC1A 1AA" } });
        let made = host.admin(Method::POST, "routes", route).await.ok();
        let missing = made.json["missing"].as_str().expect("what is missing");
        assert!(missing.contains("routes.gbp_real.signing") && missing.contains("everybody knows"));
        assert!(!made.text.contains("PRIVATE"), "{}", made.text);
    })
    .await;
}

/// Live, over HTTP: who speaks for the network is known by its signature, and is answered with one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_network_has_signed_is_heard(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let wallet = funded(host, &host.merchant.live_key.clone()).await;
        let id = pay_live(host).await;
        let message = bank.message().await;
        until(host, &id, "processing").await;
        // Signed, and without the token that a simulated network presents beside.
        assert_eq!(deliver(host, None, &message).await.status, 401);
        assert_eq!(deliver(host, Some("wrong"), &message).await.status, 401);
        // With the token, and signed for other words.
        let forged = OwnMessage {
            body: message.text().replace("1250.5", "1250.6").into_bytes(),
            ..message.clone()
        };
        assert_eq!(deliver(host, Some(RIGHT), &forged).await.status, 401);
        let unsigned = OwnMessage { headers: Vec::new(), ..message.clone() };
        assert_eq!(deliver(host, Some(RIGHT), &unsigned).await.status, 401);
        until(host, &id, "processing").await;
        answered(host, &message).await;
        until(host, &id, "paid").await;
        // Once more, and it stays.
        answered(host, &message).await;
        assert_eq!(host.balance(&wallet).await, START - AMOUNT - FEE);
        another_amount_is_asked_about(host, bank).await;
        returns(host, bank, &id).await;
        assert_eq!(host.balance(&wallet).await, START - AMOUNT - FEE);
    })
    .await;
}

/// The network is answered with its own number, signed.
pub(crate) async fn answered(host: &TestHost, message: &OwnMessage) {
    let url = format!("{}/notices/live/{}{}", host.base, message.rail, message.path);
    let mut request = host.client.post(url).bearer_auth(RIGHT).body(message.body.clone());
    for (name, value) in &message.headers {
        request = request.header(name, value);
    }
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let header = answer.headers().get("digitalsignature").cloned().expect("a signature");
    let body = answer.bytes().await.expect("a body");
    let header = header.to_str().expect("a text");
    assert_eq!(signature(&body), header, "{body:?}");
    let (told, said): (Value, Value) = (
        serde_json::from_slice(&body).expect("JSON"),
        serde_json::from_slice(&message.body).expect("JSON"),
    );
    assert_eq!(told, json!({ "Nonce": said["Nonce"] }));
}

/// Whoever has the key and says another amount is not believed: the network is asked.
async fn another_amount_is_asked_about(host: &TestHost, bank: &Bank) {
    let id = pay_live(host).await;
    let message = bank.message().await;
    let body = message.text().replace("1250.5", "1249.5");
    assert_ne!(body, message.text());
    answered(host, &signed(&message, body)).await;
    until_asked(host, &id, 1).await;
    until(host, &id, "paid").await;
}

/// What was paid comes back as a payment of its own.
async fn returns(host: &TestHost, bank: &Bank, id: &str) {
    until(host, id, "paid").await;
    let (reference, ..) = attempt(host, id).await;
    let url = format!("{}/control/fps/transfers/{reference}/return", bank.url);
    let told = host.client.post(url).send().await.expect("an answer");
    assert_eq!(told.status().as_u16(), 200);
    answered(host, &bank.message().await).await;
    until(host, id, "reversed").await;
    assert_eq!(bank.transfer(&reference).await.state, State::Returned);
}

/// The gateway signs with another key from now on: only that one is heard.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_network_is_changed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key.clone()).await;
        let id = pay_live(host).await;
        let message = bank.message().await;
        let url = bank.url.clone();
        let another = include_str!("another_key.pub.pem").to_owned();
        restart(host, |config| {
            config.simulator.url = Some(url.clone());
            config.routes.insert("gbp_fps".into(), [("gateway".to_owned(), another)].into());
        })
        .await;
        assert_eq!(deliver(host, Some(RIGHT), &message).await.status, 401);
        restart(host, |config| config.simulator.url = Some(url)).await;
        answered(host, &message).await;
        until(host, &id, "paid").await;
    })
    .await;
}
