//! Payouts that are under way: how each stands, and what it waits for.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Operator;
use crate::cases::sql as cases;
use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query, filter, instant};
use crate::id::PayoutId;
use crate::ledger::wallets::get_wallet;
use crate::payouts::PayoutTransfers;
use crate::payouts::change::refuse_blocked;
use crate::payouts::model::{Payout, Status};
use crate::rails;
use crate::transfers::backlog::{self, Filter, Pending};
use crate::transfers::standing::WaitsFor;
use crate::transfers::{Feature as _, is_blocked};

use super::waiting::{self, InspectedPayout};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[(
    "list_payouts_under_way",
    &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
)];

/// How it stands with what is to be sent for a payout.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnderWay {
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// The same in a sentence.
    pub message: &'static str,
    /// Until when, where that ends by itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Moment>,
    /// When it is looked at next, unless there is news of it before.
    #[schema(value_type = String, format = DateTime)]
    pub next_look_at: Moment,
    /// Since when no route takes it, if none does.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub no_route_since: Option<Moment>,
    /// The name of the route that it is to go over, or has.
    #[schema(example = "ngn_nip")]
    pub route: Option<String>,
    /// What was begun and has not ended.
    pub attempt: Option<OpenAttempt>,
    /// The file that this is in.
    pub file: Option<ItsFile>,
    /// Open cases about it, and about its file.
    pub cases: Vec<OpenCase>,
}

/// An attempt whose outcome is not known.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenAttempt {
    /// The reference under which its network knows it.
    pub reference: String,
    /// The network's own name for it, once it told one.
    pub network_reference: Option<String>,
    /// Whether a byte of it may have left.
    pub may_have_left: bool,
    /// When it was sent last; when it was begun, if it never was.
    #[schema(value_type = String, format = DateTime)]
    pub sent_at: Moment,
    /// How often it was sent.
    pub sends: i64,
    /// How often its network was asked about it.
    pub queries: i64,
    /// What was learnt last.
    #[schema(example = "unknown: HTTP 504")]
    pub last_answer: Option<String>,
}

/// A file of payments.
#[derive(Debug, Serialize, ToSchema)]
pub struct ItsFile {
    /// Its id.
    pub id: String,
    /// The name that it is delivered under, once it was made.
    pub name: Option<String>,
    /// How it stands.
    #[schema(example = "delivered")]
    pub state: &'static str,
    /// Whether an operator holds it back.
    pub is_held: bool,
}

/// A case that is open.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenCase {
    /// Its id.
    pub id: String,
    /// What is the matter.
    #[schema(example = "outcome_unknown")]
    pub kind: &'static str,
    /// What happened, in a sentence.
    pub summary: String,
}

/// Filters of what is under way.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct UnderWayQuery {
    /// `test` or `live`; both if left out.
    pub env: Option<String>,
    /// Only those of this merchant.
    pub merchant_id: Option<String>,
    /// Only those that go over this route, by its name or its id.
    pub route: Option<String>,
    /// Only those that were queued before: an instant or a day.
    pub queued_before: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List payouts that are under way
///
/// Everything that is queued or processing, with what it waits for. How it stands with a network is
/// said as the host sees it that answers.
#[utoipa::path(
    get, path = "/admin/v1/payouts/under_way", operation_id = "list_payouts_under_way",
    tag = "Operator", params(UnderWayQuery),
    responses((status = 200, description = "Oldest first", body = inline(Page<InspectedPayout>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<UnderWayQuery>,
) -> Result<Response, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let after = match &page.starting_after {
        None => String::new(),
        Some(id) => PayoutId::parse_either(id).ok_or_else(PageQuery::unknown_cursor)?.to_string(),
    };
    let limit = page.limit()?;
    let mut wanted = Filter {
        env: filter("env", query.env, Env::ALL.map(Env::as_str))?,
        merchant: query.merchant_id.unwrap_or_default(),
        routes: match query.route {
            Some(named) => routes_named(&app, &named).await?,
            None => Vec::new(),
        },
        before: instant("queued_before", query.queued_before.as_deref())?,
        after,
        limit,
    };
    let (feature, most) = (PayoutTransfers(app.clone()), usize::try_from(limit).unwrap_or(1));
    let mut found = Vec::new();
    // What has ended meanwhile, or cannot be read, makes room for more.
    while found.len() <= most {
        let portion = backlog::list_pending(&app.db, &wanted).await?;
        let Some(last) = portion.last() else { break };
        wanted.after.clone_from(&last.id);
        let ids: Vec<String> = portion.iter().map(|work| work.id.clone()).collect();
        let mut payouts = feature.load_all(&ids).await?;
        found.extend(portion.into_iter().filter_map(|work| {
            let payout = payouts.remove(&work.id)?;
            is_under_way(&payout).then_some((work, payout))
        }));
    }
    let mut shown = Vec::new();
    for (work, payout) in found.iter().take(most + 1) {
        let under_way = Some(describe(&app, payout, work).await?);
        shown.push(InspectedPayout { under_way, ..waiting::view(&app, payout).await? });
    }
    Ok(Page::of(shown, limit).into_response())
}

/// The ids of the routes of this name or id: a name may be one of the sandbox's, too.
async fn routes_named(app: &App, named: &str) -> Result<Vec<String>, Problem> {
    let routes = app.routes.all().await?;
    let is_it = |route: &&rails::Route| route.name == named || route.id.as_str() == named;
    let found = routes.iter().map(|ready| &ready.route).filter(is_it);
    let found: Vec<String> = found.map(|route| route.id.to_string()).collect();
    if found.is_empty() {
        let message = "There is no route of this name or id: see GET /admin/v1/routes.";
        return Err(Problem::because(ErrorCode::InvalidFilter, message).field("route"));
    }
    Ok(found)
}

const fn is_under_way(payout: &Payout) -> bool {
    matches!(payout.status, Status::Queued | Status::Processing)
}

/// How a payout stands, if it is under way.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn of(app: &App, payout: &Payout) -> Result<Option<UnderWay>, Problem> {
    match backlog::find_pending(&app.db, payout.id.as_str()).await? {
        Some(work) if is_under_way(payout) => describe(app, payout, &work).await.map(Some),
        _ => Ok(None),
    }
}

async fn describe(app: &App, payout: &Payout, work: &Pending) -> Result<UnderWay, Problem> {
    let order = PayoutTransfers(app.clone()).order(payout)?;
    let standing = app.transfers.standing(&order, work).await?;
    let mut open = open_cases(app, payout.id.as_str()).await?;
    let has_own_case = !open.is_empty();
    if let Some(file) = &standing.file {
        open.extend(open_cases(app, file.id.as_str()).await?);
    }
    let kept_back = match standing.is_unsent {
        true => kept_back(app, payout).await?,
        false => None,
    };
    use WaitsFor::{Host, Hours, Network, Quarantine, Route};
    let wait = match (standing.wait.what, kept_back) {
        (found, Some(by)) if found != Host => by.into(),
        // Whoever decides a case can do nothing about these.
        (Host | Quarantine | Route | Hours | Network, _) => standing.wait,
        _ if has_own_case => WaitsFor::Person.into(),
        _ => standing.wait,
    };
    let attempt = standing.attempt.map(|attempt| OpenAttempt {
        reference: attempt.rail_reference,
        network_reference: attempt.network_id,
        may_have_left: attempt.bytes_left,
        sent_at: attempt.sent_at,
        sends: attempt.sends,
        queries: attempt.queries,
        last_answer: standing.last_answer,
    });
    let file = standing.file.map(|file| ItsFile {
        id: file.id.to_string(),
        name: file.name,
        state: file.state.as_str(),
        is_held: file.is_held,
    });
    Ok(UnderWay {
        waits_for: wait.what,
        message: wait.what.in_words(),
        until: wait.until,
        next_look_at: work.due_at,
        no_route_since: work.unrouted_since,
        route: standing.route,
        attempt,
        file,
        cases: open,
    })
}

/// The open cases about a payout or a file.
async fn open_cases(app: &App, subject: &str) -> Result<Vec<OpenCase>, Problem> {
    let found = cases::list_about(app.db.pool(), subject).await?.into_iter();
    let open = found.filter(|found| found.status == "open").map(|found| OpenCase {
        id: found.case.id.to_string(),
        kind: found.case.kind.as_str(),
        summary: found.case.summary,
    });
    Ok(open.collect())
}

/// What keeps back whatever has not left of a payout.
async fn kept_back(app: &App, payout: &Payout) -> Result<Option<WaitsFor>, Problem> {
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    if merchant.is_none_or(|merchant| merchant.status.refuse_inactive().is_err()) {
        return Ok(Some(WaitsFor::Merchant));
    }
    let wallet = get_wallet(app.db.pool(), &payout.wallet_id).await?;
    if wallet.is_some_and(|wallet| wallet.is_frozen) {
        return Ok(Some(WaitsFor::Wallet));
    }
    match refuse_blocked(app, payout).await {
        Ok(()) => Ok(None),
        Err(problem) if is_blocked(&problem) => Ok(Some(WaitsFor::Recipient)),
        Err(problem) => Err(problem),
    }
}
