//! Attempts to carry a payment out: what was fixed before a byte left, and what came of it.

use std::sync::Arc;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Table, Update, int, text};
use crate::id::{AttemptId, Id as _, PaymentFileId, RouteId};
use crate::ledger::verify::These;
use crate::rails::RouteConfiguration;
use crate::wasm::rail::Subject;

use super::order::{Failure, Fixed};

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Its outcome is not known. A transfer has at most one of these.
    Open,
    /// The rail says that it is paid.
    Paid,
    /// The rail refused it for good.
    Refused,
    /// It was paid and came back.
    Returned,
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
            Self::Returned => "returned",
            Self::NotSent => "not_sent",
            Self::Closed => "closed",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "paid" => Self::Paid,
            "refused" => Self::Refused,
            "returned" => Self::Returned,
            "not_sent" => Self::NotSent,
            "closed" => Self::Closed,
            // What cannot be read may be under way: it is asked about, not sent again.
            _ => Self::Open,
        }
    }
}

/// One attempt to carry a payment out over a route.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id.
    pub id: AttemptId,
    /// The object that is paid out.
    pub transfer_id: String,
    /// The route it goes over, as it was set.
    pub configuration: Arc<RouteConfiguration>,
    /// The route's name, by which its settlement account is known.
    pub route: String,
    /// The rail.
    pub rail: String,
    /// The network's reference, fixed before a byte leaves.
    pub rail_reference: String,
    /// The number that the reference was made with.
    pub number: i64,
    /// The instant that the reference was made with.
    pub begun_at: Moment,
    /// What was known of the recipient's account, sealed: every call gets the same.
    pub resolution: Option<String>,
    /// The texts that nobody can guess which were made for it, sealed.
    pub seeds: Option<String>,
    /// The network's own name for it, once it told it.
    pub network_id: Option<String>,
    /// What the rail needs in later calls, sealed.
    pub facts: Option<String>,
    /// How it stands.
    pub state: AttemptState,
    /// Whether a byte may have left that could move money. Set before sending, cleared only by the host itself.
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
    /// When it was last sent; when it was fixed, if it never was.
    pub sent_at: Moment,
    /// When the rail gave its final answer.
    pub answered_at: Option<Moment>,
    /// The file that it is in, where it goes by file.
    pub file_id: Option<PaymentFileId>,
    /// When it was written down.
    pub created_at: Moment,
}

impl Attempt {
    /// The attempt as a feature hears of it.
    #[must_use]
    pub fn fixed(&self) -> Fixed {
        Fixed {
            route: self.route.clone(),
            reference: self.rail_reference.clone(),
            is_sent: self.sends > 0,
        }
    }

    /// Why it did not get through, as it was written down.
    pub(super) fn failure(&self) -> Failure {
        Failure {
            code: self.code.clone().unwrap_or_default(),
            message: self.message.clone().unwrap_or_default(),
            id: None,
        }
    }

    /// The attempt, of which nothing left, ended because another one takes over.
    pub(super) fn not_sent(&self, why: String, now: Moment) -> Self {
        let answered_at = Some(now);
        Self { state: AttemptState::NotSent, message: Some(why), answered_at, ..self.clone() }
    }

    /// The attempt, of which nothing was carried out, ended because an earlier one was paid.
    pub(super) fn not_needed(&self, paid: &Self, now: Moment) -> Self {
        self.not_sent(format!("not sent: {} was paid", paid.rail_reference), now)
    }

    /// The attempt, ended by the operator on evidence.
    #[must_use]
    pub fn closed(&self, now: Moment) -> Self {
        Self { state: AttemptState::Closed, answered_at: Some(now), ..self.clone() }
    }
}

/// Those of an object's attempts that were paid besides this one: each had been given up before.
pub fn paid_besides<'a>(known: &'a [Attempt], this: &Attempt) -> impl Iterator<Item = &'a Attempt> {
    known.iter().filter(move |known| known.state == AttemptState::Paid && known.id != this.id)
}

/// New attempts.
pub static ATTEMPTS: Table<Attempt> = Table {
    name: "attempts",
    fixed: &[
        text("id", |attempt| attempt.id.as_str().into()),
        text("transfer_id", |attempt| (&attempt.transfer_id).into()),
        text("configuration", |attempt| (&attempt.configuration.id).into()),
        text("route", |attempt| (&attempt.route).into()),
        text("rail", |attempt| (&attempt.rail).into()),
        text("rail_reference", |attempt| (&attempt.rail_reference).into()),
        int("number", |attempt| attempt.number.into()),
        int("begun_at", |attempt| attempt.begun_at.into()),
        text("resolution", |attempt| (&attempt.resolution).into()),
        text("seeds", |attempt| (&attempt.seeds).into()),
        int("created_at", |attempt| attempt.created_at.into()),
    ],
    changing: ATTEMPT_STATES.columns,
    on_conflict: None,
    is_sealed: true,
};

/// What changes about an attempt.
pub static ATTEMPT_STATES: Update<Attempt> = Update {
    name: "attempts",
    key: text("id", |attempt| attempt.id.as_str().into()),
    columns: &[
        text("network_id", |attempt| (&attempt.network_id).into()),
        text("facts", |attempt| (&attempt.facts).into()),
        text("state", |attempt| attempt.state.as_str().into()),
        int("bytes_left", |attempt| attempt.bytes_left.into()),
        int("sends", |attempt| attempt.sends.into()),
        int("queries", |attempt| attempt.queries.into()),
        int("never_received", |attempt| attempt.never_received.into()),
        text("code", |attempt| (&attempt.code).into()),
        text("message", |attempt| (&attempt.message).into()),
        int("sent_at", |attempt| attempt.sent_at.into()),
        int("answered_at", |attempt| attempt.answered_at.into()),
        text("file_id", |attempt| attempt.file_id.as_ref().map(PaymentFileId::as_str).into()),
    ],
    only_where: None,
};

const ATTEMPT: &str = "a.*, c.route_id, c.rail_version, c.rail_digest, c.fingerprint";

/// An attempt whose configuration somebody has deleted is an error, and not overlooked.
const JOINED: &str =
    "FROM attempts a LEFT JOIN route_configurations c ON c.id = a.configuration WHERE";

/// What is open over a route of which a byte may have left. Whatever is open has work that was sent,
/// or that somebody had (see `work`).
const OPEN_OVER: &str = "FROM transfers t JOIN attempts a ON a.transfer_id = t.id \
    JOIN route_configurations c ON c.id = a.configuration \
    WHERE (t.stage = 'sent' OR t.lease_until > 0) AND c.route_id = $1 AND a.state = 'open' \
    AND a.bytes_left = 1";

/// An object's attempts, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_attempts(pool: &AnyPool, transfer: &str) -> Result<Vec<Attempt>, sqlx::Error> {
    let sql = AssertSqlSafe(format!("SELECT {ATTEMPT} {JOINED} a.transfer_id = $1 ORDER BY a.id"));
    let rows = sqlx::query(sql).bind(transfer).fetch_all(pool).await?;
    rows.iter().map(attempt).collect()
}

/// The attempts of some objects, each object's oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_attempts_of(
    db: &mut AnyConnection,
    these: &These,
) -> Result<Vec<Attempt>, sqlx::Error> {
    // Whoever proves the books says so where one is not there; nobody else works without it.
    let columns = ["route_id", "rail_version", "rail_digest", "fingerprint"];
    let columns = columns.map(|column| format!("COALESCE(c.{column}, '') AS {column}")).join(", ");
    let sql = format!(
        "SELECT a.*, {columns} {JOINED} {{these a.transfer_id}} ORDER BY a.transfer_id, a.id"
    );
    let rows = these.query(&sql).fetch_all(db).await?;
    rows.iter().map(attempt).collect()
}

/// The attempts that a network may be speaking of: one, if it names our reference.
///
/// # Errors
/// The database cannot be read.
pub async fn find_attempts(
    pool: &AnyPool,
    rail: &str,
    about: &Subject,
) -> Result<Vec<Attempt>, sqlx::Error> {
    let (wanted, name) = match about {
        // Of all its payments nothing is said by itself.
        Subject::File(_) => return Ok(Vec::new()),
        Subject::Reference(name) => ("a.rail = $1 AND a.rail_reference = $2", name),
        Subject::NetworkId(name) => ("a.rail = $1 AND a.network_id = $2 LIMIT 100", name),
    };
    let sql = AssertSqlSafe(format!("SELECT {ATTEMPT} {JOINED} {wanted}"));
    let rows = sqlx::query(sql).bind(rail).bind(name).fetch_all(pool).await?;
    rows.iter().map(attempt).collect()
}

/// The attempts in a file that have not ended, oldest first.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_in_file(
    pool: &AnyPool,
    file: &PaymentFileId,
) -> Result<Vec<Attempt>, sqlx::Error> {
    let wanted = "a.file_id = $1 AND a.state = 'open' ORDER BY a.id";
    let sql = AssertSqlSafe(format!("SELECT {ATTEMPT} {JOINED} {wanted}"));
    let rows = sqlx::query(sql).bind(file.as_str()).fetch_all(pool).await?;
    rows.iter().map(attempt).collect()
}

/// The attempts that went out in a file and that an operator has ended.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_marked_in_file(
    pool: &AnyPool,
    file: &PaymentFileId,
) -> Result<Vec<Attempt>, sqlx::Error> {
    let wanted = "a.file_id = $1 AND a.state = 'closed' AND a.network_id IS NOT NULL ORDER BY a.id";
    let sql = AssertSqlSafe(format!("SELECT {ATTEMPT} {JOINED} {wanted}"));
    let rows = sqlx::query(sql).bind(file.as_str()).fetch_all(pool).await?;
    rows.iter().map(attempt).collect()
}

/// How many payments of a file that was made have ended without it.
///
/// # Errors
/// The database cannot be read.
pub async fn count_ended_in_file(pool: &AnyPool, file: &PaymentFileId) -> Result<i64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM attempts WHERE file_id = $1 AND state <> 'open' \
               AND network_id IS NOT NULL";
    sqlx::query_scalar(sql).bind(file.as_str()).fetch_one(pool).await
}

/// How many attempts over a route are open of which a byte may have left.
///
/// # Errors
/// The database cannot be read.
pub async fn count_open(pool: &AnyPool, route: &RouteId) -> Result<i64, sqlx::Error> {
    let sql = AssertSqlSafe(format!("SELECT COUNT(*) {OPEN_OVER}"));
    sqlx::query_scalar(sql).bind(route.as_str()).fetch_one(pool).await
}

/// How a route was set when what is open over it, and may have left, was sent.
///
/// # Errors
/// The database cannot be read.
pub async fn list_open_configurations(
    pool: &AnyPool,
    route: &RouteId,
) -> Result<Vec<RouteConfiguration>, sqlx::Error> {
    let sql = format!(
        "SELECT DISTINCT a.configuration, c.route_id, c.rail_version, c.rail_digest, c.fingerprint \
         {OPEN_OVER}"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(route.as_str()).fetch_all(pool).await?;
    rows.iter().map(configuration).collect()
}

/// Whether anything ever went over a route, or was about to.
///
/// # Errors
/// The database cannot be read.
pub async fn was_used(pool: &AnyPool, route: &RouteId) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM route_configurations WHERE route_id = $1";
    let found: i64 = sqlx::query_scalar(sql).bind(route.as_str()).fetch_one(pool).await?;
    Ok(found > 0)
}

fn attempt(row: &AnyRow) -> Result<Attempt, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let int = |column| row.try_get::<i64, _>(column);
    let at = |column| int(column).map(Moment::from_micros);
    Ok(Attempt {
        id: AttemptId::from_text(text("id")?),
        transfer_id: text("transfer_id")?,
        configuration: Arc::new(configuration(row)?),
        route: text("route")?,
        rail: text("rail")?,
        rail_reference: text("rail_reference")?,
        number: int("number")?,
        begun_at: at("begun_at")?,
        resolution: row.try_get("resolution")?,
        seeds: row.try_get("seeds")?,
        network_id: row.try_get("network_id")?,
        facts: row.try_get("facts")?,
        state: AttemptState::parse(&text("state")?),
        bytes_left: int("bytes_left")? != 0,
        sends: int("sends")?,
        queries: int("queries")?,
        never_received: int("never_received")?,
        code: row.try_get("code")?,
        message: row.try_get("message")?,
        sent_at: at("sent_at")?,
        answered_at: row.try_get::<Option<i64>, _>("answered_at")?.map(Moment::from_micros),
        file_id: row.try_get::<Option<String>, _>("file_id")?.map(PaymentFileId::from_text),
        created_at: at("created_at")?,
    })
}

fn configuration(row: &AnyRow) -> Result<RouteConfiguration, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    Ok(RouteConfiguration {
        id: text("configuration")?,
        route_id: RouteId::from_text(text("route_id")?),
        rail_version: text("rail_version")?,
        rail_digest: text("rail_digest")?,
        fingerprint: text("fingerprint")?,
    })
}
