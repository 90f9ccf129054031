//! A NACHA file of the bank's taken apart. Nothing of it is believed unless its own totals agree.

use std::iter::Peekable;
use std::vec::IntoIter;

use crate::record::Record;

/// Records of a block.
const BLOCK: u64 = 10;

/// Hashes keep their last ten digits.
const HASHES: u64 = 10_000_000_000;

/// An entry with its addenda.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The company that its batch is of, without the blanks around it.
    pub company: String,
    /// The standard entry class of its batch.
    pub class: String,
    /// Record 6.
    pub entry: Record,
    /// Records 7 that follow it.
    pub addenda: Vec<Record>,
}

type Records = Peekable<IntoIter<Record>>;

/// The entries of a file, in order. Blanks at the end of a line, the filling of the last block and
/// the kind of line end do not matter.
///
/// # Errors
/// It has another structure than a NACHA file, or a count, a hash or an amount in a control record
/// is not that of the entries.
pub fn parse(content: &[u8]) -> Result<Vec<Item>, String> {
    let mut records = records(content)?.into_iter().peekable();
    check_header(&next(&mut records)?)?;
    let (mut items, mut totals, mut batches) = (Vec::new(), Totals::default(), 0);
    while let Some(header) = records.next_if(|record| record.kind() == "5") {
        batches += 1;
        totals.add(&batch(&header, &mut records, &mut items)?)?;
    }
    let control = next(&mut records)?;
    let counted = u64::try_from(control.line).map_err(|_| "it is too long".to_owned())?;
    if control.kind() != "9" || control.is_filler() {
        return Err(format!("line {} is where the file's control should be", control.line));
    }
    let counts = [(2, 7, batches), (8, 13, counted.div_ceil(BLOCK)), (14, 21, totals.records)];
    agree(&control, &counts)?;
    agree(&control, &totals.amounts([22, 32, 44]))?;
    if records.any(|record| !record.is_filler()) {
        return Err("something comes after the file's control".to_owned());
    }
    Ok(items)
}

/// The lines, as records.
fn records(content: &[u8]) -> Result<Vec<Record>, String> {
    let lines = content.trim_ascii_end().split(|byte| *byte == b'\n');
    lines.zip(1..).map(|(line, place)| Record::read(line, place)).collect()
}

fn next(records: &mut Records) -> Result<Record, String> {
    records.next().ok_or_else(|| "it ends too early".to_owned())
}

fn check_header(header: &Record) -> Result<(), String> {
    let (kind, sizes) = (header.at(1, 3), header.at(35, 40));
    if (kind, sizes) == ("101", "094101") {
        return Ok(());
    }
    Err("its first line is not the header of a NACHA file".to_owned())
}

/// The rest of a batch after its header: entries, and the control that must agree with them.
fn batch(header: &Record, records: &mut Records, items: &mut Vec<Item>) -> Result<Totals, String> {
    let mut totals = Totals::default();
    while let Some(entry) = records.next_if(|record| record.kind() == "6") {
        totals.add_entry(&entry)?;
        let mut addenda = Vec::new();
        while let Some(record) = records.next_if(|record| record.kind() == "7") {
            totals.count()?;
            addenda.push(record);
        }
        let company = header.at(41, 50).trim().to_owned();
        items.push(Item { company, class: header.at(51, 53).to_owned(), entry, addenda });
    }
    let control = next(records)?;
    let line = control.line;
    if control.kind() != "8" {
        return Err(format!("line {line} is where a batch's control should be"));
    }
    agree(&control, &[(5, 10, totals.records)])?;
    agree(&control, &totals.amounts([11, 21, 33]))?;
    // Service class, company, originating bank and number of the batch. Banks place the company's
    // identification differently in its field.
    let same = [((2, 4), (2, 4)), ((41, 50), (45, 54)), ((80, 87), (80, 87)), ((88, 94), (88, 94))];
    let differs = |((a, b), (c, d)): &_| header.at(*a, *b).trim() != control.at(*c, *d).trim();
    match same.iter().any(differs) {
        true => Err(format!("line {line} ends another batch than the one that began")),
        false => Ok(totals),
    }
}

/// Whether numbers in a control record are these.
fn agree(control: &Record, expected: &[(usize, usize, u64)]) -> Result<(), String> {
    for (first, last, value) in expected {
        if control.number(*first, *last) != Some(*value) {
            let line = control.line;
            return Err(format!("line {line} has another total at {first} than the entries have"));
        }
    }
    Ok(())
}

/// What control records say.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    records: u64,
    hash: u64,
    debit: u64,
    credit: u64,
}

impl Totals {
    fn add_entry(&mut self, entry: &Record) -> Result<(), String> {
        let read = || {
            let kind = entry.number(2, 3)?;
            Some((kind % 10, entry.number(4, 11)?, entry.number(30, 39)?))
        };
        let line = entry.line;
        let (kind, hash, amount) =
            read().ok_or_else(|| format!("line {line} has no number where one belongs"))?;
        let entry = match kind {
            1..=4 => Self { records: 1, hash, debit: 0, credit: amount },
            5..=9 => Self { records: 1, hash, debit: amount, credit: 0 },
            _ => return Err(format!("line {line} is neither a credit nor a debit")),
        };
        self.add(&entry)
    }

    fn count(&mut self) -> Result<(), String> {
        self.add(&Self { records: 1, ..Self::default() })
    }

    fn add(&mut self, other: &Self) -> Result<(), String> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or_else(|| "it is too long".to_owned());
        *self = Self {
            records: sum(self.records, other.records)?,
            hash: sum(self.hash, other.hash)?,
            debit: sum(self.debit, other.debit)?,
            credit: sum(self.credit, other.credit)?,
        };
        Ok(())
    }

    /// Hash, debits and credits, in fields that begin at these positions.
    fn amounts(&self, starts: [usize; 3]) -> [(usize, usize, u64); 3] {
        let [hash, debit, credit] = starts;
        [
            (hash, hash + 9, self.hash % HASHES),
            (debit, debit + 11, self.debit),
            (credit, credit + 11, self.credit),
        ]
    }
}
