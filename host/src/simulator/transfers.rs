//! What the simulated networks remember.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use sqlx::Row as _;

use crate::db::Db;

/// How a transfer stands at the recipient's bank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The connection was lost before the request arrived.
    Lost,
    /// Accepted, not decided.
    Pending,
    /// The recipient has the money.
    Paid,
    /// Refused with this code.
    Refused(String),
    /// The recipient's bank sent it back.
    Returned,
    /// The network says neither that it was made nor that it was not.
    Unclear,
}

/// A transfer as the network knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Network and reference.
    pub reference: String,
    /// The amount in minor units.
    pub amount_minor: i64,
    /// The recipient's account.
    pub account: String,
    /// What the network would say about it now.
    pub state: State,
    /// How often a request to make it arrived.
    pub received: u32,
    /// How often the recipient was paid. More than once is the mistake that must not happen.
    pub executed: u32,
    /// The name of the scenario that it plays.
    pub scenario: String,
    /// Where its outcome is told, if whoever sent it said so.
    #[serde(default)]
    pub tell_at: Option<String>,
}

/// All transfers, in the database or in this process.
pub(super) enum Transfers {
    Memory(Mutex<BTreeMap<String, Transfer>>),
    Database(Db),
}

impl Transfers {
    pub(super) fn new(db: Option<Db>) -> Self {
        match db {
            Some(db) => Self::Database(db),
            None => Self::Memory(Mutex::default()),
        }
    }

    /// Looks a transfer up and changes it, or makes one, as one step.
    pub(super) async fn change<T>(
        &self,
        reference: &str,
        act: impl FnOnce(&mut Option<Transfer>) -> T + Send,
    ) -> Result<T, sqlx::Error> {
        match self {
            Self::Memory(transfers) => {
                let mut transfers = transfers.lock().unwrap_or_else(PoisonError::into_inner);
                let mut found = transfers.remove(reference);
                let answer = act(&mut found);
                transfers.extend(found.map(|transfer| (reference.to_owned(), transfer)));
                Ok(answer)
            }
            Self::Database(db) => {
                let mut tx = db.write().await?;
                let sql = "SELECT transfer FROM simulator_transfers WHERE reference = $1";
                let row: Option<String> =
                    sqlx::query_scalar(sql).bind(reference).fetch_optional(tx.conn()).await?;
                let mut found = row.and_then(|json| serde_json::from_str(&json).ok());
                let answer = act(&mut found);
                if let Some(transfer) = found {
                    let sql = "INSERT INTO simulator_transfers (reference, transfer) \
                               VALUES ($1, $2) ON CONFLICT (reference) \
                               DO UPDATE SET transfer = excluded.transfer";
                    let json = serde_json::to_string(&transfer).unwrap_or_default();
                    sqlx::query(sql).bind(reference).bind(json).execute(tx.conn()).await?;
                }
                tx.commit().await?;
                Ok(answer)
            }
        }
    }

    pub(super) async fn all(&self) -> Result<Vec<Transfer>, sqlx::Error> {
        match self {
            Self::Memory(transfers) => {
                let transfers = transfers.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(transfers.values().cloned().collect())
            }
            Self::Database(db) => {
                let sql = "SELECT transfer FROM simulator_transfers ORDER BY reference";
                let rows = sqlx::query(sql).fetch_all(db.pool()).await?;
                let transfers = rows.iter().filter_map(|row| {
                    serde_json::from_str(&row.try_get::<String, _>("transfer").ok()?).ok()
                });
                Ok(transfers.collect())
            }
        }
    }
}

impl Transfer {
    /// Pays the recipient.
    pub(super) fn pay(&mut self) {
        self.state = State::Paid;
        self.executed += 1;
    }
}
