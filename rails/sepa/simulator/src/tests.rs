//! The bank as a whole, sent what an originator sends it.

mod broken;
mod instant;
mod sent;

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Request, State, Transfer};

use crate::handle;

/// A file of one payment, written by a program that is neither rail nor simulator.
const FILE: &str = include_str!("../fixtures/file.xml");
/// Its name, its payment and the payment's account.
const NAME: &str = "RF2026030600000004201A1FD557A80.xml";
const REFERENCE: &str = "RE01A1FD557A800000000002";
/// An instant payment, a question about it, and its recall.
const PAYMENT: &str = include_str!("../fixtures/payment.xml");
const QUESTION: &str = include_str!("../fixtures/question.xml");
const RECALL: &str = include_str!("../fixtures/recall.xml");
const INSTANT: &str = "RJ01A1FD557A800000000002";

/// Friday 6 March 2026, 21:00 UTC.
const NOW_MS: u64 = 1_772_830_800_000;

fn install(scenario: &str) {
    let scenario = scenario.to_owned();
    double::install(Host { scenario, now_ms: NOW_MS, ..Host::default() });
}

fn request(method: &str, path: &str, kind: &str, body: &str) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: vec![
            header("authorization", "Bearer simulator"),
            header("content-type", kind),
            header("x-request-id", "1"),
        ],
        body: body.as_bytes().to_vec(),
    }
}

fn put(name: &str, body: &str) -> Answer {
    handle(&request("PUT", &format!("/outgoing/{name}"), "application/xml", body))
}

fn post(path: &str, body: &str) -> Answer {
    handle(&request("POST", path, "application/xml", body))
}

fn get(path: &str) -> (u16, String) {
    read(handle(&request("GET", path, "", "")))
}

fn read(answer: Answer) -> (u16, String) {
    match answer {
        Answer::Response(it) => (it.status, String::from_utf8(it.body).expect("a text")),
        other => panic!("{other:?}"),
    }
}

/// The contents of what lies ready, from the beginning.
fn contents() -> Vec<String> {
    let (status, body) = get("/incoming");
    assert_eq!(status, 200);
    let list: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    let names = list["files"].as_array().expect("a list").iter().map(|it| it["name"].clone());
    let fetched = names.map(|name| get(&format!("/incoming/{}", name.as_str().expect("a name"))));
    fetched.map(|(_, content)| content).collect()
}

/// What the bank has sent by itself.
fn told() -> Vec<String> {
    double::with(|host| {
        host.sent.iter().map(|it| String::from_utf8(it.body.clone()).expect("a text")).collect()
    })
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
