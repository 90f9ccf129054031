//! What a decision sees: the locked rows, as earlier decisions of the same batch left them.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::db::cell::Named;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::WalletId;
use crate::money::{Currency, Minor};

use super::command::CounterChange;
use super::rows::Rows;
use super::sql;

/// A wallet under lock.
#[derive(Clone, Debug)]
pub struct Wallet {
    /// Its id.
    pub id: String,
    /// The merchant that owns it.
    pub merchant_id: String,
    /// Test or live.
    pub env: Env,
    /// The currency of every entry.
    pub currency: Currency,
    /// What can be spent.
    pub available: Minor,
    /// What payouts took out of it in all, less what came back before it was settled.
    pub taken_out: Minor,
    /// Number of its last entry.
    pub seq: i64,
    /// Hash of its last journal's link in the chain; empty before the first.
    pub head_hash: String,
    /// Whether debits are refused.
    pub is_frozen: bool,
}

/// How much longer than it must a counter is kept.
const SPARE: Duration = Duration::from_secs(3600);

/// A counter under lock. One that was never written, or has expired, is all zero.
#[derive(Clone, Debug)]
pub struct Counter {
    pub(super) version: i64,
    /// Who holds it; empty if nobody does.
    pub holder: String,
    /// How many.
    pub count: i64,
    /// How much.
    pub sum: Minor,
    /// When it stops mattering, in microseconds.
    pub expires_at: i64,
    /// When it last changed, in microseconds.
    pub updated_at: i64,
}

impl Counter {
    /// One that was never written.
    const NONE: &Self = &Self {
        version: 0,
        holder: String::new(),
        count: 0,
        sum: Minor::ZERO,
        expires_at: 0,
        updated_at: 0,
    };

    /// Until when a counter is kept that has to be there for `least` from `now`, in microseconds.
    /// It is extended by [`SPARE`] more than that, so that most changes leave its index alone.
    #[must_use]
    pub fn kept(&self, now: Moment, least: Duration) -> i64 {
        let needed = now.after(least);
        match self.expires_at >= needed.micros() {
            true => self.expires_at,
            false => needed.after(SPARE).micros(),
        }
    }

    /// Whether it was never written: there was nothing to lock.
    pub(super) fn is_new(&self) -> bool {
        self.version == 0
    }

    /// A counter as a change leaves it.
    pub(super) fn changed(change: &CounterChange, version: i64, now: Moment) -> Self {
        Self {
            version,
            holder: change.holder.clone(),
            count: change.count,
            sum: change.sum,
            expires_at: change.expires_at,
            updated_at: now.micros(),
        }
    }
}

/// The locked rows of a batch.
pub struct LockedState<'a> {
    pub(super) now: Moment,
    pub(super) wallets: &'a HashMap<String, Wallet>,
    pub(super) rows: &'a Rows,
    pub(super) counters: &'a HashMap<String, Counter>,
}

impl LockedState<'_> {
    /// The instant of the batch.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.now
    }

    /// A wallet that the command named.
    ///
    /// # Errors
    /// There is no such wallet.
    pub fn wallet(&self, id: &WalletId) -> Result<&Wallet, Problem> {
        self.wallets.get(id.as_str()).ok_or_else(|| Problem::new(ErrorCode::WalletNotFound))
    }

    /// Whether a wallet is frozen that the command named, or named for that only.
    ///
    /// # Errors
    /// There is no such wallet.
    pub fn is_frozen(&self, id: &WalletId) -> Result<bool, Problem> {
        if let Some(wallet) = self.wallets.get(id.as_str()) {
            return Ok(wallet.is_frozen);
        }
        let read = self.rows.get(&sql::FROZEN, id.as_str());
        let read = read.ok_or_else(|| Problem::new(ErrorCode::WalletNotFound))?;
        Ok(read.int("is_frozen")? != 0)
    }

    /// A row that the command named, if it is there.
    #[must_use]
    pub fn row(&self, on: &'static Lookup, id: &str) -> Option<Named<'_>> {
        self.rows.get(on, id)
    }

    /// A counter that the command named.
    #[must_use]
    pub fn counter(&self, key: &str) -> &Counter {
        let found = self.counters.get(key);
        found.filter(|counter| counter.expires_at > self.now.micros()).unwrap_or(Counter::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_extended_by_more_than_it_needs_and_then_left_alone() {
        let (least, now) = (2 * SPARE, Moment::from_micros(0));
        let mut counter = Counter::NONE.clone();
        counter.expires_at = counter.kept(now, least);
        assert_eq!(counter.expires_at, now.after(3 * SPARE).micros());
        assert_eq!(counter.kept(now.after(SPARE), least), counter.expires_at, "left alone");
        let later = now.after(SPARE + Duration::from_micros(1));
        assert_eq!(counter.kept(later, least), later.after(3 * SPARE).micros(), "extended");
    }
}
