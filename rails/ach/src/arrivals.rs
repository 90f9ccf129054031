//! What a file of the bank's says: a report, or entries that came back.

use railhead_rail::host;
use railhead_rail::types::{News, Notice, Subject};

use crate::gateway::{FEED, NAME_MAX, plain};
use crate::incoming;
use crate::reports;
use crate::returns::{self, Passed};
use crate::settings::Settings;

/// Reads a file that was fetched. What in it is about something else is passed over with a line in
/// the log. What cannot be understood hides nothing else: it becomes news about a name that nobody
/// has, so that a person looks.
///
/// # Errors
/// It is neither kind of file, its totals are wrong, nothing in it can be understood, or a setting
/// is missing that says which entries are ours.
pub fn read(feed: &str, name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    if feed != FEED {
        return Err(format!("there is no feed {feed}"));
    }
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
    let (mut notices, mut unreadable, mut is_understood) = (Vec::new(), Vec::new(), false);
    for item in &items {
        match returns::news(item, &settings) {
            Ok(notice) => {
                notices.push(notice);
                is_understood = true;
            }
            Err(Passed::Elsewhere(why)) => host::warn(&why),
            Err(Passed::Unreadable(why)) => {
                host::warn(&why);
                notices.push(unread(item.entry.line, name));
                unreadable.push(why);
            }
        }
    }
    match unreadable.into_iter().next() {
        Some(why) if !is_understood => Err(why),
        _ => Ok(notices),
    }
}

/// A record of a file that could not be read, in words that the case about it shows.
fn unread(line: usize, name: &str) -> Notice {
    let name = plain(name, NAME_MAX);
    let what = format!("a record that could not be read, line {line} of {name}");
    Notice { about: Subject::NetworkId(what), news: News::Ask }
}
