//! What operators see and do about windows and files of payments.

use http::Method;
use railhead::config::{ApprovalAct, Config};
use railhead::verify::Wanted;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{UNTIL_MONDAY, funded, pay_live, reference, until_files};
use crate::bank::Bank;
use crate::live::{until, with_bank};
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, unique, with_host, with_host_configured,
};

const NOBODY: &str = "pf_000000000000000000000000";
/// An account of which the simulated bank says nothing by itself.
const UNREPORTED: &str = "9200000001";

/// A payout of the sandbox to an account.
fn dollars(account: &str) -> Value {
    json!({
        "amount_minor": "125050",
        "currency": "USD",
        "recipient": {
            "account_number": account,
            "routing_number": "021000021",
            "account_type": "checking",
            "name": "Jane Smith",
            "bank_name": "JPMorgan Chase",
            "email": "jane@example.com",
            "street": "1 Main Street",
            "city": "Springfield",
            "state": "IL",
            "zip_code": "62701",
            "country": "US",
            "bank_address": { "line1": "383 Madison Avenue", "city": "New York", "country": "US" },
        },
    })
}

async fn read(host: &TestHost, path: &str) -> Answer {
    host.send(Method::GET, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
}

async fn act(host: &TestHost, path: &str) -> Answer {
    host.admin(Method::POST, path, json!({ "reason": "the bank asks for it" })).await
}

async fn list(host: &TestHost, path: &str) -> Vec<Value> {
    read(host, path).await.ok().json["data"].as_array().expect("a list").clone()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}"))
}

/// The next closings over the live route.
async fn live_windows(host: &TestHost) -> Vec<Value> {
    let all = list(host, "windows").await;
    let is_its = |window: &Value| window["env"] == "live" && window["route"] == "usd_ach";
    all.into_iter().filter(is_its).collect()
}

/// Waits until the only file there is has so many deliveries behind it, and stands like this.
async fn until_delivered(host: &TestHost, (state, deliveries): (&str, i64)) -> Value {
    let mut last = Value::Null;
    for _ in 0..1_000 {
        last = list(host, "files").await.remove(0);
        if last["state"] == state && last["deliveries"] == deliveries {
            return last;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{last}, not {state} after {deliveries}");
}

/// Two live payouts in a file that the bank has taken, and on which it does not report before they
/// are settled there; answers its id and theirs.
async fn delivered(host: &TestHost) -> (String, [String; 2]) {
    let key = host.merchant.live_key.clone();
    funded(host, &key).await;
    let ids = [pay_live(host, UNREPORTED).await, pay_live(host, UNREPORTED).await];
    host.advance(UNTIL_MONDAY);
    for id in &ids {
        until(host, id, "processing").await;
    }
    host.advance(2);
    until_files(host, &[("delivered", 1)]).await;
    let files = list(host, "files?state=delivered").await;
    (text(&files[0], "id").to_owned(), ids)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_held_before_it_closes_and_let_go_after(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let ids = [pay_live(host, "77").await, pay_live(host, "88").await];
        host.until_count("SELECT COUNT(*) FROM transfers WHERE due_at > queued_at", 2).await;
        let windows = live_windows(host).await;
        let [window] = windows.as_slice() else { panic!("{windows:?}") };
        assert_eq!((text(window, "route"), text(window, "window")), ("usd_ach", "next-day"));
        assert_eq!(text(window, "closes_at"), "2026-11-23T21:45:00.000Z");
        assert_eq!(text(window, "value_date"), "2026-11-24");
        assert_eq!((&window["payments"], &window["file"]), (&json!(2), &Value::Null));
        let path = format!("windows/{}", text(window, "id"));
        let early = act(host, &format!("{path}/release")).await;
        assert_eq!(early.refused(), (409, "state_conflict"));
        for (reason, code) in [
            (json!({ "reason": "  no  " }), "invalid_field"),
            (json!({ "reason": "x".repeat(501) }), "invalid_field"),
            (json!({}), "missing_field"),
        ] {
            let refused = host.admin(Method::POST, &format!("{path}/hold"), reason).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), "reason"));
        }
        let held = act(host, &format!("{path}/hold")).await.ok();
        assert_eq!(
            (&held.json["is_held"], &held.json["state"]),
            (&json!(true), &json!("collecting"))
        );
        let line = host.last_line().await;
        assert_eq!((&line["action"], &line["subject_id"]), (&json!("file.hold"), &held.json["id"]));
        assert_eq!(line["after"]["reason"], "the bank asks for it");
        assert_eq!(act(host, &format!("{path}/hold")).await.refused(), (409, "state_conflict"));
        host.advance(UNTIL_MONDAY);
        for id in &ids {
            until(host, id, "processing").await;
        }
        // Long after the closing it is still there, beside the next one.
        host.advance(3_600);
        let windows = live_windows(host).await;
        let [window, next] = windows.as_slice() else { panic!("{windows:?}") };
        assert_eq!((&window["payments"], &window["file"]["payments"]), (&json!(2), &json!(2)));
        assert_eq!(window["file"]["is_held"], true);
        assert_eq!(text(next, "closes_at"), "2026-11-24T21:45:00.000Z");
        assert_eq!(next["payments"], 0);
        until_files(host, &[("collecting", 1)]).await;
        let released = act(host, &format!("{path}/release")).await.ok();
        assert_eq!(
            (&released.json["id"], &released.json["is_held"]),
            (&held.json["id"], &json!(false))
        );
        assert_eq!(host.last_line().await["action"], "file.release");
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(act(host, &format!("{path}/hold")).await.refused(), (404, "not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_shown_with_its_payments_and_its_bytes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let (id, payouts) = delivered(host).await;
        let shown = read(host, &format!("files/{id}")).await.ok().json;
        assert_eq!(shown["payments"], json!({ "count": 2, "amount_minor": "250100" }));
        assert_eq!((&shown["entries"], &shown["amount_minor"]), (&json!(2), &json!("250100")));
        assert_eq!((&shown["number"], &shown["may_have_left"]), (&json!(1), &json!(true)));
        let mut listed = list(host, "files?route=usd_ach&state=delivered").await.remove(0);
        listed["payments"] = shown["payments"].clone();
        assert_eq!(listed, shown);
        assert_eq!(list(host, "files?route=other").await, Vec::<Value>::new());
        assert_eq!(list(host, "files?state=unclear").await, Vec::<Value>::new());
        assert_eq!(list(host, &format!("files?starting_after={id}")).await, Vec::<Value>::new());
        let payments = list(host, &format!("files/{id}/payments")).await;
        let of = |name: &str| payments.iter().map(|it| text(it, name).to_owned()).collect();
        let (mut paid, references): (Vec<String>, Vec<String>) = (of("payout_id"), of("reference"));
        assert_eq!(references[0], reference(host, &paid[0]).await);
        paid.sort();
        assert_eq!(paid, payouts);
        assert_eq!(of("entry_key") as Vec<_>, ["121042880000002", "121042880000001"]);
        assert_eq!(of("state") as Vec<_>, ["open", "open"]);
        let page = format!("files/{id}/payments?limit=1");
        let first = read(host, &page).await.ok().json;
        assert_eq!((&first["data"][0], &first["has_more"]), (&payments[0], &json!(true)));
        let after = format!("{page}&starting_after={}", text(&payments[0], "id"));
        let second = read(host, &after).await.ok().json;
        assert_eq!((&second["data"][0], &second["has_more"]), (&payments[1], &json!(false)));
        shows_its_bytes(host, &shown).await;
        for (path, refusal) in [
            (format!("files/{NOBODY}"), (404, "not_found")),
            (format!("files/{NOBODY}/content"), (404, "not_found")),
            (format!("files/{NOBODY}/payments"), (404, "not_found")),
            ("files?state=lost".to_owned(), (400, "invalid_filter")),
            ("files?limit=0".to_owned(), (400, "invalid_limit")),
            (format!("files?starting_after={NOBODY}"), (400, "invalid_field")),
            (format!("files/{id}/payments?starting_after={NOBODY}"), (400, "invalid_field")),
        ] {
            assert_eq!(read(host, &path).await.refused(), refusal, "{path}");
        }
        host.advance(90);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        let figures = host.send(Method::GET, "/metrics", "", &[], None).await.ok().text;
        assert!(figures.contains("railhead_files_waiting{state=\"delivered\"} 1"), "{figures}");
        assert!(figures.contains("railhead_files_waiting{state=\"unclear\"} 0"), "{figures}");
        assert!(!figures.contains("railhead_files_waiting{state=\"acknowledged\"}"), "{figures}");
        assert!(figures.contains("railhead_files_oldest_unacknowledged_seconds 9"), "{figures}");
    })
    .await;
}

/// The bytes are the bank's, and whoever reads them is written down.
async fn shows_its_bytes(host: &TestHost, file: &Value) {
    let content = read(host, &format!("files/{}/content", text(file, "id"))).await.ok();
    assert!(content.text.starts_with("101 "), "{}", content.text);
    let lines: Vec<&str> = content.text.lines().collect();
    assert!(
        lines.len().is_multiple_of(10) && lines.iter().all(|line| line.len() == 94),
        "{lines:?}"
    );
    assert_eq!(content.headers["content-type"], "text/plain");
    let name = format!("attachment; filename=\"{}\"", text(file, "name"));
    assert_eq!(content.headers["content-disposition"], name);
    assert_eq!(content.headers["cache-control"], "no-store");
    let line = host.last_line().await;
    assert_eq!((&line["action"], &line["subject_id"]), (&json!("file.read"), &file["id"]));
    assert_eq!(line["after"]["digest"], file["digest"]);
    assert!(!line.to_string().contains("Jane"), "{line}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_go_once_more_and_are_carried_out_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, payouts) = delivered(host).await;
        assert_eq!(act(host, &format!("files/{id}/hold")).await.refused(), (409, "state_conflict"));
        let again = act(host, &format!("files/{id}/deliver")).await.ok();
        assert_eq!((again.status, &again.json["state"]), (200, &json!("assembled")));
        let line = host.last_line().await;
        assert_eq!((&line["action"], &line["subject_id"]), (&json!("file.deliver"), &json!(id)));
        assert_eq!(line["after"]["may_pay_twice"], true);
        assert_eq!(
            (&line["before"]["state"], &line["after"]["state"]),
            (&json!("delivered"), &json!("assembled"))
        );
        let file = until_delivered(host, ("delivered", 2)).await;
        assert_eq!((&file["id"], &file["digest"]), (&json!(id), &line["after"]["digest"]));
        for payout in &payouts {
            let reference = reference(host, payout).await;
            let url = format!("{}/control/ach/transfers/{reference}/settle", bank.url);
            let answer = reqwest::Client::new().post(url).send().await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.status());
            assert_eq!(bank.transfer(&reference).await.executed, 1);
        }
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        for verb in ["deliver", "hold", "release"] {
            let refused = act(host, &format!("files/{id}/{verb}")).await;
            assert_eq!(refused.refused(), (409, "state_conflict"), "{verb}");
        }
        assert_eq!(
            act(host, &format!("files/{NOBODY}/deliver")).await.refused(),
            (404, "not_found")
        );
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_may_have_takes_two_to_be_delivered_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let url = bank.url.clone();
    let change = |config: &mut Config| {
        config.simulator.url = Some(url);
        config.approvals.two_people = vec![ApprovalAct::Redeliver];
    };
    with_host_configured(engine, change, async |host| {
        let (id, _) = delivered(host).await;
        let path = format!("/admin/v1/files/{id}/deliver");
        let ask = async |who: &str, key: &str| {
            let headers = [("Idempotency-Key", key)];
            let body = json!({ "reason": format!("asked with {key}") });
            host.send(Method::POST, &path, who, &headers, Some(body)).await.ok()
        };
        let waiting = ask(DESK_TOKEN, "first").await;
        assert_eq!((waiting.status, &waiting.json["act"]), (202, &json!("redeliver")));
        assert!(text(&waiting.json["wanted"], "warning").contains("twice"), "{}", waiting.text);
        assert_eq!(ask(DESK_TOKEN, "another").await.status, 202);
        assert_eq!(list(host, "files").await[0]["deliveries"], 1);
        let done = ask(OPERATOR_TOKEN, "second").await;
        assert_eq!(done.status, 200);
        let line = host.last_line().await;
        assert_eq!(line["after"]["requested_by"], "desk");
        until_delivered(host, ("delivered", 2)).await;
        // Repeats are told what came of it, and nothing is delivered a third time.
        assert_eq!(ask(OPERATOR_TOKEN, "second").await.text, done.text);
        assert_eq!(ask(DESK_TOKEN, "first").await.text, waiting.text);
        tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
        assert_eq!(list(host, "files").await[0]["deliveries"], 2);
        bank.prove().await;
    })
    .await;
}

/// In the sandbox the gateway takes no file in one scenario: it waits, and can be held.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_has_not_left_is_held_back_and_delivered_by_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Redeliver];
    with_host_configured(engine, two, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        let payout = host.pay("never_received", dollars("000123456789")).await.ok();
        assert_eq!(payout.status_word(), "processing");
        let file = list(host, "files?state=assembled").await.remove(0);
        assert_eq!((&file["env"], &file["may_have_left"]), (&json!("test"), &json!(false)));
        let path = format!("files/{}", text(&file, "id"));
        let release = act(host, &format!("{path}/release")).await;
        assert_eq!(release.refused(), (409, "state_conflict"));
        act(host, &format!("{path}/hold")).await.ok();
        let set = |is_held: i64| [format!("UPDATE payment_files SET is_held = {is_held}")];
        host.run(&set(0)).await;
        let report = host.report(&Wanted::default()).await;
        assert!(format!("{:?}", report.faults).contains("file-held"), "{:?}", report.faults);
        host.run(&set(1)).await;
        let deliveries = file["deliveries"].as_i64().expect("a number");
        let requery = format!("/v1/payouts/{}/requery", payout.id());
        host.send(Method::POST, &requery, &key, &[], None).await.ok();
        assert_eq!(list(host, "files").await[0]["deliveries"], deliveries);
        let refused = act(host, &format!("{path}/deliver")).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        act(host, &format!("{path}/release")).await.ok();
        until_delivered(host, ("acknowledged", deliveries + 1)).await;
        let windows = list(host, "windows").await;
        let test = windows.iter().find(|window| window["env"] == "test").expect("a window");
        let refused = act(host, &format!("windows/{}/hold", text(test, "id"))).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
    })
    .await;
}

/// A case about a file says so, and is found by the file.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_case_about_a_file_names_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        host.pay_as(&key, &unique(), dollars("9200000012")).await.ok();
        let case = list(host, "cases?kind=file_refused").await.remove(0);
        assert_eq!(case["subject_type"], "file");
        let file = text(&case, "subject_id");
        let shown = read(host, &format!("files/{file}")).await.ok();
        assert_eq!(shown.json["state"], "refused");
        let found = list(host, &format!("cases?subject_id={file}")).await;
        assert_eq!(found, [case]);
    })
    .await;
}

/// Whether a file whose delivery came to nothing may go again, its rail declares.
#[rstest]
#[case::again("idempotent_delivery = true", "assembled")]
#[case::not_again("idempotent_delivery = false", "unclear")]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_says_whether_a_delivery_may_be_made_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] declared: &str,
    #[case] state: &str,
) {
    let folder = crate::repacked::folder("ach", &[("idempotent_delivery = true", declared)]);
    let change = |config: &mut Config| config.modules.dir = Some(folder.path().to_owned());
    with_host_configured(engine, change, async |host| {
        funded(host, &host.merchant.test_key.clone()).await;
        host.pay("provider_down", dollars("000123456789")).await.ok();
        let file = list(host, "files").await.remove(0);
        assert_eq!((text(&file, "state"), &file["may_have_left"]), (state, &json!(true)));
    })
    .await;
}
