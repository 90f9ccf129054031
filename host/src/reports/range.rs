//! The days of a report, in the merchant's timezone.
//!
//! A database adds up by day only where days are equally long. So a range is cut where the clocks
//! of the timezone change; in each part, the local day of an instant is a division.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};

/// Days of a report that names none: this one and those before it.
const DAYS: i64 = 30;
/// The first day that a report may begin with: nothing is older.
const FIRST: Date = jiff::civil::date(1970, 1, 2);
/// The last day that a report may end with.
const LAST: Date = jiff::civil::date(9000, 1, 1);

/// A range of days.
#[derive(Clone, Debug)]
pub(super) struct Range {
    from: Date,
    to: Date,
    timezone: TimeZone,
    /// Its first instant.
    pub start: Moment,
    /// The first instant after it.
    pub end: Moment,
}

/// Part of a range in which the clocks do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// From this instant on, in microseconds.
    pub start: i64,
    /// To before this one.
    pub end: i64,
    /// What is added to an instant to read it off the local clock.
    pub offset: i64,
}

/// A range as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RangeView {
    /// The first day.
    #[schema(value_type = String, format = Date, example = "2026-10-23")]
    pub from: String,
    /// The last day.
    #[schema(value_type = String, format = Date, example = "2026-11-21")]
    pub to: String,
    /// Whose days they are: an IANA timezone.
    #[schema(example = "Africa/Lagos")]
    pub timezone: String,
}

impl Range {
    /// The days that are asked for, or the last thirty, of a merchant that is there `since`.
    ///
    /// # Errors
    /// `invalid_filter`.
    pub(super) fn read(
        (from, to): (Option<&str>, Option<&str>),
        timezone: &TimeZone,
        (since, now): (Moment, Moment),
    ) -> Result<Self, Problem> {
        let odd = |field: &str, why: &str| {
            let message = format!("{field} {why}.");
            Problem::because(ErrorCode::InvalidFilter, message).field(field)
        };
        let day = |field: &str, text: &str| {
            let day: Option<Date> = text.parse().ok().filter(|_| text.len() == 10);
            let day = day.filter(|day| (FIRST..=LAST).contains(day));
            day.ok_or_else(|| odd(field, "must be a day, written YYYY-MM-DD"))
        };
        let today: Date = now.day_in(timezone).parse().unwrap_or(FIRST);
        let to = to.map_or(Ok(today), |text| day("to", text))?;
        let from = match from {
            Some(text) => day("from", text)?,
            None => {
                let days = |end: Date| end.checked_sub((DAYS - 1).days()).unwrap_or(FIRST);
                let usual = days(today);
                // As many before a day that is longer ago.
                (if usual <= to { usual } else { days(to) }).max(FIRST)
            }
        };
        if from > to {
            return Err(odd("from", "must not be after to"));
        }
        let first = |day: Date| {
            let begun = day.to_zoned(timezone.clone()).map_err(Problem::internal)?;
            Ok::<_, Problem>(Moment::from_micros(begun.timestamp().as_microsecond()))
        };
        // Nothing happened before there was a merchant, and nothing has happened after today.
        let after = to.min(today).max(from).tomorrow().map_err(Problem::internal)?;
        let begun: Date = since.day_in(timezone).parse().unwrap_or(FIRST);
        let (start, end) = (first(from.max(begun.min(to)))?, first(after)?);
        Ok(Self { from, to, timezone: timezone.clone(), start, end })
    }

    /// Its parts, oldest first. The first one reaches back for ever, and the last one on, so that
    /// what belongs to the range by its number has a day in it, whatever its clock said.
    pub(super) fn parts(&self) -> Vec<Part> {
        let instant =
            |at: Moment| Timestamp::from_microsecond(at.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
        let offset =
            |at: Moment| i64::from(self.timezone.to_offset(instant(at)).seconds()) * 1_000_000;
        let mut changes = vec![self.start];
        for change in self.timezone.following(instant(self.start)) {
            let at = Moment::from_micros(change.timestamp().as_microsecond());
            if at >= self.end {
                break;
            }
            changes.push(at);
        }
        let ends = changes[1..].iter().map(|at| at.micros()).chain([i64::MAX]);
        let parts = changes.iter().zip(ends).map(|(at, end)| Part {
            start: at.micros(),
            end,
            offset: offset(*at),
        });
        let mut parts: Vec<Part> = parts.collect();
        if let Some(first) = parts.first_mut() {
            // Room for the offset.
            first.start = 0;
        }
        parts
    }

    /// The day of a number that the database has divided out.
    pub(super) fn day(&self, number: i64) -> Date {
        let day = jiff::civil::date(1970, 1, 1).checked_add(number.days());
        day.unwrap_or(self.from).clamp(self.from, self.to)
    }

    pub(super) fn view(&self) -> RangeView {
        RangeView {
            from: self.from.to_string(),
            to: self.to.to_string(),
            timezone: self.timezone.iana_name().unwrap_or("UTC").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: i64 = 86_400_000_000;

    fn range(from: &str, to: &str, timezone: &str) -> Range {
        let timezone = TimeZone::get(timezone).expect("a timezone");
        let now = Moment::parse("2030-01-01").expect("an instant");
        Range::read((Some(from), Some(to)), &timezone, (Moment::default(), now)).expect("a range")
    }

    /// The day of an instant, as the database works it out.
    fn day_of(range: &Range, at: Moment) -> String {
        let parts = range.parts();
        let part = parts.iter().find(|part| (part.start..part.end).contains(&at.micros()));
        let number = (at.micros() + part.expect("a part").offset) / DAY_US;
        range.day(number).to_string()
    }

    #[test]
    fn every_instant_has_the_day_of_its_calendar() {
        for timezone in ["Africa/Lagos", "America/New_York", "Australia/Lord_Howe", "UTC"] {
            let range = range("2026-01-01", "2027-06-30", timezone);
            let mut at = range.start;
            while at < range.end {
                assert_eq!(day_of(&range, at), at.day_in(&range.timezone), "{at} in {timezone}");
                at = at.after(std::time::Duration::from_secs(1_799));
            }
        }
    }

    #[test]
    fn days_of_changes_are_longer_or_shorter() {
        let hours = |day: &str| {
            let range = range(day, day, "America/New_York");
            (range.end.micros() - range.start.micros()) / 3_600_000_000
        };
        assert_eq!((hours("2026-03-08"), hours("2026-11-01"), hours("2026-11-02")), (23, 25, 24));
    }

    #[test]
    fn a_range_that_names_nothing_is_the_last_thirty_days() {
        let lagos = TimeZone::get("Africa/Lagos").expect("a timezone");
        let now = Moment::parse("2026-11-20T23:30:00Z").expect("an instant");
        let times = (Moment::default(), now);
        let view = Range::read((None, None), &lagos, times).expect("a range").view();
        assert_eq!((view.from.as_str(), view.to.as_str()), ("2026-10-23", "2026-11-21"));
    }

    #[test]
    fn nonsense_is_refused() {
        let times = (Moment::default(), Moment::default());
        let read = |from, to| Range::read((from, to), &TimeZone::UTC, times);
        for (from, to, field) in [
            (Some("yesterday"), None, "from"),
            (None, Some("2026-02-30"), "to"),
            (Some("2026-02-02"), Some("2026-02-01"), "from"),
            (Some("20260202"), None, "from"),
            (None, Some("9999-12-31"), "to"),
            (Some("0001-01-01"), None, "from"),
        ] {
            let refused = read(from, to).expect_err("a refusal");
            assert_eq!((refused.code(), refused.about()), (ErrorCode::InvalidFilter, Some(field)));
        }
    }

    #[test]
    fn a_range_of_a_thousand_years_has_no_more_parts_than_the_merchant_has_seen() {
        let zone = TimeZone::get("Europe/London").expect("a timezone");
        let at = |text: &str| Moment::parse(text).expect("an instant");
        let times = (at("2026-01-15"), at("2026-11-21T09:00:00Z"));
        let range = Range::read((Some("1970-01-02"), Some("9000-01-01")), &zone, times);
        let range = range.expect("a range");
        assert_eq!(range.parts().len(), 3);
        assert_eq!(range.view().to, "9000-01-01");
    }
}
