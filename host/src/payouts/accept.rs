//! Accepting a payout: what the writer decides while it holds the wallet and the counters.
//!
//! References, cool-down, fraud rules, limits and funds, in this order. A payout that is held
//! takes no money and uses no limit; one that is blocked is refused, but the decision stays.

use serde_json::json;

use crate::app::App;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::conversions::Plan;
use crate::db::bulk::RowChange;
use crate::decisions::{self, Subject};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::events::Event;
use crate::ledger::{Decided, Effects, LockedState, Reply};
use crate::recipients::account_hash;
use crate::rules::{
    Action, Assessment, Assignments, Compared, PackKind, PayoutFacts, PayoutKind, Ruling,
};

use crate::transfers::Claim;
use crate::transfers::work::{WORK, Work};

use super::booking::{Suspended, book};
use super::change::{event_without_data, refuse_frozen, with_data, work};
use super::event_body::went_at_once;
use super::fx;
use super::model::{Change, LedgerEffect, NextStep, Payout, Status};
use super::recipient::Payee;
use super::reply;
use super::request::NewPayout;
use super::sql;
use super::usage::{Allowance, Usage};
use super::view::PayoutView;

/// What the fraud rules will be asked, as far as it can be known before the wallet is locked.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn assessment(
    app: &App,
    caller: &Caller,
    (assignments, wallet_since): (&Assignments, Moment),
    (payout, payee): (&Payout, &Payee),
    request: &NewPayout,
) -> Result<Option<Assessment>, Problem> {
    let merchant = &caller.merchant;
    // A scenario of the sandbox decides, whatever the rules say.
    let is_played = payee.scenario.as_deref() == Some("fraud_hold");
    if is_played || assignments.for_merchant(PackKind::Fraud, &merchant.id).is_none() {
        return Ok(None);
    }
    let is_first = match assignments.wants(&merchant.id, "first_payment") {
        true => Some(payee.is_first(app).await?),
        false => None,
    };
    let sender_country = request.sender.as_ref().and_then(|sender| sender.country.as_deref());
    Ok(assignments.assessment(&PayoutFacts {
        merchant: &merchant.id,
        merchant_since: merchant.created_at,
        timezone: &merchant.timezone,
        env: payout.env,
        wallet: &payout.wallet_id,
        wallet_since,
        currency: payout.currency,
        method: &payout.method,
        kind: match payout.batch_id {
            Some(_) => PayoutKind::Batch,
            None => PayoutKind::Single,
        },
        amount: payout.costs.amount,
        recipient: account_hash(&payout.recipient_identity),
        recipient_name: &payout.recipient_name,
        name_match: payee.name_match(),
        bank: Some(payout.recipient.bank()).filter(|code| !code.is_empty()),
        recipient_since: payee.beneficiary.created_at,
        is_first,
        customer: payout.customer_reference.as_deref(),
        sender_country,
        funding: payout.funding.as_ref().map(|it| (it.currency, it.quoted)),
        now: payout.created_at,
    }))
}

/// Has a decision that is durable compared with what a pack in shadow says.
pub fn compare(app: &App, payout: &Payout, ruling: Ruling) {
    ruling.observe(&payout.merchant_id, payout.env);
    app.comparing.hand_over(Compared {
        payout_id: payout.id.to_string(),
        merchant_id: payout.merchant_id.to_string(),
        env: payout.env.as_str(),
        ruling,
        at: payout.created_at,
    });
}

/// A payout as it is accepted, with its event and its work.
pub(super) struct Acceptance {
    payout: Payout,
    ledger: LedgerEffect,
    /// Without its data: to whom it goes is known only under lock. None where it goes at once.
    event: Option<Event>,
    /// Its work, if it has any.
    work: Option<Work>,
}

impl Acceptance {
    /// As it is accepted where it begins like this; its work is leased at once where
    /// `lease_until` is set.
    ///
    /// # Errors
    /// The database failed, or no route serves it.
    pub(super) async fn of(
        app: &App,
        payout: &Payout,
        (change, lease_until): (Change, Moment),
    ) -> Result<Self, Problem> {
        let (payout, transition) = payout.made(change)?;
        let is_written = !went_at_once(&payout, None);
        let told = (transition.event, payout.created_at);
        let event = is_written.then(|| event_without_data(app, &payout, told));
        let work = match transition.next {
            NextStep::Send => Some(work(app, &payout, lease_until).await?),
            _ => None,
        };
        Ok(Self { payout, ledger: transition.ledger, event, work })
    }

    /// The claim of its work, where whoever makes it has leased it.
    pub(super) fn claim(&self) -> Option<Claim> {
        self.work.as_ref().and_then(Work::claim)
    }
}

/// A payout that the writer accepts or refuses, with all that it needs to decide. It may decide
/// more than once: see [`crate::ledger::Command`].
pub(super) struct Candidate {
    /// As it is accepted where no fraud rule objects.
    pub planned: Acceptance,
    /// As it is accepted where one holds it.
    pub held: Option<Acceptance>,
    /// Who is paid.
    pub payee: Payee,
    /// What it uses up.
    pub usage: Usage,
    /// What there is to use.
    pub allowance: Allowance,
    /// The question to the fraud rules.
    pub assessment: Option<Assessment>,
    /// How what it takes is bought, where another currency pays and it goes at once.
    pub buying: Option<Plan>,
    /// Its tariff, where the database may not have that yet.
    pub tariff_row: Option<RowChange>,
}

/// What was decided about a candidate.
pub enum Verdict {
    /// It is made.
    Accepted {
        /// As it is.
        payout: Box<Payout>,
        /// What the fraud rules said, if they were asked.
        ruling: Option<Ruling>,
        /// The reply, where it is known already.
        reply: Option<Reply>,
    },
    /// The fraud rules refuse it, or hold it where nobody would look at it. The decision is kept,
    /// the payout is not.
    Blocked(Ruling),
}

impl Candidate {
    /// What to write about the payout, or why not.
    ///
    /// # Errors
    /// The codes of the contract's table for a refusal under lock.
    pub(super) fn decide(&self, locked: &LockedState<'_>) -> Result<Decided<Verdict>, Problem> {
        self.usage.refuse_repeats(locked, &self.allowance)?;
        refuse_frozen(locked, &self.planned.payout)?;
        let assessed = self.assessment.as_ref().map(|assessment| assessment.decide(locked));
        let (ruling, counted) = assessed.unzip();
        let decision = ruling.as_ref().map(|ruling| self.decision(ruling));
        let action = ruling.as_ref().map_or(Action::Allow, |ruling| ruling.verdict.action);
        let is_refused = match action {
            Action::Block => true,
            Action::Hold => self.planned.payout.batch_id.is_some(),
            Action::Allow => false,
        };
        if let (true, Some(ruling)) = (is_refused, &ruling) {
            let rows = decision.into_iter().collect();
            return Ok(Decided::Record { rows, result: Verdict::Blocked(ruling.clone()) });
        }
        let Acceptance { payout, ledger, event, work } = match (action, &self.held) {
            (Action::Hold, Some(held)) => held,
            _ => &self.planned,
        };
        let mut payout = payout.clone();
        if let (None, Some(why)) = (&payout.hold, ruling.as_ref().and_then(reason)) {
            payout.settling().hold = Some(why);
        }
        let mut effects = Effects { rows: decision.into_iter().collect(), ..Effects::default() };
        effects.rows.extend(work.as_ref().map(|work| WORK.insert(work)));
        effects.counters.extend(counted.into_iter().flatten());
        self.usage.take(locked, &payout, &mut effects.counters);
        if *ledger == LedgerEffect::Debit {
            if let Some(plan) = &self.buying {
                let bought = fx::buy(plan, locked, &mut effects);
                bought.map_err(|problem| problem.field(fx::FIELD))?;
                let spending = self.usage.refuse_overspending(locked, &self.allowance);
                spending.map_err(|problem| problem.field(fx::FIELD))?;
                self.usage.spend(locked, &mut effects.counters)?;
            }
            let amount = payout.costs.amount;
            self.usage.refuse_excess(locked, &self.allowance, amount)?;
            self.usage.add(locked, amount, &mut effects.counters)?;
        }
        book(&mut effects, &payout, *ledger, &Suspended::default())?;
        let beneficiary = self.payee.saving.write(locked, &mut effects);
        if payout.beneficiary_id != beneficiary {
            payout.settling().beneficiary_id = beneficiary;
        }
        effects.rows.extend(self.tariff_row.clone());
        effects.rows.push(sql::PAYOUTS.insert(&payout));
        // Only now it is known to whom it goes, and why it is held.
        effects.rows.extend(event.clone().map(|event| with_data(event, &payout).row()));
        // In the sandbox the reply is known only when the payout has been sent.
        let is_known = payout.env == Env::Live || payout.status != Status::Queued;
        effects.reply = is_known.then(|| reply::kept(&payout));
        let reply = is_known.then(|| Reply { status: 201, body: PayoutView::json(&payout) });
        Ok(effects.and(Verdict::Accepted { payout: Box::new(payout), ruling, reply }))
    }

    /// What the fraud rules decided, as it is kept.
    fn decision(&self, ruling: &Ruling) -> RowChange {
        let payout = &self.planned.payout;
        let subject = Subject {
            payout_id: &payout.id,
            merchant_id: &payout.merchant_id,
            env: payout.env,
            currency: payout.currency,
            amount: payout.costs.amount,
        };
        decisions::row(&subject, ruling, payout.created_at)
    }
}

/// Why a payout is held, in the rules' public words.
fn reason(ruling: &Ruling) -> Option<String> {
    let verdict = &ruling.verdict;
    (verdict.action == Action::Hold).then(|| verdict.public_reason())
}

/// The refusal of a payout that the fraud rules block. What they say to operators is in the
/// decision, which is theirs to read.
pub(super) fn blocked(payout: &Payout, ruling: &Ruling) -> Problem {
    let detail = json!({ "decision_id": payout.id, "hits": ruling.verdict.public() });
    Problem::new(ErrorCode::FraudRuleBlocked).detail(detail)
}
