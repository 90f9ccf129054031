//! A payout in the ledger: what each effect posts, and where.
//!
//! | effect | wallet | clearing | settlement | income, tax, levy |
//! |---|---|---|---|---|
//! | debit | − everything | + amount | | + fee, tax, levy |
//! | settle | | − amount | + amount | |
//! | give back | + everything | − amount | | − fee, tax, levy |
//! | give back settled | + everything | | − amount | − fee, tax, levy |

use crate::error::Problem;
use crate::id::WalletId;
use crate::ledger::{Account, Effects, Journal, Source, SystemAccount};
use crate::money::{Minor, Overflow};

use super::model::{LedgerEffect, Payout};

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
            effects.journals.push(give_back(payout, SystemAccount::Clearing)?);
        }
        LedgerEffect::GiveBackSettled => {
            effects.journals.push(give_back(payout, SystemAccount::Settlement)?);
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
    journal.post(clearing, costs.amount, Source::PayoutDebit, &label);
    charges(&mut journal, payout, Minor::plus, Source::PayoutFee)?;
    Ok(journal)
}

fn settlement(payout: &Payout) -> Result<Journal, Overflow> {
    let amount = payout.costs.amount;
    let mut journal = journal(payout, "payout_settlement");
    let label = label("Paid to", payout);
    let post = |journal: &mut Journal, account, amount| {
        journal.post(Account::System(account), amount, Source::PayoutDebit, &label);
    };
    post(&mut journal, SystemAccount::Clearing, amount.negated()?);
    post(&mut journal, SystemAccount::Settlement, amount);
    Ok(journal)
}

fn give_back(payout: &Payout, from: SystemAccount) -> Result<Journal, Overflow> {
    let costs = &payout.costs;
    let mut journal = journal(payout, "payout_reversal");
    let label = label("Payout given back:", payout);
    let wallet: Account = Account::Wallet(WalletId::clone(&payout.wallet_id));
    let fee = costs.fee.plus(costs.tax)?;
    journal.post(wallet.clone(), costs.amount, Source::PayoutReversal, &label);
    journal.post(wallet.clone(), costs.levy, Source::PayoutReversal, "Statutory levy given back");
    journal.post(wallet, fee, Source::PayoutFeeReversal, "Payout fee and tax given back");
    let account = Account::System(from);
    journal.post(account, costs.amount.negated()?, Source::PayoutReversal, &label);
    charges(&mut journal, payout, Minor::minus, Source::PayoutFeeReversal)?;
    Ok(journal)
}

/// The house's side of fee, tax and levy, each in the direction that `sign` gives.
fn charges(
    journal: &mut Journal,
    payout: &Payout,
    sign: fn(Minor, Minor) -> Result<Minor, Overflow>,
    fee_source: Source,
) -> Result<(), Overflow> {
    let costs = &payout.costs;
    let levy_source = match fee_source {
        Source::PayoutFee => Source::StampDutyCollected,
        _ => Source::PayoutReversal,
    };
    for (account, amount, source) in [
        (SystemAccount::FeeIncome, costs.fee, fee_source),
        (SystemAccount::Tax, costs.tax, fee_source),
        (SystemAccount::Levy, costs.levy, levy_source),
    ] {
        let amount = sign(Minor::ZERO, amount)?;
        journal.post(Account::System(account), amount, source, "Payout charges");
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
        postings: Vec::with_capacity(7),
    }
}

fn label(what: &str, payout: &Payout) -> String {
    match payout.recipient_name.as_str() {
        "" => format!("{what} {}", payout.id.reference()),
        name => format!("{what} {name}"),
    }
}
