//! How often somebody may guess. Every try is counted before it is looked at, and taken back when it
//! was right, so that many at once are no way around.
//!
//! Who guesses from many addresses is slowed down for a member as a whole, but for the addresses from
//! which that member has signed in before: nobody is locked out of their own office.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::clock::Moment;
use crate::config::limits;

/// What this host remembers of failures. Of those about members and of those about addresses that
/// nobody has it remembers apart: whoever makes up addresses keeps no member out.
#[derive(Default)]
pub struct LogIns {
    known: Mutex<HashMap<String, Failures>>,
    /// Nobody chooses with whom they are counted.
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Moment,
}

impl Failures {
    /// From when on the next try is looked at.
    fn next_at(self) -> Moment {
        let Some(over) = self.count.checked_sub(limits::LOG_IN_FAILURES_FREE) else {
            return self.last;
        };
        let (first, longest) = limits::LOG_IN_PAUSE;
        self.last.after((first * 2_u32.pow(over.min(16))).min(longest))
    }
}

impl LogIns {
    /// Counts a try of each of these holders.
    ///
    /// # Errors
    /// Seconds to wait: one of them has failed too often; then nothing is counted.
    pub fn take(&self, holders: &[String], now: Moment) -> Result<(), u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= limits::LOG_IN_HOLDERS_MAX {
            known.retain(|_, failures| failures.last.after(limits::LOG_IN_REMEMBERED) > now);
        }
        let is_full = known.len() >= limits::LOG_IN_HOLDERS_MAX;
        let counted = holders.iter().map(|holder| match is_full && !known.contains_key(holder) {
            true => self.shared(holder),
            false => holder.clone(),
        });
        let holders: Vec<String> = counted.collect();
        let next = holders.iter().filter_map(|holder| known.get(holder)).map(|f| f.next_at()).max();
        if let Some(next) = next
            && next > now
        {
            let micros = next.micros().saturating_sub(now.micros());
            return Err(u64::try_from(micros.saturating_add(999_999) / 1_000_000).unwrap_or(1));
        }
        for holder in holders {
            let count = known.get(&holder).map_or(0, |failures| failures.count);
            known.insert(holder, Failures { count: count.saturating_add(1), last: now });
        }
        Ok(())
    }

    /// Forgets the failures of whoever got it right.
    pub fn succeed(&self, holders: &[String]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for holder in holders {
            known.remove(holder);
        }
    }

    /// Under what somebody is counted where so many fail at once that they cannot be told apart:
    /// with some of the others.
    fn shared(&self, holder: &str) -> String {
        format!("shared/{}", self.hasher.hash_one(holder) % limits::LOG_IN_SHARED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_fails_again_and_again_waits_longer_and_longer() {
        let log_ins = LogIns::default();
        let at = |seconds: i64| Moment::from_micros(seconds * 1_000_000);
        let (ada, office) = ("ada".to_owned(), "ada/office".to_owned());
        let take = |seconds: i64| log_ins.take(std::slice::from_ref(&ada), at(seconds));
        for _ in 0..limits::LOG_IN_FAILURES_FREE {
            assert_eq!(take(0), Ok(()));
        }
        assert_eq!(take(0), Err(30));
        assert_eq!(take(29), Err(1));
        assert_eq!(take(30), Ok(()));
        assert_eq!(take(30), Err(60));
        for _ in 0..20 {
            let _ = take(1_000_000);
        }
        assert_eq!(take(1_000_000), Err(120));
        // Another holder of the same person is not concerned, but both together are.
        let office_only = std::slice::from_ref(&office);
        assert_eq!(log_ins.take(office_only, at(1_000_000)), Ok(()));
        assert_eq!(log_ins.take(&[ada.clone(), office.clone()], at(1_000_000)), Err(120));
        log_ins.succeed(std::slice::from_ref(&ada));
        assert_eq!(take(1_000_000), Ok(()));
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let log_ins = LogIns::default();
        let now = Moment::from_micros(0);
        let count = || log_ins.known.lock().expect("a lock").len();
        for number in 0..limits::LOG_IN_HOLDERS_MAX {
            assert_eq!(log_ins.take(&[number.to_string()], now), Ok(()));
        }
        assert_eq!(count(), limits::LOG_IN_HOLDERS_MAX);
        // Nor is there no counting any more: who comes now shares a count with others.
        let guess = || log_ins.take(&["ada".to_owned()], now);
        assert!((0..limits::LOG_IN_FAILURES_FREE).all(|_| guess().is_ok()));
        assert!(guess().is_err());
        for number in 0..10_000 {
            let _ = log_ins.take(&[format!("late {number}")], now);
        }
        let most =
            limits::LOG_IN_HOLDERS_MAX + usize::try_from(limits::LOG_IN_SHARED).expect("fits");
        assert!(count() <= most);
        let later = now.after(limits::LOG_IN_REMEMBERED);
        assert_eq!(log_ins.take(&["late".to_owned()], later), Ok(()));
        assert_eq!(log_ins.known.lock().expect("a lock").len(), 1);
    }
}
