//! The writer's tables. Their statements follow from these descriptions.

use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{Lookup, Table, Update};

pub(super) const WALLETS: Lookup = Lookup {
    name: "wallets",
    key: "id",
    columns: &[
        ("merchant_id", Text),
        ("env", Text),
        ("currency", Text),
        ("available_minor", Int),
        ("pending_out_minor", Int),
        ("seq", Int),
        ("head_hash", Text),
        ("is_frozen", Int),
    ],
    lock: true,
};

pub(super) const WALLET_SUMS: Update = Update {
    name: "wallets",
    key: "id",
    columns: &[
        ("available_minor", Int),
        ("pending_out_minor", Int),
        ("seq", Int),
        ("head_hash", Text),
        ("is_frozen", Int),
        ("updated_at", Int),
    ],
    only_where: None,
};

pub(super) const COUNTERS: Lookup = Lookup {
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

/// Writes a counter only over the version that was read: whoever comes second writes nothing,
/// notices, and begins again.
pub(super) const COUNTER_CHANGES: Table = Table {
    name: "counters",
    columns: &[
        ("key", Text),
        ("version", Int),
        ("holder", Text),
        ("count", Int),
        ("sum_minor", Int),
        ("updated_at", Int),
        ("expires_at", Int),
    ],
    on_conflict: Some(
        "(key) DO UPDATE SET version = excluded.version, holder = excluded.holder, \
         count = excluded.count, sum_minor = excluded.sum_minor, \
         updated_at = excluded.updated_at, expires_at = excluded.expires_at \
         WHERE counters.version = excluded.version - 1",
    ),
};

pub(super) const RESERVATIONS: Lookup = Lookup {
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

pub(super) const NEW_RESERVATIONS: Table = Table {
    name: "idempotency_keys",
    columns: &[
        ("key", Text),
        ("fingerprint", Text),
        ("subject", Text),
        ("resource_id", Text),
        ("status", Int),
        ("response", Text),
        ("created_at", Int),
    ],
    on_conflict: Some("(key) DO NOTHING"),
};

pub(super) const LATE_REPLIES: Update = Update {
    name: "idempotency_keys",
    key: "key",
    columns: &[("status", Int), ("response", Text)],
    only_where: Some("t.status IS NULL"),
};

pub(super) const JOURNALS: Table = Table {
    name: "journals",
    columns: &[
        ("id", Text),
        ("env", Text),
        ("kind", Text),
        ("ref_type", Text),
        ("ref_id", Text),
        ("created_at", Int),
    ],
    on_conflict: None,
};

pub(super) const ENTRIES: Table = Table {
    name: "entries",
    columns: &[
        ("journal_id", Text),
        ("line", Int),
        ("account_id", Text),
        ("currency", Text),
        ("amount_minor", Int),
        ("source", Text),
        ("description", Text),
        ("sender", Text),
        ("seq", Int),
        ("balance_after_minor", Int),
        ("hash", Text),
        ("created_at", Int),
    ],
    on_conflict: None,
};

pub(super) const MARKERS: Table = Table {
    name: "writer_batches",
    columns: &[("id", Text), ("created_at", Int)],
    on_conflict: None,
};

pub(super) const FIND_MARKERS: Lookup =
    Lookup { name: "writer_batches", key: "id", columns: &[("created_at", Int)], lock: false };
