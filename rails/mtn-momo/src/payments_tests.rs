//! Transfers, as they are prepared and sent. What answers mean is in `cases/`.

use railhead_rail::fields::{field, set};
use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::request::{callback, secret, text, token};
use railhead_rail::types::{Finding, Outcome, Payment};

use crate::fixtures::{self, REFERENCE, payment};
use crate::payments::{prepare, query, submit};
use crate::standing;

#[test]
fn the_reference_is_ours_and_the_same_every_time() {
    let opening = prepare(&payment()).expect("a reference");
    assert_eq!(opening.reference, REFERENCE);
    assert_eq!(prepare(&Payment { reference: String::new(), ..payment() }), Ok(opening));
}

#[test]
fn what_no_wallet_can_hold_is_refused() {
    for amount_minor in [i64::MIN, -1, 0] {
        let refusal = prepare(&Payment { amount_minor, ..payment() }).expect_err("an amount");
        assert_eq!(refusal.code, "amount");
    }
    for (currency, exponent) in [("KES", 2), ("", 2), ("GHS", 0), ("GHS", 3)] {
        let other = Payment { currency: currency.into(), exponent, ..payment() };
        assert_eq!(prepare(&other).expect_err("a currency").code, "currency");
    }
}

#[test]
fn a_transfer_as_it_is_sent() {
    let sent = fixtures::mtn(Ok((202, String::new())));
    let Outcome::Accepted(receipt) = submit(&payment()) else { panic!("accepted") };
    assert_eq!((&*receipt.code, receipt.amount_minor), ("202", None));
    assert_eq!(receipt.facts, standing::taken());
    let body = format!(
        "{{\"amount\":\"1250.50\",\"currency\":\"GHS\",\"externalId\":\"{REFERENCE}\",\
         \"payee\":{{\"partyIdType\":\"MSISDN\",\"partyId\":\"233241234567\"}},\
         \"payerMessage\":\"po conformance00000000000000\",\"payeeNote\":\"Invoice 17\"}}"
    );
    assert_eq!(double::body(&sent), body);
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("transfer", ""));
    let headers: Vec<_> =
        request.headers.iter().map(|it| (it.name.as_str(), it.value.as_slice())).collect();
    let bearer = [text("Bearer "), token("momo")];
    let address = [callback(&format!("/transfers/{REFERENCE}"))];
    let expected = [
        ("Authorization", bearer.as_slice()),
        ("Ocp-Apim-Subscription-Key", &[secret("subscription_key")]),
        ("X-Target-Environment", &[text("mtnghana")]),
        ("Content-Type", &[text("application/json")]),
        ("X-Reference-Id", &[text(REFERENCE)]),
        ("X-Callback-Url", &address),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn texts_that_mtn_would_not_have() {
    let sent = fixtures::mtn(Ok((202, String::new())));
    let _ = submit(&Payment { narration: "Ama's \"pay\"\n\u{1f600}".into(), ..payment() });
    assert!(double::body(&sent).ends_with("\"payeeNote\":\"Ama s pay\"}"));
    let sent = fixtures::mtn(Ok((202, String::new())));
    let _ = submit(&Payment { narration: String::new(), ..payment() });
    assert!(double::body(&sent).ends_with("\"payeeNote\":\"Payment\"}"));
}

#[test]
fn no_address_is_given_where_the_operator_wants_none() {
    let mut host = fixtures::host();
    host.settings.insert("callbacks".into(), "off".into());
    let sent = double::install_with(host, Ok((202, String::new())));
    assert!(matches!(submit(&payment()), Outcome::Accepted(_)));
    assert!(sent.borrow()[0].headers.iter().all(|header| header.name != "X-Callback-Url"));
}

#[test]
fn nothing_is_sent_of_nothing() {
    let sent = fixtures::mtn(Ok((202, String::new())));
    assert!(matches!(submit(&Payment { amount_minor: 0, ..payment() }), Outcome::Unknown(_)));
    assert!(sent.borrow().is_empty());
}

fn standing(status: &str, more: &str) -> String {
    format!(
        "{{\"amount\":\"1250.5\",\"currency\":\"GHS\",\"externalId\":\"{REFERENCE}\",\
         \"payee\":{{\"partyIdType\":\"MSISDN\",\"partyId\":\"233241234567\"}},\
         \"status\":\"{status}\"{more}}}"
    )
}

#[test]
fn a_question_names_the_transfer() {
    let more = ",\"financialTransactionId\":\"363440463\"";
    let sent = fixtures::mtn(Ok((200, standing("SUCCESSFUL", more))));
    let Finding::Paid(receipt) = query(&payment()) else { panic!("paid") };
    assert_eq!(receipt.amount_minor, Some(125_050));
    assert_eq!(receipt.network_id.as_deref(), Some("363440463"));
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("status", REFERENCE));
    assert!(request.body.is_empty());
    assert_eq!(request.headers.len(), 3);
}

#[test]
fn what_mtn_took_on_was_received() {
    let unknown = "{\"code\":\"RESOURCE_NOT_FOUND\",\"message\":\"x\"}";
    fixtures::mtn(Ok((404, unknown.into())));
    assert!(matches!(query(&payment()), Finding::NeverReceived(_)));
    let taken = Payment { facts: standing::taken(), ..payment() };
    assert!(matches!(query(&taken), Finding::Unknown(_)));
    fixtures::mtn(Ok((200, standing("PENDING", ""))));
    let Finding::Accepted(receipt) = query(&payment()) else { panic!("accepted") };
    assert_eq!(receipt.facts, [field(standing::TAKEN, "yes")]);
}

#[test]
fn what_a_trouble_of_mtns_own_proves_is_the_operators_to_say() {
    for reason in
        ["INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE", "COULD_NOT_PERFORM_TRANSACTION"]
    {
        let failed = standing("FAILED", &format!(",\"reason\":\"{reason}\""));
        fixtures::mtn(Ok((200, failed.clone())));
        assert!(matches!(query(&payment()), Finding::Unknown(_)), "{reason}");
        let mut host = fixtures::host();
        host.settings.insert("unclear_failures".into(), "refused".into());
        let _ = double::install_with(host, Ok((200, failed)));
        assert!(matches!(query(&payment()), Finding::Refused(_)), "{reason}");
    }
}

#[test]
fn another_wallet_is_not_ours() {
    fixtures::mtn(Ok((200, standing("SUCCESSFUL", ""))));
    let mut other = payment();
    set(&mut other.recipient, "mobile_number", "233241234568");
    assert!(matches!(query(&other), Finding::Unknown(why) if why.contains("wallet")));
}

#[test]
fn no_answer_proves_nothing() {
    for failure in [Failure::NotSent("x".into()), Failure::NoAnswer("y".into())] {
        fixtures::mtn(Err(failure.clone()));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        fixtures::mtn(Err(failure));
        assert!(matches!(query(&payment()), Finding::Unknown(_)));
    }
}
