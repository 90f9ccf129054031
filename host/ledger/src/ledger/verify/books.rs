//! Journals, entries and wallets: every sum, every number, every balance, every hash.

use std::collections::{BTreeMap, HashMap};

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;

use super::super::journal::{Digested, Line, Link};
use super::{Faults, Fresh, Proven};

/// A journal with its lines, as they are read.
struct ReadJournal {
    id: String,
    kind: String,
    ref_type: String,
    ref_id: String,
    round: i64,
    env: String,
    created_at: i64,
    lines: Vec<ReadLine>,
}

struct ReadLine {
    line: i64,
    account: String,
    currency: String,
    amount: i64,
    source: String,
    description: String,
    sender: Option<String>,
    seq: Option<i64>,
    balance_after: Option<i64>,
    hash: Option<String>,
    created_at: i64,
}

impl ReadJournal {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            ref_type: row.try_get("ref_type")?,
            ref_id: row.try_get("ref_id")?,
            round: row.try_get("round")?,
            env: row.try_get("env")?,
            created_at: row.try_get("journal_at")?,
            lines: Vec::new(),
        })
    }

    fn digest(&self) -> [u8; 32] {
        let lines = self.lines.iter().map(|line| Line {
            account: &line.account,
            currency: &line.currency,
            amount_minor: line.amount,
            source: &line.source,
            description: &line.description,
            sender: line.sender.as_deref(),
        });
        let digested = Digested {
            id: &self.id,
            kind: &self.kind,
            ref_type: &self.ref_type,
            ref_id: &self.ref_id,
            round: self.round,
            env: &self.env,
            created_at: Moment::from_micros(self.created_at),
            lines: lines.collect(),
        };
        digested.digest()
    }

    /// What is wrong with it by itself.
    fn check(&self, faults: &mut Faults) {
        let id = &self.id;
        if self.lines.len() < 2 {
            faults.add("journal-lines", format!("journal {id} has {} lines", self.lines.len()));
        }
        let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
        for (line, at) in self.lines.iter().zip(0..) {
            *sums.entry(&line.currency).or_default() += i128::from(line.amount);
            if line.line != at {
                faults.add("journal-lines", format!("journal {id} has line {}", line.line));
            }
            if line.created_at != self.created_at {
                let what = format!("journal {id}, line {at}: another instant than its journal's");
                faults.add("journal-instant", what);
            }
            if let Some(account) = line.account.strip_prefix("system/") {
                let place = format!("{}/{}/", self.env, line.currency);
                if !account.starts_with(&place) {
                    let what = format!("journal {id}, line {at}: {} is not its own", line.account);
                    faults.add("journal-crosses", what);
                }
            }
        }
        for (currency, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
            faults.add("journal-sum", format!("journal {id} is off by {sum} {currency}"));
        }
    }
}

impl ReadLine {
    fn of(row: &AnyRow) -> Result<Option<Self>, sqlx::Error> {
        let Some(line) = row.try_get("line")? else { return Ok(None) };
        Ok(Some(Self {
            line,
            account: row.try_get("account_id")?,
            currency: row.try_get("currency")?,
            amount: row.try_get("amount_minor")?,
            source: row.try_get("source")?,
            description: row.try_get("description")?,
            sender: row.try_get("sender")?,
            seq: row.try_get("seq")?,
            balance_after: row.try_get("balance_after_minor")?,
            hash: row.try_get("hash")?,
            created_at: row.try_get("entry_at")?,
        }))
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
    let fresh = proven.fresh.condition("j.batch_id");
    let sql = format!(
        "SELECT j.id, j.env, j.kind, j.ref_type, j.ref_id, j.round, \
               j.created_at AS journal_at, e.line, e.account_id, e.currency, e.amount_minor, \
               e.source, e.description, e.sender, e.seq, e.balance_after_minor, e.hash, \
               e.created_at AS entry_at FROM journals j LEFT JOIN entries e \
               ON e.journal_id = j.id WHERE {fresh} ORDER BY j.id, e.line"
    );
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(&mut *db);
    let mut journal: Option<ReadJournal> = None;
    while let Some(row) = rows.try_next().await? {
        let id: String = row.try_get("id")?;
        if journal.as_ref().is_none_or(|journal| journal.id != id) {
            if let Some(journal) = journal.take() {
                proven.journals += 1;
                follow(&journal, &stated, &mut walked, faults);
            }
            journal = Some(ReadJournal::of(&row)?);
        }
        if let (Some(journal), Some(line)) = (&mut journal, ReadLine::of(&row)?) {
            proven.entries += 1;
            journal.lines.push(line);
        }
    }
    drop(rows);
    if let Some(journal) = journal {
        proven.journals += 1;
        follow(&journal, &stated, &mut walked, faults);
    }
    for (wallet, stated) in &stated {
        compare(wallet, stated, walked.get(wallet), faults);
        proven.wallets += 1;
    }
    Ok(())
}

/// Where wallets stood when the first of the batches that are looked at was written.
async fn begun(
    db: &mut AnyConnection,
    fresh: &Fresh,
) -> Result<HashMap<String, Walked>, sqlx::Error> {
    if fresh.is_all() {
        return Ok(HashMap::new());
    }
    let fresh = fresh.condition("batch_id");
    let sql = format!(
        "SELECT e.account_id, e.seq, e.balance_after_minor, e.hash FROM entries e JOIN \
         (SELECT account_id, MAX(seq) AS seq FROM entries WHERE seq IS NOT NULL AND NOT {fresh} \
         GROUP BY account_id) last ON last.account_id = e.account_id AND last.seq = e.seq"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(db).await?;
    rows.iter()
        .map(|row| {
            let head: Option<String> = row.try_get(3)?;
            let walked = Walked {
                seq: row.try_get(1)?,
                balance: row.try_get(2)?,
                head: head.unwrap_or_default(),
                early: BTreeMap::new(),
            };
            Ok((row.try_get(0)?, walked))
        })
        .collect()
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
    journal: &ReadJournal,
    stated: &HashMap<String, Stated>,
    walked: &mut HashMap<String, Walked>,
    faults: &mut Faults,
) {
    journal.check(faults);
    let digest = journal.digest();
    for line in &journal.lines {
        let Some(wallet) = stated.get(&line.account) else { continue };
        if (&wallet.env, &wallet.currency) != (&journal.env, &line.currency) {
            let what = format!("journal {} crosses into wallet {}", journal.id, line.account);
            faults.add("journal-crosses", what);
        }
        let numbered = (line.seq, line.balance_after, line.hash.clone());
        let (Some(seq), Some(balance_after), Some(hash)) = numbered else {
            let what = format!("journal {}, line {}: not numbered", journal.id, line.line);
            faults.add("wallet-chain", what);
            continue;
        };
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
