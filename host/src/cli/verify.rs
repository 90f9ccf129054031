//! `railhead verify`.

use std::time::Instant;

use crate::config::Config;
use crate::db::Db;
use crate::start::StartError;
use crate::{ledger, payouts};

/// Proves the books of a running host, a stopped one, or a copy; changes nothing.
#[expect(clippy::print_stdout, reason = "the answer of a command")]
pub(super) async fn verify(config: &Config) -> Result<(), StartError> {
    let begun = Instant::now();
    let db = Db::open_for_reading(&config.database_url()).await?;
    let proven = ledger::verify::verify(db.pool()).await?;
    let payouts = payouts::verify::verify(db.pool()).await?;
    db.close().await;
    println!(
        "The books are in order: {} journals, {} entries, {} wallets, {payouts} payouts ({:.1?}).",
        proven.journals,
        proven.entries,
        proven.wallets,
        begun.elapsed()
    );
    Ok(())
}
