//! Reading rows by key, in both dialects.

use super::cell::Kind;
use super::statement::{add, add_names, add_number, add_parameter};

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
    /// Adds PostgreSQL's `SELECT` of the rows with the keys of a parameter, locked in the order of
    /// the keys where asked: every host locks in that order, so they cannot wait for one another in
    /// a circle.
    fn postgres(&self, parameter: usize, sql: &mut String) {
        self.head(sql);
        sql.push_str(" = ANY(");
        add_parameter(sql, parameter);
        add(sql, &[") ORDER BY ", self.key, if self.lock { " FOR NO KEY UPDATE" } else { "" }]);
    }

    /// SQLite's, which takes the keys as an array in JSON.
    pub(super) fn sqlite(&self) -> String {
        let mut sql = String::new();
        self.head(&mut sql);
        add(&mut sql, &[" IN (SELECT value FROM json_each(?1)) ORDER BY ", self.key]);
        sql
    }

    fn head(&self, sql: &mut String) {
        sql.push_str("SELECT ");
        add_names(sql, &self.all());
        add(sql, &[" FROM ", self.name, " WHERE ", self.key]);
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
        let (mut sql, mut columns) = (String::new(), Vec::new());
        for (number, on) in lookups.iter().enumerate() {
            let all = on.all();
            sql.push_str(if number == 0 { "SELECT " } else { " UNION ALL SELECT " });
            add_number(&mut sql, number);
            sql.push_str("::bigint");
            for (kind, places, null) in
                [(Kind::Text, texts, ", NULL::text"), (Kind::Int, ints, ", NULL::bigint")]
            {
                let own = all.iter().filter(|(_, of)| *of == kind);
                own.clone().for_each(|(name, _)| add(&mut sql, &[", f.", name]));
                (own.count()..places).for_each(|_| sql.push_str(null));
            }
            sql.push_str(" FROM (");
            on.postgres(number + 1, &mut sql);
            sql.push_str(") AS f");
            columns.push(places_of(&all, 1 + texts));
        }
        Self { sql, columns }
    }
}

/// Where columns stand: texts from the second place on, numbers from `ints` on.
fn places_of(columns: &[(&str, Kind)], ints: usize) -> Vec<(usize, Kind)> {
    let (mut texts, mut ints) = (1.., ints..);
    let place = |(_, kind): &(&str, Kind)| {
        let place = match kind {
            Kind::Text => texts.next(),
            Kind::Int => ints.next(),
        };
        Some((place?, *kind))
    };
    columns.iter().filter_map(place).collect()
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
