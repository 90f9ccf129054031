//! What is known of a recipient, and what is remembered of that for a moment.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use moka::future::Cache;

use crate::config::limits;
use crate::db::Moves;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
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

impl Known {
    /// Refuses to pay a recipient that is blocked.
    ///
    /// # Errors
    /// `beneficiary_globally_blocked`, `beneficiary_blacklisted`.
    pub fn refuse_blocked(&self) -> Result<(), Problem> {
        match (self.is_globally_blocked, self.is_blacklisted) {
            (true, _) => Err(Problem::new(ErrorCode::BeneficiaryGloballyBlocked)),
            (_, true) => Err(Problem::new(ErrorCode::BeneficiaryBlacklistedForPayout)),
            (false, false) => Ok(()),
        }
    }
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

/// What is remembered of answers for a second after they were asked for. It forgets everything at
/// once, what is being looked up included: an answer from before is not remembered after, nor what
/// another database knew that connections led to.
#[derive(Clone)]
pub(super) struct Remembered<K, V> {
    values: Cache<K, (Since, V)>,
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

    /// What is remembered under a key, where connections lead there; otherwise since when an answer
    /// would be.
    pub(super) async fn get(&self, key: &K, moves: Moves) -> Result<V, Since> {
        let now = Since {
            times_forgotten: self.times_forgotten.load(Ordering::SeqCst),
            moves,
            asked_at: Instant::now(),
        };
        match self.values.get(key).await {
            Some((then, value)) if then.is_fresh(now) => Ok(value),
            _ => Err(now),
        }
    }

    /// Remembers an answer to a question that was asked since then.
    pub(super) async fn insert(&self, key: K, answer: (Since, V)) {
        self.values.insert(key, answer).await;
    }

    /// Forgets all answers to questions that were asked until now.
    pub(super) fn forget(&self) {
        self.times_forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

/// Since when a question is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    times_forgotten: u64,
    moves: Moves,
    asked_at: Instant,
}

impl Since {
    /// Whether an answer since then still counts: however late it came.
    fn is_fresh(self, now: Self) -> bool {
        let age = now.asked_at.saturating_duration_since(self.asked_at);
        let as_before = |it: Self| (it.times_forgotten, it.moves);
        as_before(self) == as_before(now) && age < limits::CACHE_FRESH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_from_before_is_not_remembered_after() {
        let remembered = Remembered::<u32, &str>::new();
        let Err(before) = remembered.get(&1, Moves::default()).await else {
            panic!("nothing is known yet")
        };
        remembered.forget();
        remembered.insert(1, (before, "not blocked")).await;
        let Err(after) = remembered.get(&1, Moves::default()).await else {
            panic!("it was forgotten")
        };
        assert!(after.is_fresh(after) && !before.is_fresh(after));
        let mut is_remembered = false;
        // A machine may stall for as long as answers are fresh.
        for _ in 0..3 {
            let now = Since { asked_at: Instant::now(), ..after };
            remembered.insert(1, (now, "blocked")).await;
            is_remembered |= remembered.get(&1, Moves::default()).await.is_ok();
        }
        assert!(is_remembered);
        remembered.forget();
        assert!(remembered.get(&1, Moves::default()).await.is_err());
    }

    /// Another host may have changed it since it was asked for.
    #[tokio::test]
    async fn an_answer_that_came_late_is_not_remembered_for_longer() {
        let remembered = Remembered::<u32, &str>::new();
        let Err(now) = remembered.get(&1, Moves::default()).await else {
            panic!("nothing is known yet")
        };
        let before = now.asked_at.checked_sub(limits::CACHE_FRESH).expect("the machine is up");
        remembered.insert(1, (Since { asked_at: before, ..now }, "not blocked")).await;
        assert!(remembered.get(&1, Moves::default()).await.is_err());
    }
}
