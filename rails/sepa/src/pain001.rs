//! The file that leaves: pain.001.001.09, one debit of one account, as EPC132-08 has it.

use crate::amount;
use crate::order::{Order, account, bank};
use crate::reference;
use crate::settings::Settings;
use crate::xml::Document;

/// How deep an entry stands: in the document, the initiation, and the batch.
const ENTRY_DEPTH: usize = 3;

/// What stands before the entries of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What acknowledgements call the file.
    pub identity: String,
    /// When it was made: `2026-03-06T15:00:00`, where the network is.
    pub created: String,
    /// The day on which our account is debited.
    pub executed_on: String,
}

/// An order as an entry of a file, under a name of the file's own.
#[must_use]
pub fn entry(order: &Order, name: &str, settings: &Settings) -> String {
    Document::part(ENTRY_DEPTH, |it| {
        it.within("CdtTrfTxInf", |it| {
            order.identify(it, ("InstrId", name), &[]);
            it.within("Amt", |it| it.euros("InstdAmt", &order.euros()));
            order.write_sender(it, settings);
            order.write_creditor(it, settings);
            order.write_purpose(it, settings);
        });
    })
}

/// What the entries of a file come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How long they are, in bytes.
    pub bytes: usize,
    /// How many.
    pub count: u64,
    /// What they come to, in cents.
    pub cents: i64,
}

/// A file of entries.
#[must_use]
pub fn file<'a>(
    head: &Head,
    (totals, entries): (&Totals, impl Iterator<Item = &'a str>),
    settings: &Settings,
) -> Vec<u8> {
    let (count, sum) = (totals.count.to_string(), amount::euros(totals.cents));
    let mut document = Document::with_room("pain.001.001.09", totals.bytes);
    document.within("CstmrCdtTrfInitn", |it| {
        it.within("GrpHdr", |it| {
            it.value("MsgId", &head.identity);
            it.value("CreDtTm", &head.created);
            it.value("NbOfTxs", &count);
            it.value("CtrlSum", &sum);
            it.within("InitgPty", |it| initiator(it, settings));
        });
        it.within("PmtInf", |it| {
            it.value("PmtInfId", &reference::batch(&head.identity));
            it.value("PmtMtd", "TRF");
            it.value("BtchBookg", if settings.is_batch_booked { "true" } else { "false" });
            it.value("NbOfTxs", &count);
            it.value("CtrlSum", &sum);
            it.within("PmtTpInf", |it| it.within("SvcLvl", |it| it.value("Cd", "SEPA")));
            it.within("ReqdExctnDt", |it| it.value("Dt", &head.executed_on));
            it.within("Dbtr", |it| it.value("Nm", &settings.debtor_name));
            account(it, "DbtrAcct", &settings.debtor_iban);
            bank(it, "DbtrAgt", &settings.debtor_bic);
            it.value("ChrgBr", "SLEV");
            entries.for_each(|entry| it.lines(entry));
        });
    });
    document.finish()
}

fn initiator(it: &mut Document, settings: &Settings) {
    it.value("Nm", &settings.debtor_name);
    if settings.initiator_id.is_empty() {
        return;
    }
    it.within("Id", |it| {
        it.within("OrgId", |it| {
            it.within("Othr", |it| it.value("Id", &settings.initiator_id));
        });
    });
}
