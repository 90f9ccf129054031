use railhead_rail::host::double;
use railhead_rail::types::{Finding, News, Notice, Subject};

use crate::arrivals::read;
use crate::fixtures;

const FILE: &str = "RF2026030600000004201A1FD557A80";

fn told(acceptance: &str, status: &str) -> Vec<Notice> {
    let mut host = fixtures::host();
    host.settings.insert("acceptance".into(), acceptance.into());
    double::install(host);
    let body = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>{FILE}</OrgnlMsgId>\
         <OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId><GrpSts>{status}</GrpSts>\
         </OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>"
    );
    read("incoming", "a.xml", body.as_bytes()).expect("a report")
}

#[test]
fn how_far_a_file_must_have_come_is_the_operators_word() {
    let words = ["ACTC", "ACCP", "ACSP", "ACSC"];
    for (needed, acceptance) in words.iter().enumerate() {
        for (reached, status) in words.iter().enumerate() {
            let notices = told(acceptance, status);
            assert_eq!(notices.is_empty(), reached < needed, "{acceptance} {status}");
        }
    }
    // What the operator has not said, or misspelt, is ACCP.
    assert!(told("", "ACTC").is_empty() && !told("x", "ACCP").is_empty());
}

#[test]
fn an_acceptance_is_of_the_file() {
    let notices = told("ACCP", "ACSP");
    let [Notice { about: Subject::File(name), news: News::Found(Finding::Accepted(receipt)) }] =
        notices.as_slice()
    else {
        panic!("{notices:?}")
    };
    assert_eq!((&**name, receipt.amount_minor), (FILE, None));
}
