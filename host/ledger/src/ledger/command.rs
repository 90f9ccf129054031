//! What the writer is asked to do, and what a decision answers.

use std::collections::HashMap;

use crate::db::bulk::RowChange;
use crate::db::lookup::Lookup;
use crate::error::Problem;
use crate::id::WalletId;
use crate::money::Minor;

use super::journal::Journal;
use super::locked::{Counter, LockedState};
use super::sql;

/// A change that the writer decides and makes durable with others in one transaction. `T` is
/// what the caller learns besides: the decision computes it, nobody reads it back afterwards.
pub struct Command<T> {
    pub(super) needs: Needs,
    pub(super) decide: Decide<T>,
}

/// A decision over the locked rows. Pure and repeatable: a batch may be begun again. An error
/// refuses the command, and leaves nothing behind.
pub(super) type Decide<T> =
    Box<dyn Fn(&LockedState<'_>) -> Result<Decided<T>, Problem> + Send + Sync>;

/// What has to be read, and locked, before a command can be decided.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) wallets: Vec<WalletId>,
    pub(super) guards: Vec<Guard>,
    pub(super) rows: Vec<(&'static Lookup, String)>,
    pub(super) counters: Vec<String>,
    pub(super) reservation: Option<Reservation>,
    /// How many commands are together in this one, if more than one are.
    pub(super) parts: usize,
}

/// A row that must not have changed since the caller read it.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The row's table; its first column is the version.
    pub on: &'static Lookup,
    /// The row's key.
    pub id: String,
    /// The version that the caller saw. If it differs now, the command is refused with
    /// `state_conflict` and the caller looks again.
    pub version: i64,
}

/// An idempotency key to reserve, with what it stands for.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Merchant, environment, operation and key in one.
    pub key: String,
    /// Half of a SHA-256, in hex, over the canonical body and the path.
    pub fingerprint: String,
    /// The same over what makes two payments different: amount and recipient.
    pub subject: String,
    /// What the request creates or changes.
    pub resource_id: String,
    /// Whether the key is free again once it is old. Never where the request may move money.
    pub expires: bool,
}

/// Status and body, stored and replayed to the byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// JSON text.
    pub body: String,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub enum Done<T> {
    /// It was carried out; this is what the decision computed.
    Now(T),
    /// The key had been used for the same request. No reply means that the first request is
    /// still on its way to one.
    Before {
        /// What the first request created.
        resource_id: String,
        /// Its reply.
        reply: Option<Reply>,
    },
}

/// What a decision comes to, where it is not a plain refusal.
pub enum Decided<T> {
    /// To go ahead.
    Accept {
        /// What to write.
        effects: Effects,
        /// What the caller learns once it is durable.
        result: T,
    },
    /// Not to, and to remember it: nothing but these rows is written, and the idempotency key
    /// stays free.
    Record {
        /// What to write.
        rows: Vec<RowChange>,
        /// What the caller learns once it is durable.
        result: T,
    },
}

/// A change of a counter, computed from what the locked state shows.
#[derive(Clone, Debug)]
pub struct CounterChange {
    /// The counter's key.
    pub key: String,
    /// Who holds it now, such as the payout that a reference belongs to.
    pub holder: String,
    /// Its count from now on.
    pub count: i64,
    /// Its sum from now on.
    pub sum: Minor,
    /// When it no longer matters, in microseconds.
    pub expires_at: i64,
}

/// Everything that a decision wants written. Nothing of it is visible before all of it is.
#[derive(Default)]
pub struct Effects {
    /// Movements of money.
    pub journals: Vec<Journal>,
    /// What payouts take out of wallets, or give back before it was settled.
    pub taken_out: Vec<(WalletId, Minor)>,
    /// What was settled of it. The wallets need not be locked for that.
    pub settled: Vec<(WalletId, Minor)>,
    /// Wallets to freeze or thaw.
    pub frozen: Vec<(WalletId, bool)>,
    /// Counters to change.
    pub counters: Vec<CounterChange>,
    /// Rows of the features' tables, events among them.
    pub rows: Vec<RowChange>,
    /// The reply, stored with the command's own idempotency key.
    pub reply: Option<Reply>,
    /// Replies to earlier commands whose keys still wait for theirs.
    pub late_replies: Vec<(String, Reply)>,
}

impl<T> Command<T> {
    /// A command that needs nothing locked yet.
    pub fn new(
        decide: impl Fn(&LockedState<'_>) -> Result<Decided<T>, Problem> + Send + Sync + 'static,
    ) -> Self {
        Self { needs: Needs::default(), decide: Box::new(decide) }
    }

    /// Locks wallets that the decision reads or changes.
    #[must_use]
    pub fn wallets(mut self, wallets: impl IntoIterator<Item = WalletId>) -> Self {
        self.needs.wallets.extend(wallets);
        self
    }

    /// Reads whether a wallet is frozen, without locking it; see [`LockedState::is_frozen`].
    /// Freezing it at the same moment may come too late for this command, and does not for the
    /// next.
    #[must_use]
    pub fn unless_frozen(self, wallet: &WalletId) -> Self {
        self.row(&sql::FROZEN, wallet.as_str())
    }

    /// Refuses the command where one of these rows has changed.
    #[must_use]
    pub fn guards(mut self, guards: impl IntoIterator<Item = Guard>) -> Self {
        self.needs.guards.extend(guards);
        self
    }

    /// Reads a row for the decision, locked if it is so described; see [`LockedState::row`].
    #[must_use]
    pub fn row(mut self, on: &'static Lookup, id: impl Into<String>) -> Self {
        self.needs.rows.push((on, id.into()));
        self
    }

    /// Locks counters that the decision reads or changes.
    #[must_use]
    pub fn counters(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.needs.counters.extend(keys);
        self
    }

    /// Writes these rows as well where it goes ahead.
    #[must_use]
    pub fn and_rows(self, rows: Vec<RowChange>) -> Self
    where
        T: 'static,
    {
        let Self { needs, decide } = self;
        let decide = Box::new(move |locked: &LockedState<'_>| {
            let mut decided = decide(locked)?;
            if let Decided::Accept { effects, .. } = &mut decided {
                effects.rows.extend(rows.iter().cloned());
            }
            Ok(decided)
        });
        Self { needs, decide }
    }

    /// Stores this reply with the idempotency key where it goes ahead.
    #[must_use]
    pub fn replying(self, reply: impl Fn(&T) -> Reply + Send + Sync + 'static) -> Self
    where
        T: 'static,
    {
        let Self { needs, decide } = self;
        let decide = Box::new(move |locked: &LockedState<'_>| {
            let mut decided = decide(locked)?;
            if let Decided::Accept { effects, result } = &mut decided {
                effects.reply = Some(reply(result));
            }
            Ok(decided)
        });
        Self { needs, decide }
    }

    /// Reserves an idempotency key.
    #[must_use]
    pub fn reserve(mut self, reservation: impl Into<Option<Reservation>>) -> Self {
        self.needs.reservation = reservation.into();
        self
    }
}

impl<T: 'static> Command<T> {
    /// Many commands as one. Each is decided on the counters as those before it, that go ahead,
    /// leave them; `conclude` is told what was decided about each, in order, and says what becomes
    /// of them all: what it does not accept leaves nothing behind. What the parts would reply, or
    /// reserve, is not done.
    pub fn together<U>(
        parts: Vec<Self>,
        conclude: impl Fn(Vec<Result<Decided<T>, Problem>>) -> Result<Decided<U>, Problem>
        + Send
        + Sync
        + 'static,
    ) -> Command<U> {
        let mut needs = Needs { parts: parts.len(), ..Needs::default() };
        let mut decisions = Vec::with_capacity(parts.len());
        for part in parts {
            needs.wallets.extend(part.needs.wallets);
            needs.guards.extend(part.needs.guards);
            needs.rows.extend(part.needs.rows);
            needs.counters.extend(part.needs.counters);
            decisions.push(part.decide);
        }
        let named = needs.counters.clone();
        let decide = move |locked: &LockedState<'_>| {
            let known = named
                .iter()
                .filter_map(|key| Some((key.clone(), locked.counters.get(key)?.clone())));
            let mut counters: HashMap<String, Counter> = known.collect();
            let mut decided = Vec::with_capacity(decisions.len());
            for decide in &decisions {
                let part = decide(&LockedState { counters: &counters, ..*locked });
                if let Ok(Decided::Accept { effects, .. }) = &part {
                    for change in &effects.counters {
                        let version = counters.get(&change.key).map_or(0, |known| known.version);
                        let counter = Counter::changed(change, version, locked.now);
                        counters.insert(change.key.clone(), counter);
                    }
                }
                decided.push(part);
            }
            conclude(decided)
        };
        Command { needs, decide: Box::new(decide) }
    }
}

impl Command<()> {
    /// A command that writes these rows, whatever the locked state shows.
    #[must_use]
    pub fn rows(rows: Vec<RowChange>) -> Self {
        Self::new(move |_| Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(())))
    }
}

impl Effects {
    /// Adds what another decision wants written, which saw the counters as this one leaves them.
    pub fn append(&mut self, other: Self) {
        self.journals.extend(other.journals);
        self.taken_out.extend(other.taken_out);
        self.settled.extend(other.settled);
        self.frozen.extend(other.frozen);
        self.counters.extend(other.counters);
        self.rows.extend(other.rows);
        self.late_replies.extend(other.late_replies);
    }

    /// To be written, and this to be learnt by the caller.
    #[must_use]
    pub fn and<T>(self, result: T) -> Decided<T> {
        Decided::Accept { effects: self, result }
    }
}

impl<T> Decided<T> {
    /// The same, with what the caller learns made into something else.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Decided<U> {
        match self {
            Self::Accept { effects, result } => Decided::Accept { effects, result: make(result) },
            Self::Record { rows, result } => Decided::Record { rows, result: make(result) },
        }
    }
}
