//! Payouts as the engine that moves money out sees them.

use std::collections::HashMap;

use crate::app::App;
use crate::error::{ErrorCode, Problem};
use crate::id::PayoutId;
use crate::ledger::{Command, Done};
use crate::transfers::{Feature, Fixed, Order, OrderStage, Step, Writes};
use crate::wasm::rail::{Field, Resolution};

use super::change::{Accompanying, change, version};
use super::model::{Change, Payout, Status};
use super::request::Sender;
use super::sql;

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
            sender: sender(payout.sender.as_deref()),
            narration: payout.narration.clone().unwrap_or_default(),
            scenario: payout.scenario.clone(),
            made_at: payout.created_at,
            queued_at: payout.queued_at.unwrap_or(payout.created_at),
            stage,
        })
    }

    async fn resolution(&self, payout: &Payout) -> Result<Option<Resolution>, Problem> {
        let owner = (&payout.merchant_id, payout.env);
        let which = (payout.currency, payout.recipient_identity.as_str());
        let known = self.0.recipients.known(owner, which).await?;
        let found = known.beneficiary.as_ref().and_then(|saved| saved.resolution.clone());
        let served =
            self.0.rails.serving(payout.currency, Some(&payout.method), &crate::rails::nobody);
        let is_told = served.is_ok_and(|(rail, _)| rail.overwrites_names());
        // Where names are only compared, it is known of one name.
        Ok(found.filter(|found| is_told || found.name == payout.recipient_name))
    }

    async fn commit(&self, payout: &Payout, step: Step, with: Writes) -> Result<Payout, Problem> {
        let Writes { rows, fence, beside } = with;
        let Some((what, mut with)) = understand(payout, step) else {
            self.0.writer.work(Command::rows(rows).guards([version(payout)])).await?;
            return Ok(payout.clone());
        };
        with.rows.clone_from(&rows);
        with.fence.clone_from(&fence);
        with.beside = beside;
        match change(&self.0, payout, what, with).await {
            Ok(Done::Now(after)) => Ok(after),
            Ok(Done::Before { .. }) => Err(Problem::internal("a step with an idempotency key")),
            // News from outside of which the payout makes nothing: what shows it is kept, unless
            // the payout has changed meanwhile, and then it is looked at again.
            Err(problem) if problem.code() == ErrorCode::StateConflict && fence.is_none() => {
                let command = Command::rows(rows).guards([version(payout)]);
                self.0.writer.work(command).await?;
                Ok(payout.clone())
            }
            Err(problem) => Err(problem),
        }
    }
}

/// What happens to the payout, and what goes with it; nothing where the step says nothing new about
/// it.
fn understand(payout: &Payout, step: Step) -> Option<(Change, Accompanying)> {
    // Another attempt than the one that counts.
    let is_other = |attempt: &Fixed| {
        payout.rail_reference.as_ref().is_some_and(|known| *known != attempt.reference)
    };
    if let Step::Corrected(_, correction) = step {
        // Told twice, it is told once.
        let is_known = payout.correction.as_ref() == Some(&correction.json());
        let with = Accompanying { correction: Some(correction), ..Accompanying::default() };
        return (!is_known).then_some((Change::Correct, with));
    }
    let (what, attempt, failure, part) = match step {
        Step::Begun(attempt) => (Change::Dispatch, attempt, None, None),
        Step::Rerouted(attempt) => (Change::Reroute, attempt, None, None),
        Step::Resent(attempt) => (Change::Resend, attempt, None, None),
        Step::Paid(attempt) => {
            let is_contradiction = payout.status.is_final() && is_other(&attempt);
            let what = if is_contradiction { Change::ConfirmOther } else { Change::Confirm };
            (what, attempt, None, None)
        }
        // What was refused, or never left, is no loss where another attempt counts.
        Step::Refused(attempt, _) if is_other(&attempt) => return None,
        Step::Refused(attempt, failure) => (Change::Refuse, attempt, Some(failure), None),
        // It is money all the same, and a person has to find out whose.
        Step::Returned(attempt, failure) if is_other(&attempt) => {
            (Change::ReturnPart, attempt, Some(failure), Some(payout.costs.amount))
        }
        Step::Returned(attempt, failure) => (Change::Return, attempt, Some(failure), None),
        Step::Corrected(..) => return None,
        Step::PartReturned(attempt, failure, part) => {
            (Change::ReturnPart, attempt, Some(failure), Some(part))
        }
    };
    Some((what, Accompanying { attempt: Some(attempt), failure, part, ..Accompanying::default() }))
}

fn sender(json: Option<&str>) -> Vec<Field> {
    let sender: Option<Sender> = json.and_then(|json| serde_json::from_str(json).ok());
    let value = serde_json::to_value(sender.unwrap_or_default()).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| {
            Some(Field { name: name.clone(), value: value.as_str()?.to_owned() })
        })
        .collect()
}
