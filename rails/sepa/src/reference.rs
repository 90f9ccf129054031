//! Our references: capitals and digits, so that no rule about slashes or spaces bears on them.

/// What stands in front of a payment's that leaves in a file: its `EndToEndId`.
const COLLECTED: &str = "RE";
/// What stands in front of an instant payment's.
const INSTANT: &str = "RJ";
/// What stands in front of a file's: its `MsgId`.
const FILE: &str = "RF";
/// What stands in front of an entry's: its `InstrId`.
const ENTRY: &str = "RI";
/// Hexadecimal digits of an instant, in milliseconds: enough until the year 10889.
const INSTANT_DIGITS: usize = 12;
/// Hexadecimal digits of a number below 10^12.
const SERIAL_DIGITS: usize = 10;
/// Digits of a file's number.
const FILE_DIGITS: usize = 9;
/// Where that number stands in the reference of a file: behind its letters and its date.
const NUMBER: std::ops::Range<usize> = 10..10 + FILE_DIGITS;

/// The reference of a payment that leaves in a file: 24 characters of the 35 that there are. `None`
/// where its parts are beyond what the host promises. The serial is unique here; the instant keeps
/// it apart from those of another database.
#[must_use]
pub fn collected(begun_at_ms: u64, serial: u64) -> Option<String> {
    named(COLLECTED, begun_at_ms, serial)
}

/// The reference of an instant payment.
#[must_use]
pub fn instant(begun_at_ms: u64, serial: u64) -> Option<String> {
    named(INSTANT, begun_at_ms, serial)
}

/// The reference of a question or a request about a payment: two letters, and the same behind.
#[must_use]
pub fn named(kind: &str, at_ms: u64, serial: u64) -> Option<String> {
    let instant = format!("{at_ms:0INSTANT_DIGITS$X}");
    let serial = format!("{serial:0SERIAL_DIGITS$X}");
    let fits = instant.len() == INSTANT_DIGITS && serial.len() == SERIAL_DIGITS;
    fits.then(|| format!("{kind}{instant}{serial}"))
}

/// The reference of a name check, as a UUID: the VoP scheme wants one.
#[must_use]
pub fn name_check(begun_at_ms: u64, serial: u64) -> Option<String> {
    let parts = named("", begun_at_ms, serial)?.to_ascii_lowercase();
    let (instant, serial) = parts.split_at_checked(INSTANT_DIGITS)?;
    let (high, low) = instant.split_at_checked(8)?;
    Some(format!("{high}-{low}-8000-8000-00{serial}"))
}

/// Whether this may be the reference of one of our payments.
#[must_use]
pub fn is_payment(text: &str) -> bool {
    is_collected(text) || is_instant(text)
}

/// Whether this may be the reference of a payment that left in a file.
#[must_use]
pub fn is_collected(text: &str) -> bool {
    is_behind(COLLECTED, text)
}

/// Whether this may be the reference of an instant payment.
#[must_use]
pub fn is_instant(text: &str) -> bool {
    is_behind(INSTANT, text)
}

fn is_behind(kind: &str, text: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    text.strip_prefix(kind).is_some_and(|digits| {
        digits.len() == INSTANT_DIGITS + SERIAL_DIGITS && digits.bytes().all(is_digit)
    })
}

/// The reference of a file: its date, its number and the instant of its first payment, which keeps
/// it apart from the files of another database. 31 characters of the 35 that there are.
#[must_use]
pub fn file(date: &str, number: u64, first_at_ms: u64) -> Option<String> {
    let date = date.replace('-', "");
    let number = format!("{number:0FILE_DIGITS$}");
    let instant = format!("{first_at_ms:0INSTANT_DIGITS$X}");
    let fits = number.len() == FILE_DIGITS && instant.len() == INSTANT_DIGITS;
    Some(format!("{FILE}{date}{number}{instant}")).filter(|file| fits && is_file(file))
}

/// Whether this may be the reference of one of our files.
#[must_use]
pub fn is_file(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(FILE) else { return false };
    let Some((digits, instant)) = rest.split_at_checked(8 + FILE_DIGITS) else { return false };
    let is_hex = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    digits.bytes().all(|b| b.is_ascii_digit())
        && instant.len() == INSTANT_DIGITS
        && instant.bytes().all(is_hex)
}

/// The reference of what a file holds under one date of execution: all of it.
#[must_use]
pub fn batch(file: &str) -> String {
    format!("{file}-1")
}

/// The number of a file, as it stands in its reference.
#[must_use]
pub fn number_of(file: &str) -> Option<&str> {
    file.get(NUMBER).filter(|_| is_file(file))
}

/// The reference of an entry: the number of its file, and its payment's reference without the
/// letters in front. So it tells a payment from itself in another file, and from those of another
/// database. 33 characters of the 35 that there are.
#[must_use]
pub fn entry(file: u64, payment: &str) -> Option<String> {
    let digits = payment.strip_prefix(COLLECTED).filter(|_| is_collected(payment))?;
    let file = format!("{file:0FILE_DIGITS$}");
    (file.len() == FILE_DIGITS).then(|| format!("{ENTRY}{file}{digits}"))
}

/// What an entry is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The number of its file.
    pub file: &'a str,
    /// The reference of its payment.
    pub payment: String,
}

/// What the reference of one of our entries says; `None` where it is none.
#[must_use]
pub fn placed(entry: &str) -> Option<Placed<'_>> {
    let (file, digits) = entry.strip_prefix(ENTRY)?.split_at_checked(FILE_DIGITS)?;
    let payment = format!("{COLLECTED}{digits}");
    let is_one = file.bytes().all(|b| b.is_ascii_digit()) && is_collected(&payment);
    is_one.then_some(Placed { file, payment })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{
        batch, collected, entry, file, instant, is_collected, is_file, is_instant, is_payment,
        name_check, number_of, placed,
    };

    const AT_MS: u64 = 1_795_251_600_000;

    #[test]
    fn payments() {
        let first = collected(AT_MS, 2).expect("a reference");
        assert_eq!(first, "RE01A1FD557A800000000002");
        assert!(is_payment(&first) && is_collected(&first) && !is_instant(&first));
        let last = instant(AT_MS, 999_999_999_999).expect("a reference");
        assert_eq!((last.len(), is_instant(&last), is_collected(&last)), (24, true, false));
        assert_eq!(collected(u64::MAX, 1), None);
        assert_eq!(instant(1, u64::MAX), None);
        for other in
            ["", "RE", "NOTPROVIDED", "re01a1fd557a800000000002", "RE01A1FD557A80000000000Z"]
        {
            assert!(!is_payment(other), "{other}");
        }
    }

    #[test]
    fn files_and_entries() {
        let first = file("2026-03-06", 42, AT_MS).expect("a reference");
        assert_eq!(first, "RF2026030600000004201A1FD557A80");
        assert!(is_file(&first) && batch(&first).len() <= 35);
        assert_eq!(file("2026-03-06", 1_000_000_000, AT_MS), None);
        assert_eq!(file("today", 1, AT_MS), None);
        assert!(!is_file("RF") && !is_file("RE01A1FD557A800000000002") && !is_file("RFé"));
        assert_eq!((number_of(&first), number_of("RF")), (Some("000000042"), None));
    }

    #[test]
    fn entries_name_file_and_payment() {
        let payment = collected(AT_MS, 2).expect("a reference");
        let first = entry(42, &payment).expect("a reference");
        assert_eq!((&*first, first.len()), ("RI00000004201A1FD557A800000000002", 33));
        let found = placed(&first).expect("an entry");
        assert_eq!((found.file, found.payment), ("000000042", payment.clone()));
        assert_eq!(entry(u64::MAX, &payment), None);
        assert_eq!(entry(42, &instant(AT_MS, 2).expect("a reference")), None);
        for other in [
            "",
            "RI",
            "RI1",
            "RI000000042000000000001",
            "RE00000004201A1FD557A800000000002",
            "RI\u{e9}",
        ] {
            assert_eq!(placed(other), None, "{other}");
        }
    }

    #[test]
    fn name_checks_are_uuids() {
        let found = name_check(AT_MS, 3).expect("a reference");
        assert_eq!(found, "01a1fd55-7a80-8000-8000-000000000003");
    }
}
