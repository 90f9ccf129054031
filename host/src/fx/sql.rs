//! Rates and limits in the database. What they were before is in the audit log.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::error::Problem;
use crate::id::{Id as _, MerchantId};
use crate::ledger::LockedState;
use crate::money::{Currency, Minor};

use super::market::{self, Pair, SetRate};
use super::position::{Counted, Exchanged, Limit};
use super::rate::Rate;

/// Rates by id, as a decision reads them: nobody sets them meanwhile.
pub static RATES: Lookup = Lookup {
    name: "rates",
    key: "id",
    columns: &[
        ("version", Int),
        ("rate", Text),
        ("spread_bps", Int),
        ("source", Text),
        ("as_of", Int),
        ("valid_until", Int),
        ("is_active", Int),
        ("updated_at", Int),
    ],
    lock: true,
};

/// Rates as they are set.
pub static NEW_RATES: Table<SetRate> = Table {
    name: "rates",
    fixed: &[
        text("id", |set| set.id().into()),
        text("env", |set| set.pair.env.as_str().into()),
        text("merchant_id", |set| set.merchant.as_ref().map_or("", MerchantId::as_str).into()),
        text("from_currency", |set| set.pair.from.as_str().into()),
        text("to_currency", |set| set.pair.to.as_str().into()),
    ],
    changing: &[
        int("version", |set| set.version.into()),
        text("rate", |set| set.rate.to_string().into()),
        int("spread_bps", |set| set.spread_bps.into()),
        text("source", |set| (&set.source).into()),
        int("as_of", |set| set.as_of.into()),
        int("valid_until", |set| set.valid_until.into()),
        int("is_active", |set| set.is_active.into()),
        int("updated_at", |set| set.updated_at.into()),
    ],
    on_conflict: Some(
        "(id) DO UPDATE SET version = excluded.version, rate = excluded.rate, \
         spread_bps = excluded.spread_bps, source = excluded.source, as_of = excluded.as_of, \
         valid_until = excluded.valid_until, is_active = excluded.is_active, \
         updated_at = excluded.updated_at",
    ),
    is_sealed: false,
};

/// Limits by id, as a decision reads them: nobody sets them meanwhile.
pub static LIMITS: Lookup = Lookup {
    name: "fx_limits",
    key: "id",
    columns: &[("version", Int), ("is_paused", Int), ("exposure_cap_minor", Int)],
    lock: true,
};

/// Limits as they are set.
pub static NEW_LIMITS: Table<Limit> = Table {
    name: "fx_limits",
    fixed: &[
        text("id", |limit| limit.id().into()),
        text("env", |limit| limit.env.as_str().into()),
        text("currency", |limit| limit.currency.as_str().into()),
    ],
    changing: &[
        int("version", |limit| limit.version.into()),
        int("is_paused", |limit| limit.is_paused.into()),
        int("exposure_cap_minor", |limit| limit.exposure_cap.map(Minor::units).into()),
        int("updated_at", |limit| limit.updated_at.into()),
    ],
    on_conflict: Some(
        "(id) DO UPDATE SET version = excluded.version, is_paused = excluded.is_paused, \
         exposure_cap_minor = excluded.exposure_cap_minor, updated_at = excluded.updated_at",
    ),
    is_sealed: false,
};

/// The rates that decide which one applies to a merchant, as a decision sees them.
///
/// # Errors
/// A row is not one that this program writes.
pub fn locked_rates(
    locked: &LockedState<'_>,
    ids: &[String; 4],
) -> Result<[Option<SetRate>; 4], Problem> {
    let mut found = [const { None }; 4];
    for (place, id) in found.iter_mut().zip(ids) {
        let row = locked.row(&RATES, id);
        *place = row.map(|row| market::read(id, &row)).transpose()?;
    }
    Ok(found)
}

/// What limits buying a currency, as a decision sees it.
///
/// # Errors
/// The row is not one that this program writes.
pub fn locked_limit(
    locked: &LockedState<'_>,
    (env, currency): (Env, Currency),
) -> Result<Limit, Problem> {
    let limit = Limit::none(env, currency);
    let Some(row) = locked.row(&LIMITS, &limit.id()) else { return Ok(limit) };
    let exposure_cap = row.maybe_int("exposure_cap_minor")?.map(Minor::new);
    Ok(Limit { is_paused: row.int("is_paused")? != 0, exposure_cap, ..limit })
}

const COLUMNS: &str = "id, env, merchant_id, from_currency, to_currency, version, rate, \
                       spread_bps, source, as_of, valid_until, is_active, updated_at";

/// One rate.
///
/// # Errors
/// The database cannot be read.
pub async fn rate(pool: &AnyPool, id: &str) -> Result<Option<SetRate>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM rates WHERE id = $1"));
    let row = sqlx::query(sql).bind(id).fetch_optional(pool).await?;
    row.map(|row| rate_of(&row)).transpose()
}

/// Everybody's rates, and one merchant's own.
///
/// # Errors
/// The database cannot be read.
pub async fn rates_of(
    pool: &AnyPool,
    env: Env,
    merchant: &MerchantId,
) -> Result<Vec<SetRate>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM rates WHERE env = $1 AND merchant_id IN ('', $2) ORDER BY id"
    ));
    let rows = sqlx::query(sql).bind(env.as_str()).bind(merchant.as_str()).fetch_all(pool).await?;
    rows.iter().map(rate_of).collect()
}

/// The rates around a pair for a merchant, or for those that have no rates of their own: its own,
/// and every one by which somebody could come back, by way of a third currency too.
///
/// # Errors
/// The database cannot be read.
pub async fn around(
    pool: &AnyPool,
    pair: Pair,
    merchant: Option<&MerchantId>,
) -> Result<Vec<SetRate>, sqlx::Error> {
    let Pair { env, from, to } = pair;
    let sql = sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM rates WHERE env = $1 AND merchant_id IN ('', $2) \
         AND (from_currency = $3 OR to_currency = $4 \
         OR (from_currency = $4 AND to_currency = $3))"
    ));
    let query = sqlx::query(sql).bind(env.as_str()).bind(merchant.map_or("", MerchantId::as_str));
    let query = query.bind(to.as_str()).bind(from.as_str());
    query.fetch_all(pool).await?.iter().map(rate_of).collect()
}

/// A page of all rates of an environment, by id.
///
/// # Errors
/// The database cannot be read.
pub async fn list_rates(
    pool: &AnyPool,
    env: Env,
    (after, limit): (&str, i64),
) -> Result<Vec<SetRate>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM rates WHERE env = $1 AND id > $2 ORDER BY id LIMIT $3"
    ));
    let query = sqlx::query(sql).bind(env.as_str()).bind(after).bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(rate_of).collect()
}

/// What limits buying a currency.
///
/// # Errors
/// The database cannot be read.
pub async fn limit(pool: &AnyPool, (env, currency): (Env, Currency)) -> Result<Limit, sqlx::Error> {
    let limits = limits(pool, env).await?;
    let found = limits.into_iter().find(|limit| limit.currency == currency);
    Ok(found.unwrap_or_else(|| Limit::none(env, currency)))
}

/// All limits of an environment.
///
/// # Errors
/// The database cannot be read.
pub async fn limits(pool: &AnyPool, env: Env) -> Result<Vec<Limit>, sqlx::Error> {
    let sql = "SELECT env, currency, version, is_paused, exposure_cap_minor, updated_at FROM fx_limits \
               WHERE env = $1 ORDER BY currency";
    let rows = sqlx::query(sql).bind(env.as_str()).fetch_all(pool).await?;
    rows.iter().map(limit_of).collect()
}

/// Everything that operators set, to be compared with what they said.
///
/// # Errors
/// The database cannot be read.
pub async fn all(db: &mut AnyConnection) -> Result<(Vec<SetRate>, Vec<Limit>), sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM rates"));
    let rates = sqlx::query(sql).fetch_all(&mut *db).await?;
    let rates = rates.iter().map(rate_of).collect::<Result<_, _>>()?;
    let sql =
        "SELECT env, currency, version, is_paused, exposure_cap_minor, updated_at FROM fx_limits";
    let limits = sqlx::query(sql).fetch_all(db).await?;
    Ok((rates, limits.iter().map(limit_of).collect::<Result<_, _>>()?))
}

fn limit_of(row: &AnyRow) -> Result<Limit, sqlx::Error> {
    let odd = || sqlx::Error::Decode("an odd limit".into());
    let text = |column| row.try_get::<String, _>(column);
    let cap: Option<i64> = row.try_get("exposure_cap_minor")?;
    Ok(Limit {
        env: Env::parse(&text("env")?).ok_or_else(odd)?,
        currency: Currency::parse(&text("currency")?).ok_or_else(odd)?,
        version: row.try_get("version")?,
        is_paused: row.try_get::<i64, _>("is_paused")? != 0,
        exposure_cap: cap.map(Minor::new),
        updated_at: Moment::from_micros(row.try_get("updated_at")?),
    })
}

/// What is counted of an environment's exchanges.
///
/// # Errors
/// The database cannot be read.
pub async fn counted(pool: &AnyPool, env: Env) -> Result<Counted, sqlx::Error> {
    // Between these two stands every key of the environment's, and nothing else.
    let (from, to) = (format!("fx/{env}/"), format!("fx/{env}0"));
    let sql = "SELECT key, count, sum_minor FROM counters WHERE key > $1 AND key < $2 ORDER BY key";
    let mut counted = Counted::default();
    let rows = sqlx::query(sql).bind(from).bind(to).fetch_all(pool).await?;
    for row in rows {
        let key: String = row.try_get("key")?;
        let (count, sum) = (row.try_get("count")?, Minor::new(row.try_get("sum_minor")?));
        let parts: Vec<&str> = key.split('/').skip(2).collect();
        let currency = |code: &str| {
            Currency::parse(code).ok_or_else(|| sqlx::Error::Decode("an odd counter".into()))
        };
        match parts.as_slice() {
            [code] => drop(counted.held.insert(currency(code)?, sum)),
            [from, to, side] => {
                let pair = Pair { env, from: currency(from)?, to: currency(to)? };
                let known = counted.exchanged.iter_mut().find(|known| known.pair == pair);
                let known = match known {
                    Some(known) => known,
                    None => {
                        let none = Minor::ZERO;
                        counted.exchanged.push(Exchanged { pair, count, sold: none, bought: none });
                        counted.exchanged.last_mut().ok_or(sqlx::Error::RowNotFound)?
                    }
                };
                match *side {
                    "sold" => known.sold = sum,
                    _ => known.bought = sum,
                }
            }
            _ => {}
        }
    }
    Ok(counted)
}

fn rate_of(row: &AnyRow) -> Result<SetRate, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let odd = || sqlx::Error::Decode("an odd rate".into());
    let currency = |column| Currency::parse(&text(column)?).ok_or_else(odd);
    let merchant = text("merchant_id")?;
    let valid_until: Option<i64> = row.try_get("valid_until")?;
    Ok(SetRate {
        pair: Pair {
            env: Env::parse(&text("env")?).ok_or_else(odd)?,
            from: currency("from_currency")?,
            to: currency("to_currency")?,
        },
        merchant: Some(merchant).filter(|id| !id.is_empty()).map(MerchantId::from_text),
        rate: Rate::parse(&text("rate")?).ok_or_else(odd)?,
        spread_bps: row.try_get("spread_bps")?,
        source: text("source")?,
        as_of: Moment::from_micros(row.try_get("as_of")?),
        valid_until: valid_until.map(Moment::from_micros),
        is_active: row.try_get::<i64, _>("is_active")? != 0,
        version: row.try_get("version")?,
        updated_at: Moment::from_micros(row.try_get("updated_at")?),
    })
}
