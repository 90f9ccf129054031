//! What follows from a batch: rows that other rows call for, in the same transaction.

use crate::db::bulk::{Lookup, Row, RowChange, Table};
use crate::id::Mint;

/// Rows of one table that call for more rows. The writer does not know what they mean.
pub struct Consequence {
    /// New rows of this table are looked at.
    pub of: &'static Table,
    /// What has to be read to know what follows from them.
    pub lookup: &'static Lookup,
    /// The keys to read. Without any, nothing follows.
    pub keys: fn(&[Row]) -> Vec<String>,
    /// What follows from the new rows, given what was read.
    pub follow: Follow,
}

/// From new rows and the rows that were read to what follows. Repeatable: a batch may be begun
/// again.
pub type Follow = Box<dyn Fn(&[Row], &[Row], &Mint) -> Followed + Send + Sync>;

/// What follows.
pub struct Followed {
    /// Written in the same transaction.
    pub rows: Vec<RowChange>,
    /// Done once it is committed, and never otherwise; after a COMMIT without an answer it is
    /// not done either, so nothing may depend on it.
    pub committed: Box<dyn FnOnce() + Send>,
}
