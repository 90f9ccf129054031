//! What files of a bank's say: its reports on files that it was delivered, and what came back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::file_gateway::rejection;
use crate::host;
use crate::strict::Object;
use crate::types::{Finding, News, Notice, Receipt, Subject};

/// What every report has.
#[derive(Debug, Deserialize)]
struct Kind {
    report: String,
}

/// What a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is carried out, but for what is rejected of it.
    Accepted,
    /// Nothing of it is.
    Rejected,
}

/// A report on a file, once the rail has found out which one it is about.
#[derive(Debug)]
pub struct Report {
    /// The identity of the file.
    pub file: String,
    /// What it came to.
    pub status: Status,
    /// Why it was rejected, for machines.
    pub code: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// Payments of the file as the bank received it, with those that it rejects.
    pub payments: Option<u64>,
    /// What these come to, in minor units. Nothing is accepted without it.
    pub total_minor: Option<i64>,
    /// Payments that are not carried out, of a file that is; nothing for one that cannot be read.
    pub rejected: Vec<Option<Rejected>>,
}

/// A payment that is not carried out.
#[derive(Debug)]
pub struct Rejected {
    /// What the bank and we call it.
    pub network_id: String,
    /// Why, for machines.
    pub code: String,
    /// Why, for people.
    pub message: Option<String>,
}

/// What a report of one network may say.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Codes with which a file is refused.
    pub file: &'static [&'static str],
    /// Codes with which a payment of a file is.
    pub payment: &'static [&'static str],
    /// The most that a payment can be, in minor units.
    pub amount_minor_max: i64,
}

/// A report on a file, in the rail's own shape.
///
/// # Errors
/// It is none, or says what nobody documented.
pub fn report<T: DeserializeOwned>(content: &[u8]) -> Result<T, String> {
    let odd = |cause: serde_json::Error| format!("it is no report: {cause}");
    let Object(kind) = serde_json::from_slice::<Object<Kind>>(content).map_err(odd)?;
    if kind.report != "file" {
        return Err("it is a report on something else than a file".to_owned());
    }
    let Object(report) = serde_json::from_slice::<Object<T>>(content).map_err(odd)?;
    Ok(report)
}

impl Report {
    /// What it says: of the whole file, and of payments that are not carried out.
    ///
    /// Where one of those cannot be read, nobody knows which payments were taken: the others are
    /// told, and the file itself is not called accepted, so that a person looks. What is rejected
    /// with a code that is not known to refuse may be carried out, as a duplicate's first copy is.
    ///
    /// # Errors
    /// It contradicts itself.
    pub fn notices(self, limits: &Limits) -> Result<Vec<Notice>, String> {
        match self.status {
            Status::Rejected if self.rejected.is_empty() => {
                let (code, message) = (self.code.as_deref(), self.message.as_deref());
                let finding = rejection(limits.file, code, message);
                Ok(vec![found(Subject::File(self.file), finding)])
            }
            Status::Rejected => Err("it rejects the file, and payments of it".to_owned()),
            Status::Accepted => self.accepted(limits),
        }
    }

    fn accepted(self, limits: &Limits) -> Result<Vec<Notice>, String> {
        let total = self.total(limits)?;
        let (mut rejected, mut unread) = (BTreeMap::new(), 0);
        for payment in self.rejected {
            let Some(Rejected { network_id, code, message }) = payment else {
                unread += 1;
                continue;
            };
            let finding = rejection(limits.payment, Some(&code), message.as_deref());
            if rejected.insert(network_id, finding).is_some() {
                return Err("it rejects a payment twice".to_owned());
            }
        }
        let told = rejected.into_iter().map(|(name, it)| found(Subject::NetworkId(name), it));
        let told: Vec<Notice> = told.collect();
        if unread > 0 {
            let why = format!("{unread} rejected payments of a report cannot be read");
            host::warn(&why);
            return if told.is_empty() { Err(why) } else { Ok(told) };
        }
        let receipt = Receipt {
            code: "accepted".to_owned(),
            network_id: None,
            amount_minor: Some(total),
            facts: Vec::new(),
        };
        let mut notices = vec![found(Subject::File(self.file), Finding::Accepted(receipt))];
        notices.extend(told);
        Ok(notices)
    }

    /// What the payments of an accepted file come to, if the report says so and means one thing.
    fn total(&self, limits: &Limits) -> Result<i64, String> {
        if self.code.is_some() || self.message.is_some() {
            return Err("it accepts the file, and says what is wrong with it".to_owned());
        }
        let total =
            self.total_minor.ok_or("it accepts the file, and does not say of what total")?;
        let rejected = u64::try_from(self.rejected.len()).unwrap_or(u64::MAX);
        let payments = self.payments.unwrap_or(rejected.max(1));
        if payments == 0 || rejected > payments {
            return Err("it rejects more payments than the file has, or accepts none".to_owned());
        }
        let most = self
            .payments
            .and_then(|it| i64::try_from(it).ok()?.checked_mul(limits.amount_minor_max));
        let least = i64::try_from(payments).unwrap_or(i64::MAX);
        if !(least..=most.unwrap_or(i64::MAX)).contains(&total) {
            return Err("its total is not one that so many payments come to".to_owned());
        }
        Ok(total)
    }
}

fn found(about: Subject, finding: Finding) -> Notice {
    Notice { about, news: News::Found(finding) }
}

/// Why a record of a file says nothing about a payment of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It is understood, and about something else.
    Elsewhere(String),
    /// It cannot be understood.
    Unreadable(String),
}

/// What the records of a file say. What is about something else is passed over with a line in the
/// log. What cannot be understood hides nothing else: it becomes news about a name that nobody has,
/// which says in words what and where it is, so that a person looks.
///
/// # Errors
/// Nothing in it can be understood.
pub fn records<T>(
    records: &[T],
    news: impl Fn(&T) -> Result<Notice, Passed>,
    in_words: impl Fn(&T) -> String,
) -> Result<Vec<Notice>, String> {
    let (mut notices, mut unreadable, mut is_understood) = (Vec::new(), None, false);
    for record in records {
        match news(record) {
            Ok(notice) => {
                notices.push(notice);
                is_understood = true;
            }
            Err(Passed::Elsewhere(why)) => host::warn(&why),
            Err(Passed::Unreadable(why)) => {
                host::warn(&why);
                let about = Subject::NetworkId(in_words(record));
                notices.push(Notice { about, news: News::Ask });
                unreadable.get_or_insert(why);
            }
        }
    }
    match unreadable {
        Some(why) if !is_understood => Err(why),
        _ => Ok(notices),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "bank_files_tests.rs"]
mod tests;
