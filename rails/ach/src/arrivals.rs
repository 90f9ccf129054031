//! What a file of the bank's says: a report, or entries that came back.

use railhead_rail::host;
use railhead_rail::types::Notice;

use crate::gateway::FEED;
use crate::incoming;
use crate::reports;
use crate::returns::{self, Passed};

/// Reads a file that was fetched. What in it is about something else, or cannot be understood, is
/// passed over with a line in the log, and hides nothing else.
///
/// # Errors
/// It is neither kind of file, its totals are wrong, or nothing in it can be understood.
pub fn read(feed: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    if feed != FEED {
        return Err(format!("there is no feed {feed}"));
    }
    if content.trim_ascii_start().starts_with(b"{") {
        return reports::read(content);
    }
    if content.starts_with(b"101") {
        return entries(content);
    }
    Err("it is neither a report nor a NACHA file".to_owned())
}

fn entries(content: &[u8]) -> Result<Vec<Notice>, String> {
    let items = incoming::parse(content)?;
    let (mut notices, mut unreadable) = (Vec::new(), Vec::new());
    for item in &items {
        match returns::news(item) {
            Ok(notice) => notices.push(notice),
            Err(Passed::Elsewhere(why)) => host::warn(&why),
            Err(Passed::Unreadable(why)) => {
                host::warn(&why);
                unreadable.push(why);
            }
        }
    }
    match unreadable.into_iter().next() {
        Some(why) if notices.is_empty() => Err(why),
        _ => Ok(notices),
    }
}
