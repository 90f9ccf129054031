//! The writer's connection to SQLite.
//!
//! Its statements run on the thread that asks for them, which is the writer's own (and, for a moment,
//! that of whoever starts the host). A driver that
//! hands each to another thread would have it wait twice for the system to change threads, some
//! thirty times a batch.

use std::borrow::Cow;
use std::error::Error as StdError;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement, ffi};
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::sqlite::SqliteConnectOptions;

use super::Engine;
use super::bulk::{Removal, Shape};
use super::cell::{Cell, Kind, Row};
use super::lookup::Lookup;

/// A connection that one thread has for itself.
pub struct Embedded(Connection);

/// Statements that are kept prepared: one for each way to read, write to or delete from a table.
const STATEMENTS_MAX: usize = 512;

impl Embedded {
    /// Opens the file that a URL names.
    pub(super) fn open(url: &str) -> Result<Self, sqlx::Error> {
        let options: SqliteConnectOptions = url.parse()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(options.get_filename(), flags).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let opened = Self(connection);
        opened.run(Engine::Sqlite.session())?;
        // 64 MiB at most (in KiB). A batch changes some hundred pages, and those that do not fit
        // would be written out before their time, and again.
        opened.run("PRAGMA cache_size = -65536")?;
        // Others make checkpoints (see `checkpoints`): after somebody has read for long, a commit
        // would copy all that has come together.
        opened.run("PRAGMA wal_autocheckpoint = 0")?;
        Ok(opened)
    }

    pub(super) fn run(&self, sql: &str) -> Result<(), sqlx::Error> {
        self.0.execute_batch(sql).map_err(failed)
    }

    /// Reads the rows with these keys, in the order of the keys.
    pub(super) fn select(&self, lookup: &Lookup, keys: &[String]) -> Result<Vec<Row>, sqlx::Error> {
        let columns = lookup.all();
        let mut statement = self.0.prepare_cached(&lookup.sqlite()).map_err(failed)?;
        let mut found = statement.query([json(keys)?]).map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failed)? {
            let cell = |(index, of): (usize, &(&'static str, Kind))| {
                cell(row.get_ref(index).map_err(failed)?, of)
            };
            rows.push(columns.iter().enumerate().map(cell).collect::<Result<Row, _>>()?);
        }
        Ok(rows)
    }

    /// Writes rows, each with its batch if it has one; answers how many were taken.
    pub(super) fn write(
        &self,
        (shape, batch): (&dyn Shape, Option<i64>),
        rows: &[Row],
    ) -> Result<u64, sqlx::Error> {
        let mut statement = self.0.prepare_cached(&shape.sqlite()).map_err(failed)?;
        let mut written = 0;
        for row in rows {
            written += execute(&mut statement, row, batch).map_err(failed)?;
        }
        Ok(written as u64)
    }

    /// Deletes by key; answers how many rows there were.
    pub(super) fn delete(&self, removal: &Removal, keys: &[String]) -> Result<u64, sqlx::Error> {
        let mut statement = self.0.prepare_cached(&removal.sqlite()).map_err(failed)?;
        Ok(statement.execute([json(keys)?]).map_err(failed)? as u64)
    }

    pub(super) fn close(self) -> Result<(), sqlx::Error> {
        self.0.close().map_err(|(_, cause)| failed(cause))
    }
}

fn execute(
    statement: &mut Statement<'_>,
    row: &[Cell],
    batch: Option<i64>,
) -> rusqlite::Result<usize> {
    for (place, cell) in (1..).zip(row) {
        match cell {
            Cell::Text(text) => statement.raw_bind_parameter(place, text.as_deref())?,
            Cell::Int(number) => statement.raw_bind_parameter(place, number)?,
        }
    }
    if let Some(batch) = batch {
        statement.raw_bind_parameter(row.len() + 1, batch)?;
    }
    statement.raw_execute()
}

fn cell(found: ValueRef<'_>, (name, kind): &(&'static str, Kind)) -> Result<Cell, sqlx::Error> {
    let odd = |cause: Box<dyn StdError + Send + Sync>| sqlx::Error::ColumnDecode {
        index: (*name).to_owned(),
        source: cause,
    };
    Ok(match (kind, found) {
        (Kind::Text, ValueRef::Null) => Cell::Text(None),
        (Kind::Int, ValueRef::Null) => Cell::Int(None),
        (Kind::Text, ValueRef::Text(text)) => {
            let text = std::str::from_utf8(text).map_err(|cause| odd(cause.into()))?;
            Cell::Text(Some(text.to_owned()))
        }
        (Kind::Int, ValueRef::Integer(number)) => Cell::Int(Some(number)),
        (_, other) => {
            return Err(odd(format!("{} is not {kind:?}", other.data_type()).into()));
        }
    })
}

fn json(keys: &[String]) -> Result<String, sqlx::Error> {
    serde_json::to_string(keys).map_err(|cause| sqlx::Error::Encode(Box::new(cause)))
}

/// What SQLite said, in the shape in which the other connections say it.
fn failed(cause: rusqlite::Error) -> sqlx::Error {
    match cause {
        rusqlite::Error::SqliteFailure(code, message) => {
            let message = message.unwrap_or_else(|| code.to_string());
            sqlx::Error::Database(Box::new(Failed { code: code.extended_code, message }))
        }
        other => sqlx::Error::Decode(Box::new(other)),
    }
}

/// An error of SQLite's.
#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {message}")]
struct Failed {
    /// The extended code.
    code: i32,
    message: String,
}

impl DatabaseError for Failed {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn StdError + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn StdError + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        // Nobody asks for others.
        match self.code {
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE => {
                ErrorKind::UniqueViolation
            }
            _ => ErrorKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bulk::{Table, int, text};
    use super::*;
    use crate::error::database::{Failure, failure};

    type Thing = (&'static str, i64);

    static THINGS: Table<Thing> = Table {
        name: "things",
        fixed: &[text("id", |thing| thing.0.into()), int("n", |thing| thing.1.into())],
        changing: &[],
        on_conflict: None,
        is_sealed: false,
    };
    static NUMBERS: Lookup =
        Lookup { name: "things", key: "id", columns: &[("n", Kind::Int)], lock: false };

    #[test]
    fn what_fails_is_told_as_other_connections_tell_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("a%20b.db").display());
        let embedded = Embedded::open(&url).expect("a database");
        assert!(folder.path().join("a b.db").exists(), "its path is read as sqlx reads it");
        embedded.run("CREATE TABLE things (id TEXT PRIMARY KEY, n)").expect("a table");
        let write = |thing: Thing| embedded.write((&THINGS, None), &[THINGS.row(&thing)]);
        assert_eq!(write(("a", 1)).expect("written"), 1);
        let twice = write(("a", 2)).expect_err("it is there");
        assert!(
            twice.as_database_error().is_some_and(DatabaseError::is_unique_violation),
            "{twice}"
        );
        let read = || embedded.select(&NUMBERS, &["a".to_owned()]);
        assert_eq!(read().expect("a row")[0][1], Cell::Int(Some(1)));
        embedded.run("UPDATE things SET n = 'one'").expect("changed");
        let odd = read().expect_err("a text is no number");
        assert_eq!(failure(&odd), Failure::Statement, "{odd}");

        let other = Embedded::open(&url).expect("another one");
        other.run("PRAGMA busy_timeout = 0").expect("it does not wait");
        embedded.run("BEGIN IMMEDIATE").expect("begun");
        let busy = other.run("BEGIN IMMEDIATE").expect_err("somebody writes");
        assert_eq!(failure(&busy), Failure::Passing, "{busy}");
    }
}
