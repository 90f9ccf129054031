//! Canadian dollars by Interac e-Transfer: what a recipient has to answer is told to the merchant,
//! a transfer that nobody has claimed is called off, and the hours that it waits are no trouble.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::live::{until, with_bank};
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, unique, with, with_host};

const START: i64 = 1_000_000;

/// A hundred dollars to somebody who has to claim them.
pub(crate) fn dollars() -> Value {
    json!({
        "currency": "CAD",
        "amount_minor": "10000",
        "recipient": {
            "email": "jane.tremblay@example.com",
            "first_name": "Jane",
            "last_name": "Tremblay",
        },
        "allow_duplicate": true,
    })
}

async fn funded(host: &TestHost) -> String {
    host.fund(&host.merchant.test_key.clone(), "CAD", START.unsigned_abs()).await
}

/// The bodies of a payout's events of a name, oldest first.
async fn told(host: &TestHost, id: &str, name: &str) -> Vec<Value> {
    let page = host.get(&format!("/v1/events?type={name}&limit=100")).await.ok();
    let events = page.json["data"].as_array().expect("events").iter().rev();
    let of_it = events.filter(|event| event["data"]["id"] == id);
    of_it.map(|event| event["data"].clone()).collect()
}

/// Who claims has to answer a question. Question and answer are on the payout and on its one
/// processing event, two payouts have two answers, and none of them is in the timeline.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_recipient_has_to_answer_is_told_once_it_was_taken_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = funded(host).await;
        let mut answers = Vec::new();
        for _ in 0..2 {
            let payout = host.pay("claim", dollars()).await.ok();
            assert_eq!(payout.status_word(), "processing");
            let instruction = &payout.json["interac_instruction"];
            let answer = instruction["answer"].as_str().expect("an answer").to_owned();
            assert!(!instruction["question"].as_str().expect("a question").is_empty());
            assert!(payout.json["interac_reference"].is_string(), "{}", payout.text);
            let events = told(host, &payout.id(), "payout.processing").await;
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!(events[0]["interac_instruction"], *instruction);
            let timeline = host.get(&format!("/v1/payouts/{}/timeline", payout.id())).await.ok();
            assert!(!timeline.text.contains(&answer), "{}", timeline.text);
            // Asked about again, it is told nothing new.
            let later = host.requery(&host.merchant.test_key, &payout.id()).await;
            assert_eq!(later.json["interac_instruction"], *instruction);
            let settle = format!("/v1/sandbox/payouts/{}/settle", payout.id());
            let paid = host.post(&settle, json!({})).await.ok();
            assert_eq!(paid.status_word(), "paid");
            // It has been taken: what it was taken with is nobody's business any more.
            assert_eq!(paid.json.get("interac_instruction"), None);
            assert_eq!(paid.json["interac_reference"], payout.json["interac_reference"]);
            assert_eq!(told(host, &payout.id(), "payout.processing").await.len(), 1);
            answers.push(answer);
        }
        assert_ne!(answers[0], answers[1]);
        assert!(answers.iter().all(|answer| answer.len() == 10));
        assert!(host.balance(&wallet).await <= START - 20_000);
        let sealed = "SELECT COUNT(*) FROM attempts WHERE seeds IS NULL OR seeds LIKE '%answer%'";
        assert_eq!(host.count(sealed).await, 0);
    })
    .await;
}

/// Whoever has Autodeposit answers nothing, and so nothing is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn autodeposit_asks_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        funded(host).await;
        for scenario in ["", "autodeposit"] {
            let payout = host.pay(scenario, dollars()).await.ok();
            assert_eq!(payout.status_word(), "paid");
            assert_eq!(payout.json.get("interac_instruction"), None);
            assert_eq!(payout.json.get("interac_reference"), None);
            let paid = told(host, &payout.id(), "payout.paid").await;
            assert_eq!(paid.len(), 1);
            assert_eq!(paid[0].get("interac_instruction"), None);
        }
    })
    .await;
}

/// An operator calls off what nobody has claimed, the merchant cannot, and nobody what was claimed.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_nobody_has_claimed_is_called_off(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = funded(host).await;
        let key = host.merchant.test_key.clone();
        let payout = host.pay("claim", dollars()).await.ok();
        let cancel = format!("/v1/payouts/{}/cancel", payout.id());
        let reason = json!({ "reason": "sent to the wrong address" });
        let mine = host.send(Method::POST, &cancel, &key, &[], Some(reason.clone())).await;
        assert_eq!(mine.refused(), (409, "payout_not_cancellable"));
        let recall = |id: String| format!("payouts/{id}/recall");
        let nothing = host.admin(Method::POST, &recall(payout.id()), json!({})).await;
        assert_eq!((nothing.refused(), nothing.field()), ((400, "missing_field"), "reason"));
        let path = format!("/admin/v1/{}", recall(payout.id()));
        let key = [("Idempotency-Key", "recall-1")];
        let again = Some(reason.clone());
        let off = host.send(Method::POST, &path, OPERATOR_TOKEN, &key, again.clone()).await.ok();
        assert_eq!(off.status_word(), "failed", "{}", off.text);
        assert!(!off.text.contains("answer"), "{}", off.text);
        let repeated = host.send(Method::POST, &path, OPERATOR_TOKEN, &key, again).await.ok();
        assert!(!repeated.text.contains("answer"), "{}", repeated.text);
        assert_eq!(host.balance(&wallet).await, START);
        assert_eq!(host.last_line().await["action"], "payout.recall");
        let again = host.admin(Method::POST, &recall(payout.id()), reason.clone()).await;
        assert_eq!(again.refused(), (409, "state_conflict"));
        let paid = host.pay("", dollars()).await.ok();
        let late = host.admin(Method::POST, &recall(paid.id()), reason.clone()).await;
        // Who has taken it, keeps it.
        assert_eq!(late.ok().status_word(), "paid");
        let unknown = host.admin(Method::POST, &recall("po_nobody".to_owned()), reason).await;
        assert_eq!(unknown.refused(), (404, "payout_not_found"));
    })
    .await;
}

/// Over another network nothing is called off, and the payout stands as it stood.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_calls_nothing_off_is_not_asked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payout = host.pay("processing", crate::test_host::naira(100_000)).await.ok();
        let body = json!({ "reason": "a mistake" });
        let path = format!("payouts/{}/recall", payout.id());
        let refused = host.admin(Method::POST, &path, body).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        let settle = format!("/v1/sandbox/payouts/{}/settle", payout.id());
        assert_eq!(host.post(&settle, json!({})).await.ok().status_word(), "paid");
    })
    .await;
}

/// What is wrong with a recipient of Canadian dollars, and which of the two methods it selects.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_selects_its_method_or_the_merchant_does(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host).await;
        let to = |recipient: Value| with(dollars(), json!({ "recipient": recipient }));
        let account = json!({ "name": "Jane Tremblay", "institution_number": "003",
            "transit_number": "00012", "account_number": "1234567", "bank_name": "RBC",
            "email": "jane@example.com", "street": "1 Yonge Street", "city": "Toronto",
            "state": "ON", "zip_code": "M5E 1W7", "country": "CA" });
        assert_eq!(host.pay("", to(account.clone())).await.ok().json["method"], "eft");
        assert_eq!(host.pay("", dollars()).await.ok().json["method"], "interac");
        let names = json!({ "first_name": "Jane", "last_name": "Tremblay", "method": "interac" });
        let within = to(with(account.clone(), names));
        for both in [with(to(account.clone()), json!({ "method": "interac" })), within] {
            let refused = host.pay("", both).await;
            assert_eq!(refused.status, 400, "{}", refused.text);
            assert!(["missing_field", "invalid_field"].contains(&refused.refused().1));
        }
        let other = with(dollars(), json!({ "method": "wire" }));
        assert_eq!(host.pay("", other).await.status, 400);
        let nobody = to(with(account, json!({ "state": null })));
        assert_eq!(host.pay("", nobody).await.refused(), (400, "missing_field"));
        // An address alone is judged by what the merchant usually pays by.
        let alone = || to(json!({ "email": "jane@example.com" }));
        for (usual, field) in [("interac", "first_name"), ("eft", "institution_number")] {
            let settings = json!({ "default_cad_method": usual });
            let path = format!("merchants/{}", host.merchant.id);
            host.admin(Method::PATCH, &path, settings).await.ok();
            let refused = host.pay("", alone()).await;
            assert_eq!(refused.refused(), (400, "missing_field"), "{usual}: {}", refused.text);
            assert!(refused.field().starts_with("recipient."), "{} of {field}", refused.field());
        }
    })
    .await;
}

/// Each originator has a count of files of its own, as the bank that they are for.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_are_counted_for_each_originator(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host).await;
        let account = json!({ "name": "Jane Tremblay", "institution_number": "003",
            "transit_number": "00012", "account_number": "1234567", "bank_name": "RBC",
            "email": "jane@example.com", "street": "1 Yonge Street", "city": "Toronto",
            "state": "ON", "zip_code": "M5E 1W7", "country": "CA" });
        let body = with(dollars(), json!({ "recipient": account, "allow_duplicate": true }));
        for _ in 0..2 {
            assert_eq!(host.pay("paid", body.clone()).await.ok().status_word(), "paid");
        }
        let routes = host.admin(Method::GET, "routes", json!(null)).await.ok();
        let mut routes = routes.json["data"].as_array().expect("routes").iter();
        let is_its = |route: &&Value| route["name"] == "cad_eft" && route["env"] == "test";
        let id = routes.find(is_its).expect("the route")["id"].as_str().expect("an id");
        let other = json!({ "settings": { "originator_id": "9876543210" } });
        host.admin(Method::PATCH, &format!("routes/{id}"), other).await.ok();
        host.pay("", body).await.ok();
        for (originator, number) in [("0123456789", 1), ("0123456789", 2), ("9876543210", 1)] {
            let sql = format!(
                "SELECT COUNT(*) FROM payment_files WHERE number = {number} \
                 AND name LIKE 'EFT-{originator}-%'"
            );
            assert_eq!(host.count(&sql).await, 1, "{originator} {number}");
        }
    })
    .await;
}

/// A live transfer waits for its recipient for days: a person is told after the month that its
/// network gives him, and not after one day.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_may_wait_for_its_recipient(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _bank| {
        let key = host.merchant.live_key.clone();
        host.fund(&key, "CAD", START.unsigned_abs()).await;
        let rail = host.app().rails.get("interac").expect("the rail");
        let scenarios = rail.declaration.scenarios.as_ref().expect("scenarios");
        let claims = scenarios.values.iter().find(|(_, scenario)| *scenario == "claim");
        let mut body = dollars();
        body["recipient"]["email"] = json!(claims.expect("one who claims").0);
        let id = host.pay_as(&key, &unique(), body).await.ok().id();
        until(host, &id, "processing").await;
        host.until_count("SELECT COUNT(*) FROM payouts WHERE told LIKE '%answer%'", 1).await;
        for _ in 0..3 {
            host.advance(24 * 3600);
            host.until_count("SELECT COUNT(*) FROM transfers WHERE lease_until > 0", 0).await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM cases").await, 0);
        until(host, &id, "processing").await;
    })
    .await;
}

/// One that is named by an address has no bank, and says so.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_beneficiary_that_is_named_by_an_address_has_no_bank(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let mut body = dollars()["recipient"].clone();
        (body["currency"], body["name"]) = (json!("CAD"), json!("Jane Tremblay"));
        let saved = host.post("/v1/beneficiaries", body).await.ok();
        for name in ["bank_code", "bank_name", "account_number"] {
            assert_eq!(saved.json.get(name), Some(&Value::Null), "{}", saved.text);
        }
        assert_eq!(saved.json["interac_email"], "jane.tremblay@example.com");
        assert_eq!(saved.json["interac_first_name"], "Jane");
        // No network tells the name.
        assert_eq!(saved.json["account_name"], "Jane Tremblay");
    })
    .await;
}
