//! Versions of rails that are not loaded any more, and that payments are still open of: a payment
//! is asked about by the version that sent it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use moka::future::Cache;
use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::db::{self, Db};
use crate::keyring::Keyring;
use crate::wasm::{CodeCache, Engines};

use super::registry::Rail;

/// Older versions that are kept loaded.
const LOADED_MAX: u64 = 16;

/// Every version of a rail that ever was loaded here, as its file.
#[derive(Clone)]
pub struct Versions {
    db: Db,
    keyring: Arc<Keyring>,
    with: (Engines, CodeCache),
    /// The operator's tables.
    tables: Option<PathBuf>,
    /// Digests of those that must not run any more.
    barred: Arc<BTreeSet<String>>,
    /// Those that were asked for; nothing where one cannot be used any more.
    loaded: Cache<String, Option<Arc<Rail>>>,
}

impl Versions {
    /// Those in this database.
    #[must_use]
    pub fn new(
        (db, keyring): (Db, Arc<Keyring>),
        with: (Engines, CodeCache),
        (tables, barred): (Option<PathBuf>, BTreeSet<String>),
    ) -> Self {
        let barred = Arc::new(barred);
        Self { db, keyring, with, tables, barred, loaded: Cache::new(LOADED_MAX) }
    }

    /// Keeps the file of a rail, if it is not kept yet.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn keep(&self, rail: &Rail, now: Moment) -> Result<(), sqlx::Error> {
        let sql = "SELECT COUNT(*) FROM rail_versions WHERE digest = $1 AND tag = $2";
        let tag = self.tag(&rail.digest);
        let known: i64 =
            sqlx::query_scalar(sql).bind(&rail.digest).bind(&tag).fetch_one(self.db.pool()).await?;
        if known > 0 {
            return Ok(());
        }
        let about = &rail.declaration.rail;
        let sql = "INSERT INTO rail_versions (digest, name, version, component, tag, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (digest) DO UPDATE SET \
                   component = excluded.component, tag = excluded.tag";
        let mut tx = self.db.write().await?;
        sqlx::query(sql)
            .bind(&rail.digest)
            .bind(&about.name)
            .bind(&about.version)
            .bind(BASE64.encode(&rail.component))
            .bind(tag)
            .bind(now.micros())
            .execute(tx.conn())
            .await?;
        tx.commit().await
    }

    /// The version of this digest, if it was kept and can be used.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn get(&self, digest: &str) -> Result<Option<Arc<Rail>>, Arc<sqlx::Error>> {
        let found = self.loaded.try_get_with(digest.to_owned(), self.open(digest)).await?;
        if found.is_none() {
            // It may be there another time.
            self.loaded.invalidate(digest).await;
        }
        Ok(found)
    }

    async fn open(&self, digest: &str) -> Result<Option<Arc<Rail>>, sqlx::Error> {
        if self.barred.contains(digest) {
            tracing::warn!(digest, "a version of a rail is barred: the present one asks");
            return Ok(None);
        }
        let sql = "SELECT component, tag FROM rail_versions WHERE digest = $1";
        let reading = sqlx::query_as(sql).bind(digest).fetch_optional(self.db.pool());
        let row: Option<(String, String)> = db::in_time(reading).await?;
        let Some((component, tag)) = row else {
            tracing::warn!(digest, "a version of a rail is not there: the present one asks");
            return Ok(None);
        };
        // Running it means trusting whoever wrote it there: only hosts with these keys.
        let is_ours = self.keyring.settings_tags(&place(digest)).any(|known| known == tag);
        let component = BASE64.decode(component).ok();
        let is_it = |bytes: &Vec<u8>| hex::encode(Sha256::digest(bytes)) == digest;
        let Some(component) = component.filter(|bytes| is_ours && is_it(bytes)) else {
            tracing::error!(digest, "a version of a rail is not what was kept");
            return Ok(None);
        };
        let ((engines, cache), tables) = (self.with.clone(), self.tables.clone());
        let loading = tokio::task::spawn_blocking(move || {
            Rail::load(&engines, &cache, &component, tables.as_deref())
        });
        Ok(match loading.await {
            Ok(Ok(rail)) => {
                let (name, version) = (&rail.declaration.rail.name, &rail.declaration.rail.version);
                tracing::info!(rail.name = name, version, digest, "an older version asks as well");
                Some(Arc::new(rail))
            }
            Ok(Err(cause)) => {
                tracing::warn!(digest, %cause, "a version of a rail cannot be used any more");
                None
            }
            Err(cause) => {
                tracing::error!(digest, %cause, "a version of a rail");
                None
            }
        })
    }

    fn tag(&self, digest: &str) -> String {
        self.keyring.settings_tags(&place(digest)).next().unwrap_or_default()
    }
}

fn place(digest: &str) -> String {
    format!("the rail of the digest {digest}")
}
