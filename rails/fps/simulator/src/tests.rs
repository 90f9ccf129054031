//! The gateway as a whole, asked as the rail asks it.

mod names;
mod orders;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{
    Answer, Event, Message, Obstacle, Place, Request, State, Transfer,
};
use serde_json::{Value, json};

use crate::payments::REFUSAL;
use crate::webhooks::RETURN_CODE;
use crate::{handle, tell};

const REFERENCE: &str = "RP01A1FD557A800000000002";
const PAYMENTS: &str = "/v3/payments/fps";
const NOW_MS: u64 = 1_795_251_601_964;

fn install(scenario: &str) {
    let scenario = scenario.to_owned();
    double::install(Host { scenario, now_ms: NOW_MS, ..Host::default() });
}

fn account(digits: &str) -> Value {
    json!({ "identification": { "other": {
        "identification": format!("GBR{digits}"),
        "schemeName": { "proprietary": "PRTY_COUNTRY_SPECIFIC" },
    } } })
}

fn order() -> Value {
    json!({ "paymentInstructions": [{
        "paymentInstructionIdentification": REFERENCE,
        "paymentTypeCode": "SIP",
        "debtor": { "address": "UK, London, High Street, 1, EC1A 1AA" },
        "debtorAccount": account("04000400000000"),
        "creditTransfers": [{
            "paymentIdentification": {
                "instructionIdentification": REFERENCE,
                "endToEndIdentification": REFERENCE,
            },
            "amount": { "instructedAmount": 1250.5, "currency": "GBP" },
            "creditor": { "name": "Jane O'Brien" },
            "creditorAccount": account("08999966374958"),
            "remittanceInformation": { "structured": {
                "creditorReferenceInformation": { "reference": "Invoice 17" },
            } },
        }],
    }] })
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn posted(path: &str, id: &str, body: &str) -> Request {
    let signature = BASE64.encode(double::signature("signing", body.as_bytes()));
    Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: vec![
            header("authorization", "Bearer simulator"),
            header("content-type", "application/json"),
            header("digitalsignature", &signature),
            header("x-request-id", id),
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
    read(handle(&posted(PAYMENTS, REFERENCE, body)))
}

fn asked() -> (u16, Value) {
    read(handle(&Request {
        method: "GET".to_owned(),
        path: format!("{PAYMENTS}/{REFERENCE}"),
        query: Vec::new(),
        headers: vec![header("authorization", "Bearer simulator")],
        body: Vec::new(),
    }))
}

fn kept() -> Transfer {
    double::with(|host| host.book[REFERENCE].clone())
}

fn errors() -> usize {
    double::with(|host| host.errors.len())
}

/// What was told since the last look.
fn told() -> Vec<Message> {
    double::with(|host| std::mem::take(&mut host.sent))
}

fn is_signed(message: &Message) -> bool {
    let signature = BASE64.encode(double::signature("gateway", &message.body));
    message.headers.contains(&header("DigitalSignature", &signature))
}

fn document(message: &Message) -> Value {
    assert_eq!(message.to, Place::Notice("/webhooks".to_owned()));
    assert_eq!(message.about, REFERENCE);
    serde_json::from_slice(&message.body).expect("JSON")
}

/// Types of what was told, all of it signed.
fn types() -> Vec<String> {
    let kind = |message: &Message| {
        assert!(is_signed(message));
        document(message)["Type"].as_str().expect("a type").to_owned()
    };
    told().iter().map(kind).collect()
}

#[test]
fn a_payment_is_made_once_and_told() {
    install("paid");
    // As the rail writes it: the amount's own characters count.
    let body = order().to_string().replace("1250.5", "1250.50");
    let (status, answer) = sent(&body);
    assert_eq!(status, 202);
    let accepted = json!([{ "endToEndIdentification": REFERENCE, "response": "Accepted" }]);
    assert_eq!(answer["transactions"], accepted);
    let messages = told();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(is_signed(message));
    assert!(message.headers.contains(&header("content-type", "application/json")));
    let text = String::from_utf8(message.body.clone()).expect("a text");
    assert!(text.contains("\"Amount\":1250.50,"), "{text}");
    let webhook = document(message);
    assert_eq!((&webhook["Type"], &webhook["Version"]), (&json!("TransactionSettled"), &json!(6)));
    assert!(webhook["Nonce"].is_u64());
    let payload = &webhook["Payload"];
    for (member, value) in [
        ("Status", json!("Settled")),
        ("Scheme", json!("FasterPayments")),
        ("EndToEndTransactionId", json!(REFERENCE)),
        ("CurrencyCode", json!("GBP")),
        ("DebitCreditCode", json!("Debit")),
        ("Reference", json!("Invoice 17")),
        ("IsReturn", json!(false)),
        ("TimestampSettled", json!("2026-11-21T09:00:01.964Z")),
        ("TimestampCreated", json!("2026-11-21T09:00:01.964Z")),
    ] {
        assert_eq!(payload[member], value, "{member}");
    }
    assert_eq!(payload["Account"]["BBAN"], "CLRB04000400000000");
    assert_eq!(payload["CounterpartAccount"]["OwnerName"], "Jane O'Brien");
    let (status, standing) = asked();
    assert_eq!((status, &standing["status"]), (200, &json!("Settled")));
    assert_eq!(standing["fpid"], payload["ActualEndToEndTransactionId"]);
    assert_eq!(standing["transactionId"], payload["TransactionId"]);
    assert_eq!(standing["amount"], json!({ "instructedAmount": 1250.5, "currency": "GBP" }));
    let kept = kept();
    assert_eq!((kept.executed, kept.received, kept.amount_minor), (1, 1, 125_050));
    assert_eq!((kept.account.as_str(), errors()), ("66374958", 0));
}

#[test]
fn the_same_request_again_conflicts_for_a_day_and_a_new_one_is_a_duplicate() {
    install("paid");
    let body = order().to_string();
    sent(&body);
    assert_eq!(types(), ["TransactionSettled"]);
    assert_eq!(sent(&body), (409, json!({ "status": 409 })));
    assert!(told().is_empty());
    assert_eq!(read(handle(&posted(PAYMENTS, "another", &body))).0, 202);
    let messages = told();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    let webhook = document(message);
    assert_eq!(webhook["Type"], "PaymentMessageAssesmentFailed");
    let failure = json!([{
        "EndToEndId": REFERENCE,
        "Reasons": ["Duplicate transaction has been detected"],
    }]);
    assert_eq!(webhook["Payload"]["AssesmentFailure"], failure);
    double::with(|host| host.now_ms += 86_400_000);
    assert_eq!(read(handle(&posted(PAYMENTS, "another", &body))).0, 202);
    assert_eq!(types(), ["PaymentMessageAssesmentFailed"]);
    assert_eq!((kept().executed, kept().received, kept().state), (1, 4, State::Paid));
}

#[test]
fn who_is_not_known_or_does_not_sign_is_refused() {
    install("paid");
    let good = posted(PAYMENTS, REFERENCE, &order().to_string());
    let long = "x".repeat(84);
    for (name, value, status) in [
        ("authorization", "", 401),
        ("authorization", "Bearer another", 403),
        ("content-type", "text/plain", 415),
        ("digitalsignature", "", 400),
        ("digitalsignature", "bm90IGl0", 400),
        ("digitalsignature", "not base64", 400),
        ("x-request-id", "", 400),
        ("x-request-id", &long, 400),
        ("x-request-id", "a b", 400),
    ] {
        let mut request = good.clone();
        request.headers.retain(|(known, _)| known != name);
        request.headers.push(header(name, value));
        assert_eq!(read(handle(&request)).0, status, "{name}: {value}");
    }
    // A signature of other bytes, if only by a space.
    let mut request = good;
    request.body.push(b' ');
    let (status, problem) = read(handle(&request));
    assert_eq!((status, &problem["title"]), (400, &json!("Invalid DigitalSignature Header")));
    double::with(|host| assert!(host.book.is_empty() && host.sent.is_empty()));
    assert_eq!(errors(), 8);
}

#[test]
fn several_payments_in_one_order() {
    install("paid");
    let mut batch = order();
    let first = batch["paymentInstructions"][0]["creditTransfers"][0].clone();
    let mut second = first.clone();
    second["paymentIdentification"]["endToEndIdentification"] = json!("another");
    batch["paymentInstructions"][0]["creditTransfers"] = json!([first, second]);
    let (status, answer) = sent(&batch.to_string());
    assert_eq!(status, 202);
    assert_eq!(answer["transactions"].as_array().map(Vec::len), Some(2));
    double::with(|host| {
        assert_eq!(host.book.values().map(|it| it.executed).collect::<Vec<_>>(), [1, 1]);
    });
}

#[test]
fn what_each_scenario_answers_tells_and_says_when_asked() {
    let settled = "TransactionSettled";
    let (paid, refused) = (State::Paid, State::Refused(REFUSAL.to_owned()));
    let cases = [
        ("paid", 202, vec![settled], paid.clone(), "Settled"),
        ("name_mismatch", 202, vec![settled], paid.clone(), "Settled"),
        ("never_heard_of", 202, vec![settled], paid.clone(), "Settled"),
        ("processing", 202, Vec::new(), State::Pending, "Pending"),
        ("failed", 202, vec!["TransactionRejected"], refused, "Rejected"),
        ("returned", 202, vec![settled, settled], State::Returned, "Settled"),
        (
            "duplicate_callback",
            202,
            vec![settled, "OutboundHeldTransaction", settled],
            paid,
            "Settled",
        ),
        (
            "rejected_at_once",
            400,
            Vec::new(),
            State::Refused("InvalidAccount".to_owned()),
            "Rejected",
        ),
    ];
    for (scenario, status, told, state, standing) in cases {
        install(scenario);
        assert_eq!(sent(&order().to_string()).0, status, "{scenario}");
        assert_eq!(types(), told, "{scenario}");
        assert_eq!(kept().state, state, "{scenario}");
        let (status, answer) = asked();
        assert_eq!((status, &answer["status"]), (200, &json!(standing)), "{scenario}");
        assert_eq!(kept().received, 1, "{scenario}");
    }
}

#[test]
fn a_rejection_says_why_in_the_webhook_and_when_asked() {
    install("failed");
    sent(&order().to_string());
    let webhook = document(&told()[0]);
    assert_eq!(webhook["Version"], 2);
    assert_eq!(webhook["Payload"]["Status"], "Rejected");
    assert_eq!(webhook["Payload"]["CancellationCode"], REFUSAL);
    assert_eq!(asked().1["reasonCode"], REFUSAL);
    assert_eq!(kept().executed, 0);
    install("rejected_at_once");
    let (_, answer) = sent(&order().to_string());
    assert_eq!(answer["transactions"][0]["response"], "InvalidAccount");
}

#[test]
fn what_comes_back_is_a_credit_that_names_the_payment() {
    install("returned");
    sent(&order().to_string());
    let messages = told();
    let (debit, credit) = (document(&messages[0]), document(&messages[1]));
    let payload = &credit["Payload"];
    assert_eq!(
        (&payload["DebitCreditCode"], &payload["IsReturn"]),
        (&json!("Credit"), &json!(true))
    );
    assert_eq!(payload["EndToEndTransactionId"], REFERENCE);
    let data = json!([
        { "Name": "ReturnedPaymentFpId", "Value": debit["Payload"]["ActualEndToEndTransactionId"] },
        { "Name": "PaymentReturnCode", "Value": RETURN_CODE },
    ]);
    assert_eq!(payload["SupplementaryData"], data);
    assert_ne!(payload["TransactionId"], debit["Payload"]["TransactionId"]);
    assert_ne!(
        payload["ActualEndToEndTransactionId"],
        debit["Payload"]["ActualEndToEndTransactionId"]
    );
    assert_eq!(kept().executed, 1);
}

#[test]
fn a_duplicate_is_the_very_same_message_around_an_older_one() {
    install("duplicate_callback");
    sent(&order().to_string());
    let messages = told();
    assert_eq!(messages[0], messages[2]);
    let (settled, held) = (document(&messages[0]), document(&messages[1]));
    let at = |document: &Value, member: &str| {
        document["Payload"][member].as_str().expect("an instant").to_owned()
    };
    assert!(at(&held, "TimestampCreated") < at(&settled, "TimestampSettled"));
    assert_ne!(settled["Nonce"], held["Nonce"]);
    assert_eq!(kept().executed, 1);
}

/// Each of these would be believed by whoever did not check, and one of them is a lie.
#[test]
fn a_webhook_whose_signature_does_not_fit() {
    let genuine = {
        install("paid");
        sent(&order().to_string());
        told().remove(0)
    };
    for (scenario, kind) in
        [("webhook_forged", "TransactionRejected"), ("key_rotated", "TransactionSettled")]
    {
        install(scenario);
        assert_eq!(sent(&order().to_string()).0, 202, "{scenario}");
        let messages = told();
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(!is_signed(message), "{scenario}");
        assert_eq!(message.headers.len(), 2);
        // A signature of the gateway's own, of another message.
        assert_eq!(message.headers == genuine.headers, scenario == "webhook_forged");
        assert_eq!(document(message)["Type"], kind);
        assert_eq!(asked().1["status"], "Settled", "{scenario}");
        assert_eq!(kept().executed, 1, "{scenario}");
        // By then the operator has the key.
        tell(REFERENCE, Event::Return).expect("returned");
        assert_eq!(types(), ["TransactionSettled"], "{scenario}");
    }
}

#[test]
fn silence_tells_nothing_and_a_question_does() {
    for (scenario, executed, status, said) in [
        ("timeout_then_paid", 1, 200, json!("Settled")),
        ("timeout_then_failed", 0, 200, json!("Rejected")),
        ("timeout_then_unknown", 0, 500, json!(500)),
    ] {
        install(scenario);
        let answer = handle(&posted(PAYMENTS, REFERENCE, &order().to_string()));
        assert_eq!(answer, Answer::Silence, "{scenario}");
        assert!(told().is_empty(), "{scenario}");
        let (answered, standing) = asked();
        assert_eq!((answered, &standing["status"]), (status, &said), "{scenario}");
        assert_eq!(kept().executed, executed, "{scenario}");
        assert_eq!(sent(&order().to_string()).0, 409, "{scenario}");
        assert_eq!(kept().executed, executed, "{scenario}");
    }
}

#[test]
fn what_never_came_is_not_known_and_is_paid_the_second_time() {
    install("never_received");
    assert_eq!(asked().0, 404);
    let request = posted(PAYMENTS, REFERENCE, &order().to_string());
    assert_eq!(handle(&request), Answer::NotReceived);
    assert_eq!((kept().received, kept().executed, kept().state), (1, 0, State::Lost));
    let (status, answer) = asked();
    assert_eq!((status, &answer["endToEndIdentification"]), (404, &json!(REFERENCE)));
    assert!(told().is_empty());
    assert_eq!(read(handle(&request)).0, 202);
    assert_eq!(types(), ["TransactionSettled"]);
    assert_eq!((kept().received, kept().executed, kept().state), (2, 1, State::Paid));
    assert_eq!(read(handle(&request)).0, 409);
    assert_eq!(kept().executed, 1);
}

#[test]
fn a_network_that_is_down_is_down_for_everything() {
    install("provider_down");
    assert_eq!(sent(&order().to_string()).0, 503);
    assert_eq!(asked().0, 503);
    assert_eq!(names::named(&names::question()).0, 503);
    assert_eq!((kept().received, kept().executed), (0, 0));
    assert!(told().is_empty());
}

#[test]
fn what_is_open_ends_when_it_is_told_to() {
    for scenario in ["processing", "timeout_then_unknown"] {
        for (event, state, kind) in [
            (Event::Settle, State::Paid, "TransactionSettled"),
            (Event::Fail, State::Refused(REFUSAL.to_owned()), "TransactionRejected"),
        ] {
            install(scenario);
            let _ = handle(&posted(PAYMENTS, REFERENCE, &order().to_string()));
            assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
            let executed = u32::from(state == State::Paid);
            let after = tell(REFERENCE, event).expect("it happens");
            assert_eq!((&after.state, after.executed), (&state, executed), "{scenario}");
            assert_eq!(kept(), after);
            assert_eq!(types(), [kind], "{scenario}");
            assert_eq!(tell(REFERENCE, Event::Settle), Err(Obstacle::Impossible));
            assert_eq!(tell(REFERENCE, Event::Fail), Err(Obstacle::Impossible));
        }
    }
    assert_eq!(tell("RP2", Event::Settle), Err(Obstacle::Unknown));
}

#[test]
fn what_was_paid_comes_back_under_the_schemes_name_alone() {
    install("paid");
    sent(&order().to_string());
    let debit = document(&told()[0]);
    assert_eq!(tell(REFERENCE, Event::Return).expect("returned").state, State::Returned);
    let messages = told();
    assert!(is_signed(&messages[0]));
    let payload = &document(&messages[0])["Payload"];
    assert_eq!(payload["IsReturn"], true);
    assert_ne!(payload["EndToEndTransactionId"], REFERENCE);
    let fpid = &debit["Payload"]["ActualEndToEndTransactionId"];
    assert_eq!(payload["SupplementaryData"][0]["Value"], *fpid);
    assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(kept().executed, 1);
}

/// A bank has 90 days to send a payment back.
#[test]
fn what_was_paid_comes_back_months_later() {
    for scenario in ["paid", "timeout_then_paid", "never_received"] {
        install(scenario);
        let request = posted(PAYMENTS, REFERENCE, &order().to_string());
        for _ in 0..2 {
            let _ = handle(&request);
        }
        told();
        double::with(|host| host.now_ms += 90 * 86_400_000);
        assert_eq!(tell(REFERENCE, Event::Return).expect("returned").state, State::Returned);
        let payload = &document(&told()[0])["Payload"];
        assert_eq!(payload["TimestampSettled"], "2027-02-19T09:00:01.964Z", "{scenario}");
        // The payment itself settled, and the return is another one.
        assert_eq!(asked().1["status"], "Settled", "{scenario}");
        assert_eq!(asked().1["fpid"], payload["SupplementaryData"][0]["Value"], "{scenario}");
    }
}

#[test]
fn nothing_else_is_here() {
    install("paid");
    for path in ["/v3/payments/fps/", "/v3/payments/fps/a/b", "/v3/payments", "/"] {
        let headers = vec![header("authorization", "Bearer simulator")];
        let (method, path) = ("GET".to_owned(), path.to_owned());
        let request = Request { method, path, query: Vec::new(), headers, body: Vec::new() };
        assert_eq!(read(handle(&request)).0, 404);
    }
}
