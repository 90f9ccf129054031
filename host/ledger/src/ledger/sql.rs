//! The writer's tables. Their statements follow from these descriptions.

use crate::clock::Moment;
use crate::db::bulk::{Column, Table, Update, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::lookup::Lookup;
use crate::money::{Currency, Minor};

use super::command::Reply;
use super::journal::WalletPlace;

pub(super) static WALLETS: Lookup = Lookup {
    name: "wallets",
    key: "id",
    columns: &[
        ("merchant_id", Text),
        ("env", Text),
        ("currency", Text),
        ("available_minor", Int),
        ("taken_out_minor", Int),
        ("seq", Int),
        ("head_hash", Text),
        ("is_frozen", Int),
    ],
    lock: true,
};

/// A wallet as a batch leaves it.
pub(super) struct WalletSums {
    pub id: String,
    pub available: Minor,
    pub taken_out: Minor,
    pub seq: i64,
    pub head_hash: String,
    pub is_frozen: bool,
    pub updated_at: Moment,
}

pub(super) static WALLET_SUMS: Update<WalletSums> = Update {
    name: "wallets",
    key: text("id", |wallet| (&wallet.id).into()),
    columns: &[
        int("available_minor", |wallet| wallet.available.into()),
        int("taken_out_minor", |wallet| wallet.taken_out.into()),
        int("seq", |wallet| wallet.seq.into()),
        text("head_hash", |wallet| (&wallet.head_hash).into()),
        int("is_frozen", |wallet| wallet.is_frozen.into()),
        int("updated_at", |wallet| wallet.updated_at.into()),
    ],
    only_where: None,
};

/// Whether wallets are frozen, for whoever changes nothing about them.
pub(super) static FROZEN: Lookup =
    Lookup { name: "wallets", key: "id", columns: &[("is_frozen", Int)], lock: false };

/// What a batch settled of what a wallet has on its way out.
pub(super) struct SettledOut {
    pub wallet_id: String,
    /// Which of the wallet's parts: one that few other writers add to.
    pub part: i64,
    pub settled: Minor,
    pub updated_at: Moment,
}

pub(super) static SETTLED_OUT: Table<SettledOut> = Table {
    name: "settled_out",
    fixed: &[
        text("wallet_id", |settled| (&settled.wallet_id).into()),
        int("part", |settled| settled.part.into()),
    ],
    changing: &[
        int("settled_minor", |settled| settled.settled.into()),
        int("updated_at", |settled| settled.updated_at.into()),
    ],
    on_conflict: Some(
        "(wallet_id, part) DO UPDATE SET updated_at = excluded.updated_at, \
         settled_minor = settled_out.settled_minor + excluded.settled_minor",
    ),
    is_sealed: false,
};

pub(super) static COUNTERS: Lookup = Lookup {
    name: "counters",
    key: "key",
    columns: &[
        ("version", Int),
        ("holder", Text),
        ("count", Int),
        ("sum_minor", Int),
        ("updated_at", Int),
        ("expires_at", Int),
    ],
    lock: true,
};

/// A counter as a batch leaves it.
pub(super) struct CounterRow {
    pub key: String,
    pub version: i64,
    pub holder: String,
    pub count: i64,
    pub sum: Minor,
    pub updated_at: i64,
    pub expires_at: i64,
}

/// Counters that were absent when they were read, so that nothing was locked. `DO NOTHING`, not
/// `DO UPDATE`: if another batch has made the row meanwhile and has it locked, waiting for it could
/// close a circle, because that batch may wait for a counter that is locked here. Fewer rows than
/// wanted are written, and the batch begins again.
pub(super) static NEW_COUNTERS: Table<CounterRow> = Table {
    name: "counters",
    fixed: &[COUNTER_KEY],
    changing: &COUNTER_VALUES,
    on_conflict: Some("(key) DO NOTHING"),
    is_sealed: false,
};

/// Writes counters that were there, and are locked since they were read. One that was not read as it
/// is now writes nothing all the same, and the batch begins again.
pub(super) static COUNTER_CHANGES: Update<CounterRow> = Update {
    name: "counters",
    key: COUNTER_KEY,
    columns: &COUNTER_VALUES,
    only_where: Some("t.version = u.version - 1"),
};

const COUNTER_KEY: Column<CounterRow> = text("key", |counter| (&counter.key).into());

static COUNTER_VALUES: [Column<CounterRow>; 6] = [
    int("version", |counter| counter.version.into()),
    text("holder", |counter| (&counter.holder).into()),
    int("count", |counter| counter.count.into()),
    int("sum_minor", |counter| counter.sum.into()),
    int("updated_at", |counter| counter.updated_at.into()),
    int("expires_at", |counter| counter.expires_at.into()),
];

pub(super) static RESERVATIONS: Lookup = Lookup {
    name: "idempotency_keys",
    key: "key",
    columns: &[
        ("fingerprint", Text),
        ("subject", Text),
        ("resource_id", Text),
        ("status", Int),
        ("response", Text),
    ],
    lock: false,
};

/// The same for keys that expire.
pub(super) static EXPIRING: Lookup = Lookup {
    name: "expiring_keys",
    key: "key",
    columns: &[("fingerprint", Text), ("resource_id", Text), ("status", Int), ("response", Text)],
    lock: false,
};

/// An idempotency key with what it stands for, and the reply if there is one yet.
pub(super) struct ReservationRow {
    pub key: String,
    pub fingerprint: String,
    pub subject: String,
    pub resource_id: String,
    pub reply: Option<Reply>,
    pub created_at: Moment,
}

impl ReservationRow {
    fn status(&self) -> Option<i64> {
        self.reply.as_ref().map(|reply| reply.status.into())
    }

    fn response(&self) -> Option<&str> {
        self.reply.as_ref().map(|reply| reply.body.as_str())
    }
}

/// Keys that were free when they were read. A conflict is an error: the whole batch begins again
/// anyway, and asking for each key whether there is one costs more than finding that there is.
pub(super) static NEW_RESERVATIONS: Table<ReservationRow> = Table {
    name: "idempotency_keys",
    fixed: &[
        text("key", |row| (&row.key).into()),
        text("fingerprint", |row| (&row.fingerprint).into()),
        text("subject", |row| (&row.subject).into()),
        text("resource_id", |row| (&row.resource_id).into()),
        int("created_at", |row| row.created_at.into()),
    ],
    changing: &[
        int("status", |row| row.status().into()),
        text("response", |row| row.response().into()),
    ],
    on_conflict: None,
    is_sealed: true,
};

/// The same for keys that expire.
pub(super) static NEW_EXPIRING: Table<ReservationRow> = Table {
    name: "expiring_keys",
    fixed: &[
        text("key", |row| (&row.key).into()),
        text("fingerprint", |row| (&row.fingerprint).into()),
        text("resource_id", |row| (&row.resource_id).into()),
        int("status", |row| row.status().into()),
        text("response", |row| row.response().into()),
        int("created_at", |row| row.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// A reply to an earlier command.
pub(super) struct LateReply {
    pub key: String,
    pub reply: Reply,
}

pub(super) static LATE_REPLIES: Update<LateReply> = Update {
    name: "idempotency_keys",
    key: text("key", |late| (&late.key).into()),
    columns: &[
        int("status", |late| i64::from(late.reply.status).into()),
        text("response", |late| (&late.reply.body).into()),
    ],
    only_where: Some("t.status IS NULL"),
};

/// A journal as it is stored.
pub(super) struct JournalRow {
    pub id: String,
    pub env: &'static str,
    pub kind: &'static str,
    pub ref_type: &'static str,
    pub ref_id: String,
    pub round: i64,
    pub currency: Currency,
    /// See [`super::journal::StoredLine`].
    pub lines: String,
    pub in_wallet: Option<WalletPlace>,
    pub created_at: Moment,
}

/// That a journal has an id of its own. Literally the condition of the index `journals_by_id`, or
/// the planner would not see that it fits. The others are first debits of payouts (`Journal::id`):
/// those are found by their payouts.
pub const HAS_OWN_ID: &str = "(kind <> 'payout_debit' OR round > 1)";

/// Journals; see [`super::journal::Journal`].
pub(super) static JOURNALS: Table<JournalRow> = Table {
    name: "journals",
    fixed: &[
        text("id", |row| (&row.id).into()),
        text("env", |row| row.env.into()),
        text("kind", |row| row.kind.into()),
        text("ref_type", |row| row.ref_type.into()),
        text("ref_id", |row| (&row.ref_id).into()),
        int("round", |row| row.round.into()),
        text("currency", |row| row.currency.as_str().into()),
        text("wallet_id", |row| row.in_wallet.as_ref().map(|it| it.wallet_id.as_str()).into()),
        int("seq", |row| row.in_wallet.as_ref().map(|it| it.seq).into()),
        text("lines", |row| (&row.lines).into()),
        text("hash", |row| row.in_wallet.as_ref().map(|it| it.hash.as_str()).into()),
        int("created_at", |row| row.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};
