//! Counting payouts over sliding windows, one counter for each place that payouts are counted
//! together in.
//!
//! A counter keeps the windows of its place as text in its `holder`; its own count and sum are those
//! of the longest one. A window is cut into [`PARTS`] buckets. A payout is counted for at least the
//! window and at most one part longer, so a limit errs on the strict side. All of it is read and
//! written by the ledger's writer under the counter's lock: payouts that arrive at once see each
//! other.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use railhead_facts::Scope;

use crate::clock::Moment;
use crate::env::Env;
use crate::ledger::{CounterChange, LockedState};
use crate::money::{Currency, Minor};

/// How much longer than its longest window a counter is kept at least: far above any difference
/// between hosts' clocks.
const SLACK: Duration = Duration::from_secs(3600);
/// Buckets of a window.
const PARTS: u32 = 30;
/// What stands between windows.
const BETWEEN: char = '|';

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

/// Which payouts a velocity counts, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowOf {
    /// Whose.
    pub scope: Scope,
    /// For so many seconds.
    pub window_s: u64,
}

/// Windows that are counted in one place.
#[derive(Clone, Debug)]
pub(super) struct Together {
    scope: Scope,
    /// The seconds of each, and where it stands among all windows that are wanted.
    windows: Arc<[(u64, usize)]>,
}

impl Together {
    /// Windows, put together by the place that they are counted in. A merchant has one wallet in
    /// each currency and environment: what it pays is what the wallet pays.
    pub(super) fn of(windows: &[WindowOf]) -> Vec<Self> {
        let place = |scope| if scope == Scope::Merchant { Scope::Wallet } else { scope };
        let mut scopes: Vec<Scope> = Vec::new();
        for window in windows {
            if !scopes.contains(&place(window.scope)) {
                scopes.push(place(window.scope));
            }
        }
        let together = |scope| {
            let all = windows.iter().enumerate();
            let own = all.filter(|(_, window)| place(window.scope) == scope);
            let own = own.map(|(at, window)| (window.window_s, at));
            Self { scope, windows: own.collect() }
        };
        scopes.into_iter().map(together).collect()
    }
}

/// How many payouts a window counts, and what they come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// How many.
    pub count: i64,
    /// What they come to.
    pub sum: Minor,
}

/// A counter that a decision reads and an accepted payout adds to.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    /// The key of the counter.
    pub key: String,
    windows: Arc<[(u64, usize)]>,
}

impl Tracked {
    /// The counter of some windows; none where the payout has no such thing as a customer.
    #[must_use]
    pub(super) fn of(together: &Together, places: &Places<'_>) -> Option<Self> {
        let Places { merchant, env, currency, wallet, recipient, amount, customer, bank } = places;
        let scope = together.scope;
        let place = match scope {
            Scope::Merchant | Scope::Wallet => (*wallet).to_owned(),
            Scope::Recipient => format!("{merchant}/{recipient}"),
            Scope::RecipientAndAmount => format!("{merchant}/{recipient}/{amount}"),
            Scope::Customer => format!("{merchant}/{}", (*customer)?),
            Scope::Bank => format!("{merchant}/{}", (*bank)?),
            Scope::Account => (*recipient).to_owned(),
            Scope::AccountAndAmount => format!("{recipient}/{amount}"),
        };
        let key = format!("velocity/{env}/{currency}/{}/{place}", scope.name());
        Some(Self { key, windows: Arc::clone(&together.windows) })
    }

    /// The counter with this payout in it. What each of its windows comes to then is put where it
    /// stands among all windows.
    #[must_use]
    pub(super) fn with(
        &self,
        locked: &LockedState<'_>,
        amount: Minor,
        counted: &mut [Option<Counted>],
    ) -> CounterChange {
        let (now, counter) = (locked.now(), locked.counter(&self.key));
        let mut held: Vec<(u64, Window<'_>)> = windows(&counter.holder).collect();
        let mut kept = Kept::default();
        for (window_s, at) in &*self.windows {
            let known = held.iter().position(|(known, _)| known == window_s);
            let window = known.map_or(Window::EMPTY, |known| held.swap_remove(known).1);
            let part_of = |at: Moment| part_of(*window_s, at);
            let oldest = part_of(now.before(Duration::from_secs(*window_s)));
            let window = window.since(oldest).with(part_of(now), amount);
            counted[*at] = Some(window.counted());
            kept.push(*window_s, &window.held());
        }
        // Those of packs before this one, which may come back.
        for (window_s, window) in held {
            let oldest = part_of(window_s, now.before(Duration::from_secs(window_s)));
            let window = window.since(oldest);
            if !window.buckets.is_empty() {
                kept.push(window_s, &window);
            }
        }
        let Kept { text, longest_s, longest: Counted { count, sum } } = kept;
        let expires_at = counter.kept(now, Duration::from_secs(longest_s) + SLACK);
        CounterChange { key: self.key.clone(), holder: text, count, sum, expires_at }
    }
}

/// The number of the part of a window that an instant is in.
fn part_of(window_s: u64, at: Moment) -> i64 {
    let part = Duration::from_secs(window_s) / PARTS;
    at.micros().div_euclid(i64::try_from(part.as_micros()).unwrap_or(i64::MAX).max(1))
}

/// The windows that a counter holds, by their seconds. What cannot be read is left out.
fn windows(holder: &str) -> impl Iterator<Item = (u64, Window<'_>)> {
    holder.split(BETWEEN).filter_map(|text| {
        let (head, buckets) = text.split_once(' ')?;
        let Bucket { number, count, sum } = Bucket::read(head)?;
        Some((u64::try_from(number).ok()?, Window { buckets, count, sum }))
    })
}

/// A counter as it is written: each window begins with its seconds, count and sum.
struct Kept {
    text: String,
    longest_s: u64,
    longest: Counted,
}

impl Default for Kept {
    fn default() -> Self {
        let longest = Counted { count: 0, sum: Minor::ZERO };
        Self { text: String::new(), longest_s: 0, longest }
    }
}

impl Kept {
    fn push(&mut self, window_s: u64, window: &Window<'_>) {
        let Window { buckets, count, sum } = window;
        if !self.text.is_empty() {
            self.text.push(BETWEEN);
        }
        // Writing to a text does not fail.
        let _ = write!(self.text, "{window_s}:{count}:{sum} {buckets}");
        if window_s >= self.longest_s {
            self.longest_s = window_s;
            self.longest = Counted { count: *count, sum: *sum };
        }
    }
}

/// Their sum, or the highest that there is.
fn saturating(sum: Minor, amount: Minor) -> Minor {
    Minor::new(sum.units().saturating_add(amount.units()))
}

/// A window as a counter holds it: the buckets that still count, oldest first, each written as
/// `number:count:sum`, with spaces between them; and what they come to together. Only those at its
/// ends are ever read.
#[derive(Clone, Copy, Debug)]
struct Window<'a> {
    buckets: &'a str,
    count: i64,
    sum: Minor,
}

/// A window as its counter will hold it.
#[derive(Debug, Default)]
struct Slid {
    buckets: String,
    count: i64,
    sum: Minor,
}

impl Slid {
    const fn counted(&self) -> Counted {
        Counted { count: self.count, sum: self.sum }
    }

    fn held(&self) -> Window<'_> {
        Window { buckets: &self.buckets, count: self.count, sum: self.sum }
    }
}

/// Payouts of one part of the window.
#[derive(Debug, PartialEq, Eq)]
struct Bucket {
    number: i64,
    count: i64,
    sum: Minor,
}

impl<'a> Window<'a> {
    const EMPTY: Self = Self { buckets: "", count: 0, sum: Minor::ZERO };

    /// The window without what is older than `oldest`. Where nothing is left, it holds nothing,
    /// whatever was counted before.
    fn since(mut self, oldest: i64) -> Self {
        while !self.buckets.is_empty() {
            let (first, others) = self.buckets.split_once(' ').unwrap_or((self.buckets, ""));
            match Bucket::read(first) {
                Some(bucket) if bucket.number >= oldest => return self,
                Some(bucket) => self = self.without(&bucket),
                None => {}
            }
            self.buckets = others;
        }
        Self::EMPTY
    }

    /// A sum that is as high as can be stays so: more may have been counted than it says.
    fn without(self, bucket: &Bucket) -> Self {
        let sum = match self.sum.units() {
            i64::MAX => self.sum,
            sum => Minor::new(sum.saturating_sub(bucket.sum.units())),
        };
        Self { count: self.count.saturating_sub(bucket.count), sum, ..self }
    }

    /// The window with one more payout.
    fn with(self, number: i64, amount: Minor) -> Slid {
        Slid {
            buckets: self.buckets_with(number, amount),
            count: self.count.saturating_add(1),
            sum: saturating(self.sum, amount),
        }
    }

    /// A host whose clock is behind adds to the newest bucket that there is.
    fn buckets_with(self, number: i64, amount: Minor) -> String {
        let (others, newest) = self.buckets.rsplit_once(' ').unwrap_or(("", self.buckets));
        let newest = Bucket::read(newest).filter(|newest| newest.number >= number);
        let (others, bucket) = match newest {
            Some(Bucket { number, count, sum }) => {
                let (count, sum) = (count.saturating_add(1), saturating(sum, amount));
                (others, Bucket { number, count, sum })
            }
            None => (self.buckets, Bucket { number, count: 1, sum: amount }),
        };
        let Bucket { number, count, sum } = bucket;
        match others {
            "" => format!("{number}:{count}:{sum}"),
            others => format!("{others} {number}:{count}:{sum}"),
        }
    }
}

impl Bucket {
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse().ok());
        let mut next = || numbers.next()?;
        Some(Self { number: next()?, count: next()?, sum: Minor::new(next()?) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Slid {
        fn count(&mut self, oldest: i64, number: i64, amount: i64) {
            *self = self.held().since(oldest).with(number, Minor::new(amount));
        }
    }

    proptest! {
        /// Whatever arrives when: what lies within the window is counted, and nothing that is
        /// older than the window and one part.
        #[test]
        fn a_window_counts_what_lies_within_it(
            steps in prop::collection::vec((0i64..40, 1i64..1_000), 1..60),
            part_us in 1i64..20,
        ) {
            let window_us = i64::from(PARTS) * part_us;
            let mut kept = Slid::default();
            let mut now = 1_000_000;
            let mut all: Vec<(i64, i64)> = Vec::new();
            for (pause, amount) in steps {
                now += pause;
                all.push((now, amount));
                kept.count((now - window_us).div_euclid(part_us), now.div_euclid(part_us), amount);
                let within = |slack: i64| {
                    let counted = all.iter().filter(|(at, _)| *at > now - window_us - slack);
                    counted.fold((0, 0), |(n, sum), (_, amount)| (n + 1, sum + amount))
                };
                let (least, most) = (within(0), within(part_us));
                prop_assert!(least.0 <= kept.count && kept.count <= most.0);
                let sum = kept.sum.units();
                prop_assert!(least.1 <= sum && sum <= most.1);
                let buckets: Option<Vec<_>> = kept.buckets.split(' ').map(Bucket::read).collect();
                let buckets = buckets.expect("all can be read");
                prop_assert!(buckets.len() <= PARTS as usize + 1);
                prop_assert_eq!(buckets.iter().map(|it| it.count).sum::<i64>(), kept.count);
                prop_assert_eq!(buckets.iter().map(|it| it.sum.units()).sum::<i64>(), sum);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_goes_as_it_grows_old_and_nothing_is_left_of_it() {
        let held = || Window { buckets: "x 8:2 9:1:5", count: 4, sum: Minor::new(9) };
        let held_later = held().since(9);
        assert_eq!((held_later.buckets, held_later.count), ("9:1:5", 4), "on the strict side");
        let emptied = held().since(10);
        assert_eq!((emptied.buckets, emptied.count, emptied.sum), ("", 0, Minor::ZERO));
        assert_eq!(
            Window { buckets: "7:1:1 x", ..emptied }.with(9, Minor::new(3)).buckets,
            "7:1:1 x 9:1:3"
        );
    }

    #[test]
    fn a_host_whose_clock_is_behind_adds_to_the_newest_bucket() {
        let mut kept = Slid::default();
        for number in [7, 9, 8] {
            kept.count(0, number, 5);
        }
        assert_eq!((kept.buckets.as_str(), kept.count, kept.sum.units()), ("7:1:5 9:2:10", 3, 15));
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_as_high_as_can_be() {
        let mut kept = Slid::default();
        for number in [1, 2] {
            kept.count(0, number, i64::MAX);
        }
        kept.count(2, 3, 1);
        assert_eq!((kept.count, kept.sum.units()), (2, i64::MAX));
        kept.count(4, 4, 1);
        assert_eq!((kept.count, kept.sum.units()), (1, 1));
    }

    #[test]
    fn windows_of_one_place_are_put_together() {
        let of = |scope, window_s| WindowOf { scope, window_s };
        let (day, month) = (86_400, 2_592_000);
        let wanted = [
            of(Scope::Merchant, day),
            of(Scope::Bank, day),
            of(Scope::Wallet, 60),
            of(Scope::Merchant, month),
        ];
        let together = Together::of(&wanted);
        let together: Vec<_> =
            together.iter().map(|it| (it.scope.name(), it.windows.to_vec())).collect();
        let own = vec![(day, 0), (60, 2), (month, 3)];
        assert_eq!(together, [("wallet", own), ("bank", vec![(day, 1)])]);
    }

    #[test]
    fn a_counter_is_read_as_it_was_written_and_what_is_odd_is_left_out() {
        let mut kept = Kept::default();
        let window = Window { buckets: "7:1:5 9:2:10", count: 3, sum: Minor::new(15) };
        kept.push(3_600, &window);
        kept.push(60, &Window { buckets: "9:1:4", count: 1, sum: Minor::new(4) });
        assert_eq!((kept.longest_s, kept.longest.count), (3_600, 3));
        assert_eq!(kept.text, "3600:3:15 7:1:5 9:2:10|60:1:4 9:1:4");
        let holder = format!("odd|{}|60:x:1 9:1:4", kept.text);
        let held: Vec<_> = windows(&holder).map(|(at, held)| (at, held.count)).collect();
        assert_eq!(held, [(3_600, 3), (60, 1)]);
    }
}
