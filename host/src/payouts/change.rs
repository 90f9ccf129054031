//! Handing a payout's change to the writer: the new state, the money, the event, the work, the
//! case where a person has to look at it, and the limits that it uses up or sets free, all in one
//! transaction.

use std::sync::Arc;

use crate::app::App;
use crate::approvals;
use crate::auth::{self, MerchantStatus};
use crate::cases::{self, Case};
use crate::clock::Moment;
use crate::conversions::Plan;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::events::{CATALOGUE, Event};
use crate::ledger::{
    Command, CounterChange, Decided, Done, Effects, Guard, LockedState, Reply, Reservation,
};
use crate::money::Minor;
use crate::rails::shown::Told;
use crate::recipients::sql::BENEFICIARY_VERSIONS;
use crate::transfers::work::{WORK, WORK_DONE, Work};
use crate::transfers::{Correction, Failure, Fixed};

use super::booking::{Suspended, book};
use super::event_body;
use super::fx;
use super::model::{Change, LedgerEffect, NextStep, Payout, Transition};
use super::receipt::receipt;
use super::review::ACTS_OF_SEVERAL;
use super::sql;
use super::usage::{Allowance, Usage};
use super::view::PayoutView;

/// What goes with a change.
#[derive(Default)]
pub(super) struct Accompanying {
    /// Why it did not get through, if it did not.
    pub failure: Option<Failure>,
    /// The attempt that it is about.
    pub attempt: Option<Fixed>,
    /// What the network has otherwise about the recipient.
    pub correction: Option<Correction>,
    /// What merchants are shown of it: a JSON object.
    pub shown: Option<String>,
    /// What came back, where that is not the whole.
    pub part: Option<Minor>,
    /// Which of the cases about the same it opens, counted from 0.
    pub times: usize,
    /// The claim of work under which this is written.
    pub fence: Option<Guard>,
    /// What else must be as it was.
    pub beside: Vec<Guard>,
    /// The case that it resolves: it must be as it was, and its money is in suspense.
    pub case: Option<Guard>,
    /// The request of the first of two operators, where it took two.
    pub agreed: Vec<Guard>,
    /// Whether limits may stand in the way.
    pub limits: Limits,
    /// Further rows of the same transaction: attempts, evidence, audit.
    pub rows: Vec<RowChange>,
    /// The idempotency key of the request that asks for it.
    pub reservation: Option<Reservation>,
}

/// Whether a debit is refused where it exceeds the day's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Limits {
    /// It is.
    #[default]
    Refuse,
    /// The money has left already: it is counted, and nothing refuses it.
    Count,
}

/// Makes a change to a payout durable; answers the payout as it is afterwards.
///
/// # Errors
/// See [`super::model::apply`]; `state_conflict` also where somebody else changed it first;
/// `insufficient_funds`, `wallet_frozen` and `limit_violation` for a debit; the refusal of a
/// suspended merchant, of a frozen wallet, or of a blocked recipient, before anything is sent.
pub(super) async fn change(
    app: &App,
    payout: &Payout,
    change: Change,
    with: Accompanying,
) -> Result<Done<Payout>, Problem> {
    let (command, next) = command(app, payout, change, with).await?;
    let done = app.writer.work(command).await?;
    if next == NextStep::Send {
        app.transfers.wake();
    }
    Ok(match done {
        Done::Now(payout) => Done::Now(Arc::unwrap_or_clone(payout)),
        Done::Before { resource_id, reply } => Done::Before { resource_id, reply },
    })
}

/// A change of a payout, to be made together with others.
///
/// # Errors
/// See [`super::model::apply`].
pub async fn changing(
    app: &App,
    payout: &Payout,
    change: Change,
    failure: Option<Failure>,
) -> Result<Command<Arc<Payout>>, Problem> {
    let with = Accompanying { failure, ..Accompanying::default() };
    command(app, payout, change, with).await.map(|(command, _)| command)
}

/// What makes a change durable, and what is to be done afterwards.
async fn command(
    app: &App,
    payout: &Payout,
    change: Change,
    with: Accompanying,
) -> Result<(Command<Arc<Payout>>, NextStep), Problem> {
    let now = app.now();
    let (mut after, transition) = shaped(payout, change, &with, now)?;
    let is_sending = is_sending(change) && with.attempt.as_ref().is_none_or(|it| it.is_sent);
    if is_sending {
        // What has not left does not leave. When it was made, the recipient could be paid.
        refuse_blocked(app, payout).await?;
    } else if matches!(change, Change::Approve | Change::Release) {
        refuse_unpayable(app, payout).await?;
    }
    let buying = match transition.ledger {
        LedgerEffect::Debit | LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended => {
            fx::plan_later(app, &mut after, change).await?
        }
        _ => None,
    };
    let usage = match change {
        // Whom it went to stays who it was.
        Change::Correct => None,
        _ => usage(app, &after, &transition, now).await?,
    };
    let case = transition.case.map(|kind| {
        let case = super::contradiction::case(app, payout, kind, &with);
        (case.fingerprint.clone(), case)
    });
    let mut rows = rows(app, &after, &transition, now).await?;
    rows.extend(with.rows);
    let decision = Decision {
        suspended: Suspended {
            case: case.as_ref().map(|(_, case)| case.id.clone()),
            route: with.attempt.map(|attempt| attempt.route),
            part: with.part,
        },
        after: Arc::new(after),
        transition,
        is_sending,
        usage,
        buying: buying.clone(),
        limits: with.limits,
        case: case.as_ref().map(|(_, case)| case.clone()),
        rows,
        ids: Arc::clone(&app.ids),
    };
    // Locked before counters, as by whoever changes it: what the network says of it is written there.
    let corrected = with.correction.is_some().then(|| payout.beneficiary_id.clone());
    let counters = decision.usage.as_ref().map(|(usage, _)| usage.keys()).unwrap_or_default();
    let mut command = Command::new(move |locked| decision.decide(locked))
        .wallets(moves_balance(transition.ledger).then(|| payout.wallet_id.clone()))
        .guards([version(payout)])
        .guards(with.fence)
        .guards(with.beside)
        .guards(with.case)
        .guards(with.agreed)
        .counters(counters);
    if let Some(reservation) = with.reservation {
        let body = |payout: &Arc<Payout>| PayoutView::guarded_json(payout);
        let reply = move |payout: &Arc<Payout>| Reply { status: 200, body: body(payout) };
        command = command.reserve(reservation).replying(reply);
    }
    command = buying.iter().fold(command, |command, plan| plan.locks(command));
    if is_sending {
        command = command
            .row(&auth::sql::MERCHANT_STATUSES, payout.merchant_id.as_str())
            .unless_frozen(&payout.wallet_id);
    }
    if let Some(beneficiary) = corrected {
        command = command.row(&BENEFICIARY_VERSIONS, beneficiary.as_str());
    }
    if let Some((fingerprint, _)) = case {
        command = command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint);
    }
    Ok((unasked(command, payout, change), transition.next))
}

/// Where people end a payout, or say how it ended, nobody is asked about it any more.
fn unasked(command: Command<Arc<Payout>>, payout: &Payout, change: Change) -> Command<Arc<Payout>> {
    use Change as C;
    match change {
        C::Cancel
        | C::Decline
        | C::Reject
        | C::MarkPaid
        | C::MarkFailed
        | C::Reverse
        | C::Charge
        | C::GiveBack => approvals::ending(command, ACTS_OF_SEVERAL, payout.id.as_str()),
        _ => command,
    }
}

/// What could not be made any more does not go, either: for a merchant who is suspended, in a
/// currency that is not active any more, over what one payout may be now, or to a recipient who was
/// blocked since. The fraud rules are not asked once more.
async fn refuse_unpayable(app: &App, payout: &Payout) -> Result<(), Problem> {
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::internal("a payout without a merchant"))?;
    merchant.status.refuse_inactive()?;
    let usable = merchant.settings.refuse_currency(payout.currency, payout.env);
    usable.map_err(Problem::without_field)?;
    let most = fx::refuse_spending(&merchant, (payout.currency, payout.costs.amount));
    most.map_err(Problem::without_field)?;
    let owner = (&payout.merchant_id, payout.env);
    let which = (payout.currency, payout.recipient_identity.as_str());
    app.recipients.known(owner, which).await?.refuse_blocked()
}

/// Refuses a recipient who was blocked after the payout was queued.
///
/// # Errors
/// `beneficiary_globally_blocked`, `beneficiary_blacklisted_for_payout`.
pub async fn refuse_blocked(app: &App, payout: &Payout) -> Result<(), Problem> {
    let owner = (&payout.merchant_id, payout.env);
    let which = (payout.currency, payout.recipient_identity.as_str());
    let at = payout.queued_at.unwrap_or(payout.created_at);
    app.recipients.refuse_blocked_since(at, owner, which).await
}

/// The payout as it will be, with all that goes with the change.
fn shaped(
    payout: &Payout,
    change: Change,
    with: &Accompanying,
    now: Moment,
) -> Result<(Payout, Transition), Problem> {
    let (mut after, transition) = payout.after(change, with.failure.clone(), now)?;
    if let Some(Fixed { route, reference, .. }) = &with.attempt
        // What was paid may be an attempt that had been given up.
        && (is_sending(change)
            || matches!(change, Change::Confirm | Change::MarkPaid | Change::Charge))
    {
        (after.route, after.rail_reference) = (Some(route.clone()), Some(reference.clone()));
    }
    // What was told of one attempt is nothing to the next.
    after.told = after.told.filter(|_| change != Change::Reroute);
    if after.status.is_final() {
        after.told = after.told.as_deref().map(without_claim);
    }
    if let Some(shown) = &with.shown {
        after.told = Some(shown.clone());
    }
    if let Some(correction) = &with.correction {
        after.correction = Some(correction.json());
    }
    Ok((after, transition))
}

/// What was told of a payout that has ended: how to claim its money is nobody's business any more.
fn without_claim(told: &str) -> String {
    let told: Told = serde_json::from_str(told).unwrap_or_default();
    serde_json::to_string(&Told { open: told.open, ..Told::default() }).unwrap_or_default()
}

/// Whether an effect changes what the wallet has: others do without its lock, so that who pays out
/// of it does not wait for its payouts to come to their ends.
const fn moves_balance(effect: LedgerEffect) -> bool {
    match effect {
        LedgerEffect::None
        | LedgerEffect::Settle
        | LedgerEffect::SuspendPaid
        | LedgerEffect::SuspendRefused
        | LedgerEffect::SuspendPart => false,
        LedgerEffect::Debit
        | LedgerEffect::DebitSettled
        | LedgerEffect::DebitSuspended
        | LedgerEffect::GiveBack
        | LedgerEffect::GiveBackSettled
        | LedgerEffect::GiveBackSuspended => true,
    }
}

/// Whether something is about to leave.
const fn is_sending(change: Change) -> bool {
    matches!(change, Change::Dispatch | Change::DispatchUntold | Change::Reroute | Change::Resend)
}

/// What the writer decides about a change.
struct Decision {
    after: Arc<Payout>,
    transition: Transition,
    suspended: Suspended,
    /// Whether something is about to leave.
    is_sending: bool,
    usage: Option<(Usage, Allowance)>,
    /// How what it takes is bought, where another currency pays.
    buying: Option<Plan>,
    limits: Limits,
    case: Option<Case>,
    rows: Vec<RowChange>,
    ids: Arc<crate::id::IdGenerator>,
}

impl Decision {
    fn decide(&self, locked: &LockedState<'_>) -> Result<Decided<Arc<Payout>>, Problem> {
        if self.is_sending {
            refuse_suspended(locked, &self.after)?;
            refuse_frozen(locked, &self.after)?;
        }
        let mut effects = Effects { rows: self.rows.clone(), ..Effects::default() };
        if let Some(plan) = &self.buying {
            fx::buy(plan, locked, &mut effects)?;
        }
        if let Some(usage) = &self.usage {
            self.count(locked, usage, &mut effects.counters)?;
        }
        if let Some(case) = &self.case {
            let rows = case.open_once(locked, &self.ids);
            if rows.is_empty() {
                // The same was told before: nothing happens twice.
                return Err(Problem::new(ErrorCode::StateConflict));
            }
            effects.rows.extend(rows);
        }
        book(&mut effects, &self.after, self.transition.ledger, &self.suspended)?;
        Ok(effects.and(Arc::clone(&self.after)))
    }

    /// A debit uses up the day's limits; a payout that is given back before it was paid does not,
    /// and neither that nor one that ends without a debit stands in the way of another.
    fn count(
        &self,
        locked: &LockedState<'_>,
        (usage, allowance): &(Usage, Allowance),
        counters: &mut Vec<CounterChange>,
    ) -> Result<(), Problem> {
        let amount = self.after.costs.amount;
        match self.transition.ledger {
            LedgerEffect::Debit | LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended => {
                refuse_frozen(locked, &self.after)?;
                if self.limits == Limits::Refuse {
                    usage.refuse_excess(locked, allowance, amount)?;
                }
                if self.buying.is_some() {
                    if self.limits == Limits::Refuse {
                        usage.refuse_overspending(locked, allowance)?;
                    }
                    usage.spend(locked, counters)?;
                }
                usage.add(locked, amount, counters)?;
            }
            LedgerEffect::GiveBack => {
                usage.add(locked, amount.negated()?, counters)?;
                usage.forget_recipient(locked, &self.after, counters);
            }
            _ => usage.forget_recipient(locked, &self.after, counters),
        }
        Ok(())
    }
}

/// Refuses to debit, or to send from, a frozen wallet.
///
/// # Errors
/// `wallet_frozen`.
pub(super) fn refuse_frozen(locked: &LockedState<'_>, payout: &Payout) -> Result<(), Problem> {
    match locked.is_frozen(&payout.wallet_id)? {
        true => Err(Problem::new(ErrorCode::WalletFrozen)),
        false => Ok(()),
    }
}

/// Refuses to send for a merchant who is suspended or closed.
fn refuse_suspended(locked: &LockedState<'_>, payout: &Payout) -> Result<(), Problem> {
    let merchant = locked.row(&auth::sql::MERCHANT_STATUSES, payout.merchant_id.as_str());
    let status = merchant.map(|row| row.text("status")).transpose()?;
    status.and_then(MerchantStatus::parse).unwrap_or(MerchantStatus::Suspended).refuse_inactive()
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
        LedgerEffect::Debit | LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended => now,
        LedgerEffect::GiveBack => payout.queued_at.unwrap_or(payout.created_at),
        LedgerEffect::None if transition.next == NextStep::Rest => payout.created_at,
        _ => return Ok(None),
    };
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::internal("a payout without a merchant"))?;
    let allowance = Allowance::of(&merchant, payout);
    // What was counted before its days ran otherwise is given back where it was counted.
    Ok(Some((Usage::of(payout, &merchant.timezone_at(on), on), allowance)))
}

/// The payout's new state, its event, and its place in the engine's work. The event is of the very
/// instant that the state is stamped with, whatever the clock does meanwhile.
async fn rows(
    app: &App,
    after: &Payout,
    transition: &Transition,
    now: Moment,
) -> Result<Vec<RowChange>, Problem> {
    let mut rows =
        vec![sql::PAYOUT_STATES.change(after), event(app, after, (transition.event, now)).row()];
    if transition.event == "payout.paid" {
        rows.extend(receipt(app, after).await?);
    }
    match transition.next {
        NextStep::Send => rows.push(WORK.insert(&work(app, after, Moment::default()).await?)),
        NextStep::Rest => rows.push(WORK_DONE.of(after.id.as_str())),
        NextStep::Ask | NextStep::Wait => {}
    }
    Ok(rows)
}

/// The engine's work for a queued payout, in the lane of the route that would take it now;
/// leased at once where `lease_until` is set.
pub(super) async fn work(app: &App, payout: &Payout, lease_until: Moment) -> Result<Work, Problem> {
    let wanted = (payout.currency, payout.method.as_str(), payout.env);
    Ok(Work {
        id: payout.id.to_string(),
        env: payout.env,
        merchant_id: payout.merchant_id.to_string(),
        route_id: app.routes.lane(wanted, &payout.merchant_id, payout.costs.amount).await?,
        serial: app.transfers.serial().await?,
        queued_at: payout.queued_at.unwrap_or(payout.created_at),
        lease_until,
    })
}

/// The event that tells merchants, or only the history, of a change.
fn event(app: &App, payout: &Payout, (name, at): (&'static str, Moment)) -> Event {
    with_data(event_without_data(app, payout, (name, at)), payout)
}

/// An event with the payout as it is now, where merchants are told of such events.
#[must_use]
pub(super) fn with_data(event: Event, payout: &Payout) -> Event {
    let data = CATALOGUE.contains(&event.name).then(|| event_body::data(payout));
    Event { data, ..event }
}

/// The event of a change before it is known how the payout will be.
#[must_use]
pub(super) fn event_without_data(
    app: &App,
    payout: &Payout,
    (name, at): (&'static str, Moment),
) -> Event {
    Event {
        id: app.ids.id(),
        merchant_id: payout.merchant_id.clone(),
        env: payout.env,
        name,
        object_type: "payout",
        object_id: payout.id.to_string(),
        sequence: payout.version,
        data: None,
        created_at: at,
    }
}

/// The payout as it was read: a change of another one is refused.
pub(super) fn version(payout: &Payout) -> Guard {
    Guard { on: &sql::PAYOUT_VERSIONS, id: payout.id.to_string(), version: payout.version }
}
