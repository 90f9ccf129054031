//! The work that is left to do: one row for each object that is on its way out, with the lease
//! of whoever is at it.
//!
//! Leases run by the database's clock. The fence rises with every claim, and a write under an
//! old fence is refused. A nudge says that there is news: whoever holds the lease asks again
//! instead of putting the work off.
//!
//! An attempt over the route for which queued work was claimed does not change its row: whoever
//! holds it ends it or puts it off. So what says "queued" may have an attempt while somebody holds
//! it, or after he died over it: then its lease is not 0, however long it has run out.

use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Removal, Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::db::{Db, Engine, Tx};
use crate::env::Env;
use crate::id::{Id as _, RouteId};
use crate::ledger::Guard;

/// Whether work is to be sent or asked about, as its row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No attempt yet, if nobody ever held it since this was written.
    Queued,
    /// There is an attempt, and perhaps a byte left.
    Sent,
}

impl Stage {
    /// The word used in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Queued, Self::Sent].into_iter().find(|stage| stage.as_str() == text)
    }
}

/// Work as it is written for the first time.
#[derive(Clone, Debug)]
pub struct Work {
    /// The object that is on its way out.
    pub id: String,
    /// Test or live.
    pub env: Env,
    /// Whose money it is; lanes are shared fairly between them.
    pub merchant_id: String,
    /// The route whose lane it waits in.
    pub route_id: RouteId,
    /// What its references' numbers are made from; see [`super::serials`].
    pub serial: i64,
    /// When the object was queued; part of its references.
    pub queued_at: Moment,
    /// Until when whoever writes it holds it; nobody, if this is in 1970.
    pub lease_until: Moment,
}

/// New work.
pub static WORK: Table<Work> = Table {
    name: "transfers",
    fixed: &[
        text("id", |work| (&work.id).into()),
        text("env", |work| work.env.as_str().into()),
        text("merchant_id", |work| (&work.merchant_id).into()),
        int("serial", |work| work.serial.into()),
        int("queued_at", |work| work.queued_at.into()),
    ],
    changing: &[
        text("route_id", |work| work.route_id.as_str().into()),
        text("stage", |_| Stage::Queued.as_str().into()),
        int("due_at", |work| work.queued_at.into()),
        int("lease_until", |work| work.lease_until.into()),
        int("fence", |work| (work.lease_until > Moment::default()).into()),
        int("tries", |_| 0.into()),
        int("nudges", |_| 0.into()),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// Work whose object has ended.
pub static WORK_DONE: Removal = Removal { name: "transfers", key: "id" };

/// The fence of the present claim, and how often there was news.
pub static WORK_FENCES: Lookup = Lookup {
    name: "transfers",
    key: "id",
    columns: &[("fence", Int), ("nudges", Int)],
    lock: true,
};

/// Work that is put off: its lease ends.
#[derive(Clone, Debug)]
pub(super) struct PutOff {
    pub id: String,
    pub route_id: RouteId,
    pub stage: Stage,
    pub due_at: Moment,
    pub tries: i64,
    /// Since when no route takes it, if none does.
    pub unrouted_since: Option<Moment>,
    /// News that nobody has asked about yet.
    pub nudges: i64,
}

pub(super) static WORK_PUT_OFF: Update<PutOff> = Update {
    name: "transfers",
    key: text("id", |put_off| (&put_off.id).into()),
    columns: &[
        text("route_id", |put_off| put_off.route_id.as_str().into()),
        text("stage", |put_off| put_off.stage.as_str().into()),
        int("due_at", |put_off| put_off.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("tries", |put_off| put_off.tries.into()),
        int("unrouted_since", |put_off| put_off.unrouted_since.into()),
        int("nudges", |put_off| put_off.nudges.into()),
    ],
    only_where: None,
};

/// Work that came to nothing: due again at `due_at`, once the lease of whoever failed is over.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub id: String,
    pub due_at: Moment,
}

pub(super) static WORK_FAILED: Update<Failed> = Update {
    name: "transfers",
    key: text("id", |failed| (&failed.id).into()),
    columns: &[int("due_at", |failed| failed.due_at.into())],
    only_where: None,
};

/// Work under way on a route: due again at `due_at`, should its holder die.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub id: String,
    pub route_id: RouteId,
    pub due_at: Moment,
}

pub(super) static WORK_UNDER_WAY: Update<UnderWay> = Update {
    name: "transfers",
    key: text("id", |work| (&work.id).into()),
    columns: &[
        text("route_id", |work| work.route_id.as_str().into()),
        text("stage", |_| Stage::Sent.as_str().into()),
        int("due_at", |work| work.due_at.into()),
        int("unrouted_since", |_| None::<Moment>.into()),
    ],
    only_where: None,
};

/// Work that waits for its file: nobody's, until the file's day has come.
#[derive(Clone, Debug)]
pub(super) struct InFile {
    pub id: String,
    pub route_id: RouteId,
    pub due_at: Moment,
}

pub(super) static WORK_IN_FILE: Update<InFile> = Update {
    name: "transfers",
    key: text("id", |work| (&work.id).into()),
    columns: &[
        text("route_id", |work| work.route_id.as_str().into()),
        text("stage", |_| Stage::Sent.as_str().into()),
        int("due_at", |work| work.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("tries", |_| 0.into()),
        int("unrouted_since", |_| None::<Moment>.into()),
        int("nudges", |_| 0.into()),
    ],
    only_where: None,
};

/// Work that this process has claimed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The object.
    pub id: String,
    /// The route whose lane it was in.
    pub route_id: RouteId,
    /// The stage that it was in.
    pub stage: Stage,
    /// Every write names it.
    pub fence: i64,
    /// How often it was put off.
    pub tries: i64,
    /// Since when no route takes it, if none did when somebody looked.
    pub unrouted_since: Option<Moment>,
    /// How often there had been news when it was claimed.
    pub nudges: i64,
    /// When it was due; in the future where somebody wants to know before that.
    pub due_at: Moment,
    /// What its references' numbers are made from.
    pub serial: i64,
}

impl Claim {
    /// Refuses what is written by whoever has lost it.
    #[must_use]
    pub fn guard(&self) -> Guard {
        Guard { on: &WORK_FENCES, id: self.id.clone(), version: self.fence }
    }
}

/// After every id of a merchant.
const LAST: &str = "~";

/// The columns of a [`Claim`].
const CLAIM: &str = "id, route_id, stage, fence, tries, unrouted_since, nudges, due_at, \
                     serial";

/// Routes with work, however much of it there is: the walk touches each once.
///
/// # Errors
/// The database cannot be read.
pub async fn list_routes_with_work(pool: &AnyPool) -> Result<Vec<RouteId>, sqlx::Error> {
    let sql = "WITH RECURSIVE lanes(route_id) AS (SELECT MIN(route_id) FROM transfers \
               UNION ALL SELECT (SELECT MIN(t.route_id) FROM transfers t \
               WHERE t.route_id > l.route_id) FROM lanes l WHERE l.route_id IS NOT NULL) \
               SELECT route_id FROM lanes WHERE route_id IS NOT NULL";
    let routes: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await?;
    Ok(routes.into_iter().map(RouteId::from_text).collect())
}

/// Which work is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<'a> {
    /// On this route.
    pub route: &'a RouteId,
    /// In this stage.
    pub stage: Stage,
    /// Due by then.
    pub now: Moment,
    /// Of merchants after this one, and then from the first.
    pub after: &'a str,
}

/// Claims work that is due and that nobody holds, for `lease` by the database's clock: as much
/// of each merchant as of any other, the oldest first. Answers the merchant whose turn was last
/// as well; the next round begins after it.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn claim_due(
    db: &Db,
    due: Due<'_>,
    (lease, limit): (Duration, usize),
) -> Result<(Vec<Claim>, String), sqlx::Error> {
    let merchants = list_merchants_due(db, due, limit).await?;
    if merchants.is_empty() {
        return Ok((Vec::new(), String::new()));
    }
    let share = limit.div_ceil(merchants.len());
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?;
    // As many at a time as cannot come to more than is wanted.
    let (mut claims, mut served) = (Vec::new(), 0);
    while served < merchants.len() && claims.len() < limit {
        let left = limit - claims.len();
        let share = share.min(left);
        let group = &merchants[served..merchants.len().min(served + left / share)];
        claims.extend(claim_of(&mut tx, db, due, (group, share), (database_now, lease)).await?);
        served += group.len();
    }
    let last = merchants[..served].last();
    tx.commit().await?;
    Ok((claims, last.cloned().unwrap_or_default()))
}

/// Merchants with work that is due and free, beginning after the one whose turn was last. Each is
/// looked up once, however much it has.
async fn list_merchants_due(
    db: &Db,
    due: Due<'_>,
    limit: usize,
) -> Result<Vec<String>, sqlx::Error> {
    let sql = "WITH RECURSIVE merchants(id) AS (\
               SELECT (SELECT MIN(merchant_id) FROM transfers \
               WHERE route_id = $1 AND stage = $2 AND merchant_id > $5 AND merchant_id <= $6) \
               UNION ALL SELECT (SELECT MIN(t.merchant_id) FROM transfers t \
               WHERE t.route_id = $1 AND t.stage = $2 AND t.merchant_id > m.id \
               AND t.merchant_id <= $6) \
               FROM merchants m WHERE m.id IS NOT NULL) \
               SELECT id FROM merchants WHERE id IS NOT NULL AND 1 = (SELECT COUNT(*) FROM \
               (SELECT 1 AS one FROM transfers t WHERE t.route_id = $1 AND t.stage = $2 \
               AND t.merchant_id = merchants.id AND t.due_at <= $3 AND t.lease_until < $4 \
               LIMIT 1) found) LIMIT $7";
    let database_now = db.now().await?.micros();
    let mut found: Vec<String> = Vec::new();
    for (after, to) in [(due.after, LAST), ("", due.after)] {
        if to.is_empty() || found.len() >= limit {
            break;
        }
        let rows: Vec<String> = sqlx::query_scalar(sql)
            .bind(due.route.as_str())
            .bind(due.stage.as_str())
            .bind(due.now.micros())
            .bind(database_now)
            .bind(after)
            .bind(to)
            .bind(i64::try_from(limit - found.len()).unwrap_or(1))
            .fetch_all(db.pool())
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Claims up to `share` pieces of each merchant's work.
async fn claim_of(
    tx: &mut Tx,
    db: &Db,
    due: Due<'_>,
    (merchants, share): (&[String], usize),
    (database_now, lease): (Moment, Duration),
) -> Result<Vec<Claim>, sqlx::Error> {
    let engine = db.engine();
    let all = engine.texts("$4");
    let of_one = |merchant: &str| {
        format!(
            "SELECT id FROM transfers WHERE route_id = $2 AND stage = $3 \
             AND merchant_id = {merchant} AND due_at <= $5 AND lease_until < $6 \
             ORDER BY due_at LIMIT $7"
        )
    };
    let (of_one, found) = (of_one("m.text"), "SELECT found.id FROM");
    let wanted = match engine {
        Engine::Postgres => {
            format!("{found} {all} m CROSS JOIN LATERAL ({of_one} FOR UPDATE SKIP LOCKED) found")
        }
        Engine::Sqlite => format!("{found} {all} m JOIN transfers found ON found.id IN ({of_one})"),
    };
    let sql = format!(
        "WITH wanted(id) AS MATERIALIZED ({wanted}) \
         UPDATE transfers SET lease_until = $1, fence = fence + 1 \
         WHERE id IN (SELECT id FROM wanted) RETURNING {CLAIM}"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(database_now.after(lease).micros())
        .bind(due.route.as_str())
        .bind(due.stage.as_str())
        .bind(serde_json::to_string(merchants).unwrap_or_default())
        .bind(due.now.micros())
        .bind(database_now.micros())
        .bind(i64::try_from(share).unwrap_or(1))
        .fetch_all(tx.conn())
        .await?;
    rows.iter().map(claim).collect()
}

/// What became of wanting the work for one object.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// It is this process's now.
    Yes(Claim),
    /// Somebody is at it.
    Busy,
    /// There is none: the object has ended, or waits for a person.
    NoWork,
}

/// Claims the work for one object, due or not, unless somebody holds it.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn claim_one(db: &Db, id: &str, lease: Duration) -> Result<Claimed, sqlx::Error> {
    let mut tx = db.write().await?;
    let now = tx.now(db.engine()).await?;
    let sql = format!(
        "UPDATE transfers SET lease_until = $1, fence = fence + 1 \
         WHERE id = $2 AND lease_until < $3 RETURNING {CLAIM}"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(now.after(lease).micros())
        .bind(id)
        .bind(now.micros())
        .fetch_optional(tx.conn())
        .await?;
    let claimed = match row {
        Some(row) => Claimed::Yes(claim(&row)?),
        None => {
            let sql = "SELECT COUNT(*) FROM transfers WHERE id = $1";
            let known: i64 = sqlx::query_scalar(sql).bind(id).fetch_one(tx.conn()).await?;
            if known == 0 { Claimed::NoWork } else { Claimed::Busy }
        }
    };
    tx.commit().await?;
    Ok(claimed)
}

/// Says that there is news about an object: whoever is at it asks again, and otherwise it is
/// due now.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn nudge(db: &Db, id: &str, now: Moment) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE transfers SET nudges = nudges + 1, \
               due_at = CASE WHEN due_at < $2 THEN due_at ELSE $2 END WHERE id = $1";
    sqlx::query(sql).bind(id).bind(now.micros()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Whether there is news of an object that nobody has asked about since.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn has_news(pool: &AnyPool, id: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM transfers WHERE id = $1 AND nudges > 0";
    let count: i64 = sqlx::query_scalar(sql).bind(id).fetch_one(pool).await?;
    Ok(count > 0)
}

/// A lease that is over, of work that somebody had and may have sent: nobody's, and not 0.
const HAD: i64 = 1;

/// How a lease ends that is given back. A fence above 1 says that somebody else had claimed it
/// before.
fn given_back() -> String {
    format!("lease_until = CASE WHEN stage = 'queued' AND fence > 1 THEN {HAD} ELSE 0 END")
}

/// Gives a claim back, of which nothing came.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn give_back(db: &Db, claim: &Claim) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = format!("UPDATE transfers SET {} WHERE id = $1 AND fence = $2", given_back());
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(&claim.id)
        .bind(claim.fence)
        .execute(tx.conn())
        .await?;
    tx.commit().await
}

/// Gives claims back of which nothing came.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn give_back_all(db: &Db, claims: &[Claim]) -> Result<(), sqlx::Error> {
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    let held = db.engine().among("id", "$1");
    let sql = format!("SELECT id, fence FROM transfers WHERE {held} ORDER BY id");
    let lock = if db.engine() == Engine::Postgres { " FOR UPDATE" } else { "" };
    let mut tx = db.write().await?;
    let found: Vec<(String, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(sql + lock))
        .bind(serde_json::to_string(&ids).unwrap_or_default())
        .fetch_all(tx.conn())
        .await?;
    let is_own = |(id, fence): &&(String, i64)| {
        claims.iter().any(|claim| claim.id == *id && claim.fence == *fence)
    };
    let own: Vec<&str> = found.iter().filter(is_own).map(|(id, _)| id.as_str()).collect();
    let sql = format!("UPDATE transfers SET {} WHERE {held}", given_back());
    let query = sqlx::query(sqlx::AssertSqlSafe(sql));
    query.bind(serde_json::to_string(&own).unwrap_or_default()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Says of some work that it was sent whose holder died over it: so it is asked about where nothing
/// is sent. Looks through all that is queued.
///
/// # Errors
/// The database cannot be written.
pub async fn find_abandoned(db: &Db) -> Result<(), sqlx::Error> {
    const SOME: i64 = 1_000;
    let sql = "SELECT t.id FROM transfers t WHERE t.stage = 'queued' AND t.lease_until > 0 \
               AND t.lease_until < $1 \
               AND EXISTS (SELECT 1 FROM attempts a WHERE a.transfer_id = t.id) LIMIT $2";
    let now = db.now().await?.micros();
    let query = sqlx::query_scalar(sql).bind(now).bind(SOME);
    let found: Vec<String> = query.fetch_all(db.pool()).await?;
    if found.is_empty() {
        return Ok(());
    }
    let these = db.engine().among("id", "$2");
    let sql = format!("UPDATE transfers SET stage = 'sent' WHERE lease_until < $1 AND {these}");
    let mut tx = db.write().await?;
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(now);
    query.bind(serde_json::to_string(&found).unwrap_or_default()).execute(tx.conn()).await?;
    tx.commit().await
}

/// In which world some work is, and for which merchant.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn owner(
    pool: &AnyPool,
    id: &str,
) -> Result<Option<(String, String)>, sqlx::Error> {
    let sql = "SELECT env, merchant_id FROM transfers WHERE id = $1";
    sqlx::query_as(sql).bind(id).fetch_optional(pool).await
}

/// Ends every lease, so that work need not wait for them to run out; what is queued keeps the mark
/// that somebody had it. Only for a host that nobody shares the database with.
///
/// # Errors
/// The database cannot be written.
pub async fn release_leases(db: &Db) -> Result<(), sqlx::Error> {
    let transfers = format!(
        "UPDATE transfers SET lease_until = CASE WHEN stage = 'queued' THEN {HAD} ELSE 0 END, \
         fence = fence + 1 WHERE lease_until > 0"
    );
    let mut tx = db.write().await?;
    for sql in [
        &*transfers,
        "UPDATE payment_files SET lease_until = 0, fence = fence + 1 WHERE lease_until > 0",
        "UPDATE feeds SET lease_until = 0 WHERE lease_until > 0",
        "UPDATE inbox SET lease_until = 0 WHERE state = 'new' AND lease_until > 0",
    ] {
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(tx.conn()).await?;
    }
    tx.commit().await
}

/// Removes work whose object has ended.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn drop_work(db: &Db, claim: &Claim) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "DELETE FROM transfers WHERE id = $1 AND fence = $2";
    sqlx::query(sql).bind(&claim.id).bind(claim.fence).execute(tx.conn()).await?;
    tx.commit().await
}

fn claim(row: &AnyRow) -> Result<Claim, sqlx::Error> {
    let stage: String = row.try_get("stage")?;
    Ok(Claim {
        id: row.try_get("id")?,
        route_id: RouteId::from_text(row.try_get("route_id")?),
        stage: Stage::parse(&stage).ok_or_else(|| sqlx::Error::Decode(stage.into()))?,
        fence: row.try_get("fence")?,
        tries: row.try_get("tries")?,
        unrouted_since: row.try_get::<Option<i64>, _>("unrouted_since")?.map(Moment::from_micros),
        nudges: row.try_get("nudges")?,
        due_at: Moment::from_micros(row.try_get("due_at")?),
        serial: row.try_get("serial")?,
    })
}

impl Work {
    /// The claim of whoever writes it with a lease.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        (self.lease_until > Moment::default()).then(|| Claim {
            id: self.id.clone(),
            route_id: self.route_id.clone(),
            stage: Stage::Queued,
            fence: 1,
            tries: 0,
            unrouted_since: None,
            nudges: 0,
            due_at: self.queued_at,
            serial: self.serial,
        })
    }
}
