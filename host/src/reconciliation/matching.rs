//! What belongs together on a statement and in the books: by reference and amount, never by amount
//! alone. Pure.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::civil::Date;
use sha2::Digest as _;

use crate::money::{Minor, Overflow};
use crate::statements::Entry;

use super::pairs::Pairs;
use super::{JOURNAL_KIND, SettlementEntry};

/// Shorter references than this are found in any text.
pub const KEY_MIN: usize = 6;
/// Characters of a reference; SWIFT's have 16, and SEPA's 35.
pub const REFERENCE_MAX: usize = 140;
/// Days between which an amount that stands alone on both sides may be the same payment.
const MAYBE_DAYS: i32 = 5;

/// A line of the books, in as little room as it takes.
#[derive(Clone, Debug)]
pub struct Line {
    /// What the bank was told to pay; below zero, what came back.
    pub amount: Minor,
    /// On which day it was booked.
    pub booked_on: Date,
    /// The payout, the case or the adjusting entry.
    pub subject: Box<str>,
    /// What kind of journal it is.
    pub kind: Box<str>,
    /// Its references as the books have them, in lines.
    pub references: Box<str>,
    /// Whether it is of the days that are compared, or of those around them.
    is_of_period: bool,
}

impl Line {
    /// The reference of its payout, if it is of one.
    #[must_use]
    pub fn payout(&self) -> Option<&str> {
        self.references.lines().find(|text| text.starts_with("po_"))
    }
}

/// The books that a statement is compared with.
#[derive(Default)]
pub struct Books {
    lines: Vec<Line>,
    /// The hash of each reference with the number of its line, or of its file.
    keys: Vec<(u64, Named)>,
    files: HashMap<String, u32>,
    /// The lines of each file.
    of_file: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Named {
    Line(u32),
    File(u32),
}

impl Named {
    /// The number of the line, if it is one.
    const fn line(self) -> Option<usize> {
        match self {
            Self::Line(line) => Some(line as usize),
            Self::File(_) => None,
        }
    }
}

/// Entries that have no line yet, by their numbers, with what they name.
type Left = Vec<(usize, Vec<Named>)>;

/// What a comparison came to, by the numbers of entries and lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Entries that were found in the books.
    pub matched: usize,
    /// Entries of which the books know the reference, with another amount; the line.
    pub different: Vec<(usize, usize)>,
    /// Entries of which the books know nothing; a line that may be it, where one of the same amount
    /// is left over on either side.
    pub at_the_bank: Vec<(usize, Option<usize>)>,
    /// Lines of the period that the statement does not have.
    pub in_the_books: Vec<usize>,
    /// Of these, those of which a line from beside the period takes the amount back; that line.
    pub put_right_beside: Vec<(usize, usize)>,
}

impl Books {
    /// Takes in a line. One from beside the period is there to be found, and is not missed.
    pub fn add(&mut self, entry: &SettlementEntry, (booked_on, is_of_period): (Date, Period)) {
        let number = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        let next = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let file = entry.file_id.as_ref().map(|id| *self.files.entry(id.clone()).or_insert(next));
        let keys = entry.references.iter().filter_map(|text| key(text));
        self.keys.extend(keys.map(|key| (key, Named::Line(number))));
        if let Some(file) = file {
            if file == next {
                let keys = entry.file_references.iter().filter_map(|text| key(text));
                self.keys.extend(keys.map(|key| (key, Named::File(file))));
                self.of_file.push(Vec::new());
            }
            self.of_file[file as usize].push(number);
        }
        self.lines.push(Line {
            amount: entry.amount_minor,
            booked_on,
            subject: entry.subject_id.as_str().into(),
            kind: entry.kind.as_str().into(),
            references: entry.references.join("\n").into(),
            is_of_period: is_of_period == Period::Within,
        });
    }

    /// The lines, in the order in which they were taken in.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Compares a statement with the books.
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn compare(&mut self, entries: &[Entry]) -> Result<Comparison, Overflow> {
        self.keys.sort_unstable();
        self.keys.dedup();
        let (mut is_taken, left) = self.pair(entries)?;
        // What the bank has comes first: only of the rest may one line take back another.
        self.take_out_explained(&mut is_taken)?;
        // Payments first: what is left of a file is what the bank has booked as one, and where that
        // is not so, what was put right may never have been in it.
        let left = self.take_files((entries, left), &mut is_taken)?;
        let beside = self.take_out_put_right(&mut is_taken)?;
        let left = self.take_files((entries, left), &mut is_taken)?;
        let mut found = Comparison::default();
        for (number, named) in left {
            let mut lines = named.iter().filter_map(|named| named.line());
            match lines.find(|line| !is_taken[*line]) {
                Some(line) => {
                    is_taken[line] = true;
                    found.different.push((number, line));
                }
                None => found.at_the_bank.push((number, None)),
            }
        }
        found.matched = entries.len() - found.different.len() - found.at_the_bank.len();
        let lines = self.lines.iter().enumerate();
        let left = lines.filter(|(number, line)| line.is_of_period && !is_taken[*number]);
        found.in_the_books = left.map(|(number, _)| number).collect();
        let is_left = |number: usize| !is_taken[number];
        let beside = beside.into_iter().filter(|(line, other)| is_left(*line) && is_left(*other));
        found.put_right_beside = beside.collect();
        self.suggest(entries, &mut found)?;
        Ok(found)
    }

    /// Gives to as many entries as can be a line that they name and that is of their amount. Which
    /// lines are taken, and the entries that have none.
    fn pair(&self, entries: &[Entry]) -> Result<(Vec<bool>, Left), Overflow> {
        let references = references_of(entries);
        let named = |number: usize| self.named(&entries[number], &references[number]);
        let may_have = |number: usize| self.of_amount(&named(number), entries[number].amount);
        let mut pairs = Pairs::of(self.lines.len());
        let mut left = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let named = named(number);
            let own = self.of_amount(&named, entry.amount)?;
            if !pairs.give(number, &own, may_have)? {
                left.push((number, named));
            }
        }
        Ok((pairs.taken(), left))
    }

    /// The lines among those named that are of an entry's amount.
    fn of_amount(&self, named: &[Named], amount: Minor) -> Result<Vec<usize>, Overflow> {
        let wanted = amount.negated()?;
        let lines = named.iter().filter_map(|named| named.line());
        Ok(lines.filter(|line| self.lines[*line].amount == wanted).collect())
    }

    /// Takes all that is left of a file for an entry that comes to it. The entries that have none.
    fn take_files(
        &self,
        (entries, left): (&[Entry], Left),
        is_taken: &mut [bool],
    ) -> Result<Left, Overflow> {
        let mut missing = Vec::new();
        for (number, named) in left {
            let wanted = entries[number].amount.negated()?;
            match self.whole_file(&named, (wanted, &*is_taken))? {
                Some(lines) => lines.into_iter().for_each(|line| is_taken[line] = true),
                None => missing.push((number, named)),
            }
        }
        Ok(missing)
    }

    /// A line that was taken back by an adjusting entry, under its id or under its reference, needs
    /// no bank.
    fn take_out_explained(&self, is_taken: &mut [bool]) -> Result<(), Overflow> {
        for number in 0..self.lines.len() {
            let line = &self.lines[number];
            if &*line.kind != JOURNAL_KIND || is_taken[number] {
                continue;
            }
            // Its id stands last, and whoever names it means this one.
            for key in line.references.lines().rev().filter_map(key) {
                let other = self.opposites((number, key), is_taken)?.first().copied();
                if let Some(other) = other {
                    (is_taken[number], is_taken[other]) = (true, true);
                    break;
                }
            }
        }
        Ok(())
    }

    /// A payout that was paid by mistake and put right, both in these days, needs no bank. Of what
    /// is beside the period nobody has asked whether the bank has it: that may as well be a payment
    /// that has come back only here. The lines that have such a one, with it.
    fn take_out_put_right(&self, is_taken: &mut [bool]) -> Result<Vec<(usize, usize)>, Overflow> {
        let mut beside = Vec::new();
        for number in 0..self.lines.len() {
            let line = &self.lines[number];
            if !line.is_of_period || is_taken[number] {
                continue;
            }
            let Some(key) = line.payout().and_then(key) else { continue };
            let others = self.opposites((number, key), is_taken)?;
            let within = others.iter().find(|other| self.lines[**other].is_of_period);
            if let Some(other) = within {
                (is_taken[number], is_taken[*other]) = (true, true);
            } else if let Some(other) = others.first() {
                beside.push((number, *other));
            }
        }
        Ok(beside)
    }

    /// The other lines of a reference that take a line's amount back and are left, oldest first.
    fn opposites(
        &self,
        (number, key): (usize, u64),
        is_taken: &[bool],
    ) -> Result<Vec<usize>, Overflow> {
        let wanted = self.lines[number].amount.negated()?;
        let lines = self.of_key(key).filter_map(Named::line);
        let lines = lines.filter(|other| *other != number && !is_taken[*other]);
        Ok(lines.filter(|other| self.lines[*other].amount == wanted).collect())
    }

    /// The lines and files that an entry names, as it names them one after the other: a payment
    /// says what it is before what it is about. Those of one reference, the oldest first.
    fn named(&self, entry: &Entry, reference: &str) -> Vec<Named> {
        let mut named: Vec<Named> = Vec::new();
        let own = entry.bank_reference.as_deref();
        for text in [reference].into_iter().chain(own).chain(entry.said.lines()) {
            for key in keys_in(text) {
                named.extend(self.of_key(key));
            }
        }
        let mut known = HashSet::new();
        named.retain(|named| known.insert(*named));
        named
    }

    fn of_key(&self, key: u64) -> impl Iterator<Item = Named> + '_ {
        let from = self.keys.partition_point(|(known, _)| *known < key);
        let same = self.keys[from..].iter().take_while(move |(known, _)| *known == key);
        same.map(|(_, named)| *named)
    }

    /// The lines of a file that is named, where what is left of them comes to the amount.
    fn whole_file(
        &self,
        named: &[Named],
        (wanted, is_taken): (Minor, &[bool]),
    ) -> Result<Option<Vec<usize>>, Overflow> {
        for named in named {
            let Named::File(file) = named else { continue };
            let lines = self.of_file[*file as usize].iter().map(|number| *number as usize);
            // What came back was booked by itself.
            let of_file: Vec<usize> = lines
                .filter(|line| !is_taken[*line] && self.lines[*line].amount > Minor::ZERO)
                .collect();
            let amounts = of_file.iter().map(|number| self.lines[*number].amount);
            if !of_file.is_empty() && Minor::total(amounts)? == wanted {
                return Ok(Some(of_file));
            }
        }
        Ok(None)
    }

    /// Where exactly one entry and one line of an amount are left over, within some days, a person
    /// may look whether they are one.
    fn suggest(&self, entries: &[Entry], found: &mut Comparison) -> Result<(), Overflow> {
        let mut alone: HashMap<Minor, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (place, (number, _)) in found.at_the_bank.iter().enumerate() {
            alone.entry(entries[*number].amount.negated()?).or_default().0.push(place);
        }
        for number in &found.in_the_books {
            alone.entry(self.lines[*number].amount).or_default().1.push(*number);
        }
        for (places, lines) in alone.into_values() {
            let ([place], [line]) = (places.as_slice(), lines.as_slice()) else { continue };
            let (entry, maybe) = &mut found.at_the_bank[*place];
            let apart = entries[*entry].booked_on.until(self.lines[*line].booked_on);
            if apart.is_ok_and(|span| span.get_days().abs() <= MAYBE_DAYS) {
                *maybe = Some(*line);
            }
        }
        Ok(())
    }
}

/// Whether a line is of the days that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// It is.
    Within,
    /// It is from before or after.
    Beside,
}

/// By what adjusting entries name these entries of statements: the bank's own reference, or, where
/// it has none of use, what the entry says. Entries that nothing tells apart are counted.
#[must_use]
pub fn references_of(entries: &[Entry]) -> Vec<String> {
    let mut alike: HashMap<(String, Date, Minor), u32> = HashMap::new();
    let each = entries.iter().map(|entry| {
        let reference = reference_of(entry);
        let count = alike.entry((reference.clone(), entry.booked_on, entry.amount)).or_default();
        *count += 1;
        if *count == 1 { reference } else { format!("{reference}-{count}") }
    });
    each.collect()
}

/// Whether what names an entry like this is found again: it has enough letters and digits, and is no
/// longer than references are.
#[must_use]
pub fn can_be_found(reference: &str) -> bool {
    key(reference).is_some()
        && reference.chars().count() <= REFERENCE_MAX
        && !reference.chars().any(char::is_control)
}

/// The bank's own reference of an entry, or one that is made of what it says.
#[must_use]
pub fn reference_of(entry: &Entry) -> String {
    if let Some(reference) = entry.bank_reference.as_deref().filter(|text| can_be_found(text)) {
        return reference.to_owned();
    }
    let own = entry.bank_reference.as_deref().unwrap_or_default();
    let content = format!("{}/{}/{own}{}", entry.booked_on, entry.amount.units(), entry.said);
    format!("STMT-{}", &hex::encode(sha2::Sha256::digest(content))[..20])
}

/// A reference, whatever a bank makes of its case and its punctuation.
fn key(text: &str) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut length = 0;
    for byte in text.bytes().filter(u8::is_ascii_alphanumeric) {
        byte.to_ascii_uppercase().hash(&mut hasher);
        length += 1;
    }
    (length >= KEY_MIN).then(|| hasher.finish())
}

/// The references that may stand in a line: the line itself, its words, and what stands between
/// marks.
fn keys_in(line: &str) -> impl Iterator<Item = u64> {
    let is_mark = |c: char| c.is_whitespace() || "/:;,+()?|=".contains(c);
    let after_word = line.split_once('+').map(|(_, rest)| rest);
    [Some(line), after_word].into_iter().flatten().chain(line.split(is_mark)).filter_map(key)
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
