//! Time as an argument. Nothing else in the host reads the machine's clock; a lint holds that.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Where the host takes the time from.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that moves only when it is told to, for tests.
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still at `moment`.
    #[must_use]
    pub fn fixed(moment: Moment) -> Self {
        Self::Fixed(Arc::new(AtomicI64::new(moment.0)))
    }

    /// The present instant.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    pub fn now(&self) -> Moment {
        match self {
            Self::System => Moment(Timestamp::now().as_microsecond()),
            Self::Fixed(at) => Moment(at.load(Ordering::SeqCst)),
        }
    }

    /// The present instant, where it is the machine's.
    #[must_use]
    pub fn by_the_machine(&self) -> Option<Moment> {
        match self {
            Self::System => Some(self.now()),
            Self::Fixed(_) => None,
        }
    }

    /// Moves a fixed clock forward; the machine's clock moves by itself.
    pub fn advance(&self, by: Duration) {
        if let Self::Fixed(at) = self {
            at.fetch_add(micros(by), Ordering::SeqCst);
        }
    }
}

/// An instant: microseconds since 1970 UTC, as the database stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

impl Moment {
    /// From a column.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// For a column.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970, as guests count; never before 1970.
    #[must_use]
    pub fn millis(self) -> u64 {
        u64::try_from(self.0 / 1000).unwrap_or(0)
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This much later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// How much later than another instant; nothing, where it is earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This much earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// Reads RFC 3339, or a plain date as its first instant in UTC.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let instant = text.parse::<Timestamp>().ok().or_else(|| {
            let day = text.parse::<jiff::civil::Date>().ok()?;
            day.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        })?;
        Some(Self(instant.as_microsecond()))
    }

    /// The calendar day on which this instant falls in a timezone, as YYYY-MM-DD.
    #[must_use]
    pub fn day_in(self, timezone: &TimeZone) -> String {
        self.zoned(timezone).date().to_string()
    }

    /// The hour in a timezone, from 0 to 23.
    #[must_use]
    pub fn hour_in(self, timezone: &TimeZone) -> i64 {
        self.zoned(timezone).hour().into()
    }

    /// The day of the week in a timezone, from 1 (Monday) to 7 (Sunday), as ISO 8601 counts.
    #[must_use]
    pub fn weekday_in(self, timezone: &TimeZone) -> i64 {
        self.zoned(timezone).weekday().to_monday_one_offset().into()
    }

    /// Day and minute by a calendar, for people: `2026-11-24 16:05 (Africa/Lagos)`.
    #[must_use]
    pub fn shown_in(self, timezone: &TimeZone) -> String {
        let name = timezone.iana_name().unwrap_or("UTC");
        format!("{} ({name})", self.zoned(timezone).strftime("%Y-%m-%d %H:%M"))
    }

    fn zoned(self, timezone: &TimeZone) -> jiff::Zoned {
        let instant = Timestamp::from_microsecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH);
        instant.to_zoned(timezone.clone())
    }
}

/// RFC 3339 in UTC with milliseconds.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = Timestamp::from_microsecond(self.0 - self.0.rem_euclid(1000))
            .unwrap_or(Timestamp::UNIX_EPOCH);
        write!(f, "{instant:.3}")
    }
}

impl serde::Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_show_milliseconds() {
        let moment = Moment::parse("2026-11-21T08:53:01.123999Z").expect("valid");
        assert_eq!(moment.to_string(), "2026-11-21T08:53:01.123Z");
        assert_eq!(
            Moment::parse("2026-11-21").expect("a day").to_string(),
            "2026-11-21T00:00:00.000Z"
        );
        assert!(Moment::parse("yesterday").is_none());
    }

    #[test]
    fn days_follow_the_timezone() {
        let lagos = TimeZone::get("Africa/Lagos").expect("bundled");
        let late = Moment::parse("2026-11-21T23:30:00Z").expect("valid");
        assert_eq!(late.day_in(&lagos), "2026-11-22");
        assert_eq!(late.day_in(&TimeZone::UTC), "2026-11-21");
    }
}
