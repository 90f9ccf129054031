//! The messages that leave: the wire (pacs.008), the question about it (pacs.028), and asking for it
//! back (camt.056), each with its header, as the Fedwire Funds Service's usage guidelines of its
//! Release 2025 have them.

use railhead_rail::fields;
use railhead_rail::types::Payment;

use crate::amount;
use crate::charset::{fitting, says_something};
use crate::days;
use crate::imad::{self, Purpose};
use crate::parties::Party;
use crate::settings::Settings;
use crate::xml::Writer;

/// The kind of message that a wire is.
pub const WIRE: &str = "pacs.008.001.08";
const QUESTION: &str = "pacs.028.001.03";
const RECALL: &str = "camt.056.001.08";
const HEADER: &str = "head.001.001.03";

/// Where the Federal Reserve Banks publish what their messages look like, and which of it is meant.
const REGISTRY: &str =
    "www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service";
const PRACTICE: &str = "frb.fedwire.01";

/// The Fedwire Funds Service itself.
pub const FEDWIRE: &str = "021151080";

/// Most characters of the text for the recipient.
const TEXT_MAX: usize = 140;
/// Most characters of an identification.
const ID_MAX: usize = 35;

/// The fact of when a wire was written, as its message says it.
pub const CREATED_AT: &str = "created_at";

/// A wire as it is sent at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Its IMAD.
    pub imad: String,
    /// When it is written, in New York's time.
    pub created_at: String,
    /// The day on which it settles.
    pub settles_on: String,
}

impl Sending {
    /// As it is sent now. On the day on which it was begun every sending of it is the same message,
    /// with the same IMAD; on another day it has to have another one.
    ///
    /// # Errors
    /// No IMAD can be made.
    pub fn now(payment: &Payment, settings: &Settings, now_ms: u64) -> Result<Self, String> {
        let is_its_day = days::cycle(payment.begun_at_ms) == days::cycle(now_ms);
        Self::at(payment, settings, if is_its_day { payment.begun_at_ms } else { now_ms })
    }

    /// As it was sent: what the gateway has called it, or as it was when it was begun.
    ///
    /// # Errors
    /// No IMAD can be made.
    pub fn earlier(payment: &Payment, settings: &Settings) -> Result<Self, String> {
        let begun = Self::at(payment, settings, payment.begun_at_ms)?;
        let told = payment.network_id.as_deref().filter(|id| *id != begun.imad);
        let Some(settles_on) = told.and_then(imad::day) else { return Ok(begun) };
        let created_at = fields::find(&payment.facts, CREATED_AT).unwrap_or(&begun.created_at);
        let (imad, created_at) = (told.unwrap_or_default().to_owned(), created_at.to_owned());
        Ok(Self { imad, created_at, settles_on })
    }

    fn at(payment: &Payment, settings: &Settings, at_ms: u64) -> Result<Self, String> {
        let day = days::cycle(at_ms);
        let imad = imad::of(day, &settings.source_id, payment.serial, Purpose::Wire);
        Ok(Self {
            imad: imad.ok_or("no IMAD can be made: source_id is not eight capitals and digits")?,
            created_at: days::written(at_ms),
            settles_on: day.dashed(),
        })
    }
}

/// The wire.
///
/// # Errors
/// A sentence on what it lacks. Nothing must be sent then.
pub fn wire(payment: &Payment, settings: &Settings, sending: &Sending) -> Result<String, String> {
    let dollars = amount::dollars(payment.amount_minor).ok_or("no wire carries this amount")?;
    let recipient = |name| fields::value(&payment.recipient, name);
    let (payer, payee) = (Party::payer(payment, settings), Party::recipient(&payment.recipient));
    if !payer.is_named() || !payee.is_named() || recipient("account_number").is_empty() {
        return Err("the wire lacks a payer, a recipient or an account".to_owned());
    }
    let text = fitting(&payment.narration, TEXT_MAX);
    let fill = |writer: &mut Writer| {
        writer.within("GrpHdr", |writer| {
            writer.leaf("MsgId", &sending.imad);
            writer.leaf("CreDtTm", &sending.created_at);
            writer.leaf("NbOfTxs", "1");
            writer.within("SttlmInf", |writer| {
                writer.leaf("SttlmMtd", "CLRG");
                writer.within("ClrSys", |writer| writer.leaf("Cd", "FDW"));
            });
        });
        writer.within("CdtTrfTxInf", |writer| {
            writer.within("PmtId", |writer| {
                writer.leaf("InstrId", &instruction(payment));
                writer.leaf("EndToEndId", &end_to_end(payment));
                writer.leaf("UETR", &payment.reference);
            });
            writer.within("PmtTpInf", |writer| {
                // A credit transfer of a customer.
                writer.within("LclInstrm", |writer| writer.leaf("Prtry", "CTRC"));
            });
            writer.dollars("IntrBkSttlmAmt", &dollars);
            writer.leaf("IntrBkSttlmDt", &sending.settles_on);
            writer.dollars("InstdAmt", &dollars);
            writer.leaf("ChrgBr", &settings.charge_bearer);
            agent(writer, "InstgAgt", &settings.routing_number);
            agent(writer, "InstdAgt", recipient("routing_number"));
            writer.within("Dbtr", |writer| payer.write(writer));
            account(writer, "DbtrAcct", &settings.debtor_account, "");
            agent(writer, "DbtrAgt", &settings.routing_number);
            writer.within("CdtrAgt", |writer| bank(writer, payment, settings));
            writer.within("Cdtr", |writer| payee.write(writer));
            account(writer, "CdtrAcct", recipient("account_number"), recipient("account_type"));
            if says_something(&text) {
                writer.within("RmtInf", |writer| writer.leaf("Ustrd", &text));
            }
        });
    };
    Ok(message(settings, WIRE, ("FIToFICstmrCdtTrf", &sending.imad, &sending.created_at), fill))
}

/// The question what became of a wire; `id` is the question's own identification.
#[must_use]
pub fn question(
    payment: &Payment,
    settings: &Settings,
    sending: &Sending,
    (id, now_ms): (&str, u64),
) -> String {
    let created_at = days::written(now_ms);
    message(settings, QUESTION, ("FIToFIPmtStsReq", id, &created_at), |writer| {
        writer.within("GrpHdr", |writer| {
            writer.leaf("MsgId", id);
            writer.leaf("CreDtTm", &created_at);
        });
        writer.within("TxInf", |writer| {
            original(writer, payment, sending);
            agent(writer, "InstgAgt", &settings.routing_number);
            agent(writer, "InstdAgt", FEDWIRE);
        });
    })
}

/// Asking for a wire back; `id` is the IMAD of that.
///
/// # Errors
/// There is nothing to ask back.
pub fn recall(
    (payment, reason): (&Payment, &str),
    settings: &Settings,
    sending: &Sending,
    (id, now_ms): (&str, u64),
) -> Result<String, String> {
    let dollars = amount::dollars(payment.amount_minor).ok_or("no wire carries this amount")?;
    let created_at = days::written(now_ms);
    let bank = fields::value(&payment.recipient, "routing_number");
    let fill = |writer: &mut Writer| {
        writer.within("Assgnmt", |writer| {
            writer.leaf("Id", id);
            writer.within("Assgnr", |writer| agent(writer, "Agt", &settings.routing_number));
            writer.within("Assgne", |writer| agent(writer, "Agt", bank));
            writer.leaf("CreDtTm", &created_at);
        });
        writer.within("Case", |writer| {
            writer.leaf("Id", &instruction(payment));
            writer.within("Cretr", |writer| agent(writer, "Agt", &settings.routing_number));
        });
        writer.within("Undrlyg", |writer| {
            writer.within("TxInf", |writer| {
                original(writer, payment, sending);
                writer.dollars("OrgnlIntrBkSttlmAmt", &dollars);
                writer.leaf("OrgnlIntrBkSttlmDt", &sending.settles_on);
                writer.within("CxlRsnInf", |writer| {
                    writer.within("Rsn", |writer| writer.leaf("Cd", reason));
                });
            });
        });
    };
    Ok(message(settings, RECALL, ("FIToFIPmtCxlReq", id, &created_at), fill))
}

/// The identification of a question: no other one has it.
#[must_use]
pub fn question_id(serial: u64, now_ms: u64) -> String {
    format!("Q{now_ms:012X}{serial:010X}")
}

/// Header and document of a message: its kind, its outermost element, its identification, and when
/// it is written.
fn message(
    settings: &Settings,
    kind: &str,
    (name, id, created_at): (&str, &str, &str),
    fill: impl FnOnce(&mut Writer),
) -> String {
    let mut writer = Writer::default();
    writer.within("BusMsg", |writer| {
        writer.part("AppHdr", HEADER, |writer| {
            for (name, party) in [("Fr", settings.connection_party.as_str()), ("To", FEDWIRE)] {
                writer.within(name, |writer| {
                    writer.within("FIId", |writer| {
                        writer.within("FinInstnId", |writer| {
                            writer.within("ClrSysMmbId", |writer| writer.leaf("MmbId", party));
                        });
                    });
                });
            }
            writer.leaf("BizMsgIdr", id);
            writer.leaf("MsgDefIdr", kind);
            writer.leaf("BizSvc", &settings.business_service);
            writer.within("MktPrctc", |writer| {
                writer.leaf("Regy", REGISTRY);
                writer.leaf("Id", PRACTICE);
            });
            writer.leaf("CreDt", created_at);
        });
        writer.part("Document", kind, |writer| writer.within(name, fill));
    });
    writer.finish()
}

/// What identifies a wire in messages about it.
fn original(writer: &mut Writer, payment: &Payment, sending: &Sending) {
    writer.within("OrgnlGrpInf", |writer| {
        writer.leaf("OrgnlMsgId", &sending.imad);
        writer.leaf("OrgnlMsgNmId", WIRE);
        writer.leaf("OrgnlCreDtTm", &sending.created_at);
    });
    writer.leaf("OrgnlInstrId", &instruction(payment));
    writer.leaf("OrgnlEndToEndId", &end_to_end(payment));
    writer.leaf("OrgnlUETR", &payment.reference);
}

/// The UETR without dashes: for the gateway it is one instruction, however often it comes.
fn instruction(payment: &Payment) -> String {
    payment.reference.replace('-', "")
}

/// The payout's own reference, which the recipient's bank sees.
fn end_to_end(payment: &Payment) -> String {
    let payout = fitting(&payment.payout, ID_MAX);
    if says_something(&payout) { payout } else { instruction(payment) }
}

/// A bank by its routing number.
fn agent(writer: &mut Writer, name: &str, routing_number: &str) {
    writer.within(name, |writer| {
        writer.within("FinInstnId", |writer| member(writer, routing_number));
    });
}

/// The recipient's bank: by routing number, and by its BIC or by name and address besides.
fn bank(writer: &mut Writer, payment: &Payment, settings: &Settings) {
    let recipient = |name| fields::value(&payment.recipient, name);
    writer.within("FinInstnId", |writer| {
        let is_by_bic = settings.names_banks_by == "bic";
        writer.leaf("BICFI", if is_by_bic { recipient("swift_code") } else { "" });
        member(writer, recipient("routing_number"));
        if !is_by_bic {
            Party::bank(&payment.recipient).write(writer);
        }
    });
}

fn member(writer: &mut Writer, routing_number: &str) {
    writer.within("ClrSysMmbId", |writer| {
        writer.within("ClrSysId", |writer| writer.leaf("Cd", "USABA"));
        writer.leaf("MmbId", routing_number);
    });
}

/// An account, with ISO 20022's code for its type.
fn account(writer: &mut Writer, name: &str, number: &str, kind: &str) {
    let code = match kind {
        "checking" => "CACC",
        "savings" => "SVGS",
        _ => "",
    };
    writer.within(name, |writer| {
        writer.within("Id", |writer| {
            writer.within("Othr", |writer| writer.leaf("Id", number));
        });
        if !code.is_empty() {
            writer.within("Tp", |writer| writer.leaf("Cd", code));
        }
    });
}
