//! Counting payouts over sliding windows, one counter per scope and window.
//!
//! A window is cut into [`PARTS`] buckets, kept as text in the counter's `holder`. A payout is
//! counted for at least the window and at most one part longer, so a limit errs on the strict
//! side. All of it is read and written by the ledger's writer under the counter's lock:
//! payouts that arrive at once see each other.

use std::time::Duration;

use railhead_facts::{Measure, Scope, Velocity};

use crate::clock::Moment;
use crate::env::Env;
use crate::ledger::{CounterChange, LockedState};
use crate::money::{Currency, Minor};

/// How much longer than its window a counter is kept: far above any difference between hosts'
/// clocks.
const SLACK: Duration = Duration::from_secs(3600);
/// Buckets of a window.
const PARTS: u32 = 30;

/// Whose payouts are counted together with one payout.
#[derive(Clone, Debug)]
pub(super) struct Places<'a> {
    /// The id of the merchant who pays.
    pub merchant: &'a str,
    /// Test or live; the two are never counted together.
    pub env: Env,
    /// The currency; each is counted by itself.
    pub currency: Currency,
    /// The id of the wallet that pays.
    pub wallet: &'a str,
    /// To which account.
    pub recipient: &'a str,
    /// What the recipient gets.
    pub amount: Minor,
    /// For which customer.
    pub customer: Option<&'a str>,
    /// To which bank.
    pub bank: Option<&'a str>,
}

/// A counter that a decision reads and an accepted payout adds to.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    /// The key of the counter.
    pub key: String,
    window: Duration,
}

/// What a window holds, one payout included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// How many payouts.
    pub count: i64,
    /// What they come to, in minor units.
    pub sum: i64,
}

impl Tracked {
    /// The counter behind a velocity; none where the payout has no such thing as a customer.
    #[must_use]
    pub(super) fn of(velocity: Velocity, places: &Places<'_>) -> Option<Self> {
        let Places { merchant, env, currency, wallet, recipient, amount, customer, bank } = places;
        let place = match velocity.scope {
            Scope::Merchant => (*merchant).to_owned(),
            Scope::Wallet => (*wallet).to_owned(),
            Scope::Recipient => format!("{merchant}/{recipient}"),
            Scope::RecipientAndAmount => format!("{merchant}/{recipient}/{amount}"),
            Scope::Customer => format!("{merchant}/{}", (*customer)?),
            Scope::Bank => format!("{merchant}/{}", (*bank)?),
            Scope::Account => (*recipient).to_owned(),
            Scope::AccountAndAmount => format!("{recipient}/{amount}"),
        };
        let (scope, window_s) = (velocity.scope.name(), velocity.window_s);
        let key = format!("velocity/{env}/{currency}/{scope}/{window_s}/{place}");
        Some(Self { key, window: Duration::from_secs(window_s) })
    }

    /// What the window holds with this payout in it.
    #[must_use]
    pub(super) fn level(&self, locked: &LockedState<'_>, amount: Minor) -> Level {
        let held = self.window(locked).level();
        Level { count: held.count + 1, sum: held.sum.saturating_add(amount.units()) }
    }

    /// The counter with this payout in it.
    #[must_use]
    pub(super) fn add(&self, locked: &LockedState<'_>, amount: Minor) -> CounterChange {
        let now = locked.now();
        let counter = locked.counter(&self.key);
        let mut window = self.window(locked);
        window.add(now, amount);
        let Level { count, sum } = window.level();
        CounterChange {
            key: self.key.clone(),
            holder: window.write(),
            count,
            sum: Minor::new(sum),
            expires_at: counter.kept(now, self.window + SLACK),
        }
    }

    fn window(&self, locked: &LockedState<'_>) -> Window {
        let oldest = locked.now().before(self.window).micros().div_euclid(self.part_us());
        Window::read(&locked.counter(&self.key).holder, oldest, self.part_us())
    }

    fn part(&self) -> Duration {
        self.window / PARTS
    }

    fn part_us(&self) -> i64 {
        i64::try_from(self.part().as_micros()).unwrap_or(i64::MAX)
    }
}

/// The buckets of a window that still count, oldest first.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    part_us: i64,
    buckets: Vec<Bucket>,
}

/// Payouts of one part of the window.
#[derive(Debug, PartialEq, Eq)]
struct Bucket {
    number: i64,
    count: i64,
    sum: i64,
}

impl Window {
    /// Reads `number:count:sum` separated by spaces, without what is older than `oldest`.
    fn read(text: &str, oldest: i64, part_us: i64) -> Self {
        let buckets = text.split(' ').filter_map(|bucket| {
            let mut numbers = bucket.split(':').map(str::parse);
            let mut next = || numbers.next()?.ok();
            Some(Bucket { number: next()?, count: next()?, sum: next()? })
        });
        Self { part_us, buckets: buckets.filter(|bucket| bucket.number >= oldest).collect() }
    }

    fn write(&self) -> String {
        let buckets = self.buckets.iter();
        let texts: Vec<_> =
            buckets.map(|b| format!("{}:{}:{}", b.number, b.count, b.sum)).collect();
        texts.join(" ")
    }

    fn level(&self) -> Level {
        let sum = self.buckets.iter().fold(0i64, |sum, bucket| sum.saturating_add(bucket.sum));
        Level { count: self.buckets.iter().map(|bucket| bucket.count).sum(), sum }
    }

    /// A host whose clock is behind adds to the newest bucket that there is.
    fn add(&mut self, now: Moment, amount: Minor) {
        let number = now.micros().div_euclid(self.part_us);
        match self.buckets.last_mut().filter(|newest| newest.number >= number) {
            Some(newest) => {
                newest.count += 1;
                newest.sum = newest.sum.saturating_add(amount.units());
            }
            None => self.buckets.push(Bucket { number, count: 1, sum: amount.units() }),
        }
    }
}

impl Level {
    /// The measure that a fact wants.
    #[must_use]
    pub(super) fn of(self, measure: Measure) -> i64 {
        match measure {
            Measure::Count => self.count,
            Measure::Sum => self.sum,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever arrives when: what lies within the window is counted, and nothing that is
        /// older than the window and one part.
        #[test]
        fn a_window_counts_what_lies_within_it(
            steps in prop::collection::vec((0i64..40, 1i64..1_000), 1..60),
            part_us in 1i64..20,
        ) {
            let window_us = i64::from(PARTS) * part_us;
            let mut text = String::new();
            let mut now = 1_000_000;
            let mut all: Vec<(i64, i64)> = Vec::new();
            for (pause, amount) in steps {
                now += pause;
                let oldest = (now - window_us).div_euclid(part_us);
                let mut window = Window::read(&text, oldest, part_us);
                window.add(Moment::from_micros(now), Minor::new(amount));
                all.push((now, amount));
                let within = |slack: i64| {
                    let counted = all.iter().filter(|(at, _)| *at > now - window_us - slack);
                    counted.fold((0, 0), |(n, sum), (_, amount)| (n + 1, sum + amount))
                };
                let level = window.level();
                prop_assert!(within(0).0 <= level.count && level.count <= within(part_us).0);
                prop_assert!(within(0).1 <= level.sum && level.sum <= within(part_us).1);
                prop_assert!(window.buckets.len() <= PARTS as usize + 1);
                text = window.write();
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_counted() {
        let window = Window::read("7:1:100 x 8:2 9:1:5", 0, 1);
        assert_eq!(window.level(), Level { count: 2, sum: 105 });
    }
}
