//! What the tests of several modules need: the declared settings, one payment, messages about it,
//! and a gateway that answers what the test wants.

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
pub(crate) use railhead_rail::host::double::{Sent, body};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment, RecallReason, RecallRequest};

/// When [`payment`] was begun: ten o'clock in New York on Monday, the 23rd of November 2026.
pub(crate) const BEGUN_AT_MS: u64 = 1_795_446_000_000;
/// Its UETR.
pub(crate) const REFERENCE: &str = "96136a50-afd9-4639-89ca-25b870dd3859";
/// The IMAD of its wire.
pub(crate) const IMAD: &str = "20261123B1QDRCQR000005";

/// A host with the settings at the instant when [`payment`] was begun, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host { now_ms: BEGUN_AT_MS + 1_500, ..Host::default() };
    for (name, value) in [
        ("source_id", "B1QDRCQR"),
        ("routing_number", "011104238"),
        ("business_service", "TEST"),
        ("charge_bearer", "SHAR"),
        ("names_banks_by", "name"),
        ("debtor_account", "5647772655"),
        ("debtor_name", "RAILHEAD DEMO"),
        ("debtor_street", "1 Demo Street"),
        ("debtor_city", "Boston"),
        ("debtor_state", "MA"),
        ("debtor_zip_code", "02110"),
        ("debtor_country", "US"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    host
}

/// Installs [`host`] on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs a host whose gateway gives this answer, and returns what is sent to it.
pub(crate) fn gateway(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host(), answer)
}

/// A recipient in canonical form.
pub(crate) fn recipient() -> Vec<Field> {
    vec![
        field("account_number", "000123456789"),
        field("routing_number", "121042882"),
        field("account_type", "checking"),
        field("name", "Jane Smith"),
        field("method", "wire"),
        field("swift_code", "WFBIUS6S"),
        field("bank_name", "Wells Fargo Bank"),
        field("email", "jane@example.com"),
        field("street", "1 Main Street"),
        field("city", "Springfield"),
        field("state", "IL"),
        field("zip_code", "62701"),
        field("country", "US"),
        field("bank_address.line1", "420 Montgomery Street"),
        field("bank_address.city", "San Francisco"),
        field("bank_address.country", "US"),
    ]
}

/// 1,250.50 dollars.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: BEGUN_AT_MS,
        method: "wire".into(),
        currency: "USD".into(),
        exponent: 2,
        amount_minor: 125_050,
        recipient: recipient(),
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}

fn document(kind: &str, content: &str) -> String {
    format!(
        "<BusMsg><AppHdr xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.03\">\
         <BizMsgIdr>M</BizMsgIdr></AppHdr>\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{kind}\">{content}</Document></BusMsg>"
    )
}

/// A pacs.002 about the payment, with this status and whatever else.
pub(crate) fn status(status: &str, more: &str) -> String {
    let content = format!(
        "<FIToFIPmtStsRpt><GrpHdr><MsgId>M</MsgId><CreDtTm>2026-11-23T10:00:02-05:00</CreDtTm>\
         </GrpHdr><TxInfAndSts><OrgnlGrpInf><OrgnlMsgId>{IMAD}</OrgnlMsgId>\
         <OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId>\
         <OrgnlCreDtTm>2026-11-23T10:00:00-05:00</OrgnlCreDtTm></OrgnlGrpInf>\
         <OrgnlUETR>{REFERENCE}</OrgnlUETR><TxSts>{status}</TxSts>{more}</TxInfAndSts>\
         </FIToFIPmtStsRpt>"
    );
    document("pacs.002.001.10", &content)
}

/// A pacs.004 about the payment.
pub(crate) fn returned(amount: &str) -> String {
    let content = format!(
        "<PmtRtr><GrpHdr><MsgId>20261123C1QDRCQR000077</MsgId></GrpHdr><TxInf>\
         <OrgnlGrpInf><OrgnlMsgId>{IMAD}</OrgnlMsgId></OrgnlGrpInf>\
         <OrgnlUETR>{REFERENCE}</OrgnlUETR>\
         <RtrdIntrBkSttlmAmt Ccy=\"USD\">{amount}</RtrdIntrBkSttlmAmt>\
         <RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr>"
    );
    document("pacs.004.001.10", &content)
}

/// A camt.029 about the payment.
pub(crate) fn resolution(confirmation: &str) -> String {
    let content = format!(
        "<RsltnOfInvstgtn><Sts><Conf>{confirmation}</Conf></Sts><CxlDtls><TxInfAndSts>\
         <OrgnlUETR>{REFERENCE}</OrgnlUETR></TxInfAndSts></CxlDtls></RsltnOfInvstgtn>"
    );
    document("camt.029.001.09", &content)
}

/// An admi.007 about a message.
pub(crate) fn acknowledged(about: &str) -> String {
    let content = format!(
        "<RctAck><MsgId><MsgId>M</MsgId></MsgId><Rpt><RltdRef><Ref>{about}</Ref>\
         <MsgNm>camt.056.001.08</MsgNm></RltdRef><ReqHdlg><StsCd>TS01</StsCd></ReqHdlg></Rpt>\
         </RctAck>"
    );
    document("admi.007.001.01", &content)
}

/// An admi.002 about a message.
pub(crate) fn rejection(about: &str, reason: &str) -> String {
    let content = format!(
        "<admi.002.001.01><RltdRef><Ref>{about}</Ref></RltdRef><Rsn>\
         <RjctgPtyRsn>{reason}</RjctgPtyRsn></Rsn></admi.002.001.01>"
    );
    document("admi.002.001.01", &content)
}

/// A request to have the payment back.
pub(crate) fn recall_request() -> RecallRequest {
    let payment = payment();
    RecallRequest {
        serial: payment.serial,
        begun_at_ms: payment.begun_at_ms,
        reason: RecallReason::CustomerRequest,
    }
}
