//! Rows that very many others name, and that are the same for ever, such as how a route was set. One
//! is written again with each row that names it, until the database has it for certain.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Db, Moves};

/// A failover may lose what was committed a moment before it. What is older than this is not lost
/// without a quarantine.
const CERTAIN_AFTER: Duration = Duration::from_secs(10);

/// Whether the database has such a row: since when, and where connections led then.
#[derive(Debug, Default)]
pub struct Written(Mutex<Option<(Moves, Instant)>>);

impl Written {
    /// Nothing where the database has it for certain; otherwise it is written once more, and this is
    /// where connections lead now, for [`Self::note`] once that is committed.
    #[must_use]
    pub fn unless_certain(&self, db: &Db) -> Option<Moves> {
        let moves = db.moves();
        let written = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_certain =
            written.is_some_and(|(then, at)| then == moves && at.elapsed() >= CERTAIN_AFTER);
        // While connections move to another server, each may lead to another one.
        (db.has_moved() || !is_certain).then_some(moves)
    }

    /// It is committed.
    pub fn note(&self, moves: Moves) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.is_none_or(|(then, _)| then != moves) {
            *written = Some((moves, Instant::now()));
        }
    }
}
