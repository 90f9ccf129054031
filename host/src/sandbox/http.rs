//! The calls of the sandbox.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::funding::{self, Movement};
use crate::http::Body;
use crate::ledger::{Done, Source, wallets};
use crate::money::{Currency, Minor};
use crate::payouts::model::{Payout, Status};
use crate::payouts::{self, PayoutTransfers, PayoutView};
use crate::simulator::{Event, TellError};
use crate::transfers::attempt;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("sandbox_settle_payout", STEP_ERRORS),
    ("sandbox_fail_payout", STEP_ERRORS),
    ("sandbox_return_payout", STEP_ERRORS),
    (
        "sandbox_fund",
        &[
            ErrorCode::SandboxOnly,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::WalletNotFound,
            ErrorCode::InvalidAmount,
        ],
    ),
];

const STEP_ERRORS: &[ErrorCode] =
    &[ErrorCode::SandboxOnly, ErrorCode::PayoutNotFound, ErrorCode::StateConflict];

/// How long a returned payout may take to be told to us by the simulated bank.
const RETURN_WAIT: Duration = Duration::from_secs(5);

/// Settle a payout in the sandbox
#[utoipa::path(
    post, path = "/v1/sandbox/payouts/{id}/settle", operation_id = "sandbox_settle_payout",
    tag = "Sandbox", params(("id" = String, Path, description = "A payout that is processing")),
    responses((status = 200, description = "The payout, paid", body = PayoutView)),
)]
pub async fn settle(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    decide(&app, &caller, &id, Event::Settle).await
}

/// Fail a payout in the sandbox
#[utoipa::path(
    post, path = "/v1/sandbox/payouts/{id}/fail", operation_id = "sandbox_fail_payout",
    tag = "Sandbox", params(("id" = String, Path, description = "A payout that is processing")),
    responses((status = 200, description = "The payout, failed", body = PayoutView)),
)]
pub async fn fail(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    decide(&app, &caller, &id, Event::Fail).await
}

/// Return a payout in the sandbox
#[utoipa::path(
    post, path = "/v1/sandbox/payouts/{id}/return", operation_id = "sandbox_return_payout",
    tag = "Sandbox", params(("id" = String, Path, description = "A payout that is paid")),
    responses((status = 200, description = "The payout, reversed", body = PayoutView)),
)]
pub async fn send_back(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let payout = find(&app, &caller, &id).await?;
    tell(&app, &payout, Event::Return).await?;
    look_for_files(&app, &payout).await?;
    let pause = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    let mut payout = payout;
    // The simulated bank sends its own message, as a real one would.
    while payout.status != Status::Reversed && waited < RETURN_WAIT {
        tokio::time::sleep(pause).await;
        waited += pause;
        payout = payouts::get(&app, payout.id.as_str()).await?;
    }
    Ok(Json(PayoutView::of(&payout)).into_response())
}

async fn decide(app: &App, caller: &Caller, id: &str, step: Event) -> Result<Response, Problem> {
    let payout = find(app, caller, id).await?;
    tell(app, &payout, step).await?;
    look_for_files(app, &payout).await?;
    let (feature, id) = (PayoutTransfers(app.clone()), payout.id.to_string());
    app.transfers.nudge(&id).await?;
    // Its own task: a caller that hangs up must not leave the payout half-way.
    let (engine, working) = (app.transfers.clone(), feature.clone());
    let working = app.tasks.spawn(async move { engine.work_now(&working, &id).await });
    working.await.map_err(Problem::internal)??;
    let payout = payouts::get(app, payout.id.as_str()).await?;
    let payout = feature.settled(payout).await?;
    Ok(Json(PayoutView::of(&payout)).into_response())
}

/// A network that pays by file says in files what has happened.
async fn look_for_files(app: &App, payout: &Payout) -> Result<(), Problem> {
    let attempts = attempt::list_attempts(app.db.pool(), payout.id.as_str()).await?;
    let Some(last) = attempts.last() else { return Ok(()) };
    app.transfers.take_in_files(&PayoutTransfers(app.clone()), last).await
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<Payout, Problem> {
    require_test(caller)?;
    let payout = payouts::get(app, id).await?;
    match (&payout.merchant_id, payout.env) == caller.owner() {
        true => Ok(payout),
        false => Err(Problem::new(ErrorCode::PayoutNotFound)),
    }
}

/// Tells the simulated network about a payout's transfer.
async fn tell(app: &App, payout: &Payout, event: Event) -> Result<(), Problem> {
    let what = match event {
        Event::Settle => "settle",
        Event::Fail => "fail",
        Event::Return => "return",
    };
    let conflict = || {
        let message = format!("A payout that is {} cannot be told to {what}.", payout.status);
        Problem::because(ErrorCode::StateConflict, message)
    };
    let attempts = attempt::list_attempts(app.db.pool(), payout.id.as_str()).await?;
    let last = attempts.last().ok_or_else(conflict)?;
    let told = app.sandbox.simulator.tell(&last.rail, (&last.rail_reference, event)).await;
    match told {
        Ok(_) => Ok(()),
        Err(TellError::Unknown | TellError::Impossible) => Err(conflict()),
        Err(TellError::Broken(why)) => Err(Problem::internal(why)),
    }
}

/// Refuses a live key.
///
/// # Errors
/// `sandbox_only`.
pub(super) fn require_test(caller: &Caller) -> Result<(), Problem> {
    match caller.key.env {
        Env::Test => Ok(()),
        Env::Live => Err(Problem::new(ErrorCode::SandboxOnly)),
    }
}

/// The body of a sandbox funding.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct FundRequest {
    /// The wallet's currency. Required.
    #[schema(example = "NGN")]
    pub currency: Option<String>,
    /// How much, in minor units. Required.
    #[schema(example = "100000000")]
    pub amount_minor: Option<String>,
}

/// A wallet that was filled.
#[derive(Debug, Serialize, ToSchema)]
pub struct Funded {
    /// Always `sandbox_funding`.
    #[schema(example = "sandbox_funding")]
    pub object: &'static str,
    /// Identifies the inflow.
    pub provider_event_id: String,
    /// The id of the wallet that was funded.
    pub wallet_id: String,
    /// The wallet's currency.
    pub currency: String,
    /// How much came in.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
    /// What can be spent now.
    #[schema(value_type = String)]
    pub available_balance_minor: Minor,
}

/// Fill a test wallet
#[utoipa::path(
    post, path = "/v1/sandbox/fund", operation_id = "sandbox_fund", tag = "Sandbox",
    request_body = FundRequest,
    responses((status = 200, description = "Filled", body = Funded)),
)]
pub async fn fund(
    State(app): State<App>,
    caller: Caller,
    body: Body<FundRequest>,
) -> Result<Json<Funded>, Problem> {
    require_test(&caller)?;
    let missing = |field: &str| Problem::new(ErrorCode::MissingField).field(field);
    let currency = body.value.currency.ok_or_else(|| missing("currency"))?;
    let amount = body.value.amount_minor.ok_or_else(|| missing("amount_minor"))?;
    let amount = Minor::parse(&amount)
        .ok_or_else(|| Problem::new(ErrorCode::InvalidField).field("amount_minor"))?;
    let no_wallet = || Problem::new(ErrorCode::WalletNotFound).field("currency");
    let currency = Currency::parse(&currency).ok_or_else(no_wallet)?;
    let wallet = wallets::find_wallet(app.db.pool(), caller.owner(), currency).await?;
    let wallet = wallet.ok_or_else(no_wallet)?;
    let movement = Movement {
        amount,
        source: Source::DemoSelfFund,
        description: "Sandbox funding".to_owned(),
        sender: None,
        rows: Vec::new(),
    };
    let command = funding::movement(&app, &wallet, movement).await?;
    let Done::Now(moved) = app.writer.request(command).await? else {
        return Err(Problem::internal("no key was reserved"));
    };
    Ok(Json(Funded {
        object: "sandbox_funding",
        provider_event_id: moved.id,
        wallet_id: wallet.id.to_string(),
        currency: wallet.currency.to_string(),
        amount_minor: amount,
        available_balance_minor: moved.available,
    }))
}
