//! Replays `cases/` natively. The host's conformance runner replays the same files against
//! the compiled component.

use railhead_rail::fields::{field, value};
use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{
    Enquiry, Field, Finding, News, Outcome, Payment, Receipt, Refusal, Verdict,
};
use toml::{Table, Value};

use crate::fixtures::{self, Sent};
use crate::names::resolve;
use crate::payments::{prepare, query, submit};
use crate::{recipients, webhooks};

/// What a call came to.
#[derive(Debug, Default)]
struct Came {
    kind: &'static str,
    code: Option<String>,
    message: Option<String>,
    network_id: Option<String>,
}

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
    Payment {
        reference: text(table, "reference").into(),
        serial: unsigned(table, "serial"),
        begun_at_ms: unsigned(table, "begun_at_ms"),
        amount_minor: whole(table, "amount_minor"),
        recipient: fields(table.get("recipient")),
        narration: text(table, "narration").into(),
        ..fixtures::payment()
    }
}

fn answer(case: &Table) -> Result<(u16, String), Failure> {
    let Some(answer) = case.get("answer").and_then(Value::as_table) else {
        return Err(Failure::NotSent("no answer in this case".into()));
    };
    match text(answer, "failure") {
        "not-sent" => Err(Failure::NotSent("refused".into())),
        "no-answer" => Err(Failure::NoAnswer("timeout".into())),
        _ => {
            let status = u16::try_from(whole(answer, "status")).expect("a status");
            Ok((status, text(answer, "body").into()))
        }
    }
}

fn came(kind: &'static str, code: Option<String>, message: Option<String>) -> Came {
    Came { kind, code, message, ..Came::default() }
}

fn refused(refusal: Refusal) -> Came {
    came("refused", Some(refusal.code), Some(refusal.message))
}

fn received(kind: &'static str, receipt: Receipt) -> Came {
    Came { network_id: receipt.network_id, ..came(kind, Some(receipt.code), None) }
}

fn submitted(payment: &Payment) -> Came {
    assert_eq!(prepare(payment).expect("a reference").reference, payment.reference);
    match submit(payment) {
        Outcome::Paid(receipt) => received("paid", receipt),
        Outcome::Accepted(receipt) => received("accepted", receipt),
        Outcome::Refused(refusal) => refused(refusal),
        Outcome::Unknown(why) => came("unknown", None, Some(why)),
    }
}

fn finding(finding: Finding) -> Came {
    match finding {
        Finding::Paid(receipt) => received("paid", receipt),
        Finding::Accepted(receipt) => received("accepted", receipt),
        Finding::Refused(refusal) => refused(refusal),
        Finding::Returned(funds) => came("returned", Some(funds.code), Some(funds.message)),
        Finding::Unknown(why) => came("unknown", None, Some(why)),
        Finding::NeverReceived(why) => came("never-received", None, Some(why)),
    }
}

fn resolved(enquiry: &Enquiry) -> Came {
    match resolve(enquiry) {
        Verdict::Named(found) => came("resolved", None, Some(found.name)),
        Verdict::Matches(found) => came("matches", None, Some(found.name)),
        Verdict::Close(found) => came("close", None, Some(found.name)),
        Verdict::Differs(why) => came("differs", None, why),
        Verdict::Refused(refusal) => refused(refusal),
        Verdict::Unavailable(why) => came("unavailable", None, Some(why)),
    }
}

fn heard(path: &str, body: &str) -> Came {
    match webhooks::receive(path, body.as_bytes()) {
        Err(why) => came("rejected", None, Some(why)),
        Ok((_, notices)) => match notices.into_iter().next().map(|notice| notice.news) {
            Some(News::Ask) => came("ask", None, None),
            Some(News::Found(found)) => finding(found),
            None => came("nothing", None, None),
        },
    }
}

fn check_sent(case: &Table, sent: &Sent) {
    let Some(expects) = case.get("expects").and_then(Value::as_table) else {
        return;
    };
    if expects.contains_key("nothing") {
        assert!(sent.borrow().is_empty(), "{}", text(case, "name"));
        return;
    }
    assert_eq!(sent.borrow()[0].call, text(expects, "call"));
    let Some(parts) = expects.get("contains").and_then(Value::as_array) else {
        return;
    };
    let body = fixtures::body(sent);
    for part in parts {
        let part = part.as_str().expect("text");
        assert!(body.contains(part), "{}: {part} is not in {body}", text(case, "name"));
    }
}

fn replay(case: &Table) -> Came {
    let sent = fixtures::gateway(answer(case));
    let given = || payment(case["payment"].as_table().expect("a payment"));
    let came = match text(case, "call") {
        "receive" => heard(text(case, "path"), text(case, "body")),
        "resolve" => resolved(&Enquiry {
            serial: unsigned(case, "serial"),
            begun_at_ms: unsigned(case, "begun_at_ms"),
            account: fields(case.get("account")),
        }),
        "prepare" => match prepare(&given()) {
            Ok(opening) => came("prepared", None, Some(opening.reference)),
            Err(refusal) => refused(refusal),
        },
        "submit" => submitted(&given()),
        "query" => finding(query(&given())),
        other => panic!("no such call: {other}"),
    };
    check_sent(case, &sent);
    came
}

#[test]
fn exchanges() {
    for file in [
        include_str!("../cases/payments.toml"),
        include_str!("../cases/questions.toml"),
        include_str!("../cases/names.toml"),
        include_str!("../cases/webhooks.toml"),
    ] {
        for case in tables(&load(file), "exchanges") {
            let name = text(case, "name");
            let outcome = case["outcome"].as_table().expect("an outcome");
            let came = replay(case);
            assert_eq!(came.kind, text(outcome, "kind"), "{name}: {came:?}");
            for (key, found) in [("code", &came.code), ("network_id", &came.network_id)] {
                let wanted = outcome.get(key).and_then(Value::as_str);
                assert!(wanted.is_none() || wanted == found.as_deref(), "{name}: {came:?}");
            }
            let message = came.message.as_deref().unwrap_or_default();
            assert!(message.contains(text(outcome, "message")), "{name}: {message}");
        }
    }
}

#[test]
fn every_code() {
    let file = load(include_str!("../cases/codes.toml"));
    let templates = file["code_templates"].as_table().expect("templates");
    let payment = payment(file["code_payment"].as_table().expect("a payment"));
    for case in tables(&file, "codes") {
        let code = text(case, "code");
        let body = |call: &str| {
            let filled = text(templates, call).replace("{code}", code);
            filled.replace("{reference}", &payment.reference)
        };
        fixtures::gateway(Ok((200, body("query"))));
        assert_eq!(finding(query(&payment)).kind, text(case, "query"), "{code}");
        let came = heard(text(&file, "code_path"), &body("receive"));
        assert_eq!(came.kind, text(case, "receive"), "{code}");
        assert!(came.kind != "refused" || came.code.as_deref() == Some(code));
    }
}

#[test]
fn recipients() {
    // The host has no tables of the operator where it replays cases.
    double::install(double::Host::default());
    let file = load(include_str!("../cases/recipients.toml"));
    for case in tables(&file, "recipients") {
        let name = text(case, "name");
        let came = recipients::check(fields(case.get("fields")));
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
