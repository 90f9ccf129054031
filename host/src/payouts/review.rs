//! What the operator, and a teammate, may do to a payout.
//!
//! A mark ends a payout against or ahead of the bank, so it takes the payout's lease first:
//! while a call to the rail is under way, its answer counts, and the mark is refused.

use serde_json::json;

use crate::app::App;
use crate::audit;
use crate::caller::Operator;
use crate::cases;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Done, Guard, Reservation};
use crate::transfers::attempt::{ATTEMPT_STATES, AttemptState, list_attempts};
use crate::transfers::work::WORK_FENCES;
use crate::transfers::{Claim, Claimed, Failure};

use super::change::{Accompanying, change};
use super::model::{Change, Payout};
use super::retrieve::get;

/// A change that the operator or a teammate asks for.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// Who asks.
    pub operator: Operator,
    /// Why; where the payout ends unpaid, also the message that the merchant reads.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking it paid or failed.
    pub evidence: Option<String>,
    /// The idempotency key, if the request has one.
    pub reservation: Option<Reservation>,
}

/// Makes that change to a payout.
///
/// # Errors
/// `missing_field` without evidence for marking, `payout_not_found`, `state_conflict` where it
/// is not possible or a call to the rail is under way, and the refusals of a debit.
pub async fn review(
    app: &App,
    id: &str,
    what: Change,
    request: &ReviewRequest,
) -> Result<Done<Payout>, Problem> {
    let is_marking = matches!(what, Change::MarkPaid | Change::MarkFailed);
    if is_marking && request.evidence.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let message = "evidence is required: say what shows how this payout ended.";
        return Err(Problem::because(ErrorCode::MissingField, message).field("evidence"));
    }
    loop {
        let payout = get(app, id).await?;
        let claim = match is_marking {
            true => take_lease(app, &payout).await?,
            false => None,
        };
        let changed = attempt_change(app, &payout, (what, claim.as_ref()), request).await;
        if let (Err(_), Some(claim)) = (&changed, &claim) {
            app.transfers.give_back(claim).await;
        }
        match changed {
            // Somebody else changed it meanwhile: decide on what it is now, which may refuse.
            Err(problem) if is_stale(&problem, app, &payout).await? => {}
            other => return other,
        }
    }
}

/// Takes the payout from whoever might send it or ask about it.
async fn take_lease(app: &App, payout: &Payout) -> Result<Option<Claim>, Problem> {
    match app.transfers.claim(payout.id.as_str()).await? {
        Claimed::Yes(claim) => Ok(Some(claim)),
        Claimed::NoWork => Ok(None),
        Claimed::Busy => {
            let message = "A host is sending this payout or asking about it, or is about to, and \
                           the answer counts. Look again in a moment.";
            Err(Problem::because(ErrorCode::StateConflict, message).retry_after(1))
        }
    }
}

async fn attempt_change(
    app: &App,
    payout: &Payout,
    (what, claim): (Change, Option<&Claim>),
    request: &ReviewRequest,
) -> Result<Done<Payout>, Problem> {
    let pool = app.db.pool();
    if matches!(what, Change::MarkPaid | Change::MarkFailed | Change::Reverse)
        && cases::sql::holds_money(pool, payout.id.as_str()).await?
    {
        let message = "Money of this payout is in question: resolve its case first.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    if matches!(what, Change::MarkFailed | Change::Reverse)
        && cases::sql::was_credited(pool, payout.id.as_str()).await?
    {
        let message = "Part of this payout was credited already: credit the rest by hand.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let now = app.now();
    let mut rows = vec![record(app, payout, what, request)];
    if let Some(claim) = claim {
        let attempts = list_attempts(pool, &claim.id).await?;
        let open = attempts.iter().find(|attempt| attempt.state == AttemptState::Open);
        rows.extend(open.map(|attempt| ATTEMPT_STATES.change(&attempt.closed(now))));
    }
    let with = Accompanying {
        failure: failure(what, request),
        fence: claim.map(|claim| Guard {
            on: &WORK_FENCES,
            id: claim.id.clone(),
            version: claim.fence,
        }),
        rows,
        reservation: request.reservation.clone(),
        ..Accompanying::default()
    };
    change(app, payout, what, with).await
}

/// Whether a conflict came from a change in between, not from the state itself.
async fn is_stale(problem: &Problem, app: &App, seen: &Payout) -> Result<bool, Problem> {
    if problem.code() != ErrorCode::StateConflict {
        return Ok(false);
    }
    Ok(get(app, seen.id.as_str()).await?.version != seen.version)
}

/// The line in the audit log.
pub(super) fn record(
    app: &App,
    payout: &Payout,
    what: Change,
    request: &ReviewRequest,
) -> RowChange {
    let record = audit::Change {
        actor: request.operator.name.clone(),
        address: request.operator.address.to_string(),
        action: action(what),
        subject_type: "payout",
        subject_id: payout.id.to_string(),
        before: Some(json!({ "status": payout.status.as_str() })),
        after: Some(json!({ "reason": request.reason, "evidence": request.evidence })),
    };
    record.row(&app.ids, app.now())
}

fn action(what: Change) -> &'static str {
    match what {
        Change::Approve => "payout.approve",
        Change::Decline => "payout.decline",
        Change::Release => "payout.release",
        Change::Reject => "payout.reject",
        Change::MarkPaid => "payout.mark_paid",
        Change::MarkFailed => "payout.mark_failed",
        Change::Reverse => "payout.reverse",
        _ => "payout.change",
    }
}

fn failure(what: Change, request: &ReviewRequest) -> Option<Failure> {
    let reason = request.reason.clone();
    let (code, otherwise) = match what {
        Change::Reject => ("review_rejected", "The payout was not released after review."),
        Change::MarkFailed => ("marked_failed", "The operator found that the payout failed."),
        Change::Reverse => ("reversed", "The operator gave the payout back."),
        _ => return None,
    };
    Some(Failure { code: code.to_owned(), message: reason.unwrap_or_else(|| otherwise.to_owned()) })
}
