//! The loop that claims what is due, lane by lane, and has it carried.
//!
//! A lane that is quick is claimed for ahead: as much as it carries within a moment lies at hand,
//! and whoever has had its answer hands its place to the next, before that answer is written down:
//! a place is for a call, and not for the database. A lane that is slow has nothing at hand, and
//! its work stays where another host can take it. A lane that no route takes anything of (it is
//! paused, or closed, or its network is gone) is tried with a little once a second: what waits in it
//! stays due, however much it is, and goes at once when something of it got on.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use crate::config::limits;
use crate::db;
use crate::env::Env;
use crate::error::Problem;
use crate::id::RouteId;

use super::Transfers;
use super::lanes::{Place, Purpose};
use super::order::Feature;
use super::work::{self, Claim, Due, Stage};

impl Transfers {
    /// Carries what is due until the host is told to stop: as much of each route at once as it
    /// has places.
    pub async fn dispatch<F: Feature>(self, feature: F) {
        let dispatcher = Dispatcher { engine: self, feature, at_hand: Mutex::default() };
        Arc::new(dispatcher).run().await;
    }
}

/// A place in a lane, to be handed on once.
pub(super) struct Turn<F: Feature> {
    dispatcher: Arc<Dispatcher<F>>,
    route: RouteId,
    purpose: Purpose,
    place: Mutex<Option<Place>>,
    is_over: AtomicBool,
    is_in_vain: AtomicBool,
}

impl<F: Feature> Turn<F> {
    /// No route takes now what was claimed.
    pub(super) fn is_in_vain(&self) {
        self.is_in_vain.store(true, Ordering::Relaxed);
    }

    /// No call is made any more: what is next at hand has the place now.
    pub(super) fn hand_on(&self) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let next = match self.purpose {
            Purpose::Send => self.dispatcher.next_at_hand(&self.route),
            Purpose::Ask => None,
        };
        match next {
            Some(next) => self.dispatcher.begin(&self.route, next, place, self.purpose),
            None => {
                drop(place);
                self.dispatcher.engine.wake();
            }
        }
    }
}

struct Dispatcher<F: Feature> {
    engine: Transfers,
    feature: F,
    /// What waits for a place to send from.
    at_hand: Mutex<HashMap<RouteId, AtHand<F::Object>>>,
}

/// Work that this host has claimed, with its object; none where that is not there or cannot be read.
struct Held<O> {
    claim: Claim,
    object: Option<O>,
    since: Instant,
}

/// Work of one lane that this host has claimed ahead.
struct AtHand<O> {
    waiting: VecDeque<Held<O>>,
    /// How much was carried since more was claimed.
    carried: usize,
    claimed_at: Instant,
    /// When the lane was looked at last.
    looked_at: Option<Instant>,
    /// When it was last looked at for what is to be asked about.
    asked_at: Option<Instant>,
    trials: Trials,
}

/// Whether what is claimed of a lane gets on, or waits whoever claims it.
#[derive(Default)]
struct Trials {
    /// How much in a row was claimed in vain.
    in_vain: usize,
    /// When it was last tried whether that has changed.
    tried_at: Option<Instant>,
}

impl Trials {
    /// Something was claimed that nobody takes now.
    const fn fail(&mut self) {
        self.in_vain = self.in_vain.saturating_add(1);
    }

    /// Something has got on.
    const fn succeed(&mut self) {
        self.in_vain = 0;
    }

    /// How much to claim where there would be use for so much.
    fn permit(&mut self, wanted: usize, now: Instant) -> usize {
        if self.in_vain < limits::LANE_IN_VAIN_MAX || wanted == 0 {
            return wanted;
        }
        if self.tried_at.is_some_and(|at| now - at < limits::LANE_TRIED_EVERY) {
            return 0;
        }
        self.tried_at = Some(now);
        wanted.min(limits::LANE_TRIED_WITH)
    }
}

impl<O> AtHand<O> {
    fn new() -> Self {
        let waiting = VecDeque::new();
        let (looked_at, asked_at, trials) = (None, None, Trials::default());
        Self { waiting, carried: 0, claimed_at: Instant::now(), looked_at, asked_at, trials }
    }

    /// The oldest that is not to be given back.
    fn pop(&mut self) -> Option<Held<O>> {
        self.waiting.pop_front_if(|held| held.since.elapsed() < limits::AT_HAND_MAX)
    }

    /// Whether it has enough at hand to be left alone for this round.
    fn is_supplied(&mut self) -> bool {
        let was_just_looked_at =
            self.looked_at.is_some_and(|at| at.elapsed() < limits::CLAIM_AHEAD / 2);
        let is_supplied = was_just_looked_at && !self.waiting.is_empty();
        if !is_supplied {
            self.looked_at = Some(Instant::now());
        }
        is_supplied
    }

    /// Takes the lane's turn to look for what is to be asked about, if it has come: whoever looks
    /// meets everything that is under way.
    fn takes_turn_to_ask(&mut self) -> bool {
        let was_just_asked = self.asked_at.is_some_and(|at| at.elapsed() < limits::ASK_EVERY);
        if !was_just_asked {
            self.asked_at = Some(Instant::now());
        }
        !was_just_asked
    }

    /// There was more to be asked about than could be.
    fn ask_again_at_once(&mut self) {
        self.asked_at = None;
    }

    /// How much is worth having at hand, at the pace since more was claimed.
    fn worth_having(&self) -> usize {
        let elapsed = self.claimed_at.elapsed().max(limits::DISPATCH_EVERY);
        let ahead = limits::CLAIM_AHEAD.as_micros() * self.carried as u128 / elapsed.as_micros();
        usize::try_from(ahead).unwrap_or(usize::MAX).min(limits::CLAIM_MAX)
    }
}

impl<F: Feature> Dispatcher<F> {
    async fn run(self: Arc<Self>) {
        let mut next = tokio::time::Instant::now();
        while !self.engine.stopping.is_cancelled() {
            // A round serves many: what comes free in the meantime is claimed together.
            tokio::time::sleep_until(next).await;
            next = tokio::time::Instant::now() + limits::DISPATCH_EVERY;
            self.give_back_older_than(limits::AT_HAND_MAX).await;
            let routes = work::list_routes_with_work(self.engine.db.pool());
            let pause = match db::in_time(routes).await {
                Ok(routes) => self.claim_all(&routes).await,
                Err(cause) => {
                    tracing::warn!(%cause, "looking for work");
                    Some(limits::DISPATCH_POLL)
                }
            };
            let Some(pause) = pause else { continue };
            tokio::select! {
                () = self.engine.stopping.cancelled() => break,
                () = self.engine.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.give_back_older_than(Duration::ZERO).await;
    }

    /// Claims and begins what is due on these routes; answers when to look again where that was
    /// nothing.
    async fn claim_all(self: &Arc<Self>, routes: &[RouteId]) -> Option<Duration> {
        let (mut claimed, mut pause) = (0, limits::DISPATCH_POLL);
        for route in routes {
            let ready = self.engine.routes.get(route).await.ok();
            let payments_max = ready.as_ref().and_then(|ready| ready.payments_max());
            self.engine.lanes.fit(route, payments_max);
            let is_shut = ready.is_some_and(|ready| {
                ready.route.env == Env::Live && self.engine.quarantine.is_closed()
            });
            self.fill(route);
            if self.lane(route, AtHand::is_supplied) {
                continue;
            }
            for (stage, purpose) in [(Stage::Sent, Purpose::Ask), (Stage::Queued, Purpose::Send)] {
                let wanted = self.wanted(route, purpose);
                if wanted == 0 || (stage == Stage::Queued && is_shut) {
                    continue;
                }
                if purpose == Purpose::Ask && !self.lane(route, AtHand::takes_turn_to_ask) {
                    pause = limits::ASK_EVERY;
                    continue;
                }
                let since = Instant::now();
                match db::in_time(self.claim_due(route, stage, wanted)).await {
                    Ok(claims) => {
                        claimed += claims.len();
                        let has_more = purpose == Purpose::Ask && claims.len() == wanted;
                        self.take((route, purpose), claims, since).await;
                        if has_more {
                            self.lane(route, AtHand::ask_again_at_once);
                        }
                    }
                    Err(cause) => tracing::warn!(%cause, route.id = %route, "claiming work"),
                }
            }
        }
        (claimed == 0).then_some(pause)
    }

    /// How much to claim: for the places that are free, and ahead where the lane is quick.
    fn wanted(&self, route: &RouteId, purpose: Purpose) -> usize {
        let free = self.engine.lanes.free(route, purpose);
        if purpose == Purpose::Ask {
            return free.min(limits::CLAIM_MAX);
        }
        self.lane(route, |lane| {
            let (worth, waiting) = (lane.worth_having(), lane.waiting.len());
            // Not for a few.
            if waiting > 0 && waiting >= worth / 2 {
                return 0;
            }
            let wanted = free + (worth - waiting.min(worth));
            lane.trials.permit(wanted.min(limits::CLAIM_MAX), Instant::now())
        })
    }

    async fn claim_due(
        &self,
        route: &RouteId,
        stage: Stage,
        wanted: usize,
    ) -> Result<Vec<Claim>, sqlx::Error> {
        let engine = &self.engine;
        let key = format!("{route}/{}", stage.as_str());
        let after = {
            let turns = engine.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.get(&key).cloned().unwrap_or_default()
        };
        let due = Due { route, stage, now: engine.now(), after: &after };
        let (claims, last) = work::claim_due(&engine.db, due, (limits::LEASE, wanted)).await?;
        let mut turns = engine.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.insert(key, last);
        Ok(claims)
    }

    /// Reads the objects of claimed work together, and has as many carried as there are places;
    /// the others wait at hand.
    async fn take(
        self: &Arc<Self>,
        (route, purpose): (&RouteId, Purpose),
        claims: Vec<Claim>,
        since: Instant,
    ) {
        let ids: Vec<String> = claims.iter().map(|claim| claim.id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let mut objects = match db::in_time(self.feature.load_all(&ids)).await {
            Ok(objects) => objects,
            Err(cause) => {
                // Their leases run out by themselves.
                tracing::warn!(%cause, claims = ids.len(), "reading what was claimed");
                return;
            }
        };
        let claimed = claims.into_iter().map(|claim| {
            let object = objects.remove(&claim.id);
            Held { claim, object, since }
        });
        match purpose {
            Purpose::Ask => {
                for claimed in claimed {
                    // Places are taken here only, and there were as many.
                    let place = self.engine.lanes.enter(route, purpose);
                    self.begin(route, claimed, place, purpose);
                }
            }
            Purpose::Send => {
                let claimed: Vec<_> = claimed.collect();
                let mut at_hand = self.at_hand();
                let lane = at_hand.entry(route.clone()).or_insert_with(AtHand::new);
                (lane.carried, lane.claimed_at) = (0, Instant::now());
                lane.waiting.extend(claimed);
                drop(at_hand);
                self.fill(route);
            }
        }
    }

    /// Begins what is at hand, as far as places are free.
    fn fill(self: &Arc<Self>, route: &RouteId) {
        while let Some(place) = self.engine.lanes.enter(route, Purpose::Send) {
            let Some(claimed) = self.at_hand().get_mut(route).and_then(AtHand::pop) else { break };
            self.begin(route, claimed, Some(place), Purpose::Send);
        }
    }

    /// Has a task of its own carry it.
    fn begin(
        self: &Arc<Self>,
        route: &RouteId,
        claimed: Held<F::Object>,
        place: Option<Place>,
        purpose: Purpose,
    ) {
        let turn = Turn {
            dispatcher: Arc::clone(self),
            route: route.clone(),
            purpose,
            place: Mutex::new(place),
            is_over: AtomicBool::new(false),
            is_in_vain: AtomicBool::new(false),
        };
        self.engine.tasks.spawn(async move {
            turn.dispatcher.carry(claimed, &turn).await;
            if turn.purpose == Purpose::Send {
                turn.dispatcher.lane(&turn.route, |AtHand { trials, .. }| {
                    match turn.is_in_vain.load(Ordering::Relaxed) {
                        true => trials.fail(),
                        false => trials.succeed(),
                    }
                });
            }
            turn.hand_on();
        });
    }

    async fn carry(&self, Held { claim, object, .. }: Held<F::Object>, turn: &Turn<F>) {
        let had = claim.clone();
        let carry = self.engine.carry((&self.feature, Some(turn)), claim, object);
        let carry = AssertUnwindSafe(carry).catch_unwind();
        let carried = match tokio::time::timeout(limits::CARRY_MAX, carry).await {
            Ok(Ok(carried)) => carried,
            Ok(Err(panic)) => Err(Problem::panicked("carrying it", &*panic)),
            Err(_) => Err(Problem::internal("it takes longer than all calls of a rail may")),
        };
        self.engine.note_end(&had, carried).await;
    }

    /// Counts what was carried, and takes what is next.
    fn next_at_hand(&self, route: &RouteId) -> Option<Held<F::Object>> {
        let mut at_hand = self.at_hand();
        let lane = at_hand.get_mut(route)?;
        lane.carried += 1;
        match self.engine.stopping.is_cancelled() {
            true => None,
            false => lane.pop(),
        }
    }

    /// Gives back what has waited for so long: the lane is slower than it was, and others may
    /// have places.
    async fn give_back_older_than(&self, age: Duration) {
        let mut stale = Vec::new();
        for lane in self.at_hand().values_mut() {
            while let Some(oldest) = lane.waiting.pop_front_if(|held| held.since.elapsed() >= age) {
                stale.push(oldest.claim);
            }
        }
        if stale.is_empty() {
            return;
        }
        if let Err(cause) = db::in_time(work::give_back_all(&self.engine.db, &stale)).await {
            // They run out by themselves.
            tracing::warn!(%cause, claims = stale.len(), "giving work back");
        }
    }

    /// What a lane says of itself.
    fn lane<T>(&self, route: &RouteId, says: impl FnOnce(&mut AtHand<F::Object>) -> T) -> T {
        says(self.at_hand().entry(route.clone()).or_insert_with(AtHand::new))
    }

    fn at_hand(&self) -> MutexGuard<'_, HashMap<RouteId, AtHand<F::Object>>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_nothing_gets_on_in_is_tried_with_a_little_now_and_then() {
        let (mut trials, now) = (Trials::default(), Instant::now());
        for _ in 0..limits::LANE_IN_VAIN_MAX {
            assert_eq!(trials.permit(500, now), 500);
            trials.fail();
        }
        assert_eq!(trials.permit(0, now), 0, "it is not tried where there is no place");
        assert_eq!(trials.permit(500, now), limits::LANE_TRIED_WITH);
        assert_eq!(trials.permit(500, now), 0, "once in a while");
        trials.fail();
        let later = now + limits::LANE_TRIED_EVERY;
        assert_eq!((trials.permit(3, later), trials.permit(3, later)), (3, 0));
        // Something has got on: so may all.
        trials.succeed();
        assert_eq!(trials.permit(500, later), 500);
    }
}
