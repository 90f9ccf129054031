//! Entries of the bank's: returns, and notifications of change.

use railhead_rail::bank_files::Passed;
use railhead_rail::fields::field;
use railhead_rail::host;
use railhead_rail::types::{Correction, Field, Finding, News, Notice, ReturnOfFunds, Subject};
use railhead_rail::wording::plain;

use crate::codes::{self, Change, Reason};
use crate::incoming::Item;
use crate::record::Record;
use crate::settings::Settings;
use crate::{aba, charset, entries, recipients};

/// The class of batches that hold notifications of change.
const CORRECTIONS: &str = "COR";

/// The reason code of returns that a person looks at before a payment counts as returned.
const DUPLICATE: &str = "R24";

/// Characters of a company's identification.
const COMPANY_MAX: usize = 10;

/// What an entry says. The bank's file may hold those of its other customers, too.
///
/// # Errors
/// Nothing about a payment of ours.
pub fn news(item: &Item, settings: &Settings) -> Result<Notice, Passed> {
    let Item { company, class, entry, addenda } = item;
    if our_reference(entry).is_none() && !is_any(company, settings) {
        return Err(elsewhere(entry, "it is another company's"));
    }
    match entry.at(2, 3) {
        "21" | "31" => {}
        "26" | "36" => return Err(elsewhere(entry, "it is about a debit")),
        _ => return Err(unreadable(entry, "it is neither a return nor a notification of change")),
    }
    let [addenda] = addenda.as_slice() else {
        return Err(unreadable(entry, "it has not exactly one addenda record"));
    };
    // The same trace number is what proves that they belong together.
    let trace = entry.at(80, 94);
    if entry.at(79, 79) != "1" || !is_trace(trace) || addenda.at(80, 94) != trace {
        return Err(unreadable(entry, "its addenda record is not its own"));
    }
    let original = addenda.at(7, 21);
    if !is_trace(original) {
        return Err(unreadable(entry, "it names no entry"));
    }
    let about = subject(item, original, settings);
    let mut about =
        about.ok_or_else(|| elsewhere(entry, "it is about an entry of another bank's"))?;
    let news = match (class.as_str(), addenda.at(2, 3)) {
        (CORRECTIONS, "98") => News::Corrected(correction(entry, addenda)?),
        ("PPD" | "CCD", "99") => {
            let funds = returned(entry, addenda)?;
            if funds.code == DUPLICATE {
                // Nobody knows a payment by this name, and a person looks which one it is.
                let name = format!("{original} returned as a duplicate ({DUPLICATE})");
                about = Subject::NetworkId(name);
            }
            News::Found(Finding::Returned(funds))
        }
        (CORRECTIONS, _) | (_, "98") => {
            return Err(unreadable(entry, "its addenda record is not of its batch's kind"));
        }
        (_, "99") => return Err(elsewhere(entry, "it returns an entry of another class")),
        _ => return Err(unreadable(entry, "its addenda record is of another kind")),
    };
    Ok(Notice { about, news })
}

fn elsewhere(entry: &Record, why: &str) -> Passed {
    Passed::Elsewhere(format!("line {}: {why}", entry.line))
}

fn unreadable(entry: &Record, why: &str) -> Passed {
    Passed::Unreadable(format!("line {}: {why}", entry.line))
}

/// A payment that came back, whole: the entry has its amount, and its own trace number.
fn returned(entry: &Record, addenda: &Record) -> Result<ReturnOfFunds, Passed> {
    let code = addenda.at(4, 6);
    let message = match codes::reason(code) {
        Some(Reason::Returned(message)) => message,
        Some(Reason::Disputed(message)) => {
            let why = format!("{code}, a dispute between banks: {message}");
            return Err(elsewhere(entry, &why));
        }
        None => return Err(unreadable(entry, "its reason code is none")),
    };
    let amount = entry.number(30, 39).and_then(|cents| i64::try_from(cents).ok());
    let Some(amount_minor) = amount.filter(|cents| *cents > 0) else {
        return Err(unreadable(entry, "it returns nothing"));
    };
    let network_id = Some(entry.at(80, 94).to_owned());
    Ok(ReturnOfFunds {
        code: code.to_owned(),
        message: message.to_owned(),
        amount_minor,
        network_id,
    })
}

/// What shall be written otherwise. The code is told even where its data cannot be read.
fn correction(entry: &Record, addenda: &Record) -> Result<Correction, Passed> {
    let code = addenda.at(4, 6);
    let message = match codes::change(code) {
        Some(Change::Corrects(message)) => message,
        Some(Change::Refuses) => {
            return Err(elsewhere(entry, "it refuses a notification of change"));
        }
        None => return Err(unreadable(entry, "its change code is none")),
    };
    if entry.number(30, 39) != Some(0) {
        return Err(unreadable(entry, "a notification of change has an amount"));
    }
    let fields = corrected(code, addenda).unwrap_or_else(|| {
        let line = addenda.line;
        host::warn(&format!("line {line}: the corrected data of {code} cannot be read"));
        Vec::new()
    });
    Ok(Correction { code: code.to_owned(), message: message.to_owned(), fields })
}

/// Which payment it is about: nothing, if one of somebody else's.
///
/// Our reference says which, whatever bank the settings name by now, where the company is ours or
/// one of those that the settings name beside it. Of any other company it may be a reference of the
/// same shape that somebody else has given: it is told under a name that nobody has, so that a
/// person looks. Without our reference company and bank say whose it is, and the trace number of
/// the original entry says which.
fn subject(item: &Item, original: &str, settings: &Settings) -> Option<Subject> {
    let company = item.company.as_str();
    let is_company = is_any(company, settings);
    let is_bank = original.starts_with(&settings.odfi);
    match our_reference(&item.entry) {
        Some(reference) if is_company => Some(Subject::Reference(reference.to_owned())),
        Some(reference) => {
            let company = plain(&item.company, COMPANY_MAX);
            let name = format!("an entry to the company {company} with the reference {reference}");
            Some(Subject::NetworkId(name))
        }
        None => (is_company && is_bank).then(|| Subject::NetworkId(original.to_owned())),
    }
}

/// Our reference, where the entry repeats it.
fn our_reference(entry: &Record) -> Option<&str> {
    Some(entry.at(40, 54).trim()).filter(|text| entries::is_ours(text))
}

/// Whether a batch is of any company that the settings name.
fn is_any(company: &str, settings: &Settings) -> bool {
    let further = settings.further_company_ids.iter();
    further.chain([&settings.company_id]).any(|own| is_own(company, own))
}

/// Whether a batch is of the company that pays. The first of its ten characters only says of what
/// kind the nine others are, and there are banks that leave it out.
fn is_own(company: &str, own: &str) -> bool {
    company == own || own.get(1..) == Some(company)
}

/// Whether a text is a trace number.
#[must_use]
pub fn is_trace(text: &str) -> bool {
    text.len() == 15 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The corrected data by their code: 29 characters, in which the rules give each part its place.
fn corrected(code: &str, addenda: &Record) -> Option<Vec<Field>> {
    // Positions are those of the corrected data, which begin at 36.
    let part = |first: usize, last: usize| addenda.at(first + 35, last + 35);
    let blank = |first, last| part(first, last).trim().is_empty().then_some(());
    match code {
        "C01" => {
            blank(18, 29)?;
            Some(vec![account(part(1, 17))?])
        }
        "C02" => {
            blank(10, 29)?;
            Some(vec![routing(part(1, 9))?])
        }
        "C03" => {
            blank(10, 12)?;
            Some(vec![routing(part(1, 9))?, account(part(13, 29))?])
        }
        "C04" => {
            blank(23, 29)?;
            let name = charset::tidy(part(1, 22));
            let is_name = name.contains(|c: char| c.is_ascii_alphanumeric());
            is_name.then(|| vec![field("name", name)])
        }
        "C05" => {
            blank(3, 29)?;
            Some(vec![account_type(part(1, 2))?])
        }
        "C06" => {
            blank(18, 20)?;
            blank(23, 29)?;
            Some(vec![account(part(1, 17))?, account_type(part(21, 22))?])
        }
        "C07" => {
            blank(29, 29)?;
            let (routing, account) = (routing(part(1, 9))?, account(part(10, 26))?);
            Some(vec![routing, account, account_type(part(27, 28))?])
        }
        _ => Some(Vec::new()),
    }
}

fn account(text: &str) -> Option<Field> {
    recipients::account(text).map(|number| field("account_number", number))
}

fn routing(text: &str) -> Option<Field> {
    aba::is_possible(text).then(|| field("routing_number", text))
}

/// The type of account that a transaction code speaks of. Of others than these two no recipient is.
fn account_type(transaction: &str) -> Option<Field> {
    let word = match transaction {
        "22" | "23" | "24" | "27" | "28" | "29" => "checking",
        "32" | "33" | "34" | "37" | "38" | "39" => "savings",
        _ => return None,
    };
    Some(field("account_type", word))
}
