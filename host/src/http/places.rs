//! How many long answers a holder has open at once, and turns to read much of the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use moka::future::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

/// Answers that take long, and turns to make those that are dear.
#[derive(Clone)]
pub struct LongAnswers {
    /// Streams of events that are open, by key.
    pub streams: Places,
    /// Reports that are being sent, by key.
    pub reports: Places,
    /// Turns to make a workbook.
    pub workbooks: Arc<Semaphore>,
    /// Turns to read what may be long.
    pub reads: Turns,
}

impl LongAnswers {
    /// For a host with so many connections to its database.
    #[must_use]
    pub fn new(connections: u32) -> Self {
        let connections = usize::try_from(connections).unwrap_or(usize::MAX);
        Self {
            streams: Places::default(),
            reports: Places::default(),
            workbooks: Arc::new(Semaphore::new(limits::WORKBOOKS_AT_ONCE)),
            reads: Turns::new((connections / limits::LONG_READS).max(1)),
        }
    }
}

/// Turns to read what may be long: payouts, claims and sweeps have the other connections meanwhile. A
/// merchant has one turn at a time.
#[derive(Clone)]
pub struct Turns {
    all: Arc<Semaphore>,
    own: Cache<String, Arc<Semaphore>>,
}

/// A turn, until dropped.
pub struct Turn {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Turns {
    fn new(at_once: usize) -> Self {
        let own = Cache::builder().time_to_idle(limits::REPORT_SENT_MAX);
        Self { all: Arc::new(Semaphore::new(at_once)), own: own.build() }
    }

    /// Waits for a merchant's turn, where any of these is looked for: no index has them.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub async fn take_for(
        &self,
        looked_for: &[&str],
        merchant: &str,
    ) -> Result<Option<Turn>, Problem> {
        match looked_for.iter().all(|text| text.is_empty()) {
            true => Ok(None),
            false => self.take(merchant).await.map(Some),
        }
    }

    /// Waits for a merchant's turn.
    ///
    /// # Errors
    /// None that is known.
    pub async fn take(&self, merchant: &str) -> Result<Turn, Problem> {
        let own = async { Arc::new(Semaphore::new(1)) };
        let own = self.own.get_with_by_ref(merchant, own).await;
        let own = own.acquire_owned().await.map_err(Problem::internal)?;
        let all = Arc::clone(&self.all).acquire_owned().await.map_err(Problem::internal)?;
        Ok(Turn { _own: own, _all: all })
    }
}

/// All places of this process.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<HashMap<String, usize>>>);

/// One that is taken, until dropped.
pub struct Place {
    places: Places,
    holder: String,
}

impl Places {
    /// Takes a place, if the holder has fewer than `most`.
    #[must_use]
    pub fn take(&self, holder: &str, most: usize) -> Option<Place> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(holder.to_owned()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { places: self.clone(), holder: holder.to_owned() })
    }
}

impl Place {
    /// A body that is sent within some time, or cut off; its holder has a place less meanwhile.
    pub fn hold(self, body: impl Stream<Item = Result<Vec<u8>, Problem>> + Send + 'static) -> Body {
        let cut_off = async move {
            tokio::time::sleep(limits::REPORT_SENT_MAX).await;
            Err(Problem::new(ErrorCode::RequestTimeout))
        };
        // Whichever comes first: its end, which ends it all, or the time.
        let (body, cut_off) = (body.map(Some), stream::once(cut_off.map(Some)));
        let ending = body.chain(stream::once(async { None }));
        let both = stream::select(ending, cut_off);
        let until = both
            .take_while(|part| std::future::ready(part.is_some()))
            .filter_map(std::future::ready);
        Body::from_stream(until.map(move |part| {
            let _held = &self;
            part
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_left() {
        let places = Places::default();
        let first = places.take("key", 1);
        assert!(first.is_some() && places.take("key", 1).is_none());
        assert!(places.take("other", 1).is_some(), "holders are independent");
        drop(first);
        assert!(places.0.lock().expect("a lock").is_empty());
        assert!(places.take("key", 1).is_some());
    }
}
