//! What a second person decides about a batch that waits.

use serde_json::json;

use crate::app::App;
use crate::approvals::{self, Agreement};
use crate::auth::{Permission, Settings};
use crate::caller::{Actor, Done as Did};
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, Done, Reply, Reservation};
use crate::money::{Currency, Minor};
use crate::payouts::changing;
use crate::payouts::model::{Change as PayoutChange, Payout, Status};
use crate::payouts::review::{Made, refuse_maker};

use super::findings::{all_or_none, of_payout};
use super::model::{Batch, Change, Counts, Stage};
use super::retrieve::{all_items, get};
use super::sql;
use super::view::BatchView;

/// A decision that somebody asks for.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// Who asks.
    pub actor: Actor,
    /// Why; the merchant reads it, unless it is approved.
    pub reason: Option<String>,
    /// The idempotency key, if the request has one.
    pub reservation: Option<Reservation>,
    /// What goes with it where it took more than one.
    pub agreement: Agreement,
}

/// A batch, and what its payouts come to.
pub type Reviewed = (Batch, Counts);

/// A batch as it was read, with all its payouts.
struct Seen {
    batch: Batch,
    counts: Counts,
    payouts: Vec<Payout>,
}

/// Approves, rejects or holds a batch, with all its payouts that are still drafts.
///
/// # Errors
/// `batch_not_found`, `state_conflict` where it does not wait or who agreed counts no more,
/// `self_approval_denied`, and what may refuse a debit; then nothing happens to any of its payouts.
pub async fn review(
    app: &App,
    id: &str,
    what: Change,
    request: &ReviewRequest,
) -> Result<Done<Reviewed>, Problem> {
    loop {
        let seen = read(app, id).await?;
        if what == Change::Approve && seen.batch.stage.is_waiting() {
            let needed = teammates(app, (&seen.batch, &seen.counts), &request.actor).await?;
            if needed > request.agreement.people {
                // Its merchant has become more careful since they agreed.
                return Err(Problem::new(ErrorCode::StateConflict));
            }
        }
        match attempt(app, &seen, what, request).await {
            // It or one of its payouts was changed meanwhile: decide on what is left.
            Err(problem) if is_stale(&problem, app, &seen).await? => {}
            other => return other,
        }
    }
}

async fn read(app: &App, id: &str) -> Result<Seen, Problem> {
    let (batch, counts) = get(app, id).await?;
    let payouts = all_items(app, &batch).await?;
    Ok(Seen { batch, counts, payouts })
}

/// Whether a conflict came from a change in between. Anything else stays as it is: what is not
/// possible, and an agreement of which a part has gone.
async fn is_stale(problem: &Problem, app: &App, seen: &Seen) -> Result<bool, Problem> {
    if problem.code() != ErrorCode::StateConflict {
        return Ok(false);
    }
    let now = read(app, seen.batch.id.as_str()).await?;
    if now.batch.version != seen.batch.version {
        return Ok(true);
    }
    // The payouts of one that waits for nobody go on, which makes nothing possible.
    let versions = |seen: &Seen| seen.payouts.iter().map(|it| it.version).collect::<Vec<_>>();
    Ok(seen.batch.stage.is_waiting() && versions(&now) != versions(seen))
}

/// How many people have to approve a batch, besides whoever made it: for its total, or for one of
/// its payouts; none where nobody has to.
#[must_use]
pub fn approvers<'a>(
    settings: &Settings,
    (currency, total): (Currency, Minor),
    payouts: impl Iterator<Item = &'a Payout>,
) -> u32 {
    let rows = payouts.map(|payout| payout.approvers(settings, None));
    rows.fold(settings.batch_approvers(currency, total), u32::max)
}

/// How many people have to agree to a batch that waits. One that an operator has set aside is let go
/// by operators.
///
/// # Errors
/// `self_approval_denied`; `permission_denied` for a member about one that is set aside.
pub async fn teammates(
    app: &App,
    (batch, counts): (&Batch, &Counts),
    actor: &Actor,
) -> Result<u32, Problem> {
    let made = Made {
        subject: ("batch", batch.id.as_str()),
        maker: &batch.maker,
        env: batch.env,
        permissions: (Permission::PayoutBulkUpload, Permission::PayoutBulkApprove),
        status: batch.status(counts),
    };
    refuse_maker(app, actor, made).await?;
    if batch.stage == Stage::Held && actor.merchant().is_some() {
        let message = "An operator has set this batch aside: only operators approve it now.";
        return Err(Problem::because(ErrorCode::PermissionDenied, message));
    }
    let Some(merchant) = app.directory.merchant(&batch.merchant_id).await? else { return Ok(1) };
    let payouts = all_items(app, batch).await?;
    let total = (batch.currency, batch.total_amount);
    Ok(approvers(&merchant.settings, total, payouts.iter()).max(1))
}

async fn attempt(
    app: &App,
    Seen { batch, counts, payouts }: &Seen,
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
        for payout in payouts.iter().filter(|payout| payout.status == Status::Draft) {
            let changed = changing(app, payout, change, None).await;
            commands.push(changed.map_err(|problem| of_payout(payout.id.as_str(), problem))?);
            ids.push(payout.id.to_string());
        }
        counts.become_all(Status::Draft, to);
    }
    let event = after.event(app.ids.id(), (what.event(), now), None);
    let mut told = json!({ "stage": after.stage.as_str(), "reason": request.reason });
    if what == Change::Approve {
        told["approved"] = request.agreement.approved_by(&request.actor, now);
    }
    let did = Did {
        action: action(what),
        subject: ("batch", batch.id.as_str()),
        before: Some(json!({ "stage": batch.stage.as_str() })),
        after: Some(request.agreement.told(told)),
    };
    let line = request.actor.did(did).row(&app.ids, now);
    let mut rows = vec![sql::BATCH_STATES.change(&after), event.row(), line];
    rows.extend(request.agreement.rows.iter().cloned());
    let reviewed = (after, counts);
    let command = Command::together(commands, move |decided| {
        let mut effects = all_or_none(decided, &ids)?;
        effects.rows.extend(rows.iter().cloned());
        Ok(effects.and(reviewed.clone()))
    });
    let command = command
        .guards([sql::version(batch)])
        .guards(request.agreement.guards.clone())
        .reserve(request.reservation.clone())
        .replying(|(batch, counts)| reply(batch, counts));
    // Whoever has asked for it with other drafts is not waited for either.
    let command = approvals::ending(command, ACTS_OF_SEVERAL, batch.id.as_str());
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

/// Those of [`action`] that several people may be asked for. One that is added there is added here.
pub(super) const ACTS_OF_SEVERAL: &[&str] = &["batch.approve"];

/// What the audit log calls a decision.
#[must_use]
pub const fn action(what: Change) -> &'static str {
    match what {
        Change::Approve => "batch.approve",
        Change::Reject => "batch.reject",
        Change::Hold => "batch.hold",
        Change::Cancel => "batch.cancel",
        Change::Lapse => "batch.lapse",
        Change::Complete => "batch.complete",
    }
}
