//! A CPA-005 file of the bank's taken apart. Nothing of it is believed unless its own totals agree.

use std::fmt;

use crate::record::{Fields, LENGTH, SEGMENTS};

/// What begins a line that some banks put in front of a file.
const FRONT: &[u8] = b"$$";

/// What a record of payments holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// C: somebody is paid.
    Credit,
    /// D: somebody is debited.
    Debit,
    /// E: a credit is taken back by its sender's bank.
    CreditReversal,
    /// F: the same of a debit.
    DebitReversal,
    /// I: a credit comes back.
    ReturnedCredit,
    /// J: a debit comes back.
    ReturnedDebit,
    /// S, U or V: a recipient's account is another one now. It is not read, and moves no money.
    NoticeOfChange,
}

impl Kind {
    fn of(letter: &str) -> Option<Self> {
        Some(match letter {
            "C" => Self::Credit,
            "D" => Self::Debit,
            "E" => Self::CreditReversal,
            "F" => Self::DebitReversal,
            "I" => Self::ReturnedCredit,
            "J" => Self::ReturnedDebit,
            "S" | "U" | "V" => Self::NoticeOfChange,
            _ => return None,
        })
    }

    /// Which of the trailer's totals counts it, if one does.
    fn total(self) -> Option<usize> {
        match self {
            Self::Debit | Self::ReturnedDebit => Some(0),
            Self::Credit | Self::ReturnedCredit => Some(1),
            Self::CreditReversal => Some(2),
            Self::DebitReversal => Some(3),
            Self::NoticeOfChange => None,
        }
    }
}

/// Where the trailer has the totals, in their order: a value of fourteen digits, and a count of
/// eight behind it.
const TOTALS: [usize; 4] = [25, 47, 69, 91];

/// Where something stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The record's place in the file, from 1.
    pub record: usize,
    /// The segment's in the record, from 1; none where it is the whole record.
    pub segment: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}", self.record)?;
        self.segment.map_or(Ok(()), |segment| write!(f, " segment {segment}"))
    }
}

/// One payment of a file, or a notice of change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What its record holds.
    pub kind: Kind,
    /// Where it stands.
    pub place: Place,
    /// The segment, with the positions of a record's first one; the record of a notice of change.
    pub segment: Fields,
}

/// The payments of a file, in order, and behind them its notices of change: wherever those stand,
/// they hide no payment. Blanks at the end of a record and the kind of line end do not matter.
///
/// # Errors
/// It has another structure than a CPA-005 file, or a value or a count in the trailer is not that
/// of the payments.
pub fn parse(content: &[u8]) -> Result<Vec<Item>, String> {
    let (notices, records): (Vec<Record>, Vec<Record>) =
        records(content)?.into_iter().partition(Record::is_notice);
    let [header, payments @ .., trailer] = records.as_slice() else {
        return Err("it ends too early".to_owned());
    };
    if header.fields.at(1, 1) != "A" {
        return Err("its first record is not the header of a CPA-005 file".to_owned());
    }
    if trailer.fields.at(1, 1) != "Z" {
        return Err("its last record is not the trailer of a CPA-005 file".to_owned());
    }
    are_in_place(&records)?;
    for Record { place, fields } in &records {
        if fields.at(11, 24) != header.fields.at(11, 24) {
            return Err(format!("record {place} is of another originator, or of another file"));
        }
    }
    let mut items = payments_of(payments, &trailer.fields)?;
    items.extend(notices.into_iter().map(|Record { place, fields }| Item {
        kind: Kind::NoticeOfChange,
        place: Place { record: place, segment: None },
        segment: fields,
    }));
    Ok(items)
}

/// A record of a file.
struct Record {
    /// Its place in the file, from 1.
    place: usize,
    fields: Fields,
}

impl Record {
    fn is_notice(&self) -> bool {
        Kind::of(self.fields.at(1, 1)) == Some(Kind::NoticeOfChange)
    }

    /// Which record it says that it is.
    fn count(&self) -> Option<usize> {
        self.fields.number(2, 10).and_then(|count| usize::try_from(count).ok())
    }
}

/// Records are counted, and notices of change among them may be left out of that.
fn are_in_place(records: &[Record]) -> Result<(), String> {
    let stray = records.iter().find(|record| record.count() != Some(record.place));
    let Some(Record { place, .. }) = stray else { return Ok(()) };
    match (1..).zip(records).all(|(place, record)| record.count() == Some(place)) {
        true => Ok(()),
        false => Err(format!("record {place} has another count than its place")),
    }
}

/// The payments of records, if the trailer agrees.
fn payments_of(records: &[Record], trailer: &Fields) -> Result<Vec<Item>, String> {
    let (mut items, mut totals) = (Vec::new(), [Total::default(); 4]);
    for Record { place, fields } in records {
        let kind = Kind::of(fields.at(1, 1)).and_then(|kind| Some((kind, kind.total()?)));
        let Some((kind, total)) = kind else {
            return Err(format!("record {place} is of a kind that is not read"));
        };
        let total = &mut totals[total];
        total.records += 1;
        for segment in 0..SEGMENTS {
            let place = Place { record: *place, segment: Some(segment + 1) };
            let item = Item { kind, place, segment: fields.segment(segment) };
            if !item.segment.is_blank() {
                total.add(&item)?;
                items.push(item);
            }
        }
    }
    for (total, position) in totals.iter().zip(TOTALS) {
        total.agree(trailer, position)?;
    }
    Ok(items)
}

/// The records: lines, or what stands in a row without line ends.
fn records(content: &[u8]) -> Result<Vec<Record>, String> {
    let content = content.trim_ascii_end();
    let lines: Vec<&[u8]> = match content.contains(&b'\n') {
        true => content.split(|byte| *byte == b'\n').collect(),
        false => content.chunks(LENGTH).collect(),
    };
    let front = usize::from(lines.first().is_some_and(|line| line.starts_with(FRONT)));
    let lines = lines.into_iter().skip(front).zip(1..);
    let read = |(line, place)| Ok(Record { place, fields: Fields::read(line, place)? });
    lines.map(read).collect()
}

/// What the trailer says of one kind of payments.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    cents: u64,
    payments: u64,
    records: u64,
}

impl Total {
    fn add(&mut self, item: &Item) -> Result<(), String> {
        let odd = || format!("{}: the amount is no number", item.place);
        let cents = item.segment.number(28, 37).ok_or_else(odd)?;
        // Ten digits, of what fits into four megabytes: no sum of them is too large.
        self.cents += cents;
        self.payments += 1;
        Ok(())
    }

    /// Banks count payments, or the records that hold them. What is left out is nothing.
    fn agree(&self, trailer: &Fields, position: usize) -> Result<(), String> {
        let said = |first: usize, last: usize| match trailer.at(first, last).trim() {
            "" => Some(0),
            _ => trailer.number(first, last),
        };
        let (cents, count) = (said(position, position + 13), said(position + 14, position + 21));
        let is_count = count == Some(self.payments) || count == Some(self.records);
        match cents == Some(self.cents) && is_count {
            true => Ok(()),
            false => Err(format!("the trailer has another total at {position} than its payments")),
        }
    }
}
