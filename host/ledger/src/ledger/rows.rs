//! Rows of the features' tables that a batch has read, kept up with what its decisions change.

use std::collections::HashMap;

use crate::db::bulk::RowChange;
use crate::db::cell::{Cell, Kind, Named, Row};
use crate::db::lookup::Lookup;

/// One look-up of a batch and the rows that it found.
#[derive(Debug)]
struct Read {
    on: &'static Lookup,
    columns: Vec<(&'static str, Kind)>,
    found: HashMap<String, Row>,
}

/// The rows that a batch has read, by look-up and key.
#[derive(Debug, Default)]
pub(super) struct Rows(Vec<Read>);

impl Rows {
    /// Takes in what a look-up found.
    pub(super) fn take(&mut self, on: &'static Lookup, rows: Vec<Row>) {
        let by_key = |row: Row| Some((row.first()?.as_text()?.to_owned(), row));
        let found = rows.into_iter().filter_map(by_key).collect();
        self.0.push(Read { on, columns: on.all(), found });
    }

    /// The row of this key, if there is one.
    pub(super) fn get(&self, on: &'static Lookup, id: &str) -> Option<Named<'_>> {
        let read = self.0.iter().find(|read| std::ptr::eq(read.on, on))?;
        read.found.get(id).map(|row| Named::new(&read.columns, row))
    }

    /// Follows a change, so that later decisions see it.
    pub(super) fn follow(&mut self, change: &RowChange) {
        match change {
            RowChange::Insert(shape, row, _) => {
                for read in self.of(shape.table()) {
                    // Of most tables that rows are inserted into nothing was read.
                    let columns = shape.columns();
                    let cell = |name: &str| {
                        let at = columns.iter().position(|(column, _)| *column == name)?;
                        row.get(at).cloned()
                    };
                    let cells = |(name, kind): &(&str, Kind)| cell(name).unwrap_or(null(*kind));
                    let new: Row = read.columns.iter().map(cells).collect();
                    if let Some(key) = new.first().and_then(Cell::as_text) {
                        read.found.insert(key.to_owned(), new);
                    }
                }
            }
            RowChange::Update(shape, row) => {
                let columns = shape.columns();
                let Some(key) = row.first().and_then(Cell::as_text) else { return };
                for read in self.of(shape.table()).filter(|read| read.on.key == columns[0].0) {
                    let Some(known) = read.found.get_mut(key) else { continue };
                    let known = Row::make_mut(known);
                    for ((name, _), cell) in columns.iter().zip(&**row) {
                        let at = read.columns.iter().position(|(column, _)| column == name);
                        if let Some(at) = at {
                            known[at] = cell.clone();
                        }
                    }
                }
            }
            RowChange::Delete(removal, key) => {
                for read in self.of(removal.name).filter(|read| read.on.key == removal.key) {
                    read.found.remove(key);
                }
            }
        }
    }

    fn of(&mut self, table: &'static str) -> impl Iterator<Item = &mut Read> {
        self.0.iter_mut().filter(move |read| read.on.name == table)
    }
}

const fn null(kind: Kind) -> Cell {
    match kind {
        Kind::Text => Cell::Text(None),
        Kind::Int => Cell::Int(None),
    }
}
