//! Reading wallets and their entries.

use std::time::Duration;

use moka::future::Cache;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, int, text};
use crate::db::{Db, Moves};
use crate::env::Env;
use crate::id::{Id as _, JournalId, MerchantId, WalletId};
use crate::money::{Currency, Minor};

use super::journal::PAYOUT_DEBIT;
use super::sql::HAS_OWN_ID;

/// A new, empty wallet.
#[derive(Clone, Debug)]
pub struct NewWallet {
    /// The wallet's id.
    pub id: WalletId,
    /// Whose it is.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// The one currency that it holds.
    pub currency: Currency,
    /// When it is created.
    pub created_at: Moment,
}

/// New wallets.
pub static NEW_WALLETS: Table<NewWallet> = Table {
    name: "wallets",
    fixed: &[
        text("id", |wallet| wallet.id.as_str().into()),
        text("merchant_id", |wallet| wallet.merchant_id.as_str().into()),
        text("env", |wallet| wallet.env.as_str().into()),
        text("currency", |wallet| wallet.currency.as_str().into()),
        int("created_at", |wallet| wallet.created_at.into()),
    ],
    changing: &[
        int("available_minor", |_| 0.into()),
        int("taken_out_minor", |_| 0.into()),
        int("seq", |_| 0.into()),
        text("head_hash", |_| "".into()),
        int("is_active", |_| true.into()),
        int("is_frozen", |_| false.into()),
        int("is_demo", |wallet| (wallet.env == Env::Test).into()),
        int("updated_at", |wallet| wallet.created_at.into()),
    ],
    on_conflict: None,
    is_sealed: true,
};

/// A wallet as it is read outside the writer.
#[derive(Clone, Debug)]
pub struct WalletRow {
    /// The wallet's id.
    pub id: WalletId,
    /// Whose it is.
    pub merchant_id: MerchantId,
    /// Test or live.
    pub env: Env,
    /// The one currency that it holds.
    pub currency: Currency,
    /// What can be spent.
    pub available: Minor,
    /// What left it and is not settled yet.
    pub pending_out: Minor,
    /// Whether it can be used.
    pub is_active: bool,
    /// Whether debits are refused.
    pub is_frozen: bool,
    /// Whether the sandbox filled it.
    pub is_demo: bool,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
}

/// An entry of a wallet.
#[derive(Clone, Debug)]
pub struct EntryRow {
    /// The id of the journal that it is a line of.
    pub journal_id: String,
    /// Its place in the journal.
    pub line: i64,
    /// Its place in the wallet.
    pub seq: i64,
    /// The amount in minor units; a debit is negative.
    pub amount: Minor,
    /// The wallet's currency.
    pub currency: String,
    /// What kind of movement it is, such as `payout_debit`.
    pub source: String,
    /// A line for the wallet's statement.
    pub description: String,
    /// Who sent it, as JSON.
    pub sender: Option<String>,
    /// The wallet's balance after it.
    pub balance_after: Minor,
    /// What kind of object it is about.
    pub ref_type: String,
    /// The object's id.
    pub ref_id: String,
    /// When it was posted.
    pub created_at: Moment,
}

/// Which wallet serves a merchant in a currency and environment, and since when. That never
/// changes, so it is looked up once in each database that connections lead to.
#[derive(Clone)]
pub struct WalletIds {
    db: Db,
    known: Cache<(MerchantId, Env, Currency, Moves), (WalletId, Moment)>,
}

impl WalletIds {
    /// Over this database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, known: Cache::new(limits::CACHE_ENTRIES_MAX) }
    }

    /// The wallet's id and when it was created, if there is such a wallet.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn find(
        &self,
        (merchant, env): (&MerchantId, Env),
        currency: Currency,
    ) -> Result<Option<(WalletId, Moment)>, sqlx::Error> {
        let key = (merchant.clone(), env, currency, self.db.moves());
        if let Some(known) = self.known.get(&key).await {
            return Ok(Some(known));
        }
        let found = find_wallet(self.db.pool(), (merchant, env), currency).await?;
        let Some(wallet) = found else { return Ok(None) };
        let known = (wallet.id, wallet.created_at);
        self.known.insert(key, known.clone()).await;
        Ok(Some(known))
    }
}

/// The wallet of a merchant in a currency and environment.
///
/// # Errors
/// The database cannot be read.
pub async fn find_wallet(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    currency: Currency,
) -> Result<Option<WalletRow>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, env, currency, available_minor, pending_out_minor, \
               is_active, is_frozen, is_demo, created_at, updated_at, settled_at FROM wallet_balances \
               WHERE merchant_id = $1 AND env = $2 AND currency = $3";
    let row = sqlx::query(sql)
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(currency.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(|row| wallet(&row)).transpose()
}

/// A wallet by id, whoever's it is; for the operator.
///
/// # Errors
/// The database cannot be read.
pub async fn get_wallet(pool: &AnyPool, id: &WalletId) -> Result<Option<WalletRow>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, env, currency, available_minor, pending_out_minor, \
               is_active, is_frozen, is_demo, created_at, updated_at, settled_at FROM wallet_balances WHERE id = $1";
    let row = sqlx::query(sql).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| wallet(&row)).transpose()
}

/// Every wallet of a merchant in an environment, by currency.
///
/// # Errors
/// The database cannot be read.
pub async fn list_wallets(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
) -> Result<Vec<WalletRow>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, env, currency, available_minor, pending_out_minor, \
               is_active, is_frozen, is_demo, created_at, updated_at, settled_at FROM wallet_balances \
               WHERE merchant_id = $1 AND env = $2 ORDER BY currency";
    let rows = sqlx::query(sql).bind(merchant.as_str()).bind(env.as_str()).fetch_all(pool).await?;
    rows.iter().map(wallet).collect()
}

/// The columns of an [`EntryRow`].
const ENTRY_COLUMNS: &str = "e.journal_id, e.line, e.seq, e.amount_minor, e.currency, e.source, \
                     e.description, e.sender, e.balance_after_minor, e.ref_type, e.ref_id, \
                     e.created_at";

/// Which entries of a wallet are wanted.
#[derive(Debug)]
pub struct Filter {
    /// Of this source; any, if empty.
    pub source: String,
    /// Credits (1), debits (-1) or both (0).
    pub direction: i64,
    /// Money that came in only.
    pub funding_only: bool,
    /// Before this number; from the newest, if none.
    pub before_seq: Option<i64>,
}

/// A page of a wallet's entries, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_entries(
    pool: &AnyPool,
    wallet: &WalletId,
    filter: &Filter,
    limit: i64,
) -> Result<Vec<EntryRow>, sqlx::Error> {
    // What debits of payouts consist of. All else is found by journals_besides_payouts: the condition
    // is literally that of the index, without which the planner does not see that it fits.
    let of_payouts = ["", "payout_debit", "payout_fee", "stamp_duty_collected"];
    let is_of_payouts = of_payouts.contains(&filter.source.as_str());
    let may_be_debits = filter.direction <= 0 && !filter.funding_only;
    let besides_payouts = match is_of_payouts && may_be_debits {
        true => "",
        false => "AND e.kind <> 'payout_debit'",
    };
    let sql = format!(
        "SELECT {ENTRY_COLUMNS} FROM entries e \
         WHERE e.wallet_id = $1 AND e.first_seq < $2 AND e.seq < $2 {besides_payouts} \
         AND ($3 = '' OR e.source = $3) AND ($4 = 0 OR e.amount_minor * $4 > 0) \
         AND ($5 = 0 OR (e.amount_minor > 0 AND e.source IN ('virtual_account_credit', \
         'admin_credit', 'promotional_credit', 'reconciliation_adjust', 'demo_seed', \
         'demo_self_fund'))) ORDER BY e.first_seq DESC, e.line DESC LIMIT $6"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(wallet.as_str())
        .bind(filter.before_seq.unwrap_or(i64::MAX))
        .bind(filter.source.as_str())
        .bind(filter.direction)
        .bind(i64::from(filter.funding_only))
        .bind(limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(entry).collect()
}

/// The number of an entry in its wallet.
///
/// # Errors
/// The database cannot be read.
pub async fn find_seq(
    pool: &AnyPool,
    wallet: &WalletId,
    (journal, line): (&JournalId, i64),
) -> Result<Option<i64>, sqlx::Error> {
    let payouts = journal.payouts_debited();
    // Two indexes: what has no id of its own is found by its payout. Neither is to be looked for
    // among all that the wallet has.
    let sql = format!(
        "SELECT e.seq FROM entries e WHERE e.line = $2 AND e.wallet_id = $3 AND e.first_seq = \
         (SELECT MAX(j.seq) FROM (SELECT seq FROM journals WHERE id = $1 AND wallet_id || '' = $3 \
         AND {HAS_OWN_ID} UNION ALL SELECT seq FROM journals WHERE id = $1 AND wallet_id || '' = $3 \
         AND kind = $4 AND round = 1 AND ref_id >= $5 AND ref_id <= $6) j)"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(journal.as_str())
        .bind(line)
        .bind(wallet.as_str())
        .bind(PAYOUT_DEBIT)
        .bind(payouts.start().as_str())
        .bind(payouts.end().as_str())
        .fetch_optional(pool)
        .await
}

/// Entries of a wallet that follow each other, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first one.
    pub from: i64,
    /// The first one after them.
    pub to: i64,
}

impl Span {
    /// The entries of a wallet from an instant to before another one. Spans of ranges that follow
    /// each other do so, too, even where clocks of several hosts differed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn of(
        pool: &AnyPool,
        wallet: &WalletId,
        (start, end): (Moment, Moment),
    ) -> Result<Self, sqlx::Error> {
        let sql = "SELECT seq FROM wallets WHERE id = $1";
        let last: i64 = sqlx::query_scalar(sql).bind(wallet.as_str()).fetch_one(pool).await?;
        let from = first_since(pool, (wallet, last), start).await?;
        let to = first_since(pool, (wallet, last), end).await?;
        Ok(Self { from, to })
    }

    /// The same in slices of so many numbers.
    pub fn slices(self, most: i64) -> impl Iterator<Item = Self> + Send {
        let next = move |from: &i64| Some(from.saturating_add(most)).filter(|from| *from < self.to);
        let begins = std::iter::successors(Some(self.from).filter(|from| *from < self.to), next);
        begins.map(move |from| Self { from, to: from.saturating_add(most).min(self.to) })
    }
}

/// The number after the last entry that was booked before an instant. Hosts' clocks differ, so
/// instants do not quite rise with numbers; this border follows from the entries alone, and stays
/// where it is once none can be added before it.
async fn first_since(
    pool: &AnyPool,
    (wallet, last): (&WalletId, i64),
    at: Moment,
) -> Result<i64, sqlx::Error> {
    // Every entry before the one is from before the instant, and every one from the other on is not.
    let low = halve(pool, (wallet, last), at.before(CLOCKS_DIFFER)).await?;
    let high = halve(pool, (wallet, last), at.after(CLOCKS_DIFFER)).await?;
    let sql = "SELECT MAX(e.seq) FROM entries e WHERE e.wallet_id = $1 AND e.first_seq = \
               (SELECT MAX(j.seq) FROM journals j WHERE j.wallet_id = $1 \
               AND j.seq >= $2 AND j.seq < $3 AND j.created_at < $4)";
    let found: Option<i64> = sqlx::query_scalar(sql)
        .bind(wallet.as_str())
        .bind(low)
        .bind(high)
        .bind(at.micros())
        .fetch_one(pool)
        .await?;
    Ok(found.map_or(low, |seq| seq + 1))
}

/// How far hosts' clocks may be apart.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// The number of an entry that was booked at an instant or later, the one before which was not.
async fn halve(
    pool: &AnyPool,
    (wallet, last): (&WalletId, i64),
    at: Moment,
) -> Result<i64, sqlx::Error> {
    let sql = "SELECT created_at FROM journals WHERE wallet_id = $1 AND seq <= $2 \
               ORDER BY seq DESC LIMIT 1";
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let query = sqlx::query_scalar(sql).bind(wallet.as_str()).bind(middle);
        let booked: i64 = query.fetch_one(pool).await?;
        match booked >= at.micros() {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(low)
}

/// The balance of a wallet before one of its entries.
///
/// # Errors
/// The database cannot be read.
pub async fn balance_before(
    pool: &AnyPool,
    wallet: &WalletId,
    seq: i64,
) -> Result<Minor, sqlx::Error> {
    let sql = "SELECT e.balance_after_minor FROM entries e WHERE e.wallet_id = $1 AND e.seq = $2 \
               AND e.first_seq = (SELECT MAX(j.seq) FROM journals j \
               WHERE j.wallet_id = $1 AND j.seq <= $2)";
    let query = sqlx::query_scalar(sql).bind(wallet.as_str()).bind(seq - 1);
    Ok(Minor::new(query.fetch_optional(pool).await?.unwrap_or_default()))
}

/// That an entry (`e`) of wallet `$1` has a number from `$2` to before `$3`. `first_seq` is what the
/// index has; the entry of number `$2` may stand in the middle of its journal, so that the search
/// begins at that one.
pub const IN_SPAN: &str = "e.wallet_id = $1 AND e.seq >= $2 AND e.first_seq < $3 AND e.seq < $3 \
                           AND e.first_seq >= COALESCE((SELECT MAX(f.seq) FROM journals f \
                           WHERE f.wallet_id = $1 AND f.seq <= $2), $2)";

/// Entries of a span, oldest first, so many at most.
///
/// # Errors
/// The database cannot be read.
pub async fn list_span(
    pool: &AnyPool,
    wallet: &WalletId,
    (span, limit): (Span, i64),
) -> Result<Vec<EntryRow>, sqlx::Error> {
    let sql = format!(
        "SELECT {ENTRY_COLUMNS} FROM entries e WHERE {IN_SPAN} ORDER BY e.first_seq, e.line LIMIT $4"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(wallet.as_str())
        .bind(span.from)
        .bind(span.to)
        .bind(limit)
        .fetch_all(pool)
        .await?;
    rows.iter().map(entry).collect()
}

/// Every wallet entry about an object, in the order of booking.
///
/// # Errors
/// The database cannot be read.
pub async fn list_entries_about(
    pool: &AnyPool,
    ref_id: &str,
) -> Result<Vec<EntryRow>, sqlx::Error> {
    let sql = format!("SELECT {ENTRY_COLUMNS} FROM entries e WHERE e.ref_id = $1 ORDER BY e.seq");
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(ref_id).fetch_all(pool).await?;
    rows.iter().map(entry).collect()
}

fn wallet(row: &AnyRow) -> Result<WalletRow, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let flag = |column| row.try_get::<i64, _>(column).map(|flag| flag != 0);
    let unknown = || sqlx::Error::Decode("an unknown environment or currency".into());
    let (changed, settled): (i64, Option<i64>) =
        (row.try_get("updated_at")?, row.try_get("settled_at")?);
    Ok(WalletRow {
        id: WalletId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: Env::parse(&text("env")?).ok_or_else(unknown)?,
        currency: Currency::parse(&text("currency")?).ok_or_else(unknown)?,
        available: Minor::new(row.try_get("available_minor")?),
        pending_out: Minor::new(row.try_get("pending_out_minor")?),
        is_active: flag("is_active")?,
        is_frozen: flag("is_frozen")?,
        is_demo: flag("is_demo")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
        updated_at: Moment::from_micros(changed.max(settled.unwrap_or_default())),
    })
}

fn entry(row: &AnyRow) -> Result<EntryRow, sqlx::Error> {
    Ok(EntryRow {
        journal_id: row.try_get("journal_id")?,
        line: row.try_get("line")?,
        seq: row.try_get("seq")?,
        amount: Minor::new(row.try_get("amount_minor")?),
        currency: row.try_get("currency")?,
        source: row.try_get("source")?,
        description: row.try_get("description")?,
        sender: row.try_get("sender")?,
        balance_after: Minor::new(row.try_get("balance_after_minor")?),
        ref_type: row.try_get("ref_type")?,
        ref_id: row.try_get("ref_id")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_span_follow_each_other_to_its_end() {
        let slices = |from, to| {
            let slices = Span { from, to }.slices(10);
            slices.map(|slice| (slice.from, slice.to)).collect::<Vec<_>>()
        };
        assert_eq!(slices(1, 1), []);
        assert_eq!(slices(5, 2), []);
        assert_eq!(slices(1, 11), [(1, 11)]);
        assert_eq!(slices(1, 12), [(1, 11), (11, 12)]);
        assert_eq!(slices(i64::MAX - 1, i64::MAX), [(i64::MAX - 1, i64::MAX)]);
    }
}
