//! Which routes may take a payment, and in which order.

use std::sync::Arc;

use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{MerchantId, RouteId};
use crate::money::{Currency, Minor};

use super::bounds::Bounds;
use super::ready::ReadyRoute;
use super::route::Routes;

impl Routes {
    /// Whether a route is of the rail that checks recipients of its method.
    #[must_use]
    pub fn is_at_home(&self, route: &ReadyRoute) -> bool {
        let home = self.rails.home(route.route.currency, &route.route.method);
        home.is_some_and(|home| home.declaration.rail.name == route.route.rail)
    }

    /// Whether another rail than the one that checks recipients of its method means the same by a
    /// recipient.
    #[must_use]
    pub fn means_the_same(&self, route: &ReadyRoute) -> bool {
        let (currency, method) = (route.route.currency, route.route.method.as_str());
        let Some(home) = self.rails.home(currency, method) else { return false };
        let (own, other) = (&home.declaration.recipient, &route.rail.declaration.recipient);
        (&own.shape, &own.identity) == (&other.shape, &other.identity)
    }

    /// The routes that may take a payout, in order, at least one.
    ///
    /// # Errors
    /// `routing_failed` where there is no route, `provider_not_entitled` where there is none
    /// for this merchant, `provider_paused` where all are paused, `rail_not_configured` where
    /// none is configured.
    pub async fn candidates(
        &self,
        (currency, method, env): (Currency, &str, Env),
        merchant: &MerchantId,
    ) -> Result<Vec<Arc<ReadyRoute>>, Problem> {
        let all = self.all().await?;
        let serving = |ready: &&Arc<ReadyRoute>| {
            let route = &ready.route;
            (route.currency, route.method.as_str(), route.env) == (currency, method, env)
        };
        let mut routes: Vec<_> = all.iter().filter(serving).cloned().collect();
        let narrowed = |routes: &mut Vec<Arc<ReadyRoute>>,
                        keep: &dyn Fn(&ReadyRoute) -> bool,
                        code: ErrorCode| {
            routes.retain(|ready| keep(ready));
            if routes.is_empty() { Err(Problem::new(code)) } else { Ok(()) }
        };
        let entitled = |ready: &ReadyRoute| {
            ready.route.merchants.is_empty() || ready.route.merchants.contains(merchant)
        };
        narrowed(&mut routes, &|_| true, ErrorCode::RoutingFailed)?;
        narrowed(&mut routes, &entitled, ErrorCode::ProviderNotEntitled)?;
        narrowed(&mut routes, &|ready| !ready.route.is_paused, ErrorCode::ProviderPaused)?;
        let lacking = routes[0].missing.clone();
        narrowed(&mut routes, &|ready| ready.missing.is_none(), ErrorCode::RailNotConfigured)
            .map_err(|problem| problem.caused_by(lacking.unwrap_or_default()))?;
        Ok(routes)
    }

    /// Those of them that take this amount, at least one.
    ///
    /// # Errors
    /// As of [`Routes::candidates`], and `limit_violation` where none takes it.
    pub async fn carriers(
        &self,
        wanted: (Currency, &str, Env),
        merchant: &MerchantId,
        amount: Minor,
    ) -> Result<Vec<Arc<ReadyRoute>>, Problem> {
        let mut routes = self.candidates(wanted, merchant).await?;
        let bounds: Vec<Bounds> = routes.iter().map(|ready| ready.bounds).collect();
        routes.retain(|ready| ready.bounds.take(amount));
        if routes.is_empty() { Err(Bounds::refusal(&bounds, amount)) } else { Ok(routes) }
    }

    /// The route in whose lane a new payment waits: the one that would take it now, or else the
    /// first that serves it at all.
    ///
    /// # Errors
    /// `routing_failed` where there is none; the database cannot be read.
    pub async fn lane(
        &self,
        (currency, method, env): (Currency, &str, Env),
        merchant: &MerchantId,
        amount: Minor,
    ) -> Result<RouteId, Problem> {
        if let Ok(routes) = self.carriers((currency, method, env), merchant, amount).await {
            return Ok(routes[0].route.id.clone());
        }
        let all = self.all().await?;
        let found = all.iter().find(|ready| {
            let route = &ready.route;
            (route.currency, route.method.as_str(), route.env) == (currency, method, env)
        });
        let none = || Problem::new(ErrorCode::RoutingFailed);
        found.map(|ready| ready.route.id.clone()).ok_or_else(none)
    }
}
