//! What no longer matters is deleted: counters and markers that ran out, and what was kept for as
//! long as the operator wants it. Where a database has tables for months, those go as a whole, and
//! only what is left of a month that something keeps goes row by row.
//!
//! A table that batches seal says in `meta` up to when it was swept (`swept/<table>`), and its
//! rows can be deleted only by a transaction that says so in `sweeping`.

use std::time::{Duration, Instant};

use jiff::civil::Date;
use sqlx::AssertSqlSafe;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::{self, Engine, Tx};
use crate::id::{BatchId, DeliveryId, PayoutId};
use crate::retention::Portion;
use crate::retention::months::{self, MONTHLY, Monthly};
use crate::webhooks;

/// How often what has expired is swept away.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// A marker of a batch is needed for seconds; a day is generous.
const MARKERS_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Days for which what networks sent is kept as it arrived; what nobody could read or match stays as
/// long as evidence.
const INBOX_KEPT_DAYS: u32 = 90;
/// A clock that is no further than this from the last time may be swept by at once.
const LAST_SWEPT_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// How far clocks may be apart.
const CLOCKS_DIFFER: Duration = Duration::from_secs(300);
/// Statuses of payouts that have not ended.
const OPEN: &str = "('draft', 'awaiting_admin_review', 'queued', 'processing')";

/// The log of merchants' requests.
const REQUESTS: &str = "request_logs";
/// What endpoints were told, or are to be.
const DELIVERIES: &str = "webhook_deliveries";

/// What is swept away.
struct Sweep {
    table: &'static str,
    /// Deletes up to `$2` rows from before `$1`, in microseconds.
    sql: &'static str,
    before: Moment,
    /// Whether triggers of the table want it said.
    is_guarded: bool,
}

/// What tells of payouts.
struct OfPayouts {
    table: &'static str,
    /// The column that names the payout.
    payout: &'static str,
    before: Moment,
}

/// Deletes what no longer matters, at once and then every so often.
pub(crate) async fn sweep(app: App) {
    let mut before = None;
    loop {
        match db::within(limits::SWEEP_MAX, sweep_once(&app, before)).await {
            Ok(looked) => before = looked.or(before),
            Err(cause) => tracing::warn!(%cause, "sweeping"),
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
    }
}

/// Nothing is swept before what refers to it, and nothing at all by a clock that may be wrong. Answers
/// when this host has looked at its clock, where it has one of a machine.
async fn sweep_once(
    app: &App,
    before: Option<ClockReading>,
) -> Result<Option<ClockReading>, sqlx::Error> {
    if let Err(cause) = months::make_room(&app.db, app.now()).await {
        tracing::warn!(%cause, "making tables for the months to come");
    }
    if !is_right(app).await? {
        tracing::error!(
            "nothing is swept: this host's clock and the database's differ by more than minutes"
        );
        return Ok(None);
    }
    let look = app.clock.by_the_machine().map(|at| ClockReading { at, since: Instant::now() });
    if let Some(look) = look {
        if !is_steady((last_swept_at(app).await?, before), look) {
            tracing::warn!("nothing is swept for now: the clock is far from where it was");
            return Ok(Some(look));
        }
        note_swept(app, look.at).await?;
    }
    for sweep in expired(app).into_iter().chain(requests_without_months(app)) {
        run(app, &sweep).await?;
    }
    if let Err(cause) = webhooks::deliver::sweep_unheard(app, goes_before(app, DELIVERIES)).await {
        tracing::warn!(%cause, "sweeping what endpoints that are switched off never heard");
    }
    let stay = drop_months(app).await;
    let may_go = |table: &str| !stay.contains(&table);
    if may_go(DELIVERIES) {
        webhooks::deliver::sweep_history(app, goes_before(app, DELIVERIES)).await?;
    }
    for sweep in history(app).into_iter().filter(|sweep| may_go(sweep.table)) {
        run(app, &sweep).await?;
    }
    let of_payouts = [("rail_calls", "transfer_id"), ("events", "object_id")];
    for (table, payout) in of_payouts.into_iter().filter(|(table, _)| may_go(table)) {
        run_of_payouts(app, &OfPayouts { table, payout, before: goes_before(app, table) }).await?;
    }
    Ok(look)
}

/// Drops months of which everything is old enough and nothing belongs to what has not ended.
/// Answers the tables of which one could not be dropped, because somebody reads it: those are not
/// deleted from row by row instead. The next turn may do it.
async fn drop_months(app: &App) -> Vec<&'static str> {
    let mut stay = Vec::new();
    for monthly in MONTHLY.iter().filter(|_| app.db.engine() == Engine::Postgres) {
        if let Err(cause) = drop_months_of(app, monthly).await {
            tracing::warn!(%cause, table = monthly.table, "dropping months");
            stay.push(monthly.table);
        }
    }
    stay
}

async fn drop_months_of(app: &App, monthly: &'static Monthly) -> Result<(), sqlx::Error> {
    let before = before(app.now(), days_kept(app, monthly.table));
    for month in months::list_over(&app.db, monthly, before).await? {
        let marks = match monthly.table {
            // Whatever object they are about.
            "events" => vec!["events", "all_events"],
            table => Vec::from_iter(monthly.is_guarded.then_some(table)),
        };
        let gone = months::gone_before(month);
        let marks: Vec<String> = marks.into_iter().map(|table| mark(table, gone)).collect();
        monthly.drop(&app.db, month, (&keepers(monthly, month), &marks)).await?;
    }
    if monthly.table == REQUESTS {
        monthly.forget_strays(&app.db, before).await?;
    }
    Ok(())
}

/// Up to when rows of a table that has months somewhere may go.
fn goes_before(app: &App, table: &str) -> Moment {
    let before = before(app.now(), days_kept(app, table));
    months::goes_before(app.db.engine(), table, before)
}

/// For how many days what has a table for each month is kept at least. Events are kept for as long as
/// deliveries (the configuration refuses less), and what is never delivered goes before: so whatever
/// is still to be delivered has its event.
fn days_kept(app: &App, table: &str) -> u32 {
    let retention = &app.config.retention;
    match table {
        REQUESTS => retention.request_log_days,
        DELIVERIES => retention.deliveries_days,
        "decisions" => app.config.rules.decisions_kept_days,
        "rail_calls" => retention.evidence_days,
        _ => retention.events_days,
    }
}

/// Queries that find something as long as rows of a month belong to what has not ended.
fn keepers(monthly: &Monthly, month: Date) -> Vec<String> {
    let (name, end) = (monthly.name(month), months::end_of(month));
    // A host whose clock is ahead may have made what another one told of in this month.
    let latest = months::gone_before(month);
    let (payout, batch) = (PayoutId::first_at(latest), BatchId::first_at(latest));
    let [first, next] = [months::start_of(month), end].map(DeliveryId::first_at);
    let open = |column| {
        [
            format!("payouts o WHERE o.is_waiting = 1 AND o.id < '{payout}'"),
            format!("transfers o WHERE o.id < '{payout}'"),
            format!("batches o WHERE o.completed_at IS NULL AND o.id < '{batch}'"),
            "(SELECT subject_id AS id FROM cases WHERE status = 'open') o WHERE 1 = 1".to_owned(),
        ]
        .map(|of| {
            format!(
                "SELECT 1 FROM {of} AND EXISTS (SELECT 1 FROM {name} h WHERE h.{column} = o.id) \
                 LIMIT 1"
            )
        })
        .to_vec()
    };
    match monthly.table {
        DELIVERIES => vec![format!(
            "SELECT 1 FROM webhook_queue \
             WHERE delivery_id >= '{first}' AND delivery_id < '{next}' LIMIT 1"
        )],
        "rail_calls" => open("transfer_id"),
        "events" => open("object_id"),
        _ => Vec::new(),
    }
}

/// Where the log of requests has no months that are dropped as a whole.
fn requests_without_months(app: &App) -> Option<Sweep> {
    let sql = "DELETE FROM request_logs WHERE (owner, id) IN (SELECT owner, id \
               FROM request_logs WHERE created_at < $1 ORDER BY created_at LIMIT $2)";
    (app.db.engine() == Engine::Sqlite).then(|| Sweep {
        table: REQUESTS,
        sql,
        before: before(app.now(), app.config.retention.request_log_days),
        is_guarded: false,
    })
}

/// What ran out.
fn expired(app: &App) -> [Sweep; 9] {
    let now = app.now();
    let days = |days| before(now, days);
    let decided = days(app.config.rules.decisions_kept_days);
    let sweep = |table, sql, before| Sweep { table, sql, before, is_guarded: false };
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
            "DELETE FROM inbox WHERE state = 'taken' AND id IN (SELECT id FROM inbox \
             WHERE received_at < $1 AND state = 'taken' ORDER BY received_at LIMIT $2)",
            days(INBOX_KEPT_DAYS),
        ),
        // Nobody could make anything of it, and a case may still say so.
        sweep(
            "inbox",
            "DELETE FROM inbox WHERE state IN ('unreadable', 'unmatched') AND id IN (SELECT id \
             FROM inbox WHERE received_at < $1 AND state IN ('unreadable', 'unmatched') \
             ORDER BY received_at LIMIT $2)",
            days(app.config.retention.evidence_days),
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
fn history(app: &App) -> [Sweep; 2] {
    let guarded = |table, sql, before| Sweep { table, sql, before, is_guarded: true };
    [
        guarded(
            "decisions",
            "DELETE FROM decisions WHERE payout_id IN \
             (SELECT payout_id FROM decisions WHERE created_at < $1 LIMIT $2)",
            goes_before(app, "decisions"),
        ),
        guarded(
            "expiring_keys",
            "DELETE FROM expiring_keys WHERE key IN (SELECT key FROM expiring_keys \
             WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
            before(app.now(), app.config.retention.idempotency_days),
        ),
    ]
}

fn before(now: Moment, days: u32) -> Moment {
    now.before(Duration::from_secs(u64::from(days) * 24 * 3600))
}

/// What has not ended, or is in question, keeps its history, however old it is. Asked row by row:
/// as a join it would be answered by looking through all payouts. Its cases are found by their
/// subject, whatever PostgreSQL thinks of the index of those that are open.
fn is_over(payout: &str) -> String {
    format!(
        "(SELECT p.status FROM payouts p WHERE p.id = h.{payout}) NOT IN {OPEN} \
         AND (SELECT COUNT(*) FROM cases c WHERE c.subject_id = h.{payout} \
         AND c.status || '' = 'open') = 0"
    )
}

/// Whether this host's clock is right, as far as the database's can tell: one that is years ahead
/// would have everything deleted, and one that is a month ahead the counters of live limits.
async fn is_right(app: &App) -> Result<bool, sqlx::Error> {
    let Some(here) = app.clock.by_the_machine() else { return Ok(true) };
    Ok(agree(here, app.db.now().await?))
}

/// A look at the clock of a host.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    at: Moment,
    since: Instant,
}

/// Whether a clock may be swept by: it is not far from where it was when something was last swept, or
/// this host has seen it go on evenly since. A machine that starts may have a clock that is years ahead
/// until somebody has told it the time, and the database may be on the same machine.
fn is_steady((last, before): (Option<Moment>, Option<ClockReading>), look: ClockReading) -> bool {
    let is_near = last.is_none_or(|last| look.at <= last.after(LAST_SWEPT_WITHIN));
    let goes_evenly = before.is_some_and(|before| {
        agree(look.at, before.at.after(look.since.saturating_duration_since(before.since)))
    });
    is_near || goes_evenly
}

/// The key of the instant at which a host last swept, by its own clock.
const LAST_SWEPT_AT: &str = "sweeper/last_swept_at";

async fn last_swept_at(app: &App) -> Result<Option<Moment>, sqlx::Error> {
    let sql = "SELECT value FROM meta WHERE key = $1";
    let text: Option<String> =
        sqlx::query_scalar(sql).bind(LAST_SWEPT_AT).fetch_optional(app.db.pool()).await?;
    Ok(text.and_then(|text| text.parse().ok()).map(Moment::from_micros))
}

async fn note_swept(app: &App, at: Moment) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) \
               DO UPDATE SET value = excluded.value";
    let mut tx = app.db.write().await?;
    sqlx::query(sql).bind(LAST_SWEPT_AT).bind(at.micros().to_string()).execute(tx.conn()).await?;
    tx.commit().await
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
    let (mut portion, turn) = (Portion::FIRST, Instant::now());
    while turn.elapsed() < limits::SWEEP_FOR {
        let mut tx = app.db.write().await?;
        let begun = Instant::now();
        if sweep.is_guarded {
            say(&mut tx, sweep.table, sweep.before).await?;
        }
        let query = sqlx::query(sweep.sql).bind(sweep.before.micros()).bind(portion.rows());
        let swept = query.execute(tx.conn()).await?.rows_affected();
        if sweep.is_guarded {
            said(&mut tx).await?;
        }
        tx.commit().await?;
        if i64::try_from(swept).unwrap_or(i64::MAX) < portion.rows() || app.stopping.is_cancelled()
        {
            return Ok(());
        }
        portion = portion.after(begun.elapsed());
    }
    Ok(())
}

/// The same of payouts that were made before an instant, each with all that is old of it. They are
/// looked for while others write, from where the portion before ended.
async fn run_of_payouts(app: &App, sweep: &OfPayouts) -> Result<(), sqlx::Error> {
    let OfPayouts { table, payout, before } = sweep;
    let is_over = is_over(payout);
    let find = format!(
        "SELECT DISTINCT h.{payout} FROM {table} h WHERE h.{payout} > $1 AND h.{payout} < $2 \
         AND h.created_at < $3 AND {is_over} ORDER BY h.{payout} LIMIT $4"
    );
    let among = app.db.engine().among(&format!("h.{payout}"), "$1");
    let delete =
        format!("DELETE FROM {table} AS h WHERE {among} AND h.created_at < $2 AND {is_over}");
    let first_young = PayoutId::first_at(*before);
    let (mut after, mut portion, turn) = (String::new(), Portion::FIRST, Instant::now());
    while turn.elapsed() < limits::SWEEP_FOR {
        let query = sqlx::query_scalar(AssertSqlSafe(find.as_str())).bind(&after);
        let query = query.bind(first_young.as_str()).bind(before.micros()).bind(portion.rows());
        let found: Vec<String> = query.fetch_all(app.db.pool()).await?;
        let Some(last) = found.last() else { return Ok(()) };
        let mut tx = app.db.write().await?;
        let begun = Instant::now();
        say(&mut tx, table, *before).await?;
        let ids = serde_json::to_string(&found).unwrap_or_default();
        let query = sqlx::query(AssertSqlSafe(delete.as_str())).bind(ids).bind(before.micros());
        query.execute(tx.conn()).await?;
        said(&mut tx).await?;
        tx.commit().await?;
        if app.stopping.is_cancelled() {
            return Ok(());
        }
        after.clone_from(last);
        portion = portion.after(begun.elapsed());
    }
    Ok(())
}

/// Says that rows of a guarded table from before an instant are about to go.
async fn say(tx: &mut Tx, table: &str, before: Moment) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO sweeping (id) VALUES (1)").execute(tx.conn()).await?;
    sqlx::query(AssertSqlSafe(mark(table, before))).execute(tx.conn()).await.map(drop)
}

/// And that it is over.
async fn said(tx: &mut Tx) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM sweeping").execute(tx.conn()).await.map(drop)
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
    fn a_clock_that_has_leapt_is_not_swept_by() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let (then, since) = (Moment::from_micros(1_800_000_000_000_000), Instant::now());
        let look = |later: u64, wall: u64| ClockReading {
            at: then.after(hours(wall)),
            since: since + hours(later),
        };
        let is_steady = |last: Option<Moment>, before, look| is_steady((last, before), look);
        assert!(is_steady(None, None, look(0, 0)), "there is nothing yet");
        assert!(is_steady(Some(then), None, look(0, 24)), "a day has gone by");
        // Forty days are gone, or the clock is wrong: who knows. An hour later the same, evenly.
        let first = look(0, 960);
        assert!(!is_steady(Some(then), None, first));
        assert!(is_steady(Some(then), Some(first), look(1, 961)));
        // It was wrong, and is right by now.
        assert!(is_steady(Some(then), Some(first), look(1, 1)));
        // It leaps while the host runs.
        assert!(!is_steady(Some(then), Some(look(0, 0)), look(1, 960)));
    }

    #[test]
    fn a_payout_that_has_not_ended_is_named() {
        for status in Status::iter() {
            let is_named = OPEN.contains(&format!("'{}'", status.as_str()));
            assert_eq!(is_named, !status.is_final(), "{}", status.as_str());
        }
    }
}
