//! What a database has forgotten that was restored, or that lagged when it took over: payments
//! that left, and the numbers that theirs were made from.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::json;

use crate::cases::{Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::env::Env;
use crate::id::IdGenerator;
use crate::money::{Currency, Minor};

use super::intents::Intent;
use super::newest::Newest;
use super::quarantine::QuarantineError;

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

/// Intents of this host whose attempts the database does not know, and has no case about, oldest
/// first. It is looked back until whatever was made before is known: intents are written when
/// something leaves, and the attempt of what goes by file, or once more, was made long before.
pub(super) async fn payments(
    db: &Db,
    folder: &Path,
    now: Moment,
) -> Result<Vec<Intent>, QuarantineError> {
    let mut newest = Newest::open(folder, now.before(limits::INTENTS_KEPT))?;
    let (mut forgotten, mut known_until) = (Vec::new(), i64::MIN);
    loop {
        let portion;
        (portion, newest) = take(newest).await?;
        let Some(oldest) = portion.last().map(|intent| intent.at_us) else { break };
        let known = Known::of(db, &portion).await?;
        known_until = known_until.max(known.until);
        forgotten.extend(portion.into_iter().filter(|intent| !known.has(intent)));
        if oldest <= known_until {
            break;
        }
    }
    forgotten.reverse();
    Ok(forgotten)
}

/// The same among the newest intents only.
pub(super) async fn newest(
    db: &Db,
    folder: &Path,
    now: Moment,
) -> Result<Vec<Intent>, QuarantineError> {
    let (mut portion, _) = take(Newest::open(folder, now.before(limits::INTENTS_KEPT))?).await?;
    let known = Known::of(db, &portion).await?;
    portion.retain(|intent| !known.has(intent));
    Ok(portion)
}

/// Newest first.
async fn take(mut newest: Newest) -> std::io::Result<(Vec<Intent>, Newest)> {
    let reading = move || newest.take(PORTION).map(|portion| (portion, newest));
    tokio::task::spawn_blocking(reading).await.map_err(std::io::Error::other)?
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
        let newest = rows.iter().filter_map(|(_, made_at)| *made_at).max();
        let until = newest.map(|at| Moment::from_micros(at).before(limits::CLOCKS_APART).micros());
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
/// and which release a host had seen before, however often that is tried. Answers the newest instant
/// at which anything was queued, as it was `newest` then.
pub(super) async fn skip_numbers(
    db: &Db,
    (at, newest): (&str, i64),
    now: Moment,
) -> Result<i64, sqlx::Error> {
    let mut tx = db.write().await?;
    let key = format!("numbers_skipped/{at}");
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    let noted = sqlx::query(sql).bind(&key).bind(newest.to_string()).execute(tx.conn()).await?;
    if noted.rows_affected() == 0 {
        let sql = "SELECT CAST(value AS BIGINT) FROM meta WHERE key = $1";
        return sqlx::query_scalar(sql).bind(&key).fetch_one(tx.conn()).await;
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
