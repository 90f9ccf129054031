//! The list of a merchant's rates, remembered for a minute.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::env::Env;
use crate::error::Problem;
use crate::id::MerchantId;
use crate::money::Currency;

use super::market::{Pair, offered};
use super::sql;

/// For how long a list is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(60);

/// What one currency costs in another, for one merchant.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RateRow {
    /// Always `rate`.
    #[schema(example = "rate")]
    pub object: &'static str,
    /// What is sold.
    #[schema(value_type = String, example = "USD")]
    pub from_currency: Currency,
    /// What is bought.
    #[schema(value_type = String, example = "NGN")]
    pub to_currency: Currency,
    /// How much of it one major unit of what is sold comes to, fees excluded: a decimal.
    #[schema(example = "1542.25")]
    pub rate: String,
    /// As of when.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Moment,
}

/// Lists of rates.
#[derive(Clone)]
pub struct RateLists {
    db: Db,
    known: Cache<(MerchantId, Env), Arc<Vec<RateRow>>>,
}

impl RateLists {
    /// Over this database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        let known =
            Cache::builder().max_capacity(limits::CACHE_ENTRIES_MAX).time_to_live(REMEMBERED);
        Self { db, known: known.build() }
    }

    /// The rates that a merchant can use: its own, where it has one, and the platform's.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn list(
        &self,
        (merchant, env): (&MerchantId, Env),
        now: Moment,
    ) -> Result<Arc<Vec<RateRow>>, Problem> {
        let key = (merchant.clone(), env);
        if let Some(known) = self.known.get(&key).await {
            return Ok(known);
        }
        let limits = sql::limits(self.db.pool(), env).await?;
        let is_paused = |to: Currency| limits.iter().any(|it| it.is_paused && it.currency == to);
        let found = sql::rates_of(self.db.pool(), env, merchant).await?;
        let pairs: BTreeSet<(Currency, Currency)> =
            found.iter().map(|set| (set.pair.from, set.pair.to)).collect();
        let rows = pairs.into_iter().filter(|(_, to)| !is_paused(*to)).filter_map(|(from, to)| {
            let pair = Pair { env, from, to };
            let applied = offered(&found, (pair, Some(merchant)), now).ok()?;
            let (rate, as_of) = (applied.rate.to_string(), applied.as_of);
            Some(RateRow { object: "rate", from_currency: from, to_currency: to, rate, as_of })
        });
        let rows = Arc::new(rows.collect());
        self.known.insert(key, Arc::clone(&rows)).await;
        Ok(rows)
    }

    /// Forgets everything: something was set.
    pub fn forget(&self) {
        self.known.invalidate_all();
    }
}
