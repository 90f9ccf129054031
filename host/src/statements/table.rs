//! Statements as tables in CSV: each bank has its own, so that columns are known by their names, and
//! whatever is not a day, an amount or a balance may hold references.

use std::io::BufRead;

use csv::{ReaderBuilder, StringRecord};
use jiff::civil::Date;

use crate::money::Minor;

use super::amount::Marks;
use super::{Entry, Statement, TEXT_MAX, Terms, Unreadable, shown};

/// How a table is written.
#[derive(Clone, Debug)]
pub struct Columns {
    /// How days are written, as `strftime` says it: `%Y-%m-%d`.
    pub day: String,
}

impl Default for Columns {
    fn default() -> Self {
        Self { day: "%Y-%m-%d".to_owned() }
    }
}

/// What columns may be called, in small letters and without spaces.
const DAYS: &[&str] =
    &["date", "bookingdate", "bookedon", "transactiondate", "postingdate", "valuedate"];
const AMOUNTS: &[&str] = &["amount", "transactionamount"];
const DEBITS: &[&str] =
    &["debit", "debitamount", "withdrawal", "withdrawals", "paidout", "moneyout"];
const CREDITS: &[&str] = &["credit", "creditamount", "deposit", "deposits", "paidin", "moneyin"];
const CURRENCIES: &[&str] = &["currency"];
const REFERENCES: &[&str] = &["bankreference", "transactionid", "transactionreference"];
const BALANCES: &[&str] = &["balance", "runningbalance", "balanceafter"];

/// Where what stands.
struct Head {
    day: usize,
    money: Money,
    currency: Option<usize>,
    reference: Option<usize>,
    /// Columns in which references may stand.
    texts: Vec<usize>,
}

enum Money {
    /// One column, with a sign.
    Signed(Column),
    /// One for what left, one for what came in.
    Apart { debit: Column, credit: Column },
}

/// A column of amounts.
struct Column {
    at: usize,
    marks: Marks,
}

impl Column {
    fn of(at: usize) -> Self {
        Self { at, marks: Marks::default() }
    }

    /// The amount in a row, unless the cell is empty.
    fn read(&mut self, row: &StringRecord, places: u8) -> Result<Option<Minor>, String> {
        match cell(row, self.at) {
            "" => Ok(None),
            text => self.marks.read(text, places).map(Some),
        }
    }
}

fn cell(row: &StringRecord, at: usize) -> &str {
    row.get(at).unwrap_or_default().trim()
}

pub(super) fn read(mut file: impl BufRead, terms: &Terms) -> Result<Vec<Statement>, Unreadable> {
    let beginning = file.fill_buf()?;
    let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let delimiter =
        [b';', b'\t', b','].into_iter().find(|mark| line.contains(mark)).unwrap_or(b',');
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(false).from_reader(file);
    let odd = |cause: csv::Error| {
        let line = cause.position().map_or(1, csv::Position::line);
        Unreadable::at(format_args!("line {line}"), cause.to_string())
    };
    let mut head =
        head(reader.headers().map_err(odd)?).map_err(|why| Unreadable::at("line 1", why))?;
    let mut statement = Statement::default();
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(odd)? {
        let line = row.position().map_or(0, csv::Position::line);
        let entry = entry(&row, &mut head, terms);
        let entry = entry.map_err(|why| Unreadable::at(format_args!("line {line}"), why))?;
        statement.entries.extend(entry);
    }
    Ok(vec![statement])
}

fn head(names: &StringRecord) -> Result<Head, String> {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    let names: Vec<String> = names.iter().map(plain).collect();
    let find =
        |words: &[&str]| words.iter().find_map(|word| names.iter().position(|name| name == word));
    let missing = |what: &str, words: &[&str]| {
        format!("there is no column for {what}: call it {}", words.join(", "))
    };
    let day = find(DAYS).ok_or_else(|| missing("the day", DAYS))?;
    let money = match (find(AMOUNTS), find(DEBITS), find(CREDITS)) {
        (Some(amount), None, None) => Money::Signed(Column::of(amount)),
        (None, Some(debit), Some(credit)) => {
            Money::Apart { debit: Column::of(debit), credit: Column::of(credit) }
        }
        (None, _, _) => return Err(missing("the amount", AMOUNTS) + ", or debit and credit"),
        _ => return Err("there is an amount, and a debit or a credit besides".to_owned()),
    };
    let is_known = |name: &String| {
        let known = [DAYS, AMOUNTS, DEBITS, CREDITS, CURRENCIES, BALANCES];
        known.iter().any(|words| words.contains(&name.as_str()))
    };
    let texts = (0..names.len()).filter(|at| !is_known(&names[*at])).collect();
    Ok(Head { day, money, currency: find(CURRENCIES), reference: find(REFERENCES), texts })
}

fn entry(row: &StringRecord, head: &mut Head, terms: &Terms) -> Result<Option<Entry>, String> {
    let cell = |at: usize| cell(row, at);
    if row.iter().all(|cell| cell.trim().is_empty()) {
        return Ok(None);
    }
    if row.iter().map(str::len).sum::<usize>() > TEXT_MAX {
        return Err("the line is too long".to_owned());
    }
    if let Some(currency) = head.currency.map(cell).filter(|it| !it.is_empty())
        && !currency.eq_ignore_ascii_case(terms.currency.as_str())
    {
        let own = terms.currency;
        return Err(format!("it is in {}, and the account in {own}", shown(currency)));
    }
    let day = cell(head.day);
    let booked_on = Date::strptime(&terms.columns.day, day)
        .map_err(|_| format!("{} is no day as {}", shown(day), terms.columns.day))?;
    let amount = head.money.read(row, terms.places)?;
    let said: Vec<&str> =
        head.texts.iter().map(|at| cell(*at)).filter(|it| !it.is_empty()).collect();
    let reference = head.reference.map(cell).filter(|it| !it.is_empty());
    Ok(Some(Entry {
        booked_on,
        amount,
        bank_reference: reference.map(Into::into),
        said: said.join("\n").into(),
    }))
}

impl Money {
    fn read(&mut self, row: &StringRecord, places: u8) -> Result<Minor, String> {
        let none = "there is no amount";
        let (debit, credit) = match self {
            Self::Signed(column) => {
                return column.read(row, places)?.ok_or_else(|| none.to_owned());
            }
            Self::Apart { debit, credit } => (debit, credit),
        };
        // Some banks write a zero where there is nothing, and some a minus before what left.
        let of = |column: &mut Column| {
            Ok::<_, String>(column.read(row, places)?.filter(|it| *it != Minor::ZERO))
        };
        match (of(debit)?, of(credit)?) {
            (Some(left), None) if left.is_negative() => Ok(left),
            (Some(left), None) => left.negated().map_err(|cause| cause.to_string()),
            (None, Some(came)) => Ok(came),
            (None, None) => Err(none.to_owned()),
            (Some(_), Some(_)) => Err("it is both a debit and a credit".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{short, terms};
    use super::*;

    fn read(text: &str) -> Result<Vec<Statement>, String> {
        super::super::read(text.as_bytes(), &terms("NGN")).map_err(|why| why.to_string())
    }

    #[test]
    fn columns_are_known_by_their_names() {
        let signed = "Booking Date;Amount;Narration;Transaction ID;Balance\n\
                      2026-11-21;-1.000,00;NIP 0000132611;T1;5\n\n2026-11-22;250,5;;T2;6\n";
        let statement = read(signed).expect("a table").remove(0);
        let expected =
            [("2026-11-21".to_owned(), -100_000, "T1"), ("2026-11-22".to_owned(), 25_050, "T2")];
        assert_eq!(short(&statement), expected);
        assert_eq!(&*statement.entries[0].said, "NIP 0000132611\nT1");
        let apart = "date,details,debit,credit\n2026-11-21,\"a, b\",\"1,000.00\",\n\
                     2026-11-22,c,-3,0.00\n2026-11-23,d,0,7\n";
        let statement = read(apart).expect("a table").remove(0);
        let amounts: Vec<i64> = statement.entries.iter().map(|it| it.amount.units()).collect();
        assert_eq!(amounts, [-100_000, -300, 700]);
        let mut british = terms("NGN");
        british.columns.day = "%d/%m/%Y".to_owned();
        let text = "date,amount\n21/11/2026,1\n";
        let found = super::super::read(text.as_bytes(), &british).expect("a table");
        assert_eq!(found[0].entries[0].booked_on.to_string(), "2026-11-21");
    }

    #[test]
    fn an_amount_that_can_be_read_in_two_ways_is_read_as_its_column_is_written() {
        let units = |text: &str| -> Result<Vec<i64>, String> {
            let statement = read(text)?.remove(0);
            assert_eq!((statement.from, statement.to), (None, None));
            Ok(statement.entries.iter().map(|it| it.amount.units()).collect())
        };
        let shown = "date;amount\n2026-11-21;12,50\n2026-11-22;12.500\n";
        assert_eq!(units(shown), Ok(vec![1_250, 1_250_000]));
        let later = units("date;amount\n2026-11-21;12.500\n2026-11-22;12,50\n");
        let later = later.expect_err("in two ways");
        assert!(later.starts_with("line 2: 12.500 can be read in two ways: write"), "{later}");
        // A zero that stands for nothing shows it as well, but not for another column.
        let apart = "date;debit;credit\n2026-11-21;5;0.00\n2026-11-22;;1,234\n";
        assert_eq!(units(apart), Ok(vec![-500, 123_400]));
        let other = "date;debit;credit\n2026-11-21;5.00;\n2026-11-22;;1,234\n";
        assert!(units(other).expect_err("in two ways").starts_with("line 3: 1,234 can be"));
    }

    #[test]
    fn whatever_is_no_table_is_refused_by_its_line() {
        for (text, line, word) in [
            ("", "line 1", "column for the day"),
            ("date,x\n", "line 1", "column for the amount"),
            ("date,debit\n", "line 1", "column for the amount"),
            ("date,amount,credit\n", "line 1", "besides"),
            ("date,amount\n2026-11-21,1\n21.11.2026,1\n", "line 3", "no day"),
            ("date,amount\n2026-11-21,one\n", "line 2", "no amount"),
            ("date,amount\n2026-11-21,\n", "line 2", "there is no amount"),
            ("date,amount,currency\n2026-11-21,1,EUR\n", "line 2", "in EUR"),
            ("date,debit,credit\n2026-11-21,1,2\n", "line 2", "both"),
            ("date,amount\n2026-11-21\n", "line 2", "field"),
        ] {
            let refused = read(text).expect_err(text);
            assert!(refused.starts_with(line) && refused.contains(word), "{text}: {refused}");
        }
    }
}
