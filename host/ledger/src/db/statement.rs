//! Putting statements together, piece by piece into one text: a batch has one that is long, and its
//! pieces by themselves would be hundreds.

use std::fmt::Write as _;

use super::cell::Kind;

/// Adds these pieces.
pub(super) fn add(sql: &mut String, pieces: &[&str]) {
    sql.extend(pieces.iter().copied());
}

/// What stands before an element of a list.
pub(super) fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { ", " }
}

/// Adds the names of columns, as a list.
pub(super) fn add_names(sql: &mut String, columns: &[(&'static str, Kind)]) {
    for (index, (name, _)) in columns.iter().enumerate() {
        add(sql, &[comma(index), name]);
    }
}

/// Adds a number.
pub(super) fn add_number(sql: &mut String, number: usize) {
    // Writing to a text does not fail.
    let _ = write!(sql, "{number}");
}

/// Adds PostgreSQL's parameter of this number.
pub(super) fn add_parameter(sql: &mut String, number: usize) {
    sql.push('$');
    add_number(sql, number);
}
