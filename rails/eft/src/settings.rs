//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

use crate::charset;

/// Values that go into files, and how a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the bank calls whoever pays: ten characters.
    pub originator_id: String,
    /// The bank's data centre that takes the file: five digits.
    pub data_centre: String,
    /// Who pays, as recipients' statements show it.
    pub short_name: String,
    /// The same in full.
    pub long_name: String,
    /// Institution and transit that returns go to: nine digits, the first a zero.
    pub returns_institution: String,
    /// The account there.
    pub returns_account: String,
    /// What the payments are for: a transaction code of Standard 007.
    pub transaction_code: String,
    /// The currency in the header: `CAD`, or nothing.
    pub currency: String,
    /// What stands in the field for the originator's own use.
    pub sundry: Sundry,
    /// Whether texts are written in capitals.
    pub has_capitals: bool,
    /// What ends a record.
    pub framing: Framing,
    /// Whether blanks fill a record up to its end.
    pub is_padded: bool,
    /// A line in front of the file, which some banks want; empty without one.
    pub first_line: String,
    /// What the trailer counts.
    pub counts: Counts,
    /// How far the bank's count of files is ahead of the host's.
    pub file_number_offset: u64,
    /// The number after which the first one comes again.
    pub file_number_last: u64,
}

/// What stands in the sundry information of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sundry {
    /// Nothing.
    Blank,
    /// As much of the narration as there is room for.
    Narration,
    /// The number of the entry among all that the route has sent.
    Entry,
}

/// What ends a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// CR LF.
    CrLf,
    /// LF.
    Lf,
    /// Nothing: the next one begins after 1464 characters.
    None,
}

impl Framing {
    /// The characters themselves.
    #[must_use]
    pub fn end(self) -> &'static str {
        match self {
            Self::CrLf => "\r\n",
            Self::Lf => "\n",
            Self::None => "",
        }
    }
}

/// What the trailer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Payments.
    Payments,
    /// Records of payments.
    Records,
}

impl Settings {
    /// The settings of this call.
    ///
    /// # Errors
    /// One is missing, does not fit into its field, or contradicts another one.
    pub fn read() -> Result<Self, String> {
        let settings = Self {
            originator_id: originator_id()?,
            data_centre: digits("data_centre", 5, 5)?,
            short_name: name("short_name", 15)?,
            long_name: name("long_name", 30)?,
            returns_institution: digits("returns_institution", 9, 9)?,
            returns_account: digits("returns_account", 1, 12)?,
            transaction_code: transaction_code()?,
            currency: choice("currency", &[("CAD", "CAD"), ("blank", "")])?.to_owned(),
            sundry: choice(
                "sundry",
                &[
                    ("blank", Sundry::Blank),
                    ("narration", Sundry::Narration),
                    ("entry", Sundry::Entry),
                ],
            )?,
            has_capitals: choice("capitals", &[("yes", true), ("no", false)])?,
            framing: choice(
                "framing",
                &[("crlf", Framing::CrLf), ("lf", Framing::Lf), ("none", Framing::None)],
            )?,
            is_padded: choice("padding", &[("full", true), ("trimmed", false)])?,
            first_line: first_line()?,
            counts: choice(
                "counts",
                &[("payments", Counts::Payments), ("records", Counts::Records)],
            )?,
            file_number_offset: number("file_number_offset")?,
            file_number_last: number("file_number_last")?,
        };
        settings.make_sense()?;
        Ok(settings)
    }

    fn make_sense(&self) -> Result<(), String> {
        if !self.returns_institution.starts_with('0') {
            return Err("the setting returns_institution does not begin with a zero".to_owned());
        }
        if self.framing == Framing::None && (!self.is_padded || !self.first_line.is_empty()) {
            let why = "without line ends (framing) every record has its full length (padding), \
                       and no first_line stands in front";
            return Err(why.to_owned());
        }
        if self.file_number_last == 0 {
            return Err("the setting file_number_last is zero".to_owned());
        }
        Ok(())
    }
}

/// What the bank calls whoever pays: payments of ours are known by it when they come back.
///
/// # Errors
/// It is missing, or is not ten letters and digits.
pub fn originator_id() -> Result<String, String> {
    let value = given("originator_id");
    if value.len() == 10 && value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(value);
    }
    Err("the setting originator_id is not ten letters and digits".to_owned())
}

fn given(name: &str) -> String {
    host::setting(name).unwrap_or_default().trim().to_owned()
}

/// A name of at most so many characters, with its accents or without.
fn name(setting: &str, most: usize) -> Result<String, String> {
    let value = charset::tidy(&given(setting));
    if charset::says_something(&value) && value.len() <= most {
        return Ok(value);
    }
    Err(format!("the setting {setting} is missing, or does not fit into its {most} characters"))
}

fn digits(setting: &str, least: usize, most: usize) -> Result<String, String> {
    let value = given(setting);
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits && (least..=most).contains(&value.len()) {
        return Ok(value);
    }
    Err(format!("the setting {setting} is not {least} to {most} digits"))
}

/// Codes of Standard 007 for payments are from 200 to 799.
fn transaction_code() -> Result<String, String> {
    let code = digits("transaction_code", 3, 3)?;
    match ("200"..="799").contains(&code.as_str()) {
        true => Ok(code),
        false => Err("the setting transaction_code is not from 200 to 799".to_owned()),
    }
}

fn number(setting: &str) -> Result<u64, String> {
    let digits = digits(setting, 1, 4)?;
    digits.parse().map_err(|_| format!("the setting {setting} is no number"))
}

/// One of a few words, and what it stands for.
fn choice<T: Copy>(setting: &str, words: &[(&str, T)]) -> Result<T, String> {
    let value = given(setting);
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("the setting {setting} is not {}", words.join(" or "))
    })
}

fn first_line() -> Result<String, String> {
    let value = given("first_line");
    if value.len() <= 80 && value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(value);
    }
    Err("the setting first_line is no line of at most 80 printable characters".to_owned())
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double;

    use super::{Framing, Settings};
    use crate::fixtures;

    fn with(changes: &[(&str, &str)]) -> Result<Settings, String> {
        let mut host = fixtures::host();
        for (name, value) in changes {
            host.settings.insert((*name).to_owned(), (*value).to_owned());
        }
        double::install(host);
        Settings::read()
    }

    #[test]
    fn each_must_fit_into_its_field() {
        assert_eq!(with(&[]).expect("settings").framing, Framing::CrLf);
        for (name, bad) in [
            ("originator_id", ""),
            ("originator_id", "123456789"),
            ("originator_id", "01234-6789"),
            ("data_centre", "0320"),
            ("data_centre", "0032X"),
            ("short_name", ""),
            ("short_name", "--"),
            ("short_name", "Sixteen letters."),
            ("long_name", "Thirty characters and one more."),
            ("returns_institution", "000300320X"),
            ("returns_institution", "300300320"),
            ("returns_account", ""),
            ("returns_account", "1234567890123"),
            ("returns_account", "123-456"),
            ("transaction_code", "45"),
            ("transaction_code", "4500"),
            ("transaction_code", "199"),
            ("transaction_code", "800"),
            ("transaction_code", "000"),
            ("transaction_code", "902"),
            ("currency", "USD"),
            ("sundry", "name"),
            ("capitals", ""),
            ("framing", "cr"),
            ("padding", "none"),
            ("first_line", "é"),
            ("counts", "segments"),
            ("file_number_offset", "-1"),
            ("file_number_offset", "10000"),
            ("file_number_last", "0"),
            ("file_number_last", ""),
        ] {
            let why = with(&[(name, bad)]).expect_err(name);
            assert!(why.contains(name), "{name} {bad:?}: {why}");
        }
        for code in ["200", "450", "799"] {
            assert!(with(&[("transaction_code", code)]).is_ok(), "{code}");
        }
        assert_eq!(with(&[("short_name", "Élan Paie")]).expect("a name").short_name, "Elan Paie");
    }

    #[test]
    fn a_file_without_line_ends_has_whole_records_and_no_first_line() {
        assert!(with(&[("framing", "none")]).is_ok());
        for other in [("padding", "trimmed"), ("first_line", "$$AAPACPA1464[PROD[NL$$")] {
            assert!(with(&[("framing", "lf"), other]).is_ok(), "{other:?}");
            let why = with(&[("framing", "none"), other]).expect_err("a contradiction");
            assert!(why.contains("framing") && why.contains(other.0), "{why}");
        }
    }
}
