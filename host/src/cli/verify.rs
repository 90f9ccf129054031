//! `railhead verify`.

use std::time::Instant;

use crate::config::Config;
use crate::db::Db;
use crate::start::StartError;
use crate::verify::{self, Report};

/// Proves the books of a running host, a stopped one, or a copy; changes nothing.
#[expect(clippy::print_stdout, reason = "the answer of a command")]
pub(super) async fn prove(config: &Config) -> Result<(), StartError> {
    let begun = Instant::now();
    let db = Db::open_for_reading(&config.database_url()).await?;
    let Report { books, payouts, faults } = verify::verify(&db).await?;
    db.close().await;
    if let Some(first) = faults.list.first() {
        return Err(format!("{}: {}", first.check, first.what).into());
    }
    println!(
        "The books are in order: {} journals, {} entries, {} wallets, {payouts} payouts ({:.1?}).",
        books.journals,
        books.entries,
        books.wallets,
        begun.elapsed()
    );
    Ok(())
}
