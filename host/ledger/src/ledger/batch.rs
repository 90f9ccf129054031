//! One transaction for many commands.

use std::collections::BTreeSet;

use crate::clock::Moment;
use crate::db::Native;
use crate::db::bulk::{Cell, Lookup, Row, Write};
use crate::env::Env;
use crate::error::Problem;
use crate::id::IdGenerator;
use crate::money::{Currency, Minor};

use super::command::{Command, Done, Reply};
use super::hook::OutboxHook;
use super::locked::{Counter, Wallet};
use super::sql;
use super::state::{Reserved, State};

/// What became of each command of a batch, in order.
pub(super) type Outcomes = Vec<Result<Done, Problem>>;

/// Why a batch did not end.
pub(super) enum Interrupted {
    /// Nothing was written. Another attempt may succeed.
    Again(sqlx::Error),
    /// Nothing was written: a key or a counter was taken by another host meanwhile.
    Overtaken,
    /// Nothing was written: some row is not acceptable to the database.
    Poisoned(sqlx::Error),
    /// The storage fails. Only a restart can tell what it holds.
    Broken(sqlx::Error),
    /// COMMIT was sent and no answer came.
    Unknown(sqlx::Error, Outcomes),
}

/// What an earlier try at the same batch may have committed.
pub(super) struct Earlier {
    pub(super) marker: String,
    pub(super) outcomes: Outcomes,
}

/// What a batch is decided with.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) ids: &'a IdGenerator,
    pub(super) now: Moment,
    pub(super) hook: Option<&'a OutboxHook>,
}

/// Runs a batch to its COMMIT. `marker` names this try in the database; `earlier` are tries
/// whose COMMIT was never answered.
pub(super) async fn run(
    native: &mut Native,
    commands: &[&Command],
    Surroundings { ids, now, hook }: Surroundings<'_>,
    marker: &str,
    earlier: &mut Vec<Earlier>,
) -> Result<Outcomes, Interrupted> {
    native.begin().await.map_err(Interrupted::Again)?;
    let mut state = read(native, commands, now).await.map_err(Interrupted::Again)?;
    // The locks are held: an earlier try is either committed and visible, or gone for good.
    if let Some(outcomes) = find_committed(native, earlier).await.map_err(Interrupted::Again)? {
        native.rollback().await.map_err(Interrupted::Again)?;
        return Ok(outcomes);
    }
    let outcomes: Outcomes = commands.iter().map(|command| state.decide(command, ids)).collect();
    if state.out.is_empty() {
        native.rollback().await.map_err(Interrupted::Again)?;
        return Ok(outcomes);
    }
    let hooked = run_hook(native, &mut state, (hook, ids)).await;
    let committed = hooked.map_err(Interrupted::Again)?;
    match write(native, &state, marker).await {
        Ok(true) => {}
        Ok(false) => {
            native.rollback().await.map_err(Interrupted::Again)?;
            return Err(Interrupted::Overtaken);
        }
        Err(cause) => {
            let interrupted = classify(cause);
            let _ = native.rollback().await;
            return Err(interrupted);
        }
    }
    match native.commit().await {
        Ok(()) => {
            if let Some(committed) = committed {
                committed();
            }
            Ok(outcomes)
        }
        Err(cause) => match classify(cause) {
            Interrupted::Broken(cause) => Err(Interrupted::Broken(cause)),
            Interrupted::Again(cause) | Interrupted::Poisoned(cause) => {
                Err(Interrupted::Unknown(cause, outcomes))
            }
            other => Err(other),
        },
    }
}

/// Adds the rows that the hook makes out of the batch's; answers what to do once all are
/// committed.
async fn run_hook(
    native: &mut Native,
    state: &mut State,
    (hook, ids): (Option<&OutboxHook>, &IdGenerator),
) -> Result<Option<Box<dyn FnOnce() + Send>>, sqlx::Error> {
    let Some(hook) = hook else { return Ok(None) };
    let Some((_, rows)) = state.out.inserts.get(hook.of.name) else { return Ok(None) };
    let wanted = keys((hook.keys)(rows).into_iter());
    if wanted.is_empty() {
        return Ok(None);
    }
    let found = native.select(hook.lookup, &wanted).await?;
    let added = (hook.run)(rows, &found, ids);
    for change in added.rows {
        state.out.take_row(change);
    }
    Ok(Some(added.committed))
}

async fn find_committed(
    native: &mut Native,
    earlier: &mut Vec<Earlier>,
) -> Result<Option<Outcomes>, sqlx::Error> {
    if earlier.is_empty() {
        return Ok(None);
    }
    let markers: Vec<String> = earlier.iter().map(|try_| try_.marker.clone()).collect();
    let found = native.select(&sql::FIND_MARKERS, &markers).await?;
    let committed = found.first().map(|row| row[0].text().to_owned());
    let position = committed.and_then(|m| earlier.iter().position(|try_| try_.marker == m));
    Ok(position.map(|index| earlier.swap_remove(index).outcomes))
}

async fn read(
    native: &mut Native,
    commands: &[&Command],
    now: Moment,
) -> Result<State, sqlx::Error> {
    let mut state = State { now, ..State::default() };
    let wallets = keys(commands.iter().flat_map(|c| c.wallets.iter().map(ToString::to_string)));
    for row in native.select(&sql::WALLETS, &wallets).await? {
        if let Some(wallet) = wallet(&row) {
            state.wallets.insert(wallet.id.clone(), wallet);
        }
    }
    let tables: Vec<&'static Lookup> = guarded_tables(commands);
    for table in tables {
        let guards = commands.iter().flat_map(|command| &command.guards);
        let ids = guards.filter(|guard| guard.on.name == table.name).map(|guard| guard.id.clone());
        for row in native.select(table, &keys(ids)).await? {
            state.versions.insert((table.name, row[0].text().to_owned()), row[1].int());
        }
    }
    let reservations = commands.iter().filter_map(|command| command.reservation.as_ref());
    let reserved_keys = keys(reservations.map(|reservation| reservation.key.clone()));
    for row in native.select(&sql::RESERVATIONS, &reserved_keys).await? {
        state.reserved.insert(row[0].text().to_owned(), reserved(&row));
    }
    let counters = keys(commands.iter().flat_map(|command| command.counters.iter().cloned()));
    for row in native.select(&sql::COUNTERS, &counters).await? {
        state.counters.insert(row[0].text().to_owned(), counter(&row));
    }
    Ok(state)
}

fn guarded_tables(commands: &[&Command]) -> Vec<&'static Lookup> {
    let mut tables: Vec<&'static Lookup> = Vec::new();
    for guard in commands.iter().flat_map(|command| &command.guards) {
        if !tables.iter().any(|table| table.name == guard.on.name) {
            tables.push(guard.on);
        }
    }
    tables.sort_by_key(|table| table.name);
    tables
}

/// Writes everything. False: another host took a key or a counter first.
async fn write(native: &mut Native, state: &State, marker: &str) -> Result<bool, sqlx::Error> {
    let out = &state.out;
    let mark = [vec![Cell::from(marker), state.now.micros().into()]];
    let reservations: Vec<Row> = out.reservations.values().cloned().collect();
    let counters: Vec<Row> =
        out.counters.iter().filter_map(|key| counter_row(key, state)).collect();
    let wallets: Vec<Row> = out.wallets.iter().filter_map(|id| wallet_row(id, state)).collect();
    // First what another host may have taken: then nothing else may be written, lest a row that
    // is there twice be taken for a bad one.
    let contested = [
        Write::Insert(&sql::NEW_RESERVATIONS, &reservations),
        Write::Insert(&sql::COUNTER_CHANGES, &counters),
    ];
    let taken = native.write(&contested).await?;
    if taken.iter().zip(&contested).any(|(taken, wanted)| *taken != wanted.len() as u64) {
        return Ok(false);
    }
    let mut writes = vec![
        Write::Insert(&sql::MARKERS, &mark),
        Write::Insert(&sql::JOURNALS, &out.journals),
        Write::Insert(&sql::ENTRIES, &out.entries),
        Write::Update(&sql::LATE_REPLIES, &out.late_replies),
        Write::Update(&sql::WALLET_SUMS, &wallets),
    ];
    writes.extend(out.inserts.values().map(|(table, rows)| Write::Insert(table, rows)));
    writes.extend(out.updates.iter().map(|(update, rows)| Write::Update(update, rows)));
    writes.extend(out.deletes.values().map(|(table, keys)| Write::Delete(table, keys)));
    native.write(&writes).await?;
    Ok(true)
}

/// Connections and locks come and go; a broken disk does not; anything else is in the rows.
fn classify(cause: sqlx::Error) -> Interrupted {
    let sqlx::Error::Database(database) = &cause else { return Interrupted::Again(cause) };
    let code = database.code().unwrap_or_default().into_owned();
    // PostgreSQL's codes have five characters, SQLite's extended codes are numbers below 2^16.
    if code.len() == 5 {
        // Serialization failure, deadlock, lock or statement timeout, shutdown, no space.
        let passing = ["40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "53100"];
        return match passing.contains(&code.as_str()) {
            true => Interrupted::Again(cause),
            false => Interrupted::Poisoned(cause),
        };
    }
    match code.parse::<u32>().unwrap_or(0) & 0xff {
        SQLITE_BUSY | SQLITE_LOCKED | SQLITE_FULL => Interrupted::Again(cause),
        SQLITE_IOERR | SQLITE_CORRUPT | SQLITE_NOTADB => Interrupted::Broken(cause),
        _ => Interrupted::Poisoned(cause),
    }
}

const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;
const SQLITE_IOERR: u32 = 10;
const SQLITE_CORRUPT: u32 = 11;
const SQLITE_FULL: u32 = 13;
const SQLITE_NOTADB: u32 = 26;

fn keys(keys: impl Iterator<Item = String>) -> Vec<String> {
    keys.collect::<BTreeSet<_>>().into_iter().collect()
}

fn wallet(row: &Row) -> Option<Wallet> {
    Some(Wallet {
        id: row[0].text().to_owned(),
        merchant_id: row[1].text().to_owned(),
        env: Env::parse(row[2].text())?,
        currency: Currency::parse(row[3].text())?,
        available: Minor::new(row[4].int()),
        pending_out: Minor::new(row[5].int()),
        seq: row[6].int(),
        head_hash: row[7].text().to_owned(),
        is_frozen: row[8].int() != 0,
    })
}

fn wallet_row(id: &str, state: &State) -> Option<Row> {
    let wallet = state.wallets.get(id)?;
    Some(vec![
        id.into(),
        wallet.available.units().into(),
        wallet.pending_out.units().into(),
        wallet.seq.into(),
        wallet.head_hash.as_str().into(),
        i64::from(wallet.is_frozen).into(),
        state.now.micros().into(),
    ])
}

fn reserved(row: &Row) -> Reserved {
    let status = row[4].int_or_null().and_then(|status| u16::try_from(status).ok());
    let body = row[5].text_or_null().map(str::to_owned);
    Reserved {
        fingerprint: row[1].text().to_owned(),
        subject: row[2].text().to_owned(),
        resource_id: row[3].text().to_owned(),
        reply: status.zip(body).map(|(status, body)| Reply { status, body }),
    }
}

fn counter(row: &Row) -> Counter {
    Counter {
        version: row[1].int(),
        holder: row[2].text().to_owned(),
        count: row[3].int(),
        sum: Minor::new(row[4].int()),
        updated_at: row[5].int(),
        expires_at: row[6].int(),
    }
}

fn counter_row(key: &str, state: &State) -> Option<Row> {
    let counter = state.counters.get(key)?;
    Some(vec![
        key.into(),
        (counter.version + 1).into(),
        counter.holder.as_str().into(),
        counter.count.into(),
        counter.sum.units().into(),
        counter.updated_at.into(),
        counter.expires_at.into(),
    ])
}
