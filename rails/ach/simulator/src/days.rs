//! Days as ACH files write them: six digits, of this century.

/// A day, as the number of days since 1 January 2000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u64);

/// Days from 1970 to 2000.
const FROM_1970: u64 = 10_957;
const DAY_MS: u64 = 86_400_000;

impl Day {
    /// A day such as `260309`, if there is that one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if text.len() != 6 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let part = |from| text.get(from..from + 2)?.parse::<u64>().ok();
        let (year, month, day) = (part(0)?, part(2)?, part(4)?);
        let lengths = lengths(year);
        let index = usize::try_from(month.checked_sub(1)?).ok()?;
        if !(1..=*lengths.get(index)?).contains(&day) {
            return None;
        }
        let months: u64 = lengths.iter().take(index).sum();
        Some(Self(before(year) + months + day - 1))
    }

    /// The day of an instant, in milliseconds since 1970 UTC.
    #[must_use]
    pub fn of_instant(now_ms: u64) -> Self {
        Self((now_ms / DAY_MS).saturating_sub(FROM_1970))
    }

    /// As six digits.
    #[must_use]
    pub fn written(self) -> String {
        let year = self.year();
        let (mut month, mut day) = (1, self.0 - before(year));
        for length in lengths(year) {
            if day < length {
                break;
            }
            (month, day) = (month + 1, day - length);
        }
        format!("{:02}{month:02}{:02}", year % 100, day + 1)
    }

    /// Its number in its year, from 1: what settlement dates are written as.
    #[must_use]
    pub fn of_year(self) -> u64 {
        self.0 - before(self.year()) + 1
    }

    /// Whether it is a Saturday or a Sunday. The first day of 2000 was a Saturday.
    #[must_use]
    pub fn is_weekend(self) -> bool {
        self.0 % 7 < 2
    }

    /// How many days it is after another one; nothing if it is before.
    #[must_use]
    pub fn days_after(self, other: Self) -> Option<u64> {
        self.0.checked_sub(other.0)
    }

    /// The year, less 2000.
    fn year(self) -> u64 {
        let year = self.0 / 366;
        (year..).take_while(|year| before(*year) <= self.0).last().unwrap_or(year)
    }
}

/// Days before a year of this century: every fourth one is longer, the first one included.
fn before(year: u64) -> u64 {
    year * 365 + year.div_ceil(4)
}

fn lengths(year: u64) -> [u64; 12] {
    let february = if year.is_multiple_of(4) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Hour and minute of an instant, as four digits.
#[must_use]
pub fn time_of_day(now_ms: u64) -> String {
    let minute = now_ms % DAY_MS / 60_000;
    format!("{:02}{:02}", minute / 60, minute % 60)
}

/// Whether a text is a time of day in four digits.
#[must_use]
pub fn is_time(text: &str) -> bool {
    let is_digits = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && text < "2400" && text.get(2..).is_some_and(|minute| minute < "60")
}

#[cfg(test)]
mod tests {
    use super::{Day, is_time, time_of_day};

    #[test]
    fn days() {
        for (text, day) in
            [("000101", 0), ("000229", 59), ("010101", 366), ("240229", 8825), ("991231", 36524)]
        {
            let read = Day::read(text).expect("a day");
            assert_eq!((read, read.written().as_str()), (Day(day), text));
        }
        for text in ["260229", "261301", "260001", "260100", "260431", "26031", "2603 9", "-60309"]
        {
            assert_eq!(Day::read(text), None, "{text}");
        }
        for day in 0..36_525 {
            assert_eq!(Day::read(&Day(day).written()), Some(Day(day)));
        }
    }

    #[test]
    fn weekends_and_numbers_in_the_year() {
        let day = |text| Day::read(text).expect("a day");
        // 6 March 2026 is a Friday.
        let weekends = ["260306", "260307", "260308", "260309"].map(|it| day(it).is_weekend());
        assert_eq!(weekends, [false, true, true, false]);
        assert_eq!((day("260101").of_year(), day("241231").of_year()), (1, 366));
        assert_eq!(day("260309").days_after(day("260306")), Some(3));
        assert_eq!(day("260306").days_after(day("260309")), None);
    }

    #[test]
    fn instants() {
        let now_ms = 1_772_841_660_000;
        assert_eq!(Day::of_instant(now_ms).written(), "260307");
        assert_eq!(time_of_day(now_ms), "0001");
        for (text, is_right) in
            [("0000", true), ("2359", true), ("2400", false), ("1260", false), ("12:0", false)]
        {
            assert_eq!(is_time(text), is_right, "{text}");
        }
    }
}
