//! A batch, and what the statuses of its payouts come to.

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::events::{CATALOGUE, Data, Event};
use crate::id::{BatchId, EventId, MerchantId, WalletId};
use crate::money::{Currency, Minor};
use crate::payouts::model::Status;

/// What people have decided about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits for a second person; its payouts are drafts.
    AwaitingApproval,
    /// It was set aside by a person, and still waits.
    Held,
    /// Its payouts go, or have gone.
    Approved,
    /// It was refused, with all its payouts.
    Rejected,
    /// What had not left was taken back, by all at once or one by one.
    Cancelled,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 5] =
        [Self::AwaitingApproval, Self::Held, Self::Approved, Self::Rejected, Self::Cancelled];

    /// The word used in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitingApproval => "awaiting_approval",
            Self::Held => "flagged_held",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }

    /// Whether it waits for a person.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::AwaitingApproval | Self::Held)
    }
}

/// A batch as it is stored.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The id, which sorts by time of creation.
    pub id: BatchId,
    /// The merchant who pays.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// From which wallet.
    pub wallet_id: WalletId,
    /// Of the wallet and all payouts.
    pub currency: Currency,
    /// How many payouts.
    pub total_count: i64,
    /// What their recipients get together.
    pub total_amount: Minor,
    /// The key that made it.
    pub maker: String,
    /// When it was made.
    pub created_at: Moment,
    /// What people have decided.
    pub stage: Stage,
    /// How many changes there have been, its creation included.
    pub version: i64,
    /// Why it was rejected, held or cancelled.
    pub reason: Option<String>,
    /// Since when its payouts may go.
    pub approved_at: Option<Moment>,
    /// When the last of its payouts ended, once that was told.
    pub completed_at: Option<Moment>,
}

/// Something that happens to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A second person agrees.
    Approve,
    /// A second person refuses.
    Reject,
    /// A second person sets it aside.
    Hold,
    /// The merchant takes back what has not left.
    Cancel,
    /// All its payouts were cancelled one by one, before anybody decided.
    Lapse,
    /// All its payouts have ended.
    Complete,
}

impl Change {
    /// Every change.
    pub const ALL: [Self; 6] =
        [Self::Approve, Self::Reject, Self::Hold, Self::Cancel, Self::Lapse, Self::Complete];

    /// The event that tells of it.
    #[must_use]
    pub const fn event(self) -> &'static str {
        match self {
            Self::Approve => "batch.approved",
            Self::Reject => "batch.rejected",
            Self::Hold => "batch.held",
            Self::Cancel => "batch.cancelled",
            Self::Lapse => "batch.lapsed",
            Self::Complete => "batch.completed",
        }
    }
}

/// The event of a batch that is made.
pub const CREATED: &str = "batch.created";

impl Batch {
    /// The batch after this happened to it.
    ///
    /// # Errors
    /// `batch_not_cancellable`, or `state_conflict` for anything else that is not possible.
    pub fn after(
        &self,
        change: Change,
        (reason, now): (Option<String>, Moment),
    ) -> Result<Self, Problem> {
        let mut after = Self { version: self.version + 1, ..self.clone() };
        match (change, self.stage) {
            (Change::Approve, stage) if stage.is_waiting() => {
                (after.stage, after.approved_at, after.reason) = (Stage::Approved, Some(now), None);
            }
            (Change::Reject, stage) if stage.is_waiting() => {
                (after.stage, after.reason) = (Stage::Rejected, reason);
            }
            (Change::Hold, Stage::AwaitingApproval) => {
                (after.stage, after.reason) = (Stage::Held, reason);
            }
            (Change::Cancel, Stage::Approved) if self.completed_at.is_none() => {
                (after.stage, after.reason) = (Stage::Cancelled, reason);
            }
            (Change::Lapse, stage) if stage.is_waiting() => {
                (after.stage, after.reason) = (Stage::Cancelled, None);
            }
            (Change::Complete, Stage::Approved | Stage::Cancelled | Stage::Rejected)
                if self.completed_at.is_none() =>
            {
                after.completed_at = Some(now);
            }
            (Change::Cancel, _) => return Err(Problem::new(ErrorCode::BatchNotCancellable)),
            (_, stage) => {
                let stage = stage.as_str();
                let message = format!("This is not possible for a batch that is {stage}.");
                return Err(Problem::because(ErrorCode::StateConflict, message));
            }
        }
        Ok(after)
    }

    /// Where it stands, with payouts in these statuses.
    #[must_use]
    pub fn status(&self, counts: &Counts) -> &'static str {
        match self.stage {
            Stage::AwaitingApproval | Stage::Held | Stage::Rejected | Stage::Cancelled => {
                self.stage.as_str()
            }
            Stage::Approved if counts.in_flight() == 0 => match counts.failure() {
                0 => "completed",
                _ => "completed_with_errors",
            },
            Stage::Approved if counts.of(Status::Queued) == self.total_count => "approved",
            Stage::Approved => "processing",
        }
    }

    /// The event of a change; `data` is what merchants are told of it, where they are.
    #[must_use]
    pub fn event(
        &self,
        id: EventId,
        (name, at): (&'static str, Moment),
        data: Option<String>,
    ) -> Event {
        Event {
            id,
            merchant_id: self.merchant_id.clone(),
            env: self.env,
            name,
            object_type: "batch",
            object_id: self.id.to_string(),
            sequence: self.version,
            data: data.filter(|_| CATALOGUE.contains(&name)).map(Data::Whole),
            created_at: at,
        }
    }
}

/// How many payouts of a batch are in which status, and when the last of them ended.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    by_status: BTreeMap<&'static str, i64>,
    last_ended_at: Option<Moment>,
}

impl Counts {
    /// All in one status.
    #[must_use]
    pub fn all(status: Status, count: i64) -> Self {
        Self { by_status: [(status.as_str(), count)].into(), last_ended_at: None }
    }

    /// Adds so many in a status, of which the last ended at this instant.
    pub fn add(&mut self, status: Status, (count, ended_at): (i64, Option<Moment>)) {
        *self.by_status.entry(status.as_str()).or_default() += count;
        self.last_ended_at = self.last_ended_at.max(ended_at);
    }

    /// All that are in a status are in another one now.
    pub fn become_all(&mut self, from: Status, to: Status) {
        if let Some(count) = self.by_status.remove(from.as_str()) {
            *self.by_status.entry(to.as_str()).or_default() += count;
        }
    }

    /// How many are in a status.
    #[must_use]
    pub fn of(&self, status: Status) -> i64 {
        self.by_status.get(status.as_str()).copied().unwrap_or_default()
    }

    /// Of each status that some are in, how many.
    #[must_use]
    pub fn by_status(&self) -> &BTreeMap<&'static str, i64> {
        &self.by_status
    }

    /// How many were paid, and have not come back.
    #[must_use]
    pub fn success(&self) -> i64 {
        self.of(Status::Paid) + self.of(Status::PaidManual)
    }

    /// How many ended otherwise.
    #[must_use]
    pub fn failure(&self) -> i64 {
        self.by_status.values().sum::<i64>() - self.success() - self.in_flight()
    }

    /// How many have not ended.
    #[must_use]
    pub fn in_flight(&self) -> i64 {
        [Status::Draft, Status::AwaitingAdminReview, Status::Queued, Status::Processing]
            .into_iter()
            .map(|status| self.of(status))
            .sum()
    }

    /// When the last one ended, if all have.
    #[must_use]
    pub fn ended_at(&self) -> Option<Moment> {
        self.last_ended_at.filter(|_| self.in_flight() == 0)
    }
}
