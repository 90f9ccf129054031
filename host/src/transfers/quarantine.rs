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
use crate::ledger::{Command, Effects, LockedState, Writer};

use super::epoch::{Epoch, EpochFile, Found, Marks};
use super::forgotten;
use super::intents::Intent;

/// What a host finds in its own journal of intents.
const FORGOTTEN: &str = "payments that left are not in the database";
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
    seen: tokio::sync::Mutex<Sightings>,
}

/// What a host has seen of its database since it last trusted it.
#[derive(Default)]
struct Sightings {
    /// The stretches of the database's life in which it was last trusted, and those in which it was
    /// found without that since. What a release begins follows on one of them, and is none.
    incarnations: Vec<String>,
    /// Why it is not trusted. The database is told again wherever it does not say so.
    reasons: Vec<String>,
    /// Where the database was that this host's intents were compared with since the gate was shut.
    compared_at: Option<String>,
    /// When a mark was last left.
    beaten_at: Option<Instant>,
}

/// A quarantine, as the database holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineState {
    /// Since when, in microseconds.
    pub since_us: i64,
    /// What was queued up to then may have left, in microseconds.
    #[serde(default)]
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
        let Found { here, mut marks, ask_first_until, .. } = Found::read(&self.0.db).await?;
        marks.incarnations.push(hex::encode(self.0.ids.bytes::<8>()));
        // By the clock of whoever made a payment, which may be ahead of the one that noticed.
        let until = Moment::from_micros(state.until_us.max(state.since_us));
        let until = until.after(limits::CLOCKS_APART).micros();
        let until = until.max(ask_first_until.unwrap_or(i64::MIN));
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
        let looked_at = state.clone();
        let command = Command::new(move |locked| match lasting(locked)? {
            Some(now) if now == looked_at => {
                Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(()))
            }
            _ => Err(Problem::new(ErrorCode::StateConflict)),
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
        let mut seen = self.0.seen.lock().await;
        let found = Found::read(&self.0.db).await?;
        // In this order: what a release has written is known before the gate opens.
        let until = found.ask_first_until.unwrap_or(i64::MIN);
        self.0.ask_first_until.fetch_max(until, Ordering::SeqCst);
        if !found.quarantine.is_empty() {
            return self.keep_shut(writer, &mut seen, &found).await;
        }
        if self.is_closed() {
            if found.is_where_it_was_released() && seen.is_followed_by(&found.marks) {
                return self.trust_again(writer, &mut seen, found).await;
            }
            let reasons = self.reasons(&seen, &found)?;
            return self.suspect(writer, &mut seen, (&found, reasons)).await;
        }
        if seen.beaten_at.is_none_or(|at| at.elapsed() >= limits::EPOCH_EVERY) {
            return self.beat(writer, &mut seen, &found).await;
        }
        Ok(())
    }

    /// A quarantine lasts that the database tells of. What else this host knows is added to it.
    async fn keep_shut(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        if !self.0.is_active.swap(true, Ordering::SeqCst) {
            tracing::error!(found.quarantine, "quarantine: nothing live is sent");
        }
        seen.meet(&found.marks);
        let told = QuarantineState::parse(&found.quarantine)?.unwrap_or_default().reasons;
        let is_told = seen.reasons.iter().all(|reason| told.contains(reason));
        if is_told && seen.compared_at.as_ref() == Some(&found.place()) {
            return Ok(());
        }
        seen.add(found.marks.suspicions(&found.here, self.0.file.read()?.as_ref()));
        self.write_down(writer, seen, found).await
    }

    /// Somebody has released the database since it was last trusted, or first was not. From now on it
    /// is trusted where it is, unless something else is forgotten there.
    async fn trust_again(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: Found,
    ) -> Result<(), QuarantineError> {
        // New connections are compared with this one, and those from before are let go of: whoever
        // leads elsewhere is noticed meanwhile.
        self.0.is_active.store(true, Ordering::SeqCst);
        self.0.db.expect_epoch(found.marks.epoch);
        self.0.db.expect(found.here.clone());
        // Another host may have noticed, and the operator let go, before this one came to look; or
        // something left just as the gate was shut.
        if !self.forgotten().await?.is_empty() {
            return self.suspect(writer, seen, (&found, Vec::new())).await;
        }
        self.remember(&found.marks, found.marks.epoch).await?;
        // Nothing is waited for any more, so that nobody is left half way.
        if !self.0.db.has_moved() {
            seen.trust(&found.marks);
            self.0.is_active.store(false, Ordering::SeqCst);
            tracing::warn!("the quarantine is over");
        }
        Ok(())
    }

    /// Why the gate is shut although the database says nothing of it.
    fn reasons(&self, seen: &Sightings, found: &Found) -> Result<Vec<String>, QuarantineError> {
        if self.0.db.has_moved() {
            return Ok(vec!["connections lead to another database than before".to_owned()]);
        }
        if !seen.reasons.is_empty() {
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
        seen: &mut Sightings,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        let mut reasons = found.marks.suspicions(&found.here, self.0.file.read()?.as_ref());
        // All of it as the host starts. Later on the newest would be forgotten first.
        let forgotten = match seen.beaten_at {
            None => self.forgotten().await?,
            Some(_) => forgotten::newest(&self.0.db, &self.0.intents, self.0.clock.now()).await?,
        };
        if !forgotten.is_empty() {
            reasons.push(FORGOTTEN.to_owned());
        }
        if !reasons.is_empty() {
            return self.suspect(writer, seen, (found, reasons)).await;
        }
        seen.beaten_at = Some(Instant::now());
        seen.trust(&found.marks);
        // Sessions in which nothing can be written are let go of by this.
        self.0.db.ping().await?;
        let mut tx = self.0.db.write().await?;
        let sql = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) \
                   WHERE key = 'epoch' RETURNING value";
        let epoch: String = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
        tx.commit().await?;
        match epoch.parse() {
            Ok(epoch) if epoch > found.marks.epoch => self.remember(&found.marks, epoch).await,
            // It is not what was looked at a moment ago any more: the next look tells.
            _ => Err(sqlx::Error::Protocol(format!("the epoch is {epoch}")).into()),
        }
    }

    /// Shuts the gate, and says so to every host.
    async fn suspect(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, reasons): (&Found, Vec<String>),
    ) -> Result<(), QuarantineError> {
        self.0.is_active.store(true, Ordering::SeqCst);
        seen.meet(&found.marks);
        seen.add(reasons);
        self.write_down(writer, seen, found).await
    }

    /// Tells the database, and with it every host, what this one has noticed; and opens a case for
    /// each payment that is forgotten.
    async fn write_down(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        // Why it is shut comes first: whoever is to open it has to hear of it, however long the rest
        // takes.
        if !seen.reasons.is_empty() {
            self.tell(writer, seen, (found, &[])).await?;
        }
        let forgotten = match self.forgotten().await {
            Err(why @ QuarantineError::File(_)) => {
                seen.add(vec!["the journal of intents cannot be read".to_owned()]);
                self.tell(writer, seen, (found, &[])).await?;
                return Err(why);
            }
            looked => looked?,
        };
        if !forgotten.is_empty() {
            seen.add(vec![FORGOTTEN.to_owned()]);
        }
        // Oldest first: who is interrupted finds the newest ones again.
        for portion in forgotten.chunks(PORTION) {
            self.tell(writer, seen, (found, portion)).await?;
        }
        seen.compared_at = Some(found.place());
        Ok(())
    }

    async fn tell(
        &self,
        writer: &Writer,
        seen: &Sightings,
        (found, forgotten): (&Found, &[Intent]),
    ) -> Result<(), QuarantineError> {
        let (now, reasons) = (self.0.clock.now(), seen.reasons.clone());
        tracing::error!(?reasons, forgotten = forgotten.len(), "quarantine: nothing live is sent");
        let known = self.0.file.read()?.map_or_else(String::new, |known| known.incarnation);
        let at = format!("{}/{known}", found.place());
        let newest = self.newest_queued(now).await?;
        let until_us = forgotten::skip_numbers(&self.0.db, (&at, newest), now).await?;
        let new = QuarantineState { since_us: now.micros(), until_us, reasons, forgotten: 0 };
        let case = |intent| forgotten::case(&self.0.ids, intent, now);
        let cases = forgotten.iter().map(case).collect();
        let stretch = found.marks.incarnations.clone();
        writer.work(telling(new, cases, (stretch, Arc::clone(&self.0.ids)))).await?;
        Ok(())
    }

    /// The latest instant at which anything live was queued: at least now, as this host's clock may
    /// be late; at most a day ahead, where another one's is.
    async fn newest_queued(&self, now: Moment) -> Result<i64, sqlx::Error> {
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

/// The command that begins a quarantine, or adds to the one that lasts. Payments are counted as
/// their cases are opened, so that nobody counts one twice.
/// Nothing is, where somebody has released it since `stretches` were looked at.
fn telling(
    new: QuarantineState,
    cases: Vec<Case>,
    (stretches, ids): (Vec<String>, Arc<IdGenerator>),
) -> Command<()> {
    let fingerprints: Vec<String> = cases.iter().map(|case| case.fingerprint.clone()).collect();
    let command = Command::new(move |locked| {
        let now = locked.row(&META_VALUES, "incarnations").map(|row| row.text("value"));
        let now: Option<Vec<String>> =
            now.transpose()?.and_then(|it| serde_json::from_str(it).ok());
        if now.as_ref() != Some(&stretches) {
            return Err(Problem::new(ErrorCode::StateConflict));
        }
        let mut state = lasting(locked)?.unwrap_or_else(|| new.clone());
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
    let command = command.row(&META_VALUES, "quarantine").row(&META_VALUES, "incarnations");
    fingerprints.into_iter().fold(command, |command, fingerprint| {
        command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint)
    })
}

/// The quarantine that lasts, as a command reads it.
fn lasting(locked: &LockedState<'_>) -> Result<Option<QuarantineState>, Problem> {
    let text = locked.row(&META_VALUES, "quarantine").map(|row| row.text("value")).transpose()?;
    Ok(QuarantineState::parse(text.unwrap_or_default())?)
}

/// Adds the reasons that are new.
fn add(known: &mut Vec<String>, reasons: Vec<String>) {
    for reason in reasons {
        if !known.contains(&reason) {
            known.push(reason);
        }
    }
}

impl Sightings {
    fn add(&mut self, reasons: Vec<String>) {
        add(&mut self.reasons, reasons);
    }

    /// The database is trusted as it is.
    fn trust(&mut self, marks: &Marks) {
        *self = Self {
            incarnations: vec![marks.incarnation().to_owned()],
            reasons: Vec::new(),
            compared_at: None,
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
        let mut seen = Sightings::default();
        seen.trust(&marks(&["a", "b"]));
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "nobody has released it");
        seen.meet(&marks(&["a"]));
        assert!(!seen.is_followed_by(&marks(&["a"])), "an old server");
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "back from the old one");
        assert!(seen.is_followed_by(&marks(&["a", "b", "c"])));
        assert!(seen.is_followed_by(&marks(&["a", "c"])), "the old one was released");
        assert!(!seen.is_followed_by(&marks(&["x", "c"])), "another database");
        seen.trust(&marks(&["a", "c"]));
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "what was left behind");
    }
}
