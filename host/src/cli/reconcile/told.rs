//! What a comparison came to, for people.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use crate::money::Minor;
use crate::reconciliation::SettlementAccount;
use crate::reconciliation::matching::{Books, Comparison, Line};
use crate::reports::harmless;
use crate::start::StartError;
use crate::statements::{Entry, Statement};

use super::super::say;

/// Lines of each kind that are shown; the file has all.
const SHOWN: usize = 40;
/// Characters of a text that are.
const TEXT_SHOWN: usize = 60;

/// See the module.
pub(super) struct Told<'a> {
    pub account: &'a SettlementAccount,
    pub statements: &'a [(PathBuf, Vec<Statement>)],
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
        notes
    }

    /// Writes all that is left over as CSV.
    pub(super) fn write(&self, path: &Path) -> Result<(), StartError> {
        let named = |cause: csv::Error| format!("{}: {cause}", path.display());
        let mut writer = csv::Writer::from_path(path).map_err(named)?;
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
        for number in &self.found.in_the_books {
            let line = self.line(*number);
            let kind = line.kind.to_string();
            // As the bank would have it.
            let amount = line.amount.negated().unwrap_or(line.amount);
            let (booked_on, reference) = (line.booked_on, name(line));
            let (text, note) = (kind, String::new());
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

/// What people call a line: its payout's reference where it has one.
fn name(line: &Line) -> String {
    let mut references = line.references.lines();
    let own = references.find(|text| text.starts_with("po_"));
    own.unwrap_or(&line.subject).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bank_says_is_shown_in_one_line_and_does_nothing_to_a_terminal() {
        let hostile = "FEE\u{1b}[2J\r\u{202e}\u{7}\nADA \u{e9}";
        assert_eq!(shown(hostile), "FEE?[2J??? ADA \u{e9}");
    }

    #[test]
    fn nothing_is_said_twice() {
        let said = "FT0042\nSMS CHARGES FT0042\nSMS CHARGES\nSMS CHARGES FT0042\nother\nother";
        assert_eq!(once(said.lines()), "SMS CHARGES FT0042\nother");
        assert_eq!(once("".lines()), "");
    }
}
