//! Rate limits: fixed windows of one minute, a budget per holder and tier.
//!
//! A request takes its place in the window before it runs, and gets it back if it is answered with
//! 5xx or 429, as often as the budget has places: a way to make it fail is no way around the limit.
//! Windows are kept in this process: with several hosts, each gives out the whole budget.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, HeaderValue};

use crate::clock::Moment;

const WINDOW_S: i64 = 60;
/// Holders remembered at most; beyond it, those of past windows are forgotten first.
const HOLDERS_MAX: usize = 200_000;

/// The tiers, each with a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// GET.
    Read,
    /// POST, PATCH, DELETE.
    Write,
    /// Creating batches.
    Bulk,
    /// Without a valid key, by address.
    Anonymous,
    /// The operator.
    Admin,
}

impl Tier {
    /// The word used on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Bulk => "bulk",
            Self::Anonymous => "anon",
            Self::Admin => "admin",
        }
    }
}

/// All windows of this process.
#[derive(Default)]
pub struct Limiter(Mutex<Windows>);

#[derive(Default)]
struct Windows {
    by_holder: HashMap<(String, Tier), Window>,
    /// When those of past windows were last forgotten.
    swept_at_s: i64,
}

#[derive(Clone, Copy)]
struct Window {
    began_at_s: i64,
    used: u32,
    given_back: u32,
}

/// Where a holder stands in the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The budget.
    pub limit: u32,
    /// What is left of it.
    pub remaining: u32,
    /// When the window resets, in Unix seconds.
    pub reset_at_s: i64,
    /// Whether this request fits.
    pub admitted: bool,
}

impl Limiter {
    /// Takes a place in the holder's window, if there is one.
    pub fn take(&self, holder: &str, tier: Tier, limit: u32, now: Moment) -> Standing {
        let began_at_s = now.seconds() - now.seconds().rem_euclid(WINDOW_S);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.by_holder.len() >= HOLDERS_MAX && known.swept_at_s != began_at_s {
            known.swept_at_s = began_at_s;
            known.by_holder.retain(|_, window| window.began_at_s == began_at_s);
        }
        // Where there are more strangers than can be told apart, the new ones share a budget.
        let is_full = known.by_holder.len() >= HOLDERS_MAX && tier == Tier::Anonymous;
        let windows = &mut known.by_holder;
        let mut key = (holder.to_owned(), tier);
        if is_full && !windows.contains_key(&key) {
            key.0 = String::new();
        }
        let fresh = Window { began_at_s, used: 0, given_back: 0 };
        let window = windows.entry(key).or_insert(fresh);
        if window.began_at_s != began_at_s {
            *window = fresh;
        }
        let admitted = window.used < limit;
        window.used += u32::from(admitted);
        let remaining = limit.saturating_sub(window.used);
        Standing { limit, remaining, reset_at_s: began_at_s + WINDOW_S, admitted }
    }

    /// Gives a place back, in the window in which it was taken.
    pub fn give_back(&self, holder: &str, tier: Tier, standing: &mut Standing) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = known.by_holder.get_mut(&(holder.to_owned(), tier))
            && window.began_at_s + WINDOW_S == standing.reset_at_s
            && window.given_back < standing.limit
        {
            window.given_back += 1;
            window.used = window.used.saturating_sub(1);
            standing.remaining = standing.limit.saturating_sub(window.used);
        }
    }
}

impl Standing {
    /// Seconds until the window resets, at least one.
    #[must_use]
    pub fn retry_after_s(&self, now: Moment) -> u64 {
        u64::try_from(self.reset_at_s - now.seconds()).unwrap_or(0).max(1)
    }

    /// The headers that every response carries.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert("x-ratelimit-limit", HeaderValue::from(self.limit));
        headers.insert("x-ratelimit-remaining", HeaderValue::from(self.remaining));
        headers.insert("x-ratelimit-reset", HeaderValue::from(self.reset_at_s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_admits_its_budget_and_resets() {
        let limiter = Limiter::default();
        let at = |seconds: i64| Moment::from_micros(seconds * 1_000_000);
        let take = |seconds| limiter.take("key", Tier::Write, 2, at(seconds));
        assert_eq!((take(120).remaining, take(121).remaining), (1, 0));
        let refused = take(179);
        assert!(!refused.admitted);
        assert_eq!((refused.reset_at_s, refused.retry_after_s(at(179))), (180, 1));
        assert!(limiter.take("key", Tier::Read, 2, at(179)).admitted, "tiers are independent");
        assert!(take(180).admitted);
    }

    #[test]
    fn strangers_beyond_those_that_are_told_apart_share_a_budget() {
        let limiter = Limiter::default();
        let take = |holder: &str, tier: Tier| {
            limiter.take(holder, tier, 1, Moment::from_micros(0)).admitted
        };
        for number in 0..HOLDERS_MAX {
            assert!(take(&number.to_string(), Tier::Anonymous));
        }
        assert!(take("one more", Tier::Anonymous), "the first of those who share");
        assert!(!take("another", Tier::Anonymous));
        assert!(!take("0", Tier::Anonymous), "who was known has its own budget, used up");
        assert!(take("a key", Tier::Write), "whoever has a key is told apart");
        let next = limiter.take("another", Tier::Anonymous, 1, Moment::from_micros(60_000_000));
        assert!(next.admitted, "those of the past window are forgotten");
    }

    #[test]
    fn what_does_not_count_is_given_back() {
        let limiter = Limiter::default();
        let now = Moment::from_micros(0);
        let mut standing = limiter.take("key", Tier::Write, 1, now);
        limiter.give_back("key", Tier::Write, &mut standing);
        assert_eq!(standing.remaining, 1);
        let mut again = limiter.take("key", Tier::Write, 1, now);
        assert!(again.admitted);
        limiter.give_back("key", Tier::Write, &mut again);
        assert_eq!(again.remaining, 0, "as often as the budget has places");
        assert!(!limiter.take("key", Tier::Write, 1, now).admitted);
    }
}
