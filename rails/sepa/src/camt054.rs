//! Money that came back, in the bank's notifications of what was booked: camt.054.001.08.
//!
//! A notification tells of everything that the account was credited or debited with. A return is a
//! credit with return information (`RtrInf`) that repeats the reference of the payment. It comes to
//! the account that paid, which may be another one than pays now, or another route's that reads the
//! same place: so a reference of ours counts in every account.

use railhead_rail::host;
use railhead_rail::types::{Finding, News, Notice, ReturnOfFunds, Subject};
use railhead_rail::wording::plain;

use crate::xml::{Element, Odd};
use crate::{amount, codes, reference, settings};

/// What stands where a payment had no reference.
const NOT_PROVIDED: &str = "NOTPROVIDED";

/// The longest name of the bank's that is kept.
const NAME_MAX: usize = 70;

/// Whose account a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Account {
    /// The one that pays now: what comes back to it concerns us, whatever it names.
    Own,
    /// Another one: what names a payment of ours does.
    Other,
}

/// What a notification says of payments of ours. What cannot be understood keeps nothing else out:
/// it becomes news about a name that nobody has, so that a person looks.
///
/// # Errors
/// It cannot be read, or a setting is missing that says which account is ours.
pub fn read(content: &Element, name: &str) -> Result<Vec<Notice>, Odd> {
    if content.name() != "BkToCstmrDbtCdtNtfctn" {
        return Err("it is no notification of what was booked".to_owned());
    }
    let own = settings::debtor_iban()?;
    let mut notices = Vec::new();
    for notification in content.all("Ntfctn") {
        let is_own = notification.text(&["Acct", "Id", "IBAN"])? == Some(own.as_str());
        let account = if is_own { Account::Own } else { Account::Other };
        if account == Account::Other {
            host::warn("a notification of the bank's is about another account");
        }
        for (index, entry) in notification.all("Ntry").enumerate() {
            if account == Account::Other && !names_ours(entry) {
                continue;
            }
            let place = format!("entry {} of {}", index + 1, plain(name, NAME_MAX));
            match booked(entry, &place, account) {
                Ok(found) => notices.extend(found),
                Err(why) => notices.push(unread(&place, &why)),
            }
        }
    }
    Ok(notices)
}

/// Returns in an entry. Payments of ours that leave are debits without return information, and of
/// those it is known what became of them.
fn booked(entry: &Element, place: &str, account: Account) -> Result<Vec<Notice>, Odd> {
    let is_credit = match entry.need(&["CdtDbtInd"])? {
        "CRDT" => true,
        "DBIT" => false,
        _ => return Err("it is neither a credit nor a debit".to_owned()),
    };
    let payments: Vec<&Element> = payments(entry).collect();
    let mut is_concerned = false;
    for payment in &payments {
        // What others pay to another account is nobody's return.
        let is_named = account == Account::Own && is_credit && ours(payment)?.is_some();
        is_concerned |= is_named
            || (payment.find("RtrInf")?.is_some()
                && (account == Account::Own || ours(payment)?.is_some()));
    }
    match entry.text(&["Sts", "Cd"])? {
        _ if !is_concerned => return Ok(Vec::new()),
        Some("BOOK") if is_credit => {}
        // What is not booked yet is told again.
        Some("PDNG" | "INFO") => return Ok(Vec::new()),
        Some("BOOK") => return Err("it takes back what came back".to_owned()),
        _ => return Err("it does not say whether it is booked".to_owned()),
    }
    let amounts = amounts(entry, &payments)?;
    let mut notices = Vec::new();
    for (index, (payment, cents)) in payments.iter().zip(amounts).enumerate() {
        // Of other payments to another account nothing is said.
        if account == Account::Other && !is_ours_back(payment) {
            continue;
        }
        match returned((entry, index), payment, cents) {
            Ok(found) => notices.extend(found),
            Err(why) => notices.push(unread(&format!("payment {} of {place}", index + 1), &why)),
        }
    }
    Ok(notices)
}

/// How much each payment of an entry is, in cents.
fn amounts(entry: &Element, payments: &[&Element]) -> Result<Vec<i64>, Odd> {
    let total = amount::read(entry.find("Amt")?.ok_or("it has no amount")?)?;
    let mut amounts = Vec::new();
    for payment in payments {
        amounts.push(match payment.find("Amt")? {
            Some(own) => amount::read(own)?,
            None if payments.len() == 1 => total,
            None => return Err("one of its payments has no amount".to_owned()),
        });
    }
    let sum = amounts.iter().try_fold(0_i64, |sum, own| sum.checked_add(*own));
    if sum == Some(total) {
        return Ok(amounts);
    }
    Err("its payments do not come to its amount".to_owned())
}

/// What came back, if this payment did and was made here.
fn returned(
    (entry, index): (&Element, usize),
    payment: &Element,
    cents: i64,
) -> Result<Option<Notice>, Odd> {
    let information = payment.find("RtrInf")?;
    let Some(reference) = ours(payment)? else {
        return match (information, payment.text(&["Refs", "EndToEndId"])?) {
            (None, _) => Ok(None),
            (Some(_), Some(other)) if other != NOT_PROVIDED => {
                host::warn("a payment that was not made here came back");
                Ok(None)
            }
            (Some(_), _) => Err("it came back, and does not say what it was".to_owned()),
        };
    };
    let information = information.ok_or("it does not say why it came back")?;
    if payment.text(&["CdtDbtInd"])?.is_some_and(|it| it != "CRDT") {
        return Err("a payment of a credit is none".to_owned());
    }
    let own = match payment.text(&["Refs", "AcctSvcrRef"])? {
        Some(name) => Some(plain(name, NAME_MAX)),
        None => entry_name(entry, index)?,
    };
    let code = codes::plain(information.text(&["Rsn", "Cd"])?.unwrap_or("returned"));
    Ok(Some(notice(reference, code, cents, own)))
}

/// The bank's own name for a payment of an entry.
fn entry_name(entry: &Element, index: usize) -> Result<Option<String>, Odd> {
    let name = match entry.text(&["AcctSvcrRef"])? {
        Some(name) => Some(name),
        None => entry.text(&["NtryRef"])?,
    };
    Ok(name.map(|name| format!("{}-{}", plain(name, NAME_MAX), index + 1)))
}

/// Money that came back. As a duplicate it is told under a name that nobody has: a person looks
/// which of two payments it is. The return of an instant payment may be told twice, as it is made
/// and as it is booked, under two names: it has none here, so that it counts once.
#[must_use]
pub fn notice(reference: &str, code: String, cents: i64, own: Option<String>) -> Notice {
    let about = match codes::class(&code) {
        codes::Class::Duplicate => {
            Subject::NetworkId(format!("{reference} returned as a duplicate ({code})"))
        }
        _ => Subject::Reference(reference.to_owned()),
    };
    let message = codes::meaning(&code).to_owned();
    let network_id = own.filter(|_| !reference::is_instant(reference));
    let funds = ReturnOfFunds { code, message, amount_minor: cents, network_id };
    Notice { about, news: News::Found(Finding::Returned(funds)) }
}

/// The payments of an entry.
fn payments(entry: &Element) -> impl Iterator<Item = &Element> {
    entry.all("NtryDtls").flat_map(|details| details.all("TxDtls"))
}

/// Whether any payment of an entry is one of ours that came back, for all that can be read.
fn names_ours(entry: &Element) -> bool {
    payments(entry).any(is_ours_back)
}

fn is_ours_back(payment: &Element) -> bool {
    matches!(ours(payment), Ok(Some(_))) && !matches!(payment.find("RtrInf"), Ok(None))
}

fn ours(payment: &Element) -> Result<Option<&str>, Odd> {
    let named = payment.text(&["Refs", "EndToEndId"])?;
    Ok(named.filter(|named| reference::is_payment(named)))
}

/// What could not be understood, in words that the case about it shows.
fn unread(place: &str, why: &str) -> Notice {
    host::warn(&format!("{place} cannot be understood: {why}"));
    let name = format!("money that may have come back, {place}");
    Notice { about: Subject::NetworkId(name), news: News::Ask }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "camt054_tests.rs"]
mod tests;
