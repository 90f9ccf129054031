//! Statements about merchants and keys.

use ipnet::IpNet;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{Id as _, KeyId, MerchantId};

use super::key::{ApiKey, parse_network};
use super::merchant::{Merchant, MerchantStatus};

/// New merchants.
pub static MERCHANTS: Table<Merchant> = Table {
    name: "merchants",
    fixed: &[
        text("id", |merchant| merchant.id.as_str().into()),
        text("name", |merchant| (&merchant.name).into()),
        text("country", |merchant| (&merchant.country).into()),
        int("created_at", |merchant| merchant.created_at.into()),
    ],
    changing: MERCHANT_CHANGES.columns,
    on_conflict: None,
    is_sealed: true,
};

/// Changes of merchants.
pub static MERCHANT_CHANGES: Update<Merchant> = Update {
    name: "merchants",
    key: text("id", |merchant| merchant.id.as_str().into()),
    columns: &[
        text("timezone", |merchant| merchant.timezone.iana_name().unwrap_or("UTC").into()),
        text("former_timezones", |merchant| json(&merchant.former_timezones).into()),
        text("status", |merchant| merchant.status.as_str().into()),
        text("settings", |merchant| json(&merchant.settings).into()),
        int("updated_at", |merchant| merchant.updated_at.into()),
    ],
    only_where: None,
};

/// When a merchant last changed, which serves as its version.
pub static MERCHANT_VERSIONS: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("updated_at", Int)], lock: true };

/// Whether a merchant may send money, as the writer's transaction sees it.
pub static MERCHANT_STATUSES: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("status", Text)], lock: false };

/// A key as it is stored.
pub struct StoredKey {
    /// The key.
    pub key: ApiKey,
    /// The keyed hash of its secret.
    pub hash: String,
}

/// New keys.
pub static KEYS: Table<StoredKey> = Table {
    name: "api_keys",
    fixed: &[
        text("id", |stored| stored.key.id.as_str().into()),
        text("merchant_id", |stored| stored.key.merchant_id.as_str().into()),
        text("env", |stored| stored.key.env.as_str().into()),
        text("label", |stored| (&stored.key.label).into()),
        text("hash", |stored| (&stored.hash).into()),
        text("prefix", |stored| (&stored.key.prefix).into()),
        text("capabilities", |stored| json(&stored.key.capabilities).into()),
        text("permissions", |stored| json(&stored.key.permissions).into()),
        text("ip_allowlist", |stored| json(&stored.key.ip_allowlist).into()),
        int("expires_at", |stored| stored.key.expires_at.into()),
        text("created_by", |stored| (&stored.key.created_by).into()),
        int("created_at", |stored| stored.key.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// A key and an instant at which something happened to it.
pub struct KeyAt {
    /// The key.
    pub id: KeyId,
    /// When.
    pub at: Moment,
}

/// Keys that are revoked.
pub static KEY_REVOCATIONS: Update<KeyAt> = Update {
    name: "api_keys",
    key: text("id", |key| key.id.as_str().into()),
    columns: &[int("revoked_at", |key| key.at.into())],
    only_where: Some("t.revoked_at IS NULL"),
};

/// Keys that were replaced, and how long they go on working.
pub static KEY_GRACES: Update<KeyAt> = Update {
    name: "api_keys",
    key: text("id", |key| key.id.as_str().into()),
    columns: &[int("grace_until", |key| key.at.into())],
    only_where: None,
};

/// Whether a key was replaced or revoked.
pub static KEY_ENDINGS: Lookup = Lookup {
    name: "api_keys",
    key: "id",
    columns: &[("grace_until", Int), ("revoked_at", Int)],
    lock: true,
};

/// How many keys of a merchant's environment work at an instant.
///
/// # Errors
/// The database cannot be read.
pub async fn count_usable_keys(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    now: Moment,
) -> Result<i64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM api_keys WHERE merchant_id = $1 AND env = $2 \
               AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) \
               AND (grace_until IS NULL OR grace_until > $3)";
    let query = sqlx::query_scalar(sql).bind(merchant.as_str()).bind(env.as_str());
    query.bind(now.micros()).fetch_one(pool).await
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// One merchant.
///
/// # Errors
/// The database cannot be read.
pub async fn get_merchant(
    pool: &AnyPool,
    id: &MerchantId,
) -> Result<Option<Merchant>, sqlx::Error> {
    let sql = "SELECT id, name, country, timezone, former_timezones, status, settings, created_at, updated_at \
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
    let sql = "SELECT id, name, country, timezone, former_timezones, status, settings, created_at, updated_at \
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
        former_timezones: serde_json::from_str(&text("former_timezones")?)
            .map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        // A status that cannot be read is no licence to act.
        status: MerchantStatus::parse(&text("status")?).unwrap_or(MerchantStatus::Suspended),
        settings: settings.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
        updated_at: Moment::from_micros(row.try_get("updated_at")?),
    })
}

const KEY_BY_HASH: &str = "SELECT id, merchant_id, env, label, prefix, capabilities, permissions, \
     ip_allowlist, expires_at, grace_until, revoked_at, created_by, \
     created_at, hash \
     FROM api_keys WHERE hash = $1";
const KEY_BY_ID: &str = "SELECT id, merchant_id, env, label, prefix, capabilities, permissions, \
     ip_allowlist, expires_at, grace_until, revoked_at, created_by, \
     created_at, hash \
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

fn network(text: &str) -> Result<IpNet, sqlx::Error> {
    let unreadable = || sqlx::Error::Decode("a network of a key's allow-list".into());
    parse_network(text).ok_or_else(unreadable)
}

/// A page of a merchant's keys, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_keys(
    pool: &AnyPool,
    merchant: &MerchantId,
    (cursor, limit): (Option<&str>, i64),
) -> Result<Vec<ApiKey>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, env, label, prefix, capabilities, permissions, \
               ip_allowlist, expires_at, grace_until, revoked_at, created_by, created_at \
               FROM api_keys WHERE merchant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let rows = sqlx::query(sql)
        .bind(merchant.as_str())
        .bind(cursor.unwrap_or("~"))
        .bind(limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(key).collect()
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
        // Of a list that is not understood, nothing may be left out: an empty one admits everybody.
        ip_allowlist: networks.iter().map(|text| network(text)).collect::<Result<_, _>>()?,
        expires_at: moment("expires_at")?,
        grace_until: moment("grace_until")?,
        revoked_at: moment("revoked_at")?,
        created_by: text("created_by")?,
        created_at: moment("created_at")?.unwrap_or_default(),
    })
}
