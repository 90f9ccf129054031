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
/// Intents looked up, newest first, before it is decided whether to go further back.
const PORTION: usize = 200;
const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Intents of this host whose attempts the database does not know, and has no case about. A
/// database that was restored lacks the newest ones: where it knows those, it knows all.
pub(super) async fn payments(
    db: &Db,
    folder: &Path,
    now: Moment,
) -> Result<Vec<Intent>, QuarantineError> {
    let mut newest = Newest::open(folder, now.before(limits::INTENTS_KEPT))?;
    let mut forgotten = Vec::new();
    loop {
        let reading = move || newest.take(PORTION).map(|portion| (portion, newest));
        let read = tokio::task::spawn_blocking(reading).await;
        let (portion, rest) = read.map_err(std::io::Error::other)??;
        newest = rest;
        let known = known(db, &portion).await?;
        let before = forgotten.len();
        // Newest first; all of it is turned round in the end.
        let is_unknown = |intent: &Intent| {
            !known.contains(&intent.attempt_id) && !known.contains(&fingerprint(intent))
        };
        forgotten.extend(portion.into_iter().filter(is_unknown));
        if forgotten.len() == before {
            break;
        }
    }
    forgotten.reverse();
    Ok(forgotten)
}

/// Attempts of these that are in the database, and fingerprints of those that it has a case about.
async fn known(db: &Db, intents: &[Intent]) -> Result<HashSet<String>, sqlx::Error> {
    let attempts: Vec<&str> = intents.iter().map(|intent| intent.attempt_id.as_str()).collect();
    let cases: Vec<String> = intents.iter().map(fingerprint).collect();
    let (of_attempts, of_cases) =
        (db.engine().among("id", "$1"), db.engine().among("fingerprint", "$2"));
    let sql = format!(
        "SELECT id FROM attempts WHERE {of_attempts} \
         UNION ALL SELECT fingerprint FROM cases WHERE {of_cases}"
    );
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
    let query = query.bind(json!(attempts).to_string()).bind(json!(cases).to_string());
    Ok(query.fetch_all(db.pool()).await?.into_iter().collect())
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

/// Moves on what references and names of files are made from: once in a database that was found
/// `here`, however often it is tried and however many hosts do.
pub(super) async fn skip_numbers(db: &Db, here: &str, now: Moment) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ('numbers_skipped', $1) \
               ON CONFLICT (key) DO UPDATE SET value = excluded.value \
               WHERE meta.value <> excluded.value";
    let noted = sqlx::query(sql).bind(here).execute(tx.conn()).await?;
    if noted.rows_affected() == 0 {
        return Ok(());
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
    tx.commit().await
}
