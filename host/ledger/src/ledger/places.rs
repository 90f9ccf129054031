//! How many batches of requests are under way at once: as many as there are lanes for them, and one
//! fewer while work is written down. Whoever waits has a fuller batch then: what a batch costs by
//! itself is a good part of what its commands cost. Work waits for no place, so that for a moment
//! there may be one batch more than lanes for requests. Nothing but the size of batches rests on
//! it: who has waited for a while goes ahead, as one lane may be held up by somebody's lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Queue, Notify};
use tokio::time::timeout;

use crate::config::limits;
use crate::db::Engine;

/// Places for the batches of a host.
pub(super) struct Places {
    most: usize,
    taken: Mutex<Taken>,
    one_is_free: Notify,
    /// Requests that wait do so one after the other: a lane that has just given its place back does
    /// not have it again before them.
    queue: Queue<()>,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    by_requests: usize,
    by_work: usize,
}

/// What a lane's batches hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Requests: they wait for a place.
    Requests,
    /// Work: it waits for no place, and requests make room for it.
    Work,
}

impl Places {
    /// Places for this many batches at once.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
            one_is_free: Notify::new(),
            queue: Queue::default(),
        })
    }

    /// A place for a batch of this kind.
    pub(super) async fn take(self: &Arc<Self>, kind: Kind) -> Place {
        let _first = match kind {
            Kind::Work => None,
            Kind::Requests => {
                let first = self.queue.lock().await;
                let _ = timeout(limits::PLACE_WAIT_MAX, self.until_one_is_free()).await;
                Some(first)
            }
        };
        let mut taken = self.taken();
        match kind {
            Kind::Work => taken.by_work += 1,
            Kind::Requests => taken.by_requests += 1,
        }
        Place { of: Arc::clone(self), kind }
    }

    /// How long after its beginning a batch of many commands that took so long is followed by the
    /// next one of its lane.
    pub(super) fn pace(&self, kind: Kind, took: Duration, engine: Engine) -> Duration {
        let has_work = self.taken().by_work > 0;
        match engine {
            Engine::Postgres if kind == Kind::Requests && !has_work => Duration::ZERO,
            Engine::Postgres => (2 * took).min(limits::BATCH_EVERY_MAX),
            Engine::Sqlite => (2 * took).min(limits::BATCH_EVERY_MAX_EMBEDDED),
        }
    }

    /// Until there is room for one more batch of requests. There always is for one.
    async fn until_one_is_free(&self) {
        loop {
            let freed = self.one_is_free.notified();
            let Taken { by_requests, by_work } = *self.taken();
            if by_requests < self.most.saturating_sub(by_work).max(1) {
                return;
            }
            freed.await;
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken, until this is dropped.
pub(super) struct Place {
    of: Arc<Places>,
    kind: Kind,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        match self.kind {
            Kind::Work => taken.by_work -= 1,
            Kind::Requests => taken.by_requests -= 1,
        }
        drop(taken);
        self.of.one_is_free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn try_take(places: &Arc<Places>, kind: Kind) -> Option<Place> {
        places.take(kind).now_or_never()
    }

    #[tokio::test]
    async fn requests_make_room_for_work_and_work_waits_for_nobody() {
        let places = Places::new(2);
        let first = try_take(&places, Kind::Requests).expect("a place");
        let second = try_take(&places, Kind::Requests).expect("another one");
        assert!(try_take(&places, Kind::Requests).is_none(), "there are two");
        let work = try_take(&places, Kind::Work).expect("at once");
        drop(first);
        assert!(try_take(&places, Kind::Requests).is_none(), "work has it");
        drop(second);
        let third = try_take(&places, Kind::Requests).expect("one there always is");
        let waits = tokio::spawn({
            let places = Arc::clone(&places);
            async move { drop(places.take(Kind::Requests).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(work);
        waits.await.expect("work left it its place");
        drop(third);
        let Taken { by_requests, by_work } = *places.taken();
        assert_eq!((by_requests, by_work), (0, 0));
    }

    #[tokio::test]
    async fn the_next_batch_waits_for_as_long_as_the_last_one_took_and_not_for_long() {
        let places = Places::new(2);
        let pace = |kind, took, engine| {
            let pace = places.pace(kind, Duration::from_millis(took), engine);
            pace.as_millis()
        };
        let (requests, postgres) = (Kind::Requests, Engine::Postgres);
        assert_eq!(pace(requests, 20, postgres), 0, "nothing else is written down");
        assert_eq!(pace(Kind::Work, 2, postgres), 4);
        let work = try_take(&places, Kind::Work).expect("at once");
        assert_eq!([2, 20].map(|took| pace(requests, took, postgres)), [4, 10]);
        assert_eq!([1, 20].map(|took| pace(requests, took, Engine::Sqlite)), [2, 3]);
        drop(work);
        assert_eq!(pace(requests, 2, postgres), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_waited_for_a_while_goes_ahead() {
        let places = Places::new(1);
        let held_up = try_take(&places, Kind::Requests).expect("a place");
        assert!(try_take(&places, Kind::Requests).is_none());
        let ahead = places.take(Kind::Requests).await;
        assert_eq!(places.taken().by_requests, 2);
        drop((held_up, ahead));
    }

    #[tokio::test]
    async fn a_lane_does_not_overtake_the_one_that_waits() {
        let places = Places::new(1);
        let first = try_take(&places, Kind::Requests).expect("a place");
        let waits = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.take(Kind::Requests).await }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(try_take(&places, Kind::Requests).is_none(), "it waits before");
        drop(waits.await.expect("a place"));
        assert!(try_take(&places, Kind::Requests).is_some());
    }
}
