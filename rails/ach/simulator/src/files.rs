//! Files of credits as the bank reads them: PPD and CCD entries, with one addenda record at most.
//!
//! The layouts are those of the Nacha Operating Rules, appendix three. What a bank leaves to the
//! originator is not looked at: discretionary data and descriptive dates.

use std::collections::HashSet;

use crate::days::{self, Day};
use crate::fields::{BLOCK, Field, Record, records};
use crate::routing;

/// How far ahead of a file its effective entry dates may be, in days.
const AHEAD_MAX: u64 = 31;
/// Entry hashes keep this many of a sum: ten digits.
pub const HASH: u64 = 10_000_000_000;

/// A file that a bank would take.
#[derive(Clone, Debug)]
pub struct File {
    /// Its first record.
    pub header: Header,
    /// Its batches: at least one.
    pub batches: Vec<Batch>,
    /// What its entries come to, in cents.
    pub credit: u64,
}

/// The first record of a file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The bank, as it stands there: ten characters.
    pub destination: String,
    /// Who sends it: ten characters.
    pub origin: String,
    /// Six digits.
    pub date: String,
    /// Four digits.
    pub time: String,
    /// A capital letter or a digit.
    pub modifier: String,
    /// The bank's name.
    pub destination_name: String,
    /// The sender's name.
    pub origin_name: String,
    /// Eight digits: the file's number.
    pub reference_code: String,
}

/// Entries of one originator, for one day.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The originator's name.
    pub company_name: String,
    /// Ten letters and digits.
    pub company_id: String,
    /// Whatever the originator put there.
    pub discretionary: String,
    /// `PPD` or `CCD`.
    pub class: String,
    /// What the entries are for.
    pub description: String,
    /// Whatever the originator put there.
    pub descriptive_date: String,
    /// The effective entry date: six digits.
    pub effective_date: String,
    /// The originating bank: eight digits.
    pub odfi: String,
    /// Its number in the file.
    pub number: u64,
    /// At least one.
    pub entries: Vec<Entry>,
}

/// A credit.
#[derive(Clone, Debug)]
pub struct Entry {
    /// `22` to a checking account, `32` to a savings account.
    pub code: String,
    /// The receiving bank: eight digits.
    pub rdfi: String,
    /// The receiver's account.
    pub account: String,
    /// In cents.
    pub amount: u64,
    /// The originator's reference.
    pub id: String,
    /// The receiver's name.
    pub name: String,
    /// Whatever the originator put there.
    pub discretionary: String,
    /// Fifteen digits.
    pub trace: String,
}

/// What the control records tell again.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Entries and addenda.
    records: u64,
    /// Of the receiving banks.
    hash: u64,
    /// In cents.
    credit: u64,
}

/// What is left to be read of a file.
type Rest<'a, 'b> = &'b mut std::slice::Iter<'a, Record<'a>>;

/// Reads a file.
///
/// # Errors
/// In words, the first thing that a bank would refuse it for.
pub fn read(bytes: &[u8]) -> Result<File, String> {
    let records = records(bytes)?;
    let mut rest = records.iter();
    let (header, created_on) = Header::read(&next(&mut rest, "1")?)?;
    let mut batches: Vec<Batch> = Vec::new();
    let mut sums = Sums::default();
    while rest.as_slice().first().is_some_and(|record| record.kind() == "5") {
        let least = batches.last().map_or(1, |batch| batch.number + 1);
        let (batch, own) = Batch::read(&mut rest, created_on, least)?;
        sums.add(own);
        batches.push(batch);
    }
    let control = next(&mut rest, "9")?;
    if batches.is_empty() {
        return Err(control.wrong("there is no batch before it"));
    }
    let blocks = records.len() / BLOCK;
    sums.check_file(&control, (batches.len(), blocks))?;
    if rest.len() >= BLOCK || !rest.all(Record::is_filler) {
        return Err("behind the file control are more records than nines to fill the block".into());
    }
    let file = File { header, batches, credit: sums.credit };
    file.has_no_doubles()?;
    Ok(file)
}

impl File {
    /// Every entry, with its batch.
    pub fn entries(&self) -> impl Iterator<Item = (&Batch, &Entry)> {
        self.batches.iter().flat_map(|batch| batch.entries.iter().map(move |entry| (batch, entry)))
    }

    /// Whoever is told about an entry is told its trace number, and knows its own reference.
    fn has_no_doubles(&self) -> Result<(), String> {
        let (mut traces, mut ids) = (HashSet::new(), HashSet::new());
        for (_, Entry { trace, id, .. }) in self.entries() {
            if !traces.insert(trace) {
                return Err(format!("the trace number {trace} is there twice"));
            }
            if !ids.insert(id) {
                return Err(format!("the identification number {id} is there twice"));
            }
        }
        Ok(())
    }
}

impl Header {
    fn read(record: &Record<'_>) -> Result<(Self, Day), String> {
        record.only(Field(2, 3, "priority code"), "01")?;
        let why = "must be a blank and a routing number";
        let is_bank = |text: &str| text.strip_prefix(' ').is_some_and(routing::is_routing_number);
        let destination =
            record.matching(Field(4, 13, "immediate destination"), why, is_bank)?.to_owned();
        let why = "must be nine digits behind a blank, a digit or a capital letter";
        let origin = record.matching(Field(14, 23, "immediate origin"), why, is_origin)?.to_owned();
        let field = Field(24, 29, "file creation date");
        let date = record.raw(field).to_owned();
        let created_on = Day::read(&date).ok_or_else(|| record.fault(field, "is no day"))?;
        let time = Field(30, 33, "file creation time");
        let time = record.matching(time, "is no time of day", days::is_time)?.to_owned();
        let is_modifier = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        };
        let why = "must be a capital letter or a digit";
        let modifier =
            record.matching(Field(34, 34, "file ID modifier"), why, is_modifier)?.to_owned();
        record.only(Field(35, 37, "record size"), "094")?;
        record.only(Field(38, 39, "blocking factor"), "10")?;
        record.only(Field(40, 40, "format code"), "1")?;
        let destination_name = record.text(Field(41, 63, "immediate destination name"))?.to_owned();
        let origin_name = record.text(Field(64, 86, "immediate origin name"))?.to_owned();
        let field = Field(87, 94, "reference code");
        record.number(field)?;
        let reference_code = record.raw(field).to_owned();
        let header = Self {
            destination,
            origin,
            date,
            time,
            modifier,
            destination_name,
            origin_name,
            reference_code,
        };
        Ok((header, created_on))
    }
}

impl Batch {
    /// The batch that begins here; its number must be `least` or more.
    fn read(rest: Rest<'_, '_>, created_on: Day, least: u64) -> Result<(Self, Sums), String> {
        let record = next(rest, "5")?;
        let mut batch = Self::read_header(&record, created_on)?;
        if batch.number < least {
            return Err(record.fault(BATCH_NUMBER, &format!("must be {least} or more")));
        }
        let mut sums = Sums::default();
        while rest.as_slice().first().is_some_and(|record| record.kind() == "6") {
            let record = next(rest, "6")?;
            let entry = Entry::read(&record, &batch)?;
            sums.add(Sums {
                records: 1,
                hash: entry.rdfi.parse().unwrap_or_default(),
                credit: entry.amount,
            });
            let addenda = Field(79, 79, "addenda record indicator");
            let why = "must be 0 or 1";
            if record.matching(addenda, why, |text| matches!(text, "0" | "1"))? == "1" {
                entry.read_addenda(&next(rest, "7")?)?;
                sums.add(Sums { records: 1, ..Sums::default() });
            }
            batch.entries.push(entry);
        }
        let control = next(rest, "8")?;
        if batch.entries.is_empty() {
            return Err(control.wrong("there is no entry before it"));
        }
        sums.check_batch(&control, &batch)?;
        Ok((batch, sums))
    }

    fn read_header(record: &Record<'_>, created_on: Day) -> Result<Self, String> {
        record.only(SERVICE_CLASS, CREDITS)?;
        let company_name = record.text(Field(5, 20, "company name"))?.to_owned();
        let is_id = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let why = "must be ten letters and digits";
        let company_id =
            record.matching(Field(41, 50, "company identification"), why, is_id)?.to_owned();
        let is_class = |text: &str| matches!(text, "PPD" | "CCD");
        let why = "must be PPD or CCD";
        let class = record.matching(Field(51, 53, "standard entry class"), why, is_class)?;
        let description = record.text(Field(54, 63, "company entry description"))?.to_owned();
        let is_effective = |text: &str| is_effective(text, created_on);
        let why = "must be a day of work, not before the file's and at most 31 days after";
        let effective = Field(70, 75, "effective entry date");
        let effective_date = record.matching(effective, why, is_effective)?.to_owned();
        record.blank(Field(76, 78, "settlement date"))?;
        record.only(Field(79, 79, "originator status code"), "1")?;
        let why = "must be the first eight digits of a routing number";
        let odfi = record.matching(ODFI, why, routing::is_institution)?.to_owned();
        Ok(Self {
            company_name,
            company_id,
            discretionary: record.raw(Field(21, 40, "discretionary data")).to_owned(),
            class: class.to_owned(),
            description,
            descriptive_date: record.raw(Field(64, 69, "descriptive date")).to_owned(),
            effective_date,
            odfi,
            number: record.number(BATCH_NUMBER)?,
            entries: Vec::new(),
        })
    }
}

impl Entry {
    fn read(record: &Record<'_>, batch: &Batch) -> Result<Self, String> {
        let why = "must be 22 or 32";
        let code = Field(2, 3, "transaction code");
        let code = record.matching(code, why, |text| matches!(text, "22" | "32"))?.to_owned();
        let why = "is no routing number";
        let rdfi = Field(4, 12, "receiving bank");
        let rdfi = record.matching(rdfi, why, routing::is_routing_number)?;
        let account = Field(13, 29, "DFI account number");
        let is_account = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !is_account(record.text(account)?) {
            return Err(record.fault(account, "must be letters, digits and hyphens"));
        }
        let amount = Field(30, 39, "amount");
        let cents = record.number(amount)?;
        if cents == 0 {
            return Err(record.fault(amount, "must be more than nothing"));
        }
        let id = Field(40, 54, "identification number");
        let is_reference = |text: &str| {
            text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-')
        };
        if !is_reference(record.text(id)?) {
            return Err(record.fault(id, "must be capital letters, digits and hyphens"));
        }
        let name = record.text(Field(55, 76, "name"))?.to_owned();
        let why = "must be the originating bank and seven digits, more than in the entry before";
        let before = batch.entries.last().map_or("", |entry| &entry.trace);
        record.number(TRACE)?;
        let is_next = |text: &str| text.starts_with(&batch.odfi) && text > before;
        let trace = record.matching(TRACE, why, is_next)?.to_owned();
        Ok(Self {
            code,
            rdfi: rdfi.get(..8).unwrap_or_default().to_owned(),
            account: record.text(account)?.to_owned(),
            amount: cents,
            id: record.text(id)?.to_owned(),
            name,
            discretionary: record.raw(Field(77, 78, "discretionary data")).to_owned(),
            trace,
        })
    }

    /// Checks the addenda record behind it.
    fn read_addenda(&self, record: &Record<'_>) -> Result<(), String> {
        record.only(Field(2, 3, "addenda type code"), "05")?;
        record.text(Field(4, 83, "payment related information"))?;
        record.only(Field(84, 87, "addenda sequence number"), "0001")?;
        let number = self.trace.get(8..).unwrap_or_default();
        record.only(Field(88, 94, "entry detail sequence number"), number)
    }
}

impl Sums {
    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.hash = (self.hash + more.hash) % HASH;
        self.credit += more.credit;
    }

    fn check_batch(self, record: &Record<'_>, batch: &Batch) -> Result<(), String> {
        record.only(SERVICE_CLASS, CREDITS)?;
        record.count(Field(5, 10, "entry/addenda count"), self.records)?;
        record.count(Field(11, 20, "entry hash"), self.hash)?;
        record.count(Field(21, 32, "total of debits"), 0)?;
        record.count(Field(33, 44, "total of credits"), self.credit)?;
        record.only(Field(45, 54, "company identification"), &batch.company_id)?;
        record.blank(Field(55, 73, "message authentication code"))?;
        record.blank(Field(74, 79, "reserved field"))?;
        record.only(ODFI, &batch.odfi)?;
        record.count(BATCH_NUMBER, batch.number)
    }

    fn check_file(
        self,
        record: &Record<'_>,
        (batches, blocks): (usize, usize),
    ) -> Result<(), String> {
        let number = |count: usize| u64::try_from(count).unwrap_or_default();
        record.count(Field(2, 7, "batch count"), number(batches))?;
        record.count(Field(8, 13, "block count"), number(blocks))?;
        record.count(Field(14, 21, "entry/addenda count"), self.records)?;
        record.count(Field(22, 31, "entry hash"), self.hash)?;
        record.count(Field(32, 43, "total of debits"), 0)?;
        record.count(Field(44, 55, "total of credits"), self.credit)?;
        record.blank(Field(56, 94, "reserved field"))
    }
}

/// The service class of batches that hold only credits.
const CREDITS: &str = "220";
const SERVICE_CLASS: Field = Field(2, 4, "service class code");
const ODFI: Field = Field(80, 87, "originating bank");
const BATCH_NUMBER: Field = Field(88, 94, "batch number");
const TRACE: Field = Field(80, 94, "trace number");

/// The next record, which must be of this type.
fn next<'a>(rest: Rest<'a, '_>, kind: &str) -> Result<Record<'a>, String> {
    let record = rest.next().ok_or_else(|| format!("it ends where a record {kind} is due"))?;
    if record.kind() == kind {
        return Ok(*record);
    }
    Err(record.wrong(&format!("it is of type {}, where {kind} is due", record.kind())))
}

fn is_origin(text: &str) -> bool {
    let mut bytes = text.bytes();
    let is_first = |b: u8| b == b' ' || b.is_ascii_digit() || b.is_ascii_uppercase();
    bytes.next().is_some_and(is_first) && bytes.all(|byte| byte.is_ascii_digit())
}

/// Whether the receiver can have the money on a day. Holidays are not known here.
fn is_effective(text: &str, created_on: Day) -> bool {
    Day::read(text).is_some_and(|day| {
        let ahead = day.days_after(created_on);
        !day.is_weekend() && ahead.is_some_and(|days| days <= AHEAD_MAX)
    })
}
