//! What the bank says about a file, once it has looked at all of it.

use serde::Serialize;

use crate::files::{Entry, File};

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// A word for machines.
    pub code: &'static str,
    /// A sentence for people.
    pub message: &'static str,
}

/// An entry that is not carried out.
pub const INVALID_ACCOUNT: Reason =
    Reason { code: "invalid_account", message: "The receiver has no such account." };
/// An entry that is not carried out again.
pub const DUPLICATE_ENTRY: Reason = Reason {
    code: "duplicate_entry",
    message: "An entry of this identification number came in another file.",
};
/// A file of which nothing is carried out.
pub const EXPOSURE_LIMIT: Reason = Reason {
    code: "exposure_limit",
    message: "The file is beyond what the originator may have outstanding.",
};
/// The same.
pub const DUPLICATE_FILE: Reason = Reason {
    code: "duplicate_file",
    message: "A file of this reference code, or of this origin, date, time and modifier, was sent.",
};

#[derive(Serialize)]
struct Report<'a> {
    report: &'static str,
    reference_code: &'a str,
    status: &'static str,
    #[serde(flatten)]
    reason: Option<Reason>,
    entries: usize,
    total_credit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_entries: Option<Vec<RejectedEntry<'a>>>,
}

#[derive(Serialize)]
struct RejectedEntry<'a> {
    trace_number: &'a str,
    amount: u64,
    #[serde(flatten)]
    reason: Reason,
}

/// A file that is carried out, but for some of its entries.
#[must_use]
pub fn accepted(file: &File, rejected: &[(&Entry, Reason)]) -> String {
    let entries = rejected.iter().map(|(entry, reason)| RejectedEntry {
        trace_number: &entry.trace,
        amount: entry.amount,
        reason: *reason,
    });
    crate::written(&Report {
        status: "accepted",
        reason: None,
        rejected_entries: Some(entries.collect()),
        ..about(file)
    })
}

/// A file of which nothing is carried out.
#[must_use]
pub fn rejected(file: &File, reason: Reason) -> String {
    crate::written(&Report { status: "rejected", reason: Some(reason), ..about(file) })
}

fn about(file: &File) -> Report<'_> {
    Report {
        report: "file",
        reference_code: &file.header.reference_code,
        status: "",
        reason: None,
        entries: file.entries().count(),
        total_credit: file.credit,
        rejected_entries: None,
    }
}
