//! How a route was set when something was sent over it.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::db::Written;
use crate::id::RouteId;
use crate::keyring::Keyring;

use super::ready::ReadyRoute;

/// How a route was set, and by which version of its rail, for ever: very many attempts name the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteConfiguration {
    /// Follows from the rest.
    pub id: String,
    /// The route.
    pub route_id: RouteId,
    /// The rail's version.
    pub rail_version: String,
    /// SHA-256 of the rail's file.
    pub rail_digest: String,
    /// What the route was configured to: address and settings, then credentials, each as a keyed
    /// hash. Another gateway's "never received" proves nothing.
    pub fingerprint: String,
}

impl RouteConfiguration {
    fn of(ready: &ReadyRoute, keyring: &Keyring) -> Self {
        let mut configuration = Self {
            id: String::new(),
            route_id: ready.route.id.clone(),
            rail_version: ready.rail.declaration.rail.version.clone(),
            rail_digest: ready.rail.digest.clone(),
            fingerprint: ready.fingerprints(keyring)[0].clone(),
        };
        configuration.id = configuration.derived_id();
        configuration
    }

    /// Whether it is there, and nobody has changed it since.
    #[must_use]
    pub fn is_genuine(&self) -> bool {
        self.id == self.derived_id()
    }

    fn derived_id(&self) -> String {
        let Self { route_id, rail_version, rail_digest, fingerprint, .. } = self;
        let all = format!("{}\n{rail_version}\n{rail_digest}\n{fingerprint}", route_id.as_str());
        BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(all)[..12])
    }
}

/// A route's configuration, and whether the database has it.
#[derive(Default)]
pub(super) struct Configured {
    configuration: OnceLock<Arc<RouteConfiguration>>,
    written: Written,
}

impl ReadyRoute {
    /// How it is set now.
    pub fn configuration(&self, keyring: &Keyring) -> Arc<RouteConfiguration> {
        let made = || Arc::new(RouteConfiguration::of(self, keyring));
        Arc::clone(self.configured.configuration.get_or_init(made))
    }

    /// Whether the database has that. Otherwise it goes with whatever names it.
    #[must_use]
    pub const fn written(&self) -> &Written {
        &self.configured.written
    }
}
