//! The ledger: double entry, and the writer, which alone changes it.
//!
//! Everything that moves money or changes a payout is a [`Command`] handed to the [`Writer`].
//! The writer takes whatever waits, and carries it out in one database transaction (on PostgreSQL
//! in several side by side: requests in lanes, by wallet, and work in one of its own):
//!
//! | step | locks, in this order |
//! |---|---|
//! | lock the wallets concerned | `wallets` rows, by id |
//! | lock the rows that commands rely on | `payouts`, `transfers` and others, by table and key |
//! | read idempotency keys and counters | `counters` rows, by key |
//! | decide each command in memory, in order of arrival | none |
//! | insert and update in bulk, seal, commit | new counters, parts of `settled_out`, new keys: each sorted |
//!
//! Whoever writes takes these locks in the same order, so nobody on one database can wait for
//! another in a circle. A counter that is not there yet cannot be locked: whoever finds when writing
//! that it was made meanwhile does not wait for it, but begins again. No balance outlives a batch:
//! truth is in the locked rows. What is settled of a wallet's payouts is added up beside its row
//! (`settled_out`), without its lock: payments that come to their ends keep nobody from paying out
//! of the wallet.
//!
//! | failure | what happens |
//! |---|---|
//! | a command is refused, or its decision panics | its neighbours go on; it leaves nothing behind |
//! | another lane or host took a key or a counter first | the batch is begun again and sees it |
//! | one command's rows break a constraint, cannot be read, or make a hook panic | the batch is halved until that one stands alone |
//! | the connection is lost or falls silent before COMMIT | nothing happened; the batch is begun again |
//! | what a hook has done after COMMIT panics | the host stops; callers are told `service_unavailable`, and what they asked for is written |
//! | the answer to COMMIT is lost | a tombstone in the place of the batch's row tells whether it was committed, and keeps it from being so later |
//! | the database stays away | callers are told `service_unavailable`, and repeat with their keys |
//! | the process dies | callers learn nothing and repeat with their keys |

mod batch;
mod command;
mod hook;
mod journal;
mod lane_health;
mod locked;
mod metrics;
mod places;
mod replay;
mod rows;
pub mod seal;
mod source;
mod sql;
mod state;
pub mod verify;
pub mod wallets;
mod writer;

pub use command::{Command, CounterChange, Decided, Done, Effects, Guard, Reply, Reservation};
pub use hook::{HookRows, NewRow, OutboxHook, RunHook};
pub use journal::{
    Account, BY_HAND, Journal, PAYOUT_DEBIT, Posting, Source, SystemAccount, entry_id, own_lines_of,
};
pub use locked::{Counter, LockedState, Wallet};
pub use metrics::WriterMetrics;
pub use replay::{replay, stored_reply};
pub use sql::HAS_OWN_ID;
pub use writer::{Writer, WriterParts};
