//! Records of 94 characters, written and read by position.

use crate::charset;

/// Characters of every record.
pub const LENGTH: usize = 94;

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

/// A record as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the file, from 1.
    pub line: usize,
    text: String,
}

impl Record {
    /// A line of a file, whose blanks at the end may be missing.
    ///
    /// # Errors
    /// It is empty, too long, or holds other characters than printable ASCII.
    pub fn read(line: &[u8], place: usize) -> Result<Self, String> {
        let kept = line.trim_ascii_end();
        if kept.is_empty() || kept.len() > LENGTH {
            return Err(format!("line {place} has {} characters", kept.len()));
        }
        if kept.iter().any(|byte| !(b' '..=b'~').contains(byte)) {
            return Err(format!("line {place} holds what no record holds"));
        }
        let text = String::from_utf8_lossy(kept);
        Ok(Self { line: place, text: format!("{text:<LENGTH$}") })
    }

    /// What stands from one position to another, both included and counted from 1.
    #[must_use]
    pub fn at(&self, first: usize, last: usize) -> &str {
        first.checked_sub(1).and_then(|start| self.text.get(start..last)).unwrap_or("")
    }

    /// The number that stands there, if only digits do.
    #[must_use]
    pub fn number(&self, first: usize, last: usize) -> Option<u64> {
        let digits = self.at(first, last);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    }

    /// The record type: its first character.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.at(1, 1)
    }

    /// Whether it only fills a block.
    #[must_use]
    pub fn is_filler(&self) -> bool {
        self.text.bytes().all(|byte| byte == b'9')
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{LENGTH, Record, number, text};

    #[test]
    fn fields() {
        assert_eq!(text(" Müller & Söhne ", 8), "Muller &");
        assert_eq!(text("A", 3), "A  ");
        assert_eq!(text("\u{1}\n", 2), "  ");
        assert_eq!(number(42, 8), "00000042");
    }

    #[test]
    fn positions() {
        let record = Record::read(b"9000001 42\r", 7).expect("a record");
        assert_eq!((record.kind(), record.at(2, 7), record.line), ("9", "000001", 7));
        assert_eq!((record.number(2, 7), record.number(8, 10)), (Some(1), None));
        assert_eq!(record.at(1, LENGTH).len(), LENGTH);
        assert_eq!((record.at(0, 3), record.at(90, 95), record.at(5, 3)), ("", "", ""));
        assert!(Record::read(&[b'9'; 94], 1).expect("a record").is_filler());
        assert!(!record.is_filler());
    }

    #[test]
    fn what_is_no_record() {
        for line in [&b""[..], b"   ", &[b'1'; 95], b"1\t2", "1é".as_bytes(), b"1\x002", b"\xff"] {
            assert!(Record::read(line, 1).is_err(), "{line:?}");
        }
    }
}
