//! `POST /v1/batches/{id}/cancel`.

use serde_json::json;

use crate::app::App;
use crate::audit;
use crate::auth::Permission;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::texts;
use crate::ledger::{Command, Done};
use crate::payouts::changing;
use crate::payouts::model::{Change as PayoutChange, Payout, Status};

use super::findings::all_or_none;
use super::model::{Batch, Change};
use super::retrieve::{all_items, find};
use super::sql;

/// Takes back all payouts of a batch that have not left, and says how many; the others go on.
///
/// # Errors
/// `batch_not_found`, `permission_denied`, `batch_not_cancellable`, `invalid_field` for the reason.
pub(super) async fn cancel(
    app: &App,
    caller: &Caller,
    id: &str,
    reason: Option<&str>,
) -> Result<(Batch, usize), Problem> {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    texts::REASON.check("reason", reason)?;
    loop {
        let (batch, counts) = find(app, caller, id).await?;
        // Whoever may make batches takes them back, too: a key is replaced now and then.
        if !caller.key.may(Permission::PayoutCancel) {
            caller.require_permission(Permission::PayoutBulkUpload)?;
        }
        if counts.in_flight() == 0 {
            return Err(Problem::new(ErrorCode::BatchNotCancellable));
        }
        let after = batch.after(Change::Cancel, (reason.map(str::to_owned), app.now()))?;
        let taken_back = taken_back(app, &batch).await?;
        if taken_back.is_empty() {
            let message =
                "All payouts of this batch have left, or may have: none can be taken back.";
            return Err(Problem::because(ErrorCode::BatchNotCancellable, message));
        }
        let mut commands = Vec::with_capacity(taken_back.len());
        for payout in &taken_back {
            commands.push(changing(app, payout, PayoutChange::Cancel, None).await?);
        }
        let record = audit::Change {
            actor: caller.key.id.to_string(),
            address: caller.address.to_string(),
            action: "batch.cancel",
            subject_type: "batch",
            subject_id: batch.id.to_string(),
            before: Some(json!({ "status": batch.status(&counts) })),
            after: Some(json!({
                "status": "cancelled",
                "reason": reason,
                "payouts": taken_back.len(),
            })),
        };
        let now = app.now();
        let event = after.event(app.ids.id(), (Change::Cancel.event(), now), None);
        let rows = [sql::BATCH_STATES.change(&after), event.row(), record.row(&app.ids, now)];
        let ids: Vec<String> = taken_back.iter().map(|payout| payout.id.to_string()).collect();
        let command = Command::together(commands, move |decided| {
            let mut effects = all_or_none(decided, &ids)?;
            effects.rows.extend(rows.iter().cloned());
            Ok(effects.and(()))
        });
        match app.writer.work(command.guards([sql::version(&batch)])).await {
            Ok(Done::Now(())) => return Ok((after, taken_back.len())),
            Ok(Done::Before { .. }) => return Err(Problem::internal("no key was reserved")),
            // A dispatcher was faster with one of them: look again at what is left.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {}
            Err(problem) => return Err(problem),
        }
    }
}

/// The payouts of a batch that have not left, in order.
///
/// # Errors
/// `batch_not_cancellable` where one of them may have left before the database was restored: the
/// bank is asked first.
async fn taken_back(app: &App, batch: &Batch) -> Result<Vec<Payout>, Problem> {
    let mut payouts = all_items(app, batch).await?;
    payouts.retain(|payout| matches!(payout.status, Status::Draft | Status::Queued));
    for payout in payouts.iter().filter(|payout| payout.status == Status::Queued) {
        let (which, made_at) = ((payout.env, payout.id.as_str()), payout.created_at);
        if app.transfers.quarantine.may_have_left(which, made_at).await? {
            let message = "Some of its payouts may have left before the database was restored, \
                           and their bank is asked first: try again later.";
            return Err(Problem::because(ErrorCode::BatchNotCancellable, message));
        }
    }
    Ok(payouts)
}
