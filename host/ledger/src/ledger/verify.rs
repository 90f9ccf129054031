//! Proving the books: every sum, every chain, over everything.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use sqlx::{AnyConnection, Row as _};

use crate::clock::Moment;

use super::journal::Link;

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proven {
    /// Journals that sum to zero.
    pub journals: u64,
    /// Entries of all accounts.
    pub entries: u64,
    /// Wallets whose chain and balance are right.
    pub wallets: u64,
}

/// Why the books are not proven.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Something does not add up.
    #[error("{0}")]
    Wrong(String),
    /// The database cannot be read.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(what.into()))
}

/// Recomputes every journal's sum and every wallet's chain, and compares with what is stored.
/// Beside a host that runs, `db` must be in one snapshot ([`crate::db::Db::snapshot`]).
///
/// # Errors
/// The first fault that is found.
pub async fn verify(db: &mut AnyConnection) -> Result<Proven, Fault> {
    let mut proven = Proven::default();
    journals(db, &mut proven).await?;
    chains(db, &mut proven).await?;
    Ok(proven)
}

/// Every journal has at least two lines, all of one environment, that sum to zero per
/// currency; no entry is without its journal.
async fn journals(db: &mut AnyConnection, proven: &mut Proven) -> Result<(), Fault> {
    let sql = "SELECT journal_id, currency, CAST(SUM(amount_minor) AS BIGINT) AS total \
               FROM entries GROUP BY journal_id, currency HAVING SUM(amount_minor) <> 0";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *db).await? {
        let (id, currency): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let total: i64 = row.try_get(2)?;
        return wrong(format!("journal {id} is off by {total} {currency}"));
    }
    let sql = "SELECT journal_id FROM entries GROUP BY journal_id HAVING COUNT(*) < 2";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *db).await? {
        return wrong(format!("journal {} has one line only", row.try_get::<String, _>(0)?));
    }
    let sql = "SELECT e.journal_id FROM entries e LEFT JOIN journals j ON j.id = e.journal_id \
               WHERE j.id IS NULL LIMIT 1";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *db).await? {
        return wrong(format!("entries without journal {}", row.try_get::<String, _>(0)?));
    }
    let sql = "SELECT j.id FROM journals j LEFT JOIN entries e ON e.journal_id = j.id \
               WHERE e.journal_id IS NULL LIMIT 1";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *db).await? {
        return wrong(format!("journal {} has lost its entries", row.try_get::<String, _>(0)?));
    }
    let sql = "SELECT j.id FROM journals j JOIN entries e ON e.journal_id = j.id \
               JOIN wallets w ON w.id = e.account_id \
               WHERE w.env <> j.env OR w.currency <> e.currency LIMIT 1";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *db).await? {
        return wrong(format!("journal {} crosses environments", row.try_get::<String, _>(0)?));
    }
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM journals").fetch_one(&mut *db).await?;
    proven.journals = count.unsigned_abs();
    let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM entries").fetch_one(&mut *db).await?;
    proven.entries = count.unsigned_abs();
    Ok(())
}

/// What a wallet's row says.
struct Stated {
    available: i64,
    seq: i64,
    head: String,
}

/// What its entries say so far.
#[derive(Default)]
struct Walked {
    balance: i64,
    seq: i64,
    head: String,
}

/// Every wallet's entries are numbered 1 to n, each balance follows from the one before, each
/// hash from the one before, and the last of each is what the wallet says.
async fn chains(db: &mut AnyConnection, proven: &mut Proven) -> Result<(), Fault> {
    let mut stated = HashMap::new();
    let sql = "SELECT id, available_minor, seq, head_hash FROM wallets";
    for row in sqlx::query(sql).fetch_all(&mut *db).await? {
        let wallet: String = row.try_get(0)?;
        let row_says =
            Stated { available: row.try_get(1)?, seq: row.try_get(2)?, head: row.try_get(3)? };
        stated.insert(wallet, row_says);
    }
    let mut walked: HashMap<String, Walked> = HashMap::new();
    let sql = "SELECT account_id, seq, journal_id, line, amount_minor, balance_after_minor, \
               source, created_at, hash FROM entries WHERE seq IS NOT NULL ORDER BY account_id, seq";
    let mut rows = sqlx::query(sql).fetch(&mut *db);
    while let Some(row) = rows.try_next().await? {
        let wallet: String = row.try_get(0)?;
        if !stated.contains_key(&wallet) {
            return wrong(format!("entries of wallet {wallet}, which does not exist"));
        }
        let so_far = walked.entry(wallet.clone()).or_default();
        step(&row, &wallet, so_far)?;
    }
    drop(rows);
    let loose = "SELECT e.journal_id FROM entries e JOIN wallets w ON w.id = e.account_id \
                 WHERE e.seq IS NULL LIMIT 1";
    if let Some(row) = sqlx::query(loose).fetch_optional(&mut *db).await? {
        return wrong(format!("an unnumbered entry in journal {}", row.try_get::<String, _>(0)?));
    }
    for (wallet, says) in &stated {
        let nothing = Walked::default();
        let found = walked.get(wallet).unwrap_or(&nothing);
        if (says.available, says.seq) != (found.balance, found.seq) {
            return wrong(format!(
                "wallet {wallet} says {} after {} entries, its entries say {} after {}",
                says.available, says.seq, found.balance, found.seq
            ));
        }
        if says.head != found.head {
            return wrong(format!("wallet {wallet} has another last hash than its entries"));
        }
        proven.wallets += 1;
    }
    Ok(())
}

fn step(row: &sqlx::any::AnyRow, wallet: &str, so_far: &mut Walked) -> Result<(), Fault> {
    let (seq, journal, line): (i64, String, i64) =
        (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    let (amount, balance): (i64, i64) = (row.try_get(4)?, row.try_get(5)?);
    let (source, created_at): (String, i64) = (row.try_get(6)?, row.try_get(7)?);
    let stored: String = row.try_get(8)?;
    if seq != so_far.seq + 1 {
        return wrong(format!("wallet {wallet} has entry {seq} after entry {}", so_far.seq));
    }
    let expected = so_far.balance.checked_add(amount);
    if expected != Some(balance) {
        return wrong(format!("wallet {wallet}, entry {seq}: the balance does not follow"));
    }
    if balance < 0 {
        return wrong(format!("wallet {wallet}, entry {seq}: the balance is below zero"));
    }
    let link = Link {
        previous: &so_far.head,
        wallet,
        seq,
        journal: &journal,
        line,
        amount_minor: amount,
        balance_after_minor: balance,
        source: &source,
        created_at: Moment::from_micros(created_at),
    };
    if link.hash() != stored {
        return wrong(format!("wallet {wallet}, entry {seq}: the hash does not follow"));
    }
    *so_far = Walked { balance, seq, head: stored };
    Ok(())
}

/// Balances of the system accounts, by account id.
///
/// # Errors
/// The database cannot be read.
pub async fn system_balances(db: &mut AnyConnection) -> Result<HashMap<String, i64>, sqlx::Error> {
    let sql = "SELECT account_id, CAST(SUM(amount_minor) AS BIGINT) FROM entries \
               WHERE seq IS NULL GROUP BY account_id";
    let rows = sqlx::query(sql).fetch_all(&mut *db).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}
