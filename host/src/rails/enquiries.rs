//! Places for questions that somebody waits for: who holds an account. A network that hangs keeps
//! no more of them than that, and no merchant takes all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::limits;
use crate::id::MerchantId;
use crate::wasm::egress::Throttle;

/// The places of one route.
pub struct Enquiries {
    all: Arc<Semaphore>,
    each: usize,
    merchants: Mutex<HashMap<MerchantId, Arc<Semaphore>>>,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct Asking(#[expect(dead_code, reason = "held, and given back")] [OwnedSemaphorePermit; 2]);

impl Enquiries {
    /// Places of a network at its pace: not more than it answers in time. Half of them are for one
    /// merchant at most.
    #[must_use]
    pub fn at(throttle: Option<&Throttle>) -> Self {
        let most = throttle.map_or(usize::MAX, Throttle::enquiries_max);
        Self::new(most.clamp(1, limits::ENQUIRIES_MAX))
    }

    fn new(places: usize) -> Self {
        let all = Arc::new(Semaphore::new(places));
        Self { all, each: places.div_ceil(2), merchants: Mutex::default() }
    }

    /// Waits for a place, for a moment.
    ///
    /// # Errors
    /// Others wait already.
    pub async fn enter(&self, merchant: &MerchantId) -> Result<Asking, String> {
        let own = self.of(merchant);
        let both = async {
            let own = own.acquire_owned().await;
            let any = Arc::clone(&self.all).acquire_owned().await;
            own.and_then(|own| Ok(Asking([own, any?])))
        };
        let entered = tokio::time::timeout(limits::THROTTLE_ENQUIRY_WAIT_MAX, both).await;
        let full = || "others wait for its answers already".to_owned();
        entered.map_err(|_| full())?.map_err(|_| full())
    }

    fn of(&self, merchant: &MerchantId) -> Arc<Semaphore> {
        let mut merchants = self.merchants.lock().unwrap_or_else(PoisonError::into_inner);
        // Who asks nothing now needs nothing kept.
        if merchants.len() >= limits::ENQUIRING_MERCHANTS_MAX {
            merchants.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let new = || Arc::new(Semaphore::new(self.each));
        Arc::clone(merchants.entry(merchant.clone()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::id::Id as _;

    #[tokio::test]
    async fn one_merchant_takes_half_of_the_places() {
        let places = Enquiries::new(4);
        let is_kept_waiting = async |merchant| {
            tokio::time::timeout(Duration::ZERO, places.enter(merchant)).await.is_err()
        };
        let (one, other) = (MerchantId::from_text("a".into()), MerchantId::from_text("b".into()));
        let first = places.enter(&one).await.expect("a place");
        let second = places.enter(&one).await.expect("a place");
        assert!(is_kept_waiting(&one).await, "it has half of them");
        let theirs = places.enter(&other).await.expect("a place");
        drop(first);
        let third = places.enter(&one).await.expect("a place again");
        assert!(is_kept_waiting(&one).await, "it has half of them");
        drop((second, third, theirs));
        assert_eq!(places.all.available_permits(), 4);
    }
}
