//! What an operator decides about a payout whose money is in question.

use crate::app::App;
use crate::cases::Resolution;
use crate::cases::sql::StoredCase;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Account, Command, Decided, Effects, Guard, Journal, Source, SystemAccount};
use crate::money::Minor;
use crate::transfers::Failure;

use super::change::{Accompanying, Limits, change, version};
use super::contradiction::credited;
use super::model::{Change, Payout};
use super::retrieve::get;

/// What goes with a decision about a case.
pub struct Accompanied {
    /// The case must be as it was.
    pub case: Guard,
    /// And so must be what was agreed before.
    pub agreed: Vec<Guard>,
    /// Rows that say what was decided.
    pub rows: Vec<RowChange>,
}

/// Carries out what was decided about a case of a payout, with the rows that say so.
///
/// # Errors
/// `state_conflict` where the payout or the case has changed so that it does not fit any more;
/// `insufficient_funds` and `wallet_frozen` where the wallet is to be charged.
pub async fn resolve(
    app: &App,
    case: &StoredCase,
    resolution: Resolution,
    Accompanied { case: guard, agreed, rows }: Accompanied,
) -> Result<(), Problem> {
    let payout = get(app, &case.case.subject_id).await?;
    let what = match resolution {
        Resolution::Charge => Change::Charge,
        Resolution::GiveBack => Change::GiveBack,
        _ => {
            if resolution == Resolution::Credit && !payout.status.is_paid() {
                let message = "The wallet is, or will be, given back everything: there is no part \
                               to credit.";
                return Err(Problem::because(ErrorCode::StateConflict, message));
            }
            let about = case.case.evidence.get("reference").and_then(|it| it.as_str());
            if resolution == Resolution::Credit && about != payout.rail_reference.as_deref() {
                let message = "It came back of another attempt than the one that was paid: say \
                               that it was forwarded, and see to that attempt's own case.";
                return Err(Problem::because(ErrorCode::StateConflict, message));
            }
            let journal = journal(case, &payout, resolution)?;
            let mut beside = Vec::new();
            if let (Resolution::Credit, Some((_, amount))) = (resolution, case.case.amount) {
                let (before, guards) = credited(app, &payout).await?;
                if before.plus(amount)? > payout.costs.amount {
                    let message = "More would be credited than was paid: say that it was \
                                   forwarded, and credit what is missing by hand.";
                    return Err(Problem::because(ErrorCode::StateConflict, message));
                }
                beside = guards;
            }
            let needs = [payout.wallet_id.clone()];
            let command = Command::new(move |_| {
                let journals = vec![journal.clone()];
                Ok::<Decided<()>, Problem>(
                    Effects { journals, rows: rows.clone(), ..Effects::default() }.and(()),
                )
            });
            // Nobody gives all of it back meanwhile.
            let guards = [guard, version(&payout)].into_iter().chain(beside).chain(agreed);
            app.writer.work(command.wallets(needs).guards(guards)).await?;
            return Ok(());
        }
    };
    let mut beside = Vec::new();
    if what == Change::GiveBack {
        let (before, guards) = credited(app, &payout).await?;
        if before > Minor::ZERO {
            let message = "Part of this payout was credited already: uphold the payment, and \
                           credit the rest by hand.";
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        beside = guards;
    }
    let failure = (what == Change::GiveBack).then(|| Failure {
        code: "not_paid".to_owned(),
        message: "The bank did not pay it after all.".to_owned(),
        id: None,
    });
    let with = Accompanying {
        failure,
        case: Some(guard),
        beside,
        agreed,
        limits: Limits::Count,
        rows,
        ..Accompanying::default()
    };
    change(app, &payout, what, with).await.map(drop)
}

/// What the books do where the payout stays as it is.
fn journal(case: &StoredCase, payout: &Payout, resolution: Resolution) -> Result<Journal, Problem> {
    let odd = || Problem::internal("a case about money without an amount");
    let (_, amount) = case.case.amount.ok_or_else(odd)?;
    let route = case.case.route.clone().unwrap_or_default();
    let settlement = Account::System(SystemAccount::Settlement(route));
    let suspense = Account::System(SystemAccount::Suspense);
    let adjust = Source::ReconciliationAdjust;
    // What stands in suspense, with the sign that it was posted with, and where it goes.
    let (suspended, to, source, label) = match resolution {
        Resolution::Recovered => (amount.negated()?, settlement, adjust, String::new()),
        Resolution::WriteOff => {
            let written_off = Account::System(SystemAccount::WrittenOff);
            (amount.negated()?, written_off, adjust, String::new())
        }
        Resolution::Uphold | Resolution::Forwarded => (amount, settlement, adjust, String::new()),
        Resolution::Credit => {
            let wallet = Account::Wallet(payout.wallet_id.clone());
            let label = format!("Part of {} came back", payout.id.reference());
            (amount, wallet, Source::PayoutReversal, label)
        }
        Resolution::Acknowledge | Resolution::Charge | Resolution::GiveBack => {
            return Err(Problem::new(ErrorCode::StateConflict));
        }
    };
    let mut journal = Journal {
        kind: "case_resolved",
        ref_type: "Case",
        ref_id: case.case.id.to_string(),
        round: 1,
        env: payout.env,
        currency: payout.currency,
        postings: Vec::with_capacity(2),
    };
    journal.post(to, suspended, source, &label);
    journal.post(suspense, Minor::ZERO.minus(suspended)?, adjust, "");
    Ok(journal)
}
