//! Payouts that are under way: how each stands, and what it waits for.

use std::collections::HashMap;

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
use crate::payouts::model::Payout;
use crate::payouts::sql;
use crate::rails::Route;
use crate::transfers::backlog::Wanted;
use crate::transfers::standing::{Standing, WaitsFor};

use super::waiting::{self, InspectedPayout};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[(
    "list_payouts_under_way",
    &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
)];

/// How it stands with what is to be sent for a payout.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnderWay {
    /// What it waits for: `turn`, `window` (of its route), `hours` (of its network), `network` (left
    /// alone after failures), `route` (paused), `any_route` (none takes it), `quarantine`, `wallet`
    /// (frozen), `merchant` (suspended), `file` (the one that it is in), `answer` (of its network,
    /// since it may have left), `person` (who decides a case), or `call`, where a host is at it.
    #[schema(example = "answer")]
    pub waits_for: &'static str,
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
    /// Open cases about it.
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
    let wanted = Wanted {
        id: String::new(),
        env: filter("env", query.env, Env::ALL.map(Env::as_str))?,
        merchant: query.merchant_id.unwrap_or_default(),
        route: match query.route {
            Some(named) => route(&app, &named).await?,
            None => String::new(),
        },
        before: instant("queued_before", query.queued_before.as_deref())?,
        after,
        limit,
    };
    let standings = app.transfers.standings(&wanted).await?;
    let ids: Vec<String> = standings.iter().map(|standing| standing.work.id.clone()).collect();
    let payouts = sql::list_payouts_by_id(&app.db, &ids).await?;
    let mut by_id: HashMap<String, &Payout> =
        payouts.iter().map(|payout| (payout.id.to_string(), payout)).collect();
    let mut shown = Vec::with_capacity(standings.len());
    for standing in standings {
        // What has ended this moment is not under way any more.
        let Some(payout) = by_id.remove(&standing.work.id) else { continue };
        let under_way = Some(describe(&app, payout, standing).await?);
        shown.push(InspectedPayout { under_way, ..waiting::view(&app, payout).await? });
    }
    Ok(Page::of(shown, limit).into_response())
}

/// The id of the route of this name or id.
async fn route(app: &App, named: &str) -> Result<String, Problem> {
    let routes = app.routes.all().await?;
    let is_it = |route: &Route| route.name == named || route.id.as_str() == named;
    let found = routes.iter().map(|ready| &ready.route).find(|route| is_it(route));
    let unknown = || {
        let message = "There is no route of this name or id: see GET /admin/v1/routes.";
        Problem::because(ErrorCode::InvalidFilter, message).field("route")
    };
    found.map(|route| route.id.to_string()).ok_or_else(unknown)
}

/// How a payout stands, if it is under way.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn of(app: &App, payout: &Payout) -> Result<Option<UnderWay>, Problem> {
    let wanted = Wanted {
        id: payout.id.to_string(),
        env: String::new(),
        merchant: String::new(),
        route: String::new(),
        before: None,
        after: String::new(),
        limit: 1,
    };
    match app.transfers.standings(&wanted).await?.pop() {
        Some(standing) => describe(app, payout, standing).await.map(Some),
        None => Ok(None),
    }
}

async fn describe(app: &App, payout: &Payout, standing: Standing) -> Result<UnderWay, Problem> {
    let found = cases::list_about(app.db.pool(), payout.id.as_str()).await?;
    let open = found.into_iter().filter(|found| found.status == "open").map(|found| OpenCase {
        id: found.case.id.to_string(),
        kind: found.case.kind.as_str(),
        summary: found.case.summary,
    });
    let open: Vec<OpenCase> = open.collect();
    let waits_for = match (standing.waits_for, kept_back(app, payout).await?) {
        (WaitsFor::Call, _) => WaitsFor::Call,
        (_, Some(by)) if standing.is_unsent() => by,
        // Whoever decides the case can do nothing about these.
        (
            found @ (WaitsFor::Quarantine | WaitsFor::Route | WaitsFor::Hours | WaitsFor::Network),
            _,
        ) => found,
        _ if !open.is_empty() => WaitsFor::Person,
        (found, _) => found,
    };
    let until = standing.until.filter(|_| waits_for == standing.waits_for);
    let attempt = standing.attempt.map(|attempt| OpenAttempt {
        reference: attempt.rail_reference,
        network_reference: attempt.network_id,
        may_have_left: attempt.bytes_left,
        sent_at: attempt.sent_at,
        sends: attempt.sends,
        queries: attempt.queries,
        last_answer: attempt.message,
    });
    let file = standing.file.map(|file| ItsFile {
        id: file.id.to_string(),
        name: file.name,
        state: file.state.as_str(),
    });
    Ok(UnderWay {
        waits_for: waits_for.as_str(),
        message: waits_for.in_words(),
        until,
        next_look_at: standing.work.due_at,
        no_route_since: standing.work.unrouted_since,
        route: standing.route,
        attempt,
        file,
        cases: open,
    })
}

/// What keeps back whatever has not left of a payout.
async fn kept_back(app: &App, payout: &Payout) -> Result<Option<WaitsFor>, Problem> {
    let merchant = app.directory.merchant(&payout.merchant_id).await?;
    if merchant.is_none_or(|merchant| merchant.status.refuse_inactive().is_err()) {
        return Ok(Some(WaitsFor::Merchant));
    }
    let wallet = get_wallet(app.db.pool(), &payout.wallet_id).await?;
    Ok(wallet.filter(|wallet| wallet.is_frozen).map(|_| WaitsFor::Wallet))
}
