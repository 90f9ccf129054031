use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Finding, Outcome, Payment, RecallReason, RecallRequest};

use super::recall;
use crate::fixtures::{self, INSTANT_REFERENCE, REFERENCE, instant_payment, payment};
use crate::instant::submit;

fn came(payment: &Payment, status: u16, body: &str) -> Finding {
    let _sent = fixtures::gateway(Ok((status, body.to_owned())));
    recall(payment, &fixtures::recall_request())
}

fn resolution(reference: &str, word: &str, code: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.029.001.09\"><RsltnOfInvstgtn>\
         <Sts><Conf>{word}</Conf></Sts><CxlDtls><TxInfAndSts>\
         <OrgnlEndToEndId>{reference}</OrgnlEndToEndId><TxCxlSts>{word}</TxCxlSts>\
         <CxlStsRsnInf><Rsn><Cd>{code}</Cd></Rsn></CxlStsRsnInf></TxInfAndSts></CxlDtls>\
         </RsltnOfInvstgtn></Document>"
    )
}

fn back(reference: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09\"><PmtRtr><TxInf>\
         <RtrId>R1</RtrId><OrgnlEndToEndId>{reference}</OrgnlEndToEndId>\
         <RtrdIntrBkSttlmAmt Ccy=\"EUR\">1250.50</RtrdIntrBkSttlmAmt>\
         <RtrRsnInf><Rsn><Cd>FOCR</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>"
    )
}

/// Each reason has its code, and each request its own name: a second one is no copy of the first.
#[test]
fn a_request_says_why_and_has_a_name_of_its_own() {
    for (serial, reason, code) in [
        (3, RecallReason::CustomerRequest, "CUST"),
        (13, RecallReason::Duplicate, "DUPL"),
        (23, RecallReason::TechnicalProblem, "TECH"),
        (33, RecallReason::Fraud, "FRAD"),
        (43, RecallReason::WrongAmount, "AM09"),
        (53, RecallReason::WrongAccount, "AC03"),
    ] {
        let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
        let request = RecallRequest { serial, reason, ..fixtures::recall_request() };
        assert!(matches!(recall(&instant_payment(), &request), Finding::Unknown(_)));
        let body = fixtures::body(&sent);
        assert!(body.contains(&format!("<Cd>{code}</Cd>")), "{body}");
        assert!(body.contains(&format!("{serial:010X}</CxlId>")), "{body}");
    }
}

#[test]
fn the_messages_that_another_program_writes() {
    let facts = vec![field("settled_on", "2026-11-21")];
    let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
    assert!(matches!(
        recall(&Payment { facts, ..instant_payment() }, &fixtures::recall_request()),
        Finding::Unknown(_)
    ));
    assert_eq!(fixtures::body(&sent), include_str!("../fixtures/recall-instant.xml"));
}

/// What a payment leaves with is what is recalled: not the day on which it was begun.
#[test]
fn the_day_of_settlement_is_that_of_the_last_sending() {
    let later = "2026-11-25";
    let host = fixtures::host();
    let now_ms = fixtures::NOW_MS + 4 * 86_400_000;
    let report = "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.10\">\
                  <FIToFIPmtStsRpt><OrgnlGrpInfAndSts><OrgnlMsgId>REF</OrgnlMsgId>\
                  <OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInfAndSts><TxInfAndSts>\
                  <OrgnlEndToEndId>REF</OrgnlEndToEndId><TxSts>PDNG</TxSts></TxInfAndSts>\
                  </FIToFIPmtStsRpt></Document>";
    let answer = Ok((200, report.replace("REF", INSTANT_REFERENCE)));
    let sent = double::install_with(Host { now_ms, ..host }, answer);
    let Outcome::Accepted(receipt) = submit(&instant_payment()) else { panic!("accepted") };
    assert!(fixtures::body(&sent).contains(&format!("<IntrBkSttlmDt>{later}<")));
    let asking = |facts| {
        let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
        assert!(matches!(
            recall(&Payment { facts, ..instant_payment() }, &fixtures::recall_request()),
            Finding::Unknown(_)
        ));
        fixtures::body(&sent)
    };
    assert!(asking(receipt.facts).contains(&format!("<OrgnlIntrBkSttlmDt>{later}<")));
    // What was sent and not answered: nobody knows which day counts.
    assert!(!asking(Vec::new()).contains("OrgnlIntrBkSttlmDt"));
}

#[test]
fn what_left_in_a_file_is_not_recalled() {
    let sent = fixtures::gateway(Ok((200, back(REFERENCE))));
    assert!(matches!(recall(&payment(), &fixtures::recall_request()), Finding::Unknown(_)));
    assert!(sent.borrow().is_empty());
}

#[test]
fn only_money_that_came_back_ends_anything() {
    for word in ["CNCL", "RJCR", "PDCR"] {
        for code in ["ARDT", "AM04", "CUST", "LEGL", "NOAS", "NOOR", "RNPR"] {
            let answer = resolution(INSTANT_REFERENCE, word, code);
            let found = came(&instant_payment(), 200, &answer);
            let Finding::Accepted(receipt) = found else { panic!("{found:?}") };
            assert_eq!(receipt.code, format!("{word}/{code}"));
        }
    }
    let found = came(&instant_payment(), 200, &back(INSTANT_REFERENCE));
    let Finding::Returned(funds) = found else { panic!("{found:?}") };
    assert_eq!((&*funds.code, funds.amount_minor), ("FOCR", 125_050));
    let again = "{\"code\":\"duplicate_recall\",\"message\":\"x\"}";
    assert!(matches!(came(&instant_payment(), 409, again), Finding::Accepted(_)));
    assert!(matches!(came(&instant_payment(), 202, ""), Finding::Accepted(_)));
}

#[test]
fn what_proves_nothing() {
    for (status, body) in [
        (200, String::new()),
        (200, "<html>".into()),
        (200, resolution(REFERENCE, "RJCR", "CUST")),
        (200, back(REFERENCE)),
        (200, back("OTHER")),
        (200, resolution(INSTANT_REFERENCE, "CNCL", "CUST").replace("camt.029", "camt.056")),
        (409, "{\"code\":\"other\",\"message\":\"x\"}".into()),
        (404, "{\"code\":\"not_found\",\"message\":\"x\"}".into()),
        (500, resolution(INSTANT_REFERENCE, "CNCL", "CUST")),
        (503, String::new()),
    ] {
        let found = came(&instant_payment(), status, &body);
        assert!(matches!(found, Finding::Unknown(_)), "{status} {body}: {found:?}");
    }
}
