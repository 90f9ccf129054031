//! What becomes of files and payments: that depends on the scenarios that the payments play.
//!
//! Some scenarios are of a whole file, which plays that of the first payment that has such a one; a
//! payment has it only the first time that it arrives:
//!
//! | scenario | the file |
//! |---|---|
//! | `provider_down` | the gateway is down, for questions too; any payment makes it so, every time |
//! | `never_received` | does not arrive; the next one that has the payment is taken |
//! | `file_rejected` | is taken, and rejected as a whole |
//! | `file_duplicate` | is said to have been sent before: nothing of it is carried out |
//! | `file_unclear` | is taken, and said to be carried out in part |
//! | `timeout_then_paid`, `timeout_then_failed` | is taken, and not answered |
//! | `timeout_then_unknown` | the same; nothing is ever said about it, and it cannot be found |
//! | `duplicate_callback` | is reported on twice, and in the wrong order |
//!
//! Of the payments that a file may have beside, or else of all, and of instant payments:
//!
//! | scenario | the payment |
//! |---|---|
//! | `failed`, `timeout_then_failed`, `reject_ac01` | is rejected: with `AC01`, or with that code |
//! | `returned`, `return_ac04` | is made, and comes back: for `AC04`, or for that reason |
//! | `processing` | waits; in a file that is reported on once none of its payments waits any more |
//! | anything else | is made |

use railhead_simulator::types::{State, Transfer};

/// The scenario in which nothing can be reached.
pub const PROVIDER_DOWN: &str = "provider_down";
/// The scenario in which a payment waits.
pub const PROCESSING: &str = "processing";
/// What the rejection of a payment says where no code is asked for.
pub const REJECTION: &str = "AC01";
/// The reason of a return where none is asked for.
pub const RETURN: &str = "AC04";

/// What a file plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// It is taken and reported on.
    Plain,
    /// It does not arrive.
    NotReceived,
    /// It is taken, and rejected.
    Rejected,
    /// It is refused, as if it had come before.
    Duplicate,
    /// It is taken, and said to be carried out in part.
    Unclear,
    /// It is taken and reported on, and not answered.
    Silent,
    /// It is taken, and nobody hears of it again.
    Unknown,
    /// It is taken, and reported on twice.
    Twice,
}

impl Play {
    /// What a file of these payments plays, which have arrived before or not.
    #[must_use]
    pub fn of<'a>(payments: impl Iterator<Item = &'a Transfer>) -> Self {
        let mut first_time = payments.filter(|it| it.received == 0);
        let whole = first_time.find_map(|it| match it.scenario.as_str() {
            "never_received" => Some(Self::NotReceived),
            "file_rejected" => Some(Self::Rejected),
            "file_duplicate" => Some(Self::Duplicate),
            "file_unclear" => Some(Self::Unclear),
            "timeout_then_paid" | "timeout_then_failed" => Some(Self::Silent),
            "timeout_then_unknown" => Some(Self::Unknown),
            "duplicate_callback" => Some(Self::Twice),
            _ => None,
        });
        whole.unwrap_or(Self::Plain)
    }
}

/// The code that a payment is rejected with, if it is.
#[must_use]
pub fn rejection(scenario: &str) -> Option<String> {
    match scenario {
        "failed" | "timeout_then_failed" => Some(REJECTION.to_owned()),
        other => code(other, "reject_"),
    }
}

/// The reason for which a payment comes back, if it does.
#[must_use]
pub fn returning(scenario: &str) -> Option<String> {
    match scenario {
        "returned" => Some(RETURN.to_owned()),
        other => code(other, "return_"),
    }
}

/// Makes a payment, or not, as it plays.
pub fn carry_out(payment: &mut Transfer) {
    let scenario = payment.scenario.clone();
    if scenario == PROCESSING {
        payment.state = State::Pending;
    } else if let Some(code) = rejection(&scenario) {
        payment.state = State::Refused(code);
    } else {
        payment.pay();
    }
}

/// The four letters and digits behind `before`, in capitals.
fn code(scenario: &str, before: &str) -> Option<String> {
    let code = scenario.strip_prefix(before)?.to_ascii_uppercase();
    let is_code = code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then_some(code)
}
