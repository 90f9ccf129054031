//! SQLite's write-ahead log: what is committed is copied from there to its place in the file.
//!
//! By itself SQLite has whoever commits copy, and everybody else who writes waits meanwhile. Here a
//! connection of its own copies beside them. Commits that never cease leave it behind by one of
//! them, and the log begins anew only where nothing is left to copy: once it is long, a last portion
//! is copied while nobody writes.

use secrecy::ExposeSecret as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tokio::sync::mpsc;

use super::Db;

/// From how many pages (of 4 KiB) on it is worth copying them: most pages change with every batch,
/// and are copied once.
const PAGES_WORTH: i64 = 1_000;

/// After how many pages the log has to begin anew: 32 MiB.
const PAGES_MAX: i64 = 8_000;

/// Copies what is committed, for a host that tells of each commit.
pub(crate) struct Copyist {
    db: Db,
    connection: SqliteConnection,
}

/// How many pages stand in the log, and how many of those were copied.
#[derive(Debug, PartialEq, Eq)]
struct Log {
    pages: i64,
    copied: i64,
}

impl Copyist {
    /// One with a connection of its own.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub(crate) async fn of(db: &Db) -> Result<Self, sqlx::Error> {
        let options: SqliteConnectOptions = db.url.expose_secret().parse()?;
        let mut connection = options.disable_statement_logging().connect().await?;
        connection.execute(db.engine.session()).await?;
        Ok(Self { db: db.clone(), connection })
    }

    /// Looks at the log after commits, until nobody is left who tells of them.
    pub(crate) async fn run(mut self, mut committed: mpsc::Receiver<()>) {
        while committed.recv().await.is_some() {
            if let Err(cause) = self.look().await {
                tracing::warn!(%cause, "the write-ahead log is not copied");
            }
        }
        if let Err(cause) = self.connection.close().await {
            tracing::debug!(%cause, "closing a connection");
        }
    }

    /// Copies what there is, if it is worth it.
    async fn look(&mut self) -> Result<(), sqlx::Error> {
        let log = self.log("NOOP").await?;
        if log.pages - log.copied < PAGES_WORTH {
            return Ok(());
        }
        let log = self.log("PASSIVE").await?;
        if log.pages >= PAGES_MAX {
            let _nobody_writes = self.db.turn().await;
            self.log("PASSIVE").await?;
        }
        Ok(())
    }

    /// Has SQLite look at the log (NOOP), or copy what no reader holds back (PASSIVE).
    async fn log(&mut self, how: &'static str) -> Result<Log, sqlx::Error> {
        let sql = AssertSqlSafe(format!("PRAGMA wal_checkpoint({how})"));
        let row = sqlx::query(sql).fetch_one(&mut self.connection).await?;
        Ok(Log { pages: row.try_get("log")?, copied: row.try_get("checkpointed")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;

    async fn write(db: &Db, pages: i64) {
        let mut tx = db.write().await.expect("a transaction");
        let sql = format!("INSERT INTO things VALUES (zeroblob({}))", pages * 4096);
        tx.conn().execute(AssertSqlSafe(sql)).await.expect("written");
        tx.commit().await.expect("committed");
    }

    #[tokio::test]
    async fn what_is_committed_is_copied_and_a_long_log_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("log.db").display());
        let db = Db::open(&SecretString::from(url), 2).await.expect("a database");
        db.pool().execute("CREATE TABLE things (thing BLOB)").await.expect("a table");
        let mut copyist = Copyist::of(&db).await.expect("a connection");

        write(&db, 10).await;
        copyist.look().await.expect("the log");
        let little = copyist.log("NOOP").await.expect("the log");
        assert!((10..100).contains(&little.pages) && little.copied == 0, "{little:?}");

        write(&db, PAGES_WORTH).await;
        copyist.look().await.expect("the log");
        let copied = copyist.log("NOOP").await.expect("the log");
        assert!(copied.pages > PAGES_WORTH && copied.copied == copied.pages, "{copied:?}");

        // The log does not begin anew while somebody reads what stands in it.
        let mut reading = db.snapshot().await.expect("a transaction");
        let sql = "SELECT COUNT(*) FROM things";
        sqlx::query(sql).fetch_one(&mut *reading).await.expect("a number");
        write(&db, PAGES_MAX).await;
        copyist.look().await.expect("the log");
        let held = copyist.log("NOOP").await.expect("the log");
        assert!(held.pages > PAGES_MAX && held.copied < PAGES_MAX, "{held:?}");
        reading.rollback().await.expect("it has read");
        copyist.look().await.expect("the log");
        write(&db, 1).await;
        let anew = copyist.log("NOOP").await.expect("the log");
        assert!(anew.pages < 100, "{anew:?}");
    }
}
