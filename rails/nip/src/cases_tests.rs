//! Replays `cases/` natively. The host's conformance runner replays the same files against
//! the compiled component.

use railhead_rail::fields::{field, value};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Enquiry, Field, Finding, News, Outcome, Payment, Resolution, Verdict};
use toml::{Table, Value};

use crate::fixtures::{self, Sent};
use crate::names::resolve;
use crate::notices::receive;
use crate::payments::{query, reference, submit};
use crate::{codes, recipients};

/// What a call came to: its kind, and the network's code where there is one.
type Came = (&'static str, Option<String>);

fn load(text: &str) -> Table {
    text.parse().expect("TOML")
}

fn tables<'a>(file: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let all = file.get(name).and_then(Value::as_array).expect("an array of tables");
    all.iter().map(|case| case.as_table().expect("a table"))
}

fn text<'a>(table: &'a Table, name: &str) -> &'a str {
    table.get(name).and_then(Value::as_str).unwrap_or("")
}

fn whole(table: &Table, name: &str) -> i64 {
    table.get(name).and_then(Value::as_integer).expect("a whole number")
}

fn unsigned(table: &Table, name: &str) -> u64 {
    u64::try_from(whole(table, name)).expect("a natural number")
}

fn fields(table: Option<&Value>) -> Vec<Field> {
    let table = table.and_then(Value::as_table).expect("fields");
    table.iter().map(|(name, value)| field(name, value.as_str().expect("text"))).collect()
}

fn payment(table: &Table) -> Payment {
    let resolution = table["resolution"].as_table().expect("a resolution");
    Payment {
        reference: text(table, "reference").into(),
        serial: unsigned(table, "serial"),
        begun_at_ms: unsigned(table, "begun_at_ms"),
        amount_minor: whole(table, "amount_minor"),
        recipient: fields(table.get("recipient")),
        narration: text(table, "narration").into(),
        resolution: Some(Resolution {
            name: text(resolution, "name").into(),
            reference: text(resolution, "reference").into(),
            attributes: fields(resolution.get("attributes")),
        }),
        ..fixtures::payment()
    }
}

fn answer(case: &Table) -> Result<(u16, String), Failure> {
    let answer = case["answer"].as_table().expect("an answer");
    match text(answer, "failure") {
        "not-sent" => Err(Failure::NotSent("refused".into())),
        "no-answer" => Err(Failure::NoAnswer("timeout".into())),
        _ => {
            let status = u16::try_from(whole(answer, "status")).expect("a status");
            Ok((status, text(answer, "body").into()))
        }
    }
}

fn submitted(payment: &Payment) -> Came {
    assert_eq!(reference(payment), payment.reference);
    match submit(payment) {
        Outcome::Paid(receipt) => ("paid", Some(receipt.code)),
        Outcome::Accepted(receipt) => ("accepted", Some(receipt.code)),
        Outcome::Refused(refusal) => ("refused", Some(refusal.code)),
        Outcome::Unknown(_) => ("unknown", None),
    }
}

fn queried(payment: &Payment) -> Came {
    match query(payment) {
        Finding::Paid(receipt) => ("paid", Some(receipt.code)),
        Finding::Accepted(receipt) => ("accepted", Some(receipt.code)),
        Finding::Refused(refusal) => ("refused", Some(refusal.code)),
        Finding::Returned(funds) => ("returned", Some(funds.code)),
        Finding::Unknown(_) => ("unknown", None),
        Finding::NeverReceived(_) => ("never-received", None),
    }
}

fn resolved(serial: u64, begun_at_ms: u64, account: Vec<Field>) -> Came {
    match resolve(&Enquiry { serial, begun_at_ms, account }) {
        Verdict::Named(_) => ("resolved", None),
        Verdict::Refused(refusal) => ("refused", Some(refusal.code)),
        Verdict::Unavailable(_) => ("unavailable", None),
        compared => panic!("NIP compares nothing: {compared:?}"),
    }
}

fn received(case: &Table) -> Came {
    fixtures::install();
    let Ok((_, notices)) = receive(text(case, "path"), text(case, "body").as_bytes()) else {
        return ("rejected", None);
    };
    assert_eq!(notices.len(), 1);
    match &notices[0].news {
        News::Ask => ("ask", None),
        News::Found(Finding::Returned(returned)) => ("returned", Some(returned.code.clone())),
        News::Found(other) => panic!("{other:?}"),
    }
}

fn check_sent(case: &Table, sent: &Sent) {
    let Some(expects) = case.get("expects").and_then(Value::as_table) else {
        return;
    };
    assert_eq!(sent.borrow()[0].call, text(expects, "call"));
    let body = fixtures::body(sent);
    for part in expects["contains"].as_array().expect("parts") {
        let part = part.as_str().expect("text");
        assert!(body.contains(part), "{}: {part} is not in {body}", text(case, "name"));
    }
}

fn replay(case: &Table) -> Came {
    let call = text(case, "call");
    if call == "receive" {
        return received(case);
    }
    let sent = fixtures::gateway(answer(case));
    let came = match call {
        "resolve" => resolved(
            unsigned(case, "serial"),
            unsigned(case, "begun_at_ms"),
            fields(case.get("account")),
        ),
        "submit" => submitted(&payment(case["payment"].as_table().expect("a payment"))),
        "query" => queried(&payment(case["payment"].as_table().expect("a payment"))),
        _ => panic!("no such call: {call}"),
    };
    check_sent(case, &sent);
    came
}

#[test]
fn exchanges() {
    for file in [
        include_str!("../cases/transfers.toml"),
        include_str!("../cases/queries.toml"),
        include_str!("../cases/names.toml"),
        include_str!("../cases/notices.toml"),
    ] {
        for case in tables(&load(file), "exchanges") {
            let outcome = case["outcome"].as_table().expect("an outcome");
            let (kind, code) = replay(case);
            assert_eq!(kind, text(outcome, "kind"), "{}", text(case, "name"));
            assert_eq!(code.unwrap_or_default(), text(outcome, "code"), "{}", text(case, "name"));
        }
    }
}

#[test]
fn every_code() {
    let file = load(include_str!("../cases/codes.toml"));
    let templates = file["code_templates"].as_table().expect("templates");
    let payment = payment(file["code_payment"].as_table().expect("a payment"));
    let mut seen = Vec::new();
    for case in tables(&file, "codes") {
        let code = text(case, "code");
        let answer = |call: &str| {
            let body = text(templates, call).replace("{code}", code);
            fixtures::gateway(Ok((200, body.replace("{reference}", &payment.reference))));
        };
        answer("submit");
        assert_eq!(submitted(&payment).0, text(case, "submit"), "{code}");
        answer("query");
        assert_eq!(queried(&payment).0, text(case, "query"), "{code}");
        answer("resolve");
        let account = payment.recipient.clone();
        let (kind, _) = resolved(payment.serial, payment.begun_at_ms, account);
        assert_eq!(kind, text(case, "resolve"), "{code}");
        seen.push(code);
    }
    assert!(codes::all().iter().all(|row| seen.contains(&row.code)));
}

#[test]
fn recipients() {
    fixtures::install();
    let file = load(include_str!("../cases/recipients.toml"));
    for case in tables(&file, "recipients") {
        let name = text(case, "name");
        let came = recipients::check(&fields(case.get("fields")));
        if let Some(returns) = case.get("returns") {
            let canonical = came.expect(name);
            for expected in fields(Some(returns)) {
                assert_eq!(value(&canonical, &expected.name), expected.value, "{name}");
            }
        } else {
            let violations = came.expect_err(name);
            let found = violations.iter().map(|one| (one.field.as_str(), one.code.as_str()));
            let expected = tables(case, "violations");
            let expected = expected.map(|one| (text(one, "field"), text(one, "code")));
            assert!(found.eq(expected), "{name}: {violations:?}");
        }
    }
}
