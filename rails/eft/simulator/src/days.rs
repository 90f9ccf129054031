//! Days as CPA-005 files write them: `0YYDDD`, of this century.

/// A day, as the number of days since 1 January 2000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u64);

/// Days from 1970 to 2000.
const FROM_1970: u64 = 10_957;
const DAY_MS: u64 = 86_400_000;

impl Day {
    /// A day such as `026068`, if there is that one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let is_digits = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits || !text.starts_with('0') {
            return None;
        }
        let year = text.get(1..3)?.parse::<u64>().ok()?;
        let day = text.get(3..)?.parse::<u64>().ok()?;
        let length = before(year + 1) - before(year);
        (1..=length).contains(&day).then(|| Self(before(year) + day - 1))
    }

    /// The day of an instant, in milliseconds since 1970 UTC.
    #[must_use]
    pub fn of_instant(now_ms: u64) -> Self {
        Self((now_ms / DAY_MS).saturating_sub(FROM_1970))
    }

    /// As six digits.
    #[must_use]
    pub fn written(self) -> String {
        let guess = self.0 / 366;
        let year = (guess..).take_while(|year| before(*year) <= self.0).last().unwrap_or(guess);
        format!("0{:02}{:03}", year % 100, self.0 - before(year) + 1)
    }

    /// Whether it is at most so many days before another one, or so many after.
    #[must_use]
    pub fn is_near(self, other: Self, (before, after): (u64, u64)) -> bool {
        match self.0.checked_sub(other.0) {
            Some(ahead) => ahead <= after,
            None => other.0 - self.0 <= before,
        }
    }
}

/// Days before a year of this century: every fourth one is longer, the first one included.
fn before(year: u64) -> u64 {
    year * 365 + year.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn days() {
        for (text, day) in [
            ("000001", 0),
            ("000366", 365),
            ("001001", 366),
            ("026065", 9561),
            ("024366", 9131),
            ("099365", 36_524),
        ] {
            let read = Day::read(text).expect("a day");
            assert_eq!((read, read.written().as_str()), (Day(day), text));
        }
        for text in ["026000", "026366", "02606", "126065", "0260 5", "-26065", "", "02606X"] {
            assert_eq!(Day::read(text), None, "{text}");
        }
        for day in 0..36_525 {
            assert_eq!(Day::read(&Day(day).written()), Some(Day(day)));
        }
    }

    #[test]
    fn instants_and_distances() {
        assert_eq!(Day::of_instant(1_772_841_660_000).written(), "026066");
        let day = |text| Day::read(text).expect("a day");
        for (text, is_near) in [
            ("026035", true),
            ("026034", false),
            ("026065", true),
            ("026238", true),
            ("026239", false),
        ] {
            assert_eq!(day(text).is_near(day("026065"), (30, 173)), is_near, "{text}");
        }
    }
}
