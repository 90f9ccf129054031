//! What the gateway answers and tells.

use railhead_simulator::host;
use railhead_simulator::types::{State, Transfer};

use crate::newyork::{cycle, dashed, written};
use crate::orders::FEDWIRE;

/// The notes of a wire: what identifies its message, when that was written, the two banks, and the
/// recipient's name.
pub const IMAD: &str = "imad";
/// See [`IMAD`].
pub const CREATED_AT: &str = "created_at";
/// See [`IMAD`].
pub const FROM: &str = "from";
/// See [`IMAD`].
pub const TO: &str = "to";
/// See [`IMAD`].
pub const NAME: &str = "name";

/// The reason of a wire that was called off before it went out.
pub const CALLED_OFF: &str = "CANC";

/// How a wire stands (pacs.002): by its state.
#[must_use]
pub fn status(wire: &Transfer) -> String {
    let (word, reason) = match &wire.state {
        State::Paid | State::Returned => ("ACSC", None),
        State::Refused(code) if code == CALLED_OFF => (CALLED_OFF, None),
        State::Refused(code) => ("RJCT", Some(code.as_str())),
        State::Pending | State::Lost | State::Unclear => ("PDNG", None),
    };
    said(wire, word, reason)
}

/// The same with a status of one's own.
#[must_use]
pub fn said(wire: &Transfer, word: &str, reason: Option<&str>) -> String {
    let now = written(host::now_ms());
    let reason = reason.map_or_else(String::new, |code| {
        // Fedwire has reasons of its own; the gateway has those of ISO 20022.
        let is_own = code.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        let rsn = if is_own { leaf("Prtry", code) } else { leaf("Cd", code) };
        within("StsRsnInf", &(within("Rsn", &rsn) + &leaf("AddtlInf", "As simulated")))
    });
    let settled = match word {
        "ACSC" => {
            let day = dashed(&cycle(host::now_ms()));
            leaf("AccptncDtTm", &now) + &within("FctvIntrBkSttlmDt", &leaf("Dt", &day))
        }
        _ => String::new(),
    };
    let transaction = [
        original(wire),
        leaf("OrgnlUETR", &wire.reference),
        leaf("TxSts", word),
        reason,
        settled,
        bank("InstgAgt", FEDWIRE),
        bank("InstdAgt", wire.noted(FROM)),
    ];
    let id = identification(wire, word);
    let header = within("GrpHdr", &(leaf("MsgId", &id) + &leaf("CreDtTm", &now)));
    let content = header + &within("TxInfAndSts", &transaction.concat());
    message("pacs.002.001.10", &id, &within("FIToFIPmtStsRpt", &content))
}

/// Money that comes back (pacs.004): so many cents, for this reason.
#[must_use]
pub fn returned(wire: &Transfer, amount_minor: i64, reason: &str) -> String {
    let now_ms = host::now_ms();
    let day = cycle(now_ms);
    // The returning bank's own.
    let imad = format!("{day}RTRN0001{:06}", 1 + number(wire, "return") % 999_999);
    let amount = format!("{}.{:02}", amount_minor / 100, amount_minor % 100);
    let dollars = |name: &str| format!("<{name} Ccy=\"USD\">{amount}</{name}>");
    let party = |name: &str, called: &str| within(name, &within("Pty", &leaf("Nm", called)));
    let settlement = leaf("SttlmMtd", "CLRG") + &within("ClrSys", &leaf("Cd", "FDW"));
    let header = [
        leaf("MsgId", &imad),
        leaf("CreDtTm", &written(now_ms)),
        leaf("NbOfTxs", "1"),
        within("SttlmInf", &settlement),
    ];
    let instrument = within("LclInstrm", &leaf("Prtry", "CTRC"));
    let transaction = [
        original(wire),
        leaf("OrgnlUETR", &wire.reference),
        dollars("RtrdIntrBkSttlmAmt"),
        leaf("IntrBkSttlmDt", &dashed(&day)),
        dollars("RtrdInstdAmt"),
        leaf("ChrgBr", "SLEV"),
        bank("InstgAgt", wire.noted(TO)),
        bank("InstdAgt", wire.noted(FROM)),
        within("RtrChain", &(party("Dbtr", wire.noted(NAME)) + &party("Cdtr", "RAILHEAD DEMO"))),
        within("RtrRsnInf", &within("Rsn", &leaf("Cd", reason))),
        within("OrgnlTxRef", &within("PmtTpInf", &instrument)),
    ];
    let content = within("GrpHdr", &header.concat()) + &within("TxInf", &transaction.concat());
    message("pacs.004.001.10", &imad, &within("PmtRtr", &content))
}

/// What the recipient's bank says to asking a wire back (camt.029).
#[must_use]
pub fn resolution(wire: &Transfer, request: &str, confirmation: &str) -> String {
    let now_ms = host::now_ms();
    let imad = format!("{}RTRN0001{:06}", cycle(now_ms), 1 + number(wire, confirmation) % 999_999);
    let by = |name: &str, routing_number: &str| within(name, &bank("Agt", routing_number));
    let assignment = [
        leaf("Id", &imad),
        by("Assgnr", wire.noted(TO)),
        by("Assgne", wire.noted(FROM)),
        leaf("CreDtTm", &written(now_ms)),
    ];
    let case = leaf("Id", request) + &by("Cretr", wire.noted(FROM));
    let transaction = original(wire) + &leaf("OrgnlUETR", &wire.reference);
    let content = [
        within("Assgnmt", &assignment.concat()),
        within("RslvdCase", &case),
        within("Sts", &leaf("Conf", confirmation)),
        within("CxlDtls", &within("TxInfAndSts", &transaction)),
    ];
    message("camt.029.001.09", &imad, &within("RsltnOfInvstgtn", &content.concat()))
}

/// A message that was not taken (admi.002).
#[must_use]
pub fn rejection(about: &str, reason: &str, why: &str) -> String {
    let description: String = why.chars().take(350).collect();
    let rsn = [
        leaf("RjctgPtyRsn", reason),
        leaf("RjctnDtTm", &written(host::now_ms())),
        leaf("RsnDesc", &description),
    ];
    let content = within("RltdRef", &leaf("Ref", about)) + &within("Rsn", &rsn.concat());
    message("admi.002.001.01", about, &within("admi.002.001.01", &content))
}

/// A message that was taken (admi.007).
#[must_use]
pub fn acknowledgement(wire: &Transfer, about: &str) -> String {
    let id = identification(wire, about);
    let header = leaf("MsgId", &id) + &leaf("CreDtTm", &written(host::now_ms()));
    let related = leaf("Ref", about) + &leaf("MsgNm", "camt.056.001.08");
    let report = within("RltdRef", &related) + &within("ReqHdlg", &leaf("StsCd", "TS01"));
    let content = within("MsgId", &header) + &within("Rpt", &report);
    message("admi.007.001.01", &id, &within("RctAck", &content))
}

/// An OMAD: the day, the application, a number, and when and by whom it was written.
fn identification(wire: &Transfer, of: &str) -> String {
    let number = number(wire, of);
    format!("{}QMGFNP30{:06}11231000FT01", cycle(host::now_ms()), number % 1_000_000)
}

/// A number that follows from what it is for: there is no chance in a simulation (FNV-1a).
fn number(wire: &Transfer, of: &str) -> u64 {
    let bytes = wire.reference.bytes().chain([0]).chain(of.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn original(wire: &Transfer) -> String {
    let group = [
        leaf("OrgnlMsgId", wire.noted(IMAD)),
        leaf("OrgnlMsgNmId", "pacs.008.001.08"),
        leaf("OrgnlCreDtTm", wire.noted(CREATED_AT)),
    ];
    within("OrgnlGrpInf", &group.concat())
}

fn bank(name: &str, routing_number: &str) -> String {
    let member = within("ClrSysId", &leaf("Cd", "USABA")) + &leaf("MmbId", routing_number);
    within(name, &within("FinInstnId", &within("ClrSysMmbId", &member)))
}

/// The message with its header, as the gateway sends it on.
fn message(kind: &str, id: &str, content: &str) -> String {
    let party = |name: &str, id: &str| {
        let member = within("ClrSysMmbId", &leaf("MmbId", id));
        within(name, &within("FIId", &within("FinInstnId", &member)))
    };
    let registry = "www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service";
    let header = [
        party("Fr", FEDWIRE),
        party("To", "011104238"),
        leaf("BizMsgIdr", id),
        leaf("MsgDefIdr", kind),
        leaf("BizSvc", "TEST"),
        within("MktPrctc", &(leaf("Regy", registry) + &leaf("Id", "frb.fedwire.01"))),
        leaf("CreDt", &written(host::now_ms())),
    ];
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><BusMsg>\
         <h:AppHdr xmlns:h=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.03\">{}</h:AppHdr>\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{kind}\">{content}</Document></BusMsg>",
        prefixed(&header.concat()),
    )
}

/// The same elements with a prefix: both ways of writing a namespace are met in the field.
fn prefixed(elements: &str) -> String {
    elements.replace("</", "<\u{0}").replace('<', "<h:").replace("<h:\u{0}", "</h:")
}

fn within(name: &str, content: &str) -> String {
    format!("<{name}>{content}</{name}>")
}

fn leaf(name: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<{name}>{text}</{name}>")
}
