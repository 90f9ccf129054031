//! A hook on the batch: rows that other rows call for, such as the outbox's deliveries, in the
//! same transaction.

use crate::db::bulk::{Render, RowChange};
use crate::db::cell::Named;
use crate::db::lookup::Lookup;
use crate::id::IdGenerator;

/// Rows of one table that call for more rows. The writer does not know what they mean.
pub struct OutboxHook {
    /// New rows of this table are looked at.
    pub of: &'static str,
    /// What has to be read to know which rows they call for.
    pub lookup: &'static Lookup,
    /// The keys to read. Without any, the hook is not run.
    pub keys: fn(&[NewRow<'_>]) -> Result<Vec<String>, sqlx::Error>,
    /// Makes the further rows out of the new ones and what was read.
    pub run: RunHook,
}

/// From new rows and the rows that were read to further rows. Repeatable: a batch may be begun
/// again. Where it panics some row is a bad one: the batch is halved until that stands alone.
pub type RunHook = Box<
    dyn Fn(&[NewRow<'_>], &[Named<'_>], &IdGenerator) -> Result<HookRows, sqlx::Error>
        + Send
        + Sync,
>;

/// A row that a batch writes.
pub struct NewRow<'a> {
    /// As it is written.
    pub row: Named<'a>,
    /// How it is rendered where its cells are not enough.
    pub render: Option<&'a Render>,
}

/// What a hook adds to a batch.
pub struct HookRows {
    /// Written in the same transaction.
    pub rows: Vec<RowChange>,
    /// Done once it is committed, and never otherwise; after a COMMIT without an answer it is
    /// not done either, so nothing may depend on it.
    pub committed: Box<dyn FnOnce() + Send>,
}
