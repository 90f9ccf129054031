//! Status reports on instant payments: pacs.002.001.10.

use railhead_rail::wording::plain;

use crate::status::{self, Judged, Standing};
use crate::xml::{self, Element, Odd};
use crate::{amount, reference};

/// What this is called.
pub const KIND: &str = "pacs.002.001.10";
/// What it must be a report on: a question that was rejected says nothing of the payment.
const ABOUT: &str = "pacs.008";

/// What a report says of one payment of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its reference.
    pub reference: String,
    /// The bank's word for how it stands.
    pub word: String,
    /// What that means.
    pub standing: Standing,
    /// What its rejection proves, if it was rejected.
    pub judged: Option<Judged>,
    /// How much it is, in cents, where that is told.
    pub cents: Option<i64>,
    /// The clearing's own name for it.
    pub network_id: Option<String>,
}

/// Reads a report in a body.
///
/// # Errors
/// It is none, or not on one instant payment of ours.
pub fn read(body: &[u8]) -> Result<Said, Odd> {
    let message = xml::read(body)?;
    if message.kind != KIND {
        return Err(format!("it is no {KIND}"));
    }
    said(&message.content)
}

/// What a report says.
///
/// # Errors
/// It is not on one instant payment of ours, or contradicts itself.
pub fn said(content: &Element) -> Result<Said, Odd> {
    if content.name() != "FIToFIPmtStsRpt" {
        return Err("it is no status report".to_owned());
    }
    let group = content.find("OrgnlGrpInfAndSts")?;
    let payment = content.find("TxInfAndSts")?.ok_or("it is on no single payment")?;
    let reference = payment.need(&["OrgnlEndToEndId"])?;
    if !reference::is_instant(reference) {
        return Err("it is on a payment that was not made here".to_owned());
    }
    // Both names are our reference.
    if payment.text(&["OrgnlTxId"])?.is_some_and(|other| other != reference) {
        return Err("it names two payments".to_owned());
    }
    about(group, payment, reference)?;
    let words = [group.map(|it| (it, "GrpSts")), Some((payment, "TxSts"))];
    let mut standings = Vec::new();
    for (part, name) in words.into_iter().flatten() {
        if let Some(word) = part.text(&[name])? {
            standings.push((Standing::read(word)?, word));
        }
    }
    let (standing, word) = *standings.last().ok_or("it says no status")?;
    if standings.iter().any(|(other, ..)| *other != standing) {
        return Err("it says two things".to_owned());
    }
    // What the group was rejected for, each payment of it was.
    let parts: Vec<&Element> = [Some(payment), group].into_iter().flatten().collect();
    let judged = (standing == Standing::Rejected).then(|| status::judged(&parts)).transpose()?;
    Ok(Said {
        reference: reference.to_owned(),
        word: word.to_owned(),
        standing,
        judged,
        cents: cents(payment)?,
        network_id: payment.text(&["ClrSysRef"])?.map(|name| plain(name, 70)),
    })
}

/// Whether the report is on our message, wherever it says on which.
fn about(group: Option<&Element>, payment: &Element, reference: &str) -> Result<(), Odd> {
    let own = payment.find("OrgnlGrpInf")?;
    let mut is_said = false;
    for part in [group, own].into_iter().flatten() {
        let kind = part.need(&["OrgnlMsgNmId"])?;
        if !kind.starts_with(ABOUT) || part.need(&["OrgnlMsgId"])? != reference {
            return Err("it is a report on another message".to_owned());
        }
        is_said = true;
    }
    if is_said { Ok(()) } else { Err("it does not say on which message it is a report".to_owned()) }
}

fn cents(payment: &Element) -> Result<Option<i64>, Odd> {
    let found = payment.at(&["OrgnlTxRef", "IntrBkSttlmAmt"])?;
    found.map(amount::read).transpose()
}
