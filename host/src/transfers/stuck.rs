//! Work that this host fails at: an object that cannot be read, an outcome that cannot be written
//! down. All else goes on; the work is tried again, later each time, and a person is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use crate::cases::{self, Case, CaseKind};
use crate::config::limits;
use crate::db;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, Effects};

use super::Transfers;
use super::work::{self, Claim, Failed};

/// How often this host has failed at each piece of work since it last did not. That is no count of
/// the row's, which says how often a network was asked: a host that starts again counts anew, and
/// each counts for itself.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<String, i64>>);

impl Failures {
    fn one_more(&self, id: &str) -> i64 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Where so many fail, it is not because of any of them.
        if known.len() >= limits::FAILURES_MAX && !known.contains_key(id) {
            known.clear();
        }
        let count = known.entry(id.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn forget(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// How long work waits that came to nothing for so many times.
pub(super) fn pause_after(tries: i64) -> Duration {
    let doubled = u32::try_from(tries).unwrap_or(u32::MAX).min(7);
    limits::SEND_LATER * (1 << doubled)
}

/// What makes a case about an object that cannot be sent the same case.
pub(super) fn cannot_send(id: &str) -> String {
    format!("cannot_send/{id}")
}

impl Transfers {
    /// Takes note of how work ended that this process had claimed. What somebody else changed first
    /// is theirs. What passes by itself is no fault of this work, and is claimed again when its
    /// lease is over. A rail that is not there does not pass: a file may wait for it.
    pub(super) async fn note_end(&self, claim: &Claim, carried: Result<(), Problem>) {
        let id = &claim.id;
        let Err(why) = carried else { return self.failures.forget(id) };
        if why.code() == ErrorCode::StateConflict {
            return;
        }
        tracing::error!(transfer.id = id, problem = %why, "carrying a payment");
        if !matches!(why.code(), ErrorCode::ApiError | ErrorCode::RailNotConfigured) {
            return;
        }
        match self.put_off_after_failure(claim, &why).await {
            Ok(()) => {}
            Err(problem) if problem.code() == ErrorCode::StateConflict => {}
            Err(problem) => tracing::error!(transfer.id = id, %problem, "putting work off"),
        }
    }

    /// Has it wait, longer each time, and opens a case after some tries. The lease stays: it says
    /// that something may have left.
    async fn put_off_after_failure(&self, claim: &Claim, why: &Problem) -> Result<(), Problem> {
        let (id, now, known) = (claim.id.clone(), self.now(), claim.nudges);
        let Some((env, merchant_id)) = db::in_time(work::owner(self.db.pool(), &id)).await? else {
            return Ok(());
        };
        let failures = self.failures.one_more(&id);
        let later = now.after(pause_after(failures));
        let reason = match why.code() {
            ErrorCode::RailNotConfigured => "its route or its rail is not there",
            _ => "this host cannot read it, or cannot write down what became of it",
        };
        let case = Case {
            id: self.ids.id(),
            kind: CaseKind::CannotSend,
            fingerprint: format!("host_fails/{id}"),
            env: Env::parse(&env).ok_or_else(|| Problem::internal("an unknown environment"))?,
            merchant_id: Some(merchant_id),
            subject_type: "payout",
            subject_id: id.clone(),
            route: None,
            amount: None,
            summary: format!("{id} cannot be carried on: {reason}."),
            evidence: json!({ "problem": why.to_string() }),
            opened_at: now,
        };
        let (ids, fingerprint) = (Arc::clone(&self.ids), case.fingerprint.clone());
        let command = Command::new(move |locked| {
            let gone = || Problem::new(ErrorCode::StateConflict);
            let nudges = locked.row(&work::WORK_FENCES, &id).ok_or_else(gone)?.int("nudges")?;
            let due_at = if nudges > known { now } else { later };
            let mut rows = vec![work::WORK_FAILED.change(&Failed { id: id.clone(), due_at })];
            if failures >= limits::SEND_TRIES_MAX {
                rows.extend(case.open_once(locked, &ids));
            }
            Ok(Effects { rows, ..Effects::default() }.and(()))
        });
        let command = command.guards([claim.guard()]);
        let command = command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint);
        self.writer.work(command).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_until_one_goes_well_and_not_without_end() {
        let failures = Failures::default();
        assert_eq!(["a", "a", "b", "a"].map(|id| failures.one_more(id)), [1, 2, 1, 3]);
        failures.forget("a");
        assert_eq!(["a", "b"].map(|id| failures.one_more(id)), [1, 2]);
        for number in 0..3 * limits::FAILURES_MAX {
            failures.one_more(&number.to_string());
        }
        assert!(failures.0.lock().expect("a lock").len() <= limits::FAILURES_MAX);
    }
}
