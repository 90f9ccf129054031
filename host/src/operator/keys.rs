//! API keys: made, replaced, revoked. A secret is shown once.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::key::{SHOWN_LENGTH, new_secret, parse_network};
use crate::auth::sql::{self, KeyAt, StoredKey};
use crate::auth::{ApiKey, Capability, Permission};
use crate::caller::Operator;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::http::body::OptionalBody;
use crate::id::KeyId;
use crate::ledger::{Command, Effects};

use super::{Done, invalid, required, write};

/// How long a replaced key goes on working, unless the request says otherwise.
const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
const GRACE_MAX_S: u64 = 30 * 24 * 3600;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("create_key", &[ErrorCode::NotFound, ErrorCode::MissingField, ErrorCode::InvalidField]),
    ("rotate_key", &[ErrorCode::NotFound, ErrorCode::InvalidField, ErrorCode::StateConflict]),
    ("revoke_key", &[ErrorCode::NotFound]),
];

/// A new key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct CreateKey {
    /// `test` or `live`. Required.
    #[schema(example = "test")]
    pub env: Option<String>,
    /// For people. Required.
    #[schema(example = "payroll server")]
    pub label: Option<String>,
    /// What calls with this key may do.
    pub capabilities: Vec<Capability>,
    /// What the one behind it may do.
    pub permissions: Vec<Permission>,
    /// Addresses and networks that it may be used from; empty means any.
    #[schema(example = json!(["203.0.113.0/24"]))]
    pub ip_allowlist: Vec<String>,
    /// When it stops working.
    pub expires_at: Option<String>,
}

/// A key as it is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKey {
    /// Always `api_key`.
    #[schema(example = "api_key")]
    pub object: &'static str,
    /// The key's id, which is no secret.
    pub id: String,
    /// The secret; shown now and never again.
    pub secret: String,
    /// Its first characters, by which it is known from now on.
    pub prefix: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// A name for the key; it decides nothing.
    pub label: String,
    /// What calls with this key may do.
    pub capabilities: Vec<Capability>,
    /// What the one behind it may do.
    pub permissions: Vec<Permission>,
    /// Networks that it may be used from.
    pub ip_allowlist: Vec<String>,
    /// When it stops working.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Moment>,
}

/// Create an API key
#[utoipa::path(
    post, path = "/admin/v1/merchants/{id}/keys", operation_id = "create_key", tag = "Operator",
    params(("id" = String, Path, description = "The merchant")),
    request_body = CreateKey,
    responses((status = 201, description = "With its secret, once", body = NewKey)),
)]
pub async fn create(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<CreateKey>,
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    let merchant = super::merchants::find(&app, &id).await?;
    let body = body.value;
    let env = Env::parse(&required("env", body.env)?);
    let env = env.ok_or_else(|| invalid("env", "must be test or live"))?;
    let networks: Option<Vec<IpNet>> =
        body.ip_allowlist.iter().map(|text| parse_network(text)).collect();
    let networks = networks
        .ok_or_else(|| invalid("ip_allowlist", "must hold addresses or networks in CIDR form"))?;
    let expires_at = match body.expires_at.as_deref().map(Moment::parse) {
        None => None,
        Some(Some(at)) => Some(at),
        Some(None) => return Err(invalid("expires_at", "must be an instant in RFC 3339 form")),
    };
    let key = ApiKey {
        id: app.ids.id(),
        merchant_id: merchant.id,
        env,
        label: required("label", body.label)?,
        prefix: String::new(),
        capabilities: body.capabilities,
        permissions: body.permissions,
        ip_allowlist: networks,
        expires_at,
        grace_until: None,
        revoked_at: None,
        created_at: app.now(),
    };
    let (new, row) = issue(&app, key);
    let done = Done {
        action: "key.create",
        subject: ("api_key", &new.id),
        before: None,
        after: Some(json!({ "prefix": new.prefix, "label": new.label, "env": new.env })),
    };
    write(&app, &operator, done, Command::rows(vec![row])).await?;
    Ok((StatusCode::CREATED, Json(new)))
}

/// How to replace a key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct RotateKey {
    /// Seconds that the old key goes on working: a day if left out, 30 days at most.
    pub grace_seconds: Option<u64>,
}

/// Replace an API key
#[utoipa::path(
    post, path = "/admin/v1/keys/{id}/rotate", operation_id = "rotate_key", tag = "Operator",
    params(("id" = String, Path, description = "The key")),
    request_body(content = Option<RotateKey>),
    responses((status = 201, description = "The new key, with its secret", body = NewKey)),
)]
pub async fn rotate(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<RotateKey>,
) -> Result<(StatusCode, Json<NewKey>), Problem> {
    let old = find(&app, &id).await?;
    if old.revoked_at.is_some() || old.grace_until.is_some() {
        return Err(Problem::because(
            ErrorCode::StateConflict,
            "This key was replaced or revoked.",
        ));
    }
    let grace = match body.grace_seconds {
        None => GRACE_DEFAULT,
        Some(seconds) if seconds <= GRACE_MAX_S => Duration::from_secs(seconds),
        Some(_) => return Err(invalid("grace_seconds", "must be at most 30 days")),
    };
    let now = app.now();
    let key = ApiKey { id: app.ids.id(), created_at: now, ..old.clone() };
    let (new, row) = issue(&app, key);
    let until = now.after(grace);
    let old_id = old.id.to_string();
    let graced = KeyAt { id: old.id.clone(), at: until };
    let rows = vec![row, sql::KEY_GRACES.change(&graced)];
    let done = Done {
        action: "key.rotate",
        subject: ("api_key", &old_id),
        before: Some(json!({ "prefix": old.prefix })),
        after: Some(json!({ "prefix": new.prefix, "id": new.id, "grace_until": until })),
    };
    let command = Command::new(move |locked| {
        // Of two that replace it at once, one finds it replaced.
        let known = locked.row(&sql::KEY_REPLACEMENTS, old.id.as_str());
        match known.map(|row| row.maybe_int("grace_until")).transpose()? {
            Some(None) => Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(())),
            _ => Err(Problem::new(ErrorCode::StateConflict)),
        }
    });
    write(&app, &operator, done, command.row(&sql::KEY_REPLACEMENTS, old_id.clone())).await?;
    Ok((StatusCode::CREATED, Json(new)))
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
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<RevokedKey>, Problem> {
    let key = find(&app, &id).await?;
    let id = key.id.to_string();
    let revoked = KeyAt { id: key.id.clone(), at: app.now() };
    let done = Done {
        action: "key.revoke",
        subject: ("api_key", &id),
        before: Some(json!({ "prefix": key.prefix })),
        after: None,
    };
    let rows = vec![sql::KEY_REVOCATIONS.change(&revoked)];
    write(&app, &operator, done, Command::rows(rows)).await?;
    Ok(Json(RevokedKey { object: "api_key", id, revoked: true }))
}

/// Gives a key its secret; answers it as it is shown once, and the row that keeps its hash.
fn issue(app: &App, key: ApiKey) -> (NewKey, RowChange) {
    let secret = new_secret(&app.ids, key.env);
    let key = ApiKey { prefix: secret[..SHOWN_LENGTH].to_owned(), ..key };
    let stored = StoredKey { hash: app.keyring.hash_api_key(&secret), key };
    let row = sql::KEYS.insert(&stored);
    let key = stored.key;
    let new = NewKey {
        object: "api_key",
        id: key.id.to_string(),
        secret,
        prefix: key.prefix,
        env: key.env.as_str(),
        label: key.label,
        capabilities: key.capabilities,
        permissions: key.permissions,
        ip_allowlist: key.ip_allowlist.iter().map(ToString::to_string).collect(),
        expires_at: key.expires_at,
    };
    (new, row)
}

async fn find(app: &App, id: &str) -> Result<ApiKey, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such key.");
    let id = KeyId::parse(id).ok_or_else(missing)?;
    sql::get_key(app.db.pool(), &id).await?.ok_or_else(missing)
}
