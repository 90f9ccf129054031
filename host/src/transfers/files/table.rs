//! Files of payments, as they stand in the database.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::db::{Db, Tx};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{Id as _, IdGenerator, PaymentFileId, RouteId};
use crate::ledger::Guard;

/// Where a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum FileState {
    /// Payments join it until its window closes.
    Collecting,
    /// Its window has closed.
    Closed,
    /// Its bytes are fixed, and none of them has left.
    Assembled,
    /// It is being delivered, or was when a host died.
    Sending,
    /// It may have been delivered.
    Unclear,
    /// The network has it, and has not said yet whether it carries it out.
    Delivered,
    /// The network carries it out.
    Acknowledged,
    /// The network has refused all of it.
    Refused,
    /// Nothing was left to be sent.
    Empty,
}

impl FileState {
    /// The word used in the database and for operators.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Collecting => "collecting",
            Self::Closed => "closed",
            Self::Assembled => "assembled",
            Self::Sending => "sending",
            Self::Unclear => "unclear",
            Self::Delivered => "delivered",
            Self::Acknowledged => "acknowledged",
            Self::Refused => "refused",
            Self::Empty => "empty",
        }
    }

    fn parse(text: &str) -> Self {
        use strum::IntoEnumIterator as _;
        // What cannot be read may have left: it is looked for, not delivered.
        Self::iter().find(|state| state.as_str() == text).unwrap_or(Self::Unclear)
    }
}

/// A file of payments.
#[derive(Clone, Debug)]
pub struct PaymentFile {
    /// Its id.
    pub id: PaymentFileId,
    /// Test or live.
    pub env: Env,
    /// The route that it goes over.
    pub route_id: RouteId,
    /// The route's name.
    pub route: String,
    /// The rail.
    pub rail: String,
    /// How its payments are sent.
    pub method: String,
    /// What recipients get.
    pub currency: String,
    /// The window that it is made in.
    pub window: String,
    /// When that closes: when it was closed, where that was before its time.
    pub closes_at: Moment,
    /// When it was to close.
    pub planned_at: Moment,
    /// On which day, where the network is.
    pub business_date: String,
    /// And at what time there.
    pub local_time: String,
    /// When recipients shall have the money.
    pub value_date: String,
    /// From when what was acknowledged counts as paid.
    pub settles_at: Moment,
    /// Its number among the files to its bank, once its window has closed (`entries::allot`).
    pub number: i64,
    /// And among those of the day.
    pub number_of_day: i64,
    /// The first of the numbers for its entries.
    pub first_entry: i64,
    /// Where it stands.
    pub state: FileState,
    /// Whether an operator holds it back.
    pub is_held: bool,
    /// The name that it is delivered under.
    pub name: Option<String>,
    /// What acknowledgements call it.
    pub identity: Option<String>,
    /// SHA-256 of its bytes.
    pub digest: Option<String>,
    /// How many payments are in it.
    pub entries: i64,
    /// What they come to.
    pub amount_minor: i64,
    /// Whether a byte of it may have left.
    pub may_have_left: bool,
    /// How often its delivery was begun.
    pub deliveries: i64,
    /// Deliveries of which something may have arrived.
    pub copies: i64,
    /// When a person was last asked, or said, if it left before the database was restored.
    pub restored_at: Option<Moment>,
    /// Whether its network has both refused and acknowledged it.
    pub is_contradicted: bool,
    /// The network's last code.
    pub code: Option<String>,
    /// What was learnt last.
    pub message: Option<String>,
    /// When something is to be done about it.
    pub due_at: Moment,
    /// Of the present claim.
    pub fence: i64,
    /// When its delivery began for the first time: what was said before is of another file.
    pub first_sent_at: Option<Moment>,
    /// When its delivery began last.
    pub sent_at: Option<Moment>,
    /// When the network acknowledged or refused it.
    pub answered_at: Option<Moment>,
    /// When the first payment joined it.
    pub created_at: Moment,
}

/// Zero as long as payments may join a file.
static FILE_DOORS: Lookup =
    Lookup { name: "payment_files", key: "id", columns: &[("is_closed", Int)], lock: true };

impl PaymentFile {
    /// Whether none of its bytes has left, as far as this host did it.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        matches!(self.state, FileState::Collecting | FileState::Closed | FileState::Assembled)
    }

    /// A further file with the same terms, as little free to leave as this one.
    pub(super) fn further(&self, id: PaymentFileId, now: Moment) -> Self {
        Self { id, due_at: now, state: FileState::Collecting, ..self.clone() }
    }

    /// Refuses a payment that joins after the window has closed.
    #[must_use]
    pub fn door(&self) -> Guard {
        Guard { on: &FILE_DOORS, id: self.id.to_string(), version: 0 }
    }

    fn place(&self) -> String {
        format!("payment_files/{}", self.id)
    }
}

/// Writes a new file down, unless there is one in its slot.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn insert(tx: &mut Tx, file: &PaymentFile, slot: &str) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO payment_files (id, env, route_id, route, rail, method, currency, slot, \
               window_name, closes_at, business_date, local_time, value_date, settles_at, state, \
               is_closed, is_held, number, number_of_day, first_entry, entries, amount_minor, \
               may_have_left, deliveries, copies, restored_at, is_contradicted, due_at, \
               lease_until, fence, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'collecting', \
               0, $18, 0, 0, 0, 0, 0, $19, 0, 0, $17, 0, $16, 0, 0, $15) \
               ON CONFLICT (slot) DO NOTHING";
    sqlx::query(sql)
        .bind(file.id.as_str())
        .bind(file.env.as_str())
        .bind(file.route_id.as_str())
        .bind(&file.route)
        .bind(&file.rail)
        .bind(&file.method)
        .bind(&file.currency)
        .bind(slot)
        .bind(&file.window)
        .bind(file.closes_at.micros())
        .bind(&file.business_date)
        .bind(&file.local_time)
        .bind(&file.value_date)
        .bind(file.settles_at.micros())
        .bind(file.created_at.micros())
        .bind(file.due_at.micros())
        .bind(file.restored_at.map(Moment::micros))
        .bind(i64::from(file.is_held))
        .bind(i64::from(file.may_have_left))
        .execute(tx.conn())
        .await?;
    Ok(())
}

/// The file in a slot.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn by_slot(
    pool: &AnyPool,
    slot: &str,
) -> Result<Option<PaymentFile>, sqlx::Error> {
    let sql = format!("SELECT {COLUMNS} FROM payment_files WHERE slot = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(slot).fetch_optional(pool).await?;
    row.as_ref().map(file).transpose()
}

/// The file of this id.
///
/// # Errors
/// The database cannot be read.
pub async fn get(pool: &AnyPool, id: &PaymentFileId) -> Result<Option<PaymentFile>, sqlx::Error> {
    let sql = format!("SELECT {COLUMNS} FROM payment_files WHERE id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id.as_str()).fetch_optional(pool).await?;
    row.as_ref().map(file).transpose()
}

/// Which files are wanted; an empty text stands for any.
#[derive(Debug, Default)]
pub struct Filter {
    /// Of this environment.
    pub env: String,
    /// Over the route of this name.
    pub route: String,
    /// In this state.
    pub state: String,
    /// Before this id.
    pub before: String,
    /// Page size.
    pub limit: i64,
}

/// A page of files, newest first, and one more where there are more.
///
/// # Errors
/// The database cannot be read.
pub async fn list(pool: &AnyPool, filter: &Filter) -> Result<Vec<PaymentFile>, sqlx::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM payment_files WHERE id < $1 AND ($2 = '' OR route = $2) \
         AND ($3 = '' OR state = $3) AND ($5 = '' OR env = $5) ORDER BY id DESC LIMIT $4"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(filter.before.as_str())
        .bind(filter.route.as_str())
        .bind(filter.state.as_str())
        .bind(filter.limit + 1)
        .bind(filter.env.as_str());
    query.fetch_all(pool).await?.iter().map(file).collect()
}

/// Whether a file was ever made for this route.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_known(pool: &AnyPool, route: &RouteId) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT id FROM payment_files WHERE route_id = $1 \
               AND name IS NOT NULL LIMIT 1) f";
    let found: i64 = sqlx::query_scalar(sql).bind(route.as_str()).fetch_one(pool).await?;
    Ok(found > 0)
}

/// Whether another file over the route has this name or identity.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_used(
    pool: &AnyPool,
    file: &PaymentFile,
    (name, identity): (&str, &str),
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM payment_files WHERE route_id = $1 AND id <> $2 \
               AND (name = $3 OR identity = $4)";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(file.route_id.as_str())
        .bind(file.id.as_str())
        .bind(name)
        .bind(identity)
        .fetch_one(pool)
        .await?;
    Ok(found > 0)
}

/// The file that the network of these routes calls so.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn by_identity(
    pool: &AnyPool,
    route: &RouteId,
    identity: &str,
) -> Result<Option<PaymentFile>, sqlx::Error> {
    let sql = format!("SELECT {COLUMNS} FROM payment_files WHERE route_id = $1 AND identity = $2");
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(route.as_str()).bind(identity);
    query.fetch_optional(pool).await?.as_ref().map(file).transpose()
}

/// States in which there is something to do.
pub(super) const LIVING: &str = "state NOT IN ('acknowledged', 'refused', 'empty')";

/// Whether whoever writes a file goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lease {
    Kept,
    Ended,
}

/// Writes how a file stands, if nobody has changed it since it was read.
///
/// # Errors
/// `state_conflict` where the claim is lost; the database cannot be written.
pub(super) async fn save(db: &Db, file: &mut PaymentFile, lease: Lease) -> Result<(), Problem> {
    let mut tx = db.write().await?;
    let until = match lease {
        Lease::Kept => tx.now(db.engine()).await?.after(limits::FILE_LEASE),
        Lease::Ended => Moment::default(),
    };
    let sql = "UPDATE payment_files SET state = $3, is_closed = $4, number = $5, \
               number_of_day = $6, first_entry = $7, name = $8, identity = $9, digest = $10, \
               entries = $11, amount_minor = $12, may_have_left = $13, deliveries = $14, \
               code = $15, message = $16, due_at = $17, sent_at = $18, answered_at = $19, \
               lease_until = $20, first_sent_at = $21, copies = $22, fence = fence + 1 \
               WHERE id = $1 AND fence = $2";
    let done = sqlx::query(sql)
        .bind(file.id.as_str())
        .bind(file.fence)
        .bind(file.state.as_str())
        .bind(i64::from(file.state != FileState::Collecting))
        .bind(file.number)
        .bind(file.number_of_day)
        .bind(file.first_entry)
        .bind(&file.name)
        .bind(&file.identity)
        .bind(&file.digest)
        .bind(file.entries)
        .bind(file.amount_minor)
        .bind(i64::from(file.may_have_left))
        .bind(file.deliveries)
        .bind(&file.code)
        .bind(&file.message)
        .bind(file.due_at.micros())
        .bind(file.sent_at.map(Moment::micros))
        .bind(file.answered_at.map(Moment::micros))
        .bind(until.micros())
        .bind(file.first_sent_at.map(Moment::micros))
        .bind(file.copies)
        .execute(tx.conn())
        .await?;
    tx.commit().await?;
    match done.rows_affected() {
        1 => {
            file.fence += 1;
            Ok(())
        }
        _ => Err(Problem::new(ErrorCode::StateConflict)),
    }
}

/// Keeps a file's bytes, sealed, before it says what they are.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn keep_content(
    (db, keyring, ids): (&Db, &crate::keyring::Keyring, &IdGenerator),
    file: &PaymentFile,
    content: &[u8],
) -> Result<(), Problem> {
    let sealed = keyring.seal(ids, &file.place(), content).map_err(Problem::internal)?;
    let mut tx = db.write().await?;
    sqlx::query("UPDATE payment_files SET content = $3 WHERE id = $1 AND fence = $2")
        .bind(file.id.as_str())
        .bind(file.fence)
        .bind(sealed)
        .execute(tx.conn())
        .await?;
    Ok(tx.commit().await?)
}

/// A file's bytes.
///
/// # Errors
/// There are none, or they cannot be opened.
pub async fn content(
    pool: &AnyPool,
    keyring: &crate::keyring::Keyring,
    file: &PaymentFile,
) -> Result<Vec<u8>, Problem> {
    let sql = "SELECT content FROM payment_files WHERE id = $1";
    let sealed: Option<String> =
        sqlx::query_scalar(sql).bind(file.id.as_str()).fetch_one(pool).await?;
    let sealed = sealed.ok_or_else(|| Problem::internal("a file without bytes"))?;
    keyring.open(&file.place(), &sealed).map_err(Problem::internal)
}

pub(super) const COLUMNS: &str = "id, env, route_id, route, rail, method, currency, window_name, \
    closes_at, business_date, local_time, value_date, settles_at, number, number_of_day, \
    first_entry, state, is_held, name, identity, digest, entries, amount_minor, may_have_left, \
    deliveries, copies, restored_at, is_contradicted, code, message, due_at, fence, \
    first_sent_at, sent_at, answered_at, created_at, slot";

pub(super) fn file(row: &AnyRow) -> Result<PaymentFile, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    let int = |column| row.try_get::<i64, _>(column);
    let at = |column| int(column).map(Moment::from_micros);
    let maybe_at = |column| {
        let at = row.try_get::<Option<i64>, _>(column)?;
        Ok::<_, sqlx::Error>(at.map(Moment::from_micros))
    };
    let env = Env::parse(&text("env")?);
    Ok(PaymentFile {
        id: PaymentFileId::from_text(text("id")?),
        env: env.ok_or_else(|| sqlx::Error::Protocol("a file of no environment".into()))?,
        route_id: RouteId::from_text(text("route_id")?),
        route: text("route")?,
        rail: text("rail")?,
        method: text("method")?,
        currency: text("currency")?,
        window: text("window_name")?,
        closes_at: at("closes_at")?,
        planned_at: super::closing::planned_at(&text("slot")?).unwrap_or(at("closes_at")?),
        business_date: text("business_date")?,
        local_time: text("local_time")?,
        value_date: text("value_date")?,
        settles_at: at("settles_at")?,
        number: int("number")?,
        number_of_day: int("number_of_day")?,
        first_entry: int("first_entry")?,
        state: FileState::parse(&text("state")?),
        is_held: int("is_held")? != 0,
        name: maybe("name")?,
        identity: maybe("identity")?,
        digest: maybe("digest")?,
        entries: int("entries")?,
        amount_minor: int("amount_minor")?,
        may_have_left: int("may_have_left")? != 0,
        deliveries: int("deliveries")?,
        copies: int("copies")?,
        restored_at: maybe_at("restored_at")?,
        is_contradicted: int("is_contradicted")? != 0,
        code: maybe("code")?,
        message: maybe("message")?,
        due_at: at("due_at")?,
        fence: int("fence")?,
        first_sent_at: maybe_at("first_sent_at")?,
        sent_at: maybe_at("sent_at")?,
        answered_at: maybe_at("answered_at")?,
        created_at: at("created_at")?,
    })
}

/// States in which nobody has said yet whether the network carries a file out.
pub(super) const UNACKNOWLEDGED: &str = "'sending', 'unclear', 'delivered'";

/// Live files that something is to be done about: how many there are in each state.
///
/// # Errors
/// The database cannot be read.
pub async fn count_living(pool: &AnyPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let sql = format!(
        "SELECT state, COUNT(*) FROM payment_files WHERE {LIVING} AND env = 'live' GROUP BY state"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(sql)).fetch_all(pool).await
}

/// When the live file was sent that has waited longest for the network's word.
///
/// # Errors
/// The database cannot be read.
pub async fn oldest_unacknowledged(pool: &AnyPool) -> Result<Option<Moment>, sqlx::Error> {
    let sql = format!(
        "SELECT MIN(sent_at) FROM payment_files WHERE {LIVING} AND env = 'live' \
         AND state IN ({UNACKNOWLEDGED})"
    );
    let found: Option<i64> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await?;
    Ok(found.map(Moment::from_micros))
}
