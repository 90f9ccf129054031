//! What the operator, and a teammate, may do to a payout.
//!
//! A mark ends a payout against or ahead of the bank, so it takes the payout's lease first:
//! while a call to the rail is under way, its answer counts, and the mark is refused.

use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::approvals::Agreement;
use crate::auth::{self, Permission};
use crate::caller::{Actor, Done as Did};
use crate::cases;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{Id as _, KeyId};
use crate::ledger::{Command, Done, Guard, Reservation};
use crate::money::Minor;
use crate::transfers::attempt::{ATTEMPT_STATES, Attempt, AttemptState, list_attempts};
use crate::transfers::files::table::{self, FileState, PaymentFile};
use crate::transfers::{Claim, Claimed, Failure};

use super::change::{Accompanying, change};
use super::fx;
use super::model::{Change, Payout, Status};
use super::retrieve::{get, seen};

/// A change that the operator or a teammate asks for.
#[derive(Clone, Debug)]
pub struct ReviewRequest {
    /// Who asks.
    pub actor: Actor,
    /// Why; where the payout ends unpaid, also the message that the merchant reads.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking it paid or failed.
    pub evidence: Option<String>,
    /// The idempotency key, if the request has one.
    pub reservation: Option<Reservation>,
    /// What goes with it where it took more than one.
    pub agreement: Agreement,
    /// What the payout was when they asked for it: of anything else they have not.
    pub asked_about: Option<Seen>,
}

/// A payout as somebody saw it who decided about it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// How it stood.
    pub status: Status,
    /// How often it had been changed, where nothing that has become of it since may be overlooked.
    pub version: Option<i64>,
    /// How it stood with the file that it is in, for whoever says how it ended.
    pub file: Option<FileSeen>,
}

/// How far a file has come, as far as it matters to whoever ends a payment in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FileSeen {
    /// Whether it has left, and how its network has answered.
    stage: &'static str,
    /// Whether its network has said what does not fit that.
    is_in_question: bool,
}

impl FileSeen {
    async fn of(app: &App, file: &PaymentFile) -> Result<Self, Problem> {
        let stage = match file.state {
            FileState::Collecting | FileState::Closed | FileState::Assembled => "not_sent",
            FileState::Sending | FileState::Unclear | FileState::Delivered => "sent",
            FileState::Acknowledged | FileState::Refused | FileState::Empty => file.state.as_str(),
        };
        Ok(Self { stage, is_in_question: app.transfers.is_in_question(file).await? })
    }
}

impl Seen {
    /// Refuses a payout that is not as it was seen.
    fn refuse_other(self, payout: &Payout) -> Result<(), Problem> {
        let is_same = self.status == payout.status
            && self.version.is_none_or(|version| version == payout.version);
        if is_same { Ok(()) } else { Err(something_new()) }
    }
}

/// What whoever decides has not seen.
fn something_new() -> Problem {
    let message = "Something has become of this payout meanwhile: look again.";
    Problem::because(ErrorCode::StateConflict, message)
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
    require_evidence(what, request)?;
    let is_marking = is_marking(what);
    loop {
        let payout = get(app, id).await?;
        if let Some(seen) = request.asked_about {
            seen.refuse_other(&payout)?;
        }
        refuse_row(&payout, what)?;
        refuse_in_doubt(app, &payout, what).await?;
        let needed = teammates(app, &payout, what, &request.actor).await?;
        if needed > request.agreement.people {
            // It has become dearer, or its merchant more careful, since they agreed.
            return Err(Problem::new(ErrorCode::StateConflict));
        }
        let claim = match is_marking {
            true => take_lease(app, &payout).await?,
            false => None,
        };
        let in_file = match &claim {
            Some(claim) => file_as_seen(app, claim, request.asked_about).await,
            None => Ok(None),
        };
        let in_file = match (in_file, &claim) {
            (Err(problem), Some(claim)) => {
                app.transfers.give_back(claim).await;
                return Err(problem);
            }
            (in_file, _) => in_file?,
        };
        let seen = (&payout, in_file.as_ref());
        let changed = attempt_change(app, seen, (what, claim.as_ref()), request).await;
        if let (Err(_), Some(claim)) = (&changed, &claim) {
            app.transfers.give_back(claim).await;
        }
        match changed {
            // Somebody else changed it meanwhile: decide on what it is now, which may refuse.
            Err(problem) if is_stale(&problem, app, seen).await? => {}
            other => return other,
        }
    }
}

/// The payout, if such a change of it is possible as it is now.
///
/// # Errors
/// `missing_field` without evidence for marking, `payout_not_found`, `state_conflict`.
pub async fn possible(
    app: &App,
    id: &str,
    what: Change,
    request: &ReviewRequest,
) -> Result<Payout, Problem> {
    require_evidence(what, request)?;
    let payout = seen(app, &request.actor, id).await?;
    refuse_row(&payout, what)?;
    payout.after(what, None, app.now())?;
    Ok(payout)
}

/// What may have left before the database was restored is not cancelled: its network is asked first.
///
/// # Errors
/// `payout_not_cancellable`.
pub(super) async fn refuse_in_doubt(
    app: &App,
    payout: &Payout,
    what: Change,
) -> Result<(), Problem> {
    let (which, made_at) = ((payout.env, payout.id.as_str()), payout.created_at);
    let is_in_doubt = what == Change::Cancel
        && payout.status == Status::Queued
        && app.transfers.quarantine.may_have_left(which, made_at).await?;
    let message = "It may have left before the database was restored, and cannot be cancelled until \
                   its network has said that it has not.";
    match is_in_doubt {
        true => Err(Problem::because(ErrorCode::PayoutNotCancellable, message)),
        false => Ok(()),
    }
}

fn is_marking(what: Change) -> bool {
    matches!(what, Change::MarkPaid | Change::MarkFailed)
}

fn require_evidence(what: Change, request: &ReviewRequest) -> Result<(), Problem> {
    let is_missing = request.evidence.as_deref().is_none_or(|text| text.trim().is_empty());
    if is_marking(what) && is_missing {
        let message = "evidence is required: say what shows how this payout ended.";
        return Err(Problem::because(ErrorCode::MissingField, message).field("evidence"));
    }
    Ok(())
}

/// How many people have to agree to this, besides whoever made the payout: one for a draft, or as
/// many as its merchant's settings say; the same for one that would have been a draft had the rules
/// not held it. None, where one person is enough, whoever it is.
///
/// # Errors
/// `self_approval_denied`.
pub async fn teammates(
    app: &App,
    payout: &Payout,
    what: Change,
    actor: &Actor,
) -> Result<u32, Problem> {
    let least = match (what, payout.status) {
        (Change::Approve, Status::Draft) => 1,
        (Change::Release, Status::AwaitingAdminReview) => 0,
        _ => return Ok(0),
    };
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    let now = fx::debit_now(app, payout).await?;
    let settings = merchant.as_ref().map(|merchant| &merchant.settings);
    let needed = settings.map_or(least, |settings| payout.approvers(settings, now).max(least));
    if needed > 0 {
        let made = Made {
            subject: ("payout", payout.id.as_str()),
            maker: &payout.maker,
            // In the sandbox whoever is there may agree with themselves, but not to what is held.
            env: if what == Change::Approve { payout.env } else { Env::Live },
            permissions: (Permission::PayoutCreate, Permission::PayoutApprove),
            status: payout.status.as_str(),
        };
        refuse_maker(app, actor, made).await?;
    }
    Ok(needed)
}

/// A row of a batch is approved and declined with it.
fn refuse_row(payout: &Payout, what: Change) -> Result<(), Problem> {
    let is_waiting = payout.status == Status::Draft;
    match (&payout.batch_id, what) {
        (Some(batch), Change::Approve | Change::Decline | Change::Cancel) if is_waiting => {
            let message = format!("This payout is a row of batch {batch}: decide about that.");
            Err(Problem::because(ErrorCode::StateConflict, message))
        }
        _ => Ok(()),
    }
}

/// What somebody made, that others have to approve.
pub struct Made<'a> {
    /// The kind and the id of it.
    pub subject: (&'static str, &'a str),
    /// The key that it was made with.
    pub maker: &'a str,
    /// By the rules of which environment it is approved.
    pub env: Env,
    /// What a member needs to make such a thing, and to approve it.
    pub permissions: (Permission, Permission),
    /// How it stands.
    pub status: &'a str,
}

/// Whoever made a key has seen its secret, and is never the second person for what is made with it;
/// but for the owner of a live account, and for whoever is there in the sandbox. An attempt is told
/// in the audit log.
///
/// # Errors
/// `self_approval_denied`.
pub async fn refuse_maker(app: &App, actor: &Actor, made: Made<'_>) -> Result<(), Problem> {
    let key = KeyId::from_text(made.maker.to_owned());
    let key = auth::sql::get_key(app.db.pool(), &key).await?;
    let may_alone = match actor.member() {
        Some(member) => member.may_approve_own(made.env, made.permissions),
        None => made.env == Env::Test,
    };
    if may_alone || key.is_none_or(|key| key.created_by != actor.name) {
        return Ok(());
    }
    let (subject_type, subject_id) = made.subject;
    let denied = Did {
        action: match subject_type {
            "batch" => "batch.approve_denied",
            _ => "payout.approve_denied",
        },
        subject: made.subject,
        before: Some(json!({ "status": made.status })),
        after: Some(json!({ "reason": "made with a key that the same person made" })),
    };
    let line = actor.did(denied).row(&app.ids, app.now());
    app.writer.work(Command::rows(vec![line])).await?;
    let message = format!(
        "You made the key that this {subject_type} was made with: somebody else must approve it."
    );
    Err(Problem::because(ErrorCode::SelfApprovalDenied, message)
        .detail(json!({ "subject_id": subject_id })))
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
    (payout, in_file): (&Payout, Option<&PaymentFile>),
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
    if what == Change::MarkPaid && cases::sql::is_written_off(pool, payout.id.as_str()).await? {
        let message = "The bank paid this, and it was written off: debit the wallet by hand if it \
                       shall bear it after all.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    if matches!(what, Change::MarkFailed | Change::Reverse)
        && cases::sql::credited(pool, payout.id.as_str()).await? > Minor::ZERO
    {
        let message = "Part of this payout was credited already: credit the rest by hand.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let now = app.now();
    let mut rows = vec![record(app, payout, what, request)?];
    rows.extend(request.agreement.rows.iter().cloned());
    let (mut beside, mut paid) = (None, None);
    if let Some(claim) = claim {
        let attempts = list_attempts(pool, &claim.id).await?;
        let open = attempts.iter().find(|attempt| attempt.state == AttemptState::Open);
        // One that had been given up, and that its bank has paid all the same.
        paid = attempts.iter().find(|attempt| attempt.state == AttemptState::Paid).cloned();
        if let Some(paid) = paid.as_ref().filter(|_| what == Change::MarkFailed) {
            let message = format!(
                "{} says that it paid {}: it is paid, whatever became of the other attempt.",
                paid.route, paid.rail_reference
            );
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        let mut closed = open.map(|attempt| attempt.closed(now));
        if let Some(file) = in_file {
            let left = out_of_file(file, now)?;
            beside = left.guard;
            rows.extend(left.row);
            // What a file that is made no more called it means nothing.
            closed = closed
                .map(|it| Attempt { network_id: it.network_id.filter(|_| left.stays_named), ..it });
        }
        rows.extend(closed.map(|attempt| ATTEMPT_STATES.change(&attempt)));
    }
    let with = Accompanying {
        failure: failure(what, request),
        attempt: paid.map(|paid| paid.fixed()).filter(|_| what == Change::MarkPaid),
        fence: claim.map(Claim::guard),
        beside: beside.into_iter().collect(),
        rows,
        agreed: request.agreement.guards.clone(),
        reservation: request.reservation.clone(),
        ..Accompanying::default()
    };
    change(app, payout, what, with).await
}

/// How it stands with the file that the payment of a payout is in.
///
/// # Errors
/// The database cannot be read.
pub async fn see_file(app: &App, payout: &Payout) -> Result<Option<FileSeen>, Problem> {
    match open_file(app, payout.id.as_str()).await? {
        Some(file) => FileSeen::of(app, &file).await.map(Some),
        None => Ok(None),
    }
}

/// The file that the open attempt of a payout is in.
async fn open_file(app: &App, payout: &str) -> Result<Option<PaymentFile>, Problem> {
    let attempts = list_attempts(app.db.pool(), payout).await?;
    let mut open = attempts.iter().filter(|attempt| attempt.state == AttemptState::Open);
    let Some(id) = open.next().and_then(|attempt| attempt.file_id.as_ref()) else {
        return Ok(None);
    };
    let file = table::get(app.db.pool(), id).await?;
    file.map(Some).ok_or_else(|| Problem::internal("a payment of a file that is gone"))
}

/// The file that the payment of a claim is in, as whoever decides has seen it.
async fn file_as_seen(
    app: &App,
    claim: &Claim,
    asked_about: Option<Seen>,
) -> Result<Option<PaymentFile>, Problem> {
    let Some(file) = open_file(app, &claim.id).await? else { return Ok(None) };
    app.transfers.refuse_in_doubt(&file).await?;
    let now = FileSeen::of(app, &file).await?;
    match asked_about.is_some_and(|seen| seen.file != Some(now)) {
        true => Err(something_new()),
        false => Ok(Some(file)),
    }
}

/// How a payment gets out of the file that it is in.
struct Leaving {
    /// What must be as it is.
    guard: Option<Guard>,
    /// What keeps whoever has the file from making it with the payment, or from having it delivered
    /// once more.
    row: Option<RowChange>,
    /// Whether the file may be with the network, with the payment in it.
    stays_named: bool,
}

/// How a payment that is to be ended gets out of its file.
///
/// # Errors
/// `state_conflict` where its file is about to leave.
fn out_of_file(file: &PaymentFile, now: Moment) -> Result<Leaving, Problem> {
    let leaving = |guard, row| Leaving { guard, row, stays_named: true };
    let (untouched, taken_away) = (Some(file.untouched()), Some(file.taken_away(now)));
    Ok(match file.state {
        FileState::Collecting => Leaving { stays_named: false, ..leaving(Some(file.door()), None) },
        FileState::Closed => Leaving { stays_named: false, ..leaving(untouched, taken_away) },
        // One that is held back since a restore leaves only if an operator says so.
        FileState::Assembled if file.is_held && file.may_have_left => {
            leaving(untouched, taken_away)
        }
        FileState::Assembled if file.is_held => {
            let again = Some(file.to_be_made_again());
            Leaving { stays_named: false, ..leaving(untouched, again) }
        }
        FileState::Unclear | FileState::Delivered => leaving(untouched, taken_away),
        FileState::Assembled | FileState::Sending => {
            let message = "It is in a file that is about to leave. Hold the file back, or wait \
                           until it was delivered, or refused.";
            return Err(Problem::because(ErrorCode::StateConflict, message).retry_after(60));
        }
        FileState::Acknowledged | FileState::Refused | FileState::Empty => leaving(None, None),
    })
}

/// Whether a conflict came from a change in between, not from the state itself.
async fn is_stale(
    problem: &Problem,
    app: &App,
    (payout, in_file): (&Payout, Option<&PaymentFile>),
) -> Result<bool, Problem> {
    if problem.code() != ErrorCode::StateConflict {
        return Ok(false);
    }
    if let Some(seen) = in_file {
        let now = table::get(app.db.pool(), &seen.id).await?;
        if now.is_some_and(|now| now.fence != seen.fence) {
            return Ok(true);
        }
    }
    Ok(get(app, payout.id.as_str()).await?.version != payout.version)
}

/// The line in the audit log.
fn record(
    app: &App,
    payout: &Payout,
    what: Change,
    request: &ReviewRequest,
) -> Result<RowChange, Problem> {
    let (changed, _) = payout.after(what, None, app.now())?;
    let mut after = json!({
        "status": changed.status.as_str(),
        "reason": request.reason,
        "evidence": request.evidence,
    });
    let took_others = what == Change::Release && request.agreement.people > 0;
    if what == Change::Approve || took_others {
        after["approved"] = request.agreement.approved_by(&request.actor, app.now());
    }
    let did = Did {
        action: action(what),
        subject: ("payout", payout.id.as_str()),
        before: Some(json!({ "status": payout.status.as_str() })),
        after: Some(request.agreement.told(after)),
    };
    Ok(request.actor.did(did).row(&app.ids, app.now()))
}

/// Those of [`action`] that several people may be asked for, and `payout.recall`. One that is added
/// there is added here.
pub(super) const ACTS_OF_SEVERAL: &[&str] = &[
    "payout.approve",
    "payout.release",
    "payout.mark_paid",
    "payout.mark_failed",
    "payout.reverse",
    "payout.recall",
];

/// What the audit log calls a change.
#[must_use]
pub fn action(what: Change) -> &'static str {
    match what {
        Change::Approve => "payout.approve",
        Change::Decline => "payout.decline",
        Change::Cancel => "payout.cancel",
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
    let message = reason.unwrap_or_else(|| otherwise.to_owned());
    Some(Failure { code: code.to_owned(), message, id: None })
}
