//! What was refused: told in the audit log, and never so much that it fills it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::clock::Moment;
use crate::config::limits;

use super::Change;

/// What this host remembers of the present minute.
#[derive(Default)]
pub struct Refusals(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    minute: i64,
    holders: HashSet<String>,
    /// Refusals since the last line that have none of their own.
    untold: u64,
}

impl Refusals {
    /// Counts a refusal. It gets its line where it is the first of this holder (an address, or who
    /// asked for what) in this minute, as long as the minute has lines left; the next line tells how
    /// many got none.
    pub fn count(&self, holder: String, line: Change, now: Moment) -> Option<Change> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now.micros().div_euclid(60_000_000);
        if seen.minute != minute {
            seen.minute = minute;
            seen.holders.clear();
        }
        let is_full = seen.holders.len() >= limits::REFUSALS_TOLD_PER_MINUTE_MAX;
        if is_full || !seen.holders.insert(holder) {
            seen.untold = seen.untold.saturating_add(1);
            return None;
        }
        let untold = std::mem::take(&mut seen.untold);
        Some(Change { after: Some(json!({ "untold_before": untold })), ..line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_a_line_a_minute_and_a_minute_has_only_so_many() {
        let failed = Refusals::default();
        let line = Change {
            actor: "unknown".to_owned(),
            address: "203.0.113.1".to_owned(),
            action: "operator.log_in_failed",
            subject_type: "operator",
            subject_id: "unknown".to_owned(),
            before: None,
            after: None,
        };
        let at = |minute: i64| Moment::from_micros(minute * 60_000_000 + 5);
        let untold = |holder: &str, minute: i64| {
            let told = failed.count(holder.to_owned(), line.clone(), at(minute))?;
            Some(told.after.expect("a count")["untold_before"].as_u64().expect("a number"))
        };
        assert_eq!(untold("203.0.113.1", 1), Some(0));
        assert_eq!(untold("203.0.113.1", 1), None);
        assert_eq!(untold("203.0.113.2", 1), Some(1));
        assert_eq!(untold("203.0.113.1", 2), Some(0));
        let told = (0..200).filter(|n| untold(&format!("198.51.100.{n}"), 3).is_some());
        assert_eq!(told.count(), 30);
        assert_eq!(untold("203.0.113.1", 4), Some(170));
    }
}
