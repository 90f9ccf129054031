//! What an operator decides about a payout whose money is in question.

use crate::app::App;
use crate::approvals;
use crate::cases::Resolution;
use crate::cases::sql::StoredCase;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Account, Command, Decided, Effects, Guard, Journal, Source, SystemAccount};
use crate::money::Minor;
use crate::transfers::Failure;
use crate::transfers::attempt::AttemptState;

use super::change::{Accompanying, Limits, change, version};
use super::contradiction::{attempts, credited, in_question};
use super::model::{Change, Payout, Status};
use super::retrieve::get;
use super::review::ACTS_OF_SEVERAL;

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
    with: Accompanied,
) -> Result<(), Problem> {
    let payout = get(app, &case.case.subject_id).await?;
    match resolution {
        Resolution::Charge => end(app, (case, &payout), Change::Charge, with).await,
        Resolution::GiveBack => end(app, (case, &payout), Change::GiveBack, with).await,
        _ => move_suspended(app, (case, payout), resolution, with).await,
    }
}

/// Moves what stands in suspense; the payout stays as it is.
async fn move_suspended(
    app: &App,
    (case, payout): (&StoredCase, Payout),
    resolution: Resolution,
    Accompanied { case: guard, agreed, rows }: Accompanied,
) -> Result<(), Problem> {
    let journal = journal(case, &payout, resolution)?;
    let beside = match resolution {
        Resolution::Credit => require_creditable(app, case, &payout).await?,
        _ => Vec::new(),
    };
    let needs = [payout.wallet_id.clone()];
    let id = payout.id.to_string();
    let command = Command::new(move |_| {
        let journals = vec![journal.clone()];
        Ok::<Decided<()>, Problem>(
            Effects { journals, rows: rows.clone(), ..Effects::default() }.and(()),
        )
    });
    // Nobody gives all of it back meanwhile.
    let guards = [guard, version(&payout)].into_iter().chain(beside).chain(agreed);
    let command = command.wallets(needs).guards(guards);
    // Whoever asked for something did not know of this.
    app.writer.work(approvals::ending(command, ACTS_OF_SEVERAL, &id)).await?;
    Ok(())
}

/// Refuses to credit what the wallet has, or will have; answers what must stay as it is.
async fn require_creditable(
    app: &App,
    case: &StoredCase,
    payout: &Payout,
) -> Result<Vec<Guard>, Problem> {
    if !payout.status.is_paid() {
        let message = "The wallet is, or will be, given back everything: there is no part to \
                       credit.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let (about, counts) = (case.case.reference(), payout.rail_reference.as_deref());
    let reference = about.unwrap_or_default();
    // What an operator took for paid may be another one than the last.
    let may_count = about == counts
        || (payout.status == Status::PaidManual
            && !in_question(app, payout, reference).await?.is_excess());
    if !may_count || attempts(app, payout).await?.is_paid_besides(reference) {
        let message = "Two attempts were paid, or this one does not count: resolve it as \
                       `forwarded`, the case about the other one by itself, and credit by hand \
                       what is missing then.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let amount = case.case.amount.map_or(Minor::ZERO, |(_, amount)| amount);
    let (before, guards) = credited(app, payout).await?;
    if before.plus(amount)? > payout.costs.amount {
        let message = "More would be credited than was paid: say that it was forwarded, and credit \
                       what is missing by hand.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    Ok(guards)
}

/// Ends the payout otherwise than it had ended.
async fn end(
    app: &App,
    (case, payout): (&StoredCase, &Payout),
    what: Change,
    Accompanied { case: guard, agreed, rows }: Accompanied,
) -> Result<(), Problem> {
    let (mut beside, mut failure, mut attempt) = (Vec::new(), None, None);
    let (about, known) = (case.case.reference(), attempts(app, payout).await?);
    if what == Change::GiveBack {
        if known.state(about) == Some(AttemptState::Paid) {
            let message = "The bank says again that it paid this: resolve it as `uphold`.";
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        beside = require_unpaid(app, payout).await?;
        failure = Some(Failure {
            code: "not_paid".to_owned(),
            message: "The bank did not pay it after all.".to_owned(),
            id: None,
        });
    } else {
        if matches!(known.state(about), Some(AttemptState::Refused | AttemptState::Returned)) {
            let message = "The bank no longer says that it paid this: resolve it as `recovered`.";
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        // It may be another one than the last: it is the one that counts from now on.
        attempt = known.fixed(about);
    }
    let with = Accompanying {
        failure,
        attempt,
        case: Some(guard),
        beside,
        agreed,
        limits: Limits::Count,
        rows,
        ..Accompanying::default()
    };
    change(app, payout, what, with).await.map(drop)
}

/// Refuses to give back what the recipient has, or the wallet in part; answers what must stay as it
/// is.
async fn require_unpaid(app: &App, payout: &Payout) -> Result<Vec<Guard>, Problem> {
    let counts = payout.rail_reference.as_deref().unwrap_or_default();
    if attempts(app, payout).await?.is_paid_besides(counts) {
        let message = "Another attempt was paid: resolve this as `uphold`, and the case about the \
                       other one by itself.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let (before, guards) = credited(app, payout).await?;
    if before > Minor::ZERO {
        let message = "Part of this payout was credited already: uphold the payment, and credit \
                       the rest by hand.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    Ok(guards)
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
