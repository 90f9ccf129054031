//! Sessions as requests look them up: cached for a second.

use std::sync::Arc;

use moka::future::Cache;

use crate::config::limits;
use crate::db::{self, Db};
use crate::error::Problem;
use crate::keyring::Keyring;

use super::session::SignedIn;
use super::sql;

/// Finds the session behind a token, and its member.
///
/// What was found, or not found, is remembered for [`limits::CACHE_FRESH`]: one that was ended on
/// one host stops working on the others within that time, and on its own host at once.
#[derive(Clone)]
pub struct Sessions {
    db: Db,
    keyring: Arc<Keyring>,
    known: Cache<String, Option<Arc<SignedIn>>>,
}

impl Sessions {
    /// The sessions in this database.
    #[must_use]
    pub fn new(db: Db, keyring: Arc<Keyring>) -> Self {
        let known = Cache::builder()
            .max_capacity(limits::CACHE_ENTRIES_MAX)
            .time_to_live(limits::CACHE_FRESH)
            .build();
        Self { db, keyring, known }
    }

    /// The session whose token this is, whether or not it is still good.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn find(&self, token: &str) -> Result<Option<Arc<SignedIn>>, Problem> {
        for hash in self.keyring.api_key_hashes(token) {
            let find = async {
                let found = db::in_time(sql::find_session(self.db.pool(), &hash)).await?;
                Ok::<_, sqlx::Error>(found.map(Arc::new))
            };
            let found = self.known.try_get_with_by_ref(&hash, find).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Forgets what is remembered, after a change on this host.
    pub fn forget(&self) {
        self.known.invalidate_all();
    }
}
