//! Journals, their postings, and the accounts they touch.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::env::Env;
use crate::error::Problem;
use crate::id::{Id as _, IdGenerator, JournalId, PayoutId, WalletId};
use crate::money::{Currency, Minor, Overflow};

pub use super::source::Source;

/// The other side of wallets: where money waits, goes and comes from. One of each per
/// environment and currency; settlement has one per route, because each is a bank account that
/// is reconciled by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SystemAccount {
    /// On its way through a currency's rails.
    Clearing,
    /// What a route's bank account has been told to pay, by the route's name.
    Settlement(String),
    /// Money whose owner is in question; each amount belongs to an open case.
    Suspense,
    /// Fees earned.
    FeeIncome,
    /// Tax on fees, owed to the state.
    Tax,
    /// Statutory levies, owed to the state.
    Levy,
    /// Exposure from exchanging between currencies.
    FxPosition,
    /// Where operators' credits and the sandbox's money come from, and debits go.
    Funding,
    /// What an operator has given up.
    WrittenOff,
    /// What banks charge, and what they pay as interest.
    BankCharges,
}

/// The name in place of a route's, in the settlement account of what went over no route.
pub const BY_HAND: &str = "manual";

impl SystemAccount {
    /// The last part of the account's id: `settlement/<route>` for a route's account.
    pub(super) fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Clearing => "clearing".into(),
            Self::Settlement(route) => format!("settlement/{route}").into(),
            Self::Suspense => "suspense".into(),
            Self::FeeIncome => "fee_income".into(),
            Self::Tax => "tax".into(),
            Self::Levy => "levy".into(),
            Self::FxPosition => "fx_position".into(),
            Self::Funding => "funding".into(),
            Self::WrittenOff => "written_off".into(),
            Self::BankCharges => "bank_charges".into(),
        }
    }
}

/// An account of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    /// A merchant's wallet: numbered, chained, never below zero.
    Wallet(WalletId),
    /// One of the platform's own accounts.
    System(SystemAccount),
}

/// One line of a journal. A credit is positive, a debit negative.
#[derive(Clone, Debug)]
pub struct Posting {
    /// The account.
    pub account: Account,
    /// Signed minor units; never zero.
    pub amount: Minor,
    /// Why, in the contract's words.
    pub source: Source,
    /// For the merchant to read; empty where the account is none of a merchant's.
    pub description: String,
    /// Who sent it, for money that came in, as JSON; likewise.
    pub sender: Option<String>,
}

/// Postings that belong together and sum to zero.
#[derive(Clone, Debug)]
pub struct Journal {
    /// What kind; an object has at most one journal of each kind and round.
    pub kind: &'static str,
    /// What kind of object it is about, as the API names it.
    pub ref_type: &'static str,
    /// The object's id.
    pub ref_id: String,
    /// Which time the same happens to the object, from 1: a payout that failed may be marked as
    /// paid, and is debited a second time.
    pub round: i64,
    /// Test or live.
    pub env: Env,
    /// The currency of every posting.
    pub currency: Currency,
    /// The lines, in the order in which merchants see them: first those to a wallet, of which there
    /// is one at most.
    pub postings: Vec<Posting>,
}

/// The kind of journal by which a payout is debited; not the source, which is spelt alike. The id
/// of a payout's first one is computed from the payout's.
pub const PAYOUT_DEBIT: &str = "payout_debit";

impl Journal {
    /// Its id: a new one, unless it follows from its payout.
    ///
    /// # Errors
    /// It debits what is no payout.
    pub(super) fn id(&self, ids: &IdGenerator) -> Result<JournalId, Problem> {
        if (self.kind, self.round) != (PAYOUT_DEBIT, 1) {
            return Ok(ids.journal());
        }
        let payout = PayoutId::parse(&self.ref_id);
        let payout = payout.ok_or_else(|| Problem::internal("a debit of no payout"))?;
        Ok(JournalId::of_debit(&payout))
    }

    /// Adds a line; nothing for an amount of zero.
    pub fn post(&mut self, account: Account, amount: Minor, source: Source, description: &str) {
        if amount != Minor::ZERO {
            // PostgreSQL could not read it.
            let description = description.replace('\0', "\u{fffd}");
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

    /// The wallet that it touches, if it touches one, and how many of its lines do.
    ///
    /// # Errors
    /// There are two, or a line to one stands behind one to an account of the platform.
    pub(super) fn wallet(&self) -> Result<Option<(&WalletId, i64)>, Problem> {
        let first = self.postings.first().and_then(Posting::wallet);
        let same = self.postings.iter().take_while(|posting| posting.wallet() == first).count();
        if self.postings[same..].iter().any(|posting| posting.wallet().is_some()) {
            let why = format!("journal {} does not begin with one wallet", self.kind);
            return Err(Problem::internal(why));
        }
        let entries = i64::try_from(same).map_err(Problem::internal)?;
        Ok(first.map(|wallet| (wallet, entries)))
    }

    /// The lines as the journal's row has them, and what its wallet holds after them if it held
    /// `balance` before.
    ///
    /// # Errors
    /// The balance does not fit, or a line to an account of the platform says something for a
    /// merchant to read, which nobody would.
    pub(super) fn lines(&self, mut balance: Minor) -> Result<(String, Minor), Problem> {
        let mut lines = Vec::with_capacity(self.postings.len());
        for posting in &self.postings {
            let (amount, source) = (posting.amount.units(), posting.source.as_str().into());
            let (account, entry) = match &posting.account {
                Account::Wallet(_) => {
                    balance = balance.plus(posting.amount)?;
                    let description = posting.description.as_str().into();
                    let sender = posting.sender.as_deref().map(Cow::from);
                    (None, Some(StoredEntry(description, balance.units(), sender)))
                }
                Account::System(own) => {
                    if !posting.description.is_empty() || posting.sender.is_some() {
                        let (kind, own) = (self.kind, own.name());
                        let why = format!("journal {kind} tells a merchant of {own}");
                        return Err(Problem::internal(why));
                    }
                    (Some(own.name()), None)
                }
            };
            lines.push(StoredLine(account, amount, source, entry));
        }
        Ok((serde_json::to_string(&lines).map_err(Problem::internal)?, balance))
    }
}

impl Posting {
    /// The wallet that it is to, if it is to one.
    const fn wallet(&self) -> Option<&WalletId> {
        match &self.account {
            Account::Wallet(wallet) => Some(wallet),
            Account::System(_) => None,
        }
    }
}

/// A line of a journal as it stands in the journal's row: the last part of the id of one of the
/// platform's own accounts, signed minor units, why; and what only lines to wallets have, which
/// have no account.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredLine<'a>(
    pub(super) Option<Cow<'a, str>>,
    pub(super) i64,
    pub(super) Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")] pub(super) Option<StoredEntry<'a>>,
);

impl StoredLine<'_> {
    /// Whether it is one to the wallet.
    pub(super) const fn is_entry(&self) -> bool {
        self.0.is_none()
    }

    /// Signed minor units.
    pub(super) const fn amount_minor(&self) -> i64 {
        self.1
    }

    /// What the wallet holds after it, if it is one to the wallet.
    pub(super) fn balance_after_minor(&self) -> Option<i64> {
        self.3.as_ref().map(|entry| entry.1)
    }
}

/// Where a journal stands in the wallet that it touches.
pub(super) struct WalletPlace {
    pub wallet_id: String,
    /// The number of its first entry.
    pub seq: i64,
    /// The hash of its link in the wallet's chain.
    pub hash: String,
}

/// What a line to a wallet has besides: a description, what the wallet holds after it, who sent it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredEntry<'a>(
    pub(super) Cow<'a, str>,
    pub(super) i64,
    #[serde(default, skip_serializing_if = "Option::is_none")] pub(super) Option<Cow<'a, str>>,
);

/// The lines to the platform's own accounts among those that a journal's row has: the last part of
/// each account's id, and the amount.
///
/// # Errors
/// They cannot be read.
pub fn own_lines_of(text: &str) -> serde_json::Result<Vec<(Cow<'_, str>, Minor)>> {
    let lines: Vec<StoredLine<'_>> = serde_json::from_str(text)?;
    let own = |StoredLine(account, amount, ..)| Some((account?, Minor::new(amount)));
    Ok(lines.into_iter().filter_map(own).collect())
}

/// The API's id of the entry at this line of a journal.
#[must_use]
pub fn entry_id(journal_id: &str, line: i64) -> String {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    JournalId::from_text(journal_id.to_owned()).entry(line)
}

/// A journal as its digest covers it: everything but the running numbers of the wallets.
pub(super) struct Digested<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub ref_type: &'a str,
    pub ref_id: &'a str,
    pub round: i64,
    pub env: &'a str,
    pub currency: &'a str,
    pub created_at: Moment,
    pub lines: Vec<Line<'a>>,
}

/// A line of a journal as its digest covers it.
pub(super) struct Line<'a> {
    /// The wallet's id, or the last part of the id of one of the platform's own accounts.
    pub account: Cow<'a, str>,
    pub amount_minor: i64,
    pub source: &'a str,
    pub description: &'a str,
    pub sender: Option<&'a str>,
}

impl Digested<'_> {
    /// SHA-256 over every field and line, each with its length before it.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut text = |part: &str| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        for part in [self.id, self.kind, self.ref_type, self.ref_id, self.env, self.currency] {
            text(part);
        }
        text(&self.round.to_string());
        text(&self.created_at.micros().to_string());
        for line in &self.lines {
            for part in [&line.account, line.source, line.description] {
                text(part);
            }
            text(&line.amount_minor.to_string());
            text(line.sender.map_or("-", |_| "+"));
            text(line.sender.unwrap_or_default());
        }
        hash.finalize().into()
    }
}

/// A journal as it is hashed into its wallet's chain.
pub(super) struct Link<'a> {
    /// Hash of the wallet's journal before; empty for the first.
    pub previous: &'a str,
    /// The wallet.
    pub wallet: &'a str,
    /// The number of its first entry in the wallet.
    pub seq: i64,
    /// Its digest.
    pub journal: [u8; 32],
    /// What the wallet holds after it.
    pub balance_after_minor: i64,
}

impl Link<'_> {
    /// The link's hash: SHA-256 over its fields and the hash before, in base64: every
    /// journal of a wallet has one.
    #[must_use]
    pub(super) fn hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.previous);
        hash.update("|");
        hash.update(self.wallet);
        hash.update(self.seq.to_be_bytes());
        hash.update(self.journal);
        hash.update(self.balance_after_minor.to_be_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet(place: u64) -> Account {
        let at = Moment::from_micros(1_700_000_000_000_000 + i64::try_from(place).expect("small"));
        Account::Wallet(WalletId::first_at(at))
    }

    fn journal(postings: &[(Account, i64, &str)]) -> Journal {
        let mut journal = Journal {
            kind: "movement",
            ref_type: "WalletMovement",
            ref_id: "m".into(),
            round: 1,
            env: Env::Test,
            currency: Currency::parse("NGN").expect("a currency"),
            postings: Vec::new(),
        };
        for (account, amount, description) in postings {
            let (account, amount) = (account.clone(), Minor::new(*amount));
            journal.post(account, amount, Source::AdminCredit, description);
        }
        journal
    }

    #[test]
    fn a_journal_begins_with_the_one_wallet_that_it_touches() {
        let own = || (Account::System(SystemAccount::Funding), -3, "");
        let [to_one, to_other] = [1_000_000, 2_000_000].map(|place| (wallet(place), 1, "in"));
        let of = |postings: &[_]| journal(postings).wallet().map(|found| found.map(|(_, n)| n));
        assert_eq!(of(&[own(), own()]).expect("none"), None);
        assert_eq!(of(&[to_one.clone(), to_one.clone(), own()]).expect("one"), Some(2));
        assert!(of(&[to_one.clone(), to_other.clone(), own()]).is_err(), "two wallets");
        assert!(of(&[to_one.clone(), own(), to_one.clone()]).is_err(), "behind another");
        assert!(of(&[own(), to_other]).is_err(), "behind another");
    }

    #[test]
    fn lines_say_what_the_wallet_holds_after_each_and_nothing_of_accounts_to_merchants() {
        let own = |description| (Account::System(SystemAccount::Funding), 7, description);
        let of_wallet = [(wallet(0), -4, "a \"fee\""), (wallet(0), -3, "a levy"), own("")];
        let (lines, balance) = journal(&of_wallet).lines(Minor::new(10)).expect("lines");
        assert_eq!(balance, Minor::new(3));
        let expected = r#"[[null,-4,"admin_credit",["a \"fee\"",6]],[null,-3,"admin_credit",["a levy",3]],["funding",7,"admin_credit"]]"#;
        assert_eq!(lines, expected);
        let read: Vec<StoredLine<'_>> = serde_json::from_str(&lines).expect("the same");
        let after: Vec<_> = read.iter().map(StoredLine::balance_after_minor).collect();
        assert_eq!(after, [Some(6), Some(3), None]);
        assert_eq!(own_lines_of(&lines).expect("one"), [("funding".into(), Minor::new(7))]);
        assert!(journal(&[own("for a merchant")]).lines(Minor::ZERO).is_err());
    }
}
