//! `POST /v1/batches`.
//!
//! Every row is made ready like a single payout; then one command decides them all, each on what
//! those before it use up. What is wrong with rows is told of all of them, and stays the answer
//! under the request's key; whatever a repeat might change leaves the key free.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::json;

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
use crate::ledger::wallets::find_wallet;
use crate::ledger::{Command, Decided, Done, Effects, Reply, Reservation, replay};
use crate::money::Minor;
use crate::payouts::model::{Change, Payout, Status};
use crate::payouts::request::NewPayout;
use crate::payouts::{Deciding, Draft, Named, Verdict, WithTariff, compare, prepare};
use crate::recipients::account_hash;
use crate::rules::{Action, Assignments, Ruling};

use super::findings::{Findings, ITEMS};
use super::model::{Batch, CREATED, Counts, Stage};
use super::request::{CreateBatch, NewBatch, NewRow, Outline};
use super::review::approvers;
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
        expires: false,
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
    refuse_wallet(app, caller, &outline).await?;
    if let Some((wallet, _)) = app.wallets.find(caller.owner(), outline.currency).await? {
        app.writer.admit_for(&wallet)?;
    }
    let today = app.now().day_in(&caller.merchant.timezone);
    let request = NewBatch::read(outline, &today)?;
    // A saved recipient may change between looking and writing; then it is looked at again.
    let mut again = 0;
    loop {
        let drafted = drafts(app, caller, (id, &request), scenario.as_deref()).await?;
        // Limits are looked at together, in a moment; what is told before them is enough.
        if let Some(refusal) = drafted.findings.refusal()
            && (refusal.code() != ErrorCode::LimitViolation || drafted.drafts.is_empty())
        {
            return refuse(app, reservation, refusal).await;
        }
        match submit(app, caller, (id, &request), (drafted, reservation)).await {
            Err(problem) if problem.code() == ErrorCode::StateConflict && again < 3 => {
                app.recipients.forget();
                again += 1;
            }
            other => return other,
        }
    }
}

/// Refuses a wallet that is not the one of this currency and environment, is not there, or is
/// frozen.
async fn refuse_wallet(app: &App, caller: &Caller, outline: &Outline) -> Result<(), Problem> {
    let (merchant, env) = caller.owner();
    if let Some(id) = &outline.wallet_id {
        let found = sql::wallet_of(app.db.pool(), merchant, id).await?;
        let code = match found {
            None => Some(ErrorCode::WalletNotFound),
            Some((other, _)) if other != env.as_str() => Some(ErrorCode::WalletEnvMismatch),
            Some((_, other)) if other != outline.currency.as_str() => {
                Some(ErrorCode::CurrencyMismatch)
            }
            Some(_) => None,
        };
        if let Some(code) = code {
            return Err(Problem::new(code).field("wallet_id"));
        }
    }
    let wallet = find_wallet(app.db.pool(), caller.owner(), outline.currency).await?;
    match wallet.is_some_and(|wallet| wallet.is_frozen) {
        true => Err(Problem::new(ErrorCode::BatchWalletFrozen)),
        false => Ok(()),
    }
}

/// Refuses a recipient who stands in the batch twice where nothing says that this is meant: the
/// commonest mistake is a line that was copied.
fn refuse_twice(index: usize, first: usize, row: &NewPayout) -> Result<(), Problem> {
    if row.allow_duplicate || row.merchant_reference.is_some() {
        return Ok(());
    }
    let message = format!(
        "It goes to the same recipient as items[{first}]: give it a merchant_reference of its own, \
         or say allow_duplicate, if both are meant."
    );
    Err(Problem::because(ErrorCode::BeneficiaryCooldown, message).of_item(ITEMS, index))
}

/// Rows that are ready, and what is wrong with others.
struct Drafted {
    /// Each with its place in the batch.
    drafts: Vec<(usize, Draft)>,
    findings: Findings,
}

/// Makes all rows ready, some at a time. That may take long, and all of them are priced and decided
/// by the packs of its beginning.
async fn drafts(
    app: &App,
    caller: &Caller,
    (id, request): (&BatchId, &NewBatch),
    scenario: Option<&str>,
) -> Result<Drafted, Problem> {
    let packs = app.packs.now();
    // Ids rise from row to row.
    let rows = request.rows.iter().map(|row| (app.ids.id(), &row.payout));
    let rows = rows.map(|(own, row)| draft(app, caller, &packs, (id, own, row), scenario));
    let rows: Vec<_> = rows.collect();
    let prepared = stream::iter(rows).buffered(limits::BATCH_ROWS_AT_ONCE).enumerate();
    let mut prepared = std::pin::pin!(prepared);
    let (mut drafts, mut findings) = (Vec::with_capacity(request.rows.len()), Findings::default());
    while let Some((index, row)) = prepared.next().await {
        match row {
            Ok(draft) => drafts.push((index, draft)),
            Err(problem) => findings.take((index, &request.rows[index]), problem)?,
        }
    }
    Ok(Drafted { drafts, findings })
}

/// Makes one row ready.
async fn draft(
    app: &App,
    caller: &Caller,
    packs: &Assignments,
    (batch, id, row): (&BatchId, PayoutId, &NewPayout),
    scenario: Option<&str>,
) -> Result<Draft, Problem> {
    let named = Named { id: &id, batch: Some(batch) };
    let mut again = 0;
    loop {
        match prepare(app, caller, packs, (named, row), scenario.map(str::to_owned)).await {
            // Others of the batch ask the network for a name; it is their turn.
            Err(problem)
                if problem.code() == ErrorCode::ServiceOverloaded
                    && again < limits::BATCH_ENQUIRY_RETRIES =>
            {
                again += 1;
                let seconds = problem.retry_after_s().unwrap_or_default().max(1);
                tokio::time::sleep(Duration::from_secs(seconds)).await;
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

async fn submit(
    app: &App,
    caller: &Caller,
    (id, request): (&BatchId, &NewBatch),
    (Drafted { drafts, findings }, reservation): (Drafted, &Reservation),
) -> Result<Done<Made>, Problem> {
    let payouts = drafts.iter().map(|(_, draft)| &draft.payout);
    let total = (request.currency, request.total);
    let waits = approvers(&caller.merchant.settings, total, payouts) > 0;
    let Some(wallet_id) = drafts.first().map(|(_, draft)| draft.payout.wallet_id.clone()) else {
        return Err(Problem::internal("a batch without rows"));
    };
    let batch = new_batch(app, caller, (id, request), (wallet_id, waits));
    let costs = drafts.iter().map(|(_, draft)| draft.payout.costs.total());
    let required = Minor::total(costs.collect::<Result<Vec<_>, _>>()?)?;
    let mut payouts: HashMap<usize, Payout> = HashMap::new();
    let (mut indexes, mut commands) = (Vec::new(), Vec::with_capacity(drafts.len()));
    let mut seen: HashMap<String, usize> = HashMap::new();
    let (mut changes_recipients, mut with_tariffs) = (false, Vec::new());
    for (index, mut draft) in drafts {
        draft.change = if waits { Change::Draft } else { Change::Accept };
        let (row, paid) =
            (&request.rows[index].payout, account_hash(&draft.payout.recipient_identity));
        let first = seen.get(paid).copied();
        if let Some(first) = first {
            refuse_twice(index, first, row)?;
        }
        seen.insert(paid.to_owned(), index);
        let with = (row.allow_duplicate || first.is_some(), Moment::default());
        payouts.insert(index, draft.payout.clone());
        let Deciding { command, changes_recipient, with_tariff, .. } =
            draft.deciding(app, caller, with).await?;
        changes_recipients |= changes_recipient;
        with_tariffs.extend(with_tariff);
        indexes.push(index);
        commands.push(command);
    }
    let decision = Decision {
        event: batch.event(app.ids.id(), (CREATED, batch.created_at), None),
        docs: docs(app),
        rows: request.rows.clone(),
        indexes,
        findings,
        batch,
    };
    let command = Command::together(commands, move |decided| decision.decide(decided));
    let done = app.writer.request(command.reserve(reservation.clone())).await;
    let done = done.map_err(|problem| match problem.code() {
        ErrorCode::InsufficientFunds => Problem::new(ErrorCode::BatchInsufficientFunds)
            .detail(json!({ "required_minor": required })),
        _ => problem,
    })?;
    if changes_recipients {
        app.recipients.forget();
    }
    Ok(match done {
        Done::Now(Outcome { made, rulings }) => {
            for (index, ruling) in rulings {
                if let Some(payout) = payouts.get(&index) {
                    compare(app, payout, ruling);
                }
            }
            if matches!(made, Made::Batch(_)) {
                with_tariffs.iter().for_each(WithTariff::note_written);
            }
            if !waits {
                app.transfers.wake();
            }
            Done::Now(made)
        }
        Done::Before { resource_id, reply } => Done::Before { resource_id, reply },
    })
}

fn new_batch(
    app: &App,
    caller: &Caller,
    (id, request): (&BatchId, &NewBatch),
    (wallet_id, waits): (WalletId, bool),
) -> Batch {
    let ((merchant, env), now) = (caller.owner(), app.now());
    Batch {
        id: id.clone(),
        merchant_id: merchant.clone(),
        env,
        wallet_id,
        currency: request.currency,
        total_count: i64::try_from(request.rows.len()).unwrap_or(i64::MAX),
        total_amount: request.total,
        maker: caller.key.id.to_string(),
        created_at: now,
        stage: if waits { Stage::AwaitingApproval } else { Stage::Approved },
        version: 1,
        reason: None,
        approved_at: (!waits).then_some(now),
        completed_at: None,
    }
}

/// What the writer decides about a batch.
struct Decision {
    batch: Batch,
    event: Event,
    /// The address of the pages about errors.
    docs: String,
    rows: Vec<NewRow>,
    /// Which row each part is about.
    indexes: Vec<usize>,
    /// What is wrong with rows that are not among the parts.
    findings: Findings,
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
        let (mut effects, mut findings) = (Effects::default(), self.findings.clone());
        // What is remembered of a batch that is refused.
        let mut kept: Vec<RowChange> = Vec::new();
        let (mut rulings, mut untold) = (Vec::new(), None);
        for (&index, part) in self.indexes.iter().zip(decided) {
            let (verdict, these) = match part {
                Ok(Decided::Accept { effects, result }) => (result, effects),
                Ok(Decided::Record { rows, result }) => {
                    (result, Effects { rows, ..Effects::default() })
                }
                Err(problem) => {
                    if let Err(problem) = findings.take((index, &self.rows[index]), problem) {
                        untold = untold.or(Some(problem));
                    }
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
        if let Some(problem) = untold {
            // Its key stays free; what the rules blocked is remembered all the same.
            if kept.is_empty() {
                return Err(problem);
            }
            rulings.retain(|(_, ruling)| ruling.verdict.action != Action::Allow);
            let result = Outcome { made: Made::Refused(problem), rulings };
            return Ok(Decided::Record { rows: kept, result });
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
