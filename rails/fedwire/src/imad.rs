//! IMADs (input message accountability data), which Fedwire calls messages by: the day, who sends,
//! and a number of the day. A second message of the same IMAD is refused.

use crate::days::Day;

/// Characters of an IMAD.
const LENGTH: usize = 22;
/// Characters of its day.
const DAY: usize = 8;
/// Characters of its source.
const SOURCE: usize = 8;

/// How many payments in a row have numbers of their own: each takes two, of which there are 999,999.
/// It has no factor in common with ten, so that payments whose serials are ten apart, as those of
/// first attempts are, use all of them, too.
const PAYMENTS: u64 = 499_999;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The wire itself.
    Wire,
    /// Asking for it back.
    Recall,
}

/// The IMAD of a message about the payment with this serial, sent on this day; `None` where source
/// or year are none that it can hold.
#[must_use]
pub fn of(day: Day, source: &str, serial: u64, purpose: Purpose) -> Option<String> {
    let imad = format!("{}{source}{:06}", day.compact(), number(serial, purpose));
    is_imad(&imad).then_some(imad)
}

/// Whether a text is an IMAD.
#[must_use]
pub fn is_imad(text: &str) -> bool {
    let is_in = |from: usize, to: usize, is_it: fn(u8) -> bool| {
        text.as_bytes().get(from..to).is_some_and(|part| part.iter().all(|byte| is_it(*byte)))
    };
    text.len() == LENGTH
        && is_in(0, DAY, |byte| byte.is_ascii_digit())
        && is_in(DAY, DAY + SOURCE, |byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && is_in(DAY + SOURCE, LENGTH, |byte| byte.is_ascii_digit())
}

/// Whether a text is an IMAD of this source.
#[must_use]
pub fn is_of_source(text: &str, source: &str) -> bool {
    is_imad(text) && text[DAY..DAY + SOURCE] == *source
}

/// Whether a text is the IMAD of the wire of this payment, on whatever day it was sent.
#[must_use]
pub fn is_of_wire(text: &str, source: &str, serial: u64) -> bool {
    is_of_source(text, source)
        && text[DAY + SOURCE..] == format!("{:06}", number(serial, Purpose::Wire))
}

/// The day that an IMAD begins with, as `2026-11-23`.
#[must_use]
pub fn day(imad: &str) -> Option<String> {
    let part = |from, to| imad.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    is_imad(imad).then(|| format!("{year}-{month}-{day}"))
}

/// Wires have the odd numbers from 1 to 999,997, and what asks for one back has the next even one.
fn number(serial: u64, purpose: Purpose) -> u64 {
    2 * (serial % PAYMENTS) + if purpose == Purpose::Wire { 1 } else { 2 }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use std::collections::HashSet;

    use super::{PAYMENTS, Purpose, day, is_imad, is_of_source, is_of_wire, of};
    use crate::days::cycle;

    #[test]
    fn the_parts() {
        let today = cycle(1_795_251_600_000);
        let wire = of(today, "B1QDRCQR", 2, Purpose::Wire).expect("an IMAD");
        assert_eq!(wire, "20261121B1QDRCQR000005");
        let recall = of(today, "B1QDRCQR", 2, Purpose::Recall).expect("an IMAD");
        assert_eq!(recall, "20261121B1QDRCQR000006");
        assert!(is_of_wire(&wire, "B1QDRCQR", 2) && !is_of_wire(&recall, "B1QDRCQR", 2));
        assert!(is_of_wire("20270101B1QDRCQR000005", "B1QDRCQR", 2));
        assert!(!is_of_wire(&wire, "B1QDRCQS", 2) && !is_of_wire(&wire, "B1QDRCQR", 3));
        assert_eq!(day(&wire).as_deref(), Some("2026-11-21"));
        assert!(is_of_source(&recall, "B1QDRCQR") && !is_of_source(&recall, "C1QDRCQR"));
        assert!(!is_of_source("", "") && !is_of_source("20261121B1QDRCQR", "B1QDRCQR"));
    }

    #[test]
    fn half_a_million_payments_of_a_day_have_their_own() {
        let today = cycle(1_795_251_600_000);
        for step in [1, 10] {
            let mut seen = HashSet::new();
            for serial in (0..PAYMENTS).map(|at| 700_001 + at * step) {
                for purpose in [Purpose::Wire, Purpose::Recall] {
                    let imad = of(today, "B1QDRCQR", serial, purpose).expect("an IMAD");
                    assert!(!imad.ends_with("000000") && seen.insert(imad));
                }
            }
        }
    }

    #[test]
    fn what_is_none() {
        let today = cycle(1_795_251_600_000);
        for source in ["", "B1QDRCQ", "B1QDRCQRX", "b1qdrcqr", "B1QDRCQ\u{e9}", "B1QD CQR"] {
            assert_eq!(of(today, source, 2, Purpose::Wire), None, "{source}");
        }
        assert_eq!(of(cycle(u64::MAX), "B1QDRCQR", 2, Purpose::Wire), None);
        for text in ["", "20261121B1QDRCQR00000", "2026112xB1QDRCQR000005", "\u{e9}\u{e9}\u{e9}"] {
            assert!(!is_imad(text) && day(text).is_none() && !is_of_wire(text, "B1QDRCQR", 2));
        }
    }
}
