//! What belongs together on a statement and in the books: by reference and amount, never by amount
//! alone. Pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::civil::Date;
use sha2::Digest as _;

use crate::money::{Minor, Overflow};
use crate::statements::Entry;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Line(u32),
    File(u32),
}

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
        let mut found = Comparison::default();
        let mut is_taken = vec![false; self.lines.len()];
        let mut left = Vec::new();
        let references = references_of(entries);
        for (number, entry) in entries.iter().enumerate() {
            let wanted = entry.amount.negated()?;
            let named = self.named(entry, &references[number]);
            let line = named.iter().find_map(|named| match named {
                Named::Line(line) => Some(*line as usize)
                    .filter(|line| !is_taken[*line] && self.lines[*line].amount == wanted),
                Named::File(_) => None,
            });
            match line {
                Some(line) => {
                    is_taken[line] = true;
                    found.matched += 1;
                }
                None => left.push((number, named)),
            }
        }
        // What the bank has comes first: only of the rest may one line take back another.
        self.take_out_explained(&mut is_taken)?;
        // Payments first: what is left of a file is what the bank has booked as one.
        let mut missing = Vec::new();
        for (number, named) in left {
            let wanted = entries[number].amount.negated()?;
            match self.whole_file(&named, (wanted, &is_taken))? {
                Some(lines) => {
                    lines.into_iter().for_each(|line| is_taken[line] = true);
                    found.matched += 1;
                }
                None => missing.push((number, named)),
            }
        }
        for (number, named) in missing {
            let line = named.iter().find_map(|named| match named {
                Named::Line(line) => Some(*line as usize).filter(|line| !is_taken[*line]),
                Named::File(_) => None,
            });
            match line {
                Some(line) => {
                    is_taken[line] = true;
                    found.different.push((number, line));
                }
                None => found.at_the_bank.push((number, None)),
            }
        }
        let lines = self.lines.iter().enumerate();
        let left = lines.filter(|(number, line)| line.is_of_period && !is_taken[*number]);
        found.in_the_books = left.map(|(number, _)| number).collect();
        self.suggest(entries, &mut found)?;
        Ok(found)
    }

    /// A line that was taken back by an adjusting entry under its reference needs no bank.
    fn take_out_explained(&self, is_taken: &mut [bool]) -> Result<(), Overflow> {
        for number in 0..self.lines.len() {
            let line = &self.lines[number];
            if &*line.kind != JOURNAL_KIND || is_taken[number] {
                continue;
            }
            let wanted = line.amount.negated()?;
            let keys = line.references.lines().filter_map(key);
            let other = keys.flat_map(|key| self.of_key(key)).find_map(|named| match named {
                Named::Line(other) => Some(other as usize).filter(|other| {
                    *other != number && !is_taken[*other] && self.lines[*other].amount == wanted
                }),
                Named::File(_) => None,
            });
            if let Some(other) = other {
                (is_taken[number], is_taken[other]) = (true, true);
            }
        }
        Ok(())
    }

    /// The lines and files that an entry names, the oldest first.
    fn named(&self, entry: &Entry, reference: &str) -> Vec<Named> {
        let mut named: Vec<Named> = Vec::new();
        let own = entry.bank_reference.as_deref();
        for text in [reference].into_iter().chain(own).chain(entry.said.lines()) {
            for key in keys_in(text) {
                named.extend(self.of_key(key));
            }
        }
        named.sort_unstable();
        named.dedup();
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
mod tests {
    use super::*;

    fn day(text: &str) -> Date {
        text.parse().expect("a day")
    }

    fn line(kind: &str, amount: i64, references: &[&str]) -> SettlementEntry {
        SettlementEntry {
            journal_id: "c1".to_owned(),
            kind: kind.to_owned(),
            amount_minor: Minor::new(amount),
            subject_id: references[0].to_owned(),
            references: references.iter().map(|it| (*it).to_owned()).collect(),
            file_id: None,
            file_references: Vec::new(),
            booked_on: None,
            created_at: String::new(),
        }
    }

    fn in_file(amount: i64, reference: &str) -> SettlementEntry {
        let file_references = vec!["ACH-2026112101".to_owned()];
        let file_id = Some("pf_1".to_owned());
        SettlementEntry { file_id, file_references, ..line(PAID, amount, &[reference]) }
    }

    fn entry(amount: i64, said: &str) -> Entry {
        let booked_on = day("2026-11-21");
        Entry { booked_on, amount: Minor::new(amount), bank_reference: None, said: said.into() }
    }

    const PAID: &str = "payout_settlement";

    fn compare(lines: &[SettlementEntry], entries: &[Entry]) -> Comparison {
        let mut books = Books::default();
        lines.iter().for_each(|it| books.add(it, (day("2026-11-21"), Period::Within)));
        books.compare(entries).expect("sums")
    }

    #[test]
    fn a_payment_is_found_by_any_reference_in_any_writing() {
        let line = line(PAID, 100, &["po_01kaz3v8d1", "000013261121090000123456789012"]);
        for said in [
            "000013261121090000123456789012",
            "NIP/000013261121090000123456789012/ADA OBI",
            "EREF+PO_01KAZ3V8D1",
            "transfer\nPO-01KAZ3V8D1 thanks",
            "po01kaz3v8d1",
        ] {
            let found = compare(std::slice::from_ref(&line), &[entry(-100, said)]);
            assert_eq!(found, Comparison { matched: 1, ..Comparison::default() }, "{said}");
        }
        for said in ["000013261121090000123456789013", "NIP", "", "po_01kaz3v8d", "100"] {
            let found = compare(std::slice::from_ref(&line), &[entry(-100, said)]);
            assert_eq!((found.matched, found.in_the_books.as_slice()), (0, [0].as_slice()));
            assert_eq!(found.at_the_bank, [(0, Some(0))], "a person may look: {said}");
        }
    }

    #[test]
    fn the_direction_and_the_amount_count_and_each_line_once() {
        let lines = [line(PAID, 100, &["REF-0001"]), line("payout_reversal", -100, &["REF-0001"])];
        let both = [entry(100, "REF-0001"), entry(-100, "REF-0001")];
        assert_eq!(compare(&lines, &both).matched, 2);
        let twice = [entry(-100, "REF-0001"), entry(-100, "REF-0001")];
        let found = compare(&lines[..1], &twice);
        assert_eq!((found.matched, found.at_the_bank), (1, vec![(1, None)]));
        let other = compare(&lines[..1], &[entry(-90, "REF-0001")]);
        assert_eq!((other.different, other.in_the_books.len()), (vec![(0, 0)], 0));
    }

    #[test]
    fn a_file_may_be_booked_as_one_or_one_by_one() {
        let lines = [in_file(100, "TRACE-01"), in_file(50, "TRACE-02")];
        let whole = compare(&lines, &[entry(-150, "ACH-2026112101 SETTLEMENT")]);
        assert_eq!(whole, Comparison { matched: 1, ..Comparison::default() });
        let each = [entry(-100, "TRACE-01 ACH-2026112101"), entry(-50, "TRACE-02")];
        assert_eq!(compare(&lines, &each), Comparison { matched: 2, ..Comparison::default() });
        let wrong = compare(&lines, &[entry(-140, "ACH-2026112101")]);
        assert_eq!((wrong.at_the_bank, wrong.in_the_books), (vec![(0, None)], vec![0, 1]));
    }

    #[test]
    fn an_adjusting_entry_is_found_beside_what_it_explains() {
        // The bank's charge, by its own reference or by what it says.
        let charge = entry(-5, "SMS CHARGES");
        let by_text = line(JOURNAL_KIND, 5, &[&reference_of(&charge)]);
        let found = compare(&[by_text], &[charge]);
        assert_eq!(found, Comparison { matched: 1, ..Comparison::default() });
        let charge = Entry { bank_reference: Some("FT 0042".into()), ..entry(-5, "") };
        let found = compare(&[line(JOURNAL_KIND, 5, &["FT0042"])], &[charge]);
        assert_eq!(found.matched, 1);
        // What the books have and the bank never did.
        let lines = [line(PAID, 100, &["REF-0001"]), line(JOURNAL_KIND, -100, &["REF-0001"])];
        assert_eq!(compare(&lines, &[]), Comparison::default());
    }

    #[test]
    fn entries_that_nothing_tells_apart_are_counted() {
        let same = [entry(-4, "SMS"), entry(-4, "SMS"), entry(-5, "SMS")];
        let references = references_of(&same);
        assert_eq!(references[1], format!("{}-2", references[0]));
        assert!(references.iter().all(|reference| can_be_found(reference)), "{references:?}");
        let lines: Vec<SettlementEntry> = [(4, 1), (4, 0), (5, 2)]
            .map(|(amount, at): (i64, usize)| line(JOURNAL_KIND, amount, &[&references[at]]))
            .into();
        assert_eq!(compare(&lines, &same), Comparison { matched: 3, ..Comparison::default() });
        // What a bank calls it counts only where it can be found again.
        for odd in ["T1", "услуга", "", &"x".repeat(141)] {
            let named = Entry { bank_reference: Some(odd.into()), ..entry(-4, "SMS") };
            let reference = reference_of(&named);
            assert!(reference.starts_with("STMT-") && can_be_found(&reference), "{odd}");
        }
    }

    #[test]
    fn a_charge_and_its_refund_are_both_at_the_bank() {
        let named = |amount| Entry { bank_reference: Some("REFUND01".into()), ..entry(amount, "") };
        let lines = [line(JOURNAL_KIND, 5, &["REFUND01"]), line(JOURNAL_KIND, -5, &["REFUND01"])];
        let found = compare(&lines, &[named(-5), named(5)]);
        assert_eq!(found, Comparison { matched: 2, ..Comparison::default() });
        // What was booked by mistake and taken back is nowhere.
        assert_eq!(compare(&lines, &[]), Comparison::default());
    }

    #[test]
    fn what_is_of_other_days_is_found_and_not_missed() {
        let mut books = Books::default();
        let beside = (day("2026-11-19"), Period::Beside);
        books.add(&line(PAID, 100, &["REF-0001"]), beside);
        books.add(&line(PAID, 70, &["REF-0002"]), beside);
        let found = books.compare(&[entry(-100, "REF-0001")]).expect("sums");
        assert_eq!(found, Comparison { matched: 1, ..Comparison::default() });
    }
}
