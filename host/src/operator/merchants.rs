//! Merchants: created, read, set up.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::merchant::default_timezone;
use crate::auth::{Merchant, MerchantStatus, Permission, Settings, sql};
use crate::caller::{Actor, Done, Operator};
use crate::clock::Moment;
use crate::config::ApprovalAct;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::MerchantId;
use crate::ledger::wallets::{self, NewWallet};
use crate::ledger::{Command, Guard};
use crate::money::Currency;

use super::rates::refuse_unserved;
use super::{invalid, required, write};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("create_merchant", &[ErrorCode::MissingField, ErrorCode::InvalidField]),
    ("list_merchants", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("retrieve_merchant", &[ErrorCode::NotFound]),
    (
        "update_merchant",
        &[
            ErrorCode::NotFound,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
            ErrorCode::RecentLoginRequired,
        ],
    ),
];

/// A new merchant.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateMerchant {
    /// Its name. Required.
    #[schema(example = "Acme Payments")]
    pub name: Option<String>,
    /// ISO 3166 alpha-2. Required.
    #[schema(example = "NG")]
    pub country: Option<String>,
    /// An IANA timezone, in which days begin; the country's if left out, or UTC where that is not
    /// known.
    #[schema(example = "Africa/Lagos")]
    pub timezone: Option<String>,
    /// Currencies to open wallets in; those of all rails if left out.
    pub currencies: Option<Vec<String>>,
}

/// A wallet of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantWallet {
    /// The wallet's id.
    pub id: String,
    /// The one currency that it holds.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
}

/// A merchant as the operator sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantView {
    /// Always `merchant`.
    #[schema(example = "merchant")]
    pub object: &'static str,
    /// The merchant's id.
    pub id: String,
    /// The name that operators see.
    pub name: String,
    /// ISO 3166 alpha-2.
    pub country: String,
    /// IANA timezone.
    pub timezone: String,
    /// Whether it may act.
    pub status: MerchantStatus,
    /// What the operator has set.
    #[serde(flatten)]
    pub settings: Settings,
    /// Its wallets.
    pub wallets: Vec<MerchantWallet>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
}

/// Create a merchant
#[utoipa::path(
    post, path = "/admin/v1/merchants", operation_id = "create_merchant", tag = "Operator",
    request_body = CreateMerchant,
    responses((status = 201, description = "With a wallet per currency and environment", body = MerchantView)),
)]
pub async fn create(
    State(app): State<App>,
    operator: Operator,
    body: Body<CreateMerchant>,
) -> Result<(StatusCode, Json<MerchantView>), Problem> {
    let body = body.value;
    let name = required("name", body.name)?;
    let country = required("country", body.country)?;
    if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(invalid("country", "must be two capital letters (ISO 3166)"));
    }
    let timezone = body.timezone.unwrap_or_else(|| default_timezone(&country).to_owned());
    let timezone = timezone_of(&timezone)?;
    let currencies = match body.currencies {
        Some(codes) => currencies_of(&codes)?,
        None => served(&app),
    };
    currencies.iter().try_for_each(|currency| refuse_unserved(&app, "currencies", *currency))?;
    let now = app.now();
    let merchant = Merchant {
        id: app.ids.id(),
        name,
        country,
        timezone,
        former_timezones: Vec::new(),
        status: MerchantStatus::Active,
        settings: Settings::default(),
        created_at: now,
        updated_at: now,
    };
    let mut rows = vec![sql::MERCHANTS.insert(&merchant)];
    rows.extend(new_wallets(&app, &merchant.id, &currencies));
    let done = Done {
        action: "merchant.create",
        subject: ("merchant", merchant.id.as_str()),
        before: None,
        after: Some(state(&merchant)),
    };
    write(&app, &operator, done, Command::rows(rows)).await?;
    Ok((StatusCode::CREATED, Json(view(&app, &merchant).await?)))
}

/// A merchant as the audit log shows it.
fn state(merchant: &Merchant) -> Value {
    let Merchant { name, country, status, settings, timezone, .. } = merchant;
    json!({
        "name": name,
        "country": country,
        "status": status,
        "timezone": timezone.iana_name(),
        "settings": settings,
    })
}

/// List merchants
#[utoipa::path(
    get, path = "/admin/v1/merchants", operation_id = "list_merchants", tag = "Operator",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<MerchantView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Page<MerchantView>, Problem> {
    let limit = page.limit()?;
    let cursor = page.starting_after.as_deref();
    if let Some(id) = cursor {
        find(&app, id).await.map_err(|_| PageQuery::unknown_cursor())?;
    }
    let mut views = Vec::new();
    for merchant in sql::list_merchants(app.db.pool(), cursor, limit).await? {
        views.push(view(&app, &merchant).await?);
    }
    Ok(Page::of(views, limit))
}

/// Retrieve a merchant
#[utoipa::path(
    get, path = "/admin/v1/merchants/{id}", operation_id = "retrieve_merchant", tag = "Operator",
    params(("id" = String, Path, description = "The merchant")),
    responses((status = 200, description = "The merchant", body = MerchantView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<MerchantView>, Problem> {
    let merchant = find_for(&app, &actor, &id).await?;
    Ok(Json(view(&app, &merchant).await?))
}

/// Change a merchant
///
/// `status`, `timezone` and any of the settings. Objects are merged key by key; null takes a
/// key away. Where `approvals.two_people` names `limits`, limits and thresholds take two people.
/// A member of the team with the permission `settings_manage` may accept `terms`, and say from which
/// amounts on payments take how many people, whether they give one-time codes, and whether
/// recipients are sent receipts.
#[utoipa::path(
    patch, path = "/admin/v1/merchants/{id}", operation_id = "update_merchant", tag = "Operator",
    params(("id" = String, Path, description = "The merchant")),
    request_body = Settings,
    responses(
        (status = 200, description = "The merchant, changed", body = MerchantView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn update(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    body: Body<Map<String, Value>>,
) -> Result<Response, Problem> {
    let before = find_for(&app, &actor, &id).await?;
    let mut sent = body.value;
    refuse_of_team(&app, &actor, &sent)?;
    let wanted = Value::Object(sent.clone());
    let mut after = before.clone();
    if let Some(status) = sent.remove("status") {
        let status = status.as_str().and_then(MerchantStatus::parse);
        after.status =
            status.ok_or_else(|| invalid("status", "must be active, suspended or closed"))?;
    }
    if let Some(timezone) = sent.remove("timezone") {
        after.change_timezone(timezone_of(timezone.as_str().unwrap_or(""))?, app.now());
    }
    refuse_misspelt(&app, &before.settings, &sent)?;
    after.settings = merged(&before.settings, sent)?;
    let mut into_itself = after.settings.auto_convert.iter().filter(|(from, to)| from == to);
    if let Some((currency, _)) = into_itself.next() {
        let field = format!("auto_convert.{currency}");
        return Err(invalid(&field, "must be another currency"));
    }
    for (from, targets) in after.settings.fx_pairs.iter().flatten() {
        if targets.contains(from) {
            let field = format!("fx_pairs.{from}");
            return Err(invalid(&field, "must be other currencies"));
        }
    }
    after.settings.check()?;
    after.updated_at = app.now();
    let agreement = match agree(&app, &actor, (&before, &after), wanted).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let mut rows = vec![sql::MERCHANT_CHANGES.change(&after)];
    if let Some(currencies) = &after.settings.currencies {
        let open = wallet_currencies(&app, &after.id).await?;
        let missing: BTreeSet<Currency> =
            currencies.iter().filter(|currency| !open.contains(currency)).copied().collect();
        rows.extend(new_wallets(&app, &after.id, &missing));
    }
    let as_read = Guard {
        on: &sql::MERCHANT_VERSIONS,
        id: after.id.to_string(),
        version: before.updated_at.micros(),
    };
    let done = Done {
        action: "merchant.update",
        subject: ("merchant", after.id.as_str()),
        before: Some(state(&before)),
        after: Some(agreement.told(state(&after))),
    };
    rows.extend(agreement.rows);
    let command = Command::rows(rows).guards([as_read]).guards(agreement.guards);
    write(&app, &actor, done, command).await?;
    Ok(Json(view(&app, &after).await?).into_response())
}

/// What a team decides about its own account.
const OF_TEAMS: &[&str] = &[
    "terms",
    "dual_control_threshold_minor",
    "batch_approval_threshold_minor",
    "payout_approval_tiers",
    "batch_approval_tiers",
    "approval_otp",
    "receipts",
];

/// Settings that are objects of lists.
const OF_LISTS: &[&str] = &["fx_pairs", "payout_approval_tiers", "batch_approval_tiers"];

/// Refuses a member who asks for what only operators decide.
fn refuse_of_team(app: &App, actor: &Actor, sent: &Map<String, Value>) -> Result<(), Problem> {
    if actor.session.is_none() {
        return Ok(());
    }
    actor.require(Permission::SettingsManage)?;
    actor.require_recent(app.now())?;
    match sent.keys().find(|name| !OF_TEAMS.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("{name} is set by the operator; yours are {}.", OF_TEAMS.join(", "));
            Err(Problem::because(ErrorCode::PermissionDenied, message).field(name.clone()))
        }
    }
}

/// Whether one person is enough for this change, or this completes their number: limits are what
/// stands between a merchant's key and all of its money, and in another timezone it is another day.
async fn agree(
    app: &App,
    actor: &Actor,
    (before, after): (&Merchant, &Merchant),
    wanted: Value,
) -> Result<Verdict, Problem> {
    let limits = |merchant: &Merchant| {
        let settings = merchant.settings.clone();
        let payouts = (settings.dual_control_threshold_minor, settings.payout_approval_tiers);
        let batches = (settings.batch_approval_threshold_minor, settings.batch_approval_tiers);
        let days = merchant.timezone.clone();
        (settings.limits, days, payouts, batches, settings.approval_otp)
    };
    if limits(before) == limits(after) {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let done = ("merchant.update", ("merchant", after.id.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::Limits, None), done);
    let asked = asked.of(&after.id).wanting(wanted);
    approvals::agree(app, actor, asked).await
}

/// Settings by currency, and those that are currencies.
const BY_CURRENCY: &[&str] = &[
    "limits",
    "dual_control_threshold_minor",
    "batch_approval_threshold_minor",
    "payout_approval_tiers",
    "batch_approval_tiers",
    "fx_pairs",
    "auto_convert",
];
/// See [`BY_CURRENCY`].
const OF_CURRENCIES: &[&str] = &["currencies", "fx_sources"];

/// Refuses currencies that nobody can hold: whoever misspells one believes a limit to be in force.
/// What is as it was may be of a rail that is gone.
fn refuse_misspelt(app: &App, before: &Settings, sent: &Map<String, Value>) -> Result<(), Problem> {
    let before = serde_json::to_value(before).map_err(Problem::internal)?;
    let served = |field: String, code: &str| match Currency::parse(code) {
        Some(currency) => refuse_unserved(app, &field, currency),
        // Its form is looked at with all others.
        None => Ok(()),
    };
    for (name, value) in sent.iter().filter(|(name, value)| before.get(name) != Some(value)) {
        let codes = value.as_array().filter(|_| OF_CURRENCIES.contains(&name.as_str()));
        for code in codes.into_iter().flatten().filter_map(Value::as_str) {
            served(name.clone(), code)?;
        }
        let places = value.as_object().filter(|_| BY_CURRENCY.contains(&name.as_str()));
        // What is taken away may be what is not served any more.
        let is_new = |code: &str, to: &Value| !to.is_null() && before[name].get(code) != Some(to);
        for (code, to) in places.into_iter().flatten().filter(|(code, to)| is_new(code, to)) {
            let field = format!("{name}.{code}");
            served(field.clone(), code)?;
            let others = to.as_array().into_iter().flatten().chain([to]);
            let others: Vec<&str> = others.filter_map(Value::as_str).collect();
            if matches!(name.as_str(), "fx_pairs" | "auto_convert") {
                others.into_iter().try_for_each(|other| served(field.clone(), other))?;
            }
        }
    }
    Ok(())
}

/// The settings with what was sent on top.
fn merged(before: &Settings, sent: Map<String, Value>) -> Result<Settings, Problem> {
    let mut settings = serde_json::to_value(before).map_err(Problem::internal)?;
    for (name, value) in sent {
        match (settings.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(changes)) => {
                for (key, value) in changes {
                    match value {
                        // It would be taken for an object's fields in order.
                        Value::Array(items)
                            if !OF_LISTS.contains(&name.as_str())
                                || items.iter().any(Value::is_array) =>
                        {
                            return Err(invalid(&format!("{name}.{key}"), "must not be a list"));
                        }
                        Value::Null => {
                            known.remove(&key);
                        }
                        // One limit of a currency leaves its others as they are.
                        Value::Object(changes) => {
                            match known.entry(key).or_insert_with(|| json!({})) {
                                Value::Object(within) => within.extend(changes),
                                other => *other = Value::Object(changes),
                            }
                        }
                        value => {
                            known.insert(key, value);
                        }
                    }
                }
            }
            // Unset means the default.
            (_, Value::Null) => {
                settings.as_object_mut().and_then(|known| known.remove(&name));
            }
            (Some(Value::Object(_)), _) => return Err(invalid(&name, "must be an object")),
            (_, value) => settings[&name] = value,
        }
    }
    serde_path_to_error::deserialize(settings).map_err(|error| {
        let path = error.path().to_string();
        let mut why = error.into_inner().to_string();
        // Beside the settings themselves, two other fields are changed by this call.
        let is_within_one = path.contains(['.', '[']);
        if why.starts_with("unknown field") && !is_within_one {
            why = why.replace("expected one of ", "expected one of `status`, `timezone`, ");
        }
        let message = format!("{path}: {why}.");
        Problem::because(ErrorCode::InvalidField, message).field(path)
    })
}

/// The merchant of this id.
pub(super) async fn find(app: &App, id: &str) -> Result<Merchant, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such merchant.");
    let id = MerchantId::parse(id).ok_or_else(missing)?;
    sql::get_merchant(app.db.pool(), &id).await?.ok_or_else(missing)
}

/// The same, if it is theirs to see.
pub(super) async fn find_for(app: &App, actor: &Actor, id: &str) -> Result<Merchant, Problem> {
    let merchant = find(app, id).await?;
    match actor.sees(&merchant.id) {
        true => Ok(merchant),
        false => Err(Problem::because(ErrorCode::NotFound, "No such merchant.")),
    }
}

async fn view(app: &App, merchant: &Merchant) -> Result<MerchantView, Problem> {
    let mut all = Vec::new();
    for env in [Env::Test, Env::Live] {
        for wallet in wallets::list_wallets(app.db.pool(), (&merchant.id, env)).await? {
            let (id, currency) = (wallet.id.to_string(), wallet.currency.to_string());
            all.push(MerchantWallet { id, currency, env: env.as_str() });
        }
    }
    Ok(MerchantView {
        object: "merchant",
        id: merchant.id.to_string(),
        name: merchant.name.clone(),
        country: merchant.country.clone(),
        timezone: merchant.timezone.iana_name().unwrap_or("UTC").to_owned(),
        status: merchant.status,
        settings: merchant.settings.clone(),
        wallets: all,
        created_at: merchant.created_at,
        updated_at: merchant.updated_at,
    })
}

async fn wallet_currencies(app: &App, id: &MerchantId) -> Result<BTreeSet<Currency>, Problem> {
    let wallets = wallets::list_wallets(app.db.pool(), (id, Env::Live)).await?;
    Ok(wallets.into_iter().map(|wallet| wallet.currency).collect())
}

fn new_wallets(
    app: &App,
    merchant: &MerchantId,
    currencies: &BTreeSet<Currency>,
) -> Vec<RowChange> {
    let now = app.now();
    let each = currencies.iter().flat_map(|&currency| {
        [Env::Test, Env::Live].map(|env| {
            wallets::NEW_WALLETS.insert(&NewWallet {
                id: app.ids.id(),
                merchant_id: merchant.clone(),
                env,
                currency,
                created_at: now,
            })
        })
    });
    each.collect()
}

fn served(app: &App) -> BTreeSet<Currency> {
    let rails = app.rails.all();
    rails.iter().flat_map(|rail| rail.declaration.currencies()).collect()
}

fn currencies_of(codes: &[String]) -> Result<BTreeSet<Currency>, Problem> {
    let parsed = codes.iter().map(|code| Currency::parse(code));
    let parsed: Option<BTreeSet<Currency>> = parsed.collect();
    parsed.ok_or_else(|| invalid("currencies", "must be ISO 4217 codes"))
}

fn timezone_of(name: &str) -> Result<TimeZone, Problem> {
    TimeZone::get(name)
        .map_err(|_| invalid("timezone", "must be an IANA name such as Africa/Lagos"))
}
