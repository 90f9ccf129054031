//! Files of returned credits, from the bank to the originator.
//!
//! The layout is that of Standard 005 of Payments Canada, logical record type I: the reason stands
//! in place of the transaction code, which becomes the stored one; what was the account for returns
//! is now where the payment goes, and its recipient's account stands behind it. Dates are UTC.

use railhead_simulator::host;

use crate::days::Day;
use crate::fields::{SEGMENTS, WIDTH};
use crate::files::{File, Payment};
use crate::incoming::Feed;

/// The reason if nothing else was asked for: the account cannot be found.
pub const NO_ACCOUNT: &str = "902";

/// A payment that comes back.
#[derive(Clone, Debug)]
pub struct Returned<'a> {
    /// As it came.
    pub payment: &'a Payment,
    /// Why: three digits.
    pub code: String,
}

/// Why a payment comes back that plays this scenario, if it does.
#[must_use]
pub fn code(scenario: &str) -> Option<String> {
    if scenario == "returned" {
        return Some(NO_ACCOUNT.to_owned());
    }
    let code = scenario.strip_prefix("return_")?;
    let is_code =
        code.len() == 3 && code.starts_with('9') && code.bytes().all(|byte| byte.is_ascii_digit());
    is_code.then(|| code.to_owned())
}

/// Writes what comes back of a file as the next file of the feed.
#[must_use]
pub fn written(file: &File, back: &[Returned<'_>], feed: &mut Feed) -> String {
    let today = Day::of_instant(host::now_ms()).written();
    let number = feed.file_number();
    let common =
        |kind: char, place: usize| format!("{kind}{place:09}{:<10}{number:04}", file.originator);
    let mut records = vec![format!("{}{today}{}{:20}CAD", common('A', 1), file.data_centre, "")];
    for back in back.chunks(SEGMENTS) {
        let segments = back.iter().map(|it| segment(file, it, (&today, feed)));
        let segments: String = segments.collect();
        records.push(common('I', records.len() + 1) + &segments);
    }
    let total: u64 = back.iter().map(|it| it.payment.amount).sum();
    records.push(format!(
        "{}{:014}{:08}{total:014}{:08}{:044}",
        common('Z', records.len() + 1),
        0,
        0,
        back.len(),
        0,
    ));
    records.iter().map(|record| format!("{record:<WIDTH$}\r\n")).collect()
}

fn segment(file: &File, back: &Returned<'_>, (today, feed): (&str, &mut Feed)) -> String {
    let Returned { payment, code } = back;
    // What the recipient's institution numbers items by: where, which file, which item.
    let institution = payment.institution.get(..4).unwrap_or_default();
    let trace = format!(
        "{}{institution}{:04}{:09}",
        file.data_centre,
        feed.file_number(),
        feed.next_item()
    );
    let own = format!("{}0000{}{:09}", file.data_centre, file.number, payment.place);
    format!(
        "{code}{:010}{today}{}{:<12}{trace}{}{:<15}{:<30}{:<30}{:<10}{:<19}{}{:<12}{:<15}{own}{:2}{:011}",
        payment.amount,
        payment.returns_institution,
        payment.returns_account,
        payment.code,
        payment.short_name,
        payment.name,
        payment.long_name,
        file.originator,
        payment.reference,
        payment.institution,
        payment.account,
        payment.sundry,
        "",
        0,
    )
}
