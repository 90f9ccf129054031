//! What the bank says about a file, once it has looked at all of it.

use serde::Serialize;

use crate::files::{File, Payment};

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// A word for machines.
    pub code: &'static str,
    /// A sentence for people.
    pub message: &'static str,
}

/// A payment that is not carried out.
pub const INVALID_ACCOUNT: Reason =
    Reason { code: "invalid_account", message: "The recipient has no such account." };
/// A payment that is not carried out again.
pub const DUPLICATE_PAYMENT: Reason = Reason {
    code: "duplicate_payment",
    message: "A payment of this cross-reference number came in another file.",
};
/// A file of which nothing is carried out.
pub const EXPOSURE_LIMIT: Reason = Reason {
    code: "exposure_limit",
    message: "The file is beyond what the originator may have outstanding.",
};
/// The same.
pub const DUPLICATE_FILE: Reason = Reason {
    code: "duplicate_file",
    message: "A file of this creation number was sent a short time ago.",
};

#[derive(Serialize)]
struct Report<'a> {
    report: &'static str,
    file_name: &'a str,
    file_creation_number: &'a str,
    status: &'static str,
    #[serde(flatten)]
    reason: Option<Reason>,
    payments: usize,
    total_credit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_payments: Option<Vec<RejectedPayment<'a>>>,
}

#[derive(Serialize)]
struct RejectedPayment<'a> {
    cross_reference_number: &'a str,
    amount: u64,
    #[serde(flatten)]
    reason: Reason,
}

/// A file that is carried out, but for some of its payments.
#[must_use]
pub fn accepted(name: &str, file: &File, rejected: &[(&Payment, Reason)]) -> String {
    let payments = rejected.iter().map(|(payment, reason)| RejectedPayment {
        cross_reference_number: &payment.reference,
        amount: payment.amount,
        reason: *reason,
    });
    crate::written(&Report {
        status: "accepted",
        reason: None,
        rejected_payments: Some(payments.collect()),
        ..about(name, file)
    })
}

/// A file of which nothing is carried out.
#[must_use]
pub fn rejected(name: &str, file: &File, reason: Reason) -> String {
    crate::written(&Report { status: "rejected", reason: Some(reason), ..about(name, file) })
}

fn about<'a>(name: &'a str, file: &'a File) -> Report<'a> {
    Report {
        report: "file",
        file_name: name,
        file_creation_number: &file.number,
        status: "",
        reason: None,
        payments: file.payments.len(),
        total_credit: file.credit,
        rejected_payments: None,
    }
}
