//! `POST /v1/payouts/{id}/cancel`.

use crate::app::App;
use crate::audit;
use crate::auth::{Capability, Permission};
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::texts;
use crate::ledger::Done;

use super::change::{Accompanying, change};
use super::model::{Change, Payout};
use super::retrieve::find;
use super::review::{action, refuse_in_doubt};

const REASON_MIN: usize = 3;
const REASON_MAX: usize = texts::REASON.most;

/// Takes a payout back that was not sent yet.
///
/// # Errors
/// `invalid_field` for the reason, `payout_not_found`, `permission_denied`,
/// `payout_not_cancellable`.
pub(super) async fn cancel(
    app: &App,
    caller: &Caller,
    id: &str,
    reason: Option<&str>,
) -> Result<Payout, Problem> {
    let reason = reason.map(str::trim).unwrap_or_default();
    if !(REASON_MIN..=REASON_MAX).contains(&reason.chars().count()) {
        let message = format!("reason must have {REASON_MIN} to {REASON_MAX} characters.");
        return Err(Problem::because(ErrorCode::InvalidField, message).field("reason"));
    }
    loop {
        let payout = find(app, caller, id).await?;
        refuse_stranger(caller, &payout)?;
        refuse_in_doubt(app, &payout, Change::Cancel).await?;
        let record = audit::Change {
            actor: caller.key.id.to_string(),
            address: caller.address.to_string(),
            action: action(Change::Cancel),
            subject_type: "payout",
            subject_id: payout.id.to_string(),
            before: Some(serde_json::json!({ "status": payout.status.as_str() })),
            after: Some(serde_json::json!({ "status": "cancelled", "reason": reason })),
        };
        let rows = vec![record.row(&app.ids, app.now())];
        let with = Accompanying { rows, ..Accompanying::default() };
        match change(app, &payout, Change::Cancel, with).await {
            Ok(Done::Now(cancelled)) => return Ok(cancelled),
            Ok(Done::Before { .. }) => return Err(Problem::internal("no key was reserved")),
            // A dispatcher was faster by a moment: look again at what it is now.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {}
            Err(problem) => return Err(problem),
        }
    }
}

/// Whoever may make payouts may take back what was made with the very same key; whatever others
/// made takes the permission to cancel.
fn refuse_stranger(caller: &Caller, payout: &Payout) -> Result<(), Problem> {
    let is_own = caller.key.can(Capability::PayoutCreate) && payout.maker == caller.key.id.as_str();
    match is_own {
        true => Ok(()),
        false => caller.require_permission(Permission::PayoutCancel),
    }
}
