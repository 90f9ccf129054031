//! Serials: numbers that references are made from, allocated and never drawn.
//!
//! An object's serial is fixed when it is queued, in the same transaction, and the number of its
//! n-th attempt follows from it: whoever sends it, whenever, after whatever was restored, makes
//! the same reference for the same attempt, and the bank can tell that it is the same payment.
//! Hosts take serials in blocks, so that they need not wait for one another.

use tokio::sync::Mutex;

use crate::db::Db;

/// Serials that a host takes at a time. What it does not use is lost, which does not matter.
const BLOCK: i64 = 10_000;

/// Attempts that an object may have, one a route: the last digit of their numbers.
pub(super) const ATTEMPTS_MAX: i64 = 9;

/// The serials of this process.
pub(super) struct Serials {
    db: Db,
    block: Mutex<std::ops::Range<i64>>,
}

impl Serials {
    /// Serials out of this database.
    #[must_use]
    pub(super) fn new(db: Db) -> Self {
        Self { db, block: Mutex::new(0..0) }
    }

    /// The next serial.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn next(&self) -> Result<i64, sqlx::Error> {
        let mut block = self.block.lock().await;
        if let Some(serial) = block.next() {
            return Ok(serial);
        }
        let mut tx = self.db.write().await?;
        let sql = "UPDATE serials SET next = next + $1 WHERE id = 'transfers' RETURNING next";
        let end: i64 = sqlx::query_scalar(sql).bind(BLOCK).fetch_one(tx.conn()).await?;
        tx.commit().await?;
        *block = end - BLOCK + 1..end;
        Ok(end - BLOCK)
    }
}

/// Numbers that a serial stands for: the zeroth for a name enquiry, the others for attempts.
const NUMBERS_PER_SERIAL: i64 = 10;

/// Which attempt of its object a number was made for, from 1.
#[must_use]
pub fn nth_of(number: i64) -> i64 {
    number % NUMBERS_PER_SERIAL
}

/// The serial that a number was made from.
#[must_use]
pub fn serial_of(number: i64) -> i64 {
    number / NUMBERS_PER_SERIAL
}

/// The number of a name enquiry that has a serial of its own.
#[must_use]
pub(super) fn of_enquiry(serial: i64) -> i64 {
    serial * NUMBERS_PER_SERIAL
}

/// The number of an object's n-th attempt, from 1: below 10^12 for the first 10^11 objects.
#[must_use]
pub(super) fn number(serial: i64, nth: i64) -> i64 {
    serial * NUMBERS_PER_SERIAL + nth.min(ATTEMPTS_MAX)
}
