//! Quarantine: nothing live is sent while the database may have forgotten what was.
//!
//! After a failover to a standby that lagged, or after a restore, payments that went out are not
//! in the database any more. Sent again, they would be paid twice. A host that notices closes
//! the gate for every host, names what it knows to be forgotten, and goes on asking about what
//! is under way; the operator opens the gate again. What was queued before that, or within a
//! minute after by its host's clock, is asked about first for ever: its reference is the one that
//! it had.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cases::{self, Case, CaseKind};
use crate::clock::{Clock, Moment};
use crate::config::limits;
use crate::db::Db;
use crate::db::bulk::{RowChange, Table, text};
use crate::db::cell::Kind::Text;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::IdGenerator;
use crate::ledger::{Command, Effects, Writer};

use super::epoch::{Epoch, EpochFile, Found, Marks};
use super::forgotten;
use super::intents::Intent;

/// Forgotten payments that get their cases together.
const PORTION: usize = 200;
const A_DAY: Duration = Duration::from_secs(24 * 3600);

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
    watch: tokio::sync::Mutex<Watch>,
}

/// What a host has seen of its database since it last trusted it.
#[derive(Default)]
struct Watch {
    /// The stretches of the database's life in which it was last trusted, and those in which it was
    /// found without that since. What a release begins follows on one of them, and is none.
    incarnations: Vec<String>,
    /// Why it is not trusted. The database is told again wherever it does not say so.
    reasons: Vec<String>,
    /// Whether that was looked into since the gate was shut.
    has_compared: bool,
    /// When a mark was last left.
    beaten_at: Option<Instant>,
}

/// A quarantine, as the database holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineState {
    /// Since when, in microseconds.
    pub since_us: i64,
    /// What was queued up to then may have left, in microseconds.
    pub until_us: i64,
    /// What was noticed.
    pub reasons: Vec<String>,
    /// Payments that left and that the database does not know.
    pub forgotten: usize,
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
    /// The database does not say what it has to.
    #[error("the quarantine in the database: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The quarantine cannot be written down. This host's gate is shut all the same.
    #[error("writing the quarantine down: {0}")]
    Unwritten(#[from] Problem),
}

impl From<QuarantineError> for Problem {
    fn from(why: QuarantineError) -> Self {
        match why {
            QuarantineError::Database(cause) => cause.into(),
            QuarantineError::Unwritten(problem) => problem,
            QuarantineError::File(_) | QuarantineError::Unreadable(_) => Self::internal(why),
        }
    }
}

/// An entry of the table of settings that hosts share.
struct Meta {
    key: &'static str,
    value: String,
}

static META: Table<Meta> = Table {
    name: "meta",
    fixed: &[text("key", |meta| meta.key.into())],
    changing: &[text("value", |meta| (&meta.value).into())],
    on_conflict: Some("(key) DO UPDATE SET value = excluded.value"),
    is_sealed: false,
};

static META_VALUES: Lookup =
    Lookup { name: "meta", key: "key", columns: &[("value", Text)], lock: true };

impl Quarantine {
    /// The gate before a database, and the folder for the intent journal. It is open until the
    /// database was compared with what this host has seen of it, and with what it sent
    /// ([`Self::attend`]).
    ///
    /// # Errors
    /// The database cannot be read, or what is beside it.
    pub async fn open(
        db: &Db,
        data: &Path,
        (clock, ids): (&Clock, &Arc<IdGenerator>),
    ) -> Result<(Self, PathBuf), QuarantineError> {
        let found = Found::read_or_create(db, ids).await?;
        let file = EpochFile::new(data, &found.marks.database);
        let intents = data.join("intents").join(&found.marks.database);
        let mut watch = Watch::default();
        // Where this is an old server, the one that was last seen is no release of it.
        watch.incarnations.extend(file.read()?.map(|seen| seen.incarnation));
        watch.incarnations.push(found.marks.incarnation().to_owned());
        let gate = Self(Arc::new(Inner {
            db: db.clone(),
            clock: clock.clone(),
            ids: Arc::clone(ids),
            file,
            intents: intents.clone(),
            is_active: AtomicBool::new(false),
            ask_first_until: AtomicI64::new(i64::MIN),
            watch: tokio::sync::Mutex::new(watch),
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
    pub async fn state(&self) -> Result<Option<QuarantineState>, QuarantineError> {
        QuarantineState::parse(&Found::read(&self.0.db).await?.quarantine)
    }

    /// The command that opens the gate again: the quarantine ends, what was made up to a moment
    /// after its beginning is asked about first from now on, and a new stretch of the database's
    /// life begins where it is. Refused with `state_conflict` where it is not any more what was looked at.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn release(&self, state: &QuarantineState) -> Result<Command<()>, Problem> {
        let Found { here, mut marks, .. } = Found::read(&self.0.db).await?;
        marks.incarnations.push(hex::encode(self.0.ids.bytes::<8>()));
        // By the clock of whoever made a payment, which may be ahead of the one that noticed.
        let until = Moment::from_micros(state.until_us).after(limits::CLOCKS_APART).micros();
        let until = until.max(self.0.ask_first_until.load(Ordering::SeqCst));
        let incarnations = serde_json::to_string(&marks.incarnations).unwrap_or_default();
        let rows = [
            ("quarantine", String::new()),
            ("ask_first_until", until.to_string()),
            ("incarnations", incarnations),
            ("system", here.system),
            ("timeline", here.timeline.to_string()),
        ];
        let rows: Vec<RowChange> =
            rows.map(|(key, value)| META.insert(&Meta { key, value })).into();
        let seen = serde_json::to_string(state).unwrap_or_default();
        let command = Command::new(move |locked| {
            let now = locked.row(&META_VALUES, "quarantine").map(|row| row.text("value"));
            match now.transpose()? {
                Some(now) if now == seen => {
                    Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(()))
                }
                _ => Err(Problem::new(ErrorCode::StateConflict)),
            }
        });
        Ok(command.row(&META_VALUES, "quarantine"))
    }

    /// Looks at the database that connections lead to now, and shuts the gate or opens it: it is
    /// open where the database is trusted, and from time to time a mark is left there then; it is
    /// shut where a quarantine lasts, or has to begin.
    ///
    /// # Errors
    /// It cannot be told how things stand, and the gate stays as it is; or they cannot be written
    /// down, and it is shut.
    pub async fn attend(&self, writer: &Writer) -> Result<(), QuarantineError> {
        let mut watch = self.0.watch.lock().await;
        let found = Found::read(&self.0.db).await?;
        // In this order: what a release has written is known before the gate opens.
        let until = found.ask_first_until.unwrap_or(i64::MIN);
        self.0.ask_first_until.fetch_max(until, Ordering::SeqCst);
        if let Some(state) = QuarantineState::parse(&found.quarantine)? {
            return self.keep_shut(writer, &mut watch, (&found, &state)).await;
        }
        if self.is_closed() {
            if self.is_released(&watch, &found).await? {
                return self.trust_again(&mut watch, found).await;
            }
            let reasons = self.reasons(&watch, &found)?;
            return self.suspect(writer, &mut watch, (&found, reasons)).await;
        }
        if watch.beaten_at.is_none_or(|at| at.elapsed() >= limits::EPOCH_EVERY) {
            return self.beat(writer, &mut watch, &found).await;
        }
        Ok(())
    }

    /// A quarantine lasts that the database tells of. What else this host knows is added to it.
    async fn keep_shut(
        &self,
        writer: &Writer,
        watch: &mut Watch,
        (found, state): (&Found, &QuarantineState),
    ) -> Result<(), QuarantineError> {
        if !self.0.is_active.swap(true, Ordering::SeqCst) {
            tracing::error!(reasons = ?state.reasons, "quarantine: nothing live is sent");
        }
        watch.meet(&found.marks);
        let is_told = |reason| state.reasons.contains(reason);
        if watch.has_compared && watch.reasons.iter().all(is_told) {
            return Ok(());
        }
        watch.add(found.marks.suspicions(&found.here, self.0.file.read()?.as_ref()));
        self.write_down(writer, watch, found).await
    }

    /// Whether somebody has released the database since it was last trusted, or first was not, so
    /// that it is in a later stretch of its life; and it knows all that has left here.
    async fn is_released(&self, watch: &Watch, found: &Found) -> Result<bool, QuarantineError> {
        let Found { here, marks, .. } = found;
        if marks.identity.as_ref() != Some(here) || !watch.is_followed_by(marks) {
            return Ok(false);
        }
        // Another host may have noticed, and the operator let go, before this one came to look.
        Ok(watch.has_compared || self.forgotten().await?.is_empty())
    }

    /// Opens the gate: from now on the database is trusted where it is.
    async fn trust_again(&self, watch: &mut Watch, found: Found) -> Result<(), QuarantineError> {
        self.remember(&found.marks, found.marks.epoch).await?;
        // At once, so that nobody is left half way: nothing is waited for any more.
        watch.trust(&found.marks);
        self.0.db.expect(found.here);
        self.0.is_active.store(false, Ordering::SeqCst);
        tracing::warn!("the quarantine is over");
        Ok(())
    }

    /// Why the gate is shut although the database says nothing of it.
    fn reasons(&self, watch: &Watch, found: &Found) -> Result<Vec<String>, QuarantineError> {
        if self.0.db.has_moved() {
            return Ok(vec!["connections lead to another database than before".to_owned()]);
        }
        if !watch.reasons.is_empty() {
            return Ok(Vec::new());
        }
        let reasons = found.marks.suspicions(&found.here, self.0.file.read()?.as_ref());
        Ok(match reasons.is_empty() {
            true => vec!["the database has forgotten a quarantine that lasted".to_owned()],
            false => reasons,
        })
    }

    /// Leaves a mark in the database and beside it, unless this host does not trust it.
    async fn beat(
        &self,
        writer: &Writer,
        watch: &mut Watch,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        let mut reasons = found.marks.suspicions(&found.here, self.0.file.read()?.as_ref());
        // As it starts. Later on, where something else is suspicious.
        if watch.beaten_at.is_none() && !self.forgotten().await?.is_empty() {
            reasons.push(FORGOTTEN.to_owned());
        }
        if !reasons.is_empty() {
            return self.suspect(writer, watch, (found, reasons)).await;
        }
        watch.beaten_at = Some(Instant::now());
        watch.trust(&found.marks);
        // Sessions in which nothing can be written are let go of by this.
        self.0.db.ping().await?;
        let mut tx = self.0.db.write().await?;
        let sql = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) \
                   WHERE key = 'epoch' RETURNING value";
        let epoch: String = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
        tx.commit().await?;
        self.remember(&found.marks, epoch.parse().unwrap_or(0)).await
    }

    /// Shuts the gate, and says so to every host.
    async fn suspect(
        &self,
        writer: &Writer,
        watch: &mut Watch,
        (found, reasons): (&Found, Vec<String>),
    ) -> Result<(), QuarantineError> {
        self.0.is_active.store(true, Ordering::SeqCst);
        watch.meet(&found.marks);
        watch.add(reasons);
        self.write_down(writer, watch, found).await
    }

    /// Tells the database, and with it every host, what this one has noticed; and opens a case for
    /// each payment that is forgotten.
    async fn write_down(
        &self,
        writer: &Writer,
        watch: &mut Watch,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        let forgotten = self.forgotten().await?;
        if !forgotten.is_empty() {
            watch.add(vec![FORGOTTEN.to_owned()]);
        }
        if !watch.reasons.is_empty() {
            let (count, reasons) = (forgotten.len(), watch.reasons.clone());
            tracing::error!(?reasons, forgotten = count, "quarantine: nothing live is sent");
            let now = self.0.clock.now();
            let seen = self.0.file.read()?.map(|seen| seen.incarnation);
            let at = format!("{:?} {} {seen:?}", found.here, found.marks.incarnation());
            forgotten::skip_numbers(&self.0.db, &at, now).await?;
            let since_us = self.since(now).await?;
            let new = QuarantineState { since_us, until_us: since_us, reasons, forgotten: 0 };
            // At least once. Oldest first: who is interrupted finds the newest ones again.
            for portion in forgotten.chunks(PORTION).chain(forgotten.is_empty().then_some(&[][..]))
            {
                let case = |intent| forgotten::case(&self.0.ids, intent, now);
                let cases = portion.iter().map(case).collect();
                writer.work(telling(new.clone(), cases, &self.0.ids)).await?;
            }
        }
        watch.has_compared = true;
        Ok(())
    }

    /// When a quarantine begins that is noticed now. Whatever is queued was there before, however
    /// late this host's clock is; another one may be ahead.
    async fn since(&self, now: Moment) -> Result<i64, sqlx::Error> {
        let sql = "SELECT MAX(queued_at) FROM transfers WHERE env = 'live'";
        let newest: Option<i64> = sqlx::query_scalar(sql).fetch_one(self.0.db.pool()).await?;
        let newest = newest.unwrap_or(i64::MIN).min(now.after(A_DAY).micros());
        Ok(now.micros().max(newest))
    }

    /// What has left here and the database does not know.
    async fn forgotten(&self) -> Result<Vec<Intent>, QuarantineError> {
        forgotten::payments(&self.0.db, &self.0.intents, self.0.clock.now()).await
    }

    /// Writes the side file: this is the database that this host works with.
    async fn remember(&self, marks: &Marks, epoch: i64) -> Result<(), QuarantineError> {
        self.0.db.expect_epoch(epoch);
        let epoch = Epoch { incarnation: marks.incarnation().to_owned(), epoch };
        let file = self.0.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&epoch)).await;
        Ok(written.map_err(std::io::Error::other)??)
    }
}

/// What a host finds in its own journal.
const FORGOTTEN: &str = "payments that left are not in the database";

/// The command that begins a quarantine, or adds to the one that lasts. What has a case already
/// was counted with it.
fn telling(new: QuarantineState, cases: Vec<Case>, ids: &Arc<IdGenerator>) -> Command<()> {
    let ids = Arc::clone(ids);
    let fingerprints: Vec<String> = cases.iter().map(|case| case.fingerprint.clone()).collect();
    let command = Command::new(move |locked| {
        let now = locked.row(&META_VALUES, "quarantine").map(|row| row.text("value"));
        let now = QuarantineState::parse(now.transpose()?.unwrap_or_default());
        let mut state = now
            .map_err(Problem::internal)?
            .unwrap_or_else(|| QuarantineState { reasons: Vec::new(), ..new.clone() });
        add(&mut state.reasons, new.reasons.clone());
        state.until_us = state.until_us.max(new.until_us);
        let mut rows = Vec::new();
        for case in &cases {
            let opening = case.open_once(locked, &ids);
            state.forgotten += usize::from(!opening.is_empty());
            rows.extend(opening);
        }
        rows.push(state.row());
        Ok(Effects { rows, ..Effects::default() }.and(()))
    });
    let command = command.row(&META_VALUES, "quarantine");
    fingerprints.into_iter().fold(command, |command, fingerprint| {
        command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint)
    })
}

/// Adds the reasons that are new.
fn add(known: &mut Vec<String>, reasons: Vec<String>) {
    for reason in reasons {
        if !known.contains(&reason) {
            known.push(reason);
        }
    }
}

impl Watch {
    fn add(&mut self, reasons: Vec<String>) {
        add(&mut self.reasons, reasons);
    }

    /// The database is trusted as it is.
    fn trust(&mut self, marks: &Marks) {
        *self = Self {
            incarnations: vec![marks.incarnation().to_owned()],
            reasons: Vec::new(),
            has_compared: false,
            beaten_at: self.beaten_at,
        };
    }

    /// It is not, and was found in this stretch of its life.
    fn meet(&mut self, marks: &Marks) {
        let incarnation = marks.incarnation();
        if !self.incarnations.iter().any(|known| known == incarnation) {
            self.incarnations.push(incarnation.to_owned());
        }
    }

    /// Whether these marks are those of a release that came after what was met.
    fn is_followed_by(&self, marks: &Marks) -> bool {
        let Some((last, before)) = marks.incarnations.split_last() else { return false };
        let mut known = self.incarnations.iter();
        !self.incarnations.contains(last) && known.any(|known| before.contains(known))
    }
}

impl QuarantineState {
    /// Reads it from JSON; nothing where none lasts.
    fn parse(text: &str) -> Result<Option<Self>, QuarantineError> {
        (!text.is_empty()).then(|| Ok(serde_json::from_str(text)?)).transpose()
    }

    fn row(&self) -> RowChange {
        let value = serde_json::to_string(self).unwrap_or_default();
        META.insert(&Meta { key: "quarantine", value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(incarnations: &[&str]) -> Marks {
        let incarnations = incarnations.iter().map(ToString::to_string).collect();
        Marks { database: "d".into(), incarnations, epoch: 1, identity: None }
    }

    #[test]
    fn only_what_comes_after_all_that_was_met_is_a_release() {
        let mut watch = Watch::default();
        watch.trust(&marks(&["a", "b"]));
        assert!(!watch.is_followed_by(&marks(&["a", "b"])), "nobody has released it");
        watch.meet(&marks(&["a"]));
        assert!(!watch.is_followed_by(&marks(&["a"])), "an old server");
        assert!(!watch.is_followed_by(&marks(&["a", "b"])), "back from the old one");
        assert!(watch.is_followed_by(&marks(&["a", "b", "c"])));
        assert!(watch.is_followed_by(&marks(&["a", "c"])), "the old one was released");
        assert!(!watch.is_followed_by(&marks(&["x", "c"])), "another database");
        watch.trust(&marks(&["a", "c"]));
        assert!(!watch.is_followed_by(&marks(&["a", "b"])), "what was left behind");
    }
}
