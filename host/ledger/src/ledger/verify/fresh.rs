//! What is to be looked at: everything, or what came after an anchor.
//!
//! Whoever looks at what came later must not read what came before. Every sealed row names its
//! batch: PostgreSQL has an index of blocks by it, and in SQLite, where one host at a time writes
//! and writers are numbered in turn, rows lie in the order of their batches.

use std::collections::HashMap;

use sqlx::{AnyConnection, AssertSqlSafe};

use crate::clock::Moment;
use crate::db::Engine;
use crate::db::bulk::{BATCH_ID, Shape};

use super::super::seal::{first_of, writer_of};
use super::Anchor;
use super::these::fill_in;

/// The batches that are to be looked at.
#[derive(Clone, Debug, Default)]
pub struct Fresh(Option<Later>);

/// What came after an anchor.
#[derive(Clone, Debug)]
struct Later {
    /// When the newest batch of the anchor was written.
    since: Moment,
    /// From batch to batch.
    ranges: Vec<(i64, i64)>,
    /// By table, the first row that may be of one of them, where rows lie in order.
    begins: HashMap<&'static str, i64>,
}

impl Fresh {
    /// Those that came after an anchor: of writers that have written since, and of all whose numbers
    /// are higher than any that it names. What says that it is of a batch from before the first
    /// writer is forged, and looked at as well.
    pub(super) async fn after(
        db: &mut AnyConnection,
        anchor: &Anchor,
    ) -> Result<Self, sqlx::Error> {
        let (mut ranges, mut since) = (Vec::new(), Moment::default());
        let mut begin = i64::MIN;
        for head in anchor.heads.keys() {
            let sql = "SELECT created_at FROM writer_batches WHERE id = $1";
            let at = sqlx::query_scalar(sql).bind(*head).fetch_optional(&mut *db).await?;
            since = since.max(Moment::from_micros(at.unwrap_or_default()));
            let range = (begin, first_of(writer_of(*head)) - 1);
            begin = *head + 1;
            let sql = "SELECT id FROM writer_batches WHERE id BETWEEN $1 AND $2 LIMIT 1";
            let query = sqlx::query_scalar::<_, i64>(sql).bind(range.0).bind(range.1);
            if range.0 == i64::MIN || query.fetch_optional(&mut *db).await?.is_some() {
                ranges.push(range);
            }
        }
        ranges.push((begin, i64::MAX));
        Ok(Self(Some(Later { since, ranges, begins: HashMap::new() })))
    }

    /// Finds out where rows of these batches begin in each table, on an engine that keeps rows in
    /// the order in which they were written.
    pub(super) async fn find_rows(
        &mut self,
        db: &mut AnyConnection,
        (engine, sealed): (Engine, &[&dyn Shape]),
    ) -> Result<(), sqlx::Error> {
        if engine != Engine::Sqlite || self.is_all() {
            return Ok(());
        }
        for table in sealed.iter().map(|shape| shape.table()) {
            let begin = self.first_row(db, table).await?;
            if let Some(later) = &mut self.0 {
                later.begins.insert(table, begin);
            }
        }
        Ok(())
    }

    /// The first row of a table that is of one of these batches, by halves.
    async fn first_row(&self, db: &mut AnyConnection, table: &str) -> Result<i64, sqlx::Error> {
        // Asked for both at once, SQLite reads every row.
        let sql = format!(
            "SELECT COALESCE((SELECT MIN(rowid) FROM {table}), 0), \
             COALESCE((SELECT MAX(rowid) FROM {table}), 0)"
        );
        let (mut from, last): (i64, i64) =
            sqlx::query_as(AssertSqlSafe(sql)).fetch_one(&mut *db).await?;
        let mut to = last + 1;
        let batch = BATCH_ID.0;
        let sql =
            format!("SELECT rowid, {batch} FROM {table} WHERE rowid >= $1 ORDER BY rowid LIMIT 1");
        while from < to {
            let middle = from + (to - from) / 2;
            let query = sqlx::query_as(AssertSqlSafe(sql.clone())).bind(middle);
            let next: Option<(i64, i64)> = query.fetch_optional(&mut *db).await?;
            match next {
                Some((row, batch)) if !self.contains(batch) => from = row + 1,
                _ => to = middle,
            }
        }
        Ok(from)
    }

    /// Whether a batch is among them.
    #[must_use]
    pub fn contains(&self, batch: i64) -> bool {
        let Some(Later { ranges, .. }) = &self.0 else { return true };
        ranges.iter().any(|(first, last)| (*first..=*last).contains(&batch))
    }

    /// When the anchor was taken, by the clocks of writers; nothing without one.
    #[must_use]
    pub fn since(&self) -> Option<Moment> {
        self.0.as_ref().map(|later| later.since)
    }

    /// Whether all are.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// The condition that a row of a sealed table, under a name, is of one of these batches.
    #[must_use]
    pub fn rows(&self, table: &str, name: &str) -> String {
        let Some(Later { begins, .. }) = &self.0 else { return "1 = 1".to_owned() };
        let of_these = self.batches(&format!("{name}.{}", BATCH_ID.0));
        match begins.get(table) {
            // Few, whatever else the query asks for: SQLite would read all in another order.
            Some(begin) => {
                format!("(likelihood({name}.rowid >= {begin}, 0.0001) AND {of_these})")
            }
            None => of_these,
        }
    }

    /// The condition that a column names one of these batches.
    pub(super) fn batches(&self, column: &str) -> String {
        let Some(Later { ranges, .. }) = &self.0 else { return "1 = 1".to_owned() };
        let ranges =
            ranges.iter().map(|(first, last)| format!("{column} BETWEEN {first} AND {last}"));
        format!("({})", ranges.collect::<Vec<_>>().join(" OR "))
    }

    /// A query with every `{fresh table name}` filled in.
    #[must_use]
    pub fn filled_in(&self, sql: &str) -> String {
        fill_in(sql, "{fresh ", |of| {
            let (table, name) = of.split_once(' ').unwrap_or((of, of));
            self.rows(table, name)
        })
    }
}
