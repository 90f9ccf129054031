//! API keys: made, listed, replaced, revoked. A secret is shown once.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::key::{SHOWN_LENGTH, TooWide, new_secret, parse_network};
use crate::auth::sql::{self, KeyAt, StoredKey};
use crate::auth::{ApiKey, Capability, Permission};
use crate::caller::{Actor, Done};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::{KeyId, MerchantId};
use crate::ledger::{Command, Effects};

use super::{invalid, required, write};
use crate::approvals::{self, ApprovalView, Asked, Verdict};

/// How long a replaced key goes on working, unless the request says otherwise.
const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
const GRACE_MAX_S: u64 = 30 * 24 * 3600;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "create_key",
        &[
            ErrorCode::NotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
            ErrorCode::RecentLoginRequired,
        ],
    ),
    ("list_keys", &[ErrorCode::NotFound, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("retrieve_key", &[ErrorCode::NotFound]),
    (
        "rotate_key",
        &[
            ErrorCode::NotFound,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
            ErrorCode::RecentLoginRequired,
        ],
    ),
    ("revoke_key", &[ErrorCode::NotFound]),
];

/// A new key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateKey {
    /// `test` or `live`. Required.
    #[schema(example = "test")]
    pub env: Option<String>,
    /// For people. Required.
    #[schema(example = "payroll server")]
    pub label: Option<String>,
    /// What calls with this key may do.
    pub capabilities: Vec<Capability>,
    /// What the one behind it may do: what calls with a key ask for.
    pub permissions: Vec<Permission>,
    /// Addresses and networks that it may be used from; empty means any. A member of a team names
    /// one at least.
    #[schema(example = json!(["203.0.113.0/24"]))]
    pub ip_allowlist: Vec<String>,
    /// When it stops working.
    pub expires_at: Option<String>,
}

/// A key as it is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKey {
    /// The secret; shown now and never again.
    pub secret: String,
    /// The key as it is shown ever after.
    #[serde(flatten)]
    pub key: KeyView,
}

/// Create an API key
#[utoipa::path(
    post, path = "/admin/v1/merchants/{id}/keys", operation_id = "create_key", tag = "Operator",
    params(("id" = String, Path, description = "The merchant")),
    request_body = CreateKey,
    responses(
        (status = 201, description = "With its secret, once", body = NewKey),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn create(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    body: Body<CreateKey>,
) -> Result<Response, Problem> {
    actor.require(Permission::KeyManage)?;
    let merchant = super::merchants::find_for(&app, &actor, &id).await?;
    let key = understand(&app, &actor, merchant.id, body.value)?;
    refuse_of_team(&app, &actor, &key)?;
    let owner = (&key.merchant_id, key.env);
    if sql::count_usable_keys(app.db.pool(), owner, app.now()).await? >= limits::KEYS_MAX {
        let (most, env) = (limits::KEYS_MAX, key.env);
        let message = format!("{most} {env} keys of this merchant work: revoke one first.");
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let merchant_id = key.merchant_id.clone();
    let done = ("key.create", ("merchant", merchant_id.as_str()));
    let asked = Asked::by_policy(&app, (ApprovalAct::Key, None), done);
    let asked = asked.of(&merchant_id).wanting(state(&key));
    let agreement = match approvals::agree(&app, &actor, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let Issued { new, key, row } = issue(&app, key);
    let mut rows = vec![row];
    rows.extend(agreement.rows.iter().cloned());
    let done = Done {
        action: "key.create",
        subject: ("api_key", &new.key.id),
        before: None,
        after: Some(agreement.told(state(&key))),
    };
    write(&app, &actor, done, Command::rows(rows).guards(agreement.guards)).await?;
    Ok((StatusCode::CREATED, Json(new)).into_response())
}

/// Words that were sent, each of them once.
fn once_each<T: PartialEq>(words: Vec<T>) -> Vec<T> {
    let mut each = Vec::new();
    for word in words {
        if !each.contains(&word) {
            each.push(word);
        }
    }
    each
}

/// Permissions that were sent, which must be some that calls with a key ask for.
fn of_keys(permissions: Vec<Permission>) -> Result<Vec<Permission>, Problem> {
    match permissions.iter().enumerate().find(|(_, permission)| !permission.is_of_keys()) {
        None => Ok(once_each(permissions)),
        Some((at, odd)) => {
            let odd: &str = odd.into();
            let why = format!("must not be {odd}: no call with a key asks for it");
            Err(invalid(&format!("permissions[{at}]"), &why))
        }
    }
}

/// An allow-list that was sent.
fn networks(texts: &[String]) -> Result<Vec<IpNet>, Problem> {
    if texts.len() > limits::KEY_NETWORKS_MAX {
        let most = limits::KEY_NETWORKS_MAX;
        return Err(invalid("ip_allowlist", &format!("must hold {most} networks at most")));
    }
    let networks: Option<Vec<IpNet>> = texts.iter().map(|text| parse_network(text)).collect();
    let networks = networks
        .ok_or_else(|| invalid("ip_allowlist", "must hold addresses or networks in CIDR form"))?;
    refuse_too_wide(&networks)?;
    Ok(networks)
}

/// Refuses an allow-list that says nothing of where a key is used.
fn refuse_too_wide(networks: &[IpNet]) -> Result<(), Problem> {
    let ((v4, v6), most) = (limits::KEY_PREFIX_MIN, limits::KEY_WIDEST_MAX);
    let why = match TooWide::of(networks) {
        None => return Ok(()),
        Some(TooWide::Network(network)) => {
            format!("must hold no network wider than /{v4}, or /{v6} of IPv6; {network} is")
        }
        Some(TooWide::Together) => {
            format!("must hold no more addresses of IPv4 than {most} networks of /{v4}")
        }
    };
    Err(invalid("ip_allowlist", &why))
}

/// The key that a body describes, without a secret yet.
fn understand(
    app: &App,
    actor: &Actor,
    merchant_id: MerchantId,
    body: CreateKey,
) -> Result<ApiKey, Problem> {
    let env = Env::parse(&required("env", body.env)?);
    let env = env.ok_or_else(|| invalid("env", "must be test or live"))?;
    let expires_at = match body.expires_at.as_deref().map(Moment::parse) {
        None => None,
        Some(Some(at)) if at <= app.now() => return Err(invalid("expires_at", "must lie ahead")),
        Some(Some(at)) => Some(at),
        Some(None) => return Err(invalid("expires_at", "must be an instant in RFC 3339 form")),
    };
    Ok(ApiKey {
        id: app.ids.id(),
        merchant_id,
        env,
        label: required("label", body.label)?,
        prefix: String::new(),
        capabilities: once_each(body.capabilities),
        permissions: of_keys(body.permissions)?,
        ip_allowlist: networks(&body.ip_allowlist)?,
        expires_at,
        grace_until: None,
        revoked_at: None,
        created_by: actor.name.clone(),
        created_at: app.now(),
    })
}

/// A key as the audit log shows it: whatever decides what it may do, and never its secret.
fn state(key: &ApiKey) -> Value {
    let mut state = json!({
        "env": key.env.as_str(),
        "label": key.label,
        "capabilities": key.capabilities,
        "permissions": key.permissions,
        "ip_allowlist": key.ip_allowlist,
        "expires_at": key.expires_at,
    });
    if !key.prefix.is_empty() {
        state["prefix"] = json!(key.prefix);
    }
    state
}

/// A key as it is shown after its first moment: without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    /// Always `api_key`.
    #[schema(example = "api_key")]
    pub object: &'static str,
    /// The key's id, which is no secret.
    pub id: String,
    /// Whose it is.
    pub merchant_id: String,
    /// The first characters of its secret.
    pub prefix: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// A name for the key; it decides nothing.
    pub label: String,
    /// What calls with this key may do.
    pub capabilities: Vec<Capability>,
    /// What the one behind it may do.
    pub permissions: Vec<Permission>,
    /// Networks that it may be used from; empty means any.
    pub ip_allowlist: Vec<String>,
    /// When it stops working.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Moment>,
    /// Until when it works although it was replaced.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub grace_until: Option<Moment>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Moment>,
    /// The operator or member who made it, and may not approve payouts that are made with it.
    pub created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// List a merchant's API keys
///
/// Revoked and replaced ones included, never a secret.
#[utoipa::path(
    get, path = "/admin/v1/merchants/{id}/keys", operation_id = "list_keys", tag = "Operator",
    params(("id" = String, Path, description = "The merchant"), PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<KeyView>))),
)]
pub async fn list(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Page<KeyView>, Problem> {
    actor.require(Permission::KeyManage)?;
    let merchant = super::merchants::find_for(&app, &actor, &id).await?;
    let limit = page.limit()?;
    let cursor = page.starting_after.as_deref();
    if let Some(id) = cursor
        && find(&app, &actor, id).await.ok().is_none_or(|key| key.merchant_id != merchant.id)
    {
        return Err(PageQuery::unknown_cursor());
    }
    let keys = sql::list_keys(app.db.pool(), &merchant.id, (cursor, limit)).await?;
    Ok(Page::of(keys.into_iter().map(view).collect(), limit))
}

/// Retrieve an API key
#[utoipa::path(
    get, path = "/admin/v1/keys/{id}", operation_id = "retrieve_key", tag = "Operator",
    params(("id" = String, Path, description = "The key")),
    responses((status = 200, description = "The key, without its secret", body = KeyView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<KeyView>, Problem> {
    actor.require(Permission::KeyManage)?;
    Ok(Json(view(find(&app, &actor, &id).await?)))
}

fn view(key: ApiKey) -> KeyView {
    KeyView {
        object: "api_key",
        id: key.id.to_string(),
        merchant_id: key.merchant_id.to_string(),
        prefix: key.prefix,
        env: key.env.as_str(),
        label: key.label,
        capabilities: key.capabilities,
        permissions: key.permissions,
        ip_allowlist: key.ip_allowlist.iter().map(ToString::to_string).collect(),
        expires_at: key.expires_at,
        grace_until: key.grace_until,
        revoked_at: key.revoked_at,
        created_by: key.created_by,
        created_at: key.created_at,
    }
}

/// How to replace a key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RotateKey {
    /// Seconds that the old key goes on working: a day if left out, 30 days at most.
    pub grace_seconds: Option<u64>,
}

/// Replace an API key
#[utoipa::path(
    post, path = "/admin/v1/keys/{id}/rotate", operation_id = "rotate_key", tag = "Operator",
    params(("id" = String, Path, description = "The key")),
    request_body(content = Option<RotateKey>),
    responses(
        (status = 201, description = "The new key, with its secret", body = NewKey),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn rotate(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<RotateKey>,
) -> Result<Response, Problem> {
    actor.require(Permission::KeyManage)?;
    let old = find(&app, &actor, &id).await?;
    refuse_of_team(&app, &actor, &old)?;
    if old.revoked_at.is_some() || old.grace_until.is_some() {
        return Err(Problem::because(
            ErrorCode::StateConflict,
            "This key was replaced or revoked.",
        ));
    }
    if old.expires_at.is_some_and(|at| at <= app.now()) {
        let message = "This key has expired, and one in its place would have, too. Make a new one.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let grace = match body.grace_seconds {
        None => GRACE_DEFAULT,
        Some(seconds) if seconds <= GRACE_MAX_S => Duration::from_secs(seconds),
        Some(_) => return Err(invalid("grace_seconds", "must be at most 30 days")),
    };
    let old_id = old.id.to_string();
    let done = ("key.rotate", ("api_key", old_id.as_str()));
    let asked = Asked::by_policy(&app, (ApprovalAct::Key, None), done)
        .of(&old.merchant_id)
        .wanting(json!({ "grace_seconds": grace.as_secs() }));
    let agreement = match approvals::agree(&app, &actor, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let now = app.now();
    let (id, created_by) = (app.ids.id(), actor.name.clone());
    let Issued { new, key, row } =
        issue(&app, ApiKey { id, created_at: now, created_by, ..old.clone() });
    let until = now.after(grace);
    let graced = KeyAt { id: old.id.clone(), at: until };
    let mut rows = vec![row, sql::KEY_GRACES.change(&graced)];
    rows.extend(agreement.rows.iter().cloned());
    let mut after = state(&key);
    (after["id"], after["grace_until"]) = (json!(new.key.id), json!(until));
    let done = Done {
        action: "key.rotate",
        subject: ("api_key", &old_id),
        before: Some(state(&old)),
        after: Some(agreement.told(after)),
    };
    let command = Command::new(move |locked| {
        // Of two that replace it at once, one finds it replaced; what was revoked stays so.
        let gone = || Problem::new(ErrorCode::StateConflict);
        let known = locked.row(&sql::KEY_ENDINGS, old.id.as_str()).ok_or_else(gone)?;
        match (known.maybe_int("grace_until")?, known.maybe_int("revoked_at")?) {
            (None, None) => Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(())),
            _ => Err(gone()),
        }
    });
    let command = command.row(&sql::KEY_ENDINGS, old_id.clone()).guards(agreement.guards);
    write(&app, &actor, done, command).await?;
    Ok((StatusCode::CREATED, Json(new)).into_response())
}

/// A key that was revoked.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedKey {
    /// Always `api_key`.
    #[schema(example = "api_key")]
    pub object: &'static str,
    /// The key's id.
    pub id: String,
    /// Always true.
    pub revoked: bool,
}

/// Revoke an API key
#[utoipa::path(
    post, path = "/admin/v1/keys/{id}/revoke", operation_id = "revoke_key", tag = "Operator",
    params(("id" = String, Path, description = "The key")),
    responses((status = 200, description = "It works no more", body = RevokedKey)),
)]
pub async fn revoke(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<RevokedKey>, Problem> {
    actor.require(Permission::KeyManage)?;
    let key = find(&app, &actor, &id).await?;
    let id = key.id.to_string();
    let revoked = KeyAt { id: key.id.clone(), at: app.now() };
    let done = Done {
        action: "key.revoke",
        subject: ("api_key", &id),
        before: Some(state(&key)),
        after: None,
    };
    let rows = vec![sql::KEY_REVOCATIONS.change(&revoked)];
    write(&app, &actor, done, Command::rows(rows)).await?;
    Ok(Json(RevokedKey { object: "api_key", id, revoked: true }))
}

/// A key that has its secret now.
struct Issued {
    /// As it is shown once.
    new: NewKey,
    /// As it is kept.
    key: ApiKey,
    /// The row that keeps it, with the hash of its secret.
    row: RowChange,
}

/// Gives a key its secret.
fn issue(app: &App, key: ApiKey) -> Issued {
    let secret = new_secret(&app.ids, key.env);
    let key = ApiKey { prefix: secret[..SHOWN_LENGTH].to_owned(), ..key };
    let stored = StoredKey { hash: app.keyring.hash_api_key(&secret), key };
    let row = sql::KEYS.insert(&stored);
    let key = stored.key;
    Issued { new: NewKey { secret, key: view(key.clone()) }, key, row }
}

/// A key, if it is theirs to see.
async fn find(app: &App, actor: &Actor, id: &str) -> Result<ApiKey, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such key.");
    let id = KeyId::parse(id).ok_or_else(missing)?;
    let key = sql::get_key(app.db.pool(), &id).await?;
    key.filter(|key| actor.sees(&key.merchant_id)).ok_or_else(missing)
}

/// Refuses a member of a team who has not proved who they are, and one who would get a key to do
/// what they may not: that may be used from anywhere, or in live has more than they have.
fn refuse_of_team(app: &App, actor: &Actor, key: &ApiKey) -> Result<(), Problem> {
    let Some(member) = actor.member() else { return Ok(()) };
    actor.require_recent(app.now())?;
    if key.ip_allowlist.is_empty() {
        let message = "ip_allowlist must name at least one address or network.";
        return Err(Problem::because(ErrorCode::InvalidField, message).field("ip_allowlist"));
    }
    refuse_too_wide(&key.ip_allowlist)?;
    let lacking = match key.env {
        Env::Live => member.lacks_for(&key.capabilities, &key.permissions),
        Env::Test => Vec::new(),
    };
    match lacking.first() {
        None => Ok(()),
        Some(permission) => {
            Err(permission.missing_of_member().detail(json!({ "missing": lacking })))
        }
    }
}
