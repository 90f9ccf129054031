use railhead_rail::host::double;
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Finding, Outcome};

use super::{query, submit};
use crate::fixtures::{self, INSTANT_REFERENCE, instant_payment};

fn report(word: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.10\"><FIToFIPmtStsRpt>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>{INSTANT_REFERENCE}</OrgnlMsgId>\
         <OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInfAndSts><TxInfAndSts>\
         <OrgnlEndToEndId>{INSTANT_REFERENCE}</OrgnlEndToEndId><TxSts>{word}</TxSts>\
         </TxInfAndSts></FIToFIPmtStsRpt></Document>"
    )
}

#[test]
fn the_messages_that_another_program_writes() {
    let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
    let Outcome::Unknown(why) = submit(&instant_payment()) else { panic!("unknown") };
    assert_eq!(why, "no answer: timeout");
    assert_eq!(fixtures::body(&sent), include_str!("../fixtures/payment.xml"));
    let sent = fixtures::gateway(Err(Failure::NotSent("refused".into())));
    assert!(matches!(query(&instant_payment()), Finding::Unknown(_)));
    assert_eq!(fixtures::body(&sent), include_str!("../fixtures/question.xml"));
}

#[test]
fn which_status_is_paid_is_the_operators_word() {
    for (setting, paid) in [
        ("ACCP", &["ACCP", "ACSP", "ACSC", "ACCC"][..]),
        ("ACSC", &["ACSC", "ACCC"]),
        ("ACCC", &["ACCC"]),
        ("", &["ACSC", "ACCC"]),
    ] {
        for word in ["ACTC", "ACCP", "ACSP", "ACSC", "ACCC"] {
            let _sent = fixtures::gateway(Ok((200, report(word))));
            let mut host = fixtures::host();
            host.settings.insert("instant_paid".into(), setting.into());
            let body = report(word);
            host.send = Box::new(move |_| {
                Ok(railhead_rail::imports::http::Response {
                    status: 200,
                    headers: Vec::new(),
                    body: body.clone().into_bytes(),
                })
            });
            double::install(host);
            let is_paid = matches!(submit(&instant_payment()), Outcome::Paid(_));
            assert_eq!(is_paid, paid.contains(&word), "{setting} {word}");
        }
    }
}

#[test]
fn without_settings_nothing_leaves() {
    double::install(double::Host::default());
    let Outcome::Unknown(why) = submit(&instant_payment()) else { panic!("unknown") };
    assert!(why.contains("setting"), "{why}");
}
