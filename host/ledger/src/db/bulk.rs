//! Many rows in one statement, in both dialects.
//!
//! A feature describes its tables once as [`Table`] and [`Update`]; the statement follows from
//! the description. PostgreSQL takes a column as an array (`unnest`), SQLite takes all rows as
//! one JSON text (`json_each`): either way one prepared statement serves any number of rows.

use std::fmt::Write as _;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TEXT.
    Text,
    /// BIGINT.
    Int,
}

/// A column's name and kind.
pub type Column = (&'static str, Kind);

/// A table that rows are inserted into.
#[derive(Debug)]
pub struct Table {
    /// The table's name in the database.
    pub name: &'static str,
    /// Its columns, in the order of a row's cells.
    pub columns: &'static [Column],
    /// What follows `ON CONFLICT`, or nothing where a conflict is an error.
    pub on_conflict: Option<&'static str>,
}

/// A change of some columns in rows named by key.
#[derive(Debug)]
pub struct Update {
    /// The name of the table that is changed.
    pub name: &'static str,
    /// Its key, the first cell of every row.
    pub key: &'static str,
    /// The columns that change, in the order of the other cells.
    pub columns: &'static [Column],
    /// A condition on the row as it is (`t`), without which it stays so.
    pub only_where: Option<&'static str>,
}

/// A read of rows named by key, in the order of the keys.
#[derive(Debug)]
pub struct Lookup {
    /// The name of the table that is read.
    pub name: &'static str,
    /// Its key, the first cell of every row.
    pub key: &'static str,
    /// The other columns, in the order of the other cells.
    pub columns: &'static [Column],
    /// Whether the rows are locked until the transaction ends.
    pub lock: bool,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// TEXT or NULL.
    Text(Option<String>),
    /// BIGINT or NULL.
    Int(Option<i64>),
}

/// A row's values in the order of its description.
pub type Row = Vec<Cell>;

/// A change of one row.
#[derive(Clone, Debug)]
pub enum RowChange {
    /// A new row.
    Insert(&'static Table, Row),
    /// New values, the key first.
    Update(&'static Update, Row),
    /// Gone, by key.
    Delete(&'static Update, String),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Cell {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl Cell {
    /// The text; empty for NULL and for a number.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Text(Some(text)) => text,
            _ => "",
        }
    }

    /// The text, if there is one.
    #[must_use]
    pub fn text_or_null(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_deref(),
            Self::Int(_) => None,
        }
    }

    /// The number; zero for NULL and for a text.
    #[must_use]
    pub fn int(&self) -> i64 {
        self.int_or_null().unwrap_or(0)
    }

    /// The number, if there is one.
    #[must_use]
    pub fn int_or_null(&self) -> Option<i64> {
        match self {
            Self::Int(number) => *number,
            Self::Text(_) => None,
        }
    }
}

/// What is to be written to one table.
#[derive(Clone, Copy, Debug)]
pub enum Write<'a> {
    /// New rows.
    Insert(&'a Table, &'a [Row]),
    /// New values, the keys first.
    Update(&'a Update, &'a [Row]),
    /// Rows to be gone, by key.
    Delete(&'a Update, &'a [String]),
}

impl Write<'_> {
    /// The name of the table that is written.
    #[must_use]
    pub fn table(&self) -> &'static str {
        match self {
            Self::Insert(table, _) => table.name,
            Self::Update(update, _) | Self::Delete(update, _) => update.name,
        }
    }

    /// How many rows are meant.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Insert(_, rows) | Self::Update(_, rows) => rows.len(),
            Self::Delete(_, keys) => keys.len(),
        }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statement; PostgreSQL's parameters are numbered from `first`.
    #[must_use]
    pub fn statement(&self, first: usize) -> Dialects {
        match self {
            Self::Insert(table, _) => table.insert(first),
            Self::Update(update, _) => update.update(first),
            Self::Delete(update, _) => update.delete(first),
        }
    }

    /// The kinds of PostgreSQL's parameters, a column each.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let of = |columns: &[Column]| columns.iter().map(|(_, kind)| *kind).collect::<Vec<_>>();
        match self {
            Self::Insert(table, _) => of(table.columns),
            Self::Update(update, _) => [vec![Kind::Text], of(update.columns)].concat(),
            Self::Delete(..) => vec![Kind::Text],
        }
    }
}

/// All of these in one PostgreSQL statement, which answers how many rows each wrote. None sees
/// what another writes.
#[must_use]
pub fn together(writes: &[Write<'_>]) -> String {
    let (mut parts, mut counts, mut first) = (Vec::new(), Vec::new(), 1);
    for (index, write) in writes.iter().enumerate() {
        parts.push(format!("w{index} AS ({} RETURNING 1)", write.statement(first).postgres));
        counts.push(format!("(SELECT COUNT(*) FROM w{index})"));
        first += write.kinds().len();
    }
    format!("WITH {} SELECT {}", parts.join(", "), counts.join(", "))
}

/// A statement in each dialect.
#[derive(Debug, PartialEq, Eq)]
pub struct Dialects {
    /// For PostgreSQL.
    pub postgres: String,
    /// For SQLite.
    pub sqlite: String,
}

impl Table {
    /// `INSERT` of any number of rows; PostgreSQL's parameters are numbered from `first`.
    #[must_use]
    pub fn insert(&self, first: usize) -> Dialects {
        let names = names(self.columns.iter());
        let conflict =
            self.on_conflict.map(|action| format!(" ON CONFLICT {action}")).unwrap_or_default();
        let head = format!("INSERT INTO {} ({names}) SELECT", self.name);
        Dialects {
            postgres: format!("{head} * FROM {}{conflict}", unnest(self.columns.iter(), first)),
            // Without a WHERE, SQLite would read ON CONFLICT as a join's ON.
            sqlite: format!(
                "{head} {} FROM json_each(?1) WHERE true{conflict}",
                extracts(self.columns.len())
            ),
        }
    }
}

impl Update {
    /// `UPDATE` of any number of rows, each with its own values; parameters from `first`.
    #[must_use]
    pub fn update(&self, first: usize) -> Dialects {
        let key = (self.key, Kind::Text);
        let all = || std::iter::once(&key).chain(self.columns);
        let mut sets = String::new();
        for (name, _) in self.columns {
            let comma = if sets.is_empty() { "" } else { ", " };
            let _ = write!(sets, "{comma}{name} = u.{name}");
        }
        let head = format!("UPDATE {} AS t SET {sets} FROM", self.name);
        let names = names(all());
        let condition = self.only_where.map(|is| format!(" AND {is}")).unwrap_or_default();
        let tail = format!("WHERE t.{0} = u.{0}{condition}", self.key);
        let mut columns = String::new();
        for (index, (name, _)) in all().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(columns, "{comma}value ->> {index} AS {name}");
        }
        Dialects {
            postgres: format!("{head} {} AS u({names}) {tail}", unnest(all(), first)),
            sqlite: format!("{head} (SELECT {columns} FROM json_each(?1)) AS u {tail}"),
        }
    }

    /// `DELETE` of the rows with these keys; parameters from `first`.
    #[must_use]
    pub fn delete(&self, first: usize) -> Dialects {
        let head = format!("DELETE FROM {} WHERE {}", self.name, self.key);
        Dialects {
            postgres: format!("{head} = ANY(${first}::text[])"),
            sqlite: format!("{head} IN (SELECT value FROM json_each(?1))"),
        }
    }
}

impl Lookup {
    /// `SELECT` of the rows with these keys, locked in the order of the keys where asked: every
    /// host locks in that order, so they cannot wait for one another in a circle.
    #[must_use]
    pub fn select(&self) -> Dialects {
        let key = (self.key, Kind::Text);
        let names = names(std::iter::once(&key).chain(self.columns));
        let head = format!("SELECT {names} FROM {} WHERE {}", self.name, self.key);
        let lock = if self.lock { " FOR NO KEY UPDATE" } else { "" };
        Dialects {
            postgres: format!("{head} = ANY($1) ORDER BY {}{lock}", self.key),
            sqlite: format!("{head} IN (SELECT value FROM json_each(?1)) ORDER BY {}", self.key),
        }
    }
}

fn names<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    columns.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn unnest<'a>(columns: impl Iterator<Item = &'a Column>, first: usize) -> String {
    let arrays: Vec<String> = columns
        .enumerate()
        .map(|(index, (_, kind))| match kind {
            Kind::Text => format!("${}::text[]", first + index),
            Kind::Int => format!("${}::bigint[]", first + index),
        })
        .collect();
    format!("unnest({})", arrays.join(", "))
}

fn extracts(columns: usize) -> String {
    (0..columns).map(|index| format!("value ->> {index}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_follow_from_the_description() {
        let table = Table {
            name: "t",
            columns: &[("id", Kind::Text), ("n", Kind::Int)],
            on_conflict: Some("(id) DO NOTHING"),
        };
        let update = Update {
            name: "t",
            key: "id",
            columns: &[("n", Kind::Int)],
            only_where: Some("t.n IS NULL"),
        };
        let lookup = Lookup { name: "t", key: "id", columns: &[("n", Kind::Int)], lock: true };
        insta::assert_debug_snapshot!([
            table.insert(1),
            update.update(1),
            update.delete(1),
            lookup.select()
        ]);
        let writes =
            [Write::Insert(&table, &[]), Write::Update(&update, &[]), Write::Delete(&update, &[])];
        insta::assert_snapshot!(together(&writes));
    }
}
