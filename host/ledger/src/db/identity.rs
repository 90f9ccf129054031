//! Which database this is, by what it says of itself: so that a host notices when it is another
//! one, or the same one as it was some time ago.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sqlx::{AnyConnection, Row as _};

use super::{Db, Engine};

/// What tells one database from another. Every restore and every failover changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster and the database in it, or the file.
    pub system: String,
    /// Rises with every failover and every recovery to an earlier moment.
    pub timeline: i64,
}

impl Db {
    /// Which database this is now.
    ///
    /// # Errors
    /// The database cannot be read, or its file cannot be looked at.
    pub async fn identity(&self) -> Result<Identity, sqlx::Error> {
        self.identity_over(&mut *self.pool.acquire().await?).await
    }

    /// Which database this connection leads to.
    ///
    /// # Errors
    /// The database cannot be read, or its file cannot be looked at.
    pub async fn identity_over(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<Identity, sqlx::Error> {
        match (self.engine, &self.path) {
            (Engine::Postgres, _) => cluster(connection).await,
            (Engine::Sqlite, Some(path)) => Ok(file(path)?),
            (Engine::Sqlite, None) => Err(sqlx::Error::Configuration("no file".into())),
        }
    }
}

/// The cluster's identifier, the database's number in it, and the timeline: the first eight
/// digits of the name of the log file that is written to.
pub(super) const CLUSTER: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()) || '/' || \
     (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS system, \
     substring(pg_walfile_name(pg_current_wal_lsn()) FROM 1 FOR 8) AS log";

/// A number that rises all the time: a database that has a lower one is younger than it was.
pub(super) const EPOCH: &str = "SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'epoch'";

/// Which database of PostgreSQL a connection leads to.
pub(super) async fn cluster(connection: &mut AnyConnection) -> Result<Identity, sqlx::Error> {
    let row = sqlx::query(CLUSTER).fetch_one(connection).await?;
    from_cluster(row.try_get("system")?, &row.try_get::<String, _>("log")?)
}

/// Read from a row of [`CLUSTER`].
pub(super) fn from_cluster(system: String, log: &str) -> Result<Identity, sqlx::Error> {
    let timeline = i64::from_str_radix(log, 16);
    let timeline = timeline.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?;
    Ok(Identity { system, timeline })
}

/// A file that is copied to its place is another file there.
pub(super) fn file(path: &Path) -> std::io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let about = std::fs::metadata(path)?;
    let born = about.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let born = born.map_or(0, |born| born.as_micros());
    Ok(Identity { system: format!("file {}/{born}", about.ino()), timeline: 0 })
}
