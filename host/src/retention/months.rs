//! Tables of which PostgreSQL keeps each month in a table of its own, which is dropped as a whole.
//!
//! The month of a row is that of its id, or of `created_at` where rows have none that begins with
//! an instant. What comes before its month has a table is in `<table>_other`, and moves when the
//! table is made. Whatever makes a row unique does so within its month.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::clock::Moment;
use crate::db::{Db, Engine};
use crate::id::{DeliveryId, EventId, RequestId};

/// Months ahead of which there are tables.
const AHEAD: i32 = 1;
/// Nobody waits for long behind a change of the schema that waits for somebody's lock.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";
/// PostgreSQL's codes for a table that is there, and for a row in it: another host was quicker.
const THERE: [&str; 2] = ["42P07", "23505"];
/// An id may have been drawn a moment before its row got its instant.
const SLACK_DAYS: i32 = 1;

/// A table with a table for each month.
#[derive(Debug)]
pub struct Monthly {
    /// Its name.
    pub table: &'static str,
    key: Key,
    /// Whether triggers keep its rows.
    pub is_guarded: bool,
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
    },
    Monthly {
        table: "webhook_deliveries",
        key: Key::Id(|at| DeliveryId::first_at(at).to_string()),
        is_guarded: false,
    },
    Monthly { table: "decisions", key: Key::CreatedAt, is_guarded: true },
    Monthly { table: "rail_calls", key: Key::CreatedAt, is_guarded: true },
    Monthly {
        table: "events",
        key: Key::Id(|at| EventId::first_at(at).to_string()),
        is_guarded: true,
    },
];

/// The table of this name, if it has months on this engine.
#[must_use]
pub fn find(engine: Engine, table: &str) -> Option<&'static Monthly> {
    let known = MONTHLY.iter().find(|known| known.table == table);
    known.filter(|_| engine == Engine::Postgres)
}

/// Up to when rows of a table may go: an instant, or the begin of its month where whole months do.
#[must_use]
pub fn goes_before(engine: Engine, table: &str, before: Moment) -> Moment {
    let first = find(engine, table).and_then(|_| month_of(before)).map(start_of);
    first.unwrap_or(before)
}

/// Makes tables for this month and the next.
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
            match run(db, &monthly.make(month)).await {
                Err(sqlx::Error::Database(cause))
                    if cause.code().is_some_and(|code| THERE.contains(&code.as_ref())) => {}
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
    let mut over: Vec<Date> = months
        .filter(|month| {
            let slack = jiff::Span::new().days(SLACK_DAYS);
            let end = months_later(*month, 1).and_then(|next| next.checked_add(slack).ok());
            end.is_some_and(|end| start_of(end) <= before)
        })
        .collect();
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
    /// Drops a month unless one of these queries finds something, and writes the mark that says so
    /// in the same transaction; answers whether it is gone.
    ///
    /// # Errors
    /// The database cannot be written, or somebody reads the table for longer than we wait.
    pub async fn drop(
        &self,
        db: &Db,
        month: Date,
        (unless, mark): (&[String], Option<&str>),
    ) -> Result<bool, sqlx::Error> {
        let mut tx = db.write().await?;
        tx.conn().execute(LOCK_TIMEOUT).await?;
        for query in unless {
            let found = sqlx::query(AssertSqlSafe(query.as_str())).fetch_optional(tx.conn());
            if found.await?.is_some() {
                return Ok(false);
            }
        }
        let gone = format!("DROP TABLE {}", self.name(month));
        for statement in mark.into_iter().chain([gone.as_str()]) {
            sqlx::query(AssertSqlSafe(statement)).execute(tx.conn()).await?;
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

    /// The name of a month's table.
    fn name(&self, month: Date) -> String {
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

    /// What makes a month's table, with what came before it was there.
    fn make(&self, month: Date) -> Vec<String> {
        let (table, name, strays, column) =
            (self.table, self.name(month), self.strays(), self.column());
        let from = self.first(start_of(month));
        let to = self.first(start_of(months_later(month, 1).unwrap_or(month)));
        let mut all = vec![
            format!("CREATE TABLE {name} (LIKE {strays} INCLUDING ALL)"),
            format!(
                "WITH moved AS (DELETE FROM {strays} WHERE {column} >= {from} AND {column} < {to} \
                 RETURNING *) INSERT INTO {name} SELECT * FROM moved"
            ),
            format!(
                "ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from}) TO ({to})"
            ),
        ];
        if self.is_guarded {
            all.insert(0, "INSERT INTO sweeping (id) VALUES (1)".to_owned());
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

/// The first day of an instant's month.
fn month_of(at: Moment) -> Option<Date> {
    let day: Date = at.day_in(&TimeZone::UTC).parse().ok()?;
    Some(day.first_of_month())
}

fn start_of(day: Date) -> Moment {
    let start = day.to_zoned(TimeZone::UTC).map_or(0, |at| at.timestamp().as_microsecond());
    Moment::from_micros(start)
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
        let at = Moment::from_micros(1_793_491_200_000_000 + 9 * 86_400_000_000);
        let begin = goes_before(Engine::Postgres, "events", at);
        assert_eq!(begin.micros(), 1_793_491_200_000_000);
        assert_eq!(goes_before(Engine::Sqlite, "events", at), at);
        assert_eq!(goes_before(Engine::Postgres, "idempotency_keys", at), at);
    }
}
