//! A quarantine as the database holds it, for every host.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cases::{self, Case};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{RowChange, Table, text};
use crate::db::cell::Kind::Text;
use crate::db::lookup::Lookup;
use crate::error::{ErrorCode, Problem};
use crate::id::IdGenerator;
use crate::ledger::{Command, Effects, LockedState};

use super::epoch::Found;

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

impl QuarantineState {
    /// Reads it from JSON; nothing where none lasts. What cannot be read is one all the same.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unreadable = |_| {
            let reasons = vec!["what the database says of a quarantine cannot be read".to_owned()];
            Self { reasons, ..Self::default() }
        };
        (!text.is_empty()).then(|| serde_json::from_str(text).unwrap_or_else(unreadable))
    }

    /// Adds what another host has noticed, or this one since.
    fn add(&mut self, new: &Self) {
        add_reasons(&mut self.reasons, new.reasons.clone());
        self.until_us = self.until_us.max(new.until_us);
    }

    fn row(&self) -> RowChange {
        let value = serde_json::to_string(self).unwrap_or_default();
        META.insert(&Meta { key: "quarantine", value })
    }
}

/// Adds the reasons that are new.
pub(super) fn add_reasons(known: &mut Vec<String>, reasons: Vec<String>) {
    for reason in reasons {
        if !known.contains(&reason) {
            known.push(reason);
        }
    }
}

/// The command that begins a quarantine, or adds to the one that lasts. Payments are counted as
/// their cases are opened, so that nobody counts one twice.
pub(super) fn telling(
    found: &Found,
    new: QuarantineState,
    (cases, ids): (Vec<Case>, Arc<IdGenerator>),
) -> Command<()> {
    let fingerprints: Vec<String> = cases.iter().map(|case| case.fingerprint.clone()).collect();
    let command = where_it_was_found(found, move |locked| {
        let mut state = lasting(locked)?.unwrap_or_else(|| new.clone());
        state.add(&new);
        let mut rows = Vec::new();
        for case in &cases {
            let opening = case.open_once(locked, &ids);
            state.forgotten += usize::from(!opening.is_empty());
            rows.extend(opening);
        }
        rows.push(state.row());
        Ok(rows)
    });
    fingerprints.into_iter().fold(command, |command, fingerprint| {
        command.row(&cases::sql::CASES_BY_FINGERPRINT, fingerprint)
    })
}

/// The command that ends it, where it is what was looked at: what was made up to a moment after its
/// beginning is asked about first from now on, and a new stretch of the database's life begins where
/// it is.
pub(super) fn releasing(
    found: &Found,
    state: &QuarantineState,
    (stretch, now): (String, Moment),
) -> Command<()> {
    // Where that cannot be read, all that is there.
    let until = match state.until_us.max(state.since_us) {
        0 => now,
        until => Moment::from_micros(until),
    };
    // By the clock of whoever made a payment, which may be ahead of the one that noticed.
    let until = until.after(limits::CLOCKS_APART).micros();
    let until = until.max(found.ask_first_until.unwrap_or(i64::MIN));
    let incarnations = [found.marks.incarnations.clone(), vec![stretch]].concat();
    let rows = [
        ("quarantine", String::new()),
        ("ask_first_until", until.to_string()),
        ("incarnations", serde_json::to_string(&incarnations).unwrap_or_default()),
        ("system", found.here.system.clone()),
        ("timeline", found.here.timeline.to_string()),
    ];
    let rows: Vec<RowChange> = rows.map(|(key, value)| META.insert(&Meta { key, value })).into();
    let looked_at = state.clone();
    where_it_was_found(found, move |locked| match lasting(locked)? {
        Some(now) if now == looked_at => Ok(rows.clone()),
        _ => Err(Problem::new(ErrorCode::StateConflict)),
    })
}

/// A command that decides with the quarantine under a lock, and is refused where somebody has
/// released the database since it was looked at.
fn where_it_was_found(
    found: &Found,
    decide: impl Fn(&LockedState<'_>) -> Result<Vec<RowChange>, Problem> + Send + Sync + 'static,
) -> Command<()> {
    let stretches = found.marks.incarnations.clone();
    let command = Command::new(move |locked| {
        let now = value(locked, "incarnations")?.unwrap_or_default();
        let now: Vec<String> = serde_json::from_str(&now).unwrap_or_default();
        match now == stretches {
            true => Ok(Effects { rows: decide(locked)?, ..Effects::default() }.and(())),
            false => Err(Problem::new(ErrorCode::StateConflict)),
        }
    });
    command.row(&META_VALUES, "incarnations").row(&META_VALUES, "quarantine")
}

/// The quarantine that lasts, as a command reads it.
fn lasting(locked: &LockedState<'_>) -> Result<Option<QuarantineState>, Problem> {
    Ok(QuarantineState::parse(&value(locked, "quarantine")?.unwrap_or_default()))
}

fn value(locked: &LockedState<'_>, key: &str) -> Result<Option<String>, Problem> {
    let value = locked.row(&META_VALUES, key).map(|row| row.text("value")).transpose()?;
    Ok(value.map(str::to_owned))
}
