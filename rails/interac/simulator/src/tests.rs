//! The participant as a whole, asked as the rail asks it.

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{
    Answer, Event, Message, Obstacle, Place, Request, State, Transfer,
};
use serde_json::{Value, json};

use crate::orders::{is_answer, is_question};
use crate::transfers::{BLOCKED, TRIES, UNWANTED};
use crate::{BEARER, handle, tell};

const REFERENCE: &str = "RI01A1FD557A800000000002";

fn install(scenario: &str) {
    double::install(Host { scenario: scenario.to_owned(), ..Host::default() });
}

fn order() -> Value {
    json!({
        "product_code": "DOMESTIC",
        "message_identification": REFERENCE,
        "end_to_end_identification": REFERENCE,
        "language": "EN",
        "instructed_amount": { "amount": 1250.5, "currency": "CAD" },
        "debtor": { "name": "Railhead Sandbox" },
        "debtor_account": { "identification": { "other": { "identification": "000112345671" } } },
        "creditor": {
            "name": "Jane Tremblay",
            "contact_details": { "email_address": "jane@example.com" },
        },
        "creditor_account": { "proxy": {
            "type": { "proprietary": "EMAIL" }, "identification": "jane@example.com",
        } },
        "remittance_information": { "unstructured": "Invoice 17" },
        "payment_authentication": {
            "security_question": "What code did the sender give you?",
            "security_answer": "k7Qm2xW9pd",
        },
    })
}

/// As the rail writes it: the amount's own characters count.
fn written(order: &Value) -> String {
    order.to_string().replace("1250.5,", "1250.50,")
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn request(method: &str, path: &str, body: &str) -> Request {
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: vec![
            header("authorization", &format!("Bearer {BEARER}")),
            header("content-type", "application/json"),
            header("idempotency-key", REFERENCE),
        ],
        body: body.as_bytes().to_vec(),
    }
}

fn read(answer: Answer) -> (u16, Value) {
    match answer {
        Answer::Response(it) => (it.status, serde_json::from_slice(&it.body).unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

fn sent(body: &str) -> (u16, Value) {
    read(handle(&request("POST", "/v1/payments", body)))
}

fn asked() -> (u16, Value) {
    read(handle(&request("GET", &format!("/v1/payments/{REFERENCE}"), "")))
}

fn called_off() -> (u16, Value) {
    let path = format!("/v1/payments/{REFERENCE}/cancel");
    read(handle(&request("POST", &path, "{\"cancellation_reason\":\"REQUESTED_BY_SENDER\"}")))
}

fn kept() -> Transfer {
    double::with(|host| host.book[REFERENCE].clone())
}

fn errors() -> usize {
    double::with(|host| host.errors.len())
}

/// The statuses that were told since the last look.
fn told() -> Vec<String> {
    let messages: Vec<Message> = double::with(|host| std::mem::take(&mut host.sent));
    let status = |message: &Message| {
        assert_eq!(message.to, Place::Notice("/payments".to_owned()));
        assert_eq!(message.about, REFERENCE);
        let body: Value = serde_json::from_slice(&message.body).expect("JSON");
        assert_eq!(body["data"]["end_to_end_identification"], REFERENCE);
        let text = String::from_utf8(message.body.clone()).expect("a text");
        assert!(!text.contains("k7Qm2xW9pd"), "{text}");
        body["data"]["payment_status"].as_str().expect("a status").to_owned()
    };
    messages.iter().map(status).collect()
}

#[test]
fn a_transfer_is_made_once_and_told() {
    install("paid");
    let (status, answer) = sent(&written(&order()));
    assert_eq!(status, 201);
    let data = &answer["data"];
    for (member, value) in [
        ("end_to_end_identification", json!(REFERENCE)),
        ("payment_status", json!("REALTIME_INITIATED")),
        ("authentication_type", json!("NOT_REQUIRED")),
        ("amount", json!({ "amount": 1250.5, "currency": "CAD" })),
    ] {
        assert_eq!(data[member], value, "{member}");
    }
    let text = double::with(|host| String::from_utf8(host.sent[0].body.clone()));
    assert!(text.expect("a text").contains("\"amount\":1250.50,"));
    assert_eq!(told(), ["REALTIME_DEPOSIT_COMPLETED"]);
    let (status, standing) = asked();
    assert_eq!(
        (status, &standing["data"]["payment_status"]),
        (200, &json!("REALTIME_DEPOSIT_COMPLETED"))
    );
    assert_eq!(standing["data"]["clearing_system_reference"], data["clearing_system_reference"]);
    let (status, again) = sent(&written(&order()));
    assert_eq!((status, &again["notifications"][0]["code"]), (409, &json!("DUPLICATE_PAYMENT")));
    assert!(told().is_empty());
    let kept = kept();
    assert_eq!((kept.executed, kept.received, kept.amount_minor), (1, 2, 125_050));
    assert_eq!((kept.account.as_str(), errors()), ("jane@example.com", 0));
    assert!(kept.notes.iter().all(|(_, note)| !note.contains("k7Qm2xW9pd")));
}

#[test]
fn what_each_scenario_answers_tells_and_says_when_asked() {
    let refused = |code: &str| State::Refused(code.to_owned());
    let deposited = "REALTIME_DEPOSIT_COMPLETED";
    for (scenario, told_then, state, standing) in [
        ("autodeposit", vec![deposited], State::Paid, deposited),
        ("returned", vec![deposited], State::Paid, deposited),
        ("never_heard_of", vec![deposited], State::Paid, deposited),
        ("processing", vec![], State::Pending, "AVAILABLE"),
        ("claim", vec!["AVAILABLE"], State::Pending, "AVAILABLE"),
        ("declined", vec!["AVAILABLE", "DECLINED"], refused("DECLINED"), "DECLINED"),
        ("expired", vec!["AVAILABLE", "EXPIRED"], refused("EXPIRED"), "EXPIRED"),
        (
            "answer_tries_exhausted",
            vec!["AVAILABLE", "AUTHENTICATION_FAILURE", "FAILED"],
            refused(TRIES),
            "FAILED",
        ),
        (
            "duplicate_callback",
            vec!["COMPLETED", "AVAILABLE", "COMPLETED"],
            State::Paid,
            "COMPLETED",
        ),
        ("deposit_failed", vec!["DIRECT_DEPOSIT_FAILED"], State::Unclear, "DIRECT_DEPOSIT_FAILED"),
        ("other_amount", vec![deposited], State::Paid, deposited),
    ] {
        install(scenario);
        let (status, answer) = sent(&written(&order()));
        assert_eq!(status, 201, "{scenario}");
        let is_asked = answer["data"]["authentication_type"] == "PAYMENT_LEVEL";
        let word = if is_asked { "INITIATED" } else { "REALTIME_INITIATED" };
        assert_eq!(answer["data"]["payment_status"], word, "{scenario}");
        assert_eq!(told(), told_then, "{scenario}");
        assert_eq!(kept().state, state, "{scenario}");
        let (status, asked) = asked();
        assert_eq!(status, 200, "{scenario}");
        assert_eq!(asked["data"]["payment_status"], standing, "{scenario}");
        let is_other = asked["data"]["amount"]["amount"] != json!(1250.5);
        assert_eq!(is_other, scenario == "other_amount", "{scenario}");
    }
}

#[test]
fn what_is_not_answered_or_refused_at_once() {
    for (scenario, status, standing) in [
        ("timeout_then_paid", 200, "REALTIME_DEPOSIT_COMPLETED"),
        ("timeout_then_failed", 200, "FAILED"),
        ("timeout_then_unknown", 500, ""),
    ] {
        install(scenario);
        let silence = handle(&request("POST", "/v1/payments", &written(&order())));
        assert_eq!(silence, Answer::Silence, "{scenario}");
        assert!(told().is_empty(), "{scenario}");
        let (found, answer) = asked();
        assert_eq!(found, status, "{scenario}");
        let word = answer["data"]["payment_status"].as_str().unwrap_or_default();
        assert_eq!(word, standing, "{scenario}");
    }
    install("timeout_then_failed");
    let _ = handle(&request("POST", "/v1/payments", &written(&order())));
    assert_eq!(asked().1["data"]["failure_code"], UNWANTED);

    install("notice_first");
    let silence = handle(&request("POST", "/v1/payments", &written(&order())));
    assert_eq!((silence, told()), (Answer::Silence, vec!["REALTIME_DEPOSIT_COMPLETED".to_owned()]));

    install("failed");
    let (status, answer) = sent(&written(&order()));
    assert_eq!((status, &answer["notifications"][0]["code"]), (422, &json!(BLOCKED)));
    assert_eq!((errors(), kept().executed), (0, 0));

    install("provider_down");
    assert_eq!((sent(&written(&order())).0, asked().0), (503, 503));
    assert_eq!(kept().received, 0);
}

#[test]
fn what_never_arrived_is_not_known_and_taken_on_then() {
    install("never_received");
    let lost = handle(&request("POST", "/v1/payments", &written(&order())));
    assert_eq!(lost, Answer::NotReceived);
    let (status, answer) = asked();
    assert_eq!((status, &answer["data"]["end_to_end_identification"]), (404, &json!(REFERENCE)));
    assert_eq!(answer["notifications"][0]["code"], "PAYMENT_NOT_FOUND");
    assert_eq!(sent(&written(&order())).0, 201);
    assert_eq!((kept().executed, kept().received), (1, 2));
}

#[test]
fn the_recipient_claims_or_declines_and_nothing_comes_back() {
    install("claim");
    sent(&written(&order()));
    assert_eq!(told(), ["AVAILABLE"]);
    let kept = tell(REFERENCE, Event::Settle).expect("claimed");
    assert_eq!((kept.state, kept.executed, told()), (State::Paid, 1, vec!["COMPLETED".to_owned()]));
    for event in [Event::Settle, Event::Fail, Event::Return] {
        assert_eq!(tell(REFERENCE, event), Err(Obstacle::Impossible));
    }
    assert_eq!(tell("another", Event::Settle), Err(Obstacle::Unknown));
    install("processing");
    sent(&written(&order()));
    let kept = tell(REFERENCE, Event::Fail).expect("declined");
    assert_eq!(kept.state, State::Refused("DECLINED".to_owned()));
    assert_eq!(told(), ["DECLINED"]);
    install("deposit_failed");
    sent(&written(&order()));
    let kept = tell(REFERENCE, Event::Fail).expect("failed");
    assert_eq!(kept.state, State::Refused(UNWANTED.to_owned()));
}

#[test]
fn what_waits_can_be_cancelled_and_nothing_else() {
    install("claim");
    assert_eq!(called_off().0, 404);
    sent(&written(&order()));
    told();
    let (status, answer) = called_off();
    assert_eq!((status, &answer["data"]["payment_status"]), (200, &json!("CANCELLED")));
    assert_eq!(told(), ["CANCELLED"]);
    assert_eq!((called_off().0, kept().executed), (200, 0));
    assert!(told().is_empty());
    assert_eq!(tell(REFERENCE, Event::Settle), Err(Obstacle::Impossible));
    for scenario in ["paid", "declined", "deposit_failed"] {
        install(scenario);
        sent(&written(&order()));
        let (status, answer) = called_off();
        let code = &answer["notifications"][0]["code"];
        assert_eq!((status, code), (409, &json!("PAYMENT_NOT_CANCELLABLE")), "{scenario}");
    }
    let path = format!("/v1/payments/{REFERENCE}/cancel");
    for body in ["", "{}", "{\"cancellation_reason\":\"x\"}", "[]"] {
        assert_eq!(read(handle(&request("POST", &path, body))).0, 400, "{body}");
    }
}

#[test]
fn who_is_not_known_is_refused() {
    install("paid");
    for value in ["", "Bearer another", BEARER] {
        let mut request = request("POST", "/v1/payments", &written(&order()));
        request.headers[0].1 = value.to_owned();
        assert_eq!(read(handle(&request)).0, 401, "{value}");
    }
    let ask = |basic: &str, grant: &str| {
        let mut request = request("POST", "/v1/oauth/token", &format!("grant_type={grant}"));
        request.headers[0].1 = format!("Basic {basic}");
        request.headers[1].1 = "application/x-www-form-urlencoded".to_owned();
        read(handle(&request))
    };
    let (status, token) = ask("c2ltdWxhdG9yOnNpbXVsYXRvcg==", "client_credentials");
    assert_eq!((status, &token["access_token"]), (200, &json!(BEARER)));
    assert_eq!(ask("c2ltdWxhdG9yOnNpbXVsYXRvcg==", "password").0, 400);
    assert_eq!(ask("eDp5", "client_credentials").0, 401);
    double::with(|host| assert!(host.book.is_empty() && host.sent.is_empty()));
}

/// The order with another value at a place.
fn changed(place: &str, value: Value) -> String {
    let mut order = order();
    *order.pointer_mut(place).expect("a place") = value;
    written(&order)
}

#[test]
fn what_is_malformed_is_refused_loudly() {
    let question = "/payment_authentication/security_question";
    let answer = "/payment_authentication/security_answer";
    let memo = "/remittance_information/unstructured";
    let amount = "/instructed_amount/amount";
    let long = "x".repeat(141);
    let mut cases = vec![
        (changed("/product_code", json!("OTHER")), "INVALID_REQUEST"),
        (changed("/message_identification", json!("")), "INVALID_REQUEST"),
        (changed("/end_to_end_identification", json!("x".repeat(36))), "INVALID_REQUEST"),
        (changed("/end_to_end_identification", json!("another")), "INVALID_REQUEST"),
        (changed("/language", json!("DE")), "INVALID_REQUEST"),
        (changed("/debtor/name", json!(" ")), "INVALID_REQUEST"),
        (
            changed("/debtor_account/identification/other/identification", json!("")),
            "INVALID_REQUEST",
        ),
        (changed("/creditor/name", json!(long)), "INVALID_REQUEST"),
        (changed("/creditor_account/proxy/type/proprietary", json!("PHONE")), "INVALID_REQUEST"),
        (
            changed("/creditor_account/proxy/identification", json!("jane@other.ca")),
            "INVALID_HANDLE",
        ),
        (changed("/creditor_account/proxy/identification", json!("jane")), "INVALID_HANDLE"),
        (changed("/instructed_amount/currency", json!("USD")), "INVALID_REQUEST"),
        (changed(amount, json!("1250.50")), "INVALID_REQUEST"),
        (changed(amount, json!(1250)), "INVALID_REQUEST"),
        (changed(amount, json!(-1.25)), "INVALID_REQUEST"),
        (order().to_string(), "INVALID_REQUEST"),
        (written(&order()).replace("1250.50", "1250.505"), "INVALID_REQUEST"),
        (written(&order()).replace("1250.50", "0.00"), "AMOUNT_TOO_LOW"),
        (written(&order()).replace("1250.50", "25000.01"), "AMOUNT_TOO_HIGH"),
        (changed(question, json!("x".repeat(41))), "INVALID_SECURITY_QUESTION"),
        (changed(question, json!("Is it k7qm2XW9PD?")), "INVALID_SECURITY_QUESTION"),
        (changed(answer, json!("ab")), "INVALID_SECURITY_QUESTION"),
        (changed(answer, json!("my dog")), "INVALID_SECURITY_QUESTION"),
        (changed(memo, json!("the code is K7QM2XW9PD")), "INVALID_MEMO"),
        (changed(memo, json!("What code did the sender give you?")), "INVALID_MEMO"),
        (changed(memo, json!("")), "INVALID_MEMO"),
        (changed(memo, json!(long)), "INVALID_MEMO"),
        ("{}".to_owned(), "INVALID_REQUEST"),
        (String::new(), "INVALID_REQUEST"),
        (written(&order()).replacen('{', "{\"more\":1,", 1), "INVALID_REQUEST"),
        (written(&order()).replacen('{', "{\"language\":\"EN\",", 1), "INVALID_REQUEST"),
    ];
    for member in order().as_object().expect("an object").keys() {
        let mut order = order();
        order.as_object_mut().expect("an object").remove(member);
        cases.push((written(&order), "INVALID_REQUEST"));
    }
    for (body, code) in cases {
        install("paid");
        let (status, answer) = sent(&body);
        assert_eq!((status, &answer["notifications"][0]["code"]), (400, &json!(code)), "{body}");
        assert_eq!(errors(), 1, "{body}");
        double::with(|host| assert!(host.book.is_empty() && host.sent.is_empty()));
    }
    for name in ["content-type", "idempotency-key"] {
        install("paid");
        let mut request = request("POST", "/v1/payments", &written(&order()));
        request.headers.retain(|(known, _)| known != name);
        assert_eq!((read(handle(&request)).0, errors()), (400, 1), "{name}");
    }
    for amount in ["0.01", "25000.00"] {
        install("paid");
        assert_eq!(sent(&written(&order()).replace("1250.50", amount)).0, 201, "{amount}");
    }
    for (method, path) in [("GET", "/v1/payments"), ("PUT", "/v1/payments"), ("GET", "/")] {
        assert_eq!(read(handle(&request(method, path, ""))).0, 404, "{method} {path}");
    }
}

#[test]
fn questions_and_answers() {
    let long = "a".repeat(25);
    for (text, is_it) in [
        ("ab", false),
        ("abc", true),
        (long.as_str(), true),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ("my dog", false),
        ("p@ss", false),
        ("réponse", false),
    ] {
        assert_eq!(is_answer(text), is_it, "{text}");
    }
    for (text, is_it) in [
        ("x".repeat(40), true),
        ("x".repeat(41), false),
        (String::new(), false),
        ("Quel est l'été, dit-on?".to_owned(), true),
        ("<b>".to_owned(), false),
    ] {
        assert_eq!(is_question(&text), is_it, "{text}");
    }
}
