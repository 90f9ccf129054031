//! Records of fixed width, and the fields in them.

/// Characters of a record.
pub const WIDTH: usize = 1464;
/// Characters in front of a record's segments.
pub const COMMON: usize = 24;
/// Characters of a segment.
pub const SEGMENT: usize = 240;
/// Segments of a record.
pub const SEGMENTS: usize = 6;

/// What begins a line that a bank may want in front of a file.
const FRONT: &str = "$$";

/// Signs that stand in texts.
const SIGNS: [char; 9] = [' ', '&', '\'', '(', ')', ',', '-', '.', '/'];

/// A field: its first position and its last, both counted from 1, and its name. Fields of a segment
/// have the positions of a record's first one.
#[derive(Clone, Copy, Debug)]
pub struct Field(pub usize, pub usize, pub &'static str);

/// One record of a file, or a segment of one: printable ASCII, and as wide as it has to be.
#[derive(Clone, Debug)]
pub struct Record {
    /// Where it stands in the file, from 1.
    number: usize,
    /// Which segment it is, from 1; 0 for the record itself.
    segment: usize,
    text: String,
}

/// The records of a file: each ended by CR LF or each by LF, or none of them by anything; each as
/// wide as it has to be, or each without the blanks at its end.
///
/// # Errors
/// In words, the first that is no record.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not US-ASCII".to_owned())?;
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n');
    if !text.bytes().all(is_plain) {
        return Err("it has characters beside printable ASCII".to_owned());
    }
    if !text.contains('\n') {
        return unbroken(text);
    }
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let text = text.strip_suffix(end).ok_or("the last record is not ended as the others are")?;
    let mut lines: Vec<&str> = text.split(end).collect();
    if lines.first().is_some_and(|line| line.starts_with(FRONT)) {
        lines.remove(0);
    }
    let is_trimmed = lines.iter().any(|line| line.len() < WIDTH);
    let read = |(number, line): (usize, &&str)| {
        let wrong = |why: &str| Err(format!("record {number}: {why}"));
        if line.contains(['\r', '\n']) {
            return wrong("it is not ended as the others are");
        }
        if line.len() > WIDTH {
            return wrong(&format!("it has {} characters, not {WIDTH}", line.len()));
        }
        if is_trimmed && (line.ends_with(' ') || line.is_empty()) {
            return wrong("some records have their blanks at the end, and some have not");
        }
        Ok(Record { number, segment: 0, text: format!("{line:<WIDTH$}") })
    };
    (1..).zip(&lines).map(read).collect()
}

fn unbroken(text: &str) -> Result<Vec<Record>, String> {
    if text.is_empty() || !text.len().is_multiple_of(WIDTH) || text.contains('\r') {
        return Err(format!("{} characters are no records of {WIDTH}", text.len()));
    }
    let starts = (0..text.len()).step_by(WIDTH);
    let records = (1..).zip(starts).map(|(number, start)| Record {
        number,
        segment: 0,
        text: text.get(start..start + WIDTH).unwrap_or_default().to_owned(),
    });
    Ok(records.collect())
}

impl Record {
    /// The record's type: its first character.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text.get(..1).unwrap_or_default()
    }

    /// Its place in the file.
    #[must_use]
    pub fn place(&self) -> u64 {
        u64::try_from(self.number).unwrap_or_default()
    }

    /// A segment of it, counted from 1, as if it were the first one.
    #[must_use]
    pub fn segment(&self, segment: usize) -> Self {
        let start = COMMON + (segment.saturating_sub(1)) * SEGMENT;
        let text = self.text.get(start..start + SEGMENT).unwrap_or_default();
        let text = format!("{:COMMON$}{text}", "");
        Self { number: self.number, segment, text }
    }

    /// Whether nothing stands in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.bytes().all(|byte| byte == b' ')
    }

    /// What is wrong with it as a whole.
    #[must_use]
    pub fn wrong(&self, why: &str) -> String {
        match self.segment {
            0 => format!("record {}: {why}", self.number),
            segment => format!("record {}, segment {segment}: {why}", self.number),
        }
    }

    /// What is wrong with a field of it.
    #[must_use]
    pub fn fault(&self, Field(from, to, name): Field, why: &str) -> String {
        self.wrong(&format!("positions {from} to {to}: the {name} {why}"))
    }

    /// A field as it stands there.
    #[must_use]
    pub fn raw(&self, Field(from, to, _): Field) -> &str {
        self.text.get(from.saturating_sub(1)..to).unwrap_or_default()
    }

    /// A field that is as `is_right` wants it.
    ///
    /// # Errors
    /// It is not: `why`.
    pub fn matching(
        &self,
        field: Field,
        why: &str,
        is_right: impl FnOnce(&str) -> bool,
    ) -> Result<&str, String> {
        let text = self.raw(field);
        if is_right(text) { Ok(text) } else { Err(self.fault(field, why)) }
    }

    /// A field that can only be this.
    ///
    /// # Errors
    /// It is something else.
    pub fn only(&self, field: Field, wanted: &str) -> Result<(), String> {
        self.matching(field, &format!("must be {wanted:?}"), |text| text == wanted).map(|_| ())
    }

    /// A field that is left blank.
    ///
    /// # Errors
    /// It is not.
    pub fn blank(&self, field: Field) -> Result<(), String> {
        self.matching(field, "must be blank", |text| text.trim().is_empty()).map(|_| ())
    }

    /// A field of digits, zeros in front.
    ///
    /// # Errors
    /// There is something else in it.
    pub fn number(&self, field: Field) -> Result<u64, String> {
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let why = "must be digits, with zeros in front";
        let text = self.matching(field, why, is_digits)?;
        text.parse().map_err(|_| self.fault(field, why))
    }

    /// A field of zeros.
    ///
    /// # Errors
    /// There is something else in it.
    pub fn zeros(&self, field: Field) -> Result<(), String> {
        let is_zeros = |text: &str| text.bytes().all(|byte| byte == b'0');
        self.matching(field, "must be zeros", is_zeros).map(|_| ())
    }

    /// A field of digits that says how much or how many there are.
    ///
    /// # Errors
    /// It says something else.
    pub fn count(&self, field: Field, there_are: u64) -> Result<(), String> {
        let said = self.number(field)?;
        if said == there_are {
            Ok(())
        } else {
            Err(self.fault(field, &format!("is {said}, where it comes to {there_are}")))
        }
    }

    /// A field of text, without the blanks behind it.
    ///
    /// # Errors
    /// It is blank, or there are blanks in front of it.
    pub fn text(&self, field: Field) -> Result<&str, String> {
        match self.raw(field).trim_end_matches(' ') {
            "" => Err(self.fault(field, "must not be blank")),
            text if text.starts_with(' ') => Err(self.fault(field, "must stand on the left")),
            text => Ok(text),
        }
    }

    /// A field of text in the characters that this bank takes: letters, digits, spaces and signs of
    /// a short list.
    ///
    /// # Errors
    /// It is blank, there are blanks in front of it, or it has other characters.
    pub fn words(&self, field: Field) -> Result<&str, String> {
        let text = self.text(field)?;
        match text.chars().find(|c| !c.is_ascii_alphanumeric() && !SIGNS.contains(c)) {
            None => Ok(text),
            Some(odd) => Err(self.fault(field, &format!("must not hold {odd:?}"))),
        }
    }
}
