//! Reading rows by key, in both dialects.

use super::bulk::names;
use super::cell::Kind;

/// A read of rows named by key, in the order of the keys.
#[derive(Debug)]
pub struct Lookup {
    /// The table.
    pub name: &'static str,
    /// Its key.
    pub key: &'static str,
    /// The other columns, with what they hold.
    pub columns: &'static [(&'static str, Kind)],
    /// Whether the rows are locked until the transaction ends.
    pub lock: bool,
}

impl Lookup {
    /// PostgreSQL's `SELECT` of the rows with the keys of a parameter, locked in the order of the
    /// keys where asked: every host locks in that order, so they cannot wait for one another in a
    /// circle.
    pub(super) fn postgres(&self, parameter: usize) -> String {
        let lock = if self.lock { " FOR NO KEY UPDATE" } else { "" };
        format!("{} = ANY(${parameter}) ORDER BY {}{lock}", self.head(), self.key)
    }

    /// SQLite's, which takes the keys as an array in JSON.
    pub(super) fn sqlite(&self) -> String {
        let key = self.key;
        format!("{} IN (SELECT value FROM json_each(?1)) ORDER BY {key}", self.head())
    }

    fn head(&self) -> String {
        format!("SELECT {} FROM {} WHERE {}", names(&self.all()), self.name, self.key)
    }

    /// The key and the other columns.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, Kind)> {
        std::iter::once((self.key, Kind::Text)).chain(self.columns.iter().copied()).collect()
    }

    fn count(&self, kind: Kind) -> usize {
        self.all().iter().filter(|(_, of)| *of == kind).count()
    }
}

/// Several look-ups in one PostgreSQL statement, carried out one after the other. A row begins with
/// the number of its look-up; then come its texts and its numbers, with NULLs where another look-up
/// has more of them.
#[derive(Debug)]
pub(super) struct CombinedLookup {
    /// The statement; its parameters are the keys of each look-up.
    pub(super) sql: String,
    /// Where the columns of each look-up are found, and what they hold.
    pub(super) columns: Vec<Vec<(usize, Kind)>>,
}

impl CombinedLookup {
    /// These look-ups, in this order.
    pub(super) fn of(lookups: &[&Lookup]) -> Self {
        let most = |kind| lookups.iter().map(|on| on.count(kind)).max().unwrap_or_default();
        let (texts, ints) = (most(Kind::Text), most(Kind::Int));
        let (mut parts, mut columns) = (Vec::new(), Vec::new());
        for (number, on) in lookups.iter().enumerate() {
            let mut selected = vec![format!("{number}::bigint")];
            selected.extend(vec!["NULL::text".to_owned(); texts]);
            selected.extend(vec!["NULL::bigint".to_owned(); ints]);
            let (mut text, mut int) = (1, 1 + texts);
            let mut own = Vec::new();
            for (name, kind) in on.all() {
                let next = match kind {
                    Kind::Text => &mut text,
                    Kind::Int => &mut int,
                };
                selected[*next] = format!("f.{name}");
                own.push((*next, kind));
                *next += 1;
            }
            let found = on.postgres(number + 1);
            parts.push(format!("SELECT {} FROM ({found}) AS f", selected.join(", ")));
            columns.push(own);
        }
        Self { sql: parts.join(" UNION ALL "), columns }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Cell, Named};
    use super::*;

    static KNOWN: Lookup =
        Lookup { name: "things", key: "id", columns: &[("n", Kind::Int)], lock: true };
    static NAMES: Lookup =
        Lookup { name: "names", key: "id", columns: &[("name", Kind::Text)], lock: false };

    #[test]
    fn statements_follow_from_the_description() {
        let CombinedLookup { sql, columns } = CombinedLookup::of(&[&KNOWN, &NAMES]);
        insta::assert_debug_snapshot!([KNOWN.sqlite(), sql]);
        let (text, int) = (Kind::Text, Kind::Int);
        assert_eq!(columns, [[(1, text), (3, int)], [(1, text), (2, text)]]);
    }

    #[test]
    fn what_is_not_there_is_an_error_and_never_another_value() {
        let (columns, cells) = (KNOWN.all(), [Cell::Text(Some("a".into())), Cell::Int(None)]);
        let row = Named::new(&columns, &cells);
        assert_eq!(row.text("id").expect("a text"), "a");
        assert_eq!(row.maybe_int("n").expect("a number or NULL"), None);
        assert!(row.int("n").is_err() && row.int("id").is_err() && row.text("other").is_err());
        assert!(Named::new(&columns, &cells[..1]).maybe_int("n").is_err(), "a short row");
    }
}
