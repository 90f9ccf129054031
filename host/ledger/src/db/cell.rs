//! Values of rows, and rows as they are read.

use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TEXT.
    Text,
    /// BIGINT.
    Int,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// TEXT or NULL.
    Text(Option<String>),
    /// BIGINT or NULL.
    Int(Option<i64>),
}

/// A row's values in the order of its description. They are shared: whoever may have to write a row
/// once more keeps it without copying it.
pub type Row = Arc<[Cell]>;

impl Cell {
    /// A text as both engines can hold it: PostgreSQL takes no NUL, so it becomes U+FFFD.
    #[must_use]
    pub fn text(text: Option<String>) -> Self {
        Self::Text(text.map(|text| match text.contains('\0') {
            true => text.replace('\0', "\u{fffd}"),
            false => text,
        }))
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            Self::Int(_) => None,
        }
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => *number,
            Self::Text(_) => None,
        }
    }
}

/// A row whose values are asked for by name. A name that is not there, another kind, and NULL
/// where there must be a value are errors, on either engine.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    columns: &'a [(&'static str, Kind)],
    cells: &'a [Cell],
}

impl<'a> Named<'a> {
    /// The cells under the names of their columns, in this order.
    #[must_use]
    pub fn new(columns: &'a [(&'static str, Kind)], cells: &'a [Cell]) -> Self {
        Self { columns, cells }
    }

    fn cell(&self, name: &str, kind: Kind) -> Result<&'a Cell, sqlx::Error> {
        let at = self.columns.iter().position(|column| *column == (name, kind));
        let cell = at.and_then(|at| self.cells.get(at));
        cell.ok_or_else(|| sqlx::Error::ColumnNotFound(format!("{name} ({kind:?})")))
    }

    /// A text, or nothing where it is NULL.
    ///
    /// # Errors
    /// There is no such column of texts.
    pub fn maybe_text(&self, name: &str) -> Result<Option<&'a str>, sqlx::Error> {
        self.cell(name, Kind::Text).map(Cell::as_text)
    }

    /// A number, or nothing where it is NULL.
    ///
    /// # Errors
    /// There is no such column of numbers.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>, sqlx::Error> {
        self.cell(name, Kind::Int).map(Cell::as_int)
    }

    /// A text.
    ///
    /// # Errors
    /// There is no such column of texts, or it is NULL.
    pub fn text(&self, name: &str) -> Result<&'a str, sqlx::Error> {
        self.maybe_text(name)?.ok_or_else(|| sqlx::Error::Decode(format!("{name} is NULL").into()))
    }

    /// A number.
    ///
    /// # Errors
    /// There is no such column of numbers, or it is NULL.
    pub fn int(&self, name: &str) -> Result<i64, sqlx::Error> {
        self.maybe_int(name)?.ok_or_else(|| sqlx::Error::Decode(format!("{name} is NULL").into()))
    }
}
