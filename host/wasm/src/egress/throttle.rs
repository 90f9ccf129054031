//! How fast a network is asked: calls are spread evenly, in the order in which they came, and so
//! many are under way at once.
//!
//! The slots are handed out here because they are promises to whoever came first; a limiter that
//! only says yes or no lets whoever asks again overtake.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::config::limits;

/// What a call is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errand {
    /// A payment: sending it, or asking about it.
    #[default]
    Payment,
    /// A question that somebody waits for and may put again. Together they take half of what the
    /// network allows at most, and do not wait long.
    Enquiry,
}

/// How much a network allows; nothing where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Calls that begin within a second.
    pub per_second: Option<u32>,
    /// Calls under way.
    pub at_once: Option<u32>,
}

/// The throttle of a route.
pub struct Throttle {
    /// What it keeps to.
    pub pace: Pace,
    /// The next free slots.
    next: Mutex<Next>,
    places: Option<Places>,
}

struct Next {
    of_all: Instant,
    of_enquiries: Instant,
}

struct Places {
    all: Semaphore,
    for_enquiries: Semaphore,
}

/// The place of a call that is under way.
#[derive(Debug)]
pub(super) struct Turn<'a>(
    #[expect(dead_code, reason = "held, and given back")] [Option<SemaphorePermit<'a>>; 2],
);

impl Throttle {
    /// A throttle that keeps to a pace, if there is anything to keep to.
    #[must_use]
    pub fn new(pace: Pace) -> Option<Self> {
        if pace == Pace::default() {
            return None;
        }
        let now = Instant::now();
        let places = pace.at_once.map(|at_once| {
            let at_once = usize::try_from(at_once.max(1)).unwrap_or(Semaphore::MAX_PERMITS);
            let for_enquiries = Semaphore::new((at_once / 2).max(1));
            Places { all: Semaphore::new(at_once), for_enquiries }
        });
        Some(Self { pace, next: Mutex::new(Next { of_all: now, of_enquiries: now }), places })
    }

    /// How many payments it is worth having under way: more only wait here.
    #[must_use]
    pub fn payments_max(&self) -> usize {
        let Pace { per_second, at_once } = self.pace;
        let least = per_second.into_iter().chain(at_once).min().unwrap_or(u32::MAX);
        usize::try_from(least).unwrap_or(usize::MAX)
    }

    /// How many enquiries have a chance to be answered before whoever waits gives up.
    #[must_use]
    pub fn enquiries_max(&self) -> usize {
        let wait = limits::THROTTLE_ENQUIRY_WAIT_MAX.as_secs();
        let in_time = self.pace.per_second.map(|most| u64::from(most) * wait / 2 + 1);
        let least = in_time.unwrap_or(u64::MAX);
        usize::try_from(least).unwrap_or(usize::MAX)
    }

    /// Waits until a call may be made.
    ///
    /// # Errors
    /// It would take too long.
    pub(super) async fn enter(&self, errand: Errand) -> Result<Turn<'_>, String> {
        let wait_max = match errand {
            Errand::Payment => limits::THROTTLE_WAIT_MAX,
            Errand::Enquiry => limits::THROTTLE_ENQUIRY_WAIT_MAX,
        };
        let last = Instant::now() + wait_max;
        let entering = tokio::time::timeout_at(last, self.places(errand)).await;
        let turn = entering.map_err(|_| self.too_busy())?;
        if let Some(per_second) = self.pace.per_second {
            let spacing = Duration::from_secs(1) / per_second.max(1);
            if errand == Errand::Enquiry {
                self.slot(|next| &mut next.of_enquiries, (2 * spacing, last)).await?;
            }
            self.slot(|next| &mut next.of_all, (spacing, last)).await?;
        }
        Ok(turn)
    }

    async fn places(&self, errand: Errand) -> Turn<'_> {
        let Some(places) = &self.places else { return Turn([None, None]) };
        let own = match errand {
            Errand::Payment => None,
            Errand::Enquiry => places.for_enquiries.acquire().await.ok(),
        };
        Turn([own, places.all.acquire().await.ok()])
    }

    /// Takes the next slot, which is nobody else's from then on, and waits for it.
    async fn slot(
        &self,
        of: impl Fn(&mut Next) -> &mut Instant,
        (spacing, last): (Duration, Instant),
    ) -> Result<(), String> {
        let slot = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let next = of(&mut next);
            let slot = (*next).max(Instant::now());
            if slot > last {
                return Err(self.too_busy());
            }
            *next = slot + spacing;
            slot
        };
        tokio::time::sleep_until(slot).await;
        Ok(())
    }

    fn too_busy(&self) -> String {
        let Pace { per_second, at_once } = self.pace;
        let most = |count: Option<u32>, of: &str| count.map(|count| format!("{count} {of}"));
        let most = [most(per_second, "calls a second"), most(at_once, "at once")];
        let most = most.into_iter().flatten().collect::<Vec<_>>().join(", ");
        format!("the network allows {most}, and others wait already")
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    fn throttle(per_second: Option<u32>, at_once: Option<u32>) -> Throttle {
        Throttle::new(Pace { per_second, at_once }).expect("a throttle")
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_spread_over_the_second() {
        let (throttle, begun) = (throttle(Some(10), None), Instant::now());
        for call in 0..31 {
            throttle.enter(Errand::Payment).await.expect("a turn");
            assert_eq!(begun.elapsed().as_millis() / 10, call * 10, "call {call}");
        }
        // What was not used is not saved up.
        tokio::time::advance(Duration::from_secs(60)).await;
        let begun = Instant::now();
        for _ in 0..3 {
            throttle.enter(Errand::Payment).await.expect("a turn");
        }
        assert!(begun.elapsed() >= Duration::from_millis(199), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn enquiries_take_half_and_do_not_wait_for_long() {
        let throttle = throttle(Some(10), None);
        let asked = async |errand: Errand| {
            let entering = (0..400).map(|_| throttle.enter(errand));
            let came = join_all(entering).await;
            came.into_iter().filter(Result::is_ok).count()
        };
        // Five a second, for two seconds; the first at once.
        assert_eq!(asked(Errand::Enquiry).await, 11);
        let begun = Instant::now();
        // Payments wait for their slots, as many as there are within their patience.
        let most = usize::try_from(limits::THROTTLE_WAIT_MAX.as_secs()).expect("few") * 10;
        let came = asked(Errand::Payment).await;
        assert!((most - 10..=most + 1).contains(&came), "{came} of {most}");
        assert!(begun.elapsed() <= limits::THROTTLE_WAIT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_under_way_at_once() {
        let throttle = throttle(None, Some(3));
        let first = throttle.enter(Errand::Payment).await.expect("a turn");
        let second = throttle.enter(Errand::Enquiry).await.expect("a turn");
        let third = throttle.enter(Errand::Payment).await.expect("a turn");
        let why = throttle.enter(Errand::Payment).await.expect_err("full");
        assert_eq!(why, "the network allows 3 at once, and others wait already");
        drop(first);
        throttle.enter(Errand::Enquiry).await.expect_err("one enquiry at once");
        drop(second);
        drop(throttle.enter(Errand::Enquiry).await.expect("a turn"));
        drop(third);
        assert_eq!(throttle.payments_max(), 3);
    }
}
