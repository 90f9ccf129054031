//! Instants and dates as the bank writes and reads them.

/// An instant in milliseconds since 1970 UTC, such as `2026-11-21T10:00:01.964Z`.
#[must_use]
pub fn written(now_ms: u64) -> String {
    let (seconds, ms) = (now_ms / 1000, now_ms % 1000);
    let second = seconds % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", date(now_ms))
}

/// The date of an instant, in UTC.
#[must_use]
pub fn date(now_ms: u64) -> String {
    let (year, month, day) = civil(now_ms / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Whether a text is a date of the calendar.
#[must_use]
pub fn is_date(text: &str) -> bool {
    let parts: Vec<Option<u32>> = text.split('-').map(number).collect();
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let [Some(year), Some(month), Some(day)] = parts.as_slice() else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    lengths == [4, 2, 2] && (1..=days).contains(day)
}

/// Whether a text is a date and a time of day, with or without milliseconds and `Z`.
#[must_use]
pub fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<Option<u32>> = time.split(':').map(number).collect();
    let is_time =
        time.len() == 8 && matches!(parts.as_slice(), [Some(0..=23), Some(0..=59), Some(0..=59)]);
    is_date(date) && is_time && number(fraction).is_some()
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Year, month and day of a day since 1970. Years begin in March, so that a leap day is the last
/// of its year; 719468 days lie between March of the year 0 and 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
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
mod tests {
    use super::{is_date, is_date_time, written};

    #[test]
    fn instants() {
        assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(written(1_795_251_601_964), "2026-11-21T09:00:01.964Z");
    }

    #[test]
    fn dates_and_times() {
        for text in ["2026-03-06T15:00:00", "2026-11-21T09:00:01.964Z"] {
            assert!(is_date_time(text), "{text}");
        }
        for text in
            ["", "2026-03-06", "2026-03-06T24:00:00", "2026-03-06T15:00", "2026-3-6T15:00:00"]
        {
            assert!(!is_date_time(text), "{text}");
        }
        assert!(is_date("2028-02-29") && !is_date("2026-02-29") && !is_date("2026-00-01"));
    }
}
