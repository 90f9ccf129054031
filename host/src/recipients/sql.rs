//! Statements about beneficiaries and blacklists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::json;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Removal, Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::db::{Engine, Shared};
use crate::env::Env;
use crate::error::Problem;
use crate::id::{BeneficiaryId, BlockId, Id as _, IdGenerator, MerchantId};
use crate::keyring::Keyring;
use crate::money::Currency;
use crate::rails::RecipientFields;

use super::beneficiary::{Beneficiary, BeneficiarySource, Verification};
use super::identity::{ACCOUNT_LENGTH, account_hash};
use super::known::{Known, RecipientKey, SavedKey};
use super::resolution;

/// A beneficiary as it is stored: what the bank said about it is sealed.
#[derive(Clone, Debug)]
pub struct StoredBeneficiary {
    beneficiary: Beneficiary,
    resolution: Option<String>,
}

impl StoredBeneficiary {
    /// Seals what the bank said.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub fn seal(
        beneficiary: &Beneficiary,
        keyring: &Keyring,
        ids: &IdGenerator,
    ) -> Result<Self, Problem> {
        let sealed = beneficiary.resolution.as_ref();
        let place = place(&beneficiary.id);
        let sealed = sealed.map(|known| resolution::seal((keyring, ids), &place, known));
        Ok(Self { beneficiary: beneficiary.clone(), resolution: sealed.transpose()? })
    }

    /// Deleting frees the identity: another row may take it.
    fn identity(&self) -> String {
        match self.beneficiary.deleted_at {
            Some(_) => format!("deleted:{}", self.beneficiary.id),
            None => self.beneficiary.identity.clone(),
        }
    }

    fn deleted_identity(&self) -> Option<&str> {
        self.beneficiary.deleted_at.map(|_| self.beneficiary.identity.as_str())
    }
}

/// New beneficiaries.
pub static BENEFICIARIES: Table<StoredBeneficiary> = Table {
    name: "beneficiaries",
    fixed: &[
        text("id", |stored| stored.beneficiary.id.as_str().into()),
        text("merchant_id", |stored| stored.beneficiary.merchant_id.as_str().into()),
        text("env", |stored| stored.beneficiary.env.as_str().into()),
        text("currency", |stored| stored.beneficiary.currency.as_str().into()),
        text("source", |stored| stored.beneficiary.source.as_str().into()),
        int("created_at", |stored| stored.beneficiary.created_at.into()),
    ],
    changing: BENEFICIARY_CHANGES.columns,
    on_conflict: None,
    is_sealed: false,
};

/// Changes of beneficiaries.
pub static BENEFICIARY_CHANGES: Update<StoredBeneficiary> = Update {
    name: "beneficiaries",
    key: text("id", |stored| stored.beneficiary.id.as_str().into()),
    columns: &[
        text("identity", |stored| stored.identity().into()),
        text("deleted_identity", |stored| stored.deleted_identity().into()),
        text("method", |stored| (&stored.beneficiary.method).into()),
        text("recipient", |stored| stored.beneficiary.recipient.to_json().into()),
        text("name", |stored| (&stored.beneficiary.name).into()),
        text("email", |stored| (&stored.beneficiary.email).into()),
        text("phone", |stored| (&stored.beneficiary.phone).into()),
        text("external_reference", |stored| (&stored.beneficiary.external_reference).into()),
        text("account_name", |stored| (&stored.beneficiary.account_name).into()),
        text("resolution", |stored| (&stored.resolution).into()),
        int("resolved_at", |stored| stored.beneficiary.resolved_at.into()),
        text("verification", |stored| stored.beneficiary.verification.as_str().into()),
        text("correction", |stored| (&stored.beneficiary.correction).into()),
        text("search", |stored| search(&stored.beneficiary).into()),
        int("deleted_at", |stored| stored.beneficiary.deleted_at.into()),
        int("updated_at", |stored| stored.beneficiary.updated_at.into()),
    ],
    only_where: None,
};

/// What a network said of a beneficiary: which, what, and when.
pub struct Corrected {
    /// Which.
    pub id: BeneficiaryId,
    /// JSON of a [`super::RecipientCorrection`].
    pub correction: String,
    /// When it was told.
    pub at: Moment,
}

/// Corrections of beneficiaries. Whoever saves one at the same time looks again.
pub static BENEFICIARY_CORRECTIONS: Update<Corrected> = Update {
    name: "beneficiaries",
    key: text("id", |told| told.id.as_str().into()),
    columns: &[
        text("correction", |told| (&told.correction).into()),
        int("updated_at", |told| told.at.into()),
    ],
    only_where: None,
};

/// When a beneficiary last changed, which serves as its version.
pub static BENEFICIARY_VERSIONS: Lookup =
    Lookup { name: "beneficiaries", key: "id", columns: &[("updated_at", Int)], lock: true };

/// What `q` is looked for in: both names, the account, and the merchant's reference.
pub(super) fn searched(parts: [&str; 4]) -> String {
    parts.join("\n").to_lowercase()
}

fn search(beneficiary: &Beneficiary) -> String {
    searched([
        beneficiary.name.as_str(),
        beneficiary.account_name.as_deref().unwrap_or(""),
        beneficiary.recipient.account(),
        beneficiary.external_reference.as_deref().unwrap_or(""),
    ])
}

fn place(id: &BeneficiaryId) -> String {
    format!("beneficiaries/resolution/{id}")
}

/// Beneficiaries, and how many entries of blacklists name each.
const SAVED: &str = "SELECT b.*, (SELECT COUNT(*) FROM blacklist x WHERE x.currency = b.currency \
                     AND x.identity = substr(b.identity, 1, 22) \
                     AND x.merchant_id IN ('', b.merchant_id)) AS blocks FROM beneficiaries b";
const _: () = assert!(ACCOUNT_LENGTH == 22, "blacklists have accounts");

/// A merchant's beneficiary, deleted or not.
///
/// # Errors
/// The database cannot be read.
pub async fn get_beneficiary(
    pool: &AnyPool,
    keyring: &Keyring,
    (merchant, env): (&MerchantId, Env),
    id: &BeneficiaryId,
) -> Result<Option<Beneficiary>, sqlx::Error> {
    let sql = format!("{SAVED} WHERE b.merchant_id = $1 AND b.env = $2 AND b.id = $3");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(id.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(|row| beneficiary(&row, keyring)).transpose()
}

/// Rows of [`SAVED`] by their ids, whoever's they are, deleted or not.
async fn rows_by_ids(
    (db, engine): (&mut AnyConnection, Engine),
    ids: &[&str],
) -> Result<HashMap<String, AnyRow>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!("{SAVED} WHERE {}", engine.among("b.id", "$1"));
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(serde_json::to_string(ids).unwrap_or_default())
        .fetch_all(db)
        .await?;
    rows.into_iter().map(|row| Ok((row.try_get("id")?, row))).collect()
}

/// The beneficiaries of these owners and ids, in their order. One that cannot be read is an error
/// of its own.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_saved(
    (pool, engine): (&AnyPool, Engine),
    keyring: &Keyring,
    wanted: &[SavedKey],
) -> Result<Vec<Shared<Option<Beneficiary>>>, sqlx::Error> {
    let ids: Vec<&str> = wanted.iter().map(|key| key.id.as_str()).collect();
    let rows = rows_by_ids((&mut *pool.acquire().await?, engine), &ids).await?;
    let saved = |key: &SavedKey| {
        let Some(row) = rows.get(key.id.as_str()) else { return Ok(None) };
        let owner: (String, String) = (row.try_get("merchant_id")?, row.try_get("env")?);
        match (owner.0.as_str(), owner.1.as_str()) == (key.merchant.as_str(), key.env.as_str()) {
            true => beneficiary(row, keyring).map(Some),
            false => Ok(None),
        }
    };
    Ok(wanted.iter().map(|key| saved(key).map_err(Arc::new)).collect())
}

/// What is known of each of these recipients, in their order: the beneficiary of that identity, the
/// active one or else the one deleted last, and who blocks it. One that cannot be read is an error
/// of its own.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_known(
    (pool, engine): (&AnyPool, Engine),
    keyring: &Keyring,
    wanted: &[RecipientKey],
) -> Result<Vec<Shared<Arc<Known>>>, sqlx::Error> {
    let mut db = pool.acquire().await?;
    let found = list_found((&mut *db, engine), wanted).await?;
    let ids: Vec<&str> = found.iter().filter_map(|found| found.id.as_deref()).collect();
    let rows = rows_by_ids((&mut *db, engine), &ids).await?;
    let known = |found: &Found| {
        let beneficiary = match &found.id {
            Some(id) => {
                let row = rows.get(id).ok_or(sqlx::Error::RowNotFound)?;
                Some(beneficiary(row, keyring)?)
            }
            None => None,
        };
        let Found { is_globally_blocked, is_blacklisted, .. } = *found;
        Ok(Arc::new(Known { beneficiary, is_globally_blocked, is_blacklisted }))
    };
    Ok(found.iter().map(|found| known(found).map_err(Arc::new)).collect())
}

/// What is found of a recipient: its saved one's id, and who blocks it.
struct Found {
    id: Option<String>,
    is_globally_blocked: bool,
    is_blacklisted: bool,
}

async fn list_found(
    (db, engine): (&mut AnyConnection, Engine),
    wanted: &[RecipientKey],
) -> Result<Vec<Found>, sqlx::Error> {
    let records: Vec<_> = (0_usize..)
        .zip(wanted)
        .map(|(place, RecipientKey { merchant, env, currency, identity })| {
            json!({ "place": place.to_string(), "merchant_id": merchant, "env": env.as_str(),
                    "currency": currency.as_str(), "identity": identity,
                    "account": account_hash(identity) })
        })
        .collect();
    let columns = ["place", "merchant_id", "env", "currency", "identity", "account"];
    let of_it = "b.merchant_id = w.merchant_id AND b.env = w.env AND b.currency = w.currency";
    let blocks = "SELECT COUNT(*) FROM blacklist x WHERE x.currency = w.currency \
                  AND x.identity = w.account AND x.merchant_id =";
    // Each is looked up by index, whatever the planner thinks of the tables' sizes.
    let sql = format!(
        "SELECT w.place, COALESCE(\
         (SELECT b.id FROM beneficiaries b WHERE {of_it} AND b.identity = w.identity), \
         (SELECT b.id FROM beneficiaries b WHERE {of_it} AND b.deleted_identity = w.identity \
         ORDER BY b.deleted_at DESC LIMIT 1)) AS id, \
         ({blocks} '') AS by_the_platform, ({blocks} w.merchant_id) AS by_the_merchant \
         FROM {} w",
        engine.records("$1", &columns)
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(serde_json::to_string(&records).unwrap_or_default())
        .fetch_all(db)
        .await?;
    let mut found = BTreeMap::new();
    for row in &rows {
        let place: String = row.try_get("place")?;
        let place: usize = place.parse().map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?;
        let is_blocked = |by| row.try_get::<i64, _>(by).map(|entries| entries > 0);
        let one = Found {
            id: row.try_get("id")?,
            is_globally_blocked: is_blocked("by_the_platform")?,
            is_blacklisted: is_blocked("by_the_merchant")?,
        };
        found.insert(place, one);
    }
    match found.keys().copied().eq(0..wanted.len()) {
        true => Ok(found.into_values().collect()),
        // The answers of all after it would move.
        false => Err(sqlx::Error::Decode("a recipient was not looked up".into())),
    }
}

/// A page of a merchant's beneficiaries that are not deleted, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_beneficiaries(
    pool: &AnyPool,
    keyring: &Keyring,
    (merchant, env): (&MerchantId, Env),
    filter: &Filter,
) -> Result<Vec<Beneficiary>, sqlx::Error> {
    let sql = format!(
        "{SAVED} WHERE b.merchant_id = $1 AND b.env = $2 \
         AND b.deleted_at IS NULL AND b.id < $3 AND ($4 = '' OR b.currency = $4) \
         AND ($5 = '' OR b.search LIKE $5 ESCAPE '!') ORDER BY b.id DESC LIMIT $6"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(merchant.as_str())
        .bind(env.as_str())
        .bind(filter.cursor.as_deref().unwrap_or("~"))
        .bind(filter.currency.as_str())
        .bind(filter.pattern())
        .bind(filter.limit + 1)
        .fetch_all(pool)
        .await?;
    rows.iter().map(|row| beneficiary(row, keyring)).collect()
}

/// Which beneficiaries are wanted.
#[derive(Debug, Default)]
pub struct Filter {
    /// In this currency; any, if empty.
    pub currency: String,
    /// With this text in a name or account number; any, if empty.
    pub text: String,
    /// Before this id; from the newest, if none.
    pub cursor: Option<String>,
    /// Page size.
    pub limit: i64,
}

impl Filter {
    /// The text as a LIKE pattern in which nothing but the outer marks is special.
    fn pattern(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let plain = self.text.to_lowercase();
        let escaped = plain.replace('!', "!!").replace('%', "!%").replace('_', "!_");
        format!("%{escaped}%")
    }
}

fn beneficiary(row: &AnyRow, keyring: &Keyring) -> Result<Beneficiary, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    let unknown = || sqlx::Error::Decode("an unknown environment or currency".into());
    let id = BeneficiaryId::from_text(text("id")?);
    let resolution = match maybe("resolution")? {
        Some(sealed) => {
            let opened = resolution::open(keyring, &place(&id), &sealed);
            Some(opened.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?)
        }
        None => None,
    };
    Ok(Beneficiary {
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: Env::parse(&text("env")?).ok_or_else(unknown)?,
        currency: Currency::parse(&text("currency")?).ok_or_else(unknown)?,
        method: text("method")?,
        identity: match maybe("deleted_identity")? {
            Some(identity) => identity,
            None => text("identity")?,
        },
        recipient: RecipientFields::from_json(&text("recipient")?),
        name: text("name")?,
        email: maybe("email")?,
        phone: maybe("phone")?,
        external_reference: maybe("external_reference")?,
        account_name: maybe("account_name")?,
        resolution,
        resolved_at: moment("resolved_at")?,
        verification: Verification::parse(&text("verification")?),
        correction: maybe("correction")?,
        is_blacklisted: row.try_get::<i64, _>("blocks")? > 0,
        source: match text("source")?.as_str() {
            "auto" => BeneficiarySource::Auto,
            _ => BeneficiarySource::Manual,
        },
        deleted_at: moment("deleted_at")?,
        created_at: moment("created_at")?.unwrap_or_default(),
        updated_at: moment("updated_at")?.unwrap_or_default(),
        id,
    })
}

/// New blacklist entries. A platform entry has no merchant: an empty one, so that it is unique
/// on both engines.
pub static BLOCKS: Table<Block> = Table {
    name: "blacklist",
    fixed: &[
        text("id", |block| block.id.as_str().into()),
        text("scope", |block| block.scope().into()),
        text("merchant_id", |block| {
            block.merchant_id.as_ref().map_or("", MerchantId::as_str).into()
        }),
        text("currency", |block| (&block.currency).into()),
        text("identity", |block| (&block.identity).into()),
        text("subject", |block| (&block.subject).into()),
        text("reason", |block| (&block.reason).into()),
        int("created_at", |block| block.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: false,
};

/// Blacklist entries that are removed.
pub static BLOCK_REMOVALS: Removal = Removal { name: "blacklist", key: "id" };

/// An entry of a blacklist.
#[derive(Clone, Debug)]
pub struct Block {
    /// The id, which sorts by time of creation.
    pub id: BlockId,
    /// Whose blacklist; nobody's for the platform's.
    pub merchant_id: Option<MerchantId>,
    /// The recipient's currency.
    pub currency: String,
    /// The account, however it is paid.
    pub identity: String,
    /// The recipient as it was given.
    pub subject: String,
    /// Why it is blocked, for operators.
    pub reason: String,
    /// When it was blocked.
    pub created_at: Moment,
}

impl Block {
    /// Whose blacklist it is on.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        if self.merchant_id.is_some() { "merchant" } else { "platform" }
    }
}

/// Whether there is an entry for the recipient of this one, in the same scope.
///
/// # Errors
/// The database cannot be read.
pub async fn has_block(pool: &AnyPool, block: &Block) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM blacklist \
               WHERE currency = $1 AND identity = $2 AND merchant_id = $3";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(block.currency.as_str())
        .bind(block.identity.as_str())
        .bind(block.merchant_id.as_ref().map_or("", MerchantId::as_str))
        .fetch_one(pool)
        .await?;
    Ok(found > 0)
}

/// When the newest entry was made.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn last_block(pool: &AnyPool) -> Result<Option<Moment>, sqlx::Error> {
    let sql = "SELECT created_at FROM blacklist ORDER BY id DESC LIMIT 1";
    let at: Option<i64> = sqlx::query_scalar(sql).fetch_optional(pool).await?;
    Ok(at.map(Moment::from_micros))
}

/// A page of all blacklist entries, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_blocks(
    pool: &AnyPool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Vec<Block>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, currency, identity, subject, reason, created_at \
               FROM blacklist WHERE id < $1 ORDER BY id DESC LIMIT $2";
    let rows = sqlx::query(sql).bind(cursor.unwrap_or("~")).bind(limit + 1).fetch_all(pool).await?;
    rows.iter().map(block).collect()
}

/// One blacklist entry.
///
/// # Errors
/// The database cannot be read.
pub async fn get_block(pool: &AnyPool, id: &str) -> Result<Option<Block>, sqlx::Error> {
    let sql = "SELECT id, merchant_id, currency, identity, subject, reason, created_at \
               FROM blacklist WHERE id = $1";
    let row = sqlx::query(sql).bind(id).fetch_optional(pool).await?;
    row.map(|row| block(&row)).transpose()
}

fn block(row: &AnyRow) -> Result<Block, sqlx::Error> {
    let merchant: String = row.try_get("merchant_id")?;
    Ok(Block {
        id: BlockId::from_text(row.try_get("id")?),
        merchant_id: Some(merchant).filter(|id| !id.is_empty()).map(MerchantId::from_text),
        currency: row.try_get("currency")?,
        identity: row.try_get("identity")?,
        subject: row.try_get("subject")?,
        reason: row.try_get("reason")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
