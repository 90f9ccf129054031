//! Quarantine: nothing live is sent while the database may have forgotten what was.
//!
//! After a failover to a standby that lagged, or after a restore, payments that went out are not
//! in the database any more. Sent again, they would be paid twice. A host that notices closes
//! the gate for every host, names what it knows to be forgotten, and goes on asking about what
//! is under way; the operator opens the gate again. What was queued before that, or within a
//! minute after by its host's clock, is asked about first for ever: its reference is the one that
//! it had.

mod attend;
mod epoch;
mod forgotten;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::cases::{self, CaseKind};
use crate::clock::{Clock, Moment};
use crate::db::Db;
use crate::env::Env;
use crate::error::Problem;
use crate::id::IdGenerator;
use crate::ledger::Command;

use attend::Sightings;
use epoch::{EpochFile, Found};
use state::releasing;

pub use state::QuarantineState;

/// How long after the quarantine began, by the clock of the host that made it, a payment is still
/// looked for among forgotten ones: far above any difference between clocks.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(3600);

/// The gate before everything live. Cheap to clone.
#[derive(Clone)]
pub struct Quarantine(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    ids: Arc<IdGenerator>,
    file: EpochFile,
    /// Where this host's intents are.
    intents: PathBuf,
    is_active: AtomicBool,
    /// What was queued up to then is asked about before it is sent, in microseconds.
    ask_first_until: AtomicI64,
    /// Whoever opens or shuts it does so alone.
    seen: tokio::sync::Mutex<Sightings>,
}

/// Why it cannot be told whether the database is the one that it was, or not be written down.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// The database cannot be read.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The files beside it cannot.
    #[error("the files beside the database: {0}")]
    File(#[from] std::io::Error),
    /// The quarantine cannot be written down. This host's gate is shut all the same.
    #[error("writing the quarantine down: {0}")]
    Unwritten(#[from] Problem),
}

impl From<QuarantineError> for Problem {
    fn from(why: QuarantineError) -> Self {
        match why {
            QuarantineError::Database(cause) => cause.into(),
            QuarantineError::Unwritten(problem) => problem,
            QuarantineError::File(_) => Self::internal(why),
        }
    }
}

impl Quarantine {
    /// The gate before a database, and the folder for the intent journal. It is open until the
    /// database was compared with what this host has seen of it, and with what it sent
    /// ([`Self::attend`]).
    ///
    /// # Errors
    /// The database cannot be read, or what is beside it.
    pub async fn of(
        db: &Db,
        data: &Path,
        (clock, ids): (&Clock, &Arc<IdGenerator>),
    ) -> Result<(Self, PathBuf), QuarantineError> {
        let found = Found::read_or_create(db, ids).await?;
        let file = EpochFile::new(data, &found.marks.database);
        let intents = data.join("intents").join(&found.marks.database);
        let mut seen = Sightings::default();
        // Where this is an old server, the one that was last seen is no release of it.
        seen.incarnations.extend(file.read()?.map(|known| known.incarnation));
        seen.incarnations.push(found.marks.incarnation().to_owned());
        let gate = Self(Arc::new(Inner {
            db: db.clone(),
            clock: clock.clone(),
            ids: Arc::clone(ids),
            file,
            intents: intents.clone(),
            is_active: AtomicBool::new(false),
            ask_first_until: AtomicI64::new(i64::MIN),
            seen: tokio::sync::Mutex::new(seen),
        }));
        db.expect(found.here);
        Ok((gate, intents))
    }

    /// Whether nothing live may be sent now.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let Inner { is_active, db, .. } = &*self.0;
        is_active.load(Ordering::SeqCst) || db.has_moved() || db.is_replaced()
    }

    /// Whether a payment that was queued then has to be asked about before it is sent.
    #[must_use]
    pub fn asks_first(&self, env: Env, queued_at: Moment) -> bool {
        env == Env::Live && queued_at.micros() <= self.0.ask_first_until.load(Ordering::SeqCst)
    }

    /// From when on something is decided about the database as it was restored.
    pub(super) fn decided_from(&self) -> Moment {
        Moment::from_micros(self.0.ask_first_until.load(Ordering::SeqCst).saturating_add(1))
    }

    /// Whether there may be a case about a payment that was made then and is forgotten: it counts,
    /// however wrong the clock was of the host that made it.
    pub(super) fn may_be_forgotten(&self, env: Env, made_at: Moment) -> bool {
        self.asks_first(env, made_at.before(FORGOTTEN_WITHIN))
    }

    /// Whether a payment that is queued may have left all the same, before the database was restored.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn may_have_left(
        &self,
        (env, id): (Env, &str),
        made_at: Moment,
    ) -> Result<bool, sqlx::Error> {
        if env == Env::Test {
            return Ok(false);
        }
        if self.is_closed() || self.asks_first(env, made_at) {
            return Ok(true);
        }
        if !self.may_be_forgotten(env, made_at) {
            return Ok(false);
        }
        let cases = cases::sql::list_about(self.0.db.pool(), id).await?;
        Ok(cases.iter().any(|known| known.case.kind == CaseKind::ForgottenTransfer))
    }

    /// The quarantine that lasts, if one does.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn state(&self) -> Result<Option<QuarantineState>, sqlx::Error> {
        Ok(QuarantineState::parse(&Found::read(&self.0.db).await?.quarantine))
    }

    /// The command that opens the gate again, where nothing has changed since. Refused with
    /// `state_conflict` where it is not any more what was looked at.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn release(&self, state: &QuarantineState) -> Result<Command<()>, sqlx::Error> {
        let found = Found::read(&self.0.db).await?;
        let stretch = hex::encode(self.0.ids.bytes::<8>());
        Ok(releasing(&found, state, (stretch, self.0.clock.now())))
    }
}

impl Inner {
    /// Leaves a mark in the database, which answers it.
    async fn raise_epoch(&self) -> Result<i64, sqlx::Error> {
        let mut tx = self.db.write().await?;
        let sql = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) \
                   WHERE key = 'epoch' RETURNING CAST(value AS BIGINT)";
        let epoch = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
        tx.commit().await?;
        Ok(epoch)
    }
}
