//! Settlement accounts: what the books say that a route's bank was told, and adjusting entries.

use std::time::Duration;

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::approvals::{self, ApprovalView, Asked, Verdict};
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::{AdjustmentId, JournalId};
use crate::ledger::{BY_HAND, Command, Effects};
use crate::money::{Currency, Minor};
use crate::rails;
use crate::reconciliation::matching::{KEY_MIN, REFERENCE_MAX, can_be_found};
use crate::reconciliation::sql::{self, ADJUSTMENTS, BY_KEY, Wanted};
use crate::reconciliation::{Adjustment, Contra, SettlementAccount, SettlementLine};

use super::unique::Unique;
use super::{invalid, listed_env, required, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "list_settlement_entries",
        &[
            ErrorCode::NotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::RateLimitExceeded,
        ],
    ),
    (
        "adjust_settlement",
        &[
            ErrorCode::NotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
        ],
    ),
    (
        "list_settlement_adjustments",
        &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
];

/// Which lines of which account.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct EntriesQuery {
    /// The route's name; `manual` for what went over none. Required.
    pub route: Option<String>,
    /// `test` or `live`; live if left out.
    pub env: Option<String>,
    /// The account's currency; required for `manual`.
    pub currency: Option<String>,
    /// From this day (UTC) or instant on. Required.
    pub from: Option<String>,
    /// Before this day or instant; the present if left out.
    pub to: Option<String>,
}

/// List what a route's bank was told
///
/// The settlement account of a route, to be compared with the bank's statement: as lines of JSON
/// (`application/x-ndjson`), first the account, then each entry with the references by which the
/// bank may know it, in the order of the books, then adjusting entries by the bank's day (those of a
/// day before and after, too: a bank's day may begin elsewhere), and at last how many there were.
/// `railhead reconcile` does the comparing.
#[utoipa::path(
    get, path = "/admin/v1/settlement_entries", operation_id = "list_settlement_entries",
    tag = "Operator", params(EntriesQuery),
    responses((
        status = 200, description = "A line of JSON for each", body = SettlementLine,
        content_type = "application/x-ndjson",
    )),
)]
pub async fn entries(
    State(app): State<App>,
    operator: Operator,
    Query(query): Query<EntriesQuery>,
) -> Result<Response, Problem> {
    let env = env(query.env.as_deref())?;
    let (route, currency) = account(&app, env, (query.route, query.currency)).await?;
    let from = required("from", query.from)?;
    let instant = |name: &'static str, text: &str| {
        Moment::parse(text).ok_or_else(|| invalid(name, "must be a day or an instant"))
    };
    let from = instant("from", &from)?;
    let to = query.to.as_deref().map(|text| instant("to", text)).transpose()?;
    let wanted = Wanted { env, route, currency, from, to: to.unwrap_or_else(|| app.now()) };
    let holder = format!("settlement/{}", operator.name);
    let place = app.long_answers.operators.take(&[(&holder, limits::REPORTS_PER_KEY_MAX)]);
    let place = place.map_err(|it| it.refusal(("report", "Reports"), RETRY_AFTER_S))?;
    let lines = lines(app, wanted).map(|lines| {
        let mut text = Vec::new();
        for line in lines? {
            serde_json::to_writer(&mut text, &line).map_err(Problem::internal)?;
            text.push(b'\n');
        }
        Ok::<_, Problem>(text)
    });
    let body: Bytes = place.hold(lines);
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(([kind], body).into_response())
}

/// The account, its entries a portion at a time, and the end.
fn lines(
    app: App,
    wanted: Wanted,
) -> impl Stream<Item = Result<Vec<SettlementLine>, Problem>> + Send + 'static {
    let head = SettlementLine::SettlementAccount(SettlementAccount {
        route: wanted.route.clone(),
        env: wanted.env.as_str().to_owned(),
        currency: wanted.currency.to_string(),
        places: app.rails.places_shown(wanted.currency),
    });
    let begun: (Option<JournalId>, u64) = (Some(wanted.start()), 0);
    let portions = stream::try_unfold(begun, move |(after, count)| {
        let (app, wanted) = (app.clone(), wanted.clone());
        async move {
            let Some(after) = after else { return Ok(None) };
            let page = (&after, limits::REPORT_PORTION);
            match wanted.page(app.db.pool(), page).await.map_err(Problem::from)? {
                None => {
                    let entries = wanted.adjustments(app.db.pool()).await?;
                    let count = count + entries.len() as u64;
                    let lines = entries.into_iter().map(SettlementLine::SettlementEntry);
                    let end = SettlementLine::End { count };
                    Ok(Some((lines.chain([end]).collect(), (None, count))))
                }
                Some((last, entries)) => {
                    let count = count + entries.len() as u64;
                    let lines = entries.into_iter().map(SettlementLine::SettlementEntry).collect();
                    Ok(Some((lines, (Some(last), count))))
                }
            }
        }
    });
    stream::once(async move { Ok(vec![head]) }).chain(portions)
}

fn env(text: Option<&str>) -> Result<Env, Problem> {
    let env = text.map_or(Some(Env::Live), Env::parse);
    env.ok_or_else(|| invalid("env", "must be test or live"))
}

/// The account that is meant: a route's, or the one of what went over none.
async fn account(
    app: &App,
    env: Env,
    (route, currency): (Option<String>, Option<String>),
) -> Result<(String, Currency), Problem> {
    let name = required("route", route)?;
    let named = currency.as_deref().map(|code| {
        Currency::parse(code).ok_or_else(|| invalid("currency", "must be three capitals"))
    });
    let named = named.transpose()?;
    if name == BY_HAND {
        let message = "currency is required for what went over no route.";
        let missing = || Problem::because(ErrorCode::MissingField, message).field("currency");
        return Ok((name, named.ok_or_else(missing)?));
    }
    let routes = rails::sql::list_routes(app.db.pool()).await?;
    let route = routes.into_iter().find(|route| route.name == name && route.env == env);
    let missing = || Problem::because(ErrorCode::NotFound, "No such route.").field("route");
    let route = route.ok_or_else(missing)?;
    match named.is_some_and(|named| named != route.currency) {
        true => Err(invalid("currency", &format!("must be {}", route.currency))),
        false => Ok((name, route.currency)),
    }
}

/// A difference between a statement and the books.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdjustRequest {
    /// The route's name; `manual` for what went over none. Required.
    #[schema(example = "ngn_nip")]
    pub route: Option<String>,
    /// `test` or `live`; live if left out.
    pub env: Option<String>,
    /// The account's currency; required for `manual`.
    pub currency: Option<String>,
    /// How much, in minor units. Required.
    #[schema(example = "5250")]
    pub amount_minor: Option<String>,
    /// `paid_out`, where the bank has paid what the books do not say, or `received`, where money came
    /// in, or where the books say that the bank paid and it did not. Required.
    #[schema(example = "paid_out")]
    pub direction: Option<String>,
    /// Where it went, or came from: `funding`, the operator's own money; `bank_charges`, also
    /// interest; `written_off`, what nobody can explain. Required.
    #[schema(example = "bank_charges")]
    pub account: Option<String>,
    /// The reference of what it explains, on the statement or in the books: the comparison finds the
    /// two together from now on. Required.
    #[schema(example = "FT2611210042")]
    pub reference: Option<String>,
    /// On which day the bank booked it; of what it has not booked, on which the books have it.
    /// Required.
    #[schema(example = "2026-11-21")]
    pub booked_on: Option<String>,
    /// Why, for whoever reads it later. Required.
    #[schema(example = "SMS charges of November")]
    pub reason: Option<String>,
}

/// An adjusting entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct AdjustmentView {
    /// Always `settlement_adjustment`.
    #[schema(example = "settlement_adjustment")]
    pub object: &'static str,
    /// Its id.
    #[schema(example = "adj_01kaz3v8d1f7wq5n2x4y6z8ab9")]
    pub id: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The route's name.
    pub route: String,
    /// The account's currency.
    pub currency: String,
    /// How much, in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
    /// `paid_out` or `received`.
    pub direction: &'static str,
    /// Where it went, or came from.
    pub account: Contra,
    /// The reference of what it explains.
    pub reference: String,
    /// On which day the bank booked it.
    pub booked_on: String,
    /// Why.
    pub reason: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

impl AdjustmentView {
    fn of(adjustment: &Adjustment) -> Result<Self, Problem> {
        let is_out = adjustment.amount > Minor::ZERO;
        Ok(Self {
            object: "settlement_adjustment",
            id: adjustment.id.to_string(),
            env: adjustment.env.as_str(),
            route: adjustment.route.clone(),
            currency: adjustment.currency.to_string(),
            amount_minor: if is_out { adjustment.amount } else { adjustment.amount.negated()? },
            direction: direction(adjustment),
            account: adjustment.contra,
            reference: adjustment.reference.clone(),
            booked_on: adjustment.booked_on.clone(),
            reason: adjustment.reason.clone(),
            created_at: adjustment.created_at,
        })
    }
}

/// Take a difference into the books
///
/// An adjusting entry of a route's settlement account, under the reference of what it explains. In
/// live it always takes two operators: the first one asks, and another one asks for the same. A
/// difference is taken in once, unless it was taken back.
#[utoipa::path(
    post, path = "/admin/v1/settlement_adjustments", operation_id = "adjust_settlement",
    tag = "Operator", request_body = AdjustRequest,
    responses(
        (status = 201, description = "In the books", body = AdjustmentView),
        (status = 202, description = "More operators have to ask for the same", body = ApprovalView),
    ),
)]
pub async fn adjust(
    State(app): State<App>,
    operator: Operator,
    body: Body<AdjustRequest>,
) -> Result<Response, Problem> {
    let (adjustment, last, chain) = understand(&app, body.value).await?;
    // The other way about a difference is another act than this one.
    let subject = format!("{}/{}", direction(&adjustment), adjustment.difference());
    let wanted = json!({
        "env": adjustment.env,
        "currency": adjustment.currency,
        "amount_minor": adjustment.amount,
        "account": adjustment.contra,
        "booked_on": adjustment.booked_on,
        // Whoever agreed to undo something has not agreed to the same after somebody else undid it.
        "follows": last,
    });
    let size = i64::try_from(adjustment.amount.units().unsigned_abs()).unwrap_or(i64::MAX);
    let about = (ApprovalAct::Adjust, Some((adjustment.currency.as_str(), size)));
    let subject = ("settlement", subject.as_str());
    let asked = Asked::by_policy(&app, about, ("settlement.adjust", subject))
        .wanting(wanted.clone())
        .saying(json!({ "reason": adjustment.reason }), None);
    let least = if adjustment.env == Env::Live { 2 } else { 1 };
    let asked = Asked { people: asked.people.max(least), ..asked };
    let agreement = match approvals::agree(&app, &operator, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let mut after = wanted;
    after["id"] = json!(adjustment.id);
    after["reference"] = json!(adjustment.reference);
    after["approved"] = agreement.approved_by(&operator, app.now());
    after["reason"] = json!(adjustment.reason);
    let done = Done {
        action: "settlement.adjust",
        subject,
        before: None,
        after: Some(agreement.told(after)),
    };
    let view = AdjustmentView::of(&adjustment)?;
    let command = booking(&adjustment, chain, agreement.rows)?.guards(agreement.guards);
    write(&app, &operator, done, command).await?;
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// What books it, unless somebody was faster. `chain` is its place after others about the same,
/// which may go by other names.
fn booking(
    adjustment: &Adjustment,
    chain: Unique,
    rows: Vec<RowChange>,
) -> Result<Command<()>, Problem> {
    let (journal, key) = (adjustment.journal()?, adjustment.unique_key());
    let (wanted, place) = (key.clone(), chain.key());
    let rows: Vec<RowChange> = rows.into_iter().chain([ADJUSTMENTS.insert(adjustment)]).collect();
    let command = Command::new(move |locked| {
        if let Some(before) = locked.row(&BY_KEY, &wanted) {
            return Err(taken_in(before.maybe_text("id")?.unwrap_or_default()));
        }
        let counters = vec![chain.claim(locked)?];
        let (journals, rows) = (vec![journal.clone()], rows.clone());
        Ok(Effects { journals, rows, counters, ..Effects::default() }.and(()))
    });
    Ok(command.row(&BY_KEY, key).counters([place]))
}

fn taken_in(id: &str) -> Problem {
    let message = format!(
        "This difference was taken into the books before: {id}. Where that was a mistake, take it \
         back first: the same in the other direction."
    );
    Problem::because(ErrorCode::StateConflict, message)
}

/// What is asked for, the last adjusting entry about the same, and its place after that one.
async fn understand(
    app: &App,
    body: AdjustRequest,
) -> Result<(Adjustment, Option<AdjustmentId>, Unique), Problem> {
    let env = env(body.env.as_deref())?;
    let (route, currency) = account(app, env, (body.route, body.currency)).await?;
    let amount = required("amount_minor", body.amount_minor)?;
    let amount = Minor::parse(&amount)
        .ok_or_else(|| invalid("amount_minor", "must be a string of digits above zero"))?;
    let amount = match required("direction", body.direction)?.as_str() {
        "paid_out" => amount,
        "received" => amount.negated()?,
        _ => return Err(invalid("direction", "must be paid_out or received")),
    };
    let contra = required("account", body.account)?;
    let contra = Contra::parse(&contra)
        .ok_or_else(|| invalid("account", "must be funding, bank_charges or written_off"))?;
    let reference = required("reference", body.reference)?;
    if !can_be_found(&reference) {
        let why = format!(
            "must have {KEY_MIN} letters and digits at least, {REFERENCE_MAX} characters at most, \
             and no control characters"
        );
        return Err(invalid("reference", &why));
    }
    let booked_on = required("booked_on", body.booked_on)?;
    let day: Result<Date, _> = booked_on.parse();
    let day = day.map_err(|_| invalid("booked_on", "must be a day, such as 2026-11-21"))?;
    // Where a bank is, it may be tomorrow already.
    if day.to_string() > app.now().after(A_DAY).day_in(&TimeZone::UTC) {
        return Err(invalid("booked_on", "must not be in the future"));
    }
    let adjustment = Adjustment {
        id: app.ids.id(),
        env,
        route,
        currency,
        amount,
        contra,
        reference,
        booked_on: day.to_string(),
        nth: 1,
        reason: required("reason", body.reason)?,
        created_at: app.now(),
    };
    let before = sql::about(app.db.pool(), &adjustment.difference()).await?;
    refuse_other(&adjustment, &before)?;
    match before.last() {
        Some(last) if !adjustment.may_follow(&before)? => Err(taken_in(last.id.as_str())),
        last => {
            let nth = last.map_or(1, |last| last.nth + 1);
            let first =
                before.first().map_or_else(|| adjustment.difference(), |it| it.id.to_string());
            let chain = Unique::new("adjustment", &format!("{first}/{nth}"));
            let last = last.map(|last| last.id.clone());
            Ok((Adjustment { nth, ..adjustment }, last, chain))
        }
    }
}

/// Refuses what takes an adjusting entry back, and not as it was made: on the account of another
/// route, of another amount, or to where that one did not go.
fn refuse_other(adjustment: &Adjustment, before: &[Adjustment]) -> Result<(), Problem> {
    let named = match AdjustmentId::parse(&adjustment.reference) {
        Some(id) => before.iter().find(|it| it.id == id).ok_or_else(|| {
            let why = "must not be an adjusting entry of another account or another amount";
            invalid("reference", why)
        })?,
        // By the name of the difference it is the last one, where nothing is left of it then.
        None => {
            let taken_in = Minor::total(before.iter().map(|it| it.amount))?;
            match before.last() {
                Some(last) if taken_in.plus(adjustment.amount)? == Minor::ZERO => last,
                _ => return Ok(()),
            }
        }
    };
    match named.contra == adjustment.contra {
        true => Ok(()),
        false => {
            Err(invalid("account", &format!("must be {}, as in that entry", named.contra.as_str())))
        }
    }
}

/// When an operator who reads too many accounts at once may try again, in seconds.
const RETRY_AFTER_S: u64 = 5;

const A_DAY: Duration = Duration::from_secs(24 * 3600);

fn direction(adjustment: &Adjustment) -> &'static str {
    if adjustment.amount > Minor::ZERO { "paid_out" } else { "received" }
}

/// Filters of adjusting entries.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct AdjustmentQuery {
    /// `test` or `live`; live if left out.
    pub env: Option<String>,
    /// Only those of this route.
    pub route: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List adjusting entries
#[utoipa::path(
    get, path = "/admin/v1/settlement_adjustments", operation_id = "list_settlement_adjustments",
    tag = "Operator", params(AdjustmentQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<AdjustmentView>))),
)]
pub async fn adjustments(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<AdjustmentQuery>,
) -> Result<Page<AdjustmentView>, Problem> {
    let env = listed_env(query.env)?;
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let (cursor, limit) = (page.cursor(AdjustmentId::parse)?, page.limit()?);
    let (route, before) = (query.route.unwrap_or_default(), (cursor.as_ref(), limit));
    let found = sql::list(app.db.pool(), (env, &route), before).await?;
    let views: Result<Vec<_>, _> = found.iter().map(AdjustmentView::of).collect();
    Ok(Page::of(views?, limit))
}
