//! The writer's own connection: four operations, in each engine's native protocol.

use sqlx::Type;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{
    AssertSqlSafe, ColumnIndex, ConnectOptions as _, Connection as _, Decode, Executor as _,
};

use super::Engine;
use super::bulk::{Cell, Column, Dialects, Kind, Lookup, Row, Table, Update};

/// A connection that one task has for itself.
pub enum Native {
    /// PostgreSQL.
    Postgres(PgConnection),
    /// SQLite.
    Sqlite(SqliteConnection),
}

impl Native {
    pub(super) async fn connect(engine: Engine, url: &str) -> Result<Self, sqlx::Error> {
        match engine {
            Engine::Postgres => {
                let options: PgConnectOptions = url.parse()?;
                let mut connection = options.disable_statement_logging().connect().await?;
                connection.execute(engine.session()).await?;
                // Batches differ in size only; planning each anew would cost more than it gains.
                connection
                    .execute("SET plan_cache_mode = force_generic_plan; SET jit = off")
                    .await?;
                Ok(Self::Postgres(connection))
            }
            Engine::Sqlite => {
                let options: SqliteConnectOptions = url.parse()?;
                let mut connection = options.disable_statement_logging().connect().await?;
                connection.execute(engine.session()).await?;
                Ok(Self::Sqlite(connection))
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
            Self::Sqlite(connection) => connection.execute("BEGIN IMMEDIATE").await.map(drop),
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
        keys: &[String],
    ) -> Result<Vec<Row>, sqlx::Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let Dialects { postgres, sqlite } = lookup.select();
        match self {
            Self::Postgres(connection) => {
                let query = sqlx::query(AssertSqlSafe(postgres)).bind(keys);
                let rows = query.fetch_all(connection).await?;
                rows.iter().map(|row| cells(row, lookup.columns)).collect()
            }
            Self::Sqlite(connection) => {
                let query = sqlx::query(AssertSqlSafe(sqlite)).bind(json(&keys)?);
                let rows = query.fetch_all(connection).await?;
                rows.iter().map(|row| cells(row, lookup.columns)).collect()
            }
        }
    }

    /// Inserts rows; answers how many were.
    ///
    /// # Errors
    /// The connection is lost or a row breaks a constraint.
    pub async fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        self.write(table.insert(), rows, || table.columns.iter().map(|column| column.1)).await
    }

    /// Updates rows by key; answers how many were.
    ///
    /// # Errors
    /// The connection is lost or a row breaks a constraint.
    pub async fn update(&mut self, update: &Update, rows: &[Row]) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        let kinds =
            || std::iter::once(Kind::Text).chain(update.columns.iter().map(|column| column.1));
        self.write(update.update(), rows, kinds).await
    }

    /// Deletes rows by key; answers how many were.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn delete(&mut self, update: &Update, keys: &[String]) -> Result<u64, sqlx::Error> {
        if keys.is_empty() {
            return Ok(0);
        }
        let Dialects { postgres, sqlite } = update.delete();
        match self {
            Self::Postgres(connection) => {
                let query = sqlx::query(AssertSqlSafe(postgres)).bind(keys);
                Ok(query.execute(connection).await?.rows_affected())
            }
            Self::Sqlite(connection) => {
                let query = sqlx::query(AssertSqlSafe(sqlite)).bind(json(&keys)?);
                Ok(query.execute(connection).await?.rows_affected())
            }
        }
    }

    async fn write<K: Iterator<Item = Kind>>(
        &mut self,
        sql: Dialects,
        rows: &[Row],
        kinds: impl Fn() -> K,
    ) -> Result<u64, sqlx::Error> {
        match self {
            Self::Postgres(connection) => {
                let mut query = sqlx::query(AssertSqlSafe(sql.postgres));
                for (index, kind) in kinds().enumerate() {
                    query = match kind {
                        Kind::Text => query.bind(texts(rows, index)),
                        Kind::Int => query.bind(ints(rows, index)),
                    };
                }
                Ok(query.execute(connection).await?.rows_affected())
            }
            Self::Sqlite(connection) => {
                let query = sqlx::query(AssertSqlSafe(sql.sqlite)).bind(json(&rows)?);
                Ok(query.execute(connection).await?.rows_affected())
            }
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(connection) => connection.execute(sql).await.map(drop),
            Self::Sqlite(connection) => connection.execute(sql).await.map(drop),
        }
    }

    /// Closes the connection in order.
    pub async fn close(self) {
        let closed = match self {
            Self::Postgres(connection) => connection.close().await,
            Self::Sqlite(connection) => connection.close().await,
        };
        if let Err(cause) = closed {
            tracing::debug!(%cause, "closing the writer's connection");
        }
    }
}

fn texts(rows: &[Row], index: usize) -> Vec<Option<&str>> {
    rows.iter().map(|row| row[index].text_or_null()).collect()
}

fn ints(rows: &[Row], index: usize) -> Vec<Option<i64>> {
    rows.iter().map(|row| row[index].int_or_null()).collect()
}

fn cells<R>(row: &R, columns: &[Column]) -> Result<Row, sqlx::Error>
where
    R: sqlx::Row,
    usize: ColumnIndex<R>,
    for<'r> Option<String>: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Option<i64>: Decode<'r, R::Database> + Type<R::Database>,
{
    let mut cells = vec![Cell::Text(row.try_get(0)?)];
    for (index, (_, kind)) in columns.iter().enumerate() {
        cells.push(match kind {
            Kind::Text => Cell::Text(row.try_get(index + 1)?),
            Kind::Int => Cell::Int(row.try_get(index + 1)?),
        });
    }
    Ok(cells)
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|cause| sqlx::Error::Encode(Box::new(cause)))
}

impl serde::Serialize for Cell {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Int(number) => number.serialize(serializer),
        }
    }
}
