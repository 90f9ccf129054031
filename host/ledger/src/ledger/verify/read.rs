//! Journals as they are stored, each with all of its lines.

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;

use super::super::journal::{Account, Digested, Journal, Line, OwnLine, SystemAccount};

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
    /// In their order.
    pub(super) lines: Vec<StoredLine>,
}

/// A line of a journal as it is stored.
pub(super) struct StoredLine {
    pub line: i64,
    /// The wallet's id, or the last part of the id of one of the platform's own accounts.
    pub account: String,
    pub amount: i64,
    pub source: String,
    pub description: String,
    pub sender: Option<String>,
    /// Where it stands in the wallet, if it is one to a wallet.
    pub place: Option<Place>,
}

/// Where an entry stands in its wallet.
pub(super) struct Place {
    pub seq: i64,
    pub balance_after: i64,
    pub hash: String,
}

/// Reads the journals (`j`) that a condition names, in the order of their ids; with its
/// parameters.
///
/// # Errors
/// The database cannot be read.
pub async fn read_journals(
    db: &mut AnyConnection,
    (condition, parameters): (&str, &[String]),
    mut each: impl FnMut(StoredJournal),
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SELECT j.id, j.env, j.kind, j.ref_type, j.ref_id, j.round, j.currency, j.own_lines, \
         j.created_at, e.wallet_id, e.seq, e.line, e.amount_minor, e.source, e.description, \
         e.sender, e.balance_after_minor, e.hash FROM journals j LEFT JOIN entries e \
         ON e.journal_id = j.id WHERE {condition} ORDER BY j.id"
    );
    let query = sqlx::query(AssertSqlSafe(sql));
    let mut rows = parameters.iter().fold(query, sqlx::query::Query::bind).fetch(db);
    let mut last: Option<StoredJournal> = None;
    while let Some(row) = rows.try_next().await? {
        let id: String = row.try_get("id")?;
        if last.as_ref().is_none_or(|last| last.id != id) {
            let begun = StoredJournal::begin(&row)?;
            last.replace(begun).into_iter().for_each(|whole| each(whole.in_order()));
        }
        if let (Some(journal), Some(line)) = (&mut last, StoredLine::entry(&row)?) {
            journal.lines.push(line);
        }
    }
    last.into_iter().for_each(|whole| each(whole.in_order()));
    Ok(())
}

/// Whether these journals are what is booked, line by line, and nothing else is.
#[must_use]
pub fn same_journals(expected: &[Journal], booked: &[StoredJournal]) -> bool {
    expected.len() == booked.len()
        && expected.iter().all(|journal| booked.iter().any(|booked| booked.is(journal)))
}

impl StoredJournal {
    /// The journal with the lines that stand in its own row.
    fn begin(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let own: String = row.try_get("own_lines")?;
        // What cannot be read counts as no lines: the journal is off balance, or has too few.
        let own: Vec<OwnLine<'_>> = serde_json::from_str(&own).unwrap_or_default();
        let lines = own.into_iter().map(|OwnLine(line, account, amount, source)| StoredLine {
            line,
            account: account.into_owned(),
            amount,
            source: source.into_owned(),
            description: String::new(),
            sender: None,
            place: None,
        });
        Ok(Self {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            ref_type: row.try_get("ref_type")?,
            ref_id: row.try_get("ref_id")?,
            round: row.try_get("round")?,
            env: row.try_get("env")?,
            currency: row.try_get("currency")?,
            created_at: row.try_get("created_at")?,
            lines: lines.collect(),
        })
    }

    fn in_order(mut self) -> Self {
        self.lines.sort_by_key(|line| line.line);
        self
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        let lines = self.lines.iter().map(|line| Line {
            account: line.account.as_str().into(),
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
            currency: &self.currency,
            created_at: Moment::from_micros(self.created_at),
            lines: lines.collect(),
        };
        digested.digest()
    }

    /// What it moved into one of the platform's own accounts, in minor units; none where it did not
    /// touch it.
    #[must_use]
    pub fn moved_into(&self, account: &SystemAccount) -> Option<i64> {
        let name = account.name();
        let lines = self.lines.iter().filter(|line| line.place.is_none() && line.account == name);
        let amounts: Vec<i64> = lines.map(|line| line.amount).collect();
        (!amounts.is_empty()).then(|| amounts.into_iter().fold(0, i64::saturating_add))
    }

    /// Whether it is this one, line by line; whatever object they are about.
    #[must_use]
    pub fn is(&self, journal: &Journal) -> bool {
        let heads = (journal.kind, journal.round, journal.env.as_str(), journal.currency.as_str());
        heads == (self.kind.as_str(), self.round, self.env.as_str(), self.currency.as_str())
            && journal.postings.len() == self.lines.len()
            && journal.postings.iter().zip(&self.lines).all(|(posting, line)| {
                let is_account = match &posting.account {
                    Account::Wallet(wallet) => {
                        line.place.is_some() && wallet.as_str() == line.account
                    }
                    Account::System(own) => line.place.is_none() && own.name() == line.account,
                };
                is_account
                    && posting.amount.units() == line.amount
                    && posting.source.as_str() == line.source
                    && posting.description == line.description
            })
    }
}

impl StoredLine {
    /// The line to a wallet that a row has, if it has one.
    fn entry(row: &AnyRow) -> Result<Option<Self>, sqlx::Error> {
        let Some(seq) = row.try_get("seq")? else { return Ok(None) };
        let place = Place {
            seq,
            balance_after: row.try_get("balance_after_minor")?,
            hash: row.try_get("hash")?,
        };
        Ok(Some(Self {
            line: row.try_get("line")?,
            account: row.try_get("wallet_id")?,
            amount: row.try_get("amount_minor")?,
            source: row.try_get("source")?,
            description: row.try_get("description")?,
            sender: row.try_get("sender")?,
            place: Some(place),
        }))
    }
}
