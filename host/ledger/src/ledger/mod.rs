//! The ledger: double entry, and the one writer that changes it.
//!
//! Everything that moves money or changes a payout is a [`Command`] handed to the [`Writer`].
//! The writer takes whatever waits, and carries it out in one database transaction:
//!
//! | step | locks, in this order |
//! |---|---|
//! | lock the wallets concerned | `wallets` rows, by id |
//! | lock the rows whose version a command relies on | `payouts`, `dispatches`, by id |
//! | read idempotency keys and counters | `counters` rows, by key |
//! | decide each command in memory, in order of arrival | none |
//! | insert and update in bulk, commit | new keys, sorted |
//!
//! Every host takes these locks in the same order, so hosts on one database cannot wait for
//! each other in a circle. No balance outlives a batch: truth is in the locked rows.
//!
//! | failure | what happens |
//! |---|---|
//! | a command is refused | its neighbours go on; it leaves nothing behind |
//! | another host took a key or a counter first | the batch is begun again and sees it |
//! | one command's rows break a constraint | the batch is halved until that one stands alone |
//! | the connection is lost before COMMIT | nothing happened; the batch is begun again |
//! | the answer to COMMIT is lost | a marker row tells, under the same locks, what happened |
//! | the process dies | callers learn nothing and repeat with their keys |

mod batch;
mod command;
mod hook;
mod journal;
mod locked;
mod replay;
pub mod sql;
mod state;
pub mod verify;
pub mod wallets;
mod writer;

pub use command::{Command, CounterChange, Done, Effects, Guard, Reply, Reservation};
pub use hook::{HookRows, OutboxHook, RunHook};
pub use journal::{Account, Journal, Posting, Source, SystemAccount, entry_id};
pub use locked::{Counter, LockedState, Wallet};
pub use replay::{replay, stored_reply};
pub use writer::Writer;
