//! How what is old goes: a month at a time where a database has tables for months, and in
//! portions everywhere else. What goes, and after how long, is `sweeper`'s.

pub mod months;

use std::time::Duration;

use crate::config::limits;

/// Rows that are deleted in one transaction: as many as take a moment. Nobody waits long for the
/// rows' locks, or, on SQLite, for their turn to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion(i64);

impl Portion {
    /// Few enough for the slowest disk; the next ones follow its pace. Fewer would not be quicker
    /// where it is the commit that takes long.
    pub const FIRST: Self = Self(Self::MIN);
    const MIN: i64 = 16;
    const MAX: i64 = 4_096;

    /// How many rows.
    #[must_use]
    pub const fn rows(self) -> i64 {
        self.0
    }

    /// The next portion, after this one took so long: half as many when it came near to what may
    /// be held, twice as many when it was far from it.
    #[must_use]
    pub fn after(self, took: Duration) -> Self {
        let hold = limits::SWEEP_HOLD;
        Self(match took {
            took if took > hold / 2 => (self.0 / 2).max(Self::MIN),
            took if took < hold / 5 => (self.0 * 2).min(Self::MAX),
            _ => self.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_as_large_as_takes_a_moment() {
        let (mut portion, mut longest) = (Portion::FIRST, Duration::ZERO);
        // A row takes this long on a slow disk.
        for row in [3, 30, 300, 3] {
            let time = |portion: Portion| {
                Duration::from_micros(row) * u32::try_from(portion.rows()).expect("few")
            };
            for turn in 0..40 {
                // The first ones after the disk became slower find it out.
                if turn >= 10 {
                    longest = longest.max(time(portion));
                }
                portion = portion.after(time(portion));
            }
            assert!(time(portion) >= limits::SWEEP_HOLD / 10, "{row} us: {portion:?} is too few");
        }
        assert!(longest <= limits::SWEEP_HOLD, "{longest:?}");
        assert_eq!(Portion::FIRST.after(Duration::from_secs(1)), Portion::FIRST);
        assert_eq!(Portion(Portion::MAX).after(Duration::ZERO), Portion(Portion::MAX));
    }
}
