//! Dates as CPA-005 files write them: `0YYDDD`, the year's last two digits and the day in it.

/// Days before each month of a year that is no leap year.
const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// `2026-03-06` as `026065`.
///
/// # Errors
/// It is no date of this century.
pub fn short(text: &str) -> Result<String, String> {
    day_of_year(text)
        .map(|(year, day)| format!("0{:02}{day:03}", year % 100))
        .ok_or_else(|| format!("{text:?} is not a date"))
}

/// The year, and the day in it from 1.
fn day_of_year(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('-');
    let mut part = |digits: usize| {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok())?
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    // Of the years of this century every fourth one is longer, 2000 included.
    let leap = u32::from(year.is_multiple_of(4));
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let before = BEFORE.get(index)? + if month > 2 { leap } else { 0 };
    let length = match month {
        2 => 28 + leap,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date =
        parts.next().is_none() && (2000..=2099).contains(&year) && (1..=length).contains(&day);
    is_date.then_some((year, before + day))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::short;

    #[test]
    fn days_in_their_year() {
        for (date, expected) in [
            ("2026-01-01", "026001"),
            ("2026-02-28", "026059"),
            ("2026-03-01", "026060"),
            ("2026-11-20", "026324"),
            ("2026-12-31", "026365"),
            ("2000-12-31", "000366"),
            ("2028-02-29", "028060"),
            ("2028-03-01", "028061"),
            ("2099-12-31", "099365"),
        ] {
            assert_eq!(short(date).as_deref(), Ok(expected), "{date}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-00-10",
            "2026-02-29",
            "2026-04-31",
            "2026-11-00",
            "2026-11-32",
            "26-11-20",
            "2026-1-01",
            "2026-11-20-1",
            "2026-+1-01",
            "1999-12-31",
            "2100-01-01",
            "2026/11/20",
            "２０２６-11-20",
        ] {
            assert!(short(text).is_err(), "{text}");
        }
    }
}
