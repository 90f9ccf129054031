//! What a payout is, and the one table of what can happen to it.
//!
//! [`apply`] yields the new status and what the ledger does in one breath, so the two cannot
//! diverge. It knows no database, no network and no clock.

use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{BeneficiaryId, MerchantId, PayoutId, WalletId};
use crate::money::{Currency, Minor, Overflow};
use crate::rails::RecipientFields;
use crate::rules::Price;

/// Where a payout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Status {
    /// Waits for a teammate's approval; holds no money.
    Draft,
    /// Held by a fraud rule for the operator; holds no money.
    AwaitingAdminReview,
    /// Debited, waits to be sent.
    Queued,
    /// Being sent, or sent and not known to have ended.
    Processing,
    /// The rail says that it is paid.
    Paid,
    /// The operator says so, on evidence.
    PaidManual,
    /// The rail refused it; the money is back in the wallet.
    Failed,
    /// The operator says so, on evidence; the money is back in the wallet.
    FailedManual,
    /// It was paid and came back.
    Reversed,
    /// Taken back before it was sent.
    Cancelled,
}

/// Something that happens to a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Change {
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
    /// A dispatcher is about to send it.
    Dispatch,
    /// The rail says that it is paid.
    Confirm,
    /// The rail refuses it for good.
    Refuse,
    /// It came back after it was paid.
    Return,
    /// The operator has evidence that it was paid.
    MarkPaid,
    /// The operator has evidence that it was not.
    MarkFailed,
    /// The operator gives a paid one back.
    Reverse,
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
}

/// What a dispatcher has to do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Send it to a rail.
    Send,
    /// Ask about it.
    Ask,
    /// Nothing: it has ended, or waits for a person.
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
}

/// What becomes of a payout in this status when this happens to it.
///
/// # Errors
/// `payout_not_cancellable` for a cancellation that comes too late, `state_conflict` for
/// anything else that is not possible.
pub fn apply(status: Status, change: Change) -> Result<Transition, Problem> {
    use Change as C;
    use LedgerEffect as L;
    use NextStep::{Ask, Rest, Send};
    use Status as S;
    let (to, ledger, event, next) = match (status, change) {
        (S::Draft, C::Approve) | (S::AwaitingAdminReview, C::Release) => {
            (S::Queued, L::Debit, "payout.queued", Send)
        }
        (S::Draft, C::Decline | C::Cancel) => (S::Cancelled, L::None, "payout.cancelled", Rest),
        (S::AwaitingAdminReview, C::Reject) => (S::Failed, L::None, "payout.failed", Rest),
        (S::Queued, C::Cancel) => (S::Cancelled, L::GiveBack, "payout.cancelled", Rest),
        (S::Queued, C::Dispatch) => (S::Processing, L::None, "payout.processing", Ask),
        (S::Processing, C::Confirm) => (S::Paid, L::Settle, "payout.paid", Rest),
        (S::Processing, C::Refuse) => (S::Failed, L::GiveBack, "payout.failed", Rest),
        (S::Paid | S::PaidManual, C::Return | C::Reverse) => {
            (S::Reversed, L::GiveBackSettled, "payout.reversed", Rest)
        }
        (S::Queued | S::Processing, C::MarkPaid) => (S::PaidManual, L::Settle, "payout.paid", Rest),
        (S::Queued | S::Processing, C::MarkFailed) => {
            (S::FailedManual, L::GiveBack, "payout.failed", Rest)
        }
        (S::Draft | S::AwaitingAdminReview, C::MarkPaid) => {
            (S::PaidManual, L::DebitSettled, "payout.paid", Rest)
        }
        (S::Draft | S::AwaitingAdminReview, C::MarkFailed) => {
            (S::FailedManual, L::None, "payout.failed", Rest)
        }
        (S::Paid | S::PaidManual, C::MarkFailed) => {
            (S::FailedManual, L::GiveBackSettled, "payout.failed", Rest)
        }
        (_, C::Cancel) => return Err(Problem::new(ErrorCode::PayoutNotCancellable)),
        _ => {
            let message = format!("This is not possible for a payout that is {status}.");
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
    };
    Ok(Transition { to, ledger, event, next })
}

impl Status {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::AwaitingAdminReview => "awaiting_admin_review",
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Paid => "paid",
            Self::PaidManual => "paid_manual",
            Self::Failed => "failed",
            Self::FailedManual => "failed_manual",
            Self::Reversed => "reversed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|status| status.as_str() == text)
    }

    /// Whether nothing more is expected to happen.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Draft | Self::AwaitingAdminReview | Self::Queued | Self::Processing)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a payout costs its wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// What the recipient gets.
    pub amount: Minor,
    /// What the platform charges, as the fee pack decided.
    pub fee: Minor,
    /// The state's share of the fee.
    pub tax: Minor,
    /// The state's charge on the payment.
    pub levy: Minor,
}

impl Costs {
    /// Of an amount at a price.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn of(amount: Minor, price: &Price) -> Result<Self, Overflow> {
        let (fee, tax, levy) = (price.sum("fee")?, price.sum("tax")?, price.sum("levy")?);
        let costs = Self { amount, fee, tax, levy };
        costs.total().map(|_| costs)
    }

    /// Everything that leaves the wallet.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn total(&self) -> Result<Minor, Overflow> {
        Minor::total([self.amount, self.fee, self.tax, self.levy])
    }
}

/// A payout as it is stored.
#[derive(Clone, Debug)]
pub struct Payout {
    /// The id, which sorts by time of creation.
    pub id: PayoutId,
    /// The merchant who pays.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// From which wallet.
    pub wallet_id: WalletId,
    /// Where it stands.
    pub status: Status,
    /// How many changes there have been, its creation included.
    pub version: i64,
    /// The currency of the wallet and of all its costs.
    pub currency: Currency,
    /// The payment method, which with the currency decides the routes.
    pub method: String,
    /// What it costs.
    pub costs: Costs,
    /// The saved recipient.
    pub beneficiary_id: BeneficiaryId,
    /// What makes the recipient the same as another one.
    pub recipient_identity: String,
    /// The name that the bank has on record, or the one that was sent.
    pub recipient_name: String,
    /// The recipient in canonical form.
    pub recipient: RecipientFields,
    /// The sender's identity, where one was given.
    pub sender: Option<String>,
    /// For the recipient's statement.
    pub narration: Option<String>,
    /// The merchant's own reference.
    pub merchant_reference: Option<String>,
    /// The merchant's own word for its customer.
    pub customer_reference: Option<String>,
    /// What was charged, and by which pack.
    pub pricing: Price,
    /// Why it is held.
    pub hold: Option<String>,
    /// The sandbox scenario.
    pub scenario: Option<String>,
    /// The key that made it.
    pub maker: String,
    /// The network's reference.
    pub rail_reference: Option<String>,
    /// The network's code for why not.
    pub failure_code: Option<String>,
    /// What that code means, for the merchant.
    pub failure_message: Option<String>,
    /// When it was created.
    pub created_at: Moment,
    /// When it was debited.
    pub queued_at: Option<Moment>,
    /// When it was sent.
    pub processing_at: Option<Moment>,
    /// When it ended.
    pub completed_at: Option<Moment>,
}

/// Why a payout did not get through, for the merchant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The network's own code, or ours.
    pub code: String,
    /// What the code means, in a sentence.
    pub message: String,
}

impl Payout {
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
        let transition = apply(self.status, change)?;
        let mut after = self.clone();
        after.status = transition.to;
        after.version += 1;
        match transition.to {
            Status::Queued => after.queued_at = Some(now),
            Status::Processing => after.processing_at = Some(now),
            _ => after.completed_at = Some(now),
        }
        if let Some(Failure { code, message }) = failure {
            after.failure_code = Some(code);
            after.failure_message = Some(message);
        }
        Ok((after, transition))
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
        for status in Status::iter() {
            for change in Change::iter() {
                if let Ok(Transition { to, ledger, event, next }) = apply(status, change) {
                    table.push_str(&format!(
                        "{status:<22} {:<11} -> {to:<13} {:<16} {event:<18} {next:?}\n",
                        format!("{change:?}"),
                        format!("{ledger:?}"),
                    ));
                }
            }
        }
        insta::assert_snapshot!("state_matrix", table);
    }

    /// What a wallet sees of one payout: is it debited, and has the money arrived?
    #[derive(Debug, Default, PartialEq)]
    struct Money {
        debited: bool,
        out: bool,
    }

    impl Money {
        fn follow(&mut self, effect: LedgerEffect) {
            let (debited, out) = match effect {
                LedgerEffect::None => return,
                LedgerEffect::Debit => (true, true),
                LedgerEffect::DebitSettled | LedgerEffect::Settle => (true, false),
                LedgerEffect::GiveBack | LedgerEffect::GiveBackSettled => (false, false),
            };
            let fits = match effect {
                LedgerEffect::Debit | LedgerEffect::DebitSettled => !self.debited,
                LedgerEffect::Settle | LedgerEffect::GiveBack => self.debited && self.out,
                LedgerEffect::GiveBackSettled => self.debited && !self.out,
                LedgerEffect::None => true,
            };
            assert!(fits, "{effect:?} does not fit {self:?}");
            *self = Self { debited, out };
        }
    }

    proptest! {
        /// Whatever happens in whatever order: money is taken once, given back at most once,
        /// and the wallet is debited exactly in the statuses that say so.
        #[test]
        fn status_and_money_never_diverge(
            start in prop::sample::select(vec![Status::Draft, Status::AwaitingAdminReview, Status::Queued]),
            changes in prop::collection::vec(
                prop::sample::select(Change::iter().collect::<Vec<_>>()), 0..40),
        ) {
            let mut status = start;
            let mut money = Money::default();
            if start == Status::Queued {
                money.follow(LedgerEffect::Debit);
            }
            let mut given_back = 0;
            for change in changes {
                let Ok(transition) = apply(status, change) else { continue };
                money.follow(transition.ledger);
                if matches!(transition.ledger, LedgerEffect::GiveBack | LedgerEffect::GiveBackSettled) {
                    given_back += 1;
                }
                status = transition.to;
                let expected = match status {
                    Status::Queued | Status::Processing => Money { debited: true, out: true },
                    Status::Paid | Status::PaidManual => Money { debited: true, out: false },
                    _ => Money { debited: false, out: false },
                };
                prop_assert_eq!(&money, &expected, "{}", status);
                prop_assert_eq!(transition.next == NextStep::Rest, status.is_final());
            }
            prop_assert!(given_back <= 1);
        }
    }
}
