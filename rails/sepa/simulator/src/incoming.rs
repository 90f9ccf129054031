//! What lies ready to be fetched: reports, and notifications of what was booked.

use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Transfer};
use serde_json::json;

use crate::{as_json, error, is_file_name, not_found, page};

/// Most files that one answer names.
const LISTED_MAX: u64 = 20;
/// The record of the feed itself.
const FEED: &str = "feed";
/// Its note of the last cursor.
const LAST: &str = "last";
/// The note of what lies at a cursor.
const NAME: &str = "name";
/// The note of what is in a file.
const CONTENT: &str = "content";

/// The feed during a call. What is put into it counts once it is [closed](Feed::close).
pub struct Feed {
    record: Transfer,
    last: u64,
}

impl Feed {
    /// The feed as it stands.
    #[must_use]
    pub fn open() -> Self {
        let record = host::find(FEED).unwrap_or_else(|| page(FEED));
        Self { last: record.noted(LAST).parse().unwrap_or_default(), record }
    }

    /// A name for what is posted next, which nothing else has.
    #[must_use]
    pub fn name(&self, kind: &str) -> String {
        format!("{kind}{}", cursor(self.last + 1))
    }

    /// Puts a message of this kind there.
    pub fn post(&mut self, kind: &str, content: &str) {
        let name = format!("{kind}-{}.xml", cursor(self.last + 1));
        self.last += 1;
        host::keep(&page(&format!("{FEED}/{}", cursor(self.last))).noting(NAME, &name));
        host::keep(&page(&format!("incoming/{name}")).noting(CONTENT, content));
    }

    /// Remembers where the feed has come to.
    pub fn close(self) {
        let last = self.last.to_string();
        host::keep(&self.record.noting(LAST, &last));
    }
}

/// Names what lies after a cursor, in order.
#[must_use]
pub fn list(query: &[(String, String)]) -> Answer {
    let after = match query {
        [] => Some(0),
        [(name, value)] if name == "after" && value.is_empty() => Some(0),
        [(name, value)] if name == "after" => read_cursor(value),
        _ => None,
    };
    let Some(after) = after else {
        malformed("question for files", "its only parameter is after, a cursor that was told");
        return error(400, "invalid_cursor", "There is no such cursor.");
    };
    let last = Feed::open().last.min(after.saturating_add(LISTED_MAX));
    let files = (after.saturating_add(1)..=last).filter_map(|number| {
        let cursor = cursor(number);
        let record = host::find(&format!("{FEED}/{cursor}"))?;
        Some(json!({ "cursor": cursor, "name": record.noted(NAME) }))
    });
    as_json(200, &json!({ "files": files.collect::<Vec<_>>() }))
}

/// Gives a file out.
#[must_use]
pub fn fetch(name: &str) -> Answer {
    let record = host::find(&format!("incoming/{name}")).filter(|_| is_file_name(name));
    let Some(record) = record else { return not_found() };
    answer(200, "application/xml", record.noted(CONTENT))
}

fn cursor(number: u64) -> String {
    format!("{number:08}")
}

fn read_cursor(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| cursor(*number) == text)
}
