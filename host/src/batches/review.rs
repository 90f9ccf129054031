//! What a second person decides about a batch that waits.

use serde_json::json;

use crate::app::App;
use crate::audit;
use crate::caller::Operator;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, Done, Reply, Reservation};
use crate::payouts::changing;
use crate::payouts::model::{Change as PayoutChange, Status};
use crate::payouts::review::refuse_maker;

use super::findings::all_or_none;
use super::model::{Batch, Change, Counts};
use super::retrieve::{all_items, get};
use super::sql;
use super::view::BatchView;

/// A decision that somebody asks for.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// Who asks.
    pub operator: Operator,
    /// Why; the merchant reads it, unless it is approved.
    pub reason: Option<String>,
    /// The idempotency key, if the request has one.
    pub reservation: Option<Reservation>,
}

/// A batch, and what its payouts come to.
pub type Reviewed = (Batch, Counts);

/// Approves, rejects or holds a batch, with all its payouts that are still drafts.
///
/// # Errors
/// `batch_not_found`, `state_conflict` where it does not wait, `self_approval_denied`, and what may
/// refuse a debit; then nothing happens to any of its payouts.
pub async fn review(
    app: &App,
    id: &str,
    what: Change,
    request: &ReviewRequest,
) -> Result<Done<Reviewed>, Problem> {
    loop {
        let (batch, counts) = get(app, id).await?;
        // In the sandbox whoever is there may agree with themselves.
        if what == Change::Approve && batch.env == Env::Live && batch.stage.is_waiting() {
            let asked = (&request.operator, batch.status(&counts));
            refuse_maker(app, ("batch", batch.id.as_str()), &batch.maker, asked).await?;
        }
        match attempt(app, (&batch, &counts), what, request).await {
            // One of its payouts was changed meanwhile: decide on what is left.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {
                let (now, _) = get(app, id).await?;
                if !now.stage.is_waiting() || what == Change::Hold {
                    return Err(problem);
                }
            }
            other => return other,
        }
    }
}

async fn attempt(
    app: &App,
    (batch, counts): (&Batch, &Counts),
    what: Change,
    request: &ReviewRequest,
) -> Result<Done<Reviewed>, Problem> {
    let now = app.now();
    let after = batch.after(what, (request.reason.clone(), now))?;
    let change = match what {
        Change::Approve => Some((PayoutChange::Approve, Status::Queued)),
        Change::Reject => Some((PayoutChange::Decline, Status::Cancelled)),
        _ => None,
    };
    let mut counts = counts.clone();
    let (mut commands, mut ids) = (Vec::new(), Vec::new());
    if let Some((change, to)) = change {
        for payout in all_items(app, batch).await? {
            if payout.status == Status::Draft {
                commands.push(changing(app, &payout, change, None).await?);
                ids.push(payout.id.to_string());
            }
        }
        counts.become_all(Status::Draft, to);
    }
    let event = after.event(app.ids.id(), (what.event(), now), None);
    let line = record((batch, &after), what, request);
    let rows = [sql::BATCH_STATES.change(&after), event.row(), line.row(&app.ids, now)];
    let reviewed = (after, counts);
    let command = Command::together(commands, move |decided| {
        let mut effects = all_or_none(decided, &ids)?;
        effects.rows.extend(rows.iter().cloned());
        Ok(effects.and(reviewed.clone()))
    });
    let command = command
        .guards([sql::version(batch)])
        .reserve(request.reservation.clone())
        .replying(|(batch, counts)| reply(batch, counts));
    let done = app.writer.work(command).await?;
    if what == Change::Approve {
        app.transfers.wake();
    }
    Ok(done)
}

/// What the request is answered.
#[must_use]
pub fn reply(batch: &Batch, counts: &Counts) -> Reply {
    Reply { status: 200, body: BatchView::for_operators(batch, counts).json() }
}

/// The line in the audit log.
fn record(
    (before, after): (&Batch, &Batch),
    what: Change,
    request: &ReviewRequest,
) -> audit::Change {
    audit::Change {
        actor: request.operator.name.clone(),
        address: request.operator.address.to_string(),
        action: action(what),
        subject_type: "batch",
        subject_id: before.id.to_string(),
        before: Some(json!({ "stage": before.stage.as_str() })),
        after: Some(json!({ "stage": after.stage.as_str(), "reason": request.reason })),
    }
}

/// What the audit log calls a decision.
const fn action(what: Change) -> &'static str {
    match what {
        Change::Approve => "batch.approve",
        Change::Reject => "batch.reject",
        Change::Hold => "batch.hold",
        Change::Cancel => "batch.cancel",
        Change::Complete => "batch.complete",
    }
}
