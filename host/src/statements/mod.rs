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

/// Longest line, or text, of a statement; banks keep to a thousandth of it.
const TEXT_MAX: usize = 64 * 1024;

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
    fn a_line_without_an_end_is_refused() {
        let endless = format!(":20:{}", "x".repeat(TEXT_MAX));
        let refused = read(endless.as_bytes(), &terms("NGN")).expect_err("endless");
        assert!(refused.to_string().contains("too long"), "{refused}");
    }
}
