//! How many long answers a holder has open at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::config::limits;

/// Answers that take long, and turns to make those that are dear.
#[derive(Clone)]
pub struct LongAnswers {
    /// Streams of events that are open, by key.
    pub streams: Places,
    /// Reports that are being sent, by key.
    pub reports: Places,
    /// Turns to make a workbook.
    pub workbooks: Arc<Semaphore>,
}

impl Default for LongAnswers {
    fn default() -> Self {
        let workbooks = Arc::new(Semaphore::new(limits::WORKBOOKS_AT_ONCE));
        Self { streams: Places::default(), reports: Places::default(), workbooks }
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
