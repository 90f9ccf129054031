//! Proving the books: every sum, every chain, every seal, over everything.
//!
//! Beside a host that runs, all of this reads one snapshot ([`crate::db::Db::snapshot`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{BATCH_ID, Shape};
use crate::db::cell::{Cell, Kind, Row};

use super::journal::{Digested, Line, Link};
use super::seal::{digest_of, seal_hash, writer_of};
use super::sql;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which check noticed it.
    pub check: &'static str,
    /// What is wrong, in words.
    pub what: String,
}

/// Everything that was noticed.
#[derive(Debug, Default)]
pub struct Faults {
    /// In the order in which they were noticed, up to a limit for each check.
    pub list: Vec<Fault>,
    /// How many each check noticed.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Faults of one check that are listed; all are counted.
const LISTED_MAX: u64 = 1_000;

impl Faults {
    /// Takes note of a fault.
    pub fn add(&mut self, check: &'static str, what: impl Into<String>) {
        let count = self.counts.entry(check).or_default();
        *count += 1;
        if *count <= LISTED_MAX {
            self.list.push(Fault { check, what: what.into() });
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// A query that finds what must not be. Its first column names what it found; a second one, if
/// there is one, says more.
pub struct Check {
    /// The check's name.
    pub name: &'static str,
    /// What it means that something was found, after the name of what it was.
    pub means: &'static str,
    /// The query.
    pub finds: &'static str,
}

impl Check {
    /// Runs the query; each row is a fault.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run(
        &self,
        db: &mut AnyConnection,
        faults: &mut Faults,
    ) -> Result<(), sqlx::Error> {
        let mut rows = sqlx::query(self.finds).fetch(db);
        while let Some(row) = rows.try_next().await? {
            let id: Option<String> = row.try_get(0)?;
            faults.add(self.name, format!("{} {}", id.unwrap_or_default(), self.means));
        }
        Ok(())
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proven {
    /// Journals that sum to zero.
    pub journals: u64,
    /// Entries of all accounts.
    pub entries: u64,
    /// Wallets whose chain and balance are right.
    pub wallets: u64,
    /// Batches whose seal is right.
    pub batches: u64,
}

const CHECKS: &[Check] = &[
    Check {
        name: "entries-without-journal",
        means: "has entries and is no journal",
        finds: "SELECT DISTINCT e.journal_id FROM entries e LEFT JOIN journals j \
                ON j.id = e.journal_id WHERE j.id IS NULL",
    },
    Check {
        name: "entry-without-wallet",
        means: "is no wallet and has entries",
        finds: "SELECT DISTINCT e.account_id FROM entries e LEFT JOIN wallets w \
                ON w.id = e.account_id WHERE w.id IS NULL AND e.account_id NOT LIKE 'system/%'",
    },
    Check {
        name: "system-account-numbered",
        means: "is a system account and has numbered entries",
        finds: "SELECT DISTINCT account_id FROM entries \
                WHERE account_id LIKE 'system/%' AND (seq IS NOT NULL OR hash IS NOT NULL \
                OR balance_after_minor IS NOT NULL)",
    },
    Check {
        name: "wallet-below-zero",
        means: "is a wallet below zero",
        finds: "SELECT id FROM wallets WHERE available_minor < 0 OR pending_out_minor < 0",
    },
];

/// Recomputes every journal's sum, every wallet's chain and every batch's seal, and compares
/// with what is stored. `sealed` are all tables that batches seal.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    sealed: &[&dyn Shape],
    faults: &mut Faults,
) -> Result<Proven, sqlx::Error> {
    let mut proven = Proven::default();
    for check in CHECKS {
        check.run(db, faults).await?;
    }
    books(db, &mut proven, faults).await?;
    seals(db, sealed, &mut proven, faults).await?;
    Ok(proven)
}

/// The tables that the ledger itself seals.
#[must_use]
pub fn sealed() -> Vec<&'static dyn Shape> {
    vec![&sql::JOURNALS, &sql::ENTRIES, &sql::NEW_RESERVATIONS, &super::wallets::NEW_WALLETS]
}

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
async fn books(
    db: &mut AnyConnection,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let stated = stated(db).await?;
    let mut walked: HashMap<String, Walked> = HashMap::new();
    let sql = "SELECT j.id, j.env, j.kind, j.ref_type, j.ref_id, j.round, \
               j.created_at AS journal_at, e.line, e.account_id, e.currency, e.amount_minor, \
               e.source, e.description, e.sender, e.seq, e.balance_after_minor, e.hash, \
               e.created_at AS entry_at FROM journals j LEFT JOIN entries e \
               ON e.journal_id = j.id ORDER BY j.id, e.line";
    let mut rows = sqlx::query(sql).fetch(&mut *db);
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

/// Every batch's seal follows from the one before and covers what is there: no row was changed,
/// added, moved or taken away.
async fn seals(
    db: &mut AnyConnection,
    sealed: &[&dyn Shape],
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let mut digests = chain(db, proven, faults).await?;
    for shape in sealed {
        seals_of(db, *shape, &mut digests, faults).await?;
    }
    for (id, tables) in digests {
        for table in tables.keys() {
            faults.add("seal", format!("batch {id} wrote to {table}, and its rows are gone"));
        }
    }
    Ok(())
}

/// What batches say that they wrote, by batch and table.
type Digests = HashMap<i64, BTreeMap<String, String>>;

async fn chain(
    db: &mut AnyConnection,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<Digests, sqlx::Error> {
    let mut digests = Digests::new();
    let (mut heads, mut firsts) = (HashMap::new(), Vec::new());
    let mut hashes = HashSet::new();
    let sql = "SELECT id, previous, digests, hash, created_at FROM writer_batches \
               WHERE hash <> '' OR digests <> '' OR previous <> '' ORDER BY id";
    let mut rows = sqlx::query(sql).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        let (previous, said, hash): (String, String, String) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let at = Moment::from_micros(row.try_get(4)?);
        if seal_hash(&previous, id, &said, at) != hash {
            faults.add("seal-chain", format!("batch {id}: its seal does not fit it"));
        }
        match heads.insert(writer_of(id), hash.clone()) {
            Some(head) if head != previous => {
                faults.add("seal-chain", format!("batch {id} does not follow the one before"));
            }
            Some(_) => {}
            None => firsts.push((id, previous)),
        }
        hashes.insert(hash);
        digests.insert(id, serde_json::from_str(&said).unwrap_or_default());
        proven.batches += 1;
    }
    // A writer's first batch follows the last one that there was when the writer began.
    for (id, previous) in firsts {
        if !previous.is_empty() && !hashes.contains(&previous) {
            let what = format!("batch {id} follows one that is not there");
            faults.add("seal-chain", what);
        }
    }
    Ok(digests)
}

async fn seals_of(
    db: &mut AnyConnection,
    shape: &dyn Shape,
    digests: &mut Digests,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let table = shape.table();
    let columns = &shape.columns()[..shape.fixed()];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let batch = BATCH_ID.0;
    let sql = format!("SELECT {batch}, {} FROM {table} ORDER BY {batch}", names.join(", "));
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(db);
    let mut group: Option<(i64, Vec<Row>)> = None;
    let mut end = |id: i64, rows: &[Row], faults: &mut Faults| {
        let said = digests.get_mut(&id).and_then(|tables| tables.remove(table));
        match said {
            Some(said) if said == digest_of(columns.len(), rows.iter()) => {}
            Some(_) => {
                faults.add("seal", format!("batch {id}: rows of {table} are not as written"))
            }
            None => faults.add("seal", format!("batch {id} did not write to {table}")),
        }
    };
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        if let Some((known, rows)) = &group
            && *known != id
        {
            end(*known, rows, faults);
            group = None;
        }
        let cells = cells(&row, columns)?;
        group.get_or_insert_with(|| (id, Vec::new())).1.push(cells);
    }
    if let Some((id, rows)) = group {
        end(id, &rows, faults);
    }
    Ok(())
}

fn cells(row: &AnyRow, columns: &[(&'static str, Kind)]) -> Result<Row, sqlx::Error> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Text => Cell::Text(row.try_get(at + 1)?),
            Kind::Int => Cell::Int(row.try_get(at + 1)?),
        })
    };
    columns.iter().enumerate().map(cell).collect()
}

/// Balances of the platform's own accounts, by account id.
///
/// # Errors
/// The database cannot be read.
pub async fn system_balances(db: &mut AnyConnection) -> Result<HashMap<String, i64>, sqlx::Error> {
    let sql = "SELECT account_id, CAST(SUM(amount_minor) AS BIGINT) FROM entries \
               WHERE account_id LIKE 'system/%' GROUP BY account_id";
    let rows = sqlx::query(sql).fetch_all(&mut *db).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}
