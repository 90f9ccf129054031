//! The loop that claims what is due, lane by lane, and has it carried.
//!
//! A lane that is quick is claimed for ahead: as much as it carries within a moment lies at hand,
//! and whoever has had its answer hands its place to the next, before that answer is written down:
//! a place is for a call, and not for the database. A lane that is slow has nothing at hand, and
//! its work stays where another host can take it.

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
}

impl<F: Feature> Turn<F> {
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
    /// When it is to be looked at next for what is to be asked about.
    next_ask: Option<Instant>,
    /// And for what is to be sent.
    next_send: Option<Instant>,
}

impl<O> AtHand<O> {
    fn new() -> Self {
        let waiting = VecDeque::new();
        let (looked_at, next_ask, next_send) = (None, None, None);
        Self { waiting, carried: 0, claimed_at: Instant::now(), looked_at, next_ask, next_send }
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

    /// Whether it is time to look what there is to do for this purpose.
    fn is_time_to_look(&mut self, purpose: Purpose, now: Instant) -> bool {
        self.next_look(purpose).is_none_or(|at| at <= now)
    }

    /// Takes note of a look that took so long and found so much of what was wanted. Whoever looks for
    /// what is to be asked about meets everything that is under way, and whoever finds nothing has met
    /// every merchant that has anything waiting: where that is much, it is left for a while.
    fn note_look(
        &mut self,
        purpose: Purpose,
        (begun, now): (Instant, Instant),
        (found, wanted): (usize, usize),
    ) {
        let took = now - begun;
        let least = match purpose {
            Purpose::Ask if found < wanted => limits::ASK_EVERY,
            Purpose::Ask | Purpose::Send => Duration::ZERO,
        };
        let rest = match found == 0 && took >= limits::LOOK_DEAR {
            true => limits::rest_after(took, (least, limits::LOOK_EVERY_MAX)),
            false => least,
        };
        *self.next_look(purpose) = Some(now + rest);
    }

    const fn next_look(&mut self, purpose: Purpose) -> &mut Option<Instant> {
        match purpose {
            Purpose::Ask => &mut self.next_ask,
            Purpose::Send => &mut self.next_send,
        }
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
            let live = ready.filter(|ready| ready.route.env == Env::Live);
            let is_shut = live.is_some() && self.engine.quarantine.is_closed();
            // What is in a file has its time, whatever its network asks for.
            let is_patient = live.is_some_and(|ready| !ready.goes_by_file())
                && self.engine.lanes.patience(route).is_some();
            self.fill(route);
            if self.lane(route, AtHand::is_supplied) {
                continue;
            }
            for (stage, purpose) in [(Stage::Sent, Purpose::Ask), (Stage::Queued, Purpose::Send)] {
                if purpose == Purpose::Send && is_shut {
                    continue;
                }
                if !self.lane(route, |lane| lane.is_time_to_look(purpose, Instant::now())) {
                    pause = limits::ASK_EVERY;
                    continue;
                }
                let wanted = self.wanted(route, purpose);
                if wanted == 0 {
                    continue;
                }
                let most = match purpose {
                    Purpose::Ask if is_patient => limits::PATIENT_QUESTIONS,
                    Purpose::Ask | Purpose::Send => limits::CLAIM_MAX,
                };
                let since = Instant::now();
                match db::in_time(self.claim_due(route, stage, wanted.min(most))).await {
                    Ok(claims) => {
                        claimed += claims.len();
                        let (when, found) = ((since, Instant::now()), (claims.len(), wanted));
                        self.lane(route, |lane| lane.note_look(purpose, when, found));
                        self.take((route, purpose), claims, since).await;
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
            (free + (worth - waiting.min(worth))).min(limits::CLAIM_MAX)
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
        };
        // It is large, and moved several times on its way to whoever runs it.
        self.engine.tasks.spawn(Box::pin(async move {
            turn.dispatcher.carry(claimed, &turn).await;
            turn.hand_on();
        }));
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

    /// When a lane is looked at again after a look that took so long and found so much of ten.
    fn again_after(purpose: Purpose, took: Duration, found: usize) -> Duration {
        let (mut lane, begun) = (AtHand::<()>::new(), Instant::now());
        let now = begun + took;
        assert!(lane.is_time_to_look(purpose, now), "nobody has looked yet");
        lane.note_look(purpose, (begun, now), (found, 10));
        let mut rests = (0_u32..).map(|ms| Duration::from_millis(ms.into()));
        rests.find(|rest| lane.is_time_to_look(purpose, now + *rest)).expect("some time")
    }

    #[test]
    fn a_look_that_finds_nothing_and_takes_long_is_not_repeated_at_once() {
        let (quick, dear) = (limits::LOOK_DEAR / 2, limits::LOOK_DEAR * 2);
        assert_eq!(again_after(Purpose::Send, quick, 0), Duration::ZERO);
        assert_eq!(again_after(Purpose::Send, dear, 0), dear * limits::LOOK_SHARE);
        assert_eq!(again_after(Purpose::Send, dear * 100, 0), limits::LOOK_EVERY_MAX);
        assert_eq!(again_after(Purpose::Send, dear, 1), Duration::ZERO);
        // Whatever is under way is met by whoever asks, unless there is more than could be.
        assert_eq!(again_after(Purpose::Ask, quick, 9), limits::ASK_EVERY);
        assert_eq!(again_after(Purpose::Ask, dear, 0), dear * limits::LOOK_SHARE);
        assert_eq!(again_after(Purpose::Ask, quick, 10), Duration::ZERO);
    }
}
