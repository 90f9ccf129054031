//! A lane for each route: how many calls may be under way on it, and whether it is worth calling.
//!
//! A bank that is slow, hangs or refuses delays its own payments only. Each lane has places of
//! its own, some for sending and some for asking, so that neither starves the other. After several
//! failures in a row its breaker opens, and until a pause is over nothing is sent there. Then one
//! call tries it. Asking goes on: it moves no money, and its answer is
//! what closes the breaker. Lanes are this process's own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::limits;
use crate::id::RouteId;

/// The lanes of this process.
pub struct Lanes {
    places: usize,
    lanes: Mutex<HashMap<RouteId, Arc<Lane>>>,
}

struct Lane {
    sending: Places,
    asking: Places,
    breaker: Mutex<Breaker>,
}

struct Places {
    all: Arc<Semaphore>,
    count: usize,
    /// How many of them its network can serve.
    most: AtomicUsize,
}

/// What a place is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sending something new, or finding out whether whoever died over it has sent it.
    Send,
    /// Asking about something sent, and sending it again if need be.
    Ask,
}

/// A place on a lane, given back when dropped.
pub struct Place(#[expect(dead_code, reason = "held, and given back")] OwnedSemaphorePermit);

/// How a call went, as far as the lane is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The network answered, whatever it said.
    Yes,
    /// It did not, or not with sense.
    No,
    /// It was not there to be called: no byte left.
    Absent,
    /// It asks to be left alone for so long.
    Throttled(Duration),
    /// It refuses this host itself, not the payment: it is sent nothing for so long.
    RefusesUs(Duration),
    /// Nothing was asked of it.
    Unasked,
}

/// How a lane stands, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is sent to.
    Closed,
    /// It is left alone for this much longer.
    Open(Duration),
    /// One call tries it.
    HalfOpen,
}

impl Lanes {
    /// Lanes with so many places for sending each, and a quarter as many for asking.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: places.max(1), lanes: Mutex::default() }
    }

    fn lane(&self, route: &RouteId) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Lane {
            sending: Places::new(self.places),
            asking: Places::new(self.places.div_ceil(4)),
            breaker: Mutex::default(),
        };
        Arc::clone(lanes.entry(route.clone()).or_insert_with(|| Arc::new(new())))
    }

    /// Uses no more of a lane's places than its network can serve, and half as many for asking:
    /// whoever had one beyond that would only wait, and keep the payment from other hosts.
    pub fn fit(&self, route: &RouteId, payments_max: Option<usize>) {
        let (lane, most) = (self.lane(route), payments_max.unwrap_or(usize::MAX));
        lane.sending.most.store(most, Ordering::Relaxed);
        lane.asking.most.store(most.div_ceil(2), Ordering::Relaxed);
    }

    /// How many places are free on a lane.
    #[must_use]
    pub fn free(&self, route: &RouteId, purpose: Purpose) -> usize {
        self.lane(route).places(purpose).free()
    }

    /// Takes a place, if one is free.
    #[must_use]
    pub fn enter(&self, route: &RouteId, purpose: Purpose) -> Option<Place> {
        self.lane(route).places(purpose).enter()
    }

    /// Whether something may be sent over a route now; how long to wait if not. Whoever is let
    /// through a half-open breaker is the one that tries it.
    ///
    /// # Errors
    /// For how long it is left alone.
    pub fn admit(&self, route: &RouteId) -> Result<(), Duration> {
        let lane = self.lane(route);
        let mut breaker = lane.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.admit(Instant::now())
    }

    /// For how long a network has asked not to be asked anything at all.
    #[must_use]
    pub fn patience(&self, route: &RouteId) -> Option<Duration> {
        let lane = self.lane(route);
        let breaker = lane.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        breaker.patience(Instant::now())
    }

    /// Takes note of how a call went.
    pub fn note(&self, route: &RouteId, reached: Reached) {
        let lane = self.lane(route);
        let mut breaker = lane.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, was_open) = (Instant::now(), breaker.until.is_some());
        breaker.note(reached, now);
        match (was_open, breaker.health(now)) {
            (false, Health::Open(pause)) => {
                let (failures, pause) = (breaker.failures, pause.as_secs());
                tracing::warn!(route.id = %route, failures, pause, "a route is left alone");
            }
            (true, Health::Closed) => tracing::info!(route.id = %route, "a route is used again"),
            _ => {}
        }
    }

    /// How a lane stands, and how many failures in a row there were.
    #[must_use]
    pub fn health(&self, route: &RouteId) -> (Health, u32) {
        let lane = self.lane(route);
        let breaker = lane.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        (breaker.health(Instant::now()), breaker.failures)
    }
}

impl Lane {
    const fn places(&self, purpose: Purpose) -> &Places {
        match purpose {
            Purpose::Send => &self.sending,
            Purpose::Ask => &self.asking,
        }
    }
}

impl Places {
    fn new(count: usize) -> Self {
        let (all, most) = (Arc::new(Semaphore::new(count)), AtomicUsize::new(usize::MAX));
        Self { all, count, most }
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed).clamp(1, self.count)
    }

    fn taken(&self) -> usize {
        self.count - self.all.available_permits()
    }

    fn free(&self) -> usize {
        self.most().saturating_sub(self.taken())
    }

    fn enter(&self) -> Option<Place> {
        let place = Arc::clone(&self.all).try_acquire_owned().ok()?;
        // Counted with this one.
        (self.taken() <= self.most()).then_some(Place(place))
    }
}

/// Counts failures in a row; see [`Lanes`].
#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    /// Left alone until then.
    until: Option<Instant>,
    /// Until then an answer to what was under way changes nothing about that.
    held_until: Option<Instant>,
    /// It has asked for it: until then it is not even asked about what it has.
    asked_until: Option<Instant>,
    /// Since when somebody tries it.
    trying: Option<Instant>,
}

impl Breaker {
    fn health(&self, now: Instant) -> Health {
        match self.until {
            None => Health::Closed,
            Some(until) if until > now => Health::Open(until - now),
            Some(_) => Health::HalfOpen,
        }
    }

    fn patience(&self, now: Instant) -> Option<Duration> {
        self.asked_until.filter(|until| *until > now).map(|until| until - now)
    }

    fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        match self.health(now) {
            Health::Closed => Ok(()),
            Health::Open(pause) => Err(pause),
            Health::HalfOpen => match self.trying {
                Some(since) if now - since < limits::RAIL_WALL_MAX => Err(limits::BREAKER_PAUSE.0),
                _ => {
                    self.trying = Some(now);
                    Ok(())
                }
            },
        }
    }

    fn hold(&mut self, until: Instant) {
        self.held_until = self.held_until.max(Some(until));
        self.until = self.until.max(self.held_until);
    }

    fn fail(&mut self, now: Instant, (least, most): (Duration, Duration)) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= limits::BREAKER_FAILURES {
            let doubled = (self.failures - limits::BREAKER_FAILURES).min(8);
            let until = now + (least * (1 << doubled)).min(most);
            self.until = self.held_until.max(Some(until));
        }
    }

    fn note(&mut self, reached: Reached, now: Instant) {
        self.trying = None;
        match reached {
            Reached::Yes => {
                let [until, asked_until] = [self.held_until, self.asked_until]
                    .map(|until| until.filter(|until| *until > now));
                *self = Self { until, held_until: until, asked_until, ..Self::default() };
            }
            Reached::Unasked => {}
            Reached::RefusesUs(pause) => self.hold(now + pause),
            Reached::Throttled(pause) => {
                let until = now + pause.min(limits::PATIENCE_MAX);
                self.hold(until);
                self.asked_until = self.asked_until.max(Some(until));
            }
            Reached::No => self.fail(now, limits::BREAKER_PAUSE),
            Reached::Absent => self.fail(now, limits::BREAKER_PAUSE_ABSENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_no_more_places_than_its_network_can_serve() {
        let (lanes, route) = (
            Lanes::new(16),
            RouteId::first_at(
                crate::clock::Moment::parse("2026-01-01T00:00:00Z").expect("an instant"),
            ),
        );
        let taken: Vec<_> =
            std::iter::from_fn(|| lanes.enter(&route, Purpose::Send)).take(17).collect();
        assert_eq!((taken.len(), lanes.free(&route, Purpose::Ask)), (16, 4));
        lanes.fit(&route, Some(3));
        drop(taken);
        let free = |purpose| lanes.free(&route, purpose);
        assert_eq!((free(Purpose::Send), free(Purpose::Ask)), (3, 2));
        let mut taken: Vec<_> =
            std::iter::from_fn(|| lanes.enter(&route, Purpose::Send)).take(9).collect();
        assert_eq!((taken.len(), free(Purpose::Send)), (3, 0));
        lanes.fit(&route, None);
        taken.extend(lanes.enter(&route, Purpose::Send));
        assert_eq!((taken.len(), free(Purpose::Send)), (4, 12));
    }

    fn failing(times: u32, now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        (0..times).for_each(|_| breaker.note(Reached::No, now));
        breaker
    }

    #[test]
    fn a_breaker_opens_after_failures_in_a_row_and_lets_one_call_try() {
        let now = Instant::now();
        assert_eq!(failing(limits::BREAKER_FAILURES - 1, now).admit(now), Ok(()));
        let mut breaker = failing(limits::BREAKER_FAILURES, now);
        let pause = breaker.admit(now).expect_err("open");
        let later = now + pause;
        assert_eq!(breaker.admit(later), Ok(()), "one tries");
        assert!(breaker.admit(later).is_err(), "the others wait for it");
        breaker.note(Reached::No, later);
        assert!(breaker.admit(later).expect_err("open again") > pause, "for longer");
        breaker.note(Reached::Yes, later);
        assert_eq!((breaker.admit(later), breaker.failures), (Ok(()), 0));
    }

    /// Whoever tries one that is not there risks nothing: it is used again soon after it is back.
    #[test]
    fn a_network_that_is_not_there_is_tried_more_often_than_one_that_fails() {
        let now = Instant::now();
        let after = |reached, times| {
            let mut breaker = Breaker::default();
            (0..times).for_each(|_| breaker.note(reached, now));
            breaker.admit(now)
        };
        assert_eq!(after(Reached::Absent, limits::BREAKER_FAILURES - 1), Ok(()));
        assert_eq!(after(Reached::No, 99), Err(limits::BREAKER_PAUSE.1));
        assert_eq!(after(Reached::Absent, 99), Err(limits::BREAKER_PAUSE_ABSENT.1));
        assert!(limits::BREAKER_PAUSE_ABSENT.1 < limits::BREAKER_PAUSE.1);
    }

    #[test]
    fn a_network_that_asks_for_patience_is_given_some() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        breaker.note(Reached::Throttled(Duration::from_secs(7)), now);
        assert_eq!(breaker.admit(now), Err(Duration::from_secs(7)));
        assert_eq!(breaker.admit(now + Duration::from_secs(7)), Ok(()));
        // Nor is it asked about what it has; and what was under way does not change that.
        assert_eq!(breaker.patience(now), Some(Duration::from_secs(7)));
        breaker.note(Reached::Yes, now);
        assert!(breaker.admit(now).is_err() && breaker.patience(now).is_some());
        breaker.note(Reached::Yes, now + Duration::from_secs(7));
        assert!(breaker.admit(now).is_ok() && breaker.patience(now).is_none());
        breaker.note(Reached::Throttled(Duration::from_secs(86_400)), now);
        assert_eq!(breaker.admit(now), Err(limits::PATIENCE_MAX));
        // Who refuses us may be asked about what it has.
        let mut refusing = Breaker::default();
        refusing.note(Reached::RefusesUs(Duration::from_secs(60)), now);
        assert!(refusing.admit(now).is_err() && refusing.patience(now).is_none());
        refusing.note(Reached::Yes, now);
        assert!(refusing.admit(now).is_err(), "its answer to a question changes nothing");
    }

    /// What was under way when it said so may still fail.
    #[test]
    fn failures_do_not_shorten_what_a_network_asked_for() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        breaker.note(Reached::Throttled(Duration::from_secs(600)), now);
        for _ in 0..limits::BREAKER_FAILURES {
            breaker.note(Reached::No, now);
        }
        assert_eq!(breaker.admit(now), Err(Duration::from_secs(600)));
    }

    #[test]
    fn whoever_tried_and_never_came_back_is_not_waited_for_for_ever() {
        let now = Instant::now();
        let mut breaker = failing(limits::BREAKER_FAILURES, now);
        let later = now + breaker.admit(now).expect_err("open");
        assert_eq!(breaker.admit(later), Ok(()));
        assert_eq!(breaker.admit(later + limits::RAIL_WALL_MAX), Ok(()));
    }
}
