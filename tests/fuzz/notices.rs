//! What a gateway of NIP sends by itself, as the rail reads it.

use railhead_rail::host::double;
use railhead_rail::types::{Finding, News, Subject};
use railhead_rail_nip::gateway::TRANSFER;
use railhead_rail_nip::notices::receive;
use railhead_rail_nip::session;
use railhead_rail_nip::xml::{self, Element};

use crate::inputs::fuzz;

const STATUS: &str = "/nip/txnstatusresponse";

const WORDS: &[&str] = &[
    "<SessionID>",
    "</SessionID>",
    "<PaymentReference>RVSL/",
    "</PaymentReference>",
    "<Amount>",
    "</Amount>",
    "<Narration>",
    "<Narration/>",
    "<ns2:",
    "<ResponseCode>00</ResponseCode>",
    "<?xml version=\"1.0\"?>",
    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
    "&b;",
    "&amp;",
    "&#x41;",
    "&#0;",
    "&#xD800;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<FTSingleCreditRequest>",
    "</FTSingleCreditRequest>",
    "<TSQuerySingleResponse>",
    "999998261121100000000000000002",
    "0.01",
    "1250.50",
    "92233720368547758.07",
    "92233720368547758.08",
    ".5",
    "1,000",
    " xmlns=\"\"",
    "a='<'",
];

#[test]
fn notices() {
    double::install(double::Host::default());
    fuzz("notices", WORDS, |input| {
        for path in [TRANSFER, STATUS, "/nip/other"] {
            match receive(path, input) {
                Ok((answer, notices)) => {
                    let [notice] = notices.as_slice() else { panic!("{notices:?}") };
                    let Subject::Reference(reference) = &notice.about else { panic!("{notice:?}") };
                    assert!(session::is_session(reference), "{notice:?}");
                    match &notice.news {
                        News::Found(Finding::Returned(returned)) => {
                            assert_eq!(path, TRANSFER);
                            assert!(returned.amount_minor >= 0, "{notice:?}");
                            assert!(!returned.message.is_empty(), "{notice:?}");
                            repeats(input, &answer.body);
                        }
                        News::Ask => assert_eq!(path, STATUS),
                        other => panic!("{other:?}"),
                    }
                }
                Err(why) => assert!(!why.is_empty() && why.len() < 200, "{why}"),
            }
        }
    });
}

/// The answer to a return says again what the message said, and can be read.
fn repeats(message: &[u8], answer: &[u8]) {
    let credit = xml::read(message, "FTSingleCreditRequest").expect("it was read");
    let answer = xml::read(answer, "FTSingleCreditResponse").expect("an answer");
    assert_eq!(answer.get("ResponseCode"), "00");
    for name in ["SessionID", "PaymentReference", "Amount", "Narration", "OriginatorAccountName"] {
        assert_eq!(answer.get(name), written(&credit, name), "{name}");
    }
}

/// A value as XML can hold it.
fn written(credit: &Element, name: &str) -> String {
    let is_forbidden = |c: char| matches!(c, '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}');
    credit.get(name).replace(is_forbidden, " ").trim().to_owned()
}
