//! What the bank says of files (pain.002.001.10), and what it books (camt.054.001.08).

use std::collections::BTreeMap;

use railhead_simulator::host;
use railhead_simulator::types::{State, Transfer};
use serde::{Deserialize, Serialize};

use crate::amounts;
use crate::files::{DEBTOR, ENTRY};
use crate::incoming::Feed;
use crate::orders::{File, KIND, Sums};
use crate::time;
use crate::xml::Message;

/// The kinds of what lies ready.
pub const REPORT: &str = "pain002";
const BOOKED: &str = "camt054";

/// What there is to say about a file. While some of its payments wait, this is all that is
/// remembered of it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    message: String,
    parts: Vec<Part>,
    /// Payments that wait, and which part each of them is in.
    waiting: BTreeMap<String, usize>,
}

/// A batch of a file.
#[derive(Debug, Deserialize, Serialize)]
struct Part {
    name: String,
    count: usize,
    cents: i64,
    rejected: Vec<Rejected>,
}

/// A rejected payment: what the entry is called, what the payment is, and why.
#[derive(Debug, Deserialize, Serialize)]
struct Rejected {
    entry: String,
    reference: String,
    code: String,
}

impl Report {
    /// On a file of which nothing is rejected.
    #[must_use]
    pub fn on(file: &File) -> Self {
        let parts = file.batches.iter().map(|batch| {
            let Sums { count, cents } = batch.sums();
            Part { name: batch.name.clone(), count, cents, rejected: Vec::new() }
        });
        Self { message: file.message.clone(), parts: parts.collect(), waiting: BTreeMap::new() }
    }

    /// A payment of this part is rejected.
    pub fn reject(&mut self, part: usize, (entry, reference): (&str, &str), code: String) {
        let (entry, reference) = (entry.to_owned(), reference.to_owned());
        if let Some(part) = self.parts.get_mut(part) {
            part.rejected.push(Rejected { entry, reference, code });
        }
    }

    /// Of a payment of this part it is still open what becomes of it.
    pub fn wait(&mut self, part: usize, reference: &str) {
        self.waiting.insert(reference.to_owned(), part);
    }

    /// A payment that waited does no more.
    pub fn end(&mut self, payment: &Transfer) {
        let part = self.waiting.remove(&payment.reference);
        if let (Some(part), Some(code)) = (part, why(payment)) {
            self.reject(part, (payment.noted(ENTRY), &payment.reference), code);
        }
    }

    /// Whether a payment waits.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Says that a file is well made, and nothing more yet.
    #[must_use]
    pub fn received(&self, feed: &Feed) -> String {
        self.head(feed).put("GrpSts", "ACTC").close(1).done()
    }

    /// Says that a file is rejected as a whole.
    #[must_use]
    pub fn rejected(&self, feed: &Feed, code: &str) -> String {
        let group = self.head(feed).put("GrpSts", "RJCT");
        group.open(&["StsRsnInf"]).open(&["Rsn"]).put("Cd", code).close(3).done()
    }

    /// Says that a file is carried out in part, and not which.
    #[must_use]
    pub fn unclear(&self, feed: &Feed) -> String {
        self.head(feed).put("GrpSts", "PART").close(1).done()
    }

    /// Says that a file is carried out, but for some payments.
    #[must_use]
    pub fn carried_out(&self, feed: &Feed) -> String {
        let message = self.head(feed).close(1);
        self.parts.iter().fold(message, |message, part| part.put(message)).done()
    }

    /// A report up to its group's status.
    fn head(&self, feed: &Feed) -> Message {
        let count: usize = self.parts.iter().map(|part| part.count).sum();
        let cents = self.parts.iter().map(|part| part.cents).sum();
        Message::new("pain.002.001.10", "CstmrPmtStsRpt")
            .open(&["GrpHdr"])
            .put("MsgId", &feed.name("REPORT"))
            .put("CreDtTm", &time::written(host::now_ms()))
            .close(1)
            .open(&["OrgnlGrpInfAndSts"])
            .put("OrgnlMsgId", &self.message)
            .put("OrgnlMsgNmId", KIND)
            .put("OrgnlNbOfTxs", &count.to_string())
            .put("OrgnlCtrlSum", &amounts::written(cents))
    }
}

impl Part {
    fn put(&self, message: Message) -> Message {
        let (count, rejected) = (self.count, self.rejected.len());
        let mut message = message
            .open(&["OrgnlPmtInfAndSts"])
            .put("OrgnlPmtInfId", &self.name)
            .put("OrgnlNbOfTxs", &count.to_string())
            .put("OrgnlCtrlSum", &amounts::written(self.cents));
        // Where all of them are rejected, each for itself, there is no word for the batch.
        message = match rejected {
            0 => message.put("PmtInfSts", "ACSP"),
            some if some < count => message.put("PmtInfSts", "PART"),
            _ => message,
        };
        for (status, count) in [("ACSP", count - rejected), ("RJCT", rejected)] {
            if count > 0 && rejected > 0 {
                message = message
                    .open(&["NbOfTxsPerSts"])
                    .put("DtldNbOfTxs", &count.to_string())
                    .put("DtldSts", status)
                    .close(1);
            }
        }
        for it in &self.rejected {
            message = message
                .open(&["TxInfAndSts"])
                .put_some("OrgnlInstrId", &it.entry)
                .put("OrgnlEndToEndId", &it.reference)
                .put("TxSts", "RJCT")
                .reason("StsRsnInf", &it.code)
                .close(1);
        }
        message.close(1)
    }
}

/// Puts there that payments came back, each with the code of its reason, in one entry.
pub fn book_returns(returned: &[(Transfer, String)], feed: &mut Feed) {
    let Some((first, _)) = returned.first() else { return };
    let (now, on) = (time::written(host::now_ms()), time::date(host::now_ms()));
    let total = returned.iter().map(|(payment, _)| payment.amount_minor).sum();
    let name = feed.name("NTRY");
    let mut message = Message::new("camt.054.001.08", "BkToCstmrDbtCdtNtfctn")
        .open(&["GrpHdr"])
        .put("MsgId", &feed.name("BOOKED"))
        .put("CreDtTm", &now)
        .close(1)
        .open(&["Ntfctn"])
        .put("Id", &feed.name("NTFCTN"))
        .put("CreDtTm", &now)
        .open(&["Acct", "Id"])
        .put("IBAN", first.noted(DEBTOR))
        .close(2)
        .open(&["Ntry"])
        .put("NtryRef", &name)
        .euros("Amt", total)
        .put("CdtDbtInd", "CRDT")
        .open(&["Sts"])
        .put("Cd", "BOOK")
        .close(1);
    for day in ["BookgDt", "ValDt"] {
        message = message.open(&[day]).put("Dt", &on).close(1);
    }
    message = message
        .put("AcctSvcrRef", &name)
        .open(&["BkTxCd", "Domn"])
        .put("Cd", "PMNT")
        .open(&["Fmly"])
        .put("Cd", "ICDT")
        .put("SubFmlyCd", "RRTN")
        .close(3)
        .open(&["NtryDtls"]);
    for (index, (payment, code)) in returned.iter().enumerate() {
        message = message
            .open(&["TxDtls", "Refs"])
            .put("AcctSvcrRef", &format!("{name}-{}", index + 1))
            .put_some("InstrId", payment.noted(ENTRY))
            .put("EndToEndId", &payment.reference)
            .close(1)
            .euros("Amt", payment.amount_minor)
            .put("CdtDbtInd", "CRDT")
            .reason("RtrInf", code)
            .close(1);
    }
    feed.post(BOOKED, &message.done());
}

/// Why a payment is rejected, if it is.
#[must_use]
pub fn why(payment: &Transfer) -> Option<String> {
    match &payment.state {
        State::Refused(code) => Some(code.clone()),
        _ => None,
    }
}
