//! Instants and dates as messages write them.

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

/// An instant in milliseconds since 1970 UTC, such as `2026-11-21T09:00:01.964Z`.
#[must_use]
pub fn instant(at_ms: u64) -> String {
    let (date, ms) = (date(at_ms), at_ms % DAY_MS);
    let (hour, minute, second) = (ms / HOUR_MS, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// The date of an instant where TARGET keeps its days: Central European time.
#[must_use]
pub fn settlement_date(at_ms: u64) -> String {
    date(at_ms.saturating_add(if is_summer(at_ms) { 2 * HOUR_MS } else { HOUR_MS }))
}

/// Summer time holds from one in the morning (UTC) of the last Sunday in March to that of the last
/// in October (Directive 2000/84/EC).
fn is_summer(at_ms: u64) -> bool {
    let (year, ..) = civil(at_ms / DAY_MS);
    let change = |month| {
        days_to(year, month, 31)
            .map(|last| last_sunday(last).saturating_mul(DAY_MS).saturating_add(HOUR_MS))
    };
    match (change(3), change(10)) {
        (Some(begin), Some(end)) => (begin..end).contains(&at_ms),
        _ => false,
    }
}

/// 1 January 1970 was a Thursday.
fn last_sunday(day: u64) -> u64 {
    day - (day + 4) % 7
}

fn date(at_ms: u64) -> String {
    let (year, month, day) = civil(at_ms / DAY_MS);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Days from 1970 to a date; none before that.
fn days_to(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

/// Year, month and day of a day since 1970. Years begin in March, so that a leap day is the last of
/// its year; 719468 days lie between March of the year 0 and 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{instant, settlement_date};

    #[test]
    fn instants() {
        for (at_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_795_251_601_964, "2026-11-21T09:00:01.964Z"),
        ] {
            assert_eq!(instant(at_ms), text);
        }
        let _ = instant(u64::MAX);
    }

    #[test]
    fn dates_change_at_midnight_in_frankfurt() {
        for (at_ms, text) in [
            // 2026-11-21T22:59:59.999Z, and a millisecond later.
            (1_795_301_999_999, "2026-11-21"),
            (1_795_302_000_000, "2026-11-22"),
            // 2026-07-01T21:59:59.999Z, and a millisecond later.
            (1_782_943_199_999, "2026-07-01"),
            (1_782_943_200_000, "2026-07-02"),
            // The day on which summer time begins, and the day before.
            (1_774_738_800_000, "2026-03-29"),
            (1_774_821_599_999, "2026-03-29"),
            (1_774_821_600_000, "2026-03-30"),
        ] {
            assert_eq!(settlement_date(at_ms), text, "{at_ms}");
        }
        let _ = settlement_date(u64::MAX);
    }
}
