//! Makes a file of the payments that a window collected. Pure: the same for the same arguments.

use std::collections::BTreeSet;

use railhead_rail::types::{Assembled, Payment, Placement, TurnedDown, Window};

use crate::entries::{self, Class, Entry};
use crate::layout::{self, Head, Totals};
use crate::record::{LENGTH, number};
use crate::settings::Settings;

/// Records of a block.
const BLOCK: u64 = 10;

/// The sequence of a trace number has seven digits.
const SEQUENCES: u64 = 10_000_000;

/// Reference codes have eight digits.
const CODES: u64 = 100_000_000;

/// Totals of amounts have twelve digits, a file's as well as a batch's.
const CREDIT_MAX: u64 = 999_999_999_999;

/// A batch counts entries and addenda in six digits.
const RECORDS_MAX: u64 = 999_999;

/// File id modifiers of a day, in their order.
const MODIFIERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Makes the file: individuals in one batch, businesses in another, each in the order given.
///
/// Trace numbers ascend in that order from the window's first entry number. What a file cannot
/// count any more, and what comes after the last seven-digit number, goes with the next file. A
/// file in which nothing would stand has no content.
///
/// # Errors
/// A setting is missing, or the window makes no sense.
pub fn assemble(window: &Window, payments: &[Payment]) -> Result<Assembled, String> {
    let settings = Settings::read()?;
    let head = head(window)?;
    let mut plan = Plan::new(window.first_entry, &settings);
    let (mut refused, mut later) = (Vec::new(), Vec::new());
    let mut references = BTreeSet::new();
    for payment in payments {
        let reference = &payment.reference;
        if !references.insert(reference) {
            return Err(format!("{reference} is there twice"));
        }
        match entries::entry(payment) {
            Err(why) => refused.push(TurnedDown { reference: reference.clone(), why }),
            Ok(entry) if !plan.has_room(&entry) => later.push(reference.clone()),
            Ok(entry) => plan.place(entry),
        }
    }
    let date = window.business_date.replace('-', "");
    Ok(Assembled {
        name: format!("ACH-{date}-{}.ach", head.reference_code),
        identity: head.reference_code.clone(),
        content: plan.write(&head)?,
        placed: plan.placements(),
        refused,
        later,
    })
}

fn head(window: &Window) -> Result<Head, String> {
    let Window { currency, exponent, number_of_day, .. } = window;
    if (currency.as_str(), *exponent) != ("USD", 2) {
        return Err(format!("{currency} with {exponent} decimals is not what ACH carries"));
    }
    // A file beyond the 36th of a day has another time, and the reference code in any case.
    let place = number_of_day.checked_sub(1).ok_or("the file has no number of its day")? % 36;
    let modifier = usize::try_from(place).ok().and_then(|place| MODIFIERS.chars().nth(place));
    Ok(Head {
        date: short_date(&window.business_date)?,
        time: short_time(&window.local_time)?,
        modifier: modifier.ok_or("the file has no modifier")?,
        reference_code: number(window.number % CODES, 8),
        effective: short_date(&window.value_date)?,
    })
}

/// `2026-03-06` as `260306`.
fn short_date(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [year, month, day]
            if is_number(year, 4, 2000..=2099)
                && is_number(month, 2, 1..=12)
                && is_number(day, 2, 1..=31) =>
        {
            Ok([&year[2..], month, day].concat())
        }
        _ => Err(format!("{text:?} is not a date")),
    }
}

/// `16:00` as `1600`.
fn short_time(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((hour, minute)) if is_number(hour, 2, 0..=23) && is_number(minute, 2, 0..=59) => {
            Ok([hour, minute].concat())
        }
        _ => Err(format!("{text:?} is not a time")),
    }
}

fn is_number(text: &str, digits: usize, range: std::ops::RangeInclusive<u32>) -> bool {
    text.len() == digits
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|value| range.contains(&value))
}

/// Entries with their numbers, and how much is in them.
struct Plan<'a> {
    settings: &'a Settings,
    /// In the order given.
    entries: Vec<(u64, Entry)>,
    /// Of the next entry.
    sequence: u64,
    totals: Totals,
}

impl<'a> Plan<'a> {
    fn new(first_entry: u64, settings: &'a Settings) -> Self {
        let totals = Totals::default();
        Self { settings, entries: Vec::new(), sequence: first_entry % SEQUENCES, totals }
    }

    /// The records of an entry.
    fn records(&self, entry: &Entry) -> u64 {
        if layout::has_addenda(self.settings, entry) { 2 } else { 1 }
    }

    fn has_room(&self, entry: &Entry) -> bool {
        self.sequence < SEQUENCES
            && self.totals.credit + entry.amount <= CREDIT_MAX
            && self.totals.records + self.records(entry) <= RECORDS_MAX
    }

    fn place(&mut self, entry: Entry) {
        let records = self.records(&entry);
        self.totals.add(&entry, records);
        self.entries.push((self.sequence, entry));
        self.sequence += 1;
    }

    fn placements(&self) -> Vec<Placement> {
        let placed = self.entries.iter().map(|(sequence, entry)| Placement {
            reference: entry.reference.clone(),
            key: layout::trace(self.settings, *sequence),
            entry: layout::records(self.settings, entry, *sequence).join("\n").into_bytes(),
        });
        placed.collect()
    }

    fn write(&self, head: &Head) -> Result<Vec<u8>, String> {
        let mut file = Lines::default();
        if self.entries.is_empty() {
            return Ok(file.content);
        }
        file.push(&layout::file_header(self.settings, head))?;
        let mut batches = 0;
        for class in Class::ALL {
            if self.entries.iter().any(|(_, entry)| entry.class == class) {
                batches += 1;
                self.write_batch(&mut file, head, (class, batches))?;
            }
        }
        let blocks = (file.count + 1).div_ceil(BLOCK);
        file.push(&layout::file_control(&self.totals, batches, blocks))?;
        while file.count < blocks * BLOCK {
            file.push(&"9".repeat(LENGTH))?;
        }
        Ok(file.content)
    }

    fn write_batch(
        &self,
        file: &mut Lines,
        head: &Head,
        (class, batch): (Class, u64),
    ) -> Result<(), String> {
        let settings = self.settings;
        let mut totals = Totals::default();
        file.push(&layout::batch_header(settings, head, class, batch))?;
        for (sequence, entry) in self.entries.iter().filter(|(_, entry)| entry.class == class) {
            totals.add(entry, self.records(entry));
            for record in layout::records(settings, entry, *sequence) {
                file.push(&record)?;
            }
        }
        file.push(&layout::batch_control(settings, &totals, batch))
    }
}

impl Totals {
    fn add(&mut self, entry: &Entry, records: u64) {
        // A routing number that is one has nine digits.
        let rdfi: u64 = entry.routing.get(..8).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        self.records += records;
        self.hash += rdfi;
        self.credit += entry.amount;
    }
}

/// The file under construction.
#[derive(Default)]
struct Lines {
    content: Vec<u8>,
    count: u64,
}

impl Lines {
    /// # Errors
    /// It is no record: nothing of another length ever leaves.
    fn push(&mut self, record: &str) -> Result<(), String> {
        let is_plain = record.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if record.len() != LENGTH || !is_plain {
            return Err(format!("record {} would have {} bytes", self.count + 1, record.len()));
        }
        self.content.extend_from_slice(record.as_bytes());
        self.content.push(b'\n');
        self.count += 1;
        Ok(())
    }
}
