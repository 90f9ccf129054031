//! When windows close, and when what left in them settles.
//!
//! A closing is declared as a time of the day where the network is. Twice a year the clock there is
//! changed: a time that does not exist on that day is taken as the first instant after the gap, and
//! one that exists twice as its first occurrence. So no day has a closing too few or too many, and
//! closings stay in the order of their times.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::clock::Moment;

use super::{Calendar, NotCovered};

/// A time on every business day up to which payments are taken into one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name, one of its own among the windows of a network.
    pub name: String,
    /// When it closes, where the network is.
    pub closes: Time,
    /// How many business days later the payments settle; 0 is the same day.
    pub value_days: u32,
}

/// The windows of a network.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// Its windows, in any order.
    pub windows: &'a [Window],
    /// The clock by which they close.
    pub timezone: &'a TimeZone,
    /// The days on which they close.
    pub calendar: &'a Calendar,
}

/// One closing of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The window's name.
    pub window: String,
    /// When it closes.
    pub closes_at: Moment,
    /// The business day on which it closes.
    pub business_date: Date,
    /// What the clock shows then, where the network is: the declared time, but where that is
    /// skipped on this day.
    pub local_time: Time,
    /// The business day on which the payments settle.
    pub value_date: Date,
}

/// Why there is no next closing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoClosing {
    /// Nothing is declared that could close.
    #[error("there are no windows")]
    NoWindows,
    /// The calendar ends before.
    #[error(transparent)]
    NotCovered(#[from] NotCovered),
}

impl Schedule<'_> {
    /// The next closing at or after an instant: what comes exactly at a closing is in time for it.
    /// Of windows that close together it is the first one in the declaration.
    ///
    /// # Errors
    /// There are no windows, or the calendar ends before the closing or its value date.
    pub fn next(&self, at: Moment) -> Result<Closing, NoClosing> {
        if self.windows.is_empty() {
            return Err(NoClosing::NoWindows);
        }
        let today = date_in(at, self.timezone);
        // A closing of yesterday may lie ahead, where the gap that it fell into ends after midnight.
        let mut date = today.yesterday().unwrap_or(today);
        loop {
            if let Some((closes_at, window)) = self.next_on(date, at)
                && self.calendar.is_business_day(date)?
            {
                return Ok(Closing {
                    window: window.name.clone(),
                    closes_at,
                    business_date: date,
                    local_time: local(closes_at, self.timezone).time(),
                    value_date: self.calendar.plus_business_days(date, window.value_days)?,
                });
            }
            date = self.calendar.day_after(date)?;
        }
    }

    /// Which window would be the next to close on a day, and when.
    fn next_on(&self, date: Date, at: Moment) -> Option<(Moment, &Window)> {
        let closings = self
            .windows
            .iter()
            .map(|window| (settles_at(date, window.closes, self.timezone), window));
        closings.filter(|(closes_at, _)| *closes_at >= at).min_by_key(|(closes_at, _)| *closes_at)
    }
}

/// The instant of a time of the day on a date, where the network is.
#[must_use]
pub fn settles_at(date: Date, time: Time, timezone: &TimeZone) -> Moment {
    let local = timezone.to_ambiguous_timestamp(date.to_datetime(time));
    let is_skipped = matches!(local.offset(), AmbiguousOffset::Gap { .. });
    // Before the gap, or the first of two. Years after 9999 have no instants.
    let earlier = local.earlier().unwrap_or(Timestamp::MAX);
    let end_of_gap = || timezone.following(earlier).next().map(|change| change.timestamp());
    let instant = is_skipped.then(end_of_gap).flatten().unwrap_or(earlier);
    Moment::from_micros(instant.as_microsecond())
}

/// The date on which an instant falls, where the network is.
#[must_use]
pub fn date_in(at: Moment, timezone: &TimeZone) -> Date {
    local(at, timezone).date()
}

/// What the clock shows at an instant, where the network is.
#[must_use]
pub fn local(at: Moment, timezone: &TimeZone) -> DateTime {
    timezone.to_datetime(timestamp(at))
}

/// An instant beyond the years that have dates is the last one that has: no calendar covers it.
fn timestamp(at: Moment) -> Timestamp {
    Timestamp::from_microsecond(at.micros()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MORNING_AND_EVENING: [(&str, &str, u32); 2] =
        [("morning", "10:30", 0), ("evening", "16:45", 1)];

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).expect("a timezone")
    }

    fn moment(text: &str) -> Moment {
        Moment::parse(text).expect("an instant")
    }

    fn windows(declared: &[(&str, &str, u32)]) -> Vec<Window> {
        let window = |(name, closes, value_days): &(&str, &str, u32)| Window {
            name: (*name).to_owned(),
            closes: closes.parse().expect("a time"),
            value_days: *value_days,
        };
        declared.iter().map(window).collect()
    }

    fn next_in(
        (calendar, timezone): (&str, &str),
        declared: &[(&str, &str, u32)],
        at: &str,
    ) -> Result<Closing, NoClosing> {
        let calendar = Calendar::stock(calendar).expect("a stock calendar");
        let (windows, timezone) = (windows(declared), zone(timezone));
        Schedule { windows: &windows, timezone: &timezone, calendar: &calendar }.next(moment(at))
    }

    /// Name, instant, business date, local time and value date, as text.
    fn shown(closing: &Closing) -> [String; 5] {
        [
            closing.window.clone(),
            closing.closes_at.to_string(),
            closing.business_date.to_string(),
            closing.local_time.strftime("%H:%M").to_string(),
            closing.value_date.to_string(),
        ]
    }

    #[track_caller]
    fn closes(declared: &[(&str, &str, u32)], at: &str, expected: [&str; 5]) {
        let closing = next_in(("us-federal-reserve", "America/New_York"), declared, at);
        assert_eq!(shown(&closing.expect("a closing")), expected, "at {at}");
    }

    #[test]
    fn the_next_closing_is_the_nearest() {
        // In winter New York is five hours behind UTC.
        let morning = ["morning", "2026-11-23T15:30:00.000Z", "2026-11-23", "10:30", "2026-11-23"];
        let evening = ["evening", "2026-11-23T21:45:00.000Z", "2026-11-23", "16:45", "2026-11-24"];
        closes(&MORNING_AND_EVENING, "2026-11-23T08:00:00Z", morning);
        closes(&MORNING_AND_EVENING, "2026-11-23T15:30:00Z", morning);
        closes(&MORNING_AND_EVENING, "2026-11-23T15:30:00.000001Z", evening);
        let declared_late_first = [MORNING_AND_EVENING[1], MORNING_AND_EVENING[0]];
        closes(&declared_late_first, "2026-11-23T08:00:00Z", morning);
        closes(&MORNING_AND_EVENING, "2026-11-23T21:45:00Z", evening);
        let tuesday = ["morning", "2026-11-24T15:30:00.000Z", "2026-11-24", "10:30", "2026-11-24"];
        closes(&MORNING_AND_EVENING, "2026-11-23T21:45:00.000001Z", tuesday);
        // Late on Monday in New York it is Tuesday in UTC.
        closes(&MORNING_AND_EVENING, "2026-11-24T03:00:00Z", tuesday);
    }

    #[test]
    fn windows_that_close_together_are_taken_in_the_order_of_the_declaration() {
        let together = [("first", "12:00", 1), ("second", "12:00", 0)];
        let first = ["first", "2026-11-23T17:00:00.000Z", "2026-11-23", "12:00", "2026-11-24"];
        closes(&together, "2026-11-23T12:00:00Z", first);
    }

    #[test]
    fn nothing_closes_on_weekends_and_holidays() {
        let friday = ["evening", "2026-11-20T21:45:00.000Z", "2026-11-20", "16:45", "2026-11-23"];
        closes(&MORNING_AND_EVENING, "2026-11-20T16:00:00Z", friday);
        let monday = ["morning", "2026-11-23T15:30:00.000Z", "2026-11-23", "10:30", "2026-11-23"];
        closes(&MORNING_AND_EVENING, "2026-11-20T22:00:00Z", monday);
        closes(&MORNING_AND_EVENING, "2026-11-22T12:00:00Z", monday);
        // Thanksgiving is a Thursday; the Friday after it is a business day.
        let before = ["evening", "2026-11-25T21:45:00.000Z", "2026-11-25", "16:45", "2026-11-27"];
        closes(&MORNING_AND_EVENING, "2026-11-25T20:00:00Z", before);
        let after = ["morning", "2026-11-27T15:30:00.000Z", "2026-11-27", "10:30", "2026-11-27"];
        closes(&MORNING_AND_EVENING, "2026-11-25T22:00:00Z", after);
        closes(&MORNING_AND_EVENING, "2026-11-26T15:30:00Z", after);
        // Christmas is a Friday in 2026: three days without, and payments of Thursday settle after.
        let eve = ["evening", "2026-12-24T21:45:00.000Z", "2026-12-24", "16:45", "2026-12-28"];
        closes(&MORNING_AND_EVENING, "2026-12-24T16:00:00Z", eve);
        let after = ["morning", "2026-12-28T15:30:00.000Z", "2026-12-28", "10:30", "2026-12-28"];
        closes(&MORNING_AND_EVENING, "2026-12-25T12:00:00Z", after);
        // In 2027 it is a Saturday, and so is New Year: the Fridays are business days.
        let eve = ["morning", "2027-12-24T15:30:00.000Z", "2027-12-24", "10:30", "2027-12-24"];
        closes(&MORNING_AND_EVENING, "2027-12-24T12:00:00Z", eve);
        let year = ["evening", "2027-12-31T21:45:00.000Z", "2027-12-31", "16:45", "2028-01-03"];
        closes(&MORNING_AND_EVENING, "2027-12-31T16:00:00Z", year);
    }

    #[test]
    fn holidays_in_a_row_are_passed_over_in_one_go() {
        let england = ("england", "Europe/London");
        let at = |at: &str| next_in(england, &[("day", "17:00", 2)], at).expect("a closing");
        assert_eq!(
            shown(&at("2027-12-24T12:00:00Z")),
            ["day", "2027-12-24T17:00:00.000Z", "2027-12-24", "17:00", "2027-12-30"]
        );
        assert_eq!(
            shown(&at("2027-12-24T17:00:01Z")),
            ["day", "2027-12-29T17:00:00.000Z", "2027-12-29", "17:00", "2027-12-31"]
        );
        // Summer time began on Easter Sunday: four days without, and an hour less between them.
        let good_friday = at("2027-03-26T12:00:00Z");
        assert_eq!(
            shown(&good_friday),
            ["day", "2027-03-30T16:00:00.000Z", "2027-03-30", "17:00", "2027-04-01"]
        );
    }

    #[test]
    fn a_close_follows_the_clock_on_the_wall() {
        let noon = [("noon", "12:00", 0)];
        for (at, closes_at) in [
            ("2027-03-12T12:00:00Z", "2027-03-12T17:00:00.000Z"),
            ("2027-03-13T12:00:00Z", "2027-03-15T16:00:00.000Z"),
            ("2026-10-30T12:00:00Z", "2026-10-30T16:00:00.000Z"),
            ("2026-10-31T12:00:00Z", "2026-11-02T17:00:00.000Z"),
        ] {
            let day = &closes_at[..10];
            closes(&noon, at, ["noon", closes_at, day, "12:00", day]);
        }
    }

    #[test]
    fn a_time_that_does_not_exist_is_the_end_of_the_gap() {
        let new_york = zone("America/New_York");
        let at = |date: &str, time: &str| {
            let (date, time) = (date.parse().expect("a date"), time.parse().expect("a time"));
            settles_at(date, time, &new_york).to_string()
        };
        assert_eq!(at("2027-03-14", "01:59"), "2027-03-14T06:59:00.000Z");
        for skipped in ["02:00", "02:30", "02:59:59", "03:00"] {
            assert_eq!(at("2027-03-14", skipped), "2027-03-14T07:00:00.000Z", "{skipped}");
        }
        assert_eq!(at("2027-03-14", "03:01"), "2027-03-14T07:01:00.000Z");
        // Years that no table of the timezone lists follow its rule.
        assert_eq!(at("2100-03-14", "02:30"), "2100-03-14T07:00:00.000Z");
    }

    #[test]
    fn a_time_that_happens_twice_is_the_first_of_them() {
        let new_york = zone("America/New_York");
        let at = |time: &str| {
            let (date, time) = ("2026-11-01".parse(), time.parse());
            settles_at(date.expect("a date"), time.expect("a time"), &new_york).to_string()
        };
        assert_eq!(at("00:59"), "2026-11-01T04:59:00.000Z");
        assert_eq!(at("01:00"), "2026-11-01T05:00:00.000Z");
        assert_eq!(at("01:30"), "2026-11-01T05:30:00.000Z");
        assert_eq!(at("02:00"), "2026-11-01T07:00:00.000Z");
    }

    /// Where the clock is changed on business days: at midnight between a Thursday and a Friday.
    #[test]
    fn closings_on_the_day_of_the_change() {
        let csv = "# covers 2026-01-01 to 2026-12-31\ndate,name\n";
        let calendar = Calendar::read("cairo", csv).expect("a table");
        let (cairo, windows) = (zone("Africa/Cairo"), windows(&[("night", "00:30", 0)]));
        let schedule = Schedule { windows: &windows, timezone: &cairo, calendar: &calendar };
        // From 00:00 to 01:00 on 24 April there is nothing.
        let skipped = schedule.next(moment("2026-04-23T12:00:00Z")).expect("a closing");
        assert_eq!(
            shown(&skipped),
            ["night", "2026-04-23T22:00:00.000Z", "2026-04-24", "01:00", "2026-04-24"]
        );
        let monday = schedule.next(moment("2026-04-23T22:00:01Z")).expect("a closing");
        assert_eq!(monday.business_date.to_string(), "2026-04-27");
        // And on 29 October it is 23:30 twice.
        let late = [Window { closes: "23:30".parse().expect("a time"), ..windows[0].clone() }];
        let schedule = Schedule { windows: &late, ..schedule };
        let first = schedule.next(moment("2026-10-29T12:00:00Z")).expect("a closing");
        assert_eq!(first.closes_at, moment("2026-10-29T20:30:00Z"));
        let between = schedule.next(moment("2026-10-29T21:00:00Z")).expect("a closing");
        assert_eq!(between.business_date.to_string(), "2026-10-30");
    }

    /// A clock that goes from 23:30 on a Thursday to 00:30: the closing lies on another date than
    /// its own.
    #[test]
    fn a_gap_over_midnight_loses_no_closing() {
        let calendar = Calendar::stock("us-federal-reserve").expect("a stock calendar");
        let timezone = TimeZone::posix("EST5EDT,M3.2.4/23:30,M11.1.0").expect("a rule");
        let windows = windows(&[("late", "23:45", 1)]);
        let schedule = Schedule { windows: &windows, timezone: &timezone, calendar: &calendar };
        let thursday = ["late", "2027-03-12T04:30:00.000Z", "2027-03-11", "00:30", "2027-03-12"];
        for at in ["2027-03-11T12:00:00Z", "2027-03-12T04:30:00Z"] {
            assert_eq!(shown(&schedule.next(moment(at)).expect("a closing")), thursday, "{at}");
        }
        let friday = schedule.next(moment("2027-03-12T04:30:00.000001Z")).expect("a closing");
        assert_eq!(friday.business_date.to_string(), "2027-03-12");
    }

    #[test]
    fn where_the_calendar_ends_there_is_no_closing() {
        let fed = ("us-federal-reserve", "America/New_York");
        let last = next_in(fed, &[("day", "17:00", 0)], "2032-12-31T12:00:00Z");
        assert_eq!(last.expect("a closing").value_date.to_string(), "2032-12-31");
        let beyond = |declared: &[_], at: &str| match next_in(fed, declared, at) {
            Err(NoClosing::NotCovered(cause)) => cause.date.to_string(),
            other => panic!("{at}: {other:?}"),
        };
        assert_eq!(beyond(&[("day", "17:00", 1)], "2032-12-31T12:00:00Z"), "2033-01-01");
        assert_eq!(beyond(&[("day", "17:00", 0)], "2032-12-31T23:00:00Z"), "2033-01-01");
        assert_eq!(beyond(&[("day", "17:00", 0)], "2040-06-01T12:00:00Z"), "2040-06-01");
        assert_eq!(beyond(&[("day", "17:00", 0)], "2024-06-03T12:00:00Z"), "2024-06-03");
        let first = next_in(fed, &[("day", "17:00", 0)], "2025-01-01T12:00:00Z");
        assert_eq!(first.expect("a closing").business_date.to_string(), "2025-01-02");
        assert_eq!(next_in(fed, &[], "2026-11-23T12:00:00Z"), Err(NoClosing::NoWindows));
    }

    #[test]
    fn instants_without_a_date_have_no_closing() {
        let calendar = Calendar::stock("target").expect("a stock calendar");
        let (windows, timezone) = (windows(&MORNING_AND_EVENING), zone("Europe/Berlin"));
        let schedule = Schedule { windows: &windows, timezone: &timezone, calendar: &calendar };
        for at in [i64::MIN, i64::MAX] {
            assert!(matches!(
                schedule.next(Moment::from_micros(at)),
                Err(NoClosing::NotCovered(_))
            ));
        }
    }

    /// Over every quarter of an hour of three years, in places that change their clocks at
    /// different hours.
    #[test]
    fn closings_never_go_backwards() {
        for (name, timezone) in [
            ("us-federal-reserve", zone("America/New_York")),
            ("target", zone("Europe/Berlin")),
            ("england", zone("Europe/London")),
            // The clock is changed on Thursdays: 11:15 is skipped, or happens twice.
            ("canada", TimeZone::posix("EST5EDT,M3.2.4/11,M11.1.4/12").expect("a rule")),
        ] {
            let calendar = Calendar::stock(name).expect("a stock calendar");
            let windows = windows(&[("c", "23:50", 2), ("a", "00:10", 0), ("b", "11:15", 1)]);
            let schedule = Schedule { windows: &windows, timezone: &timezone, calendar: &calendar };
            let (mut at, end) = (moment("2026-01-01T05:00:00Z"), moment("2029-01-01T05:00:00Z"));
            let mut seen: Vec<Closing> = Vec::new();
            while at < end {
                let closing = schedule.next(at).expect("covered");
                assert!(closing.closes_at >= at, "{at}: {closing:?}");
                assert_eq!(
                    calendar.is_business_day(closing.business_date),
                    Ok(true),
                    "{closing:?}"
                );
                assert_eq!(calendar.is_business_day(closing.value_date), Ok(true), "{closing:?}");
                assert!(closing.value_date >= closing.business_date, "{closing:?}");
                match seen.last() {
                    Some(last) if *last == closing => {}
                    Some(last) => {
                        assert!(last.closes_at < closing.closes_at, "{last:?} {closing:?}");
                        assert!(last.closes_at < at, "{at}: {last:?} is left out early");
                        seen.push(closing);
                    }
                    None => seen.push(closing),
                }
                at = at.after(Duration::from_secs(900));
            }
            // No closing is left out: each business day has all three, in order.
            let days: Vec<_> = seen.iter().map(|closing| closing.business_date).collect();
            let mut day = days[0];
            for three in days.chunks_exact(3) {
                assert_eq!(three, [day; 3]);
                day = calendar.plus_business_days(day, 1).expect("covered");
            }
            assert!(seen.len() > 3 * 3 * 240, "{name}: {}", seen.len());
        }
    }
}
