//! What leaves, as it stands in the messages.

use railhead_rail::fields::{field, set};
use railhead_rail::host::double::{self, Host};
use railhead_rail::types::Payment;

use crate::fixtures::{self, BEGUN_AT_MS, payment};
use crate::messages::{Sending, question, question_id, recall, wire};
use crate::settings::Settings;

fn written(payment: &Payment, changes: &[(&str, &str)]) -> Result<String, String> {
    let mut host = fixtures::host();
    for (name, value) in changes {
        host.settings.insert((*name).to_owned(), (*value).to_owned());
    }
    double::install(host);
    let settings = Settings::read();
    wire(payment, &settings, &Sending::now(payment, &settings, BEGUN_AT_MS)?)
}

const AGENT: &str = "<FinInstnId><ClrSysMmbId><ClrSysId><Cd>USABA</Cd></ClrSysId>";

#[test]
fn a_wire_whole() {
    let expected = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><BusMsg>\
         <AppHdr xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.03\">\
         <Fr><FIId><FinInstnId><ClrSysMmbId><MmbId>011104238</MmbId></ClrSysMmbId></FinInstnId></FIId></Fr>\
         <To><FIId><FinInstnId><ClrSysMmbId><MmbId>021151080</MmbId></ClrSysMmbId></FinInstnId></FIId></To>\
         <BizMsgIdr>20261123B1QDRCQR000005</BizMsgIdr><MsgDefIdr>pacs.008.001.08</MsgDefIdr>\
         <BizSvc>TEST</BizSvc><MktPrctc>\
         <Regy>www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service</Regy>\
         <Id>frb.fedwire.01</Id></MktPrctc><CreDt>2026-11-23T10:00:00-05:00</CreDt></AppHdr>\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf>\
         <GrpHdr><MsgId>20261123B1QDRCQR000005</MsgId><CreDtTm>2026-11-23T10:00:00-05:00</CreDtTm>\
         <NbOfTxs>1</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd><ClrSys><Cd>FDW</Cd></ClrSys></SttlmInf>\
         </GrpHdr><CdtTrfTxInf><PmtId><InstrId>96136a50afd9463989ca25b870dd3859</InstrId>\
         <EndToEndId>po_0001</EndToEndId><UETR>96136a50-afd9-4639-89ca-25b870dd3859</UETR></PmtId>\
         <PmtTpInf><LclInstrm><Prtry>CTRC</Prtry></LclInstrm></PmtTpInf>\
         <IntrBkSttlmAmt Ccy=\"USD\">1250.50</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-23</IntrBkSttlmDt>\
         <InstdAmt Ccy=\"USD\">1250.50</InstdAmt><ChrgBr>SHAR</ChrgBr>\
         <InstgAgt>{AGENT}<MmbId>011104238</MmbId></ClrSysMmbId></FinInstnId></InstgAgt>\
         <InstdAgt>{AGENT}<MmbId>121042882</MmbId></ClrSysMmbId></FinInstnId></InstdAgt>\
         <Dbtr><Nm>RAILHEAD DEMO</Nm><PstlAdr><StrtNm>1 Demo Street</StrtNm><PstCd>02110</PstCd>\
         <TwnNm>Boston</TwnNm><CtrySubDvsn>MA</CtrySubDvsn><Ctry>US</Ctry></PstlAdr></Dbtr>\
         <DbtrAcct><Id><Othr><Id>5647772655</Id></Othr></Id></DbtrAcct>\
         <DbtrAgt>{AGENT}<MmbId>011104238</MmbId></ClrSysMmbId></FinInstnId></DbtrAgt>\
         <CdtrAgt>{AGENT}<MmbId>121042882</MmbId></ClrSysMmbId><Nm>Wells Fargo Bank</Nm>\
         <PstlAdr><StrtNm>420 Montgomery Street</StrtNm><TwnNm>San Francisco</TwnNm><Ctry>US</Ctry></PstlAdr>\
         </FinInstnId></CdtrAgt><Cdtr><Nm>Jane Smith</Nm><PstlAdr><StrtNm>1 Main Street</StrtNm>\
         <PstCd>62701</PstCd><TwnNm>Springfield</TwnNm><CtrySubDvsn>IL</CtrySubDvsn><Ctry>US</Ctry></PstlAdr></Cdtr>\
         <CdtrAcct><Id><Othr><Id>000123456789</Id></Othr></Id><Tp><Cd>CACC</Cd></Tp></CdtrAcct>\
         <RmtInf><Ustrd>Invoice 17</Ustrd></RmtInf></CdtTrfTxInf></FIToFICstmrCdtTrf></Document></BusMsg>"
    );
    assert_eq!(written(&payment(), &[]), Ok(expected));
}

#[test]
fn what_settings_change() {
    let with = |name, value| written(&payment(), &[(name, value)]).expect("a wire");
    let by_bic = with("names_banks_by", "bic");
    assert!(by_bic.contains(
        "<CdtrAgt><FinInstnId><BICFI>WFBIUS6S</BICFI><ClrSysMmbId><ClrSysId><Cd>USABA</Cd></ClrSysId>\
         <MmbId>121042882</MmbId></ClrSysMmbId></FinInstnId></CdtrAgt>"
    ));
    let party = with("connection_party", "ABC123456");
    assert!(party.contains("<Fr><FIId><FinInstnId><ClrSysMmbId><MmbId>ABC123456</MmbId>"));
    assert!(party.contains(
        "<InstgAgt><FinInstnId><ClrSysMmbId><ClrSysId><Cd>USABA</Cd></ClrSysId><MmbId>011104238"
    ));
    assert!(with("business_service", "PROD").contains("<BizSvc>PROD</BizSvc>"));
    assert!(with("charge_bearer", "SLEV").contains("<ChrgBr>SLEV</ChrgBr>"));
    assert!(with("debtor_account", "77").contains("<DbtrAcct><Id><Othr><Id>77</Id>"));
}

#[test]
fn texts_are_tidied_escaped_and_cut() {
    let text = |narration: &str| {
        let sent = written(&Payment { narration: narration.into(), ..payment() }, &[]);
        let sent = sent.expect("a wire");
        let rest = sent.split_once("<Ustrd>").map(|(_, rest)| rest.to_owned());
        rest.and_then(|rest| rest.split_once("</Ustrd>").map(|(text, _)| text.to_owned()))
    };
    assert_eq!(
        text("<b>&amp; \u{e9}t\u{e9}\r\n2026").as_deref(),
        Some("&lt;b&gt;&amp;amp; ete 2026")
    );
    assert_eq!(text(&"x".repeat(200)), Some("x".repeat(140)));
    for nothing in ["", "  ", "---", "Привет"] {
        assert_eq!(text(nothing), None, "{nothing}");
    }
    let payout = Payment { payout: "p".repeat(40), ..payment() };
    let sent = written(&payout, &[]).expect("a wire");
    assert!(sent.contains(&format!("<EndToEndId>{}</EndToEndId>", "p".repeat(35))));
    let savings = {
        let mut payment = payment();
        set(&mut payment.recipient, "account_type", "savings");
        written(&payment, &[]).expect("a wire")
    };
    assert!(savings.contains("<Tp><Cd>SVGS</Cd></Tp>"));
}

#[test]
fn nothing_is_sent_for_a_payment_that_is_not_whole() {
    for payment in [
        Payment { amount_minor: 0, ..payment() },
        Payment { amount_minor: 1_000_000_000_000, ..payment() },
        Payment { recipient: Vec::new(), ..payment() },
        Payment { recipient: vec![field("name", "Jane Smith")], ..payment() },
    ] {
        assert!(written(&payment, &[]).is_err());
    }
    for (name, value) in [("source_id", ""), ("source_id", "b1qdrcqr"), ("debtor_name", "")] {
        assert!(written(&payment(), &[(name, value)]).is_err(), "{name}");
    }
    double::install(Host::default());
    assert!(Sending::now(&payment(), &Settings::read(), BEGUN_AT_MS).is_err());
}

/// For `tests/iso20022`, or a validator of your own: `KEEP_WRITTEN`
/// names a folder that the messages are left in.
#[test]
fn left_for_a_validator() {
    let Some(folder) = std::env::var_os("KEEP_WRITTEN") else { return };
    let leave = |name: &str, text: &str| {
        let path = std::path::Path::new(&folder).join(format!("rail-{name}.xml"));
        std::fs::write(path, text).expect("a file");
    };
    leave("wire", &written(&payment(), &[]).expect("a wire"));
    leave("wire-bic", &written(&payment(), &[("names_banks_by", "bic")]).expect("a wire"));
    let mut long = payment();
    set(&mut long.recipient, "street", "Long Street Name ".repeat(8));
    set(&mut long.recipient, "name", "<&>\"' ".repeat(20) + "x");
    long.sender = vec![field("business_name", "Obi & Sons")];
    long.narration = String::new();
    long.amount_minor = 999_999_999_999;
    leave("wire-long", &written(&long, &[]).expect("a wire"));
    let settings = Settings::read();
    let sending = Sending::now(&payment(), &settings, BEGUN_AT_MS).expect("a sending");
    let id = question_id(2, BEGUN_AT_MS);
    leave("question", &question(&payment(), &settings, &sending, (&id, BEGUN_AT_MS)));
    let recall =
        recall((&payment(), "CUST"), &settings, &sending, ("20261123B1QDRCQR000006", BEGUN_AT_MS));
    leave("recall", &recall.expect("a recall"));
}
