//! Rules for tests: written, pushed, assigned, and read back from what was decided.

use std::fmt::Write as _;
use std::time::Duration;

use http::Method;
use railhead::config::Config;
use serde_json::{Value, json};

use crate::network::start_again;
use crate::test_host::{Answer, OPERATOR_TOKEN, TestHost, config};

pub(crate) const PACKS: &str = "rule-packs";
/// Every plain fact, for packs that only look.
pub(crate) const PLAIN: &str = "merchant env currency method kind amount_minor recipient \
    recipient_name bank_code name_match first_payment recipient_age_s merchant_age_s \
    wallet_age_s hour weekday customer sender_country funding_currency funding_amount_minor";

/// One rule: label, action and condition.
pub(crate) type Rule<'a> = (&'a str, &'a str, &'a str);

/// The text of a fraud pack `guard`, with facts by name separated by spaces.
pub(crate) fn guard(version: &str, facts: &str, rules: &[Rule<'_>]) -> String {
    pack("guard", version, facts, rules)
}

pub(crate) fn pack(name: &str, version: &str, facts: &str, rules: &[Rule<'_>]) -> String {
    let facts: Vec<&str> = facts.split_whitespace().collect();
    let mut text = head("fraud", (name, version), &facts);
    for (label, action, when) in rules {
        let reason = format!("The rule {label} says so.");
        let rule = format!(
            "[[rule]]\nlabel = {label:?}\naction = {action:?}\nwhen = {when:?}\n\
             reason = {reason:?}\n"
        );
        text.push_str(&rule);
    }
    text
}

/// A fee pack whose prices are this text.
pub(crate) fn fees(version: &str, prices: &str) -> String {
    let facts = ["merchant", "currency", "method", "kind", "amount_minor"];
    head("fees", ("prices", version), &facts) + prices
}

fn head(kind: &str, (name, version): (&str, &str), facts: &[&str]) -> String {
    let mut text = String::from("manifest = 1\n[pack]\ncontract = \"railhead:rules@0.1.0\"\n");
    writeln!(text, "title = \"Rules of a test\"\nkind = {kind:?}").expect("written");
    writeln!(text, "name = {name:?}\nversion = {version:?}\nfacts = {facts:?}").expect("written");
    text
}

/// Pushes bytes of some type as this operator.
pub(crate) async fn push_as(host: &TestHost, token: &str, kind: &str, body: Vec<u8>) -> Answer {
    let path = "/admin/v1/rule-packs";
    let request = host.client.post(format!("{}{path}", host.base)).bearer_auth(token);
    let sent = request.header("content-type", kind).body(body).send().await;
    let answer = Answer::of(sent.expect("an answer")).await;
    host.check_declared(&Method::POST, path, &answer).await;
    answer
}

pub(crate) async fn push(host: &TestHost, rules: &str) -> Answer {
    push_as(host, OPERATOR_TOKEN, "application/toml", rules.into()).await
}

/// Does something with a version, such as `guard/1`.
pub(crate) async fn assign(host: &TestHost, version: &str, verb: &str, body: Value) -> Answer {
    assign_as(host, OPERATOR_TOKEN, (version, verb), body).await
}

pub(crate) async fn assign_as(
    host: &TestHost,
    token: &str,
    (version, verb): (&str, &str),
    body: Value,
) -> Answer {
    let (name, version) = version.split_once('/').expect("name/version");
    let path = format!("/admin/v1/{PACKS}/{name}/versions/{version}/{verb}");
    host.send(Method::POST, &path, token, &[], Some(body)).await
}

/// Pushes rules, which must pass their checks, and lets them decide for everybody.
pub(crate) async fn adopt(host: &TestHost, rules: &str) -> Answer {
    let pushed = push(host, rules).await.ok();
    assert_eq!(pushed.json["conformance"]["failures"], json!([]), "{}", pushed.text);
    assign(host, &version_of(&pushed), "activate", json!({})).await.ok()
}

/// `name/version` of a pack as it is shown.
pub(crate) fn version_of(pack: &Answer) -> String {
    let part = |name: &str| pack.json[name].as_str().expect("a text").to_owned();
    format!("{}/{}", part("name"), part("version"))
}

/// Waits until this host decides by a change of assignments.
pub(crate) async fn until_seen(host: &TestHost, change: &Answer) {
    let generation = change.json["generation"].as_i64().expect("a generation");
    for _ in 0..2_000 {
        if host.app().packs.now().generation >= generation {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the change {generation} did not arrive");
}

/// A version as it is shown.
pub(crate) async fn shown(host: &TestHost, version: &str) -> Value {
    let (name, number) = version.split_once('/').expect("name/version");
    let path = format!("{PACKS}/{name}/versions/{number}");
    read(host, &path).await.ok().json
}

/// What the operator reads.
pub(crate) async fn read(host: &TestHost, path: &str) -> Answer {
    host.send(Method::GET, &format!("/admin/v1/{path}"), OPERATOR_TOKEN, &[], None).await
}

/// The decision about a payout.
pub(crate) async fn decision(host: &TestHost, payout: &str) -> Value {
    let path = format!("payouts/{payout}/decision");
    read(host, &path).await.ok().json
}

/// The id under which a refusal can be looked up.
#[track_caller]
pub(crate) fn blocked(answer: &Answer) -> String {
    assert_eq!(answer.refused(), (422, "fraud_rule_blocked"), "{}", answer.text);
    answer.json["error"]["detail"]["decision_id"].as_str().expect("an id").to_owned()
}

/// Stops the host and starts another one on its database.
pub(crate) async fn restart(host: &mut TestHost, change: impl FnOnce(&mut Config)) {
    host.running.take().expect("a host").stop().await.expect("stopped in order");
    let mut config = config(&host.database);
    change(&mut config);
    start_again(host, config).await;
}

/// Actions of the audit log, newest first, with who did them.
pub(crate) async fn audited(host: &TestHost) -> Vec<(String, String)> {
    let log = read(host, "audit?limit=100").await.ok();
    let lines = log.json["data"].as_array().expect("lines").clone();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or("").to_owned();
    let lines = lines.iter().map(|line| (text(line, "action"), text(line, "actor")));
    let is_about_packs =
        |action: &str| action.starts_with("rule_pack.") || action == "approval.request";
    lines.filter(|(action, _)| is_about_packs(action)).collect()
}

/// Waits until something holds, or fails.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..3_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}
