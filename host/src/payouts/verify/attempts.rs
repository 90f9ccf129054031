//! What is stored about a payout's way out: attempts, the calls that show them, and work.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use sqlx::{AnyConnection, Row as _};

use crate::clock::Moment;
use crate::ledger::verify::{Faults, These};
use crate::transfers::attempt::{Attempt, AttemptState, list_attempts_of};
use crate::transfers::{nth_of, serial_of};

use super::super::model::{Payout, Status};
use super::replay::StoredEvent;

/// How far apart two instants may be that were read one after the other, on hosts whose clocks
/// differ a little.
const SAME_TIME: Duration = Duration::from_secs(60);

/// No rail's schedule reaches further than that, nor does the window after some that an operator has
/// closed early and some holidays.
const DUE_WITHIN: Duration = Duration::from_secs(31 * 24 * 3600);

/// Everything of the engine about some payouts.
#[derive(Default)]
pub(super) struct Transfers {
    attempts: HashMap<String, Vec<Attempt>>,
    calls: HashMap<String, Vec<Call>>,
    work: HashMap<String, Work>,
    /// Payouts with a case about what a bank says.
    cases: HashSet<String>,
    /// Payouts with a case about what came back, which may be all of it.
    parts: HashSet<String>,
}

struct Call {
    attempt: Option<String>,
    operation: String,
    result: String,
    at: Moment,
}

struct Work {
    owner: (String, String),
    stage: String,
    was_claimed: bool,
    serial: i64,
    queued_at: Moment,
    due_at: Moment,
}

impl Transfers {
    pub(super) async fn read(db: &mut AnyConnection, these: &These) -> Result<Self, sqlx::Error> {
        let mut all = Self::default();
        for attempt in list_attempts_of(db, these).await? {
            all.attempts.entry(attempt.transfer_id.clone()).or_default().push(attempt);
        }
        let sql = "SELECT transfer_id, attempt_id, operation, result, created_at FROM rail_calls \
                   WHERE {these transfer_id} ORDER BY transfer_id, id";
        let mut rows = these.query(sql).fetch(&mut *db);
        while let Some(row) = rows.try_next().await? {
            all.calls.entry(row.try_get(0)?).or_default().push(Call {
                attempt: row.try_get(1)?,
                operation: row.try_get(2)?,
                result: row.try_get(3)?,
                at: Moment::from_micros(row.try_get(4)?),
            });
        }
        drop(rows);
        let sql = "SELECT id, merchant_id, env, stage, serial, queued_at, due_at, lease_until \
                   FROM transfers WHERE {these id}";
        for row in these.query(sql).fetch_all(&mut *db).await? {
            let work = Work {
                owner: (row.try_get(1)?, row.try_get(2)?),
                stage: row.try_get(3)?,
                serial: row.try_get(4)?,
                queued_at: Moment::from_micros(row.try_get(5)?),
                due_at: Moment::from_micros(row.try_get(6)?),
                was_claimed: row.try_get::<i64, _>(7)? > 0,
            };
            all.work.insert(row.try_get(0)?, work);
        }
        let sql = "SELECT DISTINCT subject_id, kind FROM cases WHERE {these subject_id} AND kind IN \
                   ('paid_after_failure', 'paid_twice', 'refused_after_payment', 'partial_return')";
        for row in these.query(sql).fetch_all(&mut *db).await? {
            let of = match row.try_get::<&str, _>(1)? {
                "partial_return" => &mut all.parts,
                _ => &mut all.cases,
            };
            of.insert(row.try_get(0)?);
        }
        Ok(all)
    }
}

/// Compares a payout with its way out.
pub(super) fn check(
    payout: &Payout,
    all: &Transfers,
    (told, now): (&[StoredEvent], Moment),
    faults: &mut Faults,
) {
    let id = payout.id.as_str();
    let attempts = all.attempts.get(id).map_or(&[][..], Vec::as_slice);
    let calls = all.calls.get(id).map_or(&[][..], Vec::as_slice);
    check_work(payout, all.work.get(id), attempts, now, faults);
    check_order(payout, attempts, all, faults);
    let is_mark = |told: &StoredEvent| {
        matches!(told.told_status(), Some(Some(Status::PaidManual | Status::FailedManual)))
    };
    let marked = told.iter().any(is_mark);
    for attempt in attempts {
        let own: Vec<&Call> = calls
            .iter()
            .filter(|call| call.attempt.as_deref() == Some(attempt.id.as_str()))
            .collect();
        check_attempt(payout, attempt, &own, faults);
        if attempt.state == AttemptState::Closed && !marked {
            let what = format!("attempt {} of payout {id} was closed by nobody", attempt.id);
            faults.add("attempt-state", what);
        }
    }
    let is_stray = |call: &&Call| {
        call.attempt.as_ref().is_some_and(|of| !attempts.iter().any(|a| a.id.as_str() == of))
    };
    if calls.iter().any(|call| is_stray(&call)) {
        faults.add("call", format!("payout {id} has a call about another payout's attempt"));
    }
}

fn check_work(
    payout: &Payout,
    work: Option<&Work>,
    attempts: &[Attempt],
    now: Moment,
    faults: &mut Faults,
) {
    let id = &payout.id;
    let is_under_way = matches!(payout.status, Status::Queued | Status::Processing);
    // Where there is none, one query says so of all that need it.
    let Some(work) = work else { return };
    // Whoever had it has not written that it was sent.
    let is_queued = payout.status == Status::Queued || (work.was_claimed && work.stage == "queued");
    let stage = if is_queued { "queued" } else { "sent" };
    let owner = (payout.merchant_id.to_string(), payout.env.to_string());
    let is_right = is_under_way
        && work.stage == stage
        && work.owner == owner
        && Some(work.queued_at) == payout.queued_at
        && attempts.iter().all(|attempt| serial_of(attempt.number) == work.serial);
    if !is_right {
        let what = format!("payout {id} is {}, and its work says otherwise", payout.status);
        faults.add("payout-work", what);
    }
    if work.due_at > now.after(DUE_WITHIN) {
        faults.add("payout-work", format!("payout {id} is put off for longer than any rail does"));
    }
}

/// Attempts follow one another as they must, and the last one fits the payout.
fn check_order(payout: &Payout, attempts: &[Attempt], all: &Transfers, faults: &mut Faults) {
    use AttemptState as A;
    let id = &payout.id;
    let has_case = all.cases.contains(id.as_str());
    let mut odd = |what: &str| faults.add("payout-attempts", format!("payout {id} {what}"));
    let mut last_nth = 0;
    for attempt in attempts {
        // After a restore the first one may be a later one than the first.
        let is_next = nth_of(attempt.number) > last_nth;
        last_nth = nth_of(attempt.number);
        if !is_next || serial_of(attempt.number) != serial_of(attempts[0].number) {
            odd("has attempts whose references were not made for it");
        }
    }
    let (last, before) = match attempts.split_last() {
        Some((last, before)) => (Some(last), before),
        None => (None, attempts),
    };
    let was_not_sent = |(one, next): (&Attempt, &Attempt)| {
        // A bank may have said otherwise since; what it said is looked at below.
        let is_news = one.answered_at.is_some_and(|at| at >= next.created_at);
        one.state == A::NotSent
            || (is_news && matches!(one.state, A::Paid | A::Refused | A::Returned))
    };
    if !has_case && !before.iter().zip(attempts.iter().skip(1)).all(was_not_sent) {
        odd("was sent again although an earlier attempt had left");
    }
    let is_paid = |attempt: &&Attempt| attempt.state == A::Paid;
    let is_its =
        |attempt: &&Attempt| payout.rail_reference.as_ref() == Some(&attempt.rail_reference);
    let is_unheard = attempts.iter().filter(is_paid).any(|paid| !is_its(&paid));
    if !has_case && payout.status.is_final() && is_unheard {
        odd("has ended otherwise than by an attempt that was paid, and nobody was told");
    }
    // One that had been given up, if that was paid in the end, or was charged for until its bank took
    // that back.
    let had_money = |attempt: &&Attempt| {
        matches!(attempt.state, A::Paid | A::Returned) || (has_case && attempt.state == A::Refused)
    };
    let last = attempts.iter().filter(had_money).find(is_its).or(last);
    let (route, reference) = match last {
        Some(last) => (Some(last.route.as_str()), Some(last.rail_reference.as_str())),
        None => (None, None),
    };
    if (payout.route.as_deref(), payout.rail_reference.as_deref()) != (route, reference) {
        odd("says that it went over another route, or under another reference");
    }
    if has_case {
        return;
    }
    let state = last.map(|last| last.state);
    let fits = match payout.status {
        Status::Draft | Status::AwaitingAdminReview | Status::Queued | Status::Cancelled => {
            state.is_none()
        }
        Status::Processing => state == Some(A::Open),
        Status::Paid => {
            let is_back = all.parts.contains(id.as_str()) && state == Some(A::Returned);
            is_back || state == Some(A::Paid)
        }
        Status::Failed => matches!(state, None | Some(A::Refused | A::Returned)),
        // It may have failed, and been marked as paid before it was reversed; and its bank may have
        // refused it since.
        Status::Reversed if payout.round > 1 => state != Some(A::Open),
        Status::Reversed => !matches!(state, Some(A::Open | A::NotSent)),
        Status::PaidManual => state != Some(A::Open),
        Status::FailedManual => !matches!(state, Some(A::Open | A::NotSent)),
    };
    if !fits {
        odd(&format!("is {}, and its last attempt does not fit", payout.status));
    }
    let is_debited = payout.queued_at.is_some();
    if payout.status == Status::Failed && is_debited && state.is_none() {
        odd("failed without an attempt");
    }
}

/// An attempt is as the calls about it show.
fn check_attempt(payout: &Payout, attempt: &Attempt, calls: &[&Call], faults: &mut Faults) {
    use AttemptState as A;
    let mut odd = |what: &str| {
        let what = format!("attempt {} of payout {} {what}", attempt.id, payout.id);
        faults.add("attempt", what);
    };
    if !attempt.configuration.is_genuine() {
        odd("names a configuration of its route that was changed");
    }
    let count = |operation: &str| {
        let made = calls.iter().filter(|call| call.operation == operation).count();
        i64::try_from(made).unwrap_or(i64::MAX)
    };
    if count("submit") > attempt.sends || count("query") < attempt.queries {
        odd("was sent or asked about more or less often than its calls show");
    }
    // Another host may have sent it again, and its clock may differ.
    let is_first = attempt.sends <= 1 || !near(attempt.sent_at, attempt.created_at);
    if attempt.sent_at < attempt.created_at && is_first {
        odd("was sent before it was fixed");
    }
    if calls.iter().any(|call| call.at.after(SAME_TIME) < attempt.created_at) {
        odd("was asked about before it was fixed");
    }
    if attempt.answered_at.is_some() != (attempt.state != A::Open) {
        odd("has an end, or none, and its state says otherwise");
    }
    if attempt.answered_at.is_some_and(|at| at.after(SAME_TIME) < attempt.sent_at) {
        odd("ended before it was sent");
    }
    let is_answered = matches!(attempt.state, A::Paid | A::Refused | A::Returned);
    let begins = match attempt.state {
        A::Paid => "paid",
        A::Refused => "refused",
        _ => "returned",
    };
    let is_shown = |call: &&&Call| Some(call.result.as_str()) == attempt.message.as_deref();
    if is_answered
        && !calls.iter().find(is_shown).is_some_and(|call| call.result.starts_with(begins))
    {
        odd("ended in a way that none of its calls shows");
    }
    if is_answered && attempt.state == A::Paid && !attempt.bytes_left {
        odd("is paid, and nothing of it left");
    }
}

/// Whether two instants are the same, as far as clocks can tell.
fn near(one: Moment, other: Moment) -> bool {
    one.after(SAME_TIME) >= other && other.after(SAME_TIME) >= one
}
