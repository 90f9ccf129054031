//! What a payout is, and the one table of what can happen to it.
//!
//! [`apply`] yields the new status and what the ledger does in one breath, so the two cannot
//! diverge. It knows no database, no network and no clock.

use std::ops::Deref;
use std::sync::Arc;

use crate::auth::merchant::Settings;
use crate::cases::CaseKind;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::money::Minor;
use crate::transfers::Failure;

pub use super::across::{Funded, Funding};
pub use super::costs::Costs;
pub use super::status::Status;
pub use super::terms::Terms;

/// The event of a payout that is to be sent.
pub const QUEUED: &str = "payout.queued";

/// Something that happens to a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Change {
    /// It is accepted, and nobody has to look at it.
    Accept,
    /// It is accepted, and a teammate has to approve it.
    Draft,
    /// A fraud rule holds it for the operator.
    Hold,
    /// A teammate approves the draft.
    Approve,
    /// A teammate declines the draft.
    Decline,
    /// The operator lets a held payout go.
    Release,
    /// The operator refuses a held payout.
    Reject,
    /// The merchant takes it back.
    Cancel,
    /// Its first attempt is fixed, and about to be sent.
    Dispatch,
    /// The same, of a method whose merchants are told once the network has taken it on.
    DispatchUntold,
    /// The network has taken it on, and merchants are told what it wants them to know.
    Tell,
    /// Nothing left over one route, and another one takes over.
    Reroute,
    /// The network never received it, and the same is about to be sent once more.
    Resend,
    /// The rail says that it is paid.
    Confirm,
    /// The rail says that another attempt is paid than the one that counts.
    ConfirmOther,
    /// The rail refuses it for good.
    Refuse,
    /// It came back after it was paid.
    Return,
    /// Another amount than the whole came back.
    ReturnPart,
    /// The network says how the recipient should be addressed from now on.
    Correct,
    /// The operator has evidence that it was paid.
    MarkPaid,
    /// The operator has evidence that it was not.
    MarkFailed,
    /// The operator gives a paid one back.
    Reverse,
    /// The operator resolves a case: the recipient keeps the money that the wallet has as well.
    Charge,
    /// The operator resolves a case: the wallet gets back what the recipient never got.
    GiveBack,
}

/// What the ledger does in the same transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerEffect {
    /// The ledger does not change.
    None,
    /// Takes amount, fee, tax and levy from the wallet; they are on their way out.
    Debit,
    /// What was on its way out has arrived.
    Settle,
    /// Takes them from the wallet, and they have arrived already.
    DebitSettled,
    /// Gives back what is on its way out.
    GiveBack,
    /// Gives back what had arrived.
    GiveBackSettled,
    /// The bank account paid what nobody was debited: the amount is in suspense.
    SuspendPaid,
    /// The bank account did not pay what somebody was debited: the amount is in suspense.
    SuspendRefused,
    /// Part of the amount came back to the bank account, and is in suspense.
    SuspendPart,
    /// Takes everything from the wallet for an amount that is in suspense.
    DebitSuspended,
    /// Gives everything back for an amount that is in suspense.
    GiveBackSuspended,
}

/// What the engine that moves money out has to do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Send it to a rail.
    Send,
    /// Ask about it.
    Ask,
    /// Nothing yet: it waits for a person.
    Wait,
    /// Nothing: it has ended.
    Rest,
}

/// The outcome of [`apply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The new status.
    pub to: Status,
    /// What the ledger does.
    pub ledger: LedgerEffect,
    /// The event that tells of it.
    pub event: &'static str,
    /// What remains to be done.
    pub next: NextStep,
    /// The case that it opens, where a person has to look at it.
    pub case: Option<CaseKind>,
}

/// What becomes of a payout in this status when this happens to it. A payout that is not there
/// yet has none.
///
/// # Errors
/// `payout_not_cancellable` for a cancellation that comes too late, `state_conflict` for
/// anything else that is not possible.
pub fn apply(from: Option<Status>, change: Change) -> Result<Transition, Problem> {
    let Some(status) = from else {
        return made(change).ok_or_else(|| Problem::new(ErrorCode::PayoutNotFound));
    };
    let found = decided_by_people(status, change)
        .or_else(|| learnt_from_banks(status, change))
        .or_else(|| contradicted(status, change));
    found.ok_or_else(|| match change {
        Change::Cancel => {
            let why = match status {
                Status::AwaitingAdminReview => "it is held, and is released or rejected",
                Status::Processing => "it is being sent, or may have been",
                _ => "it has ended",
            };
            let message = format!("This payout can no longer be cancelled: {why}.");
            Problem::because(ErrorCode::PayoutNotCancellable, message)
        }
        _ => {
            let message = format!("This is not possible for a payout that is {status}.");
            Problem::because(ErrorCode::StateConflict, message)
        }
    })
}

/// How it begins.
fn made(change: Change) -> Option<Transition> {
    use LedgerEffect as L;
    use NextStep::{Send, Wait};
    use Status as S;
    Some(match change {
        Change::Accept => plain(S::Queued, L::Debit, QUEUED, Send),
        Change::Draft => plain(S::Draft, L::None, "payout.draft", Wait),
        Change::Hold => plain(S::AwaitingAdminReview, L::None, "payout.held", Wait),
        _ => return None,
    })
}

/// What merchants, teammates and operators decide.
fn decided_by_people(status: Status, change: Change) -> Option<Transition> {
    use Change as C;
    use LedgerEffect as L;
    use NextStep::{Rest, Send};
    use Status as S;
    Some(match (status, change) {
        (S::Draft, C::Approve) | (S::AwaitingAdminReview, C::Release) => {
            plain(S::Queued, L::Debit, QUEUED, Send)
        }
        (S::Draft, C::Decline | C::Cancel) => {
            plain(S::Cancelled, L::None, "payout.cancelled", Rest)
        }
        (S::AwaitingAdminReview, C::Reject) => plain(S::Failed, L::None, "payout.failed", Rest),
        (S::Queued, C::Cancel) => plain(S::Cancelled, L::GiveBack, "payout.cancelled", Rest),
        (S::Paid | S::PaidManual, C::Reverse) => {
            plain(S::Reversed, L::GiveBackSettled, "payout.reversed", Rest)
        }
        (S::Queued | S::Processing, C::MarkPaid) => {
            plain(S::PaidManual, L::Settle, "payout.paid", Rest)
        }
        (S::Queued | S::Processing, C::MarkFailed) => {
            plain(S::FailedManual, L::GiveBack, "payout.failed", Rest)
        }
        (
            S::Draft
            | S::AwaitingAdminReview
            | S::Failed
            | S::FailedManual
            | S::Cancelled
            | S::Reversed,
            C::MarkPaid,
        ) => plain(S::PaidManual, L::DebitSettled, "payout.paid", Rest),
        (S::Draft | S::AwaitingAdminReview, C::MarkFailed) => {
            plain(S::FailedManual, L::None, "payout.failed", Rest)
        }
        (S::Paid | S::PaidManual, C::MarkFailed) => {
            plain(S::FailedManual, L::GiveBackSettled, "payout.failed", Rest)
        }
        (S::Failed | S::FailedManual | S::Cancelled | S::Reversed, C::Charge) => {
            plain(S::PaidManual, L::DebitSuspended, "payout.paid", Rest)
        }
        (S::Paid | S::PaidManual, C::GiveBack) => {
            plain(S::FailedManual, L::GiveBackSuspended, "payout.failed", Rest)
        }
        _ => return None,
    })
}

/// What happens on the way out, and how it ends.
fn learnt_from_banks(status: Status, change: Change) -> Option<Transition> {
    use Change as C;
    use LedgerEffect as L;
    use NextStep::{Ask, Rest};
    use Status as S;
    Some(match (status, change) {
        (S::Queued, C::Dispatch) | (S::Processing, C::Tell) => {
            plain(S::Processing, L::None, "payout.processing", Ask)
        }
        (S::Queued, C::DispatchUntold) => plain(S::Processing, L::None, "payout.dispatched", Ask),
        (S::Processing, C::Reroute) => plain(S::Processing, L::None, "payout.rerouted", Ask),
        (S::Processing, C::Resend) => plain(S::Processing, L::None, "payout.resent", Ask),
        (S::Processing, C::Confirm) => plain(S::Paid, L::Settle, "payout.paid", Rest),
        (S::Processing, C::Correct) => corrected(status, Ask),
        (
            S::Paid | S::PaidManual | S::Failed | S::FailedManual | S::Reversed | S::Cancelled,
            C::Correct,
        ) => corrected(status, Rest),
        // What came back was never paid, as far as the wallet is concerned.
        (S::Processing, C::Refuse | C::Return) => {
            plain(S::Failed, L::GiveBack, "payout.failed", Rest)
        }
        (S::Paid | S::PaidManual, C::Return) => {
            plain(S::Reversed, L::GiveBackSettled, "payout.reversed", Rest)
        }
        _ => return None,
    })
}

/// The bank contradicts what stands in the books: the status stays, and a person decides.
fn contradicted(status: Status, change: Change) -> Option<Transition> {
    use Change as C;
    use LedgerEffect as L;
    use Status as S;
    Some(match (status, change) {
        (
            S::Failed | S::FailedManual | S::Reversed | S::Cancelled,
            C::Confirm | C::ConfirmOther,
        ) => suspended(status, L::SuspendPaid, CaseKind::PaidAfterFailure),
        (S::Paid | S::PaidManual, C::ConfirmOther) => {
            suspended(status, L::SuspendPaid, CaseKind::PaidTwice)
        }
        (S::Paid | S::PaidManual, C::Refuse) => {
            suspended(status, L::SuspendRefused, CaseKind::RefusedAfterPayment)
        }
        (S::Processing, C::ReturnPart) => Transition {
            next: NextStep::Ask,
            ..suspended(status, L::SuspendPart, CaseKind::PartialReturn)
        },
        (
            S::Paid | S::PaidManual | S::Failed | S::FailedManual | S::Reversed | S::Cancelled,
            C::ReturnPart,
        ) => suspended(status, L::SuspendPart, CaseKind::PartialReturn),
        _ => return None,
    })
}

const fn plain(
    to: Status,
    ledger: LedgerEffect,
    event: &'static str,
    next: NextStep,
) -> Transition {
    Transition { to, ledger, event, next, case: None }
}

/// The status stays: only the recipient's details are in question.
const fn corrected(status: Status, next: NextStep) -> Transition {
    plain(status, LedgerEffect::None, "payout.recipient_corrected", next)
}

/// The status stays, the amount in question goes to suspense, and a case is opened.
const fn suspended(status: Status, ledger: LedgerEffect, case: CaseKind) -> Transition {
    let event = match case {
        CaseKind::PartialReturn => "payout.returned_in_part",
        _ => "payout.contradicted",
    };
    Transition { to: status, ledger, event, next: NextStep::Rest, case: Some(case) }
}

/// A payout as it is stored: its terms, which can be read as if they were its own, and what becomes
/// of it.
#[derive(Clone, Debug)]
pub struct Payout {
    /// What it was made as.
    pub terms: Arc<Terms>,
    /// Where it stands.
    pub status: Status,
    /// How many changes there have been, its creation included.
    pub version: i64,
    /// How often its wallet was debited, or is about to be: an operator may mark a failed one as
    /// paid, and that is another round.
    pub round: i64,
    /// The route that it went over last; names the bank account that is settled.
    pub route: Option<String>,
    /// The network's reference.
    pub rail_reference: Option<String>,
    /// The network's code for why not.
    pub failure_code: Option<String>,
    /// What that code means, for the merchant.
    pub failure_message: Option<String>,
    /// What was bought for it, once it was.
    pub funded: Option<Funded>,
    /// What the network has otherwise about the recipient, as JSON.
    pub correction: Option<String>,
    /// What its rail has merchants told of it, once the network has taken it on: a JSON object.
    pub told: Option<String>,
    /// When it was debited.
    pub queued_at: Option<Moment>,
    /// When it was sent.
    pub processing_at: Option<Moment>,
    /// When it ended.
    pub completed_at: Option<Moment>,
}

impl Deref for Payout {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl Payout {
    /// A payout of which nothing has become yet.
    #[must_use]
    pub const fn new(terms: Arc<Terms>) -> Self {
        Self {
            terms,
            status: Status::Queued,
            version: 1,
            round: 1,
            route: None,
            rail_reference: None,
            failure_code: None,
            failure_message: None,
            funded: None,
            correction: None,
            told: None,
            queued_at: None,
            processing_at: None,
            completed_at: None,
        }
    }

    /// Its terms, until it is written: nothing writes them later.
    pub(super) fn settling(&mut self) -> &mut Terms {
        Arc::make_mut(&mut self.terms)
    }

    /// Whether the batch that it is in is not complete without it.
    #[must_use]
    pub fn holds_batch(&self) -> bool {
        self.batch_id.is_some() && !self.status.is_final()
    }

    /// How many teammates have to approve it: by what its recipient gets, or by what that takes from
    /// the wallet that pays, when it was made or now.
    #[must_use]
    pub fn approvers(&self, settings: &Settings, now: Option<Minor>) -> u32 {
        let for_funds = self.funding.as_ref().map_or(0, |funding: &Funding| {
            let debit = funding.quoted.max(now.unwrap_or_default());
            settings.payout_approvers(funding.currency, debit)
        });
        for_funds.max(settings.payout_approvers(self.currency, self.costs.amount))
    }

    /// The payout after this happened to it, and what goes with that.
    ///
    /// # Errors
    /// See [`apply`].
    pub fn after(
        &self,
        change: Change,
        failure: Option<Failure>,
        now: Moment,
    ) -> Result<(Self, Transition), Problem> {
        let transition = apply(Some(self.status), change)?;
        let mut after = self.clone();
        after.status = transition.to;
        after.version += 1;
        if matches!(transition.ledger, LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended) {
            after.round += 1;
        }
        if transition.case.is_some() || change == Change::Correct {
            return Ok((after, transition));
        }
        match transition.to {
            Status::Queued => after.queued_at = Some(now),
            Status::Processing => after.processing_at = after.processing_at.or(Some(now)),
            _ => after.completed_at = Some(now),
        }
        match failure {
            Some(Failure { code, message, .. }) => {
                after.failure_code = Some(code);
                after.failure_message = Some(message);
            }
            None if transition.to.is_paid() => {
                after.failure_code = None;
                after.failure_message = None;
            }
            None => {}
        }
        Ok((after, transition))
    }

    /// The payout as it was when it was made in this status.
    #[must_use]
    pub fn as_made(&self, status: Status) -> Self {
        let queued_at = (status == Status::Queued).then_some(self.created_at);
        // Whoever waits for a person buys later.
        let is_bought = !matches!(status, Status::Draft | Status::AwaitingAdminReview);
        Self {
            status,
            funded: self.funded.clone().filter(|_| is_bought),
            queued_at,
            ..Self::new(Arc::clone(&self.terms))
        }
    }

    /// The payout as it was when it was sent for the first time.
    #[must_use]
    pub fn as_sent(&self) -> Self {
        let Self { queued_at, processing_at, .. } = *self;
        Self { queued_at, processing_at, ..self.as_made(Status::Processing) }
    }

    /// The payout as it is made. It is not there yet: its status says where it begins.
    ///
    /// # Errors
    /// See [`apply`].
    pub fn made(&self, change: Change) -> Result<(Self, Transition), Problem> {
        let transition = apply(None, change)?;
        Ok((self.as_made(transition.to), transition))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn the_matrix_is_what_was_reviewed() {
        let mut table = String::new();
        for status in std::iter::once(None).chain(Status::iter().map(Some)) {
            for change in Change::iter() {
                let Ok(transition) = apply(status, change) else { continue };
                let Transition { to, ledger, event, next, case } = transition;
                let from = status.map_or("-", Status::as_str);
                let case = case.map_or("", CaseKind::as_str);
                let line = format!(
                    "{from:<22} {:<12} -> {to:<22} {:<17} {event:<23} {next:?} {case}",
                    format!("{change:?}"),
                    format!("{ledger:?}"),
                );
                table.push_str(line.trim_end());
                table.push('\n');
            }
        }
        insta::assert_snapshot!("state_matrix", table);
    }

    /// What the books hold of one payout: is its wallet debited, has the money arrived, how often
    /// has the bank account paid it, and what is in suspense?
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Money {
        debited: bool,
        out: bool,
        settled: i64,
        suspense: i64,
    }

    impl Money {
        fn follow(&mut self, effect: LedgerEffect) {
            let Self { debited, out, settled, suspense } = *self;
            let arrived = debited && !out;
            let (fits, now) = match effect {
                LedgerEffect::None => return,
                LedgerEffect::Debit => (!debited, Self { debited: true, out: true, ..*self }),
                LedgerEffect::Settle => {
                    (debited && out, Self { out: false, settled: settled + 1, ..*self })
                }
                LedgerEffect::DebitSettled => {
                    (!debited, Self { debited: true, settled: settled + 1, ..*self })
                }
                LedgerEffect::GiveBack => {
                    (debited && out, Self { debited: false, out: false, ..*self })
                }
                LedgerEffect::GiveBackSettled => {
                    (arrived, Self { debited: false, settled: settled - 1, ..*self })
                }
                LedgerEffect::SuspendPaid => {
                    (!out, Self { settled: settled + 1, suspense: suspense - 1, ..*self })
                }
                LedgerEffect::SuspendRefused => {
                    (arrived, Self { settled: settled - 1, suspense: suspense + 1, ..*self })
                }
                // A part is less than one.
                LedgerEffect::SuspendPart => (true, *self),
                LedgerEffect::DebitSuspended => {
                    (!debited, Self { debited: true, suspense: suspense + 1, ..*self })
                }
                LedgerEffect::GiveBackSuspended => {
                    (arrived, Self { debited: false, suspense: suspense - 1, ..*self })
                }
            };
            assert!(fits, "{effect:?} does not fit {self:?}");
            *self = now;
        }

        /// What is debited has arrived, is on its way, or is in suspense.
        fn adds_up(self) -> bool {
            i64::from(self.debited) == i64::from(self.out) + self.settled + self.suspense
        }
    }

    proptest! {
        /// Whatever happens in whatever order: the wallet is debited exactly in the statuses that
        /// say so, and what it paid has arrived, is on its way, or waits in suspense for a person.
        #[test]
        fn status_and_money_never_diverge(
            start in prop::sample::select(vec![Change::Accept, Change::Draft, Change::Hold]),
            changes in prop::collection::vec(
                prop::sample::select(Change::iter().collect::<Vec<_>>()), 0..40),
        ) {
            let made = apply(None, start).expect("a beginning");
            let (mut status, mut money) = (made.to, Money::default());
            money.follow(made.ledger);
            for change in changes {
                let Ok(transition) = apply(Some(status), change) else { continue };
                money.follow(transition.ledger);
                status = transition.to;
                let (debited, out) = match status {
                    Status::Queued | Status::Processing => (true, true),
                    Status::Paid | Status::PaidManual => (true, false),
                    _ => (false, false),
                };
                prop_assert_eq!((money.debited, money.out), (debited, out), "{}", status);
                prop_assert!(money.adds_up(), "{:?}", money);
                let waits = matches!(status, Status::Draft | Status::AwaitingAdminReview);
                prop_assert_eq!(transition.next == NextStep::Rest, status.is_final());
                prop_assert_eq!(transition.next == NextStep::Wait, waits);
            }
        }
    }
}
