//! How often somebody may guess. Every try is counted before it is looked at, and taken back when it
//! was right, so that many at once are no way around.
//!
//! Who guesses from many addresses is slowed down for an e-mail address as a whole, but for the
//! addresses from which its member has signed in before: nobody is locked out of their own office.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::clock::Moment;
use crate::config::limits;

/// What this host remembers of failures.
#[derive(Default)]
pub struct LogIns(Mutex<HashMap<String, Failures>>);

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
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = holders.iter().filter_map(|holder| known.get(holder)).map(|f| f.next_at()).max();
        if let Some(next) = next
            && next > now
        {
            let micros = next.micros().saturating_sub(now.micros());
            return Err(u64::try_from(micros.saturating_add(999_999) / 1_000_000).unwrap_or(1));
        }
        if known.len() >= limits::LOG_IN_HOLDERS_MAX {
            known.retain(|_, failures| failures.last.after(limits::LOG_IN_REMEMBERED) > now);
        }
        for holder in holders {
            let count = known.get(holder).map_or(0, |failures| failures.count);
            let is_new = count == 0 && known.len() >= limits::LOG_IN_HOLDERS_MAX;
            // Where so many fail at once, those that are known already are enough to remember.
            if !is_new {
                let failures = Failures { count: count.saturating_add(1), last: now };
                known.insert(holder.clone(), failures);
            }
        }
        Ok(())
    }

    /// Forgets the failures of whoever got it right.
    pub fn succeed(&self, holders: &[String]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for holder in holders {
            known.remove(holder);
        }
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
        for number in 0..limits::LOG_IN_HOLDERS_MAX + 10 {
            assert_eq!(log_ins.take(&[number.to_string()], now), Ok(()));
        }
        assert_eq!(log_ins.0.lock().expect("a lock").len(), limits::LOG_IN_HOLDERS_MAX);
        let later = now.after(limits::LOG_IN_REMEMBERED);
        assert_eq!(log_ins.take(&["late".to_owned()], later), Ok(()));
        assert_eq!(log_ins.0.lock().expect("a lock").len(), 1);
    }
}
