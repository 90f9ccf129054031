//! The loop that claims what is due, lane by lane, and has it carried.

use std::sync::PoisonError;

use crate::config::limits;
use crate::db;
use crate::env::Env;
use crate::error::ErrorCode;
use crate::id::RouteId;

use super::Transfers;
use super::lanes::{Place, Purpose};
use super::order::Feature;
use super::work::{self, Claim, Due, Stage};

impl Transfers {
    /// Carries what is due until the host is told to stop: as much of each route at once as it
    /// has places.
    pub async fn dispatch<F: Feature>(self, feature: F) {
        let mut next = tokio::time::Instant::now();
        while !self.stopping.is_cancelled() {
            // A round serves many: what comes free in the meantime is claimed together.
            tokio::time::sleep_until(next).await;
            next = tokio::time::Instant::now() + limits::DISPATCH_EVERY;
            let claimed = match db::in_time(work::list_routes_with_work(self.db.pool())).await {
                Ok(routes) => self.claim_all(&feature, &routes).await,
                Err(cause) => {
                    tracing::warn!(%cause, "looking for work");
                    0
                }
            };
            if claimed > 0 {
                continue;
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(limits::DISPATCH_POLL) => {}
            }
        }
    }

    /// Claims and begins what is due on these routes; answers how much that was.
    async fn claim_all<F: Feature>(&self, feature: &F, routes: &[RouteId]) -> usize {
        let mut claimed = 0;
        for route in routes {
            for (stage, purpose) in [(Stage::Sent, Purpose::Ask), (Stage::Queued, Purpose::Send)] {
                let wanted = self.lanes.free(route, purpose).min(limits::CLAIM_MAX);
                if wanted == 0 || (stage == Stage::Queued && self.is_shut(route).await) {
                    continue;
                }
                match db::in_time(self.claim_due(route, stage, wanted)).await {
                    Ok(claims) => {
                        claimed += claims.len();
                        let placed = claims.into_iter();
                        let placed =
                            placed.map(|claim| (claim, self.lanes.enter(route, purpose))).collect();
                        self.begin_all(feature, placed).await;
                    }
                    Err(cause) => tracing::warn!(%cause, route.id = %route, "claiming work"),
                }
            }
        }
        claimed
    }

    /// Whether nothing new is sent over a route from here.
    async fn is_shut(&self, route: &RouteId) -> bool {
        let Ok(ready) = self.routes.get(route).await else { return false };
        ready.route.env == Env::Live && self.quarantine.is_closed()
    }

    async fn claim_due(
        &self,
        route: &RouteId,
        stage: Stage,
        wanted: usize,
    ) -> Result<Vec<Claim>, sqlx::Error> {
        let key = format!("{route}/{}", stage.as_str());
        let after = {
            let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.get(&key).cloned().unwrap_or_default()
        };
        let due = Due { route, stage, now: self.now(), after: &after };
        let (claims, last) = work::claim_due(&self.db, due, (limits::LEASE, wanted)).await?;
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.insert(key, last);
        Ok(claims)
    }

    /// Reads the objects of claimed work together, and has each carried by a task of its own.
    async fn begin_all<F: Feature>(&self, feature: &F, placed: Vec<(Claim, Option<Place>)>) {
        let ids: Vec<String> = placed.iter().map(|(claim, _)| claim.id.clone()).collect();
        if ids.is_empty() {
            return;
        }
        let mut objects = match db::in_time(feature.load_all(&ids)).await {
            Ok(objects) => objects,
            Err(cause) => {
                // Their leases run out by themselves.
                tracing::warn!(%cause, claims = ids.len(), "reading what was claimed");
                return;
            }
        };
        for (claim, place) in placed {
            let object = objects.remove(&claim.id);
            self.begin_work(feature.clone(), (claim, object), place);
        }
    }

    fn begin_work<F: Feature>(
        &self,
        feature: F,
        (claim, object): (Claim, Option<F::Object>),
        place: Option<Place>,
    ) {
        let engine = self.clone();
        self.tasks.spawn(async move {
            let id = claim.id.clone();
            match engine.carry(&feature, claim, object).await {
                // Somebody else changed it first: nothing is left to do here.
                Err(problem) if problem.code() == ErrorCode::StateConflict => {}
                Err(problem) => tracing::error!(transfer.id = id, %problem, "carrying a payment"),
                Ok(()) => {}
            }
            drop(place);
            engine.wake();
        });
    }
}
