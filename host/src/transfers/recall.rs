//! Calling a payment off that its network has, and that the recipient has not taken; and asking for
//! the money of one that was made.

use std::sync::{Arc, PoisonError};

use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::rails::ReadyRoute;
use crate::wasm::rail::RecallReason;

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::Calls;
use super::carry::{Carry, Over};
use super::finding::Same;
use super::order::{Feature, Order, OrderStage};
use super::work::{Claim, Claimed};

/// What of an object is recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recall {
    /// What is under way.
    Off,
    /// The money of what was paid.
    Back,
}

impl Transfers {
    /// Refuses a recall that would not reach its network, without asking it.
    ///
    /// # Errors
    /// As of [`Transfers::recall`].
    pub async fn check_recall<F: Feature>(
        &self,
        feature: &F,
        (id, recall): (&str, Recall),
    ) -> Result<(), Problem> {
        let object = self.recalled_object(feature, id).await?;
        let order = feature.order(&object)?;
        self.recallable(&order, recall).await.map(drop)
    }

    /// Keeps others from a payment that is to be recalled.
    ///
    /// # Errors
    /// `state_conflict` where somebody is at it, or nothing of it is under way; the database failed.
    pub async fn claim_for_recall(
        &self,
        id: &str,
        recall: Recall,
    ) -> Result<ClaimedForRecall, Problem> {
        if recall == Recall::Back {
            return self.alone(id).map(ClaimedForRecall::Paid);
        }
        match self.claim(id).await? {
            Claimed::Yes(claim) => Ok(ClaimedForRecall::UnderWay(claim)),
            Claimed::Busy => Err(conflict("A call about it is under way: try again.")),
            Claimed::NoWork => Err(conflict("Nothing of it is under way any more.")),
        }
    }

    /// Lets go of a payment that is not recalled after all.
    pub async fn let_go(&self, claimed: ClaimedForRecall) {
        if let ClaimedForRecall::UnderWay(claim) = claimed {
            self.give_back(&claim).await;
        }
    }

    /// Asks the network to call an object's payment off, or, where it was paid, for its money, and
    /// commits what it says that has become of it.
    ///
    /// # Errors
    /// `state_conflict` where there is nothing to recall, or its network recalls nothing; the
    /// database failed.
    pub async fn recall<F: Feature>(
        &self,
        feature: &F,
        claimed: ClaimedForRecall,
        reason: RecallReason,
    ) -> Result<(), Problem> {
        // As it is now that nobody else is at it.
        let claim = match claimed {
            ClaimedForRecall::UnderWay(claim) => claim,
            ClaimedForRecall::Paid(alone) => {
                let object = self.recalled_object(feature, &alone.id).await?;
                return self.recall_paid(feature, feature.order(&object)?, reason).await;
            }
        };
        let held = claim.clone();
        let object = self.recalled_object(feature, &claim.id).await?;
        let order = feature.order(&object)?;
        let recalled =
            Carry { engine: self, feature, turn: None, claim, object, order }.recall(reason).await;
        if recalled.is_err() {
            self.give_back(&held).await;
        }
        recalled
    }

    async fn recalled_object<F: Feature>(
        &self,
        feature: &F,
        id: &str,
    ) -> Result<F::Object, Problem> {
        let gone = || Problem::internal(format!("{id} is not there"));
        feature.load(id).await?.ok_or_else(gone)
    }

    /// Asks the network to have the money of a payment that was made sent back. Only what it says
    /// for good changes anything, now or when the network tells it.
    async fn recall_paid<F: Feature>(
        &self,
        feature: &F,
        order: Order,
        reason: RecallReason,
    ) -> Result<(), Problem> {
        let (attempt, route) = self.recallable(&order, Recall::Back).await?;
        let calls = Calls { engine: self, order: &order };
        let answered = calls.recall((&attempt, &route), reason).await?;
        self.take_in_answer(feature, &attempt, answered).await
    }

    /// The attempt that a recall is about, and where it was sent.
    ///
    /// # Errors
    /// `state_conflict` where its network cannot be asked for its payment.
    async fn recallable(
        &self,
        order: &Order,
        recall: Recall,
    ) -> Result<(Attempt, Arc<ReadyRoute>), Problem> {
        if order.env == Env::Live && self.quarantine.is_closed() {
            return Err(conflict("Nothing live is sent while the quarantine lasts."));
        }
        let attempts = attempt::list_attempts(self.db.pool(), &order.id).await?;
        let (state, stage) = match recall {
            Recall::Off => (AttemptState::Open, OrderStage::UnderWay),
            Recall::Back => (AttemptState::Paid, OrderStage::Ended),
        };
        let found = attempts.into_iter().find(|attempt| attempt.state == state);
        let attempt = match recall {
            Recall::Off => {
                found.filter(|attempt| attempt.bytes_left && order.stage == stage).ok_or_else(
                    || conflict("Nothing of it has left for its network: mark it instead."),
                )?
            }
            Recall::Back => found
                .filter(|_| order.stage == stage)
                .ok_or_else(|| conflict("Nothing of it is paid."))?,
        };
        let route = self.routes.as_sent(&attempt.configuration).await?;
        if attempt.file_id.is_some() || !route.rail.code.calls_off() {
            return Err(conflict("Its network cannot be asked to call off or return a payment."));
        }
        // Another bank would be told of a payment that it never had.
        if Same::of(&attempt.configuration.fingerprint, route.fingerprints(&self.keyring))
            == Same::Nothing
        {
            return Err(conflict("Its route leads elsewhere than when it was sent."));
        }
        let is_live = order.env == Env::Live;
        if let Some(pause) = self.lanes.patience(&route.route.id).filter(|_| is_live) {
            let busy = conflict("Its network wants to be left alone for now.");
            return Err(busy.retry_after(pause.as_secs().max(1)));
        }
        Ok((attempt, route))
    }

    /// Keeps others of this host from asking for the same money while one asks.
    fn alone(&self, id: &str) -> Result<Alone, Problem> {
        let mut asking = self.recalls.lock().unwrap_or_else(PoisonError::into_inner);
        match asking.insert(id.to_owned()) {
            true => Ok(Alone { engine: self.clone(), id: id.to_owned() }),
            false => Err(conflict("Somebody asks for it this moment.")),
        }
    }
}

/// A payment that is about to be recalled, and that nobody else is at.
pub enum ClaimedForRecall {
    /// One that is under way, by the claim of its work.
    UnderWay(Claim),
    /// One that is paid, on this host.
    Paid(Alone),
}

/// Keeps others of this host from asking for the same money.
pub struct Alone {
    engine: Transfers,
    id: String,
}

impl Drop for Alone {
    fn drop(&mut self) {
        let mut asking = self.engine.recalls.lock().unwrap_or_else(PoisonError::into_inner);
        asking.remove(&self.id);
    }
}

impl<F: Feature> Carry<'_, F> {
    async fn recall(self, reason: RecallReason) -> Result<(), Problem> {
        let attempts = attempt::list_attempts(self.engine.db.pool(), &self.order.id).await?;
        if self.forgotten(&attempts).await?.is_some() {
            return Err(conflict(
                "It may have left before the database was restored: see its case.",
            ));
        }
        let (attempt, route) = self.engine.recallable(&self.order, Recall::Off).await?;
        // Whatever is answered, it is no "never received" in a row.
        let attempt = Attempt { never_received: 0, ..attempt };
        let answered = self.calls().recall((&attempt, &route), reason).await?;
        self.conclude(Over::new(attempt, route), answered).await
    }
}

fn conflict(why: &'static str) -> Problem {
    Problem::because(ErrorCode::StateConflict, why)
}
