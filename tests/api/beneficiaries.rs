//! Saved recipients: one per account, whoever saves it and however often.

use futures::future::join_all;
use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::{account, to};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

const PATH: &str = "/v1/beneficiaries";

fn recipient(serial: u32) -> Value {
    json!({ "currency": "NGN", "name": "My landlord", "account_number": account(serial),
        "bank_code": "058" })
}

async fn save(host: &TestHost, body: Value) -> Answer {
    host.post(PATH, body).await
}

async fn call(host: &TestHost, method: Method, id: &str, body: Option<Value>) -> Answer {
    host.send(method, &format!("{PATH}/{id}"), &host.merchant.test_key, &[], body).await
}

async fn found(host: &TestHost, query: &str) -> Vec<String> {
    let page = host.get(&format!("{PATH}?{query}")).await.ok();
    let items = page.json["data"].as_array().expect("a list");
    items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_same_account_is_the_same_beneficiary(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let new = save(host, with(recipient(1), json!({ "email": "a@b.ng" }))).await;
        assert_eq!((new.status, &new.json["created"]), (201, &json!(true)));
        assert_eq!(new.json["account_name"], "ADA ADEYEMI");
        assert_eq!(new.json["name"], "My landlord");
        assert_eq!(
            (&new.json["verification"], &new.json["source"]),
            (&json!("verified"), &json!("manual"))
        );
        let id = new.id();
        host.advance(60);
        for changes in [
            json!({}),
            json!({ "bank_code": "000013" }),
            json!({ "name": "Old landlord", "phone": "+2348000000000" }),
            json!({ "email": "c@d.ng", "bank_name": "GTB" }),
        ] {
            let same = save(host, with(recipient(1), changes.clone())).await;
            assert_eq!((same.status, &same.json["created"]), (200, &json!(false)), "{changes}");
            assert!(same.json.get("restored").is_none());
            assert_eq!((same.id(), &same.json["bank_code"]), (id.clone(), &json!("058")));
        }
        let shown = call(host, Method::GET, &id, None).await.ok();
        assert_eq!(
            (&shown.json["email"], &shown.json["phone"]),
            (&json!("c@d.ng"), &json!("+2348000000000"))
        );
        assert!(shown.json.get("created").is_none());

        call(host, Method::DELETE, &id, None).await.ok();
        let restored = save(host, with(recipient(1), json!({ "name": "Back" }))).await;
        let outcome = (restored.status, &restored.json["created"], &restored.json["restored"]);
        assert_eq!(outcome, (200, &json!(false), &json!(true)));
        assert_eq!((restored.id(), &restored.json["name"]), (id, &json!("Back")));
        assert_eq!(restored.json["is_archived"], false);
        assert_eq!(save(host, recipient(2)).await.status, 201);
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 2);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_save_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let host = &*host;
        let answers = join_all((0..20).map(|_| save(host, recipient(1)))).await;
        let created = answers.iter().filter(|answer| answer.status == 201).count();
        let changed = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!((created, changed), (1, 19));
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_saves_the_same_recipient_at_once_is_turned_away(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let host = &*host;
        // A clock that goes on: with one that stands still every version is the same.
        let done = std::sync::atomic::AtomicBool::new(false);
        let tick = async {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                host.clock.advance(std::time::Duration::from_micros(1));
                tokio::task::yield_now().await;
            }
        };
        let everyone = async {
            for round in 0..5_u32 {
                let named = |number: u32| {
                    let name = format!("Landlord {round} {number}");
                    with(recipient(1), json!({ "name": name }))
                };
                let answers = join_all((0..20).map(|number| save(host, named(number)))).await;
                let ids: std::collections::BTreeSet<_> = answers.iter().map(Answer::id).collect();
                assert_eq!(ids.len(), 1, "{ids:?}");
                let created = answers.iter().filter(|answer| answer.status == 201).count();
                let changed = answers.iter().filter(|answer| answer.status == 200).count();
                let expected = if round == 0 { (1, 19) } else { (0, 20) };
                assert_eq!((created, changed), expected);
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        };
        tokio::join!(everyone, tick);
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_with_a_key_is_answered_the_same(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (key, once) = (host.merchant.test_key.clone(), unique());
        let headers = [("idempotency-key", once.as_str())];
        let post = async |body| host.send(Method::POST, PATH, &key, &headers, Some(body)).await;
        let first = post(recipient(1)).await;
        let again = post(recipient(1)).await;
        assert_eq!((again.status, &again.text), (201, &first.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let refused = post(recipient(2)).await;
        assert_eq!(refused.refused(), (409, "idempotency_key_conflict"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn bad_recipients_are_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (changes, status, code, field) in [
            (json!({ "currency": null }), 400, "missing_field", "currency"),
            (json!({ "name": null }), 400, "missing_field", "name"),
            (json!({ "name": " " }), 400, "missing_field", "name"),
            (json!({ "account_number": null }), 400, "missing_field", "account_number"),
            (json!({ "bank_code": null }), 400, "missing_field", "bank_code"),
            (json!({ "name": 5 }), 400, "invalid_field", "name"),
            (json!({ "account_number": 123_456_785 }), 400, "invalid_field", "account_number"),
            (json!({ "account_number": "12345" }), 400, "invalid_field", "account_number"),
            (json!({ "bank_code": "GTB" }), 400, "invalid_field", "bank_code"),
            (json!({ "bank_code": "999" }), 422, "unknown_bank_code", "bank_code"),
            (
                json!({ "account_number": "0123456784" }),
                422,
                "recipient_unresolvable",
                "account_number",
            ),
            (json!({ "currency": "XYZ" }), 422, "unsupported_currency", "currency"),
        ] {
            let refused = save(host, with(recipient(1), changes.clone())).await;
            assert_eq!(refused.refused(), (status, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM beneficiaries").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_says_is_the_verification(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (number, verification) in [("0000001091", "failed"), ("0000001101", "pending")] {
            let body = with(recipient(1), json!({ "account_number": number }));
            let saved = save(host, body).await.ok();
            assert_eq!(saved.json["verification"], verification);
            assert!(saved.json["account_name"].is_null());
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn names_and_accounts_are_searched(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let named = |serial, name: &str| with(recipient(serial), json!({ "name": name }));
        let first = save(host, named(1, "Óluwa 100% _x_")).await.ok().id();
        let second = save(host, named(22, "Plain")).await.ok().id();
        let third = save(host, named(333, "plainer")).await.ok().id();
        let all = [third.clone(), second.clone(), first.clone()];
        let (one, two_plain) = ([first.clone()], [third.clone(), second.clone()]);
        let number = format!("q={}", account(22));
        let nobody: &[String] = &[];
        let cases: [(&str, &[String]); 14] = [
            ("", &all),
            ("q=", &all),
            ("currency=NGN", &all),
            ("currency=GBP", nobody),
            ("q=PLAIN", &two_plain),
            ("q=plaine", std::slice::from_ref(&third)),
            ("q=%C3%B3luwa", &one),
            ("q=100%25", &one),
            ("q=_x_", &one),
            ("q=%25", &one),
            ("q=_", &one),
            ("q=!", nobody),
            ("q=nobody", nobody),
            (&number, std::slice::from_ref(&second)),
        ];
        for (query, expected) in cases {
            assert_eq!(found(host, query).await, expected, "{query}");
        }
        call(host, Method::DELETE, &second, None).await.ok();
        assert_eq!(found(host, "").await, [third, first]);
        let refused = host.get(&format!("{PATH}?currency=naira")).await;
        assert_eq!(refused.refused(), (400, "invalid_filter"));
        let live = host.get_as(&host.merchant.live_key, PATH).await.ok();
        assert_eq!(live.json["data"], json!([]));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_name_email_and_phone_change(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = save(host, recipient(1)).await.ok().id();
        host.advance(60);
        let body = json!({ "name": "New", "email": "x@y.ng", "unknown_to_us": 1 });
        let changed = call(host, Method::PATCH, &id, Some(body)).await.ok();
        assert_eq!(
            (&changed.json["name"], &changed.json["email"]),
            (&json!("New"), &json!("x@y.ng"))
        );
        assert_eq!(changed.json["updated_at"], "2026-11-21T09:01:00.000Z");
        assert_eq!(changed.json, call(host, Method::GET, &id, None).await.ok().json);
        // A wrong one is taken away, not only replaced.
        let emptied = json!({ "email": "", "phone": " " });
        let emptied = call(host, Method::PATCH, &id, Some(emptied)).await.ok();
        assert_eq!((&emptied.json["email"], &emptied.json["phone"]), (&Value::Null, &Value::Null));
        for field in ["account_number", "bank_code", "currency", "interac_email"] {
            let refused =
                call(host, Method::PATCH, &id, Some(json!({ field: "0123456785" }))).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
        }
        // Whoever deletes it at the same time is told that it is deleted.
        let gone = (0..6).map(|_| call(host, Method::DELETE, &id, None));
        for gone in futures::future::join_all(gone).await {
            gone.ok();
        }
        let refused = call(host, Method::PATCH, &id, Some(json!({ "name": "x" }))).await;
        assert_eq!(refused.refused(), (404, "beneficiary_not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_beneficiary_is_shown_and_not_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = save(host, recipient(1)).await.ok().id();
        let payment = with(naira(100_000), json!({ "beneficiary_id": id, "recipient": null }));
        let paid = host.pay("paid", payment.clone()).await.ok();
        assert_eq!(paid.json["recipient_account"], account(1));
        assert_eq!(paid.json["beneficiary_id"], id);
        let over = with(payment.clone(), to(2));
        assert_eq!(host.pay("paid", over).await.ok().json["recipient_account"], account(1));
        for was_already_deleted in [false, true] {
            let body = Some(json!({ "reason": "moved out" }));
            let deleted = call(host, Method::DELETE, &id, body).await.ok();
            let expected = json!({ "object": "beneficiary_delete_result", "id": id,
                "deleted": true, "was_already_deleted": was_already_deleted });
            assert_eq!(deleted.json, expected);
        }
        let shown = call(host, Method::GET, &id, None).await.ok();
        assert_eq!(shown.json["is_archived"], true);
        assert_eq!(shown.json["deleted_at"], "2026-11-21T09:00:00.000Z");
        assert_eq!(shown.json["deleted_account_number"], account(1));
        assert_ne!(shown.json["account_number"], account(1));
        let refused = host.pay("paid", payment).await;
        assert_eq!(refused.refused(), (404, "beneficiary_not_found"));
        assert_eq!(refused.field(), "beneficiary_id");
        let other = host.new_merchant("Other").await;
        for key in [&other.test_key, &host.merchant.live_key] {
            let refused = host.get_as(key, &format!("{PATH}/{id}")).await;
            assert_eq!(refused.refused(), (404, "beneficiary_not_found"));
        }
        let inline = with(naira(100_000), to(1));
        assert_eq!(host.pay("paid", inline).await.ok().json["beneficiary_id"], id);
        assert_eq!(call(host, Method::GET, &id, None).await.ok().json["is_archived"], false);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payout_saves_its_recipient_under_the_name_on_record(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let inline = json!({ "recipient": { "account_number": account(1), "bank_code": "000013",
            "name": "Somebody Else" } });
        let too_much = with(naira(900_000_000), inline.clone());
        assert_eq!(host.pay("paid", too_much).await.refused().1, "insufficient_funds");
        assert_eq!(found(host, "").await, Vec::<String>::new(), "nothing without a payout");
        let payout = host.pay("paid", with(naira(100_000), inline)).await.ok();
        assert_eq!(payout.json["recipient_name"], "ADA ADEYEMI");
        assert_eq!(payout.json["recipient_bank_code"], "058");
        let ids = found(host, "").await;
        assert_eq!(json!(ids), json!([payout.json["beneficiary_id"]]));
        let saved = call(host, Method::GET, &ids[0], None).await.ok();
        assert_eq!(
            (&saved.json["source"], &saved.json["account_name"]),
            (&json!("auto"), &json!("ADA ADEYEMI"))
        );
        let nameless = host.pay("paid", with(naira(100_000), to(2))).await.ok();
        let id = nameless.json["beneficiary_id"].as_str().expect("an id");
        let saved = call(host, Method::GET, id, None).await.ok();
        assert_eq!(saved.json["name"], saved.json["account_name"]);
        let same = save(host, recipient(1)).await;
        assert_eq!((same.status, same.id()), (200, ids[0].clone()));
    })
    .await;
}

/// Saved anew with another method, it is paid by that one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_is_paid_by_the_method_that_it_was_saved_with_last(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.fund(&host.merchant.test_key.clone(), "EUR", 10_000_000).await;
        let euros = |method: Value| {
            json!({ "currency": "EUR", "name": "Jane Smith", "email": "jane@example.com",
                "bank": { "iban": "DE89370400440532013000", "bic_code": "COBADEFFXXX",
                    "method": method },
                "country": "DE", "address": { "street": "Hauptstrasse 1", "city": "Koeln",
                    "zip_code": "50667" } })
        };
        let id = save(host, euros(Value::Null)).await.ok().id();
        let again = save(host, euros(json!("sepa-instant"))).await.ok();
        assert_eq!((again.status, again.id()), (200, id.clone()));
        let to = json!({ "beneficiary_id": id, "currency": "EUR", "amount_minor": "125050" });
        let paid = host.pay("paid", to.clone()).await.ok();
        assert_eq!(paid.json["method"], "sepa-instant");
        save(host, euros(json!("sepa"))).await.ok();
        let paid = host.pay("paid", with(to, json!({ "allow_duplicate": true }))).await.ok();
        assert_eq!(paid.json["method"], "sepa");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_recipient_is_neither_saved_nor_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = save(host, recipient(1)).await.ok().id();
        for (scope, code) in
            [("merchant", "beneficiary_blacklisted"), ("platform", "beneficiary_globally_blocked")]
        {
            let block = json!({ "scope": scope, "currency": "NGN", "bank_code": "058",
                "account_number": account(1), "reason": "test" });
            let block = match scope {
                "merchant" => with(block, json!({ "merchant_id": host.merchant.id })),
                _ => block,
            };
            let block = host.admin(Method::POST, "blacklist", block).await.ok().id();
            let saved = json!({ "beneficiary_id": id, "recipient": null });
            for who in [to(1), saved.clone()] {
                let refused = host.pay("paid", with(naira(100_000), who)).await;
                assert_eq!(refused.refused(), (403, code));
            }
            let refused = save(host, recipient(1)).await;
            assert_eq!(refused.refused(), (400, "beneficiary_blacklisted"));
            let shown = call(host, Method::GET, &id, None).await.ok();
            assert_eq!(shown.json["is_blacklisted"], true);
            host.admin(Method::DELETE, &format!("blacklist/{block}"), json!({})).await.ok();
            host.pay("paid", with(naira(100_000), saved)).await.ok();
            save(host, recipient(1)).await.ok();
        }
    })
    .await;
}
