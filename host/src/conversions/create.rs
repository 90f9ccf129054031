//! Converting, and what it would come to.
//!
//! What is executed is decided by the writer, from the rates and limits that it reads in the same
//! transaction; the quote asks the same functions, a moment earlier.

use crate::app::App;
use crate::auth::{Capability, Feature};
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey};
use crate::id::{ConversionId, WalletId};
use crate::ledger::{Command, Done, Effects, Reply, Reservation, replay};
use crate::money::Currency;
use crate::simulator::scenario::{self, RATE_STALE};

use super::offer::Offer;
use super::plan::Plan;
use super::request::{ConversionRequest, Wanted};
use super::sql::{self, Conversion};
use super::view::{ConversionQuote, ConversionView};

/// Path of the call, part of what makes two requests the same.
const PATH: &str = "/v1/conversions";
/// The scenario in which all goes well.
const PAID: &str = "paid";
/// The scenarios that a conversion plays.
pub const PLAYED: [&str; 2] = [PAID, RATE_STALE];

/// Converts, or answers what an earlier request with the same key was answered, with 200.
///
/// # Errors
/// The codes of the contract's table for conversions.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    key: &IdempotencyKey,
    body: Body<ConversionRequest>,
    scenario: Option<&str>,
) -> Result<(Reply, bool), Problem> {
    caller.require(Capability::Conversion)?;
    let (merchant, env) = caller.owner();
    let id = app.ids.id();
    let fingerprint = body.fingerprint(PATH);
    let reservation = Reservation {
        key: format!("{merchant}/{env}/create_conversion/{}", key.as_str()),
        // Whatever differs is another conversion.
        subject: fingerprint.clone(),
        fingerprint,
        resource_id: ConversionId::to_string(&id),
        expires: false,
    };
    let done = match make(app, caller, (&id, body.value), (&reservation, scenario)).await {
        Ok(done) => done,
        // What is refused now may have been done before.
        Err(problem) => match replay(&app.db, &reservation).await? {
            Some(done) => done,
            None => return Err(problem),
        },
    };
    match done {
        Done::Now(conversion) => {
            Ok((Reply { status: 201, body: ConversionView::json(&conversion) }, false))
        }
        // A conversion never changes: what is answered is rendered from it.
        Done::Before { resource_id, .. } => {
            let id = ConversionId::parse(&resource_id);
            let id = id.ok_or_else(|| Problem::internal("an odd id"))?;
            let found = sql::find(app.db.pool(), (merchant, env), &id).await?;
            let found = found.ok_or_else(|| Problem::internal("a key without its conversion"))?;
            Ok((Reply { status: 200, body: ConversionView::json(&found) }, true))
        }
    }
}

/// What stands under the key: that it was done.
fn kept(_: &Conversion) -> Reply {
    Reply { status: 201, body: String::new() }
}

async fn make(
    app: &App,
    caller: &Caller,
    (id, body): (&ConversionId, ConversionRequest),
    (reservation, scenario): (&Reservation, Option<&str>),
) -> Result<Done<Conversion>, Problem> {
    if !caller.merchant.settings.has(Feature::Conversions, caller.key.env) {
        let message = "Conversions are not switched on for this account.";
        return Err(Problem::because(ErrorCode::PermissionDenied, message));
    }
    let wanted = body.read(app, caller)?;
    refuse_played(scenario)?;
    let (merchant, _) = caller.owner();
    let from = wallet(app, caller, ("from_currency", wanted.pair.from)).await?;
    let to = wallet(app, caller, ("to_currency", wanted.pair.to)).await?;
    // What applies is decided under lock; that no way round pays is looked at here.
    Offer::now(app, merchant, (wanted.pair, wanted.shift)).await?;
    let plan = Plan::new(app, merchant, (wanted, id.clone()), (from, to));
    let command = plan.locks(Command::new({
        let plan = plan.clone();
        move |locked| {
            let mut effects = Effects::default();
            let conversion = plan.complete(locked, &mut effects)?;
            Ok(effects.and(conversion))
        }
    }));
    let command = command.reserve(reservation.clone()).replying(kept);
    let done = app.writer.request(command).await;
    done.map_err(|problem| in_its_place(problem, &wanted))
}

/// What is wrong with the amount is said of the field that it was sent in.
fn in_its_place(problem: Problem, wanted: &Wanted) -> Problem {
    match problem.code() {
        ErrorCode::InvalidAmount | ErrorCode::FxExposureCapExceeded => {
            problem.field(wanted.amount_field())
        }
        _ => problem,
    }
}

/// What the sandbox plays: a conversion, or a rate that is too old.
fn refuse_played(scenario: Option<&str>) -> Result<(), Problem> {
    match scenario {
        None | Some(PAID) => Ok(()),
        Some(RATE_STALE) => Err(Problem::new(ErrorCode::FxRateStale)),
        Some(_) => {
            let message = format!("A conversion plays {}.", PLAYED.join(" or "));
            Err(Problem::because(ErrorCode::InvalidField, message).field(scenario::HEADER))
        }
    }
}

async fn wallet(
    app: &App,
    caller: &Caller,
    (field, currency): (&'static str, Currency),
) -> Result<WalletId, Problem> {
    let found = app.wallets.find(caller.owner(), currency).await?;
    let (id, _) = found.ok_or_else(|| Problem::new(ErrorCode::UnsupportedCurrency).field(field))?;
    Ok(id)
}

/// What a conversion would come to now.
///
/// # Errors
/// The codes of the contract's table for conversions, but for those about the wallets.
pub(super) async fn quote(
    app: &App,
    caller: &Caller,
    body: &ConversionRequest,
    scenario: Option<&str>,
) -> Result<ConversionQuote, Problem> {
    let wanted = body.read(app, caller)?;
    refuse_played(scenario)?;
    let offer = Offer::now(app, &caller.merchant.id, (wanted.pair, wanted.shift)).await?;
    let in_its_place = |problem| in_its_place(problem, &wanted);
    let exchange = offer.exchange(wanted.basis).map_err(in_its_place)?;
    Ok(ConversionQuote::of(&exchange, offer.applied.as_of))
}
