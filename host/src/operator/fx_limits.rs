//! What limits exchanging into a currency, and the platform's positions.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::config::ApprovalAct;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::fx::{Limit, position, sql};
use crate::http::{Body, Page, Query};
use crate::money::{Currency, Minor};

use super::rates::{Read, currency, refuse_unserved, write_over};
use super::{invalid, listed_env, required};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_fx_positions", &[ErrorCode::InvalidFilter]),
    ("set_fx_limit", &[ErrorCode::MissingField, ErrorCode::InvalidField, ErrorCode::StateConflict]),
];

/// A limit to be set.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitRequest {
    /// `test` or `live`. Required.
    pub env: Option<String>,
    /// The currency that is bought, as an ISO 4217 code. Required.
    pub currency: Option<String>,
    /// Whether nothing is exchanged into it; as it was if left out.
    pub is_paused: Option<bool>,
    /// How far the platform's position may go below zero, in minor units; null takes the cap away,
    /// and left out it stays as it was.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub exposure_cap_minor: Option<Option<String>>,
}

/// A field that may be null, which is something else than left out.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What limits exchanging into a currency.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitView {
    /// Always `fx_limit`.
    pub object: &'static str,
    /// `test` or `live`.
    pub env: &'static str,
    /// The currency that is bought.
    #[schema(value_type = String)]
    pub currency: Currency,
    /// Whether nothing is exchanged into it.
    pub is_paused: bool,
    /// How far the platform's position may go below zero.
    #[schema(value_type = Option<String>)]
    pub exposure_cap_minor: Option<Minor>,
}

/// Limit exchanging into a currency
#[utoipa::path(
    put, path = "/admin/v1/fx_limits", operation_id = "set_fx_limit", tag = "Operator",
    request_body = LimitRequest,
    responses(
        (status = 200, description = "Set", body = LimitView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn limit(
    State(app): State<App>,
    operator: Operator,
    body: Body<LimitRequest>,
) -> Result<Response, Problem> {
    let request = body.value;
    let env = required("env", request.env)?;
    let env = Env::parse(&env).ok_or_else(|| invalid("env", "must be test or live"))?;
    let currency = currency("currency", request.currency)?;
    refuse_unserved(&app, "currency", currency)?;
    let before = sql::limit(app.db.pool(), (env, currency)).await?;
    let exposure_cap = match request.exposure_cap_minor {
        None => before.exposure_cap,
        Some(None) => None,
        Some(Some(text)) => Some(cap(&text)?),
    };
    let limit = Limit {
        is_paused: request.is_paused.unwrap_or(before.is_paused),
        exposure_cap,
        version: before.version + 1,
        updated_at: app.now(),
        ..before
    };
    let agreement = match agree(&app, &operator, (&before, &limit)).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let id = limit.id();
    let seen = (before.version > 0).then_some(before.version);
    let done = Done {
        action: "fx_limit.set",
        subject: ("fx_limit", &id),
        before: seen.map(|_| state(&before)),
        after: Some(agreement.told(state(&limit))),
    };
    let mut rows = vec![operator.did(done).row(&app.ids, app.now())];
    rows.push(sql::NEW_LIMITS.insert(&limit));
    rows.extend(agreement.rows);
    let read = vec![Read { id: id.clone(), version: seen }];
    let command = write_over(&sql::LIMITS, read, rows);
    app.writer.work(command.guards(agreement.guards)).await?;
    app.rates.forget();
    Ok(Json(LimitView {
        object: "fx_limit",
        env: env.as_str(),
        currency,
        is_paused: limit.is_paused,
        exposure_cap_minor: limit.exposure_cap,
    })
    .into_response())
}

fn cap(text: &str) -> Result<Minor, Problem> {
    let zero = (text == "0").then_some(Minor::ZERO);
    zero.or_else(|| Minor::parse(text))
        .ok_or_else(|| invalid("exposure_cap_minor", "must be a string of digits, in minor units"))
}

/// Whether one operator is enough, or this is the second one. Pausing and lowering take one.
async fn agree(
    app: &App,
    operator: &Operator,
    (before, after): (&Limit, &Limit),
) -> Result<Verdict, Problem> {
    let most = |limit: &Limit| limit.exposure_cap.unwrap_or(Minor::new(i64::MAX));
    let lifts = (before.is_paused && !after.is_paused) || most(after) > most(before);
    if after.env == Env::Test || !lifts {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let id = after.id();
    let done = ("fx_limit.set", ("fx_limit", id.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::Rate, None), done).wanting(state(after));
    approvals::agree(app, operator, asked).await
}

/// A limit as the audit log shows it.
pub(super) fn state(limit: &Limit) -> Value {
    json!({
        "is_paused": limit.is_paused,
        "exposure_cap_minor": limit.exposure_cap,
        "version": limit.version,
    })
}

/// What the platform holds of a currency because of exchanges, and what came and went.
#[derive(Debug, Serialize, ToSchema)]
pub struct PositionView {
    /// Always `fx_position`.
    pub object: &'static str,
    /// The currency.
    #[schema(value_type = String)]
    pub currency: Currency,
    /// What the platform holds of it, in minor units; below zero, what it owes.
    #[schema(value_type = String)]
    pub position_minor: Minor,
    /// Whether nothing is exchanged into it.
    pub is_paused: bool,
    /// How far the position may go below zero.
    #[schema(value_type = Option<String>)]
    pub exposure_cap_minor: Option<Minor>,
    /// What was exchanged into it, by the currency that was sold.
    pub bought_with: Vec<ExchangedView>,
}

/// What was exchanged within a pair.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExchangedView {
    /// The currency that was sold.
    #[schema(value_type = String)]
    pub currency: Currency,
    /// How often.
    pub count: i64,
    /// How much of it was sold, in minor units.
    #[schema(value_type = String)]
    pub sold_minor: Minor,
    /// How much of the other was bought for it, in minor units.
    #[schema(value_type = String)]
    pub bought_minor: Minor,
}

/// Which environment.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct EnvQuery {
    /// `test` or `live`; `live` if left out.
    pub env: Option<String>,
}

/// Show the platform's positions
#[utoipa::path(
    get, path = "/admin/v1/fx_positions", operation_id = "list_fx_positions", tag = "Operator",
    params(EnvQuery),
    responses((status = 200, description = "By currency", body = inline(Page<PositionView>))),
)]
pub async fn positions(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<EnvQuery>,
) -> Result<Page<PositionView>, Problem> {
    let env = listed_env(query.env)?;
    let limits = sql::limits(app.db.pool(), env).await?;
    let counted = sql::counted(app.db.pool(), env).await?;
    let mut currencies: Vec<Currency> = limits.iter().map(|limit| limit.currency).collect();
    currencies.extend(counted.held.keys().copied());
    currencies.sort_unstable();
    currencies.dedup();
    let view = |currency: Currency| {
        let limit = limits.iter().find(|limit| limit.currency == currency);
        let bought = counted.exchanged.iter().filter(|it| it.pair.to == currency);
        PositionView {
            object: "fx_position",
            currency,
            position_minor: counted.held.get(&currency).copied().unwrap_or_default(),
            is_paused: limit.is_some_and(|limit| limit.is_paused),
            exposure_cap_minor: limit.and_then(|limit| limit.exposure_cap),
            bought_with: bought.map(ExchangedView::of).collect(),
        }
    };
    Ok(Page::whole(currencies.into_iter().map(view).collect()))
}

impl ExchangedView {
    fn of(exchanged: &position::Exchanged) -> Self {
        Self {
            currency: exchanged.pair.from,
            count: exchanged.count,
            sold_minor: exchanged.sold,
            bought_minor: exchanged.bought,
        }
    }
}
