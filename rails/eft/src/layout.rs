//! The records of a file that leaves, field by field, as Standard 005 lays them out.

use crate::entries::Entry;
use crate::record::{LENGTH, number, text};
use crate::settings::{Settings, Sundry};

/// What distinguishes a file from others, as each of its records says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The file creation number.
    pub number: u64,
    /// `0YYDDD`: when it was made.
    pub date: String,
    /// `0YYDDD`: when recipients shall have the money.
    pub value_date: String,
}

/// What the trailer says of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Credits: payments or records, as the bank counts them.
    pub count: u64,
    /// Cents.
    pub credit: u64,
}

/// Characters in front of what a record says: its type, its place in the file, whose file it is.
fn common(kind: char, settings: &Settings, head: &Head, place: u64) -> String {
    [
        &kind.to_string(),
        &number(place, 9),
        &text(&settings.originator_id, 10),
        &*number(head.number, 4),
    ]
    .concat()
}

fn padded(record: &str) -> String {
    format!("{record:<LENGTH$}")
}

/// Record A, the first one.
#[must_use]
pub fn header(settings: &Settings, head: &Head) -> String {
    padded(
        &[
            &common('A', settings, head, 1),
            &head.date,
            &settings.data_centre,
            // Reserved for what customer and bank agree on.
            &text("", 20),
            &*text(&settings.currency, 3),
        ]
        .concat(),
    )
}

/// Record C: up to six payments.
#[must_use]
pub fn credits(settings: &Settings, head: &Head, place: u64, segments: &[String]) -> String {
    padded(&[common('C', settings, head, place), segments.concat()].concat())
}

/// The segment of a payment. Its number is among all that the route has sent.
#[must_use]
pub fn segment(settings: &Settings, head: &Head, entry: &Entry, entry_number: u64) -> String {
    let written = |text: &str| match settings.has_capitals {
        true => text.to_ascii_uppercase(),
        false => text.to_owned(),
    };
    let sundry = match settings.sundry {
        Sundry::Blank => String::new(),
        Sundry::Narration => written(&entry.narration),
        Sundry::Entry => number(entry_number, 12),
    };
    [
        &settings.transaction_code,
        &number(entry.amount, 10),
        &head.value_date,
        &entry.routing,
        &text(&entry.account, 12),
        // The trace number of the item, which the bank gives it.
        &number(0, 22),
        // The type of a payment that is returned.
        &number(0, 3),
        &text(&written(&settings.short_name), 15),
        &text(&written(&entry.name), 30),
        &text(&written(&settings.long_name), 30),
        &text(&settings.originator_id, 10),
        &text(&entry.reference, 19),
        &settings.returns_institution,
        &text(&settings.returns_account, 12),
        &text(&sundry, 15),
        // The trace number of what is returned.
        &text("", 22),
        // The settlement code, which originator and bank agree on.
        &text("", 2),
        // What is wrong in an item that is rejected.
        &*number(0, 11),
    ]
    .concat()
}

/// Record Z, the last one.
#[must_use]
pub fn trailer(settings: &Settings, head: &Head, place: u64, totals: &Totals) -> String {
    padded(
        &[
            &common('Z', settings, head, place),
            // Debits.
            &number(0, 14),
            &number(0, 8),
            &number(totals.credit, 14),
            &number(totals.count, 8),
            // Reversals of credits and of debits.
            &number(0, 14),
            &number(0, 8),
            &number(0, 14),
            &*number(0, 8),
        ]
        .concat(),
    )
}
