//! What a database has forgotten that was restored, or that lagged when it took over: payments
//! that left, and the numbers that theirs were made from.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::json;

use crate::cases::{Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Db, in_time};
use crate::env::Env;
use crate::id::IdGenerator;
use crate::money::{Currency, Minor};

use super::QuarantineError;
use crate::transfers::intents::Intent;
use crate::transfers::newest::Newest;

/// Serials are moved on by so many: what was forgotten may have used the next ones.
const SERIALS_SKIPPED: i64 = 10_000_000;
/// Files that may have been made since the backup.
const FILES_SKIPPED: i64 = 10_000;
/// Of those on one day, up to that of the restore.
const FILES_OF_DAY_SKIPPED: i64 = 8;
/// And entries in them.
const ENTRIES_SKIPPED: i64 = 1_000_000;
/// Intents looked up together.
const PORTION: usize = 200;
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// The journal of this host's intents as it is compared with a database, the newest portion first.
/// It is read back until whatever left before is known: intents are written when something leaves,
/// and the attempt of what goes by file, or once more, was made long before.
pub(super) struct Reading {
    /// None once all of it was read.
    newest: Option<Newest>,
    /// What left up to then is known, in microseconds.
    known_until: i64,
}

impl Reading {
    /// Begins with the newest; what is older than `since` is left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) async fn open(folder: &Path, since: Moment) -> std::io::Result<Self> {
        let folder = folder.to_owned();
        let opening = tokio::task::spawn_blocking(move || Newest::open(&folder, since));
        let newest = opening.await.map_err(std::io::Error::other)??;
        Ok(Self { newest: Some(newest), known_until: i64::MIN })
    }

    /// Those of the next portion whose attempts the database does not know, and has no case about;
    /// nothing at the end.
    ///
    /// # Errors
    /// The journal cannot be read, or the database.
    pub(super) async fn next(&mut self, db: &Db) -> Result<Option<Vec<Intent>>, QuarantineError> {
        let Some(mut newest) = self.newest.take() else { return Ok(None) };
        let taking = move || newest.take(PORTION).map(|portion| (portion, newest));
        let taken = tokio::task::spawn_blocking(taking).await.map_err(std::io::Error::other)?;
        let (mut portion, rest) = taken?;
        let Some(oldest) = portion.last().map(|intent| intent.at_us) else { return Ok(None) };
        let known = in_time(Known::of(db, &portion)).await?;
        self.known_until = self.known_until.max(known.until);
        self.newest = Some(rest).filter(|_| oldest > self.known_until);
        portion.retain(|intent| !known.has(intent));
        // What a payment left over last has the last of its cases.
        portion.reverse();
        Ok(Some(portion))
    }
}

/// What a database knows of some intents.
struct Known {
    /// Ids of attempts, and fingerprints of cases.
    names: HashSet<String>,
    /// What was made up to then is known, in microseconds, whichever host's clock says so.
    until: i64,
}

impl Known {
    async fn of(db: &Db, intents: &[Intent]) -> Result<Self, sqlx::Error> {
        let attempts: Vec<&str> = intents.iter().map(|it| it.attempt_id.as_str()).collect();
        let cases: Vec<String> = intents.iter().map(fingerprint).collect();
        let (of_attempts, of_cases) =
            (db.engine().among("id", "$1"), db.engine().among("fingerprint", "$2"));
        let sql = format!(
            "SELECT id, created_at FROM attempts WHERE {of_attempts} \
             UNION ALL SELECT fingerprint, NULL FROM cases WHERE {of_cases}"
        );
        let query = sqlx::query_as(sqlx::AssertSqlSafe(sql));
        let query = query.bind(json!(attempts).to_string()).bind(json!(cases).to_string());
        let rows: Vec<(String, Option<i64>)> = query.fetch_all(db.pool()).await?;
        // An attempt is made before it leaves, whatever a clock said that made it.
        let left: HashMap<&str, i64> =
            intents.iter().map(|it| (it.attempt_id.as_str(), it.at_us)).collect();
        let made =
            rows.iter().filter_map(|(id, made_at)| Some((*made_at)?.min(*left.get(id.as_str())?)));
        let until =
            made.max().map(|at| Moment::from_micros(at).before(limits::CLOCKS_APART).micros());
        let names = rows.into_iter().map(|(name, _)| name).collect();
        Ok(Self { names, until: until.unwrap_or(i64::MIN) })
    }

    fn has(&self, intent: &Intent) -> bool {
        self.names.contains(&intent.attempt_id) || self.names.contains(&fingerprint(intent))
    }
}

fn fingerprint(intent: &Intent) -> String {
    format!("forgotten_transfer/{}", intent.attempt_id)
}

/// What asks an operator about a payment that is forgotten.
pub(super) fn case(ids: &IdGenerator, intent: &Intent, now: Moment) -> Case {
    let Intent { transfer_id, route, rail, reference, currency, amount_minor, .. } = intent;
    Case {
        id: ids.id(),
        kind: CaseKind::ForgottenTransfer,
        fingerprint: fingerprint(intent),
        env: Env::Live,
        merchant_id: Some(intent.merchant_id.clone()),
        subject_type: "payout",
        subject_id: transfer_id.clone(),
        route: Some(route.clone()),
        amount: Currency::parse(currency).map(|code| (code, Minor::new(*amount_minor))),
        summary: format!(
            "{transfer_id} was about to leave over {route} as {reference}, and the database has \
             forgotten it."
        ),
        evidence: json!({
            "rail": rail,
            "reference": reference,
            "intended_at": Moment::from_micros(intent.at_us),
        }),
        opened_at: now,
    }
}

/// Moves on what references and names of files are made from: once for where the database was found
/// and which release a host had seen before, however often that is tried. Answers until when
/// something was queued then, in microseconds.
pub(super) async fn skip_numbers(db: &Db, at: &str, now: Moment) -> Result<i64, sqlx::Error> {
    let key = format!("numbers_skipped/{at}");
    let sql = "SELECT CAST(value AS BIGINT) FROM meta WHERE key = $1";
    let known: Option<i64> = sqlx::query_scalar(sql).bind(&key).fetch_optional(db.pool()).await?;
    if let Some(until) = known {
        return Ok(until);
    }
    // Now at least, as this host's clock may be late; a day ahead at most, where another one's is.
    let sql = "SELECT MAX(queued_at) FROM transfers WHERE env = 'live'";
    let newest: Option<i64> = sqlx::query_scalar(sql).fetch_one(db.pool()).await?;
    let newest = newest.unwrap_or(i64::MIN).min(now.after(A_DAY).micros()).max(now.micros());
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    let noted = sqlx::query(sql).bind(&key).bind(newest.to_string()).execute(tx.conn()).await?;
    if noted.rows_affected() == 0 {
        return Ok(newest);
    }
    let sql = "UPDATE serials SET next = next + $1 WHERE id = 'transfers'";
    sqlx::query(sql).bind(SERIALS_SKIPPED).execute(tx.conn()).await?;
    // What names of forgotten files and entries were made from is not used again either.
    let sql = "INSERT INTO file_numbers (place, files, entries, day, of_day) \
               SELECT DISTINCT env || '/' || rail, 0, 0, '', 0 FROM routes WHERE env = 'live' \
               ON CONFLICT (place) DO NOTHING";
    sqlx::query(sql).execute(tx.conn()).await?;
    // It is tomorrow already where some networks are.
    let tomorrow = now.after(A_DAY).day_in(&TimeZone::UTC);
    let sql = "UPDATE file_numbers SET files = files + $1, entries = entries + $2, \
               of_day = of_day + $3, day = $4";
    let query = sqlx::query(sql).bind(FILES_SKIPPED).bind(ENTRIES_SKIPPED);
    query.bind(FILES_OF_DAY_SKIPPED).bind(tomorrow).execute(tx.conn()).await?;
    let sql = "UPDATE file_days SET files = files + $1";
    sqlx::query(sql).bind(FILES_OF_DAY_SKIPPED).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(newest)
}
