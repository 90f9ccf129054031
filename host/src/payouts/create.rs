//! `POST /v1/payouts`.
//!
//! Nothing is durable until the writer's commit. Before it: understand the body, find the
//! recipient and its name, the routes, the price. In it, under the wallet's lock: the key, the
//! reference, the cool-down, the limits, the funds.
//!
//! A request whose key was used before is answered from the key, whatever else would be wrong
//! with it now: the look-up is made when something is refused, and by the writer otherwise.

use serde_json::json;

use crate::app::App;
use crate::auth::Capability;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::config::limits;
use crate::conversions::Plan;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey};
use crate::id::{PayoutId, WalletId};
use crate::ledger::{Command, Done, Effects, Reply, Reservation, replay, stored_reply};
use crate::money::{Currency, Minor};
use crate::rails::Rail;
use crate::rules::{Assessment, Assignments, FeeFacts, PayoutKind, Price};

use super::accept::{Acceptance, Candidate, Verdict, assessment, blocked, compare};
use super::across::{Across, Asked, Costed, cost};
use super::fx;
use super::model::{Change, Payout, Status};
use super::recipient::{Payee, payee, saved, serving};
use super::reply;
use super::request::{CreatePayout, NewPayout};
use super::sql;
use super::transfer::PayoutTransfers;
use super::usage::{Allowance, Usage, refuse_amount};
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
        key: format!("{merchant}/{env}/create_payout/{}", key.as_str()),
        fingerprint: body.fingerprint(PATH),
        subject: body.value.subject(),
        resource_id: id.to_string(),
    };
    let done = match make(app, caller, id, body.value, (&reservation, scenario)).await {
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
        let draft = prepare(app, caller, (&id, &request), scenario.clone()).await?;
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

/// A payout that is ready to be decided, with its recipient and the question to the rules.
struct Draft {
    payout: Payout,
    /// How it begins, where no fraud rule objects.
    change: Change,
    payee: Payee,
    assessment: Option<Assessment>,
    /// How what it takes is bought, where another currency pays and it goes at once.
    buying: Option<Plan>,
}

/// Everything that can be known before the wallet is locked.
async fn prepare(
    app: &App,
    caller: &Caller,
    (id, request): (&PayoutId, &NewPayout),
    scenario: Option<String>,
) -> Result<Draft, Problem> {
    let (merchant, env) = caller.owner();
    if !caller.merchant.settings.is_active(request.currency) {
        return Err(inactive());
    }
    let saved = saved(app, caller, request).await?;
    let (rail, method) = serving((app, caller), request, saved.as_ref())?;
    let (wallet_id, wallet_since) = wallet(app, caller, request).await?;
    if request.customer_id.is_some() {
        return Err(Problem::new(ErrorCode::CustomerNotFound).field("customer_id"));
    }
    // Fee and fraud are decided by the packs of this moment, whatever is activated meanwhile.
    let assignments = app.packs.now();
    let price = |amount| price(&assignments, caller, (request.currency, &method, amount));
    let (amount, costed) = amount(app, caller, (request, &rail, &method), price).await?;
    let payee = payee(app, caller, (&rail, &method), (request, amount, saved), scenario).await?;
    require_sender(caller, &rail.declaration.sender, request)?;
    let payment = (request.currency, amount, request.asked.amount_field());
    refuse_amount(&caller.merchant, (&rail.declaration, &method), payment)?;
    let (costs, pricing) = match &costed {
        Some(costed) => (costed.costs, costed.price.clone()),
        None => cost(amount, &price)?,
    };
    let mut payout = Payout {
        id: id.clone(),
        merchant_id: merchant.clone(),
        env,
        wallet_id,
        status: Status::Queued,
        version: 1,
        round: 1,
        route: None,
        currency: request.currency,
        method,
        costs,
        beneficiary_id: payee.beneficiary.id.clone(),
        recipient_identity: payee.beneficiary.identity.clone(),
        recipient_name: payee.name.clone(),
        recipient: payee.beneficiary.recipient.clone(),
        sender: request.sender.as_ref().and_then(|sender| serde_json::to_string(sender).ok()),
        narration: request.narration.clone(),
        merchant_reference: request.merchant_reference.clone(),
        customer_reference: request.customer_reference.clone(),
        pricing,
        hold: None,
        scenario: payee.scenario.clone(),
        maker: caller.key.id.to_string(),
        rail_reference: None,
        resolution: payee.own_resolution(app, (&rail, id))?,
        funding: None,
        funded: None,
        failure_code: None,
        failure_message: None,
        correction: None,
        told: None,
        created_at: app.now(),
        queued_at: None,
        processing_at: None,
        completed_at: None,
    };
    let buying = match costed {
        Some(costed) => Some(fx::plan(app, caller, costed, &mut payout).await?),
        None => None,
    };
    let assessment =
        assessment(app, caller, (&assignments, wallet_since), (&payout, &payee), request);
    let assessment = assessment.await?;
    let change = beginning(caller, &mut payout)?;
    let buying = buying.filter(|_| change == Change::Accept);
    Ok(Draft { payout, change, payee, assessment, buying })
}

/// What is charged for an amount.
fn price(
    assignments: &Assignments,
    caller: &Caller,
    (currency, method, amount): (Currency, &str, Minor),
) -> Result<Price, Problem> {
    let (merchant, env) = caller.owner();
    assignments.price(&FeeFacts {
        merchant,
        currency,
        method,
        kind: PayoutKind::Single,
        amount,
        is_live: env == Env::Live,
    })
}

/// What the recipient gets, and where another currency pays, what that takes.
async fn amount(
    app: &App,
    caller: &Caller,
    (request, rail, method): (&NewPayout, &Rail, &str),
    price: impl Fn(Minor) -> Result<Price, Problem>,
) -> Result<(Minor, Option<Costed>), Problem> {
    match &request.asked {
        Asked::Plain(amount) => Ok((*amount, None)),
        Asked::Across(Across { from, method: asked }) => {
            let pair = (*from, request.currency);
            let offer = fx::offer(app, (&caller.merchant, caller.key.env), pair).await?;
            let step = rail.declaration.step(request.currency, method);
            let costed = asked.cost(|basis| offer.exchange(basis), price, step)?;
            Ok((costed.costs.amount, Some(costed)))
        }
    }
}

fn inactive() -> Problem {
    Problem::new(ErrorCode::CurrencyNotActive).field("currency")
}

/// The wallet that pays, and since when it is there.
async fn wallet(
    app: &App,
    caller: &Caller,
    request: &NewPayout,
) -> Result<(WalletId, Moment), Problem> {
    let wallet = app.wallets.find(caller.owner(), request.currency).await?;
    match (&request.wallet_id, wallet) {
        (None, Some(wallet)) => Ok(wallet),
        (Some(named), Some(wallet)) if named == wallet.0.as_str() => Ok(wallet),
        (Some(_), _) => Err(Problem::new(ErrorCode::PayoutWalletNotFound).field("wallet_id")),
        (None, None) => Err(inactive()),
    }
}

/// Decides where the payout starts: with a teammate, with the operator, or in the queue.
fn beginning(caller: &Caller, payout: &mut Payout) -> Result<Change, Problem> {
    match payout.scenario.as_deref() {
        Some("fraud_block") => {
            let hits = json!([{ "label": "sandbox", "message": "sandbox scenario fraud_block" }]);
            return Err(Problem::new(ErrorCode::FraudRuleBlocked).detail(json!({ "hits": hits })));
        }
        Some("fraud_hold") => {
            payout.hold = Some("sandbox scenario fraud_hold".into());
            return Ok(Change::Hold);
        }
        _ => {}
    }
    match payout.takes_two(&caller.merchant.settings, None) {
        true => Ok(Change::Draft),
        false => Ok(Change::Accept),
    }
}

async fn submit(
    app: &App,
    caller: &Caller,
    draft: Draft,
    request: &NewPayout,
    reservation: &Reservation,
) -> Result<Done<Reply>, Problem> {
    let Draft { payout, change, payee, assessment, buying } = draft;
    let usage = Usage::of(&payout, &caller.merchant.timezone, payout.created_at);
    let allow_duplicate = request.allow_duplicate;
    let allowance = Allowance { allow_duplicate, ..Allowance::of(&caller.merchant, &payout) };
    // In the sandbox it is sent before the answer, by whoever made it.
    let is_sent_here = payout.env == Env::Test && change == Change::Accept;
    let lease_until = match is_sent_here {
        true => app.db.now().await?.after(limits::LEASE),
        false => Moment::default(),
    };
    let mut counters = usage.keys();
    counters.extend(payee.saving.counter());
    counters.extend(assessment.as_ref().map(Assessment::counters).unwrap_or_default());
    let guard = payee.saving.guard();
    let changes_recipient = guard.is_some();
    let held = match &assessment {
        Some(_) => Some(Acceptance::of(app, &payout, (Change::Hold, Moment::default())).await?),
        None => None,
    };
    let planned = Acceptance::of(app, &payout, (change, lease_until)).await?;
    let claim = planned.claim();
    let candidate =
        Candidate { planned, held, payee, usage, allowance, assessment, buying: buying.clone() };
    let command = Command::new(move |locked| candidate.decide(locked))
        .wallets([payout.wallet_id.clone()])
        .guards(guard)
        .counters(counters)
        .reserve(reservation.clone());
    let command = buying.iter().fold(command, |command, plan| plan.locks(command));
    let verdict = match app.writer.request(command).await? {
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
    let read = async || {
        let payout = sql::get_payout(app.db.pool(), &id).await?;
        payout.ok_or_else(|| Problem::internal("a key without its payout"))
    };
    let mut payout = read().await?;
    // Networks that answer later do so before the caller is answered.
    if let Some(reference) = &payout.rail_reference
        && app.sandbox.settled(reference).await
    {
        payout = read().await?;
    }
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

fn require_sender(
    caller: &Caller,
    declared: &crate::rails::declaration::Sender,
    request: &NewPayout,
) -> Result<(), Problem> {
    if !caller.merchant.settings.sender_info_required {
        return Ok(());
    }
    let sender = serde_json::to_value(request.sender.clone().unwrap_or_default());
    let sender = sender.map_err(Problem::internal)?;
    let is_business = sender["business_name"].as_str().is_some_and(|name| !name.is_empty());
    let wanted = if is_business { &declared.required_business } else { &declared.required };
    let missing: Vec<&String> = wanted
        .iter()
        .filter(|name| sender[name.as_str()].as_str().is_none_or(str::is_empty))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let problem = Problem::new(ErrorCode::SenderInfoRequired).field("sender");
            Err(problem.detail(json!({ "missing": missing })))
        }
    }
}
