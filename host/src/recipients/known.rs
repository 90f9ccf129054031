//! What is known of a recipient, and what is remembered of that for a moment.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moka::future::Cache;

use crate::config::limits;
use crate::env::Env;
use crate::id::{BeneficiaryId, MerchantId};
use crate::money::Currency;

use super::beneficiary::Beneficiary;

/// What is known of a recipient.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The saved one, deleted or not.
    pub beneficiary: Option<Beneficiary>,
    /// Whether the platform blocks it.
    pub is_globally_blocked: bool,
    /// Whether the merchant does.
    pub is_blacklisted: bool,
}

/// A recipient of a merchant, by what makes it the same as another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RecipientKey {
    pub merchant: MerchantId,
    pub env: Env,
    pub currency: Currency,
    pub identity: String,
}

/// A saved recipient of a merchant.
#[derive(Clone, Debug)]
pub(super) struct SavedKey {
    pub merchant: MerchantId,
    pub env: Env,
    pub id: BeneficiaryId,
}

/// A cache that forgets everything at once, what is being looked up included: an answer from
/// before is not remembered after.
#[derive(Clone)]
pub(super) struct Remembered<K, V> {
    values: Cache<K, (u64, V)>,
    times_forgotten: Arc<AtomicU64>,
}

impl<K, V> Remembered<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        let values = Cache::builder()
            .max_capacity(limits::CACHE_ENTRIES_MAX)
            .time_to_live(limits::CACHE_FRESH)
            .build();
        Self { values, times_forgotten: Arc::default() }
    }

    /// What is remembered under a key; otherwise since when an answer would be.
    pub(super) async fn get(&self, key: &K) -> Result<V, Since> {
        let since = self.times_forgotten.load(Ordering::SeqCst);
        match self.values.get(key).await {
            Some((then, value)) if then == since => Ok(value),
            _ => Err(Since(since)),
        }
    }

    /// Remembers an answer to a question that was asked since then.
    pub(super) async fn insert(&self, key: K, (Since(since), value): (Since, V)) {
        self.values.insert(key, (since, value)).await;
    }

    /// Forgets all answers to questions that were asked until now.
    pub(super) fn forget(&self) {
        self.times_forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

/// Since when a question is asked: how often everything had been forgotten.
pub(super) struct Since(u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_from_before_is_not_remembered_after() {
        let remembered = Remembered::<u32, &str>::new();
        let Err(before) = remembered.get(&1).await else { panic!("nothing is known yet") };
        remembered.forget();
        remembered.insert(1, (before, "not blocked")).await;
        let Err(after) = remembered.get(&1).await else { panic!("it was forgotten") };
        remembered.insert(1, (after, "blocked")).await;
        assert_eq!(remembered.get(&1).await.ok(), Some("blocked"));
        remembered.forget();
        assert!(remembered.get(&1).await.is_err());
    }
}
