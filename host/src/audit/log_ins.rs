//! Log-ins of operators that failed: told in the audit log, and never so many that they fill it.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::clock::Moment;
use crate::config::limits;
use crate::http::peer::household;

use super::Change;

/// What this host remembers of the present minute.
#[derive(Default)]
pub struct FailedLogIns(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    minute: i64,
    households: HashSet<String>,
    /// Failures since the last line that have none of their own.
    untold: u64,
}

impl FailedLogIns {
    /// Counts a failure. It gets a line where it is the first from its address in this minute,
    /// as long as the minute has lines left; the next line tells how many got none.
    pub fn count(&self, address: IpAddr, now: Moment) -> Option<Change> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now.micros().div_euclid(60_000_000);
        if seen.minute != minute {
            seen.minute = minute;
            seen.households.clear();
        }
        let is_full = seen.households.len() >= limits::FAILED_LOG_INS_PER_MINUTE_MAX;
        if is_full || !seen.households.insert(household(address)) {
            seen.untold = seen.untold.saturating_add(1);
            return None;
        }
        let untold = std::mem::take(&mut seen.untold);
        Some(Change {
            actor: "unknown".to_owned(),
            address: address.to_string(),
            action: "operator.log_in_failed",
            subject_type: "operator",
            subject_id: "unknown".to_owned(),
            before: None,
            after: Some(json!({ "untold_before": untold })),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_a_line_a_minute_and_a_minute_has_only_so_many() {
        let failed = FailedLogIns::default();
        let at = |minute: i64| Moment::from_micros(minute * 60_000_000 + 5);
        let untold = |address: &str, minute: i64| {
            let line = failed.count(address.parse().expect("an address"), at(minute))?;
            Some(line.after.expect("a count")["untold_before"].as_u64().expect("a number"))
        };
        assert_eq!(untold("203.0.113.1", 1), Some(0));
        assert_eq!(untold("203.0.113.1", 1), None);
        assert_eq!(untold("::ffff:203.0.113.1", 1), None);
        assert_eq!(untold("2001:db8::1", 1), Some(2));
        assert_eq!(untold("2001:db8::2", 1), None);
        assert_eq!(untold("203.0.113.1", 2), Some(1));
        let told = (0..200).filter(|n| untold(&format!("198.51.100.{n}"), 3).is_some());
        assert_eq!(told.count(), 30);
        assert_eq!(untold("203.0.113.1", 4), Some(170));
    }
}
