//! Rates between currencies: the platform's, and merchants' own.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::RowChange;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::fx::market::offered;
use crate::fx::rate::WHOLE_BPS;
use crate::fx::source::OPERATOR;
use crate::fx::{Pair, Rate, SetRate, sql};
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::MerchantId;
use crate::ledger::{Command, CounterChange, Effects};
use crate::money::{Currency, Minor};

use super::{invalid, listed_env, optional, required};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "list_all_rates",
        &[ErrorCode::InvalidLimit, ErrorCode::InvalidField, ErrorCode::InvalidFilter],
    ),
    ("set_rate", SET_ERRORS),
    ("import_rates", SET_ERRORS),
    ("remove_rate", SET_ERRORS),
];

const SET_ERRORS: &[ErrorCode] = &[
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::NotFound,
    ErrorCode::StateConflict,
];

/// A rate to be set.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateRequest {
    /// `test` or `live`. Required.
    #[schema(example = "live")]
    pub env: Option<String>,
    /// What is sold, as an ISO 4217 code. Required.
    #[schema(example = "USD")]
    pub from: Option<String>,
    /// What is bought, as an ISO 4217 code. Required.
    #[schema(example = "NGN")]
    pub to: Option<String>,
    /// How much of it one major unit of what is sold comes to: a decimal, below a million, with up
    /// to twelve decimal places. Required.
    #[schema(example = "1550.25")]
    pub rate: Option<String>,
    /// Whose rate; the platform's, for everybody without one of their own, if left out.
    pub merchant_id: Option<String>,
    /// What the platform keeps of it, in basis points; nothing if left out.
    #[schema(minimum = 0, maximum = 9999)]
    pub spread_bps: Option<i64>,
    /// Where it comes from, in a word; `operator` if left out. The name of a rate source that is
    /// configured for this environment hands the platform's rate over to it: what is left out of
    /// `spread_bps`, `as_of` and `valid_for_s` is then as it is for that source.
    pub source: Option<String>,
    /// As of when it is so, in RFC 3339 form; now if left out.
    pub as_of: Option<String>,
    /// Seconds after `as_of` from which on it is too old to be used; for ever if left out.
    #[schema(minimum = 1)]
    pub valid_for_s: Option<u64>,
}

/// Rates to be set, all or none.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportRequest {
    /// The rates: 1 to 1,000. Required.
    pub rates: Vec<RateRequest>,
}

/// A rate as it is set.
#[derive(Debug, Serialize, ToSchema)]
pub struct RateView {
    /// Always `rate`.
    #[schema(example = "rate")]
    pub object: &'static str,
    /// What it is known by.
    #[schema(example = "live/-/USD/NGN")]
    pub id: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// Whose it is; null for the platform's.
    pub merchant_id: Option<String>,
    /// What is sold.
    #[schema(value_type = String)]
    pub from: Currency,
    /// What is bought.
    #[schema(value_type = String)]
    pub to: Currency,
    /// Before the spread; null where it was taken away.
    pub rate: Option<String>,
    /// What the platform keeps of it, in basis points.
    pub spread_bps: i64,
    /// What merchants get.
    pub effective_rate: Option<String>,
    /// Where it comes from.
    pub source: String,
    /// As of when it was so.
    #[schema(value_type = String, format = DateTime)]
    pub as_of: Moment,
    /// From when on it is too old to be used; null where it never is.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub valid_until: Option<Moment>,
    /// Why it is not used now, such as `fx_rate_stale` or `fx_rate_inverted`; null where it is.
    #[schema(example = "fx_rate_stale")]
    pub refused_as: Option<&'static str>,
    /// When it was set.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
}

impl RateView {
    fn of(set: &SetRate, refusal: Option<ErrorCode>) -> Self {
        let shown =
            |rate: Option<Rate>| rate.filter(|_| set.is_active).map(|rate| rate.to_string());
        Self {
            object: "rate",
            id: set.id(),
            env: set.pair.env.as_str(),
            merchant_id: set.merchant.as_ref().map(ToString::to_string),
            from: set.pair.from,
            to: set.pair.to,
            rate: shown(Some(set.rate)),
            spread_bps: set.spread_bps,
            effective_rate: shown(set.effective()),
            source: set.source.clone(),
            as_of: set.as_of,
            valid_until: set.valid_until,
            refused_as: refusal.map(|code| code.entry().code),
            updated_at: set.updated_at,
        }
    }
}

/// How rates stand: as they are set, and why one is not used now.
async fn views(app: &App, rates: &[SetRate]) -> Result<Vec<RateView>, Problem> {
    let (mut views, now) = (Vec::with_capacity(rates.len()), app.now());
    for set in rates {
        let merchant = set.merchant.as_ref();
        let around = sql::around(app.db.pool(), set.pair, merchant).await?;
        let refusal = offered(&around, (set.pair, merchant), now).err();
        let refusal = refusal.map(|problem| problem.code());
        views.push(RateView::of(set, refusal));
    }
    Ok(views)
}

/// Which environment, and a page of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RatesQuery {
    /// `test` or `live`; `live` if left out.
    pub env: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List rates
///
/// Those of the platform and of all merchants, by id; one that was taken away is listed without a
/// rate.
#[utoipa::path(
    get, path = "/admin/v1/rates", operation_id = "list_all_rates", tag = "Operator",
    params(RatesQuery),
    responses((status = 200, description = "By id", body = inline(Page<RateView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<RatesQuery>,
) -> Result<Page<RateView>, Problem> {
    let env = listed_env(query.env)?;
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let limit = page.limit()?;
    let after = page.starting_after.unwrap_or_default();
    if !after.is_empty() && sql::rate(app.db.pool(), &after).await?.is_none() {
        return Err(PageQuery::unknown_cursor());
    }
    let rates = sql::list_rates(app.db.pool(), env, (&after, limit)).await?;
    Ok(Page::of(views(&app, &rates).await?, limit))
}

/// Set a rate
///
/// The platform's, or a merchant's own. It is in force when this is answered; lists that merchants
/// read show it within a minute.
#[utoipa::path(
    put, path = "/admin/v1/rates", operation_id = "set_rate", tag = "Operator",
    request_body = RateRequest,
    responses(
        (status = 200, description = "Set", body = RateView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn set(
    State(app): State<App>,
    operator: Operator,
    body: Body<RateRequest>,
) -> Result<Response, Problem> {
    let wanted = vec![read(&app, body.value).await?];
    let id = wanted[0].set.id();
    match set_all(&app, &operator, &id, wanted).await? {
        Written::Set(mut views) => Ok(Json(views.remove(0)).into_response()),
        Written::Asked(response) => Ok(response),
    }
}

/// Which rate.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RateQuery {
    /// `test` or `live`. Required.
    pub env: Option<String>,
    /// What is sold. Required.
    pub from: Option<String>,
    /// What is bought. Required.
    pub to: Option<String>,
    /// Whose rate; the platform's if left out.
    pub merchant_id: Option<String>,
}

/// Take a rate away
///
/// A merchant without one of its own has the platform's.
#[utoipa::path(
    delete, path = "/admin/v1/rates", operation_id = "remove_rate", tag = "Operator",
    params(RateQuery),
    responses(
        (status = 200, description = "As it is now: without a rate", body = RateView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn remove(
    State(app): State<App>,
    operator: Operator,
    Query(query): Query<RateQuery>,
) -> Result<Response, Problem> {
    let RateQuery { env, from, to, merchant_id } = query;
    let (pair, merchant) = which(&app, (env, from, to), merchant_id).await?;
    let id = pair.rate_id(merchant.as_ref());
    let before = sql::rate(app.db.pool(), &id).await?;
    let missing = || Problem::because(ErrorCode::NotFound, "There is no such rate.");
    let set = before.clone().filter(|before| before.is_active).ok_or_else(missing)?;
    let (version, updated_at) = (set.version + 1, app.now());
    let set = SetRate { is_active: false, version, updated_at, ..set };
    match set_all(
        &app,
        &operator,
        &id,
        vec![Wanted { before, set, as_of: None, valid_for_s: None }],
    )
    .await?
    {
        Written::Set(mut views) => Ok(Json(views.remove(0)).into_response()),
        Written::Asked(response) => Ok(response),
    }
}

/// Import rates
///
/// All or none, in one transaction.
#[utoipa::path(
    post, path = "/admin/v1/rates/import", operation_id = "import_rates", tag = "Operator",
    request_body = ImportRequest,
    responses(
        (status = 200, description = "Set", body = inline(Page<RateView>)),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn import(
    State(app): State<App>,
    operator: Operator,
    body: Body<ImportRequest>,
) -> Result<Response, Problem> {
    let most = limits::RATES_IMPORTED_MAX;
    let rates = body.value.rates;
    if rates.is_empty() || rates.len() > most {
        return Err(invalid("rates", &format!("must have 1 to {most} items")));
    }
    let mut wanted = Vec::with_capacity(rates.len());
    for (index, rate) in rates.into_iter().enumerate() {
        let rate = read(&app, rate).await;
        wanted.push(rate.map_err(|problem| problem.within(&format!("rates[{index}]")))?);
    }
    let mut ids: Vec<String> = wanted.iter().map(|wanted| wanted.set.id()).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(invalid("rates", &format!("has {} twice", twice[0])));
    }
    match set_all(&app, &operator, "import", wanted).await? {
        Written::Set(views) => Ok(Page::whole(views).into_response()),
        Written::Asked(response) => Ok(response),
    }
}

/// A rate that is to be set, and as it was.
struct Wanted {
    before: Option<SetRate>,
    set: SetRate,
    /// As it was asked for.
    as_of: Option<String>,
    valid_for_s: Option<u64>,
}

/// A pair, and whose rate.
async fn which(
    app: &App,
    (env, from, to): (Option<String>, Option<String>, Option<String>),
    merchant: Option<String>,
) -> Result<(Pair, Option<MerchantId>), Problem> {
    let env = required("env", env)?;
    let env = Env::parse(&env).ok_or_else(|| invalid("env", "must be test or live"))?;
    let (from, to) = (currency("from", from)?, currency("to", to)?);
    if from == to {
        return Err(invalid("to", "must differ from from"));
    }
    let merchant = match optional("merchant_id", merchant)? {
        Some(id) => Some(super::merchants::find(app, &id).await?.id),
        None => None,
    };
    Ok((Pair { env, from, to }, merchant))
}

async fn read(app: &App, request: RateRequest) -> Result<Wanted, Problem> {
    let pair = (request.env, request.from, request.to);
    let (pair, merchant) = which(app, pair, request.merchant_id).await?;
    for (name, currency) in [("from", pair.from), ("to", pair.to)] {
        refuse_unserved(app, name, currency)?;
    }
    let before = sql::rate(app.db.pool(), &pair.rate_id(merchant.as_ref())).await?;
    let now = app.now();
    let version = before.as_ref().map_or(1, |before| before.version + 1);
    let text = required("rate", request.rate)?;
    let rate = Rate::parse(&text).ok_or_else(|| {
        invalid(
            "rate",
            "must be a decimal above 0 and below 1000000, with 12 decimal places at most",
        )
    })?;
    let source = optional("source", request.source)?.unwrap_or_else(|| OPERATOR.to_owned());
    let keeper = app.providers.keeper(pair, &source).filter(|_| merchant.is_none());
    let kept = keeper.map(|keeper| (&keeper.terms, keeper.state().as_of));
    let spread_bps = request.spread_bps.or(kept.as_ref().map(|(terms, _)| terms.spread_bps));
    let spread_bps = spread_bps.unwrap_or(0);
    let valid_for_s = request.valid_for_s.or(kept.as_ref().map(|(terms, _)| terms.valid_for_s));
    if !(0..WHOLE_BPS).contains(&spread_bps) || rate.less(spread_bps).is_none() {
        return Err(invalid("spread_bps", "must be 0 to 9999, and leave something of the rate"));
    }
    let as_of = match optional("as_of", request.as_of.clone())? {
        Some(text) => Moment::parse(&text).filter(|as_of| *as_of <= now).ok_or_else(|| {
            invalid("as_of", "must be an instant in RFC 3339 form that has passed")
        })?,
        None => kept.and_then(|(_, as_of)| as_of).unwrap_or(now),
    };
    // Who sets it anew under another name goes by that one's clock.
    let is_same = |before: &SetRate| before.is_active && before.source == source;
    if before.as_ref().is_some_and(|before| is_same(before) && as_of < before.as_of) {
        return Err(invalid(
            "as_of",
            "is before that of the rate that is set: take that away first",
        ));
    }
    if valid_for_s.is_some_and(|span| !(1..=limits::RATE_VALID_S_MAX).contains(&span)) {
        return Err(invalid("valid_for_s", "must be 1 second to ten years"));
    }
    let set = SetRate {
        pair,
        merchant,
        rate,
        spread_bps,
        source,
        as_of,
        valid_until: valid_for_s.map(|span| SetRate::until(as_of, span)),
        is_active: true,
        version,
        updated_at: now,
    };
    Ok(Wanted { before, set, as_of: request.as_of, valid_for_s: request.valid_for_s })
}

/// Refuses a currency that nobody can hold: it is misspelt.
pub(super) fn refuse_unserved(app: &App, name: &str, currency: Currency) -> Result<(), Problem> {
    match app.rails.exponent(currency) {
        Some(_) => Ok(()),
        None => Err(invalid(name, "is no currency that a loaded rail serves")),
    }
}

pub(super) fn currency(name: &'static str, code: Option<String>) -> Result<Currency, Problem> {
    let code = required(name, code)?;
    Currency::parse(&code).ok_or_else(|| invalid(name, "must be an ISO 4217 code"))
}

/// What came of setting rates.
enum Written {
    /// They are set.
    Set(Vec<RateView>),
    /// A second operator has to ask for the same; this is the answer.
    Asked(Response),
}

async fn set_all(
    app: &App,
    operator: &Operator,
    subject: &str,
    wanted: Vec<Wanted>,
) -> Result<Written, Problem> {
    let agreement = match agree(app, operator, (subject, &wanted)).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(Written::Asked(response)),
    };
    let rates = wanted.into_iter().map(|wanted| (wanted.before, wanted.set)).collect();
    let set = write_all(app, operator, rates, agreement).await?;
    Ok(Written::Set(views(app, &set).await?))
}

/// Sets rates, each as it was before and as it shall be, all or none.
///
/// # Errors
/// `state_conflict` where somebody else has set one of them meanwhile.
pub(super) async fn write_all(
    app: &App,
    operator: &Operator,
    rates: Vec<(Option<SetRate>, SetRate)>,
    agreement: Agreement,
) -> Result<Vec<SetRate>, Problem> {
    let mut rows: Vec<RowChange> = Vec::with_capacity(rates.len() * 2);
    for (before, set) in &rates {
        let id = set.id();
        let done = Done {
            action: "rate.set",
            subject: ("rate", &id),
            before: before.as_ref().map(state),
            after: Some(agreement.told(state(set))),
        };
        rows.push(operator.did(done).row(&app.ids, app.now()));
        rows.push(sql::NEW_RATES.insert(set));
    }
    rows.extend(agreement.rows);
    let read = rates.iter().map(|(before, set)| Read {
        id: set.id(),
        version: before.as_ref().map(|before| before.version),
    });
    let command = write_over(&sql::RATES, read.collect(), rows);
    app.writer.work(command.guards(agreement.guards)).await?;
    app.rates.forget();
    Ok(rates.into_iter().map(|(_, set)| set).collect())
}

/// A row as it was read before it is set: its version, if it was there.
pub(super) struct Read {
    pub id: String,
    pub version: Option<i64>,
}

/// Writes rows that set something, but not over what somebody else has set meanwhile. A row that is
/// not there yet cannot be locked: a counter stands for it, which one of two hosts takes first.
pub(super) fn write_over(
    on: &'static Lookup,
    read: Vec<Read>,
    rows: Vec<RowChange>,
) -> Command<()> {
    let place = |id: &str| format!("set/{}/{id}", on.name);
    let ids: Vec<String> = read.iter().map(|read| read.id.clone()).collect();
    let places: Vec<String> = ids.iter().map(|id| place(id)).collect();
    let command = Command::new(move |locked| {
        let mut counters = Vec::with_capacity(read.len());
        for Read { id, version } in &read {
            let now = locked.row(on, id).map(|row| row.int("version")).transpose()?;
            // Rows are read before counters: another host may have made it in between.
            let was_made = now.is_none() && locked.counter(&place(id)).count > 0;
            if now != *version || was_made {
                return Err(Problem::new(ErrorCode::StateConflict));
            }
            counters.push(CounterChange {
                key: place(id),
                holder: String::new(),
                count: 1,
                sum: Minor::ZERO,
                expires_at: locked.now().after(limits::SETTING_CONTESTED).micros(),
            });
        }
        Ok(Effects { rows: rows.clone(), counters, ..Effects::default() }.and(()))
    });
    ids.into_iter().fold(command.counters(places), |command, id| command.row(on, id))
}

/// Whether one operator is enough, or this is the second one: who sets a live rate can give money
/// away.
async fn agree(
    app: &App,
    operator: &Operator,
    (subject, wanted): (&str, &[Wanted]),
) -> Result<Verdict, Problem> {
    if !wanted.iter().any(|it| it.set.pair.env == Env::Live) {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let rates = wanted.iter().map(|it| {
        let mut state = state(&it.set);
        // When it was asked for is each one's own.
        state["as_of"] = json!(it.as_of);
        if let Value::Object(state) = &mut state {
            state.remove("valid_until");
        }
        state["valid_for_s"] = json!(it.valid_for_s);
        state["version"] = Value::Null;
        json!({ "id": it.set.id(), "set": state })
    });
    let done = ("rate.set", ("rate", subject));
    let asked = Asked::by_policy(app, (ApprovalAct::Rate, None), done).wanting(rates.collect());
    let asked = Asked { valid_for: limits::RATE_APPROVAL_VALID, ..asked };
    approvals::agree(app, operator, asked).await
}

/// A rate as the audit log shows it.
pub(super) fn state(set: &SetRate) -> Value {
    json!({
        "rate": Some(set.rate).filter(|_| set.is_active),
        "spread_bps": set.spread_bps,
        "source": set.source,
        "as_of": set.as_of,
        "valid_until": set.valid_until,
        "version": set.version,
    })
}
