//! A payout's events, played again.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use sqlx::{AnyConnection, Row as _};
use strum::IntoEnumIterator as _;

use crate::clock::Moment;
use crate::ledger::Effects;
use crate::ledger::verify::{Faults, StoredJournal, These, read_journals, same_journals};

use super::super::booking::{Suspended, book};
use super::super::event_body;
use super::super::model::{Change, LedgerEffect, Payout, QUEUED, Status, apply};

/// An event as it is stored.
pub(super) struct StoredEvent {
    pub sequence: i64,
    pub name: String,
    pub body: Option<String>,
    pub at: Moment,
    pub owner: (String, String),
}

impl StoredEvent {
    /// The status that an event leads to, where there is only one.
    pub(super) fn status(&self) -> Option<Status> {
        match self.name.as_str() {
            QUEUED => Some(Status::Queued),
            "payout.draft" => Some(Status::Draft),
            "payout.held" => Some(Status::AwaitingAdminReview),
            _ => None,
        }
    }

    /// The first of a payout that went at once: it is not written.
    pub(super) fn first_of(payout: &Payout) -> Self {
        Self {
            sequence: 1,
            name: QUEUED.to_owned(),
            body: None,
            at: payout.created_at,
            owner: (payout.merchant_id.to_string(), payout.env.to_string()),
        }
    }

    /// The status that merchants were told: none, if they were told nothing; none within, if what
    /// they were told cannot be read, and leads nowhere.
    pub(super) fn told_status(&self) -> Option<Option<Status>> {
        self.body.as_deref().map(event_body::status)
    }
}

/// The events of payouts.
pub(super) async fn events(
    db: &mut AnyConnection,
    these: &These,
) -> Result<HashMap<String, Vec<StoredEvent>>, sqlx::Error> {
    let sql = "SELECT object_id, sequence, type, body, created_at, merchant_id, env FROM events \
               WHERE {these object_id} AND object_type = 'payout' ORDER BY object_id, sequence";
    let mut told: HashMap<String, Vec<StoredEvent>> = HashMap::new();
    let mut rows = these.query(sql).fetch(db);
    while let Some(row) = rows.try_next().await? {
        told.entry(row.try_get(0)?).or_default().push(StoredEvent {
            sequence: row.try_get(1)?,
            name: row.try_get(2)?,
            body: row.try_get(3)?,
            at: Moment::from_micros(row.try_get(4)?),
            owner: (row.try_get(5)?, row.try_get(6)?),
        });
    }
    Ok(told)
}

/// The journals of payouts.
pub(super) async fn booked(
    db: &mut AnyConnection,
    these: &These,
) -> Result<HashMap<String, Vec<StoredJournal>>, sqlx::Error> {
    let of_these = format!("{} AND j.ref_type = 'Payout'", these.named_by("j.ref_id"));
    let mut booked: HashMap<String, Vec<StoredJournal>> = HashMap::new();
    let each = |journal: StoredJournal| {
        booked.entry(journal.ref_id.clone()).or_default().push(journal);
    };
    read_journals(db, (&of_these, these.parameters()), each).await?;
    Ok(booked)
}

/// What the ledger did, and when.
pub(super) type Dated = (LedgerEffect, Moment);

/// A way from one event to the next over the table.
#[derive(Clone, PartialEq)]
struct Path {
    status: Option<Status>,
    effects: Vec<Dated>,
}

/// Plays a payout's events again and compares; answers what the ledger did.
pub(super) fn check(
    payout: &Payout,
    told: &[StoredEvent],
    booked: &[StoredJournal],
    faults: &mut Faults,
) -> Vec<Dated> {
    let id = &payout.id;
    let is_complete = told.iter().zip(1..).all(|(told, number)| told.sequence == number);
    if !is_complete || i64::try_from(told.len()).ok() != Some(payout.version) {
        faults.add("payout-events", format!("payout {id} has lost events, or has too many"));
        return Vec::new();
    }
    let owner = (payout.merchant_id.to_string(), payout.env.to_string());
    if told.iter().any(|told| told.owner != owner) {
        let what = format!("payout {id} has events of another merchant or environment");
        faults.add("payout-events", what);
    }
    let mut paths = vec![Path { status: None, effects: Vec::new() }];
    for event in told {
        paths = step(&paths, event);
    }
    paths.retain(|path| path.status == Some(payout.status));
    if paths.is_empty() {
        let what = format!("payout {id} is {}, and its events do not lead there", payout.status);
        faults.add("payout-status", what);
        return Vec::new();
    }
    stamps(payout, told, faults);
    let fitting = paths.iter().find(|path| journals_fit(payout, path, booked));
    let Some(path) = fitting else {
        let what = format!("payout {id} is not in the ledger as its events say");
        faults.add("payout-journals", what);
        return paths.swap_remove(0).effects;
    };
    path.effects.clone()
}

/// Every way over the table that an event may stand for.
fn step(paths: &[Path], event: &StoredEvent) -> Vec<Path> {
    let told = event.told_status();
    let mut next: Vec<Path> = Vec::new();
    for path in paths {
        for change in Change::iter() {
            let Ok(transition) = apply(path.status, change) else { continue };
            let is_told = told.is_none_or(|told| told == Some(transition.to));
            if transition.event != event.name || !is_told {
                continue;
            }
            let mut effects = path.effects.clone();
            effects.push((transition.ledger, event.at));
            let reached = Path { status: Some(transition.to), effects };
            if !next.contains(&reached) {
                next.push(reached);
            }
        }
    }
    next
}

/// Whether the stored journals are those that a way over the table books.
fn journals_fit(payout: &Payout, path: &Path, booked: &[StoredJournal]) -> bool {
    let mut effects = Effects::default();
    let mut rounds = payout.clone();
    rounds.round = 1;
    for (effect, _) in &path.effects {
        if matches!(effect, LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended) {
            rounds.round += 1;
        }
        // What goes to suspense belongs to a case, and is compared with that.
        let is_suspended = matches!(
            effect,
            LedgerEffect::SuspendPaid | LedgerEffect::SuspendRefused | LedgerEffect::SuspendPart
        );
        if !is_suspended && book(&mut effects, &rounds, *effect, &Suspended::default()).is_err() {
            return false;
        }
    }
    rounds.round == payout.round && same_journals(&effects.journals, booked)
}

/// The payout's instants are the very ones of its events, and it is what its last event told.
fn stamps(payout: &Payout, told: &[StoredEvent], faults: &mut Faults) {
    let id = &payout.id;
    let at =
        |name: &'static str| told.iter().filter(move |told| told.name == name).map(|told| told.at);
    let ends = ["payout.paid", "payout.failed", "payout.reversed", "payout.cancelled"];
    let sent = at("payout.dispatched").chain(at("payout.processing")).next();
    let ended = told.iter().rev().find(|told| ends.contains(&told.name.as_str()));
    for (what, stamp, event) in [
        ("made", Some(payout.created_at), told.first().map(|told| told.at)),
        ("queued", payout.queued_at, at(QUEUED).next_back()),
        ("sent", payout.processing_at, sent),
        ("ended", payout.completed_at, ended.map(|told| told.at)),
    ] {
        if stamp != event {
            let what = format!("payout {id} says that it was {what} at another time");
            faults.add("payout-stamps", what);
        }
    }
    let last = told.last().and_then(|told| told.body.as_deref());
    if last.is_some_and(|last| last != event_body::of(payout)) {
        faults.add("payout-told", format!("payout {id} is not what its last event told"));
    }
}
