//! Proving that everything adds up, as of one moment.
//!
//! Every stored fact that follows from another one, or is contradicted by it, is compared with
//! it; what follows from nothing else is covered by the seals of the writer's batches, and those
//! by an anchor that is kept elsewhere.

mod schema;

use std::collections::HashMap;
use std::time::Duration;

use sqlx::{AnyConnection, Executor as _, Row as _};

use crate::clock::Moment;
use crate::config::Retention;
use crate::db::bulk::Shape;
use crate::db::{Db, Engine};
use crate::ledger::verify::{Anchor, Faults, Proven, Scope};
use crate::payouts::verify::Looked;
use crate::retention::months;
use crate::{
    approvals, audit, auth, batches, cases, conversions, decisions, events, ledger, operator,
    payouts, recipients, reconciliation, rules, team, transfers, webhooks,
};

/// What is wanted.
#[derive(Debug, Default)]
pub struct Wanted {
    /// By the clock of whoever looks.
    pub now: Moment,
    /// An anchor that must still hold.
    pub against: Option<Anchor>,
    /// Whether what was there when it was taken is believed.
    pub is_since: bool,
}

/// How far it has come: what is being looked at, and how many of that.
pub type Progress<'a> = &'a mut (dyn FnMut(&'static str, u64) + Send);

/// What was looked at, and what is wrong with it.
#[derive(Debug)]
pub struct Report {
    /// Journals, entries, wallets and batches.
    pub books: Proven,
    /// Payouts.
    pub payouts: u64,
    /// Whatever is not as it must be.
    pub faults: Faults,
}

/// Proves everything in one snapshot, so that a host may work meanwhile; changes nothing.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &Db,
    wanted: &Wanted,
    progress: Progress<'_>,
) -> Result<Report, sqlx::Error> {
    let mut snapshot = db.snapshot().await?;
    months::hold(&mut snapshot, db.engine()).await?;
    let report = prove(&mut snapshot, (db.engine(), wanted), progress).await?;
    snapshot.rollback().await?;
    Ok(report)
}

/// Proves everything that a transaction sees.
///
/// # Errors
/// The database cannot be read.
pub async fn prove(
    snapshot: &mut AnyConnection,
    (engine, wanted): (Engine, &Wanted),
    progress: Progress<'_>,
) -> Result<Report, sqlx::Error> {
    let mut faults = Faults::default();
    if wanted.is_since && engine == Engine::Postgres {
        // What is new is little: whatever hangs on it is found by index. Beside very many rows
        // PostgreSQL would start workers for each query, which takes far longer than to read it.
        let sql = "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
                   SET LOCAL enable_mergejoin = off; \
                   SET LOCAL max_parallel_workers_per_gather = 0";
        (&mut *snapshot).execute(sql).await?;
    }
    progress("the schema", 0);
    schema::verify(snapshot, engine, &mut faults).await?;
    progress("the books and their seals", 0);
    let scope = Scope {
        engine,
        sealed: sealed(),
        against: wanted.against.as_ref(),
        is_since: wanted.is_since,
        swept: swept(snapshot, wanted.now, &mut faults).await?,
    };
    let books = ledger::verify::verify(snapshot, &scope, &mut faults).await?;
    let fresh = &books.fresh;
    let looked = Looked { engine, now: wanted.now, fresh, swept: &scope.swept };
    let mut payouts_progress = |count| progress("payouts", count);
    let watched = (&mut faults, &mut payouts_progress as &mut (dyn FnMut(u64) + Send));
    let payouts = payouts::verify::verify(snapshot, looked, watched).await?;
    progress("conversions", 0);
    conversions::verify::verify(snapshot, (engine, fresh), &mut faults).await?;
    reconciliation::verify::verify(snapshot, (engine, fresh), &mut faults).await?;
    progress("batches", 0);
    batches::verify::verify(snapshot, looked, &mut faults).await?;
    progress("webhooks", 0);
    webhooks::verify::verify(snapshot, looked, &mut faults).await?;
    progress("recipients and rule packs", 0);
    recipients::verify::verify(snapshot, fresh, &mut faults).await?;
    rules::verify::verify(snapshot, &mut faults).await?;
    progress("the audit log", 0);
    operator::verify::verify(snapshot, fresh, &mut faults).await?;
    approvals::verify::verify(snapshot, fresh, &mut faults).await?;
    team::verify::verify(snapshot, fresh, &mut faults).await?;
    Ok(Report { books, payouts, faults })
}

/// Every table that batches seal.
fn sealed() -> Vec<&'static dyn Shape> {
    let mut sealed = ledger::verify::sealed();
    sealed.extend([
        &audit::AUDIT as &dyn Shape,
        &auth::sql::MERCHANTS,
        &auth::sql::KEYS,
        &batches::sql::BATCHES,
        &cases::sql::CASES,
        &conversions::sql::CONVERSIONS,
        &decisions::sql::DECISIONS,
        &events::sql::EVENTS,
        &payouts::sql::PAYOUTS,
        &reconciliation::sql::ADJUSTMENTS,
        &team::sql::MEMBERS,
        &transfers::attempt::ATTEMPTS,
        transfers::evidence::sealed(),
    ]);
    sealed
}

/// How far the clock of whoever looks may be behind that of a host.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// What the sweeper leaves about tables whose old rows it takes away. A mark that it cannot have
/// made would hide what was done to the table: it is not believed.
async fn swept(
    db: &mut AnyConnection,
    now: Moment,
    faults: &mut Faults,
) -> Result<HashMap<String, Moment>, sqlx::Error> {
    let sql = "SELECT key, value FROM meta WHERE key LIKE 'swept/%'";
    let mut swept = HashMap::new();
    for row in sqlx::query(sql).fetch_all(db).await? {
        let (key, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let table = key.trim_start_matches("swept/");
        let known = Retention::SWEPT.iter().find(|(known, _)| *known == table);
        let before = value.parse().ok().map(Moment::from_micros);
        let is_old = |before: Moment, days: u32| {
            before.after(Duration::from_secs(u64::from(days) * 86_400)) <= now.after(CLOCKS_DIFFER)
        };
        match (known, before) {
            (Some((_, days)), Some(before)) if is_old(before, *days) => {
                swept.insert(table.to_owned(), before);
            }
            _ => faults.add("swept", format!("{key} is no mark of the sweeper's: {value}")),
        }
    }
    Ok(swept)
}
