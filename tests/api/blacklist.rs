//! Blocked recipients: by the platform for everybody, by a merchant for itself.

use futures::future::join_all;
use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::{account, to};
use crate::live::{until, with_bank};
use crate::test_host::{Answer, Engine, TestHost, naira, unique, with, with_host};

async fn block(host: &TestHost, changes: Value) -> Answer {
    let body = json!({
        "scope": "platform",
        "currency": "NGN",
        "account_number": "0123456785",
        "bank_code": "058",
        "reason": "reported stolen",
    });
    host.admin(Method::POST, "blacklist", with(body, changes)).await
}

async fn unblock(host: &TestHost, id: &str) -> Answer {
    host.admin(Method::DELETE, &format!("blacklist/{id}"), json!({})).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_recipient_is_refused_until_it_is_unblocked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let own = host.merchant.test_key.clone();
        // Paid once by each: what is remembered of it must not hide the block.
        for key in [&own, &other.test_key] {
            host.pay_as(key, &unique(), naira(100_000)).await.ok();
        }
        let list = host.get("/v1/beneficiaries").await.ok();
        let saved = list.json["data"][0]["id"].as_str().expect("an id").to_owned();
        let to_saved = with(naira(100_000), json!({ "recipient": null, "beneficiary_id": saved }));
        let merchant = json!({ "scope": "merchant", "merchant_id": host.merchant.id });
        for (changes, code, is_for_all) in [
            (json!({}), "beneficiary_globally_blocked", true),
            // The six-digit code of the same bank names the same account.
            (json!({ "bank_code": "000013" }), "beneficiary_globally_blocked", true),
            (merchant, "beneficiary_blacklisted", false),
        ] {
            let entry = block(host, changes).await.ok();
            assert_eq!(entry.status, 201);
            for body in [naira(100_000), to_saved.clone()] {
                let refused = host.pay_as(&own, &unique(), body).await;
                assert_eq!(refused.refused(), (403, code));
                assert_eq!(refused.json["error"]["type"], "permission_error");
            }
            let live = host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await;
            assert_eq!(live.refused(), (403, code));
            let theirs = host.pay_as(&other.test_key, &unique(), naira(100_000)).await;
            assert_eq!(theirs.status, if is_for_all { 403 } else { 201 });
            let save = json!({ "currency": "NGN", "name": "Ada", "account_number": "0123456785",
                               "bank_code": "058" });
            let save = host.post("/v1/beneficiaries", save).await;
            assert_eq!(save.refused(), (400, "beneficiary_blacklisted"));
            let shown = host.get(&format!("/v1/beneficiaries/{saved}")).await.ok();
            assert_eq!(shown.json["is_blacklisted"], true, "{code}");
            let removed = unblock(host, &entry.id()).await.ok();
            assert_eq!(removed.json, entry.json);
            for body in [naira(100_000), to_saved.clone()] {
                host.pay_as(&own, &unique(), body).await.ok();
            }
            let shown = host.get(&format!("/v1/beneficiaries/{saved}")).await.ok();
            assert_eq!(shown.json["is_blacklisted"], false, "{code}");
            assert_eq!(unblock(host, &entry.id()).await.refused(), (404, "not_found"));
        }
    })
    .await;
}

/// Whoever is paid at once is looked up together.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_payouts_made_at_once_are_not_taken_for_each_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const BLOCKED_FOR_ALL: u32 = 3;
    const BLOCKED_FOR_ONE: u32 = 5;
    const DELETED: u32 = 7;
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let (own, theirs) = (&host.merchant.test_key, &other.test_key);
        let mut saved = Vec::new();
        for (key, serial) in (1..=12).flat_map(|serial| [(own, serial), (theirs, serial)]) {
            let paid = host.pay_as(key, &unique(), with(naira(100_000), to(serial))).await.ok();
            let id = paid.json["beneficiary_id"].as_str().expect("an id").to_owned();
            saved.push((key, serial, id));
        }
        block(host, json!({ "account_number": account(BLOCKED_FOR_ALL) })).await.ok();
        let for_one = json!({ "account_number": account(BLOCKED_FOR_ONE), "scope": "merchant",
                              "merchant_id": host.merchant.id });
        block(host, for_one).await.ok();
        let is_deleted = |key: &String, serial| key == own && serial == DELETED;
        for (key, _, id) in saved.iter().filter(|(key, serial, _)| is_deleted(key, *serial)) {
            let path = format!("/v1/beneficiaries/{id}");
            let body = Some(json!({ "reason": "moved out" }));
            host.send(Method::DELETE, &path, key, &[], body).await.ok();
        }
        let pay = async |(key, serial, id): &(&String, u32, String)| {
            let by_id = json!({ "recipient": null, "beneficiary_id": id });
            let to_saved = host.pay_as(key, &unique(), with(naira(100_000), by_id)).await;
            let expected = match *serial {
                BLOCKED_FOR_ALL => Some((403, "beneficiary_globally_blocked")),
                BLOCKED_FOR_ONE if key == &own => Some((403, "beneficiary_blacklisted")),
                DELETED if key == &own => Some((404, "beneficiary_not_found")),
                _ => None,
            };
            match expected {
                Some(expected) => assert_eq!(to_saved.refused(), expected, "{serial}"),
                None => assert_eq!(to_saved.ok().json["recipient_account"], account(*serial)),
            }
            // Whoever is paid again by account is saved again.
            let inline = host.pay_as(key, &unique(), with(naira(100_000), to(*serial))).await;
            match expected.filter(|_| *serial != DELETED) {
                Some(expected) => assert_eq!(inline.refused(), expected, "{serial}"),
                None => assert_eq!(inline.ok().json["beneficiary_id"], *id, "{serial}"),
            }
            // What belongs to somebody else is not there.
            let foreign = if key == &own { theirs } else { own };
            let body = with(naira(100_000), json!({ "recipient": null, "beneficiary_id": id }));
            let refused = host.pay_as(foreign, &unique(), body).await;
            assert_eq!(refused.refused(), (404, "beneficiary_not_found"));
        };
        join_all(saved.iter().map(pay)).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_is_blocked_once_in_each_scope(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = json!({ "scope": "merchant", "merchant_id": host.merchant.id });
        let first = block(host, json!({})).await.ok();
        host.advance(1);
        let second = block(host, merchant.clone()).await.ok();
        for changes in [json!({}), merchant, json!({ "bank_code": "000013", "reason": "again" })] {
            assert_eq!(block(host, changes).await.refused(), (409, "state_conflict"));
        }
        let list = host.admin(Method::GET, "blacklist", json!({})).await.ok();
        assert_eq!(list.json["data"], json!([second.json, first.json]));
        assert_eq!(second.json["merchant_id"], host.merchant.id);
        assert_eq!(
            (&first.json["scope"], &first.json["merchant_id"]),
            (&json!("platform"), &Value::Null)
        );
        assert_eq!(first.json["reason"], "reported stolen");
        let page = host.admin(Method::GET, "blacklist?limit=1", json!({})).await.ok();
        assert_eq!(page.json["has_more"], true);
        let path = format!("blacklist?limit=1&starting_after={}", second.id());
        let page = host.admin(Method::GET, &path, json!({})).await.ok();
        assert_eq!(
            (&page.json["has_more"], &page.json["data"]),
            (&json!(false), &json!([first.json]))
        );
    })
    .await;
}

/// Of those who block a recipient at the same moment one does, and the audit log says so once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_is_blocked_once_by_several_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let mut blocked = join_all((0..6).map(|_| block(host, json!({})))).await;
        blocked.sort_by_key(|answer| answer.status);
        for refused in &blocked[1..] {
            assert_eq!(refused.refused(), (409, "state_conflict"));
        }
        let logged = "SELECT COUNT(*) FROM audit WHERE action = 'blacklist.add'";
        assert_eq!(host.count(logged).await, 1);
        // Taken off, it is blocked again at once.
        unblock(host, &blocked[0].id()).await.ok();
        block(host, json!({})).await.ok();
    })
    .await;
}

/// By another network of its currency an account may be another recipient, and is the same account.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_account_is_blocked_by_whichever_method(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        host.fund(&key, "USD", 10_000_000).await;
        let same = json!({ "account_number": "000123456789", "routing_number": "121042882" });
        let bodies = [crate::ach::dollars(same.clone()), crate::hours::wire()];
        for (named, paid) in [(0, 1), (1, 0)] {
            let method = json!({ "currency": "USD", "bank_code": null,
                "method": bodies[named]["recipient"]["method"] });
            let entry = block(
                host,
                with(
                    with(
                        same.clone(),
                        json!({ "reason": "stolen",
                "scope": "platform" }),
                    ),
                    method,
                ),
            )
            .await
            .ok();
            for body in [&bodies[named], &bodies[paid]] {
                let refused = host.pay_as(&key, &unique(), body.clone()).await;
                assert_eq!(refused.refused(), (403, "beneficiary_globally_blocked"));
            }
            unblock(host, &entry.id()).await.ok();
        }
        // Nor is it paid by one method just after the other.
        let once = |body: &Value| with(body.clone(), json!({ "allow_duplicate": null }));
        host.pay_as(&key, &unique(), once(&bodies[0])).await.ok();
        let again = host.pay_as(&key, &unique(), once(&bodies[1])).await;
        assert_eq!(again.refused().1, "beneficiary_cooldown", "{}", again.text);
    })
    .await;
}

/// A wire that waits for its network to open does not leave for whom is blocked meanwhile.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_to_be_sent_does_not_leave_for_whom_is_blocked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let key = host.merchant.live_key.clone();
        host.fund(&key, "USD", 10_000_000).await;
        let id = host.pay_as(&key, &unique(), crate::hours::wire()).await.ok().id();
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 1).await;
        host.advance(24 * 3600);
        let entry = block(
            host,
            json!({ "currency": "USD", "bank_code": null, "method": "wire",
            "account_number": "000123456789", "routing_number": "121042882" }),
        )
        .await
        .ok();
        host.advance(17 * 3600);
        let put_off =
            format!("SELECT COUNT(*) FROM transfers WHERE due_at > {}", host.clock.now().micros());
        host.until_count(&put_off, 1).await;
        crate::overtaken::until_one_case(host, "cannot_send").await;
        let attempts = "SELECT COUNT(*) FROM attempts WHERE sends > 0";
        assert_eq!(host.count(attempts).await, 0);
        unblock(host, &entry.id()).await.ok();
        host.advance(3600);
        until(host, &id, "paid").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_names_nobody_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (changes, status, code, field) in [
            (json!({ "scope": null }), 400, "missing_field", "scope"),
            (json!({ "scope": "country" }), 400, "invalid_field", "scope"),
            (json!({ "scope": 1 }), 400, "invalid_field", "scope"),
            (json!({ "scope": "merchant" }), 400, "missing_field", "merchant_id"),
            (json!({ "scope": "merchant", "merchant_id": "c0" }), 404, "not_found", ""),
            (json!({ "currency": null }), 400, "missing_field", "currency"),
            (json!({ "currency": "naira" }), 400, "invalid_field", "currency"),
            (json!({ "reason": null }), 400, "missing_field", "reason"),
            (json!({ "reason": " " }), 400, "missing_field", "reason"),
            (json!({ "account_number": null }), 400, "missing_field", "account_number"),
            (json!({ "account_number": 123_456_785 }), 400, "invalid_field", "account_number"),
            (json!({ "account_number": "12345" }), 400, "invalid_field", "account_number"),
            (json!({ "bank_code": "999" }), 422, "unknown_bank_code", "bank_code"),
        ] {
            let refused = block(host, changes.clone()).await;
            assert_eq!(refused.refused(), (status, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM blacklist").await, 0);
    })
    .await;
}

/// What waits for a person, and whose recipient is blocked meanwhile, or whose merchant is suspended,
/// does not go.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_approval_does_not_go_to_whom_nothing_could_be_paid_any_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let merchant = format!("merchants/{}", host.merchant.id);
        let change = async |body: Value| host.admin(Method::PATCH, &merchant, body).await.ok();
        change(json!({ "dual_control_threshold_minor": { "NGN": "1000" } })).await;
        let draft = host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await.ok();
        assert_eq!(draft.status_word(), "draft");
        let left = host.balance(&host.merchant.live_wallet).await;
        let path = format!("payouts/{}/approve", draft.id());
        let approve = async || host.admin(Method::POST, &path, json!({})).await;

        let own = json!({ "scope": "merchant", "merchant_id": host.merchant.id });
        for (changes, code) in
            [(json!({}), "beneficiary_globally_blocked"), (own, "beneficiary_blacklisted")]
        {
            let entry = block(host, changes).await.ok();
            assert_eq!(approve().await.refused(), (403, code));
            unblock(host, &entry.id()).await.ok();
        }
        let limits =
            |most: Value| json!({ "limits": { "NGN": { "per_transaction_minor": most } } });
        change(limits(json!("99999"))).await;
        let refused = approve().await;
        assert_eq!((refused.refused(), refused.field()), ((422, "limit_violation"), ""));
        change(limits(json!(null))).await;
        change(json!({ "status": "suspended" })).await;
        assert_eq!(approve().await.refused(), (403, "merchant_suspended"));
        change(json!({ "status": "active" })).await;
        assert_eq!(host.balance(&host.merchant.live_wallet).await, left);
        assert_eq!(approve().await.ok().status_word(), "queued");
    })
    .await;
}

/// What payouts call a bank is its code, whatever its network calls it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_is_named_as_payouts_name_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (currency, bank, own) in
            [("GBP", "040004", "sort_code"), ("USD", "121042882", "routing_number")]
        {
            let of = json!({ "currency": currency, "account_number": "12345678" });
            let blocked = block(host, with(of, json!({ "bank_code": bank }))).await.ok();
            assert_eq!(blocked.json["recipient"][own], bank, "{}", blocked.text);
        }
    })
    .await;
}
