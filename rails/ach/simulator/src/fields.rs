//! Records of fixed width, and the fields in them.

/// Characters of a record.
pub const WIDTH: usize = 94;
/// Records of a block.
pub const BLOCK: usize = 10;

/// A field: its first position and its last, both counted from 1, and its name.
#[derive(Clone, Copy, Debug)]
pub struct Field(pub usize, pub usize, pub &'static str);

/// One record of a file, of printable ASCII and as wide as it has to be.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it stands in the file, from 1.
    number: usize,
    text: &'a str,
}

/// The records of a file: each ended by a line feed, and as many as fill blocks.
///
/// # Errors
/// In words, the first that is no record.
pub fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not US-ASCII".to_owned())?;
    let text = text.strip_suffix('\n').ok_or("the last record is not ended by a line feed")?;
    let records: Vec<Record<'_>> = (1..)
        .zip(text.split('\n'))
        .map(|(number, text)| Record::new(number, text))
        .collect::<Result<_, _>>()?;
    if records.len().is_multiple_of(BLOCK) {
        Ok(records)
    } else {
        Err(format!("{} records do not fill blocks of {BLOCK}", records.len()))
    }
}

impl<'a> Record<'a> {
    fn new(number: usize, text: &'a str) -> Result<Self, String> {
        if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(format!("record {number} has characters beside printable ASCII"));
        }
        if text.len() != WIDTH {
            return Err(format!("record {number} has {} characters, not {WIDTH}", text.len()));
        }
        Ok(Self { number, text })
    }

    /// The record's type: its first character.
    #[must_use]
    pub fn kind(&self) -> &'a str {
        self.text.get(..1).unwrap_or_default()
    }

    /// Whether it fills a block, and says nothing.
    #[must_use]
    pub fn is_filler(&self) -> bool {
        self.text.bytes().all(|byte| byte == b'9')
    }

    /// What is wrong with it as a whole.
    #[must_use]
    pub fn wrong(&self, why: &str) -> String {
        format!("record {}: {why}", self.number)
    }

    /// What is wrong with a field of it.
    #[must_use]
    pub fn fault(&self, Field(from, to, name): Field, why: &str) -> String {
        format!("record {}, positions {from} to {to}: the {name} {why}", self.number)
    }

    /// A field as it stands there.
    #[must_use]
    pub fn raw(&self, Field(from, to, _): Field) -> &'a str {
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
    ) -> Result<&'a str, String> {
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

    /// A field of text that may be left blank, without the blanks behind it.
    ///
    /// # Errors
    /// There are blanks in front of it.
    pub fn optional_text(&self, field: Field) -> Result<&'a str, String> {
        let text = self.raw(field).trim_end_matches(' ');
        if text.starts_with(' ') {
            return Err(self.fault(field, "must stand on the left"));
        }
        Ok(text)
    }

    /// A field of text, without the blanks behind it.
    ///
    /// # Errors
    /// It is blank, or there are blanks in front of it.
    pub fn text(&self, field: Field) -> Result<&'a str, String> {
        match self.optional_text(field)? {
            "" => Err(self.fault(field, "must not be blank")),
            text => Ok(text),
        }
    }
}
