//! The rows of one batch in memory: what was read, what decisions changed, what is to be
//! written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::clock::Moment;
use crate::db::bulk::{Cell, Row, RowChange, Table, Update};
use crate::error::{ErrorCode, Problem};
use crate::id::{IdGenerator, JournalId};
use crate::money::Minor;

use super::command::{Command, CounterChange, Done, Effects, Reply, Reservation};
use super::journal::{Account, Journal, Link, Posting};
use super::locked::{Counter, LockedState, Wallet};

/// An idempotency key that is in the table, or was written by this batch.
pub(super) struct Reserved {
    pub(super) fingerprint: String,
    pub(super) subject: String,
    pub(super) resource_id: String,
    pub(super) reply: Option<Reply>,
}

/// Everything a batch has read and will write.
#[derive(Default)]
pub(super) struct State {
    pub(super) now: Moment,
    pub(super) wallets: HashMap<String, Wallet>,
    pub(super) versions: HashMap<(&'static str, String), i64>,
    pub(super) counters: HashMap<String, Counter>,
    pub(super) reserved: HashMap<String, Reserved>,
    pub(super) out: Out,
}

/// What a batch writes, by statement. Keys are sorted, so that every host inserts in one order.
#[derive(Default)]
pub(super) struct Out {
    pub(super) journals: Vec<Row>,
    pub(super) entries: Vec<Row>,
    pub(super) wallets: BTreeSet<String>,
    pub(super) counters: BTreeSet<String>,
    pub(super) reservations: BTreeMap<String, Row>,
    pub(super) late_replies: Vec<Row>,
    pub(super) inserts: BTreeMap<&'static str, (&'static Table, Vec<Row>)>,
    pub(super) updates: Vec<(&'static Update, Vec<Row>)>,
    pub(super) deletes: BTreeMap<(&'static str, &'static str), (&'static Update, Vec<String>)>,
}

/// What one command's money does, before it is taken in.
#[derive(Default)]
struct Staged {
    wallets: HashMap<String, Wallet>,
    journals: Vec<Row>,
    entries: Vec<Row>,
}

impl State {
    /// Decides one command and takes its effects in. A refusal changes nothing.
    pub(super) fn decide(&mut self, command: &Command, ids: &IdGenerator) -> Result<Done, Problem> {
        if let Some(reservation) = &command.reservation
            && let Some(reserved) = self.reserved.get(&reservation.key)
        {
            return reserved.answer(reservation);
        }
        for guard in &command.guards {
            let found = self.versions.get(&(guard.on.name, guard.id.clone()));
            if found != Some(&guard.version) {
                return Err(Problem::new(ErrorCode::StateConflict));
            }
        }
        let locked =
            LockedState { now: self.now, wallets: &self.wallets, counters: &self.counters };
        let mut effects = (command.decide)(&locked)?;
        if let Some(problem) = effects.refused.take() {
            for change in effects.rows {
                self.out.take_row(change);
            }
            return Err(problem);
        }
        let staged = self.stage(&effects, ids)?;
        let reply = effects.reply.clone();
        self.take_in(command, effects, staged);
        Ok(Done::Now(reply))
    }

    fn stage(&self, effects: &Effects, ids: &IdGenerator) -> Result<Staged, Problem> {
        let mut staged = Staged::default();
        for journal in &effects.journals {
            self.stage_journal(&mut staged, journal, &ids.journal())?;
        }
        for (id, change) in &effects.pending_out {
            let wallet = self.wallet(&mut staged, id.as_str())?;
            wallet.pending_out = wallet.pending_out.plus(*change)?;
            if wallet.pending_out.is_negative() {
                return Err(Problem::internal(format!("wallet {id} has less than nothing out")));
            }
        }
        for (id, frozen) in &effects.frozen {
            self.wallet(&mut staged, id.as_str())?.is_frozen = *frozen;
        }
        match staged.wallets.values().any(|wallet| wallet.available.is_negative()) {
            true => Err(Problem::new(ErrorCode::InsufficientFunds)),
            false => Ok(staged),
        }
    }

    fn stage_journal(
        &self,
        staged: &mut Staged,
        journal: &Journal,
        id: &JournalId,
    ) -> Result<(), Problem> {
        if journal.sum()? != Minor::ZERO || journal.postings.len() < 2 {
            return Err(Problem::internal(format!("journal {} does not balance", journal.kind)));
        }
        staged.journals.push(vec![
            id.as_str().into(),
            journal.env.as_str().into(),
            journal.kind.into(),
            journal.ref_type.into(),
            journal.ref_id.as_str().into(),
            self.now.micros().into(),
        ]);
        for (line, posting) in (0..).zip(&journal.postings) {
            let account = journal.account_id(&posting.account);
            let chained = match &posting.account {
                Account::Wallet(_) => {
                    let wallet = self.wallet(staged, &account)?;
                    if (wallet.env, wallet.currency) != (journal.env, journal.currency) {
                        let why = format!("journal {} crosses into {account}", journal.kind);
                        return Err(Problem::internal(why));
                    }
                    chain(wallet, posting, id, (line, self.now))?
                }
                Account::System(_) => [Cell::Int(None), Cell::Int(None), Cell::Text(None)],
            };
            let mut row: Row = vec![
                id.as_str().into(),
                line.into(),
                account.into(),
                journal.currency.as_str().into(),
                posting.amount.units().into(),
                posting.source.as_str().into(),
                posting.description.as_str().into(),
                posting.sender.clone().into(),
            ];
            row.extend(chained);
            row.push(self.now.micros().into());
            staged.entries.push(row);
        }
        Ok(())
    }

    fn wallet<'a>(&self, staged: &'a mut Staged, id: &str) -> Result<&'a mut Wallet, Problem> {
        let known = self.wallets.get(id);
        let known = known.ok_or_else(|| Problem::internal(format!("wallet {id} is not locked")))?;
        Ok(staged.wallets.entry(id.to_owned()).or_insert_with(|| known.clone()))
    }

    fn take_in(&mut self, command: &Command, effects: Effects, staged: Staged) {
        self.out.journals.extend(staged.journals);
        self.out.entries.extend(staged.entries);
        self.out.wallets.extend(staged.wallets.keys().cloned());
        self.wallets.extend(staged.wallets);
        for change in effects.counters {
            self.take_counter(change);
        }
        for guard in &command.guards {
            self.versions.insert((guard.on.name, guard.id.clone()), guard.next);
        }
        for change in effects.rows {
            self.out.take_row(change);
        }
        for (key, reply) in effects.late_replies {
            let status = i64::from(reply.status);
            self.out.late_replies.push(vec![key.into(), status.into(), reply.body.into()]);
        }
        if let Some(reservation) = &command.reservation {
            self.reserve(reservation, effects.reply);
        }
    }

    fn take_counter(&mut self, change: CounterChange) {
        let version = self.counters.get(&change.key).map_or(0, |counter| counter.version);
        self.out.counters.insert(change.key.clone());
        let counter = Counter {
            version,
            holder: change.holder,
            count: change.count,
            sum: change.sum,
            expires_at: change.expires_at,
            updated_at: self.now.micros(),
        };
        self.counters.insert(change.key, counter);
    }

    fn reserve(&mut self, reservation: &Reservation, reply: Option<Reply>) {
        let row = vec![
            reservation.key.as_str().into(),
            reservation.fingerprint.as_str().into(),
            reservation.subject.as_str().into(),
            reservation.resource_id.as_str().into(),
            Cell::Int(reply.as_ref().map(|reply| i64::from(reply.status))),
            Cell::Text(reply.as_ref().map(|reply| reply.body.clone())),
            self.now.micros().into(),
        ];
        self.out.reservations.insert(reservation.key.clone(), row);
        let reserved = Reserved {
            fingerprint: reservation.fingerprint.clone(),
            subject: reservation.subject.clone(),
            resource_id: reservation.resource_id.clone(),
            reply,
        };
        self.reserved.insert(reservation.key.clone(), reserved);
    }
}

/// Adds a posting to the wallet and to its chain: its number, the balance after it, its hash.
fn chain(
    wallet: &mut Wallet,
    posting: &Posting,
    journal: &JournalId,
    (line, now): (i64, Moment),
) -> Result<[Cell; 3], Problem> {
    wallet.available = wallet.available.plus(posting.amount)?;
    wallet.seq += 1;
    let link = Link {
        previous: &wallet.head_hash,
        wallet: &wallet.id,
        seq: wallet.seq,
        journal: journal.as_str(),
        line,
        amount_minor: posting.amount.units(),
        balance_after_minor: wallet.available.units(),
        source: posting.source.as_str(),
        created_at: now,
    };
    wallet.head_hash = link.hash();
    Ok([wallet.seq.into(), wallet.available.units().into(), wallet.head_hash.as_str().into()])
}

impl Reserved {
    /// What a request with a used key is told: the first one's reply, or that it differs.
    pub(super) fn answer(&self, reservation: &Reservation) -> Result<Done, Problem> {
        if self.fingerprint == reservation.fingerprint {
            let (resource_id, reply) = (self.resource_id.clone(), self.reply.clone());
            return Ok(Done::Before { resource_id, reply });
        }
        let code = match self.subject == reservation.subject {
            true => ErrorCode::IdempotencyKeyConflict,
            false => ErrorCode::IdempotencyConflict,
        };
        Err(Problem::new(code))
    }
}

impl Out {
    pub(super) fn take_row(&mut self, change: RowChange) {
        match change {
            RowChange::Insert(table, row) => {
                self.inserts.entry(table.name).or_insert_with(|| (table, Vec::new())).1.push(row);
            }
            RowChange::Update(update, row) => {
                let same = self.updates.iter_mut().find(|(known, _)| std::ptr::eq(*known, update));
                match same {
                    // One statement must not change a row twice: the later values win.
                    Some((_, rows)) => match rows.iter_mut().find(|known| known[0] == row[0]) {
                        Some(known) => *known = row,
                        None => rows.push(row),
                    },
                    None => self.updates.push((update, vec![row])),
                }
            }
            RowChange::Delete(table, key) => {
                let place = (table.name, table.key);
                self.deletes.entry(place).or_insert_with(|| (table, Vec::new())).1.push(key);
            }
        }
    }

    /// Whether nothing at all is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.journals.is_empty()
            && self.wallets.is_empty()
            && self.counters.is_empty()
            && self.reservations.is_empty()
            && self.late_replies.is_empty()
            && self.inserts.is_empty()
            && self.updates.is_empty()
            && self.deletes.is_empty()
    }
}
