//! What a file of the bank's says: a report, or payments that came back.

use railhead_rail::types::Notice;
use railhead_rail::wording::plain;
use railhead_rail::{bank_files, file_gateway};

use crate::incoming::{self, Place};
use crate::settings;
use crate::{reports, returns};

/// The longest name of a file that is told.
const NAME_MAX: usize = 80;

/// Reads a file that was fetched: see [`bank_files::records`].
///
/// # Errors
/// It is neither kind of file, its totals are wrong, nothing in it can be understood, or the
/// setting is missing that says which payments are ours.
pub fn read(feed: &str, name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    file_gateway::check_readable(feed, content)?;
    if content.trim_ascii_start().starts_with(b"{") {
        return reports::read(content);
    }
    if content.starts_with(b"A") || content.starts_with(b"$$") {
        return returned(name, content);
    }
    Err("it is neither a report nor a CPA-005 file".to_owned())
}

fn returned(name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    let items = incoming::parse(content)?;
    let originator_id = settings::originator_id()?;
    let name = plain(name, NAME_MAX);
    bank_files::records(
        &items,
        |item| returns::news(item, &originator_id),
        |item| unread(item.place, &name),
    )
}

/// A part of a file that could not be read, in words that the case about it shows.
fn unread(place: Place, name: &str) -> String {
    let what = match place.segment {
        Some(_) => "a payment that could not be read",
        None => "a notice of change, which is not read",
    };
    format!("{what}, {place} of {name}")
}
