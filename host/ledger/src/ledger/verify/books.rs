//! Journals, entries and wallets: every sum, every number, every balance, every hash.

use std::collections::{BTreeMap, HashMap};

use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use super::super::journal::Link;
use super::read::{StoredJournal, read_journals};
use super::{Faults, Fresh, Proven};

/// What is wrong with a journal by itself.
fn check(journal: &StoredJournal, faults: &mut Faults) {
    let id = &journal.id;
    if journal.lines.len() < 2 {
        faults.add("journal-lines", format!("journal {id} has {} lines", journal.lines.len()));
    }
    for (line, at) in journal.lines.iter().zip(0..) {
        if line.line != at {
            faults.add("journal-lines", format!("journal {id} has line {}", line.line));
        }
    }
    let sum: i128 = journal.lines.iter().map(|line| i128::from(line.amount)).sum();
    if sum != 0 {
        faults.add("journal-sum", format!("journal {id} is off by {sum} {}", journal.currency));
    }
}

/// What a wallet's row says.
struct Stated {
    env: String,
    currency: String,
    available: i64,
    seq: i64,
    head: String,
}

/// What its entries say so far. Entries come in the order of journals' ids, which hosts whose
/// clocks differ may have made in another order than they booked: early ones wait.
#[derive(Default)]
struct Walked {
    balance: i64,
    seq: i64,
    head: String,
    early: BTreeMap<i64, Waiting>,
}

struct Waiting {
    amount: i64,
    balance_after: i64,
    hash: String,
    link: ([u8; 32], i64),
}

/// One pass over all journals: each balances, and each wallet's entries are numbered 1 to n,
/// each balance follows from the one before, each hash from the one before, and the last of each
/// is what the wallet says.
pub(super) async fn prove(
    db: &mut AnyConnection,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let stated = stated(db).await?;
    let mut walked = begun(db, &proven.fresh).await?;
    let fresh = proven.fresh.rows("journals", "j");
    let (mut journals, mut entries) = (0, 0);
    let each = |journal: StoredJournal| {
        journals += 1;
        entries += u64::try_from(journal.lines.len()).unwrap_or(0);
        follow(&journal, &stated, &mut walked, faults);
    };
    read_journals(db, (&fresh, &[]), each).await?;
    (proven.journals, proven.entries) = (journals, entries);
    for (wallet, stated) in &stated {
        compare(wallet, stated, walked.get(wallet), faults);
        proven.wallets += 1;
    }
    Ok(())
}

/// Where wallets stood before the first of the entries that are looked at, or stand, where there
/// are none of theirs.
async fn begun(
    db: &mut AnyConnection,
    fresh: &Fresh,
) -> Result<HashMap<String, Walked>, sqlx::Error> {
    if fresh.is_all() {
        return Ok(HashMap::new());
    }
    // Two walks over an index each. From wallets to entries: a cross join says so to SQLite.
    let last = "SELECT e.wallet_id, e.seq, e.balance_after_minor, e.hash \
                FROM wallets w CROSS JOIN entries e WHERE e.wallet_id = w.id \
                AND e.seq = (SELECT MAX(l.seq) FROM entries l WHERE l.wallet_id = w.id)";
    let before = format!(
        "SELECT f.wallet_id, e.seq, e.balance_after_minor, e.hash FROM \
         (SELECT n.wallet_id, MIN(n.seq) AS seq FROM entries n WHERE {} GROUP BY n.wallet_id) f \
         LEFT JOIN entries e ON e.wallet_id = f.wallet_id AND e.seq = f.seq - 1",
        fresh.rows("entries", "n")
    );
    let mut begun = HashMap::new();
    for sql in [last.to_owned(), before] {
        for row in sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *db).await? {
            let wallet: String = row.try_get(0)?;
            match row.try_get::<Option<i64>, _>(1)? {
                Some(seq) => {
                    let (balance, head) = (row.try_get(2)?, row.try_get(3)?);
                    begun.insert(wallet, Walked { seq, balance, head, early: BTreeMap::new() });
                }
                // All of its entries are looked at.
                None => {
                    begun.remove(&wallet);
                }
            }
        }
    }
    Ok(begun)
}

async fn stated(db: &mut AnyConnection) -> Result<HashMap<String, Stated>, sqlx::Error> {
    let sql = "SELECT id, env, currency, available_minor, seq, head_hash FROM wallets";
    let rows = sqlx::query(sql).fetch_all(db).await?;
    rows.iter()
        .map(|row| {
            let stated = Stated {
                env: row.try_get(1)?,
                currency: row.try_get(2)?,
                available: row.try_get(3)?,
                seq: row.try_get(4)?,
                head: row.try_get(5)?,
            };
            Ok((row.try_get(0)?, stated))
        })
        .collect()
}

/// Checks a journal and takes its wallet lines along.
fn follow(
    journal: &StoredJournal,
    stated: &HashMap<String, Stated>,
    walked: &mut HashMap<String, Walked>,
    faults: &mut Faults,
) {
    check(journal, faults);
    let digest = journal.digest();
    for line in &journal.lines {
        let Some(place) = &line.place else { continue };
        let Some(wallet) = stated.get(&line.account) else { continue };
        if (&wallet.env, &wallet.currency) != (&journal.env, &journal.currency) {
            let what = format!("journal {} crosses into wallet {}", journal.id, line.account);
            faults.add("journal-crosses", what);
        }
        let (seq, balance_after, hash) = (place.seq, place.balance_after, place.hash.clone());
        let so_far = walked.entry(line.account.clone()).or_default();
        let link = (digest, line.line);
        let waiting = Waiting { amount: line.amount, balance_after, hash, link };
        if so_far.early.insert(seq, waiting).is_some() || seq <= so_far.seq {
            let what = format!("wallet {} has two entries {seq}", line.account);
            faults.add("wallet-chain", what);
        }
        while let Some(next) = so_far.early.remove(&(so_far.seq + 1)) {
            so_far.step(&line.account, &next, faults);
        }
    }
}

impl Walked {
    fn step(&mut self, wallet: &str, next: &Waiting, faults: &mut Faults) {
        let seq = self.seq + 1;
        if self.balance.checked_add(next.amount) != Some(next.balance_after) {
            let what = format!("wallet {wallet}, entry {seq}: the balance does not follow");
            faults.add("wallet-chain", what);
        }
        if next.balance_after < 0 {
            let what = format!("wallet {wallet}, entry {seq}: the balance is below zero");
            faults.add("wallet-below-zero", what);
        }
        let (journal, line) = next.link;
        let link = Link {
            previous: &self.head,
            wallet,
            seq,
            journal,
            line,
            balance_after_minor: next.balance_after,
        };
        if link.hash() != next.hash {
            let what = format!("wallet {wallet}, entry {seq}: the hash does not follow");
            faults.add("wallet-chain", what);
        }
        (self.balance, self.seq) = (next.balance_after, seq);
        self.head.clone_from(&next.hash);
    }
}

fn compare(wallet: &str, stated: &Stated, walked: Option<&Walked>, faults: &mut Faults) {
    let nothing = Walked::default();
    let found = walked.unwrap_or(&nothing);
    if let Some(seq) = found.early.keys().next() {
        let what = format!("wallet {wallet} has entry {seq} after entry {}", found.seq);
        faults.add("wallet-chain", what);
    }
    if (stated.available, stated.seq) != (found.balance, found.seq) {
        let what = format!(
            "wallet {wallet} says {} after {} entries, its entries say {} after {}",
            stated.available, stated.seq, found.balance, found.seq
        );
        faults.add("wallet-balance", what);
    }
    if stated.head != found.head {
        let what = format!("wallet {wallet} has another last hash than its entries");
        faults.add("wallet-chain", what);
    }
}
