//! Reads that may be long: how many of them the database has at once.

use std::sync::Arc;

use moka::future::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::limits;
use crate::env::Env;
use crate::error::Problem;
use crate::id::MerchantId;

/// Permits to read what may be long: payouts, claims and sweeps have the other connections meanwhile.
/// A merchant has one at a time in each environment.
#[derive(Clone)]
pub struct LongReads {
    all: Arc<Semaphore>,
    own: Cache<(MerchantId, Env), Arc<Semaphore>>,
}

/// One that is held, until dropped.
pub struct ReadPermit {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl LongReads {
    pub(super) fn new(at_once: usize) -> Self {
        let own = Cache::builder().time_to_idle(limits::REPORT_SENT_MAX);
        Self { all: Arc::new(Semaphore::new(at_once)), own: own.build() }
    }

    /// Waits for a permit where a list is filtered by any of these: no index has them, so that all
    /// rows of the merchant may be read.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn acquire_for(
        &self,
        filters: &[&str],
        owner: (&MerchantId, Env),
    ) -> Result<Option<ReadPermit>, Problem> {
        match filters.iter().all(|filter| filter.is_empty()) {
            true => Ok(None),
            false => self.acquire(owner).await.map(Some),
        }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// None that is known.
    pub async fn acquire(
        &self,
        (merchant, env): (&MerchantId, Env),
    ) -> Result<ReadPermit, Problem> {
        let own = async { Arc::new(Semaphore::new(1)) };
        let own = self.own.get_with((merchant.clone(), env), own).await;
        let own = own.acquire_owned().await.map_err(Problem::internal)?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(Problem::internal)?;
        Ok(ReadPermit { _own: own, _all: all })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::id::Id as _;

    #[tokio::test]
    async fn a_merchant_has_one_permit_and_all_have_so_many() {
        let reads = LongReads::new(2);
        let [ada, eve, bob] = ["c1", "c2", "c3"].map(|id| MerchantId::from_text(id.to_owned()));
        let now = |merchant| reads.acquire((merchant, Env::Live)).now_or_never();
        let first = now(&ada).expect("there are two").expect("a permit");
        assert!(now(&ada).is_none(), "she has hers");
        let _second = now(&eve).expect("there is one").expect("a permit");
        assert!(now(&bob).is_none(), "there are two");
        drop(first);
        assert!(now(&bob).is_some());
        let none = reads.acquire_for(&["", ""], (&eve, Env::Live)).await.expect("not needed");
        assert!(none.is_none());
    }
}
