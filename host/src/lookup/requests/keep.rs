//! How requests come to where they are kept, and when they are forgotten.
//!
//! On PostgreSQL a month is a table of its own, which is dropped as a whole; ids begin with their
//! instant, so that a month is a range of ids. On SQLite old rows are deleted in portions.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Engine;
use crate::error::Problem;
use crate::id::RequestId;
use crate::ledger::Command;

use super::sql::REQUESTS;

/// Writes down what comes, every so often, until the host stops.
pub async fn keep(app: App) {
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::REQUEST_LOG_EVERY) => {}
        }
        if let Err(problem) = flush(&app).await {
            tracing::warn!(?problem, "the log of requests waits");
        }
    }
}

/// Writes down what waits.
///
/// # Errors
/// The database cannot be written; what was not written waits on.
pub async fn flush(app: &App) -> Result<(), Problem> {
    loop {
        let taken = app.requests.take(limits::REQUEST_LOG_AT_ONCE);
        if taken.is_empty() {
            return Ok(());
        }
        let rows = taken.iter().map(|owned| REQUESTS.insert(owned)).collect();
        app.writer.work(Command::rows(rows)).await?;
        app.requests.written();
    }
}

/// Makes room for the months to come, and forgets those that are old enough. Only PostgreSQL has
/// months.
///
/// # Errors
/// The database cannot be changed.
pub async fn turn_months(app: &App) -> Result<(), sqlx::Error> {
    if app.db.engine() != Engine::Postgres {
        return Ok(());
    }
    let today: Result<Date, _> = app.now().day_in(&TimeZone::UTC).parse();
    let Ok(today) = today else { return Ok(()) };
    let this = today.first_of_month();
    let known: Vec<String> = sqlx::query_scalar(
        "SELECT CAST(c.relname AS TEXT) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
         WHERE i.inhparent = CAST('request_logs' AS regclass)",
    )
    .fetch_all(app.db.pool())
    .await?;
    for ahead in 0..=limits::REQUEST_LOG_MONTHS_AHEAD {
        if let Some(month) = months_later(this, ahead)
            && !known.contains(&table(month))
        {
            match run(app, &create(month)).await {
                Err(sqlx::Error::Database(cause)) if cause.code().as_deref() == Some(EXISTS) => {}
                done => done?,
            }
        }
    }
    let days = i64::from(app.config.retention.request_log_days);
    let Ok(kept_since) = today.checked_sub(jiff::Span::new().days(days)) else { return Ok(()) };
    for name in known {
        let is_old = month_of(&name).and_then(|month| months_later(month, 1));
        if is_old.is_some_and(|next| next <= kept_since) {
            run(app, &[format!("DROP TABLE {name}")]).await?;
            tracing::info!(table = name, "a month of the log of requests is forgotten");
        }
    }
    let stray = format!("DELETE FROM {STRAYS} WHERE id < '{}'", first(kept_since));
    run(app, &[stray]).await
}

/// Nobody waits for long behind a change of the schema that waits for somebody's lock.
async fn run(app: &App, statements: &[String]) -> Result<(), sqlx::Error> {
    let mut tx = app.db.write().await?;
    sqlx::query("SET LOCAL lock_timeout = '1s'").execute(tx.conn()).await?;
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe(statement.as_str())).execute(tx.conn()).await?;
    }
    tx.commit().await
}

fn months_later(month: Date, count: i32) -> Option<Date> {
    month.checked_add(jiff::Span::new().months(count)).ok()
}

/// The name of a month's table.
fn table(month: Date) -> String {
    format!("request_logs_{:04}_{:02}", month.year(), month.month())
}

fn month_of(table: &str) -> Option<Date> {
    let (year, month) = table.strip_prefix("request_logs_")?.split_once('_')?;
    Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()
}

/// PostgreSQL's code for a table that is there: another host was quicker.
const EXISTS: &str = "42P07";

/// The table of what came before its month had one.
const STRAYS: &str = "request_logs_other";

/// What makes a month's table, with what came before it was there.
fn create(month: Date) -> [String; 3] {
    let (name, from) = (table(month), first(month));
    let to = first(months_later(month, 1).unwrap_or(month));
    [
        format!("CREATE TABLE {name} (LIKE request_logs INCLUDING ALL)"),
        format!(
            "WITH moved AS (DELETE FROM {STRAYS} WHERE id >= '{from}' AND id < '{to}' RETURNING *) \
             INSERT INTO {name} SELECT * FROM moved"
        ),
        format!(
            "ALTER TABLE request_logs ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
        ),
    ]
}

/// An id before every one of this day and later.
fn first(day: Date) -> RequestId {
    let start = day.to_zoned(TimeZone::UTC).map_or(0, |at| at.timestamp().as_microsecond());
    RequestId::first_at(Moment::from_micros(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_a_range_of_ids() {
        let month = Date::new(2026, 11, 1).expect("a day");
        assert_eq!(month_of(&table(month)), Some(month));
        assert_eq!(month_of("request_logs_other"), None);
        let at = |text: &str| RequestId::first_at(Moment::parse(text).expect("an instant"));
        let (first, next) = (at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z"));
        let range = format!("FROM ('{first}') TO ('{next}')");
        let [made, moved, attached] = create(month);
        assert_eq!(made, "CREATE TABLE request_logs_2026_11 (LIKE request_logs INCLUDING ALL)");
        assert!(moved.contains(&format!("id >= '{first}' AND id < '{next}'")), "{moved}");
        assert!(attached.ends_with(&range), "{attached}");
        assert!(first < at("2026-11-30T23:59:59.999Z") && at("2026-11-30T23:59:59.999Z") < next);
    }
}
