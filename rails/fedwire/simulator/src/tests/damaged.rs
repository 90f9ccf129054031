//! What no gateway understands is refused, loudly, and nothing comes of it.

use railhead_simulator::host::double;
use railhead_simulator::types::Request;

use super::{QUESTION, RECALL, UETR, WIRE, executed, play, says, send};

fn is_refused(path: &str, body: &str) -> bool {
    play("paid");
    let (status, answer) = send(path, body);
    let errors = double::with(|host| host.errors.len());
    status == 400 && answer.contains("admi.002.001.01") && errors == 1 && executed() == 0
}

#[test]
fn wires() {
    for (what, instead) in [
        // Elements that are missing, stand twice, elsewhere, or are unknown.
        ("<NbOfTxs>1</NbOfTxs>", ""),
        ("<NbOfTxs>1</NbOfTxs>", "<NbOfTxs>1</NbOfTxs><NbOfTxs>1</NbOfTxs>"),
        ("<ChrgBr>SHAR</ChrgBr>", ""),
        ("<InstrId>INSTR-1</InstrId>", "<TxId>1</TxId>"),
        ("<EndToEndId>po_0001</EndToEndId>", ""),
        ("<IntrBkSttlmDt>2026-11-23</IntrBkSttlmDt>", ""),
        ("<RmtInf><Ustrd>Invoice 17</Ustrd></RmtInf>", "<RmtInf/>"),
        ("<Ustrd>Invoice 17</Ustrd>", "<Ustrd> </Ustrd>"),
        ("<Nm>Corporation A</Nm>", ""),
        ("<TwnNm>Springfield</TwnNm>", ""),
        ("<TwnNm>Fountain Hills</TwnNm>", ""),
        (
            "<PstlAdr><StrtNm>Avenue of the Fountains</StrtNm><BldgNb>167565</BldgNb><PstCd>85268</PstCd><TwnNm>Fountain Hills</TwnNm><CtrySubDvsn>AZ</CtrySubDvsn><Ctry>US</Ctry></PstlAdr>",
            "",
        ),
        ("<Ctry>US</Ctry><AdrLine>", "<AdrLine>"),
        ("<AdrLine>2nd floor</AdrLine>", "<AdrLine>a</AdrLine><AdrLine>b</AdrLine>"),
        ("<TwnNm>Springfield</TwnNm><Ctry>US</Ctry>", "<Ctry>US</Ctry><TwnNm>Springfield</TwnNm>"),
        ("<ClrSys><Cd>FDW</Cd></ClrSys>", "<ClrSys><Cd>CHP</Cd></ClrSys>"),
        ("<Prtry>CTRC</Prtry>", "<Prtry>BTRC</Prtry>"),
        // Values that are none.
        ("<UETR>96136a50-afd9-4639", "<UETR>96136A50-afd9-4639"),
        ("<UETR>96136a50-afd9-4639", "<UETR>96136a50-afd9-1639"),
        ("Ccy=\"USD\">1250.50</IntrBk", "Ccy=\"EUR\">1250.50</IntrBk"),
        ("Ccy=\"USD\">1250.50</IntrBk", ">1250.50</IntrBk"),
        ("Ccy=\"USD\">1250.50</IntrBk", "Ccy=\"USD\">1250.5</IntrBk"),
        ("Ccy=\"USD\">1250.50</IntrBk", "Ccy=\"USD\">0.00</IntrBk"),
        ("Ccy=\"USD\">1250.50</IntrBk", "Ccy=\"USD\">12500000000.50</IntrBk"),
        ("Ccy=\"USD\">1250.50</IntrBk", "Ccy=\"USD\" x=\"1\">1250.50</IntrBk"),
        ("Ccy=\"USD\">1250.50</Instd", "Ccy=\"USD\">1250.51</Instd"),
        ("<MmbId>121042882</MmbId>", "<MmbId>121042883</MmbId>"),
        ("<BICFI>WFBIUS6S</BICFI>", "<BICFI>WFBI</BICFI>"),
        ("<Cd>SVGS</Cd>", "<Cd>savings</Cd>"),
        ("<Ustrd>Invoice 17</Ustrd>", "<Ustrd>a\nb</Ustrd>"),
        ("<MsgId>20261123B1QDRCQR000005", "<MsgId>20261123B1QDRCQR000000"),
        ("<MsgId>20261123B1QDRCQR000005", "<MsgId>20261123B1QDRCQR5"),
        // What does not agree.
        ("<head:BizMsgIdr>20261123B1QDRCQR000005", "<head:BizMsgIdr>20261123B1QDRCQR000007"),
        ("<head:MsgDefIdr>pacs.008.001.08", "<head:MsgDefIdr>pacs.009.001.08"),
        ("<head:MmbId>021151080", "<head:MmbId>021151081"),
        ("<head:CreDt>2026-11-23T10:00:00", "<head:CreDt>2026-11-23T10:00:01"),
        ("<IntrBkSttlmDt>2026-11-23", "<IntrBkSttlmDt>2026-11-24"),
        ("<head:BizSvc>TEST", "<head:BizSvc>LIVE"),
        ("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">", "<Document>"),
        (
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">",
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.10\">",
        ),
        ("<BusMsg>", "<Envelope>"),
        ("Invoice 17", "&own;"),
        ("</BusMsg>", ""),
    ] {
        assert!(WIRE.contains(what), "{what}");
        assert!(is_refused("/wires", &WIRE.replacen(what, instead, 1)), "{what} {instead}");
    }
    for body in ["", "{}", "<a/>", QUESTION, RECALL] {
        assert!(is_refused("/wires", body), "{body}");
    }
    let other_bank = WIRE.replacen("<MmbId>121042882</MmbId>", "<MmbId>021000021</MmbId>", 1);
    assert!(is_refused("/wires", &other_bank));
}

#[test]
fn questions_and_requests() {
    for (what, instead) in [
        ("<MsgId>Q0000001</MsgId>", ""),
        ("<MsgId>Q0000001</MsgId>", "<MsgId>Q0000002</MsgId>"),
        ("<OrgnlUETR>96136a50", "<OrgnlUETR>x"),
        ("<OrgnlMsgNmId>pacs.008.001.08", "<OrgnlMsgNmId>pacs.009.001.08"),
        (
            "<MmbId>021151080</MmbId></ClrSysMmbId></FinInstnId></InstdAgt>",
            "<MmbId>121042882</MmbId></ClrSysMmbId></FinInstnId></InstdAgt>",
        ),
        ("<OrgnlMsgId>20261123B1QDRCQR000005</OrgnlMsgId>", ""),
    ] {
        assert!(QUESTION.contains(what), "{what}");
        let body = QUESTION.replacen(what, instead, 1);
        assert!(is_refused("/status-requests", &body), "{what} {instead}");
    }
    for (what, instead) in [
        ("<Id>20261123B1QDRCQR000006</Id>", "<Id>20261123B1QDRCQR000005</Id>"),
        ("<Id>CASE-1</Id>", ""),
        ("<Cd>DUPL</Cd>", "<Cd>Dupl</Cd>"),
        ("<OrgnlIntrBkSttlmDt>2026-11-23", "<OrgnlIntrBkSttlmDt>2026-11-22"),
        ("<OrgnlIntrBkSttlmAmt Ccy=\"USD\">1250.50", "<OrgnlIntrBkSttlmAmt Ccy=\"USD\">1250"),
    ] {
        assert!(RECALL.contains(what), "{what}");
        let body = RECALL.replacen(what, instead, 1);
        assert!(is_refused("/return-requests", &body), "{what} {instead}");
    }
    let twin = RECALL.replace("20261123B1QDRCQR000006", "20261123B1QDRCQR000005");
    assert!(is_refused("/return-requests", &twin));
}

#[test]
fn who_is_not_known_or_asks_for_what_there_is_not() {
    play("paid");
    assert_eq!(send("/other", WIRE).0, 404);
    let nobody = Request {
        method: "POST".to_owned(),
        path: "/wires".to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        body: WIRE.as_bytes().to_vec(),
    };
    let railhead_simulator::types::Answer::Response(answer) = crate::handle(&nobody) else {
        panic!("no answer")
    };
    assert_eq!((answer.status, executed()), (401, 0));
    let (status, body) = send("/status-requests", QUESTION);
    assert!(status == 404 && says(&body, "Ref", "Q0000001") && !body.contains(UETR));
}
