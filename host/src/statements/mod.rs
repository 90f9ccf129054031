//! Bank statements, as banks give them out: camt.053, MT940, and tables in CSV. Pure, and read as
//! they come: nothing but the entries is kept.
//!
//! | file | by what it is told |
//! |---|---|
//! | camt.053 (ISO 20022, any version) | it begins with `<` |
//! | MT940 (SWIFT, with or without its envelope) | a line begins with `:20:` or `{1:` |
//! | CSV | anything else |

mod amount;
mod camt053;
mod mt940;
mod table;

use std::io::{self, BufRead};

use jiff::civil::Date;

use crate::money::{Currency, Minor, Overflow};

pub use table::Columns;

/// What has to be known of the account to read its statements.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The account's currency: a statement in another one is refused.
    pub currency: Currency,
    /// Decimal places of its major unit.
    pub places: u8,
    /// How tables are written.
    pub columns: Columns,
}

/// A statement: what happened in an account between two balances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    /// What the bank calls it.
    pub id: String,
    /// The account, as the bank calls it.
    pub account: String,
    /// What was there before the first entry, if it is said.
    pub opening: Option<Minor>,
    /// What was there after the last one, if it is said.
    pub closing: Option<Minor>,
    /// Of which day the bank says that the opening balance is: as a rule, of the day on which the
    /// statement before was closed.
    pub opening_on: Option<Date>,
    /// Of which day the closing balance is.
    pub closing_on: Option<Date>,
    /// The first day that it covers, as far as it says.
    pub from: Option<Date>,
    /// The last one.
    pub to: Option<Date>,
    /// What happened, in the order of the statement.
    pub entries: Vec<Entry>,
}

/// Money that came into the account, or left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// On which day it was booked.
    pub booked_on: Date,
    /// What came in; what left is below zero.
    pub amount: Minor,
    /// The bank's own name for it, if it has one.
    pub bank_reference: Option<Box<str>>,
    /// Whatever else was said of it, in lines: references, and texts in which there may be some.
    pub said: Box<str>,
}

/// Why a statement cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be.
    #[error("{0}")]
    File(#[from] io::Error),
    /// Something in it is not what it has to be; which line, or which byte where there are none.
    #[error("{place}: {why}")]
    Content {
        /// Where.
        place: String,
        /// Why.
        why: String,
    },
}

impl Unreadable {
    fn at(place: impl std::fmt::Display, why: impl Into<String>) -> Self {
        Self::Content { place: place.to_string(), why: why.into() }
    }
}

impl Statement {
    /// By how much the closing balance is not what the opening one and the entries come to; nothing
    /// where one of the balances is not said.
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn discrepancy(&self) -> Result<Option<Minor>, Overflow> {
        let (Some(opening), Some(closing)) = (self.opening, self.closing) else { return Ok(None) };
        let entries = Minor::total(self.entries.iter().map(|entry| entry.amount))?;
        closing.minus(opening)?.minus(entries).map(Some)
    }
}

/// What is said of the days that a statement covers.
#[derive(Default)]
struct Days {
    /// By the statement itself.
    from: Option<Date>,
    to: Option<Date>,
    /// By its balances: at the opening, at the closing of the statement before, at the closing.
    opened_on: Option<Date>,
    closed_before_on: Option<Date>,
    closed_on: Option<Date>,
}

impl Days {
    /// The statement with its days. What comes after the statement before it begins on the day after
    /// that one's closing; where it has an earlier entry, or ends earlier, on that day.
    fn cover(self, mut statement: Statement) -> Statement {
        statement.opening_on = self.closed_before_on.or(self.opened_on);
        statement.closing_on = self.closed_on;
        statement.to = self.to.or(self.closed_on);
        let after = |closed_on: Date| {
            let booked = statement.entries.iter().map(|entry| entry.booked_on);
            booked.chain(statement.to).chain(closed_on.tomorrow().ok()).min()
        };
        let after = self.closed_before_on.and_then(after);
        statement.from = self.from.or(self.opened_on).or(after);
        statement
    }
}

/// Longest line, or text, of a statement; banks keep to a thousandth of it.
const TEXT_MAX: usize = 64 * 1024;

/// Longest text of an entry as a whole, in bytes.
const SAID_MAX: usize = TEXT_MAX;

/// Characters of a statement that an error repeats at most.
const SHOWN_MAX: usize = 60;

/// What an error repeats of a statement: its beginning, without what a terminal or a log would take
/// for more than text.
fn shown(text: &str) -> String {
    let harmless = |c: char| match c {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '?'
        }
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().take(SHOWN_MAX).map(harmless).collect()
}

/// Adds to what an entry says, in a line of its own. Of what is beyond the limit, in bytes, whole
/// lines are left out: a reference that is cut is another one.
fn add(said: &mut String, text: &str, limit: usize) {
    for line in text.split('\n') {
        if said.len() + line.len() < limit {
            said.push('\n');
            said.push_str(line);
        }
    }
}

/// Reads all statements of a file.
///
/// # Errors
/// It is none, is cut off, is in another currency, or has an amount or a date that is none.
pub fn read(mut file: impl BufRead, terms: &Terms) -> Result<Vec<Statement>, Unreadable> {
    skip_mark(&mut file)?;
    let beginning = file.fill_buf()?;
    match form(beginning) {
        Form::Camt053 => camt053::read(file, terms),
        Form::Mt940 => mt940::read(file, terms),
        Form::Table => table::read(file, terms),
    }
}

/// A byte order mark is no content.
fn skip_mark(file: &mut impl BufRead) -> io::Result<()> {
    if file.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        file.consume(3);
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
enum Form {
    Camt053,
    Mt940,
    Table,
}

/// What a file is, by how it begins.
fn form(beginning: &[u8]) -> Form {
    let text = String::from_utf8_lossy(&beginning[..beginning.len().min(1024)]);
    let is_swift = |line: &str| line.starts_with(":20:") || line.starts_with("{1:");
    if text.trim_start().starts_with('<') {
        Form::Camt053
    } else if text.lines().any(is_swift) {
        Form::Mt940
    } else {
        Form::Table
    }
}

/// Reads lines, one after the other, as text whatever their encoding is.
struct Lines<R> {
    file: R,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    const fn of(file: R) -> Self {
        Self { file, number: 0, bytes: Vec::new() }
    }

    fn next(&mut self) -> Result<Option<String>, Unreadable> {
        use io::Read as _;
        self.bytes.clear();
        let mut bounded = (&mut self.file).take(TEXT_MAX as u64 + 1);
        if bounded.read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.bytes.len() > TEXT_MAX {
            return Err(self.odd("the line is too long"));
        }
        // Banks that write ISO 8859-1 lose an umlaut in a text; references have none.
        let text = String::from_utf8_lossy(&self.bytes);
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    fn odd(&self, why: impl Into<String>) -> Unreadable {
        Unreadable::at(format_args!("line {}", self.number), why)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn terms(currency: &str) -> Terms {
        let currency = Currency::parse(currency).expect("a currency");
        Terms { currency, places: 2, columns: Columns::default() }
    }

    pub(super) fn day(text: &str) -> Date {
        text.parse().expect("a day")
    }

    /// Day, minor units and the bank's reference of each entry.
    pub(super) fn short(statement: &Statement) -> Vec<(String, i64, &str)> {
        let short = |entry: &'_ Entry| (entry.booked_on.to_string(), entry.amount.units());
        let each = |entry| {
            let (day, amount) = short(entry);
            (day, amount, entry.bank_reference.as_deref().unwrap_or_default())
        };
        statement.entries.iter().map(each).collect()
    }

    #[test]
    fn a_file_is_known_by_its_beginning() {
        assert_eq!(form(b"\n <?xml version=\"1.0\"?>"), Form::Camt053);
        assert_eq!(form(b"{1:F01BANK}{4:\n:20:X\n"), Form::Mt940);
        assert_eq!(form(b"ABNANL2A\n940\nABNANL2A\n:20:X\n"), Form::Mt940);
        assert_eq!(form(b"date,amount\n"), Form::Table);
        assert_eq!(form(b""), Form::Table);
        let marked = read(&b"\xef\xbb\xbfdate,amount\n2026-11-21,1.00\n"[..], &terms("NGN"));
        assert_eq!(marked.expect("a table")[0].entries.len(), 1);
    }

    #[test]
    fn balances_show_what_is_missing() {
        let entry = |units| Entry {
            booked_on: day("2026-11-21"),
            amount: Minor::new(units),
            bank_reference: None,
            said: "".into(),
        };
        let minor = |units| Some(Minor::new(units));
        let mut statement = Statement {
            opening: minor(100),
            closing: minor(130),
            entries: vec![entry(50), entry(-20)],
            ..Statement::default()
        };
        assert_eq!(statement.discrepancy(), Ok(minor(0)));
        statement.entries.pop();
        assert_eq!(statement.discrepancy(), Ok(minor(-20)));
        statement.opening = None;
        assert_eq!(statement.discrepancy(), Ok(None));
    }

    #[test]
    fn an_error_repeats_little_and_nothing_that_acts() {
        let text = "\u{1b}[2J\r\n\u{9b}a\u{202a}\u{202e}b\u{2066}\u{2069}\u{e9}";
        assert_eq!(shown(text), "?[2J???a??b??\u{e9}");
        let long = "\u{20ac}".repeat(1_000);
        assert_eq!(shown(&long).chars().count(), SHOWN_MAX);
        // Wherever it is repeated.
        let odd = format!("\u{1b}\u{202e}{}", "x".repeat(60_000));
        let xml = |inner: &str| format!("<Document><BkToCstmrStmt><Stmt>{inner}");
        for text in [
            format!(":20:{odd}\n:25:x"),
            format!(":20:{odd}\n:20:x"),
            format!(":20:x\n:60F:{odd}"),
            format!(":20:x\n:60F:C261120{odd}"),
            format!(":20:x\n:61:{odd}"),
            format!("date,amount\n{odd},1"),
            format!("date,amount\n2026-11-21,{odd}"),
            format!("date,amount,currency\n2026-11-21,1,{odd}"),
            xml(&format!("<Acct><Ccy>{odd}</Ccy>")),
            xml(&format!("<Bal><Amt>{odd}</Amt>")),
            xml(&format!("<Bal><Amt Ccy=\"{odd}\">1</Amt>")),
            xml(&format!("<Bal><Amt>1</Amt><CdtDbtInd>{odd}</CdtDbtInd></Bal>")),
            xml(&format!("<FrToDt><FrDtTm>{odd}</FrDtTm>")),
            xml(&format!("<Ntry><BookgDt><Dt>{odd}</Dt>")),
            xml(&format!("&{odd};")),
            xml(&format!("</{odd}>")),
            format!("<a/></{odd}>"),
            "<Document><\u{202e}\u{1b}></Document>".to_owned(),
            format!("<?xml {odd}=\"1\"?>"),
        ] {
            let refused = read(text.as_bytes(), &terms("NGN")).expect_err("odd").to_string();
            assert!(refused.len() < 2 * SHOWN_MAX + 100, "{refused}");
            assert!(!refused.contains(['\u{1b}', '\u{202e}']), "{refused}");
        }
    }

    #[test]
    fn an_entry_leaves_out_what_is_beyond_its_limit_line_by_line() {
        let mut said = String::new();
        add(&mut said, "first\nmuch too long\n2nd", 12);
        assert_eq!(said, "\nfirst\n2nd");
        add(&mut said, "3", 12);
        add(&mut said, "", 12);
        assert_eq!(said, "\nfirst\n2nd\n3");
    }

    #[test]
    fn a_statement_begins_after_the_one_before_it() {
        let entry = |text: &str| Entry {
            booked_on: day(text),
            amount: Minor::ZERO,
            bank_reference: None,
            said: "".into(),
        };
        let from = |to: Option<&str>, entries: &[&str]| {
            let entries = entries.iter().map(|text| entry(text)).collect();
            let closed_before_on = Some(day("2026-11-20"));
            let days = Days { closed_before_on, closed_on: to.map(day), ..Days::default() };
            days.cover(Statement { entries, ..Statement::default() }).from
        };
        let on = |text| Some(day(text));
        assert_eq!(from(Some("2026-11-24"), &["2026-11-23"]), on("2026-11-21"));
        assert_eq!(from(Some("2026-11-20"), &[]), on("2026-11-20"));
        assert_eq!(from(Some("2026-11-24"), &["2026-11-22", "2026-11-19"]), on("2026-11-19"));
        assert_eq!(from(None, &[]), on("2026-11-21"));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let endless = format!(":20:{}", "x".repeat(TEXT_MAX));
        let refused = read(endless.as_bytes(), &terms("NGN")).expect_err("endless");
        assert!(refused.to_string().contains("too long"), "{refused}");
    }
}
