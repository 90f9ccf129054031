//! Calling a rail about an attempt, and keeping what shows it.

use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::Problem;
use crate::id::AttemptId;
use crate::rails::route::{ReadyRoute, scenario_header};
use crate::wasm::rail::{Broken, Called, Payment, Resolution};

use super::Transfers;
use super::attempt::{Attempt, SealedResolution};
use super::evidence::{self, About};
use super::finding::{Learnt, Same, reached};
use super::order::Order;

/// Calls about one order.
pub(super) struct Calls<'a> {
    pub(super) engine: &'a Transfers,
    pub(super) order: &'a Order,
}

/// A call that was made: what it came to, and the row that shows it.
pub(super) struct Answered {
    pub(super) learnt: Learnt,
    pub(super) evidence: RowChange,
}

impl Calls<'_> {
    /// The payment as the rail is told of it.
    pub(super) fn payment(&self, attempt: &Attempt) -> Result<Payment, Problem> {
        let resolution = attempt.resolution.as_deref();
        let resolution = resolution.map(|sealed| open(self.engine, &attempt.id, sealed));
        Ok(payment(self.order, attempt, resolution.transpose()?))
    }

    /// Asks about an attempt.
    pub(super) async fn query(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Result<Answered, Problem> {
        let payment = self.payment(attempt)?;
        let same = Same::of(&attempt.fingerprint, route.fingerprints(&self.engine.keyring));
        let headers = scenario_header(self.order.scenario.as_deref());
        let grant = route.grant(self.engine.now(), headers);
        let called = route.rail.code.query(&grant, &payment).await;
        let learnt = Learnt::from_query(&called, same);
        Ok(self.note((attempt, route), "query", &called, learnt))
    }

    /// Takes note of a call: for its lane, for the figures, and as evidence.
    pub(super) fn note<T>(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
        operation: &'static str,
        called: &Called<T>,
        learnt: Learnt,
    ) -> Answered {
        let (engine, order) = (self.engine, self.order);
        if order.env == Env::Live {
            engine.lanes.note(&route.route.id, reached(called));
        }
        if let Err(broken @ (Broken::Trapped(_) | Broken::TimedOut(_))) = &called.result {
            let rail = &attempt.rail;
            tracing::error!(transfer.id = order.id, rail.name = rail, %broken, operation, "rail");
        }
        let place = (attempt.route.as_str(), order.env.as_str());
        engine.metrics.call(place, (operation, learnt.kind()), called.took);
        let evidence =
            self.evidence(Some(attempt), (&route.rail, operation), called, &learnt.words());
        Answered { learnt, evidence }
    }

    /// The row that shows a call.
    pub(super) fn evidence<T>(
        &self,
        attempt: Option<&Attempt>,
        (rail, operation): (&crate::rails::Rail, &'static str),
        called: &Called<T>,
        words: &str,
    ) -> RowChange {
        let about = About {
            transfer: &self.order.id,
            attempt: attempt.map(|attempt| attempt.id.as_str()),
            recipient: &self.order.recipient,
            operation,
        };
        let (ids, now) = (&self.engine.ids, self.engine.now());
        evidence::record(ids, now, (rail, &about), (called, words))
    }
}

/// The payment as the rail is told of it: the same for every call about one attempt.
pub(super) fn payment(order: &Order, attempt: &Attempt, resolution: Option<Resolution>) -> Payment {
    Payment {
        payout: order.reference.clone(),
        reference: attempt.rail_reference.clone(),
        number: u64::try_from(attempt.number).unwrap_or(0),
        begun_at_ms: attempt.begun_at.millis(),
        method: order.method.clone(),
        currency: order.currency.to_string(),
        amount_minor: order.amount.units(),
        recipient: order.recipient.to_guest(),
        sender: order.sender.clone(),
        narration: order.narration.clone(),
        resolution,
    }
}

fn place(id: &AttemptId) -> String {
    format!("attempts/resolution/{id}")
}

/// Seals what was known of the recipient's account when an attempt was fixed.
pub(super) fn seal(
    engine: &Transfers,
    id: &AttemptId,
    known: &Resolution,
) -> Result<String, Problem> {
    let plain = serde_json::to_vec(&SealedResolution::from(known)).map_err(Problem::internal)?;
    engine.keyring.seal(&engine.ids, &place(id), &plain).map_err(Problem::internal)
}

fn open(engine: &Transfers, id: &AttemptId, sealed: &str) -> Result<Resolution, Problem> {
    let plain = engine.keyring.open(&place(id), sealed).map_err(Problem::internal)?;
    let sealed: SealedResolution = serde_json::from_slice(&plain).map_err(Problem::internal)?;
    Ok(sealed.into())
}
