//! The records of a file that leaves, field by field, as NACHA's rules lay them out.

use crate::entries::{Class, Entry};
use crate::record::{number, text};
use crate::settings::Settings;

/// Service class: a batch of credits only.
const CREDITS: &str = "220";

/// What a batch or a file holds, as its control record says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries and addenda.
    pub records: u64,
    /// The sum of the first eight digits of the routing numbers.
    pub hash: u64,
    /// Cents.
    pub credit: u64,
}

impl Totals {
    /// The hash keeps its last ten digits.
    #[must_use]
    fn written(&self) -> (String, String) {
        (number(self.hash % 10_000_000_000, 10), number(self.credit, 12))
    }
}

/// What distinguishes a file from others, as its header says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `YYMMDD`.
    pub date: String,
    /// `HHMM`.
    pub time: String,
    /// The file's letter or digit among those of its day.
    pub modifier: char,
    /// The file's number in eight digits.
    pub reference_code: String,
    /// `YYMMDD`: when recipients shall have the money.
    pub effective: String,
}

/// Record 1.
#[must_use]
pub fn file_header(settings: &Settings, head: &Head) -> String {
    [
        "101 ",
        &settings.destination,
        &settings.origin,
        &head.date,
        &head.time,
        &head.modifier.to_string(),
        "094101",
        &text(&settings.destination_name, 23),
        &text(&settings.origin_name, 23),
        &head.reference_code,
    ]
    .concat()
}

/// Record 5.
#[must_use]
pub fn batch_header(settings: &Settings, head: &Head, class: Class, batch: u64) -> String {
    [
        "5",
        CREDITS,
        &text(&settings.company_name, 16),
        // Discretionary data.
        &text("", 20),
        &text(&settings.company_id, 10),
        class.code(),
        &text(&settings.entry_description, 10),
        // A date for the recipient to read.
        &text("", 6),
        &head.effective,
        // The settlement date, which the operator of the network fills in; the originator's status.
        "   1",
        &settings.odfi,
        &number(batch, 7),
    ]
    .concat()
}

/// Record 6. The sequence is the trace number's.
#[must_use]
pub fn entry(settings: &Settings, entry: &Entry, sequence: u64) -> String {
    [
        "6",
        entry.transaction,
        &entry.routing,
        &text(&entry.account, 17),
        &number(entry.amount, 10),
        &text(&entry.reference, 15),
        &text(&entry.name, 22),
        // Discretionary data.
        "  ",
        if has_addenda(settings, entry) { "1" } else { "0" },
        &trace(settings, sequence),
    ]
    .concat()
}

/// Whether record 7 follows.
#[must_use]
pub fn has_addenda(settings: &Settings, entry: &Entry) -> bool {
    settings.has_addenda && !entry.addenda.is_empty()
}

/// Record 7 of type 05: the only one of its entry.
#[must_use]
pub fn addenda(entry: &Entry, sequence: u64) -> String {
    ["705", &text(&entry.addenda, 80), "0001", &number(sequence, 7)].concat()
}

/// All records of an entry.
#[must_use]
pub fn records(settings: &Settings, entry: &Entry, sequence: u64) -> Vec<String> {
    let mut records = vec![self::entry(settings, entry, sequence)];
    if has_addenda(settings, entry) {
        records.push(addenda(entry, sequence));
    }
    records
}

/// The number by which everybody calls an entry.
#[must_use]
pub fn trace(settings: &Settings, sequence: u64) -> String {
    [settings.odfi.as_str(), &number(sequence, 7)].concat()
}

/// Record 8.
#[must_use]
pub fn batch_control(settings: &Settings, totals: &Totals, batch: u64) -> String {
    let (hash, credit) = totals.written();
    [
        "8",
        CREDITS,
        &number(totals.records, 6),
        &hash,
        // Debits.
        &number(0, 12),
        &credit,
        &text(&settings.company_id, 10),
        // Message authentication code, reserved.
        &text("", 25),
        &settings.odfi,
        &number(batch, 7),
    ]
    .concat()
}

/// Record 9.
#[must_use]
pub fn file_control(totals: &Totals, batches: u64, blocks: u64) -> String {
    let (hash, credit) = totals.written();
    [
        "9",
        &number(batches, 6),
        &number(blocks, 6),
        &number(totals.records, 8),
        &hash,
        // Debits.
        &number(0, 12),
        &credit,
        // Reserved.
        &text("", 39),
    ]
    .concat()
}
