//! How many long answers a holder has open at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::config::{Server, limits};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{KeyId, MerchantId};

use super::long_reads::LongReads;

/// Answers that take long, and turns to make those that are dear.
#[derive(Clone)]
pub struct LongAnswers {
    /// Streams of events that are open.
    pub streams: Places,
    /// Reports that are being sent to merchants.
    pub reports: Places,
    /// And to operators, whom no merchant keeps out.
    pub operators: Places,
    /// Turns to make a workbook.
    pub workbooks: Arc<Semaphore>,
    /// Permits to read what may be long.
    pub reads: LongReads,
}

impl LongAnswers {
    /// For a host with so many connections to its database, and so many callers.
    #[must_use]
    pub fn new(server: &Server) -> Self {
        let connections = usize::try_from(server.database_connections).unwrap_or(usize::MAX);
        let most = (server.connections_max / limits::CONNECTIONS_PER_LONG_ANSWER).max(1);
        Self {
            streams: Places::new(most),
            reports: Places::new(most),
            operators: Places::new(most),
            workbooks: Arc::new(Semaphore::new(limits::WORKBOOKS_AT_ONCE)),
            reads: LongReads::new((connections / limits::CONNECTIONS_PER_LONG_READ).max(1)),
        }
    }
}

/// All places of this process.
#[derive(Clone)]
pub struct Places {
    taken: Arc<Mutex<HashMap<String, usize>>>,
    most: usize,
}

/// One that is taken, until dropped.
pub struct Place {
    places: Places,
    holders: Vec<String>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// A holder has as many as it may have: this many.
    Own(usize),
    /// Others have all of them.
    Others,
}

/// Under which name all places are counted together.
const ALL: &str = "";

impl Places {
    fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// Takes a place that counts for each of these holders, who may have so many.
    ///
    /// # Errors
    /// One of them has all of his, or there is none left.
    pub fn take(&self, holders: &[(&str, usize)]) -> Result<Place, NoPlace> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |holder: &str| taken.get(holder).copied().unwrap_or_default();
        if let Some((_, most)) = holders.iter().find(|(holder, most)| has(holder) >= *most) {
            return Err(NoPlace::Own(*most));
        }
        if has(ALL) >= self.most {
            return Err(NoPlace::Others);
        }
        let holders = holders.iter().map(|(holder, _)| *holder).chain([ALL]);
        let holders: Vec<String> = holders.map(str::to_owned).collect();
        for holder in &holders {
            *taken.entry(holder.clone()).or_default() += 1;
        }
        drop(taken);
        Ok(Place { places: self.clone(), holders })
    }
}

/// How many a merchant may have open at once, by one key and by all of an environment.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// By one key.
    pub of_key: usize,
    /// By all.
    pub of_owner: usize,
}

impl Places {
    /// Takes a place for a merchant's key.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_for(
        &self,
        key: &KeyId,
        (merchant, env): (&MerchantId, Env),
        share: Share,
    ) -> Result<Place, NoPlace> {
        let owner = format!("{merchant}/{env}");
        self.take(&[(key.as_str(), share.of_key), (&owner, share.of_owner)])
    }
}

impl NoPlace {
    /// What whoever asked is told: `what` is what they have too many of, counted as `tier`.
    #[must_use]
    pub fn refusal(self, (tier, what): (&str, &str), retry_after_s: u64) -> Problem {
        let problem = match self {
            Self::Others => Problem::new(ErrorCode::ServiceOverloaded),
            Self::Own(most) => {
                let message = format!("{what}: {most} are open at once, at most. End one first.");
                let detail = json!({
                    "tier": tier,
                    "limit": most,
                    "retry_after_seconds": retry_after_s,
                });
                Problem::because(ErrorCode::RateLimitExceeded, message).detail(detail)
            }
        };
        problem.retry_after(retry_after_s)
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
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for holder in &self.holders {
            if let Some(count) = taken.get_mut(holder) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_for_its_key_for_its_merchant_and_for_all() {
        let places = Places::new(4);
        let take = |key, merchant| places.take(&[(key, 2), (merchant, 3)]);
        let first = [take("k1", "ada"), take("k1", "ada")];
        assert!(first.iter().all(Result::is_ok));
        assert_eq!(take("k1", "ada").err(), Some(NoPlace::Own(2)));
        let _second = take("k2", "ada").expect("another key has its own");
        assert_eq!(take("k3", "ada").err(), Some(NoPlace::Own(3)));
        let _third = take("k4", "eve").expect("another merchant has hers");
        assert_eq!(take("k5", "bob").err(), Some(NoPlace::Others));
        drop(first);
        assert!(take("k1", "ada").is_ok() && take("k5", "bob").is_ok());
        assert_eq!(places.taken.lock().expect("a lock").len(), 5);
    }
}
