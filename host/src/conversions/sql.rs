//! Conversions in the database: written once.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, int, text};
use crate::env::Env;
use crate::fx::{Exchange, Pair, Rate};
use crate::id::{ConversionId, Id as _, MerchantId, PayoutId, WalletId};
use crate::money::{Currency, Minor};

/// A conversion as it was executed.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The id, which sorts by time of creation.
    pub id: ConversionId,
    /// Whose wallets they are.
    pub merchant_id: MerchantId,
    /// The one that was debited.
    pub from_wallet: WalletId,
    /// The one that was credited.
    pub to_wallet: WalletId,
    /// What was exchanged.
    pub exchange: Exchange,
    /// Whether the amount that was bought was the exact one.
    pub is_target_basis: bool,
    /// By how many decimal places the currency that was bought has more.
    pub shift: i32,
    /// As of when the rate was so.
    pub rate_as_of: Moment,
    /// The payout that it was for.
    pub payout_id: Option<PayoutId>,
    /// When it was executed.
    pub created_at: Moment,
}

/// New conversions.
pub static CONVERSIONS: Table<Conversion> = Table {
    name: "conversions",
    fixed: &[
        text("id", |it| it.id.as_str().into()),
        text("merchant_id", |it| it.merchant_id.as_str().into()),
        text("env", |it| it.exchange.pair.env.as_str().into()),
        text("from_wallet_id", |it| it.from_wallet.as_str().into()),
        text("to_wallet_id", |it| it.to_wallet.as_str().into()),
        text("from_currency", |it| it.exchange.pair.from.as_str().into()),
        text("to_currency", |it| it.exchange.pair.to.as_str().into()),
        int("from_amount_minor", |it| it.exchange.sold.into()),
        int("to_amount_minor", |it| it.exchange.bought.into()),
        text("rate", |it| it.exchange.rate.to_string().into()),
        int("rate_as_of", |it| it.rate_as_of.into()),
        int("is_target_basis", |it| it.is_target_basis.into()),
        int("shift", |it| i64::from(it.shift).into()),
        text("payout_id", |it| it.payout_id.as_ref().map(|id| id.as_str().to_owned()).into()),
        int("created_at", |it| it.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// The columns of a conversion.
pub const COLUMNS: &str = "id, merchant_id, env, from_wallet_id, to_wallet_id, from_currency, \
                       to_currency, from_amount_minor, to_amount_minor, rate, rate_as_of, \
                       is_target_basis, shift, payout_id, created_at";

/// A merchant's conversion.
///
/// # Errors
/// The database cannot be read.
pub async fn find(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    id: &ConversionId,
) -> Result<Option<Conversion>, sqlx::Error> {
    let sql = AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM conversions WHERE id = $1 AND merchant_id = $2 AND env = $3"
    ));
    let query = sqlx::query(sql).bind(id.as_str()).bind(merchant.as_str()).bind(env.as_str());
    query.fetch_optional(pool).await?.map(|row| conversion(&row)).transpose()
}

/// A page of a merchant's conversions, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    (before, limit): (Option<&str>, i64),
) -> Result<Vec<Conversion>, sqlx::Error> {
    let sql = AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM conversions WHERE merchant_id = $1 AND env = $2 AND id < $3 \
         ORDER BY id DESC LIMIT $4"
    ));
    let rows = sqlx::query(sql)
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(before.unwrap_or("~"))
        .bind(limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(conversion).collect()
}

/// Reads a row of the table.
pub fn conversion(row: &AnyRow) -> Result<Conversion, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let odd = || sqlx::Error::Decode("an odd conversion".into());
    let currency = |column| Currency::parse(&text(column)?).ok_or_else(odd);
    let minor = |column| row.try_get(column).map(Minor::new);
    let moment = |column| row.try_get(column).map(Moment::from_micros);
    Ok(Conversion {
        id: ConversionId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        from_wallet: WalletId::from_text(text("from_wallet_id")?),
        to_wallet: WalletId::from_text(text("to_wallet_id")?),
        exchange: Exchange {
            pair: Pair {
                env: Env::parse(&text("env")?).ok_or_else(odd)?,
                from: currency("from_currency")?,
                to: currency("to_currency")?,
            },
            sold: minor("from_amount_minor")?,
            bought: minor("to_amount_minor")?,
            rate: Rate::parse(&text("rate")?).ok_or_else(odd)?,
        },
        is_target_basis: row.try_get::<i64, _>("is_target_basis")? != 0,
        shift: i32::try_from(row.try_get::<i64, _>("shift")?).map_err(|_| odd())?,
        payout_id: row.try_get::<Option<String>, _>("payout_id")?.map(PayoutId::from_text),
        rate_as_of: moment("rate_as_of")?,
        created_at: moment("created_at")?,
    })
}
