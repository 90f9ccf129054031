//! What becomes of a file and of its payments: that depends on the scenarios that the payments play.
//!
//! Some scenarios are of the whole file. The file plays that of the first payment that has such a
//! one, and a payment has it only the first time that it arrives:
//!
//! | scenario | the file |
//! |---|---|
//! | `provider_down` | the gateway is down, for questions too; any payment makes it so, every time |
//! | `never_received` | does not arrive; the next one that has the payment is taken |
//! | `file_rejected` | is taken, and rejected as a whole |
//! | `file_duplicate` | is said to have been sent before: nothing of it is carried out |
//! | `timeout_then_paid`, `timeout_then_failed` | is taken, and not answered |
//! | `timeout_then_unknown` | the same; nothing is ever said about it, and it cannot be found |
//! | `duplicate_callback` | is reported on twice |
//!
//! Of the payments that a file may have beside, or else of all:
//!
//! | scenario | the payment |
//! |---|---|
//! | `failed`, `timeout_then_failed` | is rejected in the report, which accepts the others |
//! | `returned`, `return_905` | is carried out, and comes back: for `902`, or for that reason |
//! | `processing` | see below |
//! | anything else | is carried out |
//!
//! `processing` needs a file in which every payment plays it, but for such as came in another file
//! before. They stay pending, and there is no report until the last of them was settled or failed.
//! A report speaks of a whole file: where another payment makes it come, it accepts these payments
//! as well, and what is accepted is carried out.
//!
//! A report rejects a payment whose reference is in the book already, and it is not carried out
//! again. Not so where the file that brought it first was turned away as a whole.

use railhead_simulator::host;
use railhead_simulator::types::{State, Transfer};

use crate::files::Payment;
use crate::reports::{DUPLICATE_FILE, DUPLICATE_PAYMENT, EXPOSURE_LIMIT, INVALID_ACCOUNT, Reason};
use crate::returns::{self, Returned};

/// The scenario in which nothing can be reached.
pub(crate) const PROVIDER_DOWN: &str = "provider_down";
/// The scenario in which payments stay pending.
const PROCESSING: &str = "processing";
/// The note of the file that a payment came in: it is told apart by it from its duplicates.
pub(crate) const FILE: &str = "file";

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
    /// It is taken and reported on, and not answered.
    Silent,
    /// It is taken, and nobody hears of it again.
    Unknown,
    /// It is taken, and reported on twice.
    Twice,
    /// It is taken. The report waits for the last of its payments.
    Waiting,
}

/// A file's two names.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The one that it was sent under.
    pub name: &'a str,
    /// Its creation number.
    pub number: &'a str,
}

/// A payment of a file, and as the bank knows it.
pub struct Standing<'a> {
    /// As it stands in the file.
    pub payment: &'a Payment,
    /// As the bank knows it: as an earlier file left it, where that was not turned away.
    pub transfer: Transfer,
    /// Whether it came in another file, which counts.
    pub is_duplicate: bool,
}

impl Play {
    /// What the file of these payments plays.
    #[must_use]
    pub fn of(standings: &[Standing<'_>]) -> Self {
        let first_time = standings.iter().filter(|it| it.transfer.received == 0);
        let whole = first_time.filter_map(|it| match it.transfer.scenario.as_str() {
            "never_received" => Some(Self::NotReceived),
            "file_rejected" => Some(Self::Rejected),
            "file_duplicate" => Some(Self::Duplicate),
            "timeout_then_paid" | "timeout_then_failed" => Some(Self::Silent),
            "timeout_then_unknown" => Some(Self::Unknown),
            "duplicate_callback" => Some(Self::Twice),
            _ => None,
        });
        let mut own = standings.iter().filter(|it| !it.is_duplicate).peekable();
        let is_waiting = own.peek().is_some() && own.all(|it| it.transfer.scenario == PROCESSING);
        let otherwise = if is_waiting { Self::Waiting } else { Self::Plain };
        whole.into_iter().next().unwrap_or(otherwise)
    }
}

impl<'a> Standing<'a> {
    /// A payment that arrives in the file of these names.
    #[must_use]
    pub fn arriving(file: Names<'_>, payment: &'a Payment) -> Self {
        let known = host::find(&payment.reference);
        let is_duplicate = known.as_ref().is_some_and(is_used);
        let transfer = match known {
            Some(known) if is_duplicate => known,
            // What brought it before was lost or turned away: this one is the one that counts.
            Some(known) => Transfer {
                received: known.received,
                scenario: known.scenario,
                ..transfer(file, payment)
            },
            None => transfer(file, payment),
        };
        Self { payment, transfer, is_duplicate }
    }

    /// A payment of the file of this name, which arrived some time ago.
    #[must_use]
    pub fn arrived(file: &str, payment: &'a Payment) -> Option<Self> {
        let transfer = host::find(&payment.reference)?;
        let is_duplicate = transfer.noted(FILE) != file;
        Some(Self { payment, transfer, is_duplicate })
    }

    /// The payment is made, or not, as the file and the payment play it.
    pub fn carry_out(&mut self, play: Play) {
        let transfer = &mut self.transfer;
        match play {
            Play::NotReceived => transfer.state = State::Lost,
            Play::Rejected => transfer.state = refused(EXPOSURE_LIMIT),
            Play::Duplicate => transfer.state = refused(DUPLICATE_FILE),
            Play::Unknown => transfer.state = State::Unclear,
            Play::Waiting => transfer.state = State::Pending,
            Play::Plain | Play::Silent | Play::Twice => match transfer.scenario.as_str() {
                "failed" | "timeout_then_failed" => transfer.state = refused(INVALID_ACCOUNT),
                scenario => {
                    let comes_back = returns::code(scenario).is_some();
                    transfer.pay();
                    if comes_back {
                        transfer.state = State::Returned;
                    }
                }
            },
        }
    }

    /// How it comes back, once it was carried out.
    #[must_use]
    pub fn returned(&self) -> Option<Returned<'a>> {
        let code = returns::code(&self.transfer.scenario)?;
        let is_back = self.transfer.state == State::Returned && !self.is_duplicate;
        is_back.then_some(Returned { payment: self.payment, code })
    }

    /// Why a report on the file rejects the payment, if it does.
    #[must_use]
    pub fn rejection(&self) -> Option<Reason> {
        match self.transfer.state {
            _ if self.is_duplicate => Some(DUPLICATE_PAYMENT),
            State::Refused(_) => Some(INVALID_ACCOUNT),
            _ => None,
        }
    }

    /// Whether it is still open what becomes of it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.is_duplicate && is_open(&self.transfer)
    }
}

/// Whether it is still open what becomes of a payment.
#[must_use]
pub fn is_open(transfer: &Transfer) -> bool {
    matches!(transfer.state, State::Pending | State::Unclear)
}

/// How a payment stands that is refused for this reason.
#[must_use]
pub fn refused(reason: Reason) -> State {
    State::Refused(reason.code.to_owned())
}

/// Whether a payment counts as it came: no later one is carried out.
fn is_used(transfer: &Transfer) -> bool {
    let (rejected, duplicate) = (refused(EXPOSURE_LIMIT), refused(DUPLICATE_FILE));
    transfer.state != State::Lost && transfer.state != rejected && transfer.state != duplicate
}

fn transfer(file: Names<'_>, payment: &Payment) -> Transfer {
    let amount = i64::try_from(payment.amount).unwrap_or(i64::MAX);
    Transfer::new(&payment.reference, amount, &payment.account)
        .noting(FILE, file.name)
        .noting("file_number", file.number)
        .noting("institution", &payment.institution)
        .noting("name", &payment.name)
        .noting("transaction_code", &payment.code)
        .noting("date", &payment.date)
        .noting("sundry", &payment.sundry)
}
