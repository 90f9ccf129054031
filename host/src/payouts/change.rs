//! Handing a payout's change to the writer: the new state, the money, the event, the work, and
//! the limits that it uses up or sets free, all in one transaction.

use crate::app::App;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::events::{CATALOGUE, Event};
use crate::ledger::{Command, CounterChange, Effects, Guard, LockedState};

use super::attempt::{self, Attempt, AttemptState};
use super::booking::book;
use super::model::{Change, Failure, LedgerEffect, NextStep, Payout, Transition};
use super::sql;
use super::usage::{Allowance, Usage};
use super::view::PayoutView;

/// What goes with a change.
#[derive(Default)]
pub(super) struct Accompanying {
    /// Why it did not get through, if it did not.
    pub failure: Option<Failure>,
    /// The attempt as it is now; new, or changed.
    pub attempt: Option<(Attempt, IsNew)>,
    /// The claim of work under which this is written.
    pub claim: Option<attempt::Claim>,
    /// When a dispatcher shall look at it again.
    pub due_at: Option<Moment>,
    /// Further rows of the same transaction: evidence, audit.
    pub rows: Vec<RowChange>,
}

/// Whether an attempt is written for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IsNew {
    /// It is inserted.
    Yes,
    /// It is updated.
    No,
}

/// Makes a change to a payout durable; answers the payout as it is afterwards.
///
/// # Errors
/// See [`super::model::apply`]; `state_conflict` also where somebody else changed it first;
/// `insufficient_funds`, `wallet_frozen` and `limit_violation` for a debit.
pub(super) async fn change(
    app: &App,
    payout: &Payout,
    change: Change,
    with: Accompanying,
) -> Result<Payout, Problem> {
    let now = app.now();
    let (mut after, transition) = payout.after(change, with.failure.clone(), now)?;
    if let Some((attempt, _)) = &with.attempt {
        after.rail_reference = Some(attempt.rail_reference.clone());
    }
    let usage = usage(app, payout, &transition, now).await?;
    let mut rows = rows(app, &after, &transition, with.due_at);
    rows.extend(with.rows);
    if let Some((attempt, is_new)) = &with.attempt {
        rows.push(attempt_row(attempt, *is_new));
    }
    let command = Command {
        wallets: vec![payout.wallet_id.clone()],
        guards: guards(payout, after.version, with.claim.as_ref()),
        counters: usage.as_ref().map(|(usage, _)| usage.keys()).unwrap_or_default(),
        reservation: None,
        decide: {
            let after = after.clone();
            Box::new(move |locked| decide(locked, &after, transition.ledger, usage.as_ref(), &rows))
        },
    };
    app.writer.submit(command).await?;
    if transition.next == NextStep::Send {
        app.dispatch.notify_one();
    }
    Ok(after)
}

/// Writes rows about a payout that stays as it is, under its claim.
///
/// # Errors
/// `state_conflict` where somebody else changed the payout or took it over first.
pub(super) async fn write(
    app: &App,
    payout: &Payout,
    claim: &attempt::Claim,
    rows: Vec<RowChange>,
) -> Result<(), Problem> {
    let command = Command {
        wallets: Vec::new(),
        guards: guards(payout, payout.version, Some(claim)),
        counters: Vec::new(),
        reservation: None,
        decide: Box::new(move |_| Ok(Effects { rows: rows.clone(), ..Effects::default() })),
    };
    app.writer.submit(command).await.map(drop)
}

fn decide(
    locked: &LockedState<'_>,
    after: &Payout,
    effect: LedgerEffect,
    usage: Option<&(Usage, Allowance)>,
    rows: &[RowChange],
) -> Result<Effects, Problem> {
    let mut effects = Effects { rows: rows.to_vec(), ..Effects::default() };
    if let Some((usage, allowance)) = usage {
        count(locked, after, effect, (usage, allowance), &mut effects.counters)?;
    }
    book(&mut effects, after, effect)?;
    Ok(effects)
}

/// A debit uses up the day's limits; a payout that is given back before it was paid does not,
/// and neither that nor one that ends without a debit stands in the way of another.
fn count(
    locked: &LockedState<'_>,
    payout: &Payout,
    effect: LedgerEffect,
    (usage, allowance): (&Usage, &Allowance),
    counters: &mut Vec<CounterChange>,
) -> Result<(), Problem> {
    let amount = payout.costs.amount;
    match effect {
        LedgerEffect::Debit | LedgerEffect::DebitSettled => {
            refuse_frozen(locked, payout)?;
            usage.refuse_excess(locked, allowance, amount)?;
            usage.add(locked, amount, counters)?;
        }
        LedgerEffect::GiveBack => {
            usage.add(locked, amount.negated()?, counters)?;
            usage.forget_recipient(locked, payout, counters);
        }
        LedgerEffect::None => usage.forget_recipient(locked, payout, counters),
        LedgerEffect::Settle | LedgerEffect::GiveBackSettled => {}
    }
    Ok(())
}

/// Refuses a debit of a frozen wallet.
///
/// # Errors
/// `wallet_frozen`.
pub(super) fn refuse_frozen(locked: &LockedState<'_>, payout: &Payout) -> Result<(), Problem> {
    match locked.wallet(&payout.wallet_id)?.is_frozen {
        true => Err(Problem::new(crate::error::ErrorCode::WalletFrozen)),
        false => Ok(()),
    }
}

/// The counters that a transition touches: those of today for a debit, those of the day of the
/// debit for giving back, those of the day of its creation where there was none.
async fn usage(
    app: &App,
    payout: &Payout,
    transition: &Transition,
    now: Moment,
) -> Result<Option<(Usage, Allowance)>, Problem> {
    let on = match transition.ledger {
        LedgerEffect::Debit | LedgerEffect::DebitSettled => now,
        LedgerEffect::GiveBack => payout.queued_at.unwrap_or(payout.created_at),
        LedgerEffect::None if transition.next == NextStep::Rest => payout.created_at,
        LedgerEffect::None | LedgerEffect::Settle | LedgerEffect::GiveBackSettled => {
            return Ok(None);
        }
    };
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::internal("a payout without a merchant"))?;
    let limits = merchant.settings.limits(payout.currency);
    let allowance = Allowance { limits, allow_duplicate: true };
    Ok(Some((Usage::of(payout, &merchant.timezone, on), allowance)))
}

/// The payout's new state, its event, and its place in the dispatcher's work.
fn rows(
    app: &App,
    after: &Payout,
    transition: &Transition,
    due_at: Option<Moment>,
) -> Vec<RowChange> {
    let now = app.now();
    let mut rows = vec![
        RowChange::Update(&sql::PAYOUT_STATES, sql::payout_change(after)),
        event(app, after, transition.event).row(),
    ];
    rows.push(match transition.next {
        NextStep::Send => RowChange::Insert(
            &attempt::DISPATCHES,
            attempt::dispatch_row(&after.id, now, Moment::default()),
        ),
        // The lease is kept while the rail is called; should this host die, it runs out.
        NextStep::Ask => keep_lease(after, due_at.unwrap_or(now)),
        NextStep::Rest => RowChange::Delete(&attempt::DISPATCH_DELAYS, after.id.to_string()),
    });
    rows
}

/// The event that tells merchants, or only the history, of a change.
#[must_use]
pub(super) fn event(app: &App, payout: &Payout, name: &'static str) -> Event {
    let told = CATALOGUE.contains(&name);
    Event {
        id: app.ids.id(),
        merchant_id: payout.merchant_id.clone(),
        env: payout.env,
        name,
        object_type: "payout",
        object_id: payout.id.to_string(),
        sequence: payout.version,
        data: told.then(|| PayoutView::json(payout)),
        created_at: app.now(),
    }
}

fn guards(payout: &Payout, next: i64, claim: Option<&attempt::Claim>) -> Vec<Guard> {
    let id = payout.id.to_string();
    let mut guards =
        vec![Guard { on: &sql::PAYOUT_VERSIONS, id: id.clone(), version: payout.version, next }];
    if let Some(claim) = claim {
        let fence = claim.fence;
        guards.push(Guard { on: &attempt::DISPATCH_FENCES, id, version: fence, next: fence });
    }
    guards
}

/// An attempt as it is now.
#[must_use]
pub(super) fn attempt_row(attempt: &Attempt, is_new: IsNew) -> RowChange {
    match is_new {
        IsNew::Yes => RowChange::Insert(&attempt::ATTEMPTS, attempt::attempt_row(attempt)),
        IsNew::No => RowChange::Update(&attempt::ATTEMPT_STATES, attempt::attempt_change(attempt)),
    }
}

/// Work that is put off until `due_at`; its lease ends.
#[must_use]
pub(super) fn put_off(payout: &Payout, due_at: Moment, tries: i64) -> RowChange {
    let row = vec![payout.id.as_str().into(), due_at.micros().into(), 0.into(), tries.into()];
    RowChange::Update(&attempt::DISPATCH_DELAYS, row)
}

/// Work that goes on under its lease, and is due at `due_at` should its holder die.
#[must_use]
pub(super) fn keep_lease(payout: &Payout, due_at: Moment) -> RowChange {
    let row = vec![payout.id.as_str().into(), due_at.micros().into()];
    RowChange::Update(&attempt::DISPATCH_DUES, row)
}

/// The attempt, ended by the operator on evidence.
#[must_use]
pub(super) fn closed(attempt: &Attempt, now: Moment) -> Attempt {
    Attempt { state: AttemptState::Closed, answered_at: Some(now), ..attempt.clone() }
}
