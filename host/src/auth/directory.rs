//! Keys and merchants as requests look them up: cached for a second.

use std::sync::Arc;

use moka::future::Cache;
use subtle::ConstantTimeEq as _;

use crate::config::limits;
use crate::db::{self, Db};
use crate::error::Problem;
use crate::id::MerchantId;
use crate::keyring::Keyring;

use super::key::ApiKey;
use super::merchant::Merchant;
use super::sql;

/// Finds the key behind a secret, and the merchant behind a key.
///
/// What was found, or not found, is remembered for [`limits::CACHE_FRESH`]: a key revoked on
/// one host stops working on the others within that time, and on its own host at once.
#[derive(Clone)]
pub struct Directory {
    db: Db,
    keyring: Arc<Keyring>,
    keys: Cache<String, Option<Arc<ApiKey>>>,
    merchants: Cache<MerchantId, Option<Arc<Merchant>>>,
}

impl Directory {
    /// A directory over this database.
    #[must_use]
    pub fn new(db: Db, keyring: Arc<Keyring>) -> Self {
        Self { db, keyring, keys: cache(), merchants: cache() }
    }

    /// The key whose secret this is.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn key(&self, secret: &str) -> Result<Option<Arc<ApiKey>>, Problem> {
        for hash in self.keyring.api_key_hashes(secret) {
            let found = self.keys.try_get_with(hash.clone(), self.find_key(hash)).await;
            if let Some(key) = found? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    async fn find_key(&self, hash: String) -> Result<Option<Arc<ApiKey>>, sqlx::Error> {
        let found = db::in_time(sql::find_key_by_hash(self.db.pool(), &hash)).await?;
        // The index has compared already; this comparison takes the same time for any key.
        Ok(found
            .filter(|(_, stored)| stored.as_bytes().ct_eq(hash.as_bytes()).into())
            .map(|(key, _)| Arc::new(key)))
    }

    /// A merchant.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn merchant(&self, id: &MerchantId) -> Result<Option<Arc<Merchant>>, Problem> {
        let find = async {
            let found = db::in_time(sql::get_merchant(self.db.pool(), id)).await?;
            Ok::<_, sqlx::Error>(found.map(Arc::new))
        };
        Ok(self.merchants.try_get_with_by_ref(id, find).await?)
    }

    /// Forgets what is remembered, after a change on this host.
    pub fn forget(&self) {
        self.keys.invalidate_all();
        self.merchants.invalidate_all();
    }
}

fn cache<K, V>() -> Cache<K, V>
where
    K: std::hash::Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(limits::CACHE_ENTRIES_MAX)
        .time_to_live(limits::CACHE_FRESH)
        .build()
}
