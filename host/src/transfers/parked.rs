//! What no route takes now, and when it is looked at again.
//!
//! Everything is looked at once when it is queued: another route may take it. Of what waits then for
//! a network that is gone, a route that is paused or a wallet that is frozen, a few of each merchant
//! in a lane are scouts: they are looked at again soon. The others are parked, so that a backlog costs
//! next to nothing. When something of the merchant in that lane has had an answer, what is parked is
//! due at once. Each host keeps count for itself; what a host has parked and forgotten is due by
//! itself after a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::id::RouteId;

use super::carry::Carry;
use super::order::Feature;

/// What waits in vain, of each merchant in each lane.
#[derive(Default)]
pub(super) struct Parked(Mutex<HashMap<(RouteId, String), Spot>>);

struct Spot {
    /// From when on all of its scouts are free again.
    scouts_from: Moment,
    /// Whether anything is parked that is not due yet.
    is_taken: bool,
    /// When what was parked was made due last.
    woken_at: Option<Moment>,
}

impl Parked {
    /// How long something waits that no route takes, where that may change after `pause`.
    pub(super) fn pause(
        &self,
        (lane, merchant): (&RouteId, &str),
        pause: Duration,
        now: Moment,
    ) -> Duration {
        if pause >= limits::PARKED_FOR {
            return pause;
        }
        let mut spots = self.spots();
        if spots.len() >= limits::PARKED_MAX {
            // What is parked is due by itself after a while.
            spots.clear();
        }
        let new = || Spot { scouts_from: now, is_taken: false, woken_at: None };
        let spot = spots.entry((lane.clone(), merchant.to_owned())).or_insert_with(new);
        let from = spot.scouts_from.max(now);
        if from < now.after(limits::SCOUT_EVERY * limits::SCOUTS) {
            spot.scouts_from = from.after(limits::SCOUT_EVERY);
            return pause;
        }
        spot.is_taken = true;
        limits::PARKED_FOR
    }

    /// Something of a merchant in a lane has had an answer; whether what is parked there is to be made
    /// due.
    pub(super) fn wakes(&self, (lane, merchant): (&RouteId, &str), now: Moment) -> bool {
        let mut spots = self.spots();
        if spots.is_empty() {
            return false;
        }
        let Some(spot) = spots.get_mut(&(lane.clone(), merchant.to_owned())) else { return false };
        let was_just_woken = spot.woken_at.is_some_and(|at| now.since(at) < limits::WAKE_EVERY);
        if !spot.is_taken || was_just_woken {
            return false;
        }
        (spot.is_taken, spot.woken_at) = (false, Some(now));
        true
    }

    fn spots(&self) -> MutexGuard<'_, HashMap<(RouteId, String), Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Feature> Carry<'_, F> {
    /// How long what no route takes now waits, where it would be looked at again after `pause`.
    pub(super) fn parked(&self, pause: Duration) -> Duration {
        let place = (&self.claim.route_id, self.order.merchant_id.as_str());
        self.engine.parked.pause(place, pause, self.engine.now())
    }

    /// Something of the merchant in this lane has had an answer: what is parked there may have one,
    /// too.
    pub(super) fn wake_parked(&self) {
        let (lane, merchant) = (self.claim.route_id.clone(), self.order.merchant_id.to_string());
        if !self.engine.parked.wakes((&lane, &merchant), self.engine.now()) {
            return;
        }
        let engine = self.engine.clone();
        self.engine.tasks.spawn(async move {
            let woken = wake_parked(&engine.db, (&lane, &merchant), engine.now()).await;
            match woken {
                Ok(()) => engine.wake(),
                // It is due by itself after a while.
                Err(cause) => tracing::warn!(%cause, route.id = %lane, "waking what waits"),
            }
        });
    }
}

/// Makes due what is parked of a merchant in a lane, in portions.
///
/// # Errors
/// The database cannot be written.
async fn wake_parked(
    db: &Db,
    (lane, merchant): (&RouteId, &str),
    now: Moment,
) -> Result<(), sqlx::Error> {
    const PORTION: i64 = 1_000;
    // What is put off for longer, or has been tried, waits for something else.
    let sql = "UPDATE transfers SET due_at = $1 WHERE id IN (SELECT id FROM transfers \
               WHERE route_id = $2 AND stage = 'queued' AND merchant_id = $3 AND due_at > $1 \
               AND due_at <= $4 AND tries = 0 LIMIT $5)";
    loop {
        let mut tx = db.write().await?;
        let query = sqlx::query(sql).bind(now.micros()).bind(lane.as_str()).bind(merchant);
        let query = query.bind(now.after(limits::PARKED_FOR).micros()).bind(PORTION);
        let woken = query.execute(tx.conn()).await?.rows_affected();
        tx.commit().await?;
        if woken < PORTION.unsigned_abs() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id as _;

    #[test]
    fn some_of_each_merchant_are_looked_at_soon_and_the_others_once_one_has_got_on() {
        let (parked, now) = (Parked::default(), Moment::from_micros(0));
        let [lane, other] = ["rt_1", "rt_2"].map(|id| RouteId::from_text(id.to_owned()));
        let soon = Duration::from_secs(30);
        let pause = |lane, merchant, now| parked.pause((lane, merchant), soon, now);
        let scouts = usize::try_from(limits::SCOUTS).expect("small");
        let waits: Vec<_> = (0..scouts + 100).map(|_| pause(&lane, "m1", now)).collect();
        assert_eq!(waits.iter().filter(|wait| **wait == soon).count(), scouts);
        assert_eq!(waits.last(), Some(&limits::PARKED_FOR));
        // It is nobody else's matter, and later there are scouts again.
        assert_eq!((pause(&lane, "m2", now), pause(&other, "m1", now)), (soon, soon));
        let later = now.after(limits::SCOUT_EVERY);
        assert_eq!(
            (pause(&lane, "m1", later), pause(&lane, "m1", later)),
            (soon, limits::PARKED_FOR)
        );
        // What waits for longer by itself is not parked.
        let long = limits::PARKED_FOR * 2;
        assert_eq!(parked.pause((&lane, "m1"), long, now), long);
        let wakes = |lane, merchant, now| parked.wakes((lane, merchant), now);
        assert!(!wakes(&lane, "m2", later) && !wakes(&other, "m1", later));
        assert!(wakes(&lane, "m1", later) && !wakes(&lane, "m1", later), "once");
        // One that goes on while another waits does not wake it again and again.
        assert_eq!(pause(&lane, "m1", later), limits::PARKED_FOR);
        assert!(!wakes(&lane, "m1", later));
        assert!(wakes(&lane, "m1", later.after(limits::WAKE_EVERY)));
    }
}
