//! Nothing that an operator can do is missing from the audit log: the operations come from the
//! contract, so that a new one has to be added here.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::batches;
use crate::live::with_bank;
use crate::packs::{adopt, guard, push};
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira};

/// Operations that leave no line, or cannot be had without a bank of their own, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("backtest_rule_pack", "reads only"),
    ("deliver_file", "tests/api/file_operations.rs looks for its line"),
    ("resolve_case", "tests/api/seams.rs looks for its line"),
    ("release_quarantine", "tests/api/restores.rs looks for its line"),
    ("refuse_approval_request", "tests/api/team_approvals.rs looks for its line"),
    ("accept_invitation", "tests/api/team.rs looks for the lines of what members do themselves"),
    ("adjust_settlement", "tests/api/reconcile.rs looks for the line: it takes two"),
    ("acknowledge_alert", "tests/api/alerts.rs looks for the lines about alerts"),
    ("test_alerts", "the same"),
    ("sign_in", "tests/api/team.rs looks for the lines of what members do themselves"),
    ("sign_out", "the same"),
    ("confirm_session", "the same"),
    ("change_password", "the same"),
    ("begin_otp", "the same"),
    ("confirm_otp", "the same"),
    ("remove_otp", "the same"),
];

struct Call {
    path: String,
    body: Body,
}

enum Body {
    None,
    Json(Value),
    Rules(String),
}

async fn payout(host: &TestHost, scenario: &str, amount: u64) -> String {
    host.pay(scenario, naira(amount)).await.ok().id()
}

/// A transfer that waits for its recipient to claim it.
async fn claimed(host: &TestHost) -> String {
    host.fund(&host.merchant.test_key.clone(), "CAD", 1_000_000).await;
    host.pay("claim", crate::interac::dollars()).await.ok().id()
}

async fn new_key(host: &TestHost) -> String {
    let path = format!("merchants/{}/keys", host.merchant.id);
    host.admin(Method::POST, &path, json!({ "env": "test", "label": "x" })).await.ok().id()
}

fn new_route(name: &str) -> Value {
    json!({ "name": name, "env": "test", "currency": "NGN", "rail": "nip", "position": 9 })
}

fn rate(rate: &str) -> Value {
    json!({ "env": "live", "from": "USD", "to": "NGN", "rate": rate })
}

async fn route(host: &TestHost, name: &str) -> String {
    host.admin(Method::POST, "routes", new_route(name)).await.ok().id()
}

fn block(account: &str) -> Value {
    json!({ "scope": "platform", "currency": "NGN", "bank_code": "058",
            "account_number": account, "reason": "stolen" })
}

fn rules(version: &str) -> String {
    guard(version, "amount_minor", &[("large", "hold", "amount_minor > 90000000")])
}

/// A route that has been paused for long enough.
async fn resting_route(host: &TestHost) -> String {
    let path = format!("routes/{}", route(host, "deleted").await);
    host.admin(Method::PATCH, &path, json!({ "is_paused": true })).await.ok();
    host.advance(11);
    path
}

/// The live closing that is furthest ahead: what has just been closed early stands first in the
/// list until it has gone.
async fn window(host: &TestHost) -> String {
    let path = "/admin/v1/windows";
    let windows = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
    let mut windows = windows["data"].as_array().expect("windows").iter();
    let live = windows.rfind(|window| window["env"] == "live").expect("a live one");
    format!("windows/{}", live["id"].as_str().expect("an id"))
}

/// The file of a window, which is held back afterwards, or not.
async fn file(host: &TestHost, verbs: &[&str]) -> String {
    let (window, mut id) = (window(host).await, String::new());
    for verb in verbs {
        let why = json!({ "reason": "a test" });
        id = host.admin(Method::POST, &format!("{window}/{verb}"), why).await.ok().id();
    }
    format!("files/{id}")
}

fn merchant_b() -> serde_json::Value {
    json!({ "name": "B", "country": "NG" })
}

/// What is done about files and windows.
async fn about_files(host: &TestHost, operation: &str) -> (String, Body) {
    let path = match operation {
        "hold_file" => format!("{}/hold", file(host, &["hold", "release"]).await),
        // What the call before has held back.
        "release_file" => format!("{}/release", file(host, &["release", "hold"]).await),
        "close_window" => {
            // Nothing may hold it back, and it is closed once.
            format!("{}/close", window(host).await)
        }
        "hold_window" => format!("{}/hold", window(host).await),
        // Several close at the same time: the one that is let go is held back first, or again.
        _ => {
            let window = window(host).await;
            let why = json!({ "reason": "a test" });
            host.admin(Method::POST, &format!("{window}/hold"), why).await;
            format!("{window}/release")
        }
    };
    (path, Body::Json(json!({ "reason": "a test" })))
}

/// What is done about routes.
async fn about_routes(host: &TestHost, operation: &str) -> (String, Body) {
    match operation {
        "create_route" => ("routes".into(), Body::Json(new_route("made"))),
        "update_route" => {
            let path = format!("routes/{}", route(host, "changed").await);
            (path, Body::Json(json!({ "is_paused": true })))
        }
        _ => (resting_route(host).await, Body::None),
    }
}

/// What is done about batches that wait.
async fn about_batches(host: &TestHost, operation: &str) -> (String, Body) {
    let id = batches::waiting(host).await;
    let verb = operation.trim_end_matches("_batch");
    (format!("batches/{id}/{verb}"), Body::Json(json!({ "reason": "a test" })))
}

/// What is done about rates.
async fn about_rates(host: &TestHost, operation: &str) -> (String, Body) {
    let limit = json!({ "env": "live", "currency": "NGN" });
    match operation {
        "set_rate" => ("rates".into(), Body::Json(rate("1500"))),
        "import_rates" => ("rates/import".into(), Body::Json(json!({ "rates": [rate("1501")] }))),
        "remove_rate" => {
            host.admin(Method::PUT, "rates", rate("1502")).await.ok();
            ("rates?env=live&from=USD&to=NGN".into(), Body::None)
        }
        _ => ("fx_limits".into(), Body::Json(limit)),
    }
}

/// What is done about members.
async fn about_members(host: &TestHost, operation: &str) -> (String, Body) {
    let path = format!("merchants/{}/members", host.merchant.id);
    let email = format!("{operation}@acme.example");
    let new = json!({ "email": email, "name": "A", "role": "viewer" });
    if operation == "create_member" {
        return (path, Body::Json(new));
    }
    let id = host.admin(Method::POST, &path, new).await.ok().id();
    match operation {
        "update_member" => (format!("members/{id}"), Body::Json(json!({ "role": "finance" }))),
        "remove_member" => (format!("members/{id}"), Body::None),
        _ => (format!("members/{id}/invite"), Body::Json(json!({ "reset_otp": true }))),
    }
}

fn recall(id: &str) -> (String, Body) {
    (format!("payouts/{id}/recall"), Body::Json(json!({ "reason": "a test" })))
}

/// A call about a payout that waits for somebody.
async fn about_what_waits(host: &TestHost, operation: &str) -> (String, Body) {
    let verb = operation.split('_').next().unwrap_or_default();
    let (scenario, amount) = match verb {
        "release" | "reject" => ("fraud_hold", 100_000),
        _ => ("paid", 400_000),
    };
    let path = format!("payouts/{}/{verb}", payout(host, scenario, amount).await);
    (path, Body::Json(json!({ "reason": "a test" })))
}

/// A call of this operation that will succeed.
async fn call(host: &TestHost, operation: &str) -> Call {
    let (merchant, wallet) = (&host.merchant.id, &host.merchant.test_wallet);
    let of_payout = |id: String, action: &str| {
        let body = json!({ "reason": "a test", "evidence": "a letter" });
        (format!("payouts/{id}/{action}"), Body::Json(body))
    };
    let of_guard =
        |verb: &str, version: &str| format!("rule-packs/guard/versions/{version}/{verb}");
    let money = json!({ "amount_minor": "5", "reason": "a test" });
    let (moved, key) =
        (json!({ "timezone": "Africa/Accra" }), json!({ "env": "test", "label": "x" }));
    let (path, body) = match operation {
        "create_merchant" => ("merchants".into(), Body::Json(merchant_b())),
        "update_merchant" => (format!("merchants/{merchant}"), Body::Json(moved)),
        "create_key" => (format!("merchants/{merchant}/keys"), Body::Json(key)),
        "rotate_key" | "revoke_key" => {
            let verb = operation.trim_end_matches("_key");
            (format!("keys/{}/{verb}", new_key(host).await), Body::None)
        }
        "credit_wallet" | "debit_wallet" => {
            let verb = operation.trim_end_matches("_wallet");
            (format!("wallets/{wallet}/{verb}"), Body::Json(money))
        }
        "freeze_wallet" => (format!("wallets/{wallet}/freeze"), Body::None),
        "unfreeze_wallet" => {
            host.admin(Method::POST, &format!("wallets/{wallet}/freeze"), json!({})).await.ok();
            (format!("wallets/{wallet}/unfreeze"), Body::None)
        }
        "approve_payout" | "decline_payout" | "cancel_any_payout" | "release_payout"
        | "reject_payout" => about_what_waits(host, operation).await,
        "mark_payout_paid" => of_payout(payout(host, "processing", 100_000).await, "mark_paid"),
        "mark_payout_failed" => of_payout(payout(host, "processing", 100_000).await, "mark_failed"),
        "recall_payout" => recall(&claimed(host).await),
        "reverse_payout" => of_payout(payout(host, "paid", 100_000).await, "reverse"),
        file if file.ends_with("_file") || file.ends_with("_window") => {
            about_files(host, file).await
        }
        batch if batch.ends_with("_batch") => about_batches(host, batch).await,
        member if member.contains("_member") => about_members(host, member).await,
        "set_rate" | "import_rates" | "remove_rate" | "set_fx_limit" => {
            about_rates(host, operation).await
        }
        "create_route" | "update_route" | "delete_route" => about_routes(host, operation).await,
        "create_block" => ("blacklist".into(), Body::Json(block("0000001015"))),
        "delete_block" => {
            let id = host.admin(Method::POST, "blacklist", block("0123456785")).await.ok().id();
            (format!("blacklist/{id}"), Body::None)
        }
        "push_rule_pack" => ("rule-packs".into(), Body::Rules(rules("77"))),
        "shadow_rule_pack" | "activate_rule_pack" => {
            let verb = operation.trim_end_matches("_rule_pack");
            let version = if verb == "shadow" { "1" } else { "2" };
            push(host, &rules(version)).await.ok();
            (of_guard(verb, version), Body::None)
        }
        "rollback_rule_pack" => {
            adopt(host, &rules("3")).await;
            adopt(host, &rules("4")).await;
            (of_guard("rollback", "3"), Body::None)
        }
        "retire_rule_pack" => {
            adopt(host, &rules("5")).await;
            (of_guard("retire", "5"), Body::None)
        }
        other => panic!("{other} is new: say here how it is called, or why it leaves no line"),
    };
    Call { path, body }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_operator_leaves_one_line_or_says_why_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/openapi.json");
    let document = std::fs::read(file).expect("host/openapi.json");
    let document: Value = serde_json::from_slice(&document).expect("a document");
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if path.starts_with("/admin/v1/") && method != "get" {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("one");
                let id = operation["operationId"].as_str().expect("an id").to_owned();
                operations.push((method, id));
            }
        }
    }
    for (name, _) in EXCEPTIONS {
        assert!(operations.iter().any(|(_, id)| id == name), "{name} is not there any more");
    }
    operations.retain(|(_, id)| EXCEPTIONS.iter().all(|(name, _)| id != name));
    assert!(operations.len() > 20, "{}", operations.len());
    // With a bank, live routes are ready.
    with_bank(engine, async |host, _bank| {
        let path = format!("merchants/{}", host.merchant.id);
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "300000" } });
        host.admin(Method::PATCH, &path, threshold).await.ok();
        for (method, operation) in operations {
            one_line(host, method, &operation).await;
        }
    })
    .await;
}

async fn one_line(host: &TestHost, method: Method, operation: &str) {
    const LINES: &str = "SELECT COUNT(*) FROM audit";
    let Call { path, body } = call(host, operation).await;
    let before = host.count(LINES).await;
    let answer = match body {
        Body::Rules(text) => push(host, &text).await,
        Body::Json(body) => host.admin(method, &path, body).await,
        Body::None => {
            host.send(method, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
        }
    };
    assert!(matches!(answer.status, 200 | 201), "{operation}: {}", answer.text);
    assert_eq!(host.count(LINES).await, before + 1, "{operation}");
    let line = host.last_line().await;
    assert_eq!((&line["actor"], &line["address"]), (&json!("operator"), &json!("127.0.0.1")));
    for field in ["subject_type", "subject_id"] {
        assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{operation}: {line}");
    }
    assert_ne!(line["before"], line["after"], "{operation}: {line}");
    if let (Value::Object(before), Value::Object(after)) = (&line["before"], &line["after"]) {
        let differs =
            after.iter().any(|(name, value)| before.get(name).is_none_or(|before| before != value));
        assert!(differs, "{operation} shows no change: {line}");
    }
}
