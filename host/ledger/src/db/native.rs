//! The writer's own connection: reading by key and writing in bulk, in each engine's native
//! protocol.

use sqlx::postgres::{PgBindIterExt as _, PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};

use super::Engine;
use super::bulk::{Write, together};
use super::cell::{Cell, Kind, Row};
use super::embedded::Embedded;
use super::identity::{CLUSTER, EPOCH, Identity, from_cluster};
use super::lookup::{CombinedLookup, Lookup};

/// A connection that one task has for itself.
pub enum Native {
    /// PostgreSQL.
    Postgres(PgConnection),
    /// SQLite. Whoever waits for it waits with all of its thread.
    Sqlite(Embedded),
}

/// Statements that a connection to PostgreSQL keeps prepared: one for each mixture of tables that
/// batches write to, or read from. Planning one costs more than running it, and keeping it most of
/// a megabyte.
const MIXTURES_MAX: usize = 128;

impl Native {
    pub(super) async fn connect(engine: Engine, url: &str) -> Result<Self, sqlx::Error> {
        match engine {
            Engine::Postgres => {
                let options: PgConnectOptions = url.parse()?;
                let options = options.statement_cache_capacity(MIXTURES_MAX);
                let mut connection = options.disable_statement_logging().connect().await?;
                connection.execute(engine.session()).await?;
                // Batches differ in size only; planning each anew would cost more than it gains. A
                // plan outlives the size that its tables had: rows are found by key from the
                // first, however few there are, and never by reading a table.
                // A writer that fell silent must not keep its locks: the server gives it up.
                connection
                    .execute(
                        "SET plan_cache_mode = force_generic_plan; \
                         SET enable_seqscan = off; SET enable_hashjoin = off; \
                         SET enable_mergejoin = off; \
                         SET idle_in_transaction_session_timeout = '10s'; \
                         SET statement_timeout = '10s'; \
                         SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
                         SET tcp_keepalives_count = 3; SET tcp_user_timeout = 10000",
                    )
                    .await?;
                Ok(Self::Postgres(connection))
            }
            Engine::Sqlite => Embedded::open(url).map(Self::Sqlite),
        }
    }

    /// Which database this is, where it can be another one than before: a server can be.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn identity(
        &mut self,
    ) -> Result<Option<(Identity, Option<i64>)>, sqlx::Error> {
        match self {
            Self::Sqlite(_) => Ok(None),
            Self::Postgres(connection) => {
                let row = sqlx::query(CLUSTER).fetch_one(&mut *connection).await?;
                let log: String = row.try_get("log")?;
                let identity = from_cluster(row.try_get("system")?, &log)?;
                let epoch = sqlx::query_scalar(EPOCH).fetch_optional(connection).await?;
                Ok(Some((identity, epoch)))
            }
        }
    }

    /// Whether the batch of this id is there, with this hash.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn has_batch(&mut self, id: i64, hash: &str) -> Result<bool, sqlx::Error> {
        match self {
            // The file is the one that was opened.
            Self::Sqlite(_) => Ok(true),
            Self::Postgres(connection) => {
                let sql = "SELECT COUNT(*) FROM writer_batches WHERE id = $1 AND hash = $2";
                let found: i64 =
                    sqlx::query_scalar(sql).bind(id).bind(hash).fetch_one(connection).await?;
                Ok(found > 0)
            }
        }
    }

    /// Begins the transaction.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn begin(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(connection) => connection.execute("BEGIN").await.map(drop),
            Self::Sqlite(connection) => connection.run("BEGIN IMMEDIATE"),
        }
    }

    /// Commits. An error means that the outcome is unknown.
    ///
    /// # Errors
    /// The answer did not arrive.
    pub async fn commit(&mut self) -> Result<(), sqlx::Error> {
        self.run("COMMIT").await
    }

    /// Takes everything back.
    ///
    /// # Errors
    /// The connection is lost, which takes everything back as well.
    pub async fn rollback(&mut self) -> Result<(), sqlx::Error> {
        self.run("ROLLBACK").await
    }

    /// Reads the rows with these keys, in the order of the keys; locks them if so described.
    ///
    /// # Errors
    /// The connection is lost or a lock was not granted in time.
    pub async fn select(
        &mut self,
        lookup: &Lookup,
        keys: Vec<String>,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let found = self.select_all(&[(lookup, keys)]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The same for several look-ups, one after the other; answers the rows of each. PostgreSQL
    /// does it in one trip: none sees what was committed while another waited for a lock, except in
    /// the rows that it locks itself.
    ///
    /// # Errors
    /// As for one.
    pub async fn select_all(
        &mut self,
        wanted: &[(&Lookup, Vec<String>)],
    ) -> Result<Vec<Vec<Row>>, sqlx::Error> {
        let mut found = vec![Vec::new(); wanted.len()];
        let asked = wanted.iter().enumerate().filter(|(_, (_, keys))| !keys.is_empty());
        let asked: Vec<(usize, &(&Lookup, Vec<String>))> = asked.collect();
        match self {
            Self::Postgres(_) if asked.is_empty() => {}
            Self::Postgres(connection) => {
                let lookups: Vec<&Lookup> = asked.iter().map(|(_, (on, _))| *on).collect();
                let CombinedLookup { sql, columns } = CombinedLookup::of(&lookups);
                let query = sqlx::query(AssertSqlSafe(sql));
                let query = asked.iter().fold(query, |query, (_, (_, keys))| query.bind(keys));
                for row in query.fetch_all(connection).await? {
                    let number: i64 = row.try_get(0)?;
                    let odd = |cause| sqlx::Error::Decode(Box::new(cause));
                    let number = usize::try_from(number).map_err(odd)?;
                    found[asked[number].0].push(cells(&row, &columns[number])?);
                }
            }
            Self::Sqlite(connection) => {
                for (at, (lookup, keys)) in asked {
                    found[at] = connection.select(lookup, keys)?;
                }
            }
        }
        Ok(found)
    }

    /// Writes to several tables; answers how many rows each took. SQLite, which has no trips to save,
    /// does it in this order. PostgreSQL does it in one statement and one trip, or in a few where the
    /// same rows are written more than once, because parts of one statement do not see each other:
    /// first what is counted, then the others, each in this order.
    ///
    /// # Errors
    /// The connection is lost or a row breaks a constraint. On SQLite the rows before it may be
    /// written: whoever gets an error rolls back.
    pub async fn write(&mut self, writes: &[Write<'_>]) -> Result<Vec<u64>, sqlx::Error> {
        let mut written = vec![0; writes.len()];
        match self {
            Self::Postgres(connection) => {
                for some in trips(writes) {
                    let (counted, mut whole): (Vec<usize>, Vec<usize>) =
                        some.into_iter().partition(|at| writes[*at].is_counted());
                    // So that they are carried out as they came.
                    whole.reverse();
                    let parts = counted.iter().chain(&whole).map(|at| writes[*at]);
                    let parts: Vec<Write<'_>> = parts.collect();
                    let query = sqlx::query(AssertSqlSafe(together(&parts)));
                    let row = parts.iter().fold(query, bind).fetch_one(&mut *connection).await?;
                    whole.into_iter().for_each(|at| written[at] = writes[at].len() as u64);
                    for (column, at) in counted.into_iter().enumerate() {
                        let count: i64 = row.try_get(column)?;
                        written[at] = count.unsigned_abs();
                    }
                }
            }
            Self::Sqlite(connection) => {
                for (at, write) in writes.iter().enumerate().filter(|(_, write)| !write.is_empty())
                {
                    written[at] = match write {
                        Write::Rows(shape, rows) => connection.write((*shape, None), rows),
                        Write::Sealed(shape, rows, batch) => {
                            connection.write((*shape, Some(*batch)), rows)
                        }
                        Write::Delete(removal, keys) => connection.delete(removal, keys),
                    }?;
                }
            }
        }
        Ok(written)
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(connection) => connection.execute(sql).await.map(drop),
            Self::Sqlite(connection) => connection.run(sql),
        }
    }

    /// Closes the connection in order.
    pub async fn close(self) {
        let closed = match self {
            Self::Postgres(connection) => connection.close().await,
            Self::Sqlite(connection) => connection.close(),
        };
        if let Err(cause) = closed {
            tracing::debug!(%cause, "closing the writer's connection");
        }
    }
}

type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

/// Which writes go together: in order, those that mean nothing left out, none to the same rows as
/// another.
fn trips(writes: &[Write<'_>]) -> Vec<Vec<usize>> {
    let mut trips: Vec<Vec<usize>> = Vec::new();
    for (at, write) in writes.iter().enumerate().filter(|(_, write)| !write.is_empty()) {
        let is_apart = |other: &usize| write.is_apart_from(&writes[*other]);
        match trips.last_mut().filter(|trip| trip.iter().all(is_apart)) {
            Some(trip) => trip.push(at),
            None => trips.push(vec![at]),
        }
    }
    trips
}

/// Binds a write's rows, an array for each column, and the batch that they are sealed with.
fn bind<'q>(mut query: PgQuery<'q>, write: &Write<'q>) -> PgQuery<'q> {
    let (shape, rows, batch) = match write {
        Write::Rows(shape, rows) => (shape, rows, None),
        Write::Sealed(shape, rows, batch) => (shape, rows, Some(*batch)),
        Write::Delete(_, keys) => return query.bind(*keys),
    };
    let own = rows.first().map_or(0, |row| row.len());
    for (index, (_, kind)) in shape.columns().into_iter().take(own).enumerate() {
        query = match kind {
            Kind::Text => query.bind(rows.iter().map(move |row| row[index].as_text()).bind_iter()),
            Kind::Int => query.bind(rows.iter().map(move |row| row[index].as_int()).bind_iter()),
        };
    }
    match batch {
        Some(batch) => query.bind(batch),
        None => query,
    }
}

fn cells(row: &PgRow, columns: &[(usize, Kind)]) -> Result<Row, sqlx::Error> {
    let cell = |(place, kind): &(usize, Kind)| {
        Ok(match kind {
            Kind::Text => Cell::Text(row.try_get(*place)?),
            Kind::Int => Cell::Int(row.try_get(*place)?),
        })
    };
    columns.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bulk::{Table, Update, int, text};
    use super::*;

    type Thing = (&'static str, i64);

    static THINGS: Table<Thing> = Table {
        name: "things",
        fixed: &[text("id", |thing| thing.0.into())],
        changing: &[int("n", |thing| thing.1.into())],
        on_conflict: None,
        is_sealed: false,
    };
    static NUMBERS: Update<Thing> = Update {
        name: "things",
        key: text("id", |thing| thing.0.into()),
        columns: &[int("n", |thing| thing.1.into())],
        only_where: None,
    };
    static KNOWN: Lookup =
        Lookup { name: "things", key: "id", columns: &[("n", Kind::Int)], lock: true };

    async fn numbers(native: &mut Native) -> Vec<i64> {
        let keys = ["a", "b", "c", "d"].map(String::from);
        let rows = native.select(&KNOWN, keys.to_vec()).await.expect("rows");
        rows.iter().filter_map(|row| row[1].as_int()).collect()
    }

    /// What was written before a row that is not taken goes with the transaction.
    #[tokio::test]
    async fn what_fails_half_way_is_taken_back_with_its_batch() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("things.db").display());
        let mut native = Native::connect(Engine::Sqlite, &url).await.expect("a database");
        let table = "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL CHECK (n > 0))";
        native.run(table).await.expect("a table");
        let new = |all: [Thing; 4]| all.map(|thing| THINGS.row(&thing));
        let changed = |all: [Thing; 4]| all.map(|thing| NUMBERS.row(&thing));
        for rows in [
            new([("a", 1), ("b", 2), ("a", 3), ("d", 4)]),
            new([("a", 1), ("b", 2), ("c", 0), ("d", 4)]),
        ] {
            let half = write_and_take_back(&mut native, &Write::Rows(&THINGS, &rows)).await;
            assert_eq!((half, numbers(&mut native).await), (vec![1, 2], vec![]));
        }
        native.begin().await.expect("begun");
        let good = new([("a", 1), ("b", 2), ("c", 3), ("d", 4)]);
        let written = native.write(&[Write::Rows(&THINGS, &good)]).await.expect("written");
        native.commit().await.expect("committed");
        assert_eq!(written, [4]);
        let bad = changed([("a", 5), ("b", 6), ("c", 0), ("d", 8)]);
        let half = write_and_take_back(&mut native, &Write::Rows(&NUMBERS, &bad)).await;
        assert_eq!(half, [5, 6, 3, 4]);
        assert_eq!(numbers(&mut native).await, [1, 2, 3, 4]);
    }

    /// Writes what cannot be written as a whole, and takes it back as a batch does; answers what
    /// stood there in between.
    async fn write_and_take_back(native: &mut Native, write: &Write<'_>) -> Vec<i64> {
        native.begin().await.expect("begun");
        native.write(&[*write]).await.expect_err("a row is not taken");
        let half = numbers(native).await;
        native.rollback().await.expect("taken back");
        half
    }
}
