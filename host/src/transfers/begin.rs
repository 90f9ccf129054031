//! Choosing a route, fixing the reference, and committing both before a byte leaves.

use std::sync::Arc;
use std::time::Duration;

use crate::cases::{self, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Moves;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::rails::{ReadyRoute, sql};
use crate::wasm::rail::{Broken, Called, Opening, Refusal};

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::calls::{self, Answered, Known};
use super::carry::{Carry, Over, Then, Todo, is_blocked, is_not_now};
use super::finding::{Earlier, Learnt};
use super::intents::Intent;
use super::lanes::{Place, Purpose, Reached};
use super::order::{Failure, Feature, Order, OrderStage, Step, Writes};
use super::sealed;
use super::serials;
use super::work::Stage;

/// A route that takes the payment now, with a place in its lane.
struct Chosen {
    route: Arc<ReadyRoute>,
    /// None in the sandbox, where nobody can be slowed down.
    place: Option<Place>,
    /// When a route opens that would have been chosen before it.
    opens_at: Option<Moment>,
    /// Whether routes of other rails take it too.
    has_other_rails: bool,
}

/// A payment that left and that the database has forgotten.
pub(super) struct Forgotten {
    route: String,
    reference: String,
    intended_at: Moment,
}

impl Forgotten {
    /// Whether nothing that is known can have been sent after it: then it took over from
    /// whatever is open.
    fn is_last(&self, known: &[Attempt]) -> bool {
        known.iter().all(|known| {
            let is_over = known.state != AttemptState::Open || known.sends == 0;
            known.rail_reference != self.reference && (is_over || known.sent_at < self.intended_at)
        })
    }
}

/// What a rail made of an attempt.
pub(super) enum Prepared {
    Ready(Over),
    /// Refused before anything left: why, and the row that shows it.
    Refused(Over, Failure, RowChange),
    /// Why nothing came of it.
    Broken(String, Attempt),
    /// It was not asked: this host has too much to do.
    Crowded,
}

/// How long a payment waits whose rail was not asked.
pub(super) const CROWDED: Later = Later::Crowded(limits::SEND_LATER);

/// Why nothing is sent now.
pub(super) enum Later {
    /// This host has too much to do, or sends nothing for now.
    Crowded(Duration),
    /// Each route that takes it is left alone for a while, or closed.
    After(Duration),
    /// Another route's lane is the one to wait in.
    InLane(Arc<ReadyRoute>),
    /// No route takes it.
    Nobody,
    /// Operators let no route take as much, or as little.
    Unbounded,
}

impl Later {
    /// Whether a route takes it after a while.
    const fn is_somebody(&self) -> bool {
        !matches!(self, Self::Nobody | Self::Unbounded)
    }
}

impl<'a, F: Feature> Carry<'a, F> {
    /// Fixes a reference on a route that was not tried yet, commits it, and sends. `before` is
    /// an attempt of which nothing left, to be ended in the same transaction.
    ///
    /// What happens seldom is boxed: a future is as large as its largest branch, and is moved.
    pub(super) async fn begin(
        self,
        tried: Vec<Attempt>,
        before: Option<(Over, Answered)>,
    ) -> Result<Then<'a, F>, Problem> {
        if let Some(pause) = self.held_back() {
            return Box::pin(self.wait_or_resend(tried, before, Later::Crowded(pause))).await;
        }
        let (mut failed, mut refused) = (None::<String>, None::<Prepared>);
        let mut passed: Vec<Attempt> = tried.clone();
        let (prepared, place) = loop {
            let chosen = match self.choose(&passed).await? {
                Ok(chosen) => chosen,
                // Another one may take it in a while.
                Err(later) if later.is_somebody() => {
                    return Box::pin(self.wait_or_resend(tried, before, later)).await;
                }
                Err(later) => match (refused, failed) {
                    // The rail that knows the recipient says no, and nobody else takes it.
                    (Some(prepared), _) => break (prepared, None),
                    (None, Some(why)) if before.is_none() => {
                        return Box::pin(self.cannot_send(&why)).await.map(|()| None);
                    }
                    _ => return Box::pin(self.wait_or_resend(tried, before, later)).await,
                },
            };
            if chosen.route.goes_by_file() {
                return Box::pin(self.into_file((chosen.route, chosen.opens_at), tried, before))
                    .await;
            }
            let nth = tried.iter().map(|tried| serials::nth_of(tried.number)).max().unwrap_or(0);
            match self.fix(&chosen.route, nth + 1).await? {
                Prepared::Broken(why, unfixed) => {
                    tracing::error!(transfer.id = self.order.id, why, "a rail prepares nothing");
                    failed = Some(why);
                    passed.push(unfixed);
                }
                Prepared::Crowded => {
                    return Box::pin(self.wait_or_resend(tried, before, CROWDED)).await;
                }
                // What a rail makes nothing of that has not checked the recipient ends no payment.
                Prepared::Refused(over, ..) if !self.engine.routes.is_at_home(&chosen.route) => {
                    failed = over.attempt.message.clone();
                    passed.push(Attempt { bytes_left: true, ..over.attempt });
                }
                // Another rail may take what this one does not.
                Prepared::Refused(over, failure, evidence) if chosen.has_other_rails => {
                    passed.push(Attempt { bytes_left: true, ..over.attempt.clone() });
                    refused = Some(Prepared::Refused(over, failure, evidence));
                }
                prepared => break (prepared, chosen.place),
            }
        };
        let mut ended = Vec::new();
        if let Some((over, answered)) = &before {
            let not_sent = over.attempt.not_sent(answered.learnt.words(), self.engine.now());
            ended.push(attempt::ATTEMPT_STATES.change(&not_sent));
            ended.push(answered.evidence.clone());
        }
        let ask_first = self.engine.quarantine.asks_first(self.order.env, self.order.made_at);
        match prepared {
            Prepared::Refused(over, ..) if ask_first => {
                let said = over.attempt.message.unwrap_or_default();
                let why = format!("{said}; it may have left before the database was restored");
                Box::pin(self.cannot_send(&why)).await.map(|()| None)
            }
            Prepared::Refused(over, failure, evidence) => {
                ended.push(evidence);
                Box::pin(self.commit_refused((over, failure), tried, (before, ended))).await
            }
            Prepared::Ready(over) => {
                // Its place is held until it is sent.
                let over = if ask_first { over.unsent() } else { Over { place, ..over } };
                self.commit_attempt(over, tried, (before, ended)).await
            }
            Prepared::Broken(why, _) => Err(Problem::internal(why)),
            Prepared::Crowded => Err(Broken::Crowded.into()),
        }
    }

    /// Commits an attempt that its rail has refused before anything left, and that it is refused.
    pub(super) async fn commit_refused(
        self,
        (over, failure): (Over, Failure),
        tried: Vec<Attempt>,
        before: (Option<(Over, Answered)>, Vec<RowChange>),
    ) -> Result<Then<'a, F>, Problem> {
        let fixed = over.attempt.fixed();
        let carry = match self.commit_begun(&over, tried, before).await? {
            Ok(carry) => carry,
            Err(then) => return Ok(then),
        };
        let with = Writes { rows: Vec::new(), fence: Some(carry.fence()), beside: None };
        let step = Step::Refused(fixed, failure);
        match carry.feature.commit(&carry.object, step, with).await {
            // Whoever has it now finds how its attempt ended.
            Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(None),
            other => other.map(|_| None),
        }
    }

    /// Commits a new attempt with the end of the one before it, and sends it, or asks about it
    /// where it may have left already.
    async fn commit_attempt(
        self,
        over: Over,
        tried: Vec<Attempt>,
        before: (Option<(Over, Answered)>, Vec<RowChange>),
    ) -> Result<Then<'a, F>, Problem> {
        let carry = match self.commit_begun(&over, tried.clone(), before).await? {
            Ok(carry) => carry,
            Err(then) => return Ok(then),
        };
        if over.attempt.sends == 0 {
            let mut tried = tried;
            tried.push(over.attempt.clone());
            return carry.then(Todo::Ask { attempt: over.attempt, tried });
        }
        carry.then(Todo::Send { over, tried, before: Earlier::Nothing })
    }

    /// Commits a new attempt with the end of the one before it; what to do instead if that could not
    /// be.
    async fn commit_begun(
        mut self,
        over: &Over,
        tried: Vec<Attempt>,
        (before, ended): (Option<(Over, Answered)>, Vec<RowChange>),
    ) -> Result<Result<Self, Then<'a, F>>, Problem> {
        let step = match self.order.stage {
            OrderStage::Queued => {
                // What merchants have to know of it, its network says when it takes it on.
                match over.route.rail.has_something_to_show() {
                    true => Step::BegunUntold(over.attempt.fixed()),
                    false => Step::Begun(over.attempt.fixed()),
                }
            }
            OrderStage::UnderWay | OrderStage::Ended => Step::Rerouted(over.attempt.fixed()),
        };
        let mut rows = ended;
        let moves = self.push_attempt(&mut rows, (&over.attempt, &over.route));
        // Its row stays as it was claimed (see `work`). But of what had been sent, or goes over
        // another route, it has to say where and when to ask, should this host die.
        if self.claim.stage == Stage::Sent || over.route.route.id != self.claim.route_id {
            rows.push(self.under_way(&over.route));
            self.claim.stage = Stage::Sent;
        }
        let with = Writes { rows, fence: Some(self.fence()), beside: None };
        match self.feature.commit(&self.object, step, with).await {
            Ok(object) => self.object = object,
            // A block is seldom meant to be lifted: somebody has to know what it holds.
            Err(problem) if is_blocked(&problem) && before.is_none() => {
                return Box::pin(self.held_by_a_block()).await.map(|()| Err(None));
            }
            Err(problem) if is_not_now(&problem) => {
                let later = Later::After(2 * limits::SEND_LATER);
                return Box::pin(self.wait_or_resend(tried, before, later)).await.map(Err);
            }
            Err(problem) => return Box::pin(self.lost(problem, before)).await.map(|()| Err(None)),
        }
        if let Some(moves) = moves {
            over.route.written().note(moves);
        }
        self.order.stage = OrderStage::UnderWay;
        Ok(Ok(self))
    }

    /// Writes a live payment to the journal outside the database before it leaves.
    pub(super) async fn intend(&self, attempt: &Attempt) -> std::io::Result<()> {
        let order = &self.order;
        if order.env == Env::Test {
            return Ok(());
        }
        let intent = Intent::of(order, attempt, self.engine.now());
        self.engine.intents.record(&intent).await
    }

    /// What was about to leave, and does not: it is asked about first.
    pub(super) async fn put_off_unsent(self, route: &ReadyRoute) -> Result<Then<'a, F>, Problem> {
        let next = self.next_question(route);
        self.put_off(Vec::new(), next, None).await.map(|()| None)
    }

    /// Adds a new attempt, with how its route is set where the database may not know that yet: then it
    /// answers where connections lead.
    pub(super) fn push_attempt(
        &self,
        rows: &mut Vec<RowChange>,
        (attempt, route): (&Attempt, &ReadyRoute),
    ) -> Option<Moves> {
        let moves = route.written().unless_certain(&self.engine.db);
        if moves.is_some() {
            rows.push(sql::CONFIGURATIONS.insert(&attempt.configuration));
        }
        rows.push(attempt::ATTEMPTS.insert(attempt));
        moves
    }

    /// Where and as what it left last, as a case remembers what the database has forgotten.
    pub(super) async fn forgotten(&self, known: &[Attempt]) -> Result<Option<Forgotten>, Problem> {
        if !self.engine.quarantine.may_be_forgotten(self.order.env, self.order.made_at) {
            return Ok(None);
        }
        let pool = self.engine.db.pool();
        let cases = cases::sql::list_about(pool, &self.order.id).await?;
        let cases = cases.into_iter().map(|known| known.case);
        let forgotten = cases.filter(|case| case.kind == CaseKind::ForgottenTransfer);
        let left = forgotten.filter_map(|case| {
            let reference = case.reference()?.to_owned();
            let intended_at = Moment::parse(case.evidence["intended_at"].as_str()?)?;
            Some(Forgotten { route: case.route?, reference, intended_at })
        });
        let last = left.max_by_key(|left| left.intended_at);
        Ok(last.filter(|left| left.is_last(known)))
    }

    /// Fixes the very reference that was forgotten, over the route that it went over, and asks
    /// about it. It took over from whatever is known to be open, so nothing of that had left.
    /// Where it cannot be made again, nothing is sent, and a person has to look.
    pub(super) async fn ask_about_forgotten(
        self,
        known: Vec<Attempt>,
        left: Forgotten,
    ) -> Result<Then<'a, F>, Problem> {
        let all = self.engine.routes.all().await?;
        let is_its = |known: &&Arc<ReadyRoute>| {
            known.route.env == self.order.env && known.route.name == left.route
        };
        let mut again = None;
        if let Some(route) = all.iter().find(is_its).cloned() {
            for nth in 1..=serials::ATTEMPTS_MAX {
                match self.fix(&route, nth).await? {
                    Prepared::Ready(over) if over.attempt.rail_reference == left.reference => {
                        again = Some(over.unsent());
                        break;
                    }
                    Prepared::Crowded => {
                        return Box::pin(self.wait_or_resend(known, None, CROWDED)).await;
                    }
                    Prepared::Ready(_) | Prepared::Refused(..) | Prepared::Broken(..) => {}
                }
            }
        }
        let Some(over) = again else {
            let Forgotten { route, reference, .. } = left;
            let why = format!(
                "it may have left over {route} as {reference} before the database was restored, \
                 and cannot be asked about under that reference any more"
            );
            return Box::pin(self.cannot_send(&why)).await.map(|()| None);
        };
        let now = self.engine.now();
        let open = known.iter().filter(|known| known.state == AttemptState::Open);
        let words = format!("not sent: {} took over, says the intent journal", left.reference);
        let ended =
            open.map(|open| attempt::ATTEMPT_STATES.change(&open.not_sent(words.clone(), now)));
        let ended = ended.collect();
        self.commit_attempt(over, known, (None, ended)).await
    }

    /// How long to wait where nothing may be sent from here at all.
    pub(super) fn held_back(&self) -> Option<Duration> {
        let is_held = self.order.env == Env::Live && self.engine.quarantine.is_closed();
        is_held.then_some(limits::SEND_LATER)
    }

    /// A route that takes it now: the first that was not tried, whose lane has a place and whose
    /// breaker lets something through.
    async fn choose(&self, tried: &[Attempt]) -> Result<Result<Chosen, Later>, Problem> {
        let order = &self.order;
        let wanted = (order.currency, order.method.as_str(), order.env);
        let routes = &self.engine.routes;
        let candidates = match routes.carriers(wanted, &order.merchant_id, order.amount).await {
            Ok(candidates) => candidates,
            Err(problem) if problem.code() == ErrorCode::LimitViolation => {
                return Ok(Err(Later::Unbounded));
            }
            Err(problem) if is_no_route(&problem) => Vec::new(),
            Err(problem) => return Err(problem),
        };
        let (mut pause, mut opens): (Option<Duration>, Option<Moment>) = (None, None);
        let mut rails = candidates.iter().map(|route| &route.route.rail);
        let has_other_rails = rails.next().is_some_and(|first| rails.any(|rail| rail != first));
        for route in candidates {
            let id = &route.route.id;
            if !self.engine.may_try(&route, tried) {
                continue;
            }
            match self.engine.suits(order, &route).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(later) => return Ok(Err(later)),
            }
            if let Some(opens_at) = route.opens_at(self.engine.now()) {
                opens = opens.into_iter().chain([opens_at]).min();
                continue;
            }
            if order.env == Env::Test {
                return Ok(Ok(Chosen { route, place: None, opens_at: opens, has_other_rails }));
            }
            // The dispatcher has taken a place in the lane that the claim was in.
            let place = match *id == self.claim.route_id {
                true => None,
                false => match self.engine.lanes.enter(id, Purpose::Send) {
                    Some(place) => Some(place),
                    None => return Ok(Err(Later::InLane(route))),
                },
            };
            match self.engine.lanes.admit(id) {
                Ok(()) => return Ok(Ok(Chosen { route, place, opens_at: opens, has_other_rails })),
                Err(left_alone) => {
                    let least = pause.map_or(left_alone, |known| known.min(left_alone));
                    pause = Some(least.min(limits::SEND_LATER));
                }
            }
        }
        // Looked at now and then all the same: another route may have come.
        let opens = opens.map(|at| at.since(self.engine.now()).min(limits::CLOSED_POLL));
        let soonest = pause.into_iter().chain(opens).min();
        Ok(Err(soonest.map_or(Later::Nobody, Later::After)))
    }

    /// The attempt as it will be committed: everything about it is fixed, its reference too.
    pub(super) async fn fix(&self, route: &Arc<ReadyRoute>, nth: i64) -> Result<Prepared, Problem> {
        if self.order.sender.is_none() {
            return Err(Problem::internal(calls::UNREADABLE));
        }
        let (engine, order) = (self.engine, &self.order);
        // What one network said of the account is nothing to another.
        let resolution = match engine.routes.is_at_home(route) {
            true => self.feature.resolution(&self.object).await?,
            false => None,
        };
        let id = engine.ids.id();
        let sealed = sealed::seal_resolution(engine, &id, resolution.as_ref())?;
        let declaration = &route.rail.declaration;
        let seeds = sealed::seal_seeds(engine, &id, &declaration.seeds)?;
        let (now, about) = (engine.now(), &declaration.rail);
        let mut attempt = Attempt {
            id,
            transfer_id: order.id.clone(),
            configuration: route.configuration(&engine.keyring),
            route: route.route.name.clone(),
            rail: about.name.clone(),
            rail_reference: String::new(),
            number: serials::number(self.claim.serial, nth),
            begun_at: order.queued_at,
            resolution: sealed,
            seeds,
            network_id: None,
            facts: None,
            state: AttemptState::Open,
            bytes_left: true,
            sends: 1,
            queries: 0,
            never_received: 0,
            code: None,
            message: None,
            sent_at: now,
            answered_at: None,
            file_id: None,
            created_at: now,
        };
        let known = Known { resolution, facts: Vec::new() };
        let payment = calls::payment(order, (&attempt, route), known);
        let grant = route.pure_grant(attempt.begun_at);
        let (called, kept) = match route.goes_by_file() {
            true => (route.rail.code.prepare_for_file(&grant, &payment).await, None),
            false => route.rail.code.prepare(&grant, &payment).await,
        };
        let turned_down = |refusal| self.turned_down((&attempt, route), &called, refusal);
        Ok(match &called.result {
            Ok(Err(refusal)) => turned_down(refusal)?,
            Ok(Ok(opening)) if !opening.reference.is_empty() => {
                attempt.rail_reference.clone_from(&opening.reference);
                attempt.facts = sealed::seal_facts(engine, &attempt.id, &opening.facts)?;
                Prepared::Ready(Over { kept, ..Over::new(attempt, Arc::clone(route)) })
            }
            Ok(Ok(_)) => Prepared::Broken("the rail made no reference".to_owned(), attempt),
            Err(Broken::Crowded) => {
                if order.env == Env::Live {
                    engine.lanes.note(&route.route.id, Reached::Unasked);
                }
                Prepared::Crowded
            }
            Err(broken) => Prepared::Broken(broken.to_string(), attempt),
        })
    }

    /// An attempt that its rail refuses before anything left.
    fn turned_down(
        &self,
        (attempt, route): (&Attempt, &Arc<ReadyRoute>),
        called: &Called<Result<Opening, Refusal>>,
        refusal: &Refusal,
    ) -> Result<Prepared, Problem> {
        let learnt = Learnt::Refused(refusal.clone());
        let refused = Attempt {
            // The network never heard of it; its own id keeps it apart from every other.
            rail_reference: attempt.id.to_string(),
            state: AttemptState::Refused,
            bytes_left: false,
            sends: 0,
            answered_at: Some(attempt.created_at),
            ..self.calls().told(attempt, &learnt)?
        };
        let (calls, what) = (self.calls(), (&*route.rail, "prepare"));
        let evidence = calls.evidence(Some(&refused), what, called, &learnt.words());
        let Refusal { code, message } = refusal.clone();
        let failure = Failure { code, message, id: None };
        Ok(Prepared::Refused(Over::new(refused, Arc::clone(route)), failure, evidence))
    }
}

fn is_no_route(problem: &Problem) -> bool {
    use ErrorCode as E;
    matches!(
        problem.code(),
        E::RoutingFailed | E::ProviderNotEntitled | E::ProviderPaused | E::RailNotConfigured
    )
}

impl Transfers {
    /// Whether a route can be tried after these attempts. One that was repaired since nothing left
    /// over it is worth another; after many there is none.
    pub(super) fn may_try(&self, route: &ReadyRoute, tried: &[Attempt]) -> bool {
        let tags = || route.fingerprints(&self.keyring);
        let is_tried = tried.iter().any(|tried| {
            tried.configuration.route_id == route.route.id
                && (tried.bytes_left || tags().contains(&tried.configuration.fingerprint))
        });
        let is_last = |tried: &Attempt| serials::nth_of(tried.number) >= serials::ATTEMPTS_MAX;
        route.takes_payments() && !is_tried && !tried.iter().any(is_last)
    }

    /// Whether a route takes the payment as it stands: one of another rail than the recipient was
    /// checked by, or of a version of it that names accounts otherwise, takes it only if its own rail
    /// makes the very same of the recipient, and can carry the amount.
    pub(super) async fn suits(&self, order: &Order, route: &ReadyRoute) -> Result<bool, Later> {
        let is_at_home = self.routes.is_at_home(route);
        if is_at_home && route.rail.knows_the_account(&order.recipient) {
            return Ok(true);
        }
        if !is_at_home && !self.routes.means_the_same(route) {
            return Ok(false);
        }
        let terms = route.rail.declaration.method(order.currency, &order.method);
        if !terms.is_some_and(|terms| terms.takes(order.amount.units())) {
            return Ok(false);
        }
        let which = (order.method.as_str(), order.currency);
        match route.rail.recognises(which, &order.recipient, self.now()).await {
            Ok(is_known) => Ok(is_known),
            Err(Broken::Crowded) => Err(CROWDED),
            Err(broken) => {
                let (rail, order) = (&route.route.rail, &order.id);
                tracing::error!(transfer.id = order, rail.name = rail, %broken, "a recipient");
                Ok(false)
            }
        }
    }
}
