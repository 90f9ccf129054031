//! What a file of the bank's says: a report, or entries that came back.

use railhead_rail::types::Notice;
use railhead_rail::wording::plain;
use railhead_rail::{bank_files, file_gateway};

use crate::incoming;
use crate::settings::Settings;
use crate::{reports, returns};

/// The longest name of a file that is told.
const NAME_MAX: usize = 80;

/// Reads a file that was fetched: see [`bank_files::records`].
///
/// # Errors
/// It is neither kind of file, its totals are wrong, nothing in it can be understood, or a
/// setting is missing that says which entries are ours.
pub fn read(feed: &str, name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    file_gateway::check_readable(feed, content)?;
    if content.trim_ascii_start().starts_with(b"{") {
        return reports::read(content);
    }
    if content.starts_with(b"101") {
        return entries(name, content);
    }
    Err("it is neither a report nor a NACHA file".to_owned())
}

fn entries(name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    let items = incoming::parse(content)?;
    let settings = Settings::read()?;
    let name = plain(name, NAME_MAX);
    bank_files::records(
        &items,
        |item| returns::news(item, &settings),
        |item| format!("a record that could not be read, line {} of {name}", item.entry.line),
    )
}
