//! The calls about beneficiaries.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::{Capability, Permission};
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::texts;
use crate::http::{Body, IdempotencyKey, Page, PageQuery, Query, Replied, replied};
use crate::id::BeneficiaryId;
use crate::ledger::{Command, Effects, Reservation};
use crate::rails::{Block, Choice};
use crate::recipients::{Beneficiary, Saving, sql};

use super::upsert::{self, verify};
use super::view::BeneficiaryView;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "upsert_beneficiary",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::CurrencyNotActive,
            ErrorCode::FxFeaturesNotEnabled,
            ErrorCode::UnknownBankCode,
            ErrorCode::UnknownOperator,
            ErrorCode::InvalidAccount,
            ErrorCode::InvalidRecipient,
            ErrorCode::RecipientUnresolvable,
            ErrorCode::BeneficiaryBlacklisted,
            ErrorCode::IdempotencyKeyConflict,
            ErrorCode::IdempotencyConflict,
            ErrorCode::StateConflict,
        ],
    ),
    (
        "list_beneficiaries",
        &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
    ("retrieve_beneficiary", &[ErrorCode::BeneficiaryNotFound]),
    (
        "update_beneficiary",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::BeneficiaryNotFound,
            ErrorCode::InvalidField,
            ErrorCode::BeneficiaryBlacklisted,
            ErrorCode::StateConflict,
        ],
    ),
    (
        "delete_beneficiary",
        &[
            ErrorCode::PermissionDenied,
            ErrorCode::BeneficiaryNotFound,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
        ],
    ),
];

/// Whoever may pay a recipient saves it by paying; anybody else needs a permission for it.
fn require(caller: &Caller) -> Result<(), Problem> {
    match caller.key.can(Capability::PayoutCreate) {
        true => Ok(()),
        false => caller.require_permission(Permission::BeneficiaryManage),
    }
}

/// Save a beneficiary
///
/// New, changed or restored: the same recipient is never saved twice. Needs the capability
/// `payout_create` or the permission `beneficiary_manage`, as does every change of one.
#[utoipa::path(
    post, path = "/v1/beneficiaries", operation_id = "upsert_beneficiary", tag = "Beneficiaries",
    params(("Idempotency-Key" = Option<String>, Header, description = "Optional here; a repeat is recognised for as long as the operator keeps such keys: 90 days unless set otherwise")),
    request_body(content = Object, description = "`currency`, `name` (140 characters), the \
        recipient's fields, and optionally `email` (254), `phone` (40), `external_reference` (128)"),
    responses(
        (status = 200, description = "Changed or restored", body = BeneficiaryView),
        (status = 201, description = "Created", body = BeneficiaryView),
    ),
)]
pub async fn save(
    State(app): State<App>,
    caller: Caller,
    key: Option<IdempotencyKey>,
    body: Body<BTreeMap<String, Value>>,
) -> Result<Response, Problem> {
    require(&caller)?;
    let (merchant, env) = caller.owner();
    let reservation = key.map(|key| Reservation {
        key: format!("{merchant}/{env}/upsert_beneficiary/{}", key.as_str()),
        fingerprint: body.fingerprint("/v1/beneficiaries"),
        subject: String::new(),
        resource_id: String::new(),
        expires: true,
    });
    let (reply, is_replay) = upsert::upsert(&app, &caller, &body.value, reservation).await?;
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}

/// Filters of the list of beneficiaries.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ListQuery {
    /// Only beneficiaries that are paid in this currency, as an ISO 4217 code.
    pub currency: Option<String>,
    /// A part of a name or an account number, in any case.
    pub q: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List beneficiaries
#[utoipa::path(
    get, path = "/v1/beneficiaries", operation_id = "list_beneficiaries", tag = "Beneficiaries",
    params(ListQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<BeneficiaryView>))),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Page<BeneficiaryView>, Problem> {
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let currency = app.rails.filter(query.currency)?;
    let limit = page.limit()?;
    let cursor = match page.starting_after {
        Some(id) => match find(&app, &caller, &id).await {
            Ok(beneficiary) => Some(beneficiary.id.to_string()),
            Err(_) => return Err(PageQuery::unknown_cursor()),
        },
        None => None,
    };
    let filter = sql::Filter { currency, text: query.q.unwrap_or_default(), cursor, limit };
    let pool = app.db.pool();
    let filters = [filter.currency.as_str(), filter.text.as_str()];
    let permit = app.long_answers.reads.acquire_for(&filters, caller.owner()).await?;
    let found = sql::list_beneficiaries(pool, &app.keyring, caller.owner(), &filter).await?;
    drop(permit);
    Ok(Page::of(found.iter().map(|it| BeneficiaryView::of(it, &app.rails)).collect(), limit))
}

/// Retrieve a beneficiary
#[utoipa::path(
    get, path = "/v1/beneficiaries/{id}", operation_id = "retrieve_beneficiary",
    tag = "Beneficiaries", params(("id" = String, Path, description = "The beneficiary")),
    responses((status = 200, description = "It, deleted or not", body = BeneficiaryView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<BeneficiaryView>, Problem> {
    Ok(Json(BeneficiaryView::of(&find(&app, &caller, &id).await?, &app.rails)))
}

/// What may be changed about a beneficiary.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct UpdateBeneficiary {
    /// Your label for it.
    #[schema(max_length = 140)]
    pub name: Option<String>,
    /// Its email address; an empty text takes it away.
    #[schema(max_length = 254)]
    pub email: Option<String>,
    /// The telephone number, as the merchant writes it; an empty text takes it away.
    #[schema(max_length = 40)]
    pub phone: Option<String>,
    /// What is refused where it is a recipient's: that is deleted, and saved anew.
    #[serde(flatten)]
    #[schema(ignore)]
    others: BTreeMap<String, Value>,
}

/// Change a beneficiary
///
/// Needs what saving one needs.
#[utoipa::path(
    patch, path = "/v1/beneficiaries/{id}", operation_id = "update_beneficiary",
    tag = "Beneficiaries", params(("id" = String, Path, description = "The beneficiary")),
    request_body = UpdateBeneficiary,
    responses((status = 200, description = "It, changed", body = BeneficiaryView)),
)]
pub async fn update(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    body: Body<UpdateBeneficiary>,
) -> Result<Json<BeneficiaryView>, Problem> {
    require(&caller)?;
    let body = body.value;
    refuse_fields(&app, &body.others)?;
    let blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    if blank(&body.name) {
        let message = "name must not be empty.";
        return Err(Problem::because(ErrorCode::InvalidField, message).field("name"));
    }
    texts::NAME.check("name", body.name.as_deref())?;
    // What is sent empty is taken away.
    let changed = |sent: &Option<String>, before: &Option<String>| match sent {
        None => before.clone(),
        Some(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
    };
    texts::EMAIL.check("email", changed(&body.email, &None).as_deref())?;
    texts::PHONE.check("phone", changed(&body.phone, &None).as_deref())?;
    let before = active(&app, &caller, &id).await?;
    if before.is_blacklisted {
        return Err(Problem::new(ErrorCode::BeneficiaryBlacklisted));
    }
    let mut after = Beneficiary {
        name: body.name.clone().unwrap_or_else(|| before.name.clone()),
        email: changed(&body.email, &before.email),
        phone: changed(&body.phone, &before.phone),
        updated_at: app.now(),
        ..before.clone()
    };
    if let Some(name) = &body.name {
        rename(&app, &caller, (&before, &mut after), name).await?;
    }
    store(&app, &caller, (&before, &after), ("beneficiary.update", None)).await?;
    Ok(Json(BeneficiaryView::of(&after, &app.rails)))
}

/// Where the merchant's name is the one that is paid to, another one is another recipient's until
/// it was compared.
async fn rename(
    app: &App,
    caller: &Caller,
    (before, beneficiary): (&Beneficiary, &mut Beneficiary),
    name: &str,
) -> Result<(), Problem> {
    let (currency, method) = (beneficiary.currency, beneficiary.method.clone());
    let (rail, _) = app.rails.serving(currency, Choice::of(Some(&method)))?;
    let own = rail.declaration.recipient.name.as_str();
    if rail.overwrites_names() || beneficiary.recipient.get(own).is_empty() {
        return Ok(());
    }
    let known = beneficiary.recipient.clone();
    let given = |field: &str| {
        let known = known.own().find(|(known, _)| *known == field).map(|(_, value)| value.clone());
        if field == own { Some(name.to_owned()) } else { known }
    };
    let which = (method.as_str(), currency, Block::Identity);
    beneficiary.recipient = app.recipients.check(&rail, which, given).await?.fields.clone();
    beneficiary.correction = None;
    verify(app, caller, (Some(before), beneficiary)).await
}

/// Of every recipient, whatever its rail.
const NEVER_CHANGED: [&str; 2] = ["currency", "interac_email"];

/// Refuses fields of recipients, and blocks of them, which stay what they were.
fn refuse_fields(app: &App, sent: &BTreeMap<String, Value>) -> Result<(), Problem> {
    let rails = app.rails.all();
    let fields = || rails.iter().flat_map(|rail| &rail.declaration.recipient.fields);
    let is_of_one = |name: &&String| {
        let is_of_all = NEVER_CHANGED.contains(&name.as_str());
        is_of_all
            || fields().any(|field| {
                let place = field.place(Block::Saved);
                field.name == **name || place.split('.').next() == Some(name.as_str())
            })
    };
    match sent.keys().find(is_of_one) {
        Some(name) => {
            let message =
                format!("{name} cannot be changed: delete the beneficiary and save it anew.");
            Err(Problem::because(ErrorCode::InvalidField, message).field(name.clone()))
        }
        None => Ok(()),
    }
}

/// The body of a deletion.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeleteBeneficiary {
    /// Why it is deleted, for the audit log.
    #[schema(max_length = 500)]
    pub reason: Option<String>,
}

/// What a deletion answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct BeneficiaryDeleted {
    /// Always `beneficiary_delete_result`.
    #[schema(example = "beneficiary_delete_result")]
    pub object: &'static str,
    /// The id of the beneficiary that is deleted now.
    pub id: String,
    /// Always true.
    pub deleted: bool,
    /// Whether it had been deleted before.
    pub was_already_deleted: bool,
}

/// Delete a beneficiary
///
/// It can be restored by saving the same recipient again. Needs what saving one needs.
#[utoipa::path(
    delete, path = "/v1/beneficiaries/{id}", operation_id = "delete_beneficiary",
    tag = "Beneficiaries", params(("id" = String, Path, description = "The beneficiary")),
    request_body(content = Option<DeleteBeneficiary>),
    responses((status = 200, description = "Deleted", body = BeneficiaryDeleted)),
)]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<DeleteBeneficiary>,
) -> Result<Json<BeneficiaryDeleted>, Problem> {
    require(&caller)?;
    texts::REASON.check("reason", body.reason.as_deref())?;
    let mut before = find(&app, &caller, &id).await?;
    let deleted = |before: &Beneficiary, was_already_deleted| {
        Json(BeneficiaryDeleted {
            object: "beneficiary_delete_result",
            id: before.id.to_string(),
            deleted: true,
            was_already_deleted,
        })
    };
    while before.deleted_at.is_none() {
        let now = app.now();
        let after = Beneficiary { deleted_at: Some(now), updated_at: now, ..before.clone() };
        let done = ("beneficiary.delete", body.reason.clone());
        match store(&app, &caller, (&before, &after), done).await {
            Ok(()) => return Ok(deleted(&before, false)),
            // Somebody else has deleted or changed it meanwhile.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {
                before = find(&app, &caller, &id).await?;
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(deleted(&before, true))
}

async fn store(
    app: &App,
    caller: &Caller,
    (before, after): (&Beneficiary, &Beneficiary),
    (action, reason): (&'static str, Option<String>),
) -> Result<(), Problem> {
    let keys = (app.keyring.as_ref(), app.ids.as_ref());
    let saving = Saving::change(after, before.updated_at, keys)?;
    let mut record = upsert::record(caller, action, (Some(before), after));
    if let (Some(told), Some(reason)) = (&mut record.after, reason) {
        told["reason"] = Value::String(reason);
    }
    let record = record.row(&app.ids, app.now());
    let guard = saving.guard();
    let command = Command::new(move |locked| {
        let mut effects = Effects { rows: vec![record.clone()], ..Effects::default() };
        saving.write(locked, &mut effects);
        Ok(effects.and(()))
    });
    app.writer.request(command.guards(guard)).await?;
    app.recipients.forget();
    Ok(())
}

async fn active(app: &App, caller: &Caller, id: &str) -> Result<Beneficiary, Problem> {
    let found = find(app, caller, id).await?;
    match found.deleted_at {
        None => Ok(found),
        Some(_) => Err(Problem::new(ErrorCode::BeneficiaryNotFound)),
    }
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<Beneficiary, Problem> {
    let missing = || Problem::new(ErrorCode::BeneficiaryNotFound);
    let id = BeneficiaryId::parse(id).ok_or_else(missing)?;
    let pool = app.db.pool();
    let found = sql::get_beneficiary(pool, &app.keyring, caller.owner(), &id).await?;
    found.ok_or_else(missing)
}
