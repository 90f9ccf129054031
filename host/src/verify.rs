//! Proving that everything adds up, as of one moment.

use crate::db::Db;
use crate::db::bulk::Shape;
use crate::ledger::verify::Faults;
use crate::{audit, cases, decisions, events, ledger, payouts, transfers};

/// What was looked at, and what is wrong with it.
#[derive(Debug)]
pub struct Report {
    /// Journals, entries, wallets and batches.
    pub books: ledger::verify::Proven,
    /// Payouts.
    pub payouts: u64,
    /// Whatever is not as it must be.
    pub faults: Faults,
}

/// Proves the books and the payouts in one snapshot, so that a host may work meanwhile;
/// changes nothing.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(db: &Db) -> Result<Report, sqlx::Error> {
    let mut faults = Faults::default();
    let mut snapshot = db.snapshot().await?;
    let books = ledger::verify::verify(&mut snapshot, &sealed(), &mut faults).await?;
    let payouts = payouts::verify::verify(&mut snapshot, &mut faults).await?;
    snapshot.rollback().await?;
    Ok(Report { books, payouts, faults })
}

/// Every table that batches seal.
fn sealed() -> Vec<&'static dyn Shape> {
    let mut sealed = ledger::verify::sealed();
    sealed.extend([
        &audit::AUDIT as &dyn Shape,
        &cases::sql::CASES,
        &decisions::sql::DECISIONS,
        &events::sql::EVENTS,
        &payouts::sql::PAYOUTS,
        &transfers::attempt::ATTEMPTS,
        transfers::evidence::sealed(),
    ]);
    sealed
}
