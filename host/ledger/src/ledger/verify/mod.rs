//! Proving the books: every sum, every chain, every seal, over everything.
//!
//! Beside a host that runs, all of this reads one snapshot ([`crate::db::Db::snapshot`]). Whoever
//! can rewrite every row can make every chain anew, and then only an [`Anchor`] that was kept
//! elsewhere tells: the hashes that it names are not there any more.

mod books;
mod fresh;
mod read;
mod seals;
mod these;

use std::collections::{BTreeMap, HashMap};

use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::Engine;
use crate::db::bulk::Shape;

use super::sql;

pub use fresh::Fresh;
pub use read::{StoredJournal, read_journals, same_journals};
pub use seals::heads;
pub use these::{These, Walk, fill_in};

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

/// A query that finds what must not be; its one column names what it found.
pub struct Check {
    /// The check's name.
    pub name: &'static str,
    /// What it means that something was found, after the name of what it was.
    pub means: &'static str,
    /// The query. `{fresh journals j}` in it stands for the condition that a row of that sealed
    /// table, under that name, is to be looked at; `{these p.id}` for [`These`]. What else a caller
    /// fills in itself, it says so.
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
        fresh: &Fresh,
        faults: &mut Faults,
    ) -> Result<(), sqlx::Error> {
        self.run_as(db, (fresh.filled_in(self.finds), &[]), faults).await
    }

    /// The same with the query as its caller completed it, and its parameters.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn run_as(
        &self,
        db: &mut AnyConnection,
        (sql, parameters): (String, &[String]),
        faults: &mut Faults,
    ) -> Result<(), sqlx::Error> {
        let query = sqlx::query(AssertSqlSafe(sql));
        let mut rows = parameters.iter().fold(query, sqlx::query::Query::bind).fetch(db);
        while let Some(row) = rows.try_next().await? {
            let id: Option<String> = row.try_get(0)?;
            faults.add(self.name, format!("{} {}", id.unwrap_or_default(), self.means));
        }
        Ok(())
    }
}

/// Where every writer's chain of seals stood: kept elsewhere, it shows later that nothing before
/// it was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The last sealed batch of each writer, and its hash.
    pub heads: BTreeMap<i64, String>,
}

/// What is to be proved.
pub struct Scope<'a> {
    /// The database's.
    pub engine: Engine,
    /// All tables that batches seal.
    pub sealed: Vec<&'a dyn Shape>,
    /// An anchor that must still hold.
    pub against: Option<&'a Anchor>,
    /// Whether what was written up to that anchor is taken as proved.
    pub is_since: bool,
    /// Tables of which old rows are swept away, each with the instant before which they may be.
    pub swept: HashMap<String, Moment>,
}

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub struct Proven {
    /// Where the chains of seals stand now.
    pub anchor: Anchor,
    /// The batches that were looked at.
    pub fresh: Fresh,
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
        name: "journal-without-wallet",
        means: "is no wallet and has journals",
        finds: "SELECT DISTINCT j.wallet_id FROM journals j LEFT JOIN wallets w \
                ON w.id = j.wallet_id WHERE j.wallet_id IS NOT NULL AND w.id IS NULL \
                AND {fresh journals j}",
    },
    Check {
        name: "wallet-below-zero",
        means: "is a wallet below zero",
        finds: "SELECT id FROM wallet_balances WHERE available_minor < 0 \
                OR pending_out_minor < 0",
    },
];

/// Recomputes every journal's sum, every wallet's chain and every batch's seal, and compares
/// with what is stored.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    faults: &mut Faults,
) -> Result<Proven, sqlx::Error> {
    let mut proven = Proven::default();
    let wrote = seals::chain(db, scope, &mut proven, faults).await?;
    for check in CHECKS {
        check.run(db, &proven.fresh, faults).await?;
    }
    books::prove(db, &mut proven, faults).await?;
    seals::compare(db, scope, (wrote, &proven.fresh), faults).await?;
    Ok(proven)
}

/// The tables that the ledger itself seals.
#[must_use]
pub fn sealed() -> Vec<&'static dyn Shape> {
    vec![&sql::JOURNALS, &sql::NEW_RESERVATIONS, &sql::NEW_EXPIRING, &super::wallets::NEW_WALLETS]
}
