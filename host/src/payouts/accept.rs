//! Accepting a payout: what the writer decides while it holds the wallet and the counters.
//!
//! References, cool-down, fraud rules, limits and funds, in this order. A payout that is held
//! takes no money and uses no limit; one that is blocked is refused, but the decision stays.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use crate::app::App;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::decisions::{self, Subject};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Effects, LockedState, Reply};
use crate::rules::{
    Action, Assessment, Assignments, Compared, PackKind, PayoutFacts, PayoutKind, Ruling,
};

use super::attempt::{self, dispatch_row};
use super::booking::book;
use super::change::{event, refuse_frozen};
use super::model::{LedgerEffect, Payout, Status};
use super::recipient::Payee;
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
        kind: PayoutKind::Single,
        amount: payout.costs.amount,
        recipient: &payout.recipient_identity,
        recipient_name: &payout.recipient_name,
        name_match: payee.name_match(),
        bank: payout.recipient.0.get("bank_code").map(String::as_str),
        recipient_since: payee.beneficiary.created_at,
        is_first,
        customer: payout.customer_reference.as_deref(),
        sender_country,
        now: payout.created_at,
    }))
}

/// Has a decision that is durable compared with what a pack in shadow says.
pub(super) fn compare(app: &App, payout: &Payout, ruled: &Mutex<Option<Ruling>>) {
    let ruling = ruled.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ruling) = ruling {
        ruling.observe();
        app.comparing.hand_over(Compared {
            payout_id: payout.id.to_string(),
            merchant_id: payout.merchant_id.to_string(),
            env: payout.env.as_str(),
            ruling,
            at: payout.created_at,
        });
    }
}

/// A payout as it is accepted, with its event and its work.
pub(super) struct Acceptance {
    payout: Payout,
    rows: Vec<RowChange>,
}

impl Acceptance {
    /// As it is accepted where no fraud rule objects.
    pub(super) fn planned(app: &App, payout: Payout, lease_until: Moment) -> Self {
        let mut rows = vec![event(app, &payout, created_event(payout.status)).row()];
        if payout.status == Status::Queued {
            let work = dispatch_row(&payout.id, payout.created_at, lease_until);
            rows.push(RowChange::Insert(&attempt::DISPATCHES, work));
        }
        Self { payout, rows }
    }

    /// As it is accepted where a fraud rule holds it.
    pub(super) fn held(app: &App, payout: &Payout) -> Self {
        let payout =
            Payout { status: Status::AwaitingAdminReview, queued_at: None, ..payout.clone() };
        Self::planned(app, payout, Moment::default())
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
    /// What they decided.
    pub ruled: Ruled,
}

/// Where a decision is left for whoever waits for the writer.
pub(super) type Ruled = Arc<Mutex<Option<Ruling>>>;

impl Candidate {
    /// What to write about the payout, or why not.
    ///
    /// # Errors
    /// The codes of the contract's table for a refusal under lock.
    pub(super) fn decide(&self, locked: &LockedState<'_>) -> Result<Effects, Problem> {
        self.usage.refuse_repeats(locked, &self.allowance)?;
        refuse_frozen(locked, &self.planned.payout)?;
        let mut effects = Effects::default();
        let acceptance = self.rule(locked, &mut effects);
        if effects.refused.is_some() {
            return Ok(effects);
        }
        let Acceptance { payout, rows } = acceptance;
        let mut payout = payout.clone();
        payout.hold = payout.hold.or_else(|| self.reason());
        effects.rows.extend(rows.iter().cloned());
        self.usage.take(locked, &payout, &mut effects.counters);
        if payout.status == Status::Queued {
            let amount = payout.costs.amount;
            self.usage.refuse_excess(locked, &self.allowance, amount)?;
            self.usage.add(locked, amount, &mut effects.counters)?;
            let available = locked.wallet(&payout.wallet_id)?.available;
            if available < payout.costs.total()? {
                return Err(Problem::new(ErrorCode::InsufficientFunds));
            }
            book(&mut effects, &payout, LedgerEffect::Debit)?;
        }
        payout.beneficiary_id = self.payee.saving.write(locked, &mut effects);
        effects.rows.push(RowChange::Insert(&sql::PAYOUTS, sql::payout_row(&payout)));
        // In the sandbox the reply is known only when the payout has been sent.
        if payout.env == Env::Live || payout.status != Status::Queued {
            effects.reply = Some(Reply { status: 201, body: PayoutView::json(&payout) });
        }
        Ok(effects)
    }

    /// Asks the fraud rules, on what the locked counters say, and keeps what they decide; how
    /// the payout is accepted then. One that is blocked is refused, but the decision is kept.
    fn rule(&self, locked: &LockedState<'_>, effects: &mut Effects) -> &Acceptance {
        let Some(assessment) = &self.assessment else { return &self.planned };
        let ruling = assessment.decide(locked);
        let payout = &self.planned.payout;
        let subject = Subject {
            payout_id: payout.id.as_str(),
            merchant_id: payout.merchant_id.as_str(),
            env: payout.env.as_str(),
            currency: payout.currency.as_str(),
            amount_minor: payout.costs.amount.units(),
        };
        effects.rows.push(decisions::row(&subject, &ruling, payout.created_at));
        let action = ruling.verdict.action;
        if action == Action::Block {
            let detail = json!({ "decision_id": payout.id, "hits": ruling.verdict.hits });
            effects.refused = Some(Problem::new(ErrorCode::FraudRuleBlocked).detail(detail));
        } else {
            assessment.count(locked, &mut effects.counters);
        }
        *self.ruled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ruling);
        match (action, &self.held) {
            (Action::Hold, Some(held)) => held,
            _ => &self.planned,
        }
    }

    /// Why the payout is held, for the operator.
    fn reason(&self) -> Option<String> {
        let ruled = self.ruled.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = &ruled.as_ref()?.verdict;
        let hits = verdict.hits.iter().filter(|hit| hit.action == verdict.action);
        let reasons: Vec<_> = hits.map(|hit| format!("{}: {}", hit.label, hit.reason)).collect();
        (verdict.action == Action::Hold).then(|| reasons.join("; "))
    }
}

fn created_event(status: Status) -> &'static str {
    match status {
        Status::Draft => "payout.draft",
        Status::AwaitingAdminReview => "payout.held",
        _ => "payout.queued",
    }
}
