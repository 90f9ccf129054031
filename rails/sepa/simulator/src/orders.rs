//! Files of payments as the bank reads them: pain.001.001.09, as EPC132-08 narrows it.

use std::collections::HashSet;

use crate::accounts::{account, bank};
use crate::amounts;
use crate::time::{is_date, is_date_time};
use crate::xml::{self, Fault, Node, Walk};

/// What a file is.
pub const KIND: &str = "pain.001.001.09";
/// The element of a payment.
const PAYMENT: &str = "CdtTrfTxInf";

/// A file that the bank would take.
#[derive(Clone, Debug)]
pub struct File {
    /// What the sender calls it.
    pub message: String,
    /// What it holds, each under one date.
    pub batches: Vec<Batch>,
}

/// Payments from one account on one day.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What the sender calls it.
    pub name: String,
    /// The account that pays.
    pub debtor: String,
    /// At least one.
    pub payments: Vec<Payment>,
}

/// A payment.
#[derive(Clone, Debug)]
pub struct Payment {
    /// What the sender calls the entry; empty where it has no name.
    pub entry: String,
    /// What everybody calls the payment.
    pub reference: String,
    /// In cents.
    pub cents: i64,
    /// Whom.
    pub name: String,
    /// To which account.
    pub iban: String,
}

/// How many payments there are, and what they come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// How many.
    pub count: usize,
    /// In cents.
    pub cents: i64,
}

/// Reads a file.
///
/// # Errors
/// In words, the first thing that the bank would refuse it for.
pub fn read(body: &[u8]) -> Result<File, Fault> {
    // Of a file of thousands only what is needed of each payment is kept.
    let mut payments = Vec::new();
    let take = |node: &Node| payment(node).map(|read| payments.push(read));
    let root = xml::read_each(body, KIND, (PAYMENT, take))?;
    let mut payments = payments.into_iter();
    if root.name != "CstmrCdtTrfInitn" {
        return Err("it initiates no credit transfers".to_owned());
    }
    let mut it = Walk::of(&root)?;
    let mut head = it.within("GrpHdr")?;
    let message = head.text("MsgId", 35)?.to_owned();
    if !is_date_time(head.text("CreDtTm", 30)?) {
        return Err("CreDtTm is no instant".to_owned());
    }
    let told = sums(&mut head)?;
    let mut initiator = head.within("InitgPty")?;
    initiator.text("Nm", 70)?;
    if let Some(id) = initiator.maybe("Id") {
        let mut id = Walk::of(id)?;
        let mut organisation = id.within("OrgId")?;
        let mut other = organisation.within("Othr")?;
        other.text("Id", 35)?;
        other.end()?;
        organisation.end()?;
        id.end()?;
    }
    initiator.end()?;
    head.end()?;
    let mut batches = vec![batch(it.one("PmtInf")?, &mut payments)?];
    while let Some(next) = it.maybe("PmtInf") {
        batches.push(batch(next, &mut payments)?);
    }
    it.end()?;
    let file = File { message, batches };
    if file.sums() != told {
        return Err("the file's count or sum is wrong".to_owned());
    }
    file.has_no_doubles()?;
    Ok(file)
}

impl File {
    /// Every payment, with the number of its batch.
    pub fn payments(&self) -> impl Iterator<Item = (usize, &Payment)> {
        let numbered = self.batches.iter().enumerate();
        numbered.flat_map(|(part, batch)| batch.payments.iter().map(move |it| (part, it)))
    }

    /// Of the whole file.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let cents = self.payments().map(|(_, payment)| payment.cents).sum();
        Sums { count: self.payments().count(), cents }
    }

    /// Whoever is told about a payment is told these two names.
    fn has_no_doubles(&self) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        for (_, Payment { entry, reference, .. }) in self.payments() {
            if !seen.insert(reference) || (!entry.is_empty() && !seen.insert(entry)) {
                return Err(format!("{reference} is there twice"));
            }
        }
        Ok(())
    }
}

impl Batch {
    /// Of the batch.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let cents = self.payments.iter().map(|payment| payment.cents).sum();
        Sums { count: self.payments.len(), cents }
    }
}

fn sums(it: &mut Walk<'_>) -> Result<Sums, Fault> {
    let count = it.text("NbOfTxs", 15)?.parse().map_err(|_| "NbOfTxs is no count")?;
    let cents = amounts::read(it.text("CtrlSum", 18)?).ok_or("CtrlSum is no sum")?;
    Ok(Sums { count, cents })
}

/// A batch, with as many of the payments that were read as stand in it.
fn batch(node: &Node, read: &mut impl Iterator<Item = Payment>) -> Result<Batch, Fault> {
    let mut it = Walk::of(node)?;
    let name = it.text("PmtInfId", 35)?.to_owned();
    it.only("PmtMtd", "TRF")?;
    if !matches!(it.text("BtchBookg", 5)?, "true" | "false") {
        return Err("BtchBookg must be true or false".to_owned());
    }
    let told = sums(&mut it)?;
    let mut kind = it.within("PmtTpInf")?;
    let mut level = kind.within("SvcLvl")?;
    level.only("Cd", "SEPA")?;
    level.end()?;
    kind.end()?;
    let mut on = it.within("ReqdExctnDt")?;
    if !is_date(on.text("Dt", 10)?) {
        return Err("ReqdExctnDt is no date".to_owned());
    }
    on.end()?;
    let mut debtor = it.within("Dbtr")?;
    debtor.text("Nm", 70)?;
    debtor.end()?;
    let debtor = account(&mut it, "DbtrAcct")?.to_owned();
    bank(&mut it, "DbtrAgt")?;
    it.only("ChrgBr", "SLEV")?;
    it.one(PAYMENT)?;
    let mut count = 1;
    while it.maybe(PAYMENT).is_some() {
        count += 1;
    }
    it.end()?;
    let payments = read.take(count).collect();
    let batch = Batch { name, debtor, payments };
    if batch.sums() == told { Ok(batch) } else { Err("a batch's count or sum is wrong".to_owned()) }
}

fn payment(node: &Node) -> Result<Payment, Fault> {
    let mut it = Walk::of(node)?;
    let mut names = it.within("PmtId")?;
    let entry = names.text_maybe("InstrId", 35)?.unwrap_or_default().to_owned();
    let reference = names.text("EndToEndId", 35)?.to_owned();
    names.end()?;
    let mut amount = it.within("Amt")?;
    let cents = amounts::of(amount.one("InstdAmt")?)?;
    amount.end()?;
    let Creditor { name, iban } = creditor(&mut it)?;
    purpose(&mut it)?;
    it.end()?;
    Ok(Payment { entry, reference, cents, name, iban })
}

/// Whom a payment is made to.
pub struct Creditor {
    /// The name.
    pub name: String,
    /// The account.
    pub iban: String,
}

/// Who is paid, after on whose behalf.
///
/// # Errors
/// Something of it is not as it must be.
pub fn creditor(it: &mut Walk<'_>) -> Result<Creditor, Fault> {
    sender(it)?;
    bank(it, "CdtrAgt")?;
    let mut creditor = it.within("Cdtr")?;
    let name = creditor.text("Nm", 70)?.to_owned();
    if let Some(address) = creditor.maybe("PstlAdr") {
        let mut address = Walk::of(address)?;
        address.text_maybe("StrtNm", 70)?;
        address.text_maybe("PstCd", 16)?;
        address.text("TwnNm", 35)?;
        let country = address.text("Ctry", 2)?;
        if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err("Ctry is no country".to_owned());
        }
        address.end()?;
    }
    creditor.end()?;
    let iban = account(it, "CdtrAcct")?.to_owned();
    Ok(Creditor { name, iban })
}

/// On whose behalf it is made, where that is said.
///
/// # Errors
/// It is not written as it must be.
pub fn sender(it: &mut Walk<'_>) -> Result<(), Fault> {
    let Some(sender) = it.maybe("UltmtDbtr") else { return Ok(()) };
    let mut sender = Walk::of(sender)?;
    sender.text("Nm", 70)?;
    sender.end()
}

/// What it is for, where that is said.
///
/// # Errors
/// It is not written as it must be.
pub fn purpose(it: &mut Walk<'_>) -> Result<(), Fault> {
    if let Some(purpose) = it.maybe("Purp") {
        let mut purpose = Walk::of(purpose)?;
        if purpose.text("Cd", 4)?.len() != 4 {
            return Err("Purp is no code".to_owned());
        }
        purpose.end()?;
    }
    if let Some(remittance) = it.maybe("RmtInf") {
        let mut remittance = Walk::of(remittance)?;
        remittance.text("Ustrd", 140)?;
        remittance.end()?;
    }
    Ok(())
}
