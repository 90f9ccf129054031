//! Payments, as they are sent and prepared. What answers mean is in `cases/`.

use railhead_rail::fields::set;
use railhead_rail::request::{secret, signature, text};
use railhead_rail::types::{Finding, Outcome, Payment};

use crate::fixtures::{self, REFERENCE, payment};
use crate::payments::{prepare, query, submit};

#[test]
fn the_reference_is_ours_and_the_same_every_time() {
    let opening = prepare(&payment()).expect("a reference");
    assert_eq!(opening.reference, REFERENCE);
    assert_eq!(prepare(&payment()), Ok(opening));
}

#[test]
fn what_the_scheme_would_not_carry_is_refused() {
    for amount_minor in [i64::MIN, -1, 0, 100_000_001, i64::MAX] {
        let refusal = prepare(&Payment { amount_minor, ..payment() }).expect_err("an amount");
        assert_eq!(refusal.code, "amount");
    }
    assert!(prepare(&Payment { amount_minor: 100_000_000, ..payment() }).is_ok());
    for name in ["", "  ", "José", "A|B", "名前"] {
        let mut recipient = fixtures::recipient();
        set(&mut recipient, "name", name);
        let refusal = prepare(&Payment { recipient, ..payment() }).expect_err(name);
        assert_eq!(refusal.code, "name");
    }
    let refusal = prepare(&Payment { serial: u64::MAX, ..payment() }).expect_err("a serial");
    assert_eq!(refusal.code, "reference");
}

#[test]
fn an_order_is_signed_and_complete() {
    let sent = fixtures::gateway(Ok((503, String::new())));
    assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
    let body = format!(
        "{{\"paymentInstructions\":[{{\"paymentInstructionIdentification\":\"{REFERENCE}\",\
         \"paymentTypeCode\":\"SIP\",\"debtor\":{{\"address\":\"UK, London, High Street, 1, \
         EC1A 1AA\"}},\"debtorAccount\":{{\"identification\":{{\"other\":{{\"identification\":\
         \"GBR04000400000000\",\"schemeName\":{{\"proprietary\":\"PRTY_COUNTRY_SPECIFIC\"}}}}}}}},\
         \"creditTransfers\":[{{\"paymentIdentification\":{{\"instructionIdentification\":\
         \"{REFERENCE}\",\"endToEndIdentification\":\"{REFERENCE}\"}},\"amount\":\
         {{\"instructedAmount\":1250.50,\"currency\":\"GBP\"}},\"creditor\":{{\"name\":\
         \"Jane Smith\"}},\"creditorAccount\":{{\"identification\":{{\"other\":\
         {{\"identification\":\"GBR08999966374958\",\"schemeName\":{{\"proprietary\":\
         \"PRTY_COUNTRY_SPECIFIC\"}}}}}}}},\"remittanceInformation\":{{\"structured\":\
         {{\"creditorReferenceInformation\":{{\"reference\":\"Invoice 17\"}}}}}}}}]}}]}}"
    );
    assert_eq!(fixtures::body(&sent), body);
    let request = &sent.borrow()[0];
    assert_eq!(request.call, "payment");
    let headers: Vec<_> =
        request.headers.iter().map(|it| (it.name.as_str(), it.value.as_slice())).collect();
    let authorization = [text("Bearer "), secret("api_token")];
    let expected = [
        ("Authorization", authorization.as_slice()),
        ("Content-Type", &[text("application/json")]),
        ("DigitalSignature", &[signature("signing")]),
        ("X-Request-Id", &[text(REFERENCE)]),
    ];
    assert_eq!(headers, expected);
}

#[test]
fn a_question_has_no_body_and_no_signature() {
    let sent = fixtures::gateway(Ok((503, String::new())));
    let _ = query(&payment());
    let request = &sent.borrow()[0];
    assert_eq!((request.call.as_str(), request.path.as_str()), ("status", REFERENCE));
    assert!(request.body.is_empty());
    assert_eq!(request.headers.len(), 1);
}

#[test]
fn what_does_not_fit_is_cut_and_nothing_escapes() {
    let mut recipient = fixtures::recipient();
    set(&mut recipient, "name", "The \"Worshipful\" Company of Makers of Playing Cards");
    let narration = "Rent \"May\" \\ {secret} 2027".to_owned();
    let sent = fixtures::gateway(Ok((503, String::new())));
    let _ = submit(&Payment { recipient, narration, ..payment() });
    let body = fixtures::body(&sent);
    assert!(body.contains("\"name\":\"The \\\"Worshipful\\\" Company of Makers\""), "{body}");
    assert!(body.contains("\"reference\":\"Rent \\\"May\\\" {secret\""), "{body}");
}

#[test]
fn a_rejection_counts_with_a_code_that_refuses_and_with_no_other() {
    let told = |word: &str, more: &str| {
        let body =
            format!("{{\"endToEndIdentification\":\"{REFERENCE}\",\"status\":\"{word}\"{more}}}");
        let _sent = fixtures::gateway(Ok((200, body)));
        query(&payment())
    };
    for word in ["Rejected", "Cancelled"] {
        for code in ["1114", "AC07", "InsufficientFunds"] {
            let found = told(word, &format!(",\"reasonCode\":\"{code}\""));
            assert!(matches!(&found, Finding::Refused(it) if it.code == code), "{found:?}");
        }
        // 9913: the first copy may have been processed.
        for code in ["1181", "9911", "9912", "9913", "9935", "9999", "AC-07", "ac07", ""] {
            let found = told(word, &format!(",\"reasonCode\":\"{code}\""));
            assert!(matches!(found, Finding::Unknown(_)), "{found:?}");
        }
        assert!(matches!(told(word, ""), Finding::Unknown(_)));
        assert!(matches!(told(word, ",\"reasonCode\":null"), Finding::Unknown(_)));
    }
}
