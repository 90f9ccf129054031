//! Journals, entries and wallets: every sum, every number, every balance, every hash.

use std::collections::{BTreeMap, HashMap};

use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::id::{JournalId, PayoutId};

use super::super::journal::{Link, StoredLine, WalletPlace};
use super::read::{StoredJournal, read_journals};
use super::{Faults, Fresh, Proven};

/// What is wrong with a journal by itself.
fn check(journal: &StoredJournal, faults: &mut Faults) {
    let id = &journal.id;
    let debited = PayoutId::parse(&journal.ref_id).map(|payout| JournalId::of_debit(&payout));
    if journal.is_first_debit() && debited.is_none_or(|debit| debit.as_str() != id) {
        faults.add("journal-id", format!("journal {id} has an id that is not its payout's"));
    }
    if journal.lines.len() < 2 {
        faults.add("journal-lines", format!("journal {id} has {} lines", journal.lines.len()));
    }
    // Lines to its wallet stand first, if it has one, and no others say what only those do.
    let entries = journal.lines.iter().take_while(|line| line.is_entry()).count();
    let is_odd = (entries > 0) != journal.in_wallet.is_some()
        || journal.lines[entries..].iter().any(StoredLine::is_entry)
        || journal.lines.iter().any(|line| line.is_entry() != line.3.is_some())
        || journal.lines.iter().any(|line| line.amount_minor() == 0);
    if is_odd {
        let what = format!("journal {id} has lines that do not fit together, or its wallet");
        faults.add("journal-lines", what);
    }
    let sum: i128 = journal.lines.iter().map(|line| i128::from(line.amount_minor())).sum();
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

/// What its entries say so far. Journals come as they lie, which is nearly the order in which they
/// were booked: early ones wait.
#[derive(Default)]
struct Walked {
    balance: i64,
    seq: i64,
    head: String,
    early: BTreeMap<i64, Waiting>,
}

/// What a journal does to its wallet.
struct Waiting {
    entries: Vec<Entry>,
    hash: String,
    digest: [u8; 32],
}

/// A line to the wallet, in minor units.
struct Entry {
    amount: i64,
    balance_after: i64,
}

/// One pass over all journals: each balances, each wallet's entries are numbered 1 to n, each
/// balance follows from the one before, each journal's hash from that of the wallet's journal before,
/// and the last of each is what the wallet says.
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

/// Where wallets stood before the first of the journals that are looked at, or stand, where there
/// are none of theirs.
async fn begun(
    db: &mut AnyConnection,
    fresh: &Fresh,
) -> Result<HashMap<String, Walked>, sqlx::Error> {
    if fresh.is_all() {
        return Ok(HashMap::new());
    }
    // Two walks over an index each. From wallets to journals: a cross join says so to SQLite.
    let last = "SELECT j.wallet_id, j.seq, j.lines, j.hash \
                FROM wallets w CROSS JOIN journals j WHERE j.wallet_id = w.id \
                AND j.seq = (SELECT MAX(l.seq) FROM journals l WHERE l.wallet_id = w.id)";
    let before = format!(
        "SELECT f.wallet_id, j.seq, j.lines, j.hash FROM \
         (SELECT n.wallet_id, MIN(n.seq) AS seq FROM journals n \
         WHERE n.wallet_id IS NOT NULL AND {} GROUP BY n.wallet_id) f \
         LEFT JOIN journals j ON j.wallet_id = f.wallet_id AND j.seq = (SELECT MAX(b.seq) \
         FROM journals b WHERE b.wallet_id = f.wallet_id AND b.seq < f.seq)",
        fresh.rows("journals", "n")
    );
    let mut begun = HashMap::new();
    for sql in [last.to_owned(), before] {
        for row in sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *db).await? {
            let wallet: String = row.try_get(0)?;
            match row.try_get::<Option<i64>, _>(1)? {
                Some(seq) => {
                    let lines: String = row.try_get(2)?;
                    let lines: Vec<StoredLine<'_>> =
                        serde_json::from_str(&lines).unwrap_or_default();
                    let entries = entries_of(&lines);
                    let balance = entries.last().map_or(0, |entry| entry.balance_after);
                    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
                    let seq = seq.saturating_add(count) - 1;
                    let head = row.try_get(3)?;
                    begun.insert(wallet, Walked { seq, balance, head, early: BTreeMap::new() });
                }
                // All of its journals are looked at.
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

fn entries_of(lines: &[StoredLine<'_>]) -> Vec<Entry> {
    let entry = |line: &StoredLine<'_>| {
        Some(Entry { amount: line.amount_minor(), balance_after: line.balance_after_minor()? })
    };
    lines.iter().filter_map(entry).collect()
}

/// Checks a journal and takes its entries along.
fn follow(
    journal: &StoredJournal,
    stated: &HashMap<String, Stated>,
    walked: &mut HashMap<String, Walked>,
    faults: &mut Faults,
) {
    check(journal, faults);
    let Some(WalletPlace { wallet_id: wallet, seq, hash }) = &journal.in_wallet else { return };
    let Some(of_wallet) = stated.get(wallet) else { return };
    if (&of_wallet.env, &of_wallet.currency) != (&journal.env, &journal.currency) {
        let what = format!("journal {} crosses into wallet {wallet}", journal.id);
        faults.add("journal-crosses", what);
    }
    let so_far = walked.entry(wallet.clone()).or_default();
    let (entries, hash) = (entries_of(&journal.lines), hash.clone());
    let waiting = Waiting { entries, hash, digest: journal.digest() };
    if so_far.early.insert(*seq, waiting).is_some() || *seq <= so_far.seq {
        faults.add("wallet-chain", format!("wallet {wallet} has two entries {seq}"));
    }
    while let Some(next) = so_far.early.remove(&(so_far.seq + 1)) {
        so_far.step(wallet, &next, faults);
    }
}

impl Walked {
    fn step(&mut self, wallet: &str, next: &Waiting, faults: &mut Faults) {
        let first = self.seq + 1;
        for Entry { amount, balance_after } in &next.entries {
            self.seq += 1;
            let seq = self.seq;
            if self.balance.checked_add(*amount) != Some(*balance_after) {
                let what = format!("wallet {wallet}, entry {seq}: the balance does not follow");
                faults.add("wallet-chain", what);
            }
            if *balance_after < 0 {
                let what = format!("wallet {wallet}, entry {seq}: the balance is below zero");
                faults.add("wallet-below-zero", what);
            }
            self.balance = *balance_after;
        }
        let link = Link {
            previous: &self.head,
            wallet,
            seq: first,
            journal: next.digest,
            balance_after_minor: self.balance,
        };
        if link.hash() != next.hash {
            let what = format!("wallet {wallet}, entry {first}: the hash does not follow");
            faults.add("wallet-chain", what);
        }
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
        let what = format!("wallet {wallet} has another last hash than its journals");
        faults.add("wallet-chain", what);
    }
}
