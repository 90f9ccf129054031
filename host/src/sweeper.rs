//! What no longer matters is deleted: counters and markers that ran out, and what was kept for as
//! long as the operator wants it. Where a database has tables for months, those go as a whole, and
//! only what is left of a month that something keeps goes row by row.
//!
//! A table that batches seal says in `meta` up to when it was swept (`swept/<table>`), and its
//! rows can be deleted only by a transaction that says so in `sweeping`.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Engine;
use crate::id::{BatchId, DeliveryId, PayoutId};
use crate::retention::Portion;
use crate::retention::months::{self, MONTHLY};

/// How often what has expired is swept away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// A marker of a batch is needed for seconds; a day is generous.
const MARKERS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Days for which what networks sent is kept as it arrived; what it came to is kept as evidence.
const INBOX_KEPT_DAYS: u32 = 90;
/// How far clocks may be apart.
const CLOCKS_DIFFER: Duration = Duration::from_secs(300);
/// Statuses of payouts that have not ended.
const OPEN: &str = "('draft', 'awaiting_admin_review', 'queued', 'processing')";

/// The log of merchants' requests.
const REQUESTS: &str = "request_logs";

/// What is swept away.
struct Sweep {
    table: &'static str,
    /// Deletes up to `$2` rows from before `$1`, in microseconds.
    sql: String,
    before: Moment,
    rows: Rows,
}

/// What kind of rows they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Nothing keeps them from being deleted.
    Free,
    /// Of a sealed table, whose triggers want it said.
    Guarded,
    /// The same, and they belong to payouts: `$3` is an id before which those were made.
    GuardedOfPayouts,
}

/// Deletes what no longer matters, at once and then every so often.
pub(crate) async fn sweep(app: App) {
    loop {
        match is_right(&app).await {
            Ok(true) => {
                if let Err(cause) = turn_months(&app).await {
                    tracing::warn!(%cause, "tables of months");
                }
            }
            Ok(false) => {}
            Err(cause) => tracing::warn!(%cause, "what time the database has"),
        }
        // Nothing is swept before what refers to it.
        for sweep in sweeps(&app) {
            if let Err(cause) = run(&app, &sweep).await {
                tracing::warn!(%cause, table = sweep.table, "sweeping");
                break;
            }
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

/// Makes tables for the months to come, and drops those of which everything is old enough and
/// nothing is kept by what has not ended.
async fn turn_months(app: &App) -> Result<(), sqlx::Error> {
    if app.db.engine() != Engine::Postgres {
        return Ok(());
    }
    months::make_room(&app.db, app.now()).await?;
    // Nothing goes before what refers to it.
    for monthly in MONTHLY {
        let before = before(app.now(), days_kept(app, monthly.table));
        for month in months::list_over(&app.db, monthly, before).await? {
            let keepers = keepers(monthly.table, months::end_of(month));
            let mark = monthly.is_guarded.then(|| mark(monthly.table, before));
            monthly.drop(&app.db, month, (&keepers, mark.as_deref())).await?;
        }
        if monthly.table == REQUESTS {
            monthly.forget_strays(&app.db, before).await?;
        }
    }
    Ok(())
}

/// For how many days what has a table for each month is kept at least.
fn days_kept(app: &App, table: &str) -> u32 {
    let retention = &app.config.retention;
    match table {
        REQUESTS => retention.request_log_days,
        "webhook_deliveries" => retention.deliveries_days,
        "decisions" => app.config.rules.decisions_kept_days,
        "rail_calls" => retention.evidence_days,
        _ => retention.events_days,
    }
}

/// Queries that find something as long as what was before an instant has to stay.
fn keepers(table: &str, end: Moment) -> Vec<String> {
    let payout = PayoutId::first_at(end);
    let open = [
        format!("SELECT 1 FROM payouts WHERE is_waiting = 1 AND id < '{payout}' LIMIT 1"),
        format!("SELECT 1 FROM transfers WHERE id < '{payout}' LIMIT 1"),
        format!(
            "SELECT 1 FROM cases c JOIN payouts p ON p.id = c.subject_id \
             WHERE c.status = 'open' AND p.id < '{payout}' LIMIT 1"
        ),
    ];
    let batch = BatchId::first_at(end);
    let batches =
        format!("SELECT 1 FROM batches WHERE completed_at IS NULL AND id < '{batch}' LIMIT 1");
    let delivery = DeliveryId::first_at(end);
    let queued = format!("SELECT 1 FROM webhook_queue WHERE delivery_id < '{delivery}' LIMIT 1");
    match table {
        "webhook_deliveries" => vec![queued],
        "rail_calls" => open.to_vec(),
        "events" => open.into_iter().chain([batches]).collect(),
        _ => Vec::new(),
    }
}

fn sweeps(app: &App) -> impl Iterator<Item = Sweep> {
    let engine = app.db.engine();
    let all = expired(app).into_iter().chain(history(app)).chain(requests_without_months(app));
    all.map(move |sweep| Sweep {
        before: months::goes_before(engine, sweep.table, sweep.before),
        ..sweep
    })
}

/// Where the log of requests has no months that are dropped as a whole.
fn requests_without_months(app: &App) -> Option<Sweep> {
    let sql = "DELETE FROM request_logs WHERE (owner, id) IN (SELECT owner, id \
               FROM request_logs WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
    (app.db.engine() == Engine::Sqlite).then(|| Sweep {
        table: REQUESTS,
        sql: sql.to_owned(),
        before: before(app.now(), app.config.retention.request_log_days),
        rows: Rows::Free,
    })
}

/// What ran out.
fn expired(app: &App) -> [Sweep; 8] {
    let now = app.now();
    let days = |days| before(now, days);
    let decided = days(app.config.rules.decisions_kept_days);
    let sweep =
        |table, sql: &str, before| Sweep { table, sql: sql.to_owned(), before, rows: Rows::Free };
    // Each outer condition is repeated where a row may have been renewed since it was found.
    [
        sweep(
            "counters",
            "DELETE FROM counters WHERE expires_at < $1 AND key IN \
             (SELECT key FROM counters WHERE expires_at < $1 LIMIT $2)",
            now,
        ),
        sweep(
            "writer_batches",
            "DELETE FROM writer_batches WHERE hash = '' AND id IN (SELECT id \
             FROM writer_batches WHERE hash = '' AND created_at < $1 LIMIT $2)",
            now.before(MARKERS_KEPT),
        ),
        sweep(
            "rule_differences",
            "DELETE FROM rule_differences WHERE id IN \
             (SELECT id FROM rule_differences WHERE created_at < $1 LIMIT $2)",
            decided,
        ),
        sweep(
            "approval_requests",
            "DELETE FROM approval_requests WHERE expires_at < $1 AND place IN \
             (SELECT place FROM approval_requests WHERE expires_at < $1 LIMIT $2)",
            now,
        ),
        sweep(
            "sessions",
            "DELETE FROM sessions WHERE id IN \
             (SELECT id FROM sessions WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
            now.before(limits::SESSIONS_KEPT),
        ),
        sweep(
            "inbox",
            "DELETE FROM inbox WHERE state <> 'new' AND id IN \
             (SELECT id FROM inbox WHERE received_at < $1 ORDER BY received_at LIMIT $2)",
            before(now, INBOX_KEPT_DAYS),
        ),
        sweep(
            "notifications",
            "DELETE FROM notifications WHERE id IN \
             (SELECT id FROM notifications WHERE ended_at < $1 ORDER BY ended_at LIMIT $2)",
            now.before(limits::NOTIFICATIONS_KEPT),
        ),
        sweep(
            "alerts",
            "DELETE FROM alerts WHERE id IN \
             (SELECT id FROM alerts WHERE ended_at < $1 ORDER BY ended_at LIMIT $2)",
            now.before(limits::ALERTS_KEPT),
        ),
    ]
}

/// What is kept for as long as the operator wants it.
fn history(app: &App) -> [Sweep; 4] {
    let retention = &app.config.retention;
    let days = |days| before(app.now(), days);
    let guarded = |table, sql: String, before| Sweep { table, sql, before, rows: Rows::Guarded };
    let of_payouts =
        |table, sql, before| Sweep { table, sql, before, rows: Rows::GuardedOfPayouts };
    [
        guarded(
            "decisions",
            "DELETE FROM decisions WHERE payout_id IN \
             (SELECT payout_id FROM decisions WHERE created_at < $1 LIMIT $2)"
                .to_owned(),
            days(app.config.rules.decisions_kept_days),
        ),
        guarded(
            "idempotency_keys",
            format!(
                "DELETE FROM idempotency_keys WHERE key IN (SELECT k.key FROM idempotency_keys k \
                 LEFT JOIN payouts p ON p.id = k.resource_id \
                 LEFT JOIN batches b ON b.id = k.resource_id WHERE k.created_at < $1 \
                 AND (p.id IS NULL OR p.status NOT IN {OPEN}) \
                 AND (b.id IS NULL OR b.completed_at IS NOT NULL) \
                 ORDER BY k.created_at LIMIT $2)"
            ),
            days(retention.idempotency_days),
        ),
        of_payouts(
            "rail_calls",
            history_of_payouts("rail_calls", "transfer_id", "id"),
            days(retention.evidence_days),
        ),
        of_payouts(
            "events",
            history_of_payouts("events", "object_id", "sequence"),
            days(retention.events_days),
        ),
    ]
}

fn before(now: Moment, days: u32) -> Moment {
    now.before(Duration::from_secs(u64::from(days) * 24 * 3600))
}

/// What has not ended, or is in question, keeps its history, however old it is. Asked row by row:
/// as a join it would be answered by looking through all payouts. Its cases are found by their
/// subject, whatever PostgreSQL thinks of the index of those that are open.
fn history_of_payouts(table: &str, payout: &str, key: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE ({payout}, {key}) IN (SELECT h.{payout}, h.{key} \
         FROM {table} h WHERE h.{payout} < $3 AND h.created_at < $1 \
         AND (SELECT p.status FROM payouts p WHERE p.id = h.{payout}) NOT IN {OPEN} \
         AND (SELECT COUNT(*) FROM cases c WHERE c.subject_id = h.{payout} \
         AND c.status || '' = 'open') = 0 ORDER BY h.{payout} LIMIT $2)"
    )
}

/// Whether this host's clock is right, as far as the database's can tell: one that is years ahead
/// would have everything deleted.
async fn is_right(app: &App) -> Result<bool, sqlx::Error> {
    let Some(here) = app.clock.by_the_machine() else { return Ok(true) };
    Ok(agree(here, app.db.now().await?))
}

fn agree(here: Moment, there: Moment) -> bool {
    here <= there.after(CLOCKS_DIFFER) && there <= here.after(CLOCKS_DIFFER)
}

/// What says up to when a table was swept. Keeping things for longer from now on brings nothing
/// back.
fn mark(table: &str, before: Moment) -> String {
    format!(
        "INSERT INTO meta (key, value) VALUES ('swept/{table}', '{}') ON CONFLICT (key) \
         DO UPDATE SET value = excluded.value \
         WHERE CAST(meta.value AS BIGINT) < CAST(excluded.value AS BIGINT)",
        before.micros()
    )
}

/// In portions, each as large as takes a moment.
async fn run(app: &App, sweep: &Sweep) -> Result<(), sqlx::Error> {
    if sweep.rows != Rows::Free && !is_right(app).await? {
        tracing::error!(
            table = sweep.table,
            "nothing is swept: this host's clock and the database's differ by more than minutes"
        );
        return Ok(());
    }
    let mut portion = Portion::FIRST;
    loop {
        let (swept, took) = delete(app, sweep, portion).await?;
        if swept < portion.rows() || app.stopping.is_cancelled() {
            return Ok(());
        }
        portion = portion.after(took);
    }
}

/// Deletes a portion; answers how many rows it was, and how long others had to wait.
async fn delete(
    app: &App,
    sweep: &Sweep,
    portion: Portion,
) -> Result<(i64, Duration), sqlx::Error> {
    let mut tx = app.db.write().await?;
    let begun = Instant::now();
    if sweep.rows != Rows::Free {
        sqlx::query("INSERT INTO sweeping (id) VALUES (1)").execute(tx.conn()).await?;
        let mark = mark(sweep.table, sweep.before);
        sqlx::query(sqlx::AssertSqlSafe(mark)).execute(tx.conn()).await?;
    }
    let query = sqlx::query(sqlx::AssertSqlSafe(sweep.sql.as_str()))
        .bind(sweep.before.micros())
        .bind(portion.rows());
    let before_id = PayoutId::first_at(sweep.before);
    let query = match sweep.rows {
        Rows::GuardedOfPayouts => query.bind(before_id.as_str()),
        Rows::Free | Rows::Guarded => query,
    };
    let swept = query.execute(tx.conn()).await?.rows_affected();
    if sweep.rows != Rows::Free {
        sqlx::query("DELETE FROM sweeping").execute(tx.conn()).await?;
    }
    tx.commit().await?;
    Ok((i64::try_from(swept).unwrap_or(i64::MAX), begun.elapsed()))
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;
    use crate::payouts::model::Status;

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_not_believed() {
        let here = Moment::from_micros(1_800_000_000_000_000);
        assert!(agree(here, here) && agree(here, here.before(CLOCKS_DIFFER)));
        let day = Duration::from_secs(86_400);
        assert!(!agree(here.after(day), here) && !agree(here, here.after(day)));
    }

    #[test]
    fn a_payout_that_has_not_ended_is_named() {
        for status in Status::iter() {
            let is_named = OPEN.contains(&format!("'{}'", status.as_str()));
            assert_eq!(is_named, !status.is_final(), "{}", status.as_str());
        }
    }
}
