//! What each report shows.

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::money::{Currency, Minor};

use super::range::RangeView;
use super::table::{Column, count, flag, money, text};

/// A row of a report, and its columns in a table.
pub(super) trait ReportRow: Serialize + Send + Sync {
    /// In order, under their names in JSON.
    const COLUMNS: &'static [Column];
    /// In what its amounts are.
    fn currency(&self) -> Currency;
}

/// A day of payouts, by when they were made and where they stand now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PayoutsRow {
    /// The day.
    #[schema(example = "2026-11-21")]
    pub day: String,
    /// The currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// How many are paid.
    pub paid_count: i64,
    /// How many failed, or came back.
    pub failed_count: i64,
    /// How many have not ended.
    pub in_flight_count: i64,
    /// How many were taken back before they left.
    pub cancelled_count: i64,
    /// What those that are paid come to.
    #[schema(value_type = String, example = "2500000")]
    pub paid_amount_minor: Minor,
    /// What those that failed come to.
    #[schema(value_type = String, example = "0")]
    pub failed_amount_minor: Minor,
}

impl ReportRow for PayoutsRow {
    const COLUMNS: &'static [Column] = &[
        text("day", 12),
        text("currency", 9),
        count("paid_count"),
        count("failed_count"),
        count("in_flight_count"),
        count("cancelled_count"),
        money("paid_amount_minor"),
        money("failed_amount_minor"),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// What came in on a day, from one source.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FundingRow {
    /// The day.
    #[schema(example = "2026-11-21")]
    pub day: String,
    /// The currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// The ledger's word for where it came from.
    #[schema(example = "admin_credit")]
    pub source: String,
    /// How many credits.
    pub count: i64,
    /// What they come to.
    #[schema(value_type = String, example = "2500000")]
    pub amount_minor: Minor,
}

impl ReportRow for FundingRow {
    const COLUMNS: &'static [Column] = &[
        text("day", 12),
        text("currency", 9),
        text("source", 24),
        count("count"),
        money("amount_minor"),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// All entries of a day.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CashflowRow {
    /// The day.
    #[schema(example = "2026-11-21")]
    pub day: String,
    /// The currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// What credits come to.
    #[schema(value_type = String, example = "2500000")]
    pub inflow_minor: Minor,
    /// What debits come to.
    #[schema(value_type = String, example = "100000")]
    pub outflow_minor: Minor,
    /// Credits less debits.
    #[schema(value_type = String, example = "2400000")]
    pub net_minor: Minor,
    /// How many credits.
    pub inflow_count: i64,
    /// How many debits.
    pub outflow_count: i64,
}

impl ReportRow for CashflowRow {
    const COLUMNS: &'static [Column] = &[
        text("day", 12),
        text("currency", 9),
        money("inflow_minor"),
        money("outflow_minor"),
        money("net_minor"),
        count("inflow_count"),
        count("outflow_count"),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// What fees of one kind came to on a day.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FeesRow {
    /// The day.
    #[schema(example = "2026-11-21")]
    pub day: String,
    /// The currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// `payout_single`, `payout_bulk`, `payout_reversal` or `virtual_account_fund`.
    #[schema(example = "payout_single")]
    pub applies_to: &'static str,
    /// How many were charged, or given back.
    pub count: i64,
    /// What was charged; below zero where it was given back.
    #[schema(value_type = String, example = "1000")]
    pub fee_minor: Minor,
    /// Tax on it.
    #[schema(value_type = String, example = "75")]
    pub tax_minor: Minor,
}

impl ReportRow for FeesRow {
    const COLUMNS: &'static [Column] = &[
        text("day", 12),
        text("currency", 9),
        text("applies_to", 22),
        count("count"),
        money("fee_minor"),
        money("tax_minor"),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// An entry of a wallet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatementRow {
    /// The entry's id.
    pub id: String,
    /// When it was booked.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Moment,
    /// The ledger's word for why.
    #[schema(example = "payout_debit")]
    pub source: String,
    /// The same for people.
    #[schema(example = "Payout debit")]
    pub source_label: String,
    /// `credit` or `debit`.
    #[schema(example = "debit")]
    pub direction: &'static str,
    /// How much.
    #[schema(value_type = String, example = "2500000")]
    pub amount_minor: Minor,
    /// The balance after it.
    #[schema(value_type = String, example = "97500000")]
    pub balance_after_minor: Minor,
    /// What it was for.
    pub description: String,
    /// What it belongs to: `Payout`, for example.
    #[schema(example = "Payout")]
    pub source_ref_type: String,
    /// The id of that.
    pub source_ref_id: String,
    #[serde(skip)]
    #[schema(ignore)]
    pub(super) currency: Currency,
}

impl ReportRow for StatementRow {
    const COLUMNS: &'static [Column] = &[
        text("id", 28),
        text("timestamp", 26),
        text("source", 24),
        text("source_label", 24),
        text("direction", 10),
        money("amount_minor"),
        money("balance_after_minor"),
        text("description", 40),
        text("source_ref_type", 16),
        text("source_ref_id", 28),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// A payout that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedRow {
    /// The payout's id.
    pub id: String,
    /// Its reference for people.
    pub reference: String,
    /// The currency.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// What the recipient would have got.
    #[schema(value_type = String, example = "2500000")]
    pub amount_minor: Minor,
    /// The recipient's name.
    pub recipient_name: String,
    /// The recipient's account.
    pub recipient_account: Option<String>,
    /// The recipient's bank.
    pub recipient_bank_code: Option<String>,
    /// The network's code for why.
    pub failure_code: Option<String>,
    /// What the code means.
    pub failure_message: Option<String>,
    /// Whether the wallet had been debited, and has everything back.
    pub auto_reversed: bool,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Moment>,
}

impl ReportRow for FailedRow {
    const COLUMNS: &'static [Column] = &[
        text("id", 28),
        text("reference", 30),
        text("currency", 9),
        money("amount_minor"),
        text("recipient_name", 28),
        text("recipient_account", 20),
        text("recipient_bank_code", 20),
        text("failure_code", 24),
        text("failure_message", 48),
        flag("auto_reversed"),
        text("created_at", 26),
        text("completed_at", 26),
    ];
    fn currency(&self) -> Currency {
        self.currency
    }
}

/// What stands around the rows of a report.
#[derive(Debug, Serialize)]
pub(super) struct Head {
    /// Always `report`.
    pub object: &'static str,
    /// Which report.
    pub report_type: &'static str,
    /// Which days.
    pub range: RangeView,
    /// The currency of all rows, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The balance before the first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_balance_minor: Option<Minor>,
    /// The balance after the last row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing_balance_minor: Option<Minor>,
    /// How many there are, shown or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
}

/// A report whose rows are days.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Report<T> {
    /// Always `report`.
    #[schema(example = "report")]
    pub object: &'static str,
    /// Which one.
    pub report_type: &'static str,
    /// Which days.
    pub range: RangeView,
    /// Oldest first.
    pub data: Vec<T>,
}

/// A report of single entries, with the balances around them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BankStatement {
    /// Always `report`.
    #[schema(example = "report")]
    pub object: &'static str,
    /// Always `bank_statement`.
    #[schema(example = "bank_statement")]
    pub report_type: &'static str,
    /// Which days.
    pub range: RangeView,
    /// The currency of the wallet.
    #[schema(value_type = String, example = "NGN")]
    pub currency: Currency,
    /// The balance before the first entry.
    #[schema(value_type = String, example = "0")]
    pub opening_balance_minor: Minor,
    /// The balance after the last one.
    #[schema(value_type = String, example = "97500000")]
    pub closing_balance_minor: Minor,
    /// Every entry, oldest first.
    pub data: Vec<StatementRow>,
}

/// Payouts that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedPayouts {
    /// Always `report`.
    #[schema(example = "report")]
    pub object: &'static str,
    /// Always `failed_payouts`.
    #[schema(example = "failed_payouts")]
    pub report_type: &'static str,
    /// Which days.
    pub range: RangeView,
    /// How many there are: more than are shown, where the report is cut.
    #[schema(example = 3)]
    pub count: i64,
    /// Newest first; 500 at most, in a file 5,000.
    pub data: Vec<FailedRow>,
}
