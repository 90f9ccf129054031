//! What is asked about single payments: to make one (pacs.008.001.08), how one stands
//! (pacs.028.001.03), and to call one off (camt.056.001.08).

use crate::accounts::{account, bank};
use crate::amounts;
use crate::orders::{Creditor, creditor, purpose, sender};
use crate::time::{is_date, is_date_time};
use crate::xml::{self, Fault, Node, Walk};

/// The message that makes a payment.
pub const PAYMENT: &str = "pacs.008.001.08";

/// An instant payment.
#[derive(Clone, Debug)]
pub struct Instant {
    /// What the message is called.
    pub message: String,
    /// What the payment is called.
    pub reference: String,
    /// What the transaction is called.
    pub transaction: String,
    /// In cents.
    pub cents: i64,
    /// Whom.
    pub name: String,
    /// To which account.
    pub iban: String,
}

/// Reads a payment.
///
/// # Errors
/// In words, the first thing that the bank would refuse it for.
pub fn payment(root: &Node) -> Result<Instant, Fault> {
    if root.name != "FIToFICstmrCdtTrf" {
        return Err("it is no credit transfer".to_owned());
    }
    let mut it = Walk::of(root)?;
    let mut head = it.within("GrpHdr")?;
    let message = head.text("MsgId", 35)?.to_owned();
    instant(&mut head, "CreDtTm")?;
    head.only("NbOfTxs", "1")?;
    let total = amounts::of(head.one("TtlIntrBkSttlmAmt")?)?;
    date(&mut head, "IntrBkSttlmDt")?;
    let mut settlement = head.within("SttlmInf")?;
    settlement.only("SttlmMtd", "CLRG")?;
    settlement.end()?;
    let mut kind = head.within("PmtTpInf")?;
    for (name, code) in [("SvcLvl", "SEPA"), ("LclInstrm", "INST")] {
        let mut part = kind.within(name)?;
        part.only("Cd", code)?;
        part.end()?;
    }
    kind.end()?;
    bank(&mut head, "InstgAgt")?;
    head.end()?;
    let mut transfer = it.within("CdtTrfTxInf")?;
    it.end()?;
    let mut names = transfer.within("PmtId")?;
    names.text_maybe("InstrId", 35)?;
    let reference = names.text("EndToEndId", 35)?.to_owned();
    let transaction = names.text("TxId", 35)?.to_owned();
    names.end()?;
    let cents = amounts::of(transfer.one("IntrBkSttlmAmt")?)?;
    if cents != total {
        return Err("the total is not the amount".to_owned());
    }
    instant(&mut transfer, "AccptncDtTm")?;
    transfer.only("ChrgBr", "SLEV")?;
    sender(&mut transfer)?;
    let mut debtor = transfer.within("Dbtr")?;
    debtor.text("Nm", 70)?;
    debtor.end()?;
    account(&mut transfer, "DbtrAcct")?;
    bank(&mut transfer, "DbtrAgt")?;
    let Creditor { name, iban } = creditor(&mut transfer)?;
    purpose(&mut transfer)?;
    transfer.end()?;
    Ok(Instant { message, reference, transaction, cents, name, iban })
}

/// Reads which payment is asked about.
///
/// # Errors
/// In words, the first thing that the bank would refuse it for.
pub fn question(root: &Node) -> Result<String, Fault> {
    if root.name != "FIToFIPmtStsReq" {
        return Err("it is no question about a payment".to_owned());
    }
    let mut it = Walk::of(root)?;
    let mut head = it.within("GrpHdr")?;
    head.text("MsgId", 35)?;
    instant(&mut head, "CreDtTm")?;
    head.end()?;
    let mut about = it.within("TxInf")?;
    it.end()?;
    about.text("StsReqId", 35)?;
    original(&mut about)?;
    about.text_maybe("OrgnlInstrId", 35)?;
    let reference = about.text("OrgnlEndToEndId", 35)?.to_owned();
    about.text("OrgnlTxId", 35)?;
    about.end()?;
    Ok(reference)
}

/// A request to call a payment off.
#[derive(Clone, Debug)]
pub struct Recall {
    /// What it is called.
    pub name: String,
    /// The payment.
    pub reference: String,
    /// How much that is, in cents.
    pub cents: i64,
}

/// Reads a request to call a payment off.
///
/// # Errors
/// In words, the first thing that the bank would refuse it for.
pub fn recall(root: &Node) -> Result<Recall, Fault> {
    if root.name != "FIToFIPmtCxlReq" {
        return Err("it calls nothing off".to_owned());
    }
    let mut it = Walk::of(root)?;
    let mut assignment = it.within("Assgnmt")?;
    let name = assignment.text("Id", 35)?.to_owned();
    for party in ["Assgnr", "Assgne"] {
        let mut party = assignment.within(party)?;
        bank(&mut party, "Agt")?;
        party.end()?;
    }
    instant(&mut assignment, "CreDtTm")?;
    assignment.end()?;
    let mut control = it.within("CtrlData")?;
    control.only("NbOfTxs", "1")?;
    control.end()?;
    let mut underlying = it.within("Undrlyg")?;
    it.end()?;
    let mut about = underlying.within("TxInf")?;
    underlying.end()?;
    about.text("CxlId", 35)?;
    original(&mut about)?;
    about.text_maybe("OrgnlInstrId", 35)?;
    let reference = about.text("OrgnlEndToEndId", 35)?.to_owned();
    about.text("OrgnlTxId", 35)?;
    let cents = amounts::of(about.one("OrgnlIntrBkSttlmAmt")?)?;
    // Whoever had no answer does not know it.
    if about.text_maybe("OrgnlIntrBkSttlmDt", 10)?.is_some_and(|day| !is_date(day)) {
        return Err("OrgnlIntrBkSttlmDt is no date".to_owned());
    }
    let mut reason = about.within("CxlRsnInf")?;
    let mut originator = reason.within("Orgtr")?;
    originator.text("Nm", 70)?;
    originator.end()?;
    let mut code = reason.within("Rsn")?;
    let known = ["CUST", "DUPL", "TECH", "FRAD", "AC03", "AM09"];
    if !known.contains(&code.text("Cd", 4)?) {
        return Err("it gives no reason that SEPA has".to_owned());
    }
    code.end()?;
    reason.end()?;
    about.end()?;
    Ok(Recall { name, reference, cents })
}

/// The message of the payment.
fn original(it: &mut Walk<'_>) -> Result<(), Fault> {
    let mut message = it.within("OrgnlGrpInf")?;
    message.text("OrgnlMsgId", 35)?;
    message.only("OrgnlMsgNmId", PAYMENT)?;
    message.end()
}

fn instant(it: &mut Walk<'_>, name: &str) -> Result<(), Fault> {
    let text = it.text(name, 30)?;
    match is_date_time(text) && text.ends_with('Z') {
        true => Ok(()),
        false => Err(format!("{name} is no instant")),
    }
}

fn date(it: &mut Walk<'_>, name: &str) -> Result<(), Fault> {
    match is_date(it.text(name, 10)?) {
        true => Ok(()),
        false => Err(format!("{name} is no date")),
    }
}

/// The root of a message of this kind.
///
/// # Errors
/// It is none.
pub fn root(body: &[u8], kind: &str) -> Result<Node, Fault> {
    xml::read(body, kind)
}
