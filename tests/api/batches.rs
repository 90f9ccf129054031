//! Batches: all of their payouts are made, or none; how far they have come follows from them.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::account;
use crate::hooks::{listen, with_receiver};
use crate::packs::{adopt, guard};
use crate::test_host::{Answer, Engine, TestHost, unique, with, with_host};

pub(crate) const START: i64 = 100_000_000;
pub(crate) const AMOUNT: i64 = 100_000;
/// What a payout of that amount takes from its wallet, fee and tax included.
pub(crate) const COST: i64 = 101_075;

/// A row that pays 1,000.00 naira to the account of this serial number.
pub(crate) fn row(serial: u32) -> Value {
    json!({
        "amount_minor": AMOUNT.to_string(),
        "recipient_account_number": account_of(serial),
        "recipient_bank_code": "058",
    })
}

/// An account that stands for no scenario of the sandbox.
fn account_of(serial: u32) -> String {
    account(700_000_000 + serial)
}

pub(crate) fn rows(count: u32) -> Vec<Value> {
    (1..=count).map(row).collect()
}

/// A key that batches can be made with.
pub(crate) async fn bulk_key(host: &TestHost, env: &str) -> String {
    let may = json!({
        "env": env,
        "capabilities": ["payout_create", "bulk"],
        "permissions": ["payout_bulk_upload"],
        "ip_allowlist": ["127.0.0.1"],
    });
    host.new_key(&host.merchant.id, may).await
}

/// What makes batches for the merchant of a host.
pub(crate) struct Payroll<'a> {
    pub host: &'a TestHost,
    pub key: String,
}

impl<'a> Payroll<'a> {
    pub(crate) async fn new(host: &'a TestHost) -> Self {
        Self { host, key: bulk_key(host, "test").await }
    }

    pub(crate) async fn send(&self, key: &str, scenario: &str, body: Value) -> Answer {
        let headers = [("idempotency-key", key), ("x-sandbox-scenario", scenario)];
        self.host.send(Method::POST, "/v1/batches", &self.key, &headers, Some(body)).await
    }

    pub(crate) async fn make(&self, items: Vec<Value>) -> Answer {
        self.send(&unique(), "", json!({ "currency": "NGN", "items": items })).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.host.get_as(&self.key, &format!("/v1/batches/{path}")).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Answer {
        let path = format!("/v1/batches/{id}/cancel");
        self.host.send(Method::POST, &path, &self.key, &[], None).await
    }

    pub(crate) async fn until(&self, id: &str, status: &str) -> Answer {
        for _ in 0..3_000 {
            let batch = self.get(id).await.ok();
            if batch.json["status"] == status {
                return batch;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("not {status}: {}", self.get(id).await.text)
    }

    pub(crate) async fn balance(&self) -> i64 {
        self.host.balance(&self.host.merchant.test_wallet).await
    }

    /// Nothing of a refused batch is there.
    pub(crate) async fn prove_nothing_happened(&self) {
        for table in ["batches", "payouts", "transfers", "beneficiaries"] {
            assert_eq!(self.host.count(&format!("SELECT COUNT(*) FROM {table}")).await, 0);
        }
        assert_eq!(self.balance().await, START);
    }

    pub(crate) async fn decide(&self, who: &str, verb: &str, id: &str) -> Answer {
        let path = format!("/admin/v1/batches/{id}/{verb}");
        let body = json!({ "reason": "a reason" });
        self.host.send(Method::POST, &path, who, &[], Some(body)).await
    }

    pub(crate) async fn set(&self, settings: Value) {
        let path = format!("merchants/{}", self.host.merchant.id);
        self.host.admin(Method::PATCH, &path, settings).await.ok();
    }
}

/// A batch that is paid, and known to be.
pub(crate) async fn paid(host: &TestHost) {
    let payroll = Payroll::new(host).await;
    let made = payroll.make(rows(2)).await.ok();
    payroll.until(&made.id(), "completed").await;
    host.until_count("SELECT COUNT(*) FROM batches WHERE completed_at IS NULL", 0).await;
}

/// A batch that waits for approval, whatever others do.
pub(crate) async fn waiting(host: &TestHost) -> String {
    let payroll = Payroll::new(host).await;
    payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
    let one = with(row(1), json!({ "allow_duplicate": true }));
    payroll.make(vec![one]).await.ok().id()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_pays_everybody_and_tells_when_it_is_over(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        listen(host, &receiver.url("/a"), json!(["batch_completed", "payout_paid"])).await;
        let payroll = Payroll::new(host).await;
        let mut items = rows(150);
        items[7]["merchant_reference"] = json!("wages-7");
        let key = unique();
        let body = json!({ "currency": "NGN", "items": items });
        let made = payroll.send(&key, "", body.clone()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let id = made.id();
        for (name, value) in [
            ("object", json!("batch")),
            ("status", json!("approved")),
            ("currency", json!("NGN")),
            ("total_count", json!(150)),
            ("success_count", json!(0)),
            ("failure_count", json!(0)),
            ("in_flight_count", json!(150)),
            ("total_amount_minor", json!("15000000")),
            ("created_at", json!("2026-11-21T09:00:00.000Z")),
            ("approved_at", json!("2026-11-21T09:00:00.000Z")),
            ("completed_at", json!(null)),
            ("wallet_id", json!(host.merchant.test_wallet)),
        ] {
            assert_eq!(made.json[name], value, "{name}");
        }
        let reference = made.json["reference"].as_str().expect("a reference").to_owned();
        assert_eq!(reference, format!("bat_{}", &id[1..]));
        let done = payroll.until(&reference, "completed").await;
        assert_eq!(done.json["status_counts"], json!({ "paid": 150 }));
        assert_eq!(done.json["success_count"], 150);
        assert_eq!(done.json["completed_at"], "2026-11-21T09:00:00.000Z");
        assert_eq!(payroll.balance().await, START - 150 * COST);
        // Page by page, the last row first.
        let page = payroll.get(&format!("{id}/items?limit=100")).await.ok();
        let items = page.json["data"].as_array().expect("items");
        assert_eq!((items.len(), &page.json["has_more"]), (100, &json!(true)));
        assert_eq!(items[0]["recipient_account"], account_of(150));
        let last = items[99]["id"].as_str().expect("an id");
        let next = payroll.get(&format!("{id}/items?limit=100&starting_after={last}")).await.ok();
        let rest = next.json["data"].as_array().expect("items");
        assert_eq!((rest.len(), &next.json["has_more"]), (50, &json!(false)));
        assert_eq!(rest[49]["recipient_account"], account_of(1));
        assert_eq!(rest[42]["merchant_reference"], "wages-7");
        assert!(rest.iter().all(|item| item["batch_id"] == json!(id)));
        let none = payroll.get(&format!("{id}/items?status=failed")).await.ok();
        assert_eq!(none.json["data"], json!([]));
        // Told row by row, and once when it was over.
        let told = receiver.until("/a", 151).await;
        let (over, paid): (Vec<_>, Vec<_>) =
            told.iter().partition(|got| got.header("x-service-event") == "batch_completed");
        assert!(paid.iter().all(|got| got.header("x-service-event") == "payout_paid"));
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].json()["data"], done.json);
        // A repeat is answered the very same.
        let again = payroll.send(&key, "", body).await;
        assert_eq!((again.status, &again.text), (201, &made.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let other = payroll.send(&key, "", json!({ "currency": "NGN", "items": rows(1) })).await;
        assert_eq!(other.refused(), (409, "idempotency_key_conflict"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_first_malformed_row_ends_the_looking(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        for (change, status, code, field) in [
            (json!({ "amount_minor": 5 }), 400, "invalid_amount", "amount_minor"),
            (json!({ "amount_minor": "-5" }), 400, "invalid_amount", "amount_minor"),
            (json!({ "amount_minor": null }), 400, "missing_field", "amount_minor"),
            (
                json!({ "recipient_account_number": "12" }),
                400,
                "invalid_format",
                "recipient_account_number",
            ),
            (
                json!({ "recipient_account_number": null }),
                400,
                "missing_field",
                "recipient.account_number",
            ),
            (json!({ "recipient_bank_code": "ab" }), 400, "invalid_format", "recipient_bank_code"),
            (
                json!({ "sender_date_of_birth": "1990-02-24" }),
                400,
                "invalid_format",
                "sender_date_of_birth",
            ),
            (json!({ "sender_id_type": "fishing" }), 400, "invalid_id_type", "sender_id_type"),
            (json!({ "currency": "GBP" }), 400, "currency_mismatch", "currency"),
            (json!({ "beneficiary_id": "c1" }), 404, "beneficiary_not_found", "beneficiary_id"),
            (json!({ "customer_id": "cus_1" }), 404, "customer_not_found", "customer_id"),
        ] {
            let mut items = rows(5);
            items[3] = with(row(4), change.clone());
            // What is wrong further down is not looked at.
            items[4] = with(row(5), change.clone());
            let refused = payroll.make(items).await;
            assert_eq!(refused.refused(), (status, code), "{change}");
            let place = format!("items[3].{field}");
            assert_eq!(refused.field(), place, "{change}");
            let message = refused.json["error"]["message"].as_str().expect("a message");
            assert!(message.starts_with(&place), "{message}");
            for key in ["violations", "unresolved"] {
                assert!(refused.json["error"].get(key).is_none(), "{}", refused.text);
            }
        }
        for (body, status, code, field) in [
            (json!({ "items": rows(1) }), 400, "missing_field", "currency"),
            (
                json!({ "currency": "GBP", "items": rows(1) }),
                404,
                "currency_not_supported",
                "currency",
            ),
            (json!({ "currency": "NGN" }), 400, "missing_field", "items"),
            (json!({ "currency": "NGN", "items": {} }), 400, "invalid_body", "items"),
            (json!({ "currency": "NGN", "items": [] }), 400, "items_empty", "items"),
            (json!({ "currency": "NGN", "items": rows(151) }), 400, "items_too_many", "items"),
            (json!({ "currency": "NGN", "items": [1] }), 400, "invalid_format", "items[0]"),
        ] {
            let refused = payroll.send(&unique(), "", body).await;
            assert_eq!((refused.refused(), refused.field()), ((status, code), field));
        }
        payroll.prove_nothing_happened().await;
        assert_eq!(host.count("SELECT COUNT(*) FROM idempotency_keys").await, 0);
    })
    .await;
}

/// What is told of rows, and the rows.
fn told(answer: &Answer, key: &str) -> Vec<Value> {
    let rows = answer.json["error"][key].as_array();
    rows.unwrap_or_else(|| panic!("no {key}: {}", answer.text)).clone()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_rows_is_told_of_all_of_them_and_stays_the_answer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        // Only the last of 150 is wrong.
        let mut items = rows(150);
        items[149]["recipient_bank_code"] = json!("999");
        let key = unique();
        let body = json!({ "currency": "NGN", "items": items });
        let refused = payroll.send(&key, "", body.clone()).await;
        assert_eq!(refused.refused(), (422, "unknown_bank_code"));
        let rows_told = told(&refused, "violations");
        assert_eq!(rows_told.len(), 1);
        assert_eq!(rows_told[0]["row_index"], 149);
        assert_eq!(rows_told[0]["input"], "999");
        assert_eq!(rows_told[0]["field"], "recipient_bank_code");
        assert!(rows_told[0]["message"].is_string());
        assert!(refused.json["error"].get("detail").is_none());
        // The key stands for the failed body.
        let again = payroll.send(&key, "", body).await;
        assert_eq!((again.status, &again.text), (422, &refused.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        let mended = payroll.send(&key, "", json!({ "currency": "NGN", "items": rows(1) })).await;
        assert_eq!(mended.refused(), (409, "idempotency_key_conflict"));
        // Nobody is known there, whichever row it is.
        let body = json!({ "currency": "NGN", "items": rows(3) });
        let refused = payroll.send(&unique(), "unresolvable", body).await;
        assert_eq!(refused.refused(), (422, "recipient_unresolvable"));
        let indexes: Vec<_> = told(&refused, "unresolved");
        assert_eq!(indexes.len(), 3);
        assert_eq!(indexes[2]["row_index"], 2);
        assert_eq!(indexes[2]["code"], "recipient_unresolvable");
        // A sender who says nothing.
        payroll.set(json!({ "sender_info_required": true })).await;
        let sender = json!({
            "first_name": "Ada", "last_name": "Obi", "date_of_birth": "1990-02-24",
            "country": "NG", "street": "1 Marina", "city": "Lagos", "state": "LA",
            "zip_code": "100001", "id_type": "nin", "id_number": "12345678901",
            "id_expiry": "2030-01-01", "phone": "+2348000000000", "email": "ada@example.com",
        });
        let mut items = rows(3);
        items[1]["sender"] = sender;
        let refused = payroll.make(items).await;
        assert_eq!(refused.refused(), (422, "sender_info_required"));
        let rows_told = told(&refused, "violations");
        assert_eq!((rows_told.len(), &rows_told[1]["row_index"]), (2, &json!(2)));
        assert!(rows_told[0]["missing"].as_array().is_some_and(|missing| !missing.is_empty()));
        payroll.set(json!({ "sender_info_required": false })).await;
        payroll.prove_nothing_happened().await;
        assert_eq!(host.count("SELECT COUNT(*) FROM idempotency_keys").await, 3);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn rows_count_against_limits_together(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        // What is not named stays as it is.
        let limit = |limits: Value| {
            let none = json!({
                "per_transaction_minor": null, "daily_minor": null, "per_beneficiary_minor": null,
            });
            json!({ "limits": { "NGN": with(none, limits) } })
        };
        payroll.set(limit(json!({ "per_transaction_minor": "100000" }))).await;
        let mut items = rows(3);
        items[0]["amount_minor"] = json!("100001");
        items[2]["amount_minor"] = json!("100001");
        let refused = payroll.make(items).await;
        assert_eq!(refused.refused(), (422, "limit_violation"));
        let rows_told = told(&refused, "violations");
        let kinds: Vec<_> = rows_told.iter().map(|it| (&it["row_index"], &it["kind"])).collect();
        let per_transaction = json!("per_transaction");
        assert_eq!(kinds, [(&json!(0), &per_transaction), (&json!(2), &per_transaction)]);
        // Three of four fit into the day, and two of them to one recipient.
        payroll.set(limit(json!({ "daily_minor": "300000" }))).await;
        let refused = payroll.make(rows(4)).await;
        let rows_told = told(&refused, "violations");
        assert_eq!((rows_told.len(), &rows_told[0]["row_index"]), (1, &json!(3)));
        assert_eq!(rows_told[0]["kind"], "daily");
        payroll.set(limit(json!({ "per_beneficiary_minor": "200000" }))).await;
        let twice = |row| with(row, json!({ "allow_duplicate": true }));
        let refused = payroll.make(vec![row(1), row(2), twice(row(1)), twice(row(1))]).await;
        let rows_told = told(&refused, "violations");
        assert_eq!((rows_told.len(), &rows_told[0]["row_index"]), (1, &json!(3)));
        assert_eq!(rows_told[0]["kind"], "per_beneficiary");
        payroll.prove_nothing_happened().await;
        // All kinds of limits are told at once.
        let limits = json!({ "per_transaction_minor": "100000", "daily_minor": "150000" });
        payroll.set(limit(limits)).await;
        let large = with(row(1), json!({ "amount_minor": "100001" }));
        let refused = payroll.make(vec![large, row(2), row(3)]).await;
        let rows_told = told(&refused, "violations");
        let kinds: Vec<_> = rows_told.iter().map(|it| (&it["row_index"], &it["kind"])).collect();
        assert_eq!(kinds, [(&json!(0), &per_transaction), (&json!(2), &json!("daily"))]);
        payroll.set(limit(json!({}))).await;
        // A line that was copied is a mistake, unless something says that both are meant.
        let refused = payroll.make(vec![row(1), row(2), row(1)]).await;
        assert_eq!(refused.refused(), (429, "beneficiary_cooldown"));
        assert_eq!(refused.field(), "items[2]");
        payroll.prove_nothing_happened().await;
        let named = with(row(1), json!({ "merchant_reference": "overtime" }));
        let made = payroll.make(vec![row(1), row(2), named]).await.ok();
        payroll.until(&made.id(), "completed").await;
        let known = "SELECT COUNT(*) FROM beneficiaries";
        assert_eq!(host.count(known).await, 2);
        // But nobody whom somebody paid a moment ago.
        let refused = payroll.make(vec![row(3), row(1)]).await;
        assert_eq!(refused.refused(), (429, "beneficiary_cooldown"));
        let message = refused.json["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with("items[1]"), "{message}");
        let meant = with(row(1), json!({ "allow_duplicate": true }));
        payroll.make(vec![row(3), meant]).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn fraud_rules_see_the_rows_before_and_hold_nothing_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        let rules = [
            ("third", "block", "count_per_merchant_1h > 2"),
            ("large", "hold", "amount_minor > 100000"),
        ];
        let text = guard("1", "amount_minor count_per_merchant_1h kind", &rules);
        adopt(host, &text).await;
        let mut items = rows(4);
        items[0]["amount_minor"] = json!("100001");
        let key = unique();
        let body = json!({ "currency": "NGN", "items": items });
        let refused = payroll.send(&key, "", body.clone()).await;
        assert_eq!(refused.refused(), (422, "fraud_rule_blocked"));
        // The first one does not go ahead, and is not counted.
        let rows_told = told(&refused, "violations");
        assert_eq!(
            rows_told,
            [
                json!({ "row_index": 0, "action": "hold", "rule_labels": ["large"] }),
                json!({ "row_index": 3, "action": "block", "rule_labels": ["third"] }),
            ]
        );
        assert_eq!(host.count("SELECT COUNT(*) FROM decisions").await, 2);
        let again = payroll.send(&key, "", body).await;
        assert_eq!((again.status, &again.text), (422, &refused.text));
        payroll.prove_nothing_happened().await;
        let made = payroll.make(rows(2)).await.ok();
        payroll.until(&made.id(), "completed").await;
        for (scenario, action) in [("fraud_hold", "hold"), ("fraud_block", "block")] {
            let body = json!({ "currency": "NGN", "items": [row(9)] });
            let refused = payroll.send(&unique(), scenario, body).await;
            let entry = json!({ "row_index": 0, "action": action, "rule_labels": ["sandbox"] });
            assert_eq!(told(&refused, "violations"), [entry]);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_wallets_are_looked_at_before_rows(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        let bulk = json!({
            "env": "test",
            "capabilities": ["bulk"],
            "permissions": ["payout_bulk_upload"],
            "ip_allowlist": ["127.0.0.1"],
        });
        for (change, code) in [
            (json!({ "capabilities": ["payout_create"] }), "bulk_disabled_for_key"),
            (json!({ "ip_allowlist": [] }), "bulk_requires_ip_allowlist"),
            (json!({ "permissions": ["payout_cancel"] }), "permission_denied"),
        ] {
            let key = host.new_key(&host.merchant.id, with(bulk.clone(), change)).await;
            let other = Payroll { host, key };
            // Also before what is wrong with the body.
            let refused = other.send(&unique(), "", json!({})).await;
            assert_eq!(refused.refused(), (403, code));
        }
        let usd = host.fund(&host.merchant.test_key, "USD", 100).await;
        for (wallet, status, code) in [
            ("c000000000000000000000000", 404, "wallet_not_found"),
            (usd.as_str(), 400, "currency_mismatch"),
            (host.merchant.live_wallet.as_str(), 400, "env_mismatch"),
        ] {
            let body = json!({ "currency": "NGN", "items": [{}], "wallet_id": wallet });
            let refused = payroll.send(&unique(), "", body).await;
            assert_eq!(refused.refused(), (status, code));
            assert_eq!(refused.field(), "wallet_id");
        }
        let other = host.new_merchant("Other").await;
        let made = payroll.make(rows(1)).await.ok();
        let may = with(bulk, json!({ "capabilities": ["bulk", "payout_create"] }));
        let strangers = Payroll { host, key: host.new_key(&other.id, may.clone()).await };
        let live = Payroll {
            host,
            key: host.new_key(&host.merchant.id, with(may, json!({ "env": "live" }))).await,
        };
        for stranger in [strangers, live] {
            for answer in [
                stranger.get(&made.id()).await,
                stranger.get(&format!("{}/items", made.id())).await,
                stranger.cancel(&made.id()).await,
            ] {
                assert_eq!(answer.refused(), (404, "batch_not_found"));
            }
        }
        payroll.until(&made.id(), "completed").await;
        let wallet = &host.merchant.test_wallet;
        host.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await.ok();
        // Before the rows, and whether it is named or not.
        let odd = with(row(2), json!({ "recipient_bank_code": "999" }));
        assert_eq!(payroll.make(vec![odd]).await.refused(), (422, "wallet_frozen"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_cannot_pay_all_pays_none_and_the_key_stays_free(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        let large = |serial| with(row(serial), json!({ "amount_minor": "40000000" }));
        let body = json!({ "currency": "NGN", "items": [large(1), large(2), large(3)] });
        let key = unique();
        let refused = payroll.send(&key, "", body.clone()).await;
        assert_eq!(refused.refused(), (422, "insufficient_funds"));
        payroll.prove_nothing_happened().await;
        host.credit(&host.merchant.test_wallet, 100_000_000).await;
        let made = payroll.send(&key, "", body).await.ok();
        payroll.until(&made.id(), "completed").await;
        // A reference of another payout, and the very same twice.
        let named = |serial| with(row(serial), json!({ "merchant_reference": "rent" }));
        payroll.make(vec![named(11)]).await.ok();
        let refused = payroll.make(vec![row(12), named(13)]).await;
        assert_eq!(refused.refused(), (409, "merchant_reference_duplicate"));
        assert_eq!(refused.field(), "items[1].merchant_reference");
        host.advance(31 * 86_400);
        let refused = payroll.make(vec![named(14), row(15), named(16)]).await;
        assert_eq!(refused.refused(), (409, "merchant_reference_duplicate"));
        assert_eq!(refused.field(), "items[2].merchant_reference");
        payroll.make(vec![named(14), row(15)]).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_batches_at_once_the_wallet_pays_what_it_can(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = Payroll::new(host).await;
        // Each takes a little more than 30 % of the wallet, and the same one is sent twice.
        let batch = |number: u32| {
            let rows = (0..10)
                .map(|at| with(row(100 * number + at), json!({ "amount_minor": "3000000" })));
            json!({ "currency": "NGN", "items": rows.collect::<Vec<_>>() })
        };
        let keys: Vec<String> = (0..5).map(|_| unique()).collect();
        let sent = (0..10_usize).map(|at| {
            let (payroll, key) = (&payroll, &keys[at / 2]);
            payroll.send(key, "", batch(u32::try_from(at / 2).expect("small")))
        });
        let answers = futures::future::join_all(sent).await;
        let made: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
        let mut ids: Vec<String> = made.iter().map(|answer| answer.id()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{answers:#?}");
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(refused.refused(), (422, "insufficient_funds"));
        }
        for id in &ids {
            payroll.until(id, "completed").await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 30);
    })
    .await;
}
