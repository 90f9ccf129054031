//! Days and times in New York, where the network is.
//!
//! Clocks there go by the Energy Policy Act of 2005, in force since 2007: daylight time from the
//! second Sunday of March to the first Sunday of November, at two o'clock each.

const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3_600;
/// What New York is behind UTC in winter.
const STANDARD_S: i64 = -5 * HOUR_S;
/// The network's next day begins at nine in the evening.
const NEXT_DAY_FROM_S: i64 = 21 * HOUR_S;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Days since 1970-01-01.
    number: i64,
}

impl Day {
    /// As in a message: `2026-11-23`.
    #[must_use]
    pub fn dashed(self) -> String {
        let (year, month, day) = self.parts();
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// As at the beginning of an IMAD: `20261123`.
    #[must_use]
    pub fn compact(self) -> String {
        self.dashed().replace('-', "")
    }

    /// Year, month and day: Howard Hinnant's `civil_from_days`, with eras of 400 years that begin
    /// in March.
    fn parts(self) -> (i64, i64, i64) {
        let shifted = self.number + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + turn, month, day)
    }

    /// The day of these parts: Howard Hinnant's `days_from_civil`.
    fn of(year: i64, month: i64, day: i64) -> Self {
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * month + 2) / 5 + day - 1;
        let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
        Self { number: era * 146_097 + days - 719_468 }
    }

    /// The first Sunday from this day on.
    fn sunday_from(self) -> Self {
        // The first of January 1970 was a Thursday.
        Self { number: self.number + (3 - self.number).rem_euclid(7) }
    }
}

/// The day to which the network counts what it gets at an instant.
#[must_use]
pub fn cycle(at_ms: u64) -> Day {
    let local_s = local_s(at_ms);
    let is_evening = local_s.rem_euclid(DAY_S) >= NEXT_DAY_FROM_S;
    Day { number: local_s.div_euclid(DAY_S) + i64::from(is_evening) }
}

/// An instant in New York's time, as messages have it: `2026-11-23T08:39:32-05:00`.
#[must_use]
pub fn written(at_ms: u64) -> String {
    let local_s = local_s(at_ms);
    let (day, of_day) = (Day { number: local_s.div_euclid(DAY_S) }, local_s.rem_euclid(DAY_S));
    let (hour, minute, second) = (of_day / HOUR_S, of_day / 60 % 60, of_day % 60);
    let behind = (utc_s(at_ms) - local_s) / HOUR_S;
    format!("{}T{hour:02}:{minute:02}:{second:02}-{behind:02}:00", day.dashed())
}

fn utc_s(at_ms: u64) -> i64 {
    i64::try_from(at_ms / 1_000).unwrap_or(i64::MAX / 2)
}

/// What clocks in New York show, counted like seconds since 1970.
fn local_s(at_ms: u64) -> i64 {
    let standard_s = utc_s(at_ms) + STANDARD_S;
    let (year, ..) = Day { number: standard_s.div_euclid(DAY_S) }.parts();
    let from_s = Day::of(year, 3, 8).sunday_from().number * DAY_S + 2 * HOUR_S;
    // Two o'clock of daylight time is one o'clock of standard time.
    let until_s = Day::of(year, 11, 1).sunday_from().number * DAY_S + HOUR_S;
    let is_daylight = (from_s..until_s).contains(&standard_s);
    standard_s + if is_daylight { HOUR_S } else { 0 }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Day, cycle, written};

    /// Seconds since 1970 and the time in New York, as Python's `zoneinfo` has them.
    const KNOWN: &[(u64, &str)] = &[
        (1_763_906_372, "2025-11-23T08:59:32-05:00"),
        (1_772_953_199, "2026-03-08T01:59:59-05:00"),
        (1_772_953_200, "2026-03-08T03:00:00-04:00"),
        (1_793_512_799, "2026-11-01T01:59:59-04:00"),
        (1_793_512_800, "2026-11-01T01:00:00-05:00"),
        (1_795_251_600, "2026-11-21T04:00:00-05:00"),
        (1_782_864_000, "2026-06-30T20:00:00-04:00"),
        (1_709_182_799, "2024-02-28T23:59:59-05:00"),
        (1_709_182_800, "2024-02-29T00:00:00-05:00"),
        (1_798_779_600, "2027-01-01T00:00:00-05:00"),
        (4_102_462_800, "2100-01-01T00:00:00-05:00"),
    ];

    #[test]
    fn what_clocks_in_new_york_show() {
        for (at_s, expected) in KNOWN {
            assert_eq!(written(at_s * 1_000), *expected, "{at_s}");
            assert_eq!(written(at_s * 1_000 + 999), *expected, "{at_s}");
        }
    }

    #[test]
    fn the_next_day_begins_at_nine_in_the_evening() {
        for (at_s, expected) in [
            (1_795_226_399, "2026-11-20"),
            (1_795_226_400, "2026-11-21"),
            // 20:59:59 and 21:00:00 of a summer day.
            (1_782_867_599, "2026-06-30"),
            (1_782_867_600, "2026-07-01"),
            // And of the last day of a year.
            (1_798_768_799, "2026-12-31"),
            (1_798_768_800, "2027-01-01"),
        ] {
            assert_eq!(cycle(at_s * 1_000).dashed(), expected, "{at_s}");
        }
        assert_eq!(cycle(1_795_251_600_000).compact(), "20261121");
    }

    #[test]
    fn every_day_has_one_name() {
        let mut day = Day::of(1970, 1, 1);
        assert_eq!(day, Day { number: 0 });
        for _ in 0..60_000 {
            let (year, month, of_month) = day.parts();
            assert_eq!(Day::of(year, month, of_month), day);
            day = Day { number: day.number + 1 };
        }
    }

    #[test]
    fn any_instant_can_be_asked_for() {
        for at_ms in [0, 1, u64::MAX, u64::MAX / 2] {
            assert!(!written(at_ms).is_empty() && !cycle(at_ms).dashed().is_empty());
        }
    }
}
