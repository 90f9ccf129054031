//! Tables of which PostgreSQL keeps each month in a table of its own, which is dropped as a whole.
//!
//! The month of a row is that of its id, or of `created_at` where rows have none that begins with
//! an instant. What comes before its month has a table is in `<table>_other`, and moves when the
//! table is made. Whatever makes a row unique does so within its month.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::{AnyConnection, AssertSqlSafe, Executor as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Db, Engine};
use crate::id::{DeliveryId, EventId, RequestId};

/// Months ahead of which there are tables.
const AHEAD: i32 = 1;
/// Nobody waits for long behind a change of the schema that waits for somebody's lock.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '50ms'";
/// An id may have been drawn a moment before its row got its instant.
const SLACK: Duration = Duration::from_secs(24 * 3600);

/// A table with a table for each month.
#[derive(Debug)]
pub struct Monthly {
    /// Its name.
    pub table: &'static str,
    key: Key,
    /// Whether triggers keep its rows.
    pub is_guarded: bool,
    /// How full new rows make a page, in percent: where a row changes soon after it was written,
    /// the new version fits beside the old one, and no index hears of it.
    full: u8,
}

/// What says in which month a row is.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// The column `id`: the first one of an instant.
    Id(fn(Moment) -> String),
    /// The column `created_at`.
    CreatedAt,
}

/// All of them.
pub const MONTHLY: &[Monthly] = &[
    Monthly {
        table: "request_logs",
        key: Key::Id(|at| RequestId::first_at(at).to_string()),
        is_guarded: false,
        full: 100,
    },
    Monthly {
        table: "webhook_deliveries",
        key: Key::Id(|at| DeliveryId::first_at(at).to_string()),
        is_guarded: false,
        full: 50,
    },
    Monthly { table: "decisions", key: Key::CreatedAt, is_guarded: true, full: 100 },
    Monthly { table: "rail_calls", key: Key::CreatedAt, is_guarded: true, full: 100 },
    Monthly {
        table: "events",
        key: Key::Id(|at| EventId::first_at(at).to_string()),
        is_guarded: true,
        full: 100,
    },
];

/// The table of this name, if it has months on this engine.
#[must_use]
pub fn find(engine: Engine, table: &str) -> Option<&'static Monthly> {
    let known = MONTHLY.iter().find(|known| known.table == table);
    known.filter(|_| engine == Engine::Postgres)
}

/// Up to when rows of a table may go: an instant, or the end of the last month that may go where
/// whole months do.
#[must_use]
pub fn goes_before(engine: Engine, table: &str, before: Moment) -> Moment {
    let last = find(engine, table).and_then(|_| month_of(before.before(SLACK)));
    last.map_or(before, start_of)
}

/// Keeps every month where it is for as long as a transaction lasts: what it sees is of one moment,
/// but a table that is dropped is gone for everybody. Before its first look.
///
/// # Errors
/// The database cannot be read.
pub async fn hold(db: &mut AnyConnection, engine: Engine) -> Result<(), sqlx::Error> {
    if engine == Engine::Sqlite {
        return Ok(());
    }
    let tables: Vec<&str> = MONTHLY.iter().map(|monthly| monthly.table).collect();
    let lock = format!("LOCK TABLE {} IN ACCESS SHARE MODE", tables.join(", "));
    sqlx::query(AssertSqlSafe(lock)).execute(db).await.map(drop)
}

/// Makes tables for this month and the next. Where somebody reads for long, or another host is at
/// it, one is made another time: rows without a month have a place.
///
/// # Errors
/// The database cannot be written.
pub async fn make_room(db: &Db, now: Moment) -> Result<(), sqlx::Error> {
    let Some(this) = month_of(now).filter(|_| db.engine() == Engine::Postgres) else {
        return Ok(());
    };
    let known = list_all(db).await?;
    for monthly in MONTHLY {
        for month in (0..=AHEAD).filter_map(|ahead| months_later(this, ahead)) {
            if known.contains(&monthly.name(month)) {
                continue;
            }
            match monthly.make_room(db, month).await {
                // Another host made it a moment ago, or somebody holds a lock; nothing that the
                // database has against it keeps a host from its work.
                Err(sqlx::Error::Database(cause)) => {
                    tracing::warn!(%cause, table = monthly.name(month), "made another time");
                }
                done => done?,
            }
        }
    }
    Ok(())
}

/// The months of a table that were over before an instant, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_over(
    db: &Db,
    monthly: &Monthly,
    before: Moment,
) -> Result<Vec<Date>, sqlx::Error> {
    let tables = list_all(db).await?;
    let months = tables.iter().filter_map(|name| monthly.month(name));
    let mut over: Vec<Date> = months.filter(|month| gone_before(*month) <= before).collect();
    over.sort_unstable();
    Ok(over)
}

/// Names of all tables of months.
async fn list_all(db: &Db) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT CAST(c.relname AS TEXT) FROM pg_inherits i JOIN pg_class c \
               ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = current_schema() AND c.relkind = 'r'";
    sqlx::query_scalar(sql).fetch_all(db.pool()).await
}

/// Carries statements out together, or none of them.
async fn run(db: &Db, statements: &[String]) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    tx.conn().execute(LOCK_TIMEOUT).await?;
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement.as_str())).execute(tx.conn()).await?;
    }
    tx.commit().await
}

impl Monthly {
    /// Drops a month unless one of these queries finds something, and writes the marks that say so
    /// in the same transaction; answers whether it is gone.
    ///
    /// # Errors
    /// The database cannot be written, or somebody reads the table for longer than we wait.
    pub async fn drop(
        &self,
        db: &Db,
        month: Date,
        (unless, marks): (&[String], &[String]),
    ) -> Result<bool, sqlx::Error> {
        let mut tx = db.write().await?;
        tx.conn().execute(LOCK_TIMEOUT).await?;
        for query in unless {
            let found = sqlx::query(AssertSqlSafe(query.as_str())).fetch_optional(tx.conn());
            if found.await?.is_some() {
                return Ok(false);
            }
        }
        let gone = format!("DROP TABLE IF EXISTS {}", self.name(month));
        for statement in marks.iter().chain([&gone]) {
            sqlx::query(AssertSqlSafe(statement.as_str())).execute(tx.conn()).await?;
        }
        tx.commit().await?;
        tracing::info!(table = self.name(month), "a month was old enough, and is gone");
        Ok(true)
    }

    /// Deletes what is from before an instant and never had a month.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_strays(&self, db: &Db, before: Moment) -> Result<(), sqlx::Error> {
        let (strays, column, first) = (self.strays(), self.column(), self.first(before));
        run(db, &[format!("DELETE FROM {strays} WHERE {column} < {first}")]).await
    }

    /// Makes a month's table, unless too much is elsewhere that belongs there.
    async fn make_room(&self, db: &Db, month: Date) -> Result<(), sqlx::Error> {
        let (strays, column, [from, to]) = (self.strays(), self.column(), self.range(month));
        let most = limits::STRAYS_MAX;
        let many = format!(
            "SELECT COUNT(*) FROM (SELECT 1 AS one FROM {strays} \
             WHERE {column} >= {from} AND {column} < {to} LIMIT {most}) strays"
        );
        let found: i64 = sqlx::query_scalar(AssertSqlSafe(many)).fetch_one(db.pool()).await?;
        if found == most {
            tracing::warn!(table = self.name(month), "not made: too much of it is in {strays}");
            return Ok(());
        }
        run(db, &self.make(month)).await
    }

    /// The name of a month's table.
    #[must_use]
    pub fn name(&self, month: Date) -> String {
        format!("{}_{:04}_{:02}", self.table, month.year(), month.month())
    }

    /// The month of a table by its name.
    fn month(&self, name: &str) -> Option<Date> {
        let rest = name.strip_prefix(self.table)?.strip_prefix('_')?;
        let (year, month) = rest.split_once('_')?;
        Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()
    }

    /// Where what has no month yet is.
    fn strays(&self) -> String {
        format!("{}_other", self.table)
    }

    const fn column(&self) -> &'static str {
        match self.key {
            Key::Id(_) => "id",
            Key::CreatedAt => "created_at",
        }
    }

    /// The first value of the column from an instant on, as a literal.
    fn first(&self, at: Moment) -> String {
        match self.key {
            Key::Id(first) => format!("'{}'", first(at)),
            Key::CreatedAt => at.micros().to_string(),
        }
    }

    /// The first values of the column in a month and after it, as literals.
    fn range(&self, month: Date) -> [String; 2] {
        [start_of(month), end_of(month)].map(|at| self.first(at))
    }

    /// What makes a month's table, with what came before it was there.
    fn make(&self, month: Date) -> Vec<String> {
        let (table, name, strays, column) =
            (self.table, self.name(month), self.strays(), self.column());
        let [from, to] = self.range(month);
        let mut all = vec![
            // Before anything is moved: what somebody wrote meanwhile would be in the way, and
            // whoever was about to write would be told that it belongs elsewhere.
            format!("LOCK TABLE ONLY {table}, ONLY {strays} IN ACCESS EXCLUSIVE MODE"),
            format!(
                "CREATE TABLE {name} (LIKE {strays} INCLUDING ALL) WITH (fillfactor = {})",
                self.full
            ),
            format!(
                "WITH moved AS (DELETE FROM {strays} WHERE {column} >= {from} AND {column} < {to} \
                 RETURNING *) INSERT INTO {name} SELECT * FROM moved"
            ),
            format!(
                "ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to})"
            ),
        ];
        if self.is_guarded {
            all.insert(1, "INSERT INTO sweeping (id) VALUES (1)".to_owned());
            all.push("DELETE FROM sweeping".to_owned());
            all.push(format!(
                "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {name} \
                 FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
            ));
        }
        all
    }
}

/// The first instant after a month.
#[must_use]
pub fn end_of(month: Date) -> Moment {
    start_of(months_later(month, 1).unwrap_or(month))
}

/// The instant from before which all rows of a month are, however their ids and instants differ.
#[must_use]
pub fn gone_before(month: Date) -> Moment {
    end_of(month).after(SLACK)
}

/// The first instant of a month.
#[must_use]
pub fn start_of(day: Date) -> Moment {
    let start = day.to_zoned(TimeZone::UTC).map_or(0, |at| at.timestamp().as_microsecond());
    Moment::from_micros(start)
}

/// The first day of an instant's month.
fn month_of(at: Moment) -> Option<Date> {
    let day: Date = at.day_in(&TimeZone::UTC).parse().ok()?;
    Some(day.first_of_month())
}

fn months_later(month: Date, count: i32) -> Option<Date> {
    month.checked_add(jiff::Span::new().months(count)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_a_range_of_ids_or_instants() {
        let month = Date::new(2026, 11, 1).expect("a day");
        let of = |table| find(Engine::Postgres, table).expect("a table");
        for monthly in MONTHLY {
            assert_eq!(monthly.month(&monthly.name(month)), Some(month));
            assert_eq!(monthly.month(&monthly.strays()), None);
        }
        assert_eq!(of("events").month("request_logs_2026_11"), None);
        let attached = of("decisions").make(month).concat();
        assert!(attached.contains("FROM (1793491200000000) TO (1796083200000000)"), "{attached}");
        let [from, to] = [(10, 31, 23), (11, 1, 0)].map(|(month, day, hour)| {
            let at = Date::new(2026, month, day).expect("a day").at(hour, 0, 0, 0);
            let at = at.to_zoned(TimeZone::UTC).expect("an instant").timestamp();
            of("events").first(Moment::from_micros(at.as_microsecond()))
        });
        let attached = of("events").make(month).concat();
        assert!(from < to && attached.contains(&format!("FROM ({to}) TO ('evt_")), "{attached}");
        assert!(find(Engine::Sqlite, "events").is_none());
    }

    #[test]
    fn what_goes_by_months_goes_up_to_the_begin_of_one() {
        let november = Date::new(2026, 11, 1).expect("a day");
        let at = start_of(november).after(9 * SLACK);
        assert_eq!(goes_before(Engine::Postgres, "events", at), start_of(november));
        // As long as a month may not be dropped, no row of it goes by itself.
        let early = gone_before(november).before(Duration::from_secs(1));
        assert_eq!(goes_before(Engine::Postgres, "events", early), start_of(november));
        let late = goes_before(Engine::Postgres, "events", gone_before(november));
        assert_eq!(late, end_of(november));
        assert_eq!(goes_before(Engine::Sqlite, "events", at), at);
        assert_eq!(goes_before(Engine::Postgres, "idempotency_keys", at), at);
    }
}
