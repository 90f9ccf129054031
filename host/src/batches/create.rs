//! `POST /v1/batches`.
//!
//! Every row is made ready like a single payout; then one command decides them all, each on what
//! those before it use up. What is wrong with rows is told of all of them, and stays the answer
//! under the request's key; whatever a repeat might change leaves the key free.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};

use crate::app::App;
use crate::auth::Permission;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::events::Event;
use crate::http::{Body, IdempotencyKey};
use crate::id::{BatchId, PayoutId, WalletId};
use crate::ledger::{Command, Decided, Done, Effects, Reply, Reservation, replay};
use crate::payouts::model::{Change, Payout, Status};
use crate::payouts::request::NewPayout;
use crate::payouts::{Deciding, Draft, Named, Verdict, compare, prepare};
use crate::rules::{Action, Ruling};

use super::findings::Findings;
use super::model::{Batch, CREATED, Counts, Stage};
use super::request::{CreateBatch, NewBatch};
use super::sql;
use super::view::BatchView;

/// Path of the call, part of what makes two requests the same.
const PATH: &str = "/v1/batches";

/// A reply, and whether it had been given before.
pub(super) struct Answer {
    /// Status and body.
    pub reply: Reply,
    /// Whether the key had been used.
    pub is_replay: bool,
}

/// Creates a batch, or answers what an earlier request with the same key was answered.
///
/// # Errors
/// The codes of the contract's table for this call.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    key: &IdempotencyKey,
    body: Body<CreateBatch>,
    scenario: Option<String>,
) -> Result<Answer, Problem> {
    caller.require_bulk()?;
    caller.require_permission(Permission::PayoutBulkUpload)?;
    let (merchant, env) = caller.owner();
    let id: BatchId = app.ids.id();
    let reservation = Reservation {
        key: format!("{merchant}/{env}/create_batch/{}", key.as_str()),
        fingerprint: body.fingerprint(PATH),
        subject: String::new(),
        resource_id: id.to_string(),
    };
    let done = match make(app, caller, (&id, body.value), (&reservation, scenario)).await {
        Ok(done) => done,
        // What is refused now may have been accepted before.
        Err(problem) => match replay(&app.db, &reservation).await? {
            Some(done) => done,
            None => return Err(problem),
        },
    };
    match done {
        Done::Now(Made::Batch(reply)) => Ok(Answer { reply, is_replay: false }),
        Done::Now(Made::Refused(problem)) => Err(problem),
        Done::Before { reply: Some(reply), .. } => Ok(Answer { reply, is_replay: true }),
        Done::Before { reply: None, .. } => Err(Problem::internal("a batch without a reply")),
    }
}

/// What became of a request that stands under its key now.
enum Made {
    /// A batch.
    Batch(Reply),
    /// Nothing, for what is wrong with its rows.
    Refused(Problem),
}

async fn make(
    app: &App,
    caller: &Caller,
    (id, body): (&BatchId, CreateBatch),
    (reservation, scenario): (&Reservation, Option<String>),
) -> Result<Done<Made>, Problem> {
    let outline = body.outline()?;
    let (currency, wallet_id, _) = &outline;
    refuse_wallet(app, caller, (currency.as_str(), wallet_id.as_deref())).await?;
    let request = NewBatch::read(outline)?;
    // A saved recipient may change between looking and writing; then it is looked at again.
    let mut again = 0;
    loop {
        let drafts = drafts(app, caller, (id, &request), scenario.as_deref()).await?;
        let drafts = match drafts {
            Ok(drafts) => drafts,
            Err(refusal) => return refuse(app, reservation, refusal).await,
        };
        match submit(app, caller, (id, &request), (drafts, reservation)).await {
            Err(problem) if problem.code() == ErrorCode::StateConflict && again < 3 => {
                app.recipients.forget();
                again += 1;
            }
            other => return other,
        }
    }
}

/// Refuses a wallet that is not the one of this currency and environment, or is not there.
async fn refuse_wallet(
    app: &App,
    caller: &Caller,
    (currency, named): (&str, Option<&str>),
) -> Result<(), Problem> {
    let Some(id) = named else { return Ok(()) };
    let (merchant, env) = caller.owner();
    let found = sql::wallet_of(app.db.pool(), merchant, id).await?;
    let code = match found {
        None => ErrorCode::WalletNotFound,
        Some((other, _)) if other != env.as_str() => ErrorCode::WalletEnvMismatch,
        Some((_, other)) if other != currency => ErrorCode::CurrencyMismatch,
        Some(_) => return Ok(()),
    };
    Err(Problem::new(code).field("wallet_id"))
}

/// Makes all rows ready, some at a time. What is wrong with rows that can be told together is the
/// inner refusal.
async fn drafts(
    app: &App,
    caller: &Caller,
    (id, request): (&BatchId, &NewBatch),
    scenario: Option<&str>,
) -> Result<Result<Vec<Draft>, Problem>, Problem> {
    // Ids rise from row to row.
    let rows = request.rows.iter().map(|row| (app.ids.id(), row));
    let rows = rows.map(|(own, row)| draft(app, caller, (id, own, row), scenario));
    let rows: Vec<_> = rows.collect();
    let prepared = stream::iter(rows).buffered(limits::BATCH_ROWS_AT_ONCE).enumerate();
    let mut prepared = std::pin::pin!(prepared);
    let (mut drafts, mut findings) = (Vec::with_capacity(request.rows.len()), Findings::default());
    while let Some((index, row)) = prepared.next().await {
        match row {
            Ok(draft) => drafts.push(draft),
            Err(problem) => findings.take((index, &request.rows[index]), problem)?,
        }
    }
    Ok(findings.refusal().map_or(Ok(drafts), Err))
}

/// Makes one row ready.
async fn draft(
    app: &App,
    caller: &Caller,
    (batch, id, row): (&BatchId, PayoutId, &NewPayout),
    scenario: Option<&str>,
) -> Result<Draft, Problem> {
    let named = Named { id: &id, batch: Some(batch) };
    let mut again = 0;
    loop {
        match prepare(app, caller, (named, row), scenario.map(str::to_owned)).await {
            // Others of the batch ask the network for a name; it is their turn.
            Err(problem)
                if problem.code() == ErrorCode::ServiceOverloaded
                    && again < limits::BATCH_ENQUIRY_RETRIES =>
            {
                again += 1;
            }
            other => return other,
        }
    }
}

/// Refuses a request for good: the same is answered to every repeat.
async fn refuse(
    app: &App,
    reservation: &Reservation,
    refusal: Problem,
) -> Result<Done<Made>, Problem> {
    let reply = refused(&refusal, &docs(app));
    let command = Command::new(move |_| {
        Ok(Effects { reply: Some(reply.clone()), ..Effects::default() }.and(()))
    });
    Ok(match app.writer.request(command.reserve(reservation.clone())).await? {
        Done::Now(()) => Done::Now(Made::Refused(refusal)),
        Done::Before { resource_id, reply } => Done::Before { resource_id, reply },
    })
}

/// A refusal as it is kept under the key.
fn refused(problem: &Problem, docs: &str) -> Reply {
    let body = serde_json::to_string(&problem.envelope(docs)).unwrap_or_default();
    Reply { status: problem.code().entry().status, body }
}

fn docs(app: &App) -> String {
    format!("{}/errors", app.config.public_url())
}

/// Whether a batch waits for a second person: for its total, or for one of its rows.
fn takes_two(caller: &Caller, request: &NewBatch, drafts: &[Draft]) -> bool {
    let settings = &caller.merchant.settings;
    let threshold = settings.batch_approval_threshold_minor.get(&request.currency);
    threshold.is_some_and(|threshold| request.total > threshold.0)
        || drafts.iter().any(|draft| draft.payout.takes_two(settings, None))
}

async fn submit(
    app: &App,
    caller: &Caller,
    (id, request): (&BatchId, &NewBatch),
    (drafts, reservation): (Vec<Draft>, &Reservation),
) -> Result<Done<Made>, Problem> {
    let (merchant, env) = caller.owner();
    let waits = takes_two(caller, request, &drafts);
    let Some(wallet_id) = drafts.first().map(|draft| draft.payout.wallet_id.clone()) else {
        return Err(Problem::internal("a batch without rows"));
    };
    let now = app.now();
    let batch = Batch {
        id: id.clone(),
        merchant_id: merchant.clone(),
        env,
        wallet_id: WalletId::clone(&wallet_id),
        currency: request.currency,
        total_count: i64::try_from(drafts.len()).unwrap_or(i64::MAX),
        total_amount: request.total,
        maker: caller.key.id.to_string(),
        created_at: now,
        stage: if waits { Stage::AwaitingApproval } else { Stage::Approved },
        version: 1,
        reason: None,
        approved_at: (!waits).then_some(now),
        completed_at: None,
    };
    let payouts: Vec<Payout> = drafts.iter().map(|draft| draft.payout.clone()).collect();
    let (mut commands, mut seen) = (Vec::with_capacity(drafts.len()), BTreeSet::new());
    let mut changes_recipients = false;
    for (mut draft, row) in drafts.into_iter().zip(&request.rows) {
        draft.change = if waits { Change::Draft } else { Change::Accept };
        // A recipient that stands in a batch twice is meant twice.
        let is_again = !seen.insert(draft.payout.recipient_identity.clone());
        let with = (row.allow_duplicate || is_again, Moment::default());
        let Deciding { command, changes_recipient, .. } = draft.deciding(app, caller, with).await?;
        changes_recipients |= changes_recipient;
        commands.push(command);
    }
    let decision = Decision {
        event: batch.event(app.ids.id(), (CREATED, now), None),
        docs: docs(app),
        rows: request.rows.clone(),
        batch,
    };
    let command = Command::together(commands, move |decided| decision.decide(decided));
    let done = app.writer.request(command.reserve(reservation.clone())).await;
    let done = done.map_err(|problem| match problem.code() {
        ErrorCode::InsufficientFunds => Problem::new(ErrorCode::BatchInsufficientFunds),
        _ => problem,
    })?;
    if changes_recipients {
        app.recipients.forget();
    }
    Ok(match done {
        Done::Now(Outcome { made, rulings }) => {
            for (index, ruling) in rulings {
                compare(app, &payouts[index], ruling);
            }
            if !waits {
                app.transfers.wake();
            }
            Done::Now(made)
        }
        Done::Before { resource_id, reply } => Done::Before { resource_id, reply },
    })
}

/// What the writer decides about a batch.
struct Decision {
    batch: Batch,
    event: Event,
    /// The address of the pages about errors.
    docs: String,
    rows: Vec<NewPayout>,
}

/// What was decided, and what the fraud rules said about which rows.
struct Outcome {
    made: Made,
    rulings: Vec<(usize, Ruling)>,
}

impl Decision {
    /// Puts together what was decided about each row.
    fn decide(
        &self,
        decided: Vec<Result<Decided<Verdict>, Problem>>,
    ) -> Result<Decided<Outcome>, Problem> {
        let (mut effects, mut findings) = (Effects::default(), Findings::default());
        // What is remembered of a batch that is refused.
        let mut kept: Vec<RowChange> = Vec::new();
        let mut rulings = Vec::new();
        for (index, part) in decided.into_iter().enumerate() {
            let (verdict, these) = match part {
                Ok(Decided::Accept { effects, result }) => (result, effects),
                Ok(Decided::Record { rows, result }) => {
                    (result, Effects { rows, ..Effects::default() })
                }
                Err(problem) => {
                    findings.take((index, &self.rows[index]), problem)?;
                    continue;
                }
            };
            match verdict {
                Verdict::Accepted { ruling, .. } => {
                    effects.append(these);
                    rulings.extend(ruling.map(|ruling| (index, ruling)));
                }
                Verdict::Blocked(ruling) => {
                    kept.extend(these.rows);
                    findings.ruled_out(index, &ruling);
                    rulings.push((index, ruling));
                }
            }
        }
        if let Some(problem) = findings.refusal() {
            // Nothing was decided about what was let through.
            rulings.retain(|(_, ruling)| ruling.verdict.action != Action::Allow);
            let reply = Some(refused(&problem, &self.docs));
            let effects = Effects { rows: kept, reply, ..Effects::default() };
            return Ok(effects.and(Outcome { made: Made::Refused(problem), rulings }));
        }
        let status = if self.batch.stage.is_waiting() { Status::Draft } else { Status::Queued };
        let counts = Counts::all(status, self.batch.total_count);
        let body = BatchView::of(&self.batch, &counts).json();
        let reply = Reply { status: 201, body };
        effects.rows.push(sql::BATCHES.insert(&self.batch));
        effects.rows.push(self.event.row());
        effects.reply = Some(reply.clone());
        Ok(effects.and(Outcome { made: Made::Batch(reply), rulings }))
    }
}
