//! One transaction for many commands.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::time::{Instant, timeout_at};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Shape, Write};
use crate::db::cell::{Cell, Named, Row};
use crate::db::lookup::Lookup;
use crate::db::{Moves, Native};
use crate::env::Env;
use crate::error::database::{Failure, failure};
use crate::error::panic_message;
use crate::id::IdGenerator;
use crate::money::{Currency, Minor};

use super::command::Reply;
use super::hook::{NewRow, OutboxHook};
use super::locked::{Counter, Wallet};
use super::seal::{self, BATCHES, Batch, Chain, TOMBSTONES};
use super::sql::{self, CounterRow, SettledOut, WalletSums};
use super::state::{AnyCommand, Outcome, Reserved, State};

/// What became of each command of a batch, in order.
pub(super) type Outcomes = Vec<Outcome>;

/// Why a batch did not end.
pub(super) enum Interrupted {
    /// Nothing was written. Another attempt may succeed.
    Again(sqlx::Error),
    /// Nothing was written: a counter was made or changed by another lane or host meanwhile.
    Overtaken,
    /// Nothing was written: some row is there already, a key perhaps. Whoever wrote it may have been
    /// a moment faster, or the row is a bad one.
    AlreadyThere(sqlx::Error),
    /// Nothing was written: some row is not acceptable to the database, cannot be read, or makes the
    /// hook panic.
    Poisoned(sqlx::Error),
    /// The storage fails. Only a restart can tell what it holds.
    Broken(sqlx::Error),
    /// Nothing was written: connections lead to another database than when a COMMIT was not answered,
    /// and nobody can tell any more what became of it.
    Moved,
    /// COMMIT was sent and no answer came.
    Unknown(sqlx::Error, Try),
}

/// A try at a batch whose COMMIT was not answered.
pub(super) struct Try {
    /// The batch's id.
    pub(super) id: i64,
    /// What its commands are answered if it was committed.
    pub(super) outcomes: Outcomes,
    /// The head of the chain then.
    pub(super) head: String,
    /// Where connections led. Elsewhere another batch may have the same id.
    pub(super) at: Moves,
}

/// What a batch is decided with.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) ids: &'a IdGenerator,
    pub(super) now: Moment,
    pub(super) hook: Option<&'a OutboxHook>,
}

/// A batch that ended: the answers, and the new head of the chain.
pub(super) struct Ended {
    pub(super) outcomes: Outcomes,
    pub(super) head: String,
    /// The id of the batch that was committed, if one was.
    pub(super) id: Option<i64>,
}

/// Runs a batch to its COMMIT, within a deadline: a connection that falls silent is given up.
/// `earlier` are tries whose COMMIT was never answered. Answers besides whether the connection
/// may be used again.
pub(super) async fn run(
    native: &mut Native,
    commands: &[&AnyCommand],
    surroundings: Surroundings<'_>,
    chain: &Chain,
    earlier: &mut Vec<Try>,
) -> (Result<Ended, Interrupted>, IsClean) {
    let within = Within { deadline: Instant::now() + limits::BATCH_DEADLINE };
    let (ended, is_over) =
        match decide(native, within, commands, surroundings, (chain, earlier)).await {
            Ok(Decided::Committed(ended)) => (Ok(ended), true),
            Ok(Decided::NothingToWrite(ended)) => (Ok(ended), false),
            Err(
                interrupted @ (Interrupted::Overtaken
                | Interrupted::AlreadyThere(_)
                | Interrupted::Poisoned(_)),
            ) => (Err(interrupted), false),
            Err(interrupted) => return (Err(interrupted), IsClean(false)),
        };
    let is_clean = is_over || within.run(native.rollback()).await.is_ok();
    (ended, IsClean(is_clean))
}

/// Whether a connection has no transaction open and may be used again.
pub(super) struct IsClean(pub(super) bool);

enum Decided {
    Committed(Ended),
    NothingToWrite(Ended),
}

/// The idempotency keys of a batch, by table.
type Reserving<'a> = [(&'static dyn Shape, &'a [Row]); 2];

async fn decide(
    native: &mut Native,
    within: Within,
    commands: &[&AnyCommand],
    surroundings: Surroundings<'_>,
    (chain, earlier): (&Chain, &mut Vec<Try>),
) -> Result<Decided, Interrupted> {
    let now = surroundings.now;
    within.run(native.begin()).await?;
    if let Some(Try { id, outcomes, head, .. }) = within.run(bury(native, earlier, now)).await? {
        return Ok(Decided::NothingToWrite(Ended { outcomes, head, id: Some(id) }));
    }
    let mut state = within.run(read(native, commands, now)).await?;
    let outcomes: Outcomes =
        commands.iter().map(|command| state.decide(command, surroundings.ids)).collect();
    if state.out.is_empty() {
        let head = chain.head.clone();
        return Ok(Decided::NothingToWrite(Ended { outcomes, head, id: None }));
    }
    let committed = within.run(run_hook(native, &mut state, surroundings)).await?;
    let take = |keys: &mut BTreeMap<String, Row>| std::mem::take(keys).into_values().collect();
    let lasting: Vec<Row> = take(&mut state.out.reservations);
    let expiring: Vec<Row> = take(&mut state.out.expiring);
    let reserving: Reserving<'_> =
        [(&sql::NEW_RESERVATIONS, &lasting), (&sql::NEW_EXPIRING, &expiring)];
    let inserts = state.out.inserts.values().map(|(shape, rows)| (*shape, rows.as_slice()));
    let batch = seal::seal(chain, now, inserts.chain(reserving));
    let head = if batch.hash.is_empty() { chain.head.clone() } else { batch.hash.clone() };
    if !within.run(write(native, &state, (reserving, &batch))).await? {
        return Err(Interrupted::Overtaken);
    }
    match within.run(native.commit()).await {
        Ok(()) => {
            if let Some(committed) = committed {
                committed();
            }
            Ok(Decided::Committed(Ended { outcomes, head, id: Some(batch.id) }))
        }
        Err(cause) => Err(match Interrupted::from(cause) {
            Interrupted::Again(cause)
            | Interrupted::AlreadyThere(cause)
            | Interrupted::Poisoned(cause) => {
                Interrupted::Unknown(cause, Try { id: batch.id, outcomes, head, at: chain.at })
            }
            other => other,
        }),
    }
}

/// The time that a batch has.
#[derive(Clone, Copy)]
struct Within {
    deadline: Instant,
}

impl Within {
    async fn run<T>(
        self,
        step: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let silent = || std::io::Error::new(std::io::ErrorKind::TimedOut, "the database is silent");
        timeout_at(self.deadline, step).await.unwrap_or_else(|_| Err(silent().into()))
    }
}

/// Connections and locks come and go; a broken disk does not; anything else is in the rows.
impl From<sqlx::Error> for Interrupted {
    fn from(cause: sqlx::Error) -> Self {
        match failure(&cause) {
            Failure::Passing => Self::Again(cause),
            Failure::Storage => Self::Broken(cause),
            Failure::Statement => match cause.as_database_error() {
                Some(of) if of.is_unique_violation() => Self::AlreadyThere(cause),
                _ => Self::Poisoned(cause),
            },
        }
    }
}

/// Writes a tombstone in the place of each earlier try. Where there is a row already, that try
/// was committed; where there was none, it is gone: its own row would find the tombstone. A try
/// that is still under way somewhere is waited for by the database.
async fn bury(
    native: &mut Native,
    earlier: &mut Vec<Try>,
    now: Moment,
) -> Result<Option<Try>, sqlx::Error> {
    for index in 0..earlier.len() {
        let row = seal::tombstone(earlier[index].id, now);
        if native.write(&[Write::Rows(&TOMBSTONES, &[row])]).await? == [0] {
            return Ok(Some(earlier.swap_remove(index)));
        }
    }
    Ok(None)
}

/// Takes in what the hook makes of the batch's rows; answers what to do once all is committed. What
/// it panics at is in the rows: whose they are is found by halves, and the others go on.
async fn run_hook(
    native: &mut Native,
    state: &mut State,
    Surroundings { ids, hook, .. }: Surroundings<'_>,
) -> Result<Option<Box<dyn FnOnce() + Send>>, sqlx::Error> {
    let Some(hook) = hook else { return Ok(None) };
    let Some((shape, rows)) = state.out.inserts.get(hook.of) else { return Ok(None) };
    let columns = shape.columns();
    let new = rows.iter().enumerate().map(|(at, row)| NewRow {
        row: Named::new(&columns, row),
        render: state.out.renders.get(&(hook.of, at)),
    });
    let new: Vec<NewRow<'_>> = new.collect();
    let wanted = keys(unless_it_panics(|| (hook.keys)(&new))?.into_iter());
    if wanted.is_empty() {
        return Ok(None);
    }
    let (found, found_columns) = (native.select(hook.lookup, wanted).await?, hook.lookup.all());
    let found: Vec<Named<'_>> = found.iter().map(|row| Named::new(&found_columns, row)).collect();
    let made = unless_it_panics(|| (hook.run)(&new, &found, ids))?;
    for change in made.rows {
        state.take_row(change);
    }
    Ok(Some(made.committed))
}

fn unless_it_panics<T>(make: impl FnOnce() -> Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
    // Hooks are pure: whatever this one was about to make is thrown away.
    let panicked = |panic: Box<dyn Any + Send>| {
        sqlx::Error::Decode(format!("a hook panicked: {}", panic_message(&*panic)).into())
    };
    catch_unwind(AssertUnwindSafe(make)).map_err(panicked).flatten()
}

/// Reads and locks what the commands need, always in the same order: wallets, then rows that are
/// locked, by table, then other rows, keys and counters; each by key. What is locked is a trip for
/// each table: whoever has waited for a wallet or a row sees of all that is read later what was
/// committed until then, a row that was not there before, and a repeat its key. All else is one.
async fn read(
    native: &mut Native,
    commands: &[&AnyCommand],
    now: Moment,
) -> Result<State, sqlx::Error> {
    let mut state = State { now, ..State::default() };
    let needs = || commands.iter().map(|command| &command.needs);
    let wallets = keys(needs().flat_map(|needs| needs.wallets.iter().map(ToString::to_string)));
    let columns = sql::WALLETS.all();
    for row in native.select(&sql::WALLETS, wallets).await? {
        let wallet = wallet(&Named::new(&columns, &row))?;
        state.wallets.insert(wallet.id.clone(), wallet);
    }
    let wanted = lookups(commands).into_iter().map(|on| {
        let guards = needs().flat_map(|needs| &needs.guards).map(|guard| (guard.on, &guard.id));
        let rows = needs().flat_map(|needs| &needs.rows).map(|(on, id)| (*on, id));
        let ids = guards.chain(rows).filter(|(other, _)| std::ptr::eq(*other, on));
        (on, keys(ids.map(|(_, id)| id.clone())))
    });
    let (locked, others): (Vec<_>, Vec<_>) = wanted.partition(|(on, _)| on.lock);
    for (on, ids) in locked {
        state.rows.take(on, native.select(on, ids).await?);
    }
    let reserving = |expires: bool| {
        let all = needs().filter_map(|needs| needs.reservation.as_ref());
        keys(all.filter(|of| of.expires == expires).map(|of| of.key.clone()))
    };
    let counters = keys(needs().flat_map(|needs| needs.counters.iter().cloned()));
    let mut wanted = others;
    wanted.extend([
        (&sql::RESERVATIONS, reserving(false)),
        (&sql::EXPIRING, reserving(true)),
        (&sql::COUNTERS, counters),
    ]);
    for ((on, _), rows) in wanted.iter().zip(native.select_all(&wanted).await?) {
        state.take(on, rows)?;
    }
    Ok(state)
}

impl State {
    /// Takes in what a look-up found.
    fn take(&mut self, on: &'static Lookup, rows: Vec<Row>) -> Result<(), sqlx::Error> {
        let columns = on.all();
        if std::ptr::eq(on, &sql::RESERVATIONS) || std::ptr::eq(on, &sql::EXPIRING) {
            let has_subject = std::ptr::eq(on, &sql::RESERVATIONS);
            for row in rows {
                let row = Named::new(&columns, &row);
                let subject = if has_subject { row.text("subject")? } else { "" };
                self.reserved.insert(row.text("key")?.to_owned(), reserved(&row, subject)?);
            }
        } else if std::ptr::eq(on, &sql::COUNTERS) {
            for row in rows {
                let row = Named::new(&columns, &row);
                self.counters.insert(row.text("key")?.to_owned(), counter(&row)?);
            }
        } else {
            self.rows.take(on, rows);
        }
        Ok(())
    }
}

/// The look-ups that commands need, by table: the order in which every host locks them.
fn lookups(commands: &[&AnyCommand]) -> Vec<&'static Lookup> {
    let mut lookups: Vec<&'static Lookup> = Vec::new();
    for needs in commands.iter().map(|command| &command.needs) {
        let all = needs.guards.iter().map(|guard| guard.on);
        for on in all.chain(needs.rows.iter().map(|(on, _)| *on)) {
            if !lookups.iter().any(|known| std::ptr::eq(*known, on)) {
                lookups.push(on);
            }
        }
    }
    lookups.sort_by_key(|on| (on.name, on.key));
    lookups
}

/// Changes of one kind, by whether the row was there before the batch.
struct Changes<'a> {
    shape: &'static dyn Shape,
    of_known: Cow<'a, [Row]>,
    of_new: Vec<Row>,
}

fn changes<'a>(state: &'a State, (shape, rows): &'a (&'static dyn Shape, Vec<Row>)) -> Changes<'a> {
    let shape = *shape;
    let all = || Changes { shape, of_known: Cow::Borrowed(rows), of_new: Vec::new() };
    let Some((made, new)) = state.out.inserts.get(shape.table()) else { return all() };
    let columns = shape.columns();
    let key = made.columns().iter().position(|column| columns.first() == Some(column));
    let Some(key) = key else { return all() };
    let new: HashSet<&Cell> = new.iter().filter_map(|row| row.get(key)).collect();
    let (of_new, of_known): (Vec<Row>, Vec<Row>) =
        rows.iter().cloned().partition(|row| row.first().is_some_and(|key| new.contains(key)));
    Changes { shape, of_known: Cow::Owned(of_known), of_new }
}

/// Writes everything. False: another lane or host has made or changed a counter before, and nothing
/// of this may stay. A key that was taken is an error.
async fn write(
    native: &mut Native,
    state: &State,
    (reserving, batch): (Reserving<'_>, &Batch),
) -> Result<bool, sqlx::Error> {
    let out = &state.out;
    let counters = out.counters.iter().filter_map(|key| state.counters.get_key_value(key));
    let (new, changed): (Vec<_>, Vec<_>) = counters.partition(|(_, counter)| counter.is_new());
    let new_counters: Vec<Row> = new.into_iter().map(counter_row).collect();
    let changed_counters: Vec<Row> = changed.into_iter().map(counter_row).collect();
    let wallets: Vec<Row> = out.wallets.iter().filter_map(|id| wallet_row(id, state)).collect();
    let settled: Vec<Row> = out.settled.iter().map(|of| settled_row(of, state, batch)).collect();
    let own = [BATCHES.row(batch)];
    // The first two of the writes below, in their order.
    let contested = [new_counters.len(), changed_counters.len()];
    let [lasting, expiring] = reserving.map(|(shape, rows)| Write::Sealed(shape, rows, batch.id));
    let mut writes = vec![
        Write::Rows(&sql::NEW_COUNTERS, &new_counters),
        Write::Rows(&sql::COUNTER_CHANGES, &changed_counters),
        lasting,
        expiring,
        Write::Rows(&BATCHES, &own),
        Write::Rows(&sql::WALLET_SUMS, &wallets),
        Write::Rows(&sql::SETTLED_OUT, &settled),
    ];
    // Changes first: a new row may take the place that another one leaves, as the next attempt
    // of a payment does. Changes of rows that are new in this batch come after those.
    let mut changes: Vec<Changes<'_>> = out.updates.iter().map(|of| changes(state, of)).collect();
    // By table, so that batches of the same kinds of commands are the same statements, whichever
    // came first: the database has them prepared. Those of one table stay as they came.
    changes.sort_by_key(|of| of.shape.table());
    writes.extend(changes.iter().map(|of| Write::Rows(of.shape, &of.of_known)));
    writes.extend(out.inserts.values().map(|(shape, rows)| match shape.is_sealed() {
        true => Write::Sealed(*shape, rows, batch.id),
        false => Write::Rows(*shape, rows),
    }));
    writes.extend(changes.iter().map(|of| Write::Rows(of.shape, &of.of_new)));
    writes.extend(out.deletes.values().map(|(removal, keys)| Write::Delete(removal, keys)));
    let written = native.write(&writes).await?;
    Ok(contested.iter().zip(&written).all(|(wanted, taken)| *taken == *wanted as u64))
}

fn keys(keys: impl Iterator<Item = String>) -> Vec<String> {
    keys.collect::<BTreeSet<_>>().into_iter().collect()
}

fn odd(what: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("an unknown {what}").into())
}

fn wallet(row: &Named<'_>) -> Result<Wallet, sqlx::Error> {
    Ok(Wallet {
        id: row.text("id")?.to_owned(),
        merchant_id: row.text("merchant_id")?.to_owned(),
        env: Env::parse(row.text("env")?).ok_or_else(|| odd("environment"))?,
        currency: Currency::parse(row.text("currency")?).ok_or_else(|| odd("currency"))?,
        available: Minor::new(row.int("available_minor")?),
        taken_out: Minor::new(row.int("taken_out_minor")?),
        seq: row.int("seq")?,
        head_hash: row.text("head_hash")?.to_owned(),
        is_frozen: row.int("is_frozen")? != 0,
    })
}

fn wallet_row(id: &str, state: &State) -> Option<Row> {
    let wallet = state.wallets.get(id)?;
    Some(sql::WALLET_SUMS.row(&WalletSums {
        id: id.to_owned(),
        available: wallet.available,
        taken_out: wallet.taken_out,
        seq: wallet.seq,
        head_hash: wallet.head_hash.clone(),
        is_frozen: wallet.is_frozen,
        updated_at: state.now,
    }))
}

/// How many parts a wallet has for what was settled: as many as writers rarely are at a time.
const PARTS: i64 = 16;

fn settled_row((id, settled): (&String, &Minor), state: &State, batch: &Batch) -> Row {
    sql::SETTLED_OUT.row(&SettledOut {
        wallet_id: id.clone(),
        part: seal::writer_of(batch.id) % PARTS,
        settled: *settled,
        updated_at: state.now,
    })
}

fn reserved(row: &Named<'_>, subject: &str) -> Result<Reserved, sqlx::Error> {
    let status = row.maybe_int("status")?.and_then(|status| u16::try_from(status).ok());
    let body = row.maybe_text("response")?.map(str::to_owned);
    Ok(Reserved {
        fingerprint: row.text("fingerprint")?.to_owned(),
        subject: subject.to_owned(),
        resource_id: row.text("resource_id")?.to_owned(),
        reply: status.zip(body).map(|(status, body)| Reply { status, body }),
    })
}

fn counter(row: &Named<'_>) -> Result<Counter, sqlx::Error> {
    Ok(Counter {
        version: row.int("version")?,
        holder: row.text("holder")?.to_owned(),
        count: row.int("count")?,
        sum: Minor::new(row.int("sum_minor")?),
        updated_at: row.int("updated_at")?,
        expires_at: row.int("expires_at")?,
    })
}

fn counter_row((key, counter): (&String, &Counter)) -> Row {
    sql::COUNTER_CHANGES.row(&CounterRow {
        key: key.clone(),
        version: counter.version + 1,
        holder: counter.holder.clone(),
        count: counter.count,
        sum: counter.sum,
        updated_at: counter.updated_at,
        expires_at: counter.expires_at,
    })
}
