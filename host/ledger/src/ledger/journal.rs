//! Journals, their postings, and the accounts they touch.

use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::env::Env;
use crate::id::{Id as _, JournalId, WalletId};
use crate::money::{Currency, Minor, Overflow};

/// Why an entry was made: the contract's ledger sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum Source {
    VirtualAccountCredit,
    VirtualAccountCreditFee,
    PayoutDebit,
    PayoutFee,
    PayoutReversal,
    PayoutFeeReversal,
    AdminCredit,
    AdminDebit,
    PromotionalCredit,
    ReconciliationAdjust,
    StampDutyCollected,
    FxConversion,
    CollectionRefund,
    DemoSeed,
    DemoSelfFund,
}

impl Source {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VirtualAccountCredit => "virtual_account_credit",
            Self::VirtualAccountCreditFee => "virtual_account_credit_fee",
            Self::PayoutDebit => "payout_debit",
            Self::PayoutFee => "payout_fee",
            Self::PayoutReversal => "payout_reversal",
            Self::PayoutFeeReversal => "payout_fee_reversal",
            Self::AdminCredit => "admin_credit",
            Self::AdminDebit => "admin_debit",
            Self::PromotionalCredit => "promotional_credit",
            Self::ReconciliationAdjust => "reconciliation_adjust",
            Self::StampDutyCollected => "stamp_duty_collected",
            Self::FxConversion => "fx_conversion",
            Self::CollectionRefund => "collection_refund",
            Self::DemoSeed => "demo_seed",
            Self::DemoSelfFund => "demo_self_fund",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|source| source.as_str() == text)
    }

    /// Whether an entry of this source, as a credit, is money that came in.
    #[must_use]
    pub const fn is_funding(self) -> bool {
        matches!(
            self,
            Self::VirtualAccountCredit
                | Self::AdminCredit
                | Self::PromotionalCredit
                | Self::ReconciliationAdjust
                | Self::DemoSeed
                | Self::DemoSelfFund
        )
    }
}

/// The other side of wallets: where money waits, goes and comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SystemAccount {
    /// On its way through a currency's rails.
    Clearing,
    /// Fees earned.
    FeeIncome,
    /// Tax on fees, owed to the state.
    Tax,
    /// Statutory levies, owed to the state.
    Levy,
    /// Beyond our books: what came in from there and what went there for good.
    Settlement,
}

impl SystemAccount {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Clearing => "clearing",
            Self::FeeIncome => "fee_income",
            Self::Tax => "tax",
            Self::Levy => "levy",
            Self::Settlement => "settlement",
        }
    }
}

/// An account of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    /// A merchant's wallet: numbered, chained, never below zero.
    Wallet(WalletId),
    /// A system account of the platform, one per environment and currency.
    System(SystemAccount),
}

/// One line of a journal. A credit is positive, a debit negative.
#[derive(Clone, Debug)]
pub struct Posting {
    /// The account that is credited or debited.
    pub account: Account,
    /// Signed minor units; never zero.
    pub amount: Minor,
    /// What kind of movement it is, for statements.
    pub source: Source,
    /// For the merchant to read.
    pub description: String,
    /// Who sent it, for money that came in.
    pub sender: Option<String>,
}

/// Postings that belong together and sum to zero.
#[derive(Clone, Debug)]
pub struct Journal {
    /// What kind; an object has at most one journal of each kind.
    pub kind: &'static str,
    /// What kind of object it is about, as the API names it.
    pub ref_type: &'static str,
    /// The object's id.
    pub ref_id: String,
    /// Test or live; no journal touches both.
    pub env: Env,
    /// The currency of every posting.
    pub currency: Currency,
    /// The lines, in the order in which merchants see them.
    pub postings: Vec<Posting>,
}

impl Journal {
    /// Adds a line; nothing for an amount of zero.
    pub fn post(&mut self, account: Account, amount: Minor, source: Source, description: &str) {
        if amount != Minor::ZERO {
            let description = description.to_owned();
            self.postings.push(Posting { account, amount, source, description, sender: None });
        }
    }

    /// The sum of all lines, which must be zero.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn sum(&self) -> Result<Minor, Overflow> {
        Minor::total(self.postings.iter().map(|posting| posting.amount))
    }

    /// The account's id in the entries table.
    pub(super) fn account_id(&self, account: &Account) -> String {
        match account {
            Account::Wallet(wallet) => wallet.to_string(),
            Account::System(system) => {
                format!("system/{}/{}/{}", self.env, self.currency, system.as_str())
            }
        }
    }
}

/// A wallet entry as it is hashed into the wallet's chain.
pub(super) struct Link<'a> {
    /// Hash of the entry before; empty for the first.
    pub previous: &'a str,
    /// The wallet's id.
    pub wallet: &'a str,
    /// Position in the wallet.
    pub seq: i64,
    /// The journal's id.
    pub journal: &'a str,
    /// Position in the journal.
    pub line: i64,
    /// The amount in minor units; a debit is negative.
    pub amount_minor: i64,
    /// The wallet's balance after it.
    pub balance_after_minor: i64,
    /// What kind of movement it is.
    pub source: &'a str,
    /// When it was posted.
    pub created_at: Moment,
}

impl Link<'_> {
    /// The entry's hash: SHA-256 over its fields and the hash before, as hexadecimal.
    #[must_use]
    pub(super) fn hash(&self) -> String {
        let text = format!(
            "{}|{}|{}|{}|{}|{}|{}|{}|{}",
            self.previous,
            self.wallet,
            self.seq,
            self.journal,
            self.line,
            self.amount_minor,
            self.balance_after_minor,
            self.source,
            self.created_at.micros()
        );
        hex::encode(Sha256::digest(text))
    }
}

/// The API's id of the entry at this line of a journal.
#[must_use]
pub fn entry_id(journal_id: &str, line: i64) -> String {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    JournalId::from_text(journal_id.to_owned()).entry(line)
}
