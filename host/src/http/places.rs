//! How many long answers a holder has open at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use tokio::sync::Semaphore;

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

use super::long_reads::LongReads;

/// Answers that take long, and turns to make those that are dear.
#[derive(Clone)]
pub struct LongAnswers {
    /// Streams of events that are open, by key.
    pub streams: Places,
    /// Reports that are being sent, by key.
    pub reports: Places,
    /// Turns to make a workbook.
    pub workbooks: Arc<Semaphore>,
    /// Permits to read what may be long.
    pub reads: LongReads,
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
            reads: LongReads::new((connections / limits::CONNECTIONS_PER_LONG_READ).max(1)),
        }
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
