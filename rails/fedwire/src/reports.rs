//! What messages that come say, as far as it is of use here. Each is read in the version that
//! Fedwire sends, and in no other.

use crate::amount;
use crate::imad;
use crate::reference::is_uetr;
use crate::xml::{self, Message, Node};

/// A message that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// How a wire stands (pacs.002).
    Status(StatusReport),
    /// Money that came back (pacs.004).
    Return(ReturnReport),
    /// What the recipient's bank says to asking a wire back (camt.029).
    Resolution(Resolution),
    /// A message was not understood (admi.002).
    Rejection(Rejection),
    /// A message was taken on (admi.007).
    Acknowledgement {
        /// The identification of that message.
        about: String,
    },
    /// Anything else.
    Other,
}

/// pacs.002.001.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// The UETR of the wire.
    pub uetr: String,
    /// Its IMAD.
    pub imad: String,
    /// The kind of message that it was.
    pub kind: String,
    /// When it was written, as its message said.
    pub created_at: Option<String>,
    /// Four letters.
    pub status: String,
    /// Why, if it says so.
    pub reasons: Vec<String>,
    /// The same in words, for people; empty where there are none.
    pub words: String,
    /// How much was paid in cents; Fedwire itself does not say it.
    pub amount_minor: Option<i64>,
}

/// pacs.004.001.10
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnReport {
    /// The IMAD of the return.
    pub imad: String,
    /// The UETR of the wire that came back; none where the message names none.
    pub uetr: Option<String>,
    /// The IMAD of that wire, or what stands in its place.
    pub original: Option<String>,
    /// What came back in cents; none where it cannot be read.
    pub amount_minor: Option<i64>,
    /// Four letters, if it says why.
    pub reason: Option<String>,
}

/// camt.029.001.09
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The UETR of the wire.
    pub uetr: String,
    /// Four letters.
    pub confirmation: String,
}

/// admi.002.001.01
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The identification of the message that was not understood.
    pub about: String,
    /// A code.
    pub reason: String,
    /// In words, for people; empty where there are none.
    pub description: String,
}

/// Reads a body.
///
/// # Errors
/// Says why it is no message, or not as documented.
pub fn read(body: &[u8]) -> Result<Report, String> {
    let Message { kind, content } = xml::read(body)?;
    let expected = |name: &str| match content.name() == name {
        true => Ok(&content),
        false => Err(format!("the body is no {kind}")),
    };
    let report = match kind.as_str() {
        "pacs.002.001.10" => Report::Status(status(expected("FIToFIPmtStsRpt")?)?),
        "pacs.004.001.10" => Report::Return(returned(expected("PmtRtr")?)?),
        "camt.029.001.09" => Report::Resolution(resolution(expected("RsltnOfInvstgtn")?)?),
        "admi.002.001.01" => Report::Rejection(rejection(expected("admi.002.001.01")?)?),
        "admi.007.001.01" => {
            let about = expected("RctAck")?.text(&["Rpt", "RltdRef", "Ref"])?.to_owned();
            Report::Acknowledgement { about }
        }
        _ => Report::Other,
    };
    Ok(report)
}

fn status(report: &Node) -> Result<StatusReport, String> {
    let wire = report.at(&["TxInfAndSts"])?;
    let settled = ["OrgnlTxRef", "IntrBkSttlmAmt"];
    let reasons = wire.all("StsRsnInf").map(reason).collect::<Result<_, String>>()?;
    let told = wire.all("StsRsnInf").flat_map(|information| information.all("AddtlInf"));
    let words: Vec<&str> = told.filter_map(|words| words.text(&[]).ok()).collect();
    let amount_minor = match wire.find(&settled)? {
        Some(amount) => Some(cents(amount).ok_or("the body's amount cannot be read")?),
        None => None,
    };
    let created = ["OrgnlGrpInf", "OrgnlCreDtTm"];
    let created_at = match wire.find(&created)? {
        Some(_) => Some(wire.text(&created)?).filter(|text| is_instant(text)).map(str::to_owned),
        None => None,
    };
    Ok(StatusReport {
        uetr: wire.text(&["OrgnlUETR"])?.to_owned(),
        imad: wire.text(&["OrgnlGrpInf", "OrgnlMsgId"])?.to_owned(),
        kind: wire.text(&["OrgnlGrpInf", "OrgnlMsgNmId"])?.to_owned(),
        created_at,
        status: wire.text(&["TxSts"])?.to_owned(),
        reasons,
        words: words.join(" "),
        amount_minor,
    })
}

/// A reason of Fedwire's own, or one of ISO 20022; one of both is none.
fn reason(information: &Node) -> Result<String, String> {
    let own = information.find(&["Rsn", "Prtry"])?;
    let listed = information.find(&["Rsn", "Cd"])?;
    match (own, listed) {
        (Some(_), None) => information.text(&["Rsn", "Prtry"]).map(str::to_owned),
        (None, Some(_)) => information.text(&["Rsn", "Cd"]).map(str::to_owned),
        _ => Err("the body's reason is not one".to_owned()),
    }
}

fn returned(report: &Node) -> Result<ReturnReport, String> {
    let imad = report.text(&["GrpHdr", "MsgId"])?.to_owned();
    let wire = report.at(&["TxInf"])?;
    let optional = |path: &[&str]| wire.text(path).ok().map(str::to_owned);
    let amount = wire.at(&["RtrdIntrBkSttlmAmt"]).ok();
    let is_imad = imad::is_imad(&imad);
    Ok(ReturnReport {
        imad: Some(imad).filter(|_| is_imad).ok_or("the return has no IMAD")?,
        uetr: optional(&["OrgnlUETR"]).filter(|uetr| is_uetr(uetr)),
        original: optional(&["OrgnlGrpInf", "OrgnlMsgId"]),
        amount_minor: amount.and_then(cents).filter(|cents| *cents > 0),
        reason: optional(&["RtrRsnInf", "Rsn", "Cd"]),
    })
}

fn resolution(report: &Node) -> Result<Resolution, String> {
    Ok(Resolution {
        uetr: report.text(&["CxlDtls", "TxInfAndSts", "OrgnlUETR"])?.to_owned(),
        confirmation: report.text(&["Sts", "Conf"])?.to_owned(),
    })
}

fn rejection(report: &Node) -> Result<Rejection, String> {
    let described = ["Rsn", "RsnDesc"];
    let description = match report.find(&described)? {
        Some(_) => report.text(&described)?.to_owned(),
        None => String::new(),
    };
    Ok(Rejection {
        about: report.text(&["RltdRef", "Ref"])?.to_owned(),
        reason: report.text(&["Rsn", "RjctgPtyRsn"])?.to_owned(),
        description,
    })
}

/// The cents of an amount of dollars.
fn cents(amount: &Node) -> Option<i64> {
    let dollars = amount.attribute("Ccy").filter(|currency| *currency == "USD");
    dollars.and_then(|_| amount::cents(amount.text(&[]).ok()?))
}

/// Whether a text may be a date with a time: it is repeated as it stands.
fn is_instant(text: &str) -> bool {
    let is_its = |c: char| c.is_ascii_digit() || "-:.+TZ".contains(c);
    (19..=35).contains(&text.len()) && text.chars().all(is_its)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Report, read};
    use crate::fixtures::{self, IMAD, REFERENCE};

    #[test]
    fn a_status() {
        let text = fixtures::status(
            "RJCT",
            "<StsRsnInf><Rsn><Prtry>E433</Prtry></Rsn><AddtlInf>x</AddtlInf></StsRsnInf><StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf>",
        );
        let Ok(Report::Status(report)) = read(text.as_bytes()) else { panic!("no status") };
        assert_eq!((report.uetr.as_str(), report.imad.as_str()), (REFERENCE, IMAD));
        assert_eq!(report.reasons, ["E433", "AC04"]);
        assert_eq!(report.created_at.as_deref(), Some("2026-11-23T10:00:00-05:00"));
        assert_eq!((report.status.as_str(), report.amount_minor), ("RJCT", None));
        for (what, instead) in [
            ("<TxSts>RJCT</TxSts>", ""),
            ("<TxSts>RJCT</TxSts>", "<TxSts>RJCT</TxSts><TxSts>ACSC</TxSts>"),
            ("<OrgnlUETR>", "<OrgnlUETR/><OrgnlUETR>"),
            ("<Cd>AC04</Cd>", "<Cd>AC04</Cd><Prtry>AC04</Prtry>"),
            ("<Cd>AC04</Cd>", ""),
            ("pacs.002.001.10\"><FIToFIPmtStsRpt", "pacs.002.001.10\"><PmtRtr"),
        ] {
            assert!(read(text.replacen(what, instead, 1).as_bytes()).is_err(), "{instead}");
        }
        let newer = text.replace("xsd:pacs.002.001.10", "xsd:pacs.002.001.12");
        assert_eq!(read(newer.as_bytes()), Ok(Report::Other));
    }

    #[test]
    fn amounts_of_settled_wires() {
        let with = |amount: &str| {
            let text = fixtures::status("ACSC", &format!("<OrgnlTxRef>{amount}</OrgnlTxRef>"));
            match read(text.as_bytes()) {
                Ok(Report::Status(report)) => Ok(report.amount_minor),
                other => Err(format!("{other:?}")),
            }
        };
        let amount = |currency, text| {
            with(&format!("<IntrBkSttlmAmt Ccy=\"{currency}\">{text}</IntrBkSttlmAmt>"))
        };
        assert_eq!(amount("USD", "1250.50"), Ok(Some(125_050)));
        assert_eq!(with(""), Ok(None));
        assert!(amount("CAD", "1250.50").is_err() && amount("USD", "1250.505").is_err());
        assert!(with("<IntrBkSttlmAmt>1250.50</IntrBkSttlmAmt>").is_err());
    }

    #[test]
    fn a_return() {
        let text = fixtures::returned("1250.50");
        let Ok(Report::Return(report)) = read(text.as_bytes()) else { panic!("no return") };
        assert_eq!(report.uetr.as_deref(), Some(REFERENCE));
        assert_eq!(report.imad, "20261123C1QDRCQR000077");
        assert_eq!(report.original.as_deref(), Some(IMAD));
        assert_eq!((report.amount_minor, report.reason.as_deref()), (Some(125_050), Some("AC04")));
        for amount in ["0.00", "-1.00", "1250.505", "x"] {
            let Ok(Report::Return(report)) = read(fixtures::returned(amount).as_bytes()) else {
                panic!("no return")
            };
            assert_eq!(report.amount_minor, None, "{amount}");
        }
        let nameless = text.replace("20261123C1QDRCQR000077", "1");
        assert!(read(nameless.as_bytes()).is_err());
    }
}
