//! What lies ready to be fetched: reports, and files of returned payments.

use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Transfer};
use serde_json::json;

use crate::{as_json, error, is_file_name, not_found, page};

/// Most files that one answer names.
const LISTED_MAX: u64 = 20;
/// Item trace numbers have nine digits of the bank's own.
const ITEM_MAX: u64 = 999_999_999;
/// The record of the feed itself.
const FEED: &str = "feed";
/// Its note of the last cursor, and of the last number of an item.
const LAST: &str = "last";
const ITEM: &str = "item";
/// The note of what lies at a cursor.
const NAME: &str = "name";
/// The note of what is in a file.
const CONTENT: &str = "content";

/// The feed during a call. What is put into it counts once it is [closed](Feed::close).
pub struct Feed {
    record: Transfer,
    last: u64,
    item: u64,
}

impl Feed {
    /// The feed as it stands.
    #[must_use]
    pub fn open() -> Self {
        let record = host::find(FEED).unwrap_or_else(|| page(FEED));
        let number = |name| record.noted(name).parse().unwrap_or_default();
        Self { last: number(LAST), item: number(ITEM), record }
    }

    /// The cursor of what is posted next.
    #[must_use]
    pub fn next_cursor(&self) -> String {
        cursor(self.last + 1)
    }

    /// The creation number of a file that is posted next: after 9999 the first one comes again.
    #[must_use]
    pub fn file_number(&self) -> u64 {
        self.last % 9_999 + 1
    }

    /// A number for an item: each comes again only after a billion others.
    pub fn next_item(&mut self) -> u64 {
        self.item = self.item % ITEM_MAX + 1;
        self.item
    }

    /// Puts a report about a file there.
    pub fn post_report(&mut self, file_number: &str, content: &str) {
        let name = format!("report-{file_number}-{}.json", self.next_cursor());
        self.post(&name, content);
    }

    /// Puts a file of returned payments there.
    pub fn post_file(&mut self, content: &str) {
        let name = format!("returns-{}.txt", self.next_cursor());
        self.post(&name, content);
    }

    fn post(&mut self, name: &str, content: &str) {
        self.last += 1;
        host::keep(&page(&format!("{FEED}/{}", cursor(self.last))).noting(NAME, name));
        host::keep(&page(&format!("incoming/{name}")).noting(CONTENT, content));
    }

    /// Remembers where the feed has come to.
    pub fn close(self) {
        let (last, item) = (self.last.to_string(), self.item.to_string());
        host::keep(&self.record.noting(LAST, &last).noting(ITEM, &item));
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
    let content = record.noted(CONTENT);
    let is_report = content.starts_with('{');
    let kind = if is_report { "application/json" } else { "text/plain; charset=us-ascii" };
    answer(200, kind, content)
}

fn cursor(number: u64) -> String {
    format!("{number:08}")
}

fn read_cursor(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| cursor(*number) == text)
}
