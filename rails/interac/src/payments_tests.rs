//! Payments as they are prepared and sent, and their cancellation. What answers mean is in `cases/`.

use std::cell::RefCell;
use std::rc::Rc;

use railhead_rail::fields::{field, set, value};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::{Failure, Response};
use railhead_rail::request::{Part, Request, seed, text, token};
use railhead_rail::types::{Field, Finding, Outcome, Payment};

use crate::fixtures::{self, QUESTION, REFERENCE, payment};
use crate::payments::{prepare, query, recall, submit};

/// A transfer as the participant shows it.
fn shown(status: &str, authentication: &str) -> String {
    format!(
        "{{\"data\":{{\"end_to_end_identification\":\"{REFERENCE}\",\"payment_id\":\"1\",\
         \"clearing_system_reference\":\"CAxyz123\",\"payment_status\":\"{status}\",\
         \"authentication_type\":\"{authentication}\",\
         \"amount\":{{\"amount\":1250.50,\"currency\":\"CAD\"}}}}}}"
    )
}

/// The body of a request, with a mark where the host puts something in.
fn body(request: &Request) -> String {
    let piece = |part: &Part| match part {
        Part::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("UTF-8"),
        Part::Seed(name) => format!("<{name}>"),
        other => panic!("{other:?}"),
    };
    request.body.iter().map(piece).collect()
}

#[test]
fn the_reference_is_ours_and_the_same_every_time() {
    fixtures::install();
    let opening = prepare(&payment()).expect("a reference");
    assert_eq!(opening.reference, REFERENCE);
    assert_eq!(opening.facts, [field("security_question", QUESTION)]);
    assert_eq!(prepare(&payment()), Ok(opening));
}

#[test]
fn what_the_network_would_not_carry_is_refused() {
    fixtures::install();
    let refused = |payment: Payment| prepare(&payment).expect_err("a refusal").code;
    for amount_minor in [i64::MIN, -1, 0] {
        assert_eq!(refused(Payment { amount_minor, ..payment() }), "AMOUNT_TOO_LOW");
    }
    for amount_minor in [2_500_001, i64::MAX] {
        assert_eq!(refused(Payment { amount_minor, ..payment() }), "AMOUNT_TOO_HIGH");
    }
    for amount_minor in [1, 2_500_000] {
        assert!(prepare(&Payment { amount_minor, ..payment() }).is_ok());
    }
    assert_eq!(refused(Payment { serial: u64::MAX, ..payment() }), "INVALID_REQUEST");
    for name in ["email", "interac_first_name", "interac_last_name"] {
        let mut recipient = fixtures::recipient();
        set(&mut recipient, name, "");
        assert_eq!(refused(Payment { recipient, ..payment() }), "INVALID_REQUEST", "{name}");
    }
}

#[test]
fn what_was_agreed_with_the_participant_is_the_limit() {
    let mut host = fixtures::host();
    for (agreed, most) in [("3000", 300_000), ("99999", 2_500_000), ("?", 2_500_000)] {
        host.settings.insert("amount_max".into(), agreed.into());
        double::install(Host { settings: host.settings.clone(), ..Host::default() });
        assert!(prepare(&Payment { amount_minor: most, ..payment() }).is_ok(), "{agreed}");
        let above = prepare(&Payment { amount_minor: most + 1, ..payment() });
        assert_eq!(above.expect_err("a refusal").code, "AMOUNT_TOO_HIGH", "{agreed}");
    }
}

#[test]
fn an_order_is_complete_and_the_answer_is_the_hosts() {
    let sent = fixtures::participant(Ok((503, String::new())));
    assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
    let sent = sent.borrow();
    let [request] = sent.as_slice() else { panic!("{sent:?}") };
    let written = format!(
        "{{\"product_code\":\"DOMESTIC\",\"message_identification\":\"{REFERENCE}\",\
         \"end_to_end_identification\":\"{REFERENCE}\",\"language\":\"EN\",\
         \"instructed_amount\":{{\"amount\":1250.50,\"currency\":\"CAD\"}},\
         \"debtor\":{{\"name\":\"Railhead Sandbox\"}},\"debtor_account\":{{\"identification\":\
         {{\"other\":{{\"identification\":\"000112345671234567\"}}}}}},\"creditor\":{{\"name\":\
         \"Jane Tremblay\",\"contact_details\":{{\"email_address\":\
         \"jane.tremblay@example.com\"}}}},\"creditor_account\":{{\"proxy\":{{\"type\":\
         {{\"proprietary\":\"EMAIL\"}},\"identification\":\"jane.tremblay@example.com\"}}}},\
         \"remittance_information\":{{\"unstructured\":\"Invoice 17\"}},\
         \"payment_authentication\":{{\"security_question\":\
         \"What code did the sender give you?\",\"security_answer\":\"<answer>\"}}}}"
    );
    assert_eq!(body(request), written);
    assert_eq!(request.body[1], seed("answer"));
    assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok());
    assert_eq!((request.call.as_str(), request.path.as_str()), ("payment", ""));
    let headers: Vec<_> =
        request.headers.iter().map(|it| (it.name.as_str(), it.value.as_slice())).collect();
    let authorization = [text("Bearer "), token("participant")];
    let expected = [
        ("Authorization", authorization.as_slice()),
        ("Content-Type", &[text("application/json")]),
        ("Idempotency-Key", &[text(REFERENCE)]),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn what_a_merchant_writes_stays_a_text() {
    let sent = fixtures::participant(Ok((503, String::new())));
    let mut recipient = fixtures::recipient();
    set(&mut recipient, "interac_last_name", "O\"Brien\\\u{1}");
    let narration = "<answer>\",\"payment_authentication\":{}}".to_owned();
    let facts = vec![field("security_question", "Asked \"then\"")];
    let _ = submit(&Payment { recipient, narration, facts, ..payment() });
    let sent = sent.borrow();
    let written: serde_json::Value = serde_json::from_str(&body(&sent[0])).expect("JSON");
    assert_eq!(written["creditor"]["name"], "Jane O\"Brien\\\u{1}");
    assert_eq!(
        written["remittance_information"]["unstructured"],
        "answer , payment_authentication"
    );
    assert_eq!(written["payment_authentication"]["security_question"], "Asked \"then\"");
    assert_eq!(written["payment_authentication"]["security_answer"], "<answer>");
    assert_eq!(sent[0].body.iter().filter(|part| matches!(part, Part::Seed(_))).count(), 1);
}

/// The question that came out of an answer.
fn asked(facts: &[Field]) -> &str {
    value(facts, "question")
}

#[test]
fn the_question_is_told_where_the_network_asks_it() {
    let fixed = vec![field("security_question", "Asked then?")];
    for (authentication, facts, question) in [
        ("PAYMENT_LEVEL", Vec::new(), QUESTION),
        ("PAYMENT_LEVEL", fixed.clone(), "Asked then?"),
        ("NOT_REQUIRED", fixed.clone(), ""),
        ("CONTACT_LEVEL", fixed.clone(), ""),
        ("", fixed, ""),
    ] {
        let payment = Payment { facts, ..payment() };
        let _sent = fixtures::participant(Ok((201, shown("INITIATED", authentication))));
        let Outcome::Accepted(receipt) = submit(&payment) else { panic!("{authentication}") };
        assert_eq!(asked(&receipt.facts), question, "{authentication}");
        assert_eq!(receipt.network_id.as_deref(), Some("CAxyz123"));
        let _sent = fixtures::participant(Ok((200, shown("AVAILABLE", authentication))));
        let Finding::Accepted(receipt) = query(&payment) else { panic!("{authentication}") };
        assert_eq!(asked(&receipt.facts), question, "{authentication}");
    }
}

#[test]
fn a_question_has_no_body() {
    let sent = fixtures::participant(Ok((503, String::new())));
    let _ = query(&payment());
    let request = &sent.borrow()[0];
    assert_eq!((request.call.as_str(), request.path.as_str()), ("status", REFERENCE));
    assert!(request.body.is_empty());
    assert_eq!(request.headers.len(), 1);
}

/// A participant that gives these answers in turn; what was called.
fn answering(answers: Vec<Result<(u16, String), Failure>>) -> Rc<RefCell<Vec<String>>> {
    let calls = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&calls);
    let mut answers = answers.into_iter();
    let send = Box::new(move |request: &Request| {
        seen.borrow_mut().push(format!("{} {}", request.call, request.path));
        let (status, body) = answers.next().expect("an answer")?;
        Ok(Response { status, headers: Vec::new(), body: body.into_bytes() })
    });
    double::install(Host { send, ..fixtures::host() });
    calls
}

#[test]
fn a_transfer_that_is_called_off_is_refused() {
    let calls = answering(vec![Ok((200, shown("CANCELLED", "PAYMENT_LEVEL")))]);
    let Finding::Refused(refusal) = recall(&payment()) else { panic!("not refused") };
    assert_eq!(refusal.code, "CANCELLED");
    assert_eq!(*calls.borrow(), [format!("cancel {REFERENCE}/cancel")]);
    let sent = fixtures::participant(Ok((503, String::new())));
    let _ = recall(&payment());
    assert_eq!(body(&sent.borrow()[0]), "{\"cancellation_reason\":\"REQUESTED_BY_SENDER\"}");
}

#[test]
fn one_that_is_not_called_off_is_what_it_is() {
    let not_now = || Ok((409, "{\"notifications\":[{\"code\":\"NOT_CANCELLABLE\"}]}".to_owned()));
    let standing = |status| Ok((200, shown(status, "PAYMENT_LEVEL")));
    answering(vec![not_now(), standing("COMPLETED")]);
    assert!(matches!(recall(&payment()), Finding::Paid(_)));
    answering(vec![not_now(), standing("AUTHENTICATION_SUCCESSFUL")]);
    assert!(matches!(recall(&payment()), Finding::Accepted(_)));
    answering(vec![standing("AVAILABLE")]);
    assert!(matches!(recall(&payment()), Finding::Accepted(_)));
    answering(vec![standing("DEPOSITED")]);
    assert!(matches!(recall(&payment()), Finding::Paid(_)));
    answering(vec![not_now(), standing("EXPIRED")]);
    assert!(matches!(recall(&payment()), Finding::Refused(_)));
}

#[test]
fn nothing_is_called_off_on_half_an_answer() {
    let unknown = format!(
        "{{\"data\":{{\"end_to_end_identification\":\"{REFERENCE}\"}},\
         \"notifications\":[{{\"code\":\"PAYMENT_NOT_FOUND\"}}]}}"
    );
    let another =
        shown("CANCELLED", "PAYMENT_LEVEL").replace(REFERENCE, "RI01A1FD557A800000000003");
    let more = shown("CANCELLED", "PAYMENT_LEVEL").replace("1250.50", "1250.51");
    let lost = || Err(Failure::NoAnswer("reset".into()));
    for answers in [
        vec![lost()],
        vec![Ok((200, String::new()))],
        vec![Ok((200, another))],
        vec![Ok((200, more))],
        vec![Ok((404, unknown.clone())), Ok((404, unknown))],
        vec![Ok((502, "<html>".to_owned()))],
        vec![Ok((409, "{}".to_owned())), lost()],
    ] {
        let what = format!("{answers:?}");
        answering(answers);
        assert!(matches!(recall(&payment()), Finding::Unknown(_)), "{what}");
    }
}
