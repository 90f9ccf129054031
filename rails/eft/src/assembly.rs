//! Makes a file of the payments that a window collected. Pure: the same for the same arguments.

use std::collections::BTreeSet;

use railhead_rail::types::{Assembled, Payment, Placement, TurnedDown, Window};

use crate::dates;
use crate::entries::{self, Entry};
use crate::layout::{self, Head, Totals};
use crate::record::{LENGTH, SEGMENTS};
use crate::settings::{Counts, Settings};

/// Totals of amounts have fourteen digits.
const CREDIT_MAX: u64 = 99_999_999_999_999;

/// Payments are counted in eight digits.
const PAYMENTS_MAX: u64 = 99_999_999;

/// Digits of the host's number that the name of a file has.
const NUMBERS: u64 = 100_000_000;

/// Makes the file: the payments in the order given, six to a record. What its trailer cannot add
/// up any more goes with the next file. A file in which nothing would stand has no content.
///
/// # Errors
/// A setting is missing, or the window makes no sense.
pub fn assemble(window: &Window, payments: &[Payment]) -> Result<Assembled, String> {
    let settings = Settings::read()?;
    let head = head(window, &settings)?;
    let mut plan = Plan { settings: &settings, head: &head, entries: Vec::new(), credit: 0 };
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
    let name = name(window, &head, &settings.originator_id);
    let records = plan.records(window.first_entry);
    Ok(Assembled {
        placed: plan.placements(&name, &records),
        content: plan.write(&records)?,
        identity: name.clone(),
        name,
        refused,
        later,
    })
}

/// What a file is called: by us, and by the bank's reports on it. The originator whose files are
/// counted, the day, the host's number, and last the number that the bank knows the file by, which
/// comes again some day.
fn name(window: &Window, head: &Head, originator: &str) -> String {
    let date = window.business_date.replace('-', "");
    format!("EFT-{originator}-{date}-{:08}-{:04}.txt", window.number % NUMBERS, head.number)
}

/// The file creation number in the name of a file of ours.
#[must_use]
pub fn number_in(name: &str) -> Option<&str> {
    let (start, number) = name.strip_suffix(".txt")?.rsplit_once('-')?;
    let (originator, start) = start.strip_prefix("EFT-")?.split_once('-')?;
    let (start, own) = start.split_once('-')?;
    let is_number = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_originator =
        originator.len() == 10 && originator.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_originator && is_number(start, 8) && is_number(own, 8) && is_number(number, 4))
        .then_some(number)
}

/// What the bank and we call a payment of a file. In another file it is called otherwise: what is
/// said of an earlier one is not believed of it.
#[must_use]
pub fn key(file: &str, reference: &str) -> String {
    format!("{file}/{reference}")
}

fn head(window: &Window, settings: &Settings) -> Result<Head, String> {
    let Window { currency, exponent, business_date, value_date, .. } = window;
    if (currency.as_str(), *exponent) != ("CAD", 2) {
        return Err(format!("{currency} with {exponent} decimals is not what EFT carries"));
    }
    let date = dates::short(business_date)?;
    let value = dates::short(value_date)?;
    if value_date < business_date {
        return Err(format!("{value_date} is before {business_date}"));
    }
    let place = window.number.checked_sub(1).ok_or("the file has no number")?;
    let number = (place + settings.file_number_offset) % settings.file_number_last + 1;
    Ok(Head { number, date, value_date: value })
}

/// What a file holds, and how much.
struct Plan<'a> {
    settings: &'a Settings,
    head: &'a Head,
    /// In the order given.
    entries: Vec<Entry>,
    /// Cents.
    credit: u64,
}

/// A record of payments: how many, and its text.
struct Record {
    segments: Vec<String>,
    text: String,
}

impl Plan<'_> {
    fn has_room(&self, entry: &Entry) -> bool {
        count(self.entries.len()) < PAYMENTS_MAX && self.credit + entry.amount <= CREDIT_MAX
    }

    fn place(&mut self, entry: Entry) {
        self.credit += entry.amount;
        self.entries.push(entry);
    }

    /// The records of payments. The header has the first place before them.
    fn records(&self, first_entry: u64) -> Vec<Record> {
        let (settings, head) = (self.settings, self.head);
        let numbered: Vec<(u64, &Entry)> = (first_entry..).zip(&self.entries).collect();
        let write = |(place, entries): (u64, &[(u64, &Entry)])| {
            let segment =
                |(number, entry): &(u64, &Entry)| layout::segment(settings, head, entry, *number);
            let segments: Vec<String> = entries.iter().map(segment).collect();
            let text = layout::credits(settings, head, place, &segments);
            Record { segments, text }
        };
        (2..).zip(numbered.chunks(SEGMENTS)).map(write).collect()
    }

    /// Where each payment stands: its segment, or the record where it is alone in one.
    fn placements(&self, name: &str, records: &[Record]) -> Vec<Placement> {
        let shown = records.iter().flat_map(|record| match record.segments.as_slice() {
            [_] => vec![record.text.trim_end()],
            segments => segments.iter().map(String::as_str).collect(),
        });
        let placed = self.entries.iter().zip(shown).map(|(entry, shown)| Placement {
            reference: entry.reference.clone(),
            key: key(name, &entry.reference),
            entry: shown.as_bytes().to_vec(),
        });
        placed.collect()
    }

    fn write(&self, records: &[Record]) -> Result<Vec<u8>, String> {
        let mut file = Lines { settings: self.settings, content: Vec::new() };
        if records.is_empty() {
            return Ok(file.content);
        }
        if !self.settings.first_line.is_empty() {
            file.end(&self.settings.first_line);
        }
        file.push(&layout::header(self.settings, self.head))?;
        for record in records {
            file.push(&record.text)?;
        }
        let counted = match self.settings.counts {
            Counts::Payments => self.entries.len(),
            Counts::Records => records.len(),
        };
        let totals = Totals { count: count(counted), credit: self.credit };
        let place = count(records.len()) + 2;
        file.push(&layout::trailer(self.settings, self.head, place, &totals))?;
        Ok(file.content)
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The file under construction.
struct Lines<'a> {
    settings: &'a Settings,
    content: Vec<u8>,
}

impl Lines<'_> {
    /// # Errors
    /// It is no record: nothing of another length ever leaves.
    fn push(&mut self, record: &str) -> Result<(), String> {
        let is_plain = record.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if record.len() != LENGTH || !is_plain {
            let kind = record.chars().next().unwrap_or('?');
            return Err(format!("a record {kind} would have {} bytes", record.len()));
        }
        self.end(if self.settings.is_padded { record } else { record.trim_end() });
        Ok(())
    }

    fn end(&mut self, line: &str) {
        self.content.extend_from_slice(line.as_bytes());
        self.content.extend_from_slice(self.settings.framing.end().as_bytes());
    }
}
