//! What no route takes now, and when it is looked at again.
//!
//! Everything is looked at once when it is queued: another route may take it. Of what waits then for
//! a network that is gone, a route that is paused or a wallet that is frozen, a few of each merchant
//! in a lane are scouts: they are looked at again soon. The others are parked, so that a backlog costs
//! next to nothing. When something of the merchant in that lane has had an answer, what is parked is
//! due a moment later. Each host keeps count for itself; what a host has parked and forgotten is due
//! by itself after a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Db, Engine};
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

    /// Something of a merchant in a lane has had an answer: how soon what is parked there is to be made
    /// due, if anything is and nobody does it already. Whoever parks something at this moment has
    /// written that down by then.
    fn wakes_after(&self, (lane, merchant): (&RouteId, &str), now: Moment) -> Option<Duration> {
        let mut spots = self.spots();
        if spots.is_empty() {
            return None;
        }
        let spot = spots.get_mut(&(lane.clone(), merchant.to_owned())).filter(|it| it.is_taken)?;
        let rest = spot.woken_at.map(|at| limits::WAKE_EVERY.saturating_sub(now.since(at)));
        let wait = rest.unwrap_or_default().max(limits::WAKE_AFTER);
        (spot.is_taken, spot.woken_at) = (false, Some(now.after(wait)));
        Some(wait)
    }

    /// What is parked could not be made due.
    fn still_taken(&self, (lane, merchant): (&RouteId, &str)) {
        if let Some(spot) = self.spots().get_mut(&(lane.clone(), merchant.to_owned())) {
            spot.is_taken = true;
        }
    }

    fn spots(&self) -> MutexGuard<'_, HashMap<(RouteId, String), Spot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Feature> Carry<'_, F> {
    /// How long what no route takes now waits, where it would be looked at again after `pause`. What
    /// goes by file is not parked: a window does not wait for it.
    pub(super) async fn parked(&self, pause: Duration) -> Duration {
        let (engine, lane) = (self.engine, &self.claim.route_id);
        match engine.routes.get(lane).await {
            Ok(route) if route.goes_by_file() => pause,
            _ => engine.parked.pause((lane, self.order.merchant_id.as_str()), pause, engine.now()),
        }
    }

    /// Something of the merchant in this lane has had an answer: what is parked there may have one,
    /// too.
    pub(super) fn wake_parked(&self) {
        let (lane, merchant) = (self.claim.route_id.clone(), self.order.merchant_id.to_string());
        let (engine, now) = (self.engine.clone(), self.engine.now());
        let Some(wait) = engine.parked.wakes_after((&lane, &merchant), now) else { return };
        self.engine.tasks.spawn(async move {
            tokio::select! {
                // It is due by itself after a while.
                () = engine.stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            match wake_parked(&engine.db, (&lane, &merchant), engine.now()).await {
                Ok(()) => engine.wake(),
                Err(cause) => {
                    tracing::warn!(%cause, route.id = %lane, "waking what waits");
                    engine.parked.still_taken((&lane, &merchant));
                }
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
    // What is put off for longer, or has been tried, waits for something else. Nobody is waited for:
    // who has a row is at it.
    let lock = if db.engine() == Engine::Postgres { "FOR UPDATE SKIP LOCKED" } else { "" };
    let sql = format!(
        "UPDATE transfers SET due_at = $1 WHERE id IN (SELECT id FROM transfers \
         WHERE route_id = $2 AND stage = 'queued' AND merchant_id = $3 AND due_at > $1 \
         AND due_at <= $4 AND tries = 0 ORDER BY due_at LIMIT $5 {lock})"
    );
    loop {
        let mut tx = db.write().await?;
        let query = sqlx::query(sqlx::AssertSqlSafe(sql.as_str()))
            .bind(now.micros())
            .bind(lane.as_str())
            .bind(merchant);
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
        let wakes = |lane, merchant, now| parked.wakes_after((lane, merchant), now);
        assert_eq!((wakes(&lane, "m2", later), wakes(&other, "m1", later)), (None, None));
        assert_eq!(wakes(&lane, "m1", later), Some(limits::WAKE_AFTER));
        assert_eq!(wakes(&lane, "m1", later), None, "it is being woken");
        // One that goes on while another waits wakes it now and then, and never not at all.
        let woken = later.after(limits::WAKE_AFTER);
        assert_eq!(pause(&lane, "m1", later), limits::PARKED_FOR);
        assert_eq!(wakes(&lane, "m1", woken), Some(limits::WAKE_EVERY));
        parked.still_taken((&lane, "m1"));
        let much_later = woken.after(limits::WAKE_EVERY * 3);
        assert_eq!(wakes(&lane, "m1", much_later), Some(limits::WAKE_AFTER));
    }
}
