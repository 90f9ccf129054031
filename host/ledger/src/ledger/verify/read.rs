//! Journals as they are stored, each with all of its lines.

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;

use super::super::journal::{
    Account, Digested, Journal, Line, PAYOUT_DEBIT, Posting, StoredEntry, StoredLine,
    SystemAccount, WalletPlace,
};

/// A journal as it is stored.
pub struct StoredJournal {
    /// Its id.
    pub id: String,
    /// What kind of object it is about.
    pub ref_type: String,
    /// The object's id.
    pub ref_id: String,
    /// What kind of journal it is.
    pub kind: String,
    pub(super) round: i64,
    pub(super) env: String,
    pub(super) currency: String,
    pub(super) created_at: i64,
    /// In their order; none where they cannot be read.
    pub(super) lines: Vec<StoredLine<'static>>,
    pub(super) in_wallet: Option<WalletPlace>,
}

/// Reads the journals (`j`) that a condition names, with its parameters. They come as they lie,
/// which is nearly as they were written: a snapshot begins at a table's beginning.
///
/// # Errors
/// The database cannot be read.
pub async fn read_journals(
    db: &mut AnyConnection,
    (condition, parameters): (&str, &[String]),
    mut each: impl FnMut(StoredJournal),
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SELECT j.id, j.env, j.kind, j.ref_type, j.ref_id, j.round, j.currency, j.wallet_id, j.seq, \
         j.lines, j.hash, j.created_at FROM journals j WHERE {condition}"
    );
    let query = sqlx::query(AssertSqlSafe(sql));
    let mut rows = parameters.iter().fold(query, sqlx::query::Query::bind).fetch(db);
    while let Some(row) = rows.try_next().await? {
        each(StoredJournal::of(&row)?);
    }
    Ok(())
}

/// Whether these journals are what is booked, line by line, and nothing else is.
#[must_use]
pub fn same_journals(expected: &[Journal], booked: &[StoredJournal]) -> bool {
    expected.len() == booked.len()
        && expected.iter().all(|journal| booked.iter().any(|booked| booked.is(journal)))
}

impl StoredJournal {
    fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let lines: String = row.try_get("lines")?;
        let (wallet_id, seq, hash) =
            (row.try_get("wallet_id")?, row.try_get("seq")?, row.try_get("hash")?);
        let in_wallet = match (wallet_id, seq, hash) {
            (Some(wallet_id), Some(seq), Some(hash)) => Some(WalletPlace { wallet_id, seq, hash }),
            _ => None,
        };
        Ok(Self {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            ref_type: row.try_get("ref_type")?,
            ref_id: row.try_get("ref_id")?,
            round: row.try_get("round")?,
            env: row.try_get("env")?,
            currency: row.try_get("currency")?,
            created_at: row.try_get("created_at")?,
            // What cannot be read counts as no lines: the journal has too few.
            lines: serde_json::from_str(&lines).unwrap_or_default(),
            in_wallet,
        })
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        let lines = self.lines.iter().map(|StoredLine(account, amount, source, entry)| Line {
            account: account.as_deref().unwrap_or_else(|| self.wallet()).into(),
            amount_minor: *amount,
            source,
            description: entry.as_ref().map_or("", |StoredEntry(description, ..)| description),
            sender: entry.as_ref().and_then(|StoredEntry(_, _, sender)| sender.as_deref()),
        });
        let digested = Digested {
            id: &self.id,
            kind: &self.kind,
            ref_type: &self.ref_type,
            ref_id: &self.ref_id,
            round: self.round,
            env: &self.env,
            currency: &self.currency,
            created_at: Moment::from_micros(self.created_at),
            lines: lines.collect(),
        };
        digested.digest()
    }

    /// Whether its id is computed from its payout's.
    pub(super) fn is_first_debit(&self) -> bool {
        (self.kind.as_str(), self.round) == (PAYOUT_DEBIT, 1)
    }

    fn wallet(&self) -> &str {
        self.in_wallet.as_ref().map_or("", |place| &place.wallet_id)
    }

    /// What it moved into one of the platform's own accounts, in minor units; none where it did not
    /// touch it.
    #[must_use]
    pub fn moved_into(&self, account: &SystemAccount) -> Option<i64> {
        let name = account.name();
        let is_own = |line: &&StoredLine<'_>| line.0.as_deref() == Some(&*name);
        let own = self.lines.iter().filter(is_own);
        let amounts: Vec<i64> = own.map(StoredLine::amount_minor).collect();
        (!amounts.is_empty()).then(|| amounts.into_iter().fold(0, i64::saturating_add))
    }

    /// Whether it is this one, line by line; whatever object they are about.
    #[must_use]
    pub fn is(&self, journal: &Journal) -> bool {
        let heads = (journal.kind, journal.round, journal.env.as_str(), journal.currency.as_str());
        heads == (self.kind.as_str(), self.round, self.env.as_str(), self.currency.as_str())
            && journal.postings.len() == self.lines.len()
            && journal
                .postings
                .iter()
                .zip(&self.lines)
                .all(|(posting, line)| self.has(posting, line))
    }

    fn has(
        &self,
        posting: &Posting,
        StoredLine(account, amount, source, entry): &StoredLine<'_>,
    ) -> bool {
        let is_account = match &posting.account {
            Account::Wallet(wallet) => account.is_none() && wallet.as_str() == self.wallet(),
            Account::System(own) => account.as_deref() == Some(&*own.name()),
        };
        let description = entry.as_ref().map_or("", |StoredEntry(description, ..)| description);
        is_account
            && posting.amount.units() == *amount
            && posting.source.as_str() == source
            && posting.description == description
    }
}
