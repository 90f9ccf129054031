//! What there is one of: of several who make it at the same moment, one does.

use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, CounterChange, Effects};
use crate::money::Minor;

/// The place of something that there is one of. A row that is not there yet cannot be locked: a
/// counter stands for it while several may be about to make it. Whoever has made it, before that, is
/// found by the row.
pub(super) struct Sole(String);

impl Sole {
    /// The place of what has this name among its kind.
    pub(super) fn new(kind: &str, name: &str) -> Self {
        Self(format!("sole/{kind}/{name}"))
    }

    /// Makes it, unless somebody has just done so.
    pub(super) fn make(self, rows: Vec<RowChange>) -> Command<()> {
        self.command(rows, 1)
    }

    /// Takes it away: another one may be made.
    pub(super) fn remove(self, rows: Vec<RowChange>) -> Command<()> {
        self.command(rows, 0)
    }

    fn command(self, rows: Vec<RowChange>, count: i64) -> Command<()> {
        let Self(key) = self;
        let place = key.clone();
        let command = Command::new(move |locked| {
            if count > 0 && locked.counter(&place).count > 0 {
                let message = "Somebody else has just made this.";
                return Err(Problem::because(ErrorCode::StateConflict, message));
            }
            let expires_at = locked.now().after(limits::SETTING_CONTESTED).micros();
            let (key, holder, sum) = (place.clone(), String::new(), Minor::ZERO);
            let counters = vec![CounterChange { key, holder, count, sum, expires_at }];
            Ok(Effects { rows: rows.clone(), counters, ..Effects::default() }.and(()))
        });
        command.counters([key])
    }
}
