//! One batch in memory: what was read, what decisions changed, what is to be written.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::clock::Moment;
use crate::db::bulk::{Removal, Render, RowChange, Shape};
use crate::db::cell::{Cell, Row};
use crate::error::{ErrorCode, Problem};
use crate::id::{IdGenerator, JournalId};
use crate::money::Minor;

use super::command::{CounterChange, Decide, Decided, Done, Effects, Needs, Reply, Reservation};
use super::journal::{Account, Digested, Journal, Line, Link, WalletPlace};
use super::locked::{Counter, LockedState, Wallet};
use super::rows::Rows;
use super::sql::{self, JournalRow, LateReply, ReservationRow};

/// What a decision computed for its caller, of whatever type.
pub(super) type Computed = Box<dyn Any + Send>;

/// A command whose result is of any type.
pub(super) struct AnyCommand {
    pub(super) needs: Needs,
    pub(super) decide: Decide<Computed>,
}

impl AnyCommand {
    /// How many ordinary commands it is as much work as.
    pub(super) fn weight(&self) -> usize {
        self.needs.parts.max(1)
    }
}

/// How a command ended.
pub(super) type Outcome = Result<Done<Computed>, Problem>;

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
    pub(super) rows: Rows,
    pub(super) counters: HashMap<String, Counter>,
    pub(super) reserved: HashMap<String, Reserved>,
    pub(super) out: Out,
}

/// Rows for one statement.
pub(super) type ForShape = (&'static dyn Shape, Vec<Row>);

/// What a batch writes, by statement. Keys are sorted, so that every host inserts in one order.
#[derive(Default)]
pub(super) struct Out {
    pub(super) wallets: BTreeSet<String>,
    pub(super) settled: BTreeMap<String, Minor>,
    pub(super) counters: BTreeSet<String>,
    pub(super) reservations: BTreeMap<String, Row>,
    /// Those that expire.
    pub(super) expiring: BTreeMap<String, Row>,
    pub(super) inserts: BTreeMap<&'static str, ForShape>,
    /// How hooks have some of them rendered, by table and place among its rows.
    pub(super) renders: HashMap<(&'static str, usize), Render>,
    pub(super) updates: Vec<ForShape>,
    pub(super) deletes: BTreeMap<(&'static str, &'static str), (&'static Removal, Vec<String>)>,
}

/// What one command's money does, before it is taken in.
#[derive(Default)]
struct Staged {
    wallets: HashMap<String, Wallet>,
    settled: HashMap<String, Minor>,
    rows: Vec<RowChange>,
}

impl State {
    /// Decides one command and takes its effects in. A refusal changes nothing; a decision that
    /// panics refuses its own command only.
    pub(super) fn decide(&mut self, command: &AnyCommand, ids: &IdGenerator) -> Outcome {
        let needs = &command.needs;
        if let Some(reservation) = &needs.reservation
            && let Some(reserved) = self.reserved.get(&reservation.key)
        {
            return reserved.answer(reservation);
        }
        for guard in &needs.guards {
            let column = guard.on.columns[0].0;
            let found = self.rows.get(guard.on, &guard.id);
            let found = found.map(|row| row.int(column)).transpose()?;
            if found != Some(guard.version) {
                return Err(Problem::new(ErrorCode::StateConflict));
            }
        }
        // Both are pure: whatever they were about to answer is thrown away.
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let locked = LockedState {
                now: self.now,
                wallets: &self.wallets,
                rows: &self.rows,
                counters: &self.counters,
            };
            let decided = (command.decide)(&locked)?;
            let staged = match &decided {
                Decided::Accept { effects, .. } => self.stage(effects, ids)?,
                Decided::Record { .. } => Staged::default(),
            };
            Ok::<_, Problem>((decided, staged))
        }));
        let (decided, staged) =
            decided.unwrap_or_else(|panic| Err(Problem::panicked("a decision", &*panic)))?;
        match decided {
            Decided::Accept { effects, result } => {
                self.take_in(needs, effects, staged);
                Ok(Done::Now(result))
            }
            Decided::Record { rows, result } => {
                for change in rows {
                    self.take_row(change);
                }
                Ok(Done::Now(result))
            }
        }
    }

    fn stage(&self, effects: &Effects, ids: &IdGenerator) -> Result<Staged, Problem> {
        let mut staged = Staged::default();
        for journal in &effects.journals {
            self.stage_journal(&mut staged, journal, &journal.id(ids)?)?;
        }
        for (id, change) in &effects.taken_out {
            let wallet = self.wallet(&mut staged, id.as_str())?;
            wallet.taken_out = wallet.taken_out.plus(*change)?;
            if wallet.taken_out.is_negative() {
                return Err(Problem::internal(format!("wallet {id} has less than nothing out")));
            }
        }
        for (id, settled) in &effects.settled {
            let so_far =
                staged.settled.get(id.as_str()).or_else(|| self.out.settled.get(id.as_str()));
            let sum = so_far.copied().unwrap_or(Minor::ZERO).plus(*settled)?;
            staged.settled.insert(id.to_string(), sum);
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
        let lines = journal.postings.len();
        if journal.sum()? != Minor::ZERO || !(2..=JournalId::LINES_MAX).contains(&lines) {
            return Err(Problem::internal(format!("journal {} does not balance", journal.kind)));
        }
        if journal.postings.iter().any(|posting| posting.amount == Minor::ZERO) {
            let why = format!("journal {} has a line of nothing", journal.kind);
            return Err(Problem::internal(why));
        }
        let (lines, in_wallet) = match journal.wallet()? {
            None => (journal.lines(Minor::ZERO)?.0, None),
            Some((wallet_id, entries)) => {
                let digest = self.digest(journal, id);
                let wallet = self.wallet(staged, wallet_id.as_str())?;
                if (wallet.env, wallet.currency) != (journal.env, journal.currency) {
                    let why = format!("journal {} crosses into {wallet_id}", journal.kind);
                    return Err(Problem::internal(why));
                }
                let (lines, balance) = journal.lines(wallet.available)?;
                (lines, Some(chain(wallet, digest, entries, balance)))
            }
        };
        staged.rows.push(sql::JOURNALS.insert(&JournalRow {
            id: id.to_string(),
            env: journal.env.as_str(),
            kind: journal.kind,
            ref_type: journal.ref_type,
            ref_id: journal.ref_id.clone(),
            round: journal.round,
            currency: journal.currency,
            lines,
            in_wallet,
            created_at: self.now,
        }));
        Ok(())
    }

    fn digest(&self, journal: &Journal, id: &JournalId) -> [u8; 32] {
        let lines = journal.postings.iter().map(|posting| Line {
            account: match &posting.account {
                Account::Wallet(wallet) => wallet.as_str().into(),
                Account::System(own) => own.name(),
            },
            amount_minor: posting.amount.units(),
            source: posting.source.as_str(),
            description: &posting.description,
            sender: posting.sender.as_deref(),
        });
        let digested = Digested {
            id: id.as_str(),
            kind: journal.kind,
            ref_type: journal.ref_type,
            ref_id: &journal.ref_id,
            round: journal.round,
            env: journal.env.as_str(),
            currency: journal.currency.as_str(),
            created_at: self.now,
            lines: lines.collect(),
        };
        digested.digest()
    }

    fn wallet<'a>(&self, staged: &'a mut Staged, id: &str) -> Result<&'a mut Wallet, Problem> {
        let known = self.wallets.get(id);
        let known = known.ok_or_else(|| Problem::internal(format!("wallet {id} is not locked")))?;
        Ok(staged.wallets.entry(id.to_owned()).or_insert_with(|| known.clone()))
    }

    fn take_in(&mut self, needs: &Needs, effects: Effects, staged: Staged) {
        self.out.wallets.extend(staged.wallets.keys().cloned());
        self.wallets.extend(staged.wallets);
        self.out.settled.extend(staged.settled);
        for change in effects.counters {
            self.take_counter(change);
        }
        for change in staged.rows.into_iter().chain(effects.rows) {
            self.take_row(change);
        }
        for (key, reply) in effects.late_replies {
            self.take_row(sql::LATE_REPLIES.change(&LateReply { key, reply }));
        }
        if let Some(reservation) = &needs.reservation {
            self.take_reservation(reservation, effects.reply);
        }
    }

    /// Takes a row in, to be written, and to be seen by later decisions.
    pub(super) fn take_row(&mut self, change: RowChange) {
        self.rows.follow(&change);
        self.out.take_row(change);
    }

    fn take_counter(&mut self, change: CounterChange) {
        let version = self.counters.get(&change.key).map_or(0, |counter| counter.version);
        self.out.counters.insert(change.key.clone());
        let counter = Counter::changed(&change, version, self.now);
        self.counters.insert(change.key, counter);
    }

    fn take_reservation(&mut self, reservation: &Reservation, reply: Option<Reply>) {
        let row = ReservationRow {
            key: reservation.key.clone(),
            fingerprint: reservation.fingerprint.clone(),
            subject: reservation.subject.clone(),
            resource_id: reservation.resource_id.clone(),
            reply: reply.clone(),
            created_at: self.now,
        };
        let (rows, row) = match reservation.expires {
            true => (&mut self.out.expiring, sql::NEW_EXPIRING.row(&row)),
            false => (&mut self.out.reservations, sql::NEW_RESERVATIONS.row(&row)),
        };
        rows.insert(reservation.key.clone(), row);
        let reserved = Reserved {
            fingerprint: reservation.fingerprint.clone(),
            subject: reservation.subject.clone(),
            resource_id: reservation.resource_id.clone(),
            reply,
        };
        self.reserved.insert(reservation.key.clone(), reserved);
    }
}

/// Adds a journal of so many entries, after which the wallet holds `balance`, to the wallet and to
/// its chain.
fn chain(wallet: &mut Wallet, journal: [u8; 32], entries: i64, balance: Minor) -> WalletPlace {
    let seq = wallet.seq + 1;
    let link = Link {
        previous: &wallet.head_hash,
        wallet: &wallet.id,
        seq,
        journal,
        balance_after_minor: balance.units(),
    };
    let hash = link.hash();
    (wallet.available, wallet.seq) = (balance, wallet.seq + entries);
    wallet.head_hash.clone_from(&hash);
    WalletPlace { wallet_id: wallet.id.clone(), seq, hash }
}

impl Reserved {
    /// What a request with a used key is told: the first one's reply, or that it differs.
    pub(super) fn answer<T>(&self, reservation: &Reservation) -> Result<Done<T>, Problem> {
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

/// Adds a row that may be there already, as whoever writes it at the same time has it: once, and in
/// the order in which every host inserts them, so that no two wait for each other.
fn insert_in_order(rows: &mut Vec<Row>, row: Row) {
    let key = |row: &Row| row.first().and_then(Cell::as_text).unwrap_or_default().to_owned();
    let own = key(&row);
    let after = rows.partition_point(|known| key(known) <= own);
    if rows[..after].last() != Some(&row) {
        rows.insert(after, row);
    }
}

impl Out {
    fn take_row(&mut self, change: RowChange) {
        match change {
            RowChange::Insert(shape, row, render) => {
                let rows = self.inserts.entry(shape.table()).or_insert_with(|| (shape, Vec::new()));
                if shape.is_counted() {
                    return insert_in_order(&mut rows.1, row);
                }
                if let Some(render) = render {
                    self.renders.insert((shape.table(), rows.1.len()), render);
                }
                rows.1.push(row);
            }
            RowChange::Update(shape, row) => {
                let mut known = self.updates.iter_mut();
                match known.find(|(known, _)| std::ptr::addr_eq(*known, shape)) {
                    // One statement must not change a row twice: the later values win.
                    Some((_, rows)) => match rows.iter_mut().find(|known| known[0] == row[0]) {
                        Some(known) => *known = row,
                        None => rows.push(row),
                    },
                    None => self.updates.push((shape, vec![row])),
                }
            }
            RowChange::Delete(removal, key) => {
                let place = (removal.name, removal.key);
                self.deletes.entry(place).or_insert_with(|| (removal, Vec::new())).1.push(key);
            }
        }
    }

    /// Whether nothing at all is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.wallets.is_empty()
            && self.settled.is_empty()
            && self.counters.is_empty()
            && self.reservations.is_empty()
            && self.expiring.is_empty()
            && self.inserts.is_empty()
            && self.updates.is_empty()
            && self.deletes.is_empty()
    }
}
