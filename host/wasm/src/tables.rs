//! Reference tables that rails look things up in.

use std::collections::HashMap;

/// One table: columns, rows, and an index of every word in every column.
#[derive(Debug, Default)]
pub struct ReferenceTable {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    index: HashMap<(usize, String), Vec<usize>>,
}

/// A table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Malformed {
    line: u64,
    why: String,
}

impl ReferenceTable {
    /// Reads CSV: lines that begin with `#` are comments, the first other line names the
    /// columns.
    ///
    /// # Errors
    /// A row has another number of cells than there are columns, or is not UTF-8.
    pub fn parse(csv: &[u8]) -> Result<Self, Malformed> {
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(csv);
        let malformed = |cause: csv::Error| {
            let line = cause.position().map_or(0, csv::Position::line);
            Malformed { line, why: cause.to_string() }
        };
        let columns = reader.headers().map_err(malformed)?.iter().map(str::to_owned).collect();
        let mut table = Self { columns, ..Self::default() };
        for record in reader.records() {
            let record = record.map_err(malformed)?;
            let number = table.rows.len();
            for (column, cell) in record.iter().enumerate() {
                for word in words(cell) {
                    table.index.entry((column, word.to_owned())).or_default().push(number);
                }
            }
            table.rows.push(record.iter().map(str::to_owned).collect());
        }
        Ok(table)
    }

    /// Rows whose column holds this value, or has it as one of its words.
    pub fn find(&self, column: &str, value: &str) -> impl Iterator<Item = TableRow<'_>> {
        let column = self.columns.iter().position(|name| name == column);
        let rows = column.and_then(|column| self.index.get(&(column, value.to_owned())));
        rows.into_iter().flatten().map(|&number| TableRow { table: self, number })
    }

    /// Rows whose columns `start` and `end` hold this value between them, both included, as texts
    /// of equal length.
    pub fn range(&self, value: &str) -> impl Iterator<Item = TableRow<'_>> {
        let value = value.to_owned();
        self.rows().filter(move |row| {
            let (start, end) = (row.get("start"), row.get("end"));
            let is_as_long = start.len() == value.len() && end.len() == value.len();
            is_as_long && start <= value.as_str() && value.as_str() <= end
        })
    }

    /// Whether it has a column of this name.
    #[must_use]
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    /// Every row, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = TableRow<'_>> {
        (0..self.rows.len()).map(|number| TableRow { table: self, number })
    }
}

/// The whole cell, and each of its words if it has several.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    let several = cell.contains(' ');
    let parts = cell.split(' ').filter(move |part| several && !part.is_empty());
    std::iter::once(cell).filter(|cell| !cell.is_empty()).chain(parts)
}

/// A row of a table.
#[derive(Clone, Copy)]
pub struct TableRow<'a> {
    table: &'a ReferenceTable,
    number: usize,
}

impl<'a> TableRow<'a> {
    /// The cell in this column; empty where there is no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> &'a str {
        self.cells().find(|(name, _)| *name == column).map_or("", |(_, cell)| cell)
    }

    /// Column names and cells.
    pub fn cells(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let row = &self.table.rows[self.number];
        self.table.columns.iter().map(String::as_str).zip(row.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_between_start_and_end() {
        let csv = b"start,end,rule\n070116,074456,a\n074456,089999,b\n1,9,c\n";
        let table = ReferenceTable::parse(csv).expect("valid");
        let found = |value| table.range(value).map(|row| row.get("rule")).collect::<String>();
        assert_eq!((found("070116"), found("074456")), ("a".into(), "ab".into()));
        assert_eq!((found("090000"), found("5"), found("")), ("".into(), "c".into(), "".into()));
    }

    #[test]
    fn cells_are_found_whole_and_by_word() {
        let csv = b"# banks\ncode,names\n058,Guaranty Trust\n011,First\n";
        let table = ReferenceTable::parse(csv).expect("valid");
        let found = |column, value| {
            table.find(column, value).map(|row| row.get("code")).collect::<Vec<_>>()
        };
        assert_eq!(found("names", "Trust"), ["058"]);
        assert_eq!(found("names", "Guaranty Trust"), ["058"]);
        assert_eq!(found("code", "011"), ["011"]);
        assert!(found("names", "Tru").is_empty() && found("nothing", "058").is_empty());
        assert!(ReferenceTable::parse(b"a,b\n1\n").is_err());
    }
}
