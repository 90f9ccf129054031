//! What leaves about instant payments and about recalls: pacs.008.001.08, pacs.028.001.03 and
//! camt.056.001.08, as EPC122-16 and EPC135-18 have them.

use railhead_rail::types::Payment;

use crate::order::{Order, account, bank};
use crate::settings::Settings;
use crate::xml::Document;
use crate::{amount, time};

/// The message that makes a payment.
const PAYMENT: &str = "pacs.008.001.08";

/// A payment that is made at this instant. Message, transaction and payment have one name, so that
/// a second copy is known as one.
#[must_use]
pub fn payment(order: &Order, settings: &Settings, now_ms: u64) -> Vec<u8> {
    let (at, on) = (time::instant(now_ms), time::settlement_date(now_ms));
    let mut document = Document::new(PAYMENT);
    document.within("FIToFICstmrCdtTrf", |it| {
        it.within("GrpHdr", |it| {
            it.value("MsgId", &order.reference);
            it.value("CreDtTm", &at);
            it.value("NbOfTxs", "1");
            it.euros("TtlIntrBkSttlmAmt", &order.euros());
            it.value("IntrBkSttlmDt", &on);
            it.within("SttlmInf", |it| it.value("SttlmMtd", "CLRG"));
            it.within("PmtTpInf", |it| {
                it.within("SvcLvl", |it| it.value("Cd", "SEPA"));
                it.within("LclInstrm", |it| it.value("Cd", "INST"));
            });
            bank(it, "InstgAgt", &settings.debtor_bic);
        });
        it.within("CdtTrfTxInf", |it| {
            order.identify(it, ("InstrId", &order.reference), &["TxId"]);
            it.euros("IntrBkSttlmAmt", &order.euros());
            it.value("AccptncDtTm", &at);
            it.value("ChrgBr", "SLEV");
            order.write_sender(it, settings);
            it.within("Dbtr", |it| it.value("Nm", &settings.debtor_name));
            account(it, "DbtrAcct", &settings.debtor_iban);
            bank(it, "DbtrAgt", &settings.debtor_bic);
            order.write_creditor(it, settings);
            order.write_purpose(it, settings);
        });
    });
    document.finish()
}

/// A question about a payment, under a name of its own.
#[must_use]
pub fn question(payment: &Payment, name: &str, now_ms: u64) -> Vec<u8> {
    let reference = &payment.reference;
    let mut document = Document::new("pacs.028.001.03");
    document.within("FIToFIPmtStsReq", |it| {
        it.within("GrpHdr", |it| {
            it.value("MsgId", name);
            it.value("CreDtTm", &time::instant(now_ms));
        });
        it.within("TxInf", |it| {
            it.value("StsReqId", name);
            original(it, reference);
            it.value("OrgnlInstrId", reference);
            it.value("OrgnlEndToEndId", reference);
            it.value("OrgnlTxId", reference);
        });
    });
    document.finish()
}

/// What a recall is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall<'a> {
    /// Its own name, the same however often it is sent.
    pub name: &'a str,
    /// Why the payment is called off.
    pub reason: &'a str,
    /// The day on which the payment was to be settled when it was sent last, where that is known.
    pub settled_on: Option<&'a str>,
}

/// A request to call an instant payment off.
#[must_use]
pub fn recall(payment: &Payment, recall: &Recall<'_>, settings: &Settings, now_ms: u64) -> Vec<u8> {
    let reference = &payment.reference;
    let mut document = Document::new("camt.056.001.08");
    let assigner = |it: &mut Document, name| {
        it.within(name, |it| bank(it, "Agt", &settings.debtor_bic));
    };
    document.within("FIToFIPmtCxlReq", |it| {
        it.within("Assgnmt", |it| {
            it.value("Id", recall.name);
            assigner(it, "Assgnr");
            assigner(it, "Assgne");
            it.value("CreDtTm", &time::instant(now_ms));
        });
        it.within("CtrlData", |it| it.value("NbOfTxs", "1"));
        it.within("Undrlyg", |it| {
            it.within("TxInf", |it| {
                it.value("CxlId", recall.name);
                original(it, reference);
                it.value("OrgnlInstrId", reference);
                it.value("OrgnlEndToEndId", reference);
                it.value("OrgnlTxId", reference);
                it.euros("OrgnlIntrBkSttlmAmt", &amount::euros(payment.amount_minor));
                if let Some(settled_on) = recall.settled_on {
                    it.value("OrgnlIntrBkSttlmDt", settled_on);
                }
                it.within("CxlRsnInf", |it| {
                    it.within("Orgtr", |it| it.value("Nm", &settings.debtor_name));
                    it.within("Rsn", |it| it.value("Cd", recall.reason));
                });
            });
        });
    });
    document.finish()
}

/// The message that made an instant payment.
fn original(it: &mut Document, reference: &str) {
    it.within("OrgnlGrpInf", |it| {
        it.value("OrgnlMsgId", reference);
        it.value("OrgnlMsgNmId", PAYMENT);
    });
}
