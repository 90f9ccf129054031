//! Which file payments join at a closing of their method, and the closing of it early.

use std::time::Duration;

use sqlx::AnyPool;

use crate::calendar::windows::Closing;
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::error::Problem;
use crate::id::{IdGenerator, PaymentFileId};
use crate::money::Minor;
use crate::rails::ReadyRoute;
use crate::rails::files::{Planned, Timetable};

use super::table::{FileState, PaymentFile, by_slot, insert};
use super::timetable;

/// The slot of the file that payments join until a closing.
pub(super) fn slot(route: &ReadyRoute, closing: &Closing) -> String {
    format!("{}/{}/{}", route.route.id, closing.window, closing.closes_at.micros())
}

/// When the closing of a slot was to be; nothing of a further file, which has its own.
pub(super) fn planned_at(slot: &str) -> Option<Moment> {
    let mut parts = slot.split('/');
    let (_, _, micros) = (parts.next()?, parts.next()?, parts.next()?);
    micros.parse().ok().map(Moment::from_micros)
}

/// A file to join: that of a closing, or a further one with the same terms.
pub(super) struct NewFile<'a> {
    pub(super) route: &'a ReadyRoute,
    pub(super) planned: &'a Planned,
    /// No other file has it.
    pub(super) slot: String,
    /// When something is to be done about it.
    pub(super) due_at: Moment,
    pub(super) now: Moment,
}

/// The file in a slot, which is made if it is not there.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn open(
    db: &Db,
    ids: &IdGenerator,
    new: &NewFile<'_>,
) -> Result<PaymentFile, sqlx::Error> {
    if let Some(found) = by_slot(db.pool(), &new.slot).await? {
        return Ok(found);
    }
    let mut tx = db.write().await?;
    insert(&mut tx, &new.file(ids.id()), &new.slot).await?;
    tx.commit().await?;
    by_slot(db.pool(), &new.slot).await?.ok_or(sqlx::Error::RowNotFound)
}

impl NewFile<'_> {
    /// The file, of which nobody has heard yet.
    fn file(&self, id: PaymentFileId) -> PaymentFile {
        let (route, closing) = (&self.route.route, &self.planned.closing);
        PaymentFile {
            id,
            env: route.env,
            route_id: route.id.clone(),
            route: route.name.clone(),
            rail: route.rail.clone(),
            method: route.method.clone(),
            currency: route.currency.to_string(),
            window: closing.window.clone(),
            closes_at: closing.closes_at,
            planned_at: closing.closes_at,
            business_date: closing.business_date.to_string(),
            local_time: closing.local_time.strftime("%H:%M").to_string(),
            value_date: closing.value_date.to_string(),
            settles_at: self.planned.settles_at,
            number: 0,
            number_of_day: 0,
            first_entry: 0,
            state: FileState::Collecting,
            is_held: false,
            name: None,
            identity: None,
            digest: None,
            entries: 0,
            amount_minor: 0,
            may_have_left: false,
            deliveries: 0,
            copies: 0,
            restored_at: None,
            is_contradicted: false,
            first_sent_at: None,
            code: None,
            message: None,
            due_at: self.due_at,
            fence: 0,
            sent_at: None,
            answered_at: None,
            created_at: self.now,
        }
    }
}

/// The file that payments join at a closing, which is opened if nobody has yet.
///
/// # Errors
/// The database cannot be written.
pub async fn of_closing(
    (db, ids): (&Db, &IdGenerator),
    (route, planned): (&ReadyRoute, &Planned),
    now: Moment,
) -> Result<PaymentFile, sqlx::Error> {
    let slot = slot(route, &planned.closing);
    let due_at = planned.closing.closes_at;
    open(db, ids, &NewFile { route, planned, slot, due_at, now }).await
}

/// The file of the first closing, from this one on, that nobody has closed.
///
/// # Errors
/// There is none; the database cannot be written.
pub(super) async fn first_open(
    (db, ids): (&Db, &IdGenerator),
    (route, mut planned, largest): (&ReadyRoute, Planned, Minor),
    now: Moment,
) -> Result<PaymentFile, Problem> {
    loop {
        let file = of_closing((db, ids), (route, &planned), now).await?;
        if file.state == FileState::Collecting {
            return Ok(file);
        }
        planned = after(timetable(route)?, &planned, largest)?;
    }
}

/// The closing after this one for a payment of this amount.
///
/// # Errors
/// There is none.
pub(super) fn after(
    timetable: &Timetable,
    planned: &Planned,
    amount: Minor,
) -> Result<Planned, Problem> {
    let at = planned.closing.closes_at.after(Duration::from_micros(1));
    timetable.next(at, amount).map_err(Problem::internal)
}

/// What becomes of a payment before a closing that lies ahead.
pub enum Ahead {
    /// An operator has closed the window before its time, and it was in time for that: it joins.
    Joins(Box<PaymentFile>),
    /// It waits for this closing, of which somebody may have opened the file.
    Waits(Box<Planned>, Option<Box<PaymentFile>>),
    /// There is none, in words.
    Never(String),
}

/// What becomes of a payment that was queued then and is of this amount. Where a window was closed
/// before its time and without it, it goes with the next, whoever holds that file back.
///
/// # Errors
/// The database cannot be read.
pub async fn ahead(
    pool: &AnyPool,
    (route, mut planned): (&ReadyRoute, Planned),
    (queued_at, amount): (Moment, Minor),
) -> Result<Ahead, Problem> {
    loop {
        let file = find_of_closing(pool, (route, &planned)).await?.map(Box::new);
        match file {
            Some(file) if file.closes_at < planned.closing.closes_at => {
                if file.state == FileState::Collecting && queued_at <= file.closes_at {
                    return Ok(Ahead::Joins(file));
                }
            }
            file => return Ok(Ahead::Waits(Box::new(planned), file)),
        }
        match after(timetable(route)?, &planned, amount) {
            Ok(next) => planned = next,
            Err(why) => return Ok(Ahead::Never(why.to_string())),
        }
    }
}

/// Makes what waits for a closing due that an operator has closed before its time; answers how
/// many payments that were. Whoever looked for a file a moment ago may still have put one off.
///
/// # Errors
/// The database cannot be written.
pub(super) async fn call_in(db: &Db, file: &PaymentFile) -> Result<u64, sqlx::Error> {
    let sql = format!(
        "UPDATE transfers SET due_at = $4 WHERE route_id = $1 AND due_at >= $2 AND due_at < $3 \
         AND due_at > $4 AND {JOINS}"
    );
    let mut tx = db.write().await?;
    let query = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(file.route_id.as_str())
        .bind(file.planned_at.micros())
        .bind(file.planned_at.after(limits::FILES_POLL).micros())
        // Whoever closes the file waits for what is due by then.
        .bind(file.closes_at.micros());
    let found = query.execute(tx.conn()).await?.rows_affected();
    tx.commit().await?;
    Ok(found)
}

/// Work of a payment that is still to join a file: its first one, or another where that was
/// refused as a whole.
pub const JOINS: &str = "(stage = 'queued' OR EXISTS (SELECT 1 FROM attempts a \
    JOIN payment_files f ON f.id = a.file_id WHERE a.transfer_id = transfers.id \
    AND a.state = 'open' AND f.state = 'refused'))";

/// The file of a closing, if somebody has opened it.
///
/// # Errors
/// The database cannot be read.
pub async fn find_of_closing(
    pool: &AnyPool,
    (route, planned): (&ReadyRoute, &Planned),
) -> Result<Option<PaymentFile>, sqlx::Error> {
    by_slot(pool, &slot(route, &planned.closing)).await
}
