//! Proving that everything adds up, as of one moment.

use crate::db::Db;
use crate::ledger;
use crate::payouts;

pub use crate::ledger::verify::Fault;

/// What was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Proven {
    /// Journals, entries and wallets.
    pub books: ledger::verify::Proven,
    /// Payouts that agree with the books.
    pub payouts: u64,
}

/// Proves the books and the payouts in one snapshot, so that a host may work meanwhile;
/// changes nothing.
///
/// # Errors
/// The first fault that is found.
pub async fn verify(db: &Db) -> Result<Proven, Fault> {
    let mut snapshot = db.snapshot().await?;
    let books = ledger::verify::verify(&mut snapshot).await?;
    let payouts = payouts::verify::verify(&mut snapshot).await?;
    snapshot.rollback().await?;
    Ok(Proven { books, payouts })
}
