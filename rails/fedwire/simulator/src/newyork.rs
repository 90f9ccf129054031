//! Days and times in New York.

/// A time as clocks there show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    /// Hours behind UTC.
    behind: u64,
}

/// What clocks show at an instant.
#[must_use]
pub fn shown(at_ms: u64) -> Shown {
    let utc_s = at_ms / 1_000;
    let winter = read(utc_s.saturating_sub(5 * 3_600), 5);
    // Daylight time lasts from the second Sunday of March at two to the first of November at two,
    // which is one in winter's time.
    let from = (3, sunday(winter.year, 3, 8), 2);
    let until = (11, sunday(winter.year, 11, 1), 1);
    let now = (winter.month, winter.day, winter.hour);
    if from <= now && now < until { read(utc_s - 4 * 3_600, 4) } else { winter }
}

/// The network's day at an instant, as `20261123`: it begins at nine in the evening before.
#[must_use]
pub fn cycle(at_ms: u64) -> String {
    let late = shown(at_ms).hour >= 21;
    let Shown { year, month, day, .. } = shown(at_ms + if late { 12 * 3_600_000 } else { 0 });
    format!("{year:04}{month:02}{day:02}")
}

/// The network's day of an instant that is written in New York's time.
#[must_use]
pub fn cycle_of(written: &str) -> String {
    let part = |from, to| written.get(from..to).and_then(|part| part.parse().ok()).unwrap_or(0_u64);
    let (year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    let is_late = part(11, 13) >= 21;
    let (year, month, day) = match () {
        () if !is_late => (year, month, day),
        () if day < days_of_month(year, month) => (year, month, day + 1),
        () if month < 12 => (year, month + 1, 1),
        () => (year + 1, 1, 1),
    };
    format!("{year:04}{month:02}{day:02}")
}

/// An instant, as messages have it.
#[must_use]
pub fn written(at_ms: u64) -> String {
    let Shown { year, month, day, hour, minute, second, behind } = shown(at_ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}-{behind:02}:00")
}

/// A day such as `20261123` with dashes.
#[must_use]
pub fn dashed(day: &str) -> String {
    let part = |from, to| day.get(from..to).unwrap_or_default();
    format!("{}-{}-{}", part(0, 4), part(4, 6), part(6, 8))
}

fn read(local_s: u64, behind: u64) -> Shown {
    let (mut year, mut month, mut days) = (1970, 1, local_s / 86_400);
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    let of_day = local_s % 86_400;
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    Shown { year, month, day: days + 1, hour, minute, second, behind }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The first Sunday of a month from this day on.
fn sunday(year: u64, month: u64, from: u64) -> u64 {
    let years: u64 = (1970..year).map(days_of_year).sum();
    let months: u64 = (1..month).map(|month| days_of_month(year, month)).sum();
    // 1970 began with a Thursday: day 3 was a Sunday.
    let days = years + months + from - 1;
    from + (10 - days % 7) % 7
}

#[cfg(test)]
mod tests {
    use super::{cycle, cycle_of, dashed, written};

    #[test]
    fn what_clocks_show() {
        for (at_s, expected) in [
            (1_772_953_199, "2026-03-08T01:59:59-05:00"),
            (1_772_953_200, "2026-03-08T03:00:00-04:00"),
            (1_793_512_799, "2026-11-01T01:59:59-04:00"),
            (1_793_512_800, "2026-11-01T01:00:00-05:00"),
            (1_795_446_000, "2026-11-23T10:00:00-05:00"),
            (1_709_182_800, "2024-02-29T00:00:00-05:00"),
        ] {
            assert_eq!(written(at_s * 1_000), expected);
        }
    }

    #[test]
    fn days_begin_in_the_evening() {
        assert_eq!(cycle(1_795_226_399_000), "20261120");
        assert_eq!(cycle(1_795_226_400_000), "20261121");
        assert_eq!(cycle(1_798_768_800_000), "20270101");
        assert_eq!(dashed("20270101"), "2027-01-01");
        for at_ms in (0..4_000).map(|hour| 1_795_226_400_000 + hour * 3_600_000) {
            assert_eq!(cycle_of(&written(at_ms)), cycle(at_ms), "{at_ms}");
        }
    }
}
