//! Payments that came back: returned credits, logical record type I.

use railhead_rail::bank_files::Passed;
use railhead_rail::types::{Finding, News, Notice, ReturnOfFunds, Subject};
use railhead_rail::wording::plain;

use crate::codes;
use crate::entries;
use crate::incoming::{Item, Kind};

/// What a payment of the bank's file says. The file may hold those of its other customers, too.
///
/// # Errors
/// Nothing about a payment of ours.
pub fn news(item: &Item, originator_id: &str) -> Result<Notice, Passed> {
    match item.kind {
        Kind::ReturnedCredit | Kind::CreditReversal => {}
        Kind::Credit => return Err(elsewhere(item, "it pays somebody")),
        Kind::Debit | Kind::DebitReversal | Kind::ReturnedDebit => {
            return Err(elsewhere(item, "it is about a debit"));
        }
        Kind::NoticeOfChange => return Err(unreadable(item, "it is a notice of change")),
    }
    let about = subject(item, originator_id);
    let about = about.ok_or_else(|| elsewhere(item, "it is another originator's"))?;
    if item.kind == Kind::CreditReversal {
        return Err(unreadable(item, "a credit is reversed, which nobody here has asked for"));
    }
    let finding = Finding::Returned(returned(item)?);
    Ok(Notice { about, news: News::Found(finding) })
}

fn elsewhere(item: &Item, why: &str) -> Passed {
    Passed::Elsewhere(format!("{}: {why}", item.place))
}

fn unreadable(item: &Item, why: &str) -> Passed {
    Passed::Unreadable(format!("{}: {why}", item.place))
}

/// A payment that came back, whole. The reason stands in place of its transaction code; where that
/// is the payment's own, the reason stands where the stored one belongs.
fn returned(item: &Item) -> Result<ReturnOfFunds, Passed> {
    let segment = &item.segment;
    let reasons = [segment.at(25, 27), segment.at(87, 89)];
    let known = reasons.into_iter().find_map(|code| codes::meaning(code).map(|it| (code, it)));
    let Some((code, message)) = known else {
        return Err(unreadable(item, "it has no return code"));
    };
    let amount = segment.number(28, 37).and_then(|cents| i64::try_from(cents).ok());
    let Some(amount_minor) = amount.filter(|cents| *cents > 0) else {
        return Err(unreadable(item, "it returns nothing"));
    };
    Ok(ReturnOfFunds {
        code: code.to_owned(),
        message: message.to_owned(),
        amount_minor,
        network_id: trace(item),
    })
}

/// The trace number that the bank has given to the return; none where it is only zeros.
fn trace(item: &Item) -> Option<String> {
    let digits = item.segment.at(65, 86);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && digits.bytes().any(|byte| byte != b'0')).then(|| digits.to_owned())
}

/// Whose payment it is: nothing, if another originator's.
///
/// A return repeats the originator's number and our reference, which is the cross-reference number.
/// Where a bank leaves the number out, the reference is enough. Where either of them is not ours,
/// and the other one is, it is about a name that nobody has, so that a person looks.
fn subject(item: &Item, originator_id: &str) -> Option<Subject> {
    let originator = item.segment.at(165, 174).trim();
    let reference = item.segment.at(175, 193).trim();
    let is_ours = entries::is_ours(reference);
    let stranger = |of: &str| {
        let reference = plain(reference, 19);
        Subject::NetworkId(format!("a return{of} with the cross-reference number {reference:?}"))
    };
    match originator {
        "" => is_ours.then(|| Subject::Reference(reference.to_owned())),
        known if known == originator_id && is_ours => {
            Some(Subject::Reference(reference.to_owned()))
        }
        known if known == originator_id => Some(stranger("")),
        other => is_ours.then(|| stranger(&format!(" to the originator {}", plain(other, 10)))),
    }
}
