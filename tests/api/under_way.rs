//! What operators see of payouts under way: how each stands, and what it waits for.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::pay_live;
use crate::batches::{Payroll, bulk_key, rows};
use crate::file_transport::{Over, acknowledge, close_window, with_files};
use crate::hostile::{hostile, with_hostile};
use crate::lanes::{absent_gateway, patch, route_before, with_two_routes};
use crate::live::{pay, reference, until, until_asked, with_bank};
use crate::team::join;
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira, unique};

async fn list(host: &TestHost, query: &str) -> Value {
    let path = format!("/admin/v1/payouts/under_way?{query}");
    host.get_as(OPERATOR_TOKEN, &path).await.ok().json
}

/// What a payout under way is said to wait for.
async fn standing(host: &TestHost, id: &str) -> Value {
    let path = format!("/admin/v1/payouts/{id}");
    host.get_as(OPERATOR_TOKEN, &path).await.ok().json["under_way"].take()
}

/// Waits until a payout waits for this.
pub(crate) async fn until_it_waits(host: &TestHost, id: &str, wanted: &str) -> Value {
    let mut its = Value::Null;
    for _ in 0..2_000 {
        its = standing(host, id).await;
        if its["waits_for"] == wanted {
            return its;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not {wanted}: {its}");
}

/// Waits until all that is under way waits for this.
async fn until_waits(host: &TestHost, wanted: &str) -> Value {
    let mut found = Value::Null;
    for _ in 0..2_000 {
        found = list(host, "").await["data"].take();
        let all = found.as_array().expect("a list").iter();
        let words: Vec<_> = all.map(|it| it["under_way"]["waits_for"].as_str()).collect();
        if !words.is_empty() && words.iter().all(|word| *word == Some(wanted)) {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not {wanted}: {found}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_left_says_what_keeps_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
        let batch = payroll.make(rows(2)).await.ok().id();
        assert_eq!(list(host, "").await["data"], json!([]), "it waits for approval");
        patch(host, "ngn_nip", json!({ "is_paused": true })).await.ok();
        payroll.decide(OPERATOR_TOKEN, "approve", &batch).await.ok();
        let unrouted = "SELECT COUNT(*) FROM transfers WHERE unrouted_since IS NOT NULL";
        host.until_count(unrouted, 2).await;
        let paused = until_waits(host, "route").await;
        assert_eq!(paused.as_array().expect("two").len(), 2);
        let first = &paused[0];
        assert_eq!(first["merchant_id"], host.merchant.id.as_str());
        assert_eq!((&first["status"], &first["env"]), (&json!("queued"), &json!("live")));
        let its = &first["under_way"];
        assert_eq!((&its["route"], &its["attempt"]), (&json!("ngn_nip"), &Value::Null));
        assert!(its["no_route_since"].is_string() && its["until"].is_null(), "{its}");

        let why = json!({ "reason": "a letter" });
        let wallet = format!("wallets/{}", host.merchant.live_wallet);
        host.admin(Method::POST, &format!("{wallet}/freeze"), why.clone()).await.ok();
        until_waits(host, "wallet").await;
        let merchant = format!("merchants/{}", host.merchant.id);
        host.admin(Method::PATCH, &merchant, json!({ "status": "suspended" })).await.ok();
        until_waits(host, "merchant").await;
        host.admin(Method::PATCH, &merchant, json!({ "status": "active" })).await.ok();
        host.admin(Method::POST, &format!("{wallet}/unfreeze"), why).await.ok();
        until_waits(host, "route").await;
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        // There is a route again, that will be looked for then.
        let waiting = until_waits(host, "turn").await;
        let its = &waiting[0]["under_way"];
        assert_eq!(its["until"], its["next_look_at"]);
        let bounds = |most: Value| json!({ "settings": { "bounds.most_minor": most } });
        patch(host, "ngn_nip", bounds(json!("1"))).await.ok();
        until_waits(host, "any_route").await;
        patch(host, "ngn_nip", bounds(Value::Null)).await.ok();
        until_waits(host, "turn").await;
        let block = json!({
            "scope": "platform", "currency": "NGN", "reason": "reported stolen",
            "bank_code": first["recipient_bank_code"],
            "account_number": first["recipient_account"],
        });
        let block = host.admin(Method::POST, "blacklist", block).await.ok().id();
        let id = first["id"].as_str().expect("an id");
        until_it_waits(host, id, "recipient").await;
        let entry = format!("blacklist/{block}");
        host.admin(Method::DELETE, &entry, json!({})).await.ok();
        until_it_waits(host, id, "turn").await;
        host.advance(30);
        payroll.until(&batch, "completed").await;
        assert_eq!(list(host, "").await["data"], json!([]));
        assert_eq!(standing(host, id).await, Value::Null, "it has ended");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_left_says_what_its_network_said(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        // Nothing is known of it, however often its network is asked.
        let id = pay(host, "0000001015").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        host.advance(5);
        until_asked(host, &id, 1).await;
        let its = standing(host, &id).await;
        assert_eq!((&its["waits_for"], &its["route"]), (&json!("answer"), &json!("ngn_nip")));
        assert_eq!(its["attempt"]["reference"], reference(&payout));
        assert_eq!(
            (&its["attempt"]["may_have_left"], &its["attempt"]["queries"]),
            (&json!(true), &json!(1))
        );
        assert!(its["attempt"]["last_answer"].is_string(), "{its}");
        assert_eq!(its["until"], its["next_look_at"]);
        // After a day a person is told, and it says so.
        host.advance(24 * 3_600);
        until_waits(host, "person").await;
        let its = standing(host, &id).await;
        let cases = &its["cases"];
        assert_eq!((&cases[0]["kind"], &cases[1]), (&json!("outcome_unknown"), &Value::Null));
        let path = format!("/admin/v1/payouts/{id}/timeline");
        let timeline = host.get_as(OPERATOR_TOKEN, &path).await.ok();
        let own = format!("/v1/payouts/{id}/timeline");
        assert_eq!(timeline.json, host.get_as(&host.merchant.live_key, &own).await.ok().json);
        let nobody = "/admin/v1/payouts/po_1/timeline";
        assert_eq!(host.get_as(OPERATOR_TOKEN, nobody).await.refused(), (404, "payout_not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_by_file_names_its_window_and_its_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        let waiting = until_waits(host, "window").await;
        let its = &waiting[0]["under_way"];
        assert_eq!(
            (&its["file"], &its["until"]),
            (&Value::Null, &json!("2026-11-23T21:45:00.000Z"))
        );
        let windows = host.get_as(OPERATOR_TOKEN, "/admin/v1/windows").await.ok();
        let mut windows = windows.json["data"].as_array().expect("windows").iter();
        let own = windows.find(|it| it["route"] == "usd_ach" && it["env"] == "live");
        let window = own.expect("its window")["id"].as_str().expect("an id").to_owned();
        let why = json!({ "reason": "a call from the bank" });
        host.admin(Method::POST, &format!("windows/{window}/hold"), why.clone()).await.ok();
        until_it_waits(host, &id, "held_file").await;
        host.admin(Method::POST, &format!("windows/{window}/release"), why).await.ok();
        until_it_waits(host, &id, "window").await;
        close_window(host, std::slice::from_ref(&id)).await;
        crate::ach::until_files(host, &[("delivered", 1)]).await;
        let its = until_it_waits(host, &id, "file").await;
        assert_eq!(its["until"], Value::Null);
        assert_eq!(its["file"]["state"], "delivered");
        assert!(its["file"]["name"].is_string() && its["attempt"]["reference"].is_string());
        acknowledge(host, server, std::slice::from_ref(&id)).await;
        assert_eq!(standing(host, &id).await, Value::Null);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_found_by_whose_it_is_and_how_old(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let mut ids = Vec::new();
        for _ in 0..3 {
            let id = pay(host, "0000001015").await.ok().id();
            until(host, &id, "processing").await;
            ids.push(id);
            host.advance(2);
        }
        let found = async |query: &str| {
            let page = list(host, query).await;
            let ids = page["data"].as_array().expect("a list").iter();
            let ids: Vec<String> =
                ids.map(|it| it["id"].as_str().expect("an id").to_owned()).collect();
            (ids, page["has_more"] == true)
        };
        assert_eq!(found("").await, (ids.clone(), false), "oldest first");
        assert_eq!(found("limit=2").await, (ids[..2].to_vec(), true));
        let rest = format!("limit=2&starting_after={}", ids[1]);
        assert_eq!(found(&rest).await, (ids[2..].to_vec(), false));
        let own = format!("merchant_id={}&env=live&route=ngn_nip", host.merchant.id);
        assert_eq!(found(&own).await.0, ids);
        for nothing in ["env=test", "merchant_id=c01nobody", "queued_before=2020-01-01"] {
            assert_eq!(found(nothing).await.0, Vec::<String>::new(), "{nothing}");
        }
        let second = host.get_as(OPERATOR_TOKEN, &format!("/admin/v1/payouts/{}", ids[1])).await;
        let before = second.json["queued_at"].as_str().expect("an instant").to_owned();
        assert_eq!(found(&format!("queued_before={before}")).await.0, ids[..1]);
        // Each environment has a route of that name: who says it means the live one.
        let paused = json!({ "is_paused": true });
        let live = host.admin(Method::PATCH, "routes/ngn_nip", paused).await.ok();
        assert_eq!((&live.json["env"], &live.json["is_paused"]), (&json!("live"), &json!(true)));
        let by_id = format!("route={}", live.id());
        assert_eq!(found(&by_id).await.0, ids);
        let tried = host.pay("processing", naira(100_000)).await.ok().id();
        assert_eq!(found("route=ngn_nip&env=test").await.0, [tried.as_str()]);
        assert_eq!(found("route=ngn_nip").await.0.len(), 4);
        assert_eq!(found(&by_id).await.0, ids);
        for (query, code) in [
            ("route=nowhere", "invalid_filter"),
            ("env=dead", "invalid_filter"),
            ("queued_before=soon", "invalid_filter"),
            ("limit=0", "invalid_limit"),
            ("starting_after=x", "invalid_field"),
            ("status=queued", "invalid_filter"),
        ] {
            let path = format!("/admin/v1/payouts/under_way?{query}");
            assert_eq!(host.get_as(OPERATOR_TOKEN, &path).await.refused(), (400, code), "{query}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_can_be_cancelled_by_an_operator_and_by_whoever_may(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let payroll = Payroll { host, key: bulk_key(host, "live").await };
        payroll.set(json!({ "batch_approval_threshold_minor": { "NGN": "1" } })).await;
        let batch = payroll.make(rows(3)).await.ok().id();
        patch(host, "ngn_nip", json!({ "is_paused": true })).await.ok();
        let before = host.balance(&host.merchant.live_wallet).await;
        payroll.decide(OPERATOR_TOKEN, "approve", &batch).await.ok();
        let waiting = until_waits(host, "route").await;
        let ids: Vec<&str> =
            (0..3).map(|row| waiting[row]["id"].as_str().expect("an id")).collect();
        let cancel = async |who: &str, id: &str, key: &str| {
            let (path, why) = (format!("/admin/v1/payouts/{id}/cancel"), "made by mistake");
            let headers = [("idempotency-key", key)];
            host.send(Method::POST, &path, who, &headers, Some(json!({ "reason": why }))).await
        };
        let merchant = host.merchant.id.clone();
        let finance = join(host, &merchant, ("ada", "finance")).await;
        let viewer = join(host, &merchant, ("obi", "viewer")).await;
        let refused = cancel(&viewer.token, ids[0], "k1").await;
        assert_eq!(refused.refused(), (403, "permission_denied"));
        let done = cancel(OPERATOR_TOKEN, ids[0], "k1").await.ok();
        assert_eq!((done.status, done.status_word()), (200, "cancelled"));
        assert_eq!(cancel(OPERATOR_TOKEN, ids[0], "k1").await.ok().text, done.text, "a repeat");
        let again = cancel(OPERATOR_TOKEN, ids[0], "k2").await;
        assert_eq!(again.refused(), (409, "payout_not_cancellable"));
        assert_eq!(host.last_line().await["action"], "payout.cancel");
        // What is under way is for operators.
        let path = format!("/admin/v1/payouts/{}", ids[1]);
        let hers = host.get_as(&finance.token, &path).await.ok();
        assert_eq!(
            (&hers.json["status"], &hers.json["under_way"]),
            (&json!("queued"), &Value::Null)
        );
        let list = host.get_as(&finance.token, "/admin/v1/payouts/under_way").await;
        assert_eq!(list.refused().0, 403);
        cancel(&finance.token, ids[1], "k3").await.ok();
        let nothing =
            host.admin(Method::POST, &format!("payouts/{}/cancel", ids[2]), json!({})).await;
        assert_eq!(nothing.refused(), (400, "missing_field"));
        cancel(OPERATOR_TOKEN, ids[2], "k4").await.ok();
        assert_eq!(host.balance(&host.merchant.live_wallet).await, before);
        payroll.until(&batch, "completed_with_errors").await;
    })
    .await;
}

/// What never left is told as what it waits for: its network, and not another route.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_never_left_waits_for_its_network(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _| {
        // Its name is known from then on.
        let first = pay(host, "0123456785").await.ok().id();
        until(host, &first, "paid").await;
        route_before(host, &absent_gateway(), &[]).await;
        patch(host, "ngn_nip", json!({ "is_paused": true })).await.ok();
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(pay(host, "0123456785").await.ok().id());
        }
        let its = until_it_waits(host, &ids[0], "network").await;
        assert_eq!(its["attempt"]["may_have_left"], false, "{its}");
        assert!(its["until"].is_string(), "{its}");
        patch(host, "ngn_nip", json!({ "is_paused": false })).await.ok();
        host.advance(300);
        for id in &ids {
            until(host, id, "paid").await;
        }
    })
    .await;
}

/// What a network says of a recipient is masked, as it is in the timeline.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_network_repeats_of_a_recipient_is_masked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _| {
        let id = host.pay_as(&host.merchant.live_key, &unique(), hostile("echo")).await.ok();
        let (id, account) = (id.id(), id.json["recipient_account"].clone());
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        let its = standing(host, &id).await;
        let said = its["attempt"]["last_answer"].as_str().expect("words");
        let account = account.as_str().expect("an account");
        assert!(said.contains("is busy") && !said.contains(account), "{said}");
    })
    .await;
}
