//! Calling a rail about an attempt, and keeping what shows it.

use std::time::Duration;

use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::ReadyRoute;
use crate::rails::granted::scenario_header;
use crate::wasm::rail::{Broken, Called, Field, Money, Payment, Resolution};

use super::Transfers;
use super::attempt::Attempt;
use super::evidence::{self, About};
use super::finding::{Learnt, Same, reached};
use super::lanes::Reached;
use super::order::Order;
use super::sealed;

/// Calls about one order.
pub(super) struct Calls<'a> {
    pub(super) engine: &'a Transfers,
    pub(super) order: &'a Order,
}

/// A call that was made: what it came to, and the row that shows it.
pub(super) struct Answered {
    pub(super) learnt: Learnt,
    pub(super) evidence: RowChange,
    /// Whether it was a question.
    pub(super) was_asked: bool,
}

impl Calls<'_> {
    /// The payment as the rail is told of it.
    pub(super) fn payment(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Result<Payment, Problem> {
        let Attempt { id, resolution, facts, .. } = attempt;
        let known = Known {
            resolution: sealed::open_resolution(self.engine, id, resolution.as_deref())?,
            facts: sealed::open_facts(self.engine, id, facts.as_deref())?,
        };
        Ok(payment(self.order, (attempt, route), known))
    }

    /// Asks about an attempt.
    pub(super) async fn query(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Result<Answered, Problem> {
        let payment = self.payment((attempt, route))?;
        let same = Same::of(&attempt.fingerprint, route.fingerprints(&self.engine.keyring));
        let headers = scenario_header(self.order.scenario.as_deref());
        let grant = route.grant(self.engine.now(), headers, Money::Stays);
        let called = route.rail.code.query(&grant, &payment).await;
        let learnt = Learnt::from_query(&called, same).of(self.order.amount);
        Ok(self.note((attempt, route), "query", &called, learnt))
    }

    /// The attempt with what was learnt about it written down.
    pub(super) fn told(&self, attempt: &Attempt, learnt: &Learnt) -> Result<Attempt, Problem> {
        let mut told = Attempt {
            code: learnt.code().or_else(|| attempt.code.clone()),
            message: Some(learnt.words()),
            ..attempt.clone()
        };
        let Some(receipt) = learnt.receipt() else { return Ok(told) };
        // Who has taken it on has received it.
        told.bytes_left = true;
        if receipt.network_id.is_some() {
            told.network_id.clone_from(&receipt.network_id);
        }
        if !receipt.facts.is_empty() {
            let known = sealed::open_facts(self.engine, &attempt.id, attempt.facts.as_deref())?;
            let facts = sealed::merged(known, &receipt.facts);
            told.facts = sealed::seal_facts(self.engine, &attempt.id, &facts)?;
        }
        Ok(told)
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
            engine.lanes.note(&route.route.id, of_us(route, &learnt).unwrap_or(reached(called)));
        }
        if let Err(broken @ (Broken::Trapped(_) | Broken::TimedOut(_))) = &called.result {
            let rail = &attempt.rail;
            tracing::error!(transfer.id = order.id, rail.name = rail, %broken, operation, "rail");
        }
        let place = (attempt.route.as_str(), order.env.as_str());
        engine.metrics.call(place, (operation, learnt.kind()), called.took);
        let evidence =
            self.evidence(Some(attempt), (&route.rail, operation), called, &learnt.words());
        Answered { learnt, evidence, was_asked: operation == "query" }
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

/// How long a route is left alone that refuses this host itself.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Whether a refusal is of this host, not of the payment: the next ones would be refused as well.
pub(super) fn of_us(route: &ReadyRoute, learnt: &Learnt) -> Option<Reached> {
    let Learnt::Refused(refusal) = learnt else { return None };
    let declaration = &route.rail.declaration;
    if !declaration.refusals.ours.contains(&refusal.code) {
        return None;
    }
    let (name, code) = (&route.route.name, &refusal.code);
    tracing::error!(route.name = name, code, "the network refuses us: look at the route's account");
    Some(Reached::Throttled(REFUSED_PAUSE))
}

/// What an attempt keeps sealed.
pub(super) struct Known {
    pub(super) resolution: Option<Resolution>,
    pub(super) facts: Vec<Field>,
}

/// The payment as the rail is told of it: the same for every call about one attempt.
pub(super) fn payment(
    order: &Order,
    (attempt, route): (&Attempt, &ReadyRoute),
    known: Known,
) -> Payment {
    let terms = route.rail.declaration.method(order.currency, &order.method);
    Payment {
        payout: order.reference.clone(),
        reference: attempt.rail_reference.clone(),
        serial: u64::try_from(attempt.number).unwrap_or(0),
        begun_at_ms: attempt.begun_at.millis(),
        method: order.method.clone(),
        currency: order.currency.to_string(),
        exponent: terms.map_or(2, |terms| terms.exponent),
        amount_minor: order.amount.units(),
        recipient: order.recipient.to_guest(),
        sender: order.sender.clone(),
        narration: order.narration.clone(),
        resolution: known.resolution,
        network_id: attempt.network_id.clone(),
        facts: known.facts,
    }
}
