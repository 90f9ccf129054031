//! What the writer is asked to do, and what a decision asks of the writer.

use crate::db::bulk::{Lookup, RowChange};
use crate::error::Problem;
use crate::id::WalletId;
use crate::money::Minor;

use super::journal::Journal;
use super::locked::LockedState;

/// A change that the writer decides and makes durable with others in one transaction.
pub struct Command {
    /// Wallets that the decision reads or changes.
    pub wallets: Vec<WalletId>,
    /// Rows that must still have the version that the caller saw.
    pub guards: Vec<Guard>,
    /// Counters that the decision reads.
    pub counters: Vec<String>,
    /// The idempotency key to reserve, where the command has one.
    pub reservation: Option<Reservation>,
    /// Decides on what the locked rows say. Pure and repeatable: a batch may be begun again.
    pub decide: Decide,
}

/// A decision: what to write, or why not.
pub(super) type Decide = Box<dyn Fn(&LockedState<'_>) -> Result<Effects, Problem> + Send + Sync>;

/// A row that must not have changed since the caller read it.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Table, key and version column; described once per table.
    pub on: &'static Lookup,
    /// The row's key.
    pub id: String,
    /// The version that the caller saw. If it differs now, the command is refused with
    /// `state_conflict` and the caller looks again.
    pub version: i64,
    /// The version that this command leaves behind, for later commands of the same batch.
    pub next: i64,
}

/// An idempotency key to reserve, with what it stands for.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Merchant, environment, operation and key in one.
    pub key: String,
    /// SHA-256 over the canonical body and the path.
    pub fingerprint: String,
    /// SHA-256 over what makes two payments different: amount and recipient.
    pub subject: String,
    /// What the request creates.
    pub resource_id: String,
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
pub enum Done {
    /// It was carried out; the reply is what the decision gave.
    Now(Option<Reply>),
    /// The key had been used for the same request. No reply means that the first request is
    /// still on its way to one.
    Before {
        /// What the first request created.
        resource_id: String,
        /// The reply to the first request.
        reply: Option<Reply>,
    },
}

/// A change of a counter, computed from the locked state.
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
    /// Movements of money, each a balanced journal.
    pub journals: Vec<Journal>,
    /// Change of what a wallet has on its way out.
    pub pending_out: Vec<(WalletId, Minor)>,
    /// Wallets to freeze or thaw.
    pub frozen: Vec<(WalletId, bool)>,
    /// Counters with their new values.
    pub counters: Vec<CounterChange>,
    /// Rows of the features' tables, events among them.
    pub rows: Vec<RowChange>,
    /// The reply, stored with the command's own idempotency key.
    pub reply: Option<Reply>,
    /// Replies to earlier commands whose keys still wait for theirs.
    pub late_replies: Vec<(String, Reply)>,
    /// Why nothing but the rows is to be written, and the caller is refused: some refusals
    /// have to be remembered. The idempotency key stays free.
    pub refused: Option<Problem>,
}
