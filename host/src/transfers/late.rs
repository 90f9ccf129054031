//! What is learnt about an object when somebody else has it, or when it has ended: always
//! written down, never acted upon under a claim that is lost.

use std::collections::VecDeque;

use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::Command;
use crate::money::Minor;
use crate::wasm::rail::ReturnOfFunds;

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::{Answered, Calls};
use super::conclude::end_question;
use super::finding::Learnt;
use super::order::{Failure, Feature, OrderStage, Step, Writes};
use super::work;

/// How often an object is read again that somebody keeps changing.
const TRIES: u32 = 5;

impl Transfers {
    /// Takes in what was learnt about an attempt. While its object is on its way, whoever has it
    /// asks again; where it has ended otherwise, the feature makes of it what it must.
    ///
    /// # Errors
    /// The database failed.
    pub(super) async fn late<F: Feature>(
        &self,
        feature: &F,
        seen: &Attempt,
        (learnt, evidence): (Learnt, RowChange),
    ) -> Result<(), Problem> {
        for _ in 0..TRIES {
            let gone = || Problem::internal("an attempt without its object");
            let object = feature.load(&seen.transfer_id).await?.ok_or_else(gone)?;
            let order = feature.order(&object)?;
            if order.stage != OrderStage::Ended {
                self.write_evidence(evidence).await?;
                work::nudge(&self.db, &order.id, self.now()).await?;
                self.wake();
                return Ok(());
            }
            let attempts = attempt::list_attempts(self.db.pool(), &order.id).await?;
            let now = attempts.into_iter().find(|known| known.id == seen.id).ok_or_else(gone)?;
            let Some((step, state)) = learnt.step(now.fixed()).filter(|_| now.is_news(&learnt))
            else {
                return self.write_evidence(evidence).await;
            };
            let calls = Calls { engine: self, order: &order };
            let told = Attempt {
                state,
                bytes_left: now.bytes_left || state != AttemptState::Refused,
                answered_at: Some(self.now()),
                ..calls.told(&now, &learnt)?
            };
            let rows = vec![attempt::ATTEMPT_STATES.change(&told), evidence.clone()];
            match feature.commit(&object, step, Writes { rows, fence: None, beside: None }).await {
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                other => return other.map(drop),
            }
        }
        self.write_evidence(evidence).await
    }

    /// Takes in that attempts were paid besides the one that counts.
    ///
    /// # Errors
    /// The database failed, or others keep changing the object.
    pub(super) async fn also_paid<F: Feature>(
        &self,
        feature: &F,
        others: &VecDeque<Attempt>,
    ) -> Result<(), Problem> {
        for paid in others {
            self.one_also_paid(feature, paid).await?;
        }
        Ok(())
    }

    async fn one_also_paid<F: Feature>(&self, feature: &F, paid: &Attempt) -> Result<(), Problem> {
        for _ in 0..TRIES {
            let gone = || Problem::internal("an attempt without its object");
            let object = feature.load(&paid.transfer_id).await?.ok_or_else(gone)?;
            let rows = vec![end_question(paid, self.now())];
            let with = Writes { rows, fence: None, beside: None };
            match feature.commit(&object, Step::Paid(paid.fixed()), with).await {
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                other => return other.map(drop),
            }
        }
        Err(Problem::new(ErrorCode::ServiceUnavailable))
    }

    /// Takes in what a call about an attempt came to, whoever has its object.
    ///
    /// # Errors
    /// The database failed.
    pub(super) async fn take_in_answer<F: Feature>(
        &self,
        feature: &F,
        attempt: &Attempt,
        answered: Answered,
    ) -> Result<(), Problem> {
        let Answered { learnt, evidence, part, .. } = answered;
        match part {
            Some(funds) => self.part_came_back(feature, attempt, (*funds, Some(evidence))).await,
            None => self.late(feature, attempt, (learnt, evidence)).await,
        }
    }

    /// Takes in that a part of a payment came back, with what shows it if that is to be written.
    ///
    /// # Errors
    /// The database failed.
    pub(super) async fn part_came_back<F: Feature>(
        &self,
        feature: &F,
        seen: &Attempt,
        (funds, evidence): (ReturnOfFunds, Option<RowChange>),
    ) -> Result<(), Problem> {
        let ReturnOfFunds { code, message, amount_minor, network_id: id } = funds;
        let failure = Failure { code, message, id };
        for _ in 0..TRIES {
            let gone = || Problem::internal("an attempt without its object");
            let object = feature.load(&seen.transfer_id).await?.ok_or_else(gone)?;
            let part = Minor::new(amount_minor);
            let step = Step::PartReturned(seen.fixed(), failure.clone(), part);
            let rows = evidence.iter().cloned().collect();
            match feature.commit(&object, step, Writes { rows, fence: None, beside: None }).await {
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                other => return other.map(drop),
            }
        }
        match evidence {
            Some(evidence) => self.write_evidence(evidence).await,
            None => Ok(()),
        }
    }

    /// Asks once more about an attempt whose object has ended, and takes in the answer.
    ///
    /// # Errors
    /// The database failed, or the route is not there.
    pub(super) async fn ask_again<F: Feature>(
        &self,
        feature: &F,
        attempt: &Attempt,
    ) -> Result<(), Problem> {
        let gone = || Problem::internal("an attempt without its object");
        let object = feature.load(&attempt.transfer_id).await?.ok_or_else(gone)?;
        let order = feature.order(&object)?;
        let route = self.routes.as_sent(&attempt.configuration).await?;
        let calls = Calls { engine: self, order: &order };
        let answered = calls.query((attempt, &route)).await?;
        self.take_in_answer(feature, attempt, answered).await
    }

    pub(super) async fn write_evidence(&self, evidence: RowChange) -> Result<(), Problem> {
        self.writer.work(Command::rows(vec![evidence])).await.map(drop)
    }
}

impl Attempt {
    /// Whether what was learnt differs from how it is known to have ended.
    fn is_news(&self, learnt: &Learnt) -> bool {
        !matches!(
            (self.state, learnt),
            (AttemptState::Paid | AttemptState::Returned, Learnt::Paid(_))
                | (AttemptState::Refused | AttemptState::Returned, Learnt::Refused(_))
                | (AttemptState::Returned, Learnt::Returned(_))
        )
    }
}
