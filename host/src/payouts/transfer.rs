//! Payouts as the engine that moves money out sees them.

use std::collections::HashMap;
use std::time::Duration;

use crate::app::App;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::PayoutId;
use crate::ledger::{Command, Done};
use crate::money::Minor;
use crate::recipients::resolution;
use crate::recipients::sql::{BENEFICIARY_CORRECTIONS, Corrected};
use crate::transfers::attempt::AttemptState;
use crate::transfers::{Claimed, Failure, Feature, Fixed, Order, OrderStage, Step, Writes};
use crate::wasm::rail::{Field, Resolution};

use super::change::{Accompanying, change, version};
use super::contradiction::{attempts, before, credited, heard, in_question};
use super::model::{Change, Payout, Status};
use super::recipient::{resolution_place, sender_place};
use super::request::Sender;
use super::sql;

/// How often a payout is looked at that somebody is at.
const POLL: Duration = Duration::from_millis(20);

/// What hands payouts to the engine.
#[derive(Clone)]
pub struct PayoutTransfers(pub App);

impl Feature for PayoutTransfers {
    type Object = Payout;

    async fn load(&self, id: &str) -> Result<Option<Payout>, Problem> {
        let Some(id) = PayoutId::parse(id) else { return Ok(None) };
        Ok(sql::get_payout(self.0.db.pool(), &id).await?)
    }

    async fn load_all(&self, ids: &[String]) -> Result<HashMap<String, Payout>, sqlx::Error> {
        let payouts = sql::list_payouts_by_id(&self.0.db, ids).await?.into_iter();
        Ok(payouts.map(|payout| (payout.id.to_string(), payout)).collect())
    }

    fn order(&self, payout: &Payout) -> Result<Order, Problem> {
        let stage = match payout.status {
            Status::Draft | Status::AwaitingAdminReview => {
                return Err(Problem::internal(format!("{} is not to be sent yet", payout.id)));
            }
            Status::Queued => OrderStage::Queued,
            Status::Processing => OrderStage::UnderWay,
            _ => OrderStage::Ended,
        };
        Ok(Order {
            id: payout.id.to_string(),
            reference: payout.id.reference(),
            merchant_id: payout.merchant_id.clone(),
            env: payout.env,
            currency: payout.currency,
            method: payout.method.clone(),
            amount: payout.costs.amount,
            recipient: payout.recipient.clone(),
            sender: self.sender(payout),
            narration: payout.narration.clone().unwrap_or_default(),
            scenario: payout.scenario.clone(),
            made_at: payout.created_at,
            queued_at: payout.queued_at.unwrap_or(payout.created_at),
            stage,
            shown: payout.told.clone(),
        })
    }

    async fn resolution(&self, payout: &Payout) -> Result<Option<Resolution>, Problem> {
        if let Some(sealed) = &payout.resolution {
            let place = resolution_place(&payout.id);
            return resolution::open(&self.0.keyring, &place, sealed).map(Some);
        }
        // Whatever the recipient is called: the network's name for it is the one.
        let Some(home) = self.0.rails.home(payout.currency, &payout.method) else {
            return Ok(None);
        };
        if !home.overwrites_names() {
            return Ok(None);
        }
        let owner = (&payout.merchant_id, payout.env);
        let which = (payout.currency, payout.recipient_identity.as_str());
        let known = self.0.recipients.known(owner, which).await?;
        // What another network said of the account is nothing to this one.
        let saved = known.beneficiary.as_ref();
        let saved = saved.filter(|saved| saved.is_known_to(&self.0.rails, &home));
        Ok(saved.and_then(|saved| saved.resolution.clone()))
    }

    async fn commit(&self, payout: &Payout, step: Step, with: Writes) -> Result<Payout, Problem> {
        let Writes { rows, fence, beside } = with;
        let understood = Box::pin(understand(&self.0, payout, step)).await?;
        let Some((what, mut with)) = understood else {
            self.0.writer.work(Command::rows(rows).guards([version(payout)])).await?;
            return Ok(payout.clone());
        };
        with.rows.clone_from(&rows);
        // The next payment to a recipient that is saved should be addressed otherwise.
        if let Some(correction) = &with.correction
            && self.is_saved_so(payout).await?
        {
            let (id, correction) = (payout.beneficiary_id.clone(), correction.json());
            let corrected = Corrected { id, correction, at: self.0.now() };
            with.rows.push(BENEFICIARY_CORRECTIONS.change(&corrected));
        }
        let (times, as_decided) = before(&self.0, payout, what, with.attempt.as_ref()).await?;
        with.times = times;
        with.fence.clone_from(&fence);
        with.beside.extend(beside.into_iter().chain(as_decided));
        let (about, guards) = (with.attempt.clone(), with.beside.clone());
        match Box::pin(change(&self.0, payout, what, with)).await {
            Ok(Done::Now(after)) => Ok(after),
            Ok(Done::Before { .. }) => Err(Problem::internal("a step with an idempotency key")),
            // News from outside of which the payout makes nothing: what shows it is kept, unless
            // the payout has changed meanwhile, and then it is looked at again.
            Err(problem) if problem.code() == ErrorCode::StateConflict && fence.is_none() => {
                let (news, as_read) = heard(&self.0, payout, what, about.as_ref()).await?;
                let rows = rows.into_iter().chain(news).collect();
                let guards = guards.into_iter().chain(as_read);
                let command = Command::rows(rows).guards([version(payout)]).guards(guards);
                self.0.writer.work(command).await?;
                Ok(payout.clone())
            }
            Err(problem) => Err(problem),
        }
    }
}

impl PayoutTransfers {
    /// Who pays, as rails are told; nothing where this host cannot read it.
    fn sender(&self, payout: &Payout) -> Option<Vec<Field>> {
        let Some(sealed) = &payout.sender else { return Some(Vec::new()) };
        match self.0.keyring.open(&sender_place(&payout.id), sealed) {
            Ok(opened) => serde_json::from_slice(&opened).ok().map(|sender| fields(&sender)),
            Err(cause) => {
                tracing::error!(payout.id = %payout.id, %cause, "its sender cannot be read");
                None
            }
        }
    }

    /// In the sandbox, what a network says by itself of a payout has its effect before whoever
    /// asks about it is answered: waits for that, for a while. The payout as it is then.
    ///
    /// # Errors
    /// The database failed.
    pub async fn settled(&self, payout: Payout) -> Result<Payout, Problem> {
        let Self(app) = self;
        let (Env::Test, Some(reference)) = (payout.env, &payout.rail_reference) else {
            return Ok(payout);
        };
        app.sandbox.settled(reference).await;
        // Its own task: a caller that hangs up must not leave the payout half-way.
        let (feature, id) = (self.clone(), payout.id.to_string());
        let asking = app.tasks.spawn(async move { feature.take_in_news(&id).await });
        match asking.await.map_err(Problem::internal)? {
            // Somebody else was faster.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {}
            Err(problem) => {
                tracing::error!(payout.id = %payout.id, %problem, "asking in the sandbox");
            }
            Ok(()) => {}
        }
        let known = sql::get_payout(app.db.pool(), &payout.id).await?;
        known.ok_or_else(|| Problem::internal("a payout is gone"))
    }

    /// Asks about a payout that there is news of, once whoever is at it has finished.
    async fn take_in_news(&self, id: &str) -> Result<(), Problem> {
        let (transfers, begun) = (&self.0.transfers, tokio::time::Instant::now());
        while transfers.has_news(id).await? && begun.elapsed() < limits::NOTICE_WAIT {
            if let Claimed::Yes(claim) = transfers.claim(id).await? {
                return transfers.work(self, claim).await;
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Whether the recipient is saved as this payout addresses it: what is wrong with that says
    /// nothing of what was saved since.
    async fn is_saved_so(&self, payout: &Payout) -> Result<bool, Problem> {
        let owner = (&payout.merchant_id, payout.env);
        let which = (payout.currency, payout.recipient_identity.as_str());
        let known = self.0.recipients.known(owner, which).await?;
        let saved = known.beneficiary.as_ref();
        Ok(saved.is_some_and(|saved| saved.recipient.own().eq(payout.recipient.own())))
    }
}

/// What happens to the payout, and what goes with it.
type Understood = Option<(Change, Accompanying)>;

/// What a step means for the payout; nothing where it says nothing new about it.
async fn understand(app: &App, payout: &Payout, step: Step) -> Result<Understood, Problem> {
    let is_other = |attempt: &Fixed| is_other(payout, attempt);
    if let Step::Corrected(_, correction) = step {
        // Told twice, it is told once.
        let is_known = payout.correction.as_ref() == Some(&correction.json());
        let with = Accompanying { correction: Some(correction), ..Accompanying::default() };
        return Ok((!is_known).then_some((Change::Correct, with)));
    }
    if let Step::Accepted(attempt, shown) = step {
        let is_known = payout.told.as_ref() == Some(&shown);
        let with = Accompanying { shown: Some(shown), ..Accompanying::default() };
        return Ok((!is_known && !is_other(&attempt)).then_some((Change::Tell, with)));
    }
    let (what, attempt, failure, part) = match step {
        Step::Begun(attempt) => (Change::Dispatch, attempt, None, None),
        Step::BegunUntold(attempt) => (Change::DispatchUntold, attempt, None, None),
        Step::Rerouted(attempt) => (Change::Reroute, attempt, None, None),
        Step::Resent(attempt) => (Change::Resend, attempt, None, None),
        Step::Paid(attempt) => (paid(app, payout, &attempt).await?, attempt, None, None),
        // What was refused, or never left, is no loss where another attempt counts.
        Step::Refused(attempt, _) if is_other(&attempt) => return Ok(None),
        Step::Refused(attempt, failure) => (Change::Refuse, attempt, Some(failure), None),
        Step::Returned(attempt, failure) => {
            return came_back(app, payout, (attempt, failure)).await;
        }
        Step::Corrected(..) | Step::Accepted(..) => return Ok(None),
        Step::PartReturned(attempt, failure, part) => {
            (Change::ReturnPart, attempt, Some(failure), Some(part))
        }
    };
    let with = Accompanying { attempt: Some(attempt), failure, part, ..Accompanying::default() };
    Ok(Some((what, with)))
}

/// What it means for the payout that an attempt was paid.
async fn paid(app: &App, payout: &Payout, attempt: &Fixed) -> Result<Change, Problem> {
    let is_besides = match payout.status {
        // It may have been charged for another one than the last.
        Status::PaidManual if !is_other(payout, attempt) => {
            attempts(app, payout).await?.is_paid_besides(&attempt.reference)
        }
        status => status.is_final() && is_other(payout, attempt),
    };
    Ok(if is_besides { Change::ConfirmOther } else { Change::Confirm })
}

/// Whether an attempt is another one than the one that counts.
fn is_other(payout: &Payout, attempt: &Fixed) -> bool {
    payout.rail_reference.as_ref().is_some_and(|known| *known != attempt.reference)
}

/// What it means for the payout that all of an attempt came back; nothing where its money is in the
/// books already, or never left them.
async fn came_back(
    app: &App,
    payout: &Payout,
    (attempt, failure): (Fixed, Failure),
) -> Result<Understood, Problem> {
    let (is_own, is_open) = (!is_other(payout, &attempt), !payout.status.is_final());
    if is_open && !is_own {
        return Ok(None);
    }
    let known = attempts(app, payout).await?;
    let is_paid_besides = known.is_paid_besides(&attempt.reference);
    if is_open && is_paid_besides {
        // That one counts, and whoever has told of this one has not seen it yet.
        return Err(Problem::new(ErrorCode::StateConflict));
    }
    let (credited, beside) = credited(app, payout).await?;
    let is_charged = is_open || payout.status.is_paid();
    let own = known.state(payout.rail_reference.as_deref());
    let is_last = !is_paid_besides && (is_own || own == Some(AttemptState::Returned));
    let (what, part) = match is_charged && is_last && credited == Minor::ZERO {
        true => (Change::Return, None),
        // It is money all the same, and a person finds out whose: how much of it is news, which of
        // two payments stands, or what nobody knew to have left.
        false => (Change::ReturnPart, Some(payout.costs.amount)),
    };
    let in_question = in_question(app, payout, &attempt.reference).await?;
    let is_news = match is_own {
        true => is_charged || in_question.is_money(),
        false => what == Change::Return || !in_question.is_recovered(),
    };
    let (attempt, failure) = (Some(attempt), Some(failure));
    let with = Accompanying { attempt, failure, part, beside, ..Accompanying::default() };
    Ok(is_news.then_some((what, with)))
}

fn fields(sender: &Sender) -> Vec<Field> {
    let value = serde_json::to_value(sender).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| {
            Some(Field { name: name.clone(), value: value.as_str()?.to_owned() })
        })
        .collect()
}
