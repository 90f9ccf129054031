//! What there is one of: of several who make it at the same moment, one does.

use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, CounterChange, Effects, LockedState};
use crate::money::Minor;

/// The place of something that there is one of. A row that is not there yet cannot be locked: a
/// counter stands for it while several may be about to make it. One that was made before that is
/// found by the caller.
#[derive(Clone)]
pub(super) struct Unique(String);

impl Unique {
    /// The place of what has this name among its kind.
    pub(super) fn new(kind: &str, name: &str) -> Self {
        Self(format!("unique/{kind}/{name}"))
    }

    /// Makes it, unless somebody has just done so.
    pub(super) fn make(self, rows: Vec<RowChange>) -> Command<()> {
        self.command(rows, 1)
    }

    /// Takes it away: another one may be made.
    pub(super) fn remove(self, rows: Vec<RowChange>) -> Command<()> {
        self.command(rows, 0)
    }

    /// The counter's key.
    pub(super) fn key(&self) -> String {
        self.0.clone()
    }

    /// What says that it is made.
    ///
    /// # Errors
    /// `state_conflict` where somebody has just made it.
    pub(super) fn claim(&self, locked: &LockedState<'_>) -> Result<CounterChange, Problem> {
        if locked.counter(&self.0).count > 0 {
            let message = "Somebody else has just made this.";
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        Ok(self.set(locked, 1))
    }

    fn set(&self, locked: &LockedState<'_>, count: i64) -> CounterChange {
        let expires_at = locked.now().after(limits::SETTING_CONTESTED).micros();
        let (key, holder, sum) = (self.key(), String::new(), Minor::ZERO);
        CounterChange { key, holder, count, sum, expires_at }
    }

    fn command(self, rows: Vec<RowChange>, count: i64) -> Command<()> {
        let key = self.key();
        let command = Command::new(move |locked| {
            let counter = match count {
                0 => self.set(locked, 0),
                _ => self.claim(locked)?,
            };
            let counters = vec![counter];
            Ok(Effects { rows: rows.clone(), counters, ..Effects::default() }.and(()))
        });
        command.counters([key])
    }
}
