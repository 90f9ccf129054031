//! Messages that a network sends by itself.
//!
//! The host checks the sender's token. What the rail reads out of a message is a hint: the host
//! asks the rail and believes only the answer. The exception is a payment that came back,
//! which no question would show; it is believed for the whole amount only.

use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::rails::route::ReadyRoute;
use crate::wasm::rail::{Message, News, ReturnOfFunds};

use super::attempt;
use super::change::{Accompanying, change};
use super::dispatch::work_now;
use super::evidence::{self, About};
use super::model::{Change, Failure, Status};
use super::sql;

/// A message as it arrived.
pub struct Arrived<'a> {
    /// Test or live.
    pub env: Env,
    /// The rail's name.
    pub rail: &'a str,
    /// The path below the rail's notice address.
    pub path: &'a str,
    /// The bearer token, if there was one.
    pub token: Option<&'a str>,
    /// The body of the message, as it arrived.
    pub body: Vec<u8>,
}

/// Takes a message in; answers what the network is to be told.
///
/// # Errors
/// `not_found` for a rail or path that takes none, `unauthorized` without the right token,
/// `invalid_body` for a message that the rail does not take.
pub async fn receive(app: &App, arrived: Arrived<'_>) -> Result<Vec<u8>, Problem> {
    let routes = app.routes.all().await?;
    let candidates = routes.iter().filter(|ready| {
        (ready.route.env, ready.route.rail.as_str()) == (arrived.env, arrived.rail)
    });
    let mut known = false;
    for route in candidates {
        let Some(notices) = &route.rail.declaration.notices else { continue };
        if !notices.paths.iter().any(|path| path == arrived.path) {
            continue;
        }
        known = true;
        let expected = route.secret(&notices.bearer_secret);
        let presented = arrived.token.unwrap_or_default().as_bytes();
        let is_right = expected
            .is_some_and(|secret| secret.expose_secret().as_bytes().ct_eq(presented).into());
        if is_right {
            let message = Message { path: arrived.path.to_owned(), body: arrived.body };
            return take(app, route, message).await;
        }
    }
    Err(Problem::new(if known { ErrorCode::Unauthorized } else { ErrorCode::NotFound }))
}

async fn take(app: &App, route: &ReadyRoute, message: Message) -> Result<Vec<u8>, Problem> {
    let called = route.rail.code.receive(&route.pure_grant(app.now()), &message).await;
    let (answer, notices) = match &called.result {
        Ok(Ok(read)) => read.clone(),
        Ok(Err(why)) => {
            return Err(Problem::because(ErrorCode::InvalidBody, why.clone()));
        }
        Err(broken) => return Err(Problem::internal(broken.clone())),
    };
    for notice in notices {
        let found = attempt::find_attempt(app.db.pool(), &route.route.rail, &notice.reference);
        let Some(attempt) = found.await? else {
            let message = "No payment with this reference was sent from here.";
            return Err(Problem::because(ErrorCode::PayoutNotFound, message));
        };
        let payout = sql::get_payout(app.db.pool(), &attempt.payout_id).await?;
        let payout = payout.ok_or_else(|| Problem::internal("an attempt without a payout"))?;
        if payout.env != route.route.env {
            return Err(Problem::new(ErrorCode::PayoutNotFound));
        }
        match notice.news {
            News::Ask if payout.status == Status::Processing => {
                work_now(app, &payout.id).await?;
            }
            News::Ask => {}
            News::Returned(funds) => {
                let about = About {
                    payout: &payout.id,
                    attempt: Some(&attempt.id),
                    recipient: &payout.recipient,
                    operation: "receive",
                };
                let words = format!("returned ({}): {}", funds.code, funds.message);
                let record =
                    evidence::record(&app.ids, app.now(), (&route.rail, &about), (&called, &words));
                returned(app, &payout, funds, record).await?;
            }
        }
    }
    Ok(answer)
}

async fn returned(
    app: &App,
    payout: &super::model::Payout,
    funds: ReturnOfFunds,
    record: crate::db::bulk::RowChange,
) -> Result<(), Problem> {
    if funds.amount_minor != payout.costs.amount.units() {
        tracing::error!(
            payout.id = %payout.id,
            amount_minor = funds.amount_minor,
            "a return of another amount waits for the operator"
        );
        return Err(Problem::because(ErrorCode::InvalidBody, "The amount is not the payment's."));
    }
    // A return may be told twice, or before we know that the payment was made.
    match payout.status {
        Status::Reversed => return Ok(()),
        Status::Processing => work_now(app, &payout.id).await?,
        _ => {}
    }
    let payout = sql::get_payout(app.db.pool(), &payout.id).await?;
    let payout = payout.ok_or_else(|| Problem::internal("a payout that is gone"))?;
    let failure = Failure { code: funds.code, message: funds.message };
    let with =
        Accompanying { failure: Some(failure), rows: vec![record], ..Accompanying::default() };
    change(app, &payout, Change::Return, with).await.map(drop)
}
