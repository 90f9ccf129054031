//! Statements about merchants and keys.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{Lookup, Row, Table, Update};
use crate::env::Env;
use crate::id::{Id as _, KeyId, MerchantId};

use super::key::{ApiKey, parse_network};
use super::merchant::{Merchant, MerchantStatus};

/// New merchants.
pub const MERCHANTS: Table = Table {
    name: "merchants",
    columns: &[
        ("id", Text),
        ("name", Text),
        ("country", Text),
        ("timezone", Text),
        ("status", Text),
        ("settings", Text),
        ("created_at", Int),
        ("updated_at", Int),
    ],
    on_conflict: None,
};

/// Changes of merchants.
pub const MERCHANT_CHANGES: Update = Update {
    name: "merchants",
    key: "id",
    columns: &[("timezone", Text), ("status", Text), ("settings", Text), ("updated_at", Int)],
    only_where: None,
};

/// When a merchant last changed, which serves as its version.
pub const MERCHANT_VERSIONS: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("updated_at", Int)], lock: true };

/// New keys.
pub const KEYS: Table = Table {
    name: "api_keys",
    columns: &[
        ("id", Text),
        ("merchant_id", Text),
        ("env", Text),
        ("label", Text),
        ("hash", Text),
        ("prefix", Text),
        ("capabilities", Text),
        ("permissions", Text),
        ("ip_allowlist", Text),
        ("expires_at", Int),
        ("created_at", Int),
    ],
    on_conflict: None,
};

/// Keys that are revoked.
pub const KEY_REVOCATIONS: Update = Update {
    name: "api_keys",
    key: "id",
    columns: &[("revoked_at", Int)],
    only_where: Some("t.revoked_at IS NULL"),
};

/// Keys that were replaced.
pub const KEY_GRACES: Update =
    Update { name: "api_keys", key: "id", columns: &[("grace_until", Int)], only_where: None };

/// Whether a key was replaced, as a version: 0 until it was.
pub const KEY_REPLACEMENTS: Lookup =
    Lookup { name: "api_keys", key: "id", columns: &[("grace_until", Int)], lock: true };

/// A new merchant as a row of [`MERCHANTS`].
#[must_use]
pub fn merchant_row(merchant: &Merchant) -> Row {
    let mut row = vec![
        merchant.id.as_str().into(),
        merchant.name.as_str().into(),
        merchant.country.as_str().into(),
    ];
    row.extend(merchant_state(merchant));
    row.push(merchant.created_at.micros().into());
    row.push(merchant.updated_at.micros().into());
    row
}

/// A changed merchant as a row of [`MERCHANT_CHANGES`].
#[must_use]
pub fn merchant_change(merchant: &Merchant) -> Row {
    let mut row = vec![merchant.id.as_str().into()];
    row.extend(merchant_state(merchant));
    row.push(merchant.updated_at.micros().into());
    row
}

fn merchant_state(merchant: &Merchant) -> Row {
    let timezone = merchant.timezone.iana_name().unwrap_or("UTC");
    let settings = serde_json::to_string(&merchant.settings).unwrap_or_default();
    vec![timezone.into(), merchant.status.as_str().into(), settings.into()]
}

/// A new key as a row of [`KEYS`].
#[must_use]
pub fn key_row(key: &ApiKey, hash: String) -> Row {
    let json = |words: serde_json::Result<String>| words.unwrap_or_default();
    vec![
        key.id.as_str().into(),
        key.merchant_id.as_str().into(),
        key.env.as_str().into(),
        key.label.as_str().into(),
        hash.into(),
        key.prefix.as_str().into(),
        json(serde_json::to_string(&key.capabilities)).into(),
        json(serde_json::to_string(&key.permissions)).into(),
        json(serde_json::to_string(&key.ip_allowlist)).into(),
        key.expires_at.map(Moment::micros).into(),
        key.created_at.micros().into(),
    ]
}

/// One merchant.
///
/// # Errors
/// The database cannot be read.
pub async fn get_merchant(
    pool: &AnyPool,
    id: &MerchantId,
) -> Result<Option<Merchant>, sqlx::Error> {
    let sql = "SELECT id, name, country, timezone, status, settings, created_at, updated_at \
               FROM merchants WHERE id = $1";
    let row = sqlx::query(sql).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| merchant(&row)).transpose()
}

/// A page of merchants, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_merchants(
    pool: &AnyPool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Vec<Merchant>, sqlx::Error> {
    let sql = "SELECT id, name, country, timezone, status, settings, created_at, updated_at \
               FROM merchants WHERE id < $1 ORDER BY id DESC LIMIT $2";
    let rows = sqlx::query(sql).bind(cursor.unwrap_or("~")).bind(limit + 1).fetch_all(pool).await?;
    rows.iter().map(merchant).collect()
}

fn merchant(row: &AnyRow) -> Result<Merchant, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let timezone = jiff::tz::TimeZone::get(&text("timezone")?).unwrap_or(jiff::tz::TimeZone::UTC);
    let settings = serde_json::from_str(&text("settings")?);
    Ok(Merchant {
        id: MerchantId::from_text(text("id")?),
        name: text("name")?,
        country: text("country")?,
        timezone,
        // A status that cannot be read is no licence to act.
        status: MerchantStatus::parse(&text("status")?).unwrap_or(MerchantStatus::Suspended),
        settings: settings.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
        updated_at: Moment::from_micros(row.try_get("updated_at")?),
    })
}

const KEY_BY_HASH: &str = "SELECT id, merchant_id, env, label, prefix, capabilities, permissions, \
     ip_allowlist, expires_at, grace_until, revoked_at, created_at, hash \
     FROM api_keys WHERE hash = $1";
const KEY_BY_ID: &str = "SELECT id, merchant_id, env, label, prefix, capabilities, permissions, \
     ip_allowlist, expires_at, grace_until, revoked_at, created_at, hash \
     FROM api_keys WHERE id = $1";

/// The key with this hash, and the hash as stored.
///
/// # Errors
/// The database cannot be read.
pub async fn find_key_by_hash(
    pool: &AnyPool,
    hash: &str,
) -> Result<Option<(ApiKey, String)>, sqlx::Error> {
    let row = sqlx::query(KEY_BY_HASH).bind(hash).fetch_optional(pool).await?;
    row.map(|row| Ok((key(&row)?, row.try_get("hash")?))).transpose()
}

/// One key.
///
/// # Errors
/// The database cannot be read.
pub async fn get_key(pool: &AnyPool, id: &KeyId) -> Result<Option<ApiKey>, sqlx::Error> {
    let row = sqlx::query(KEY_BY_ID).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| key(&row)).transpose()
}

fn key(row: &AnyRow) -> Result<ApiKey, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    let malformed = |cause: serde_json::Error| sqlx::Error::Decode(Box::new(cause));
    let networks: Vec<String> = serde_json::from_str(&text("ip_allowlist")?).map_err(malformed)?;
    let env = Env::parse(&text("env")?);
    Ok(ApiKey {
        id: KeyId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: env.ok_or_else(|| sqlx::Error::Decode("an unknown environment".into()))?,
        label: text("label")?,
        prefix: text("prefix")?,
        capabilities: serde_json::from_str(&text("capabilities")?).map_err(malformed)?,
        permissions: serde_json::from_str(&text("permissions")?).map_err(malformed)?,
        ip_allowlist: networks.iter().filter_map(|network| parse_network(network)).collect(),
        expires_at: moment("expires_at")?,
        grace_until: moment("grace_until")?,
        revoked_at: moment("revoked_at")?,
        created_at: moment("created_at")?.unwrap_or_default(),
    })
}
