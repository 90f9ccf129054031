//! What answers to wires and to questions come to.

use railhead_rail::fields::{field, set, value};
use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Finding, Outcome, Payment};

use crate::fixtures::{
    self, BEGUN_AT_MS, IMAD, REFERENCE, body, gateway, payment, rejection, returned, status,
};
use crate::payments::{prepare, query, submit};

const HOUR_MS: u64 = 3_600_000;
const OTHER: &str = "8a562c67-ca16-48ba-b074-65581be6f011";

fn submitted(code: u16, text: &str) -> Outcome {
    let _sent = gateway(Ok((code, text.to_owned())));
    submit(&payment())
}

fn asked(code: u16, text: &str) -> Finding {
    let _sent = gateway(Ok((code, text.to_owned())));
    query(&payment())
}

fn reason(code: &str) -> String {
    format!("<StsRsnInf><Rsn><Prtry>{code}</Prtry></Rsn><AddtlInf>x</AddtlInf></StsRsnInf>")
}

fn amount(currency: &str, text: &str) -> String {
    format!("<OrgnlTxRef><IntrBkSttlmAmt Ccy=\"{currency}\">{text}</IntrBkSttlmAmt></OrgnlTxRef>")
}

#[test]
fn the_reference_is_a_uetr() {
    fixtures::install();
    let opening = prepare(&payment()).expect("an opening");
    assert_eq!(opening.reference, REFERENCE);
    assert_eq!(opening.facts, [field("source_id", "B1QDRCQR")]);
    for amount_minor in [0, -1, 1_000_000_000_000] {
        let refused = prepare(&Payment { amount_minor, ..payment() }).expect_err("no wire");
        assert_eq!(refused.code, "amount");
    }
    let mut nameless = payment();
    set(&mut nameless.recipient, "name", "Иван");
    assert_eq!(prepare(&nameless).expect_err("no wire").code, "name");
}

#[test]
fn a_sender_is_named_with_town_and_country() {
    fixtures::install();
    let name = || vec![field("first_name", "Ada"), field("last_name", "Obi")];
    let with = |more: &[(&str, &str)]| {
        let mut sender = name();
        more.iter().for_each(|(name, value)| set(&mut sender, name, *value));
        prepare(&Payment { sender, ..payment() }).map_err(|refusal| refusal.code)
    };
    assert!(with(&[("city", "Lagos"), ("country", "ng")]).is_ok());
    for odd in [
        &[][..],
        &[("city", "Lagos")],
        &[("country", "NG")],
        &[("city", "Москва"), ("country", "RU")],
        &[("city", "Lagos"), ("country", "NGA")],
    ] {
        assert_eq!(with(odd).expect_err("no wire"), "sender", "{odd:?}");
    }
    // Who is not named is not the payer.
    let nobody = vec![field("city", "Lagos")];
    assert!(prepare(&Payment { sender: nobody, ..payment() }).is_ok());
}

#[test]
fn a_wire_settles() {
    for code in [200, 201, 202] {
        let Outcome::Paid(receipt) = submitted(code, &status("ACSC", "")) else {
            panic!("not paid")
        };
        assert_eq!((receipt.code.as_str(), receipt.network_id.as_deref()), ("ACSC", Some(IMAD)));
        assert_eq!(receipt.amount_minor, None);
        assert_eq!(value(&receipt.facts, "created_at"), "2026-11-23T10:00:00-05:00");
    }
    let with = status("ACSC", &amount("USD", "1250.5"));
    assert!(matches!(submitted(200, &with), Outcome::Paid(it) if it.amount_minor == Some(125_050)));
    assert!(matches!(asked(200, &with), Finding::Paid(_)));
    for word in ["ACSP", "ACTC", "ACCP", "PDNG", "RCVD"] {
        assert!(matches!(submitted(202, &status(word, "")), Outcome::Accepted(_)), "{word}");
        assert!(matches!(asked(200, &status(word, "")), Finding::Accepted(_)), "{word}");
    }
}

#[test]
fn a_wire_is_rejected() {
    for code in [200, 400, 422] {
        let found = submitted(code, &status("RJCT", &reason("E433")));
        assert!(matches!(&found, Outcome::Refused(it) if it.code == "E433"), "{found:?}");
        let found = submitted(code, &rejection(IMAD, "E990"));
        assert!(matches!(&found, Outcome::Refused(it) if it.code == "E990"), "{found:?}");
    }
    let found = asked(200, &status("RJCT", &(reason("AC04") + &reason("AC01"))));
    assert!(matches!(&found, Finding::Refused(it) if it.code == "AC04"), "{found:?}");
    assert!(matches!(asked(200, &status("CANC", "")), Finding::Refused(_)));
    for reasons in [
        String::new(),
        reason("AM05"),
        reason("X001"),
        reason("H001"),
        reason("I001"),
        reason("NARR"),
        reason("ZZZZ"),
        reason("E433") + &reason("AM05"),
        reason("AM05") + &reason("E433"),
        reason("E433").replace(">x<", ">The message was received previously<"),
        reason("E433").replace("</StsRsnInf>", "<AddtlInf>A duplicate</AddtlInf></StsRsnInf>"),
    ] {
        let text = status("RJCT", &reasons);
        assert!(matches!(submitted(200, &text), Outcome::Unknown(_)), "{reasons}");
        assert!(matches!(asked(200, &text), Finding::Unknown(_)), "{reasons}");
    }
}

#[test]
fn words_for_a_copy_count_and_words_of_an_account_do_not() {
    let found = |code: &str, words: &str| {
        let reasons = reason(code).replace(">x<", &format!(">{words}<"));
        asked(200, &status("RJCT", &reasons))
    };
    for (code, words) in [
        ("AC01", "Account does not exist"),
        ("AC04", "The account has already been closed"),
        ("AC04", "Account closed previously"),
        ("E433", "Account already closed"),
        ("MS03", "No such account exists"),
    ] {
        let found = found(code, words);
        assert!(matches!(&found, Finding::Refused(it) if it.code == code), "{words}: {found:?}");
    }
    for (code, words) in [
        ("E433", "A duplicate"),
        ("AC04", "A duplicate"),
        ("FF01", "The message was received previously"),
        ("MS03", "already processed"),
    ] {
        let found = found(code, words);
        assert!(matches!(found, Finding::Unknown(_)), "{words}: {found:?}");
    }
    let both = reason("AC04") + &reason("FF01").replace(">x<", ">Duplicate<");
    assert!(matches!(asked(200, &status("RJCT", &both)), Finding::Unknown(_)));
}

#[test]
fn answers_that_prove_nothing() {
    let settled = status("ACSC", "");
    let refused = status("RJCT", &reason("E433"));
    for code in [203, 302, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504] {
        for text in [&settled, &refused, &rejection(IMAD, "E990"), ""] {
            assert!(matches!(submitted(code, text), Outcome::Unknown(_)), "{code} {text}");
            assert!(matches!(asked(code, text), Finding::Unknown(_)), "{code} {text}");
        }
    }
    for text in [
        "",
        "{}",
        "<html>503</html>",
        &settled[..settled.len() - 9],
        &settled.replace(REFERENCE, OTHER),
        &settled.replace(IMAD, "20261123B1QDRCQR000006"),
        &settled.replace(IMAD, "20261123C1QDRCQR000005"),
        &settled.replace("pacs.008.001.08", "pacs.009.001.08"),
        &settled.replace("<TxSts>ACSC", "<TxSts>RJCT</TxSts><TxSts>ACSC"),
        &settled.replace("xsd:pacs.002.001.10", "xsd:pacs.002.001.03"),
        &status("ACSC", &amount("USD", "1250.51")),
        &status("ACSC", &amount("EUR", "1250.50")),
        &status("ACSC", &amount("USD", "1250.50").repeat(2)),
        &status("ACCC", ""),
        &status("acsc", ""),
        &fixtures::acknowledged(IMAD),
        &fixtures::resolution("CNCL"),
        &returned("1250.50"),
        &rejection("20261123B1QDRCQR000007", "E990"),
        &rejection(IMAD, "X001"),
        &rejection(IMAD, "E990").replace("</Rsn>", "<RsnDesc>Duplicate message</RsnDesc></Rsn>"),
    ] {
        assert!(matches!(submitted(200, text), Outcome::Unknown(_)), "{text}");
        assert!(matches!(asked(200, text), Finding::Unknown(_)), "{text}");
    }
    // Under an error, nobody settles.
    for code in [400, 422] {
        assert!(matches!(submitted(code, &settled), Outcome::Unknown(_)));
        assert!(matches!(submitted(code, &status("PDNG", "")), Outcome::Unknown(_)));
    }
}

#[test]
fn no_answer() {
    for failure in [Failure::NotSent("refused".into()), Failure::NoAnswer("timeout".into())] {
        let sent = gateway(Err(failure.clone()));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        assert!(matches!(query(&payment()), Finding::Unknown(_)));
        assert_eq!(sent.borrow().len(), 2);
    }
}

/// The gateway of a day's `hour`, counted from when the payment was begun, answers that it knows
/// no such wire.
fn not_known(hour: u64) -> Finding {
    let now_ms = BEGUN_AT_MS + hour * HOUR_MS;
    let about = crate::messages::question_id(2, now_ms);
    let text = rejection(&about, "E404");
    let _sent = double::install_with(double::Host { now_ms, ..fixtures::host() }, Ok((404, text)));
    query(&payment())
}

#[test]
fn never_received_on_its_day_alone() {
    for hour in [0, 1, 8, 10] {
        assert!(matches!(not_known(hour), Finding::NeverReceived(_)), "{hour}");
    }
    // At nine in the evening the next day begins.
    for hour in [11, 24, 25, 1_000] {
        assert!(matches!(not_known(hour), Finding::Unknown(_)), "{hour}");
    }
    for (code, about) in [(404, IMAD), (404, "Q"), (200, IMAD)] {
        assert!(matches!(asked(code, &rejection(about, "E404")), Finding::Unknown(_)));
    }
    assert!(matches!(asked(404, ""), Finding::Unknown(_)));
}

fn sent_at(payment: &Payment, now_ms: u64) -> String {
    let host = double::Host { now_ms, ..fixtures::host() };
    let sent = double::install_with(host, Err(Failure::NoAnswer("timeout".into())));
    let _unknown = submit(payment);
    body(&sent)
}

#[test]
fn sent_again_it_is_the_same_message_on_the_same_day() {
    let first = sent_at(&payment(), BEGUN_AT_MS + 100);
    assert_eq!(sent_at(&payment(), BEGUN_AT_MS + 9 * HOUR_MS), first);
    let later = sent_at(&payment(), BEGUN_AT_MS + 11 * HOUR_MS);
    assert!(later.contains("<MsgId>20261124B1QDRCQR000005</MsgId>"), "{later}");
    assert!(later.contains("<IntrBkSttlmDt>2026-11-24</IntrBkSttlmDt>"));
    assert!(later.contains("<CreDtTm>2026-11-23T21:00:00-05:00</CreDtTm>"));
    assert!(later.contains(REFERENCE));
}

#[test]
fn asked_about_as_it_was_sent() {
    let question = |payment: &Payment| {
        let sent = gateway(Err(Failure::NoAnswer("timeout".into())));
        let _unknown = query(payment);
        body(&sent)
    };
    let first = question(&payment());
    for part in [
        "<OrgnlMsgId>20261123B1QDRCQR000005</OrgnlMsgId>",
        "<OrgnlCreDtTm>2026-11-23T10:00:00-05:00</OrgnlCreDtTm>",
        "<GrpHdr><MsgId>Q01A208EBCF5C0000000002</MsgId>",
    ] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    let told = Payment {
        network_id: Some("20261124B1QDRCQR000005".into()),
        facts: vec![
            field("created_at", "2026-11-24T09:00:00-05:00"),
            field("source_id", "C1QDRCQR"),
        ],
        ..payment()
    };
    let later = question(&told);
    assert!(later.contains("<OrgnlMsgId>20261124B1QDRCQR000005</OrgnlMsgId>"), "{later}");
    assert!(later.contains("<OrgnlCreDtTm>2026-11-24T09:00:00-05:00</OrgnlCreDtTm>"));
    // It goes on under the source that it was prepared with, whatever the settings say now.
    let moved = Payment { network_id: None, ..told };
    assert!(question(&moved).contains("<OrgnlMsgId>20261123C1QDRCQR000005</OrgnlMsgId>"));
    let answer = status("ACSC", "").replace("B1QDRCQR", "C1QDRCQR");
    let _sent = gateway(Ok((200, answer)));
    assert!(matches!(query(&moved), Finding::Paid(_)));
    let _sent = gateway(Ok((200, status("ACSC", ""))));
    assert!(matches!(query(&moved), Finding::Unknown(_)));
}
