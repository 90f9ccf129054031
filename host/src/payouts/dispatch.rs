//! Sending payouts, and asking about those whose outcome is not known.
//!
//! | step | durable afterwards | if the host dies here |
//! |---|---|---|
//! | claim the work (lease, fence) | who may act, until when | the lease runs out, another takes over |
//! | fix the reference, commit the attempt | that a byte may leave, and under which reference | the rail is asked, never sent to |
//! | call the rail | nothing | the rail is asked, never sent to |
//! | commit the outcome | the end, or when to ask again | done, or asked again |
//!
//! Two outcomes are definite: the rail says paid, or the rail refuses. Everything else is
//! unknown, and unknown is asked about. Only an answer of "never received" permits sending
//! again, with the same reference: at once where this host itself knows that no byte left,
//! otherwise after as many such answers and as long a time as the rail declares.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::id::PayoutId;
use crate::rails::declaration::Query;
use crate::rails::route::ReadyRoute;
use crate::recipients::scenario_header;
use crate::wasm::rail::{Broken, Called, Field, Finding, Outcome, Payment, Receipt, Refusal};

use super::attempt::{self, Attempt, AttemptState, Claim};
use super::change::{Accompanying, IsNew, attempt_row, change, keep_lease, put_off, write};
use super::evidence::{self, About};
use super::model::{Change, Failure, Payout, Status};
use super::request::Sender;
use super::sql;

/// How long a payout waits whose routes are all paused or not configured.
const NO_ROUTE_DELAY: Duration = Duration::from_secs(30);

/// What is known about a payment after a call.
enum News {
    Paid(Receipt),
    Accepted(Receipt),
    Refused(Refusal),
    Unknown(String),
    NeverReceived(String),
}

/// Does what there is to do for a claimed payout; answers the payout as it is afterwards.
///
/// # Errors
/// The database failed, or somebody else was faster. Nothing is lost: the lease runs out.
pub async fn work(app: &App, claim: Claim) -> Result<Payout, Problem> {
    let payout = sql::get_payout(app.db.pool(), &claim.payout_id).await?;
    let payout = payout.ok_or_else(|| Problem::internal("work for a payout that is not there"))?;
    match payout.status {
        Status::Queued => start_attempt(app, payout, &claim, &[]).await,
        Status::Processing => {
            let attempts = attempt::list_attempts(app.db.pool(), &payout.id).await?;
            match attempts.into_iter().find(|attempt| attempt.state == AttemptState::Open) {
                Some(attempt) => ask(app, payout, &claim, attempt).await,
                None => Err(Problem::internal("a payout under way without an open attempt")),
            }
        }
        _ => {
            attempt::drop_dispatch(&app.db, &claim).await?;
            Ok(payout)
        }
    }
}

/// Claims the work for one payout and does it now, unless somebody else is at it.
///
/// # Errors
/// The database failed.
pub async fn work_now(app: &App, id: &PayoutId) -> Result<(), Problem> {
    let lease = i64::try_from(crate::config::limits::LEASE.as_micros()).unwrap_or(i64::MAX);
    let Some(claim) = attempt::claim_dispatch(&app.db, id, lease).await? else { return Ok(()) };
    match work(app, claim).await {
        Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(()),
        other => other.map(drop),
    }
}

/// Fixes a reference on the next route that has not been tried, commits it, and sends.
async fn start_attempt(
    app: &App,
    payout: Payout,
    claim: &Claim,
    tried: &[Attempt],
) -> Result<Payout, Problem> {
    let Some(route) = next_route(app, &payout, tried).await? else {
        let due_at = app.now().after(NO_ROUTE_DELAY);
        write(app, &payout, claim, vec![put_off(&payout, due_at, claim.tries)]).await?;
        return Ok(payout);
    };
    let mut attempt = new_attempt(app, &payout, &route);
    let payment = payment(app, &payout, &attempt).await?;
    let called = route.rail.code.reference(&route.pure_grant(attempt.begun_at), &payment).await;
    attempt.rail_reference = called.result.map_err(Problem::internal)?;
    if attempt.rail_reference.is_empty() {
        return Err(Problem::internal("the rail made no reference"));
    }
    let due_at = next_question(&route.rail.declaration.query, claim.tries, app.now());
    let payout = match payout.status {
        Status::Queued => {
            let with = Accompanying {
                attempt: Some((attempt.clone(), IsNew::Yes)),
                claim: Some(claim.clone()),
                due_at: Some(due_at),
                ..Accompanying::default()
            };
            change(app, &payout, Change::Dispatch, with).await?
        }
        // A further route for a payout that is under way: its status stays.
        _ => {
            let reference = Some(attempt.rail_reference.clone());
            let payout = Payout { rail_reference: reference, ..payout };
            let rows = vec![
                attempt_row(&attempt, IsNew::Yes),
                RowChange::Update(&sql::PAYOUT_STATES, sql::payout_change(&payout)),
                keep_lease(&payout, due_at),
            ];
            write(app, &payout, claim, rows).await?;
            payout
        }
    };
    send(app, payout, claim, Sending { attempt, route, left_before: false }).await
}

/// An attempt that is committed and about to be sent.
struct Sending {
    attempt: Attempt,
    route: Arc<ReadyRoute>,
    /// Whether a byte of an earlier sending of the same reference left.
    left_before: bool,
}

/// The first route that may take the payout and was not tried yet.
async fn next_route(
    app: &App,
    payout: &Payout,
    tried: &[Attempt],
) -> Result<Option<Arc<ReadyRoute>>, Problem> {
    let wanted = (payout.currency, payout.method.as_str(), payout.env);
    match app.routes.candidates(wanted, &payout.merchant_id).await {
        Ok(routes) => Ok(routes.into_iter().find(|ready| {
            ready.rail.code.makes_payouts()
                && !tried.iter().any(|attempt| attempt.route_id == ready.route.id)
        })),
        Err(problem) if problem.code() == ErrorCode::ApiError => Err(problem),
        Err(_) => Ok(None),
    }
}

/// Calls the rail under a committed attempt and commits what came of it.
async fn send(
    app: &App,
    payout: Payout,
    claim: &Claim,
    Sending { attempt, route, left_before }: Sending,
) -> Result<Payout, Problem> {
    let payment = payment(app, &payout, &attempt).await?;
    let headers = scenario_header(payout.scenario.as_deref());
    let called = route.rail.code.submit(&route.grant(app.now(), headers), &payment).await;
    let news = match &called.result {
        // What the host saw itself stands above what a guest says.
        Ok(Outcome::Paid(_) | Outcome::Accepted(_)) if !called.bytes_left => {
            News::Unknown("the rail claims an answer, but nothing was sent".into())
        }
        Ok(Outcome::Paid(receipt)) => News::Paid(receipt.clone()),
        Ok(Outcome::Accepted(receipt)) => News::Accepted(receipt.clone()),
        Ok(Outcome::Refused(refusal)) => News::Refused(refusal.clone()),
        Ok(Outcome::Unknown(why)) => News::Unknown(why.clone()),
        Err(broken) => News::Unknown(broken.to_string()),
    };
    let bytes_left = left_before || called.bytes_left;
    let attempt = Attempt { bytes_left, never_received: 0, ..attempt };
    let record = record(app, (&payout, &attempt), &route, ("submit", &called, &news));
    if !attempt.bytes_left && matches!(news, News::Unknown(_)) {
        return not_sent(app, payout, claim, (attempt, route), (news, record)).await;
    }
    conclude(app, payout, claim, (attempt, &route), (news, vec![record])).await
}

/// No byte left: another route may be tried. Without one, the payout stays with this route, and
/// the rail is asked before anything is sent again.
async fn not_sent(
    app: &App,
    payout: Payout,
    claim: &Claim,
    (attempt, route): (Attempt, Arc<ReadyRoute>),
    (news, record): (News, RowChange),
) -> Result<Payout, Problem> {
    let mut tried = attempt::list_attempts(app.db.pool(), &payout.id).await?;
    tried.push(attempt.clone());
    if next_route(app, &payout, &tried).await?.is_none() {
        return conclude(app, payout, claim, (attempt, &route), (news, vec![record])).await;
    }
    let ended = Attempt {
        state: AttemptState::NotSent,
        message: Some(news.words()),
        answered_at: Some(app.now()),
        ..attempt
    };
    write(app, &payout, claim, vec![attempt_row(&ended, IsNew::No), record]).await?;
    Box::pin(start_attempt(app, payout, claim, &tried)).await
}

/// Asks the rail about an attempt whose outcome is not known.
async fn ask(
    app: &App,
    payout: Payout,
    claim: &Claim,
    attempt: Attempt,
) -> Result<Payout, Problem> {
    let route = app.routes.get(&attempt.route_id).await?;
    let payment = payment(app, &payout, &attempt).await?;
    let headers = scenario_header(payout.scenario.as_deref());
    let called = route.rail.code.query(&route.grant(app.now(), headers), &payment).await;
    let news = match &called.result {
        Ok(Finding::Paid(_) | Finding::Refused(_)) if !called.bytes_left => {
            News::Unknown("the rail claims an answer, but nothing was asked".into())
        }
        Ok(Finding::Paid(receipt)) => News::Paid(receipt.clone()),
        Ok(Finding::Accepted(receipt)) => News::Accepted(receipt.clone()),
        Ok(Finding::Refused(refusal)) => News::Refused(refusal.clone()),
        Ok(Finding::Unknown(why)) => News::Unknown(why.clone()),
        Ok(Finding::NeverReceived(why)) if called.bytes_left => News::NeverReceived(why.clone()),
        Ok(Finding::NeverReceived(_)) => News::Unknown("nothing was asked".into()),
        Err(broken) => News::Unknown(broken.to_string()),
    };
    let never_received = match news {
        News::NeverReceived(_) => attempt.never_received + 1,
        _ => 0,
    };
    let attempt = Attempt { queries: attempt.queries + 1, never_received, ..attempt };
    let record = record(app, (&payout, &attempt), &route, ("query", &called, &news));
    if may_send_again(&route.rail.declaration.query, &attempt, app.now()) {
        return resend(app, payout, claim, (attempt, route), record).await;
    }
    conclude(app, payout, claim, (attempt, &route), (news, vec![record])).await
}

/// Whether enough answers of "never received" permit sending the same reference again.
fn may_send_again(query: &Query, attempt: &Attempt, now: Moment) -> bool {
    if attempt.never_received == 0 {
        return false;
    }
    let waited = attempt.sent_at.after(Duration::from_secs(query.never_received_after_s));
    !attempt.bytes_left || (attempt.never_received >= query.never_received_answers && waited <= now)
}

/// Commits that the same reference is sent once more, and sends it.
async fn resend(
    app: &App,
    payout: Payout,
    claim: &Claim,
    (attempt, route): (Attempt, Arc<ReadyRoute>),
    record: RowChange,
) -> Result<Payout, Problem> {
    let (now, left_before) = (app.now(), attempt.bytes_left);
    let attempt = Attempt {
        bytes_left: true,
        sends: attempt.sends + 1,
        sent_at: now,
        never_received: 0,
        ..attempt
    };
    write(app, &payout, claim, vec![attempt_row(&attempt, IsNew::No), record]).await?;
    Box::pin(send(app, payout, claim, Sending { attempt, route, left_before })).await
}

/// Commits what became of an attempt: the end, or when to ask.
async fn conclude(
    app: &App,
    payout: Payout,
    claim: &Claim,
    (attempt, route): (Attempt, &ReadyRoute),
    (news, mut rows): (News, Vec<RowChange>),
) -> Result<Payout, Problem> {
    let now = app.now();
    let attempt =
        Attempt { code: news.code().or(attempt.code), message: Some(news.words()), ..attempt };
    let (kind, state, failure) = match news {
        News::Paid(_) => (Change::Confirm, AttemptState::Paid, None),
        News::Refused(Refusal { code, message }) => {
            (Change::Refuse, AttemptState::Refused, Some(Failure { code, message }))
        }
        News::Accepted(_) | News::Unknown(_) | News::NeverReceived(_) => {
            let due_at = next_question(&route.rail.declaration.query, claim.tries, now);
            rows.push(attempt_row(&attempt, IsNew::No));
            rows.push(put_off(&payout, due_at, claim.tries + 1));
            write(app, &payout, claim, rows).await?;
            return Ok(payout);
        }
    };
    let ended = Attempt { state, answered_at: Some(now), ..attempt };
    let with = Accompanying {
        failure,
        attempt: Some((ended, IsNew::No)),
        claim: Some(claim.clone()),
        due_at: None,
        rows,
    };
    change(app, &payout, kind, with).await
}

fn next_question(query: &Query, tries: i64, now: Moment) -> Moment {
    let last = query.schedule_s.len() - 1;
    let index = usize::try_from(tries).unwrap_or(last).min(last);
    now.after(Duration::from_secs(query.schedule_s[index]))
}

fn new_attempt(app: &App, payout: &Payout, route: &ReadyRoute) -> Attempt {
    let now = app.now();
    let about = &route.rail.declaration.rail;
    Attempt {
        id: app.ids.id(),
        payout_id: payout.id.clone(),
        route_id: route.route.id.clone(),
        rail: about.name.clone(),
        rail_version: about.version.clone(),
        rail_digest: route.rail.digest.clone(),
        rail_reference: String::new(),
        number: i64::try_from(app.ids.below(1_000_000_000_000)).unwrap_or(0),
        state: AttemptState::Open,
        bytes_left: true,
        sends: 1,
        queries: 0,
        never_received: 0,
        code: None,
        message: None,
        begun_at: now,
        sent_at: now,
        answered_at: None,
    }
}

/// The payment as the rail is told of it: the same for every call about one attempt.
async fn payment(app: &App, payout: &Payout, attempt: &Attempt) -> Result<Payment, Problem> {
    let owner = (&payout.merchant_id, payout.env);
    let which = (payout.currency, payout.recipient_identity.as_str());
    let known = app.recipients.known(owner, which).await?;
    let resolution = known.beneficiary.as_ref().and_then(|saved| saved.resolution.clone());
    Ok(Payment {
        payout: payout.id.reference(),
        reference: attempt.rail_reference.clone(),
        number: u64::try_from(attempt.number).unwrap_or(0),
        begun_at_ms: attempt.begun_at.millis(),
        method: payout.method.clone(),
        currency: payout.currency.to_string(),
        amount_minor: payout.costs.amount.units(),
        recipient: payout.recipient.to_guest(),
        sender: sender(payout.sender.as_deref()),
        narration: payout.narration.clone().unwrap_or_default(),
        resolution,
    })
}

fn sender(json: Option<&str>) -> Vec<Field> {
    let sender: Option<Sender> = json.and_then(|json| serde_json::from_str(json).ok());
    let value = serde_json::to_value(sender.unwrap_or_default()).unwrap_or_default();
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| {
            Some(Field { name: name.clone(), value: value.as_str()?.to_owned() })
        })
        .collect()
}

fn record<T>(
    app: &App,
    (payout, attempt): (&Payout, &Attempt),
    route: &ReadyRoute,
    (operation, called, news): (&'static str, &Called<T>, &News),
) -> RowChange {
    let about = About {
        payout: &payout.id,
        attempt: Some(&attempt.id),
        recipient: &payout.recipient,
        operation,
    };
    if let Err(broken @ (Broken::Trapped(_) | Broken::TimedOut(_))) = &called.result {
        tracing::error!(payout.id = %payout.id, rail.name = attempt.rail, %broken, operation, "rail");
    }
    evidence::record(&app.ids, app.now(), (&route.rail, &about), (called, &news.words()))
}

impl News {
    fn words(&self) -> String {
        match self {
            Self::Paid(receipt) => format!("paid ({})", receipt.code),
            Self::Accepted(receipt) => format!("accepted ({})", receipt.code),
            Self::Refused(refusal) => format!("refused ({}): {}", refusal.code, refusal.message),
            Self::Unknown(why) => format!("unknown: {why}"),
            Self::NeverReceived(why) => format!("never received: {why}"),
        }
    }

    fn code(&self) -> Option<String> {
        match self {
            Self::Paid(receipt) | Self::Accepted(receipt) => Some(receipt.code.clone()),
            Self::Refused(refusal) => Some(refusal.code.clone()),
            Self::Unknown(_) | Self::NeverReceived(_) => None,
        }
    }
}
