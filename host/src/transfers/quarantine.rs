//! Quarantine: nothing live is sent while the database may have forgotten what was.
//!
//! After a failover to a standby that lagged, or after a restore, payments that went out are not
//! in the database any more. Sent again, they would be paid twice. A host that notices closes
//! the gate for every host, names what it knows to be forgotten, and goes on asking about what
//! is under way; the operator opens the gate again. What was queued before that, or within a
//! minute after by its host's clock, is asked about first for ever: its reference is the one that
//! it had.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
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
use crate::money::{Currency, Minor};

use super::epoch::{Epoch, EpochFile, Marks};
use super::intents::Intent;
use super::newest::Newest;

/// Serials are moved on by so many: what was forgotten may have used the next ones.
const SERIALS_SKIPPED: i64 = 10_000_000;
/// Files that may have been made since the backup.
const FILES_SKIPPED: i64 = 10_000;
/// Of those on one day, up to that of the restore.
const FILES_OF_DAY_SKIPPED: i64 = 8;
/// And entries in them.
const ENTRIES_SKIPPED: i64 = 1_000_000;
/// Forgotten payments that get a case each; more are counted.
const FORGOTTEN_MAX: usize = 1_000;
/// Intents looked up, newest first, before it is decided whether to go further back.
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
    /// Whoever opens or shuts it does so alone.
    turn: tokio::sync::Mutex<()>,
    /// The stretch of the database's life in which it was last trusted, or first was not. A release
    /// comes after it.
    known: Mutex<String>,
    /// Why it is shut, as long as the database does not say so.
    unwritten: Mutex<Option<Vec<String>>>,
    /// Whether serials were moved on since it was last open.
    has_skipped: AtomicBool,
    /// What was queued up to then is asked about before it is sent, in microseconds.
    ask_first_until: AtomicI64,
}

/// A quarantine, as the database holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineState {
    /// Since when, in microseconds.
    pub since_us: i64,
    /// What was noticed.
    pub reasons: Vec<String>,
    /// Payments that left and that the database does not know.
    pub forgotten: usize,
}

/// What a host finds when it starts.
pub struct Suspicion {
    reasons: Vec<String>,
    forgotten: Vec<Intent>,
}

/// Why it cannot be told whether the database is the one that it was.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// The database cannot be read.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The files beside it cannot.
    #[error("the files beside the database: {0}")]
    File(#[from] std::io::Error),
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
    /// Compares the database with what this host has seen of it, and with what it sent; answers
    /// the gate, the folder for the intent journal, and what is suspicious.
    ///
    /// # Errors
    /// It cannot be told.
    pub async fn look(
        db: &Db,
        data: &Path,
        (clock, ids): (&Clock, &Arc<IdGenerator>),
    ) -> Result<(Self, PathBuf, Option<Suspicion>), QuarantineError> {
        let here = db.identity().await?;
        let marks = Marks::read_or_create(db, ids, &here).await?;
        let file = EpochFile::new(data, &marks.database);
        let mut reasons = marks.suspicions(&here, file.read()?.as_ref());
        let folder = data.join("intents").join(&marks.database);
        let forgotten = forgotten(db, &folder, clock.now()).await?;
        if !forgotten.is_empty() {
            let count = forgotten.len();
            reasons.push(format!("{count} payments that left are not in the database"));
        }
        let gate = Self(Arc::new(Inner {
            db: db.clone(),
            clock: clock.clone(),
            ids: Arc::clone(ids),
            file,
            intents: folder.clone(),
            is_active: AtomicBool::new(false),
            turn: tokio::sync::Mutex::default(),
            known: Mutex::new(marks.incarnations.last().cloned().unwrap_or_default()),
            unwritten: Mutex::default(),
            has_skipped: AtomicBool::new(false),
            ask_first_until: AtomicI64::new(i64::MIN),
        }));
        db.expect(here);
        gate.refresh().await?;
        if !reasons.is_empty() {
            gate.0.is_active.store(true, Ordering::SeqCst);
        }
        let suspicion = (!reasons.is_empty()).then_some(Suspicion { reasons, forgotten });
        Ok((gate, folder, suspicion))
    }

    /// Whether nothing live may be sent now.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_active.load(Ordering::SeqCst) || self.0.db.has_moved()
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

    /// Closes the gate for every host, and opens a case for each payment that is forgotten.
    ///
    /// # Errors
    /// The database cannot be written. This host's gate is closed all the same.
    pub async fn enter(&self, writer: &Writer, suspicion: Suspicion) -> Result<(), Problem> {
        self.0.is_active.store(true, Ordering::SeqCst);
        let Suspicion { reasons, forgotten } = suspicion;
        tracing::error!(?reasons, forgotten = forgotten.len(), "quarantine: nothing live is sent");
        // Once: it is tried again until the database says why it is shut.
        if !self.0.has_skipped.load(Ordering::SeqCst) {
            self.skip_serials().await?;
            self.0.has_skipped.store(true, Ordering::SeqCst);
        }
        let known = self.state().await?;
        let now = self.0.clock.now();
        // All of it was there before, however late this host's clock is; another one may be ahead.
        let sql = "SELECT MAX(queued_at) FROM transfers WHERE env = 'live'";
        let newest: Option<i64> = sqlx::query_scalar(sql).fetch_one(self.0.db.pool()).await?;
        let newest = newest.unwrap_or(i64::MIN).min(now.after(A_DAY).micros());
        let since_us = now.micros().max(newest);
        let mut state = known.unwrap_or(QuarantineState { since_us, ..QuarantineState::default() });
        state.forgotten += forgotten.len();
        let new = reasons.into_iter().filter(|why| !state.reasons.contains(why));
        let new: Vec<String> = new.collect();
        state.reasons.extend(new);
        writer.work(Command::rows(vec![state.row()])).await?;
        for intent in forgotten.iter().take(FORGOTTEN_MAX) {
            let case = forgotten_case(&self.0.ids, intent, now);
            writer.work(case.opening(&self.0.ids)).await?;
        }
        *self.0.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// The command that opens the gate again: the quarantine ends, what was made up to a moment
    /// after its beginning is asked about first from now on, and a new stretch of the database's
    /// life begins where it is. Refused with `state_conflict` where it is not any more what was looked at.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn release(&self, state: &QuarantineState) -> Result<Command<()>, Problem> {
        let here = self.0.db.identity().await?;
        let mut marks = Marks::read_or_create(&self.0.db, &self.0.ids, &here).await?;
        marks.incarnations.push(hex::encode(self.0.ids.bytes::<8>()));
        // By the clock of whoever made a payment, which may be ahead of the one that noticed.
        let since = Moment::from_micros(state.since_us).after(limits::CLOCKS_APART).micros();
        let until = since.max(self.0.ask_first_until.load(Ordering::SeqCst));
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

    /// The quarantine that lasts, if one does.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn state(&self) -> Result<Option<QuarantineState>, sqlx::Error> {
        let text = self.value("quarantine").await?.unwrap_or_default();
        Ok(serde_json::from_str(&text).ok())
    }

    /// Looks whether a quarantine has begun or ended.
    ///
    /// # Errors
    /// The database cannot be read; the gate stays as it is.
    pub async fn refresh(&self) -> Result<(), QuarantineError> {
        let _turn = self.0.turn.lock().await;
        // In this order: what a release has written is known before the gate opens.
        let is_active = self.state().await?.is_some();
        let until = self.value("ask_first_until").await?;
        if let Some(until) = until.and_then(|text| text.parse().ok()) {
            self.0.ask_first_until.store(until, Ordering::SeqCst);
        }
        let was_active = self.0.is_active.load(Ordering::SeqCst);
        let is_unwritten = self.unwritten().is_some();
        if was_active && !is_active && !is_unwritten && self.has_begun_anew().await? {
            tracing::warn!("the quarantine is over");
            self.0.is_active.store(false, Ordering::SeqCst);
        } else if is_active && !was_active {
            tracing::error!("quarantine: nothing live is sent");
            self.0.is_active.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Leaves a mark in the database and beside it, unless this host does not trust it.
    ///
    /// # Errors
    /// One of the two cannot be written.
    pub async fn beat(&self, writer: &Writer) -> Result<(), QuarantineError> {
        let _turn = self.0.turn.lock().await;
        if self.0.db.has_moved() && self.state().await?.is_none() {
            return self.moved(writer).await;
        }
        if let Some(reasons) = self.unwritten() {
            return self.suspect(writer, (reasons, None)).await;
        }
        if self.is_closed() {
            return Ok(());
        }
        // Sessions in which nothing can be written are let go of by this.
        self.0.db.ping().await?;
        // Connections may have stayed where they were, or lead to the same place as it was before:
        // a disk that was put back.
        let here = self.0.db.identity().await?;
        let seen = self.0.file.read()?;
        let marks = Marks::read(&self.0.db).await?;
        let reasons = marks.suspicions(&here, seen.as_ref());
        if !reasons.is_empty() {
            return self.suspect(writer, (reasons, Some(&marks))).await;
        }
        let mut tx = self.0.db.write().await?;
        let sql = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) \
                   WHERE key = 'epoch' RETURNING value";
        let epoch: String = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
        tx.commit().await?;
        self.remember(epoch.parse().unwrap_or(0)).await
    }

    /// Connections lead elsewhere, and no quarantine says so. Tried again until one is written
    /// down: nobody could end one that only this host knows.
    async fn moved(&self, writer: &Writer) -> Result<(), QuarantineError> {
        self.0.is_active.store(true, Ordering::SeqCst);
        let forgotten = forgotten(&self.0.db, &self.0.intents, self.0.clock.now()).await?;
        // Another host noticed, and the operator has let go, before this one came to look. Reads
        // and writes may lead to two different servers: only a release that is new is believed.
        if forgotten.is_empty() && self.has_begun_anew().await? && self.state().await?.is_none() {
            self.0.is_active.store(false, Ordering::SeqCst);
            return Ok(());
        }
        let reasons = vec!["connections lead to another database than before".to_owned()];
        let marks = Marks::read(&self.0.db).await?;
        self.suspect(writer, (reasons, Some(&marks))).await
    }

    /// Shuts the gate, and says so to every host; tried again until it is written down. `marks` are
    /// the database's, where this is new.
    async fn suspect(
        &self,
        writer: &Writer,
        (reasons, marks): (Vec<String>, Option<&Marks>),
    ) -> Result<(), QuarantineError> {
        self.0.is_active.store(true, Ordering::SeqCst);
        let was = self.0.unwritten.lock().unwrap_or_else(PoisonError::into_inner).replace(reasons);
        if let (None, Some(marks)) = (was, marks) {
            self.know(marks);
        }
        let reasons = self.unwritten().unwrap_or_default();
        let forgotten = forgotten(&self.0.db, &self.0.intents, self.0.clock.now()).await?;
        if let Err(problem) = self.enter(writer, Suspicion { reasons, forgotten }).await {
            tracing::error!(%problem, "entering quarantine");
        }
        Ok(())
    }

    /// Writes the side file: this is the database that this host works with.
    async fn remember(&self, epoch: i64) -> Result<(), QuarantineError> {
        let incarnations = self.value("incarnations").await?.unwrap_or_default();
        let incarnations: Vec<String> = serde_json::from_str(&incarnations).unwrap_or_default();
        let incarnation = incarnations.last().cloned().unwrap_or_default();
        self.0.db.expect_epoch(epoch);
        let epoch = Epoch { incarnation, epoch };
        let file = self.0.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&epoch)).await;
        Ok(written.map_err(std::io::Error::other)??)
    }

    /// Why the gate is shut, as long as the database does not say so.
    fn unwritten(&self) -> Option<Vec<String>> {
        self.0.unwritten.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn know(&self, marks: &Marks) {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(marks.incarnations.last().unwrap_or(&String::new()));
    }

    /// Whether somebody has released the database since it was last trusted, or first was not, so
    /// that it is in a later stretch of its life. From now on it is trusted where it is.
    async fn has_begun_anew(&self) -> Result<bool, QuarantineError> {
        let here = self.0.db.identity().await?;
        let marks = Marks::read(&self.0.db).await?;
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (last, before) = marks.incarnations.split_last().unzip();
        let follows = last != Some(&known) && before.is_some_and(|it| it.contains(&known));
        if marks.identity.as_ref() != Some(&here) || !follows {
            return Ok(false);
        }
        self.know(&marks);
        self.0.has_skipped.store(false, Ordering::SeqCst);
        // In this order: until then connections are compared with the epoch of before.
        self.remember(marks.epoch).await?;
        self.0.db.expect(here);
        Ok(true)
    }

    async fn skip_serials(&self) -> Result<(), sqlx::Error> {
        let mut tx = self.0.db.write().await?;
        let sql = "UPDATE serials SET next = next + $1 WHERE id = 'transfers'";
        sqlx::query(sql).bind(SERIALS_SKIPPED).execute(tx.conn()).await?;
        // What names of forgotten files and entries were made from is not used again either.
        let sql = "INSERT INTO file_numbers (place, files, entries, day, of_day) \
                   SELECT DISTINCT env || '/' || rail, 0, 0, '', 0 FROM routes WHERE env = 'live' \
                   ON CONFLICT (place) DO NOTHING";
        sqlx::query(sql).execute(tx.conn()).await?;
        // It is tomorrow already where some networks are.
        let tomorrow = self.0.clock.now().after(A_DAY).day_in(&TimeZone::UTC);
        let sql = "UPDATE file_numbers SET files = files + $1, entries = entries + $2, \
                   of_day = of_day + $3, day = $4";
        let query = sqlx::query(sql).bind(FILES_SKIPPED).bind(ENTRIES_SKIPPED);
        query.bind(FILES_OF_DAY_SKIPPED).bind(tomorrow).execute(tx.conn()).await?;
        let sql = "UPDATE file_days SET files = files + $1";
        sqlx::query(sql).bind(FILES_OF_DAY_SKIPPED).execute(tx.conn()).await?;
        tx.commit().await
    }

    async fn value(&self, key: &str) -> Result<Option<String>, sqlx::Error> {
        let sql = "SELECT value FROM meta WHERE key = $1";
        sqlx::query_scalar(sql).bind(key).fetch_optional(self.0.db.pool()).await
    }
}

impl QuarantineState {
    fn row(&self) -> RowChange {
        let value = serde_json::to_string(self).unwrap_or_default();
        META.insert(&Meta { key: "quarantine", value })
    }
}

/// Intents of this host whose attempts the database does not know, and has no case about. A
/// database that was restored lacks the newest ones: where it knows those, it knows all.
async fn forgotten(db: &Db, folder: &Path, now: Moment) -> Result<Vec<Intent>, QuarantineError> {
    let mut newest = Newest::open(folder, now.before(limits::INTENTS_KEPT))?;
    let mut forgotten = Vec::new();
    loop {
        let reading = move || newest.take(PORTION).map(|portion| (portion, newest));
        let read = tokio::task::spawn_blocking(reading).await;
        let (portion, rest) = read.map_err(std::io::Error::other)??;
        newest = rest;
        let before = forgotten.len();
        // Newest first; all of it is turned round in the end.
        for intent in portion {
            if !is_known(db, &intent).await? {
                forgotten.push(intent);
            }
        }
        if forgotten.len() == before {
            break;
        }
    }
    forgotten.reverse();
    Ok(forgotten)
}

async fn is_known(db: &Db, intent: &Intent) -> Result<bool, sqlx::Error> {
    let sql = "SELECT (SELECT COUNT(*) FROM attempts WHERE id = $1) \
               + (SELECT COUNT(*) FROM cases WHERE fingerprint = $2)";
    let query = sqlx::query_scalar(sql).bind(&intent.attempt_id).bind(fingerprint(intent));
    let known: i64 = query.fetch_one(db.pool()).await?;
    Ok(known > 0)
}

fn fingerprint(intent: &Intent) -> String {
    format!("forgotten_transfer/{}", intent.attempt_id)
}

fn forgotten_case(ids: &IdGenerator, intent: &Intent, now: Moment) -> Case {
    let Intent { transfer_id, route, rail, reference, currency, amount_minor, .. } = intent;
    Case {
        id: ids.id(),
        kind: CaseKind::ForgottenTransfer,
        fingerprint: fingerprint(intent),
        env: Env::Live,
        merchant_id: Some(intent.merchant_id.clone()),
        subject_type: "payout",
        subject_id: transfer_id.clone(),
        route: Some(route.clone()),
        amount: Currency::parse(currency).map(|code| (code, Minor::new(*amount_minor))),
        summary: format!(
            "{transfer_id} was about to leave over {route} as {reference}, and the database has \
             forgotten it."
        ),
        evidence: serde_json::json!({
            "rail": rail,
            "reference": reference,
            "intended_at": Moment::from_micros(intent.at_us),
        }),
        opened_at: now,
    }
}
