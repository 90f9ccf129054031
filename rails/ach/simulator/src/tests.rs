//! The bank as a whole, sent files as an originator sends them.

mod documented;
mod feed;
mod limits;
mod nacha;
mod reading;
mod repeats;
mod scenarios;
mod told;
mod writer;

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Request, State, Transfer};
use serde_json::Value;

use crate::handle;

/// Friday 6 March 2026, 21:00 UTC.
const NOW_MS: u64 = 1_772_830_800_000;

fn install(scenario: &str) {
    let scenario = scenario.to_owned();
    double::install(Host { scenario, now_ms: NOW_MS, ..Host::default() });
}

/// From now on entries that were not seen before play another scenario.
fn play(scenario: &str) {
    double::with(|host| scenario.clone_into(&mut host.scenario));
}

/// Lets the entry of this reference play a scenario of its own, whatever the others play.
fn cast(reference: &str, scenario: &str) {
    let state = State::Lost;
    let transfer = Transfer { scenario: scenario.to_owned(), state, ..crate::page(reference) };
    double::with(|host| host.book.insert(reference.to_owned(), transfer));
}

fn request(method: &str, path: &str, body: &str) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: vec![
            header("authorization", "Bearer simulator"),
            header("content-type", "text/plain; charset=us-ascii"),
        ],
        body: body.as_bytes().to_vec(),
    }
}

fn sent(name: &str, body: &str) -> Answer {
    handle(&request("PUT", &format!("/outgoing/{name}"), body))
}

fn asked(path: &str) -> (u16, String) {
    read(handle(&request("GET", path, "")))
}

fn read(answer: Answer) -> (u16, String) {
    match answer {
        Answer::Response(it) => (it.status, String::from_utf8(it.body).expect("a text")),
        other => panic!("{other:?}"),
    }
}

/// Status and code of an answer that refuses.
fn refusal(answer: Answer) -> (u16, String) {
    let (status, body) = read(answer);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert!(body["message"].is_string(), "{body}");
    (status, body["code"].as_str().expect("a code").to_owned())
}

/// How a file stands, as the gateway tells.
fn standing(name: &str) -> String {
    let (status, body) = asked(&format!("/outgoing/{name}"));
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["name"], name);
    body["status"].as_str().expect("a status").to_owned()
}

/// What lies after a cursor: cursors and names.
fn listed(after: &str) -> Vec<(String, String)> {
    let query = vec![("after".to_owned(), after.to_owned())];
    let (status, body) = read(handle(&Request { query, ..request("GET", "/incoming", "") }));
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let files = body["files"].as_array().expect("a list").iter();
    files.map(|file| (text(&file["cursor"]), text(&file["name"]))).collect()
}

/// The contents of what lies ready, from the beginning.
fn contents() -> Vec<String> {
    let fetched = |(_, name): (String, String)| {
        let (status, body) = asked(&format!("/incoming/{name}"));
        assert_eq!(status, 200, "{name}");
        body
    };
    listed("").into_iter().map(fetched).collect()
}

fn report(content: &str) -> Value {
    let report: Value = serde_json::from_str(content).expect("a report");
    assert_eq!(report["report"], "file");
    report
}

/// Code and trace number of what a report rejects.
fn rejected(report: &Value) -> Vec<(&str, &str)> {
    let entries = report["rejected_entries"].as_array().expect("a list").iter();
    entries
        .map(|it| {
            assert!(it["amount"].is_u64() && it["message"].is_string(), "{it}");
            (it["code"].as_str().expect("a code"), it["trace_number"].as_str().expect("a trace"))
        })
        .collect()
}

fn kept(reference: &str) -> Transfer {
    double::with(|host| host.book[reference].clone())
}

/// How often it arrived, how often it was executed, and how it stands.
fn came_to(reference: &str) -> (u32, u32, State) {
    let kept = kept(reference);
    (kept.received, kept.executed, kept.state)
}

fn errors() -> usize {
    double::with(|host| host.errors.len())
}

fn refused(code: &str) -> State {
    State::Refused(code.to_owned())
}
