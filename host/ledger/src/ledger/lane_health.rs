//! How a thread of the writer gets on: whether what it was given waits, or is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::limits;

/// Whether a thread's present batch waits for too long, or its last one was not accepted.
pub(super) struct LaneHealth {
    begun: Instant,
    /// Since when, in milliseconds after `begun`; zero while there is no batch.
    since_ms: AtomicU64,
    /// When the database last did not accept one; zero once it has accepted one since.
    refused_ms: AtomicU64,
}

impl LaneHealth {
    pub(super) fn new() -> Arc<Self> {
        let (since_ms, refused_ms) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { begun: Instant::now(), since_ms, refused_ms })
    }

    pub(super) fn refused(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.refused_ms.store(now.max(1), Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) {
        self.refused_ms.store(0, Ordering::Relaxed);
    }

    /// For a while: whoever asks whether it is ready may keep away what would show that it is.
    pub(super) fn was_refused(&self) -> bool {
        let at = Duration::from_millis(self.refused_ms.load(Ordering::Relaxed));
        !at.is_zero() && self.begun.elapsed().saturating_sub(at) < limits::UNREADY_FOR
    }

    pub(super) fn begin(&self, oldest: Option<Instant>) {
        let since = oldest.map(|at| at.saturating_duration_since(self.begun));
        let since = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        self.since_ms.store(since.max(1), Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
    }

    pub(super) fn waiting(&self) -> Duration {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.begun.elapsed().saturating_sub(Duration::from_millis(since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_known_until_something_is_accepted() {
        let health = LaneHealth::new();
        assert!(!health.was_refused());
        health.refused();
        assert!(health.was_refused());
        health.accepted();
        assert!(!health.was_refused());
    }
}
