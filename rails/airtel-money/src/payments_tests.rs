//! Payments, as they are prepared and sent. What answers mean is in `cases/`.

use railhead_rail::fields::{field, set};
use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::request::{sealed, text, token};
use railhead_rail::types::{Finding, Outcome, Payment};

use crate::fixtures::{self, REFERENCE, payment};
use crate::outcome;
use crate::payments::{prepare, query, submit};

#[test]
fn the_reference_is_ours_and_the_same_every_time() {
    let opening = prepare(&payment()).expect("a reference");
    assert_eq!(opening.reference, REFERENCE);
    assert_eq!(prepare(&Payment { reference: String::new(), ..payment() }), Ok(opening));
    let refusal = prepare(&Payment { serial: u64::MAX, ..payment() }).expect_err("a serial");
    assert_eq!(refusal.code, "reference");
}

#[test]
fn whole_shillings() {
    for amount_minor in [i64::MIN, -100, 0, 1, 1_050, i64::MAX] {
        let refusal = prepare(&Payment { amount_minor, ..payment() }).expect_err("cents");
        assert_eq!(refusal.code, "whole_shillings");
    }
    for (currency, exponent) in [("UGX", 0), ("KES", 0), ("", 2)] {
        let other = Payment { currency: currency.into(), exponent, ..payment() };
        assert_eq!(prepare(&other).expect_err("a currency").code, "currency");
    }
}

#[test]
fn a_name_of_which_nothing_can_be_sent() {
    for name in ["", " ", "ዮሐንስ", "- . -", "\u{1f600}"] {
        let mut odd = payment();
        set(&mut odd.recipient, "name", name);
        assert_eq!(prepare(&odd).expect_err(name).code, "invalid_field", "{name}");
    }
    let mut accents = payment();
    set(&mut accents.recipient, "name", "Wanjikũ Kamaũ");
    assert!(prepare(&accents).is_ok());
}

#[test]
fn a_payment_as_it_is_sent() {
    let sent = fixtures::airtel(Ok((503, String::new())));
    assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("payment", ""));
    let expected = [
        text(
            "{\"payee\":{\"currency\":\"KES\",\"msisdn\":\"733123456\",\"name\":\"Wanjiku Kamau\"},\
             \"reference\":\"po0001\",\"pin\":\"",
        ),
        sealed("airtel", "pin"),
        text(format!(
            "\",\"transaction\":{{\"amount\":1250,\"id\":\"{REFERENCE}\",\"type\":\"B2C\"}}}}"
        )),
    ];
    assert_eq!(request.body, expected);
    let headers: Vec<_> =
        request.headers.iter().map(|it| (it.name.as_str(), it.value.as_slice())).collect();
    let bearer = [text("Bearer "), token("airtel")];
    let expected = [
        ("Authorization", bearer.as_slice()),
        ("Accept", &[text("*/*")]),
        ("X-Country", &[text("KE")]),
        ("X-Currency", &[text("KES")]),
        ("Content-Type", &[text("application/json")]),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn texts_that_cannot_break_out() {
    let sent = fixtures::airtel(Ok((503, String::new())));
    let mut odd = Payment { payout: "\"}".into(), ..payment() };
    set(&mut odd.recipient, "name", "O'Nyángo\",\"pin\":\"1\n \u{1f600}");
    let _ = submit(&odd);
    let request = &sent.borrow()[0];
    let expected = format!(
        "{{\"payee\":{{\"currency\":\"KES\",\"msisdn\":\"733123456\",\
         \"name\":\"O Nyango pin 1\"}},\"reference\":\"{REFERENCE}\",\"pin\":\""
    );
    assert_eq!(request.body[0], text(expected));
}

fn answer(status: &str, code: &str) -> String {
    format!(
        "{{\"data\":{{\"transaction\":{{\"airtel_money_id\":\"MP1\",\"id\":\"{REFERENCE}\",\
         \"reference_id\":\"18354\",\"status\":\"{status}\"}}}},\
         \"status\":{{\"code\":\"200\",\"response_code\":\"{code}\",\"result_code\":\"ESB000010\"}}}}"
    )
}

#[test]
fn a_question_names_the_payment_and_its_kind() {
    let sent = fixtures::airtel(Ok((200, answer("TS", "DP00900001001"))));
    let Finding::Paid(receipt) = query(&payment()) else { panic!("paid") };
    assert_eq!((receipt.network_id.as_deref(), receipt.amount_minor), (Some("MP1"), None));
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("status", REFERENCE));
    let [kind] = request.query.as_slice() else { panic!("{:?}", request.query) };
    assert_eq!((&*kind.name, kind.value.as_slice()), ("transactionType", &[text("B2C")][..]));
}

#[test]
fn what_airtel_does_not_find_is_the_operators_to_judge() {
    let not_found = "{\"status\":{\"response_code\":\"DP00900001015\"}}";
    fixtures::airtel(Ok((200, not_found.into())));
    assert!(matches!(query(&payment()), Finding::Unknown(_)));
    let installed = || {
        let host = fixtures::host("never-received");
        double::install_with(host, Ok((200, not_found.into())))
    };
    let _ = installed();
    assert!(matches!(query(&payment()), Finding::NeverReceived(_)));
    // A sending that says so says nothing of itself.
    assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
    let taken = Payment { facts: outcome::taken(), ..payment() };
    let _ = installed();
    assert!(matches!(query(&taken), Finding::Unknown(_)));
}

#[test]
fn what_airtel_took_on_is_noted() {
    fixtures::airtel(Ok((200, answer("TIP", "DP00900001006"))));
    let Outcome::Accepted(receipt) = submit(&payment()) else { panic!("accepted") };
    assert_eq!(receipt.facts, [field(outcome::TAKEN, "yes")]);
}

#[test]
fn no_answer_proves_nothing() {
    for failure in [Failure::NotSent("x".into()), Failure::NoAnswer("y".into())] {
        fixtures::airtel(Err(failure.clone()));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        fixtures::airtel(Err(failure));
        assert!(matches!(query(&payment()), Finding::Unknown(_)));
    }
}
