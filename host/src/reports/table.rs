//! Reports as tables: CSV for programs, XLSX for people.
//!
//! Amounts are in major units here. A text that a spreadsheet would take for a formula is written
//! so that it does not.

use std::path::Path;

use futures::{Stream, StreamExt as _};
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};
use serde_json::Value;

use crate::error::{ErrorCode, Problem};
use crate::money::Minor;

use super::rows::ReportRow;

/// Rows of a workbook's sheet, with its head.
pub(super) const SHEET_ROWS_MAX: usize = 1_048_576;
/// Digits that a spreadsheet keeps of a number: what is longer is written as text.
const SHEET_DIGITS_MAX: usize = 15;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    kind: Kind,
    width: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Count,
    Money,
    Flag,
}

/// A column of texts, so many characters wide.
pub(super) const fn text(name: &'static str, width: u16) -> Column {
    Column { name, kind: Kind::Text, width }
}

/// A column of numbers of things.
pub(super) const fn count(name: &'static str) -> Column {
    Column { name, kind: Kind::Count, width: 14 }
}

/// A column of amounts.
pub(super) const fn money(name: &'static str) -> Column {
    Column { name, kind: Kind::Money, width: 20 }
}

/// A column of yes and no.
pub(super) const fn flag(name: &'static str) -> Column {
    Column { name, kind: Kind::Flag, width: 14 }
}

impl Column {
    /// What stands above it: amounts are in major units.
    fn title(self) -> &'static str {
        match self.kind {
            Kind::Money => self.name.strip_suffix("_minor").unwrap_or(self.name),
            _ => self.name,
        }
    }

    /// What stands in it for a row.
    fn cell(self, row: &Value, places: u8) -> String {
        match (&row[self.name], self.kind) {
            (Value::Null, _) => String::new(),
            (Value::String(minor), Kind::Money) => {
                minor.parse().map(|units| Minor::new(units).major(places)).unwrap_or_default()
            }
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        }
    }
}

/// Lines before and after the rows: a label, and an amount in a column.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The column of the label.
    pub label_in: &'static str,
    /// The column of the amount.
    pub amount_in: &'static str,
    /// Before the rows.
    pub opening: (&'static str, Minor),
    /// After them.
    pub closing: (&'static str, Minor),
    /// Decimal places of both.
    pub places: u8,
}

/// A text that no spreadsheet takes for a formula, not even when it saves a workbook as CSV.
pub(crate) fn harmless(text: String) -> String {
    let signs = ['=', '+', '-', '@', '|', '%', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    match text.trim_start().starts_with(signs) || text.starts_with(['\t', '\r']) {
        true => format!("'{text}"),
        false => text,
    }
}

/// Where a line of a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Opening,
    Closing,
}

/// The lines of a table, above and below the rows.
struct Lines<'a> {
    columns: &'static [Column],
    frame: Option<&'a Frame>,
}

impl Lines<'_> {
    fn titles(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.title().to_owned()).collect()
    }

    fn framing(&self, edge: Edge) -> Option<Vec<String>> {
        let frame = self.frame?;
        let (label, amount) = match edge {
            Edge::Opening => frame.opening,
            Edge::Closing => frame.closing,
        };
        let cell = |column: &Column| match column.name {
            name if name == frame.label_in => label.to_owned(),
            name if name == frame.amount_in => amount.major(frame.places),
            _ => String::new(),
        };
        Some(self.columns.iter().map(cell).collect())
    }
}

/// What a row's cells are, in order.
fn cells<T: ReportRow>(row: &T, places: u8) -> Result<Vec<String>, Problem> {
    let row = serde_json::to_value(row).map_err(Problem::internal)?;
    let cell = |column: &Column| match column.kind {
        Kind::Text => harmless(column.cell(&row, places)),
        _ => column.cell(&row, places),
    };
    Ok(T::COLUMNS.iter().map(cell).collect())
}

/// A table as CSV, a portion at a time.
pub(super) fn csv<T: ReportRow>(
    frame: Option<&Frame>,
    places: impl Fn(&T) -> u8 + Send + 'static,
    rows: impl Stream<Item = Result<Vec<T>, Problem>> + Send + 'static,
) -> impl Stream<Item = Result<Vec<u8>, Problem>> + Send + 'static {
    let lines = Lines { columns: T::COLUMNS, frame };
    let mut above = vec![lines.titles()];
    above.extend(lines.framing(Edge::Opening));
    let below: Vec<_> = lines.framing(Edge::Closing).into_iter().collect();
    let portion = move |rows: Result<Vec<T>, Problem>| {
        let rows = rows?;
        let mut lines = Vec::with_capacity(rows.len());
        for row in &rows {
            lines.push(cells(row, places(row))?);
        }
        written(&lines)
    };
    let once = |lines: Vec<Vec<String>>| futures::stream::once(async move { written(&lines) });
    once(above).chain(rows.map(portion)).chain(once(below))
}

/// Writes CSV with every text in quotes: where a semicolon separates, none of a text's begins a cell.
pub(crate) fn quoted<W: std::io::Write>(into: W) -> csv::Writer<W> {
    csv::WriterBuilder::new().quote_style(csv::QuoteStyle::NonNumeric).from_writer(into)
}

fn written(lines: &[Vec<String>]) -> Result<Vec<u8>, Problem> {
    let mut writer = quoted(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(Problem::internal)?;
    }
    writer.into_inner().map_err(|cause| Problem::internal(cause.to_string()))
}

/// A workbook that is being written, with one sheet. Rows go to a temporary file, not to memory.
pub(super) struct Book {
    workbook: Workbook,
    columns: &'static [Column],
    frame: Option<Frame>,
    row: u32,
    /// Formats by decimal places.
    money: Vec<Format>,
}

impl Book {
    /// A sheet with its head: it stays where it is when rows are scrolled.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written to.
    pub(super) fn new<T: ReportRow>(
        (name, folder): (&str, &Path),
        frame: Option<Frame>,
    ) -> Result<Self, Problem> {
        let mut workbook = Workbook::new();
        workbook.set_tempdir(folder).map_err(Problem::internal)?;
        let columns = T::COLUMNS;
        let sheet = workbook.add_worksheet_with_constant_memory().map_err(Problem::internal)?;
        let bold = Format::new().set_bold();
        let mut head = || -> Result<(), XlsxError> {
            sheet.set_name(name)?;
            sheet.set_freeze_panes(1, 0)?;
            for (at, column) in (0_u16..).zip(columns) {
                sheet.set_column_width(at, column.width)?;
            }
            for (at, column) in (0_u16..).zip(columns) {
                sheet.write_string_with_format(0, at, column.title(), &bold)?;
            }
            Ok(())
        };
        head().map_err(Problem::internal)?;
        let money = (0_usize..=4).map(|places| {
            let format = match places {
                0 => "#,##0".to_owned(),
                _ => format!("#,##0.{}", "0".repeat(places)),
            };
            Format::new().set_num_format(format)
        });
        let mut book = Self { workbook, columns, money: money.collect(), frame, row: 1 };
        book.framing(Edge::Opening)?;
        Ok(book)
    }

    /// Writes further rows.
    ///
    /// # Errors
    /// `invalid_filter` where there are more than a sheet holds.
    pub(super) fn write<T: ReportRow>(
        &mut self,
        rows: &[T],
        places: impl Fn(&T) -> u8,
    ) -> Result<(), Problem> {
        for row in rows {
            let places = places(row);
            let cells = cells(row, places)?;
            self.line(cells, places)?;
        }
        Ok(())
    }

    /// The file.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Problem> {
        self.framing(Edge::Closing)?;
        self.workbook.save_to_buffer().map_err(Problem::internal)
    }

    fn framing(&mut self, edge: Edge) -> Result<(), Problem> {
        let lines = Lines { columns: self.columns, frame: self.frame.as_ref() };
        let places = self.frame.as_ref().map_or(2, |frame| frame.places);
        match lines.framing(edge) {
            Some(cells) => self.line(cells, places),
            None => Ok(()),
        }
    }

    fn line(&mut self, cells: Vec<String>, places: u8) -> Result<(), Problem> {
        // The last line of a frame has a place, too.
        if usize::try_from(self.row).unwrap_or(usize::MAX) + 1 >= SHEET_ROWS_MAX {
            let message = "A workbook holds a million rows: ask for fewer days, or for CSV.";
            return Err(Problem::because(ErrorCode::InvalidFilter, message).field("to"));
        }
        let format = self.money.get(usize::from(places)).or(self.money.last());
        let sheet = self.workbook.worksheet_from_index(0).map_err(Problem::internal)?;
        for ((at, cell), column) in (0_u16..).zip(cells).zip(self.columns) {
            cell_in(sheet, (self.row, at), (&cell, column.kind), format)
                .map_err(Problem::internal)?;
        }
        self.row += 1;
        Ok(())
    }
}

/// Writes one cell. What is a text is never taken for anything else.
fn cell_in(
    sheet: &mut Worksheet,
    (row, at): (u32, u16),
    (cell, kind): (&str, Kind),
    money: Option<&Format>,
) -> Result<(), XlsxError> {
    if cell.is_empty() {
        return Ok(());
    }
    let digits = cell.bytes().filter(u8::is_ascii_digit).count();
    let number = cell.parse::<f64>().ok().filter(|_| digits <= SHEET_DIGITS_MAX);
    match (kind, number, money) {
        (Kind::Money, Some(number), Some(format)) => {
            sheet.write_number_with_format(row, at, number, format)?
        }
        (Kind::Count, Some(number), _) => sheet.write_number(row, at, number)?,
        (Kind::Flag, ..) => sheet.write_boolean(row, at, cell == "true")?,
        _ => sheet.write_string(row, at, cell)?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "|calc", "%0A", " =1", "\u{ff1d}1"] {
            assert_eq!(harmless(text.to_owned()), format!("'{text}"));
        }
        assert_eq!(harmless("Ada = Obi".to_owned()), "Ada = Obi");
    }
}
