//! Attempts to send a payout, and the work that is left to do for it.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{Lookup, Row, Table, Update};
use crate::db::{Db, Engine};
use crate::id::{AttemptId, Id as _, PayoutId, RouteId};

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Its outcome is not known. A payout has at most one of these.
    Open,
    /// The rail says that it is paid.
    Paid,
    /// The rail refused it for good.
    Refused,
    /// No byte of it ever left, and another route was tried instead.
    NotSent,
    /// The operator ended it on evidence.
    Closed,
}

impl AttemptState {
    /// The word used in the database and in timelines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Refused => "refused",
            Self::NotSent => "not_sent",
            Self::Closed => "closed",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "paid" => Self::Paid,
            "refused" => Self::Refused,
            "not_sent" => Self::NotSent,
            "closed" => Self::Closed,
            // What cannot be read may be under way: it is asked about, not sent again.
            _ => Self::Open,
        }
    }
}

/// One attempt to send a payout over a route.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The id, which sorts by time of creation.
    pub id: AttemptId,
    /// Of which payout.
    pub payout_id: PayoutId,
    /// Over which route.
    pub route_id: RouteId,
    /// Over which rail.
    pub rail: String,
    /// The rail's version when it was begun.
    pub rail_version: String,
    /// SHA-256 of the rail's file.
    pub rail_digest: String,
    /// The network's reference, fixed before a byte leaves.
    pub rail_reference: String,
    /// The number that the reference was made with.
    pub number: i64,
    /// Whether it is open, or how it ended.
    pub state: AttemptState,
    /// Whether a byte may have left. Set before sending, cleared only by the host itself.
    pub bytes_left: bool,
    /// How often it was sent, always with the same reference.
    pub sends: i64,
    /// How often the rail was asked about it.
    pub queries: i64,
    /// Answers of "never received" in a row.
    pub never_received: i64,
    /// The network's last code.
    pub code: Option<String>,
    /// Its meaning, or why there was none.
    pub message: Option<String>,
    /// When it was begun; part of its reference.
    pub begun_at: Moment,
    /// When it was last sent.
    pub sent_at: Moment,
    /// When the rail gave its final answer.
    pub answered_at: Option<Moment>,
}

/// New attempts.
pub const ATTEMPTS: Table = Table {
    name: "attempts",
    columns: &[
        ("id", Text),
        ("payout_id", Text),
        ("route_id", Text),
        ("rail", Text),
        ("rail_version", Text),
        ("rail_digest", Text),
        ("rail_reference", Text),
        ("number", Int),
        ("begun_at", Int),
        ("state", Text),
        ("bytes_left", Int),
        ("sends", Int),
        ("queries", Int),
        ("never_received", Int),
        ("code", Text),
        ("message", Text),
        ("sent_at", Int),
        ("answered_at", Int),
    ],
    on_conflict: None,
};

/// What changes about an attempt.
pub const ATTEMPT_STATES: Update = Update {
    name: "attempts",
    key: "id",
    columns: &[
        ("state", Text),
        ("bytes_left", Int),
        ("sends", Int),
        ("queries", Int),
        ("never_received", Int),
        ("code", Text),
        ("message", Text),
        ("sent_at", Int),
        ("answered_at", Int),
    ],
    only_where: None,
};

/// A new attempt as a row of [`ATTEMPTS`].
#[must_use]
pub fn attempt_row(attempt: &Attempt) -> Row {
    let mut row: Row = vec![
        attempt.id.as_str().into(),
        attempt.payout_id.as_str().into(),
        attempt.route_id.as_str().into(),
        attempt.rail.as_str().into(),
        attempt.rail_version.as_str().into(),
        attempt.rail_digest.as_str().into(),
        attempt.rail_reference.as_str().into(),
        attempt.number.into(),
        attempt.begun_at.micros().into(),
    ];
    row.extend(attempt_state(attempt));
    row
}

/// A changed attempt as a row of [`ATTEMPT_STATES`].
#[must_use]
pub fn attempt_change(attempt: &Attempt) -> Row {
    let mut row = vec![attempt.id.as_str().into()];
    row.extend(attempt_state(attempt));
    row
}

fn attempt_state(attempt: &Attempt) -> Row {
    vec![
        attempt.state.as_str().into(),
        i64::from(attempt.bytes_left).into(),
        attempt.sends.into(),
        attempt.queries.into(),
        attempt.never_received.into(),
        attempt.code.clone().into(),
        attempt.message.clone().into(),
        attempt.sent_at.micros().into(),
        attempt.answered_at.map(Moment::micros).into(),
    ]
}

/// A payout's attempts, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_attempts(pool: &AnyPool, payout: &PayoutId) -> Result<Vec<Attempt>, sqlx::Error> {
    let sql = "SELECT * FROM attempts WHERE payout_id = $1 ORDER BY id";
    let rows = sqlx::query(sql).bind(payout.as_str()).fetch_all(pool).await?;
    rows.iter().map(attempt).collect()
}

/// The attempt with this reference.
///
/// # Errors
/// The database cannot be read.
pub async fn find_attempt(
    pool: &AnyPool,
    rail: &str,
    reference: &str,
) -> Result<Option<Attempt>, sqlx::Error> {
    let sql = "SELECT * FROM attempts WHERE rail = $1 AND rail_reference = $2";
    let row = sqlx::query(sql).bind(rail).bind(reference).fetch_optional(pool).await?;
    row.map(|row| attempt(&row)).transpose()
}

fn attempt(row: &AnyRow) -> Result<Attempt, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let int = |column| row.try_get::<i64, _>(column);
    Ok(Attempt {
        id: AttemptId::from_text(text("id")?),
        payout_id: PayoutId::from_text(text("payout_id")?),
        route_id: RouteId::from_text(text("route_id")?),
        rail: text("rail")?,
        rail_version: text("rail_version")?,
        rail_digest: text("rail_digest")?,
        rail_reference: text("rail_reference")?,
        number: int("number")?,
        state: AttemptState::parse(&text("state")?),
        bytes_left: int("bytes_left")? != 0,
        sends: int("sends")?,
        queries: int("queries")?,
        never_received: int("never_received")?,
        code: row.try_get("code")?,
        message: row.try_get("message")?,
        begun_at: Moment::from_micros(int("begun_at")?),
        sent_at: Moment::from_micros(int("sent_at")?),
        answered_at: row.try_get::<Option<i64>, _>("answered_at")?.map(Moment::from_micros),
    })
}

/// New work.
pub const DISPATCHES: Table = Table {
    name: "dispatches",
    columns: &[
        ("payout_id", Text),
        ("due_at", Int),
        ("lease_until", Int),
        ("fence", Int),
        ("tries", Int),
    ],
    on_conflict: None,
};

/// Work that is put off, and its lease given back.
pub const DISPATCH_DELAYS: Update = Update {
    name: "dispatches",
    key: "payout_id",
    columns: &[("due_at", Int), ("lease_until", Int), ("tries", Int)],
    only_where: None,
};

/// When claimed work is due, should its holder not come to an end.
pub const DISPATCH_DUES: Update =
    Update { name: "dispatches", key: "payout_id", columns: &[("due_at", Int)], only_where: None };

/// The fence of the present claim: a write under an older one is refused.
pub const DISPATCH_FENCES: Lookup =
    Lookup { name: "dispatches", key: "payout_id", columns: &[("fence", Int)], lock: true };

/// Work that this process has claimed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// For which payout.
    pub payout_id: PayoutId,
    /// Every write names it.
    pub fence: i64,
    /// How often it was put off.
    pub tries: i64,
}

/// Work for a new payout as a row of [`DISPATCHES`]; leased at once where `lease_until` is set.
#[must_use]
pub fn dispatch_row(payout: &PayoutId, due_at: Moment, lease_until: Moment) -> Row {
    let fence = i64::from(lease_until > Moment::default());
    vec![
        payout.as_str().into(),
        due_at.micros().into(),
        lease_until.micros().into(),
        fence.into(),
        0.into(),
    ]
}

/// Claims work that is due and that nobody holds, for `lease_us` by the database's clock.
///
/// # Errors
/// The database cannot be written.
pub async fn claim_dispatches(
    db: &Db,
    now: Moment,
    (lease_us, limit): (i64, i64),
) -> Result<Vec<Claim>, sqlx::Error> {
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?.micros();
    let sql = match db.engine() {
        Engine::Postgres => {
            "UPDATE dispatches SET lease_until = $1, fence = fence + 1 WHERE payout_id IN \
             (SELECT payout_id FROM dispatches WHERE due_at <= $2 AND lease_until < $3 \
             ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED) \
             RETURNING payout_id, fence, tries"
        }
        Engine::Sqlite => {
            "UPDATE dispatches SET lease_until = $1, fence = fence + 1 WHERE payout_id IN \
             (SELECT payout_id FROM dispatches WHERE due_at <= $2 AND lease_until < $3 \
             ORDER BY due_at LIMIT $4) \
             RETURNING payout_id, fence, tries"
        }
    };
    let rows = sqlx::query(sql)
        .bind(database_now.saturating_add(lease_us))
        .bind(now.micros())
        .bind(database_now)
        .bind(limit)
        .fetch_all(tx.conn())
        .await?;
    tx.commit().await?;
    rows.iter().map(claim).collect()
}

/// Claims the work for one payout, due or not, unless somebody holds it.
///
/// # Errors
/// The database cannot be written.
pub async fn claim_dispatch(
    db: &Db,
    payout: &PayoutId,
    lease_us: i64,
) -> Result<Option<Claim>, sqlx::Error> {
    let mut tx = db.write().await?;
    let database_now = tx.now(db.engine()).await?.micros();
    let sql = "UPDATE dispatches SET lease_until = $1, fence = fence + 1 \
               WHERE payout_id = $2 AND lease_until < $3 RETURNING payout_id, fence, tries";
    let row = sqlx::query(sql)
        .bind(database_now.saturating_add(lease_us))
        .bind(payout.as_str())
        .bind(database_now)
        .fetch_optional(tx.conn())
        .await?;
    tx.commit().await?;
    row.map(|row| claim(&row)).transpose()
}

/// Gives back every lease, so that work need not wait for them to run out. Only for a host
/// that nobody shares the database with.
///
/// # Errors
/// The database cannot be written.
pub async fn release_leases(db: &Db) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE dispatches SET lease_until = 0, fence = fence + 1 WHERE lease_until > 0";
    sqlx::query(sql).execute(tx.conn()).await?;
    tx.commit().await
}

/// Removes work that is done.
///
/// # Errors
/// The database cannot be written.
pub async fn drop_dispatch(db: &Db, claim: &Claim) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "DELETE FROM dispatches WHERE payout_id = $1 AND fence = $2";
    sqlx::query(sql).bind(claim.payout_id.as_str()).bind(claim.fence).execute(tx.conn()).await?;
    tx.commit().await
}

/// When the work for a payout is due, if there is any.
///
/// # Errors
/// The database cannot be read.
pub async fn find_due(pool: &AnyPool, payout: &PayoutId) -> Result<Option<Moment>, sqlx::Error> {
    let sql = "SELECT due_at FROM dispatches WHERE payout_id = $1";
    let due: Option<i64> =
        sqlx::query_scalar(sql).bind(payout.as_str()).fetch_optional(pool).await?;
    Ok(due.map(Moment::from_micros))
}

fn claim(row: &AnyRow) -> Result<Claim, sqlx::Error> {
    Ok(Claim {
        payout_id: PayoutId::from_text(row.try_get("payout_id")?),
        fence: row.try_get("fence")?,
        tries: row.try_get("tries")?,
    })
}
