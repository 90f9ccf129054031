//! Payouts, as they are prepared and sent. What answers mean is in `cases/`.

use railhead_rail::fields::{field, set};
use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::request::{callback, secret, text};
use railhead_rail::types::{Finding, Outcome, Payment};

use crate::fixtures::{self, KENYAN, REFERENCE, kenyan, payment};
use crate::payouts::{prepare, query, submit};
use crate::standing;

#[test]
fn the_reference_is_ours_and_the_same_every_time() {
    for (payment, reference) in [(payment(), REFERENCE), (kenyan(), KENYAN)] {
        let opening = prepare(&payment).expect("a reference");
        assert_eq!(opening.reference, reference);
        assert_eq!(prepare(&Payment { reference: String::new(), ..payment }), Ok(opening));
    }
}

#[test]
fn what_no_wallet_can_hold_is_refused() {
    for amount_minor in [i64::MIN, -1, 0] {
        let refusal = prepare(&Payment { amount_minor, ..payment() }).expect_err("an amount");
        assert_eq!(refusal.code, "amount");
    }
    for (currency, exponent) in [("NGN", 2), ("", 2), ("GHS", 0), ("GHS", 3), ("KES", 0)] {
        let other = Payment { currency: currency.into(), exponent, ..payment() };
        assert_eq!(prepare(&other).expect_err("a currency").code, "currency");
    }
    assert!(prepare(&Payment { amount_minor: 1, ..payment() }).is_ok());
    for amount_minor in [1, 99, 101, i64::MAX] {
        let refusal = prepare(&Payment { amount_minor, ..kenyan() }).expect_err("cents");
        assert_eq!(refusal.code, "whole_units");
    }
}

#[test]
fn a_payout_as_it_is_sent() {
    let sent = fixtures::aggregator(Ok((202, standing("PENDING", ""))));
    let Outcome::Accepted(receipt) = submit(&payment()) else { panic!("accepted") };
    assert_eq!((&*receipt.code, receipt.amount_minor), ("PENDING", None));
    assert_eq!(receipt.facts, standing::taken());
    let sent = sent.borrow();
    let before = format!(
        "{{\"reference\":\"{REFERENCE}\",\"amount\":\"1250.50\",\"currency\":\"GHS\",\
         \"operator\":\"telecel\",\"account\":\"233201234567\",\"name\":\"Ama Mensah\",\
         \"narration\":\"Invoice 17\",\"callback_url\":\""
    );
    let address = callback(&format!("/payouts/{REFERENCE}"));
    assert_eq!(sent[0].body, [text(before), address, text("\"}")]);
    assert_eq!((sent.len(), &*sent[0].call, &*sent[0].path), (1, "payout", ""));
    let headers: Vec<_> =
        sent[0].headers.iter().map(|it| (it.name.as_str(), it.value.as_slice())).collect();
    let bearer = [text("Bearer "), secret("api_key")];
    let expected = [
        ("Authorization", bearer.as_slice()),
        ("Content-Type", &[text("application/json")]),
        ("Idempotency-Key", &[text(REFERENCE)]),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn no_address_is_given_where_the_operator_wants_none() {
    let mut host = fixtures::host();
    host.settings.insert("callbacks".into(), "off".into());
    let sent = double::install_with(host, Ok((202, String::new())));
    let narration = "Ama's \"pay\"\n\u{1f600}".into();
    let _ = submit(&Payment { narration, ..kenyan() });
    let body = format!(
        "{{\"reference\":\"{KENYAN}\",\"amount\":\"1250.00\",\"currency\":\"KES\",\
         \"operator\":\"tkash\",\"account\":\"254771234567\",\"name\":\"Wanjiku Kamau\",\
         \"narration\":\"Ama s pay\"}}"
    );
    assert_eq!(double::body(&sent), body);
}

#[test]
fn nothing_is_sent_of_nothing() {
    let sent = fixtures::aggregator(Ok((202, String::new())));
    assert!(matches!(submit(&Payment { amount_minor: 0, ..payment() }), Outcome::Unknown(_)));
    assert!(sent.borrow().is_empty());
}

fn standing(status: &str, more: &str) -> String {
    format!(
        "{{\"reference\":\"{REFERENCE}\",\"status\":\"{status}\",\"amount\":\"1250.50\",\
         \"currency\":\"GHS\",\"operator\":\"telecel\",\"account\":\"233201234567\"{more}}}"
    )
}

#[test]
fn a_question_names_the_payout() {
    let more = ",\"transaction_id\":\"AG-1\"";
    let sent = fixtures::aggregator(Ok((200, standing("SUCCESS", more))));
    let Finding::Paid(receipt) = query(&payment()) else { panic!("paid") };
    assert_eq!(receipt.amount_minor, Some(125_050));
    assert_eq!(receipt.network_id.as_deref(), Some("AG-1"));
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("status", REFERENCE));
    assert!(request.body.is_empty());
    assert_eq!(request.headers.len(), 1);
}

#[test]
fn what_the_aggregator_took_on_was_received() {
    let unknown = format!("{{\"code\":\"PAYOUT_NOT_FOUND\",\"reference\":\"{REFERENCE}\"}}");
    fixtures::aggregator(Ok((404, unknown)));
    assert!(matches!(query(&payment()), Finding::NeverReceived(_)));
    let taken = Payment { facts: standing::taken(), ..payment() };
    assert!(matches!(query(&taken), Finding::Unknown(_)));
    fixtures::aggregator(Ok((200, standing("PENDING", ""))));
    let Finding::Accepted(receipt) = query(&payment()) else { panic!("accepted") };
    assert_eq!(receipt.facts, [field(standing::TAKEN, "yes")]);
}

#[test]
fn another_payment_is_not_ours() {
    let set_to = |name: &str, value: &str| {
        let mut other = payment();
        set(&mut other.recipient, name, value);
        other
    };
    for (other, what) in [
        (Payment { reference: KENYAN.into(), ..payment() }, "reference"),
        (Payment { currency: "KES".into(), ..payment() }, "currency"),
        (Payment { amount_minor: 125_051, ..payment() }, "amount"),
        (set_to("mobile_operator", "at"), "operator"),
        (set_to("mobile_number", "233201234568"), "wallet"),
    ] {
        for body in [standing("SUCCESS", ""), standing("FAILED", ",\"code\":\"REJECTED\"")] {
            fixtures::aggregator(Ok((200, body.clone())));
            assert!(matches!(query(&other), Finding::Unknown(why) if why.contains(what)));
            fixtures::aggregator(Ok((200, body)));
            assert!(matches!(submit(&other), Outcome::Unknown(why) if why.contains(what)));
        }
    }
}

#[test]
fn no_answer_proves_nothing() {
    for failure in [Failure::NotSent("x".into()), Failure::NoAnswer("y".into())] {
        fixtures::aggregator(Err(failure.clone()));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        fixtures::aggregator(Err(failure));
        assert!(matches!(query(&payment()), Finding::Unknown(_)));
    }
}

#[test]
fn a_standing_counts_under_its_status_and_with_its_code_only() {
    let rejected = ",\"code\":\"REJECTED\"";
    for (stands, more, taken_on, decided) in [
        ("SUCCESS", "", "unknown", "paid"),
        ("SUCCESS", rejected, "unknown", "unknown"),
        ("SUCCESS", ",\"code\":\"\"", "unknown", "unknown"),
        ("PENDING", "", "accepted", "accepted"),
        ("PENDING", rejected, "unknown", "unknown"),
        ("FAILED", rejected, "unknown", "refused"),
        ("FAILED", "", "unknown", "unknown"),
        ("UNKNOWN", "", "unknown", "unknown"),
        ("UNKNOWN", rejected, "unknown", "unknown"),
    ] {
        for status in 200..600 {
            let expected = match status {
                200 => decided,
                202 => taken_on,
                _ => "unknown",
            };
            fixtures::aggregator(Ok((status, standing(stands, more))));
            let outcome = match submit(&payment()) {
                Outcome::Paid(_) => "paid",
                Outcome::Accepted(_) => "accepted",
                Outcome::Refused(_) => "refused",
                Outcome::Unknown(_) => "unknown",
            };
            assert_eq!(outcome, expected, "{status} {stands} {more}");
            let expected = if status == 200 { decided } else { "unknown" };
            let found = match query(&payment()) {
                Finding::Paid(_) => "paid",
                Finding::Accepted(_) => "accepted",
                Finding::Refused(_) => "refused",
                _ => "unknown",
            };
            assert_eq!(found, expected, "{status} {stands} {more}");
        }
    }
}

/// What stands between two lines of the README, as JSON.
fn documented(from: &str) -> serde_json::Value {
    let readme = include_str!("../README.md");
    let (_, rest) = readme.split_once(from).expect("an example");
    let (text, _) = rest.split_once("\n```").expect("an end");
    serde_json::from_str(&text.replace('\n', "")).expect("JSON")
}

#[test]
fn what_is_documented_is_what_is_sent_and_believed() {
    let mut host = fixtures::host();
    host.settings.insert("callbacks".into(), "off".into());
    let sent = double::install_with(host, Ok((202, String::new())));
    let _ = submit(&payment());
    let body: serde_json::Value = serde_json::from_str(&double::body(&sent)).expect("JSON");
    let mut example = documented(&format!("Idempotency-Key: {REFERENCE}\n"));
    let address = example.as_object_mut().and_then(|it| it.remove("callback_url"));
    assert!(address.is_some_and(|it| it.to_string().contains(&format!("/payouts/{REFERENCE}"))));
    assert_eq!(body, example);

    let [stands, problem] = ["`PAYOUT_NOT_FOUND`.\n\n```json", "## What is wrong\n\n```json"]
        .map(|from| documented(from).to_string());
    fixtures::aggregator(Ok((200, stands)));
    assert!(matches!(query(&payment()), Finding::Paid(_)));
    fixtures::aggregator(Ok((422, problem)));
    let Outcome::Refused(refusal) = submit(&payment()) else { panic!("refused") };
    assert_eq!(refusal.code, "INSUFFICIENT_FLOAT");
}
