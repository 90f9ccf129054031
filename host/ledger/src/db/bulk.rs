//! Many rows in one statement, in both dialects.
//!
//! A feature describes its tables once: each column's name stands beside how its value is taken
//! from the struct that a row stands for, so that the two cannot fall apart. Statements follow
//! from the description. PostgreSQL takes a column as an array (`unnest`), so that one prepared
//! statement serves any number of rows; SQLite takes a row's cells, a statement for each row.
//!
//! SQLite's inserts and updates say `OR FAIL`: a batch that fails is taken back as a whole. Otherwise
//! a statement that may fail half way would copy every page that it changes, to be able to take back
//! itself alone.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::clock::Moment;
use crate::money::Minor;

use super::cell::{Cell, Kind, Row};
use super::statement::{add, add_names, add_number, add_parameter, comma};

/// A text for a column, or NULL.
pub struct Text<'a>(Option<Cow<'a, str>>);

/// A number for a column, or NULL.
pub struct Int(Option<i64>);

/// A column of a table whose rows stand for values of `T`.
pub struct Column<T: 'static> {
    /// Its name.
    pub name: &'static str,
    take: Take<T>,
}

enum Take<T: 'static> {
    Text(fn(&T) -> Text<'_>),
    Int(fn(&T) -> Int),
}

/// A TEXT column.
pub const fn text<T>(name: &'static str, take: fn(&T) -> Text<'_>) -> Column<T> {
    Column { name, take: Take::Text(take) }
}

/// A BIGINT column.
pub const fn int<T>(name: &'static str, take: fn(&T) -> Int) -> Column<T> {
    Column { name, take: Take::Int(take) }
}

impl<T> Column<T> {
    const fn kind(&self) -> Kind {
        match self.take {
            Take::Text(_) => Kind::Text,
            Take::Int(_) => Kind::Int,
        }
    }

    fn cell(&self, value: &T) -> Cell {
        match self.take {
            Take::Text(take) => Cell::text(take(value).0.map(Cow::into_owned)),
            Take::Int(take) => Cell::Int(take(value).0),
        }
    }
}

/// A table that rows are inserted into.
pub struct Table<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Columns that are written once.
    pub fixed: &'static [Column<T>],
    /// Columns that change later.
    pub changing: &'static [Column<T>],
    /// What follows `ON CONFLICT`, or nothing where a conflict is an error.
    pub on_conflict: Option<&'static str>,
    /// Whether the fixed columns are covered by the seal of the batch that writes the row. Such
    /// a table has a column `batch_id`.
    pub is_sealed: bool,
}

/// A change of some columns in rows named by key.
pub struct Update<T: 'static> {
    /// The table.
    pub name: &'static str,
    /// Its key.
    pub key: Column<T>,
    /// The columns that change.
    pub columns: &'static [Column<T>],
    /// A condition on the row as it is (`t`), without which it stays so.
    pub only_where: Option<&'static str>,
}

/// Rows to be deleted, by key.
#[derive(Debug)]
pub struct Removal {
    /// The table.
    pub name: &'static str,
    /// The column that names the rows.
    pub key: &'static str,
}

/// A table or an update without its type: what statements are made from.
pub trait Shape: Send + Sync {
    /// The table.
    fn table(&self) -> &'static str;
    /// Names and kinds in the order of a row's cells.
    fn columns(&self) -> Vec<(&'static str, Kind)>;
    /// How many of the columns are fixed, from the first.
    fn fixed(&self) -> usize;
    /// Whether the seal of the batch covers the fixed columns.
    fn is_sealed(&self) -> bool;
    /// Whether its rows are counted, because there may be fewer than meant without an error.
    fn is_counted(&self) -> bool;
    /// Adds PostgreSQL's statement for any number of rows: an array for each column, numbered from
    /// `first`; in a sealed table then the id of the batch, once.
    fn postgres(&self, first: usize, sql: &mut String);
    /// SQLite's statement for one row: its cells in order.
    fn sqlite(&self) -> String;
}

/// Renders what a new row stands for, for hooks: it is not stored, and made only when asked for.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// A change of one row.
#[derive(Clone)]
pub enum RowChange {
    /// A new row, and how hooks have it rendered where its cells are not enough.
    Insert(&'static dyn Shape, Row, Option<Render>),
    /// New values, the key first.
    Update(&'static dyn Shape, Row),
    /// Gone, by key.
    Delete(&'static Removal, String),
}

impl std::fmt::Debug for RowChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Insert(shape, row, _) => write!(f, "insert into {}: {row:?}", shape.table()),
            Self::Update(shape, row) => write!(f, "update {}: {row:?}", shape.table()),
            Self::Delete(removal, key) => write!(f, "delete from {}: {key}", removal.name),
        }
    }
}

/// What is to be written to one table.
#[derive(Clone, Copy)]
pub enum Write<'a> {
    /// New rows, or new values with the keys first.
    Rows(&'a dyn Shape, &'a [Row]),
    /// New rows of a sealed table, and the batch whose seal covers them.
    Sealed(&'a dyn Shape, &'a [Row], i64),
    /// Rows to be gone, by key.
    Delete(&'a Removal, &'a [String]),
}

impl<T> Table<T> {
    /// A new row, as it stands for this value.
    #[must_use]
    pub fn row(&self, value: &T) -> Row {
        self.fixed.iter().chain(self.changing).map(|column| column.cell(value)).collect()
    }

    /// The change that inserts this value.
    #[must_use]
    pub fn insert(&'static self, value: &T) -> RowChange {
        RowChange::Insert(self, self.row(value), None)
    }

    /// The same, rendered like this for hooks.
    #[must_use]
    pub fn insert_rendered(&'static self, value: &T, render: Render) -> RowChange {
        RowChange::Insert(self, self.row(value), Some(render))
    }
}

impl<T: 'static> Table<T> {
    /// Adds an insert of some rows, in the words of a dialect.
    fn insert_of(&self, sql: &mut String, verb: &str, rows: impl FnOnce(&mut String)) {
        add(sql, &[verb, " INTO ", self.name, " ("]);
        add_names(sql, &self.columns());
        sql.push_str(") ");
        rows(sql);
        if let Some(action) = self.on_conflict {
            add(sql, &[" ON CONFLICT ", action]);
        }
    }
}

impl<T> Update<T> {
    /// Adds an update of rows, each with its own values (`u`), in the words of a dialect.
    fn update_from(&self, sql: &mut String, verb: &str, values: impl FnOnce(&mut String)) {
        add(sql, &[verb, " ", self.name, " AS t SET "]);
        for (index, Column { name, .. }) in self.columns.iter().enumerate() {
            add(sql, &[comma(index), name, " = u.", name]);
        }
        sql.push_str(" FROM ");
        values(sql);
        add(sql, &[" WHERE t.", self.key.name, " = u.", self.key.name]);
        if let Some(condition) = self.only_where {
            add(sql, &[" AND ", condition]);
        }
    }

    /// The change that gives a row the values that this one has.
    #[must_use]
    pub fn change(&'static self, value: &T) -> RowChange {
        RowChange::Update(self, self.row(value))
    }

    /// The key and the new values.
    #[must_use]
    pub fn row(&self, value: &T) -> Row {
        let columns = std::iter::once(&self.key).chain(self.columns);
        columns.map(|column| column.cell(value)).collect()
    }
}

impl Removal {
    /// The change that deletes what this key names.
    #[must_use]
    pub fn of(&'static self, key: impl Into<String>) -> RowChange {
        RowChange::Delete(self, key.into())
    }

    fn postgres(&self, first: usize, sql: &mut String) {
        add(sql, &["DELETE FROM ", self.name, " WHERE ", self.key, " = ANY("]);
        add_parameter(sql, first);
        sql.push(')');
    }

    /// SQLite's statement, which takes the keys as an array in JSON.
    pub(super) fn sqlite(&self) -> String {
        format!("DELETE FROM {} WHERE {} IN (SELECT value FROM json_each(?1))", self.name, self.key)
    }
}

/// The column that names the batch that wrote a row of a sealed table.
pub const BATCH_ID: (&str, Kind) = ("batch_id", Kind::Int);

impl<T: 'static> Shape for Table<T> {
    fn table(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> Vec<(&'static str, Kind)> {
        let own = self.fixed.iter().chain(self.changing);
        let own = own.map(|column| (column.name, column.kind()));
        own.chain(self.is_sealed.then_some(BATCH_ID)).collect()
    }

    fn fixed(&self) -> usize {
        self.fixed.len()
    }

    fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    fn is_counted(&self) -> bool {
        self.on_conflict.is_some()
    }

    fn postgres(&self, first: usize, sql: &mut String) {
        let own = self.fixed.len() + self.changing.len();
        self.insert_of(sql, "INSERT", |sql| {
            add_unnested(sql, first, own);
            if self.is_sealed {
                sql.push_str(", ");
                add_parameter(sql, first + own);
            }
        });
    }

    fn sqlite(&self) -> String {
        let mut sql = String::new();
        self.insert_of(&mut sql, "INSERT OR FAIL", |sql| add_values(sql, self.columns().len()));
        sql
    }
}

impl<T: 'static> Shape for Update<T> {
    fn table(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> Vec<(&'static str, Kind)> {
        let all = std::iter::once(&self.key).chain(self.columns);
        all.map(|column| (column.name, column.kind())).collect()
    }

    fn fixed(&self) -> usize {
        0
    }

    fn is_sealed(&self) -> bool {
        false
    }

    fn is_counted(&self) -> bool {
        true
    }

    fn postgres(&self, first: usize, sql: &mut String) {
        let columns = self.columns();
        self.update_from(sql, "UPDATE", |sql| {
            sql.push('(');
            add_unnested(sql, first, columns.len());
            sql.push_str(") AS u(");
            add_names(sql, &columns);
            sql.push(')');
        });
    }

    fn sqlite(&self) -> String {
        let (mut sql, columns) = ("WITH u(".to_owned(), self.columns());
        add_names(&mut sql, &columns);
        sql.push_str(") AS (");
        add_values(&mut sql, columns.len());
        sql.push_str(") ");
        self.update_from(&mut sql, "UPDATE OR FAIL", |sql| sql.push('u'));
        sql
    }
}

impl Write<'_> {
    /// The table.
    #[must_use]
    pub fn table(&self) -> &'static str {
        match self {
            Self::Rows(shape, _) | Self::Sealed(shape, ..) => shape.table(),
            Self::Delete(removal, _) => removal.name,
        }
    }

    /// Whether this and the other write to different rows for certain: those of another table, or
    /// with other keys.
    #[must_use]
    pub fn is_apart_from(&self, other: &Self) -> bool {
        if self.table() != other.table() {
            return true;
        }
        let keys: HashSet<&str> = self.keys().collect();
        self.key() == other.key() && other.keys().all(|key| !keys.contains(key))
    }

    /// The column that names the rows: the first one.
    fn key(&self) -> &'static str {
        match self {
            Self::Rows(shape, _) | Self::Sealed(shape, ..) => {
                shape.columns().first().map_or("", |(name, _)| *name)
            }
            Self::Delete(removal, _) => removal.key,
        }
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        let (rows, keys) = match self {
            Self::Rows(_, rows) | Self::Sealed(_, rows, _) => (*rows, &[][..]),
            Self::Delete(_, keys) => (&[][..], *keys),
        };
        let of_rows = rows.iter().map(|row| row.first().and_then(Cell::as_text).unwrap_or(""));
        of_rows.chain(keys.iter().map(String::as_str))
    }

    /// How many rows are meant.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(_, rows) | Self::Sealed(_, rows, _) => rows.len(),
            Self::Delete(_, keys) => keys.len(),
        }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its rows are counted, because there may be fewer than meant without an error.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Rows(shape, _) | Self::Sealed(shape, ..) => shape.is_counted(),
            Self::Delete(..) => true,
        }
    }

    /// Adds PostgreSQL's statement, its parameters numbered from `first`; answers how many it has.
    fn postgres(&self, first: usize, sql: &mut String) -> usize {
        match self {
            Self::Rows(shape, _) | Self::Sealed(shape, ..) => {
                shape.postgres(first, sql);
                shape.columns().len()
            }
            Self::Delete(removal, _) => {
                removal.postgres(first, sql);
                1
            }
        }
    }
}

/// All of these in one PostgreSQL statement, which answers how many rows those wrote that are
/// counted. It carries them out first, in order, and then the others, the last one first. None sees
/// what another writes.
#[must_use]
pub fn together(writes: &[Write<'_>]) -> String {
    let (mut sql, mut first) = ("WITH ".to_owned(), 1);
    for (index, write) in writes.iter().enumerate() {
        add(&mut sql, &[comma(index), "w"]);
        add_number(&mut sql, index);
        sql.push_str(" AS (");
        first += write.postgres(first, &mut sql);
        sql.push_str(if write.is_counted() { " RETURNING 1)" } else { ")" });
    }
    sql.push_str(" SELECT ");
    let counted = writes.iter().enumerate().filter(|(_, write)| write.is_counted());
    for (place, (index, _)) in counted.enumerate() {
        add(&mut sql, &[comma(place), "(SELECT COUNT(*) FROM w"]);
        add_number(&mut sql, index);
        sql.push(')');
    }
    sql
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Some(Cow::Borrowed(text)))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Some(Cow::Owned(text)))
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Self(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<Option<&'a str>> for Text<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self(text.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a Option<String>> for Text<'a> {
    fn from(text: &'a Option<String>) -> Self {
        Self(text.as_deref().map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Text<'_> {
    fn from(text: Option<String>) -> Self {
        Self(text.map(Cow::Owned))
    }
}

impl From<i64> for Int {
    fn from(number: i64) -> Self {
        Self(Some(number))
    }
}

impl From<Option<i64>> for Int {
    fn from(number: Option<i64>) -> Self {
        Self(number)
    }
}

/// A flag: 0 or 1.
impl From<bool> for Int {
    fn from(flag: bool) -> Self {
        Self(Some(flag.into()))
    }
}

impl From<Moment> for Int {
    fn from(at: Moment) -> Self {
        Self(Some(at.micros()))
    }
}

impl From<Option<Moment>> for Int {
    fn from(at: Option<Moment>) -> Self {
        Self(at.map(Moment::micros))
    }
}

impl From<Minor> for Int {
    fn from(amount: Minor) -> Self {
        Self(Some(amount.units()))
    }
}

/// Adds a query for rows that are given as an array for each column; what the arrays hold is told
/// with them. In the list of what is selected, arrays are taken apart side by side; in `FROM`, each
/// would be laid down in a store of its own first, which costs more than writing a few rows.
fn add_unnested(sql: &mut String, first: usize, columns: usize) {
    sql.push_str("SELECT ");
    for index in 0..columns {
        add(sql, &[comma(index), "unnest("]);
        add_parameter(sql, first + index);
        sql.push(')');
    }
}

/// Adds a place for each cell of a row.
fn add_values(sql: &mut String, columns: usize) {
    sql.push_str("VALUES (");
    (0..columns).for_each(|index| add(sql, &[comma(index), "?"]));
    sql.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing {
        id: String,
        count: Option<i64>,
    }

    static THINGS: Table<Thing> = Table {
        name: "things",
        fixed: &[text("id", |thing| (&thing.id).into())],
        changing: &[int("n", |thing| thing.count.into())],
        on_conflict: Some("(id) DO NOTHING"),
        is_sealed: true,
    };
    static COUNTS: Update<Thing> = Update {
        name: "things",
        key: text("id", |thing| (&thing.id).into()),
        columns: &[int("n", |thing| thing.count.into())],
        only_where: Some("t.n IS NULL"),
    };
    static GONE: Removal = Removal { name: "things", key: "id" };
    static LOG: Table<Thing> = Table {
        name: "log",
        fixed: &[text("id", |thing| (&thing.id).into())],
        changing: &[],
        on_conflict: None,
        is_sealed: false,
    };

    #[test]
    fn statements_follow_from_the_description() {
        let of = |render: &dyn Fn(&mut String)| {
            let mut sql = String::new();
            render(&mut sql);
            sql
        };
        insta::assert_debug_snapshot!([
            [of(&|sql| THINGS.postgres(1, sql)), THINGS.sqlite()],
            [of(&|sql| COUNTS.postgres(1, sql)), COUNTS.sqlite()],
            [of(&|sql| GONE.postgres(1, sql)), GONE.sqlite()],
        ]);
        let (log, things) = (Write::Rows(&LOG, &[]), Write::Rows(&THINGS, &[]));
        let writes = [things, log, Write::Rows(&COUNTS, &[]), Write::Delete(&GONE, &[])];
        insta::assert_snapshot!(together(&writes));
        assert_eq!(together(&[log]), "WITH w0 AS (INSERT INTO log (id) SELECT unnest($1)) SELECT ");
    }

    /// Parts of one statement do not see each other.
    #[test]
    fn writes_go_together_unless_they_may_meet_in_a_row() {
        let row = |id: &str| THINGS.row(&Thing { id: id.into(), count: None });
        let (a, b) = ([row("a")], [row("b")]);
        let (made, gone) = (Write::Rows(&THINGS, &a), ["a".to_owned()]);
        let changed = |rows| Write::Rows(&COUNTS, rows);
        assert!(made.is_apart_from(&changed(&b)) && !made.is_apart_from(&changed(&a)));
        let deleted = Write::Delete(&GONE, &gone);
        assert!(changed(&b).is_apart_from(&deleted) && !changed(&a).is_apart_from(&deleted));
        static OTHERS: Removal = Removal { name: "things", key: "n" };
        assert!(!changed(&b).is_apart_from(&Write::Delete(&OTHERS, &gone)), "named otherwise");
        static ELSEWHERE: Removal = Removal { name: "others", key: "id" };
        assert!(changed(&a).is_apart_from(&Write::Delete(&ELSEWHERE, &gone)), "another table");
    }

    #[test]
    fn a_row_stands_for_its_value_and_holds_what_both_engines_take() {
        let thing = Thing { id: "a\0b".into(), count: Some(1) };
        let id = Cell::Text(Some("a\u{fffd}b".into()));
        assert_eq!(*THINGS.row(&thing), [id.clone(), Cell::Int(Some(1))]);
        assert_eq!(*COUNTS.row(&Thing { count: None, ..thing }), [id, Cell::Int(None)]);
    }
}
