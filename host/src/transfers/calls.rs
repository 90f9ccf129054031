//! Calling a rail about an attempt, and keeping what shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use crate::cases::{Case, CaseKind};
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::granted::scenario_header;
use crate::rails::{Rail, ReadyRoute, shown};
use crate::wasm::rail::{
    Broken, Called, Field, Money, Payment, RecallReason, RecallRequest, Resolution, ReturnOfFunds,
};

use super::Transfers;
use super::attempt::Attempt;
use super::evidence::{self, About};
use super::finding::{Learnt, Same, reached};
use super::lanes::Reached;
use super::order::Order;
use super::sealed;
use super::strangers::presentable;

/// Calls about one order.
pub(super) struct Calls<'a> {
    pub(super) engine: &'a Transfers,
    pub(super) order: &'a Order,
}

/// A call that was made: what it came to, and the row that shows it.
pub(super) struct Answered {
    pub(super) learnt: Learnt,
    pub(super) evidence: RowChange,
    /// What came back beside it, where that is not all of the payment.
    pub(super) part: Option<Box<ReturnOfFunds>>,
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
    ///
    /// # Errors
    /// `service_overloaded` where nobody was asked.
    pub(super) async fn query(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Result<Answered, Problem> {
        let payment = self.payment((attempt, route))?;
        let same =
            Same::of(&attempt.configuration.fingerprint, route.fingerprints(&self.engine.keyring));
        let headers = scenario_header(self.order.scenario.as_deref());
        let seeds = self.seeds(attempt)?;
        let grant = route.grant_with((self.engine.now(), headers, Money::Stays), seeds);
        let called = route.rail.code.query(&grant, &payment).await;
        if let Err(broken @ Broken::Crowded) = called.result {
            return Err(broken.into());
        }
        let learnt = Learnt::from_query(&called, same);
        let part = learnt.part(self.order.amount);
        let learnt = learnt.of(self.order.amount);
        Ok(Answered { part, ..self.note((attempt, route), "query", &called, learnt) })
    }

    /// Asks the network to call an attempt's payment off, or to have its money sent back. What it
    /// answers says nothing of sending again.
    pub(super) async fn recall(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
        reason: RecallReason,
    ) -> Result<Answered, Problem> {
        let payment = self.payment((attempt, route))?;
        // One of its own: the same payment may be asked for again.
        let number = self.engine.enquiry_number().await?;
        let request = RecallRequest {
            serial: u64::try_from(number).unwrap_or(0),
            begun_at_ms: self.engine.now().millis(),
            reason,
        };
        let same =
            Same::of(&attempt.configuration.fingerprint, route.fingerprints(&self.engine.keyring));
        let headers = scenario_header(self.order.scenario.as_deref());
        let grant =
            route.grant_with((self.engine.now(), headers, Money::Stays), self.seeds(attempt)?);
        let called = route.rail.code.recall(&grant, &payment, request).await;
        if let Err(broken @ Broken::Crowded) = called.result {
            return Err(broken.into());
        }
        let learnt = Learnt::from_query(&called, same);
        let part = learnt.part(self.order.amount);
        let learnt = match learnt.of(self.order.amount) {
            Learnt::NeverReceived(why) => Learnt::Unknown(format!("never received: {why}")),
            learnt => learnt,
        };
        Ok(Answered { part, ..self.note((attempt, route), "recall", &called, learnt) })
    }

    /// The texts that were made for an attempt.
    pub(super) fn seeds(
        &self,
        attempt: &Attempt,
    ) -> Result<BTreeMap<String, SecretString>, Problem> {
        sealed::open_seeds(self.engine, &attempt.id, attempt.seeds.as_deref())
    }

    /// What merchants are shown of an attempt that the network has taken on, as members of a JSON
    /// object; nothing where its rail has nothing to show.
    pub(super) fn shown(
        &self,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Result<Option<String>, Problem> {
        let declaration = &route.rail.declaration;
        if declaration.shown.is_empty() {
            return Ok(None);
        }
        let facts = sealed::open_facts(self.engine, &attempt.id, attempt.facts.as_deref())?;
        // What was never sent from here may have left before the database was restored, with others.
        let seeds = match attempt.sends {
            0 => BTreeMap::new(),
            _ => self.seeds(attempt)?,
        };
        let fact = |name: &str| {
            let fact = facts.iter().find(|fact| fact.name == name);
            fact.map(|fact| fact.value.clone())
        };
        let seed = |name: &str| seeds.get(name).map(|seed| seed.expose_secret().to_owned());
        let known =
            shown::Known { fact: &fact, seed: &seed, network_id: attempt.network_id.as_deref() };
        serde_json::to_string(&declaration.shown_of(&known)).map(Some).map_err(Problem::internal)
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
            engine.lanes.note(
                &route.route.id,
                engine.refused_us(route, &learnt).unwrap_or(reached(called)),
            );
        }
        if let Err(broken @ (Broken::Trapped(_) | Broken::TimedOut(_))) = &called.result {
            let rail = &attempt.rail;
            tracing::error!(transfer.id = order.id, rail.name = rail, %broken, operation, "rail");
        }
        let place = (attempt.route.as_str(), order.env.as_str());
        engine.metrics.call(place, (operation, learnt.kind()), called.took);
        let evidence =
            self.evidence(Some(attempt), (&route.rail, operation), called, &learnt.words());
        Answered { learnt, evidence, part: None, was_asked: operation == "query" }
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

impl Transfers {
    /// Whether a refusal is of this host, not of the payment: the next ones would be refused as well.
    /// A person is told, once a day for each thing that is said.
    pub(super) fn refused_us(&self, route: &ReadyRoute, learnt: &Learnt) -> Option<Reached> {
        let Learnt::Refused(refusal) = learnt else { return None };
        if !route.rail.declaration.refusals.ours.contains(&refusal.code) {
            return None;
        }
        let (name, code) = (&route.route.name, &refusal.code);
        tracing::error!(route.name = name, code, "the network refuses us");
        let (kind, now) = (CaseKind::RouteRefused, self.now());
        let (id, day) = (&route.route.id, now.micros() / 86_400_000_000);
        let case = Case {
            id: self.ids.id(),
            kind,
            fingerprint: format!("{}/{id}/{}/{day}", kind.as_str(), presentable(code)),
            env: route.route.env,
            merchant_id: None,
            subject_type: "route",
            subject_id: id.to_string(),
            route: Some(name.clone()),
            amount: None,
            summary: format!(
                "{name}: the network refuses us ({}: {}).",
                presentable(code),
                presentable(&refusal.message)
            ),
            evidence: serde_json::json!({ "code": presentable(code) }),
            opened_at: now,
        };
        let (writer, opening) = (self.writer.clone(), case.opening(&self.ids));
        self.tasks.spawn(async move {
            // The next refusal tells of it again.
            if let Err(problem) = writer.work(opening).await {
                tracing::warn!(%problem, "telling of a route");
            }
        });
        Some(Reached::RefusesUs(REFUSED_PAUSE))
    }
}

/// What an attempt keeps sealed.
pub(super) struct Known {
    pub(super) resolution: Option<Resolution>,
    pub(super) facts: Vec<Field>,
}

/// Nothing leaves without who pays.
pub(super) const UNREADABLE: &str = "who pays cannot be read: a master key is missing";

/// Why a rail cannot be told of a payment so that it may leave, if it cannot: another version of it
/// may have checked the recipient.
pub(super) fn untellable(order: &Order, rail: &Rail) -> Option<&'static str> {
    if order.sender.is_none() {
        return Some(UNREADABLE);
    }
    let is_known = rail.knows_the_account(&order.recipient);
    (!is_known).then_some("the loaded version of its rail names accounts otherwise")
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
        sender: order.sender.clone().unwrap_or_default(),
        narration: order.narration.clone(),
        resolution: known.resolution,
        network_id: attempt.network_id.clone(),
        facts: known.facts,
    }
}
