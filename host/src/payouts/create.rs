//! `POST /v1/payouts`.
//!
//! Nothing is durable until the writer's commit. Before it: understand the body, find the
//! recipient and its name, the routes, the price. In it, under the wallet's lock: the key, the
//! reference, the cool-down, the limits, the funds.
//!
//! A request whose key was used before is answered from the key, whatever else would be wrong
//! with it now: the look-up is made when something is refused, and by the writer otherwise.

use crate::app::App;
use crate::auth::Capability;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey};
use crate::id::PayoutId;
use crate::ledger::{Command, Done, Effects, Reply, Reservation, replay, stored_reply};

use super::accept::{Verdict, blocked, compare};
use super::across::Asked;
use super::draft::{Deciding, Draft, Named, prepare};
use super::fx;
use super::model::Change;
use super::reply;
use super::request::{CreatePayout, NewPayout};
use super::sql;
use super::transfer::PayoutTransfers;
use super::view::PayoutView;

/// Path of the call, part of what makes two requests the same.
const PATH: &str = "/v1/payouts";

/// A reply, and whether it had been given before.
pub(super) struct Answer {
    /// Status and body.
    pub reply: Reply,
    /// Whether the key had been used.
    pub is_replay: bool,
}

/// Creates a payout, or answers what an earlier request with the same key was answered.
///
/// # Errors
/// The codes of the contract's table for this call.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    key: &IdempotencyKey,
    body: Body<CreatePayout>,
    scenario: Option<String>,
) -> Result<Answer, Problem> {
    caller.require(Capability::PayoutCreate)?;
    let (merchant, env) = caller.owner();
    let id: PayoutId = app.ids.id();
    let reservation = Reservation {
        // Short, unlike others: every payout leaves one of these.
        key: format!("{merchant}/{env}/po/{}", key.as_str()),
        fingerprint: body.fingerprint(PATH),
        subject: body.value.subject(),
        resource_id: id.to_string(),
        expires: false,
    };
    let making = make(app, caller, id, body.value, (&reservation, scenario));
    let done = match Box::pin(making).await {
        Ok(done) => done,
        // What is refused now may have been accepted before.
        Err(problem) => match replay(&app.db, &reservation).await? {
            Some(done) => done,
            None => return Err(problem),
        },
    };
    match done {
        Done::Now(reply) => Ok(Answer { reply, is_replay: false }),
        Done::Before { reply: Some(reply), resource_id } => {
            let reply = reply::given(app, reply, &resource_id).await?;
            Ok(Answer { reply, is_replay: true })
        }
        Done::Before { reply: None, resource_id } => {
            let reply = wait(app, &Reservation { resource_id, ..reservation }).await?;
            Ok(Answer { reply, is_replay: true })
        }
    }
}

async fn make(
    app: &App,
    caller: &Caller,
    id: PayoutId,
    body: CreatePayout,
    (reservation, scenario): (&Reservation, Option<String>),
) -> Result<Done<Reply>, Problem> {
    let request = body.read()?;
    if let Asked::Across(_) = request.asked {
        fx::require_capability(caller)?;
        fx::refuse_played(scenario.as_deref())?;
    }
    // A saved recipient, or the rate, may change between looking and writing; then it is looked at
    // again.
    let mut again = 0;
    loop {
        let named = Named { id: &id, batch: None };
        let packs = app.packs.now();
        let draft = prepare(app, caller, &packs, (named, &request), scenario.clone()).await?;
        match submit(app, caller, draft, &request, reservation).await {
            Err(problem) if has_moved(&problem) && again < 3 => {
                app.recipients.forget();
                again += 1;
            }
            other => return other,
        }
    }
}

fn has_moved(problem: &Problem) -> bool {
    matches!(problem.code(), ErrorCode::StateConflict | ErrorCode::FxRateStale)
}

async fn submit(
    app: &App,
    caller: &Caller,
    draft: Draft,
    request: &NewPayout,
    reservation: &Reservation,
) -> Result<Done<Reply>, Problem> {
    let payout = draft.payout.clone();
    // In the sandbox it is sent before the answer, by whoever made it.
    let is_sent_here = payout.env == Env::Test && draft.change == Change::Accept;
    let lease_until = match is_sent_here {
        true => app.db.now().await?.after(limits::LEASE),
        false => Moment::default(),
    };
    let deciding = draft.deciding(app, caller, (request.allow_duplicate, lease_until)).await?;
    let Deciding { command, claim, changes_recipient, with_tariff } = deciding;
    let verdict = match app.writer.request(command.reserve(reservation.clone())).await? {
        Done::Now(verdict) => verdict,
        Done::Before { resource_id, reply } => return Ok(Done::Before { resource_id, reply }),
    };
    if changes_recipient {
        app.recipients.forget();
    }
    let (made, reply) = match verdict {
        Verdict::Blocked(ruling) => {
            let refusal = blocked(&payout, &ruling);
            compare(app, &payout, ruling);
            return Err(refusal);
        }
        Verdict::Accepted { payout, ruling, reply } => {
            if let Some(tariff) = with_tariff {
                tariff.note_written();
            }
            if let Some(ruling) = ruling {
                compare(app, &payout, ruling);
            }
            (payout, reply)
        }
    };
    match (reply, claim) {
        (None, Some(claim)) => {
            // Its own task: a caller that hangs up must not leave the payout half-way.
            let task = {
                let app = app.clone();
                let feature = PayoutTransfers(app.clone());
                app.clone().tasks.spawn(async move { app.transfers.work(&feature, claim).await })
            };
            if let Ok(Err(problem)) = task.await {
                tracing::error!(payout.id = %made.id, %problem, "sending in the sandbox");
            }
            store_reply(app, reservation).await.map(Done::Now)
        }
        (Some(reply), _) => {
            app.transfers.wake();
            Ok(Done::Now(reply))
        }
        (None, None) => Err(Problem::internal("a payout without a reply")),
    }
}

/// Stores the reply to a sandbox payout that has been sent, and answers what is stored: whoever
/// stored first wins.
async fn store_reply(app: &App, reservation: &Reservation) -> Result<Reply, Problem> {
    let id =
        PayoutId::parse(&reservation.resource_id).ok_or_else(|| Problem::internal("an odd id"))?;
    let payout = sql::get_payout(app.db.pool(), &id).await?;
    let payout = payout.ok_or_else(|| Problem::internal("a key without its payout"))?;
    // Networks that answer later do so before the caller is answered.
    let payout = PayoutTransfers(app.clone()).settled(payout).await?;
    let reply = Reply { status: 201, body: PayoutView::json(&payout) };
    let late = vec![(reservation.key.clone(), reply)];
    let command = Command::new(move |_| {
        Ok(Effects { late_replies: late.clone(), ..Effects::default() }.and(()))
    });
    app.writer.work(command).await?;
    let stored = stored_reply(&app.db, &reservation.key).await?;
    stored.ok_or_else(|| Problem::internal("the reply was not stored"))
}

/// Waits for the first request with this key to be answered; answers in its place if it died.
async fn wait(app: &App, reservation: &Reservation) -> Result<Reply, Problem> {
    let pause = std::time::Duration::from_millis(25);
    let mut waited = std::time::Duration::ZERO;
    while waited < limits::SANDBOX_ANSWER_WAIT {
        if let Some(reply) = stored_reply(&app.db, &reservation.key).await? {
            return reply::given(app, reply, &reservation.resource_id).await;
        }
        tokio::time::sleep(pause).await;
        waited += pause;
    }
    store_reply(app, reservation).await
}
