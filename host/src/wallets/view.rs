//! Wallets and their entries as merchants see them.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::ledger::entry_id;
use crate::ledger::wallets::{EntryRow, WalletRow};
use crate::money::Minor;

/// A wallet as merchants see it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Wallet {
    /// Always `wallet`.
    #[schema(example = "wallet")]
    pub object: &'static str,
    /// The wallet's id.
    pub id: String,
    /// The one currency that it holds.
    #[schema(example = "NGN")]
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// What can be spent, in minor units.
    #[schema(value_type = String, example = "1000000")]
    pub available_balance_minor: Minor,
    /// Payouts that left it and are not settled yet.
    #[schema(value_type = String, example = "0")]
    pub pending_out_minor: Minor,
    /// Whether it can be used.
    pub is_active: bool,
    /// Whether the operator froze it.
    pub is_frozen: bool,
    /// Whether the sandbox filled it; on the single read only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_demo: Option<bool>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
    /// Accounts through which it is funded.
    #[schema(value_type = Vec<Object>)]
    pub virtual_accounts: Vec<()>,
}

impl Wallet {
    /// A wallet as lists show it.
    #[must_use]
    pub fn of(row: &WalletRow) -> Self {
        Self {
            object: "wallet",
            id: row.id.to_string(),
            currency: row.currency.to_string(),
            env: row.env.as_str(),
            available_balance_minor: row.available,
            pending_out_minor: row.pending_out,
            is_active: row.is_active,
            is_frozen: row.is_frozen,
            is_demo: None,
            created_at: row.created_at,
            updated_at: row.updated_at,
            virtual_accounts: Vec::new(),
        }
    }
}

/// The balance of one wallet.
#[derive(Debug, Serialize, ToSchema)]
pub struct WalletBalance {
    /// Always `wallet_balance`.
    #[schema(example = "wallet_balance")]
    pub object: &'static str,
    /// The wallet's id.
    pub wallet_id: String,
    /// The wallet's currency.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// What can be spent, in minor units.
    #[schema(value_type = String)]
    pub available_balance_minor: Minor,
    /// Payouts that left it and are not settled yet.
    #[schema(value_type = String)]
    pub pending_out_minor: Minor,
    /// When this was read.
    #[schema(value_type = String, format = DateTime)]
    pub fetched_at: Moment,
}

/// A line of the summary over all wallets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Balance {
    /// Always `balance`.
    #[schema(example = "balance")]
    pub object: &'static str,
    /// The wallet's id.
    pub wallet_id: String,
    /// The wallet's currency.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// What can be spent, in minor units.
    #[schema(value_type = String)]
    pub available_balance_minor: Minor,
    /// Payouts that left it and are not settled yet.
    #[schema(value_type = String)]
    pub pending_out_minor: Minor,
    /// Whether it can be used.
    pub is_active: bool,
    /// Whether the operator froze it.
    pub is_frozen: bool,
}

/// The balances of all wallets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Balances {
    /// Always `list`.
    #[schema(example = "list")]
    pub object: &'static str,
    /// One per wallet.
    pub data: Vec<Balance>,
    /// When this was read.
    #[schema(value_type = String, format = DateTime)]
    pub fetched_at: Moment,
}

/// An entry of a wallet.
#[derive(Debug, Serialize, ToSchema)]
pub struct WalletTransaction {
    /// `wallet_transaction`, or `wallet_funding_event` in the list of what came in.
    #[schema(example = "wallet_transaction")]
    pub object: &'static str,
    /// The entry's id.
    pub id: String,
    /// Its number in the wallet, without gaps.
    pub sequence: i64,
    /// `credit` or `debit`.
    #[schema(example = "debit")]
    pub direction: &'static str,
    /// How much, in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
    /// The wallet's currency.
    pub currency: String,
    /// What kind of movement it is.
    #[schema(example = "payout_debit")]
    pub source: String,
    /// A line to show on a statement.
    pub description: String,
    /// The wallet's balance after it.
    #[schema(value_type = String)]
    pub balance_after_minor: Minor,
    /// What kind of object it is about.
    #[schema(example = "Payout")]
    pub source_ref_type: String,
    /// The object's id.
    pub source_ref_id: String,
    /// When it was posted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// Who sent it, where that is known; in the list of what came in only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub sender: Option<Option<Box<RawValue>>>,
}

impl WalletTransaction {
    /// An entry as the list of transactions shows it.
    #[must_use]
    pub fn of(row: EntryRow) -> Self {
        Self {
            object: "wallet_transaction",
            id: entry_id(&row.journal_id, row.line),
            sequence: row.seq,
            direction: if row.amount.is_negative() { "debit" } else { "credit" },
            amount_minor: Minor::new(row.amount.units().saturating_abs()),
            currency: row.currency,
            source: row.source,
            description: row.description,
            balance_after_minor: row.balance_after,
            source_ref_type: row.ref_type,
            source_ref_id: row.ref_id,
            created_at: row.created_at,
            sender: None,
        }
    }

    /// An entry as the list of what came in shows it.
    #[must_use]
    pub fn funding(mut row: EntryRow) -> Self {
        let sender = row.sender.take().and_then(|json| RawValue::from_string(json).ok());
        Self { object: "wallet_funding_event", sender: Some(sender), ..Self::of(row) }
    }
}
