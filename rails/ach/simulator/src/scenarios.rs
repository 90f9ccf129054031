//! What becomes of a file and of its entries: that depends on the scenarios that the entries play.
//!
//! Some scenarios are of the whole file. The file plays that of the first entry that has such a
//! one, and an entry has it only the first time that it arrives:
//!
//! | scenario | the file |
//! |---|---|
//! | `provider_down` | the gateway is down, for questions too; any entry makes it so, every time |
//! | `never_received` | does not arrive; the next one that has the entry is taken |
//! | `file_rejected` | is taken, and rejected as a whole |
//! | `file_duplicate` | is said to have been sent before: nothing of it is carried out |
//! | `timeout_then_paid`, `timeout_then_failed` | is taken, and not answered |
//! | `timeout_then_unknown` | the same; nothing is ever said about it, and it cannot be found |
//! | `duplicate_callback` | is reported on twice |
//!
//! Of the entries that a file may have beside, or else of all:
//!
//! | scenario | the entry |
//! |---|---|
//! | `failed`, `timeout_then_failed` | is rejected in the report, which accepts the others |
//! | `returned`, `return_r16` | is carried out, and comes back: for `R03`, or for that reason |
//! | `correction_c01` | is carried out, and its receiver's bank says what has changed |
//! | `processing` | see below |
//! | anything else | is carried out |
//!
//! `processing` needs a file in which every entry plays it, but for such as came in another file
//! before. They stay pending, and there is no report until the last of them was settled or failed.
//! A report speaks of a whole file: where another entry makes it come, it accepts these entries as
//! well, and what is accepted is carried out.
//!
//! A report rejects an entry whose reference is in the book already, and it is not carried out
//! again. Not so where the file that brought it first was turned away as a whole.

use railhead_simulator::host;
use railhead_simulator::types::{State, Transfer};

use crate::files::{Batch, Entry};
use crate::reports::{DUPLICATE_ENTRY, DUPLICATE_FILE, EXPOSURE_LIMIT, INVALID_ACCOUNT, Reason};
use crate::returns::{News, What};

/// The scenario in which nothing can be reached.
pub(crate) const PROVIDER_DOWN: &str = "provider_down";
/// The scenario in which entries stay pending.
const PROCESSING: &str = "processing";
/// The note of the file that an entry came in: it is told apart by it from its duplicates.
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
    /// It is taken. The report waits for the last of its entries.
    Waiting,
}

/// A file's two names.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The one that it was sent under.
    pub name: &'a str,
    /// Its number.
    pub reference_code: &'a str,
}

/// An entry of a file, and its payment as the bank knows it.
pub struct Standing<'a> {
    /// The batch that it is in.
    pub batch: &'a Batch,
    /// The entry.
    pub entry: &'a Entry,
    /// The payment: as an earlier entry left it, where that was not turned away.
    pub payment: Transfer,
    /// Whether the payment came in another file, which counts.
    pub is_duplicate: bool,
}

impl Play {
    /// What the file of these entries plays.
    #[must_use]
    pub fn of(standings: &[Standing<'_>]) -> Self {
        let first_time = standings.iter().filter(|it| it.payment.received == 0);
        let whole = first_time.filter_map(|it| match it.payment.scenario.as_str() {
            "never_received" => Some(Self::NotReceived),
            "file_rejected" => Some(Self::Rejected),
            "file_duplicate" => Some(Self::Duplicate),
            "timeout_then_paid" | "timeout_then_failed" => Some(Self::Silent),
            "timeout_then_unknown" => Some(Self::Unknown),
            "duplicate_callback" => Some(Self::Twice),
            _ => None,
        });
        let mut own = standings.iter().filter(|it| !it.is_duplicate).peekable();
        let is_waiting = own.peek().is_some() && own.all(|it| it.payment.scenario == PROCESSING);
        let otherwise = if is_waiting { Self::Waiting } else { Self::Plain };
        whole.into_iter().next().unwrap_or(otherwise)
    }
}

impl<'a> Standing<'a> {
    /// An entry that arrives in the file of these names.
    #[must_use]
    pub fn arriving(file: Names<'_>, (batch, entry): (&'a Batch, &'a Entry)) -> Self {
        let known = host::find(&entry.id);
        let is_duplicate = known.as_ref().is_some_and(is_used);
        let payment = match known {
            Some(known) if is_duplicate => known,
            // What brought it before was lost or turned away: this entry is the one that counts.
            Some(known) => Transfer {
                received: known.received,
                scenario: known.scenario,
                ..payment(file, (batch, entry))
            },
            None => payment(file, (batch, entry)),
        };
        Self { batch, entry, payment, is_duplicate }
    }

    /// An entry of the file of this name, which arrived some time ago.
    #[must_use]
    pub fn arrived(file: &str, (batch, entry): (&'a Batch, &'a Entry)) -> Option<Self> {
        let payment = host::find(&entry.id)?;
        let is_duplicate = payment.noted(FILE) != file;
        Some(Self { batch, entry, payment, is_duplicate })
    }

    /// The payment is made, or not, as the file and the entry play it.
    pub fn carry_out(&mut self, play: Play) {
        let payment = &mut self.payment;
        match play {
            Play::NotReceived => payment.state = State::Lost,
            Play::Rejected => payment.state = refused(EXPOSURE_LIMIT),
            Play::Duplicate => payment.state = refused(DUPLICATE_FILE),
            Play::Unknown => payment.state = State::Unclear,
            Play::Waiting => payment.state = State::Pending,
            Play::Plain | Play::Silent | Play::Twice => match payment.scenario.as_str() {
                "failed" | "timeout_then_failed" => payment.state = refused(INVALID_ACCOUNT),
                scenario => {
                    let what = What::of(scenario, self.entry);
                    payment.pay();
                    if matches!(what, Some(What::Returned(_))) {
                        payment.state = State::Returned;
                    }
                }
            },
        }
    }

    /// What its receiver's bank says by itself, once it was carried out.
    #[must_use]
    pub fn news(&self) -> Option<News<'a>> {
        let is_paid = matches!(self.payment.state, State::Paid | State::Returned);
        let what = What::of(&self.payment.scenario, self.entry);
        let what = what.filter(|_| is_paid && !self.is_duplicate)?;
        Some(News { batch: self.batch, entry: self.entry, what })
    }

    /// Why a report on the file rejects the entry, if it does.
    #[must_use]
    pub fn rejection(&self) -> Option<Reason> {
        match self.payment.state {
            _ if self.is_duplicate => Some(DUPLICATE_ENTRY),
            State::Refused(_) => Some(INVALID_ACCOUNT),
            _ => None,
        }
    }

    /// Whether it is still open what becomes of it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.is_duplicate && is_open(&self.payment)
    }
}

/// Whether it is still open what becomes of a payment.
#[must_use]
pub fn is_open(payment: &Transfer) -> bool {
    matches!(payment.state, State::Pending | State::Unclear)
}

/// How a payment stands that is refused for this reason.
#[must_use]
pub fn refused(reason: Reason) -> State {
    State::Refused(reason.code.to_owned())
}

/// Whether the entry of a payment counts: no later one is carried out.
fn is_used(payment: &Transfer) -> bool {
    let (rejected, duplicate) = (refused(EXPOSURE_LIMIT), refused(DUPLICATE_FILE));
    payment.state != State::Lost && payment.state != rejected && payment.state != duplicate
}

fn payment(file: Names<'_>, (batch, entry): (&Batch, &Entry)) -> Transfer {
    let amount = i64::try_from(entry.amount).unwrap_or(i64::MAX);
    Transfer::new(&entry.id, amount, &entry.account)
        .noting(FILE, file.name)
        .noting("file_number", file.reference_code)
        .noting("trace", &entry.trace)
        .noting("rdfi", &entry.rdfi)
        .noting("name", &entry.name)
        .noting("transaction_code", &entry.code)
        .noting("class", &batch.class)
        .noting("effective_date", &batch.effective_date)
}
