//! The gateway, from outside.

mod damaged;
mod messages;
mod scenarios;

use railhead_simulator::CREDENTIAL;
use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Request};

/// Ten o'clock in New York on Monday, the 23rd of November 2026.
const NOW_MS: u64 = 1_795_446_000_000;
const UETR: &str = "96136a50-afd9-4639-89ca-25b870dd3859";

/// A wire as a bank would write it, with other prefixes and spaces than the rail's.
const WIRE: &str = include_str!("tests/wire.xml");
/// A question about it.
const QUESTION: &str = include_str!("tests/question.xml");
/// Asking for it back.
const RECALL: &str = include_str!("tests/recall.xml");

/// Installs a host that plays this scenario.
fn play(scenario: &str) {
    let scenario = scenario.to_owned();
    double::install(Host { scenario, now_ms: NOW_MS, ..Host::default() });
}

fn answered(path: &str, body: &str) -> Answer {
    crate::handle(&Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: vec![
            ("authorization".to_owned(), format!("Bearer {CREDENTIAL}")),
            ("content-type".to_owned(), "application/xml; charset=utf-8".to_owned()),
        ],
        body: body.as_bytes().to_vec(),
    })
}

/// Status and body of an answer.
fn send(path: &str, body: &str) -> (u16, String) {
    match answered(path, body) {
        Answer::Response(response) => {
            (response.status, String::from_utf8(response.body).expect("UTF-8"))
        }
        other => panic!("{other:?}"),
    }
}

/// Bodies that were told.
fn told() -> Vec<String> {
    double::with(|host| {
        let sent = host.sent.iter().map(|it| String::from_utf8(it.body.clone()).expect("UTF-8"));
        sent.collect()
    })
}

/// How often the wire was paid.
fn executed() -> u32 {
    double::with(|host| host.book.get(UETR).map_or(0, |wire| wire.executed))
}

fn says(body: &str, element: &str, text: &str) -> bool {
    body.contains(&format!("<{element}>{text}</{element}>"))
}
