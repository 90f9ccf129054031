//! What a host notices about its database while it works with it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::ExposeSecret as _;
use sqlx::{AnyConnection, Executor as _};

use super::identity::{self, EPOCH, Identity};
use super::{Db, Engine, Native};

/// What is said where [`Db::is_replaced`].
pub const REPLACED: &str =
    "another file is where the database was, or none: stop a host before you put one there";

/// Where connections lead, as how often they were found to lead elsewhere, or are expected to from
/// then on: what was learnt under another one may be forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moves(u64);

/// Which database a host expects, and whether a new connection led to another one.
#[derive(Default)]
pub(super) struct Watch {
    expected: Mutex<Option<Identity>>,
    /// The newest epoch that the database is known to have had.
    epoch: AtomicI64,
    has_moved: AtomicBool,
    /// Where that was.
    elsewhere: Mutex<Option<Identity>>,
    moves: AtomicU64,
    /// Sessions from before then are let go of: nothing can be written in them, or they may lead
    /// elsewhere than new ones.
    distrusted_at: Mutex<Option<Instant>>,
}

impl Watch {
    fn expected(&self) -> Option<Identity> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The epoch that is expected of a connection that is asked afterwards: it rises meanwhile.
    fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Notes it where what a new connection leads to is not what is expected. `before` is the epoch
    /// that was expected when it was asked.
    fn compare(&self, before: i64, (found, epoch): &(Identity, Option<i64>)) {
        // Whoever expects another one meanwhile has the last word.
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(expected) = &*expected else { return };
        let is_younger = epoch.is_none_or(|epoch| epoch < before.min(self.epoch()));
        if expected == found && !is_younger {
            return;
        }
        self.has_moved.store(true, Ordering::SeqCst);
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if elsewhere.replace(found.clone()).as_ref() != Some(found) {
            self.turn_round();
        }
    }

    /// From now on connections lead elsewhere than they did.
    fn turn_round(&self) {
        self.moves.fetch_add(1, Ordering::SeqCst);
        self.distrust();
    }

    fn distrust(&self) {
        let mut distrusted = self.distrusted_at.lock().unwrap_or_else(PoisonError::into_inner);
        *distrusted = Some(Instant::now());
    }

    /// Whether a session of this age is to be let go of.
    pub(super) fn is_spoilt(&self, age: Duration) -> bool {
        let distrusted = *self.distrusted_at.lock().unwrap_or_else(PoisonError::into_inner);
        distrusted.is_some_and(|at| age > at.elapsed())
    }

    /// Looks where a new connection of the pool leads.
    pub(super) async fn look(
        &self,
        engine: Engine,
        connection: &mut AnyConnection,
    ) -> Result<(), sqlx::Error> {
        // A file is looked at itself: connections stay with the one that was opened.
        if engine == Engine::Postgres && self.expected().is_some() {
            let before = self.epoch();
            let found = identity::cluster(connection).await?;
            let epoch = sqlx::query_scalar(EPOCH).fetch_optional(connection).await?;
            self.compare(before, &(found, epoch));
        }
        Ok(())
    }
}

impl Db {
    /// A connection of the writer's own, in its engine's native protocol. Where it leads to
    /// another database than was expected, that is noted before anything is done with it.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn native(&self) -> Result<Native, sqlx::Error> {
        let mut native = Native::connect(self.engine, self.url.expose_secret()).await?;
        let before = self.watch.epoch();
        if self.watch.expected().is_some()
            && let Some(found) = native.identity().await?
        {
            self.watch.compare(before, &found);
        }
        Ok(native)
    }

    /// What was committed is not in the database that a connection leads to: it is another one, or
    /// younger than it was.
    pub(crate) fn has_lost(&self) {
        if !self.watch.has_moved.swap(true, Ordering::SeqCst) {
            self.watch.turn_round();
        }
    }

    /// From now on, connections are expected to lead to a database that has this epoch, or a later
    /// one.
    pub fn expect_epoch(&self, epoch: i64) {
        self.watch.epoch.store(epoch, Ordering::SeqCst);
    }

    /// Whether another file is where this one was, or none: what is written to this one is lost.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let found = identity::file(path).ok();
        self.watch.expected().is_some_and(|expected| found != Some(expected))
    }

    /// From now on, connections are expected to lead to this database.
    pub fn expect(&self, identity: Identity) {
        let watch = &self.watch;
        let mut expected = watch.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = expected.as_ref() != Some(&identity);
        *expected = Some(identity);
        *watch.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // Connections that were made before may lead to a third one.
        if watch.has_moved.swap(false, Ordering::SeqCst) || is_new {
            watch.turn_round();
        }
    }

    /// Whether a connection led to another database than was expected: after a failover, or
    /// where an old primary is back.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.watch.has_moved.load(Ordering::SeqCst)
    }

    /// Where connections lead now: who keeps something that follows on what the database knew begins
    /// anew under another one.
    #[must_use]
    pub fn moves(&self) -> Moves {
        Moves(self.watch.moves.load(Ordering::SeqCst))
    }

    /// A short check that the database answers, and on PostgreSQL that it can be written to; where it
    /// cannot, sessions from before are let go of.
    ///
    /// # Errors
    /// It does not, or it cannot.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        if self.is_replaced() {
            return Err(sqlx::Error::Io(std::io::Error::other(REPLACED)));
        }
        if self.engine == Engine::Sqlite {
            return self.pool.execute("SELECT 1").await.map(drop);
        }
        let sql = "SELECT current_setting('transaction_read_only')";
        let setting: String = sqlx::query_scalar(sql).fetch_one(&self.pool).await?;
        if setting == "off" {
            return Ok(());
        }
        self.watch.distrust();
        let why = std::io::Error::other("nothing can be written: the database is read-only");
        Err(sqlx::Error::Io(why))
    }
}
