//! Files of credits as the bank reads them.
//!
//! The layout is that of Standard 005 of Payments Canada: a header, records of up to six credits,
//! a trailer. This bank counts payments in the trailer, not records.

use std::collections::HashSet;

use crate::days::Day;
use crate::fields::{Field, Record, SEGMENTS, records};

/// How far the date of a payment may be from the file's, in days: before it, and after it.
const DAYS: (u64, u64) = (30, 173);

/// A file that a bank would take.
#[derive(Clone, Debug)]
pub struct File {
    /// Who sends it: ten letters and digits.
    pub originator: String,
    /// The file creation number: four digits.
    pub number: String,
    /// The bank's data centre: five digits.
    pub data_centre: String,
    /// Its payments, in order: at least one.
    pub payments: Vec<Payment>,
    /// What they come to, in cents.
    pub credit: u64,
}

/// A credit.
#[derive(Clone, Debug)]
pub struct Payment {
    /// Its place among those of the file, from 1.
    pub place: u64,
    /// What it is for: three digits.
    pub code: String,
    /// In cents.
    pub amount: u64,
    /// When the recipient shall have it: six digits.
    pub date: String,
    /// The recipient's institution and transit: nine digits.
    pub institution: String,
    /// The recipient's account.
    pub account: String,
    /// Who pays.
    pub short_name: String,
    /// The recipient.
    pub name: String,
    /// Who pays, in full.
    pub long_name: String,
    /// The originator's reference.
    pub reference: String,
    /// Where it goes back to: nine digits.
    pub returns_institution: String,
    /// The account there.
    pub returns_account: String,
    /// Whatever the originator put there.
    pub sundry: String,
}

const COUNT: Field = Field(2, 10, "logical record count");
const ORIGINATOR: Field = Field(11, 20, "originator's number");
const NUMBER: Field = Field(21, 24, "file creation number");

/// Reads a file.
///
/// # Errors
/// In words, the first thing that a bank would refuse it for.
pub fn read(bytes: &[u8]) -> Result<File, String> {
    let records = records(bytes)?;
    let [header, payments @ .., trailer] = records.as_slice() else {
        return Err("it ends where a record Z is due".to_owned());
    };
    kind(header, "A")?;
    let (mut file, created_on) = File::read_header(header)?;
    for record in payments {
        kind(record, "C")?;
        file.is_of_it(record)?;
        file.read_record(record, created_on)?;
    }
    kind(trailer, "Z")?;
    file.is_of_it(trailer)?;
    if file.payments.is_empty() {
        return Err(trailer.wrong("there is no payment before it"));
    }
    file.check_trailer(trailer)?;
    file.has_no_doubles()?;
    Ok(file)
}

fn kind(record: &Record, wanted: &str) -> Result<(), String> {
    let found = record.kind();
    if found == wanted {
        return Ok(());
    }
    Err(record.wrong(&format!("it is of type {found}, where {wanted} is due")))
}

impl File {
    fn read_header(record: &Record) -> Result<(Self, Day), String> {
        record.count(COUNT, 1)?;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let why = "must be ten letters and digits";
        let originator = record.matching(ORIGINATOR, why, is_plain)?.to_owned();
        if record.number(NUMBER)? == 0 {
            return Err(record.fault(NUMBER, "is that of a test"));
        }
        let date = Field(25, 30, "file creation date");
        let created_on = Day::read(record.raw(date));
        let created_on = created_on.ok_or_else(|| record.fault(date, "is no day"))?;
        let data_centre = Field(31, 35, "destination data centre");
        if record.number(data_centre)? == 0 {
            return Err(record.fault(data_centre, "is none"));
        }
        record.blank(Field(36, 55, "reserved field"))?;
        let is_currency = |text: &str| matches!(text, "CAD" | "   ");
        record.matching(Field(56, 58, "currency"), "must be CAD, or blank", is_currency)?;
        record.blank(Field(59, 1464, "filler"))?;
        let file = Self {
            originator,
            number: record.raw(NUMBER).to_owned(),
            data_centre: record.raw(data_centre).to_owned(),
            payments: Vec::new(),
            credit: 0,
        };
        Ok((file, created_on))
    }

    /// Every record says whose it is, which file's, and which of its records.
    fn is_of_it(&self, record: &Record) -> Result<(), String> {
        record.count(COUNT, record.place())?;
        record.only(ORIGINATOR, &self.originator)?;
        record.only(NUMBER, &self.number)
    }

    /// The payments of a record. Behind a segment that is left blank there are no others.
    fn read_record(&mut self, record: &Record, created_on: Day) -> Result<(), String> {
        let segments: Vec<Record> = (1..=SEGMENTS).map(|place| record.segment(place)).collect();
        let used = segments.iter().take_while(|segment| !segment.is_empty()).count();
        if used == 0 {
            return Err(record.wrong("there is no payment in it"));
        }
        let (segments, rest) = segments.split_at(used);
        if let Some(astray) = rest.iter().find(|segment| !segment.is_empty()) {
            return Err(astray.wrong("it comes behind a segment that is left blank"));
        }
        for segment in segments {
            let place = u64::try_from(self.payments.len()).unwrap_or_default() + 1;
            let payment = Payment::read(segment, (&self.originator, created_on), place)?;
            self.credit += payment.amount;
            self.payments.push(payment);
        }
        Ok(())
    }

    fn check_trailer(&self, record: &Record) -> Result<(), String> {
        record.zeros(Field(25, 38, "total of debits"))?;
        record.zeros(Field(39, 46, "number of debits"))?;
        record.count(Field(47, 60, "total of credits"), self.credit)?;
        let payments = u64::try_from(self.payments.len()).unwrap_or_default();
        record.count(Field(61, 68, "number of credits"), payments)?;
        record.zeros(Field(69, 90, "reversals of credits"))?;
        record.zeros(Field(91, 112, "reversals of debits"))?;
        record.blank(Field(113, 1464, "filler"))
    }

    /// Whoever is told about a payment is told its cross-reference number.
    fn has_no_doubles(&self) -> Result<(), String> {
        let mut references = HashSet::new();
        let mut twice = self.payments.iter().filter(|it| !references.insert(&it.reference));
        match twice.next() {
            None => Ok(()),
            Some(it) => Err(format!("the cross-reference number {} is there twice", it.reference)),
        }
    }
}

impl Payment {
    fn read(
        record: &Record,
        (originator, created_on): (&str, Day),
        place: u64,
    ) -> Result<Self, String> {
        let code = Field(25, 27, "transaction code");
        let why = "must be a code of payments, from 200 to 799";
        let is_code = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()) && ("200"..="799").contains(&text)
        };
        let code = record.matching(code, why, is_code)?.to_owned();
        let amount = Field(28, 37, "amount");
        let cents = record.number(amount)?;
        if cents == 0 {
            return Err(record.fault(amount, "must be more than nothing"));
        }
        let date = Field(38, 43, "date of funds");
        let why = "must be a day, at most 30 before the file's and 173 after";
        let is_near = |text: &str| Day::read(text).is_some_and(|day| day.is_near(created_on, DAYS));
        let date = record.matching(date, why, is_near)?.to_owned();
        let institution = institution(record, Field(44, 52, "recipient's institution"))?;
        let account = account(record, Field(53, 64, "account number"))?;
        record.zeros(Field(65, 86, "item trace number"))?;
        record.zeros(Field(87, 89, "stored transaction type"))?;
        let short_name = record.words(Field(90, 104, "originator's short name"))?.to_owned();
        let name = record.words(Field(105, 134, "payee's name"))?.to_owned();
        let long_name = record.words(Field(135, 164, "originator's long name"))?.to_owned();
        record.only(Field(165, 174, "user's number"), originator)?;
        let reference = Field(175, 193, "cross-reference number");
        let is_plain =
            |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
        if !record.text(reference)?.bytes().all(is_plain) {
            return Err(record.fault(reference, "must be capital letters, digits and hyphens"));
        }
        let sundry = Field(215, 229, "sundry information");
        let sundry = match record.raw(sundry).trim().is_empty() {
            true => String::new(),
            false => record.words(sundry)?.to_owned(),
        };
        let returns = Field(194, 202, "institution for returns");
        record.blank(Field(230, 251, "filler"))?;
        record.blank(Field(252, 253, "settlement code"))?;
        record.zeros(Field(254, 264, "invalid data element"))?;
        Ok(Self {
            place,
            code,
            amount: cents,
            date,
            institution,
            account,
            short_name,
            name,
            long_name,
            reference: record.text(reference)?.to_owned(),
            returns_institution: self::institution(record, returns)?,
            returns_account: self::account(record, Field(203, 214, "account for returns"))?,
            sundry,
        })
    }
}

/// A zero, an institution of three digits, a transit of five: neither of them nothing.
fn institution(record: &Record, field: Field) -> Result<String, String> {
    let is_one = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits
            && text.starts_with('0')
            && text.get(1..4) != Some("000")
            && !text.ends_with("00000")
    };
    record.matching(field, "must be 0, an institution and a transit", is_one).map(str::to_owned)
}

/// Digits on the left.
fn account(record: &Record, field: Field) -> Result<String, String> {
    let text = record.text(field)?;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(record.fault(field, "must be digits"))
}
