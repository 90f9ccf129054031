//! The messages that arrive, and what they say: a wire, a question, asking for a wire back.

use railhead_simulator::host;
use roxmltree::Document;

use crate::document::Message;
use crate::newyork::{cycle, cycle_of, dashed};
use crate::shapes::{QUESTION, RECALL, WIRE};

/// The Fedwire Funds Service.
pub const FEDWIRE: &str = "021151080";

/// How long a message may be on its way.
const MINUTE_MS: u64 = 60_000;

/// What no gateway would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The identification of the message, if it has one.
    pub about: String,
    /// What is wrong with it.
    pub why: String,
}

/// A wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// What identifies it.
    pub uetr: String,
    /// What identifies its message.
    pub imad: String,
    /// When that was written.
    pub created_at: String,
    /// In cents.
    pub amount_minor: i64,
    /// The recipient's account.
    pub account: String,
    /// The recipient's name.
    pub name: String,
    /// The sponsor bank's routing number.
    pub from: String,
    /// The recipient's bank's.
    pub to: String,
}

/// A message about a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The identification of the message.
    pub id: String,
    /// The UETR of the wire.
    pub uetr: String,
    /// How much it says that the wire was, in cents; nothing of a question.
    pub amount_minor: i64,
}

/// Reads a wire.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn wire(body: &[u8]) -> Result<Wire, Fault> {
    reading(body, ("pacs.008.001.08", "FIToFICstmrCdtTrf", WIRE), |message| {
        let of = |step| ["CdtTrfTxInf", step, "FinInstnId", "ClrSysMmbId", "MmbId"];
        let imad = message.get(&["GrpHdr", "MsgId"]);
        let settles_on = message.get(&["CdtTrfTxInf", "IntrBkSttlmDt"]);
        let (from, to) = (message.get(&of("InstgAgt")), message.get(&of("InstdAgt")));
        let amount_minor = message.cents(&["CdtTrfTxInf", "IntrBkSttlmAmt"]);
        agree("BizMsgIdr and MsgId", message.header(&["BizMsgIdr"]), imad)?;
        agree(
            "CreDt and CreDtTm",
            message.header(&["CreDt"]),
            message.get(&["GrpHdr", "CreDtTm"]),
        )?;
        agree("InstgAgt and DbtrAgt", from, message.get(&of("DbtrAgt")))?;
        agree("InstdAgt and CdtrAgt", to, message.get(&of("CdtrAgt")))?;
        agree("the IMAD's day and IntrBkSttlmDt", &dashed(&imad[..8]), settles_on)?;
        let day = cycle_of(message.get(&["GrpHdr", "CreDtTm"]));
        agree("the IMAD's day and that of CreDtTm", &imad[..8], &day)?;
        of_today(imad)?;
        if message.cents(&["CdtTrfTxInf", "InstdAmt"]) != amount_minor {
            return Err("the amounts differ".to_owned());
        }
        Ok(Wire {
            uetr: message.get(&["CdtTrfTxInf", "PmtId", "UETR"]).to_owned(),
            imad: imad.to_owned(),
            created_at: message.get(&["GrpHdr", "CreDtTm"]).to_owned(),
            amount_minor,
            account: message.get(&["CdtTrfTxInf", "CdtrAcct", "Id", "Othr", "Id"]).to_owned(),
            name: message.get(&["CdtTrfTxInf", "Cdtr", "Nm"]).to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        })
    })
}

/// Reads a question about a wire.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn question(body: &[u8]) -> Result<About, Fault> {
    reading(body, ("pacs.028.001.03", "FIToFIPmtStsReq", QUESTION), |message| {
        let id = message.get(&["GrpHdr", "MsgId"]);
        agree("BizMsgIdr and MsgId", message.header(&["BizMsgIdr"]), id)?;
        let to = message.get(&["TxInf", "InstdAgt", "FinInstnId", "ClrSysMmbId", "MmbId"]);
        agree("InstdAgt and the Fedwire Funds Service", to, FEDWIRE)?;
        let uetr = message.get(&["TxInf", "OrgnlUETR"]).to_owned();
        Ok(About { id: id.to_owned(), uetr, amount_minor: 0 })
    })
}

/// Reads a request to send a wire back.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn recall(body: &[u8]) -> Result<About, Fault> {
    reading(body, ("camt.056.001.08", "FIToFIPmtCxlReq", RECALL), |message| {
        let id = message.get(&["Assgnmt", "Id"]);
        let of = |step| ["Undrlyg", "TxInf", step];
        agree("BizMsgIdr and the assignment's Id", message.header(&["BizMsgIdr"]), id)?;
        let day = cycle_of(message.get(&["Assgnmt", "CreDtTm"]));
        agree("the IMAD's day and that of CreDtTm", &id[..8], &day)?;
        of_today(id)?;
        let original = message.get(&["Undrlyg", "TxInf", "OrgnlGrpInf", "OrgnlMsgId"]);
        let settled_on = message.get(&of("OrgnlIntrBkSttlmDt"));
        agree("the wire's IMAD and its day", &dashed(&original[..8]), settled_on)?;
        if original == id {
            return Err("the request has the IMAD of the wire".to_owned());
        }
        Ok(About {
            id: id.to_owned(),
            uetr: message.get(&of("OrgnlUETR")).to_owned(),
            amount_minor: message.cents(&of("OrgnlIntrBkSttlmAmt")),
        })
    })
}

fn agree(what: &str, one: &str, other: &str) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what} differ: {one} and {other}")) }
}

/// An IMAD has the network's day, or that of a minute ago.
fn of_today(imad: &str) -> Result<(), String> {
    let now_ms = host::now_ms();
    let today = cycle(now_ms);
    match [&today, &cycle(now_ms.saturating_sub(MINUTE_MS))].contains(&&imad[..8].to_owned()) {
        true => Ok(()),
        false => Err(format!("the IMAD {imad} is not of {today}")),
    }
}

fn reading<T>(
    body: &[u8],
    kind: (&str, &str, &[crate::shapes::Shape]),
    read: impl FnOnce(&Message<'_>) -> Result<T, String>,
) -> Result<T, Fault> {
    let nameless = |why: String| Fault { about: "unknown".to_owned(), why };
    let text = std::str::from_utf8(body).map_err(|_| nameless("not UTF-8".to_owned()))?;
    let document = Document::parse(text).map_err(|cause| nameless(cause.to_string()))?;
    let named = document.descendants().find(|node| node.tag_name().name() == "BizMsgIdr");
    let about = named.and_then(|node| node.text()).filter(|id| (1..=35).contains(&id.len()));
    let fault = |why| Fault { about: about.unwrap_or("unknown").to_owned(), why };
    let message = Message::of(&document, kind).map_err(fault)?;
    agree(
        "To and the Fedwire Funds Service",
        message.header(&["To", "FIId", "FinInstnId", "ClrSysMmbId", "MmbId"]),
        FEDWIRE,
    )
    .map_err(fault)?;
    read(&message).map_err(fault)
}
