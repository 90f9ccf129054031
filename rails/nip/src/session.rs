//! The SessionID, by which NIP knows a message: thirty digits, of which six are the sending
//! institution, twelve the local time as `yyMMddHHmmss`, and twelve a number that the sender
//! makes unique.
//!
//! Everything in it comes from the attempt, so that every later call about the same attempt
//! makes the same SessionID.

/// Nigeria keeps West Africa Time, one hour ahead of UTC, without summer time.
const WEST_AFRICA_AHEAD_S: u64 = 3600;

/// The number has twelve digits.
const NUMBERS: u64 = 1_000_000_000_000;

/// A SessionID of this institution for the instant and the number.
///
/// # Errors
/// A sentence, where the institution is not six digits or the number has more than twelve.
pub fn make(institution: &str, begun_at_ms: u64, number: u64) -> Result<String, String> {
    if institution.len() != 6 || !is_digits(institution) {
        return Err("the institution code of this rail must be six digits".into());
    }
    if number >= NUMBERS {
        return Err("the number of this attempt has more than twelve digits".into());
    }
    let local_s = begun_at_ms / 1000 + WEST_AFRICA_AHEAD_S;
    let (year, month, day) = civil(local_s / 86_400);
    let (hour, minute, second) = (local_s / 3600 % 24, local_s / 60 % 60, local_s % 60);
    Ok(format!(
        "{institution}{:02}{month:02}{day:02}{hour:02}{minute:02}{second:02}{number:012}",
        year % 100
    ))
}

/// Whether the text has the shape of a SessionID.
#[must_use]
pub fn is_session(text: &str) -> bool {
    text.len() == 30 && is_digits(text)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Year, month and day of a count of days since 1 January 1970, in the Gregorian calendar.
/// The count is taken from 1 March of year zero, so that the leap day ends a year and the
/// lengths of the months repeat every five.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;

    use super::{civil, is_session, make};

    #[test]
    fn known_instants() {
        for (ms, stamp) in [
            (0, "700101010000"),
            // One second before the new year of Lagos, and the new year itself.
            (946_681_199_999, "991231235959"),
            (946_681_200_000, "000101000000"),
            // The leap day, which 2000 had and 2100 will not have.
            (951_782_400_000, "000229010000"),
            (1_709_247_599_000, "240229235959"),
            (1_709_247_600_000, "240301000000"),
            (1_795_251_600_000, "261121100000"),
            (4_107_538_800_000, "000301000000"),
        ] {
            let session = make("000001", ms, 1).expect("a session");
            assert_eq!(&session[6..18], stamp, "{ms}");
            assert_eq!(&session[..6], "000001");
            assert_eq!(&session[18..], "000000000001");
        }
    }

    #[test]
    fn what_makes_no_session() {
        for institution in ["", "00001", "0000011", "00001A", "０００"] {
            assert!(make(institution, 0, 1).is_err(), "{institution:?}");
        }
        assert!(make("000001", 0, 1_000_000_000_000).is_err());
        assert!(make("000001", u64::MAX, 999_999_999_999).is_ok());
    }

    #[test]
    fn what_has_the_shape_of_a_session() {
        let session = make("999998", 1_795_251_600_000, 2).expect("a session");
        assert_eq!(session, crate::fixtures::REFERENCE);
        assert!(is_session(&session));
        for odd in ["", &session[..29], &format!("{session}0"), &session.replace('9', "A")] {
            assert!(!is_session(odd), "{odd:?}");
        }
    }

    fn days_in(year: u64, month: u64) -> u64 {
        let divides = |years: u64| year.is_multiple_of(years);
        let is_leap = divides(4) && (!divides(100) || divides(400));
        match month {
            2 => 28 + u64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn the_calendar_counts_like_a_calendar() {
        let mut expected = (1970, 1, 1);
        for day in 0..150_000 {
            assert_eq!(civil(day), expected, "day {day}");
            let (year, month, date) = expected;
            expected = if date < days_in(year, month) {
                (year, month, date + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
    }

    proptest! {
        #[test]
        fn always_a_session_and_always_the_same(ms: u64, number in 0_u64..1_000_000_000_000) {
            let session = make("999998", ms, number).expect("a session");
            let tail = format!("{number:012}");
            prop_assert!(is_session(&session) && session.ends_with(&tail));
            prop_assert_eq!(Ok(session), make("999998", ms, number));
        }
    }
}
