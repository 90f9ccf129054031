//! What lies ready to be fetched: reports, and files of returns and notifications of change.

use railhead_simulator::answers::{answer, malformed};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Transfer};
use serde_json::json;

use crate::{as_json, error, is_file_name, not_found, page};

/// Most files that one answer names.
const LISTED_MAX: u64 = 20;
/// Trace numbers have seven digits of the bank's own.
const TRACE_MAX: u64 = 9_999_999;
/// The record of the feed itself.
const FEED: &str = "feed";
/// Its note of the last cursor, and of the last number in a trace.
const LAST: &str = "last";
const TRACE: &str = "trace";
/// The note of what lies at a cursor.
const NAME: &str = "name";
/// The note of what is in a file.
const CONTENT: &str = "content";

/// The feed during a call. What is put into it counts once it is [closed](Feed::close).
pub struct Feed {
    record: Transfer,
    last: u64,
    trace: u64,
}

impl Feed {
    /// The feed as it stands.
    #[must_use]
    pub fn open() -> Self {
        let record = host::find(FEED).unwrap_or_else(|| page(FEED));
        let number = |name| record.noted(name).parse().unwrap_or_default();
        Self { last: number(LAST), trace: number(TRACE), record }
    }

    /// The cursor of what is posted next.
    #[must_use]
    pub fn next_cursor(&self) -> String {
        cursor(self.last + 1)
    }

    /// The modifier of a file that is posted next: 36 follow each other before one comes again.
    #[must_use]
    pub fn modifier(&self) -> char {
        let index = usize::try_from(self.last % 36).unwrap_or_default();
        ('A'..='Z').chain('0'..='9').nth(index).unwrap_or('A')
    }

    /// A number for a trace: each comes again only after ten million others.
    pub fn next_trace(&mut self) -> u64 {
        self.trace = self.trace % TRACE_MAX + 1;
        self.trace
    }

    /// Puts a report about a file there.
    pub fn post_report(&mut self, reference_code: &str, content: &str) {
        let name = format!("report-{reference_code}-{}.json", self.next_cursor());
        self.post(&name, content);
    }

    /// Puts a file of returns and notifications of change there.
    pub fn post_file(&mut self, content: &str) {
        let name = format!("returns-{}.ach", self.next_cursor());
        self.post(&name, content);
    }

    fn post(&mut self, name: &str, content: &str) {
        self.last += 1;
        host::keep(&page(&format!("{FEED}/{}", cursor(self.last))).noting(NAME, name));
        host::keep(&page(&format!("incoming/{name}")).noting(CONTENT, content));
    }

    /// Remembers where the feed has come to.
    pub fn close(self) {
        let (last, trace) = (self.last.to_string(), self.trace.to_string());
        host::keep(&self.record.noting(LAST, &last).noting(TRACE, &trace));
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
