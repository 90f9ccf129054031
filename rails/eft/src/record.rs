//! Records of 1464 characters and the six segments in one, written and read by position.

use crate::charset;

/// Characters of every record.
pub const LENGTH: usize = 1464;

/// Characters in front of a record's segments: its type, its count, and what every record repeats.
pub const COMMON: usize = 24;

/// Characters of a segment.
pub const SEGMENT: usize = 240;

/// Segments of a record.
pub const SEGMENTS: usize = 6;

/// A text in a field of this width: as much of it as there is room for, from the left, and blanks.
#[must_use]
pub fn text(value: &str, width: usize) -> String {
    format!("{:<width$}", charset::cut(&charset::tidy(value), width))
}

/// A number in a field of this width, with zeros in front.
#[must_use]
pub fn number(value: u64, width: usize) -> String {
    format!("{value:0width$}")
}

/// Characters of which each stands at a position of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    text: String,
    /// The position of the first of them.
    first: usize,
}

impl Fields {
    /// A record as it arrived, whose blanks at the end may be missing. A byte that is not ASCII is
    /// a letter with an accent that another originator wrote: it holds one position.
    ///
    /// # Errors
    /// It is empty, too long, or holds control characters.
    pub fn read(line: &[u8], place: usize) -> Result<Self, String> {
        let kept = line.trim_ascii_end();
        if kept.is_empty() || kept.len() > LENGTH {
            return Err(format!("record {place} has {} characters", kept.len()));
        }
        if kept.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return Err(format!("record {place} holds what no record holds"));
        }
        let plain = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { '?' };
        let text: String = kept.iter().map(plain).collect();
        Ok(Self { text: format!("{text:<LENGTH$}"), first: 1 })
    }

    /// The segment at this place of the record, counted from 0. Its positions are those that it
    /// would have in the first place, as the standard has them.
    #[must_use]
    pub fn segment(&self, place: usize) -> Self {
        let first = COMMON + 1 + place * SEGMENT;
        Self { text: self.at(first, first + SEGMENT - 1).to_owned(), first: COMMON + 1 }
    }

    /// What stands from one position to another, both included.
    #[must_use]
    pub fn at(&self, first: usize, last: usize) -> &str {
        let from = first.checked_sub(self.first);
        let to = (last + 1).checked_sub(self.first);
        from.zip(to).and_then(|(from, to)| self.text.get(from..to)).unwrap_or("")
    }

    /// The number that stands there, if only digits do.
    #[must_use]
    pub fn number(&self, first: usize, last: usize) -> Option<u64> {
        let digits = self.at(first, last);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    }

    /// Whether nothing stands in it.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.bytes().all(|byte| byte == b' ')
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Fields, LENGTH, number, text};

    #[test]
    fn fields() {
        assert_eq!(text(" Tremblay & Fils ", 8), "Tremblay");
        assert_eq!(text("Élan", 6), "Elan  ");
        assert_eq!(text("\u{1}\n", 2), "  ");
        assert_eq!(number(42, 4), "0042");
    }

    #[test]
    fn positions() {
        let record = Fields::read(b"Z000000004 42\r", 7).expect("a record");
        assert_eq!((record.at(1, 1), record.at(2, 10)), ("Z", "000000004"));
        assert_eq!((record.number(2, 10), record.number(10, 13)), (Some(4), None));
        assert_eq!(record.at(1, LENGTH).len(), LENGTH);
        assert_eq!((record.at(0, 3), record.at(1464, 1465), record.at(5, 3)), ("", "", ""));
        assert!(record.segment(0).is_blank() && !record.is_blank());
        assert_eq!(record.number(1, LENGTH), None);
    }

    #[test]
    fn segments_are_read_by_the_positions_of_the_first() {
        let line: Vec<u8> = (0..LENGTH).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        let record = Fields::read(&line, 1).expect("a record");
        for place in 0..6 {
            let segment = record.segment(place);
            let moved = |position| position + place * 240;
            assert_eq!(segment.at(25, 264), record.at(moved(25), moved(264)), "{place}");
            assert_eq!(segment.at(28, 37), record.at(moved(28), moved(37)), "{place}");
            assert_eq!((segment.at(24, 26), segment.at(264, 265)), ("", ""));
        }
        assert!(record.segment(6).at(25, 25).is_empty());
    }

    #[test]
    fn a_letter_with_an_accent_holds_one_position() {
        let record = Fields::read(b"AB\xc9C", 1).expect("a record");
        assert_eq!(record.at(1, 4), "AB?C");
    }

    #[test]
    fn what_is_no_record() {
        for line in [&b""[..], b"   ", &[b'1'; 1465], b"1\t2", b"1\x002", b"\x7f"] {
            assert!(Fields::read(line, 1).is_err(), "{line:?}");
        }
    }
}
