//! What was refused: told in the audit log, and never so much that it fills it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::clock::Moment;
use crate::config::limits;
use crate::id::MerchantId;

use super::Change;

/// What this host remembers of the present minute.
#[derive(Default)]
pub struct Refusals(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    minute: i64,
    of: HashMap<(&'static str, Option<MerchantId>), Told>,
}

/// What was told of one kind of refusal within one merchant, or to strangers.
#[derive(Default)]
struct Told {
    holders: HashSet<String>,
    /// Refusals since the last line that have none of their own.
    untold: u64,
}

/// Whose refusal it is.
pub struct Refused {
    /// Whose lines it takes: those of a merchant, or of strangers. Nobody takes another merchant's.
    pub merchant: Option<MerchantId>,
    /// An address, or who asked for what.
    pub holder: String,
}

impl Refusals {
    /// Counts a refusal. It gets its line where it is the first of this holder in this minute, as
    /// long as the minute has lines left for its kind; the next line of the kind tells how many got
    /// none.
    pub fn count(&self, of: Refused, line: Change, now: Moment) -> Option<Change> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = now.micros().div_euclid(60_000_000);
        if seen.minute != minute {
            seen.minute = minute;
            seen.of.values_mut().for_each(|told| told.holders.clear());
            seen.of.retain(|_, told| told.untold > 0);
        }
        let told = seen.of.entry((line.action, of.merchant)).or_default();
        let is_full = told.holders.len() >= limits::REFUSALS_TOLD_PER_MINUTE_MAX;
        if is_full || !told.holders.insert(of.holder) {
            told.untold = told.untold.saturating_add(1);
            return None;
        }
        let untold = std::mem::take(&mut told.untold);
        Some(Change { after: Some(json!({ "untold_before": untold })), ..line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id as _;

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
            let of = Refused { merchant: None, holder: holder.to_owned() };
            let told = failed.count(of, line.clone(), at(minute))?;
            Some(told.after.expect("a count")["untold_before"].as_u64().expect("a number"))
        };
        assert_eq!(untold("203.0.113.1", 1), Some(0));
        assert_eq!(untold("203.0.113.1", 1), None);
        assert_eq!(untold("203.0.113.2", 1), Some(1));
        assert_eq!(untold("203.0.113.1", 2), Some(0));
        let told = (0..200).filter(|n| untold(&format!("198.51.100.{n}"), 3).is_some());
        assert_eq!(told.count(), 30);
        // Another kind, and another merchant's, have lines of their own.
        let other = Change { action: "member.denied", ..line.clone() };
        for merchant in ["c1", "c2"] {
            let merchant = Some(MerchantId::from_text(merchant.to_owned()));
            let of = Refused { merchant, holder: "ada".to_owned() };
            assert!(failed.count(of, other.clone(), at(3)).is_some());
        }
        assert_eq!(untold("203.0.113.1", 4), Some(170));
    }
}
