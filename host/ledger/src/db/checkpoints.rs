//! Checkpoints of SQLite: what stands in the write-ahead log is copied to its place in the file.
//!
//! By itself SQLite has whoever commits do it, and everybody else who writes waits meanwhile. Here a
//! connection of its own copies beside them. While commits never cease there is always one that is
//! not copied yet, and the log is used again from its beginning only where nothing is left to copy:
//! once it is long, a last portion is copied while nobody writes.

use secrecy::ExposeSecret as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::database::{Failure, failure};

use super::Db;

/// From how many pages (of 4 KiB) on it is worth copying them, 16 MiB: most pages change with every
/// batch, and are copied once.
const PAGES_WORTH: i64 = 4_000;

/// After how many pages the log has to begin anew: 32 MiB. The file is synced then, while everybody
/// waits. Half as many as make SQLite have whoever commits copy them (`Engine::session`).
const PAGES_MAX: i64 = 8_192;

/// Everybody waits for the last portion of a long log, once that has fewer pages than these. Portions
/// before it have what was committed while the one before them was copied.
const PAGES_LAST: i64 = 1_000;

/// After how many portions everybody waits all the same: where so much is committed meanwhile that
/// none becomes small.
const PORTIONS_MAX: usize = 4;

/// Makes checkpoints for a host, which tells of each batch of its writer.
pub(crate) struct Checkpointer {
    db: Db,
    connection: SqliteConnection,
    /// How many pages the log had when a reader held back what was left of it. Finding that out goes
    /// through all of that, and is worth it again when the log has grown.
    held_at: Option<i64>,
}

/// How many pages stand in the write-ahead log, and how many of those were copied.
#[derive(Debug, PartialEq, Eq)]
struct WriteAheadLog {
    pages: i64,
    copied: i64,
}

impl WriteAheadLog {
    /// How many pages are not copied yet.
    const fn rest(&self) -> i64 {
        self.pages - self.copied
    }

    /// Whether it has to begin anew.
    const fn is_long(&self) -> bool {
        self.pages >= PAGES_MAX
    }
}

impl Checkpointer {
    /// One with a connection of its own.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub(crate) async fn of(db: &Db) -> Result<Self, sqlx::Error> {
        let options: SqliteConnectOptions = db.url.expose_secret().parse()?;
        let mut connection = options.disable_statement_logging().connect().await?;
        connection.execute(db.engine.session()).await?;
        Ok(Self { db: db.clone(), connection, held_at: None })
    }

    /// Looks at the log after batches, until nobody is left who tells of them. Where the storage
    /// fails, that is told.
    pub(crate) async fn run(
        mut self,
        mut committed: mpsc::Receiver<()>,
        broken: CancellationToken,
    ) {
        let mut has_failed = false;
        while committed.recv().await.is_some() {
            let looked = self.look().await;
            // A full disk says so with every batch.
            match &looked {
                Err(cause) if failure(cause) == Failure::Storage => {
                    tracing::error!(%cause, "the storage fails; this host stops");
                    broken.cancel();
                }
                Err(cause) if !has_failed => {
                    tracing::warn!(%cause, "the write-ahead log is not copied");
                }
                Ok(()) if has_failed => tracing::info!("the write-ahead log is copied again"),
                _ => {}
            }
            has_failed = looked.is_err();
        }
        if let Err(cause) = self.connection.close().await {
            tracing::debug!(%cause, "closing a connection");
        }
    }

    /// Copies what there is, if it is worth it.
    async fn look(&mut self) -> Result<(), sqlx::Error> {
        let mut log = self.log("NOOP").await?;
        let worth = if log.is_long() { PAGES_LAST } else { PAGES_WORTH };
        let held = |at: i64| (at..at + PAGES_WORTH).contains(&log.pages);
        if log.rest() < worth || self.held_at.is_some_and(held) {
            return Ok(());
        }
        self.held_at = None;
        for portion in 0..PORTIONS_MAX {
            let before = log.copied;
            log = self.copy().await?;
            if log.copied == before {
                self.held_at = (portion == 0).then_some(log.pages);
                return Ok(());
            }
            if !log.is_long() {
                return Ok(());
            }
            if log.rest() < PAGES_LAST {
                break;
            }
        }
        let _nobody_writes = self.db.turn().await;
        self.copy().await.map(|_| ())
    }

    /// Copies what no reader holds back; how the log stands then.
    async fn copy(&mut self) -> Result<WriteAheadLog, sqlx::Error> {
        // What this answers is how the log was when it began.
        self.log("PASSIVE").await?;
        self.log("NOOP").await
    }

    /// Has SQLite look at the log (NOOP, which versions before 3.51 take for PASSIVE), or copy what
    /// no reader holds back (PASSIVE).
    async fn log(&mut self, how: &'static str) -> Result<WriteAheadLog, sqlx::Error> {
        let sql = AssertSqlSafe(format!("PRAGMA wal_checkpoint({how})"));
        let row = sqlx::query(sql).fetch_one(&mut self.connection).await?;
        Ok(WriteAheadLog { pages: row.try_get("log")?, copied: row.try_get("checkpointed")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;

    async fn things() -> (tempfile::TempDir, Db, Checkpointer) {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("things.db").display());
        let db = Db::open(&SecretString::from(url), 2).await.expect("a database");
        db.pool().execute("CREATE TABLE things (thing BLOB)").await.expect("a table");
        let checkpointer = Checkpointer::of(&db).await.expect("a connection");
        (folder, db, checkpointer)
    }

    async fn write(db: &Db, pages: i64) {
        let _turn = db.turn().await;
        write_in_turn(db, pages).await;
    }

    async fn write_in_turn(db: &Db, pages: i64) {
        let sql = format!("INSERT INTO things VALUES (zeroblob({}))", pages * 4096);
        db.pool().execute(AssertSqlSafe(sql)).await.expect("written and committed");
    }

    /// Somebody who reads what is there now, and holds the log.
    async fn read(db: &Db) -> sqlx::Transaction<'static, sqlx::Any> {
        let mut reading = db.snapshot().await.expect("a transaction");
        let sql = "SELECT COUNT(*) FROM things";
        sqlx::query(sql).fetch_one(&mut *reading).await.expect("a number");
        reading
    }

    #[tokio::test]
    async fn what_is_committed_is_copied_and_a_log_that_was_copied_begins_anew() {
        let (_folder, db, mut checkpointer) = things().await;
        write(&db, 10).await;
        checkpointer.look().await.expect("the log");
        let little = checkpointer.log("NOOP").await.expect("the log");
        assert!((10..100).contains(&little.pages) && little.copied == 0, "{little:?}");

        write(&db, PAGES_WORTH).await;
        checkpointer.look().await.expect("the log");
        let copied = checkpointer.log("NOOP").await.expect("the log");
        assert!(copied.pages > PAGES_WORTH && copied.rest() == 0, "{copied:?}");

        // The log does not begin anew while somebody reads what stands in it.
        let reading = read(&db).await;
        write(&db, PAGES_MAX).await;
        checkpointer.look().await.expect("the log");
        let held = checkpointer.log("NOOP").await.expect("the log");
        assert!(held.pages > PAGES_MAX && held.copied < PAGES_MAX, "{held:?}");
        assert_eq!(checkpointer.held_at, Some(held.pages));
        reading.rollback().await.expect("it has read");
        // It is looked at again when it has grown.
        checkpointer.look().await.expect("the log");
        let still = checkpointer.log("NOOP").await.expect("the log");
        assert_eq!(still, held);
        write(&db, PAGES_WORTH).await;
        checkpointer.look().await.expect("the log");
        write(&db, 1).await;
        let anew = checkpointer.log("NOOP").await.expect("the log");
        assert!(anew.pages < 100, "{anew:?}");
    }

    /// What a long log still holds once most of it was copied is copied while nobody writes.
    #[tokio::test]
    async fn nothing_of_a_long_log_is_left() {
        let (_folder, db, mut checkpointer) = things().await;
        let mut other = Checkpointer::of(&db).await.expect("a connection");
        let turn = db.turn().await;
        write_in_turn(&db, PAGES_MAX).await;
        let reading = read(&db).await;
        write_in_turn(&db, 1).await;
        let meanwhile = async {
            while other.log("NOOP").await.expect("the log").copied < PAGES_MAX {}
            reading.rollback().await.expect("it has read");
            drop(turn);
        };
        let (looked, ()) = tokio::join!(checkpointer.look(), meanwhile);
        looked.expect("the log");
        let log = other.log("NOOP").await.expect("the log");
        assert!(log.pages > PAGES_MAX && log.rest() == 0, "{log:?}");
    }

    /// Of a long log portions are copied that would not be worth it by themselves, until the last one
    /// is small.
    #[tokio::test]
    async fn a_long_log_is_copied_to_its_end() {
        let (_folder, db, mut checkpointer) = things().await;
        write(&db, PAGES_MAX).await;
        let reading = read(&db).await;
        write(&db, PAGES_LAST).await;
        checkpointer.look().await.expect("the log");
        let held = checkpointer.log("NOOP").await.expect("the log");
        assert!((PAGES_LAST..PAGES_WORTH).contains(&held.rest()), "{held:?}");
        reading.rollback().await.expect("it has read");
        checkpointer.look().await.expect("the log");
        let copied = checkpointer.log("NOOP").await.expect("the log");
        assert!(copied.is_long() && copied.rest() == 0, "{copied:?}");
    }

    /// How much is left is counted after a portion was copied: what was committed meanwhile is the
    /// next one.
    #[tokio::test]
    async fn what_is_committed_while_a_portion_is_copied_is_left() {
        let (_folder, db, mut checkpointer) = things().await;
        let mut left = 0;
        // Once in a while nothing is committed meanwhile.
        for _ in 0..10 {
            write(&db, PAGES_MAX).await;
            left = tokio::select! {
                () = write_on(&db) => 0,
                log = checkpointer.copy() => log.expect("the log").rest(),
            };
            if left > 0 {
                break;
            }
        }
        assert!(left > 0, "whatever is committed meanwhile is not counted");
    }

    #[tokio::test]
    async fn a_long_log_comes_to_its_end_while_others_write() {
        let (_folder, db, mut checkpointer) = things().await;
        write(&db, PAGES_MAX).await;
        tokio::select! {
            () = write_on(&db) => {}
            looked = checkpointer.look() => looked.expect("the log"),
        }
        let log = checkpointer.log("NOOP").await.expect("the log");
        // What was written since it looked last is not copied.
        assert!(log.pages < PAGES_MAX || log.rest() < PAGES_MAX / 10, "{log:?}");
    }

    async fn write_on(db: &Db) {
        loop {
            write(db, 100).await;
        }
    }
}
