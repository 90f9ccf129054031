//! A payout in the ledger: what each effect posts, and where.
//!
//! | effect | wallet | clearing | settlement | suspense | income, tax, levy |
//! |---|---|---|---|---|---|
//! | debit | − everything | + everything | | | |
//! | settle | | − everything | + amount | | + fee, tax, levy |
//! | give back | + everything | − everything | | | |
//! | give back settled | + everything | | − amount | | − fee, tax, levy |
//! | suspend paid | | | + amount | − amount | |
//! | suspend refused | | | − amount | + amount | |
//! | suspend part | | | − part | + part | |
//! | debit suspended | − everything | | | + amount | + fee, tax, levy |
//! | give back suspended | + everything | | | − amount | − fee, tax, levy |
//!
//! Fees are earned, and tax and levy owed, when the recipient has the money and not before. Each
//! route's bank account has a settlement account of its own; what never went over a route is
//! settled by hand.

use crate::error::Problem;
use crate::id::{CaseId, WalletId};
use crate::ledger::{Account, BY_HAND, Effects, Journal, PAYOUT_DEBIT, Source, SystemAccount};
use crate::money::{Minor, Overflow};

use super::model::{LedgerEffect, Payout};

/// What goes to suspense, and why.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspended {
    /// The case that it belongs to.
    pub case: Option<CaseId>,
    /// The route whose bank account is concerned; the payout's own if none is named.
    pub route: Option<String>,
    /// What came back, where that is not the whole amount.
    pub part: Option<Minor>,
}

/// Where the money is when it is not on its way through clearing.
#[derive(Clone, Copy)]
enum Arrived {
    /// In the recipient's account, out of the route's bank account.
    Settled,
    /// In question.
    Suspense,
}

/// Adds what an effect does to the wallet and the books.
///
/// # Errors
/// A sum does not fit.
pub(super) fn book(
    effects: &mut Effects,
    payout: &Payout,
    effect: LedgerEffect,
    suspended: &Suspended,
) -> Result<(), Problem> {
    let total = payout.costs.total()?;
    let amount = payout.costs.amount;
    let wallet = &payout.wallet_id;
    let mut take = |change: Minor| effects.taken_out.push((wallet.clone(), change));
    let journals = &mut effects.journals;
    match effect {
        LedgerEffect::None => {}
        LedgerEffect::Debit => {
            take(total);
            journals.push(debit(payout)?);
        }
        LedgerEffect::Settle => {
            effects.settled.push((wallet.clone(), total));
            journals.push(settlement(payout, Arrived::Settled)?);
        }
        LedgerEffect::DebitSettled => {
            journals.extend([debit(payout)?, settlement(payout, Arrived::Settled)?]);
        }
        LedgerEffect::DebitSuspended => {
            journals.extend([debit(payout)?, settlement(payout, Arrived::Suspense)?]);
        }
        LedgerEffect::GiveBack => {
            take(total.negated()?);
            journals.push(give_back(payout, None)?);
        }
        LedgerEffect::GiveBackSettled => journals.push(give_back(payout, Some(Arrived::Settled))?),
        LedgerEffect::GiveBackSuspended => {
            journals.push(give_back(payout, Some(Arrived::Suspense))?);
        }
        LedgerEffect::SuspendPaid => journals.push(suspense(payout, amount, suspended)?),
        LedgerEffect::SuspendRefused => {
            journals.push(suspense(payout, amount.negated()?, suspended)?);
        }
        LedgerEffect::SuspendPart => {
            let part = suspended.part.unwrap_or(amount);
            journals.push(suspense(payout, part.negated()?, suspended)?);
        }
    }
    Ok(())
}

/// The settlement account of the route that a payout went over.
fn own_account(payout: &Payout) -> SystemAccount {
    SystemAccount::Settlement(payout.route.clone().unwrap_or_else(|| BY_HAND.to_owned()))
}

/// Moves an amount into a route's bank account's books, out of suspense.
fn suspense(payout: &Payout, settled: Minor, why: &Suspended) -> Result<Journal, Overflow> {
    let own = || own_account(payout);
    let account = why.route.clone().map_or_else(own, SystemAccount::Settlement);
    let mut journal = Journal {
        kind: "case_opened",
        ref_type: "Case",
        ref_id: why.case.as_ref().map(ToString::to_string).unwrap_or_default(),
        ..journal(payout, "")
    };
    let source = Source::ReconciliationAdjust;
    journal.round = 1;
    journal.post(Account::System(account), settled, source, "");
    journal.post(Account::System(SystemAccount::Suspense), settled.negated()?, source, "");
    Ok(journal)
}

/// Its sources stand in `ledger::wallets::list_entries`, too: all else is found without these journals.
fn debit(payout: &Payout) -> Result<Journal, Overflow> {
    let costs = &payout.costs;
    let mut journal = journal(payout, PAYOUT_DEBIT);
    let label = label("Payout to", payout);
    let wallet = Account::Wallet(payout.wallet_id.clone());
    let fee = costs.fee.plus(costs.tax)?;
    journal.post(wallet.clone(), costs.amount.negated()?, Source::PayoutDebit, &label);
    journal.post(wallet.clone(), fee.negated()?, Source::PayoutFee, "Payout fee and tax");
    journal.post(wallet, costs.levy.negated()?, Source::StampDutyCollected, "Statutory levy");
    let clearing = Account::System(SystemAccount::Clearing);
    journal.post(clearing, costs.total()?, Source::PayoutDebit, "");
    Ok(journal)
}

fn settlement(payout: &Payout, arrived: Arrived) -> Result<Journal, Overflow> {
    let mut journal = journal(payout, "payout_settlement");
    let clearing = Account::System(SystemAccount::Clearing);
    journal.post(clearing, payout.costs.total()?.negated()?, Source::PayoutDebit, "");
    let sources = (Source::PayoutDebit, Source::PayoutFee);
    arrive(&mut journal, (payout, arrived), Minor::plus, sources)?;
    Ok(journal)
}

/// Gives everything back: out of clearing where it had not arrived.
fn give_back(payout: &Payout, arrived: Option<Arrived>) -> Result<Journal, Overflow> {
    let costs = &payout.costs;
    let mut journal = journal(payout, "payout_reversal");
    let label = label("Payout given back:", payout);
    let wallet: Account = Account::Wallet(WalletId::clone(&payout.wallet_id));
    let fee = costs.fee.plus(costs.tax)?;
    journal.post(wallet.clone(), costs.amount, Source::PayoutReversal, &label);
    journal.post(wallet.clone(), costs.levy, Source::PayoutReversal, "Statutory levy given back");
    journal.post(wallet, fee, Source::PayoutFeeReversal, "Payout fee and tax given back");
    match arrived {
        None => {
            let clearing = Account::System(SystemAccount::Clearing);
            journal.post(clearing, costs.total()?.negated()?, Source::PayoutReversal, "");
        }
        Some(arrived) => {
            let sources = (Source::PayoutReversal, Source::PayoutFeeReversal);
            arrive(&mut journal, (payout, arrived), Minor::minus, sources)?;
        }
    }
    Ok(journal)
}

/// Where everything goes in the end, in the direction that `sign` gives.
fn arrive(
    journal: &mut Journal,
    (payout, arrived): (&Payout, Arrived),
    sign: fn(Minor, Minor) -> Result<Minor, Overflow>,
    (principal, charge): (Source, Source),
) -> Result<(), Overflow> {
    let costs = &payout.costs;
    let principals = match arrived {
        Arrived::Settled => own_account(payout),
        Arrived::Suspense => SystemAccount::Suspense,
    };
    for (account, amount, source) in [
        (principals, costs.amount, principal),
        (SystemAccount::FeeIncome, costs.fee, charge),
        (SystemAccount::Tax, costs.tax, charge),
        (SystemAccount::Levy, costs.levy, charge),
    ] {
        journal.post(Account::System(account), sign(Minor::ZERO, amount)?, source, "");
    }
    Ok(())
}

fn journal(payout: &Payout, kind: &'static str) -> Journal {
    Journal {
        kind,
        ref_type: "Payout",
        ref_id: payout.id.to_string(),
        round: payout.round,
        env: payout.env,
        currency: payout.currency,
        postings: Vec::with_capacity(5),
    }
}

fn label(what: &str, payout: &Payout) -> String {
    match payout.recipient_name.as_str() {
        "" => format!("{what} {}", payout.id.reference()),
        name => format!("{what} {name}"),
    }
}
