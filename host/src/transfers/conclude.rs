//! What became of an attempt, committed with the object that it is for: its end, or when to ask
//! again.
//!
//! An attempt that was given up may have been paid all the same, while the next one is under way.
//! That one is asked about to its end and never sent again. If it was not paid, the earlier one
//! counts. Each that was paid besides the one that counts is one more commit, with which a person is
//! told. If the host dies before it, `verify` finds what was paid twice, and the case about the
//! earlier one stays open.

use std::collections::VecDeque;
use std::time::Duration;

use crate::cases::{self, Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::rails::ReadyRoute;

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::Answered;
use super::carry::{Carry, Over};
use super::finding::Learnt;
use super::order::{Feature, Step, Writes};
use super::serials::nth_of;

impl Transfers {
    /// What the end of an attempt means for its object: where it was not paid and one before it
    /// was, that one counts. Besides, those that were paid and do not count.
    pub(super) async fn counting(
        &self,
        (ended, step): (&Attempt, Step),
        rows: &mut Vec<RowChange>,
    ) -> Result<(Step, VecDeque<Attempt>), Problem> {
        let mut others = self.paid_before(ended).await?;
        let step = match others.pop_front_if(|_| ended.state != AttemptState::Paid) {
            Some(paid) => {
                rows.push(end_question(&paid, self.now()));
                Step::Paid(paid.fixed())
            }
            None => step,
        };
        Ok((step, others))
    }

    /// Attempts before this one that were paid after all, though they had been given up.
    pub(super) async fn paid_before(
        &self,
        attempt: &Attempt,
    ) -> Result<VecDeque<Attempt>, Problem> {
        if nth_of(attempt.number) == 1 {
            return Ok(VecDeque::new());
        }
        let known = attempt::list_attempts(self.db.pool(), &attempt.transfer_id).await?;
        Ok(attempt::paid_besides(&known, attempt).cloned().collect())
    }
}

impl<F: Feature> Carry<'_, F> {
    /// Commits what became of an attempt: the end, or when to ask.
    pub(super) async fn conclude(mut self, over: Over, answered: Answered) -> Result<(), Problem> {
        if let Some(turn) = self.turn {
            turn.hand_on();
        }
        let now = self.engine.now();
        let Answered { learnt, evidence, .. } = &answered;
        let attempt = self.calls().told(&over.attempt, learnt)?;
        let Some((step, state)) = learnt.step(attempt.fixed()) else {
            let mut next = self.next_question(&over.route);
            if !attempt.bytes_left && next.at > self.claim.due_at {
                // It goes as soon as it may: nobody waits for what the network has of it.
                let waits = now.since(attempt.created_at) / limits::UNSENT_ASKED_SHARE;
                next.at = next.at.min(now.after(waits.max(limits::UNSENT_ASKED_EVERY)));
            }
            let case = self.unanswered((&attempt, &over.route), now);
            let mut rows = vec![attempt::ATTEMPT_STATES.change(&attempt), evidence.clone()];
            if let Learnt::Accepted(_) = learnt
                && let Some(shown) = self.calls().shown((&attempt, &over.route))?
                && self.order.shown.as_ref() != Some(&shown)
            {
                let with = Writes { rows: rows.clone(), fence: Some(self.fence()), beside: None };
                let step = Step::Accepted(attempt.fixed(), shown);
                match self.feature.commit(&self.object, step, with).await {
                    Ok(object) => (self.object, rows) = (object, Vec::new()),
                    // Somebody has changed it meanwhile: it is told with the next answer.
                    Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                    Err(problem) => return Err(problem),
                }
            }
            let is_told = rows.is_empty();
            return match self.put_off(rows, next, case).await {
                Err(problem) if is_told => self.lost(problem, None).await,
                Err(problem) => self.lost(problem, Some((over, answered))).await,
                Ok(()) => match answered.part {
                    Some(funds) => {
                        self.engine.part_came_back(self.feature, &attempt, (*funds, None)).await
                    }
                    None => Ok(()),
                },
            };
        };
        let ended = Attempt { state, answered_at: Some(now), ..attempt };
        let mut rows = vec![attempt::ATTEMPT_STATES.change(&ended), evidence.clone()];
        rows.extend(no_longer_unknown(&ended, now));
        let (step, others) = self.engine.counting((&ended, step), &mut rows).await?;
        let with = Writes { rows, fence: Some(self.fence()), beside: None };
        if let Err(problem) = self.feature.commit(&self.object, step, with).await {
            return self.lost(problem, Some((over, answered))).await;
        }
        self.engine.also_paid(self.feature, &others).await
    }

    /// Nothing of this attempt was carried out, and others were paid: the first of them counts, and
    /// nothing is sent any more. `answered` is what the network said of it, if it was asked.
    pub(super) async fn never_needed(
        self,
        over: Over,
        mut paid: VecDeque<Attempt>,
        answered: Option<Answered>,
    ) -> Result<(), Problem> {
        let (now, counting) = (self.engine.now(), paid.pop_front());
        let counting = counting.ok_or_else(|| Problem::internal("nothing was paid"))?;
        let mut rows = needless(&over.attempt, &counting, now);
        rows.extend(answered.as_ref().map(|answered| answered.evidence.clone()));
        let with = Writes { rows, fence: Some(self.fence()), beside: None };
        match self.feature.commit(&self.object, Step::Paid(counting.fixed()), with).await {
            Ok(_) => self.engine.also_paid(self.feature, &paid).await,
            Err(problem) => self.lost(problem, answered.map(|answered| (over, answered))).await,
        }
    }

    /// Takes in what was told about an attempt that had been given up. A payment counts: the
    /// attempt that took over is ended if nothing of it left, and otherwise a person is called.
    pub(super) async fn overtaken(
        self,
        open: Option<Attempt>,
        over: Over,
        answered: Answered,
    ) -> Result<(), Problem> {
        let now = self.engine.now();
        let Answered { learnt, evidence, .. } = &answered;
        if !matches!(learnt, Learnt::Paid(_)) {
            let next = self.next_question(&over.route);
            let mut rows = vec![evidence.clone()];
            // It takes back that it paid.
            if matches!(learnt, Learnt::Refused(_)) && over.attempt.state == AttemptState::Paid {
                let told = self.calls().told(&over.attempt, learnt)?;
                let (state, answered_at) = (AttemptState::Refused, Some(now));
                let refused = Attempt { state, answered_at, ..told };
                rows.push(attempt::ATTEMPT_STATES.change(&refused));
                rows.push(end_question(&refused, now));
            }
            return self.put_off(rows, next, None).await;
        }
        let paid = Attempt {
            state: AttemptState::Paid,
            answered_at: Some(now),
            ..self.calls().told(&over.attempt, learnt)?
        };
        let (mut rows, mut beside) = (vec![evidence.clone()], None);
        if let Some(open) = open {
            beside = self.in_open_file(&open).await?;
            if open.bytes_left && beside.is_none() {
                rows.push(attempt::ATTEMPT_STATES.change(&paid));
                let case = self.case(
                    CaseKind::OutcomeUnknown,
                    outcome_unknown(&paid),
                    format!(
                        "{} was paid over {} as {}, which had been given up, and may be paid over \
                         {} as {} too.",
                        self.order.reference,
                        paid.route,
                        paid.rail_reference,
                        open.route,
                        open.rail_reference
                    ),
                    now,
                );
                let next = self.next_question(&over.route);
                return self.put_off(rows, next, Some(case)).await;
            }
            rows.push(attempt::ATTEMPT_STATES.change(&open.not_needed(&paid, now)));
        }
        rows.push(attempt::ATTEMPT_STATES.change(&paid));
        let with = Writes { rows, fence: Some(self.fence()), beside };
        match self.feature.commit(&self.object, Step::Paid(paid.fixed()), with).await {
            // Nobody else would ask about this attempt: the network's word stays in the inbox.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {
                Err(Problem::new(ErrorCode::ServiceUnavailable).retry_after(1))
            }
            other => other.map(drop),
        }
    }

    /// A case about an outcome that is unknown for too long.
    pub(super) fn unanswered(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
        now: Moment,
    ) -> Option<Case> {
        // Who has taken it on may wait for its recipient.
        let declared = route.rail.declaration.query.accepted_for_s;
        let declared = declared.filter(|_| attempt.network_id.is_some());
        let most = declared.map_or(limits::UNANSWERED_MAX, Duration::from_secs);
        (attempt.created_at.after(most.max(limits::UNANSWERED_MAX)) <= now).then(|| {
            self.case(
                CaseKind::OutcomeUnknown,
                outcome_unknown(attempt),
                format!(
                    "{} was sent over {} as {}, and nobody says what became of it.",
                    self.order.reference, attempt.route, attempt.rail_reference
                ),
                now,
            )
        })
    }

    /// What is learnt after all, though somebody else has the object now.
    pub(super) async fn lost(
        self,
        problem: Problem,
        came: Option<(Over, Answered)>,
    ) -> Result<(), Problem> {
        if problem.code() != ErrorCode::StateConflict {
            return Err(problem);
        }
        match came {
            None => Ok(()),
            Some((over, answered)) => {
                self.engine.metrics.came_late();
                Box::pin(self.engine.take_in_answer(self.feature, &over.attempt, answered)).await
            }
        }
    }
}

/// Ends an attempt of which nothing was carried out, because an earlier one was paid.
pub(super) fn needless(attempt: &Attempt, paid: &Attempt, now: Moment) -> Vec<RowChange> {
    let ended = attempt.not_needed(paid, now);
    let questions = [end_question(&ended, now), end_question(paid, now)];
    [attempt::ATTEMPT_STATES.change(&ended)].into_iter().chain(questions).collect()
}

/// Ends the case about an outcome that was unknown for too long, if there is one.
pub(super) fn no_longer_unknown(attempt: &Attempt, now: Moment) -> Option<RowChange> {
    (attempt.created_at.after(limits::UNANSWERED_MAX) <= now).then(|| end_question(attempt, now))
}

/// Ends the case about an attempt of which nobody knew what became of it, or of the next one.
pub(super) fn end_question(attempt: &Attempt, now: Moment) -> RowChange {
    cases::sql::CASES_ENDED.change(&cases::sql::Ended {
        of: outcome_unknown(attempt),
        evidence: attempt.message.clone().unwrap_or_default(),
        at: now,
    })
}

pub(super) fn outcome_unknown(attempt: &Attempt) -> String {
    format!("outcome_unknown/{}", attempt.id)
}
