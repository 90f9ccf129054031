//! What a comparison came to, for people.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use crate::money::Minor;
use crate::reconciliation::matching::{Books, Comparison, Line};
use crate::reconciliation::{JOURNAL_KIND, SettlementAccount};
use crate::reports::{harmless, quoted};
use crate::start::StartError;
use crate::statements::{Entry, Statement};

use super::super::{new_private, say};
use super::overlaps::Imbalance;

/// Lines of each kind that are shown; the file has all.
const SHOWN: usize = 40;
/// Characters of a text that are.
const TEXT_SHOWN: usize = 60;

/// See the module.
pub(super) struct Told<'a> {
    pub account: &'a SettlementAccount,
    pub statements: &'a [(PathBuf, Vec<Statement>)],
    pub short: &'a [Imbalance],
    pub entries: &'a [Entry],
    /// By what adjusting entries name them.
    pub references: &'a [String],
    pub books: &'a Books,
    pub found: &'a Comparison,
    pub days: (Date, Date),
}

/// One that is left over.
struct Row {
    side: &'static str,
    booked_on: Date,
    amount: Minor,
    reference: String,
    text: String,
    note: String,
}

impl Told<'_> {
    /// Prints it.
    pub(super) fn say(&self) {
        let SettlementAccount { route, env, currency, .. } = self.account;
        let (from, to) = self.days;
        let (entries, matched) = (self.entries.len(), self.found.matched);
        say(format_args!(
            "{route} ({env}, {currency}), {from} to {to}: {matched} of {entries} entries of the bank \
             are in the books"
        ));
        for note in self.notes() {
            say(format_args!("{note}"));
        }
        let rows = self.rows();
        for (side, title) in [
            (AT_THE_BANK, "At the bank only"),
            (IN_THE_BOOKS, "In the books only"),
            (DIFFERENT, "With another amount"),
        ] {
            let of_side: Vec<&Row> = rows.iter().filter(|row| row.side == side).collect();
            if of_side.is_empty() {
                continue;
            }
            let sum: i128 = of_side.iter().map(|row| i128::from(row.amount.units())).sum();
            let sum =
                i64::try_from(sum).map_or_else(|_| "?".to_owned(), |it| self.major(Minor::new(it)));
            say(format_args!("\n{title}: {}, {sum} in total", of_side.len()));
            say(format_args!("  day                   amount  reference  what it says"));
            for row in of_side.iter().take(SHOWN) {
                let text: String = shown(&row.text).chars().take(TEXT_SHOWN).collect();
                let (day, amount) = (row.booked_on, self.major(row.amount));
                let parts = [shown(&row.reference), text, row.note.clone()];
                let said = parts.into_iter().filter(|part| !part.is_empty());
                say(format_args!("  {day}  {amount:>16}  {}", said.collect::<Vec<_>>().join("  ")));
            }
            if of_side.len() > SHOWN {
                say(format_args!("  … and {} more: --output has all", of_side.len() - SHOWN));
            }
        }
        if !rows.is_empty() {
            let env = if env == "live" { String::new() } else { format!(" --env {env}") };
            say(format_args!(
                "\nAn amount below zero left the bank account. What is right at the bank is taken \
                 into the books with: railhead admin settlement adjust {route}{env} --reference <the \
                 reference above> --booked-on <its day> …"
            ));
        }
    }

    /// What is odd about the statements themselves.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (path, statements) in self.statements {
            let path = path.display();
            for statement in statements {
                let id = shown(&statement.id);
                match statement.discrepancy() {
                    Ok(None | Some(Minor::ZERO)) => {}
                    Ok(Some(by)) => notes.push(format!(
                        "{path}: statement {id} does not add up: entries of {} are missing",
                        self.major(by)
                    )),
                    Err(_) => notes.push(format!("{path}: statement {id} does not add up")),
                }
            }
            for (before, after) in statements.iter().zip(statements.iter().skip(1)) {
                let is_one = before.account == after.account;
                if let (Some(closing), Some(opening)) = (before.closing, after.opening)
                    && is_one
                    && closing != opening
                {
                    notes.push(format!(
                        "{path}: between statements {} and {} is a gap of {}",
                        shown(&before.id),
                        shown(&after.id),
                        opening.minus(closing).map(|gap| self.major(gap)).unwrap_or_default()
                    ));
                }
            }
        }
        notes.extend(self.short.iter().map(|short| self.together(short)));
        notes
    }

    /// That files do not add up with what two of them have counted once.
    fn together(&self, short: &Imbalance) -> String {
        let names = short.files.iter().map(|file| self.statements[*file].0.display().to_string());
        let names = names.collect::<Vec<_>>().join(", ");
        let odd = "what two of them have counts once, and the whole does not add up";
        match short.by {
            Some(by) => format!("{names}: {odd}: entries of {} are missing", self.major(by)),
            None => format!("{names}: {odd}"),
        }
    }

    /// Writes all that is left over as CSV.
    pub(super) fn write(&self, path: &Path) -> Result<(), StartError> {
        let named = |cause: csv::Error| format!("{}: {cause}", path.display());
        let file = new_private(path).map_err(|cause| named(cause.into()))?;
        let mut writer = quoted(file);
        let head = ["side", "booked_on", "amount", "currency", "reference", "text", "note"];
        writer.write_record(head).map_err(named)?;
        for row in self.rows() {
            let (day, amount) = (row.booked_on.to_string(), self.major(row.amount));
            let currency = self.account.currency.clone();
            let text = harmless(row.text.replace('\n', " "));
            let reference = harmless(row.reference);
            let cells = [row.side.to_owned(), day, amount, currency, reference, text, row.note];
            writer.write_record(cells).map_err(named)?;
        }
        writer.flush()?;
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, maybe) in &self.found.at_the_bank {
            let maybe = maybe.map(|line| self.line(line));
            let note = maybe.map(|line| format!("maybe {} of {}", name(line), line.booked_on));
            rows.push(self.of_bank(AT_THE_BANK, *number, note.unwrap_or_default()));
        }
        let beside: HashMap<usize, usize> = self.found.put_right_beside.iter().copied().collect();
        for number in &self.found.in_the_books {
            let line = self.line(*number);
            let kind = line.kind.to_string();
            // As the bank would have it.
            let amount = line.amount.negated().unwrap_or(line.amount);
            let (booked_on, reference) = (line.booked_on, name(line));
            let other = beside.get(number).map(|other| self.line(*other).booked_on);
            let note = other.map(|day| format!("its other half is of {day}: compare both days"));
            let (text, note) = (kind, note.unwrap_or_default());
            rows.push(Row { side: IN_THE_BOOKS, booked_on, amount, reference, text, note });
        }
        for (number, line) in &self.found.different {
            let line = self.line(*line);
            let amount = self.major(line.amount.negated().unwrap_or(line.amount));
            let note = format!("in the books {amount}: {}", name(line));
            rows.push(self.of_bank(DIFFERENT, *number, note));
        }
        rows
    }

    fn of_bank(&self, side: &'static str, number: usize, note: String) -> Row {
        let entry = &self.entries[number];
        let (booked_on, amount) = (entry.booked_on, entry.amount);
        let reference = self.references[number].clone();
        let text = once(entry.said.lines().filter(|line| *line != reference));
        Row { side, booked_on, amount, reference, text, note }
    }

    fn line(&self, number: usize) -> &Line {
        &self.books.lines()[number]
    }

    fn major(&self, amount: Minor) -> String {
        amount.major(self.account.places)
    }
}

const AT_THE_BANK: &str = "bank";
const IN_THE_BOOKS: &str = "books";
const DIFFERENT: &str = "different";

/// What lines say, each of them once: some stand within the longest.
fn once<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> String {
    let longest = lines.clone().max_by_key(|line| line.len()).unwrap_or_default();
    let mut known = HashSet::new();
    let is_new =
        |line: &&'a str| known.insert(*line) && (*line == longest || !longest.contains(*line));
    lines.filter(is_new).collect::<Vec<_>>().join("\n")
}

/// A text of a bank's as a terminal may show it: in one line, in the order in which it was written.
fn shown(text: &str) -> String {
    let is_odd =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.replace('\n', " ").chars().map(|c| if is_odd(c) { '?' } else { c }).collect()
}

/// What people call a line, and by what it can be taken back: an adjusting entry by its own
/// reference, any other by its payout's where it has one.
fn name(line: &Line) -> String {
    let own = match &*line.kind {
        JOURNAL_KIND => line.references.lines().next(),
        _ => line.payout(),
    };
    own.unwrap_or(&line.subject).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconciliation::SettlementEntry;
    use crate::reconciliation::matching::Period;

    #[test]
    fn what_a_bank_says_is_shown_in_one_line_and_does_nothing_to_a_terminal() {
        let hostile = "FEE\u{1b}[2J\r\u{202e}\u{7}\nADA \u{e9}";
        assert_eq!(shown(hostile), "FEE?[2J??? ADA \u{e9}");
    }

    #[test]
    fn a_line_is_called_by_what_it_is_taken_back_under() {
        let called = |kind: &str, subject: &str, references: &[&str]| {
            let mut books = Books::default();
            let entry = SettlementEntry {
                journal_id: "c1".to_owned(),
                kind: kind.to_owned(),
                amount_minor: Minor::new(5_250),
                subject_id: subject.to_owned(),
                references: references.iter().map(|it| (*it).to_owned()).collect(),
                file_id: None,
                file_references: Vec::new(),
                booked_on: None,
                created_at: String::new(),
            };
            books.add(&entry, (Date::constant(2026, 11, 21), Period::Within));
            name(&books.lines()[0])
        };
        assert_eq!(called(JOURNAL_KIND, "adj_1", &["FT0042", "adj_1"]), "FT0042");
        assert_eq!(called("case_opened", "case_1", &["c2", "po_2", "FT1"]), "po_2");
        assert_eq!(called("case_opened", "case_1", &[]), "case_1");
    }

    #[test]
    fn nothing_is_said_twice() {
        let said = "FT0042\nSMS CHARGES FT0042\nSMS CHARGES\nSMS CHARGES FT0042\nother\nother";
        assert_eq!(once(said.lines()), "SMS CHARGES FT0042\nother");
        assert_eq!(once("".lines()), "");
    }
}
