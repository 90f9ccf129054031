//! What no longer matters is deleted: counters and markers that ran out, and what was kept for as
//! long as the operator wants it.
//!
//! A table that batches seal says in `meta` up to when it was swept (`swept/<table>`), and its
//! rows can be deleted only by a transaction that says so in `sweeping`.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::id::PayoutId;

/// How often what has expired is swept away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// A marker of a batch is needed for seconds; a day is generous.
const MARKERS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Rows that are deleted in one transaction: at first, at least and at most.
const PORTION: (i64, i64, i64) = (100, 10, 5_000);

/// What is swept away.
struct Sweep {
    table: &'static str,
    /// Deletes up to `$2` rows from before `$1`, in microseconds.
    sql: &'static str,
    before: Moment,
    /// Whether the table is sealed, and its rows are kept from being deleted otherwise.
    is_kept: bool,
    /// Whether the rows belong to payouts: `$3` is an id before which they were made.
    is_of_payouts: bool,
}

/// Deletes what no longer matters, at once and then every so often.
pub(crate) async fn sweep(app: App) {
    loop {
        for sweep in sweeps(&app) {
            if let Err(cause) = run(&app, &sweep).await {
                tracing::warn!(%cause, table = sweep.table, "sweeping");
            }
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

// What refers to something is swept before it.
fn sweeps(app: &App) -> [Sweep; 8] {
    let now = app.now();
    let days = |days: u32| now.before(Duration::from_secs(u64::from(days) * 24 * 3600));
    let retention = &app.config.retention;
    let decided = days(app.config.rules.decisions_kept_days);
    let sweep =
        |table, sql, before| Sweep { table, sql, before, is_kept: false, is_of_payouts: false };
    let kept = |table, sql, before| Sweep { is_kept: true, ..sweep(table, sql, before) };
    let of_payouts = |table, sql, before| Sweep { is_of_payouts: true, ..kept(table, sql, before) };
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
            "rule_requests",
            "DELETE FROM rule_requests WHERE created_at < $1 AND id IN \
             (SELECT id FROM rule_requests WHERE created_at < $1 LIMIT $2)",
            now.before(limits::RULES_REQUEST_VALID),
        ),
        kept(
            "decisions",
            "DELETE FROM decisions WHERE payout_id IN \
             (SELECT payout_id FROM decisions WHERE created_at < $1 LIMIT $2)",
            decided,
        ),
        kept(
            "idempotency_keys",
            "DELETE FROM idempotency_keys WHERE key IN \
             (SELECT key FROM idempotency_keys WHERE created_at < $1 LIMIT $2)",
            days(retention.idempotency_days),
        ),
        // What is still on its way keeps its history, however old it is.
        of_payouts(
            "rail_calls",
            "DELETE FROM rail_calls WHERE (transfer_id, id) IN (SELECT c.transfer_id, c.id \
             FROM rail_calls c LEFT JOIN transfers t ON t.id = c.transfer_id \
             WHERE c.transfer_id < $3 AND c.created_at < $1 AND t.id IS NULL \
             ORDER BY c.transfer_id LIMIT $2)",
            days(retention.evidence_days),
        ),
        of_payouts(
            "events",
            "DELETE FROM events WHERE (object_id, sequence) IN (SELECT v.object_id, v.sequence \
             FROM events v LEFT JOIN transfers t ON t.id = v.object_id \
             WHERE v.object_id < $3 AND v.object_type = 'payout' AND v.created_at < $1 \
             AND t.id IS NULL ORDER BY v.object_id LIMIT $2)",
            days(retention.events_days),
        ),
    ]
}

/// In portions, each as large as takes a moment: nobody waits long for the rows' locks, or, on
/// SQLite, for their turn to write.
async fn run(app: &App, sweep: &Sweep) -> Result<(), sqlx::Error> {
    let before_id = PayoutId::first_at(sweep.before);
    let (mut portion, least, most) = PORTION;
    loop {
        let mut tx = app.db.write().await?;
        let begun = Instant::now();
        if sweep.is_kept {
            sqlx::query("INSERT INTO sweeping (id) VALUES (1)").execute(tx.conn()).await?;
            // Keeping things for longer from now on brings nothing back.
            let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) \
                       DO UPDATE SET value = excluded.value WHERE meta.value < excluded.value";
            let query = sqlx::query(sql).bind(format!("swept/{}", sweep.table));
            query.bind(sweep.before.micros().to_string()).execute(tx.conn()).await?;
        }
        let query = sqlx::query(sweep.sql).bind(sweep.before.micros()).bind(portion);
        let query = match sweep.is_of_payouts {
            true => query.bind(before_id.as_str()),
            false => query,
        };
        let swept = query.execute(tx.conn()).await?.rows_affected();
        if sweep.is_kept {
            sqlx::query("DELETE FROM sweeping").execute(tx.conn()).await?;
        }
        tx.commit().await?;
        if i64::try_from(swept).unwrap_or(0) < portion || app.stopping.is_cancelled() {
            return Ok(());
        }
        portion = match begun.elapsed() > limits::SWEEP_HOLD {
            true => (portion / 2).max(least),
            false => (portion * 2).min(most),
        };
    }
}
