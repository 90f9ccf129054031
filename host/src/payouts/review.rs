//! What the operator, and a teammate, may do to a payout.

use serde_json::json;

use crate::app::App;
use crate::audit;
use crate::error::{ErrorCode, Problem};

use super::attempt::{self, Attempt, AttemptState};
use super::change::{Accompanying, IsNew, change, closed};
use super::model::{Change, Failure, Payout};
use super::retrieve::get;

/// A change that the operator or a teammate asks for.
#[derive(Clone, Debug, Default)]
pub struct ReviewRequest {
    /// Who asks, as the audit log names it.
    pub actor: String,
    /// The client's IP address, for the audit log.
    pub address: String,
    /// Why; where the payout ends unpaid, also the message that the merchant reads.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking it paid or failed.
    pub evidence: Option<String>,
}

/// Makes that change to a payout.
///
/// # Errors
/// `missing_field` without evidence for marking, `payout_not_found`, `state_conflict` where it
/// is not possible, and the refusals of a debit.
pub async fn review(
    app: &App,
    id: &str,
    what: Change,
    request: &ReviewRequest,
) -> Result<Payout, Problem> {
    let is_marking = matches!(what, Change::MarkPaid | Change::MarkFailed);
    if is_marking && request.evidence.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let message = "evidence is required: say what shows how this payout ended.";
        return Err(Problem::because(ErrorCode::MissingField, message).field("evidence"));
    }
    loop {
        let payout = get(app, id).await?;
        match attempt_change(app, &payout, what, request).await {
            // Somebody else changed it meanwhile: decide on what it is now, which may refuse.
            Err(problem) if is_stale(&problem, app, &payout).await? => {}
            other => return other,
        }
    }
}

async fn attempt_change(
    app: &App,
    payout: &Payout,
    what: Change,
    request: &ReviewRequest,
) -> Result<Payout, Problem> {
    let now = app.now();
    let attempts = attempt::list_attempts(app.db.pool(), &payout.id).await?;
    let open = attempts.iter().find(|attempt| attempt.state == AttemptState::Open);
    let ends = matches!(what, Change::MarkPaid | Change::MarkFailed);
    let ended: Option<(Attempt, IsNew)> =
        open.filter(|_| ends).map(|attempt| (closed(attempt, now), IsNew::No));
    let record = audit::Change {
        actor: request.actor.clone(),
        address: request.address.clone(),
        action: action(what),
        subject_type: "payout",
        subject_id: payout.id.to_string(),
        before: Some(json!({ "status": payout.status.as_str() })),
        after: Some(json!({ "reason": request.reason, "evidence": request.evidence })),
    };
    let with = Accompanying {
        failure: failure(what, request),
        attempt: ended,
        rows: vec![record.row(&app.ids, now)],
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

fn action(what: Change) -> &'static str {
    match what {
        Change::Approve => "payout.approve",
        Change::Decline => "payout.decline",
        Change::Release => "payout.release",
        Change::Reject => "payout.reject",
        Change::MarkPaid => "payout.mark_paid",
        Change::MarkFailed => "payout.mark_failed",
        Change::Reverse => "payout.reverse",
        Change::Cancel | Change::Dispatch | Change::Confirm | Change::Refuse | Change::Return => {
            "payout.change"
        }
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
