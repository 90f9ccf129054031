//! Places in the pool of instances: a call waits for one, and is given up before it has begun where
//! none becomes free.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::limits;

/// So many calls at once.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

/// A place that is taken, until this is dropped.
pub(super) struct Place(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

impl Places {
    pub(super) fn new(most: u32) -> Self {
        Self(Arc::new(Semaphore::new(most as usize)))
    }

    /// A place, if one becomes free in time. Who came first has it first.
    pub(super) async fn take(&self) -> Option<Place> {
        let taken = timeout(limits::GUEST_WAIT_MAX, Arc::clone(&self.0).acquire_owned()).await;
        taken.ok()?.ok().map(Place)
    }
}
