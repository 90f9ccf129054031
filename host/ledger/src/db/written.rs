//! What the database is known to have: rows that very many others name, and that are the same for
//! ever. One goes with whatever names it until it is there for sure.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Db, Moves};

/// What was committed this long ago is not written once more: whatever a failover forgets is younger,
/// or a quarantine has begun.
const FOR_SURE_AFTER: Duration = Duration::from_secs(10);

/// Whether the database has a row: since when, and where connections led then.
#[derive(Debug, Default)]
pub struct Written(Mutex<Option<(Moves, Instant)>>);

impl Written {
    /// Whether the database that connections lead to, as of `moves`, has it for sure.
    #[must_use]
    pub fn is_sure(&self, db: &Db, moves: Moves) -> bool {
        let written = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as they lead elsewhere, each may lead to another place.
        !db.has_moved()
            && written.is_some_and(|(then, at)| then == moves && at.elapsed() >= FOR_SURE_AFTER)
    }

    /// It went with something that is committed; `moves` is as of before.
    pub fn note(&self, moves: Moves) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.is_none_or(|(then, _)| then != moves) {
            *written = Some((moves, Instant::now()));
        }
    }
}
