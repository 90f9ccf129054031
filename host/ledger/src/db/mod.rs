//! The database: one schema and one SQL text on two engines.
//!
//! Reads, and the writes that move no money, go through [`Db`] and sqlx's `Any` driver, with
//! SQL that both engines understand. The writer of the ledger alone speaks to its engine
//! natively, through [`native::Native`].
//!
//! SQLite has one writer at a time. Instead of letting transactions collide and poll, every
//! writing transaction of this process first takes [`Db`]'s gate, in order of arrival.

pub mod bulk;
pub mod cell;
mod checkpoints;
mod embedded;
mod identity;
pub mod lookup;
mod migrate;
pub mod native;
mod rounds;
mod statement;
mod watch;
mod written;

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::clock::Moment;
use crate::config::limits;
pub(crate) use checkpoints::Checkpointer;
pub use identity::Identity;
pub use migrate::schema_texts;
pub use native::Native;
pub use rounds::{Rounds, Shared};
use watch::Watch;
pub use watch::{Moves, REPLACED};
pub use written::Written;

/// Which database this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Embedded, one host.
    Sqlite,
    /// A server, any number of hosts.
    Postgres,
}

/// A database that takes longer to take a connection is not there.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A handle on the database, cheap to clone.
#[derive(Clone)]
pub struct Db {
    pool: AnyPool,
    engine: Engine,
    url: SecretString,
    path: Option<PathBuf>,
    watch: Arc<Watch>,
    gate: Arc<Mutex<()>>,
    _file_lock: Option<Arc<std::fs::File>>,
}

/// A transaction that writes. Dropped without [`Tx::commit`], it is rolled back.
pub struct Tx {
    tx: sqlx::Transaction<'static, Any>,
    _turn: Option<OwnedMutexGuard<()>>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Neither `sqlite:` nor `postgres:`.
    #[error("the database URL must begin with sqlite: or postgres:")]
    UnknownEngine,
    /// Another host has the embedded database open.
    #[error("{0} is in use by another host; an embedded database has one")]
    InUse(PathBuf),
    /// The folder or the file of the embedded database cannot be used.
    #[error("{path}: {cause}")]
    File {
        /// The file's path.
        path: PathBuf,
        /// What went wrong.
        cause: std::io::Error,
    },
    /// There is no embedded database to be read.
    #[error("there is no database at {}: say where it is, with --config, RAILHEAD_DATA__DIR or DATABASE_URL", .0.display())]
    Missing(PathBuf),
    /// The database did not keep a setting that durability depends on.
    #[error("the database has {name} = {value}, but {wanted} is needed")]
    Setting {
        /// The setting's name in the database.
        name: &'static str,
        /// The value that it has.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// Nobody answers, or not to this host.
    #[error("PostgreSQL does not accept connections: {0}")]
    Closed(sqlx::Error),
    /// The database refused.
    #[error("the database: {0}")]
    Sqlx(#[from] sqlx::Error),
    /// Its schema is not one that leads to this host's.
    #[error(
        "the database was made by another version of railhead, whose schema this one cannot \
             bring up to date; give it a database of its own"
    )]
    Foreign,
    /// The schema has what this program does not know of.
    #[error(
        "the database was made by a newer version of railhead, or by another program: start that \
             version, or give this one a database of its own"
    )]
    Newer,
    /// The schema cannot be brought up to date.
    #[error("migrating the database: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

/// Finds out whether there is somebody. A pool tries until its time is up, and then says only that.
async fn knock(options: &AnyConnectOptions) -> Result<(), OpenError> {
    let connecting = AnyConnection::connect_with(options);
    let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
    let connected = connected.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    Ok(connected.map_err(OpenError::Closed)?.close().await?)
}

impl Db {
    /// Connects, without touching the schema.
    ///
    /// # Errors
    /// The database cannot be reached, is in use by another host, or does not keep what was
    /// asked of it.
    pub async fn open(url: &SecretString, connections: u32) -> Result<Self, OpenError> {
        let (engine, url, path) = prepare(url)?;
        let file_lock = path.as_deref().map(lock_file).transpose()?;
        let session = [engine.session(), engine.serving()].concat();
        Self::connect((engine, url, path), (connections, session), file_lock).await
    }

    /// Connects for reading, beside a host that may be running.
    ///
    /// # Errors
    /// The database is not there or cannot be reached.
    pub async fn open_for_reading(url: &SecretString) -> Result<Self, OpenError> {
        let (engine, url, path) = prepare(url)?;
        if let Some(path) = path.clone().filter(|path| !path.exists()) {
            return Err(OpenError::Missing(path));
        }
        Self::connect((engine, url, path), (1, engine.session().to_owned()), None).await
    }

    async fn connect(
        (engine, url, path): (Engine, SecretString, Option<PathBuf>),
        (connections, session): (u32, String),
        file_lock: Option<std::fs::File>,
    ) -> Result<Self, OpenError> {
        sqlx::any::install_default_drivers();
        let options = AnyConnectOptions::from_str(url.expose_secret())?
            .log_statements(tracing::log::LevelFilter::Trace)
            .log_slow_statements(tracing::log::LevelFilter::Warn, Duration::from_secs(1));
        if engine == Engine::Postgres {
            knock(&options).await?;
        }
        let watch: Arc<Watch> = Arc::default();
        let (looks, before, after) = (Arc::clone(&watch), Arc::clone(&watch), Arc::clone(&watch));
        let pool = AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(CONNECT_MAX)
            // A trip to the server before each statement: only for one that nobody used lately.
            .test_before_acquire(false)
            .before_acquire(move |connection, about| {
                let is_spoilt = before.is_spoilt(about.age);
                Box::pin(async move {
                    if is_spoilt {
                        return Ok(false);
                    }
                    match about.idle_for < limits::CONNECTION_IDLE_MAX {
                        true => Ok(true),
                        false => ping(connection).await.map(|()| true),
                    }
                })
            })
            .after_release(move |connection, about| {
                let is_spoilt = after.is_spoilt(about.age);
                Box::pin(async move {
                    if is_spoilt {
                        return Ok(false);
                    }
                    match engine {
                        Engine::Sqlite if !connection.is_in_transaction() => Ok(true),
                        // Taken back by now, or for ever in one that the engine itself has ended:
                        // whoever got it next could begin none.
                        Engine::Sqlite => {
                            ping(connection).await.map(|()| !connection.is_in_transaction())
                        }
                        Engine::Postgres => ping(connection).await.map(|()| true),
                    }
                })
            })
            .after_connect(move |connection, _| {
                let (session, looks) = (session.clone(), Arc::clone(&looks));
                Box::pin(async move {
                    connection.execute(AssertSqlSafe(session)).await?;
                    looks.look(engine, connection).await
                })
            })
            .connect_with(options)
            .await?;
        let db = Self {
            pool,
            engine,
            url,
            path,
            watch,
            gate: Arc::new(Mutex::new(())),
            _file_lock: file_lock.map(Arc::new),
        };
        db.check_durability().await?;
        Ok(db)
    }

    /// Brings the schema up to date; several hosts may call it at once.
    ///
    /// # Errors
    /// A migration fails, or one that was applied has changed since.
    pub async fn migrate(&self) -> Result<(), OpenError> {
        use sqlx::migrate::MigrateError as E;
        match migrate::migrator(self.engine).run(&self.pool).await {
            Err(E::VersionMismatch(_)) => Err(OpenError::Foreign),
            Err(E::VersionMissing(_)) => Err(OpenError::Newer),
            other => Ok(other?),
        }
    }

    /// Where reads go.
    #[must_use]
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Which engine this is.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Waits for this process's turn to write, where the engine has turns.
    pub async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        match self.engine {
            Engine::Sqlite => Some(Arc::clone(&self.gate).lock_owned().await),
            Engine::Postgres => None,
        }
    }

    /// Begins a transaction that writes.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn write(&self) -> Result<Tx, sqlx::Error> {
        let turn = self.turn().await;
        Ok(Tx { _turn: turn, ..self.write_in_turn().await? })
    }

    /// Begins a transaction that writes, for whoever has the turn already.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub(crate) async fn write_in_turn(&self) -> Result<Tx, sqlx::Error> {
        let tx = match self.engine {
            Engine::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await?,
            Engine::Postgres => self.pool.begin().await?,
        };
        Ok(Tx { tx, _turn: None })
    }

    /// Begins a transaction that only reads, and reads one moment: whatever is committed while
    /// it lasts stays unseen. It may take as long as it needs.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn snapshot(&self) -> Result<sqlx::Transaction<'static, Any>, sqlx::Error> {
        match self.engine {
            Engine::Sqlite => self.pool.begin().await,
            Engine::Postgres => {
                // Whoever reads all of a table begins where it does, and not where somebody else
                // is: what proves the books keeps in memory what comes too early.
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                             SET LOCAL synchronize_seqscans = off; \
                             SET LOCAL statement_timeout = 0; \
                             SET LOCAL idle_in_transaction_session_timeout = 0";
                self.pool.begin_with(begin).await
            }
        }
    }

    /// The database's clock, by which leases run: hosts may disagree about the time.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn now(&self) -> Result<Moment, sqlx::Error> {
        let sql = self.engine.now();
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.map(Moment::from_micros)
    }

    /// Closes every connection, as far as the server takes part in that.
    pub async fn close(&self) {
        if tokio::time::timeout(limits::DATABASE_DEADLINE, self.pool.close()).await.is_err() {
            tracing::warn!("the database is silent: connections are left to it");
        }
    }

    /// Reads back what acknowledged writes depend on; a server may have been told otherwise.
    async fn check_durability(&self) -> Result<(), OpenError> {
        let wanted: &[(&str, &str, &str)] = match self.engine {
            Engine::Sqlite => &[
                ("journal_mode", "PRAGMA journal_mode", "wal"),
                ("synchronous", "SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous", "2"),
            ],
            Engine::Postgres => &[
                ("synchronous_commit", "SHOW synchronous_commit", "on"),
                ("fsync", "SHOW fsync", "on"),
                ("full_page_writes", "SHOW full_page_writes", "on"),
            ],
        };
        for &(name, sql, wanted) in wanted {
            let value: String = sqlx::query_scalar(sql).fetch_one(&self.pool).await?;
            if value != wanted {
                return Err(OpenError::Setting { name, value, wanted });
            }
        }
        Ok(())
    }
}

impl Tx {
    /// The database's clock, read inside this transaction.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn now(&mut self, engine: Engine) -> Result<Moment, sqlx::Error> {
        sqlx::query_scalar(engine.now()).fetch_one(&mut *self.tx).await.map(Moment::from_micros)
    }

    /// The connection to run statements on.
    pub fn conn(&mut self) -> &mut sqlx::AnyConnection {
        &mut self.tx
    }

    /// Makes everything durable. An error here means that the outcome is unknown.
    ///
    /// # Errors
    /// The answer to COMMIT did not arrive.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.tx.commit().await
    }
}

impl Engine {
    /// The present instant by the database's clock, in microseconds.
    #[must_use]
    pub const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)",
            Self::Postgres => {
                "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
            }
        }
    }

    /// The texts in a parameter that holds an array of them in JSON, as rows of one column.
    #[must_use]
    pub fn texts(self, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("(SELECT value AS text FROM json_each({parameter}))"),
            Self::Postgres => {
                let array = format!("CAST(CAST({parameter} AS TEXT) AS JSON)");
                format!("(SELECT t.text FROM json_array_elements_text({array}) AS t(text))")
            }
        }
    }

    /// The condition that a column holds one of the texts in such a parameter.
    #[must_use]
    pub fn among(self, column: &str, parameter: &str) -> String {
        let texts = self.texts(parameter);
        match self {
            Self::Sqlite => format!("{column} IN {texts}"),
            // An array is looked up by index, whatever the planner thinks of its length.
            Self::Postgres => format!("{column} = ANY(ARRAY{texts})"),
        }
    }

    /// The objects in a parameter that holds an array of them in JSON, as rows of these columns,
    /// all of them texts.
    #[must_use]
    pub fn records(self, parameter: &str, columns: &[&str]) -> String {
        let each = |column: fn(&str) -> String| {
            columns.iter().map(|name| column(name)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Sqlite => {
                let columns = each(|name| format!("value ->> '{name}' AS {name}"));
                format!("(SELECT {columns} FROM json_each({parameter}))")
            }
            Self::Postgres => {
                let columns = each(|name| format!("{name} TEXT"));
                let array = format!("CAST(CAST({parameter} AS TEXT) AS JSON)");
                format!("(SELECT * FROM json_to_recordset({array}) AS t({columns}))")
            }
        }
    }

    /// What a host's sessions are told as well. A statement's plan outlives the size that its
    /// tables had when it was made: rows are found by index from the first, however few there are.
    const fn serving(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "; SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0",
        }
    }

    /// What every session is told first.
    const fn session(self) -> &'static str {
        match self {
            // FULL makes every commit durable in WAL mode; NORMAL may lose the last ones. A host
            // makes checkpoints beside its commits (see `checkpoints`). Whoever commits makes one
            // only after 16,384 pages: while somebody reads for long, or where there are no batches.
            // A log that has grown longer than those is cut when it begins anew.
            Self::Sqlite => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000; \
                 PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; \
                 PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = 16384; \
                 PRAGMA journal_size_limit = 67108864"
            }
            Self::Postgres => {
                // A plan that is dear only because scans are forbidden would be compiled for a
                // millisecond's work. Long texts are packed by whoever writes them: the quicker
                // way, where it is there.
                "SET synchronous_commit = on; SET jit = off; SET lock_timeout = '5s'; \
                 SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
                 SET tcp_keepalives_count = 3; SET tcp_user_timeout = 20000; \
                 SELECT set_config(name, 'lz4', false) FROM pg_settings \
                 WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"
            }
        }
    }
}

/// Runs something on the database that nobody else gives a deadline. A connection that falls
/// silent must not keep a job from its work for ever.
///
/// # Errors
/// What the database says, or that it says nothing.
pub async fn in_time<T, E: From<sqlx::Error>>(
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    within(limits::DATABASE_DEADLINE, step).await
}

/// The same for what may take as long as this.
///
/// # Errors
/// What the step comes to, or that it is not done by then.
pub async fn within<T, E: From<sqlx::Error>>(
    limit: Duration,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let late = || {
        let why = format!("not done within {limit:?}, as where the database is silent");
        std::io::Error::new(std::io::ErrorKind::TimedOut, why)
    };
    let answer = tokio::time::timeout(limit, step).await;
    answer.unwrap_or_else(|_| Err(sqlx::Error::from(late()).into()))
}

/// Asks whether a connection still leads anywhere. The pool asks that itself when one comes back,
/// and waits for the answer without end: this comes before it, and does not.
async fn ping(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    within(limits::PING_MAX, connection.ping()).await
}

/// Names the engine, and the file where it has one.
fn prepare(url: &SecretString) -> Result<(Engine, SecretString, Option<PathBuf>), OpenError> {
    let text = url.expose_secret();
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok((Engine::Postgres, url.clone(), None));
    }
    let Some(path) = text.strip_prefix("sqlite:") else {
        return Err(OpenError::UnknownEngine);
    };
    let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
    // The path is meant as it stands, and sqlx decodes it.
    let url = format!("sqlite:{}?mode=rwc", path.display().to_string().replace('%', "%25"));
    Ok((Engine::Sqlite, url.into(), Some(path)))
}

fn lock_file(database: &Path) -> Result<std::fs::File, OpenError> {
    let fail = |cause| OpenError::File { path: database.to_owned(), cause };
    if let Some(folder) = database.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
    }
    // Nobody else on this machine reads it; what SQLite puts beside it follows its mode.
    let options = || std::fs::File::options().append(true).create(true).mode(0o600).to_owned();
    options().open(database).map_err(fail)?;
    let lock = database.with_extension("lock");
    let file = std::fs::File::create(&lock).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::InUse(database.to_owned())),
        Err(std::fs::TryLockError::Error(cause)) => Err(fail(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite takes back by itself what a full disk has no room for.
    #[tokio::test]
    async fn there_is_writing_again_once_a_full_disk_has_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("things.db").display());
        let db = Db::open(&SecretString::from(url), 1).await.expect("a database");
        db.pool().execute("CREATE TABLE things (thing BLOB)").await.expect("a table");
        let much = "INSERT INTO things VALUES (zeroblob(1000000))";
        db.pool().execute("PRAGMA max_page_count = 10").await.expect("no room");
        let mut tx = db.write().await.expect("a transaction");
        let full = tx.conn().execute(much).await.expect_err("no room");
        assert!(full.to_string().contains("full"), "{full}");
        drop(tx);

        let mut tx = db.write().await.expect("a transaction on another connection");
        tx.conn().execute(much).await.expect("there is room");
        tx.commit().await.expect("written");
    }
}
