//! How a route was set when something was sent over it.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::db::Db;
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
        configuration.id = configuration.name();
        configuration
    }

    /// Whether nobody has changed it since.
    #[must_use]
    pub fn is_genuine(&self) -> bool {
        self.id == self.name()
    }

    fn name(&self) -> String {
        let Self { route_id, rail_version, rail_digest, fingerprint, .. } = self;
        let all = format!("{}\n{rail_version}\n{rail_digest}\n{fingerprint}", route_id.as_str());
        BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(all)[..12])
    }

    async fn write(&self, db: &Db) -> Result<(), sqlx::Error> {
        let mut tx = db.write().await?;
        let sql = "INSERT INTO route_configurations (id, route_id, rail_version, rail_digest, \
                   fingerprint) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING";
        sqlx::query(sql)
            .bind(&self.id)
            .bind(self.route_id.as_str())
            .bind(&self.rail_version)
            .bind(&self.rail_digest)
            .bind(&self.fingerprint)
            .execute(tx.conn())
            .await?;
        tx.commit().await
    }
}

/// Whether a route's configuration is written down, and how often connections had led to another
/// database when it was: that one may have forgotten it.
#[derive(Default)]
pub(super) struct WrittenDown(Mutex<Option<(u64, Arc<RouteConfiguration>)>>);

impl ReadyRoute {
    /// How it is set now, written down before anything is sent.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn configuration(
        &self,
        db: &Db,
        keyring: &Keyring,
    ) -> Result<Arc<RouteConfiguration>, sqlx::Error> {
        let moves = db.moves();
        let known = self.written_down.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((since, known)) = known
            && since == moves
        {
            return Ok(known);
        }
        let configuration = Arc::new(RouteConfiguration::of(self, keyring));
        configuration.write(db).await?;
        let mut known = self.written_down.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((moves, Arc::clone(&configuration)));
        Ok(configuration)
    }
}
