//! A payout in the ledger: what each effect posts, and where.
//!
//! | effect | wallet | clearing | settlement | income, tax, levy |
//! |---|---|---|---|---|
//! | debit | − everything | + everything | | |
//! | settle | | − everything | + amount | + fee, tax, levy |
//! | give back | + everything | − everything | | |
//! | give back settled | + everything | | − amount | − fee, tax, levy |
//!
//! Fees are earned, and tax and levy owed, when the recipient has the money and not before.

use crate::error::Problem;
use crate::id::WalletId;
use crate::ledger::{Account, Effects, Journal, Source, SystemAccount};
use crate::money::{Minor, Overflow};

use super::model::{LedgerEffect, Payout};

/// Whether the recipient had the money already.
#[derive(Clone, Copy)]
enum IsSettled {
    No,
    Yes,
}

/// Adds what an effect does to the wallet and the books.
///
/// # Errors
/// A sum does not fit.
pub(super) fn book(
    effects: &mut Effects,
    payout: &Payout,
    effect: LedgerEffect,
) -> Result<(), Problem> {
    let total = payout.costs.total()?;
    let wallet = &payout.wallet_id;
    let mut out = |change: Minor| effects.pending_out.push((wallet.clone(), change));
    match effect {
        LedgerEffect::None => {}
        LedgerEffect::Debit => {
            out(total);
            effects.journals.push(debit(payout)?);
        }
        LedgerEffect::Settle => {
            out(total.negated()?);
            effects.journals.push(settlement(payout)?);
        }
        LedgerEffect::DebitSettled => {
            effects.journals.push(debit(payout)?);
            effects.journals.push(settlement(payout)?);
        }
        LedgerEffect::GiveBack => {
            out(total.negated()?);
            effects.journals.push(give_back(payout, IsSettled::No)?);
        }
        LedgerEffect::GiveBackSettled => {
            effects.journals.push(give_back(payout, IsSettled::Yes)?);
        }
    }
    Ok(())
}

fn debit(payout: &Payout) -> Result<Journal, Overflow> {
    let costs = &payout.costs;
    let mut journal = journal(payout, "payout_debit");
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

fn settlement(payout: &Payout) -> Result<Journal, Overflow> {
    let mut journal = journal(payout, "payout_settlement");
    let clearing = Account::System(SystemAccount::Clearing);
    journal.post(clearing, payout.costs.total()?.negated()?, Source::PayoutDebit, "");
    arrive(&mut journal, payout, Minor::plus, (Source::PayoutDebit, Source::PayoutFee))?;
    Ok(journal)
}

fn give_back(payout: &Payout, is_settled: IsSettled) -> Result<Journal, Overflow> {
    let costs = &payout.costs;
    let mut journal = journal(payout, "payout_reversal");
    let label = label("Payout given back:", payout);
    let wallet: Account = Account::Wallet(WalletId::clone(&payout.wallet_id));
    let fee = costs.fee.plus(costs.tax)?;
    journal.post(wallet.clone(), costs.amount, Source::PayoutReversal, &label);
    journal.post(wallet.clone(), costs.levy, Source::PayoutReversal, "Statutory levy given back");
    journal.post(wallet, fee, Source::PayoutFeeReversal, "Payout fee and tax given back");
    match is_settled {
        IsSettled::No => {
            let clearing = Account::System(SystemAccount::Clearing);
            journal.post(clearing, costs.total()?.negated()?, Source::PayoutReversal, "");
        }
        IsSettled::Yes => {
            let sources = (Source::PayoutReversal, Source::PayoutFeeReversal);
            arrive(&mut journal, payout, Minor::minus, sources)?;
        }
    }
    Ok(journal)
}

/// Where everything goes in the end, in the direction that `sign` gives.
fn arrive(
    journal: &mut Journal,
    payout: &Payout,
    sign: fn(Minor, Minor) -> Result<Minor, Overflow>,
    (principal, charge): (Source, Source),
) -> Result<(), Overflow> {
    let costs = &payout.costs;
    for (account, amount, source) in [
        (SystemAccount::Settlement, costs.amount, principal),
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
